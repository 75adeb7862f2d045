"""The reduce of a stream as one SQL statement: all its queries and its arrival summary in one reading.

Law: every row is read once. For each query a row reduces to (pane, group) partials; for time it reduces to a *cell*,
how many rows of a source came with times from the earliest to the latest, **before** any filter, so a row that every
query ignores still moves time (Gigascope, section 4: the prefilter keeps temporal values). The text is the same every
round.

Each query, and the summary, is one *branch*: one grouping set of the statement. Where a query groups by the
source, or where the stream is its own single source, its panes are the cells, and the summary needs no branch.

Output columns: `__branch`, the keys of each branch (`__pane0`, `__want0`, `__k0_0`, ...; `__cell`, `__s0`, ...), `__n`,
`__lo`, `__hi` (count, least and largest time), `__at` (largest arrival time), and the partials of all queries."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from sqlglot import exp

from eventide.eventtime.instant import EDGE
from eventide.plan.bound.query import BoundQuery, instant_sql, time_sql
from eventide.plan.declared.rows import sampled
from eventide.plan.declared.stream import Stream, Timestamps
from eventide.plan.declared.window import RowWindow
from eventide.plan.expressions.columns import quoted
from eventide.plan.expressions.parse import SPARK, columns_in, parsed, restricted
from eventide.plan.sql.arrivals import NO_BOUNDS, bounded_sources
from eventide.plan.sql.failing_rows import RowExpressions, computed

MALFORMED = "_malformed"
SUMMARY = -1
"""The branch of the arrival summary, where it has one of its own."""


@dataclass(frozen=True)
class ReduceText:
    """The statement for one stream over the view `batch`; `summary_in` is the branch whose cells are the summary."""

    stream: Stream
    branches: tuple[BoundQuery, ...]
    summary_in: int
    source_keys: tuple[str, ...]
    sql: str


def batch_view(stream: Stream) -> str:
    """The name under which a round's rows of a stream are known to SQL."""
    return f"eventide_batch_{stream.name}"


def reduce_text(
    stream: Stream, queries: Sequence[BoundQuery], cell: int | None, own_summary: bool, up_to: int | None
) -> ReduceText:
    """Write the reduce for the queries of `stream` that keep partials.

    `cell` is the width of a cell; None asks for no summary. `own_summary` asks for a summary apart from the queries,
    also where it could be one with them. `up_to`: leave out rows of later times (rows from the future; rare, so a
    changing text is no harm).
    """
    branches = tuple(query for query in queries if not query.keeps_rows)
    shared = None if own_summary or cell is None else _branch_with_cells(stream, branches, cell)
    apart = shared is None and cell is not None
    sets = [_keys_of(i, query) for i, query in enumerate(branches)]
    sources = tuple(f"__s{j}" for j in range(len(stream.source))) if apart else ()
    if shared is not None:
        sources = _source_keys(shared, branches)
    if apart:
        sets.append(("__cell", *sources))
    keys = list(dict.fromkeys(key for one in sets for key in one))
    aggregates = ["count(*) AS __n", "min(__t) AS __lo", "max(__t) AS __hi"]
    if stream.arrival is not None:
        aggregates.append("max(__arrived) AS __at")
    for i, query in enumerate(branches):
        aggregates += [f"{_guarded(p.reduce, i, query)} AS {column_of(i, p.name)}" for p in query.partials]
    if len(sets) == 1:
        branch = f"{SUMMARY if apart else 0} AS __branch"
        grouping = ", ".join(keys)
    else:
        marks = [(one[0], SUMMARY if apart and one is sets[-1] else i) for i, one in enumerate(sets)]
        cases = " ".join(f"WHEN grouping({key}) = 0 THEN {number}" for key, number in marks)
        branch = f"CASE {cases} END AS __branch"
        grouping = "GROUPING SETS (" + ", ".join("(" + ", ".join(one) + ")" for one in sets) + ")"
    sql = (
        f"{_prepared(stream, branches, cell, apart, up_to)} "
        f"SELECT {', '.join([branch, *keys, *aggregates])} FROM keyed GROUP BY {grouping}"
    )
    return ReduceText(stream, branches, SUMMARY if shared is None else shared, sources, sql)


def column_of(branch: int, partial: str) -> str:
    """The name of a partial in the common output."""
    return f"__q{branch}{partial}"


