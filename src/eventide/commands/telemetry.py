"""What a run tells others of its work: every decision into a file, spans to a collector, lineage to a catalogue.

Law: what is not asked for is not loaded. The standard variables of OpenTelemetry and OpenLineage are asked as well as
the options.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from eventide.engine.running import Running
from eventide.engine.scheduling.trace import Trace
from eventide.errors import DeclarationError
from eventide.language.script import Script
from eventide.launch.logs import say
from eventide.masking import masked_text

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
BY_VARIABLES = ""
"""In the place of an address: OpenTelemetry reads it from its variables."""
INSTALL = "install eventide[otel]"


@contextmanager
def written_to(file: str | None) -> Iterator[Trace | None]:
    """A trace that is written to a file as it grows; None where no file is given.

    >>> with written_to(None) as trace:
    ...     print(trace)
    None
    """
    if file is None:
        yield None
        return
    try:
        opened = Path(file).open("w", encoding="utf-8", buffering=1)  # noqa: SIM115
    except OSError as error:
        raise DeclarationError(f"cannot write the trace to {file}: {error.strerror}; name another file") from error
    with opened:
        yield lambda line: print(line.as_json(), file=opened)


def otlp_endpoint(given: str | None) -> str | None:
    """Where spans go: the address of the option, or that of the variables; None where nobody wants any.

    >>> otlp_endpoint("127.0.0.1:4318")
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: --otlp '127.0.0.1:4318' is no address: write http://HOST:4318
    """
    if given is not None and not given.startswith(("http://", "https://")):
        raise DeclarationError(f"--otlp {masked_text(given)!r} is no address: write http://HOST:4318")
    installed = find_spec("opentelemetry") is not None and find_spec("opentelemetry.sdk") is not None
    if given is not None and not installed:
        raise DeclarationError(f"--otlp sends spans of OpenTelemetry, which is not here: {INSTALL}")
    variables = any(os.environ.get(name) for name in ENDPOINTS) and not _disabled()
    if given is None and variables and not installed:
        say(f"{ENDPOINTS[1]} is set, and OpenTelemetry is not here: {INSTALL} to send spans")
        return None
    return given if given is not None else BY_VARIABLES if variables else None


def _disabled() -> bool:
    """Whether the variables that may turn spans off do."""
    sdk, exporter = os.environ.get("OTEL_SDK_DISABLED", ""), os.environ.get("OTEL_TRACES_EXPORTER", "otlp")
    return sdk.lower() == "true" or "otlp" not in exporter


def send_spans(engine: Running, endpoint: str) -> None:
    """Send a span for every round, and heartbeat traces, to a collector."""
    # Loaded by whoever wants spans.
    from eventide.telemetry.otel import export_otlp

    export_otlp(engine, endpoint or None)


def lineage_place(given: str | None) -> str | None:
    """Where lineage goes: a file, or the address of a catalogue; None where nobody wants any.

    >>> lineage_place("ftp://catalogue")
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: --lineage 'ftp://catalogue' is neither a file nor an address: write http://HOST:5000
    """
    if given is not None and "://" in given and not given.startswith(("http://", "https://", "file://")):
        raise DeclarationError(
            f"--lineage {masked_text(given)!r} is neither a file nor an address: write http://HOST:5000"
        )
    if given is not None:
        return given
    disabled = os.environ.get("OPENLINEAGE_DISABLED", "").lower() == "true"
    return None if disabled else os.environ.get("OPENLINEAGE_URL") or None


def send_lineage(engine: Running, to: str, script: Script, text: str, name: str, bounded: bool) -> None:
    """Tell a catalogue what the run reads and writes, and how it ends."""
    # Loaded by whoever wants lineage.
    from eventide.telemetry.openlineage import NAMESPACE, Job, dataset, export

    written = {one.query: dataset(one.kind, one.path, dict(one.options)) for one in script.outputs}
    outputs = {query: place for query, place in written.items() if place is not None}
    namespace = os.environ.get("OPENLINEAGE_NAMESPACE") or NAMESPACE
    export(engine, Job(name, text, outputs, bounded, namespace), to)
