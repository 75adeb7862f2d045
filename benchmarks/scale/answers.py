"""The batch answer of Spark on the same files, and whether results are that answer.

Law: two answers are equal when they have as many rows, and the sum over all rows of a hash of all compared columns is
the same; so the order plays no part, and nothing has to leave Spark. Where a question is ordered, no round has a row
from before the last row of an earlier round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.disorder import Disordered
from benchmarks.scale.questions import Question

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NOTHING = -(2**62)
"""What NULL counts as: Spark's hash passes over NULL, and would take rows for equal whose NULLs stand elsewhere."""


@dataclass(frozen=True)
class Fingerprint:
    """How many rows there are, and the sum of their hashes."""

    rows: int
    sum: Decimal


def fingerprint(answers: DataFrame, columns: Sequence[str]) -> Fingerprint:
    """Reduce rows to a fingerprint; numbers and times of every width count as whole numbers."""
    types = dict(answers.dtypes)
    values = [f"unix_micros({name})" if types[name] == "timestamp" else f"CAST({name} AS BIGINT)" for name in columns]
    hashed = f"xxhash64({', '.join(f'coalesce({value}, {NOTHING})' for value in values)})"
    (found,) = answers.selectExpr("count(*) AS n", f"sum(CAST({hashed} AS DECIMAL(20, 0))) AS s").collect()
    return Fingerprint(int(found["n"]), Decimal(found["s"] or 0))


def batch(spark: SparkSession, question: Question, data: tuple[Disordered, ...]) -> Fingerprint:
    """Spark's answer, all at once."""
    for name, one in zip("ab", data, strict=False):
        spark.read.parquet(str(one.folder)).createOrReplaceTempView(name)
    return fingerprint(spark.sql(question.batch), question.columns)


def given(spark: SparkSession, question: Question, results: Path) -> tuple[Fingerprint, bool]:
    """The results that are in a folder, however deep, and whether their rounds are in order where they have to be."""
    if not any(results.rglob("*.parquet")):
        return Fingerprint(0, Decimal(0)), True
    answers = spark.read.option("recursiveFileLookup", True).parquet(str(results))
    return fingerprint(answers, question.columns), not question.ordered or _in_order(answers)


def _in_order(answers: DataFrame) -> bool:
    spans = answers.groupBy("round").agg({"window_end": "max", "window_start": "min"}).orderBy("round").collect()
    ends = [span["max(window_end)"] for span in spans]
    return all(end <= span["min(window_start)"] for end, span in zip(ends, spans[1:], strict=False))