def timed(stream: Stream, up_to: int | None = None) -> str:
    """A common table `timed`: the rows with `__t`, their time, NULL where they have none that can be used.

    Rows that are promises or prods are not among them, unless they have no usable time and say nothing by it.
    """
    time = time_sql(stream)
    only = [] if up_to is None else [f"({time} <= {up_to} OR {time} IS NULL OR {MALFORMED} IS NOT NULL)"]
    only += [f"NOT {marked_by(stream, mark)}" for mark in (stream.punctuation, stream.prods) if mark is not None]
    where = f" WHERE {' AND '.join(only)}" if only else ""
    return (
        f"WITH timed AS (SELECT *, CASE WHEN {_usable(stream)} THEN {time} END AS __t FROM {batch_view(stream)}{where})"
    )


def _usable(stream: Stream) -> str:
    """The condition under which the time of a row can be used; unknown, or met, where it has none."""
    usable = f"{MALFORMED} IS NULL"
    if stream.time is not None and stream.column(stream.time).type not in ("TINYINT", "SMALLINT", "INT", "DATE"):
        usable += f" AND {time_sql(stream)} BETWEEN -{EDGE} AND {EDGE}"
    if (bounded := bounded_sources(stream)) is not None:
        usable += f" AND {bounded}"
    return usable


def marked_by(stream: Stream, mark: str) -> str:
    """Whether a row is marked by a column, as a promise or prod, and has a time; never unknown."""
    assert stream.time is not None
    selected = f"{quoted(mark)} AND {quoted(stream.time)} IS NOT NULL"
    return f"COALESCE({selected} AND {_usable(stream)}, FALSE)"


def promises_text(stream: Stream) -> str:
    """The promises of a round: for each source (`__s0`, ...) the latest (`__hi`), how many there were (`__n`).

    Where they know when they arrived, also the largest arrival time (`__at`).
    """
    assert stream.punctuation is not None
    sources = [quoted(name) for name in stream.source]
    named = [f"{name} AS __s{j}" for j, name in enumerate(sources)]
    by = f" GROUP BY {', '.join(sources)}" if sources else ""
    selected = [*named, f"max({time_sql(stream)}) AS __hi", "CAST(count(*) AS BIGINT) AS __n"]
    if stream.arrival is not None:
        selected.append(f"max({instant_sql(stream.arrival, stream.column(stream.arrival).type)}) AS __at")
    where = marked_by(stream, stream.punctuation)
    return f"SELECT {', '.join(selected)} FROM {batch_view(stream)} WHERE {where}{by} HAVING count(*) > 0"


def wants(query: BoundQuery) -> str | None:
    """The condition under which a query wants a row, or None where it wants all of them."""
    conditions = []
    if query.query.where is not None:
        conditions.append(f"COALESCE({query.query.where}, FALSE)")
    if (concerned := concerns(query)) is not None:
        conditions.append(concerned)
    return " AND ".join(conditions) or None


def concerns(query: BoundQuery) -> str | None:
    """The condition under which a query looks at a row: it falls into a window, and is in the sample."""
    share = query.query.sample
    conditions = [in_a_window(query), None if share is None else sampled(query.stream, share)]
    return " AND ".join(condition for condition in conditions if condition is not None) or None


def in_a_window(query: BoundQuery) -> str | None:
    """The condition under which a row falls into a window at all, or None where every row does."""
    window = query.panes
    if window.slide <= window.range or isinstance(query.query.window, RowWindow):
        return None
    remainder = f"pmod(pmod(__t, {window.slide}) - {window.offset % window.slide}, {window.slide})"
    return f"COALESCE({remainder} < {window.range}, FALSE)"


def pane_sql(query: BoundQuery) -> str:
    """The start of the pane that holds `__t`; the remainder first, so that nothing can overflow."""
    if isinstance(query.query.window, RowWindow):
        return "__t"
    if query.stream.timestamps is not Timestamps.EXTERNAL:
        return "__t"
    window = query.panes
    offset = window.offset % window.pane
    rest = f"pmod(__t, {window.pane})" if offset == 0 else f"pmod(pmod(__t, {window.pane}) - {offset}, {window.pane})"
    return f"__t - {rest}"


def kept_text(query: BoundQuery, up_to: int | None = None) -> str:
    """The rows that a row-keeping query wants, as its slices keep them.

    What the query will compute of them when windows close is computed here too, where it may fail: a row is judged in
    the round in which it comes.
    """
    pane, later = pane_sql(query), _later(query)
    if later is not None and not query.fail_safe:
        pane = f"CASE WHEN {later} >= 0 THEN {pane} END"
    keys = [f"{key.sql} AS __k{j}" for j, key in enumerate(query.keys)]
    kept = [quoted(column.name) for column in query.kept]
    condition = wants(query)
    where = f" AND {condition}" if condition else ""
    return (
        f"{timed(query.stream, up_to)} SELECT {', '.join([f'{pane} AS __pane', '__t', *keys, *kept])} "
        f"FROM timed WHERE __t IS NOT NULL{where}"
    )


