"""Three forms of joins: AS OF a time in a table of versions, by windows of both sides, and within the same window.

*AS OF.* `JOIN prices FOR SYSTEM_TIME AS OF o.ts AS p ON o.id = p.id` joins with a table whose versions are streamed.
Each row of the left side meets the version of its key that holds at its own time; ON says which keys are equal.

*Windows.* `FROM a [RANGE 5 s] JOIN b [RANGE 10 s] ON a.k = b.k` is the symmetric window join. Each row of a meets the
rows of b within b's RANGE before it, and the other way round (Stream Mill paper, figures 1 and 6). So b is later than a
by less than a's RANGE, and earlier by less than its own.

*The same window.* A query inside an expression has one value in each window (`scalar_subqueries`), which goes to the
results of the same window; so both sides must have the same windows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from eventide.language.from_clause.join_conditions import take_apart
from eventide.language.from_clause.join_times import JoinInput, bare, tables_of
from eventide.language.grammar.nodes import IN_WINDOWS, Amounts
from eventide.language.grammar.source_text import SourceText
from eventide.language.scope.expression_text import all_of, column_of, spark_text
from eventide.language.scope.scope import Scope, ScopeRelation
from eventide.language.scope.state_clauses import StateRequest
from eventide.plan.declared.join import Band, JoinKind, Lookup, Side
from eventide.plan.declared.query import Query
from eventide.plan.declared.stream import Derived, Stream
from eventide.plan.declared.window import SameWindow, Window


def version_of(node: exp.Expr) -> exp.Expr | None:
    """The time whose version is meant, where a join has AS OF."""
    table = node.this if isinstance(node, exp.Join) else None
    version = table.args.get("version") if isinstance(table, exp.Expr) else None
    return version.expression if version is not None and isinstance(version.expression, exp.Expr) else None


def with_version(time: exp.Expr) -> exp.Join:
    """A join that has AS OF this time, as the parser gives it.

    >>> str(version_of(with_version(exp.column("ts", "orders"))))
    'orders.ts'
    """
    return exp.Join(this=exp.Table(version=exp.Version(this="TIMESTAMP", kind="AS OF", expression=time)))


@dataclass(frozen=True)
class LookupReader:
    """Reads a join with AS OF."""

    source: SourceText

    def read(
        self,
        left: tuple[str, Scope],
        right: tuple[str, Scope],
        kind: JoinKind,
        on: list[exp.Expr],
        as_of: exp.Expr | None,
        where: list[exp.Expr],
        node: exp.Expr,
        joined: list[tuple[str, Scope]],
    ) -> Lookup:
        """The lookup; the conditions `on` are spelled out, with the names of the two sides. A table has no `as_of`.

        The left side are the inputs that are `joined` already, or one; errors speak of those.
        """
        what = "join with a table" if as_of is None else "join AS OF"
        if as_of is not None:
            self._check_time(left, as_of, joined)
        if kind not in (JoinKind.INNER, JoinKind.LEFT):
            raise self.source.error(f"a {what} is an inner or a LEFT join", node, "write JOIN or LEFT JOIN")
        for _, level in (left, right):
            if level.window is not None:
                raise self.source.error(f"a {what} has no windows", level.window, "leave the window out")
        parts = take_apart(on, JoinInput(*left), JoinInput(*right), by_time=False)
        if not parts.keys:
            raise self.source.error(
                f"this {what} has no equal keys, so nothing says whose {'rows are' if as_of is None else 'version is'} "
                "meant",
                node,
                f"add ON {joined[0][0]}.key = {right[0]}.key",
            )
        after = [*where]
        # What is said of a table alone chooses its rows; a version must be known before it is judged.
        of_table, of_version = (parts.right, []) if as_of is None else ([], parts.right)
        if kind is JoinKind.INNER:
            after += [*of_version, *parts.rest]
        elif others := [*parts.left, *of_version, *parts.rest]:
            raise self.source.error(
                f"a LEFT {what} has equal keys and no other condition", others[0], "put this into WHERE"
            )
        sides = []
        for (alias, level), number, asked in ((left, 0, parts.left), (right, 1, of_table)):
            conditions = all_of([*level.where, *(bare(one) for one in asked)])
            keys = tuple(spark_text(pair[number]) for pair in parts.keys)
            sides.append(Side(level.stream.name, alias, keys, conditions))
        # Of a table as it is there are no versions that could end.
        removed = None if as_of is None else right[1].stream.removed
        return Lookup("", sides[0], sides[1], kind is JoinKind.LEFT, removed, all_of(after), as_it_is=as_of is None)

    def _check_time(self, left: tuple[str, Scope], as_of: exp.Expr, joined: list[tuple[str, Scope]]) -> None:
        alias, level = left
        times = level.clock.of(bare(as_of)) if tables_of(as_of) == {alias} else None
        if times is not None and times.shifted == 0:
            return
        names = [name for name, one in level.times.items() if one.shifted == 0]
        if len(joined) > 1:
            whose = " and ".join(repr(one) for one, _ in joined)
            raise self.source.error(
                f"AS OF goes by the time of the pairs of {whose}, which is that of the later row",
                as_of,
                "join with the table first; or name the pairs, CREATE QUERY pairs AS .., and join them AS OF "
                "pairs.window_end",
            )
        way = f"write AS OF {alias}.{names[0]}" if names else f"no column of {alias!r} carries its time here"
        raise self.source.error(f"AS OF goes by the time of {alias!r}", as_of, way)


STAMP = "_time"
"""How a band speaks of the time of rows that are stamped as they arrive."""


def window_band(left: Scope, right: Scope, node: exp.Expr, source: SourceText) -> Band | None:
    """How far the times of the two sides may lie apart by their windows; None where they have none."""
    if left.window is None and right.window is None:
        return None
    lengths = []
    for level, other in ((left, right), (right, left)):
        if level.window is None:
            assert other.window is not None
            if level.below is not None and level.below.hidden:
                raise source.error(
                    "windows on both sides join two streams, and what is joined already has none",
                    other.window,
                    "relate the times in ON, as in ON a.t = c.t, and leave this window out",
                )
            raise source.error(
                f"{other.stream.name!r} has a window in this join and {level.stream.name!r} has none",
                other.window,
                "give both a [RANGE ..], or neither; windows over pairs are WINDOW [RANGE ..] behind the joins",
            )
        lengths.append(_length(level, source))
    return _between(left, right, 1 - lengths[1], lengths[0] - 1, node, source)


def band_of_life(left: Scope, right: Scope, node: exp.Expr, source: SourceText, state: StateRequest) -> Band | None:
    """How far the times of the two sides may lie apart by STATE TTL; None where that is not said."""
    length = state.length(Amounts(source, left.clock.kind))
    return None if length is None else _between(left, right, -length, length, node, source)


def _between(left: Scope, right: Scope, low: int, high: int, node: exp.Expr, source: SourceText) -> Band:
    if _is_sequence(left) != _is_sequence(right):
        raise source.error("one side counts in numbers and the other in time", node)
    shift = _ahead(right.stream) - _ahead(left.stream)
    times = [spark_text(column_of(level.stream.time or STAMP)) for level in (left, right)]
    return Band(times[0], times[1], shift + low, shift + high)


def _length(level: Scope, source: SourceText) -> int:
    assert level.window is not None
    clauses = {str(clause.this): clause for clause in level.window.expressions}
    for name, clause in clauses.items():
        if name in IN_WINDOWS:
            raise source.error(f"{name} is for a stream, and this is a join", clause, "say it in CREATE STREAM")
        if name != "RANGE":
            raise source.error(f"{name} does not go with a window of a join", clause, "write [RANGE length]")
    if "RANGE" not in clauses:
        raise source.error("a window of a join has a RANGE", level.window, "write [RANGE 5 seconds]")
    amount = clauses["RANGE"].expressions[0]
    amounts = Amounts(source, level.clock.kind)
    if amounts.says_rows(amount):
        raise source.error("a join with the last rows of a stream cannot be run yet", amount, "give a length of time")
    length = amounts.length(amount, "RANGE")
    if length < 1:
        raise source.error("a window of RANGE 0 or less holds nothing: give a RANGE above 0", amount)
    return length


def _is_sequence(level: Scope) -> bool:
    return level.clock.kind.value == "sequence"


def _ahead(stream: Stream) -> int:
    """By how much the column that tells the time is ahead of it: the end of a window is the instant after its last."""
    return 1 if isinstance(stream, Derived) else 0


BY_WINDOW = "by_window"
"""The mark of a join of results, each with the value of the same window."""


def check_same_windows(
    at: exp.Expr, left: Scope, right: Scope, queries: Mapping[str, ScopeRelation], source: SourceText
) -> None:
    """Refuse a query inside an expression whose windows are not those of what stands around it."""
    around, inside = (_window_of(side.over_query, queries) for side in (left, right))
    if around is None:
        raise source.error(
            "a query inside an expression has one value in each window, and these rows are in none",
            at,
            "give both the same window: FROM s [RANGE 10 minutes] .. (SELECT max(v) FROM s [RANGE 10 minutes])",
        )
    if inside != around:
        raise source.error(
            "a query inside an expression has the windows of what stands around it, and this one has others",
            at,
            "write the same window in both, of time",
        )


def _window_of(query: Query | None, queries: Mapping[str, ScopeRelation]) -> tuple[object, ...] | None:
    """The regular windows of a query, which are those of the one below it where it has none of its own."""
    while query is not None and isinstance(query.window, SameWindow):
        below = queries.get(query.stream.lower())
        query = below.query if below is not None and isinstance(below.query, Query) else None
    window = query.window if query is not None else None
    if not isinstance(window, Window):
        return None
    return type(window), window.range, window.slide, window.offset
