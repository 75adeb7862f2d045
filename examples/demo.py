"""The whole idea in a minute: freeway traffic through Spark, early and final answers, and fixed watermarks beside.

    python -m examples.demo [--engine local]

It writes the readings of `freeway.py` as files, runs the script `freeway.sql` over them to the end, shows the slowest
road as windows are told early and as they close, and closes with an account: how good early answers were and how much
sooner they came; then, for Eventide and for fixed watermarks over the same files, what was lost, when windows closed,
and which never did. The last lines say what to try next.
"""

from __future__ import annotations

import argparse
import shutil
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from eventide.console.lifecycle import open_console
from eventide.endpoint.lifecycle import listen
from eventide.engine.local.engine import LocalEngine
from eventide.engine.round.report import RoundReport
from eventide.engine.running import Running
from eventide.engine.spark.engine import SparkEngine
from eventide.language.script import read_script
from eventide.launch.spark_session import local_session
from eventide.plan.declared.program import Program
from eventide.report.why import window_words
from eventide.sinks.directory import Directory
from eventide.sinks.sink import Sink
from examples.freeway import (
    EACH,
    FAST,
    FAST_BY,
    FAST_FROM,
    LENGTH,
    MINUTE,
    SECOND,
    SILENT,
    SILENT_FROM,
    START,
    Micros,
    readings,
    write_files,
)

OUT = Path("out/demo")
SCRIPT = Path(__file__).with_name("freeway.sql")
SHOWN_EVERY = 2 * MINUTE
WATERMARKS = (5, 30, 60)
"""Delays in seconds that someone might give Spark's `withWatermark`."""

EACH_DETECTOR = 5
"""The delay of a watermark that is the least over the detectors, as one may build it in Flink."""

NEXT = (
    ("{bin}eventide init YOUR.csv -o mine.sql", "a script for a file of your own (CSV, JSON lines, Parquet)"),
    ("{bin}eventide profile out/demo/input --time ts --arrival arrived --source detector", "these files, every policy"),
    ("{bin}eventide console --checkpoint out/demo/checkpoint examples/freeway.sql", "how it ended, in a browser"),
    ("{bin}eventide explain examples/freeway.sql", "how it is computed"),
    ("{bin}python -m examples.demo --engine local", "the same without Spark and Java"),
)

Road = tuple[datetime, str, str]
"""The end of a window, a highway and a direction."""


@dataclass
class Screen:
    """Shows every tenth window, first as it is told early and then as it closes, and remembers all of them.

    `waited` has how long after its end each window closed; `early` and `final` what was told of each window and road.
    """

    console: Console
    waited: list[float] = field(default_factory=list)
    early: dict[Road, dict[str, float]] = field(default_factory=dict)
    final: dict[Road, dict[str, float]] = field(default_factory=dict)
    asked: list[float] = field(default_factory=list)
    left_out: bool = False

    def show(self, work: RoundReport) -> None:
        """Look at the results of a round."""
        if work.ending:
            # The end of the recording closes what is left; nobody waited for that.
            return
        now = START + (work.number + 1) * EACH
        for row in work.results["speeds"].table().to_pylist():
            told = self.early if row["kind"] == "early" else self.final
            told[row["window_end"], row["highway"], row["direction"]] = row
        for row in work.results["slowest"].table().to_pylist():
            end = int(row["window_end"].timestamp()) * SECOND
            (self.asked if row["kind"] == "early" else self.waited).append((now - end) / SECOND)
            if end % SHOWN_EVERY == 0 and end > START:
                self._print(row, (now - end) / SECOND)

    def watch_sources(self, engine: Running, work: RoundReport) -> None:
        """Say it when the silent detector is waited for no more."""
        if self.left_out or START + (work.number + 1) * EACH < START + SILENT_FROM:
            return
        out = {name for rule in engine.status().streams[0].left_out for name in rule["sources"]}
        if SILENT in out:
            self.left_out = True
            self._say(f"  {clock((work.number + 1) * EACH)}            {SILENT} is silent: nobody waits for it", "bold")

    def _print(self, row: dict[str, Any], after: float) -> None:
        early = row["kind"] == "early"
        window = f"{row['window_start']:%H:%M} to {row['window_end']:%H:%M}"
        told = f"{-after:3.0f} s before its end" if after < 0 else f"{after:3.0f} s after its end"
        error = "" if not early or row["mean_error"] is None else f" ± {row['mean_error']:.1%}"
        road = f"{row['highway']} {row['direction']}"
        self._say(
            f"  {window}   {row['kind']}, {told + ':':<21} slowest is {road:<13} {row['mean']:5.1f} km/h{error}",
            "yellow" if early else "green",
        )

    def _say(self, text: str, style: str) -> None:
        self.console.print(text, style=style, highlight=False, soft_wrap=True)

    def error(self, of: str, truth: str) -> NDArray[np.float64]:
        """By how much each early value was off, as a share of the final one; one entry for each window and road."""
        both = [(row[of], self.final[key][truth]) for key, row in self.early.items() if key in self.final]
        known = [(early, final) for early, final in both if early is not None]
        return np.array([abs(final - early) / abs(final) for early, final in known])

    def worst(self) -> tuple[str, datetime]:
        """The road whose number of cars was told worst, and the end of that window."""
        both = {key: (row["cars"], self.final[key]["cars"]) for key, row in self.early.items() if key in self.final}
        end, highway, direction = max(both, key=lambda key: abs(both[key][1] - both[key][0]) / abs(both[key][1]))
        return f"{highway} {direction}", end


