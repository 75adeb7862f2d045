"""The reduce of a stream as one SQL statement: all its queries and its arrival summary in one reading.

Law: every row is read once. For each query a row reduces to (pane, group) partials; for time it reduces to a *cell*,
how many rows of a source came with times from the earliest to the latest, **before** any filter, so a row that every
query ignores still moves time (Gigascope, section 4: the prefilter keeps temporal values). The text is the same every
round.

Each query, and the summary, is one *branch*: one grouping set of the statement. Where a query groups by the
source, or where the stream is its own single source, its panes are the cells, and the summary needs no branch.

Output columns: `__branch`, the keys of each branch (`__pane0`, `__want0`, `__k0_0`, ...; `__cell`, `__s0`, ...), `__n`,
`__lo`, `__hi` (count, least and largest time), `__at` (largest arrival time), and the partials of all queries.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from sqlglot import exp

from eventide.plan.bound.query import BoundQuery, instant_sql
from eventide.plan.bound.rows import UNTIL, partial_inputs
from eventide.plan.declared.rows import sampled
from eventide.plan.declared.stream import Stream, Timestamps
from eventide.plan.declared.window import RowWindow
from eventide.plan.expressions.columns import quoted
from eventide.plan.expressions.parse import SPARK, parsed, restricted
from eventide.plan.sql.failing_rows import RowExpressions, computed
from eventide.plan.sql.sessions import stretches_text, until_text
from eventide.plan.sql.stream_rows import MALFORMED, timed

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


def reduce_text(
    stream: Stream, queries: Sequence[BoundQuery], cell: int | None, own_summary: bool, up_to: int | None
) -> ReduceText:
    """Write the reduce for the queries of `stream` that keep partials.

    `cell` is the width of a cell; None asks for no summary. `own_summary` asks for a summary apart from the queries,
    also where it could be one with them. `up_to`: leave out rows of later times (rows from the future; rare, so a
    changing text is no harm).
    """
    branches = tuple(query for query in queries if query.by_panes)
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


def wants(query: BoundQuery) -> str | None:
    """The condition under which a query wants a row, or None where it wants all of them."""
    conditions = []
    if query.query.where is not None:
        conditions.append(f"COALESCE({query.query.where}, FALSE)")
    if (concerned := concerns(query)) is not None:
        conditions.append(concerned)
    wanted = " AND ".join(conditions) or None
    if query.gap is None or not query.has_own_gaps:
        return wanted
    has_gap = f"COALESCE({query.gap} > 0, FALSE)"
    # Where the rest leaves a row out, its gap is not computed, which may fail.
    return has_gap if wanted is None else f"CASE WHEN {wanted} THEN {has_gap} ELSE FALSE END"


def concerns(query: BoundQuery) -> str | None:
    """The condition under which a query looks at a row: it falls into a window, and is in the sample."""
    share = query.query.sample
    conditions = [in_a_window(query), None if share is None else sampled(query.stream, share)]
    return " AND ".join(condition for condition in conditions if condition is not None) or None


def in_a_window(query: BoundQuery) -> str | None:
    """The condition under which a row falls into a window at all, or None where every row does."""
    window = query.panes
    if window.slide <= window.range or query.of_sessions or isinstance(query.query.window, RowWindow):
        return None
    remainder = f"pmod(pmod(__t, {window.slide}) - {window.offset % window.slide}, {window.slide})"
    return f"COALESCE({remainder} < {window.range}, FALSE)"


def pane_sql(query: BoundQuery) -> str:
    """The start of the pane that holds `__t`; the remainder first, so that nothing can overflow."""
    if query.of_sessions or isinstance(query.query.window, RowWindow):
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
    until = [f"{until_text(query)} AS {UNTIL.name}"] if query.of_sessions else []
    condition = wants(query)
    where = f" AND {condition}" if condition else ""
    return (
        f"{timed(query.stream, up_to)} SELECT {', '.join([f'{pane} AS __pane', *until, '__t', *keys, *kept])} "
        f"FROM timed WHERE __t IS NOT NULL{where}"
    )


@cache
def _later(query: BoundQuery) -> str | None:
    """A number that is not known without computing what aggregates compute later; None where that cannot fail."""
    later = [argument.lazy.sql(SPARK) for argument in RowExpressions(query).arguments]
    return computed(later) if later else None


def alone_text(query: BoundQuery, up_to: int | None = None) -> str:
    """The slices of one query alone, or the rows of one port."""
    if query.keeps_rows:
        return kept_text(query, up_to)
    if query.of_sessions:
        return stretches_text(query, timed(query.stream, up_to), wants(query))
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
    keys = [f"{key.sql} AS __k{j}" for j, key in enumerate(query.keys)]
    keys = keys if query.operator is not None or query.of_sessions else []
    rows = ", ".join(["*", f"{pane_sql(query)} AS __pane", *keys])
    timed_rows = f"(SELECT {rows} FROM timed WHERE __t IS NOT NULL{where}) timed"
    return f"{timed(query.stream)} SELECT {', '.join(columns)} FROM {timed_rows} {join} WHERE {condition}"


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
        keyed += [quoted(name) for name in partial_inputs(query) if quoted(name) not in keyed]
    columns = ", ".join(["*", *wanted])
    wanted_rows = f"wanted AS (SELECT {columns} FROM timed)"
    return f"{timed(stream, up_to)}, {wanted_rows}, keyed AS (SELECT {', '.join(keyed)} FROM wanted)"


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
