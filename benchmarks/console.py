"""What a console costs the engine and its viewers: `python -m benchmarks.console [--quick] [--json FILE]`.

A local engine counts rows of 10,000 sources, round after round. With the console open and 0, 1 and 20 viewers of the
page *Time* (in another process), the processor time of a round is compared with that of an engine that has no console;
blocks of rounds take turns. Processor time is that of the whole process: rounds, snapshots and sending them. The
overhead of a turn is against the block without a console beside it, and the median of the turns counts.

The last line is one JSON object:

- `round_overhead`: by number of viewers, the processor time of a round over that without a console, less 1; the aim is
  0.02.
- `bytes_per_second_per_viewer`: what each of 20 viewers is sent.
- `first_paint_ms`, `first_data_ms`: from the navigation of a real Chromium until it paints, and until the sources are
  there, while the engine works; null where there is no Chromium.
- `sources`, `round_ms`: what was measured, and the processor time of a round without a console.
"""

from __future__ import annotations

import http.client
import multiprocessing
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa

from benchmarks.harness import finish, options, say, scratch, show_table
from eventide.console.lifecycle import Console, open_console
from eventide.console.sessions import Sessions, key_in
from eventide.endpoint.lifecycle import listen
from eventide.engine.local.engine import LocalEngine
from eventide.language.script import read_script
from eventide.plan.declared.program import Program
from scripts.chromium import chromium
from scripts.servers import UnavailableError

SOURCES = 10_000
VIEWERS = (0, 1, 20)
SCRIPT = """
CREATE STREAM meters (at TIMESTAMP, meter STRING, value DOUBLE) TIMESTAMP BY at SOURCE BY meter DRATIO 1%;
CREATE QUERY means AS SELECT count(*) AS n, avg(value) AS mean FROM meters [RANGE 1 minute];
"""


@dataclass(frozen=True)
class Sizes:
    """How long each block lasts, how often they take turns, how often the page is opened."""

    seconds: float
    turns: int
    opened: int


QUICK = Sizes(4.0, 2, 3)
FULL = Sizes(15.0, 6, 10)