@cache
def _later(query: BoundQuery) -> str | None:
    """A number that cannot be told without computing what aggregates compute later; None where that cannot fail."""
    later = [argument.lazy.sql(SPARK) for argument in RowExpressions(query).arguments]
    return computed(later) if later else None


def alone_text(query: BoundQuery, up_to: int | None = None) -> str:
    """The slices of one query alone, or the rows of one port."""
    if query.keeps_rows:
        return kept_text(query, up_to)
    alone = reduce_text(query.stream, [query], None, False, up_to)
    columns = ["__pane0 AS __pane", *(f"__k0_{j} AS __k{j}" for j in range(len(query.keys)))]
    columns += ["__n", *(f"{column_of(0, partial.name)} AS {partial.name}" for partial in query.partials)]
    wanted = " AND __want0" if wants(query) is not None else ""
    return f"SELECT {', '.join(columns)} FROM ({alone.sql}) WHERE __pane0 IS NOT NULL{wanted}"


def shaped_text(sql: str, columns: Sequence[str], renames: Mapping[str, str], stamps: Collection[str] = ()) -> str:
    """Rows of a port under the names of `columns`; `stamps` are those that the table of that name has the times of.

    >>> shaped_text("rows", ("__t", "speed"), {"speed": "__k1"}, ["__t"])
    'SELECT stamps.__of__t AS `__t`, `__k1` AS `speed` FROM (rows) CROSS JOIN stamps'
    """
    shown = []
    for name in columns:
        of = renames.get(name, name)
        selected = quoted(of)
        if of in stamps:
            # The pane of before is asked for because it may fail.
            stamp = f"stamps.__of{of}"
            selected = f"CASE WHEN {selected} IS NOT NULL THEN {stamp} END" if of == "__pane" else stamp
        shown.append(f"{selected} AS {quoted(name)}")
    return f"SELECT {', '.join(shown)} FROM ({sql}){' CROSS JOIN stamps' if stamps else ''}"


def late_text(query: BoundQuery, condition: str, join: str = "", **beside: str | None) -> str:
    """The rows that a query or port wants and for which a condition holds over `__pane`, `__t`, `__k0`, ...

    With `__t`, and what is asked for `beside`, such as `__behind`, the heartbeat of their own source; `join` brings
    tables in.
    """
    where = "" if (wanted := wants(query)) is None else f" AND {wanted}"
    columns = [f"timed.{quoted(column.name)}" for column in query.stream.columns]
    columns += ["__t", *(f"{sql} AS __{name}" for name, sql in beside.items() if sql is not None)]
    keys = [f"{key.sql} AS __k{j}" for j, key in enumerate(query.keys)] if query.operator is not None else []
    rows = ", ".join(["*", f"{pane_sql(query)} AS __pane", *keys])
    timed_rows = f"(SELECT {rows} FROM timed WHERE __t IS NOT NULL{where}) timed"
    return f"{timed(query.stream)} SELECT {', '.join(columns)} FROM {timed_rows} {join} WHERE {condition}"


def rejects_text(stream: Stream, beyond: int | None = None) -> str:
    """The rows that no query can take, each with the reason; with `beyond`, also those of later times."""
    columns = ", ".join(quoted(column.name) for column in stream.columns)
    time = "TRUE" if stream.time is None else f"{quoted(stream.time)} IS NOT NULL"
    future = "" if beyond is None else f" OR __t > {beyond}"
    bounded = bounded_sources(stream)
    source = "" if bounded is None else f"WHEN NOT COALESCE({bounded}, FALSE) THEN '{NO_BOUNDS}' "
    reason = (
        f"CASE WHEN {MALFORMED} IS NOT NULL THEN 'malformed row' WHEN NOT ({time}) THEN 'no time' {source}"
        "WHEN __t IS NULL THEN 'time out of range' ELSE 'too far in the future' END"
    )
    return f"{timed(stream)} SELECT {columns}, {MALFORMED}, {reason} AS _reason FROM timed WHERE __t IS NULL{future}"


