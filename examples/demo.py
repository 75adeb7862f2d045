"""The whole idea in a minute: two hours of freeway traffic through Spark, and what a fixed watermark would have done.

    python -m examples.demo [--engine local]

It writes the readings of `freeway.py` as files, runs the script `freeway.sql` over them to the end, shows the slowest
road as windows close, and closes with an account: what was lost, how long windows waited, whom they did not wait for.
"""

from __future__ import annotations

import argparse
import shutil
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console
from rich.table import Table

from eventide.engine.local_engine import LocalEngine
from eventide.engine.running import Running
from eventide.engine.spark_engine import SparkEngine
from eventide.engine.spark_session import local_session
from eventide.engine.work import Round
from eventide.language.script import read_script
from eventide.plan.program import Program
from eventide.sinks.directory import Directory
from eventide.sinks.sink import Sink
from examples.freeway import EACH, MINUTE, SECOND, SILENT, SILENT_FROM, START, STRAGGLER, Micros, readings, write_files

OUT = Path("out/demo")
SCRIPT = Path(__file__).with_name("freeway.sql")
SHOWN_EVERY = 5 * MINUTE
WATERMARKS = (5, 30, 120)
"""Delays in seconds that someone might give Spark's `withWatermark`."""


@dataclass
class Screen:
    """Shows every fifth window as it closes, and remembers how long after its end each one closed."""

    console: Console
    waited: list[float] = field(default_factory=list)

    def show(self, work: Round) -> None:
        """Look at the results of a round."""
        if work.ending:
            # The end of the recording closes what is left; nobody waited for that.
            return
        for row in work.results["slowest"].table().to_pylist():
            end = int(row["window_end"].timestamp()) * SECOND
            seconds = (START + (work.number + 1) * EACH - end) / SECOND
            self.waited.append(seconds)
            if end % SHOWN_EVERY == 0:
                road = f"{row['highway']} {row['direction']}"
                self.console.print(
                    f"  {row['window_start']:%H:%M} to {row['window_end']:%H:%M}   slowest: {road:<13} "
                    f"{row['mean']:5.1f} km/h   closed {seconds:4.0f} s after its end",
                    highlight=False,
                    soft_wrap=True,
                )


@dataclass(frozen=True)
class Fixed:
    """What a watermark of a constant delay does with the same files."""

    lost: float
    waited: float


def fixed_watermark(rows: pa.Table, delay: int) -> Fixed:
    """Rows lost, and how long after their end windows close.

    As Spark does it: a row is lost if its minute ended at or before the watermark of the files before it, and a window
    that a file lets close is told with the next one.
    """
    time, arrived = (pc.cast(rows.column(name), pa.int64()).to_numpy() for name in ("ts", "arrived"))
    part = (arrived - START) // EACH
    largest = np.maximum.accumulate(_largest_of_parts(time, part))
    watermark = largest - delay
    before = np.concatenate(([np.iinfo(np.int64).min], watermark[:-1]))
    lost = (time // MINUTE + 1) * MINUTE <= before[part]
    ends = np.arange(START + MINUTE, int(watermark[-1]), MINUTE)
    closing = np.searchsorted(watermark, ends) + 1
    told = START + (closing + 1) * EACH
    return Fixed(float(np.mean(lost)), float(np.mean(told - ends)) / SECOND)


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
    """What happened, and what a fixed watermark would have made of the same rows."""
    status = engine.status()
    stream = status.streams[0]
    table = Table(title="\nEventide, and Spark's watermark on the same rows", title_justify="left", title_style="bold")
    for column, side in (("", "left"), ("rows lost", "right"), ("a window closes", "right")):
        table.add_column(column, justify="left" if side == "left" else "right")
    waited = f"{np.mean(screen.waited):.0f} s after its end"
    table.add_row("Eventide, DRATIO 1%", f"{stream.drop_ratio:.2%}", waited, style="bold")
    for delay in WATERMARKS:
        fixed = fixed_watermark(rows, delay * SECOND)
        table.add_row(f"withWatermark {delay} s", f"{fixed.lost:.2%}", f"{fixed.waited:.0f} s after its end")
    console.print(table)
    silent = datetime.fromtimestamp((START + SILENT_FROM) / SECOND, UTC)
    console.print(
        f"{stream.rows:,} rows of {stream.sources} detectors in {status.round + 1} rounds on {status.engine}. "
        f"Nobody told Eventide a delay: it found one that {STRAGGLER}, always late, can live with.\n"
        f"{SILENT} fell silent at {silent:%H:%M}, and windows went on closing.\n"
        f"{stream.late:,} rows came too late, {stream.drop_ratio:.2%} (1 % is permitted): every one of them, with the "
        f"reason, is in {OUT / 'checkpoint' / 'late'}. Results: {OUT / 'speeds'}.",
        highlight=False,
    )


def main() -> None:
    """Write the files, run to the end, and say what happened."""
    parser = argparse.ArgumentParser(description="Two hours of freeway traffic in a minute.")
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
        engine.on_round(screen.show)
        engine.stop_on_signals()
        engine.start(bounded=True).await_end()
        account(console, engine, screen, rows)


if __name__ == "__main__":
    main()
