"""Commands of the pages (`sh` blocks) run as they stand, on files of the kind that a reader has.

Two things are otherwise: `make` says what it would do instead of doing it, and what would start a Spark of its own runs
on the local engine; `tests/commands/test_run_on_spark.py` has the same on Spark.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.commands.processes import Here, Ran
from tests.docs.blocks import Block, tagged
from tests.docs.given_files import sensors, trades
from tests.docs.shells import ran

FILES: dict[str, Callable[[Path], None]] = {"sensors.csv": sensors, "trades.csv.gz": trades}
"""The files that a block may name, and who writes them."""

PRINTED = {
    "make demo": "examples.demo",
    "make example-kafka": "examples.kafka_to_postgres",
    "make test": "pytest",
    'make test ARGS="--all tests/faults"': "--all tests/faults",
    "make check test": "ruff check",
    "make search SEEDS=2000 FIRST=10000": "tests.simulation --seeds 2000 --first 10000",
    "check": "1 stream, 1 query, no errors",
    "run": "180 rows in 2 rounds",
    "profile": "own_progress",
}
"""What each command prints, among other things: it must have done what it is for."""


@pytest.mark.parametrize("block", tagged("sh"), ids=str)
def test_the_commands_of_a_block_do_what_they_are_for(block: Block, tmp_path: Path, here: Here) -> None:
    for name, write in FILES.items():
        if name in block.text:
            write(tmp_path)

    def without_spark(*arguments: str) -> Ran:
        return here(*arguments, *(("--engine", "local") if arguments[0] == "run" else ()))

    commands = [line.partition(" #")[0].strip() for line in block.text.splitlines()]
    for command, (code, printed) in zip(commands, ran(commands, tmp_path, without_spark), strict=True):
        assert code == 0, f"$ {command}\n{printed}"
        words = command.split()
        word = command if words[0] == "make" else words[1]
        assert PRINTED.get(word, words[-1]) in printed, f"$ {command}\n{printed}"


def test_a_command_that_is_not_there_is_told(tmp_path: Path, here: Here) -> None:
    told = ran(["make demmo", "eventide profile x.csv --tiem t"], tmp_path, here)
    assert [code for code, _ in told] == [2, 2]
    assert ["demmo" in told[0][1], "--tiem" in told[1][1]] == [True, True]
