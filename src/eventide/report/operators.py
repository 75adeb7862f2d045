"""Operators and policies described: as plain data and in words, and which of their outputs carry time.

Law: after heartbeat h of what is read, no later row has a time of h or less; so an output that grows with time is at
least what it is for the instant after h, and one that falls with time at most that. An operator says what it emits,
what it holds and until when; a policy what is promised, and by what.

>>> from eventide.plan.declared.join import Band, Side
>>> near = Join("near", Side("a"), Side("b"), (Band("t", "t", -5, 5),))
>>> [band["words"] for band in bands_of(near, unitless=True)], held_by(near, unitless=True)[0]
(['a.t - 5 <= b.t <= a.t + 5'], 'rows of a until b.t has passed a.t + 5')

>>> from eventide.plan.declared.stream import columns
>>> packets = Stream("packets", columns("time BIGINT, len INT"), time="time")
>>> [one["after"] for one in attributes([("tb", "time div 60"), ("len", "len"), ("back", "-time")], packets)]
['tb >= (h + 1) DIV 60', 'back <= -(h + 1)']
>>> of_stream(packets)[0]["after"], is_same_in(Window(30), "time div 60", packets)
('time > h', True)

>>> in_words(DropRatio(0.01), unitless=False)
'as early as losing at most 1 % of the rows allows'
>>> in_words(Timeout(Slack(10), 5_000_000), unitless=False)
'10 rows are held back; after a common silence of 5 s the largest time seen is promised'
>>> in_words(FixedDelay(20), unitless=True)
'20 behind the largest time seen'
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from sqlglot import exp

from eventide.errors import DeclarationError
from eventide.eventtime.heartbeat import Policy
from eventide.eventtime.policies.adaptive_window import AdaptiveWindow
from eventide.eventtime.policies.clock_skew import ClockSkew
from eventide.eventtime.policies.delay_quantile import DelayQuantile
from eventide.eventtime.policies.disorder_histogram import DisorderHistogram
from eventide.eventtime.policies.drop_ratio.policy import DropRatio
from eventide.eventtime.policies.fixed_delay import FixedDelay
from eventide.eventtime.policies.kim import Kim, KimAdhoc
from eventide.eventtime.policies.on_demand import OnDemand
from eventide.eventtime.policies.own_progress import OwnProgress
from eventide.eventtime.policies.punctuated import Punctuated
from eventide.eventtime.policies.quality_driven import QualityDriven
from eventide.eventtime.policies.skew.between_streams import BetweenStreams
from eventide.eventtime.policies.skew.declared import DeclaredSkew, declared_loss
from eventide.eventtime.policies.skew.estimated import EstimatedSkew
from eventide.eventtime.policies.slack import Slack
from eventide.eventtime.policies.wrappers.cap import Cap
from eventide.eventtime.policies.wrappers.expected_sources import Expected
from eventide.eventtime.policies.wrappers.future_guard import FutureGuard
from eventide.eventtime.policies.wrappers.idleness import Idle
from eventide.eventtime.policies.wrappers.minimum import Minimum
from eventide.eventtime.policies.wrappers.source_groups import MergedSources, PerGroup
from eventide.eventtime.policies.wrappers.timeout import Timeout
from eventide.plan.binding import BoundOperator
from eventide.plan.bound.lookup import BoundLookup
from eventide.plan.bound.over import BoundOver
from eventide.plan.bound.rows import BoundRows
from eventide.plan.declared.join import Join, JoinKind, Lookup
from eventide.plan.declared.over import Over
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
    return described | {"ordered": operator.ordered, "held": _held_by_rows(operator, bound, runs)}


def bands_of(join: Join, unitless: bool) -> list[dict[str, Any]]:
    """How the times of both sides belong together."""
    found = []
    for band in join.bands:
        left, right = _of(join.left.alias, band.left), _of(join.right.alias, band.right)
        low, high = (None if end is None else _moved(left, end, unitless) for end in (band.low, band.high))
        least, most = "" if low is None else f"{low} <= ", "" if high is None else f" <= {high}"
        words = f"{right} = {low}" if band.low == band.high else f"{least}{right}{most}"
        words = "any" if band.is_endless else words
        found.append({"left": band.left, "right": band.right, "low": band.low, "high": band.high, "words": words})
    return found


def held_by(join: Join, unitless: bool) -> list[str]:
    """Until when the rows of each side are held."""
    if all(band.is_endless for band in join.bands):
        return ["rows of both sides for ever"]
    ends: tuple[list[str], list[str]] = ([], [])
    for band in join.bands if not all(one.is_closed for one in join.bands) else join.bands[:1]:
        left, right = _of(join.left.alias, band.left), _of(join.right.alias, band.right)
        if band.high is not None:
            ends[0].append(f"{right} has passed {_moved(left, band.high, unitless)}")
        if band.low is not None:
            ends[1].append(f"{left} has passed {_moved(right, -band.low, unitless)}")
    alone = {
        JoinKind.SEMI: ", emitted when its first partner is there",
        JoinKind.ANTI: ", then emitted if it had no partner",
    }.get(join.kind, ", then emitted alone if it had no partner")
    return [
        f"rows of {join.left.alias} until {' or '.join(ends[0])}" + (alone if join.kind.keeps_left else ""),
        f"rows of {join.right.alias} until {' or '.join(ends[1])}" + (alone if join.kind.keeps_right else ""),
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
    if isinstance(operator, Over):
        return "over"
    return "merge" if len(operator.inputs) > 1 else "rows"


def _held_by_rows(rows: Rows, bound: BoundOperator | None, runs: bool) -> list[str]:
    if isinstance(rows, Queue):
        return [_held_by_queue(rows)]
    if isinstance(bound, BoundOver):
        return _held_by_over(bound)
    if not runs:
        return ["nothing: whoever reads it reads its inputs"]
    if not rows.ordered:
        return ["nothing: rows go on in the round in which they come"]
    inputs = "the input" if len(rows.inputs) == 1 else "all inputs"
    if rows.simultaneous:
        return [f"each row until no earlier one can come from {inputs}, to be emitted in the order of time alone"]
    return [f"each row until the heartbeat of {inputs} has passed it, to be emitted in the order of time"]


def _held_by_over(bound: BoundOver) -> list[str]:
    """What waits, and what is kept as far as frames reach."""
    reach, unitless = bound.reach, bound.kind is TimeKind.SEQUENCE
    if bound.whole is not None:
        stretch = "its time" if bound.whole.width == 1 else f"its {spoken(bound.whole.width, unitless)}"
        return [f"each row until the heartbeat has passed {stretch}, and the rows of its group are all there"]
    found = ["each row until the heartbeat has passed it, to be emitted in the order of time"]
    if reach.waits:
        rows = [f"{reach.ahead_rows:,} later rows of its group"] if reach.ahead_rows else []
        long = [f"{spoken(reach.ahead_time, unitless)} after it"] if reach.ahead_time else []
        found.append(f"each row until it knows {' and '.join([*rows, *long])}")
    if reach.keeps:
        many = "the last row" if reach.rows == 1 else f"the last {reach.rows:,} rows"
        rows = [f"{many} of each group, for ever"] if reach.rows else []
        long = [f"rows of the last {spoken(reach.time, unitless)}"] if reach.time else []
        found.append(" and ".join([*rows, *long]))
    return found


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
    over = operator.values if isinstance(operator, Over) else ()
    words = {item.name: item.sql for item in (*operator.select, *over)}
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


Length = Callable[[int], str]


def in_words(policy: Policy, unitless: bool) -> str:
    """The attribute in words; `unitless` times are numbers of a sequence, others microseconds."""
    return _words(policy, lambda amount: spoken(amount, unitless))


def _words(policy: Any, length: Length) -> str:
    if isinstance(policy, Timeout | Idle | Cap | FutureGuard | Expected):
        return f"{_words(policy.inner, length)}; {_wrapping(policy, length)}"
    if isinstance(policy, Minimum):
        return "what all of these promise: " + " | ".join(_words(one, length) for one in policy.policies)
    if isinstance(policy, Punctuated):
        inner = "" if policy.inner is None else f", and where that says more, {_words(policy.inner, length)}"
        return f"as far as promises in the data say{inner}"
    if isinstance(policy, BetweenStreams):
        return f"{_words(policy.inner, length)}: {', '.join(map(str, policy.members))}"
    if isinstance(policy, MergedSources | PerGroup):
        return f"for groups of sources: {_words(policy.inner, length)}"
    simple = _simple(policy, length)
    return simple if simple is not None else repr(policy)


def _wrapping(policy: Timeout | Idle | Cap | FutureGuard | Expected, length: Length) -> str:
    if isinstance(policy, Timeout):
        return f"after a common silence of {length(policy.after)} the largest time seen is promised"
    if isinstance(policy, Idle):
        return f"a source that is silent for {length(policy.after)} is not waited for"
    if isinstance(policy, Expected):
        many = f"{len(policy.sources):,} expected source{'' if len(policy.sources) == 1 else 's'}"
        until = "" if policy.wait is None else f", or {length(policy.wait)} have passed"
        return f"nothing is promised before {many} have spoken{until}"
    if isinstance(policy, FutureGuard):
        beyond = "the clock" if policy.against == "clock" else "what other sources have reached"
        return f"rows more than {length(policy.ahead)} beyond {beyond} do not move time"
    limits = [] if policy.rows is None else [f"{policy.rows:,} rows held back"]
    limits += [] if policy.behind_clock is None else [f"{length(policy.behind_clock)} behind the clock"]
    limits += [] if policy.behind_largest is None else [f"{length(policy.behind_largest)} behind the largest time"]
    return f"at most {' and '.join(limits)}"


def _simple(policy: Any, length: Length) -> str | None:
    match policy:
        case DropRatio(ratio, learned):
            start = "" if learned is None else f", from the start as {learned.origin} showed"
            return f"as early as losing at most {100 * ratio:.4g} % of the rows allows{start}"
        case FixedDelay(delay):
            return f"{length(delay)} behind the largest time seen"
        case OwnProgress():
            behind = f"{length(policy.slack)} behind its own largest time" if policy.slack else "its own largest time"
            return f"each source as far as {behind}, all together as far as the slowest"
        case Slack(rows):
            return f"{rows:,} rows are held back"
        case Kim(ratio, slack):
            held = "" if slack is None else f", holding at most {slack:,} rows"
            return f"a buffer for losing about {100 * ratio:.4g} % of the rows (Kim et al.){held}"
        case KimAdhoc(ratio):
            return f"behind the mean time of the latest rows, for losing about {100 * ratio:.4g} % (Kim et al., ad hoc)"
        case ClockSkew(skew):
            return f"{length(skew)} behind the clock"
        case OnDemand(skew):
            return f"the time of a silent source runs on with the clock, {length(skew)} behind"
        case DelayQuantile(quantile, rows):
            return f"behind the clock by the {quantile:.4g} quantile of the delays of the last {rows:,} rows"
        case AdaptiveWindow(quantile):
            return f"behind the clock by the {quantile:.4g} quantile of the delays since they last changed"
        case QualityDriven(ratio):
            return f"behind the largest time by what losing about {100 * ratio:.4g} % of the rows needed of late"
        case DisorderHistogram(quantile):
            return f"each source behind its largest time by the {quantile:.4g} quantile of its own disorder"
        case EstimatedSkew():
            return "by bounds between the sources that are estimated from the data"
        case DeclaredSkew():
            loss = declared_loss(policy)
            may = f", losing at most {100 * loss:.4g} % of the rows of a source" if loss else ""
            ordered = len(policy.skew.in_order)
            order = f", of which {ordered} {'is' if ordered == 1 else 'are'} in order on the way" if ordered else ""
            return f"by declared bounds between {len(policy.skew.latency)} sources{order}{may}"
    return None
