"""Where results come from, told to a catalogue of data: START, and COMPLETE or FAIL events of OpenLineage, by the plan.

Laws. An engine is one run of one job, whose inputs are what its streams read and whose outputs are what its queries
write into; what has no place outside (standard input, a screen, memory) is no dataset. Datasets are named as
OpenLineage's naming conventions say, and columns as far as the plan knows them. A run that somebody stopped is complete
as far as it came. Nobody waits for a catalogue but the end of the run, and that a few seconds.

>>> dataset("parquet", "s3a://bucket/in/cars", {}).data()
{'namespace': 's3a://bucket', 'name': 'in/cars'}
>>> dataset("kafka", None, {"kafka.bootstrap.servers": "b1:9092,b2:9092", "subscribe": "cars"}).data()
{'namespace': 'kafka://b1:9092', 'name': 'cars'}
>>> dataset("postgres", "speeds", {"url": "postgresql://eve:hunter2@db/roads"}).data()
{'namespace': 'postgres://db:5432', 'name': 'roads.public.speeds'}
>>> dataset("stdin", None, {}) is None
True
"""

from __future__ import annotations

import json
import logging
import os
import threading
import urllib.request
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from eventide.engine.round.report import RoundReport
from eventide.engine.round.results import schema_of
from eventide.engine.running import Running
from eventide.masking import masked_text
from eventide.plan.declared.lineage import lineage
from eventide.plan.declared.program import Program
from eventide.plan.expressions.columns import Column
from eventide.sources.arrow_types import spark_type_of

log = logging.getLogger(__name__)

PRODUCER = "urn:eventide"
SPEC = "https://openlineage.io/spec"
EVENT_SCHEMA = f"{SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent"
PATH = "/api/v1/lineage"
SECONDS = 5.0
"""How long a catalogue may take for an event."""
NAMESPACE = "eventide"

Json = dict[str, Any]


@dataclass(frozen=True)
class Dataset:
    """Data in some place, by OpenLineage's naming."""

    namespace: str
    name: str

    def data(self) -> Json:
        """Namespace and name."""
        return {"namespace": self.namespace, "name": self.name}


def dataset(format: str, path: str | None, options: Mapping[str, str]) -> Dataset | None:
    """The data that an input reads or an output writes; None where it has no place outside the process."""
    kind, given = format.lower(), {name.lower(): value for name, value in options.items()}
    if kind == "kafka":
        servers = given.get("kafka.bootstrap.servers") or given.get("servers") or ""
        topic = path or given.get("subscribe") or given.get("topic") or given.get("subscribepattern")
        return None if topic is None else Dataset(f"kafka://{servers.split(',')[0]}", topic)
    if kind in ("postgres", "jdbc"):
        parts = urlsplit(given.get("url", "").removeprefix("jdbc:"))
        table = path or given.get("dbtable") or given.get("table")
        if table is None or not parts.hostname:
            return None
        scheme = "postgres" if parts.scheme.startswith("postgres") else parts.scheme
        port = parts.port or (5432 if scheme == "postgres" else None)
        names = table.split(".") if "." in table else ["public", table] if scheme == "postgres" else [table]
        place = f"{scheme}://{parts.hostname}" + (f":{port}" if port else "")
        return Dataset(place, ".".join([parts.path.strip("/"), *names]))
    if path is None:
        return None
    if kind == "iceberg" and "://" not in path and "/" not in path:
        return Dataset(masked_text(given.get("warehouse") or given.get("uri") or "iceberg"), path)
    parts = urlsplit(path)
    if parts.scheme and parts.scheme != "file":
        return Dataset(f"{parts.scheme}://{parts.netloc}", parts.path.strip("/"))
    return Dataset("file", str(Path(parts.path if parts.scheme else path).absolute()))


@dataclass(frozen=True)
class Job:
    """What runs: its name, the text of its script, and where the results of each query go."""

    name: str
    sql: str | None
    outputs: Mapping[str, Dataset]
    bounded: bool
    namespace: str = NAMESPACE


