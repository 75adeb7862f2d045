"""Copies of a checkpoint that are taken while an engine runs: each goes on as the original does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from eventide.engine.checkpoint.copying import Copied, copy
from eventide.plan.declared.program import Program
from eventide.sinks.sink import Memory
from eventide.storage.local import LocalStorage
from tests.engine.small_streams import made, put, stream, tumbling

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES = 9
STEPS = ("reduce", "advance", "emit", "commit")


@pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.slow])])
def test_a_copy_that_is_taken_in_the_middle_of_a_round_goes_on_as_the_original_does(
    engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    session: SparkSession | None = request.getfixturevalue("spark") if engine == "spark" else None
    for number in range(FILES):
        put(tmp_path / "s", number, [10 * number + 1, 10 * number + 4])
    program = Program((stream(tmp_path / "s"),), (tumbling("q"),))
    place, whole, copies = tmp_path / "checkpoint", Memory(), dict[Path, Copied]()

    def observer(number: int, step: str) -> None:
        # Another step in every second round: what is half written then is not in the copy.
        if number % 2 and number < 2 * len(STEPS) and step == STEPS[number // 2]:
            saved = tmp_path / f"in round {number}"
            copies[saved] = copy(LocalStorage(str(place)), LocalStorage(str(saved)))

    def results(sink: Memory, after: int) -> list[tuple[int, int]]:
        return [(row["window_start"], row["n"]) for row in sink.rows("q") if row["round"] > after]

    with made(session, program, place, {"q": whole}, observer=observer) as running:
        running.start(bounded=True).await_end()
    assert len(copies) == len(STEPS)
    for saved, copied in copies.items():
        again = Memory()
        with made(session, program, saved, {"q": again}) as running:
            running.start(bounded=True).await_end()
        assert results(again, copied.round) == results(whole, copied.round) != []
