"""A real Chromium without a screen, for the tests of the console: found here, or installed with apt.

Law: it is the browser of the machine and none that was downloaded beside it; what cannot be had is an
`UnavailableError` that says why.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from scripts.servers import UnavailableError, installed

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def _installed() -> str | None:
    return next((found for name in NAMES if (found := shutil.which(name))), None)


def executable() -> str:
    """The path of the browser."""
    install = "apt_install_first_of chromium chromium-browser || command_to_install chromium chromium chromium"
    return installed(_installed, install, "there is no Chromium here")


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser of one's own, until the end of the block."""
    if find_spec("playwright") is None:
        raise UnavailableError("Playwright is not installed: `pip install playwright`")
    path = executable()
    from playwright.sync_api import Error, sync_playwright

    # Its own walls need rights that root in a container does not have.
    walls = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=path, args=walls)
        except Error as error:
            raise UnavailableError(f"Chromium does not start: {str(error).strip().splitlines()[0]}") from None
        try:
            yield browser
        finally:
            browser.close()
