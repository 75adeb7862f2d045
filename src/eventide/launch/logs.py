"""Logs of the engine: one line an event, for people or for machines.

Law: a line says when, how grave, what happened, and then every figure under its name: `round=3 late=2`, or one JSON
object with the same names. Nothing is written anywhere until `configure` is called, or the user sets up `logging`
himself: all loggers are below `eventide`, and a figure is an attribute of the record (`extra`).

>>> record = logging.LogRecord("eventide.engine.running", logging.INFO, "", 0, "ended", None, None)
>>> record.round, record.created = 41, 1_700_000_000.25
>>> KeyValueFormatter().format(record)
'2023-11-14T22:13:20.250Z INFO ended round=41'
>>> JsonFormatter().format(record)
'{"time": "2023-11-14T22:13:20.250Z", "level": "INFO", "logger": "eventide.engine.running", "event": "ended", \
"round": 41}'
"""

from __future__ import annotations

import json as json_text
import logging
import os
import sys
from datetime import UTC, datetime
from typing import Any

from eventide.errors import EngineError
from eventide.plan.declared.secrets import masked_text

ROOT = "eventide"
# What every record has; the rest was given as `extra`.
ORDINARY = frozenset(vars(logging.LogRecord("", 0, "", 0, "", None, None))) | {"message", "asctime", "taskName"}


def configure(
    json: bool = False, file: str | os.PathLike[str] | None = None, level: int | str = logging.INFO
) -> logging.Handler:
    """Write the engine's log to standard error, or to a file; every round is told at level DEBUG.

    Called again it replaces what was set up before. Gives the handler, for those who want to take it away.
    """
    root = logging.getLogger(ROOT)
    try:
        handler = logging.StreamHandler(sys.stderr) if file is None else logging.FileHandler(file, encoding="utf-8")
        root.setLevel(level.upper() if isinstance(level, str) else level)
    except OSError as error:
        raise EngineError(f"cannot write the log to {os.fspath(file or '')}: {error.strerror}: name another") from error
    except ValueError as error:
        raise EngineError(f"{level!r} is no level of a log: write DEBUG, INFO, WARNING or ERROR") from error
    handler.setFormatter(JsonFormatter() if json else KeyValueFormatter())
    for former in [former for former in root.handlers if isinstance(former.formatter, KeyValueFormatter)]:
        root.removeHandler(former)
        former.close()
    root.addHandler(handler)
    # Otherwise a root logger that was set up too would say everything twice.
    root.propagate = False
    return handler


class KeyValueFormatter(logging.Formatter):
    """Lines for people: `key=value`, texts in quotes where they need them."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, and below it the stack of an exception."""
        figures = "".join(f" {name}={_quoted(value)}" for name, value in figures_of(record).items())
        trace = f"\n{self.formatException(record.exc_info)}" if record.exc_info else ""
        return masked_text(f"{_time(record)} {record.levelname} {record.getMessage()}{figures}{trace}")


class JsonFormatter(KeyValueFormatter):
    """Lines for machines: one JSON object each."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, whatever happens."""
        entry = {"time": _time(record), "level": record.levelname, "logger": record.name, "event": record.getMessage()}
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json_text.dumps(_masked(entry | figures_of(record)), default=str)


def figures_of(record: logging.LogRecord) -> dict[str, Any]:
    """What was given beside the text."""
    return {name: value for name, value in vars(record).items() if name not in ORDINARY}


def _masked(entry: dict[str, Any]) -> dict[str, Any]:
    """Without secrets, before quotes are escaped."""
    return {name: masked_text(value) if isinstance(value, str) else value for name, value in entry.items()}


def _quoted(value: Any) -> str:
    text = str(value)
    return json_text.dumps(text) if not text or any(sign in text for sign in ' "=\n') else text


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
    return moment.replace("+00:00", "Z")
