"""What `/metrics` tells is true, bounded, and all that the dashboard and the alert rules ask for."""

from __future__ import annotations

import json
import queue
import re
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from eventide.api.inputs import ArrowRows
from eventide.endpoint.discovery import Address
from eventide.endpoint.lifecycle import listen
from eventide.engine.local.engine import LocalEngine
from eventide.language.script import read_script
from tests.commands.processes import REPOSITORY
from tests.endpoint.asking import Asked

SCRIPT = """
CREATE STREAM cars (at TIMESTAMP, detector STRING, n INT) TIMESTAMP BY at SOURCE BY detector DELAY 1 second;
CREATE QUERY volumes AS SELECT detector, sum(n) AS n FROM cars [RANGE 1 minute] GROUP BY detector;
"""
MONITORING = REPOSITORY / "monitoring"
MINUTE = 60_000_000


@contextmanager
def engine_of(folder: Path, sources: list[str]) -> Iterator[Asked]:
    """An engine that has one row of each source, the first one a minute behind the others."""
    at = [MINUTE, *[2 * MINUTE] * (len(sources) - 1)]
    rows = pa.table({"at": pa.array(at, pa.timestamp("us", "UTC")), "detector": sources, "n": [1] * len(sources)})
    coming: queue.Queue[pa.RecordBatch | None] = queue.Queue()
    coming.put(rows.cast(rows.schema.set(2, pa.field("n", pa.int32()))).to_batches()[0])
    script = read_script(SCRIPT)
    inputs = {"cars": ArrowRows(script.program.stream("cars"), iter(coming.get, None), waits=True)}
    with LocalEngine(script.program, str(folder / "state"), inputs=inputs) as engine:
        endpoint = listen(engine, Address())
        engine.start()
        while engine.status().round < 0:
            assert not engine.ended.is_set(), engine.failure
            time.sleep(0.01)
        yield Asked(engine, endpoint, coming)
        coming.put(None)


def scraped(engine: Asked) -> list[Sample]:
    head = engine.head("GET /metrics HTTP/1.1").encode()
    with engine.connect() as connection:
        connection.sendall(head)
        came = b""
        while piece := connection.recv(65536):
            came += piece
    said, _, body = came.partition(b"\r\n\r\n")
    assert said.startswith(b"HTTP/1.1 200 ")
    assert b"content-type: text/plain; version=0.0.4; charset=utf-8" in said
    return [sample for family in text_string_to_metric_families(body.decode()) for sample in family.samples]


def value(samples: list[Sample], name: str, **labels: str) -> float:
    [found] = [one.value for one in samples if one.name == name and one.labels == labels]
    return found


def test_metrics_say_what_the_status_says(tmp_path: Path) -> None:
    with engine_of(tmp_path, ["north", "south", 'quoted "\n\\']) as engine:
        samples, status = scraped(engine), engine.engine.status()
        stream = status.streams[0]
        assert stream.heartbeat is not None
        assert value(samples, "eventide_rows_total", stream="cars") == 3
        assert value(samples, "eventide_late_rows_total", stream="cars") == stream.late
        assert value(samples, "eventide_rejected_rows_total", stream="cars") == 0
        beat = value(samples, "eventide_heartbeat_timestamp_seconds", stream="cars", source="")
        assert beat == stream.heartbeat / 1_000_000
        north = value(samples, "eventide_heartbeat_timestamp_seconds", stream="cars", source="north")
        odd = value(samples, "eventide_heartbeat_timestamp_seconds", stream="cars", source='quoted "\n\\')
        assert north <= odd
        assert value(samples, "eventide_source_silence_seconds", stream="cars", source="north") >= 0
        assert value(samples, "eventide_state_bytes", operator="volumes", place="driver") > 0
        assert value(samples, "eventide_rounds_total") == status.round + 1
        work = status.work["volumes"]
        assert value(samples, "eventide_operator_rows_in_total", operator="volumes") == work.rows_in == 3
        assert value(samples, "eventide_operator_rows_out_total", operator="volumes") == work.rows_out
        assert value(samples, "eventide_operator_seconds_total", operator="cars") == status.work["cars"].seconds > 0
        assert value(samples, "eventide_round_seconds_count", step="reduce") == status.round + 1
        assert abs(value(samples, "eventide_last_round_timestamp_seconds") - time.time()) < 60


