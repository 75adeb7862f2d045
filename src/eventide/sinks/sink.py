"""The contract of a sink, which all sinks keep; the simplest of them; and any of them by the name of its format.

Law: a sink is idempotent by round. `emit` makes the results of one query in one round visible all at once, in place of
whatever it was given before for the same query and round; if it raises, what was visible before still is. `rewind`
says that rounds after `last` of a query have not happened (the engine starts again after a crash): what was emitted for
them must disappear, or be replaced when those rounds come again. They may then hold other rows than before, or none.
After `emit` has returned, the results survive the death of the process.

What a sink takes, it says by what it asks of the results: `batches`, which are always there and come to this process
one at a time; or, where results are on the cluster, `frame`, a DataFrame over the files that Spark's executors wrote,
or `parts`, which functions of the sink read in Spark's tasks. Files of results go when their round is committed, so all
of it is read before `emit` returns.

`eventide.testing.sink_contract` checks the law, for these sinks and for a user's own; its `from_cluster` gives them the
same results from the cluster.

*Formats.* `FORMATS` are those in which a directory of results can be written.

*Memory*, the simplest sink, keeps results in this process, for tests and notebooks: what was emitted is there, by
query, in the order of the rounds. It dies with the process.

>>> from eventide.results.results import Results
>>> memory = Memory()
>>> isinstance(memory, Sink)
True
>>> memory.emit(Results.of_table("speeds", 0, pa.table({"mean": [51.5]})))
>>> memory.emit(Results.of_table("speeds", 1, pa.table({"mean": [48.0]})))
>>> memory.rows("speeds")
[{'mean': 51.5}, {'mean': 48.0}]
>>> memory.rewind("speeds", last=0)
>>> memory.table("speeds").num_rows
1

*By name.* A query in SQL names a sink by its format: `INTO parquet 'out'`, `INTO postgres 'speeds'`. Each is loaded,
with what it writes or draws with, when it is asked for.

>>> sink_of("csv", "out").format
'csv'
>>> sink_of("parquet")
Traceback (most recent call last):
    ...
eventide.errors.DeclarationError: a sink of format 'parquet' needs a directory: INTO parquet 'path'
>>> sink_of("postgres", "speeds", {"url": "postgresql://db:5432/orders", "mode": "append"}).where
"the table 'speeds' of PostgreSQL at db:5432/orders"
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import pyarrow as pa

from eventide.errors import DeclarationError
from eventide.plan.declared.secrets import revealed
from eventide.results.results import Results

if TYPE_CHECKING:
    from eventide.sinks.console import Console
    from eventide.sinks.delta import Delta
    from eventide.sinks.directory import Directory
    from eventide.sinks.iceberg import Iceberg
    from eventide.sinks.jdbc import Jdbc
    from eventide.sinks.kafka import Kafka
    from eventide.sinks.postgres import Postgres


@runtime_checkable
class Sink(Protocol):
    """Stores or shows the results of queries, round by round.

    Rounds come in ascending order, except after `rewind`, and one call at a time.
    """

    def emit(self, results: Results) -> None:
        """Show the results of one query in one round; called also when there are none."""
        ...

    def rewind(self, query: str, last: int) -> None:
        """Forget what was emitted for `query` after round `last` (-1: forget all of it)."""
        ...

    def close(self) -> None:
        """No more results will come in this run. May be called again, once for each query."""
        ...


@dataclass(frozen=True)
class Owner:
    """Whose results these are: the id of a checkpoint, and where it was, if it was to stay."""

    id: str
    checkpoint: str | None = None


@runtime_checkable
class OwnedSink(Sink, Protocol):
    """A sink whose results outlive a run: what another checkpoint has written there is not deleted unasked."""

    @property
    def where(self) -> str:
        """The place, for messages."""
        ...

    def holds(self, query: str) -> bool:
        """Whether there are results of a query."""
        ...

    def owner_of(self, query: str) -> Owner | None:
        """Whose the results of a query are; None where nobody has claimed them."""
        ...

    def claim(self, query: str, owner: Owner) -> None:
        """Mark the results of a query as those of an owner, and of no other."""
        ...


@runtime_checkable
class SparkSink(Sink, Protocol):
    """A sink that only Spark can write into; `way_out` says so, and what else there is."""

    way_out: str


@runtime_checkable
class FileSink(Sink, Protocol):
    """A sink whose results stay as files, one for each query and round that gave rows."""

    format: str

    @property
    def place(self) -> str | None:
        """Where another process finds them; None where only this one can."""
        ...

    def missing(self, query: str, rounds: Iterable[int]) -> dict[int, str]:
        """The names of files that are not there, by round, of rounds that have written some."""
        ...


FORMATS = ("parquet", "json", "csv")


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


ROWS = "20"
OPTIONS = {
    "console": ("rows",),
    "delta": ("mode", "key"),
    "iceberg": ("mode", "key", "catalog", "type", "uri", "warehouse"),
    "jdbc": ("url", "mode", "driver", "user", "password"),
    "kafka": (
        "servers",
        "key",
        "headers",
        "value.format",
        *(f"value.registry{one}" for one in ("", ".user", ".password")),
    ),
    "postgres": ("url", "mode", "key", "user", "password"),
}
"""What each sink with options is called in messages."""
OPEN = ("iceberg", "jdbc")
"""Those that hand on any other option to a catalog, or to Spark."""
CLIENT = "kafka."
"""How options of Kafka's client begin."""
PLACES = {
    **dict.fromkeys(FORMATS, ("a directory", "path")),
    "delta": ("a directory", "path"),
    "iceberg": ("a table", "lake.table"),
    "jdbc": ("a table", "table"),
    "kafka": ("a topic", "topic"),
    "postgres": ("a table", "table"),
}
"""What those need that write somewhere, and how it is written in an example."""
MODES = ("upsert", "append", "replace round")
"""How results go into a table."""


