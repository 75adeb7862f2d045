"""The plan of a program or of a script as trees for a terminal.

The tree says, from the top down: what each stream is and how its time moves, what its rows become, and for each query
its windows, what slices keep, what runs where, and the SQL of each step.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from rich.console import Console, RenderableType
from rich.syntax import Syntax
from rich.text import Text
from rich.tree import Tree

from eventide.engine.operators.placement import DRIVER_MEMORY
from eventide.language.script import OutputTarget, Script
from eventide.launch.settings import RunSettings
from eventide.plan.declared.alert import AlertRule
from eventide.plan.declared.program import Program
from eventide.profile.amounts import spoken
from eventide.report.plan import described
from eventide.sinks.sink import FORMATS


def titled(kind: str, name: str) -> Text:
    """What a node is, and its name."""
    return Text.assemble((f"{kind} ", ""), (name, "bold"))


def line(title: str, words: str) -> Text:
    """A property and what it is."""
    return Text.assemble((f"{title}: ", "cyan"), words)


def named(item: dict[str, Any]) -> str:
    """A column: its name, what it is computed from, its type.

    >>> named({"name": "kmh", "sql": "speed * 1.6", "type": "DOUBLE"}), named({"name": "car", "sql": "car"})
    ('kmh = speed * 1.6 (DOUBLE)', 'car')
    """
    kind = f" ({item['type']})" if "type" in item else ""
    return f"{item['name']}{kind}" if item["sql"] == item["name"] else f"{item['name']} = {item['sql']}{kind}"


def sql_text(text: str) -> RenderableType:
    """SQL, in colours on a terminal."""
    if not sys.stdout.isatty():
        return Text(text)
    return Syntax(text, "sql", theme="ansi_dark", background_color="default", word_wrap=True)


def operator_branch(tree: Tree, operator: dict[str, Any]) -> Tree:
    """The node of an operator."""
    branch = tree.add(titled(operator["kind"], operator["name"]))
    _add_measured(branch, operator)
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
    for attribute in attributes:
        branch.add(
            line(
                "carries time",
                f"{attribute['name']}, {attribute['direction']}; after heartbeat h, {attribute['after']}",
            )
        )


WIDTH_ELSEWHERE = 120


def show_program(program: Program, only: str | None = None) -> None:
    """Show the plan of a program, or of one query of it, on standard output."""
    console = Console(width=None if sys.stdout.isatty() else WIDTH_ELSEWHERE, highlight=False)
    for tree in trees(described(program, {}, ()), only):
        console.print(tree)


def plan_of(script: Script) -> dict[str, Any]:
    """The plan of a script as plain data."""
    outputs = {output.query: output_words(output) for output in script.outputs}
    settings = RunSettings.of(script.settings)
    memory = DRIVER_MEMORY if settings.driver_memory is None else settings.driver_memory
    plan = described(script.program, outputs, script.functions, None if settings.engine == "local" else memory)
    return plan | {"alerts": [vars(rule) | {"says": alert_words(rule)} for rule in script.alerts]}


def alert_words(rule: AlertRule) -> str:
    """When an alert of a script is raised.

    >>> alert_words(AlertRule("late", "cars", "lag > 30.0", "lag > 30 s", ("lag",), lasting=60.0))
    'on cars when lag > 30 s for 1 min'
    """
    until = f" for {spoken(round(rule.lasting * 1_000_000), False)}" if rule.lasting else ""
    return f"on {rule.of} when {rule.words}{until}"


def add_measured(plan: dict[str, Any], status: Mapping[str, Any]) -> None:
    """Add to each step of a plan what it has done in a run, by the run's status (Gigascope paper, section 6.3)."""
    state = {one["name"]: one for one in status["queries"]}
    for step in (*plan["streams"], *plan["queries"], *plan["operators"]):
        work = status["work"].get(step["name"])
        if work is not None:
            step["measured"] = {**work, "words": measured_words(work, state.get(step["name"]))}


def measured_words(work: Mapping[str, Any], state: Mapping[str, Any] | None) -> str:
    """What a step has done, and what it holds, in words.

    >>> measured_words({"rows_in": 2_000, "rows_out": 500, "selectivity": 0.25, "seconds_per_row": 1.5e-6}, None)
    '2,000 rows in, 500 out (selectivity 0.25), 1.5 µs a row'
    """
    words = f"{work['rows_in']:,} rows in, {work['rows_out']:,} out"
    if work["selectivity"] is not None:
        words += f" (selectivity {work['selectivity']:.3g}), {1e6 * work['seconds_per_row']:.3g} µs a row"
    if state is not None:
        words += f"; holds {state['state_rows']:,} rows, {state['state_bytes']:,} bytes ({state['placement']})"
    return words