def broken_text(stream: Stream, queries: Sequence[BoundQuery], up_to: int | None = None) -> str:
    """The rows that break a query, each with the reasons; columns as in `rejects_text`, without its rows."""
    columns = ", ".join(quoted(column.name) for column in stream.columns)
    reasons = [reason for query in queries if (reason := _why_broken(query)) is not None]
    selected = f"nullif(concat_ws('; ', {', '.join(reasons)}), '')" if reasons else "CAST(NULL AS STRING)"
    judged = f"judged AS (SELECT *, {selected} AS _reason FROM timed WHERE __t IS NOT NULL)"
    return (
        f"{timed(stream, up_to)}, {judged} SELECT {columns}, {MALFORMED}, _reason FROM judged WHERE _reason IS NOT NULL"
    )


@cache
def _why_broken(query: BoundQuery) -> str | None:
    """The reason why a row breaks a query, or NULL; None where no row can."""
    rows = RowExpressions(query)
    if rows.broken is None:
        return None
    reason = f"CASE WHEN {rows.broken} THEN {rows.reason} END"
    concerned = concerns(query)
    return reason if concerned is None else f"CASE WHEN {concerned} THEN {reason} END"


def _prepared(stream: Stream, branches: Sequence[BoundQuery], cell: int | None, apart: bool, up_to: int | None) -> str:
    wanted = [f"({condition}) AS __want{i}" for i, q in enumerate(branches) if (condition := wants(q)) is not None]
    keyed = ["__t"]
    if stream.arrival is not None:
        keyed.append(f"{instant_sql(stream.arrival, stream.column(stream.arrival).type)} AS __arrived")
    if apart:
        keyed.append(f"__t - pmod(__t, {cell}) AS __cell")
        keyed += [f"{quoted(name)} AS __s{j}" for j, name in enumerate(stream.source)]
    for i, query in enumerate(branches):
        guard = wants(query) is not None
        keyed.append(f"{pane_sql(query)} AS __pane{i}")
        keyed += [f"__want{i}"] if guard else []
        for j, key in enumerate(query.keys):
            ours = guard and not (not apart and _is_source(stream, key.sql))
            keyed.append(f"IF(__want{i}, {key.sql}, NULL) AS __k{i}_{j}" if ours else f"{key.sql} AS __k{i}_{j}")
        keyed += [quoted(name) for name in _inputs(query) if quoted(name) not in keyed]
    columns = ", ".join(["*", *wanted])
    wanted_rows = f"wanted AS (SELECT {columns} FROM timed)"
    return f"{timed(stream, up_to)}, {wanted_rows}, keyed AS (SELECT {', '.join(keyed)} FROM wanted)"


def _inputs(query: BoundQuery) -> tuple[str, ...]:
    """The columns of the stream that the partials of a query are made of."""
    spoken = {name.lower() for p in query.partials for name in columns_in(parsed(p.reduce, "a partial"))}
    return tuple(column.name for column in query.stream.columns if column.name.lower() in spoken)


def _keys_of(i: int, query: BoundQuery) -> tuple[str, ...]:
    want = (f"__want{i}",) if wants(query) is not None else ()
    return (f"__pane{i}", *want, *(f"__k{i}_{j}" for j in range(len(query.keys))))


def _guarded(reduce: str, i: int, query: BoundQuery) -> str:
    """An aggregate over the wanted rows alone."""
    if wants(query) is None:
        return reduce
    expression = parsed(reduce, "a partial")
    want = exp.column(f"__want{i}")
    if query.fail_safe:
        # Arguments are computed before FILTER is asked, by DuckDB, and by Spark where two aggregates share them.
        expression = restricted(expression, want)
    if isinstance(expression, exp.Filter):
        condition = exp.and_(want, expression.expression.this)
        return exp.Filter(this=expression.this, expression=exp.Where(this=condition)).sql(dialect="spark")
    return exp.Filter(this=expression, expression=exp.Where(this=want)).sql(dialect="spark")


def _is_source(stream: Stream, sql: str) -> bool:
    return sql.strip("`").lower() in (name.lower() for name in stream.source)


def _source_keys(branch: int, branches: Sequence[BoundQuery]) -> tuple[str, ...]:
    """The keys of a branch that tell the source, in the order in which the stream names its columns."""
    query = branches[branch]
    spelled = [key.sql.strip("`").lower() for key in query.keys]
    return tuple(f"__k{branch}_{spelled.index(name.lower())}" for name in query.stream.source)


def _branch_with_cells(stream: Stream, branches: Sequence[BoundQuery], cell: int) -> int | None:
    """The first query whose groups tell the source and whose panes are no wider than a cell."""
    for i, query in enumerate(branches):
        grouped = {key.sql.strip("`").lower() for key in query.keys}
        if query.panes.pane <= cell and all(name.lower() in grouped for name in stream.source):
            return i
    return None