def sink_of(
    format: str, path: str | None = None, options: Mapping[str, str] | None = None
) -> Directory | Console | Delta | Iceberg | Jdbc | Kafka | Memory | Postgres:
    """The sink of that name; `path` is the directory or the table of those that write into one.

    The console has one option, `rows`: how many rows of a query it shows.
    """
    check_sink(format, path, options)
    name = format.lower()
    if name in FORMATS:
        from eventide.sinks.directory import Directory

        assert path is not None
        return Directory(path, name)
    if name == "memory":
        return Memory()
    plain = revealed(tuple((options or {}).items()), f"INTO {name} {path!r}")
    given: dict[str, Any] = {option.lower(): value for option, value in plain}
    if name == "delta":
        from eventide.sinks.delta import Delta

        assert path is not None
        return Delta(path, given.get("mode", "append"), key=_names(given.get("key", "")))
    if name == "iceberg":
        from eventide.sinks.iceberg import Iceberg

        assert path is not None
        return Iceberg(path, given.pop("mode", "append"), key=_names(given.pop("key", "")), **given)
    if name == "jdbc":
        from eventide.sinks.jdbc import Jdbc

        assert path is not None
        return Jdbc(given.pop("url"), path, **given)
    if name == "postgres":
        from eventide.sinks.postgres import Postgres

        assert path is not None
        return Postgres(given.pop("url"), path, key=_names(given.pop("key", "")), **given)
    if name == "kafka":
        from eventide.sinks.kafka import Kafka
        from eventide.sinks.values import values_of

        assert path is not None
        client = {name.removeprefix(CLIENT): value for name, value in given.items() if name.startswith(CLIENT)}
        key, headers = (_names(given.get(option, "")) for option in ("key", "headers"))
        return Kafka(given["servers"], path, key=key, headers=headers, values=values_of(path, given), settings=client)
    from eventide.sinks.console import Console

    return Console(int(given.get("rows", ROWS)))


def _names(several: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in several.split(",") if name.strip())


def check_sink(format: str, path: str | None = None, options: Mapping[str, str] | None = None) -> None:
    """Refuse what `sink_of` would refuse, without making or loading anything.

    >>> check_sink("console", options={"colour": "red"})
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: a sink of format 'console' has no option 'colour'; it has rows
    """
    name = format.lower()
    if name not in (*PLACES, "console", "memory"):
        raise DeclarationError(f"there is no sink of format {format!r}: choose {', '.join(PLACES)}, console or memory")
    known = OPTIONS.get(name, ())
    given = {option.lower(): value for option, value in (options or {}).items()}
    for option in given:
        if option not in known and name not in OPEN and not (name == "kafka" and option.startswith(CLIENT)):
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise DeclarationError(f"a sink of format {name!r} has no option {option!r}; {has}")
    if name in PLACES and not path:
        what, example = PLACES[name]
        raise DeclarationError(f"a sink of format {name!r} needs {what}: INTO {name} '{example}'")
    if name not in PLACES and path is not None:
        raise DeclarationError(f"a sink of format {name!r} writes no files: leave {path!r} out")
    if name == "postgres" and "url" not in given:
        raise DeclarationError(
            "INTO postgres needs the option url: OPTIONS (url 'postgresql://user@host:5432/database')"
        )
    if name == "jdbc" and "url" not in given:
        raise DeclarationError("INTO jdbc needs the option url: OPTIONS (url 'jdbc:postgresql://host:5432/database')")
    if name == "kafka":
        if "servers" not in given:
            raise DeclarationError("INTO kafka needs the option servers: OPTIONS (servers 'localhost:9092')")
        from eventide.sinks.values import values_of

        values_of(path or "", given)
    if name == "iceberg" and not given.keys() & {"catalog", "type", "uri", "warehouse"}:
        raise DeclarationError("INTO iceberg needs a catalog: OPTIONS (warehouse '/folder'), or its type and uri")
    if "mode" in given and given["mode"] not in MODES:
        raise DeclarationError(f"there is no mode {given['mode']!r}: choose {', '.join(MODES[:-1])} or {MODES[-1]}")
    rows = given.get("rows", ROWS)
    if not rows.isdigit():
        raise DeclarationError(f"rows={rows!r} is not a number of rows")
    if int(rows) < 1:
        raise DeclarationError(f"a console of {rows} rows shows nothing: give 1 or more")
