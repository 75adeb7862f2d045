"""Failure detection on an engine: what is raised, what clears, and who is told."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.console import Steered
from eventide.endpoint.client import Client
from eventide.endpoint.lifecycle import listen
from eventide.endpoint.metrics import Metrics
from eventide.endpoint.round_counts import RoundCounts
from eventide.engine.local.engine import LocalEngine
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.detection.clock_offset import ClockOffsets
from eventide.eventtime.detection.silence import FACTOR, SourceSilence
from eventide.language.script import read_script
from eventide.watch.alert import Alert
from eventide.watch.watching import watch
from eventide.watch.webhook import Webhook
from examples.freeway import FAST, SILENT
from tests.console.scene import freeway

SECOND = 1_000_000
SCRIPT = """
CREATE STREAM s (ts TIMESTAMP, came TIMESTAMP, who STRING) TIMESTAMP BY ts ARRIVAL BY came SOURCE BY who {policy};
CREATE QUERY q AS SELECT count(*) AS n FROM s [RANGE 1 minute];
"""


def metrics_of(engine: LocalEngine) -> str:
    return Metrics(engine, RoundCounts()).text().decode()


class Played:
    """An engine whose sources speak once a second; `told` has every alert as (kind, source, raised or cleared)."""

    def __init__(self, engine: LocalEngine) -> None:
        self.engine = engine
        self.told: list[tuple[str, str, bool]] = []
        self.words: list[str] = []
        self.second = 0
        watch(engine).board.listen(self._note)

    def _note(self, alert: Alert) -> None:
        self.told.append((alert.kind, alert.who, alert.cleared is None))
        self.words.append(alert.words())

    def play(self, seconds: int, sources: str = "abc", **behind: int) -> None:
        """So many seconds, in which these sources speak, each so many seconds behind the clock."""
        for _ in range(seconds):
            self.second += 1
            at = [(self.second - behind.get(who, 0)) * SECOND for who in sources]
            kind = pa.timestamp("us", "UTC")
            times, came = pa.array(at).cast(kind), pa.array([self.second * SECOND] * len(at)).cast(kind)
            rows = pa.table({"ts": times, "came": came, "who": list(sources)})
            self.engine.noted(self.engine.engine.round({"s": rows}))


@contextmanager
def played(folder: Path, policy: str) -> Iterator[Played]:
    program = read_script(SCRIPT.format(policy=policy)).program
    with LocalEngine(program, str(folder / "state"), inputs={"s": Steered()}) as engine:
        yield Played(engine)


def test_a_source_that_falls_silent_is_told_once_and_clears_when_it_speaks(tmp_path: Path) -> None:
    with played(tmp_path, "DRATIO 1%") as run:
        run.play(20)
        assert run.told == []
        run.play(9, "ab")
        assert run.told == [("silence", "c", True)]
        assert "expected a row within 4 s, by its past" in run.words[0]
        run.play(2)
        assert run.told == [("silence", "c", True), ("silence", "c", False)]


def test_a_declared_silence_is_what_is_permitted(tmp_path: Path) -> None:
    with played(tmp_path, "DELAY 1 second IDLE AFTER 20 seconds") as run:
        run.play(20)
        run.play(19, "ab")
        assert run.told == []
        run.play(5, "ab")
        assert run.told == [("silence", "c", True)]
        assert "(IDLE AFTER)" in run.words[0]


def offsets_after(offsets: ClockOffsets, seconds: range, behind: Callable[[int], int]) -> ClockOffsets:
    """Three sources that speak once a second, with a little noise, the second of them so far behind the clock."""
    for second in seconds:
        at = [second * SECOND - (second * prime % 7) * 100_000 for prime in (3, 5, 11)]
        at[1] -= behind(second) * SECOND
        offsets.note(Arrivals.of_rows(second * SECOND, [0, 1, 2], at))
    return offsets


def test_a_clock_that_jumps_is_told_and_its_time_becomes_usual() -> None:
    offsets = offsets_after(ClockOffsets(), range(100), lambda _: 2)
    assert offsets.jumped().tolist() == []
    offsets_after(offsets, range(100, 120), lambda _: -60)
    assert (offsets.jumped().tolist(), offsets.drifted().tolist()) == ([1], [])
    assert -63 * SECOND <= offsets.distance_of(1) < -40 * SECOND
    offsets_after(offsets, range(120, 1000), lambda _: -60)
    assert (offsets.jumped().tolist(), offsets.drifted().tolist()) == ([], [])


def test_a_clock_that_goes_wrong_little_by_little_is_told() -> None:
    offsets, told = offsets_after(ClockOffsets(), range(100), lambda _: 0), set[int]()
    for second in range(100, 1500, 20):
        offsets_after(offsets, range(second, second + 20), lambda now: (now - 100) // 20)
        told |= {*offsets.drifted().tolist(), *offsets.jumped().tolist()}
    assert told == {1}


def test_a_source_that_breaks_its_promise_is_told(tmp_path: Path) -> None:
    with played(tmp_path, "DELAY 5 seconds") as run:
        run.play(70)
        run.play(8, c=65)
        assert ("bound", "c", True) in run.told
        assert ("bound", "a", True) not in run.told


def test_the_end_of_the_engine_clears_everything(tmp_path: Path) -> None:
    with played(tmp_path, "DRATIO 1%") as run:
        run.play(20)
        run.play(9, "ab")
    assert run.told == [("silence", "c", True), ("silence", "c", False)]


def test_what_a_listener_raises_does_not_stop_the_engine(tmp_path: Path) -> None:
    with played(tmp_path, "DRATIO 1%") as run:

        def fails(alert: Alert) -> None:
            raise ValueError(alert.kind)

        watch(run.engine).board.listen(fails)
        run.play(20)
        run.play(9, "ab")
        assert run.told == [("silence", "c", True)]


def test_alerts_are_asked_over_http_and_counted_as_metrics(tmp_path: Path) -> None:
    with played(tmp_path, "DRATIO 1%") as run:
        endpoint = listen(run.engine)
        client = Client.of_checkpoint(endpoint.folder)
        assert client.ask("GET", "/alerts") == {"standing": [], "recent": []}
        run.play(20)
        run.play(9, "ab")
        [standing] = client.ask("GET", "/alerts")["standing"]
        assert (standing["kind"], standing["of"], standing["who"], standing["cleared"]) == ("silence", "s", "c", None)
        assert 'eventide_alerts{kind="silence",of="s"} 1.0' in metrics_of(run.engine)


def test_a_webhook_is_sent_every_alert_as_json(tmp_path: Path) -> None:
    came: queue.Queue[bytes] = queue.Queue()

    class Taking(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            came.put(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Taking)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with played(tmp_path, "DRATIO 1%") as run:
        watch(run.engine).board.listen(Webhook(f"http://127.0.0.1:{server.server_address[1]}/hook").tell)
        run.play(20)
        run.play(9, "ab")
        told = json.loads(came.get(timeout=60))
        assert (told["who"], told["seen"].startswith("none for")) == ("c", True)
    server.shutdown()
    server.server_close()


@pytest.mark.slow
def test_the_failures_of_the_demo_are_found_and_no_others(tmp_path: Path) -> None:
    with freeway(tmp_path) as run:
        found: set[tuple[str, str]] = set()
        watch(run.engine).board.listen(lambda alert: found.add((alert.kind, alert.who)))
        run.go_on(15)
    # Of a cabinet that loses its line all detectors fall silent for less than a minute, which is permitted.
    assert ("silence", SILENT) in found
    assert {who for kind, who in found if kind == "clock jump"} == {FAST}
    assert {who for kind, who in found if kind == "silence"} == {SILENT}


@given(st.lists(st.integers(1, 10), min_size=30, max_size=120), st.integers(0, 50))
def test_a_source_within_a_factor_of_its_past_is_never_silent(gaps: list[int], delay: int) -> None:
    silences, offsets, clock = SourceSilence(), ClockOffsets(), 0
    for gap in [10, *gaps]:
        clock += gap
        cells = Arrivals.of_rows(clock, [0, 1], [clock - delay, clock - delay])
        silences.note(cells)
        offsets.note(cells)
        assert silences.silent().tolist() == []
        assert offsets.jumped().tolist() == offsets.drifted().tolist() == []


@given(st.integers(1, 1000), st.integers(2, 50))
def test_a_source_is_silent_from_the_factor_of_its_longest_gap_on(gap: int, more: int) -> None:
    silences = SourceSilence()
    for n in range(10):
        silences.note(Arrivals.of_rows(n * gap, [0, 1], [n * gap, n * gap]))
    last = 9 * gap
    for n in range(1, more):
        silences.note(Arrivals.of_row(last + n * gap, 0, last))
        assert silences.silent().tolist() == ([1] if n > FACTOR else [])
