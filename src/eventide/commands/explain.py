"""`eventide explain`, and the answers to SHOW and EXPLAIN in a script.

*The command* prints the plan of a script on standard output, as a tree or as one JSON object.

*Statements.* SHOW STREAMS, SHOW QUERIES and EXPLAIN are answered before the script runs. An answer is about what stands
before its statement. Answers are printed in the order of the statements, on standard output; on standard error where
standard output is for JSON alone.
"""

from __future__ import annotations

import json
import sys

from rich.console import Console, RenderableType
from rich.text import Text

from eventide.endpoint.client import Client
from eventide.errors import DeclarationError
from eventide.language.grammar.source_text import ShowStatement
from eventide.language.script import Script
from eventide.launch.settings import script_of, shown_as
from eventide.pages.page import write_page
from eventide.pages.plan_page import plan_page
from eventide.plan.declared.program import reads
from eventide.report.explain import WIDTH_ELSEWHERE, add_measured, line, output_words, plan_of, trees


def explain_file(file: str, as_json: bool, html: str | None, analyze: str | None) -> None:
    """Show the plan of a script on standard output, and write it as a page where one is named.

    `analyze` is the checkpoint of a run of the script: each step then has what was measured there.
    """
    script = script_of(file)
    if not script.program.streams:
        raise DeclarationError(f"{shown_as(file)}: there is nothing to explain: it declares no stream")
    plan = plan_of(script)
    if analyze is not None:
        add_measured(plan, Client.of_checkpoint(analyze).ask("GET", "/status"))
    if html is not None:
        write_page(html, plan_page(shown_as(file), script, plan))
    if as_json:
        print(json.dumps(plan))
        return
    console = Console(width=None if sys.stdout.isatty() else WIDTH_ELSEWHERE, highlight=False)
    for tree in trees(plan):
        console.print(tree)
    for alert in plan["alerts"]:
        console.print(line(f"alert {alert['name']}", alert["says"]))
    console.print(line("driver.memory", plan["driver_memory"]["words"]))


def answer_statements(script: Script, to_stderr: bool) -> None:
    """Print the answers to SHOW and EXPLAIN."""
    screen = sys.stderr if to_stderr else sys.stdout
    console = Console(file=screen, width=None if screen.isatty() else WIDTH_ELSEWHERE, highlight=False)
    for answer in answers(script):
        console.print(answer)


def answers(script: Script) -> list[RenderableType]:
    """The answer to each statement that asks something.

    >>> from eventide.language.script import read_script
    >>> text = "CREATE STREAM s (t BIGINT) FROM csv 'in'; SELECT count(*) FROM s [RANGE 5] ; SHOW STREAMS; SHOW QUERIES"
    >>> print(*answers(read_script(text)), sep="\\n")
    s (t BIGINT)
    query_1 reads s, results to the console
    """
    found: list[RenderableType] = []
    for statement, before in script.questions:
        if isinstance(statement, ShowStatement):
            found += _streams(before) if statement.kind == "streams" else _queries(before)
        else:
            found += trees(plan_of(before), only=statement.name)
    return found


def _streams(script: Script) -> list[Text]:
    return [
        Text(f"{stream.name} ({', '.join(f'{column.name} {column.type}' for column in stream.columns)})")
        for stream in script.program.inputs
    ]


def _queries(script: Script) -> list[Text]:
    places = {output.query: output_words(output) for output in script.outputs}
    return [
        Text(f"{step.name} reads {', '.join(reads(step))}, results to {places.get(step.name, 'other queries')}")
        for step in (*script.program.queries, *script.program.operators)
    ]
