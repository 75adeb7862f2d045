"""`eventide explain`: the plan of a script as a tree, or as one JSON object.

The tree says, from the top down: what each stream is and how its time moves, what its rows become, and for each query
its windows, what slices keep, what runs where, and the SQL of each step.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from eventide.commands.explain_lines import line as _line
from eventide.commands.explain_lines import named as _named
from eventide.commands.explain_lines import sql_text as _sql
from eventide.commands.explain_lines import titled as _titled
from eventide.commands.explain_operators import add_attributes, operator_branch
from eventide.commands.plan_words import described
from eventide.commands.script_file import script_of, shown_as
from eventide.commands.settings import RunSettings
from eventide.errors import DeclarationError
from eventide.language.script import Output, Script
from eventide.plan.declared.program import Program

WIDTH_ELSEWHERE = 120


def explain_file(file: str, as_json: bool) -> None:
    """Show the plan of a script on standard output."""
    script = script_of(file)
    if not script.program.streams:
        raise DeclarationError(f"{shown_as(file)}: there is nothing to explain: it declares no stream")
    plan = plan_of(script)
    if as_json:
        print(json.dumps(plan))
        return
    console = Console(width=None if sys.stdout.isatty() else WIDTH_ELSEWHERE, highlight=False)
    for tree in trees(plan):
        console.print(tree)
    console.print(_line("driver.memory", plan["driver_memory"]["words"]))


def show_program(program: Program, only: str | None = None) -> None:
    """Show the plan of a program, or of one query of it, on standard output."""
    console = Console(width=None if sys.stdout.isatty() else WIDTH_ELSEWHERE, highlight=False)
    for tree in trees(described(program, {}, ()), only):
        console.print(tree)


def plan_of(script: Script) -> dict[str, Any]:
    """The plan as plain data."""
    outputs = {output.query: output_words(output) for output in script.outputs}
    memory = RunSettings.of(script.settings).driver_memory
    return described(script.program, outputs, script.functions, memory)


def output_words(output: Output) -> str:
    """Where results go.

    >>> output_words(Output("q", "parquet", "out")), output_words(Output("q"))
    ('parquet files in out', 'the console')
    """
    if output.path is not None:
        return f"{output.kind} files in {output.path}"
    return "the console" if output.kind == "console" else output.kind


def trees(plan: dict[str, Any], only: str | None = None) -> list[Tree]:
    """One tree for each stream: its queries below it, and below each of them those that read it.

    `only` names a query: what that one reads is shown, and no other query.
    """
    steps = [*plan["operators"], *plan["queries"]]
    steps = steps if only is None else _way_to(steps, only)
    found, shown = [], set[str]()
    for stream in plan["streams"]:
        if only is None or any(stream["name"] in _reads(step) for step in steps):
            tree = _stream(stream)
            _add_readers(tree, stream["name"], steps, shown)
            found.append(tree)
    return found


def _reads(step: dict[str, Any]) -> list[str]:
    return [step["reads"]] if isinstance(step["reads"], str) else list(step["reads"])


def _way_to(steps: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    by_name = {step["name"]: step for step in steps}
    way: dict[str, dict[str, Any]] = {}
    rest = [name]
    while rest:
        step = by_name.get(rest.pop())
        if step is not None:
            way[step["name"]] = step
            rest += _reads(step)
    return [step for step in steps if step["name"] in way]


def _add_readers(tree: Tree, name: str, steps: list[dict[str, Any]], shown: set[str]) -> None:
    for step in steps:
        if name not in _reads(step):
            continue
        if step["name"] in shown:
            tree.add(Text.assemble("into ", (step["name"], "bold"), ", shown above"))
            continue
        shown.add(step["name"])
        branch = operator_branch(tree, step) if "held" in step else _query(tree, step)
        _add_readers(branch, step["name"], steps, shown)


def _stream(stream: dict[str, Any]) -> Tree:
    tree = Tree(_titled("stream", stream["name"]))
    tree.add(_line("rows", ", ".join(f"{name} {kind}" for name, kind in stream["columns"].items())))
    tree.add(_line("from", _input(stream["input"])))
    tree.add(_line("time", stream["time"]))
    add_attributes(tree, stream["temporal"])
    tree.add(_line("sources", ", ".join(stream["source"]) or "one: the stream itself"))
    if stream["arrival"]:
        tree.add(_line("clock", f"column {stream['arrival']}, the largest so far"))
    tree.add(_line("time moves", stream["policy"]))
    if stream["punctuation"]:
        tree.add(_line("promises", f"rows in which {stream['punctuation']} is TRUE; they are no data"))
    if stream["prods"]:
        tree.add(_line("prods", f"rows in which {stream['prods']} is TRUE; they are no data"))
    if stream["future"]:
        tree.add(_line("future", stream["future"]))
    if stream["reduce"]:
        step = tree.add(_line("reduce", "every row is read once, in Spark (in DuckDB on the local engine)"))
        step.add(_sql(stream["reduce"]))
    return tree


def _query(tree: Tree, query: dict[str, Any]) -> Tree:
    branch = tree.add(_titled("query", query["name"]))
    window = query["window"]
    panes = f" -> {window['panes']}" if window["panes"] else ""
    branch.add(_line("windows", window["words"] + panes))
    branch.add(_line("closes", query["closes"]))
    if query["sample"]:
        branch.add(_line("sample", f"{100 * query['sample']:g} % of the rows"))
    if query["where"]:
        branch.add(_line("where", query["where"]))
    groups = ", ".join(_named(group) for group in query["groups"])
    branch.add(_line("groups", groups or "one: all rows of a window"))
    branch.add(_line("values", ", ".join(_named(value) for value in query["values"]) or "none: the groups alone"))
    add_attributes(branch, query["temporal"])
    if query["having"]:
        branch.add(_line("having", query["having"]))
    if query["order"] or query["limit"]:
        first = f", the first {query['limit']:,}" if query["limit"] else ""
        branch.add(_line("in each window", f"ordered by {', '.join(query['order']) or 'groups'}{first}"))
    if query["retain"]:
        branch.add(_line("revised", "by late rows, while retained"))
    if query["prods"]:
        branch.add(_line("early", query["prods"]))
    _add_steps(branch, query)
    if query["note"]:
        branch.add(_line("note", query["note"]))
    branch.add(_line("results", query["output"] or "to other queries"))
    return branch


def _add_steps(branch: Tree, query: dict[str, Any]) -> None:
    slices, merge = query["slices"], query["merge"]
    if slices is not None:
        kept = branch.add(_line("slices keep", slices["words"]))
        if slices["keep"] == "rows":
            kept.add(_sql(slices["reduce"]))
    if merge is not None:
        closing = branch.add(_line("closing a window", f"on {merge['place']}"))
        closing.add(_sql(merge["sql"]))
    if query["reduce"]:
        above = branch.add(_line("reduce", "results are rows of the queries that read them, in the same round"))
        above.add(_sql(query["reduce"]))


def _input(given: dict[str, Any] | None) -> str:
    if given is None:
        return "nowhere yet: no input is declared"
    path = f" {given['path']}" if given["path"] else ""
    options = ", ".join(f"{key}={value}" for key, value in given["options"].items())
    limits = ", ".join(f"{key} {given[key]:,}" for key in ("max_files", "max_offsets", "max_rows") if key in given)
    return f"{given['format']}{path}" + (f" ({options})" if options else "") + (f", {limits}" if limits else "")
