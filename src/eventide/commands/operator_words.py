"""Merges, projections and joins described as plain data: what they tell, what they hold, and until when.

>>> from eventide.plan.declared.join import Band, Side
>>> near = Join("near", Side("a"), Side("b"), (Band("t", "t", -5, 5),))
>>> [band["words"] for band in bands_of(near, plain=True)], held_by(near, plain=True)[0]
(['a.t - 5 <= b.t <= a.t + 5'], 'rows of a until b.t has passed a.t + 5')
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from eventide.commands.temporal_words import attributes
from eventide.plan.binding import BoundOperator
from eventide.plan.bound.lookup import BoundLookup
from eventide.plan.bound.rows import BoundRows
from eventide.plan.declared.join import Join, Lookup
from eventide.plan.declared.program import Operator
from eventide.plan.declared.queue import Queue
from eventide.plan.declared.rows import Rows
from eventide.plan.declared.stream import TimeKind
from eventide.plan.expressions.columns import quoted
from eventide.plan.expressions.parse import SPARK, parsed
from eventide.profile.amounts import spoken


def described_operator(
    operator: Operator, bound: BoundOperator | None, reason: str | None, runs: bool
) -> dict[str, Any]:
    """An operator; `reason` says why it is not bound, `runs` whether it does more than lead to its inputs."""
    plain = bound is not None and _kind(bound) is TimeKind.SEQUENCE
    told: dict[str, Any] = {
        "name": operator.name,
        "kind": _word(operator),
        "reads": list(operator.inputs),
        "where": operator.where,
        "values": _values(operator, bound),
        "temporal": _temporal(operator, bound),
        "note": None if reason is None else f"only Spark can tell more: {reason}",
    }
    if isinstance(operator, Join):
        return told | {
            "join": operator.kind.value,
            "bands": bands_of(operator, plain),
            "keys": [list(pair) for pair in zip(operator.left.keys, operator.right.keys, strict=True)],
            "condition": operator.condition,
            "before": {side.alias: side.where for side in (operator.left, operator.right) if side.where is not None},
            "inputs": {side.alias: side.input for side in (operator.left, operator.right)},
            "held": held_by(operator, plain),
        }
    if isinstance(operator, Lookup):
        rows, versions = operator.rows, operator.versions
        return told | {
            "join": "left" if operator.keeps_all else "inner",
            "bands": [],
            "keys": [list(pair) for pair in zip(rows.keys, versions.keys, strict=True)],
            "condition": None if operator.removed is None else f"{versions.alias} is over where {operator.removed}",
            "before": {side.alias: side.where for side in (rows, versions) if side.where is not None},
            "inputs": {side.alias: side.input for side in (rows, versions)},
            "held": [
                f"rows of {rows.alias} until the heartbeat of {versions.alias} has passed them",
                f"rows of {versions.alias} until a later one of their keys holds for all that can still come",
            ],
        }
    return told | {"ordered": operator.ordered, "held": [_held_by_rows(operator, runs)]}


def bands_of(join: Join, plain: bool) -> list[dict[str, Any]]:
    """How the times of both sides belong together."""
    found = []
    for band in join.bands:
        left, right = _of(join.left.alias, band.left), _of(join.right.alias, band.right)
        low, high = _moved(left, band.low, plain), _moved(left, band.high, plain)
        words = f"{right} = {low}" if band.low == band.high else f"{low} <= {right} <= {high}"
        found.append({"left": band.left, "right": band.right, "low": band.low, "high": band.high, "words": words})
    return found


def held_by(join: Join, plain: bool) -> list[str]:
    """Until when the rows of each side are held."""
    band = join.bands[0]
    left, right = _of(join.left.alias, band.left), _of(join.right.alias, band.right)
    alone = ", then told alone if it had no partner"
    return [
        f"rows of {join.left.alias} until {right} has passed {_moved(left, band.high, plain)}"
        + (alone if join.kind.keeps_left else ""),
        f"rows of {join.right.alias} until {left} has passed {_moved(right, -band.low, plain)}"
        + (alone if join.kind.keeps_right else ""),
    ]


def _of(alias: str, sql: str) -> str:
    """An expression over one side, with its columns said to be of that side.

    >>> _of("a", "t"), _of("a", "t div 60")
    ('a.t', 'a.t DIV 60')
    """
    root = exp.Paren(this=parsed(sql, "a band"))
    for column in list(root.find_all(exp.Column)):
        column.set("table", exp.to_identifier(alias))
    return str(root.this.sql(SPARK))


def _moved(name: str, by: int, plain: bool) -> str:
    if by == 0:
        return name
    return f"{name} {'+' if by > 0 else '-'} {spoken(abs(by), plain)}"


def _word(operator: Operator) -> str:
    if isinstance(operator, Join | Lookup):
        return "join" if isinstance(operator, Join) else "lookup"
    if isinstance(operator, Queue):
        return "queue"
    return "merge" if len(operator.inputs) > 1 else "rows"


def _held_by_rows(rows: Rows, runs: bool) -> str:
    if isinstance(rows, Queue):
        return _held_by_queue(rows)
    if not runs:
        return "nothing: whoever reads it reads its inputs"
    if not rows.ordered:
        return "nothing: rows go on in the round in which they come"
    inputs = "the input" if len(rows.inputs) == 1 else "all inputs"
    return f"each row until the heartbeat of {inputs} has passed it, to be told in the order of time"


def _held_by_queue(queue: Queue) -> str:
    room = "as many as its time permits" if queue.room is None else f"{queue.room:,}"
    held = f"rows before an expensive function; {room} go on in a round, the earliest first"
    if queue.sideline is None:
        return held
    how = queue.sideline
    more = [] if how.one_in is None else [f"one after every {how.one_in} new ones"]
    more += [] if how.within is None else [f"before all others after {spoken(how.within, False)}"]
    return f"{held}; bursts are set aside when they are prodded, and go on {', '.join(['in lulls', *more])}"


def _kind(bound: BoundOperator) -> TimeKind:
    return bound.results.time_kind


def _values(operator: Operator, bound: BoundOperator | None) -> list[dict[str, Any]]:
    words = {item.name: item.sql for item in operator.select}
    if bound is None:
        return [{"name": name, "sql": sql} for name, sql in words.items()]
    return [{"name": c.name, "sql": words.get(c.name, c.name), "type": c.type} for c in bound.outputs]


def _temporal(operator: Operator, bound: BoundOperator | None) -> list[dict[str, Any]]:
    """The outputs that carry time; of a join, each in the row of its own side."""
    if bound is None:
        return []
    words = {item.name: item.sql for item in operator.select}
    if not isinstance(bound, BoundRows):
        join = bound.joined if isinstance(bound, BoundLookup) else bound
        words |= dict(zip((column.name for column in bound.outputs), join.spelled, strict=True))
        sides = (join.join.left.alias, join.join.right.alias)
        return [
            _of_side(name, words[name], " or ".join(sides[part.side] for part in parts))
            for name, parts in bound.carried.items()
        ]
    outputs = [(column.name, words.get(column.name, quoted(column.name))) for column in bound.outputs]
    return [told for told in attributes(outputs, bound.ports[0].stream) if told["name"] in bound.carried]


def _of_side(name: str, sql: str, side: str) -> dict[str, Any]:
    after = f"{name} is at least that of the earliest row of {side} that is held or to come"
    return {"name": name, "sql": sql, "direction": "increasing", "after": after}
