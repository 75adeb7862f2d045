"""The page of functions, made of the list of Spark's and of what the local engine says to each call.

`python -m tests.docs.functions_page` writes it anew.
"""

from __future__ import annotations

from pathlib import Path

from tests.engine.functions_of_spark import SparkFunction, functions, is_same, refused

PAGE = Path(__file__).parents[2] / "docs" / "functions.md"
HEAD = """# Functions

This page lists the functions of Spark that are used most, and says which of them the local engine has. Expressions
are Spark's SQL on both engines. On Spark all of its functions run, but for those that look across rows ([the
language](language.md#not-yet)). The local engine translates what is known to give Spark's very answer, and refuses
the rest: `eventide check` names the function. A test compares the answers and types of both engines, call by call,
over rows with edges (NULL, NaN, the ends of numbers, leap days, times before 1970, letters beyond ASCII), and
makes this page.

| word | meaning |
|---|---|
| same | the answer and the type are Spark's |
| alike | an answer that Spark could have given too: of ties, of the order of rows, or an approximation |
| partly | some forms are the same, and the others are refused |
| Spark only | the local engine refuses it |
"""
INSTEAD = {
    **dict.fromkeys(("current_date", "current_timestamp", "now"), "the time of the rows"),
    "rand": "TABLESAMPLE chooses by what is in a row",
    "explode": "`transform`, `filter` and `aggregate` compute with arrays in their row",
    "posexplode": "`transform(a, (x, i) -> ..)` has the place of each element",
    "from_json": "declare the column as a STRUCT", "get_json_object": "declare the column as a STRUCT",
    "json_tuple": "declare the column as a STRUCT", "to_json": "results in JSON files and Kafka are JSON already",
    "format_number": "`CAST(round(x, 2) AS DECIMAL(20, 2))`", "format_string": "`concat(..)`",
    "hash": "`md5(..)`", "xxhash64": "`md5(..)`", "crc32": "`md5(..)`",
    "monotonically_increasing_id": "`row_number() OVER (..)`",
    "kurtosis": "sums of powers", "skewness": "sums of powers",
    "expm1": "`exp(x) - 1`", "log1p": "`ln(1 + x)`", "cot": "`1 / tan(x)`", "shiftleft": "`x * 2`, as often as needed",
    "width_bucket": "`floor((x - low) / width)`", "months_between": "`datediff(..)`, or fields of both dates",
    "timestampadd": "`t + INTERVAL 2 HOURS`", "make_timestamp": "`CAST('2024-01-05 10:00:00' AS TIMESTAMP)`",
    "nth_value": "`lag` and `lead`", "overlay": "`concat(left(..), .., substring(..))`", "elt": "CASE",
    "bround": "`round(..)`", "try_to_timestamp": "`try_cast(x AS TIMESTAMP)`",
}  # fmt: skip


def page() -> str:
    """The whole page."""
    said = [(function, _said(function)) for function in functions()]
    parts = [HEAD]
    for group in dict.fromkeys(function.group for function, _ in said):
        lines = [f"| `{one.name}` | {word} | {more} |" for one, (word, more) in said if one.group == group]
        parts.append("\n".join([f"\n## {group}\n", "| function | local engine | |", "|---|---|---|", *lines, ""]))
    words = [word for _, (word, _) in said]
    count = f"\nOf these {len(words)}, {words.count('same')} are the same, {words.count('alike')} alike and "
    count += f"{words.count('partly')} partly there; {words.count('Spark only')} are Spark's only.\n"
    return "".join([parts[0], count, *parts[1:]])


def _said(function: SparkFunction) -> tuple[str, str]:
    without = [call for call in function.calls if call in refused()]
    if len(without) == len(function.calls):
        instead = INSTEAD.get(function.name)
        return "Spark only", f"instead: {instead}" if instead else ""
    if without:
        return "partly", f"not {', '.join(f'`{call}`' for call in without)}"
    return ("same" if all(map(is_same, function.calls)) else "alike"), ""


if __name__ == "__main__":
    PAGE.write_text(page())
