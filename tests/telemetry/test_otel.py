"""Spans of rounds and heartbeats: by OpenTelemetry's own SDK, and once over HTTP to a collector."""

from __future__ import annotations

import gzip
import queue
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

pytest.importorskip("opentelemetry.sdk")

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from eventide.commands.telemetry import BY_VARIABLES, otlp_endpoint
from eventide.engine.round.report import STEPS
from eventide.telemetry import tracing
from eventide.telemetry.otel import export, export_otlp
from tests.telemetry.test_heartbeat_traces import Played, played


def below(spans: list[ReadableSpan], above: ReadableSpan) -> list[ReadableSpan]:
    """The spans right below one, in the order in which they began."""
    context = above.get_span_context()
    found = [span for span in spans if span.parent is not None and span.parent == context]
    return sorted(found, key=lambda span: span.start_time or 0)


def some_rounds(run: Played) -> None:
    run.round(a=1, b=5)
    run.round(a=25)
    run.round(b=30)
    run.round(a=41, b=41)


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[ReadableSpan]:
    """The spans of four rounds, of which every heartbeat is sampled."""
    monkeypatch.setattr(tracing, "EVERY", 0.0)
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with played(tmp_path) as run:
        export(run.engine, provider)
        some_rounds(run)
    return list(exporter.get_finished_spans())


def test_a_round_is_a_span_with_its_steps_streams_and_operators(kept: list[ReadableSpan]) -> None:
    rounds = [span for span in kept if span.name == "round"]
    assert [span.attributes and span.attributes["eventide.round"] for span in rounds] == [0, 1, 2, 3]
    last = rounds[-1]
    assert last.attributes is not None
    assert (last.attributes["eventide.rows"], last.attributes["eventide.late_rows"]) == (2, 0)
    steps = below(kept, last)
    assert tuple(step.name for step in steps) == STEPS
    assert [span.name for span in below(kept, steps[0])] == ["stream s"]
    operators = below(kept, steps[2])
    assert [span.name for span in operators] == ["operator few", "operator more"]
    for above, under in ((last, steps), (steps[2], operators)):
        for span in under:
            assert (above.start_time or 0) <= (span.start_time or 0) <= (span.end_time or 0) <= (above.end_time or 0)


def test_a_heartbeat_is_a_trace_linked_to_the_rounds_it_went_through(kept: list[ReadableSpan]) -> None:
    known = [(span.get_span_context(), span) for span in kept if span.name == "round"]
    rounds = {context.span_id: span for context, span in known if context is not None}
    beats = [span for span in kept if span.name == "heartbeat"]
    whole = next(span for span in beats if span.attributes and span.attributes["eventide.heartbeat"] == 25)
    linked = [rounds[link.context.span_id].attributes for link in whole.links]
    assert [told and told["eventide.round"] for told in linked] == [1, 3]
    waits = below(kept, whole)
    assert [span.name for span in waits] == ["wait s", "wait few", "wait more"]
    assert [span.attributes and span.attributes["eventide.rounds"] for span in waits] == [1, 1, 0]


class Collector:
    """Takes what is sent over OTLP/HTTP."""

    def __init__(self) -> None:
        self.came: queue.Queue[ExportTraceServiceRequest] = queue.Queue()
        came = self.came

        class Taking(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                plain = gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
                assert self.path == "/v1/traces"
                came.put(ExportTraceServiceRequest.FromString(plain))
                self.send_response(200)
                self.send_header("Content-Type", "application/x-protobuf")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Taking)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def test_a_collector_is_sent_every_span_by_the_end_of_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_SERVICE_NAME", raising=False)
    collector = Collector()
    with played(tmp_path) as run:
        export_otlp(run.engine, collector.url)
        some_rounds(run)
    names, services = list[str](), set[str]()
    while not collector.came.empty():
        for found in collector.came.get().resource_spans:
            services |= {one.value.string_value for one in found.resource.attributes if one.key == "service.name"}
            names += [span.name for scope in found.scope_spans for span in scope.spans]
    collector.close()
    assert names.count("round") == 4
    assert {"advance", "operator few", "stream s"} <= set(names)
    assert services == {"eventide"}


def test_the_standard_variables_say_where_spans_go(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_SDK_DISABLED"):
        monkeypatch.delenv(name, raising=False)
    assert otlp_endpoint(None) is None
    assert otlp_endpoint("http://collector:4318") == "http://collector:4318"
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318")
    assert otlp_endpoint(None) == BY_VARIABLES
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")
    assert otlp_endpoint(None) is None
    monkeypatch.delenv("OTEL_TRACES_EXPORTER")
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    assert otlp_endpoint(None) is None


@pytest.mark.slow
def test_who_wants_no_spans_does_not_load_opentelemetry() -> None:
    loads = (
        "import sys, eventide.commands.run, eventide.endpoint.questions, eventide.console.lifecycle, eventide.api.sql"
    )
    program = f"{loads}; sys.exit(any(name.startswith('opentelemetry') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
