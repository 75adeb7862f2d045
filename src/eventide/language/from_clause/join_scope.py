"""What a SELECT over a join sees, and joins refused because their state would never be freed.

*Scope.* Columns go by the names of the inputs. A column of a join carries time where it is the attribute by which both
sides are equal, or computed from their equal times; and only where its side has a row in every result. Otherwise the
time of a pair, that of its later row, is in none of its columns; a time of one side only follows it.

*Refusals.* A join that could never let go of a row is refused, with what is to be added to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from eventide.errors import LanguageError
from eventide.language.from_clause.join_times import DifferenceBounds, SideAttribute, bare, length_of, tables_of
from eventide.language.grammar.source_text import SourceText
from eventide.language.scope.expression_text import column_of, spark_text
from eventide.language.scope.scope import TIME, Clock, Columns, NamedInput, Pending, Scope
from eventide.language.scope.state_clauses import STATE_TTL
from eventide.plan.declared.join import Band, Join, Lookup
from eventide.plan.declared.query import Named
from eventide.plan.declared.stream import TimeKind
from eventide.plan.expressions.columns import Column
from eventide.plan.expressions.parse import parsed


def called(alias: str, names: Iterable[str], level: Scope) -> NamedInput:
    """An input of a join: its columns are qualified by its name."""
    columns: Columns = {}
    for key, (name, expression) in level.columns.items():
        columns[key] = (name, qualified(expression, alias))
    return NamedInput(alias, frozenset(names), columns, tuple(name.lower() for name, _ in level.all_columns))


def qualified(expression: exp.Expr, alias: str) -> exp.Expr:
    """The expression with every column said to be of that input."""
    root = exp.Paren(this=expression.copy())
    for column in list(root.find_all(exp.Column)):
        if len(column.parts) == 1:
            column.replace(column_of(column.name, alias))
    found: exp.Expr = root.this
    found.pop()
    return found


def see(level: Scope, inputs: Iterable[NamedInput], preferred: Mapping[str, str]) -> Scope:
    """The level with the columns of these inputs."""
    owners: dict[str, list[NamedInput]] = {}
    every: list[tuple[str, exp.Expr]] = []
    level.owned, level.stars = {}, {}
    for one in inputs:
        shown = [one.columns[key] for key in one.starred if key in one.columns]
        every += shown
        for name in one.names:
            level.owned[name] = one.columns
            level.stars[name] = shown
        for key in one.columns:
            owners.setdefault(key, []).append(one)
    level.stars[""] = every
    level.columns, level.shared = {}, {}
    for key, having in owners.items():
        chosen = [one for one in having if preferred.get(key) == one.alias] or having
        if len(chosen) == 1:
            level.columns[key] = chosen[0].columns[key]
        else:
            level.shared[key] = [one.alias for one in chosen]
    return level


def joined_output(
    pending: Pending, outputs: list[tuple[str, exp.Expr]]
) -> tuple[Join | Lookup, tuple[Column, ...], Clock]:
    """The join with these outputs, their columns, and which of them carry time."""
    select = tuple(Named(name, spark_text(expression)) for name, expression in outputs)
    columns: list[Column] = []
    carried: dict[str, exp.Expr] = {TIME: exp.column(TIME)}
    follow: dict[str, exp.Expr] = {}
    for name, expression in outputs:
        columns.append(Column(name, _type(expression, pending)))
        if (time := _over_time(expression, pending)) is not None:
            carried[name.lower()] = time
        elif (time := _following(expression, pending)) is not None:
            follow[name.lower()] = time
    return replace(pending.join, select=select), tuple(columns), Clock(kind_of(pending), carried, follow)


def kind_of(pending: Pending) -> TimeKind:
    """The kind of a pair's time."""
    join = pending.join
    if isinstance(join, Lookup) and join.as_it_is:
        return pending.sides[join.rows.alias].clock.kind
    kinds = {level.clock.kind for level in pending.sides.values()}
    return TimeKind.SEQUENCE if kinds == {TimeKind.SEQUENCE} else TimeKind.TIMESTAMP


def _type(expression: exp.Expr, pending: Pending) -> str:
    [*owner] = tables_of(expression)
    return pending.sides[owner[0]].type_of(bare(expression)) if len(owner) == 1 else ""


def _over_time(expression: exp.Expr, pending: Pending) -> exp.Expr | None:
    join = pending.join
    if isinstance(join, Lookup):
        # What is emitted has the time of the row.
        mine = tables_of(expression) == {join.rows.alias}
        return pending.sides[join.rows.alias].clock.over_time(bare(expression)) if mine else None
    if join.kind.chooses:
        # What is emitted is the row itself.
        return pending.sides[join.left.alias].clock.over_time(bare(expression))
    kept = {
        alias
        for alias, side in ((join.left.alias, join.kind.keeps_right), (join.right.alias, join.kind.keeps_left))
        if not side
    }
    owner = tables_of(expression)
    if len(owner) != 1 or not owner <= kept:
        return None
    time = pending.sides[next(iter(owner))].clock.over_time(bare(expression))
    if time is None:
        return None
    for band in join.bands:
        equal = _equal_time(band, join, pending)
        if equal is not None and (equal == time or (isinstance(equal, exp.Column) and equal.name == TIME)):
            return time
    return None


