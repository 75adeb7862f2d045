"""Warnings: what runs, but is probably not meant.

Law: a warning names what will happen and the clause that prevents it. A script with warnings runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from eventide.eventtime.heartbeat import Policy
from eventide.eventtime.policies.disorder_histogram import DisorderHistogram
from eventide.eventtime.policies.drop_ratio.policy import DropRatio, permitted_ratio
from eventide.eventtime.policies.fixed_delay import FixedDelay
from eventide.eventtime.policies.kim import Kim, KimAdhoc
from eventide.eventtime.policies.own_progress import OwnProgress
from eventide.eventtime.policies.punctuated import Punctuated
from eventide.eventtime.policies.skew.between_streams import between_streams
from eventide.eventtime.policies.skew.declared import DeclaredSkew
from eventide.eventtime.policies.skew.estimated import EstimatedSkew
from eventide.eventtime.policies.skew.matrix import SHOWN, Skew, Stall, timeout_needed
from eventide.eventtime.policies.slack import Slack
from eventide.eventtime.policies.wrappers.cap import Cap
from eventide.eventtime.policies.wrappers.expected_sources import Expected
from eventide.eventtime.policies.wrappers.idleness import Idle
from eventide.eventtime.policies.wrappers.timeout import Timeout
from eventide.language.ddl.create_stream import DeclaredStream
from eventide.language.ddl.policies import POLICIES as POLICY_CLAUSES
from eventide.language.grammar.source_text import SourceText, offset_of
from eventide.plan.declared.join import Join, JoinKind, Lookup
from eventide.plan.declared.over import Over
from eventide.plan.declared.program import Operator
from eventide.plan.declared.query import Query
from eventide.plan.declared.rows import Rows
from eventide.plan.declared.stream import Stream, Timestamps
from eventide.plan.declared.window import GrowingWindow, SameWindow, SessionWindow, Window

MANY_PANES = 1000
POLICIES = (*POLICY_CLAUSES, "SLACK", "PUNCTUATED BY", "IDLE AFTER", "EXPECTING", "GIVE UP AFTER", "TIMEOUT")


@dataclass(frozen=True)
class Warning:
    """The message, and where it belongs."""

    message: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.line}:{self.column}: {self.message}"


def warning_at(message: str, node: exp.Expr | int, source: SourceText) -> Warning:
    """A warning at a node of a tree."""
    place = source.place(node if isinstance(node, int) else offset_of(node))
    return Warning(message, place.line, place.column)


def about_stream(declared: DeclaredStream, is_read: bool) -> Iterator[tuple[str, exp.Expr]]:
    """What to say about a stream, and the clause it is about."""
    stream = declared.stream
    if declared.tree is None:
        return
    if not is_read:
        yield f"no query reads the stream {stream.name!r}", declared.tree
    if stream.input is None:
        yield f"stream {stream.name!r} does not say where its rows come from: add FROM format 'path'", declared.tree
    yield from about_policy(declared)


def about_policy(declared: DeclaredStream) -> Iterator[tuple[str, exp.Expr]]:
    """What to say of the time of a stream, or of a twin of one, that its policy finds."""
    stream, clauses = declared.stream, declared.clauses
    if declared.tree is None:
        return
    if stream.timestamps is not Timestamps.EXTERNAL:
        for name in POLICIES:
            if name not in clauses or name == "PUNCTUATED BY":
                continue
            yield f"{name} has no effect: rows are stamped as they arrive, so none is late", clauses[name]
        return
    policy = stream.policy
    if between_streams(policy) is not None:
        # What there is to say of them is said at the bounds.
        return
    has_timeout = isinstance(policy, Timeout)
    inner = policy.inner if isinstance(policy, Timeout) else policy
    if isinstance(inner, Expected):
        if inner.wait is None and not has_timeout:
            yield "an expected source that never speaks holds back all others; add GIVE UP AFTER", clauses["EXPECTING"]
        inner = inner.inner
    has_idle = isinstance(inner, Idle)
    inner = inner.inner if isinstance(inner, Idle) else inner
    if isinstance(inner, Punctuated):
        if inner.inner is None and not has_timeout:
            waits = "when these stop, the rows after the last one wait for ever; add TIMEOUT"
            yield f"time moves by promises alone: {waits}", clauses["PUNCTUATED BY"]
            return
        inner = inner.inner or inner
    if isinstance(inner, DeclaredSkew):
        for message in declared.unused:
            yield message, clauses["BOUNDS"]
        for message in about_bounds(inner.skew, stream.known, has_timeout):
            yield message, clauses["BOUNDS"]
    elif not has_timeout and (reason := _rests(inner)):
        said_at = declared.tree if stream.twin_of is None else clauses.get("SLACK", declared.tree)
        yield f"{reason}: when the stream falls silent, they wait for ever; add TIMEOUT", said_at
    elif (has_idle or "DRATIO" in clauses) and _may_fall_silent(stream) and _learns_from_rows(inner):
        if permitted_ratio(inner) is None:
            stands = "when all are silent, time stands, and the last window stays open until a row after its end comes"
        else:
            stands = (
                "when all are silent, the last window closes after ten times the longest silence so far where the "
                "ratio permits it, else after one longer than the stream has run"
            )
        way = "ON DEMAND or CLOCK SKEW in the place of DRATIO would let the clock close it"
        if has_idle:
            yield f"IDLE AFTER leaves out who is silent while others speak; {stands}: {way}", clauses["IDLE AFTER"]
        else:
            yield f"DRATIO finds from the rows how long to wait; {stands}: {way}", clauses["DRATIO"]
    of_a_round = stream.input.max_rows if stream.input is not None else None
    held = inner.rows if isinstance(inner, Slack | Cap) else None
    if held is not None and of_a_round is not None and held < of_a_round:
        smaller = f"SLACK {held} is smaller than a round, which may have {of_a_round} rows"
        yield f"{smaller}: what trails by a round is late", clauses.get("SLACK", declared.tree)
    if isinstance(inner, OwnProgress) and stream.source and not has_idle:
        yield "a source that falls silent holds back all others; add IDLE AFTER", clauses["OWN PROGRESS"]


def about_query(query: Query, tree: exp.Expr) -> Iterator[tuple[str, exp.Expr]]:
    """The warnings about a query."""
    window = query.window
    if isinstance(window, SessionWindow) and window.endless and not query.changes and query.prods is None:
        yield "state that lives for ever has results when the stream ends, and none before; add EMIT CHANGES", tree
    if isinstance(window, SameWindow | SessionWindow):
        return
    if isinstance(window, GrowingWindow):
        return
    if window.slide > window.range:
        yield "SLIDE is longer than RANGE: rows between two windows are in none", tree
    if isinstance(window, Window) and window.range // window.pane > MANY_PANES:
        panes = window.range // window.pane
        yield f"each window is put together from {panes} panes; a SLIDE that divides RANGE needs far fewer", tree


def about_operator(operator: Operator, tree: exp.Expr, streams: Mapping[str, Stream]) -> Iterator[tuple[str, exp.Expr]]:
    """What to say about a merge or join: it waits for the slowest of its inputs (STREAM paper, section 5)."""
    if isinstance(operator, Over) and operator.awaits_rows:
        yield "a row waits for the next one of its group, however late that is, and whoever reads it waits too", tree
    if isinstance(operator, Join) and (said := _ends_of_rows(operator)):
        limit = "a comparison of the times of both sides, as in AND b.ts <= a.ts + INTERVAL 1 DAY, would limit it"
        yield f"rows are kept until {' and '.join(said)} has passed, however far off that is; {limit}", tree
    for name in operator.inputs:
        stream = streams.get(name.lower())
        if stream is None or stream.table is not None or len(operator.inputs) < 2 or not _stands_still(stream):
            continue
        waits = _waiting(operator, name)
        if waits is not None:
            yield f"when {name!r} falls silent, its time stands still, and {waits}; add TIMEOUT to {name!r}", tree


def _ends_of_rows(join: Join) -> list[str]:
    """What only rows say of how long they are kept; nothing where a band has both ends."""
    if any(band.is_closed for band in join.bands):
        return []
    ends = [band for band in join.bands if band.low is None]
    begins = [band for band in join.bands if band.high is None]
    of_left = {band.left for band in ends} - {band.left for band in begins}
    of_right = {band.right for band in begins} - {band.right for band in ends}
    return [f"{join.left.alias}.{sql}" for sql in of_left] + [f"{join.right.alias}.{sql}" for sql in of_right]


def _waiting(operator: Operator, idle: str) -> str | None:
    if isinstance(operator, Rows):
        return "the rows of all others wait for it"
    if isinstance(operator, Lookup):
        return f"the rows of {operator.rows.alias!r} wait for it" if operator.versions.input == idle else None
    kept = [
        side.alias
        for side, keeps in ((operator.left, operator.kind.keeps_left), (operator.right, operator.kind.keeps_right))
        if keeps and side.input != idle and operator.kind is not JoinKind.SEMI
    ]
    return f"rows of {kept[0]!r} without a partner are not emitted" if kept else None


def _stands_still(stream: Stream) -> bool:
    """Whether time moves only as rows come."""
    policy = stream.policy
    if isinstance(policy, Punctuated) and policy.inner is not None:
        policy = policy.inner
    moves_by_rows = isinstance(policy, Slack | FixedDelay | EstimatedSkew | OwnProgress | Punctuated)
    return moves_by_rows and stream.timestamps is Timestamps.EXTERNAL


def about_bounds(skew: Skew, names: tuple[str, ...], has_timeout: bool) -> Iterator[str]:
    """What to say about bounds between sources, or streams, of these names: theorem 3.3 of the STREAM paper."""
    n = range(len(names))
    for j in n:
        if not any(skew.bounds(i, j) for i in n):
            yield f"no bound covers source {names[j]!r}, so nothing says how far it is; add {names[j]} TRAILS ... BY"
    need = timeout_needed(skew)
    if not need or has_timeout:
        return
    pairs = [_stalled(stall, names) for stall in need.stalls[:SHOWN]]
    if len(need.stalls) > SHOWN:
        pairs.append(f"and {len(need.stalls) - SHOWN} more pairs")
    example = f"{names[need.stalls[0].target]} TRAILS {names[need.stalls[0].sender]} BY 0 AFTER some time"
    yield (
        f"when all sources pause, rows may wait for ever: {'; '.join(pairs)}. Add TIMEOUT, or for each pair a bound "
        f"such as {example}"
    )


def _stalled(stall: Stall, names: tuple[str, ...]) -> str:
    trails = "nothing bounds in time" if stall.lag is None else "may trail them for ever"
    return f"those of {names[stall.sender]!r} for {names[stall.target]!r}, which {trails}"


ENDS_BY_ITSELF = re.compile(r"\.\w+$")
"""The path of a single file, which is read to its end, where every window is closed."""


def _may_fall_silent(stream: Stream) -> bool:
    """Whether rows may stop for a while, and the clock goes on: not in a recording, nor in what is read to its end."""
    if stream.arrival is not None or stream.input is None or stream.input.format.lower() in ("stdin", "replay"):
        return False
    path = stream.input.path or ""
    is_file = ENDS_BY_ITSELF.search(path) is not None and not re.search(r"[*?\[{]", path)
    return stream.input.format.lower() == "follow" or not is_file


def _learns_from_rows(policy: Policy) -> bool:
    """Whether it finds by itself how long to wait, and the clock alone never moves time."""
    if isinstance(policy, Cap):
        return policy.behind_clock is None and _learns_from_rows(policy.inner)
    return isinstance(policy, DropRatio | Kim | KimAdhoc | DisorderHistogram)


def _rests(policy: Policy) -> str | None:
    """Which rows a policy holds back for ever in a silence of all sources, in words; None where there are none."""
    if isinstance(policy, Slack) and policy.rows:
        return f"the last {policy.rows} rows are held back"
    if isinstance(policy, FixedDelay) and policy.delay:
        return "the rows of the last delay are held back"
    if isinstance(policy, EstimatedSkew):
        return "the last rows are held back by estimated bounds"
    if isinstance(policy, Cap):
        return None
    return None
