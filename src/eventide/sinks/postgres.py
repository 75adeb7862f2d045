"""Results in a table of PostgreSQL, exactly once.

Law: a round is one transaction, which also notes the round in the table `eventide_rounds`; so after kill -9 of either
side the table has all of a round or nothing, and a round that comes again takes its own place. With the mode `upsert`
the table has one row for each key (by default window and groups): an early result gives way to the final one, and that
to a revised one. With `append` every result stays, and `replace round` is another name for it: only the same round
again replaces rows.

The table is made when the first results come, with columns of their types; one that is there is used as it is. Rows go
through this process in batches; large results that are on the cluster are sent by Spark's tasks into a table beside the
target (`postgres_staging`), and taken over from there in the transaction of the round. While the server is away, a
round waits for it for a while; at the start it has to be there.

>>> Postgres("postgresql://eve:hunter2@db:5432/orders", "speeds").where
"the table 'speeds' of PostgreSQL at db:5432/orders"
>>> Postgres("not an address", "speeds")
Traceback (most recent call last):
    ...
eventide.errors.DeclarationError: this is no address of a PostgreSQL: write url 'postgresql://user@host:5432/database'
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pyarrow as pa

from eventide.errors import DeclarationError, EngineError
from eventide.masking import masked_text
from eventide.results.results import Results
from eventide.sinks.keys import check_mode, key_of
from eventide.sinks.lines import LineWriter
from eventide.sinks.sink import Owner

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    from eventide.sinks.postgres_staging import PartCopy
    from eventide.sinks.postgres_table import Staging, Target, line_writer
except ModuleNotFoundError as missing:  # pragma: no cover - the tests have it
    raise DeclarationError("INTO postgres needs psycopg: pip install 'eventide[postgres]'") from missing

log = logging.getLogger(__name__)

PATIENCE = 60.0
"""So many seconds a round waits for a server that has gone away."""
CONNECTING = 5
"""Seconds until an attempt to connect has failed."""

LAST_ROUND = 2**62
LARGE = 100_000
"""Above so many rows, results that are on the cluster are sent from there."""

Made = TypeVar("Made")


class Postgres:
    """Writes results into the table `table` (or `schema.table`) of the PostgreSQL database at `url`.

    Law: each round is one transaction, and replaces what the same round wrote before.

    `mode` is `upsert`, `append` or `replace round`; left out, it is `upsert` where results have a key and `append` for
    rows, which have none. `key` names other columns than window and groups. `user` and `password` may stand apart from
    the `url`. Results of more than `large` rows that are on the cluster are sent by Spark's tasks.

    >>> Postgres("postgresql://db/orders", "speeds", mode="overwrite")
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: there is no mode 'overwrite': choose upsert, append or replace round
    """

    def __init__(
        self,
        url: str,
        table: str,
        mode: str | None = None,
        *,
        key: Sequence[str] = (),
        user: str | None = None,
        password: str | None = None,
        large: int = LARGE,
    ) -> None:
        check_mode(mode, key)
        try:
            address = conninfo_to_dict(url)
            fixed: dict[str, Any] = {"connect_timeout": CONNECTING, "application_name": "eventide"} | address
            apart = {name: value for name, value in (("user", user), ("password", password)) if value is not None}
            self._conninfo = make_conninfo(**(fixed | apart))
        except psycopg.ProgrammingError:
            # What is wrong stands in the reason, and with it the password.
            raise DeclarationError(
                "this is no address of a PostgreSQL: write url 'postgresql://user@host:5432/database'"
            ) from None
        place = f"{address.get('host', 'localhost')}:{address.get('port', 5432)}"
        self._address = f"{place}/{address.get('dbname') or address.get('user') or ''}"
        self._table = table
        self._mode = mode
        self._key = tuple(key)
        self._connection: psycopg.Connection[Any] | None = None
        self._rewound: dict[str, int] = {}
        self._newest: dict[str, int] = {}
        self._writers: dict[str, tuple[pa.Schema, LineWriter]] = {}
        self._fitting: set[str] = set()
        self._large = large

    def emit(self, results: Results) -> None:
        """Write a round in one transaction, in place of what it gave before."""
        query = results.query
        if not results.rows and query not in self._rewound and self._newest.get(query, results.round) < results.round:
            return
        what = f"the results of {query!r} in round {results.round} cannot be written into {self.where}"
        staged = self._staged(results, what) if results.rows > self._large else None
        newest = self._run(what, lambda target: self._write(target, results, staged), PATIENCE)
        self._rewound.pop(query, None)
        self._newest[query] = newest
        if results.rows:
            self._fitting.add(query)

    def rewind(self, query: str, last: int) -> None:
        """Forget later rounds: they go in the transaction that brings the first round to come."""
        self._rewound[query] = last
        self._run(f"{self.where} cannot be reached", Target.keep_books)

    def close(self) -> None:
        """End the connection; every round was complete when `emit` returned."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @property
    def where(self) -> str:
        """The table, for messages."""
        return f"the table {self._table!r} of PostgreSQL at {self._address}"

    def holds(self, query: str) -> bool:
        """Whether there are results of a query."""

        def found(target: Target) -> bool:
            return target.exists and bool(target.run("SELECT FROM {table} WHERE query = %s LIMIT 1", query))

        return self._run(f"{self.where} cannot be read", found)

    def owner_of(self, query: str) -> Owner | None:
        """Whose the results of a query are; None where nobody has claimed them."""

        def found(target: Target) -> Owner | None:
            target.keep_books()
            _, owner, checkpoint = target.noted(query)
            return None if owner is None else Owner(owner, checkpoint)

        return self._run(f"{self.where} cannot be read", found)

    def claim(self, query: str, owner: Owner) -> None:
        """Note the results of a query as those of an owner, and of no other."""

        def noted(target: Target) -> None:
            target.keep_books()
            target.claim(query, owner.id, owner.checkpoint)

        self._run(f"{self.where} cannot be written", noted)

    def _staged(self, results: Results, what: str) -> Staging | None:
        """Have Spark's tasks send the rows into a table beside the target; None where they cannot."""
        if results.parts is None:
            return None

        def made(target: Target) -> Staging:
            target.keep_books()
            target.fit(results.schema, self._key_of(results))
            return target.stage(results.schema, results.query)

        staging = self._run(what, made, PATIENCE)
        copying = PartCopy(self._conninfo, self._table, staging, results.schema, what)
        try:
            refusals = results.parts.map(copying)
        except EngineError as error:
            # Whatever it is, a worker that died or one without psycopg: if it is no accident, the driver tells it.
            log.warning(
                "this process writes the results of %r itself: %s",
                results.query,
                error,
                extra={"event": "results written by the driver"},
            )
            self._run(what, lambda target: target.unstage(staging), PATIENCE)
            return None
        for refused in filter(None, refusals):
            raise refused
        return staging

    def _write(self, target: Target, results: Results, staged: Staging | None) -> int:
        """Do all that a round needs; the newest round that is there then."""
        query, round, last = results.query, results.round, self._rewound.get(results.query)
        target.keep_books()
        newest, *_ = target.noted(query)
        if staged is not None and not target.has(staged.table):
            # The connection broke just after this transaction: the rows were taken over.
            return newest
        key = self._key_of(results)
        if self._writers.get(query, (None,))[0] != results.schema:
            self._writers[query] = results.schema, line_writer(results.schema)
            self._fitting.discard(query)
        there = query in self._fitting or target.exists
        if (results.rows or there) and query not in self._fitting:
            target.fit(results.schema, key)
        if there and last is not None:
            # Rows of which nothing is noted may be there as well: those of a table that was claimed with --replace.
            target.undo(query, last + 1, LAST_ROUND)
            newest = min(newest, last)
        elif there and newest >= round:
            target.undo(query, round, round)
        if results.rows and key:
            target.put(results, self._writers[query][1], key, staged)
        elif results.rows:
            target.add(results, self._writers[query][1], staged)
        newest = max(newest, round)
        target.note(query, newest)
        return newest

    def _key_of(self, results: Results) -> tuple[str, ...]:
        """The columns of which the table has each combination once; none where every result stays."""
        if self._mode in ("append", "replace round") or (self._mode is None and not (self._key or results.key)):
            return ()
        return key_of(results, self._key)

    def _run(self, what: str, work: Callable[[Target], Made], patience: float = 0.0) -> Made:
        """Run work in a transaction; if the connection is lost, again over a new one, while patience lasts."""
        deadline = time.monotonic() + patience
        pause = 0.1
        while True:
            try:
                connection = self._connected()
                with connection.transaction():
                    return work(Target(connection, self._table))
            except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                if self._connection is not None and not self._connection.closed:
                    raise EngineError(f"{what}: {_reason(error)}") from None
                self._connection = None
                if time.monotonic() > deadline:
                    raise EngineError(f"{what}: {_reason(error)}. Does the server run, and may you enter?") from None
                log.warning("%s, trying again: %s", what, _reason(error), extra={"event": "sink tried again"})
            except psycopg.Error as error:
                raise EngineError(f"{what}: {_reason(error)}") from None
            time.sleep(pause)
            pause = min(2 * pause, 2.0)

    def _connected(self) -> psycopg.Connection[Any]:
        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(self._conninfo)
        return self._connection


def _reason(error: psycopg.Error) -> str:
    """What the server or the connection says, in a line; rows of the user's are no part of it."""
    return masked_text(str(error).strip().partition("\n")[0]) or type(error).__name__
