"""The mean of decimals by long division, in words that both engines compute exactly.

Law: the mean has four digits more than its values and is rounded once, half up, as Spark's AVG. Division itself will
not do: Spark's rounds twice on the way, DuckDB's goes through DOUBLE.
"""

from __future__ import annotations


def decimal_mean(total: str, rows: str, precision: int, scale: int) -> str | None:
    """The mean of `rows` values of DECIMAL(precision, scale) that add up to `total`; None where digits do not fit.

    >>> decimal_mean("t", "n", 38, 18) is None
    True
    """
    if precision > 28 or scale > 8 or precision - scale > 18:
        return None
    shift, step = 10 ** (scale + 4), f"0.{'0' * (scale + 3)}1"
    n = f"CAST(nullif({rows}, 0) AS DECIMAL(13, 0))"
    sum_ = f"CAST({total} AS DECIMAL({precision + 10}, {scale}))"
    whole = f"CAST({sum_} DIV {n} AS DECIMAL(19, 0))"
    rest = (
        f"CAST(CAST({sum_} % {n} AS DECIMAL({13 + scale}, {scale})) * CAST({shift} AS DECIMAL({scale + 5}, 0)) "
        f"AS DECIMAL({17 + scale}, 0))"
    )
    two = "CAST(2 AS DECIMAL(1, 0))"
    digits = (
        f"CAST(CAST(sign({rest}) AS INT) * ((abs({rest}) * {two} + {n}) DIV ({n} * {two})) AS DECIMAL({scale + 5}, 0))"
    )
    kind = f"DECIMAL({precision + 4}, {scale + 4})"
    return f"CAST({whole} + {digits} * CAST({step} AS DECIMAL({scale + 4}, {scale + 4})) AS {kind})"
