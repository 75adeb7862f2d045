"""Reads and runs transcripts: small stories of time in YAML, one per file of `tests/transcripts`.

Policies and instants are written as `eventide.testing.transcript_program` reads them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from eventide.errors import EventideError
from eventide.eventtime.arrays import as_plain
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.frontier import Frontier
from eventide.eventtime.heartbeat import HeartbeatGenerator, Heartbeats, Policy
from eventide.eventtime.instant import NEVER, Instants
from eventide.eventtime.punctuation import Punctuation, Span
from eventide.testing.transcript_program import built

FOLDER = Path(__file__).parent.parent / "transcripts"

STEP_KEYS = {"clock", "rows", "punctuation", "restart", "expect", "note"}
FRONTIER_STEP_KEYS = {"heartbeats", "close", "sideline", "settle", "expect", "note"}


def load(path: Path) -> dict[str, Any]:
    """The transcript in a file."""
    loaded = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert isinstance(loaded, dict), f"{path.name} is not a mapping"
    return loaded


def run(transcript: dict[str, Any], restart_always: bool = False) -> None:
    """Play a transcript; an AssertionError tells the first step that went otherwise."""
    if "policy" in transcript:
        _run_policy(transcript, restart_always)
    else:
        _run_frontier(transcript, restart_always)


def _check(step: int, what: str, found: object, expected: object) -> None:
    assert found == expected, f"step {step}: {what} is {found}, expected {expected}"


def _run_policy(transcript: dict[str, Any], restart_always: bool) -> None:
    policy: Policy = built(transcript["policy"])
    generator: Any = policy.start()
    clock = 0
    shown = Heartbeats(NEVER, _instants(()))
    for number, step in enumerate(transcript["steps"], start=1):
        assert set(step) <= STEP_KEYS, f"step {number}: unknown {sorted(set(step) - STEP_KEYS)}"
        if restart_always or step.get("restart"):
            generator = _restarted(policy, generator)
        clock = step.get("clock", clock)
        for promise in _listed(step.get("punctuation")):
            generator.take(Punctuation(**{key: built(value) for key, value in promise.items()}))
        rows = [(source, built(time)) for source, time in step.get("rows", [])]
        late = [[source, time] for source, time in rows if time <= _heartbeat(shown, source)]
        generator.observe(Arrivals.of_rows(clock, [row[0] for row in rows], [row[1] for row in rows], cell_width=1))
        found = {"late": late, "violations": _violations(generator), "withheld": getattr(generator, "withheld", 0)}
        shown = generator.heartbeats(clock)
        found |= {"combined": shown.combined, "by_source": shown.by_source.tolist()}
        # Late rows, violations and withheld rows that are not listed must not happen.
        expected = {"late": [], "violations": [], "withheld": found["withheld"]} | step.get("expect", {})
        for what, value in expected.items():
            assert what in found, f"step {number}: nothing is known of {what!r}"
            wanted = list(built(value)) if what == "by_source" else value
            _check(number, what, found[what], built(wanted) if what == "combined" else wanted)


def _restarted(policy: Policy, generator: HeartbeatGenerator) -> HeartbeatGenerator:
    return policy.resume(json.loads(json.dumps(generator.snapshot(), default=as_plain)))


def _heartbeat(shown: Heartbeats, source: int) -> int:
    """What the source was promised: an unknown one stands where all stand together."""
    return max(shown.combined, shown.of(source))


def _violations(generator: Any) -> list[dict[str, int]]:
    return [violation._asdict() for violation in getattr(generator, "violations", ())]


def _listed(written: Any) -> list[Any]:
    return written if isinstance(written, list) else [] if written is None else [written]


def _run_frontier(transcript: dict[str, Any], restart_always: bool) -> None:
    frontier = Frontier.start()
    for number, step in enumerate(transcript["frontier"], start=1):
        assert set(step) <= FRONTIER_STEP_KEYS, f"step {number}: unknown {sorted(set(step) - FRONTIER_STEP_KEYS)}"
        expected = step.get("expect", {})
        before = Frontier.restored(json.loads(json.dumps(frontier.snapshot()))) if restart_always else frontier
        if "error" in expected:
            with pytest.raises(EventideError, match=expected["error"]):
                _stepped(before, step)
        else:
            frontier = _stepped(before, step)
            assert before <= frontier, f"step {number}: the frontier went back"
        for start, end, *source in expected.get("closed", []):
            assert frontier.closed(start, end, *source), f"step {number}: {start} to {end} is not closed {source}"
        for start, end, *source in expected.get("open", []):
            assert not frontier.closed(start, end, *source), f"step {number}: {start} to {end} is closed {source}"


def _stepped(frontier: Frontier, step: dict[str, Any]) -> Frontier:
    if "heartbeats" in step:
        given = built(step["heartbeats"])
        frontier = frontier.advanced(Heartbeats(given["combined"], _instants(given["by_source"])))
    if "close" in step:
        frontier = frontier.closing(Span(*step["close"]))
    if "sideline" in step:
        frontier = frontier.sidelining(Span(*step["sideline"]))
    if "settle" in step:
        frontier = frontier.settled(Span(*step["settle"]))
    return frontier


def _instants(times: tuple[int, ...]) -> Instants:
    return np.array(times, dtype=np.int64)
