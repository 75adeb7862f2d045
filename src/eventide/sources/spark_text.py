"""Text becomes columns in Spark, and text that does not is kept.

Law: whether a row is malformed is a property of the row and of the declared columns, never of the queries that run. So
`_malformed` always asks for every declared column: Spark would otherwise skip the conversion of columns that no query
uses, and a broken value there would go unseen until a query was added. A malformed row has NULL in every other column.

>>> malformed_sql(["a"], "bad")
'CASE WHEN `bad` IS NOT NULL AND (`a` IS NOT NULL OR length(`bad`) >= 0) THEN make_valid_utf8(`bad`) END'
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from eventide.plan.expressions.columns import Column
from eventide.plan.sql.reduce import MALFORMED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# The raw text as Spark's parsers deliver it; never seen outside.
CORRUPT = "_eventide_corrupt"
PARSING = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
OURS = frozenset(name.lower() for name in PARSING)


def quoted(name: str) -> str:
    """A name as Spark SQL writes it.

    >>> quoted("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    """A text constant as Spark SQL writes it."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def ddl(columns: Sequence[Column], *more: str) -> str:
    """A schema as Spark reads it."""
    return ", ".join([*(f"{quoted(column.name)} {column.type}" for column in columns), *more])


def corrupt_ddl(columns: Sequence[Column]) -> str:
    """A schema with the column in which Spark leaves what it could not parse."""
    return ddl(columns, f"{CORRUPT} STRING")


def malformed_sql(names: Sequence[str], corrupt: str = CORRUPT) -> str:
    """The text of a malformed row, else NULL; a length is never negative, but the optimizer cannot know."""
    every = " OR ".join(f"{quoted(name)} IS NOT NULL" for name in names)
    raw = quoted(corrupt)
    return f"CASE WHEN {raw} IS NOT NULL AND ({every} OR length({raw}) >= 0) THEN make_valid_utf8({raw}) END"


def kept_aside(parsed: DataFrame, columns: Sequence[Column], names: Sequence[str]) -> DataFrame:
    """From what a parser gave (`names` and the corrupt column) the declared columns and `_malformed`."""
    given = parsed.selectExpr("*", f"{malformed_sql(names)} AS {MALFORMED}")
    good = (f"CASE WHEN {MALFORMED} IS NULL THEN {quoted(c.name)} END AS {quoted(c.name)}" for c in columns)
    return given.selectExpr(*good, MALFORMED)


def parsed_value(frame: DataFrame, columns: Sequence[Column], kind: str, options: Mapping[str, str]) -> DataFrame:
    """Parse the column `value` (text, or bytes of text) as JSON or CSV; whatever stands beside it stays.

    A value that is NULL or blank is malformed with an empty text. Spark pushes filters below a projection and
    evaluates it there once more: to parse every value once, the text is made to depend on the partition's number.
    """
    given = ", ".join(f"{literal(name)}, {literal(text)}" for name, text in {**options, **PARSING}.items())
    once = "if(spark_partition_id() >= 0, _eventide_text, NULL)"
    parse = f"from_{kind}({once}, {literal(corrupt_ddl(columns))}, map({given})) AS _eventide_row"
    beside = [quoted(name) for name in frame.columns if name != "value"]
    rows = frame.selectExpr(*beside, "coalesce(CAST(value AS STRING), '') AS _eventide_text").selectExpr("*", parse)
    return rows.selectExpr(
        *beside,
        *(f"_eventide_row.{quoted(column.name)} AS {quoted(column.name)}" for column in columns),
        f"if(trim(_eventide_text) = '', '', _eventide_row.{CORRUPT}) AS {CORRUPT}",
    )
