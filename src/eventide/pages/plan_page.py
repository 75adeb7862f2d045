"""The page of `eventide explain --html`: what computes what as a picture, and the words of `explain` about each step.

Law: all that the page says is what `explain --json` says of the same script.
"""

from __future__ import annotations

from typing import Any

from eventide.language.script import Script
from eventide.pages.page import page
from eventide.plan.declared.program import reads


def plan_page(name: str, script: Script, plan: dict[str, Any]) -> str:
    """A page of a script and its plan, as `plan_of` describes it."""
    nodes = [
        *({"name": one["name"], "kind": "stream", "lines": _stream_lines(one)} for one in plan["streams"]),
        *({"name": one["name"], "kind": "query", "lines": _query_lines(one)} for one in plan["queries"]),
        *({"name": one["name"], "kind": one["kind"], "lines": [one["output"]]} for one in plan["operators"]),
    ]
    edges = [{"from": read, "to": step.name, "waits": False} for step in script.program.steps for read in reads(step)]
    texts = {kind: {one["name"]: one for one in plan[kind]} for kind in ("streams", "queries", "operators")}
    shown = {"name": name, "memory": plan["driver_memory"]["words"], "nodes": nodes, "edges": edges, "texts": texts}
    return page(f"{name} - eventide explain", "plan.js", shown)


def _stream_lines(one: dict[str, Any]) -> list[str]:
    sources = f"sources by {', '.join(one['source'])}" if one["source"] else "one source"
    return [one["time"], sources, one["policy"]]


def _query_lines(one: dict[str, Any]) -> list[str]:
    groups = ", ".join(group["name"] for group in one["groups"])
    return [one["window"]["words"], f"by {groups}" if groups else "no groups", f"to {one['output']}"]
