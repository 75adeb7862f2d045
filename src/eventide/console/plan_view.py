"""The page *Plan*: what computes what, how much of it there is and where, and which way waits for which.

Law: a way from A to B waits where B's next step needs more of A's time; the way that waits is the one that `why` names.
Rates are left to whoever looks: rows and seconds are told as sums, and two of them make a rate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eventide.console.subject import Look, Standing
from eventide.engine.introspection.status import QueryStatus
from eventide.engine.operators.operator import Work
from eventide.plan.declared.program import Step, reads
from eventide.plan.declared.query import Query
from eventide.plan.declared.stream import TimeKind
from eventide.report.plan import described
from eventide.report.traces import visit_words
from eventide.report.why import operator_words, window_words
from eventide.telemetry.tracing import traces_data

TRACES = 3
"""So many heartbeats are drawn that are on their way, and as many that are over."""


def plan_view(look: Look) -> dict[str, Any]:
    """All nodes and the ways between them."""
    standing = look.standing
    program, status = standing.program, standing.status
    state = {one.name: one for one in status.queries}
    nodes: list[dict[str, Any]] = [
        {
            "name": one.name,
            "kind": "stream",
            "rows_in": one.rows,
            "rows_out": one.wanted,
            "bound": one.heartbeat,
            "lag": one.lag,
            "unitless": one.unitless,
            "late": one.late,
            "sources": one.sources,
            "backlog": sum(one.backlog.values()) if one.backlog else None,
        }
        for one in status.streams
    ]
    latest = {one.name: one.latest for one in status.streams}
    edges = []
    for step in program.steps:
        found = state.get(step.name)
        waiting = _waited_for(found)
        edges += [{"from": read, "to": step.name, "waits": read in waiting} for read in reads(step)]
        unitless = program.times_of(step.name) is TimeKind.SEQUENCE
        bounds = {node["name"]: node["bound"] for node in nodes}
        node = _step(step, found, unitless, status.work.get(step.name, Work()))
        if node["bound"] is None:
            # In the windows of what it reads, it is as far as that.
            node["bound"] = min(_known(bounds, step), default=None)
        latest[step.name] = max(_known(latest, step), default=None)
        node["lag"] = _behind(node["bound"], latest[step.name])
        nodes.append(node)
    chosen = look.asked.get("node", "")
    return {"nodes": nodes, "edges": edges, "node": chosen, "why": _why(standing, chosen), **_heartbeats(standing)}


def plan_texts(standing: Standing) -> dict[str, Any]:
    """Everything that stays: the SQL of each step, temporal attributes, what is kept, in the words of `explain`."""
    memory = None if standing.status.engine in ("local", "stopped") else 0
    plan = described(standing.program, memory=memory) if memory is None else described(standing.program)
    return {kind: {one["name"]: one for one in plan[kind]} for kind in ("streams", "queries", "operators")}


def _step(step: Step, found: QueryStatus | None, unitless: bool, work: Work) -> dict[str, Any]:
    kind = "query" if isinstance(step, Query) else type(step).__name__.lower()
    told: dict[str, Any] = {"name": step.name, "kind": "merge" if kind == "rows" else kind, "unitless": unitless}
    if found is None:
        # Whoever reads it reads its inputs: it does not run by itself.
        return told | {"passes": True, "bound": None}
    return told | {
        "place": found.placement,
        "state_rows": found.state_rows,
        "state_bytes": found.state_bytes,
        "open": found.open_slices,
        "bound": found.bound,
        **vars(work),
    }


def _known(times: Mapping[str, int | None], step: Step) -> list[int]:
    """The times of what a step reads, as far as they are known."""
    return [known for read in reads(step) if (known := times.get(read)) is not None]


def _behind(bound: int | None, latest: int | None) -> int | None:
    """How far a step is behind the latest row of all streams below it."""
    return None if bound is None or latest is None else max(0, latest - bound)


def _waited_for(found: QueryStatus | None) -> set[str]:
    """The names of all that the next step of an operator waits for, however long the way."""
    names: set[str] = set()
    ahead: list[Any] = [found.waits_for] if found is not None and found.waits_for else []
    while ahead:
        one = ahead.pop()
        # Each wait has one text: the name of what is waited for, under its kind.
        names.update(value for value in one.values() if isinstance(value, str))
        below = one.get("waits_for")
        ahead += below if isinstance(below, list) else [below] if isinstance(below, dict) else []
    return names


def _heartbeats(standing: Standing) -> dict[str, Any]:
    """The newest heartbeats on their way, with what each waits for in words, and how long all waited at each step."""
    data = traces_data(standing.traces, standing.progress, TRACES)
    for trace in data["traces"]:
        for visit in trace["visits"]:
            visit["words"] = visit_words(visit)
    return data


def _why(standing: Standing, name: str) -> str | None:
    """The sentence of `eventide why` about a step."""
    progress = standing.progress
    steps = {step.name: step for step in standing.program.steps}
    if progress is None or name not in steps or name not in progress.record.queries:
        return None
    if isinstance(steps[name], Query):
        windows = progress.windows(name, most=1)
        return window_words(windows[0]) if windows else None
    found = progress.operator(name)
    unitless = standing.program.times_of(name) is TimeKind.SEQUENCE
    return None if found is None else operator_words(found[1], found[0], unitless)
