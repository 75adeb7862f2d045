"""The gap of a session as a whole number, for each row: microseconds, or numbers of a sequence.

Law: an expression that gives a length of time in every case is computed as whole microseconds, the same in all engines:
an interval or a text such as '5 minutes', a choice between such (CASE, IF, coalesce), or an interval times a number.
NULL is no gap. What gives a length that only the row knows is refused, since a text in a row is no interval everywhere.

>>> from eventide.plan.declared.stream import TimeKind
>>> gap_number("CASE WHEN k = 'slow' THEN '1 hour' ELSE n * INTERVAL '1' MINUTE END", TimeKind.TIMESTAMP)
"CASE WHEN k = 'slow' THEN 3600000000 ELSE n * CAST(60000000 AS BIGINT) END"
>>> gap_number("n + 1", TimeKind.SEQUENCE)
'n + 1'
>>> gap_number("n", TimeKind.TIMESTAMP)
Traceback (most recent call last):
    ...
eventide.errors.DeclarationError: the gap n of a session is no length of time: write an interval, a choice between \
intervals (CASE WHEN .. THEN INTERVAL '5' MINUTES ..), or n * INTERVAL '1' SECOND
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from sqlglot import exp

from eventide.errors import DeclarationError
from eventide.eventtime.instant import EDGE
from eventide.plan.declared.stream import Stream, TimeKind, Timestamps
from eventide.plan.declared.temporal import FIXED
from eventide.plan.declared.window import LAST_INSTANT, LONGEST_GAP, AnyWindow, SessionWindow
from eventide.plan.expressions.columns import WHOLE_NUMBERS
from eventide.plan.expressions.parse import aggregates_in, parsed
from eventide.plan.expressions.spark_dialect import SPARK


def gap_number(by: str, kind: TimeKind) -> str:
    """The expression that gives a gap, as one that gives a whole number."""
    tree = parsed(by, "the gap of a session")
    if aggregates_in(exp.Paren(this=tree)):
        raise DeclarationError(f"the gap {by} of a session is an aggregate: each row has a gap of its own")
    found = tree if kind is TimeKind.SEQUENCE else _in_micros(tree)
    return str(found.sql(SPARK))


def gap_sql(window: SessionWindow, kind: TimeKind) -> str:
    """For a row, how long after it its session goes on, as SQL of a whole number."""
    if window.by is None:
        return f"CAST({window.gap} AS BIGINT)"
    number = f"CAST({gap_number(window.by, kind)} AS BIGINT)"
    return f"CASE WHEN {number} > {LONGEST_GAP} THEN {LONGEST_GAP} ELSE {number} END"


def last_end(window: AnyWindow, kind: TimeKind) -> int | None:
    """Where a window ends that ends only when all is over; None where windows end before.

    >>> from eventide.plan.declared.stream import TimeKind
    >>> from eventide.plan.declared.window import LifeWindow
    >>> last_end(LifeWindow(LONGEST_GAP), TimeKind.SEQUENCE), last_end(LifeWindow(5), TimeKind.SEQUENCE)
    (2000000000000000000, None)
    """
    if not isinstance(window, SessionWindow) or not window.endless:
        return None
    return EDGE if kind is TimeKind.SEQUENCE else LAST_INSTANT


def until(window: SessionWindow, kind: TimeKind, time: int) -> int:
    """When the session of a row of this time is over, if no other row comes and its gap is that of all."""
    end = last_end(window, kind)
    return time + window.gap if end is None else max(end, time + 1)


def until_sql(window: SessionWindow, kind: TimeKind) -> str:
    """The same as SQL for a row at `__t`, whatever its gap."""
    end = last_end(window, kind)
    if end is None:
        return f"__t + {gap_sql(window, kind)}"
    return f"CASE WHEN __t < {end} THEN CAST({end} AS BIGINT) ELSE __t + 1 END"


def check_gap(by: str, stream: Stream, type_of: Callable[[str], str], owner: str) -> None:
    """Refuse a gap that is no length, or that a row has before it has a time."""
    number = gap_number(by, stream.time_kind)
    if stream.timestamps is not Timestamps.EXTERNAL:
        raise DeclarationError(
            f"{owner}: rows of stream {stream.name!r} are stamped by the clock, so their sessions have one gap: give a "
            "length"
        )
    if (found := type_of(number)) not in (*WHOLE_NUMBERS, "VOID") and stream.time_kind is TimeKind.SEQUENCE:
        raise DeclarationError(f"{owner}: the gap {by} is {found}, and times are whole numbers: CAST it")


def _in_micros(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Paren):
        return exp.Paren(this=_in_micros(node.this))
    if isinstance(node, exp.Null):
        return node.copy()
    if isinstance(node, exp.Case):
        found = node.copy()
        for branch in found.args["ifs"]:
            branch.set("true", _in_micros(branch.args["true"]))
        if found.args.get("default") is not None:
            found.set("default", _in_micros(found.args["default"]))
        return found
    if isinstance(node, exp.If):
        chosen = node.copy()
        for name in ("true", "false"):
            if chosen.args.get(name) is not None:
                chosen.set(name, _in_micros(chosen.args[name]))
        return chosen
    if isinstance(node, exp.Coalesce):
        return exp.Coalesce(this=_in_micros(node.this), expressions=[_in_micros(one) for one in node.expressions])
    if isinstance(node, exp.Mul):
        for number, length in ((node.this, node.expression), (node.expression, node.this)):
            micros = _length(length)
            if micros is not None and isinstance(length.unnest(), exp.Interval):
                # As a BIGINT, beside which a small number does not leave its type.
                return exp.Mul(this=number.copy(), expression=exp.cast(exp.Literal.number(micros), "BIGINT"))
    if (micros := _length(node)) is not None:
        return exp.Literal.number(micros)
    written = node.sql(SPARK)
    raise DeclarationError(
        f"the gap {written} of a session is no length of time: write an interval, a choice between intervals "
        f"(CASE WHEN .. THEN INTERVAL '5' MINUTES ..), or {written} * INTERVAL '1' SECOND"
    )


def _length(node: exp.Expr) -> int | None:
    """The microseconds of an interval, or of a text that Spark reads as one."""
    inner = node.unnest()
    if isinstance(inner, exp.Interval) and isinstance(inner.this, exp.Literal):
        unit = inner.args.get("unit")
        words = [inner.this.name, unit.name] if isinstance(unit, exp.Var) else inner.this.name.split()
    elif isinstance(inner, exp.Literal) and inner.is_string:
        words = inner.name.split()
    else:
        return None
    if len(words) != 2:
        return None
    grain = FIXED.get(words[1].upper().removesuffix("S"))
    try:
        length = Fraction(words[0]) * grain[0] if grain else None
    except (ValueError, ZeroDivisionError):
        return None
    return int(length) if length is not None and length.denominator == 1 else None
