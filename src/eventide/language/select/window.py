"""The window of a query; OVER (...) is refused.

The window of a query: from its brackets, or from the groups that are stretches of time.

Law: a query closes. It has a window over time or over a count of rows, or a group that is one stretch of time after the
other (`time/60 AS tb`, `date_trunc('minute', ts)`), or it reads a query and takes over its windows. An aggregate with
none of them is refused, because no heartbeat could ever say that it is complete.

`... OVER (...)`: refused, with what to write instead.

Law: OVER looks at other rows than its own. Among the results of one window the first n are told by ORDER BY and LIMIT,
and a value over all groups of a window by a query over the query, both of which close with the window; among rows of a
stream, rows belong together by a window or by a join that relates their times. The hint says which of them is meant.

>>> import sqlglot
>>> hint_for(sqlglot.parse_one("rank() OVER (ORDER BY total DESC)"))
'for the first n of each window: ORDER BY total DESC LIMIT n, behind GROUP BY'
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from eventide.errors import DeclarationError
from eventide.language.grammar.amounts import Amounts
from eventide.language.grammar.misreadings import instead_of, window_function_in
from eventide.language.grammar.nodes import Clause, StreamWindow
from eventide.language.grammar.source_text import SourceText
from eventide.language.grammar.spelling import meant, nearest
from eventide.plan.declared.join import Join
from eventide.plan.declared.program import Step
from eventide.plan.declared.query import Query
from eventide.plan.declared.stream import Stream, Timestamps
from eventide.plan.declared.temporal import FIXED, Bucket, Temporal, truncated
from eventide.plan.declared.window import TUMBLING, RowWindow, SameWindow, Window
from eventide.plan.expressions.across_rows import WINDOWS, refused_call

COUNTED = ("ROWS", "TUPLES", "COUNT")
"""What WATTR may name for a window over a count of rows."""


@dataclass
class WindowRequest:
    """What a query asks of its window."""

    window: Window | RowWindow | SameWindow
    retain: int = 0
    policy: dict[str, Clause] = field(default_factory=dict)
    """SLACK and DRATIO, which are the stream's."""


@dataclass(frozen=True)
class WindowReader:
    """Reads the window of one query over one stream; `times` are the outputs below that carry time, by name."""

    source: SourceText
    stream: Stream
    times: dict[str, Temporal]
    below: Step | None = None
    """The query or operator that is read; None where it is a stream."""

    def read(self, written: StreamWindow | None, buckets: list[Bucket], select: exp.Expr) -> WindowRequest:
        """The window that is written, or that the groups make."""
        clauses = {str(clause.this): clause for clause in written.expressions} if written is not None else {}
        amounts = Amounts(self.source, self.stream.time_kind)
        shift = self._shift(clauses.get("WATTR"))
        window = self._window(clauses, buckets, amounts, shift)
        if window is None:
            raise self._never_closes(select)
        retain = amounts.length(clauses["RETAIN"].expressions[0], "RETAIN") if "RETAIN" in clauses else 0
        policy = {name: clause for name, clause in clauses.items() if name in ("SLACK", "DRATIO")}
        return WindowRequest(window, retain, policy)

    def _window(
        self, clauses: dict[str, Clause], buckets: list[Bucket], amounts: Amounts, shift: int | None
    ) -> Window | RowWindow | SameWindow | None:
        empty = "EMPTY WINDOWS" in clauses
        if "RANGE" not in clauses:
            for name in ("SLIDE", "OFFSET"):
                if name in clauses:
                    raise self.source.error(f"{name} without RANGE", clauses[name], "say how long a window is: RANGE")
            finest = min(buckets, key=lambda bucket: bucket.width, default=None)
            if finest is not None:
                return Window(finest.width, offset=finest.offset, empty=empty)
            return SameWindow() if isinstance(self.below, Query) else None
        length = clauses["RANGE"].expressions[0]
        slide = clauses["SLIDE"].expressions[0] if "SLIDE" in clauses else None
        try:
            if shift is None or amounts.says_rows(length):
                for name in ("OFFSET", "EMPTY WINDOWS"):
                    if name in clauses:
                        raise self.source.error(f"{name} does not go with a window over a count of rows", clauses[name])
                step = amounts.rows(slide, "SLIDE") if slide is not None else TUMBLING
                return RowWindow(amounts.rows(length, "RANGE"), step)
            step = amounts.length(slide, "SLIDE") if slide is not None else TUMBLING
            offset = amounts.length(clauses["OFFSET"].expressions[0], "OFFSET") if "OFFSET" in clauses else 0
            longer = amounts.length(length, "RANGE")
            for amount, size, name in ((length, longer, "RANGE"), (slide, step, "SLIDE")):
                if amount is not None and size <= 0:
                    raise self.source.error(f"{name} {amount.sql()} is no length: give more than 0", amount)
            return Window(longer, step, offset - shift, empty)
        except DeclarationError as error:
            if hasattr(error, "line"):
                raise
            at = slide if "SLIDE" in str(error) and slide is not None else length
            raise self.source.error(str(error), at) from error

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
                "add one behind the joins: WINDOW [RANGE 5 minutes SLIDE 1 minute]",
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
            f"add one behind the stream: FROM {self._spoken} [RANGE 5 minutes SLIDE 1 minute]{group}",
        )

    @property
    def _spoken(self) -> str:
        """What is read, as the user would write it; a merge that was put in is any stream."""
        return "(..)" if self.below is not None and self.stream.name.endswith("_below") else self.stream.name


RANKS = ("rank", "row_number", "rownumber", "dense_rank", "denserank", "percent_rank", "percentrank", "ntile")
NEIGHBOURS = ("lag", "lead")


def refuse_over(query: exp.Expr, source: SourceText) -> None:
    """An error for an OVER, or a function that looks across rows, in a query, wherever it stands."""
    for over in query.find_all(exp.Window):
        raise source.error("OVER cannot be run yet", over, hint_for(over))
    if (refused := refused_call(query, WINDOWS)) is not None:
        at, wrong, instead = refused
        raise source.error(wrong, at, instead)


def hint_for(over: exp.Expr) -> str:
    """What to write instead.

    >>> import sqlglot
    >>> hint_for(sqlglot.parse_one("lag(speed) OVER (ORDER BY ts)"))
    'to meet rows before it, join the stream with itself: ON a.ts BETWEEN b.ts AND b.ts + INTERVAL 1 MINUTE'
    >>> hint_for(sqlglot.parse_one("sum(n) OVER (PARTITION BY k)"))
    "aggregate in a window, FROM s [RANGE 5 minutes]; over all groups of a window, by a query over the query's name"
    """
    inner = over.this
    name = (inner.name if isinstance(inner, exp.Anonymous) else inner.key).lower()
    if name in RANKS:
        order = over.args.get("order")
        by = order.sql("spark") if isinstance(order, exp.Order) else "ORDER BY value"
        return f"for the first n of each window: {by} LIMIT n, behind GROUP BY"
    if name in NEIGHBOURS:
        return "to meet rows before it, join the stream with itself: ON a.ts BETWEEN b.ts AND b.ts + INTERVAL 1 MINUTE"
    return (
        "aggregate in a window, FROM s [RANGE 5 minutes]; over all groups of a window, by a query over the query's name"
    )
