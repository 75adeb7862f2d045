"""What sinks have in common that make a commit of a table for each round: Delta and Iceberg.

Law: a round is one commit, which takes the place of what the same round wrote before. Many rows that are on the cluster
are written by Spark's tasks, and the commit makes their files part of the table; where tasks cannot write, this process
does, and says so once.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager

import pyarrow as pa

from eventide.results.results import Results
from eventide.sinks.directory import NotInTasksError, PartWriter
from eventide.sinks.folder import Folder
from eventide.sinks.keys import UPSERT, check_mode

log = logging.getLogger(__name__)

LARGE = 200_000
"""With more rows than this, results that are on the cluster are written by Spark's tasks."""


class CommittedTable(ABC):
    """A table whose commits are rounds. `append` keeps every row, `upsert` the newest of each key."""

    def __init__(self, mode: str, key: Sequence[str], large: int) -> None:
        check_mode(mode, key)
        self._upserts, self._key = mode == UPSERT, tuple(key)
        self._large = large
        self._newest: dict[str, int] = {}
        self._tasks_fail = False

    @property
    @abstractmethod
    def where(self) -> str:
        """The table, for messages."""

    def emit(self, results: Results) -> None:
        """Write a round in one commit, in place of what it gave before."""
        query, round = results.query, results.round
        with self._translated(f"the results of {query!r} in round {round} cannot be written into {self.where}"):
            newest = self._newest[query] if query in self._newest else self._newest_of(query)
            again = newest >= round and self._has_round(query, round)
            if results.rows and self._upserts:
                self._put_round(results, again)
            elif results.rows and (again or not self._gathered(results)):
                self._write(results, again)
            elif again:
                self._take_round_back(query, round)
        self._newest[query] = max(round, newest)

    def close(self) -> None:  # noqa: B027 - every such table is done then
        """Nothing is left to do: every round was complete when `emit` returned."""

    def _by_tasks(self, results: Results, schema: pa.Schema, folder: Folder, name: str) -> bool:
        """Have Spark's tasks write the results into files of a folder, under a name; False where they cannot."""
        assert results.parts is not None
        try:
            with folder.gathering(name) as inside:
                what = f"the results of {results.query!r} in round {results.round}"
                PartWriter(inside, "parquet", schema, what).write(results.parts)
        except NotInTasksError as error:
            log.warning(
                "this process writes into %s itself: %s",
                self.where,
                error,
                extra={"event": "results written by the driver"},
            )
            self._tasks_fail = error.is_lasting
            return False
        return True

    @abstractmethod
    def _translated(self, what: str) -> AbstractContextManager[None]:
        """Makes errors of the table's library our own."""

    @abstractmethod
    def _newest_of(self, query: str) -> int:
        """The newest round of a query that is there; -1 where there is none."""

    @abstractmethod
    def _has_round(self, query: str, round: int) -> bool:
        """Whether rows of a round are there."""

    @abstractmethod
    def _put_round(self, results: Results, again: bool) -> None:
        """Put rows in the place of those with the same key; `again`: the round has done so before."""

    @abstractmethod
    def _gathered(self, results: Results) -> bool:
        """Have the results written where they are, and make them part of the table; False where that cannot be."""

    @abstractmethod
    def _write(self, results: Results, again: bool) -> None:
        """Add the rows, in place of those of the same round."""

    @abstractmethod
    def _take_round_back(self, query: str, round: int) -> None:
        """Remove the rows of a round, as if it had never been."""
