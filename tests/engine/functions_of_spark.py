"""The functions of Spark that are used most, and what the local engine does of each; `spark_functions.txt` has them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import duckdb

from eventide.duckdb.functions import missing_functions
from eventide.errors import DeclarationError
from eventide.plan.duckdb.transpile import same_answer, to_duckdb
from tests.engine.spark_words import ALL_COLUMNS

LIST = Path(__file__).parent / "spark_functions.txt"
OVER, AGGREGATES = "Windows of OVER", "Aggregates"


@dataclass(frozen=True)
class SparkFunction:
    """A function by its name, and calls of it."""

    group: str
    name: str
    calls: tuple[str, ...]


def functions() -> tuple[SparkFunction, ...]:
    """All of them, in the order of the list."""
    found, group = [], ""
    for line in LIST.read_text().splitlines():
        if line.startswith("## "):
            group = line[3:]
        elif line and not line.startswith("#"):
            name, _, calls = line.partition(": ")
            found.append(SparkFunction(group, name, tuple(calls.split(" ;; "))))
    return tuple(found)


@cache
def refused() -> frozenset[str]:
    """The calls that the local engine cannot run: it refuses them, or DuckDB has no such function."""
    found = {call for function in functions() for call in function.calls if not _is_translated(call)}
    rest = [call for function in functions() for call in function.calls if call not in found]
    with duckdb.connect() as connection:
        missing = missing_functions(connection, f"SELECT {', '.join(rest)}")
    return frozenset(found | {call for call in rest if any(call.startswith(f"{name}(") for name in missing)})


def _is_translated(call: str) -> bool:
    try:
        to_duckdb(call, ALL_COLUMNS)
    except DeclarationError:
        return False
    return True


def is_same(call: str) -> bool:
    """Whether the answer is known to be Spark's very own."""
    return same_answer(call, ALL_COLUMNS)
