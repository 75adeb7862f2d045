"""Tables that are joined as they are: when they are read, and what becomes of it.

Laws. *When*: a table is read at every start, and with REFRESH EVERY once its time has passed and rows come. *A round of
its own*: what was read becomes state in a round without rows of streams. So a round of rows that is run again sees the
table that it saw, and a table that was read and not committed was seen by nobody. *Kept*: where a table cannot be read
again, what was read last stays, and a warning says so; the first time it is an error.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from eventide.engine.round.engine import Engine
from eventide.engine.round.report import RoundReport
from eventide.errors import EventideError
from eventide.eventtime.instant import FOREVER, NEVER
from eventide.plan.declared.stream import Stream

log = logging.getLogger(__name__)


class TableReads:
    """The tables of a program; `read` gives all rows of one, in the form in which the engine takes rows."""

    def __init__(self, engine: Engine, tables: list[Stream], read: Callable[[Stream], Any]) -> None:
        self._engine = engine
        self._tables = tables
        self._read = read
        self._next = dict.fromkeys((table.name for table in tables), NEVER)

    def refresh(self) -> RoundReport | None:
        """Read what is due, in a round of its own; None where nothing is."""
        if not self._tables or self._engine.ended:
            return None
        clock = self._engine.now()
        rows = {}
        for table in self._tables:
            if self._next[table.name] <= clock:
                every = table.table.refresh if table.table is not None else None
                self._next[table.name] = FOREVER if every is None else clock + every
                try:
                    rows[table.name] = self._read(table)
                except EventideError as failure:
                    if self._engine.streams[table.name].clock == NEVER:
                        raise
                    log.warning(
                        "table %r stays as it was read last: %s", table.name, failure, extra={"event": "table not read"}
                    )
        return self._engine.round(rows, positions=self._engine.state.positions) if rows else None