class Lineage:
    """Makes the events of one run."""

    def __init__(self, job: Job, running: Running, now: Callable[[], datetime]) -> None:
        self._job, self._now = job, now
        self._engine = running.engine
        self._program: Program = running.engine.program
        self._run = str(uuid.uuid4())
        self._results: Counter[str] = Counter()
        found = {
            stream.name: dataset(stream.input.format, stream.input.path, dict(stream.input.options))
            for stream in self._program.streams
            if stream.input is not None
        }
        self._inputs = {name: one for name, one in found.items() if one is not None}

    def count(self, work: RoundReport) -> None:
        """Take the results of a round into account."""
        for name, results in work.results.items():
            self._results[name] += results.rows

    def event(self, kind: str, error: BaseException | None = None) -> Json:
        """An event of this run."""
        engine = {"name": f"eventide on {self._engine.backend.name}", "version": version("eventide")}
        run: Json = {"processing_engine": _facet("1-1-1", "ProcessingEngineRunFacet", engine)}
        if error is not None:
            said = {"message": masked_text(str(error)), "programmingLanguage": "PYTHON"}
            run["errorMessage"] = _facet("1-0-1", "ErrorMessageRunFacet", said)
        processing = "BATCH" if self._job.bounded else "STREAMING"
        about = {"processingType": processing, "integration": "EVENTIDE", "jobType": "SCRIPT"}
        job: Json = {"jobType": _facet("2-0-3", "JobTypeJobFacet", about)}
        if self._job.sql is not None:
            job["sql"] = _facet("1-0-1", "SQLJobFacet", {"query": masked_text(self._job.sql)})
        return {
            "eventType": kind,
            "eventTime": self._now().isoformat().replace("+00:00", "Z"),
            "producer": PRODUCER,
            "schemaURL": EVENT_SCHEMA,
            "run": {"runId": self._run, "facets": run},
            "job": {"namespace": self._job.namespace, "name": self._job.name, "facets": job},
            "inputs": [self._input(name, one) for name, one in self._inputs.items()],
            "outputs": [self._output(name, one, ends=kind != "START") for name, one in self._job.outputs.items()],
        }

    def _input(self, stream: str, place: Dataset) -> Json:
        declared = self._program.stream(stream)
        return place.data() | {"facets": {"schema": _schema(declared.columns)}}

    def _output(self, query: str, place: Dataset, ends: bool) -> Json:
        schema = schema_of(self._engine.plan, query)
        columns = [Column(field.name, spark_type_of(field.type)) for field in schema]
        origins = lineage(self._program).get(query, {})
        fields = {
            name: {
                "inputFields": [
                    self._inputs[stream].data() | {"field": column}
                    for stream, column in sorted(origins[name])
                    if stream in self._inputs
                ]
            }
            for name in (column.name for column in columns)
            if origins.get(name)
        }
        facets = {
            "schema": _schema(columns),
            "columnLineage": _facet("1-2-0", "ColumnLineageDatasetFacet", {"fields": fields}),
        }
        found = place.data() | {"facets": facets}
        if ends:
            rows = _facet("1-0-2", "OutputStatisticsOutputDatasetFacet", {"rowCount": self._results[query]})
            found["outputFacets"] = {"outputStatistics": rows}
        return found


def _schema(columns: Any) -> Json:
    return _facet("1-1-1", "SchemaDatasetFacet", {"fields": [{"name": one.name, "type": one.type} for one in columns]})


def _facet(number: str, name: str, values: Json) -> Json:
    return {"_producer": PRODUCER, "_schemaURL": f"{SPEC}/facets/{number}/{name}.json#/$defs/{name}", **values}


def sender(to: str) -> Callable[[Json], None]:
    """Takes events to a file, as lines, or to the catalogue at an address."""
    if not to.startswith(("http://", "https://")):
        file = Path(to.removeprefix("file://"))

        def append(event: Json) -> None:
            with file.open("a", encoding="utf-8") as opened:
                opened.write(json.dumps(event) + "\n")

        return append
    parts = urlsplit(to)
    path = parts.path.rstrip("/")
    url = to.rstrip("/") if path else to.rstrip("/") + "/" + os.environ.get("OPENLINEAGE_ENDPOINT", PATH).strip("/")
    headers = {"Content-Type": "application/json"}
    if key := os.environ.get("OPENLINEAGE_API_KEY"):
        headers["Authorization"] = f"Bearer {key}"

    def post(event: Json) -> None:
        request = urllib.request.Request(url, json.dumps(event).encode(), headers, method="POST")
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            answer.read(1024)

    return post


def export(running: Running, job: Job, to: str, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
    """Tell of a run that is about to start, and of its end; to a file, or the address of a catalogue."""
    told, send = Lineage(job, running, now), sender(to)
    turn = threading.Lock()

    def tell(event: Json) -> None:
        with turn:
            try:
                send(event)
            except (OSError, ValueError) as error:
                where = masked_text(to)
                log.warning("lineage was not taken by %s: %s", where, error, extra={"event": "lineage not taken"})

    def ended() -> None:
        started.join(2 * SECONDS)
        failed = running.failure
        tell(told.event("COMPLETE") if failed is None else told.event("FAIL", failed))

    started = threading.Thread(target=tell, args=(told.event("START"),), name="eventide-lineage", daemon=True)
    started.start()
    running.on_round(told.count)
    running.on_end(ended)
