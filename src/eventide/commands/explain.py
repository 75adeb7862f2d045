"""`eventide explain`: the plan of a script as a tree, or as one JSON object.

The tree says, from the top down: what each stream is and how its time moves, what its rows become, and for each query
its windows, what slices keep, what runs where, and the SQL of each step.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from rich.console import Console, RenderableType
from rich.syntax import Syntax
from rich.text import Text
from rich.tree import Tree

from eventide.commands.plan_words import described
from eventide.commands.script_file import script_of, shown_as
from eventide.errors import DeclarationError
from eventide.language.script import Output, Script

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


def plan_of(script: Script) -> dict[str, Any]:
    """The plan as plain data."""
    outputs = {output.query: output_words(output) for output in script.outputs}
    return described(script.program, outputs, script.functions)


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
    queries = plan["queries"] if only is None else _way_to(plan["queries"], only)
    found = []
    for stream in plan["streams"]:
        if only is None or any(query["reads"] == stream["name"] for query in queries):
            tree = _stream(stream)
            _add_readers(tree, stream["name"], queries)
            found.append(tree)
    return found


def _way_to(queries: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    by_name = {query["name"]: query for query in queries}
    way = []
    while name in by_name:
        way.append(by_name[name])
        name = by_name[name]["reads"]
    return way


def _add_readers(tree: Tree, name: str, queries: list[dict[str, Any]]) -> None:
    for query in queries:
        if query["reads"] == name:
            _add_readers(_query(tree, query), query["name"], queries)


def _stream(stream: dict[str, Any]) -> Tree:
    tree = Tree(_titled("stream", stream["name"]))
    tree.add(_line("rows", ", ".join(f"{name} {kind}" for name, kind in stream["columns"].items())))
    tree.add(_line("from", _input(stream["input"])))
    tree.add(_line("time", stream["time"]))
    tree.add(_line("sources", ", ".join(stream["source"]) or "one: the stream itself"))
    if stream["arrival"]:
        tree.add(_line("clock", f"column {stream['arrival']}, the largest so far"))
    tree.add(_line("time moves", stream["policy"]))
    if stream["punctuation"]:
        tree.add(_line("promises", f"rows in which {stream['punctuation']} is TRUE; they are no data"))
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
    if query["having"]:
        branch.add(_line("having", query["having"]))
    if query["order"] or query["limit"]:
        first = f", the first {query['limit']:,}" if query["limit"] else ""
        branch.add(_line("in each window", f"ordered by {', '.join(query['order']) or 'groups'}{first}"))
    if query["retain"]:
        branch.add(_line("revised", "by late rows, while retained"))
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


def _named(item: dict[str, Any]) -> str:
    kind = f" ({item['type']})" if "type" in item else ""
    return f"{item['name']}{kind}" if item["sql"] == item["name"] else f"{item['name']} = {item['sql']}{kind}"


def _input(given: dict[str, Any] | None) -> str:
    if given is None:
        return "nowhere yet: no input is declared"
    path = f" {given['path']}" if given["path"] else ""
    options = ", ".join(f"{key}={value}" for key, value in given["options"].items())
    limits = ", ".join(f"{key} {given[key]:,}" for key in ("max_files", "max_offsets", "max_rows") if key in given)
    return f"{given['format']}{path}" + (f" ({options})" if options else "") + (f", {limits}" if limits else "")


def _titled(kind: str, name: str) -> Text:
    return Text.assemble((f"{kind} ", ""), (name, "bold"))


def _line(title: str, words: str) -> Text:
    return Text.assemble((f"{title}: ", "cyan"), words)


def _sql(text: str) -> RenderableType:
    if not sys.stdout.isatty():
        return Text(text)
    return Syntax(text, "sql", theme="ansi_dark", background_color="default", word_wrap=True)
