"""What takes long says so: lines on standard error, never close together."""

from __future__ import annotations

import pytest

from eventide.launch.logs import EVERY, QUIET, progress_shown


def test_what_is_quick_prints_nothing_and_what_takes_long_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Eight minutes of plots passed without a word."""
    clock = [0.0]
    with progress_shown(lambda: clock[0]) as progress:
        for second in (0.0, QUIET - 1, QUIET, QUIET + 1, QUIET + EVERY - 1, QUIET + EVERY):
            clock[0] = second
            progress("running policies", second / 100)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines() == [
        "eventide: running policies, 3% ...",
        "eventide: running policies, 13% ...",
    ]
