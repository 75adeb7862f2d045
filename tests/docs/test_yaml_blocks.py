"""Transcripts of the pages (`yaml` blocks) run on the local engine.

A whole one holds in every variant. The parts that a page explains one by one are together the program of one; it runs
over rows that are made up here, and everything in it tells something.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from eventide.testing.transcript import Transcript, run_transcript, variants
from eventide.testing.transcript_operators import JOIN_KEYS, LOOKUP_KEYS, MERGE_KEYS
from eventide.testing.transcript_program import QUERY_KEYS, STREAM_KEYS, WINDOW_KEYS
from eventide.testing.trial import Trial
from tests.docs.blocks import Block, tagged

ALL = {block: yaml.safe_load(block.text) for block in tagged("yaml")}
# What Prometheus reads to find an engine is no transcript.
SCRAPING = {block: told for block, told in ALL.items() if "scrape_configs" in told}
WRITTEN = {block: told for block, told in ALL.items() if block not in SCRAPING}
WHOLE = [block for block, told in WRITTEN.items() if "rounds" in told]
PARTS: dict[str, Any] = {
    key: part for block, told in WRITTEN.items() if block not in WHOLE for key, part in told.items()
}

SECONDS = range(0, 600, 5)
ROWS = {
    "traffic": [
        {"ts": s, "detector": "AB"[s // 5 % 2], "lane": 1, "speed": 50 + s % 7, "seen": s, "done": s == 295}
        for s in SECONDS
    ],
    "east": [[s, "A", 1, 90] for s in SECONDS],
    "limits": [[0, "A", 80], [0, "B", 60], [300, "B", None]],
    "asks": [[65]],
    "lanes": [[1, "fast"]],
}
PRODDING = {"ts": 600, "seen": 600, "ask": True}


@pytest.mark.parametrize("block", SCRAPING, ids=str)
def test_prometheus_is_given_the_token_of_an_engine_and_where_it_listens(block: Block) -> None:
    for job in SCRAPING[block]["scrape_configs"]:
        assert job["job_name"]
        assert job["authorization"]["credentials_file"].endswith("endpoint.token")
        assert all(":" in target for one in job["static_configs"] for target in one["targets"])


@pytest.mark.parametrize("block", WHOLE, ids=str)
def test_a_whole_transcript_holds_in_every_variant(block: Block) -> None:
    transcript = Transcript.of(WRITTEN[block])
    for variant in variants(transcript):
        run_transcript(transcript, variant=variant)


def test_the_parts_of_the_page_are_one_program_in_which_everything_tells_something(tmp_path: Path) -> None:
    rounds = [{"rows": ROWS, "clock": 595}, {"rows": {"traffic": [PRODDING]}, "clock": 600}, {"end": True}]
    transcript = Transcript.of({**PARTS, "rounds": rounds})
    assert transcript.program is not None
    told: set[tuple[str, str]] = set()
    with Trial(transcript.program, tmp_path) as trial:
        for step in transcript.steps:
            trial.round(step.rows, step.clock, step.heartbeats, step.over)
            if step.end:
                trial.end(step.clock)
            taken = trial.output()
            assert not taken.rejected
            tables = [("early", table) for table in taken.early] + [("final", table) for table in taken.final]
            told |= {(kind, table.column("query")[0].as_py()) for kind, table in tables}
    assert {name for kind, name in told if kind == "final"} == {*PARTS["queries"], *PARTS["operators"]}
    assert {("early", "speeds"), ("early", "asked")} <= told


def test_the_page_has_a_whole_transcript_and_every_word_of_one() -> None:
    assert WHOLE
    queries, operators = PARTS["queries"].values(), PARTS["operators"].values()
    assert {key for stream in PARTS["streams"].values() for key in stream} == set(STREAM_KEYS)
    assert {key for query in queries for key in query} == set(QUERY_KEYS)
    assert {key for query in queries for key in query.get("window", ())} == set(WINDOW_KEYS)
    words = {key for operator in operators for key in operator}
    page = (Path(__file__).parents[2] / "docs" / "testing.md").read_text(encoding="utf-8")
    assert words | {"ordered", "where"} == {*MERGE_KEYS, *JOIN_KEYS, *LOOKUP_KEYS}
    assert "`ordered: false`" in page
