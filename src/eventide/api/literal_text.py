"""A literal of a PySpark Column as SQL text.

Law: read by Spark, the text has the same value and, but for the width of an interval, the same type.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

from sqlglot import exp

from eventide.plan.expressions.spark_dialect import SPARK


def literal_text(value: Any, shown: str) -> str | None:
    """SQL for a value as Py4J hands it over; `shown` is Spark's own text of it. None when there is no SQL for it.

    >>> literal_text(1.5, "1.5"), literal_text(2**40, "1099511627776L"), literal_text("it's", "'it\\\\'s'")
    ('1.5D', '1099511627776L', "'it\\\\'s'")
    >>> literal_text(None, "NULL"), literal_text(True, "true"), literal_text(b"ab", "[B@1")
    ('NULL', 'TRUE', "X'6162'")
    """
    if value is None or isinstance(value, bool):
        return {None: "NULL", True: "TRUE", False: "FALSE"}[value]
    if isinstance(value, str):
        return exp.Literal.string(value).sql(SPARK)
    if isinstance(value, int):
        return f"{value}L" if shown.endswith("L") else str(value)
    if isinstance(value, float):
        return f"{value!r}D" if math.isfinite(value) else f"CAST('{shown}' AS DOUBLE)"
    if isinstance(value, Decimal):
        return f"CAST('{value:f}' AS DECIMAL({_digits(value)}))"
    if isinstance(value, bytes | bytearray):
        return f"X'{bytes(value).hex()}'"
    return _of_java(value)


def _digits(value: Decimal) -> str:
    _, digits, exponent = value.as_tuple()
    scale = max(0, -int(exponent))
    return f"{max(len(digits) + max(0, int(exponent)), scale)}, {scale}"


def _of_java(value: Any) -> str | None:
    name = value.getClass().getName()
    if name == "java.sql.Timestamp":
        return f"TIMESTAMP '{value.toInstant().toString()}'"
    if name == "java.time.Instant":
        return f"TIMESTAMP '{value.toString()}'"
    if name == "java.time.LocalDateTime":
        return f"TIMESTAMP_NTZ '{value.toString()}'"
    if name in ("java.sql.Date", "java.time.LocalDate"):
        return f"DATE '{value.toString()}'"
    if name == "java.time.Duration":
        seconds = Decimal(value.getSeconds()) + Decimal(value.getNano()).scaleb(-9)
        return f"INTERVAL '{seconds.normalize():f}' SECOND"
    return None
