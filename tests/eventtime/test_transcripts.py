"""Every transcript holds, also when the policy is saved and restored before every step; some must fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from eventide.eventtime.early.triggers import Earliness
from eventide.eventtime.heartbeat import Policy, SavedPolicy
from eventide.testing.transcript_program import registry
from tests.eventtime.transcript import FOLDER, load, run

TRANSCRIPTS = sorted(FOLDER.glob("*.yaml"))
MUST_FAIL = [path for path in TRANSCRIPTS if path.name.startswith("must_fail")]
MUST_HOLD = [path for path in TRANSCRIPTS if path not in MUST_FAIL]


def name_of(path: Path) -> str:
    return path.stem


@pytest.mark.parametrize("restart_always", [False, True], ids=["running through", "restarted before every step"])
@pytest.mark.parametrize("path", MUST_HOLD, ids=name_of)
def test_transcript_holds(path: Path, restart_always: bool) -> None:
    run(load(path), restart_always)


@pytest.mark.parametrize("path", MUST_FAIL, ids=name_of)
def test_transcript_that_must_fail_does_so_where_it_says(path: Path) -> None:
    transcript = load(path)
    with pytest.raises(AssertionError, match=transcript["fails"]):
        run(transcript)


def test_there_is_a_transcript_that_must_fail() -> None:
    assert MUST_FAIL


def test_every_policy_has_a_transcript() -> None:
    policies = {
        name
        for name, value in registry().items()
        # The control of early answers starts and resumes too, and says nothing of time.
        if isinstance(value, type) and value not in (Policy, SavedPolicy, Earliness)
        if hasattr(value, "start") and hasattr(value, "resume")
    }
    told = {name for path in MUST_HOLD for name in policies if f"{name}:" in path.read_text(encoding="utf-8")}
    assert told == policies, f"without a transcript: {sorted(policies - told)}"
