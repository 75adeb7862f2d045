"""An engine in Prometheus' text form: what `/metrics` answers.

Law: a scrape reads the last committed round and never waits for one. The number of lines is bounded, whatever
the number of sources: of each stream the combined heartbeat, and the `SOURCES` that are furthest behind. Counters never
fall while an engine runs; those of rows go on after a restart from the checkpoint.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from eventide.endpoint.round_counts import BUCKETS, RoundCounts, RoundTotals
from eventide.engine.introspection.status import Status, StreamStatus, source_times
from eventide.engine.introspection.why import ProgressReport
from eventide.engine.running import Running
from eventide.eventtime.instant import EDGE
from eventide.eventtime.policies.drop_ratio.policy import permitted_ratio
from eventide.eventtime.policies.skew.declared import declared_loss
from eventide.plan.declared.stream import Stream, TimeKind
from eventide.watch.watching import Watch, watched

SOURCES = 10
"""So many sources of a stream are shown, the furthest behind."""
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECOND = 1_000_000
"""Instants."""

Values = Mapping[Any, float | None]
"""By a label, or several; what is not known is None, and left out."""


class Metrics(Collector):
    """Tells how an engine stands whenever it is scraped."""

    def __init__(self, running: Running, counts: RoundCounts) -> None:
        self._running, self._counts = running, counts

    def text(self) -> bytes:
        """All metrics, as Prometheus reads them."""
        registry = CollectorRegistry()
        registry.register(self)
        return generate_latest(registry)

    def collect(self) -> Iterator[Metric]:
        """The metrics; called by the registry."""
        engine, status = self._running.engine, self._running.status()
        streams = {one.name: one for one in engine.program.streams}
        progress = engine.state.progress(engine.program, engine.scheduling)
        yield _gauge("engine_info", "The engine that runs.", "engine", {status.engine: 1})
        yield from _rows(status)
        yield from _times([(one, streams[one.name]) for one in status.streams], progress)
        yield from _ratios(status, streams)
        yield from _state(status)
        yield from _work(status)
        yield from _rounds(status, self._counts.now())
        yield from _alerts(watched(self._running))


def _rows(status: Status) -> Iterator[Metric]:
    for name, of, words in (
        ("rows", "rows", "Rows that came."),
        ("wanted_rows", "wanted", "Rows that some query wanted."),
        ("late_rows", "late", "Rows that came after what they belong to was closed."),
        ("revising_rows", "revising", "Rows that came late and revised results."),
        ("rejected_rows", "rejected", "Rows that could not be read or computed."),
    ):
        yield _counter(name, words, "stream", {one.name: getattr(one, of) for one in status.streams})


def _times(streams: list[tuple[StreamStatus, Stream]], progress: ProgressReport | None) -> Iterator[Metric]:
    """Heartbeats, lags and silences; of streams whose times are numbers, in these numbers."""
    seconds: dict[tuple[str, str], float | None] = {}
    numbers: dict[tuple[str, str], float | None] = {}
    silences: dict[tuple[str, str], float | None] = {}
    for status, stream in streams:
        into, unit = (numbers, 1) if stream.time_kind is TimeKind.SEQUENCE else (seconds, SECOND)
        into[status.name, ""] = _in(status.heartbeat, unit)
        if progress is None or not stream.source:
            # It is its own only source, and shown already.
            continue
        found = source_times(progress, stream)
        for source in found.furthest_behind(SOURCES):
            name, beat = found.name(source), int(found.heartbeats[source])
            into[status.name, name] = _in(beat if abs(beat) < EDGE else None, unit)
            if stream.arrival is None:
                silences[status.name, name] = _in(found.silent(source), SECOND)
    both, some = ("stream", "source"), f"of all sources together and of the {SOURCES} furthest behind"
    yield _gauge("heartbeat_timestamp_seconds", f"Heartbeat (watermark), {some}.", both, seconds)
    yield _gauge("heartbeat_sequence", f"Heartbeat of streams whose times are numbers, {some}.", both, numbers)
    lags = {one.name: _in(one.lag, SECOND) for one, of in streams if of.time_kind is not TimeKind.SEQUENCE}
    yield _gauge("event_time_lag_seconds", "How far the heartbeat is behind the latest row.", "stream", lags)
    words = f"How long a source has not been heard, of the {SOURCES} furthest behind."
    yield _gauge("source_silence_seconds", words, both, silences)
    known = {one.name: float(one.sources) for one, _ in streams}
    yield _gauge("sources", "Sources that have been heard, or are expected.", "stream", known)
    left_out = {(one.name, str(out["rule"])): float(out["count"]) for one, _ in streams for out in one.left_out}
    yield _gauge("sources_left_out", "Sources that nobody waits for, by rule.", ("stream", "rule"), left_out)


def _ratios(status: Status, streams: Mapping[str, Stream]) -> Iterator[Metric]:
    for name, of, words in (
        ("drop_ratio", "drop_ratio", "Share of wanted rows that were late, over all time."),
        ("recent_drop_ratio", "recent_drop_ratio", "Share of wanted rows that were late, lately."),
    ):
        yield _gauge(name, words, "stream", {one.name: getattr(one, of) for one in status.streams})
    permitted = {name: permitted_ratio(stream.policy) for name, stream in streams.items()}
    permitted |= {name: loss for name, one in streams.items() if (loss := declared_loss(one.policy)) is not None}
    yield _gauge("permitted_drop_ratio", "Share of rows that may be late, by DRATIO or bounds.", "stream", permitted)
    errors = {one.name: (one.early or {}).get("recent") for one in status.queries}
    yield _gauge("early_error_ratio", "Mean error of recent early results, by the final ones.", "query", errors)


def _state(status: Status) -> Iterator[Metric]:
    labels = ("operator", "place")
    sizes = {(one.name, one.placement): float(one.state_bytes) for one in status.queries}
    yield _gauge("state_bytes", "Size of the state kept.", labels, sizes)
    rows = {(one.name, one.placement): float(one.state_rows) for one in status.queries}
    yield _gauge("state_rows", "Rows of state kept.", labels, rows)
    opened = {one.name: float(one.open_slices) for one in status.queries}
    yield _gauge("open_slices", "Panes that hold something and are not closed.", "operator", opened)


def _work(status: Status) -> Iterator[Metric]:
    """What the heartbeats of Gigascope carry: rows in and out of each stream and operator, and its cost."""
    for name, of, words in (
        ("operator_rows_in", "rows_in", "Rows that came into a stream or operator since the start."),
        ("operator_rows_out", "rows_out", "Rows that came out of a stream or operator since the start."),
        ("operator_seconds", "seconds", "Seconds that a stream took to be read, or an operator to emit."),
    ):
        yield _counter(name, words, "operator", {step: float(getattr(one, of)) for step, one in status.work.items()})
    backlog = {one.name: float(sum(one.backlog.values())) for one in status.streams if one.backlog}
    yield _gauge("backlog_rows", "Records that wait to be read, where the local engine reads Kafka.", "stream", backlog)


def _rounds(status: Status, counted: RoundTotals) -> Iterator[Metric]:
    yield _counter("rounds", "Rounds committed.", (), {(): status.round + 1})
    words = "When the last round was committed, by the clock of this machine."
    yield _gauge("last_round_timestamp_seconds", words, (), {(): counted.last_round})
    yield _counter("results", "Results since the start, early ones included.", "query", counted.results)
    steps = HistogramMetricFamily("eventide_round_seconds", "Seconds that each step of a round took.", labels=["step"])
    for step, counts in counted.steps.items():
        edges = [*map(str, BUCKETS), "+Inf"]
        steps.add_metric([step], list(zip(edges, accumulate(counts), strict=True)), counted.seconds[step])
    yield steps


def _alerts(found: Watch | None) -> Iterator[Metric]:
    """How many alerts stand, and how many were raised; nothing where nobody watches the engine."""
    if found is None:
        return
    standing = Counter((one.kind, one.of) for one in found.board.standing)
    yield _gauge("alerts", "Alerts that stand now.", ("kind", "of"), {key: float(n) for key, n in standing.items()})
    raised = {kind: float(number) for kind, number in found.board.raised.items()}
    yield _counter("alerts_raised", "Alerts raised since the start.", "kind", raised)


def _gauge(name: str, words: str, labels: str | tuple[str, ...], values: Values) -> Metric:
    return _filled(GaugeMetricFamily(f"eventide_{name}", words, labels=_several(labels)), values)


def _counter(name: str, words: str, labels: str | tuple[str, ...], values: Values) -> Metric:
    return _filled(CounterMetricFamily(f"eventide_{name}", words, labels=_several(labels)), values)


def _filled(family: GaugeMetricFamily | CounterMetricFamily, values: Values) -> Metric:
    for label, value in values.items():
        if value is not None:
            family.add_metric(_several(label), value)
    return family


def _several(label: str | tuple[str, ...]) -> list[str]:
    return [label] if isinstance(label, str) else list(label)


def _in(instants: int | None, unit: int) -> float | None:
    return None if instants is None else instants / unit
