"""What the demo says of Spark's watermark is what a slow reader of the same files would say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from eventide.language.script import read_script
from examples.demo import SCRIPT, fixed_watermark, watermark_by_detector
from examples.freeway import EACH, LENGTH, MINUTE, SECOND, SILENT, SILENT_FROM, START, readings, write_files

ROWS = readings()


def micros(rows: pa.Table, name: str) -> list[int]:
    found: list[int] = pc.subtract(pc.cast(rows.column(name), pa.int64()), START).to_pylist()
    return found


@pytest.mark.parametrize("delay", [1, 30, 300])
def test_a_fixed_watermark_loses_what_comes_after_it_file_by_file(delay: int) -> None:
    rows = ROWS.slice(0, 20_000)
    lost, largest = 0, -LENGTH
    waited: dict[int, int] = {}
    time, arrived = micros(rows, "ts"), micros(rows, "arrived")
    part = [at // EACH for at in arrived]
    for number in range(part[-1] + 1):
        here = [t for t, p in zip(time, part, strict=True) if p == number]
        lost += sum((t // MINUTE + 1) * MINUTE <= largest - delay * SECOND for t in here)
        largest = max([largest, *here])
        if number < part[-1]:
            for end in range(MINUTE, min(LENGTH, largest - delay * SECOND) + 1, MINUTE):
                waited.setdefault(end, (number + 2) * EACH - end)
    found = fixed_watermark(rows, delay * SECOND)
    assert found.lost == lost / rows.num_rows
    assert found.waited == pytest.approx(np.mean(list(waited.values())) / SECOND)
    assert found.latest == max(waited.values()) / SECOND


def test_a_watermark_that_waits_for_each_detector_stands_still_from_the_silence_of_one_on() -> None:
    found = watermark_by_detector(ROWS, 5 * SECOND)
    last = max(micros(ROWS.filter(pc.equal(ROWS.column("detector"), SILENT)), "ts"))
    told = [end for end in range(MINUTE, LENGTH - 2 * MINUTE + 1, MINUTE) if end <= last - 5 * SECOND]
    assert found.never == (LENGTH - 2 * MINUTE) // MINUTE - len(told)
    assert found.never > 0


def test_one_fast_clock_makes_a_short_delay_lose_the_rows_of_all_others() -> None:
    assert fixed_watermark(ROWS, 5 * SECOND).lost > 0.2
    assert fixed_watermark(ROWS, 60 * SECOND).lost < 0.001


def test_the_files_hold_every_reading_once_in_the_order_of_arrival(tmp_path: Path) -> None:
    files = write_files(ROWS, tmp_path / "in")
    paths = sorted((tmp_path / "in").iterdir(), key=lambda path: path.stat().st_mtime)
    assert len(paths) == files
    assert pa.concat_tables([pq.read_table(path) for path in paths]).equals(ROWS)


def test_the_silent_detector_is_silent_to_the_end() -> None:
    of_silent = ROWS.filter(pc.equal(ROWS.column("detector"), SILENT))
    assert max(micros(of_silent, "ts")) < SILENT_FROM + SECOND
    assert max(micros(ROWS, "ts")) > LENGTH - 30 * SECOND


def test_the_script_of_the_demo_has_nothing_to_warn_of() -> None:
    script = read_script(SCRIPT.read_text(encoding="utf-8"), str(SCRIPT))
    assert script.warnings == ()
    assert [query.name for query in script.program.queries] == ["speeds", "slowest"]
