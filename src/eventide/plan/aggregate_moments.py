"""Variance and standard deviation from partials.

Law (Chan, Golub, LeVeque): the squared distances of all rows from their mean are those inside each slice plus those of
the slices' means from the mean of all. Nothing large is subtracted from something as large, so no digits cancel.
"""

from __future__ import annotations

from eventide.plan.aggregate_call import FRACTIONS, SMALL, Call, Columns, Form, Told, decimal_of


def spread(sample: bool, root: bool) -> Form:
    """VARIANCE or, with `root`, STDDEV; over a `sample` (NULL below two rows) or the whole population."""

    def form(call: Call, columns: Columns) -> Told | None:
        if len(call.arguments) != 1:
            return None
        kind = columns.type_of(call.arguments[0])
        if kind not in (*SMALL, "BIGINT", *FRACTIONS) and decimal_of(kind) is None:
            return None
        x = call.over_rows(f"CAST({call.arguments[0]} AS DOUBLE)")
        rows = columns.keep("BIGINT", f"count({x})", "coalesce(CAST(sum({0}) AS BIGINT), CAST(0 AS BIGINT))")
        every = f"CAST(nullif(sum({rows}), 0) AS DOUBLE)"
        mean = columns.keep("DOUBLE", f"avg({x})", f"sum(CAST({rows} AS DOUBLE) * {{0}}) / {every}")
        variance = columns.keep(
            "DOUBLE",
            f"var_pop({x})",
            f"sum(CAST({rows} AS DOUBLE) * ({{0}} + ({mean} - {{1}}) * ({mean} - {{1}}))) / {every}",
            beside=(
                f"sum(CAST({rows} AS DOUBLE) * {mean}) OVER merged / CAST(nullif(sum({rows}) OVER merged, 0) AS DOUBLE)"
            ),
        )
        n = f"CAST({rows} AS DOUBLE)"
        value = f"CASE WHEN {rows} > 1 THEN {variance} * ({n} / ({n} - CAST(1 AS DOUBLE))) END" if sample else variance
        return Told(f"sqrt({value})" if root else value, "DOUBLE")

    return form


FORMS: dict[str, Form] = {
    **dict.fromkeys(("stddev", "std", "stddev_samp"), spread(sample=True, root=True)),
    **dict.fromkeys(("variance", "var_samp"), spread(sample=True, root=False)),
    "stddev_pop": spread(sample=False, root=True),
    "var_pop": spread(sample=False, root=False),
}
