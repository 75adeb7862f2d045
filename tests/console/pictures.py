"""Draw the pictures of docs/console.md: `python -m tests.console.pictures`.

The scene is that of the tests: the freeways of the demo, 40 seconds after a detector has fallen silent.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from scripts.chromium import chromium
from tests.console.scene import Freeway, freeway

if TYPE_CHECKING:
    from playwright.sync_api import Browser

IMAGES = Path(__file__).parents[2] / "docs" / "images"
PAGES = {"time": 700, "plan": 640, "results": 900, "losses": 760, "engine": 760}
"""The pages, and how high each picture is."""


def main() -> None:
    """Draw all of them into the documentation."""
    with tempfile.TemporaryDirectory() as folder, freeway(Path(folder)) as run, chromium() as browser:
        for picture in draw(browser, run, IMAGES):
            print(picture)


def draw(browser: Browser, run: Freeway, folder: Path) -> Iterator[Path]:
    """Draw the pages of a run that has just begun, each into a file of the folder."""
    run.go_on(5.5, seconds=10)
    context = browser.new_context(viewport={"width": 1160, "height": 720}, timezone_id="UTC", locale="en-US")
    context.set_default_timeout(60_000)
    page = context.new_page()
    page.goto(run.console.link())
    page.wait_for_selector("main table")
    for _ in range(27):
        run.go_on(5 / 60)
        page.wait_for_timeout(300)
    for name, height in PAGES.items():
        page.set_viewport_size({"width": 1160, "height": height})
        page.click(f"nav a[data-page={name}]")
        page.wait_for_timeout(1500)
        if name == "results":
            page.click("#refresh")
            page.wait_for_selector("#answer:has-text('as of round')")
        if name == "plan":
            page.click("[data-node=speeds]")
        if name == "losses":
            lose(run)
            page.click("text=late rows >> nth=0")
            page.click("text=Compute")
            page.wait_for_selector("text=would have gone")
        page.evaluate("scrollTo(0, 0)")
        page.mouse.move(0, 0)
        page.wait_for_timeout(1000)
        page.screenshot(path=folder / f"console-{name}.png")
        yield folder / f"console-{name}.png"
    context.close()


def lose(run: Freeway) -> None:
    """A cabinet sends readings of an hour ago."""
    rows = run.parts[10].slice(0, 12)
    back = pc.subtract(rows.column("ts"), pa.scalar(3_600_000_000, pa.duration("us")))
    rows = rows.set_column(rows.column_names.index("ts"), "ts", back.cast(rows.schema.field("ts").type))
    run.give(pa.concat_tables([rows, run.parts[run.given]]))
    run.given += 1
    run.go_on(0.5)


if __name__ == "__main__":
    main()
