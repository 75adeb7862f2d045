"""Every example is written both ways, and becomes the same plan: those in SQL in Python, and those in Python in SQL."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import eventide
from eventide.api.rows import Startable
from eventide.api.start import planned
from eventide.api.stream import EventStream
from eventide.plan.expressions.columns import columns
from eventide.sources.arrow_types import arrow_type
from examples import python_1_arrow, python_2_spark
from examples.make_recording import recording
from tests.api.plans import bare, normal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = Path(__file__).parents[2] / "examples"
IN_SQL = sorted(path.name for path in EXAMPLES.glob("*.sql"))
IN_PYTHON = sorted(path.name for path in EXAMPLES.glob("python_*.py"))

Asked = tuple[Startable, ...]


def stream(name: str, ddl: str, time: str, **more: Any) -> EventStream:
    """A stream without rows."""
    schema = pa.schema([(column.name, arrow_type(column.type)) for column in columns(ddl)])
    return eventide.stream(schema.empty_table(), time=time, name=name, **more)


def doors() -> EventStream:
    return stream("doors", "at TIMESTAMP, door STRING, people INT", "at", source="door")


def windows() -> Asked:
    found = doors().drop_ratio(0.01)
    every_minute = found.window("1 minute").groupBy("door").agg(people="sum(people)")
    busy = found.window("3 minutes", "1 minute").having("people > 15").agg(people="sum(people)")
    return every_minute.named("every_minute"), busy.named("busy")


def queries_over_queries() -> Asked:
    sums = doors().window("1 minute").groupBy("door").agg(people="sum(people)").named("sums")
    busier = sums.groupBy("door").agg(people="max(people)").orderBy("people DESC").limit(1)
    rushes = sums.where("people > 5").window("10 minutes").agg(rushes="count(*)")
    return sums, busier.named("busier"), rushes.named("rushes")


def early_answers() -> Asked:
    sales = stream("sales", "at TIMESTAMP, arrived TIMESTAMP, shop STRING, amount INT", "at", arrival="arrived")
    turnover = sales.drop_ratio(0.01).window("4 minutes").groupBy("shop").agg(turnover="sum(amount)")
    return (turnover.prodded(at=0.5, estimate=True).named("query_1"),)


def joins() -> Asked:
    orders = stream("orders", "ts TIMESTAMP, id INT, amount INT", "ts").alias("o")
    payments = stream("payments", "ts TIMESTAMP, id INT, paid INT", "ts").alias("p")
    in_time = "o.id = p.id AND p.ts BETWEEN o.ts AND o.ts + INTERVAL 10 MINUTES"
    paid = orders.join(payments, on=in_time).select("o.id", "amount", "paid")
    unpaid = orders.join(payments, on=in_time, how="left").where("p.id IS NULL").select("o.id", "amount")
    return paid.named("paid"), unpaid.named("unpaid")


def promises() -> Asked:
    ddl = "ts TIMESTAMP, machine STRING, load DOUBLE, done BOOLEAN"
    machines = stream("machines", ddl, "ts", source="machine").punctuated_by("done").timeout("1 hour")
    loads = machines.window("1 minute").groupBy("machine").closeBySource().agg(mean="avg(load)", most="max(load)")
    return (loads.named("query_1"),)


def freeway() -> Asked:
    readings = stream("readings", python_2_spark.SCHEMA, "ts", arrival="arrived", source="detector")
    speeds = (
        readings.drop_ratio(0.01)
        .idle_after("1 minute")
        .window("5 minutes", "1 minute")
        .groupBy("highway", "direction")
        .agg(mean="round(avg(speed), 1)", cars="sum(cars)")
        .prodded(at=0.6, estimate=True)
        .named("speeds")
    )
    slowest = speeds.groupBy("highway", "direction").agg(mean="min(mean)").orderBy("mean").limit(1)
    return speeds, slowest.prodded(at=0.6).named("slowest")


WRITTEN_IN_PYTHON: dict[str, Callable[[], Asked]] = {
    "freeway.sql": freeway,
    "sql_1_windows.sql": windows,
    "sql_2_queries_over_queries.sql": queries_over_queries,
    "sql_3_early_answers.sql": early_answers,
    "sql_4_joins.sql": joins,
    "sql_5_promises.sql": promises,
}

WRITTEN_IN_SQL = {
    "python_1_arrow.py": """
        CREATE STREAM devices (device STRING, event_time TIMESTAMP_NTZ, arrival_time TIMESTAMP_NTZ, value DOUBLE)
            FROM parquet 'recording' TIMESTAMP BY event_time ARRIVAL BY arrival_time SOURCE BY device DRATIO 1%;
        CREATE QUERY every_minute AS
            SELECT avg(value) AS mean, count(*) AS readings FROM devices [RANGE 5 minutes SLIDE 1 minute];
        CREATE QUERY by_device AS
            SELECT device, max(value) - min(value) AS spread FROM devices [RANGE 10 minutes] WHERE value > 0
            GROUP BY device ORDER BY spread DESC LIMIT 3;
        """,
    "python_2_spark.py": f"""
        CREATE STREAM traffic ({python_2_spark.SCHEMA})
            FROM parquet 'input' TIMESTAMP BY ts ARRIVAL BY arrived SOURCE BY detector DRATIO 1% IDLE AFTER 1 minute;
        CREATE QUERY spread AS
            SELECT highway, direction, round(max(speed) - min(speed), 1) AS spread, count(*) AS readings
            FROM traffic [RANGE 5 minutes] WHERE cars > 0 GROUP BY highway, direction ORDER BY spread DESC LIMIT 3;
        """,
    # Its query is Spark's own: Eventide gives it heartbeats, and there is no query to write in SQL.
    "python_3_heartbeats.py": None,
}


@pytest.mark.parametrize("name", IN_SQL)
def test_an_example_in_sql_is_the_same_plan_in_python(name: str) -> None:
    text = (EXAMPLES / name).read_text(encoding="utf-8")
    assert normal(bare(eventide.sql(text).plan)) == normal(planned(WRITTEN_IN_PYTHON[name]())[1])


def test_the_example_over_arrow_data_is_the_same_plan_in_sql() -> None:
    asked = python_1_arrow.queries(recording().slice(0, 0))
    text = WRITTEN_IN_SQL["python_1_arrow.py"]
    assert text is not None
    assert normal(bare(eventide.sql(text).plan)) == normal(planned(asked)[1])


@pytest.mark.spark
def test_the_example_over_a_dataframe_is_the_same_plan_in_sql(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.readStream.schema(python_2_spark.SCHEMA).parquet(f"file:{tmp_path}")
    text = WRITTEN_IN_SQL["python_2_spark.py"]
    assert text is not None
    found = python_2_spark.spread(rows).named("spread").plan
    assert normal(bare(eventide.sql(text).plan)) == normal(found)


def test_no_example_is_left_out() -> None:
    assert (sorted(WRITTEN_IN_PYTHON), sorted(WRITTEN_IN_SQL)) == (IN_SQL, IN_PYTHON)
