"""Python and SQL become the same plan: what can be said in both ways is said in both ways here.

Those of the folder `examples` are in `test_examples_both_ways.py`.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

import eventide
from eventide.api.query import ContinuousQuery
from eventide.api.rows import Startable
from eventide.api.stream import EventStream
from tests.api.plans import bare, normal

SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", "UTC")),
        ("seen", pa.timestamp("us", "UTC")),
        ("detector", pa.string()),
        ("speed", pa.int32()),
    ]
)
DDL = "CREATE STREAM traffic (ts TIMESTAMP, seen TIMESTAMP, detector STRING, speed INT) FROM json 'in' TIMESTAMP BY ts"


def traffic(**more: object) -> EventStream:
    return eventide.stream(SCHEMA.empty_table(), time="ts", name="traffic", **more)  # type: ignore[arg-type]


def means(stream: EventStream) -> ContinuousQuery:
    return stream.window("5 minutes", "1 minute").groupBy("detector").agg(mean="avg(speed)").named("q")


EXAMPLES: dict[str, Startable] = {
    f"{DDL} SOURCE BY detector DRATIO 2%; CREATE QUERY q AS SELECT detector, avg(speed) AS mean FROM traffic "
    "[RANGE 5 minutes SLIDE 1 minute] GROUP BY detector": means(traffic(source="detector").drop_ratio(0.02)),
    f"{DDL} SLACK 20; CREATE QUERY q AS SELECT detector, avg(speed) AS mean FROM traffic "
    "[RANGE 5 minutes SLIDE 1 minute] GROUP BY detector": means(traffic().slack(rows=20)),
    f"{DDL} CLOCK SKEW 2 seconds; CREATE QUERY q AS SELECT detector, avg(speed) AS mean FROM traffic "
    "[RANGE 5 minutes SLIDE 1 minute] GROUP BY detector": means(traffic().clock_skew("2 seconds")),
    f"{DDL} ARRIVAL BY seen FUTURE 1 minute REJECT TIMEOUT 10 minutes; CREATE QUERY q AS SELECT detector, "
    "avg(speed) AS mean FROM traffic [RANGE 5 minutes SLIDE 1 minute] GROUP BY detector": means(
        traffic(arrival="seen").future("1 minute", reject=True).timeout("10 minutes")
    ),
    f"{DDL}; CREATE QUERY q AS SELECT detector, max(speed) - min(speed) AS spread, count(*) AS n FROM traffic "
    "WINDOW [RANGE = 60 s] WHERE speed > 0 GROUP BY detector HAVING count(*) > 2 ORDER BY spread DESC LIMIT 3": (
        traffic()
        .where("speed > 0")
        .window("60 seconds")
        .groupBy("detector")
        .having("count(*) > 2")
        .agg(spread="max(speed) - min(speed)", n="count(*)")
        .orderBy("spread DESC")
        .limit(3)
        .named("q")
    ),
}

NORTH, SOUTH = (eventide.stream(SCHEMA.empty_table(), time="ts", name=name) for name in ("north", "south"))
TWO = DDL.replace("traffic", "north") + ";" + DDL.replace("traffic", "south") + ";"
EXAMPLES |= {
    f"{DDL}; CREATE QUERY q AS SELECT detector, speed * 1.6 AS kmh FROM traffic WHERE speed > 50": (
        traffic().where("speed > 50").select("detector", kmh="speed * 1.6").named("q")
    ),
    f"{DDL}; CREATE QUERY q AS SELECT * FROM traffic EMIT IN ORDER OF TIME": traffic().select().by_time().named("q"),
    f"{DDL}; CREATE QUERY q AS SELECT * FROM traffic EMIT IMMEDIATELY": traffic().select().immediately().named("q"),
    f"{TWO} CREATE QUERY q AS SELECT * FROM north UNION ALL SELECT * FROM south": NORTH.union(SOUTH).named("q"),
    f"{TWO} CREATE QUERY q AS SELECT detector, count(*) AS n FROM (SELECT * FROM north UNION ALL SELECT * FROM south) "
    "[RANGE 1 minute] GROUP BY detector": (
        NORTH.union(SOUTH).window("1 minute").groupBy("detector").agg(n="count(*)").named("q")
    ),
    f"{TWO} CREATE QUERY both AS SELECT * FROM north UNION ALL SELECT * FROM south; "
    "CREATE QUERY q AS SELECT max(speed) AS top FROM both [RANGE 1 minute]": (
        NORTH.union(SOUTH).named("both").window("1 minute").agg(top="max(speed)").named("q")
    ),
    f"{TWO} CREATE QUERY q AS SELECT speed, ts FROM "
    "(SELECT * FROM north WHERE speed > 3 UNION ALL SELECT * FROM south)": (
        NORTH.where("speed > 3").union(SOUTH).select("speed", "ts").named("q")
    ),
    f"{TWO} CREATE QUERY q AS SELECT north.detector, south.speed - north.speed AS more FROM north JOIN south "
    "ON north.detector = south.detector AND abs(north.ts - south.ts) <= INTERVAL 5 SECONDS WHERE north.speed > 3": (
        NORTH.join(SOUTH, on="detector", within="5 seconds")
        .where("north.speed > 3")
        .select("north.detector", more="south.speed - north.speed")
        .named("q")
    ),
    f"{TWO} CREATE QUERY q AS SELECT north.detector, south.speed FROM (SELECT * FROM north WHERE speed > 3) AS north "
    "FULL JOIN (SELECT * FROM south WHERE speed < 9) AS south ON north.ts = south.ts": (
        NORTH.where("(speed > 3)")
        .join(SOUTH.where("(speed < 9)"), on="ts", how="full")
        .select("north.detector", "south.speed")
        .named("q")
    ),
    f"{TWO} CREATE QUERY q AS SELECT north.detector, south.speed FROM north LEFT JOIN south ON north.ts = south.ts "
    "AND north.detector = south.detector AND south.speed > 3 WHERE south.speed IS NULL": (
        NORTH.join(SOUTH, on="north.ts = south.ts AND north.detector = south.detector AND south.speed > 3", how="left")
        .where("south.speed IS NULL")
        .select("north.detector", "south.speed")
        .named("q")
    ),
    f"{TWO} CREATE QUERY q AS SELECT north.detector, south.speed FROM north JOIN south FOR SYSTEM_TIME AS OF north.ts "
    "ON north.detector = south.detector WHERE south.speed > 3": (
        NORTH.lookup(SOUTH, on="detector").where("south.speed > 3").select("north.detector", "south.speed").named("q")
    ),
    f"{TWO} CREATE QUERY q AS SELECT n.detector, s.speed FROM (SELECT * FROM north WHERE speed > 3) AS n "
    "LEFT JOIN south FOR SYSTEM_TIME AS OF n.ts AS s ON n.detector = s.detector WHERE s.speed IS NULL": (
        NORTH.where("(speed > 3)")
        .select()
        .alias("n")
        .lookup(SOUTH.alias("s"), on="n.detector = s.detector", how="left")
        .where("s.speed IS NULL")
        .select("n.detector", "s.speed")
        .named("q")
    ),
}

EXAMPLES |= {
    f"{DDL}; CREATE QUERY q AS SELECT DISTINCT detector FROM traffic [RANGE 5 minutes]": (
        traffic().window("5 minutes").groupBy("detector").distinct().named("q")
    ),
    f"{DDL}; CREATE QUERY q AS SELECT count(*) AS n FROM traffic TABLESAMPLE (25 PERCENT) [RANGE 5 minutes] "
    "WHERE speed > 3": traffic().sample(0.25).where("speed > 3").window("5 minutes").agg(n="count(*)").named("q"),
    f"{DDL}; CREATE QUERY q AS SELECT speed FROM traffic TABLESAMPLE (25 PERCENT)": (
        traffic().sample(0.25).select("speed").named("q")
    ),
}

ASKS = eventide.stream(SCHEMA.empty_table(), time="ts", name="asks")
MARKED = pa.schema([*SCHEMA, ("ask", pa.bool_())])
EXAMPLES |= {
    f"{DDL}; {DDL.replace('traffic', 'asks')}; CREATE QUERY q AS SELECT detector, avg(speed) AS mean FROM traffic "
    "[RANGE 5 minutes SLIDE 1 minute] GROUP BY detector PROD BY asks PROD AT 90% ESTIMATE": (
        means(traffic()).prodded(by=ASKS, at=0.9, estimate=True)
    ),
    f"{DDL.replace('speed INT', 'speed INT, ask BOOLEAN')} PRODDED BY ask; CREATE QUERY q AS SELECT detector, "
    "avg(speed) AS mean FROM traffic [RANGE 5 minutes SLIDE 1 minute] GROUP BY detector ESTIMATE": means(
        eventide.stream(MARKED.empty_table(), time="ts", name="traffic", prodded="ask")
    ).prodded(estimate=True),
}

TOPS = traffic().window("5 minutes").having("top > 80").agg(top="max(speed)")
PER_ROAD = {
    stream.declared.name: stream.window("1 minute")
    .groupBy("detector", tb="date_trunc('minute', ts)")
    .agg(n="count(*)")
    .named(f"of_{stream.declared.name}")
    for stream in (NORTH, SOUTH)
}
OF_ROADS = "; ".join(
    f"CREATE QUERY of_{name} AS SELECT detector, date_trunc('minute', ts) AS tb, count(*) AS n FROM {name} "
    "[RANGE 1 minute] GROUP BY detector, tb"
    for name in PER_ROAD
)
EXAMPLES |= {
    f"{DDL}; CREATE QUERY q AS SELECT count(*) AS n FROM "
    "(SELECT max(speed) AS top FROM traffic [RANGE 5 minutes] HAVING top > 80) [RANGE 1 hour]": (
        TOPS.window("1 hour").agg(n="count(*)").named("q")
    ),
    f"{DDL}; CREATE QUERY tops AS SELECT max(speed) AS top FROM traffic [RANGE 5 minutes] HAVING top > 80; "
    "CREATE QUERY q AS SELECT top, window_end AS till FROM tops WHERE top < 99": (
        TOPS.named("tops").where("top < 99").select("top", till="window_end").named("q")
    ),
    f"{TWO} {OF_ROADS}; CREATE QUERY q AS SELECT of_north.detector, of_north.n, of_south.n FROM of_north "
    "FULL JOIN of_south ON of_north.detector = of_south.detector AND of_north.tb = of_south.tb": (
        PER_ROAD["north"]
        .join(PER_ROAD["south"], on=["detector", "tb"], how="full")
        .select("of_north.detector", "of_north.n", "of_south.n")
        .named("q")
    ),
    f"{TWO} {OF_ROADS}; CREATE QUERY q AS SELECT * FROM of_north UNION ALL SELECT * FROM of_south": (
        PER_ROAD["north"].union(PER_ROAD["south"]).named("q")
    ),
    f"{DDL}; CREATE QUERY q AS SELECT a.detector, b.speed - a.speed AS more FROM traffic AS a JOIN traffic AS b "
    "ON a.detector = b.detector AND b.ts BETWEEN a.ts + INTERVAL 1 SECOND AND a.ts + INTERVAL 5 SECONDS": (
        (cars := traffic())
        .alias("a")
        .join(
            cars.alias("b"),
            on="a.detector = b.detector AND b.ts BETWEEN a.ts + INTERVAL 1 SECOND AND a.ts + INTERVAL 5 SECONDS",
        )
        .select("a.detector", more="b.speed - a.speed")
        .named("q")
    ),
}


@pytest.mark.parametrize("text", EXAMPLES)
def test_python_and_sql_are_the_same_plan(text: str) -> None:
    assert normal(bare(eventide.sql(text).plan)) == normal(EXAMPLES[text].plan)
