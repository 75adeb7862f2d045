"""Declare what a row has to do with the other rows of its group: window functions, with OVER.

Laws. *Whole groups*: where PARTITION BY holds the time of the rows (of results their `window_end`), or a stretch of it,
the rows of a group are all there when the heartbeat has passed its end. Every window function can then be computed, in
any order. *In time order*: otherwise rows are in the order of time, which ORDER BY names; a frame reaches back over
rows or a length of time, and forward over rows or a length of time that are waited for. What comes before is kept as
far as a frame reaches; of a frame that begins at the first row, one row for each group is kept, with what all before it
come to. *Ties*: where rows are equal in all of ORDER BY, they stand in the order of their values, so nothing depends on
the order of arrival.

>>> over = Over("o", ("s",), values=named_as(before="lag(v) OVER (PARTITION BY k ORDER BY ts)"))
>>> call = over.calls[0]
>>> call.function, call.partition, [one.sql for one in call.order], call.frame
('lag', ('k',), ['ts'], Frame(rows=True, back=1, ahead=0))
>>> WindowCall.of("sum(v) OVER (ORDER BY ts RANGE BETWEEN INTERVAL 5 SECONDS PRECEDING AND CURRENT ROW)", "o").frame
Frame(rows=False, back=5000000, ahead=0)
>>> WindowCall.of("ntile(4) OVER (PARTITION BY ts)", "'o'")
Traceback (most recent call last):
    ...
eventide.errors.DeclarationError: 'o': ntile needs an order: OVER (PARTITION BY .. ORDER BY ..)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from eventide.errors import DeclarationError
from eventide.plan.declared.query import Named, OrderBy, check_names, named_as
from eventide.plan.declared.rows import Rows
from eventide.plan.declared.temporal import interval_of
from eventide.plan.expressions.parse import call_of, name_of
from eventide.plan.expressions.spark_dialect import SPARK

__all__ = ["Frame", "Over", "WindowCall", "named_as"]

PLACES = ("row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile")
"""Functions of the place of a row in its group; they have no frame."""

NEIGHBOURS = ("lag", "lead")
PICKS = {"first": "first_value", "first_value": "first_value", "last": "last_value", "last_value": "last_value"}
IN_GROUPS_ALONE = ("rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "nth_value")
"""Functions that need the whole group, or all rows that ever were."""


@dataclass(frozen=True)
class Frame:
    """Which rows a function sees, from so far before its own row to so far after it.

    `rows`: counted in rows, else in time, where simultaneous rows belong together. None is without an end; what is
    below 0 lies on the other side.
    """

    rows: bool
    back: int | None
    ahead: int | None


@dataclass(frozen=True)
class WindowCall:
    """One window function, taken apart: `call` is its text without OVER."""

    call: str
    function: str
    arguments: tuple[str, ...]
    partition: tuple[str, ...]
    order: tuple[OrderBy, ...]
    frame: Frame
    in_intervals: bool = False
    """Whether the frame is written in lengths of time, not in numbers."""

    @classmethod
    def of(cls, sql: str, owner: str) -> WindowCall:
        """Read `function OVER (...)`."""
        try:
            tree = sqlglot.parse_one(f"SELECT {sql}", read=SPARK).expressions[0]
        except (SqlglotError, IndexError) as error:
            raise DeclarationError(f"{owner}: cannot read this SQL\n    {sql}") from error
        if not isinstance(tree, exp.Window) or tree.args.get("alias") is not None:
            raise DeclarationError(f"{owner}: this must be one function with its OVER (..)\n    {sql}")
        call = call_of(tree.this)
        function = name_of(call)
        if any(node is not tree for node in tree.find_all(exp.Window)):
            raise DeclarationError(f"{owner}: an OVER inside of another is computed in a query of its own")
        order = tuple(
            OrderBy(one.this.sql(SPARK), bool(one.args.get("desc")), bool(one.args.get("nulls_first")))
            for one in (tree.args["order"].expressions if tree.args.get("order") is not None else ())
        )
        if not order and function in (*PLACES, *NEIGHBOURS):
            raise DeclarationError(f"{owner}: {function} needs an order: OVER (PARTITION BY .. ORDER BY ..)")
        if tree.this is not call and function in NEIGHBOURS:
            raise DeclarationError(f"{owner}: {function} takes NULL as it takes any value: leave IGNORE NULLS out")
        arguments = tuple(part.sql(SPARK) for part in _arguments(call))
        partition = tuple(part.sql(SPARK) for part in tree.args.get("partition_by") or ())
        frame = _frame(tree, function, arguments, bool(order), owner)
        timed = tree.args.get("spec") is not None and tree.args["spec"].find(exp.Interval) is not None
        return cls(tree.this.sql(SPARK), function, arguments, partition, order, frame, timed)

    def wrong_in_time(self, time: str) -> str | None:
        """What is wrong with a function in the order of time, where ORDER BY begins with `time`; None where nothing is.

        >>> print(WindowCall.of("rank() OVER (PARTITION BY k ORDER BY ts)", "o").wrong_in_time("ts"))
        rank needs all rows of its group, and these never end: PARTITION BY ts too, or number the rows by row_number()
        """
        first = self.order[0] if self.order else None
        if first is None or first.sql.strip("`").lower() != time.lower() or first.descending:
            return (
                f"the rows that {self.function} looks at are never all there, as a stream has no end: ORDER BY {time} "
                f"to look at those before, or PARTITION BY {time} to look at those of the same time"
            )
        if self.function in IN_GROUPS_ALONE:
            return (
                f"{self.function} needs all rows of its group, and these never end: PARTITION BY {time} too, or number "
                "the rows by row_number()"
            )
        if self.frame.ahead is None:
            return "a frame up to UNBOUNDED FOLLOWING never ends: say how far it reaches"
        return None

    def wrong_range(self, whole: bool, sequence: bool) -> str | None:
        """What is wrong with a frame of a RANGE; `sequence`: times are numbers."""
        if self.frame.rows or not (self.frame.back or self.frame.ahead):
            return None
        if whole:
            return "in a group of rows of one time a frame is of ROWS"
        if self.in_intervals is sequence:
            return (
                f"the RANGE of this frame is in {'numbers' if sequence else 'an INTERVAL, such as INTERVAL 5 MINUTES'}"
            )
        return None


def _arguments(call: exp.Expression) -> list[exp.Expr]:
    if isinstance(call, exp.Anonymous):
        return list(call.expressions)
    given = [call.args.get(key) for key in call.arg_types]
    return [one for part in given for one in (part if isinstance(part, list) else [part]) if isinstance(one, exp.Expr)]


def _frame(tree: exp.Window, function: str, arguments: tuple[str, ...], ordered: bool, owner: str) -> Frame:
    spec = tree.args.get("spec")
    if function in NEIGHBOURS:
        if spec is not None:
            raise DeclarationError(f"{owner}: {function} has no frame: leave ROWS or RANGE out")
        steps = _whole_number(arguments[1]) if len(arguments) > 1 else 1
        if steps is None:
            raise DeclarationError(f"{owner}: {function}({', '.join(arguments)}) needs a number of rows, 0 or more")
        return Frame(True, steps, 0) if function == "lag" else Frame(True, 0, steps)
    if spec is None:
        counts = function in PLACES
        return Frame(counts or not ordered, None, 0 if ordered else None)
    kind = str(spec.args.get("kind")).upper()
    rows = kind == "ROWS"
    if kind not in ("ROWS", "RANGE") or spec.args.get("exclude"):
        raise DeclarationError(f"{owner}: a frame is of ROWS or of a RANGE: {spec.sql(SPARK)}")
    if function in PLACES and (rows or function != "row_number"):
        raise DeclarationError(f"{owner}: {function} has no frame of rows: leave ROWS or RANGE out")
    back = _edge(spec, "start", rows, owner)
    ahead = _edge(spec, "end", rows, owner) if spec.args.get("end") is not None else 0
    back = -back if back is not None else None
    if back is not None and ahead is not None and back + ahead < 0:
        raise DeclarationError(f"{owner}: this frame ends before it begins: {spec.sql(SPARK)}")
    return Frame(rows, back, ahead)


def _edge(spec: exp.Expression, key: str, rows: bool, owner: str) -> int | None:
    """Where a frame begins or ends, relative to its row; None where it has no end."""
    edge, side = spec.args[key], str(spec.args.get(f"{key}_side")).upper()
    if str(edge).upper() == "CURRENT ROW":
        return 0
    if str(edge).upper() == "UNBOUNDED":
        if (key == "start") != (side == "PRECEDING"):
            raise DeclarationError(f"{owner}: this frame holds no row: {spec.sql(SPARK)}")
        return None
    amount = _whole_number(edge.sql(SPARK))
    if amount is None and not rows:
        amount = interval_of(edge)
    if amount is None:
        what = "a whole number of rows" if rows else "a length, such as INTERVAL 5 MINUTES"
        raise DeclarationError(f"{owner}: a frame needs {what} before {side}: {spec.sql(SPARK)}")
    return -amount if side == "PRECEDING" else amount


def _whole_number(text: str) -> int | None:
    return int(text) if text.isdigit() else None


@dataclass(frozen=True)
class Over(Rows):
    """The rows of `inputs`, and beside each what window functions say of it: `values`, each with its OVER.

    All `values` have the same PARTITION BY and, in the order of time, the same ORDER BY. Whoever needs others reads one
    from another. There is one input.

    >>> Over("o", ("s",), values=named_as(a="lag(v) OVER (ORDER BY t)", b="lag(v) OVER (PARTITION BY k ORDER BY t)"))
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: 'o': its values are over different groups: compute each in a query of its own
    """

    values: tuple[Named, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        check_names(self.name, (*self.select, *self.values))
        if not self.values:
            raise DeclarationError(f"{self.name!r} has no function with OVER: declare plain rows")
        if len(self.inputs) > 1:
            raise DeclarationError(f"{self.name!r} has several inputs: merge them in a query of its own")
        if len({call.partition for call in self.calls}) > 1:
            raise DeclarationError(
                f"{self.name!r}: its values are over different groups: compute each in a query of its own"
            )

    @property
    def passes_through(self) -> bool:
        """False: what is beside a row is not in the inputs."""
        return False

    @property
    def computed(self) -> tuple[Named, ...]:
        """The columns that it emits, each with what it is computed by; without `select`, all others are passed on."""
        return (*self.select, *self.values)

    @property
    def awaits_rows(self) -> bool:
        """Whether a row waits for others of its group, however late: then rows are not emitted in the order of time."""
        return any(call.frame.rows and (call.frame.ahead or 0) > 0 for call in self.calls)

    @cached_property
    def calls(self) -> tuple[WindowCall, ...]:
        """The functions, taken apart."""
        return tuple(WindowCall.of(value.sql, repr(self.name)) for value in self.values)
