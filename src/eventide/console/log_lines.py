"""The last lines of the engine's log, for those who look at it in a browser.

Law: at most `LINES` are kept, secrets are masked as in every log, and nothing is logged that was not logged before.

>>> lines = LogLines()
>>> lines.begin()
>>> logging.getLogger("eventide.example").warning("a file is gone", extra={"file": "rows.csv"})
>>> lines.end()
>>> lines.last()[-1].split(" ", 1)[1]
'WARNING a file is gone file=rows.csv'
"""

from __future__ import annotations

import logging
from collections import deque

from eventide.launch.logs import ROOT, KeyValueFormatter

LINES = 200


class LogLines(logging.Handler):
    """Remembers what is logged below `eventide`."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._lines: deque[str] = deque(maxlen=LINES)
        self.setFormatter(KeyValueFormatter())

    def begin(self) -> None:
        """Listen from now on."""
        logging.getLogger(ROOT).addHandler(self)

    def end(self) -> None:
        """Listen no more."""
        logging.getLogger(ROOT).removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line."""
        self._lines.append(self.format(record))

    def last(self) -> list[str]:
        """What was kept, the oldest first."""
        return list(self._lines)