def _following(expression: exp.Expr, pending: Pending) -> exp.Expr | None:
    """How a column follows the time of a pair, known from the time of its own side."""
    owner = tables_of(expression)
    if len(owner) != 1 or (isinstance(pending.join, Lookup) and owner != {pending.join.rows.alias}):
        return None
    clock = pending.sides[next(iter(owner))].clock
    inner = bare(expression)
    return clock.over_time(inner, following=True) if clock.of(inner, following=True) is not None else None


def _equal_time(band: Band, join: Join, pending: Pending) -> exp.Expr | None:
    """How an attribute that is equal on both sides is computed from time; None where there is none."""
    if band.low or band.high:
        return None
    sides = ((join.left.alias, band.left), (join.right.alias, band.right))
    left, right = (pending.sides[alias].clock.over_time(parsed(sql, "a band")) for alias, sql in sides)
    return left if left is not None and left == right else None


ALIVE = f"; or say for how long rows are kept: {STATE_TTL} 10 minutes"
"""The way out of relating times."""

Side = tuple[str, Scope]
"""An input of a join: its name there, and what it is."""


def of_unknown_length(source: SourceText, conditions: Iterable[exp.Expr]) -> LanguageError | None:
    """The error for an interval that bounds no times: its length differs, as that of a month, or is not of one unit."""
    for interval in (found for one in conditions for found in one.find_all(exp.Interval)):
        if length_of(interval) is None:
            return source.error(
                f"{spark_text(interval)} has no fixed length in one unit, so it cannot bound times",
                interval,
                "write it in one unit from weeks to microseconds: INTERVAL 90 SECONDS",
            )
    return None


def unrelated(source: SourceText, node: exp.Expr, left: Sequence[Side], right: Side) -> LanguageError:
    """The error where nothing relates the times of the two sides; the left one may be inputs joined already."""
    dated = next((side for side in left if side[1].times), left[0])
    names = []
    for alias, level in (dated, right):
        carrying = sorted(level.times.items(), key=lambda item: item[1].shifted != 0)
        if not carrying:
            missing = f"the time of {alias!r}" if level.stream.time is None else f"{level.stream.time!r} of {alias!r}"
            return source.error(
                f"this join could never let go of a row: no column here carries {missing}",
                node,
                "select the time below the join, too"
                if level.stream.time is not None
                else "declare which column tells the time: TIMESTAMP BY column",
            )
        names.append((spark_text(column_of(carrying[0][0], alias)), carrying[0][1].micros))
    (one, micros), (other, also_micros) = names
    if micros != also_micros:
        times, numbers = (one, other) if micros else (other, one)
        return source.error(
            f"{times} is a time and {numbers} is a number, so no rows of this join belong together by time",
            node,
            "declare the time of both as a TIMESTAMP, or of both as a number",
        )
    some = "INTERVAL 5 SECONDS" if micros else "5"
    joined = " or ".join(repr(alias) for alias, _ in left)
    return source.error(
        f"this join could never let go of a row: nothing relates the time of {joined} to that of {right[0]!r}",
        node,
        f"add {one} = {other}, or {one} BETWEEN {other} - {some} AND {other} + {some}{ALIVE}",
    )


def endless(source: SourceText, node: exp.Expr, sides: Mapping[str, Sequence[Side]], side: str) -> LanguageError:
    """The error where rows of one side say until when their partners come, and nothing says it of the other's.

    `sides` are the two sides by their names, each the inputs that are joined in it.
    """
    [other] = [alias for alias in sides if alias != side]
    [own, its] = [
        next((spark_text(column_of(name, alias)) for alias, level in sides[one] for name in level.times), f"{one}.time")
        for one in (side, other)
    ]
    return source.error(
        "this join could never let go of a row: nothing says until when partners come for those of "
        f"{sides[side][0][0]!r}",
        node,
        f"add {its} <= {own}{ALIVE}",
    )


def one_sided(source: SourceText, open_side: tuple[exp.Expr, DifferenceBounds], scope: Scope) -> LanguageError:
    """The error where times are bounded from one side alone; `scope` has the columns of all inputs."""
    condition, bounds = open_side
    left, right = (as_written(one, scope) for one in (bounds.left, bounds.right))
    some = "INTERVAL 5 SECONDS" if bounds.left.times.micros else "5"
    if bounds.low is not None and bounds.high is not None:
        return source.error("no pair of rows can have these times", condition, "the first bound is above the second")
    # low <= right - left is known: right must not be far after left. And the other way round.
    add = f"{right} <= {left} + {some}" if bounds.high is None else f"{left} <= {right} + {some}"
    late, early = (right, left) if bounds.high is None else (left, right)
    return source.error(
        f"this join could never let go of a row: {late} may be any time after {early}", condition, f"add {add}{ALIVE}"
    )


def as_written(attribute: SideAttribute, scope: Scope) -> str:
    """An attribute of one side with the columns by the names that the user has for them: inputs that are joined already
    are one side, with columns of its own."""
    known = [
        (expression, column_of(name, alias))
        for alias, columns in scope.owned.items()
        for name, expression in columns.values()
    ]
    root = exp.Paren(this=qualified(attribute.expression, attribute.alias))
    for column in list(root.find_all(exp.Column)):
        # A sub-query may show a column only in another one that is made of it.
        made = [word for expression, word in known if column in expression.find_all(exp.Column)]
        same = [word for expression, word in known if expression == column]
        column.replace((same or made or [column])[0].copy())
    return spark_text(root.this)