class Steered:
    """An input that has nothing: rounds are given by hand."""

    ended, caught_up = False, True

    def take(self, most: int, wait: float) -> None:
        """Nothing."""

    def seek(self, position: Any) -> None:
        """Anywhere."""

    def position(self) -> dict[str, Any]:
        """Nowhere."""
        return {}

    def portion(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def repeat(self, portion: Any) -> tuple[None, bool]:
        """Nothing."""
        return None, False

    def close(self) -> None:
        """Nothing is open."""


class Meters:
    """An engine that is given a row of every source in each round."""

    def __init__(self, folder: Path) -> None:
        program: Program = read_script(SCRIPT).program
        self.engine = LocalEngine(program, str(folder), inputs={"meters": Steered()})
        self._names = pa.array([f"meter {n:05}" for n in range(SOURCES)])
        self._random = np.random.default_rng(7)
        self._second = 0

    def round(self) -> None:
        """One row of every source, up to two seconds late."""
        self._second += 1
        at = 1_700_000_000_000_000 + 1_000_000 * self._second - self._random.integers(0, 2_000_000, SOURCES)
        times = pa.array(at).cast(pa.timestamp("us", "UTC"))
        rows = pa.table({"at": times, "meter": self._names, "value": self._random.random(SOURCES)})
        self.engine.noted(self.engine.engine.round({"meters": rows}))

    def cost(self, seconds: float) -> float:
        """The processor time of this process for a round, over so many seconds of rounds."""
        started, used, rounds = time.monotonic(), time.process_time(), 0
        while time.monotonic() - started < seconds:
            self.round()
            rounds += 1
        return (time.process_time() - used) / rounds


def look(url: str, session: str, came: Synchronized[int], ready: Event, over: Event) -> None:
    """A viewer of the page Time: counts what it is sent."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    connection.request("GET", "/console/api/events?page=time", headers={"Authorization": f"Bearer {session}"})
    answer = connection.getresponse()
    assert answer.status == 200, answer.read()
    first = True
    while not over.is_set() and (line := answer.readline()):
        if first:
            ready.set()
            first = False
        with came.get_lock():
            came.value += len(line)
    connection.close()


def look_all(url: str, sessions: list[str], came: Synchronized[int], ready: Event, over: Event) -> None:
    """Several viewers, in a process of their own."""
    threads = [threading.Thread(target=look, args=(url, one, came, ready, over), daemon=True) for one in sessions]
    for thread in threads:
        thread.start()
    over.wait()


@contextmanager
def viewers(url: str, sessions: list[str]) -> Iterator[Synchronized[int]]:
    """So many viewers, as long as the block lasts; what they were sent, in bytes."""
    apart = multiprocessing.get_context("spawn")
    came, ready, over = apart.Value("q", 0), apart.Event(), apart.Event()
    if not sessions:
        yield came
        return
    process = apart.Process(target=look_all, args=(url, sessions, came, ready, over), daemon=True)
    process.start()
    assert ready.wait(60), "nobody was sent anything"
    try:
        yield came
    finally:
        over.set()
        process.join(10)
        process.kill()


def session_for(key: bytes) -> str:
    """A session that the console knows, without the round trip of a link."""
    own = Sessions(key)
    found = own.exchange(own.link())
    assert found is not None
    return found


def overheads(shown: Meters, alone: Meters, url: str, key: bytes, sizes: Sizes) -> dict[str, Any]:
    """The overhead by number of viewers, and the bytes for each of the most."""
    found: dict[int, list[float]] = {number: [] for number in VIEWERS}
    sent, without = [], []
    for turn in range(sizes.turns):
        for number in VIEWERS:
            with viewers(url, [session_for(key) for _ in range(number)]) as came:
                # Who goes first changes, so that neither gains by the warmth of the machine.
                before = alone.cost(sizes.seconds) if turn % 2 == 0 else None
                at, started = came.value, time.monotonic()
                with_console = shown.cost(sizes.seconds)
                if number:
                    sent.append((came.value - at) / (time.monotonic() - started) / number)
            own = before if before is not None else alone.cost(sizes.seconds)
            without.append(own)
            found[number].append(with_console / own - 1)
        say(f"turn {turn + 1} of {sizes.turns}: {', '.join(f'{n}: {each[-1]:+.1%}' for n, each in found.items())}")
    overhead = {str(number): median(each) for number, each in found.items()}
    return {
        "round_overhead": overhead,
        "bytes_per_second_per_viewer": median(sent),
        "round_ms": 1000 * median(without),
    }


def first_paint(shown: Meters, console: Console, opened: int) -> dict[str, float | None]:
    """How long a browser waits, while rounds go on."""
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            shown.round()

    thread = threading.Thread(target=work, daemon=True)
    paints, data = [], []
    try:
        with chromium() as browser:
            thread.start()
            for _ in range(opened):
                context = browser.new_context()
                page = context.new_page()
                page.goto(console.link())
                page.wait_for_selector("table.sources tbody tr", timeout=60_000)
                data.append(page.evaluate("performance.now()"))
                paints.append(page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"))
                context.close()
    except UnavailableError as missing:
        say(f"no browser: {missing}")
        return {"first_paint_ms": None, "first_data_ms": None}
    finally:
        over.set()
        if thread.is_alive():
            thread.join()
    return {"first_paint_ms": median(paints), "first_data_ms": median(data)}


def measure(sizes: Sizes, folder: Path) -> dict[str, Any]:
    """Two engines, one with a console."""
    shown, alone = Meters(folder / "shown"), Meters(folder / "alone")
    with shown.engine, alone.engine:
        for _ in range(10):
            shown.round()
            alone.round()
        endpoint = listen(shown.engine)
        console = open_console(shown.engine, endpoint)
        results = overheads(shown, alone, endpoint.url, key_in(endpoint.folder), sizes)
        results |= first_paint(shown, console, sizes.opened)
    return results | {"sources": SOURCES}


def main() -> None:
    """Measure, show, and end with the line of JSON."""
    asked = options("what a console costs")
    with scratch() as folder:
        results = measure(QUICK if asked.quick else FULL, folder)
    show_table(
        "processor time of a round, over that without a console",
        [f"{number} viewers" for number in VIEWERS],
        [tuple(f"{results['round_overhead'][str(number)]:+.2%}" for number in VIEWERS)],
    )
    finish(asked, results)


if __name__ == "__main__":
    main()
