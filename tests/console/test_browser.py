"""The console in a real browser, over an engine with the freeways of the demo."""

from __future__ import annotations

import os
import queue
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import eventide
from eventide.console.lifecycle import RecordConsole
from eventide.console.subject import StoppedSubject
from eventide.endpoint.discovery import Address
from eventide.language.script import read_script
from eventide.report.stopped_run import read_progress
from eventide.storage.storage import Storage
from examples.freeway import SILENT
from scripts.servers import free_port
from tests.commands.processes import Here
from tests.console.pictures import draw
from tests.console.scene import SCRIPT, Freeway, freeway

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PATIENCE = 30_000
"""Milliseconds: a busy machine takes its time."""
PAGES = ("time", "plan", "results", "losses", "engine")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Freeway]:
    """A run in which a detector has been silent for 40 seconds."""
    with freeway(tmp_path_factory.mktemp("run")) as found:
        found.go_on(7, seconds=30)
        found.go_on(0.75)
        yield found


@contextmanager
def opened(browser: Browser, link: str, width: int = 1280, height: int = 800) -> Iterator[Page]:
    """A page of a browser that nobody has used before; whatever goes wrong in it is an error here."""
    context = browser.new_context(viewport={"width": width, "height": height})
    context.set_default_timeout(PATIENCE)
    page, wrong = context.new_page(), list[str]()
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.append(said.text) if "Content Security" in said.text else None)
    page.goto(link)
    yield page
    context.close()
    assert wrong == []


def go(page: Page, name: str) -> None:
    page.click(f"nav a[data-page={name}]")
    page.wait_for_selector("main .card")


def is_as_wide_as_the_screen(page: Page) -> bool:
    found: bool = page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    return found


def test_the_silent_source_is_named_in_colour(browser: Browser, run: Freeway) -> None:
    with opened(browser, run.console.link()) as page:
        page.wait_for_selector("text=Running")
        assert page.text_content("#holder") == SILENT
        row = page.locator(f"tr[data-source='{SILENT}']")
        assert "holds time back" in (row.text_content() or "")
        colour = row.locator("th").evaluate("one => getComputedStyle(one).color")
        others = page.locator("tr.waited-for th").first.evaluate("one => getComputedStyle(one).color")
        assert colour != others
        assert "token" not in page.url


@pytest.mark.slow
def test_every_page_shows_the_run_without_scrolling_sideways(browser: Browser, run: Freeway) -> None:
    expected = {
        "time": "behind the latest row",
        "plan": "highway",
        "results": "I-5",
        "losses": "of",
        "engine": "Checkpoint",
    }
    for theme in ("light", "dark"):
        with opened(browser, run.console.link()) as page:
            page.emulate_media(color_scheme=theme)
            for name in PAGES:
                go(page, name)
                page.wait_for_function(
                    "text => document.querySelector('main').textContent.includes(text)", arg=expected[name]
                )
                assert is_as_wide_as_the_screen(page), name


@pytest.mark.slow
@pytest.mark.parametrize("name", ["time", "results"])
def test_a_phone_shows_time_and_results(browser: Browser, run: Freeway, name: str) -> None:
    with opened(browser, run.console.link(), 390, 844) as page:
        go(page, name)
        page.wait_for_selector("main table")
        assert is_as_wide_as_the_screen(page)


@pytest.mark.slow
def test_refresh_gives_early_results_of_what_is_open(browser: Browser, run: Freeway) -> None:
    with opened(browser, run.console.link()) as page:
        go(page, "results")
        page.wait_for_selector("#rows tbody tr")
        page.click("#refresh")
        page.wait_for_function("() => /early results? as of round/.test(document.getElementById('answer').textContent)")
        assert "expected error" in (page.text_content("#answer") or "")
        assert page.locator("#rows tr.early").count() > 0
        page.fill("#group", "highway=I-205")
        page.click("#refresh")
        page.wait_for_function("() => !document.getElementById('refresh').disabled")
        page.fill("#group", "street=I-205")
        page.click("#refresh")
        page.wait_for_selector("#answer:has-text('has no group')")


@pytest.mark.slow
def test_a_session_that_may_only_read_cannot_refresh(browser: Browser, run: Freeway) -> None:
    with opened(browser, run.console.link(read_only=True)) as page:
        go(page, "results")
        assert page.locator("#refresh").is_disabled()
        status = page.evaluate(
            """async () => {
                const { session } = JSON.parse(localStorage.getItem("eventide.session"));
                const headers = { Authorization: `Bearer ${session}` };
                const asked = { method: "POST", headers, body: JSON.stringify({ query: "speeds" }) };
                return (await fetch("api/prod", asked)).status;
            }"""
        )
        assert status == 403


@pytest.mark.slow
def test_the_page_of_the_plan_draws_heartbeats_on_their_way(browser: Browser, run: Freeway) -> None:
    with opened(browser, run.console.link()) as page:
        go(page, "plan")
        page.wait_for_selector("#traces .trace rect.waits")
        told = str(page.locator("#traces .trace svg").first.get_attribute("aria-label"))
        assert "of readings" in told
        page.wait_for_selector(f"#traces:has-text('waits for {SILENT} of stream readings')")


def test_why_is_told_in_the_words_of_the_command(browser: Browser, run: Freeway, here: Here) -> None:
    Path("freeway.sql").write_text(SCRIPT)
    said = here("why", "freeway.sql", "speeds", "--checkpoint", str(run.endpoint.folder)).out.splitlines()
    with opened(browser, run.console.link()) as page:
        go(page, "results")
        page.wait_for_selector("#open li")
        told = page.locator("#open .why").all_text_contents()
    assert told
    assert told == said[: len(told)]


