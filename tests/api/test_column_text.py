"""Columns of PySpark told as SQL: the text means what the Column means."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from eventide.api.column_text import column_text, is_column, order_text
from eventide.errors import DeclarationError
from eventide.plan.expressions.parse import parsed
from eventide.plan.expressions.spark_dialect import SPARK

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> DataFrame:
    """Two rows of many types, with names that need quotes."""
    return spark.sql(
        """SELECT a, b, s, ts, xs, named_struct('x', a, 'my field', s) AS st, map('k', b) AS m, a AS `my col`,
        b AS `x1`, a > 1 AS flag, CAST(a AS DECIMAL(10, 2)) AS price, s AS `from`
        FROM VALUES (1, 2.5D, 'it''s', TIMESTAMP '2026-01-01 10:20:30.5Z', array(1, 2, 3)),
                    (7, CAST(NULL AS DOUBLE), 'b%', TIMESTAMP '2026-03-01 00:00:00Z', array(4)) AS t(a, b, s, ts, xs)"""
    )


def row_by_row() -> list[Column]:
    from pyspark.sql import functions as f
    from pyspark.sql.types import DecimalType

    a, b, s, ts = (f.col(name) for name in ("a", "b", "s", "ts"))
    arithmetic = [
        a + 1,
        (a + 1) * 2 - b / 3,
        a - (b - 1),
        -a,
        -(a - 1),
        2 - (-a),
        a % 2,
        f.pow("a", 2),
        a.bitwiseAND(3),
    ]
    arithmetic += [a.bitwiseOR(8) + 1, f.round(b, 1), f.greatest(a, b), f.abs(a - 5), 1 / a, f.col("price") * 1.5]
    conditions = [(a > 1) & (b < 2) | ~f.col("flag"), ~(a == 1), a != 7, a.eqNullSafe(f.lit(None)), a.between(1, 2)]
    conditions += [a.isin(1, 2), s.isin("it's", "b%"), ~a.isin(1), b.isNull(), b.isNotNull(), (a > 1) == f.col("flag")]
    texts = [s.like("a%"), s.ilike("B%"), s.rlike(r"^\w'?s?$"), s.contains("t"), s.startswith("it"), s.substr(1, 2)]
    texts += [f.concat(s, f.lit("-"), a.cast("string")), f.upper(s), f.regexp_replace(s, "t+", "$0x"), f.length(s)]
    texts += [f.split(s, "'"), f.format_string("%d:%s", a, s), f.lit("quote ' slash \\ line\n end")]
    cases = [f.when(a > 1, "x").when(b > 2, "y").otherwise("z"), f.when(a > 1, a), f.coalesce(b, f.lit(0.0))]
    casts = [a.cast("double"), a.cast(DecimalType(12, 3)), s.try_cast("int"), ts.cast("date"), a.astype("string")]
    times = [f.hour(ts), f.date_trunc("hour", ts), f.expr("ts + interval 5 minutes"), f.date_format(ts, "yyyy-MM")]
    times += [ts > dt.datetime(2026, 2, 1, tzinfo=dt.UTC), ts.cast("date") == dt.date(2026, 3, 1), f.unix_micros(ts)]
    times += [ts + f.lit(dt.timedelta(minutes=5, microseconds=7))]
    literals = [f.lit(1), f.lit(2**40), f.lit(-3), f.lit(1.5), f.lit(1e-9), f.lit(True), f.lit(Decimal("1.20"))]
    literals += [f.lit(Decimal("0.005")), f.lit(Decimal("-12")), f.lit(b"ab"), f.lit([1, 2]), f.lit(float("inf"))]
    nested = [f.col("st.x"), f.col("st").getField("my field"), f.col("st.`my field`"), f.col("xs")[0], f.col("m")["k"]]
    nested += [f.struct(a, s), f.struct(a.alias("n"), b).getField("n"), f.array(a, a + 1), f.create_map(s, a)]
    nested += [f.element_at("xs", -1), f.size("xs"), f.array_contains("xs", 4), f.sort_array("xs", asc=False)]
    lambdas = [
        f.transform("xs", lambda x: x + a),
        f.filter("xs", lambda x: x > f.col("x1")),
        f.exists("xs", lambda x: x > 3),
    ]
    lambdas += [f.aggregate("xs", f.lit(0), lambda so_far, x: so_far + x), f.transform("xs", lambda x, i: x * i)]
    lambdas += [f.transform("xs", lambda x: f.aggregate("xs", f.lit(0), lambda total, y: total + x * y))]
    names = [f.col("my col") + 1, f.col("`from`"), f.expr("a > 1 and not (b in (1, 2))"), f.expr("a + 1") * 2]
    return arithmetic + conditions + texts + cases + casts + times + literals + nested + lambdas + names


def aggregates() -> list[Column]:
    from pyspark.sql import functions as f

    a, b = f.col("a"), f.col("b")
    simple = [f.avg("a"), f.sum(a), f.count("*"), f.count(b), f.count(f.lit(1)), f.min("ts"), f.max("s"), f.stddev(a)]
    simple += [f.first("b", ignorenulls=True), f.max_by("s", "a"), f.min_by("s", "a"), f.collect_list("a"), f.mode("a")]
    simple += [f.count_distinct("a", "s"), f.sum_distinct("a"), f.approx_count_distinct("a"), f.corr("a", "price")]
    simple += [
        f.approx_count_distinct("a", 0.01),
        f.percentile_approx("a", 0.5),
        f.percentile("a", 0.25),
        f.median("a"),
    ]
    simple += [f.percentile_approx("a", [0.1, 0.9], 100), f.bool_and(a > 0), f.count_if(a > 1), f.kurtosis("a")]
    larger = [f.max(a) - f.min(a), f.round(f.avg("b"), 2), f.sum(f.when(a > 1, 1).otherwise(0)) / f.count("*")]
    larger += [f.expr("count(*) filter (where a > 1)"), f.expr("max(a) - min(a)") / 2, f.listagg("s", f.lit(","))]
    return simple + larger


@pytest.mark.parametrize("columns", [row_by_row, aggregates])
def test_text_gives_what_the_column_gives(rows: DataFrame, columns: Callable[[], list[Column]]) -> None:
    given = columns()
    texts = [column_text(column)[1] for column in given]
    # The engine reads and writes the text again before Spark sees it.
    written = [parsed(text, "a test").sql(SPARK) for text in texts]
    expected = rows.select(*(column.alias(f"c{place}") for place, column in enumerate(given))).toArrow()
    for kind in (texts, written):
        found = rows.selectExpr(*(f"{text} AS c{place}" for place, text in enumerate(kind))).toArrow()
        for place, text in enumerate(kind):
            assert found.column(place).to_pylist() == expected.column(place).to_pylist(), text
            assert found.column(place).type == expected.column(place).type, text


def test_a_column_taken_from_its_dataframe_goes_by_its_name(rows: DataFrame) -> None:
    from pyspark.sql import functions as f

    assert column_text(rows.a > 3)[1] == "a > 3"
    assert column_text(f.max(rows["my col"]).alias("top")) == ("top", "max(`my col`)")


def test_text_is_what_one_would_write() -> None:
    from pyspark.sql import functions as f

    wanted = {
        "avg(speed)": f.avg("speed"),
        "count(*)": f.count("*"),
        "count(DISTINCT a)": f.count_distinct("a"),
        "first(a)": f.first("a"),
        "percentile_approx(a, 0.5)": f.percentile_approx("a", 0.5),
        "(a > 1) AND (b IS NULL)": (f.col("a") > 1) & f.col("b").isNull(),
        "a - (b - 1)": f.col("a") - (f.col("b") - 1),
        "`my col`.`from`": f.col("`my col`.from"),
    }
    assert {text: column_text(column) for text, column in wanted.items()} == {text: (None, text) for text in wanted}
    assert column_text(f.avg("speed").alias("mean")) == ("mean", "avg(speed)")


def test_an_order_is_told_with_its_direction() -> None:
    from pyspark.sql import functions as f

    wanted = {
        "mean": f.col("mean"),
        "mean DESC NULLS LAST": f.desc("mean"),
        "a % 2 ASC NULLS LAST": (f.col("a") % 2).asc_nulls_last(),
    }
    assert [order_text(column) for column in wanted.values()] == list(wanted)


def test_the_same_lambda_has_the_same_text_each_time() -> None:
    from pyspark.sql import functions as f

    first, second = (column_text(f.transform("xs", lambda x: x + f.col("x1")))[1] for _ in range(2))
    assert first == second == "transform(xs, x2 -> x2 + x1)"


def test_what_has_no_text_is_refused_with_the_way_out(spark: SparkSession) -> None:
    from pyspark.sql import Window
    from pyspark.sql import functions as f
    from pyspark.sql.types import IntegerType

    python = f.udf(lambda x: x, IntegerType(), useArrow=False)
    refused = {
        "spark.udf.register": python(f.col("a")),
        r"\.window\('5 minutes'": f.window("ts", "5 minutes"),
        "OVER looks at other rows": f.sum("a").over(Window.partitionBy("b")),
        "UpdateFields": f.col("st").withField("z", f.lit(1)),
        "give SQL text instead": f.col("a").desc(),
    }
    for message, column in refused.items():
        assert is_column(column)
        with pytest.raises(DeclarationError, match=message):
            column_text(column)
