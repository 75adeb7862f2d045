"""Rounds and heartbeats as spans of OpenTelemetry.

Laws. A span is made when what it tells has been committed, with the times at which it happened; so a round never waits
for a span, and one that failed and is run again is told once. A round is a trace of its own: its steps are below it,
streams below `reduce` and operators below `advance`. A heartbeat that was followed to the top is a trace, too: a span
for each stream and operator in which it waited, with links to the rounds in which it came and left. Only this module
loads OpenTelemetry; nobody loads this module who does not want spans.

>>> from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
>>> from opentelemetry.sdk.trace.export import SimpleSpanProcessor
>>> kept, provider = InMemorySpanExporter(), TracerProvider()
>>> provider.add_span_processor(SimpleSpanProcessor(kept))
>>> work = RoundReport(3, 0, {}, {}, {}, {}, {}, times=RoundTimes(100.0, {"commit": (0.0, 0.5)}))
>>> Spans(provider, "local").round(work)
>>> [(span.name, span.start_time, span.end_time) for span in kept.get_finished_spans()]
[('commit', 100000000000, 100500000000), ('round', 100000000000, 100500000000)]
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress

from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import Link, Span, SpanContext, Status, StatusCode, set_span_in_context
from opentelemetry.trace import TracerProvider as AnyProvider

from eventide.engine.round.report import RoundReport, RoundTimes, Stretch
from eventide.engine.running import Running
from eventide.errors import DeclarationError
from eventide.masking import masked_text
from eventide.telemetry.heartbeat_trace import HeartbeatTrace, Moment
from eventide.telemetry.tracing import traced

ROUNDS = 4_096
"""Of so many rounds the spans can be linked to."""
LAST_WORDS = 5.0
"""Seconds that the end of a run waits for spans to be taken."""
NANO = 1_000_000_000
TRACES_PATH = "/v1/traces"

Attributes = Mapping[str, str | int | float]


class Spans:
    """Makes spans of rounds and of heartbeat traces."""

    def __init__(self, provider: AnyProvider, engine: str) -> None:
        self._tracer = provider.get_tracer("eventide")
        self._engine = engine
        self._rounds: OrderedDict[int, SpanContext] = OrderedDict()

    def round(self, work: RoundReport) -> None:
        """A round that was committed."""
        times = work.times
        ends = [end for _, end in times.steps.values()]
        told: Attributes = {
            "eventide.engine": self._engine,
            "eventide.round": work.number,
            "eventide.clock": work.clock,
            "eventide.rows": work.rows,
            "eventide.results": sum(one.rows for one in work.results.values()),
            "eventide.late_rows": work.late_rows(),
            "eventide.rejected_rows": sum(work.rejected.values()),
        }
        whole = self._begun("round", times.began, told)
        self._rounds[work.number] = whole.get_span_context()
        while len(self._rounds) > ROUNDS:
            self._rounds.popitem(last=False)
        for step, stretch in times.steps.items():
            span = self._begun(step, times.began + stretch[0], {"eventide.round": work.number}, whole)
            self._worked(step, work, times, span)
            span.end(_nanos(times.began + stretch[1]))
        whole.end(_nanos(times.began + max(ends, default=0.0)))

    def _worked(self, step: str, work: RoundReport, times: RoundTimes, above: Span) -> None:
        """Who worked in a step: streams while they are read, operators while they advance."""
        for name, stretch in times.turns.items():
            kind = "stream" if name in work.heartbeats else "operator"
            if step == {"stream": "reduce", "operator": "advance"}[kind]:
                self._turn(kind, name, stretch, work, times.began, above)

    def _turn(self, kind: str, name: str, stretch: Stretch, work: RoundReport, began: float, above: Span) -> None:
        told: dict[str, str | int | float] = {f"eventide.{kind}": name}
        if (done := work.work.get(name)) is not None:
            told |= {"eventide.rows_in": done.rows_in, "eventide.rows_out": done.rows_out}
            told["eventide.seconds"] = done.seconds
        self._begun(f"{kind} {name}", began + stretch[0], told, above).end(_nanos(began + stretch[1]))

    def heartbeat(self, trace: HeartbeatTrace) -> None:
        """A heartbeat that has come to the top."""
        told: dict[str, str | int | float] = {"eventide.stream": trace.stream, "eventide.heartbeat": trace.time}
        if trace.source:
            told["eventide.source"] = trace.source
        if trace.over is None or trace.over.at is None or trace.sampled.at is None:
            return
        rounds = {one.round: one for one in (trace.sampled, trace.over)}
        whole = self._begun("heartbeat", trace.sampled.at, told, links=self._links(*rounds.values()))
        for visit in trace.visits:
            if visit.arrived.at is None or visit.left is None or visit.left.at is None:
                continue
            rounds_there = visit.left.round - visit.arrived.round
            about: Attributes = {
                "eventide.step": visit.step,
                "eventide.time": visit.time,
                "eventide.rounds": rounds_there,
            }
            span = self._begun(f"wait {visit.step}", visit.arrived.at, about, whole, self._links(visit.left))
            span.end(_nanos(visit.left.at))
        whole.end(_nanos(trace.over.at))

    def failure(self, error: BaseException) -> None:
        """What ended the run."""
        with self._tracer.start_as_current_span("failure") as span:
            span.set_attribute("error.type", type(error).__name__)
            span.set_status(Status(StatusCode.ERROR, masked_text(str(error).partition("\n")[0])))

    def _begun(
        self, name: str, at: float, told: Attributes, above: Span | None = None, links: list[Link] | None = None
    ) -> Span:
        around = None if above is None else set_span_in_context(above)
        return self._tracer.start_span(name, around, attributes=told, links=links, start_time=_nanos(at))

    def _links(self, *moments: Moment) -> list[Link]:
        return [Link(self._rounds[one.round]) for one in moments if one.round in self._rounds]


def _nanos(seconds: float) -> int:
    return round(seconds * NANO)


def export(running: Running, provider: AnyProvider, ending: Callable[[], object] | None = None) -> None:
    """Tell of an engine to a provider of OpenTelemetry from now on; `ending` is called when the engine has ended."""
    spans = Spans(provider, running.engine.backend.name)
    # The round of a heartbeat's last step comes before the heartbeat, so that there is something to link to.
    running.on_round(spans.round)
    traced(running).listen(spans.heartbeat)

    def ended() -> None:
        if running.failure is not None:
            spans.failure(running.failure)
        if ending is not None:
            with suppress(Exception):
                ending()

    running.on_end(ended)


def otlp_provider(endpoint: str | None) -> TracerProvider:
    """A provider that sends spans over OTLP/HTTP, by OpenTelemetry's standard variables where they are set.

    `endpoint` is the base address of a collector (http://127.0.0.1:4318); None: that of OTEL_EXPORTER_OTLP_ENDPOINT.
    """
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    if endpoint is not None and not endpoint.startswith(("http://", "https://")):
        raise DeclarationError(f"--otlp {endpoint!r} is no address: write http://HOST:4318")
    url = None if endpoint is None else endpoint.rstrip("/").removesuffix(TRACES_PATH) + TRACES_PATH
    told = os.environ.get("OTEL_SERVICE_NAME") or "service.name=" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    provider = TracerProvider(resource=Resource.create(None if told else {SERVICE_NAME: "eventide"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=url)))
    return provider


def export_otlp(running: Running, endpoint: str | None) -> None:
    """Send spans of an engine to a collector until it ends."""
    provider = otlp_provider(endpoint)

    def ending() -> None:
        provider.force_flush(round(LAST_WORDS * 1000))
        provider.shutdown()

    export(running, provider, ending)
