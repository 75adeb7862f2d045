"""Heartbeat traces for people: where a heartbeat has been, how long it waited there, and what it waits for now.

The lines are made of the plain data that `GET /traces` answers, so that they are the same whoever asks.

>>> seconds(0.0042), seconds(0.25), seconds(72.0)
('4 ms', '250 ms', '1 min 12 s')
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from eventide.profile.amounts import spoken
from eventide.report.why import moment

Json = Mapping[str, Any]
FEW = 3


def seconds(length: float) -> str:
    """A length of time for people; below a millisecond nobody cares."""
    micros = round(length * 1_000_000)
    return spoken(micros if micros < 1000 else round(micros, -3 if micros < 10_000_000 else -6), False)


def trace_lines(found: Json, last: int) -> Iterator[str]:
    """The last traces, step by step, and below them how long heartbeats waited at each step."""
    for trace in found["traces"][:last]:
        yield _title(trace)
        width = max(len(visit["step"]) for visit in trace["visits"])
        yield from (f"  {visit['step']:{width}}  {visit_words(visit)}" for visit in trace["visits"])
    if found["waits"]:
        yield f"waits of the last {len([one for one in found['traces'] if one['over']]):,} that came to the top:"
        width = max(len(one["step"]) for one in found["waits"])
        for one in found["waits"]:
            yield f"  {one['step']:{width}}  {seconds(one['mean'])} on average, {seconds(one['longest'])} at most"


def _title(trace: Json) -> str:
    who = f"{trace['source']} of {trace['stream']}" if trace["source"] else trace["stream"]
    unitless, sampled = trace["time_at"] is None, trace["sampled"]
    at = "" if sampled["at"] is None else f", sampled at {moment(round(sampled['at'] * 1000) * 1000)}"
    return f"heartbeat {moment(trace['time'], unitless)} of {who}, round {sampled['round']}{at}"


def visit_words(visit: Json) -> str:
    """What became of a heartbeat at a step."""
    if visit["left"] is None:
        return f"waits for {waits_words(visit['waits_for'])}"
    if visit["waited"] is not None:
        rounds = visit["left"]["round"] - visit["arrived"]["round"]
        return seconds(visit["waited"]) + (f", {rounds:,} round{'' if rounds == 1 else 's'}" if rounds else "")
    return "is through"


def waits_words(wait: Json | None) -> str:
    """What a heartbeat waits for, down to the sources that hold it.

    >>> waits_words({"merge": "all", "waits_for": [{"stream": "s", "sources": [{"source": "b"}], "count": 1}]})
    'merge all, b of stream s'
    >>> waits_words({"query": "q", "rows_missing": 2, "waits_for": {"stream": "s", "sources": [], "count": 0}})
    'query q, stream s'
    >>> waits_words(None)
    'the next round'
    """
    steps = []
    while wait is not None and "stream" not in wait:
        steps += [f"{kind} {name}" for kind, name in wait.items() if isinstance(name, str)]
        below = wait["waits_for"]
        wait = below[0] if isinstance(below, list) else below
    if wait is not None:
        names = [one["source"] for one in wait["sources"][:FEW] if one["source"] is not None]
        more = wait["count"] - len(names) if names else 0
        who = f"{', '.join(names)}{f' and {more:,} more' if more else ''} of " if names else ""
        steps.append(f"{who}stream {wait['stream']}")
    return ", ".join(steps) or "the next round"
