"""Merges, projections and joins in the tree that `explain` shows, and the attributes that carry time."""

from __future__ import annotations

from typing import Any

from rich.tree import Tree

from eventide.commands.explain_lines import line, named, sql_text, titled


def operator_branch(tree: Tree, operator: dict[str, Any]) -> Tree:
    """The node of an operator."""
    branch = tree.add(titled(operator["kind"], operator["name"]))
    branch.add(line("reads", ", ".join(operator["reads"])))
    if "join" in operator:
        _add_join(branch, operator)
    if operator["where"]:
        branch.add(line("where", operator["where"]))
    branch.add(line("rows", ", ".join(named(value) for value in operator["values"]) or "as they come"))
    add_attributes(branch, operator["temporal"])
    for held in operator["held"]:
        branch.add(line("holds", held))
    if operator["note"]:
        branch.add(line("note", operator["note"]))
    if operator["reduce"]:
        above = branch.add(line("reduce", "its rows are rows of what reads it, in the same round"))
        above.add(sql_text(operator["reduce"]))
    branch.add(line("results", operator["output"] or "to other queries"))
    return branch


def _add_join(branch: Tree, join: dict[str, Any]) -> None:
    sides = ", ".join(name if name == read else f"{read} as {name}" for name, read in join["inputs"].items())
    branch.add(line("pairs", f"{join['join']} join of {sides}"))
    for alias, where in join["before"].items():
        branch.add(line(f"of {alias} only", where))
    for band in join["bands"]:
        branch.add(line("times", band["words"]))
    left, right = join["inputs"]
    if join["keys"]:
        branch.add(line("keys", ", ".join(f"{left}.{one} = {right}.{other}" for one, other in join["keys"])))
    if join["condition"]:
        branch.add(line("condition", join["condition"]))


def add_attributes(branch: Tree, attributes: list[dict[str, Any]]) -> None:
    """The outputs that carry time, and what a heartbeat h says of their later values."""
    for told in attributes:
        branch.add(line("carries time", f"{told['name']}, {told['direction']}; after heartbeat h, {told['after']}"))