def _add_measured(branch: Tree, step: dict[str, Any]) -> None:
    if "measured" in step:
        branch.add(line("measured", step["measured"]["words"]))


def output_words(output: OutputTarget) -> str:
    """Where the results of a query go, in words.

    >>> output_words(OutputTarget("q", "parquet", "out")), output_words(OutputTarget("q"))
    ('parquet files in out', 'the console')
    """
    if output.path is not None:
        return f"{output.kind} files in {output.path}" if output.kind in FORMATS else f"{output.kind}: {output.path}"
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
    tree = Tree(titled("stream", stream["name"]))
    _add_measured(tree, stream)
    if "twin_of" in stream:
        tree.add(line("rows", f"those of stream {stream['twin_of']}, with a controller of their own"))
    else:
        tree.add(line("rows", ", ".join(f"{name} {kind}" for name, kind in stream["columns"].items())))
        if "computed" in stream:
            tree.add(line("computed", ", ".join(f"{name} = {sql}" for name, sql in stream["computed"].items())))
        tree.add(line("from", _input(stream["input"])))
    tree.add(line("time", stream["time"]))
    add_attributes(tree, stream["temporal"])
    tree.add(line("sources", ", ".join(stream["source"]) or "one: the stream itself"))
    if stream["arrival"]:
        tree.add(line("clock", f"column {stream['arrival']}, the largest so far"))
    tree.add(line("time moves", stream["policy"]))
    if stream["punctuation"]:
        ranges = "".join(f", {name} from {low} to {high}" for name, low, high in stream.get("promised", ()))
        tree.add(line("promises", f"rows in which {stream['punctuation']} is TRUE{ranges}; they are no data"))
    if stream["prods"]:
        tree.add(line("prods", f"rows in which {stream['prods']} is TRUE; they are no data"))
    if stream["future"]:
        tree.add(line("future", stream["future"]))
    if stream["reduce"]:
        step = tree.add(line("reduce", "every row is read once, in Spark (in DuckDB on the local engine)"))
        step.add(sql_text(stream["reduce"]))
    elif "twin_of" in stream:
        tree.add(line("reduce", f"by the statement of stream {stream['twin_of']}, which reads every row once for both"))
    return tree


def _query(tree: Tree, query: dict[str, Any]) -> Tree:
    branch = tree.add(titled("query", query["name"]))
    _add_measured(branch, query)
    window = query["window"]
    panes = f" -> {window['panes']}" if window["panes"] else ""
    branch.add(line("windows", window["words"] + panes))
    branch.add(line("closes", query["closes"]))
    if query["sample"]:
        branch.add(line("sample", f"{100 * query['sample']:g} % of the rows"))
    if query["where"]:
        branch.add(line("where", query["where"]))
    groups = ", ".join(named(group) for group in query["groups"])
    branch.add(line("groups", groups or "one: all rows of a window"))
    branch.add(line("values", ", ".join(named(value) for value in query["values"]) or "none: the groups alone"))
    add_attributes(branch, query["temporal"])
    if query["having"]:
        branch.add(line("having", query["having"]))
    if query["order"] or query["limit"]:
        first = f", the first {query['limit']:,}" if query["limit"] else ""
        branch.add(line("in each window", f"ordered by {', '.join(query['order']) or 'groups'}{first}"))
    if query["retain"]:
        branch.add(line("revised", "by late rows, while retained"))
    if query["changes"]:
        branch.add(line("changes", "every round emits the values that it has changed"))
    if query["prods"]:
        branch.add(line("early", query["prods"]))
    _add_steps(branch, query)
    if query["note"]:
        branch.add(line("note", query["note"]))
    branch.add(line("results", query["output"] or "to other queries"))
    return branch


def _add_steps(branch: Tree, query: dict[str, Any]) -> None:
    slices, merge = query["slices"], query["merge"]
    if slices is not None:
        kept = branch.add(line("slices keep", slices["words"]))
        if slices["keep"] == "rows":
            kept.add(sql_text(slices["reduce"]))
    if merge is not None:
        closing = branch.add(line("closing a window", f"on {merge['place']}"))
        closing.add(sql_text(merge["sql"]))
    if query["reduce"]:
        above = branch.add(line("reduce", "results are rows of the queries that read them, in the same round"))
        above.add(sql_text(query["reduce"]))


def _input(given: dict[str, Any] | None) -> str:
    if given is None:
        return "nowhere yet: no input is declared"
    path = f" {given['path']}" if given["path"] else ""
    options = ", ".join(f"{key}={value}" for key, value in given["options"].items())
    limits = ", ".join(f"{key} {given[key]:,}" for key in ("max_files", "max_offsets", "max_rows") if key in given)
    return f"{given['format']}{path}" + (f" ({options})" if options else "") + (f", {limits}" if limits else "")
