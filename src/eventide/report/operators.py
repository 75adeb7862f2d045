"""Operators described as plain data, and which of their outputs carry time.

Merges, projections and joins described as plain data: what they tell, what they hold, and until when.

>>> from eventide.plan.declared.join import Band, Side
>>> near = Join("near", Side("a"), Side("b"), (Band("t", "t", -5, 5),))
>>> [band["words"] for band in bands_of(near, unitless=True)], held_by(near, unitless=True)[0]
(['a.t - 5 <= b.t <= a.t + 5'], 'rows of a until b.t has passed a.t + 5')

Temporal attributes in words: which outputs carry time, and what a heartbeat says of them.

Law: after heartbeat h of what is read, no later row has a time of h or less; so an output that grows with time is at
least what it is for the instant after h, and one that falls with time at most that.

>>> from eventide.plan.declared.stream import columns
>>> packets = Stream("packets", columns("time BIGINT, len INT"), time="time")
>>> [one["after"] for one in attributes([("tb", "time div 60"), ("len", "len"), ("back", "-time")], packets)]
['tb >= (h + 1) DIV 60', 'back <= -(h + 1)']
>>> of_stream(packets)[0]["after"], is_same_in(Window(30), "time div 60", packets)
('time > h', True)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlglot import exp

from eventide.errors import DeclarationError
from eventide.plan.binding import BoundOperator
from eventide.plan.bound.lookup import BoundLookup
from eventide.plan.bound.rows import BoundRows
from eventide.plan.declared.join import Join, Lookup
from eventide.plan.declared.program import Operator
from eventide.plan.declared.rows import Queue, Rows
from eventide.plan.declared.stream import Derived, Stream, TimeKind
from eventide.plan.declared.temporal import over_time_column, with_floors
from eventide.plan.declared.window import Window
from eventide.plan.expressions.columns import quoted
from eventide.plan.expressions.parse import parsed
from eventide.plan.expressions.spark_dialect import SPARK
from eventide.profile.amounts import spoken


def attributes(outputs: Iterable[tuple[str, str]], stream: Stream, since: str | None = None) -> list[dict[str, Any]]:
    """Of these outputs over a stream, the ones that carry time; `h` is the heartbeat of the stream.

    `since` is the first instant that a later row may come from, by default the one after the heartbeat.
    """
    found = []
    for name, sql in outputs:
        try:
            carried = over_time_column(sql, stream)
        except DeclarationError:
            carried = None
        if carried is None:
            continue
        column, times = carried
        compares = ">=" if times.increasing else "<="
        found.append(
            {
                "name": name,
                "sql": sql,
                "direction": "increasing" if times.increasing else "decreasing",
                "after": f"{name} {compares} {_later(sql, column, stream, since)}".replace(">= h + 1", "> h"),
            }
        )
    return found


def of_stream(stream: Stream) -> list[dict[str, Any]]:
    """The attribute of a stream that carries time: its time column."""
    return attributes([(stream.time, quoted(stream.time))], stream) if stream.time is not None else []


def is_same_in(window: Window, sql: str, stream: Stream) -> bool:
    """Whether an output over a stream is the same all through each window."""
    found = over_time_column(sql, stream)
    bucket = found[1].bucket if found is not None else None
    if bucket is None or window.slide < window.range:
        return False
    return bucket.width % window.slide == 0 and (bucket.offset - window.offset) % window.slide == 0


def _later(sql: str, column: str, stream: Stream, since: str | None) -> str:
    """The expression for the first instant after the heartbeat; over results, for the least later value of a column."""
    after = exp.column(since, quoted=True) if since is not None else exp.column("h") + exp.Literal.number(1)
    least = exp.Paren(this=after)
    described = exp.column(f"least {column}", quoted=True) if isinstance(stream, Derived) else least
    root = exp.Paren(this=with_floors(parsed(sql, "an output")))
    for node in list(root.find_all(exp.Column)):
        node.replace(described.copy())
    inner: exp.Expr = root.this
    inner = inner.this if isinstance(inner, exp.Paren) else inner
    return str(inner.sql(SPARK)).replace("`", "")


def described_operator(
    operator: Operator, bound: BoundOperator | None, reason: str | None, runs: bool
) -> dict[str, Any]:
    """An operator; `reason` says why it is not bound, `runs` whether it does more than lead to its inputs."""
    unitless = bound is not None and _kind(bound) is TimeKind.SEQUENCE
    described: dict[str, Any] = {
        "name": operator.name,
        "kind": _word(operator),
        "reads": list(operator.inputs),
        "where": operator.where,
        "values": _values(operator, bound),
        "temporal": _temporal(operator, bound),
        "note": None if reason is None else f"only Spark can tell more: {reason}",
    }
    if isinstance(operator, Join):
        return described | {
            "join": operator.kind.value,
            "bands": bands_of(operator, unitless),
            "keys": [list(pair) for pair in zip(operator.left.keys, operator.right.keys, strict=True)],
            "condition": operator.condition,
            "before": {side.alias: side.where for side in (operator.left, operator.right) if side.where is not None},
            "inputs": {side.alias: side.input for side in (operator.left, operator.right)},
            "held": held_by(operator, unitless),
        }
    if isinstance(operator, Lookup):
        rows, versions = operator.rows, operator.versions
        return described | {
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
    return described | {"ordered": operator.ordered, "held": [_held_by_rows(operator, runs)]}


def bands_of(join: Join, unitless: bool) -> list[dict[str, Any]]:
    """How the times of both sides belong together."""
    found = []
    for band in join.bands:
        left, right = _of(join.left.alias, band.left), _of(join.right.alias, band.right)
        low, high = _moved(left, band.low, unitless), _moved(left, band.high, unitless)
        words = f"{right} = {low}" if band.low == band.high else f"{low} <= {right} <= {high}"
        found.append({"left": band.left, "right": band.right, "low": band.low, "high": band.high, "words": words})
    return found


def held_by(join: Join, unitless: bool) -> list[str]:
    """Until when the rows of each side are held."""
    band = join.bands[0]
    left, right = _of(join.left.alias, band.left), _of(join.right.alias, band.right)
    alone = ", then told alone if it had no partner"
    return [
        f"rows of {join.left.alias} until {right} has passed {_moved(left, band.high, unitless)}"
        + (alone if join.kind.keeps_left else ""),
        f"rows of {join.right.alias} until {left} has passed {_moved(right, -band.low, unitless)}"
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


def _moved(name: str, by: int, unitless: bool) -> str:
    if by == 0:
        return name
    return f"{name} {'+' if by > 0 else '-'} {spoken(abs(by), unitless)}"


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
    return [described for described in attributes(outputs, bound.ports[0].stream) if described["name"] in bound.carried]


def _of_side(name: str, sql: str, side: str) -> dict[str, Any]:
    after = f"{name} is at least that of the earliest row of {side} that is held or to come"
    return {"name": name, "sql": sql, "direction": "increasing", "after": after}