@pytest.mark.slow
@pytest.mark.parametrize("address", ["/console/", "/console/#token=wrong"])
def test_who_has_no_link_sees_nothing(browser: Browser, run: Freeway, address: str) -> None:
    with opened(browser, run.endpoint.url + address) as page:
        page.wait_for_selector("#refused")
        assert "readings" not in page.content()
        assert SILENT not in page.content()


@pytest.mark.slow
def test_a_link_opens_once(browser: Browser, run: Freeway) -> None:
    link = run.console.link()
    with opened(browser, link) as page:
        page.wait_for_selector("text=Running")
        page.reload()
        page.wait_for_selector("text=Running")
    with opened(browser, link) as page:
        page.wait_for_selector("#refused")


@pytest.mark.slow
def test_an_open_page_goes_on_after_the_engine_was_started_again(browser: Browser, tmp_path: Path) -> None:
    port = free_port()
    with freeway(tmp_path, port=port) as first:
        first.go_on(1, seconds=30)
        context = browser.new_context()
        page = context.new_page()
        page.goto(first.console.link())
        page.wait_for_selector("text=Running", timeout=PATIENCE)
    page.wait_for_selector("text=The engine has ended", timeout=PATIENCE)
    with freeway(tmp_path, port=port, after=first) as second:
        page.wait_for_selector("text=Running", timeout=PATIENCE)
        before = second.engine.status().round
        second.go_on(0.5, seconds=30)
        page.wait_for_function(f"() => !document.body.textContent.includes('round {before} ')", timeout=PATIENCE)
        context.close()


MARKUP = "<img src=x onerror=window.hit=1><script>window.hit=1</script>"
NASTY = f"""
CREATE STREAM readings (
    detector STRING, highway STRING, direction STRING, ts TIMESTAMP, arrived TIMESTAMP, cars INT, speed DOUBLE
) TIMESTAMP BY ts ARRIVAL BY arrived SOURCE BY detector DELAY 1 second;
CREATE QUERY speeds AS SELECT highway, avg(speed) AS mean
    FROM readings [RANGE 10 seconds] WHERE highway <> '</pre>{MARKUP}' GROUP BY highway;
"""


@pytest.mark.slow
def test_markup_in_names_values_and_sql_is_text(browser: Browser, tmp_path: Path) -> None:
    with freeway(tmp_path, NASTY) as run:
        rows = pa.concat_tables(run.parts[:12])
        nasty = pa.repeat(pa.scalar(MARKUP), rows.num_rows)
        for name in ("detector", "highway"):
            rows = rows.set_column(rows.column_names.index(name), name, nasty)
        run.give(rows)
        with opened(browser, run.console.link()) as page:
            page.wait_for_selector("tr[data-source]")
            for name in PAGES:
                go(page, name)
                page.wait_for_timeout(600)
                if name in ("time", "plan", "results"):
                    assert "<script>window.hit=1</script>" in (page.text_content("main") or ""), name
                assert page.evaluate("window.hit") is None
                assert page.locator("main img, main script").count() == 0


@pytest.mark.slow
def test_nothing_is_computed_while_nobody_looks(browser: Browser, run: Freeway) -> None:
    with opened(browser, run.console.link()) as page:
        page.wait_for_selector("text=Running")
        assert run.console.viewers == 1
    run.give(pa.concat_tables(run.parts[-1:]))
    for _ in range(100):
        if run.console.viewers == 0:
            break
        run.engine.ended.wait(0.1)
    made = run.console.made
    run.give(pa.concat_tables(run.parts[-1:]))
    assert (run.console.viewers, run.console.made) == (0, made)


@pytest.mark.slow
def test_the_pictures_of_the_documentation_are_drawn_with_nobody_at_the_keyboard(
    browser: Browser, tmp_path: Path
) -> None:
    folder = Path(os.environ.get("EVENTIDE_PICTURES", tmp_path))
    with freeway(tmp_path / "run") as run:
        for picture in draw(browser, run, folder):
            assert picture.stat().st_size > 10_000


@pytest.mark.slow
def test_a_stopped_run_is_shown_from_its_record(browser: Browser, tmp_path: Path) -> None:
    with freeway(tmp_path) as run:
        run.go_on(3, seconds=30)
    program: Any = read_script(SCRIPT).program
    progress = read_progress(program, str(tmp_path / "state"))
    subject = StoppedSubject(progress, Storage.at(str(tmp_path / "state"), make=False))
    with RecordConsole(subject, Address()) as console, opened(browser, console.link()) as page:
        page.wait_for_selector("text=Stopped")
        for name in PAGES:
            go(page, name)
        page.wait_for_selector("text=Last written")
        go(page, "results")
        page.wait_for_selector("#open li")
        assert page.locator("#refresh").is_disabled()


@pytest.mark.slow
def test_the_console_opens_over_https_and_keeps_up(browser: Browser, tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl here, which makes certificates")
    cert, key = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=engine.example"]
    subprocess.run([*made, "-out", cert, "-keyout", key], check=True, capture_output=True)
    coming: queue.Queue[pa.RecordBatch | None] = queue.Queue()
    coming.put(pa.record_batch({"t": [1, 2, 30], "v": [1, 2, 3]}))
    query = eventide.stream(iter(coming.get, None), time="t", name="s").delay(0).window(10).agg(n="count(*)")
    with query.start() as running:
        context = browser.new_context(ignore_https_errors=True)
        page = context.new_page()
        page.goto(running.console(cert=cert, key=key).link())
        page.wait_for_selector("text=Running")
        assert page.url.startswith("https://")
        rounds = running.status().round
        coming.put(pa.record_batch({"t": [31, 52], "v": [4, 5]}))
        page.wait_for_selector(f"text=round {rounds + 1}")
        context.close()
        coming.put(None)
