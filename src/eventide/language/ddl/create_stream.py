"""Read CREATE STREAM as a `Stream`, and INTO as the place of a query's results.

Defaults. The time is the only TIMESTAMP column, or else the only DATE, or else a whole number named `time`,
`timestamp`, `ts` or `t`. The stream is one source. 1 % of its rows may be late.

*INTO.* `INTO 'dir' FORMAT parquet`, `INTO csv 'dir'`, `INTO CONSOLE`. A query without INTO goes to the console; a
directory without a format holds Parquet.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from sqlglot import exp

from eventide.errors import DeclarationError
from eventide.language.ddl.computed_columns import computed_columns
from eventide.language.ddl.policies import WATERMARKS, PolicyReader, with_ranges
from eventide.language.ddl.record_columns import (
    NOTED,
    arrives_by_record,
    columns_of_changes,
    columns_of_records,
    columns_of_versions,
    options_of_topics,
)
from eventide.language.grammar.nodes import Amounts, Clause, ComputedColumn, CreateStream, Secret
from eventide.language.grammar.source_text import SourceText
from eventide.language.grammar.spelling import meant
from eventide.plan.declared.secrets import checked_secret
from eventide.plan.declared.stream import (
    REMOVED,
    Future,
    Input,
    Stream,
    Table,
    TimeKind,
    Timestamps,
    kind_of,
)
from eventide.plan.expressions.columns import Column, spark_type

TIME_NAMES = ("time", "timestamp", "ts", "t")
TABLE_FORMATS = ("parquet", "csv", "json", "orc", "delta", "postgres")
LIMITS = {"file": "files", "offset": "offsets", "row": "rows", "tuple": "rows"}


@dataclass
class DeclaredStream:
    """A stream and its clauses; a window of a query may add SLACK and DRATIO."""

    stream: Stream
    clauses: dict[str, Clause]
    tree: CreateStream | None
    """The statement; None where the stream was declared elsewhere."""

    policy_of: str | None = None
    """Who said how its heartbeats are found, if not this statement: a query whose window said SLACK or DRATIO."""
    unused: list[str] = field(default_factory=list)
    """What is to be said of its bounds that have no effect."""


def name_of(table: exp.Table) -> str:
    """The name in the program: `main1.S` and `[main1].S` are `main1_S`."""
    return f"{table.db}_{table.name}" if table.args.get("db") else str(table.name)


@dataclass(frozen=True)
class StreamReader:
    """Reads one CREATE STREAM."""

    source: SourceText

    def read(self, tree: CreateStream) -> DeclaredStream:
        """The stream, or an error at the clause that is wrong."""
        clauses = {str(clause.this): clause for clause in tree.args["clauses"]}
        if tree.is_table:
            return self._table(tree, clauses)
        columns, computed = computed_columns(tree, self._columns(tree), clauses, self.source)
        columns, partitions = columns_of_records(columns, clauses)
        changes = columns_of_changes(self._options(clauses.get("OPTIONS")), clauses, columns, self.source)
        columns = (*columns, *changes)
        version, deleted = columns_of_versions(self._options(clauses.get("OPTIONS")), clauses, columns, self.source)
        arrival = self._column(clauses["ARRIVAL BY"].expressions[0], columns) if "ARRIVAL BY" in clauses else None
        time, timestamps = self._time(tree, clauses, columns, arrival, next(iter(changes), version))
        if arrival is None and arrives_by_record(clauses, columns, time):
            declared_too = any(column.name.lower() == NOTED.name for column in columns)
            columns = columns if declared_too else (*columns, NOTED)
            arrival = NOTED
        sources = [] if partitions or "SOURCE BY" not in clauses else clauses["SOURCE BY"].expressions
        stream = Stream(
            name_of(tree.this),
            columns,
            time=time.name if time else None,
            source=partitions or tuple(self._column(name, columns).name for name in sources),
            arrival=arrival.name if arrival else None,
            timestamps=timestamps,
            input=self._input(tree, clauses),
            removed=REMOVED if changes else deleted.name if deleted else None,
            computed=computed,
        )
        declared = DeclaredStream(stream, clauses, tree)
        declared.stream = replace(stream, future=self._future(clauses, stream))
        return self.with_policy(declared, clauses)

    def _table(self, tree: CreateStream, clauses: dict[str, Clause]) -> DeclaredStream:
        given = self._input(tree, clauses)
        if given is None or given.format not in TABLE_FORMATS:
            raise self.source.error(
                f"a table comes from {', '.join(TABLE_FORMATS[:-1])} or {TABLE_FORMATS[-1]}",
                clauses.get("FROM", tree),
                "write FROM parquet 'path', for example; rows that come in time are a stream: CREATE STREAM name",
            )
        every = clauses.get("REFRESH EVERY")
        refresh = None if every is None else Amounts(self.source).length(every.expressions[0], "REFRESH EVERY")
        if refresh is not None and refresh < 1:
            raise self.source.error(
                "this would read the table all the time", clauses["REFRESH EVERY"], "give 1 s or more"
            )
        computed = next((one for one in tree.args["columns"] if isinstance(one, ComputedColumn)), None)
        if computed is not None:
            raise self.source.error("a table has the columns that are read", computed, "compute it in the query")
        stamped, declared = Timestamps.INTERNAL, Table(refresh)
        name, columns = name_of(tree.this), self._columns(tree)
        stream = Stream(name, columns, timestamps=stamped, input=given, table=declared)
        return DeclaredStream(stream, {}, tree)

    def with_policy(self, declared: DeclaredStream, clauses: dict[str, Clause]) -> DeclaredStream:
        """A copy of the stream with the policy that these clauses declare."""
        stream = declared.stream
        clock = kind_of(stream.column(stream.arrival)) if stream.arrival else TimeKind.TIMESTAMP
        reader = PolicyReader(Amounts(self.source, stream.time_kind), Amounts(self.source, clock or TimeKind.TIMESTAMP))
        if "CLOCK SKEW" in clauses and stream.time_kind is TimeKind.SEQUENCE and clock is not TimeKind.SEQUENCE:
            raise self.source.error(
                f"the time of stream {stream.name!r} is a sequence of numbers, which no clock follows",
                clauses["CLOCK SKEW"],
                "give ARRIVAL BY a column that counts in the same numbers, or another policy",
            )
        for clause, what in (("BOUNDS", "has bounds between sources"), ("EXPECTING", "expects sources by name")):
            if clause in clauses and len(stream.source) != 1:
                names = "more than one column that names" if stream.source else "no column that names"
                raise self.source.error(
                    f"stream {stream.name!r} {what}, and {names} them",
                    clauses[clause],
                    "write SOURCE BY and one column",
                )
        policy, known = reader.read(clauses)
        declared.unused = reader.unused
        promised, prodded = clauses.get("PUNCTUATED BY"), clauses.get("PRODDED BY")
        punctuation = None if promised is None else self._marking(stream, promised, "promise", "promises")
        prods = stream.prods if prodded is None else self._marking(stream, prodded, "be prodded", "prods")
        marked = replace(stream, policy=policy, known=known, punctuation=punctuation, prods=prods)
        declared.stream = with_ranges(marked, promised, lambda name: self._column(name, stream.columns), self.source)
        return declared

    def _marking(self, stream: Stream, clause: Clause, act: str, marked: str) -> str:
        """The column that tells which rows are no data: promises, or prods."""
        column = self._column(clause.expressions[0], stream.columns)
        if stream.time is None or column.type != "BOOLEAN":
            why = "rows have no time of their own" if stream.time is None else f"{column.name!r} is {column.type}"
            raise self.source.error(
                f"stream {stream.name!r} cannot {act} by this column: {why}",
                clause,
                f"{clause.this} takes a BOOLEAN column that is TRUE in rows which are {marked}, up to their time",
            )
        return column.name

    def _named_by_watermark(self, clauses: dict[str, Clause]) -> Clause | None:
        """The watermark of the stream, which names the column that tells the time."""
        given = next((clauses[words] for words in WATERMARKS if words in clauses), None)
        if given is None:
            return None
        time = given.expressions[0]
        others = [part for part in given.expressions[1:] if isinstance(part, exp.Identifier)]
        others += clauses["TIMESTAMP BY"].expressions if "TIMESTAMP BY" in clauses else []
        for other in others:
            if other.name.lower() != time.name.lower():
                raise self.source.error(
                    f"the watermark is for {time.name!r}, and this is another column: {other.name!r}",
                    other,
                    f"a watermark trails the column that tells the time: write {time.name} here, too",
                )
        return given

    def _columns(self, tree: CreateStream) -> tuple[Column, ...]:
        """The columns that are read."""
        found: dict[str, Column] = {}
        for one in tree.args["columns"]:
            if one.name.lower() in found:
                raise self.source.error(f"the column {one.name!r} is declared twice", one)
            if one.name.startswith("__") or one.name.lower() == "_malformed":
                raise self.source.error(f"a column cannot be named {one.name!r}: the engine uses that name", one)
            if isinstance(one, ComputedColumn):
                continue
            try:
                found[one.name.lower()] = Column(one.name, spark_type(one.args["kind"]))
            except (ValueError, KeyError) as error:
                raise self.source.error(f"this is no type of Spark: {error}", one) from error
        return tuple(found.values())

    def _column(self, name: exp.Expr, columns: tuple[Column, ...]) -> Column:
        for column in columns:
            if column.name.lower() == name.name.lower():
                return column
        raise self.source.error(
            f"there is no column {name.name!r}", name, meant(name.name, [column.name for column in columns])
        )

    def _time(
        self,
        tree: CreateStream,
        clauses: dict[str, Clause],
        columns: tuple[Column, ...],
        arrival: Column | None,
        changed_at: Column | None = None,
    ) -> tuple[Column | None, Timestamps]:
        by = self._named_by_watermark(clauses) or clauses.get("TIMESTAMP BY")
        if by is not None:
            name = by.expressions[0]
            words = {"ARRIVAL": Timestamps.INTERNAL, "NONE": Timestamps.LATENT}
            declared = name.name.lower() in {column.name.lower() for column in columns}
            if not declared and not name.args.get("quoted") and name.name.upper() in words:
                return None, words[name.name.upper()]
            column = self._column(name, columns)
            if kind_of(column) is None:
                raise self.source.error(
                    f"{column.name!r} is {column.type}, and time must be TIMESTAMP, DATE or a whole number", name
                )
            return column, Timestamps.EXTERNAL
        if changed_at is not None:
            return changed_at, Timestamps.EXTERNAL
        return self._only_time(tree, tuple(c for c in columns if c is not arrival)), Timestamps.EXTERNAL

    def _only_time(self, tree: CreateStream, columns: tuple[Column, ...]) -> Column:
        whole = [c for c in columns if kind_of(c) is TimeKind.SEQUENCE and c.name.lower() in TIME_NAMES]
        for candidates in (
            [c for c in columns if kind_of(c) is TimeKind.TIMESTAMP],
            [c for c in columns if kind_of(c) is TimeKind.DATE],
            whole,
        ):
            if len(candidates) == 1:
                return candidates[0]
            if candidates:
                names = " or ".join(column.name for column in candidates)
                raise self.source.error(f"which column tells the time, {names}?", tree, f"add TIMESTAMP BY {names}")
        raise self.source.error(
            f"no column of stream {name_of(tree.this)!r} tells the time",
            tree,
            "add TIMESTAMP BY and a column, or TIMESTAMP BY ARRIVAL for the clock at which rows arrive",
        )

    def _input(self, tree: CreateStream, clauses: dict[str, Clause]) -> Input | None:
        origin, using = clauses.get("FROM"), clauses.get("USING")
        if origin is not None and using is not None:
            raise self.source.error("FROM and USING both say where rows come from: keep one", using)
        kind: str | None = None
        path: str | None = None
        options = list(self._options(clauses.get("OPTIONS")))
        if using is not None:
            kind = using.expressions[0].name.lower()
        elif origin is not None:
            names = [part for part in origin.expressions if isinstance(part, exp.Identifier)]
            paths = [part for part in origin.expressions if isinstance(part, exp.Literal)]
            kind, path = (names[0].name.lower() if names else None), (paths[0].name if paths else None)
        if kind == "stdin":
            if "FORMAT" in clauses:
                options.append(("format", clauses["FORMAT"].expressions[0].name.lower()))
        elif "FORMAT" in clauses:
            if kind is not None or path is None:
                raise self.source.error("FORMAT goes with FROM 'path' or FROM STDIN", clauses["FORMAT"])
            kind = clauses["FORMAT"].expressions[0].name.lower()
        elif kind is None and path is not None:
            kind = format_by_ending(path)
            if kind is None:
                raise self.source.error(
                    "what is the format of this path?", origin, "write FROM json 'path', for example"
                )
        if using is not None:
            found = [value for name, value in options if name.lower() == "path"]
            path = found[-1] if found else None
            options = [(name, value) for name, value in options if name.lower() != "path"]
        if kind == "kafka" and origin is not None and path is not None:
            options, path = options_of_topics(path, options), None
        if kind is None:
            for name in ("OPTIONS", "LIMIT"):
                if name in clauses:
                    raise self.source.error(f"{name} without an input: add FROM format 'path'", clauses[name])
            return None
        given = Input(kind, path, tuple(options))
        return self._limited(given, clauses["LIMIT"]) if "LIMIT" in clauses else given

    def _limited(self, given: Input, clause: Clause) -> Input:
        amount = clause.expressions[0]
        unit = str(amount.args.get("unit") or "").removesuffix("s")
        if unit not in LIMITS:
            raise self.source.error("expected LIMIT n FILES, ROWS or OFFSETS PER ROUND", amount)
        number = Amounts(self.source).count(amount, "LIMIT", (unit, unit + "s"))
        if number < 1:
            raise self.source.error("a round must be allowed to take something: give 1 or more", amount)
        most = {LIMITS[unit]: number}
        return replace(given, max_files=most.get("files"), max_offsets=most.get("offsets"), max_rows=most.get("rows"))

    def _options(self, clause: Clause | None) -> tuple[tuple[str, str], ...]:
        return option_pairs(clause, self.source)

    def _future(self, clauses: dict[str, Clause], stream: Stream) -> Future | None:
        if "FUTURE" not in clauses:
            return None
        amount, *rest = clauses["FUTURE"].expressions
        try:
            return Future(Amounts(self.source, stream.time_kind).length(amount, "FUTURE"), bool(rest))
        except DeclarationError as error:
            raise self.source.error(getattr(error, "message", str(error)), amount) from error


def option_pairs(clause: Clause | None, source: SourceText) -> tuple[tuple[str, str], ...]:
    """The options of an OPTIONS clause as texts."""
    found: dict[str, tuple[str, str]] = {}
    for item in clause.expressions if clause is not None else ():
        name = str(item.this)
        if name.lower() in found:
            raise source.error(f"the option {name} is given twice", item)
        if not item.expressions:
            raise source.error(f"the option {name} has no value", item)
        value = item.expressions[0]
        if isinstance(value, Secret):
            try:
                found[name.lower()] = (name, checked_secret(value.this.name))
            except DeclarationError as error:
                raise source.error(str(error), value) from error
            continue
        text = value.name if isinstance(value, exp.Literal | exp.Identifier) else value.sql().replace(" ", "")
        found[name.lower()] = (name, text)
    return tuple(found.values())


def format_by_ending(path: str) -> str | None:
    """The format that the ending of a path names.

    >>> format_by_ending("in/a.csv.gz"), format_by_ending("in/*.jsonl"), format_by_ending("in")
    ('csv', 'json', None)
    """
    endings = {"json": "json", "jsonl": "json", "ndjson": "json", "csv": "csv", "parquet": "parquet", "orc": "orc"}
    name = path.lower()
    for packed in (".gz", ".bz2", ".xz", ".zst"):
        name = name.removesuffix(packed)
    return endings.get(name.rsplit(".", 1)[-1]) if "." in name else None


DIRECTORIES = ("parquet", "json", "csv", "delta")
TARGETS = {
    "iceberg": ("table", "warehouse"),
    "jdbc": ("table", "url"),
    "kafka": ("topic", "servers"),
    "postgres": ("table", "url"),
}
"""What else results go to: what its place is called, and the option that says where it is."""
PLACES = {**dict.fromkeys(DIRECTORIES, "directory"), **{kind: place for kind, (place, _) in TARGETS.items()}}
OTHERS = ("console", "memory")


@dataclass(frozen=True)
class OutputTarget:
    """Where the results of a query go: `kind` is `console`, `memory` or one of `PLACES`."""

    query: str
    kind: str = "console"
    path: str | None = None
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)


def output_of(query: str, written: list[Clause], source: SourceText) -> OutputTarget:
    """The output that the clauses behind a SELECT name."""
    clauses = {str(clause.this): clause for clause in written if not str(clause.this).startswith("EMIT")}
    into = clauses.get("INTO")
    if into is None:
        for clause in clauses.values():
            raise source.error(f"{clause.this} without INTO", clause, "write INTO 'directory' FORMAT parquet")
        return OutputTarget(query)
    names = [part for part in into.expressions if isinstance(part, exp.Identifier)]
    paths = [part for part in into.expressions if isinstance(part, exp.Literal)]
    if "FORMAT" in clauses:
        if names:
            raise source.error("the format is given twice", clauses["FORMAT"])
        names = clauses["FORMAT"].expressions
    kind = names[0].name.lower() if names else "parquet"
    path = paths[0].name if paths else None
    if kind not in (*PLACES, *OTHERS):
        way = None if path or "FORMAT" in clauses else f"a directory stands in quotes: INTO '{names[0].name}'"
        raise source.error(f"results cannot go to {kind!r}", names[0], way or meant(kind, (*PLACES, *OTHERS)))
    if kind in DIRECTORIES and not path:
        raise source.error(f"{kind} needs a directory", into, f"write INTO 'directory' FORMAT {kind}")
    if kind in TARGETS and not path:
        place, option = TARGETS[kind]
        raise source.error(f"{kind} needs a {place}", into, f"write INTO {kind} '{place}' OPTIONS ({option} 'address')")
    if kind in OTHERS and path is not None:
        raise source.error(f"{kind} writes no files", paths[0], "leave the path out")
    return OutputTarget(query, kind, path, option_pairs(clauses.get("OPTIONS"), source))
