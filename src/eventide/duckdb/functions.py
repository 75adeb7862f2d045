"""What DuckDB lacks of Spark's functions: macros in SQL, and the sketches that Spark writes, through Arrow.

Laws. After `register`, whatever `plan.duckdb.transpile.to_duckdb` writes can be run on the connection; after
`Macros.ready`, the statement that it was given. Making all macros takes a tenth of a second, and a statement needs few
of them. *Sketches* (distinct counts, HLL, and quantiles, KLL): bytes written here and by Spark are of one kind; either
side merges what the other wrote. An estimate of distinct values does not depend on the order of merging: it is always
told by a union.

>>> import duckdb
>>> connection = duckdb.connect()
>>> register(connection)
>>> connection.execute("SELECT spark_pmod(-7, 3), spark_div(-7, 2)").fetchall()
[(2, -3)]
>>> missing_functions(connection, "SELECT my_own(name), upper(name) FROM t")
['my_own']
>>> few = Macros(duckdb.connect())
>>> few.connection.execute(few.ready("SELECT spark_pmod(-7, 3)")).fetchall(), len(few.made) < 10
([(2,)], True)

>>> one, other = distinct_sketch(["a", "b"], 12), distinct_sketch(["b", "c"], 12)
>>> distinct_estimate(distinct_union([one, other]))
3
>>> import numpy as np
>>> few, many = quantile_sketch(np.array([9.0]), 200), quantile_sketch(np.array([1.0, 2.0]), 200)
>>> quantiles(quantile_union([few, many]), [0.5])
[2.0]
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal, localcontext
from difflib import get_close_matches
from typing import Any

import datasketches
import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import sqlglot
from duckdb.func import ARROW, SPECIAL
from sqlglot import exp

from eventide.plan.duckdb.generator import MACROS
from eventide.plan.duckdb.transpile import to_duckdb
from eventide.plan.expressions.spark_dialect import Spark4


def register(connection: duckdb.DuckDBPyConnection) -> None:
    """Add to a connection what the dialect needs, all of it."""
    Macros(connection).ready(" ".join(BODIES))


class Macros:
    """The macros of a connection, each made when a statement first speaks of it."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection
        self.made: set[str] = set()
        for name, function, parameters, result in FUNCTIONS:
            connection.create_function(name, function, parameters, result, type=ARROW, null_handling=SPECIAL)

    def ready(self, sql: str, connection: duckdb.DuckDBPyConnection | None = None) -> str:
        """Create the macros that a statement calls, once per database, and give the statement back."""
        needed, waiting = set[str](), set(NAMES.findall(sql)) & BODIES.keys() - self.made
        while waiting:
            needed |= waiting
            waiting = {other for name in waiting for other in NAMES.findall(BODIES[name])} & BODIES.keys()
            waiting -= needed | self.made
        if needed:
            (connection or self.connection).execute(";\n".join(body for name, body in BODIES.items() if name in needed))
            self.made |= needed
        return sql


def missing_functions(connection: duckdb.DuckDBPyConnection, sql: str) -> list[str]:
    """The functions a statement in Spark's dialect calls that neither DuckDB nor `register` has."""
    known = {name for (name,) in connection.execute("SELECT DISTINCT function_name FROM duckdb_functions()").fetchall()}
    tree = sqlglot.parse_one(to_duckdb(sql), read="duckdb")
    called = {call.name.lower() for call in tree.find_all(exp.Anonymous)}
    return sorted(called - known - BODIES.keys())


def nearest_function(name: str) -> str | None:
    """The function of Spark's that is spelled almost so.

    >>> nearest_function("uppper"), nearest_function("foo")
    ('upper', None)
    """
    known = {one.lower() for one in Spark4.Parser.FUNCTIONS} - {name}
    return next(iter(get_close_matches(name, sorted(known), n=1, cutoff=0.8)), None)


def _of_one(function: Callable[[Any], Any], kind: pa.DataType) -> Callable[[pa.ChunkedArray], pa.Array]:
    """The function over a whole column; DuckDB reads the number of arguments from the signature."""
    return lambda column: pa.array([function(value) for value in column.to_pylist()], kind)


def _of_two(function: Callable[[Any, Any], Any], kind: pa.DataType) -> Callable[[Any, Any], pa.Array]:
    """The function over two whole columns."""
    return lambda one, other: pa.array(list(map(function, one.to_pylist(), other.to_pylist())), kind)


def _hll_of(values: list[int | str | None] | None, lg_k: int) -> bytes:
    return distinct_sketch((value for value in values or () if value is not None), lg_k)


def _kll_of(lists: pa.ChunkedArray, ks: pa.ChunkedArray) -> pa.Array:
    """A sketch for each list, its numbers taken as a whole."""
    found = []
    for values, k in zip(lists, ks.to_pylist(), strict=True):
        numbers = values.values.drop_null() if values.is_valid else pa.array([], pa.float64())
        found.append(quantile_sketch(numbers.to_numpy(zero_copy_only=False, writable=True), k))
    return pa.array(found, pa.binary())


def _quantile(sketch: bytes | None, rank: float | None) -> float | None:
    if sketch is None or rank is None:
        return None
    found = quantiles(sketch, [rank])
    return None if found is None else found[0]


def _quantiles(sketch: bytes | None, ranks: list[float] | None) -> list[float] | None:
    return None if sketch is None or ranks is None else quantiles(sketch, ranks)


