"""The window of a query: what is written in brackets, or what its groups make, with all that cannot be refused.

Law: a query closes. It has a window over time, over a count of rows or over sessions, or a group that is one stretch
of time after the other, or it says how long its state lives, or it reads a query and has the windows of that. An
aggregate with none of them is refused, because no heartbeat could ever say that it is complete.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from eventide.errors import DeclarationError
from eventide.language.grammar.nodes import Amount, Amounts, Clause, StreamWindow
from eventide.language.grammar.source_text import SourceText
from eventide.language.grammar.spelling import instead_of, meant, nearest, window_function_in
from eventide.language.scope.expression_text import spark_text
from eventide.language.scope.state_clauses import CHANGES, STATE_TTL, StateRequest
from eventide.plan.bound.session_gap import gap_number
from eventide.plan.declared.join import Join
from eventide.plan.declared.program import Step
from eventide.plan.declared.query import Query
from eventide.plan.declared.stream import Stream, Timestamps
from eventide.plan.declared.temporal import FIXED, Bucket, Temporal, truncated
from eventide.plan.declared.window import (
    TUMBLING,
    AnyWindow,
    GrowingWindow,
    LifeWindow,
    RowWindow,
    SameWindow,
    SessionWindow,
    Window,
)

ALIVE = f"; or say how long state lives without one: {CHANGES} {STATE_TTL} 1 day"
"""The way out of windows."""

COUNTED = ("ROWS", "TUPLES", "COUNT")
"""What WATTR may name for a window over a count of rows."""


@dataclass(frozen=True)
class WindowRequest:
    """What a query asks of its window."""

    window: AnyWindow
    retain: int = 0


@dataclass(frozen=True)
class WindowReader:
    """Reads the window of one query over one stream; `times` are the outputs below that carry time, by name."""

    source: SourceText
    stream: Stream
    times: dict[str, Temporal]
    state: StateRequest
    """What the statement says of its state."""

    below: Step | None = None
    """The query or operator that is read; None where it is a stream."""

    spelled_out: Callable[[exp.Expr], exp.Expr] = exp.Expr.copy
    """An expression over the columns that the query sees, over those of the stream."""

    groups: tuple[exp.Expr, ...] = ()
    """The groups of the query, over the columns of the stream."""

    def read(self, written: StreamWindow | None, buckets: list[Bucket], select: exp.Expr) -> WindowRequest:
        """The window that is written, or that the groups make."""
        clauses = {str(clause.this): clause for clause in written.expressions} if written is not None else {}
        amounts = Amounts(self.source, self.stream.time_kind)
        shift = self._shift(clauses.get("WATTR"))
        window = self._window(clauses, buckets, amounts, shift)
        if window is None:
            raise self._never_closes(select)
        retain = amounts.length(clauses["RETAIN"].expressions[0], "RETAIN") if "RETAIN" in clauses else 0
        return WindowRequest(window, retain)

    def _window(
        self, clauses: dict[str, Clause], buckets: list[Bucket], amounts: Amounts, shift: int | None
    ) -> AnyWindow | None:
        if "SESSION" in clauses:
            return self._sessions(clauses, amounts, shift)
        if "PARTITION BY" in clauses:
            raise self.source.error(
                "PARTITION BY is for sessions and for windows of rows",
                clauses["PARTITION BY"],
                "every other window is the same for all groups",
            )
        empty = "EMPTY WINDOWS" in clauses
        if "RANGE" not in clauses:
            for name in ("SLIDE", "STEP", "OFFSET"):
                if name in clauses:
                    raise self.source.error(f"{name} without RANGE", clauses[name], "say how long a window is: RANGE")
            finest = min(buckets, key=lambda bucket: bucket.width, default=None)
            if finest is not None:
                return Window(finest.width, offset=finest.offset, empty=empty)
            if (length := self.state.length(amounts)) is not None:
                return LifeWindow(length)
            return SameWindow() if isinstance(self.below, Query) else None
        length = clauses["RANGE"].expressions[0]
        slide = clauses["SLIDE"].expressions[0] if "SLIDE" in clauses else None
        try:
            if shift is None or amounts.says_rows(length):
                for name in ("STEP", "OFFSET", "EMPTY WINDOWS"):
                    if name in clauses:
                        raise self.source.error(f"{name} does not go with a window over a count of rows", clauses[name])
                step = amounts.rows(slide, "SLIDE") if slide is not None else TUMBLING
                return RowWindow(amounts.rows(length, "RANGE"), step)
            step = amounts.length(slide, "SLIDE") if slide is not None else TUMBLING
            offset = amounts.length(clauses["OFFSET"].expressions[0], "OFFSET") if "OFFSET" in clauses else 0
            longer = amounts.length(length, "RANGE")
            grows = self._step(clauses)
            growth = longer if grows is None else amounts.length(grows, "STEP")
            for amount, size, name in ((length, longer, "RANGE"), (slide, step, "SLIDE"), (grows, growth, "STEP")):
                if amount is not None and size <= 0:
                    raise self.source.error(f"{name} {amount.sql()} is no length: give more than 0", amount)
            if grows is not None:
                return GrowingWindow(longer, growth, offset - shift, empty)
            return Window(longer, step, offset - shift, empty)
        except DeclarationError as error:
            if hasattr(error, "line"):
                raise
            grows = self._step(clauses)
            at = slide if "SLIDE" in str(error) and slide is not None else grows or length
            raise self.source.error(str(error), at) from error

    def _step(self, clauses: dict[str, Clause]) -> Amount | None:
        """By how much windows grow, where they do."""
        if "STEP" not in clauses:
            return None
        if "SLIDE" in clauses:
            raise self.source.error(
                "a window slides or grows", clauses["STEP"], "write SLIDE for windows of one length, STEP for CUMULATE"
            )
        found = clauses["STEP"].expressions[0]
        assert isinstance(found, Amount)
        return found

    def _sessions(self, clauses: dict[str, Clause], amounts: Amounts, shift: int | None) -> SessionWindow:
        for name in ("RANGE", "SLIDE", "STEP", "OFFSET", "EMPTY WINDOWS"):
            if name in clauses:
                raise self.source.error(
                    f"{name} does not go with SESSION", clauses[name], "a session is as long as rows come: drop it"
                )
        gap = clauses["SESSION"].expressions[0]
        if "PARTITION BY" in clauses:
            named = [self.spelled_out(exp.column(name.copy())) for name in clauses["PARTITION BY"].expressions]
            if {spark_text(one) for one in named} != {spark_text(one) for one in self.groups}:
                raise self.source.error(
                    "the sessions of a query are those of its groups, and PARTITION BY names others",
                    clauses["PARTITION BY"],
                    "group by the same columns, or leave PARTITION BY out",
                )
        if shift is None or (isinstance(gap, Amount) and amounts.says_rows(gap)):
            raise self.source.error("the gap of a session is a length of time", gap, "such as SESSION 10 minutes")
        if shift:
            raise self.source.error(
                "sessions go by the time of what is read", clauses.get("WATTR", gap), "leave WATTR out"
            )
        try:
            if isinstance(gap, Amount):
                return SessionWindow(amounts.length(gap, "SESSION"))
            by = spark_text(self.spelled_out(gap))
            gap_number(by, self.stream.time_kind)
            return SessionWindow(by=by)
        except DeclarationError as error:
            if hasattr(error, "line"):
                raise
            raise self.source.error(str(error), gap) from error

    def _shift(self, wattr: Clause | None) -> int | None:
        """By how much the attribute that windows go by is ahead of time; None for a count of rows."""
        if wattr is None:
            return min((t.shifted for t in self.times.values() if t.shifted is not None), key=abs, default=0)
        name = wattr.expressions[0].name
        found = next((t for known, t in self.times.items() if known.lower() == name.lower()), None)
        if found is not None and found.shifted is not None:
            return found.shifted
        if name.upper() in COUNTED:
            return None
        if found is not None:
            raise self.source.error(f"a window over {name!r}, which is computed from time, cannot be run yet", wattr)
        time = self.stream.time
        way = meant(name, self.times) or "WATTR names the column that tells the time, or ROWS"
        raise self.source.error(
            f"{name!r} does not tell the time of stream {self.stream.name!r}: {time} does", wattr, way
        )

    def _never_closes(self, select: exp.Expr) -> Exception:
        if isinstance(self.below, Join):
            return self.source.error(
                "this aggregate could never close: it has no window",
                select,
                f"add one behind the joins, WINDOW [RANGE 5 minutes SLIDE 1 minute]{ALIVE}",
            )
        carrying = [name for name, one in self.times.items() if one.shifted == 0]
        time = self.stream.time if self.below is None else next(iter(carrying), None)
        group = f", or group by its time: GROUP BY {time}/60 AS tb" if time is not None else ""
        if self.stream.timestamps is Timestamps.EXTERNAL and not self.times:
            return self.source.error(
                f"this aggregate could never close: what it reads no longer has the time of the stream, {time!r}",
                select,
                f"select {time} below it, too",
            )
        if (cut := next(select.find_all(exp.TimestampTrunc, exp.DateTrunc), None)) is not None:
            unit = cut.text("unit").upper()
            close = nearest(unit, FIXED)
            if truncated(unit) is None:
                return self.source.error(
                    f"date_trunc knows no {unit.lower()!r}", cut, f"did you mean {close.lower()!r}?" if close else None
                )
            if unit not in FIXED:
                way = f"group by day or week, or add a window: FROM {self._spoken} [RANGE 30 days]"
                return self.source.error(f"stretches of a {unit.lower()} are not equally long", cut, way)
        foreign = window_function_in(select.parent_select or select)
        if foreign is not None:
            hint = instead_of(foreign, self._spoken, time)
            return self.source.error("this aggregate could never close: it has no window", select, hint)
        return self.source.error(
            "this aggregate could never close: it has no window",
            select,
            f"add one behind the stream: FROM {self._spoken} [RANGE 5 minutes SLIDE 1 minute]{group}{ALIVE}",
        )

    @property
    def _spoken(self) -> str:
        """What is read, as the user would write it; a merge that was put in is any stream."""
        return "(..)" if self.below is not None and self.stream.name.endswith("_below") else self.stream.name
