"""Results kept in this process: for tests and notebooks.

Law: what was emitted is there, by query, in the order of the rounds. It dies with the process.

>>> from eventide.results.results import Results
>>> memory = Memory()
>>> memory.emit(Results.of_table("speeds", 0, pa.table({"mean": [51.5]})))
>>> memory.emit(Results.of_table("speeds", 1, pa.table({"mean": [48.0]})))
>>> memory.rows("speeds")
[{'mean': 51.5}, {'mean': 48.0}]
>>> memory.rewind("speeds", last=0)
>>> memory.table("speeds").num_rows
1
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from eventide.results.results import Results


class Memory:
    """Keeps all results of every query in this process, for tests and notebooks.

    >>> memory = Memory()
    >>> memory.emit(Results.of_table("speeds", 3, pa.table({"mean": [51.5]})))
    >>> memory.rows("speeds")
    [{'mean': 51.5}]
    """

    def __init__(self) -> None:
        self._rounds: dict[str, dict[int, pa.Table]] = {}
        self._schemas: dict[str, pa.Schema] = {}

    @property
    def queries(self) -> tuple[str, ...]:
        """The names of all queries that gave results, also without rows."""
        return tuple(self._schemas)

    def rows(self, query: str) -> list[dict[str, Any]]:
        """The results of a query, one dictionary a row."""
        found: list[dict[str, Any]] = self.table(query).to_pylist()
        return found

    def table(self, query: str) -> pa.Table:
        """The results of a query as one table; without columns if the query is not known."""
        rounds = self._rounds.get(query, {})
        if not rounds:
            return self._schemas.get(query, pa.schema([])).empty_table()
        return pa.concat_tables([rounds[round] for round in sorted(rounds)], promote_options="default")

    def emit(self, results: Results) -> None:
        """Keep these rows, in place of older ones of the same round."""
        table = results.table()
        self._schemas[results.query] = results.schema
        rounds = self._rounds.setdefault(results.query, {})
        rounds.pop(results.round, None)
        if table.num_rows:
            rounds[results.round] = table

    def rewind(self, query: str, last: int) -> None:
        """Forget the results of later rounds."""
        rounds = self._rounds.get(query, {})
        self._rounds[query] = {round: table for round, table in rounds.items() if round <= last}

    def close(self) -> None:
        """Everything stays where it is, to be looked at."""
