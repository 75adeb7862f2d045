"""Every event of the log has a name that stays, and docs/operations.md lists it with its level."""

from __future__ import annotations

import ast
import json
import logging
import re
from collections.abc import Iterator

from eventide.launch.logs import JsonFormatter, KeyValueFormatter
from tests.commands.processes import REPOSITORY

LEVELS = ("debug", "info", "warning", "error")
NAMES = ("log", "LOG")
CALL = re.compile(rf"\b({'|'.join(NAMES)})\.({'|'.join(LEVELS)})\(")


def calls() -> Iterator[tuple[str, ast.Call]]:
    """Every call that writes a line of the log, and where it stands."""
    for file in sorted((REPOSITORY / "src" / "eventide").rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if CALL.search(text) else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LEVELS:
                of = node.func.value
                if isinstance(of, ast.Name) and of.id in NAMES:
                    yield f"{file.name}:{node.lineno}", node


def event_of(call: ast.Call) -> str | None:
    """The name that a call gives its event, as far as the text of the program tells it."""
    extra = next((one.value for one in call.keywords if one.arg == "extra"), None)
    if isinstance(extra, ast.Dict):
        for key, value in zip(extra.keys, extra.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == "event" and isinstance(value, ast.Constant):
                return str(value.value)
    text = call.args[0]
    whole = isinstance(text, ast.Constant) and "%" not in str(text.value)
    return str(text.value) if whole and isinstance(text, ast.Constant) else None


def test_every_line_of_the_log_has_a_name_that_the_page_lists_with_its_level() -> None:
    found: dict[str, set[str]] = {}
    for place, call in calls():
        event, how = event_of(call), call.func
        assert event is not None, f"{place}: give the event a name: extra={{'event': ...}}"
        assert isinstance(how, ast.Attribute)
        found.setdefault(event, set()).add(how.attr)
    page = (REPOSITORY / "docs" / "operations.md").read_text(encoding="utf-8")
    rows = page.split("\n## Logs\n")[1].split("\n## ")[0]
    listed = {event: {level} for event, level in re.findall(r"^\| `([^`]+)` \| (\w+) \|", rows, re.MULTILINE)}
    assert listed == found


def test_a_sentence_stands_beside_the_name_of_its_event() -> None:
    record = logging.LogRecord("eventide.x", logging.WARNING, "", 0, "table %r stays", ("t",), None)
    record.event = "table not read"
    said = json.loads(JsonFormatter().format(record))
    assert (said["event"], said["message"]) == ("table not read", "table 't' stays")
    assert KeyValueFormatter().format(record).endswith(" WARNING table 't' stays")
