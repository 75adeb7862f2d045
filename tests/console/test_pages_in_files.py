"""Pages in one file, in a real browser without a network: `profile --html` and `explain --html`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.commands.processes import Here

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

HOSTILE = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"


@contextmanager
def opened(browser: Browser, file: Path) -> Iterator[Page]:
    """The page of a file; what it asks of a network, says of errors, or runs of its data, is an error here."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, offline=True)
    context.set_default_timeout(30_000)
    page, wrong = context.new_page(), list[str]()
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.append(said.text))
    page.on("dialog", lambda dialog: wrong.append(dialog.message))
    page.on("request", lambda asked: wrong.append(asked.url) if not asked.url.startswith(("data:", "file:")) else None)
    page.goto(file.as_uri())
    page.wait_for_selector("main .card")
    yield page
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    context.close()
    assert wrong == []


def test_a_recording_is_told_and_drawn_in_one_file(browser: Browser, here: Here, tmp_path: Path) -> None:
    rows = "".join(
        f'{at},{at + (40 if at % 3 else 5)},"{HOSTILE if at % 3 else "north"}"\n' for at in range(1_000, 3_000, 10)
    )
    (tmp_path / "r.csv").write_text(f"at,seen,sensor\n{rows}")
    asked = ("profile", "r.csv", "--time", "at", "--arrival", "seen", "--source", "sensor", "--unit", "ms")
    done = here(*asked, "--html", "found.html", "--json")
    assert done.code == 0, done.err
    assert "page: found.html" in done.err
    [found] = json.loads(done.out)["runs"]
    with opened(browser, tmp_path / "found.html") as page:
        assert f"{found['rows']} rows from 2 sources" in (page.text_content("main") or "")
        row = page.locator("tr[data-policy=eventide]")
        assert row.locator("td").first.text_content() == f"{100 * found['policies']['eventide']['drop_ratio']:g} %"
        assert page.locator("tbody th", has_text=HOSTILE).count() == 1
        page.click("th:has-text('Mean lag') button")
        lags = page.locator("tr[data-policy]").evaluate_all("all => all.map((one) => one.dataset.policy)")
        known = {name: one["lag_mean_ms"] for name, one in found["policies"].items()}
        assert sorted(lags) == sorted(known)
        assert [known[name] for name in lags] == sorted(known.values(), reverse=True)
        curve = page.locator("g.curve.kim")
        assert curve.is_visible()
        page.click(".legend button:has-text('kim') >> nth=0")
        assert not curve.is_visible()
        assert page.locator(".chart canvas").count() == 2


def test_a_plan_is_drawn_in_one_file_and_a_step_shows_its_sql(browser: Browser, here: Here, tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_text(
        f"""CREATE STREAM traffic (ts TIMESTAMP, detector STRING, speed INT) FROM json 'in' DELAY 1 minute;
        CREATE QUERY speeds AS SELECT avg(speed) AS mean FROM traffic [RANGE 5 minutes]
            WHERE detector <> '{HOSTILE}';
        CREATE QUERY slow AS SELECT mean FROM speeds WHERE mean < 20;"""
    )
    done = here("explain", "q.sql", "--html", "plan.html")
    assert done.code == 0, done.err
    assert "speeds" in done.out
    with opened(browser, tmp_path / "plan.html") as page:
        assert page.locator("g.node").count() == 3
        assert page.locator("path.way").count() == 2
        page.click("g.node[data-node=traffic]")
        page.wait_for_selector("#detail h2:has-text('traffic')")
        assert HOSTILE in (page.text_content("#detail") or "")
        page.click("g.node[data-node=slow]")
        page.wait_for_selector("#detail h2:has-text('slow')")


def test_a_page_that_cannot_be_written_is_told_in_words(here: Here, tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_text(
        "CREATE STREAM s (t BIGINT) FROM json 'in' DELAY 1; SELECT count(*) FROM s [RANGE 5];"
    )
    done = here("explain", "q.sql", "--html", "none/plan.html")
    assert done.code == 2
    assert "none/plan.html: the page cannot be written there: No such file or directory" in done.err