def _union(pieces: list[bytes | None] | None) -> bytes:
    return distinct_union(pieces or ())


def _estimate(sketch: bytes | None) -> int | None:
    return None if sketch is None else distinct_estimate(sketch)


def _kll_union(pieces: list[bytes | None] | None, k: int | None) -> bytes:
    return quantile_union(pieces or (), k)


def _decimal_sum(texts: list[str | None] | None) -> str | None:
    """The sum of decimals; NULL where it has more than 38 digits, or where there is nothing to sum."""
    numbers = [Decimal(text) for text in texts or () if text is not None]
    if not numbers:
        return None
    with localcontext(prec=100):
        total = sum(numbers, Decimal(0))
    return format(total, "f") if len(total.as_tuple().digits) <= 38 else None


def _upper(text: str | None) -> str | None:
    return None if text is None else text.upper()


def _lower(text: str | None) -> str | None:
    return None if text is None else text.lower()


NAMES = re.compile(r"\bspark_\w+")

BODIES = {name.group(): macro for macro in MACROS if (name := NAMES.search(macro)) is not None}
"""The macros by their names, each after those it speaks of."""

FUNCTIONS: tuple[tuple[str, Callable[..., Any], list[Any], Any], ...] = (
    ("eventide_hll_of_numbers", _of_two(_hll_of, pa.binary()), ["BIGINT[]", "INTEGER"], "BLOB"),
    ("eventide_hll_of_texts", _of_two(_hll_of, pa.binary()), ["VARCHAR[]", "INTEGER"], "BLOB"),
    ("eventide_hll_union", _of_one(_union, pa.binary()), ["BLOB[]"], "BLOB"),
    ("eventide_hll_estimate", _of_one(_estimate, pa.int64()), ["BLOB"], "BIGINT"),
    ("eventide_kll_of", _kll_of, ["DOUBLE[]", "INTEGER"], "BLOB"),
    ("eventide_kll_union", _of_two(_kll_union, pa.binary()), ["BLOB[]", "INTEGER"], "BLOB"),
    ("eventide_kll_quantile", _of_two(_quantile, pa.float64()), ["BLOB", "DOUBLE"], "DOUBLE"),
    ("eventide_decimal_sum", _of_one(_decimal_sum, pa.string()), ["VARCHAR[]"], "VARCHAR"),
    ("eventide_upper", _of_one(_upper, pa.string()), ["VARCHAR"], "VARCHAR"),
    ("eventide_lower", _of_one(_lower, pa.string()), ["VARCHAR"], "VARCHAR"),
    ("eventide_kll_quantiles", _of_two(_quantiles, pa.list_(pa.float64())), ["BLOB", "DOUBLE[]"], "DOUBLE[]"),
)
"""Name, function over Arrow columns, types of its arguments, type of its result."""


DEFAULT_LG_K = 12
DEFAULT_K = 200


def distinct_sketch(values: Iterable[int | str], lg_k: int) -> bytes:
    """A sketch of these values; numbers as int64, text as its bytes. An empty text is not seen, as in Spark."""
    sketch = datasketches.hll_sketch(lg_k, datasketches.tgt_hll_type.HLL_8)
    update = sketch.update
    for value in values:
        update(value)
    return bytes(sketch.serialize_updatable())


def distinct_union(sketches: Iterable[bytes | None]) -> bytes:
    """One sketch of all values that any of these has seen."""
    read = [datasketches.hll_sketch.deserialize(sketch) for sketch in sketches if sketch is not None]
    union = datasketches.hll_union(max((sketch.lg_config_k for sketch in read), default=DEFAULT_LG_K))
    for sketch in read:
        union.update(sketch)
    return bytes(union.get_result(datasketches.tgt_hll_type.HLL_8).serialize_updatable())


def distinct_estimate(sketch: bytes) -> int:
    """How many distinct values, about."""
    return int(np.floor(datasketches.hll_sketch.deserialize(sketch).get_estimate() + 0.5))


def quantile_sketch(values: npt.NDArray[np.float64], k: int) -> bytes:
    """A sketch of these values; NaN is not seen, as in Spark."""
    sketch = datasketches.kll_doubles_sketch(k)
    sketch.update(values)
    return bytes(sketch.serialize())


def quantile_union(sketches: Iterable[bytes | None], k: int | None = None) -> bytes:
    """One sketch of all values; of the given k, or of the first one's."""
    union = None if k is None else datasketches.kll_doubles_sketch(k)
    for sketch in sketches:
        if sketch is not None:
            read = datasketches.kll_doubles_sketch.deserialize(sketch)
            if union is None:
                union = read
            else:
                union.merge(read)
    return bytes((datasketches.kll_doubles_sketch(DEFAULT_K) if union is None else union).serialize())


def quantiles(sketch: bytes, ranks: Sequence[float]) -> list[float] | None:
    """For each rank the least value with at least that share of values up to it; None of nothing."""
    read = datasketches.kll_doubles_sketch.deserialize(sketch)
    if read.is_empty():
        return None
    # The ends are known exactly, though the sketch may have let go of them; Spark tells them so.
    ends = {0.0: read.get_min_value(), 1.0: read.get_max_value()}
    return [ends.get(rank, value) for rank, value in zip(ranks, read.get_quantiles(ranks, True), strict=True)]
