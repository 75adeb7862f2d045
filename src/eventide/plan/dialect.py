"""One SQL text, two engines: Spark's dialect said in DuckDB's, with the same answers.

Law: what is said here has Spark's answer, or it is refused; functions that only a name connects are never passed on as
the same. `columns` tell types that the words do not: without them, decimals that are divided or averaged become DOUBLE.

>>> to_duckdb("SELECT v div 2, unix_micros(ts), IF(a <=> b, 1, 0) FROM s")
'SELECT spark_div(v, 2), epoch_us(ts), CASE WHEN a IS NOT DISTINCT FROM b THEN 1 ELSE 0 END FROM s'
>>> to_duckdb("date_format(ts, 'yyyy')")
Traceback (most recent call last):
    ...
eventide.errors.DeclarationError: DATE_FORMAT exists only on Spark: use the Spark engine
"""

from __future__ import annotations

from functools import lru_cache

import sqlglot
from sqlglot import exp
from sqlglot.errors import ErrorLevel, SqlglotError, UnsupportedError
from sqlglot.generators.duckdb import DuckDBGenerator

from eventide.errors import DeclarationError
from eventide.plan import (
    dialect_aggregates,
    dialect_names,
    dialect_numbers,
    dialect_order,
    dialect_patterns,
    dialect_texts,
    dialect_times,
)
from eventide.plan.columns import Column
from eventide.plan.dialect_saying import Saying
from eventide.plan.dialect_tables import NEAR, OTHER_MEANING, SAME, SAME_NAMES
from eventide.plan.expressions import SPARK, name_of
from eventide.plan.implicit_casts import written_out
from eventide.plan.spark_types import Types

Saying.TRANSFORMS = {
    **DuckDBGenerator.TRANSFORMS,
    **dialect_numbers.RULES,
    **dialect_times.RULES,
    **dialect_texts.RULES,
    **dialect_patterns.RULES,
    **dialect_order.RULES,
    **dialect_aggregates.RULES,
    **dialect_names.RULES,
}


@lru_cache(maxsize=4096)
def to_duckdb(spark_sql: str, columns: tuple[Column, ...] = ()) -> str:
    """A statement or an expression in Spark's dialect, in DuckDB's; refused where DuckDB has no such function."""
    tree = _read(spark_sql)
    for call in tree.find_all(exp.Func):
        if not _known(call):
            raise DeclarationError(f"{name_of(call).upper()} exists only on Spark: use the Spark engine")
    return _said(tree.copy(), columns)


@lru_cache(maxsize=4096)
def same_answer(spark_sql: str, columns: tuple[Column, ...] = ()) -> bool:
    """Whether DuckDB is known to give Spark's very answer.

    >>> same_answer("round(a / b, 2)"), same_answer("mode(a)"), same_answer("my_own(a)")
    (True, False, False)
    """
    tree = _read(spark_sql)
    if any(type(call) in NEAR or not _exact(call) for call in tree.find_all(exp.Func)):
        return False
    try:
        _said(tree.copy(), columns)
    except DeclarationError:
        return False
    return True


@lru_cache(maxsize=4096)
def tables_in(spark_sql: str) -> frozenset[str]:
    """The tables that a statement reads, in small letters.

    >>> sorted(tables_in("WITH w AS (SELECT * FROM A) SELECT * FROM w JOIN `b c` ON w.x = `b c`.x"))
    ['a', 'b c', 'w']
    """
    return frozenset(table.name.lower() for table in _read(spark_sql).find_all(exp.Table))


@lru_cache(maxsize=16)
def _read(spark_sql: str) -> exp.Expression:
    """The tree of a text, not to be changed: one text is asked for its tables first and for its meaning then."""
    try:
        tree = sqlglot.parse_one(spark_sql, read=SPARK)
    except SqlglotError as error:
        raise DeclarationError(f"cannot read this SQL\n    {spark_sql}") from error
    assert isinstance(tree, exp.Expression)
    return tree


def _said(tree: exp.Expression, columns: tuple[Column, ...]) -> str:
    saying = Saying(dialect="duckdb", unsupported_level=ErrorLevel.RAISE)
    saying.types = Types({column.name: column.type for column in columns})
    try:
        return str(saying.generate(written_out(tree, saying.types), copy=False))
    except UnsupportedError as error:
        raise DeclarationError(f"{str(error).rstrip('.')} exists only on Spark: use the Spark engine") from error
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, SqlglotError) as error:
        # sqlglot writes trees that mean something; any parser lets others pass, too.
        raise DeclarationError(
            f"the local engine cannot say {tree.sql(SPARK)[:200]}: look at the arguments of its functions, or use the "
            "Spark engine"
        ) from error


def _exact(call: exp.Func) -> bool:
    return call.name.lower() in SAME_NAMES if isinstance(call, exp.Anonymous) else type(call) in SAME


def _known(call: exp.Func) -> bool:
    if isinstance(call, exp.Anonymous):
        # Any other name may be the user's own function; `missing_functions` tells whether DuckDB has it.
        return call.name.lower() not in OTHER_MEANING
    return type(call) in SAME or type(call) in NEAR
