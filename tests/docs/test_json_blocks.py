"""JSON of the pages (`json` blocks) is what a real run writes: the trace to the letter, a profile in all its keys."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from eventide.engine.local.backend import LocalBackend
from eventide.engine.round.engine import Engine
from eventide.engine.scheduling.trace import TraceLine
from eventide.language.script import read_script
from eventide.sinks.sink import Memory
from tests.commands.processes import Here
from tests.docs.blocks import sections
from tests.docs.given_files import trades

BLOCKS = sections("json")
TRACE = ("docs/operations.md", "Scheduling")
PROFILE = ("docs/profile.md", "JSON")


def test_every_json_of_the_pages_is_one_that_is_compared_here() -> None:
    assert BLOCKS.keys() == {TRACE, PROFILE}
    assert all(len(blocks) == 1 for blocks in BLOCKS.values())


def test_the_trace_of_the_page_is_part_of_that_of_its_script(tmp_path: Path) -> None:
    [script], [block] = sections("sql")[TRACE], BLOCKS[TRACE]
    written: list[TraceLine] = []
    program = read_script(script.text).program
    engine = Engine(program, LocalBackend(), str(tmp_path), {"both": Memory()}, trace=written.append)
    clock = json.loads(block.text.splitlines()[0])["clock"]
    engine.round({"fast": pa.table({"v": pa.array([1], pa.int32())})}, clock)
    engine.close()
    engine.backend.close()
    assert block.text in "".join(f"{line.as_json()}\n" for line in written)


def kinds(value: Any) -> Any:
    """The value with kinds in the place of its numbers and texts; of a list, those of its first.

    >>> kinds({"a": [1, 2], "b": None})
    {'a': ['number'], 'b': None}
    """
    if isinstance(value, dict):
        return {key: kinds(one) for key, one in value.items()}
    if isinstance(value, list):
        return [kinds(one) for one in value[:1]]
    return "number" if isinstance(value, int | float) else value if value is None else "text"


def test_a_profile_has_the_keys_of_the_page_and_no_others(tmp_path: Path, here: Here) -> None:
    [block] = BLOCKS[PROFILE]
    shown = json.loads(block.text)
    trades(tmp_path)
    columns = ("--time", "event_time", "--arrival", "received", "--source", "symbol")
    found = json.loads(here("profile", "trades.csv.gz", *columns, "--policy", "eventide", "--json").out)
    policies = found["runs"][0]["policies"]
    assert policies.keys() == {"eventide", "clairvoyant", "fixed_best"}
    assert policies["fixed_best"].keys() - policies["clairvoyant"].keys() == {"delay_ms"}
    found["runs"][0]["policies"] = {"eventide": policies["eventide"]}
    assert kinds(found) == kinds(shown)
