"""Columns of a stream: a name and a type, the type in Spark's own words.

>>> columns("ts TIMESTAMP, device STRING, speed DECIMAL(10, 2)")[2]
Column(name='speed', type='DECIMAL(10, 2)')
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache

import sqlglot
from sqlglot import exp

from eventide.errors import DeclarationError

WHOLE_NUMBERS = ("TINYINT", "SMALLINT", "INT", "BIGINT")


@dataclass(frozen=True)
class Column:
    """One column: its name as declared, its Spark SQL type in capital letters."""

    name: str
    type: str


def quoted(name: str) -> str:
    """The name as SQL of Spark's has it, whatever letters are in it.

    >>> quoted("a"), quoted("it`s")
    ('`a`', '`it``s`')
    """
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    """The text as a constant of Spark's SQL, whatever letters are in it.

    >>> print(literal("it's"))
    'it\\'s'
    """
    return str(exp.Literal.string(text).sql("spark"))


def columns(ddl: str) -> tuple[Column, ...]:
    """Read a schema as Spark writes it.

    >>> columns("a INT, a INT")
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: the column 'a' is declared twice
    """
    try:
        schema = sqlglot.parse_one(f"CREATE TABLE t ({ddl})", read="spark").find(exp.Schema)
    except sqlglot.errors.ParseError as error:
        raise DeclarationError(f"cannot read the columns {ddl!r}: write them as 'name TYPE, name TYPE'") from error
    definitions = schema.expressions if schema is not None else []
    if not definitions or not all(isinstance(d, exp.ColumnDef) and d.args.get("kind") for d in definitions):
        raise DeclarationError(f"cannot read the columns {ddl!r}: write them as 'name TYPE, name TYPE'")
    return checked(Column(d.name, spark_type(d.args["kind"])) for d in definitions)


def checked(given: Iterable[Column]) -> tuple[Column, ...]:
    """The columns, unless a name comes twice; Spark does not tell capital letters apart."""
    found = tuple(given)
    seen: set[str] = set()
    for column in found:
        if column.name.lower() in seen:
            raise DeclarationError(f"the column {column.name!r} is declared twice")
        seen.add(column.name.lower())
    return found


def spark_type(kind: exp.DataType | str) -> str:
    """A type in Spark's words, whatever dialect or capital letters it came in.

    >>> spark_type("integer"), spark_type("decimal(10,2)"), spark_type("array<string>")
    ('INT', 'DECIMAL(10, 2)', 'ARRAY<STRING>')
    """
    if isinstance(kind, str) and kind.upper() == "VOID":
        # The type of a bare NULL, for which the parser has no word.
        return "VOID"
    found = exp.DataType.build(kind, dialect="spark") if isinstance(kind, str) else kind
    if any(value for part, value in found.args.items() if part != "this") or not isinstance(found.this, exp.DType):
        return found.sql(dialect="spark")
    return _scalar_type(found.this)


@cache
def _scalar_type(kind: exp.DType) -> str:
    """A type without parts: sqlglot takes a quarter of a millisecond to write one, and there are thousands."""
    return exp.DataType(this=kind).sql(dialect="spark")


def with_type(sql: str, kind: str) -> str:
    """The type of an expression, in Spark's words or Arrow's; refused where NULL alone does not tell it.

    >>> with_type("array()", "array<void>")
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: nothing tells the type of what is in array(): write CAST(NULL AS INT) for a NULL
    """
    if re.search(r"(array|map)<[^>]*(void|null)", kind, re.IGNORECASE):
        raise DeclarationError(f"nothing tells the type of what is in {sql}: write CAST(NULL AS INT) for a NULL")
    return kind


def named(name: str, among: Iterable[Column], owner: str) -> Column:
    """The column of that name, or an error that shows what there is.

    >>> named("sped", columns("ts TIMESTAMP, speed INT"), "stream 'traffic'")
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: stream 'traffic' has no column 'sped': did you mean 'speed'? It has ts, speed
    """
    known = {column.name.lower(): column for column in among}
    if name.lower() in known:
        return known[name.lower()]
    raise DeclarationError(
        f"{owner} has no column {name!r}: {nearest_of(name, [column.name for column in known.values()], 'It has')}"
    )


def nearest_of(name: str, among: Iterable[str], there: str = "there are") -> str:
    """What was probably meant by a name that nobody knows, and what there is.

    >>> nearest_of("tiks", ["ticks", "cars"])
    "did you mean 'ticks'? there are ticks, cars"
    """
    known = {one.lower(): one for one in among}
    close = get_close_matches(name.lower(), known, n=1)
    hint = f"did you mean {known[close[0]]!r}? " if close else ""
    return f"{hint}{there} {', '.join(known.values()) or 'none'}"