def test_thousands_of_sources_make_no_thousands_of_lines(tmp_path: Path) -> None:
    with engine_of(tmp_path, [f"detector {n}" for n in range(3000)]) as engine:
        samples = scraped(engine)
        assert value(samples, "eventide_sources", stream="cars") == 3000
        sources = {one.labels["source"] for one in samples if "source" in one.labels}
        assert len(sources) == 11
        assert "detector 0" in sources
        assert len(samples) < 250


def expressions() -> list[str]:
    dashboard = json.loads((MONITORING / "grafana-dashboard.json").read_text())
    rules = yaml.safe_load((MONITORING / "prometheus-alerts.yml").read_text())["groups"][0]["rules"]
    shown = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    return [one.replace("$instance", ".*") for one in shown] + [rule["expr"] for rule in rules]


def test_dashboard_and_alerts_ask_for_metrics_that_there_are(tmp_path: Path) -> None:
    with engine_of(tmp_path, ["north", "south"]) as engine:
        found = {one.name for one in scraped(engine)}
    # No early result has been scored, no source is left out, nothing is permitted, read from Kafka, or not as expected.
    known = found | {"eventide_early_error_ratio", "eventide_sources_left_out", "eventide_permitted_drop_ratio"}
    known |= {"eventide_alerts", "eventide_alerts_raised_total", "eventide_backlog_rows"}
    asked = {name for one in expressions() for name in re.findall(r"eventide_\w+", one)}
    assert asked <= known
    page = (REPOSITORY / "docs" / "metrics.md").read_text()
    families = {re.sub(r"_(bucket|sum|count)$", "", name) for name in known if not name.endswith("_created")}
    assert {name for name in families if f"`{name}`" not in page} == set()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("prometheus") is None, reason="Prometheus is not installed (Debian: prometheus)")
def test_a_real_prometheus_scrapes_with_the_token_and_answers_every_question(tmp_path: Path) -> None:
    subprocess.run(["promtool", "check", "rules", str(MONITORING / "prometheus-alerts.yml")], check=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with engine_of(tmp_path, ["north", "south"]) as engine:
        address = engine.endpoint.address
        config = {
            "global": {"scrape_interval": "1s"},
            "rule_files": [str(MONITORING / "prometheus-alerts.yml")],
            "scrape_configs": [
                {
                    "job_name": "eventide",
                    "authorization": {"credentials_file": str(engine.endpoint.token_file)},
                    "static_configs": [{"targets": [f"{address.host}:{address.port}"]}],
                }
            ],
        }
        (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(config))
        command = ["prometheus", f"--config.file={tmp_path / 'prometheus.yml'}"]
        command += [f"--storage.tsdb.path={tmp_path / 'db'}", f"--web.listen-address=127.0.0.1:{port}"]
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        try:
            url = f"http://127.0.0.1:{port}/api/v1/query?"

            def ask(expression: str) -> list[object]:
                with urllib.request.urlopen(url + urllib.parse.urlencode({"query": expression}), timeout=10) as answer:
                    found = json.load(answer)
                assert found["status"] == "success", expression
                return list(found["data"]["result"])

            for _ in range(300):
                try:
                    if ask("eventide_rows_total") and ask("up == 1"):
                        break
                except OSError:
                    pass
                time.sleep(0.1)
            else:
                raise AssertionError("nothing was scraped")
            for expression in expressions():
                ask(expression)
            assert ask('eventide_heartbeat_timestamp_seconds{source="north"}')
        finally:
            process.terminate()
            process.wait()
