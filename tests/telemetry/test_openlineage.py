"""Lineage told to a catalogue: what is read and written, which column comes from which, and how a run ends."""

from __future__ import annotations

import json
import queue
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import eventide
from eventide.commands.telemetry import lineage_place
from eventide.language.script import read_script
from eventide.plan.declared.lineage import lineage
from tests.commands.processes import QUERY, ROWS, STREAM, Here
from tests.telemetry.test_heartbeat_traces import played

SCRIPT = STREAM + "CREATE QUERY people AS " + QUERY.rstrip().rstrip(";") + " INTO 'out' FORMAT json;\n"


def events_in(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_a_run_tells_a_file_what_it_reads_and_writes(tmp_path: Path, here: Here) -> None:
    (tmp_path / "doors.csv").write_text(ROWS, encoding="utf-8")
    (tmp_path / "doors.sql").write_text(SCRIPT, encoding="utf-8")
    ran = here("run", "doors.sql", "--engine", "local", "--lineage", "lineage.jsonl")
    assert ran.code == 0, ran.err
    start, complete = events_in(tmp_path / "lineage.jsonl")
    assert (start["eventType"], complete["eventType"]) == ("START", "COMPLETE")
    assert start["run"]["runId"] == complete["run"]["runId"]
    assert (complete["job"]["name"], complete["job"]["facets"]["jobType"]["processingType"]) == ("doors.sql", "BATCH")
    assert "CREATE STREAM doors" in complete["job"]["facets"]["sql"]["query"]
    [read] = complete["inputs"]
    assert (read["namespace"], read["name"]) == ("file", str(tmp_path / "doors.csv"))
    assert read["facets"]["schema"]["fields"][1] == {"name": "door", "type": "STRING"}
    [written] = complete["outputs"]
    assert (written["namespace"], written["name"]) == ("file", str(tmp_path / "out"))
    assert written["outputFacets"]["outputStatistics"]["rowCount"] == 4
    of = written["facets"]["columnLineage"]["fields"]["people"]["inputFields"]
    assert of == [{"namespace": "file", "name": str(tmp_path / "doors.csv"), "field": "people"}]


def test_a_run_that_fails_says_so(tmp_path: Path) -> None:
    rows = tmp_path / "in"
    rows.mkdir()
    (rows / "a.json").write_text('{"t": 1, "v": 1}\n', encoding="utf-8")

    class Refusing:
        def emit(self, results: object) -> None:
            raise OSError("the disk is full")

        def rewind(self, query: str, last: int) -> None:
            pass

        def close(self) -> None:
            pass

    text = f"CREATE STREAM s (t BIGINT, v INT) FROM json '{rows}' TIMESTAMP BY t DELAY 0;"
    script = eventide.sql(text + "CREATE QUERY q AS SELECT sum(v) AS n FROM s [RANGE 1];")
    told = tmp_path / "lineage.jsonl"
    with script.start({"q": Refusing()}, engine="local", bounded=False) as running:
        running.export_lineage(str(told), "sums")
        with pytest.raises(eventide.EventideError):
            running.awaitTermination()
    events = events_in(told)
    assert [one["eventType"] for one in events] == ["START", "FAIL"]
    assert "the disk is full" in events[1]["run"]["facets"]["errorMessage"]["message"]


def test_a_catalogue_is_sent_both_events_with_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    came: queue.Queue[tuple[str, str | None, dict[str, Any]]] = queue.Queue()

    class Taking(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            came.put((self.path, self.headers.get("Authorization"), json.loads(body)))
            self.send_response(201)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Taking)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("OPENLINEAGE_API_KEY", "k")
    from eventide.telemetry.openlineage import Job, export

    with played(tmp_path) as run:
        export(run.engine, Job("j", None, {}, bounded=False), f"http://127.0.0.1:{server.server_address[1]}")
        run.round(a=1, b=5)
    server.shutdown()
    server.server_close()
    told = [came.get_nowait() for _ in range(2)]
    assert [(path, key) for path, key, _ in told] == [("/api/v1/lineage", "Bearer k")] * 2
    assert [event["eventType"] for _, _, event in told] == ["START", "COMPLETE"]


def test_the_standard_variables_say_where_lineage_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENLINEAGE_URL", "OPENLINEAGE_DISABLED"):
        monkeypatch.delenv(name, raising=False)
    assert lineage_place(None) is None
    monkeypatch.setenv("OPENLINEAGE_URL", "http://catalogue:5000")
    assert lineage_place(None) == "http://catalogue:5000"
    assert lineage_place("here.jsonl") == "here.jsonl"
    monkeypatch.setenv("OPENLINEAGE_DISABLED", "true")
    assert lineage_place(None) is None


JOINED = """
CREATE STREAM a (t BIGINT, k STRING, v INT) TIMESTAMP BY t DELAY 0;
CREATE STREAM b (t BIGINT, k STRING, w INT) TIMESTAMP BY t DELAY 0;
CREATE QUERY pairs AS SELECT a.t AS t, a.k AS k, a.v + b.w AS both FROM a JOIN b ON a.k = b.k AND a.t = b.t;
CREATE QUERY some AS SELECT * FROM pairs WHERE both > 1;
CREATE QUERY sums AS SELECT k, sum(both) / count(*) AS mean FROM some [RANGE 10] GROUP BY k;
"""


def test_columns_are_followed_through_joins_filters_and_groups() -> None:
    found = lineage(read_script(JOINED).program)
    assert found["sums"] == {"k": {("a", "k")}, "mean": {("a", "v"), ("b", "w")}}
    assert found["some"]["t"] == {("a", "t")}


@given(st.lists(st.lists(st.sets(st.integers(0, 3), min_size=1), min_size=4, max_size=4), max_size=5))
def test_origins_through_levels_are_those_of_brute_force(levels: list[list[set[int]]]) -> None:
    text, read = ["CREATE STREAM s (t BIGINT, c0 INT, c1 INT, c2 INT, c3 INT) TIMESTAMP BY t DELAY 0"], "s"
    known = [{number} for number in range(4)]
    for depth, columns in enumerate(levels):
        values = (" + ".join(f"c{one}" for one in sorted(of)) + f" AS c{number}" for number, of in enumerate(columns))
        text.append(f"CREATE QUERY q{depth} AS SELECT t, {', '.join(values)} FROM {read}")
        read, known = f"q{depth}", [set().union(*(known[one] for one in of)) for of in columns]
    found = lineage(read_script(";\n".join(text)).program)[read]
    assert [{int(column[1]) for _, column in found[f"c{number}"]} for number in range(4)] == known