def clock(after: int) -> str:
    """The time of day, so long after the start.

    >>> clock(45 * MINUTE)
    '08:45'
    """
    return f"{datetime.fromtimestamp((START + after) / SECOND, UTC):%H:%M}"


@dataclass(frozen=True)
class Watermark:
    """What a watermark of a constant delay does with the same files: rows lost, seconds after their end, not closed."""

    lost: float
    waited: float
    latest: float
    never: int


def fixed_watermark(rows: pa.Table, delay: int) -> Watermark:
    """The largest time of all rows so far less a delay, as `withWatermark` has it."""
    time, part = _columns(rows)
    return judged(time, part, np.maximum.accumulate(_largest_of_parts(time, part)) - delay)


def watermark_by_detector(rows: pa.Table, delay: int) -> Watermark:
    """The least of all detectors' largest times, less a delay: nobody is left behind, and nobody left out."""
    time, part = _columns(rows)
    detector = rows.column("detector").combine_chunks().dictionary_encode().indices.to_numpy()
    seen = np.full(int(detector.max()) + 1, np.iinfo(np.int64).min // 2)
    watermark = []
    for at in np.split(np.arange(len(time)), np.searchsorted(part, np.arange(1, int(part[-1]) + 1))):
        np.maximum.at(seen, detector[at], time[at])
        watermark.append(int(seen.min()) - delay)
    return judged(time, part, np.array(watermark))


def judged(time: Micros, part: Micros, watermark: Micros) -> Watermark:
    """What a watermark after each file means for rows and windows.

    As in Spark: a row is lost if its minute ended at or before the watermark of the files before it, and a window that
    a file lets close is told with the next one.
    """
    before = np.concatenate(([np.iinfo(np.int64).min], watermark[:-1]))
    lost = (time // MINUTE + 1) * MINUTE <= before[part]
    ends = np.arange(START + MINUTE, START + LENGTH + 1, MINUTE)
    closing = np.searchsorted(watermark, ends)
    closed = closing < len(watermark) - 1
    waited = (START + (closing + 2) * EACH - ends)[closed] / SECOND
    # What the last minute and a half of the recording leave open is nobody's fault.
    never = int(np.count_nonzero(~closed & (ends <= START + LENGTH - 2 * MINUTE)))
    return Watermark(float(np.mean(lost)), float(np.mean(waited)), float(np.max(waited)), never)


def _columns(rows: pa.Table) -> tuple[Micros, Micros]:
    time, arrived = (pc.cast(rows.column(name), pa.int64()).to_numpy() for name in ("ts", "arrived"))
    return time, (arrived - START) // EACH


def _largest_of_parts(time: Micros, part: Micros) -> Micros:
    first = np.flatnonzero(np.diff(part, prepend=-1))
    found = np.full(int(part[-1]) + 1, np.iinfo(np.int64).min)
    found[part[first]] = np.maximum.reduceat(time, first)
    return found


def engine_for(engine: str, master: str, program: Program) -> Running:
    """The engine that was asked for, over the files that were written."""
    sinks: dict[str, Sink] = {"speeds": Directory(str(OUT / "speeds"))}
    checkpoint = str(OUT / "checkpoint")
    if engine == "local":
        return LocalEngine(program, checkpoint, sinks)
    return SparkEngine(local_session(master, log_file=OUT / "spark.log"), program, checkpoint, sinks)


def account(console: Console, engine: Running, screen: Screen, rows: pa.Table) -> None:
    """What happened, and what fixed watermarks would have made of the same rows."""
    status = engine.status()
    stream = status.streams[0]
    table = Table(title="\nRows lost, and when windows are told", title_justify="left", title_style="bold")
    table.caption = "wait: from the end of a window until it is told; below 0 it was told before its end"
    for column in ("", "rows lost", "mean wait", "longest wait", "windows never told"):
        table.add_column(column, justify="right" if column else "left")
    ours = Watermark(stream.drop_ratio, float(np.mean(screen.waited)), float(np.max(screen.waited)), 0)
    fixed = {delay: fixed_watermark(rows, delay * SECOND) for delay in WATERMARKS}
    table.add_row("Eventide, DRATIO 1%", *_cells(ours), style="bold")
    for delay, found in fixed.items():
        table.add_row(f"withWatermark {delay} s", *_cells(found))
    stalled = watermark_by_detector(rows, EACH_DETECTOR * SECOND)
    table.add_row(f"each detector, less {EACH_DETECTOR} s", *_cells(stalled))
    console.print(table)
    as_good = [found.waited - ours.waited for found in fixed.values() if found.lost <= stream.drop_ratio + 0.001]
    lines = [
        f"{stream.rows:,} rows of {stream.sources} detectors in {status.round + 1} rounds on {status.engine}. Nobody "
        "told Eventide a delay.",
        f"The clock of {FAST} is {FAST_BY // SECOND} s fast from {clock(FAST_FROM)} on. A watermark that trails the "
        "largest time runs after it: too short a delay loses the rows of all others.",
    ]
    if as_good:
        lines.append(f"The shortest of these delays that loses as little tells windows {min(as_good):.0f} s later.")
    lines.append(
        f"{SILENT} falls silent at {clock(SILENT_FROM)}: a watermark that waits for each detector stands still then."
    )
    if stream.late:
        where = OUT / "checkpoint" / "late"
        lines.append(f"{stream.late:,} rows came too late; 1 % was permitted. Each, with the reason, is in {where}.")
    console.print("\n".join([*lines, f"Results: {OUT / 'speeds'}."]), highlight=False)


def _cells(found: Watermark) -> tuple[str, ...]:
    waits = (f"{seconds:.0f} s" for seconds in (found.waited, found.latest))
    return f"{found.lost:.2%}", *waits, str(found.never or "none")


def what_next(console: Console) -> None:
    """What someone who has seen this may want to try."""
    console.print("\nTo try next:", style="bold")
    width = max(len(command) for command, _ in NEXT)
    for command, what in NEXT:
        console.print(f"  {command:<{width}}   {what}".format(bin=".venv/bin/"), highlight=False, soft_wrap=True)
    console.print("  docs/commands.md has your first hour", highlight=False)


def account_of_early_answers(console: Console, screen: Screen) -> None:
    """How good the early answers were, once the final ones had come."""
    table = Table(title="\nEarly answers, measured by the final ones", title_justify="left", title_style="bold")
    for column in ("", "off by (mean)", "half are off by less than", "worst"):
        table.add_column(column, justify="right" if column else "left")
    for words, of, truth in (
        ("mean speed", "mean", "mean"),
        ("cars, counted so far", "cars", "cars"),
        ("cars, extrapolated", "cars_estimate", "cars"),
    ):
        off = screen.error(of, truth)
        table.add_row(words, f"{np.mean(off):.1%}", f"{np.median(off):.1%}", f"{np.max(off):.1%}")
    console.print(table)
    earlier = np.mean(screen.waited) - np.mean(screen.asked)
    road, end = screen.worst()
    console.print(
        f"They came {-np.mean(screen.asked):.0f} s before the end of a window, {earlier:.0f} s before the final ones. "
        f"The worst was of {road} in the window up to {end:%H:%M} (the recording begins at {clock(0)}: its first "
        "windows are not full, and what is missing weighs more there).",
        highlight=False,
    )


def main() -> None:
    """Write the files, run to the end, and say what happened."""
    parser = argparse.ArgumentParser(description="Freeway traffic in a minute.")
    parser.add_argument("--engine", choices=("spark", "local"), default="spark")
    parser.add_argument("--master", default="local[*]", help="the Spark cluster (default: local[*])")
    asked = parser.parse_args()
    console = Console()
    shutil.rmtree(OUT, ignore_errors=True)
    rows = readings()
    files = write_files(rows, OUT / "input")
    console.print(f"{rows.num_rows:,} readings of a city's freeways in {files} files; the script is {SCRIPT.name}:\n")
    text = SCRIPT.read_text(encoding="utf-8")
    console.print(text, style="dim", highlight=False, soft_wrap=True)
    program = read_script(text, str(SCRIPT)).program
    with console.status("starting the engine ..."):
        engine = engine_for(asked.engine, asked.master, program)
    screen = Screen(console)
    with engine:
        link = open_console(engine, listen(engine, words=window_words)).link()
        console.print(f"watch it in a browser: {link}\n", style="bold", highlight=False, soft_wrap=True)
        engine.on_round(screen.show)
        engine.on_round(lambda work: screen.watch_sources(engine, work))
        engine.stop_on_signals()
        engine.start(bounded=True).await_end()
        if engine.engine.ended:
            account_of_early_answers(console, screen)
            account(console, engine, screen, rows)
            what_next(console)


if __name__ == "__main__":
    main()
