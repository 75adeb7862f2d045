"""Reads and runs transcripts: small stories of time in YAML, one per file of `tests/transcripts`.

A policy is written as `Name: arguments`, any class or function of `eventide.eventtime`, nested as needed
(`Timeout: {inner: {FixedDelay: 10}, after: 60}`, `SkewMatrix.of: ...`). `never` and `forever` are the ends of time.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import eventide.eventtime
from eventide.errors import EventideError
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.frontier import Frontier
from eventide.eventtime.heartbeat import Heartbeats, Pacemaker, Policy
from eventide.eventtime.instant import FOREVER, NEVER, Instants
from eventide.eventtime.punctuation import Punctuation
from eventide.eventtime.span import Span

FOLDER = Path(__file__).parent.parent / "transcripts"

STEP_KEYS = {"clock", "rows", "punctuation", "restart", "expect", "note"}
FRONTIER_STEP_KEYS = {"heartbeats", "close", "sideline", "settle", "expect", "note"}


def registry() -> dict[str, Any]:
    """Every public name that a module of `eventide.eventtime` defines."""
    names: dict[str, Any] = {}
    for module_info in pkgutil.iter_modules(eventide.eventtime.__path__, "eventide.eventtime."):
        module = importlib.import_module(module_info.name)
        defined_here = {k: v for k, v in vars(module).items() if getattr(v, "__module__", None) == module.__name__}
        names.update({name: value for name, value in defined_here.items() if not name.startswith("_")})
    return names


REGISTRY = registry()


def built(written: Any) -> Any:
    """The policy, bound or number that is written: `Name: arguments` is called, lists are tuples."""
    match written:
        case "never":
            return NEVER
        case "forever":
            return FOREVER
        case str() if written in REGISTRY:
            return REGISTRY[written]()
        case list():
            return tuple(built(item) for item in written)
        case dict() if len(written) == 1 and next(iter(written)).split(".")[0] in REGISTRY:
            [(name, arguments)] = written.items()
            head, *rest = name.split(".")
            factory = REGISTRY[head]
            for attribute in rest:
                factory = getattr(factory, attribute)
            if isinstance(arguments, dict) and not (len(arguments) == 1 and next(iter(arguments)) in REGISTRY):
                return factory(**{key: built(value) for key, value in arguments.items()})
            return factory() if arguments is None else factory(built(arguments))
        case dict():
            return {key: built(value) for key, value in written.items()}
        case _:
            return written


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
    pacemaker: Any = policy.start()
    clock = 0
    shown = Heartbeats(NEVER, _instants(()))
    for number, step in enumerate(transcript["steps"], start=1):
        assert set(step) <= STEP_KEYS, f"step {number}: unknown {sorted(set(step) - STEP_KEYS)}"
        if restart_always or step.get("restart"):
            pacemaker = _restarted(policy, pacemaker)
        clock = step.get("clock", clock)
        for promise in _listed(step.get("punctuation")):
            pacemaker.take(Punctuation(**{key: built(value) for key, value in promise.items()}))
        rows = [(source, built(time)) for source, time in step.get("rows", [])]
        late = [[source, time] for source, time in rows if time <= _heartbeat(shown, source)]
        pacemaker.observe(Arrivals.of_rows(clock, [row[0] for row in rows], [row[1] for row in rows], cell_width=1))
        found = {"late": late, "violations": _violations(pacemaker), "withheld": getattr(pacemaker, "withheld", 0)}
        shown = pacemaker.heartbeats(clock)
        found |= {"combined": shown.combined, "by_source": shown.by_source.tolist()}
        # Late rows, violations and withheld rows that are not listed must not happen.
        expected = {"late": [], "violations": [], "withheld": found["withheld"]} | step.get("expect", {})
        for what, value in expected.items():
            assert what in found, f"step {number}: nothing is known of {what!r}"
            wanted = list(built(value)) if what == "by_source" else value
            _check(number, what, found[what], built(wanted) if what == "combined" else wanted)


def _restarted(policy: Policy, pacemaker: Pacemaker) -> Pacemaker:
    return policy.resume(json.loads(json.dumps(pacemaker.snapshot())))


def _heartbeat(shown: Heartbeats, source: int) -> int:
    """What the source was promised: an unknown one stands where all stand together."""
    return max(shown.combined, shown.of(source))


def _violations(pacemaker: Any) -> list[dict[str, int]]:
    return [vars(violation) for violation in getattr(pacemaker, "violations", ())]


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
