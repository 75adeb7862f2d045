"""Each piece of grammar that we add, in one line that is read and written again unchanged."""

from __future__ import annotations

import pytest
from sqlglot import exp

from eventide.language.grammar.dialect import EVENTIDE, read

SAME = """
CREATE STREAM s (t BIGINT)
CREATE STREAM main1.s (t BIGINT, `a b` STRING, d DECIMAL(10, 2), xs ARRAY<INT>)
CREATE STREAM s (t BIGINT) FROM json 'in'
CREATE TABLE d (k STRING, v INT) FROM csv 'd.csv' OPTIONS (header 'true') REFRESH EVERY 5 minutes
CREATE STREAM s (t BIGINT) FROM STDIN FORMAT csv
CREATE STREAM s (t BIGINT) USING kafka OPTIONS (subscribe 'topic', value.format 'json')
CREATE STREAM s (t BIGINT) USING kafka OPTIONS (subscribe 'topic', token secret('env:TOKEN'))
CREATE STREAM s (t BIGINT) LIMIT 10 files PER ROUND
CREATE STREAM s (t BIGINT) TIMESTAMP BY t SOURCE BY a, b ARRIVAL BY c
CREATE STREAM s (t BIGINT) TIMESTAMP BY ARRIVAL
CREATE STREAM s (x STRING, ts AS CAST(x AS TIMESTAMP), twice INT AS v * 2, v INT) TIMESTAMP BY ts
CREATE STREAM s (ms BIGINT) TIMESTAMP BY TIMESTAMP_MILLIS(ms) SLACK 10
CREATE STREAM s (t BIGINT) FUTURE 5 minutes REJECT
CREATE STREAM s (t BIGINT) SLACK 10
CREATE STREAM s (t BIGINT) SLACK 10 rows
CREATE STREAM s (t BIGINT) DELAY 5 s
CREATE STREAM s (t BIGINT) WATERMARK FOR t AS t - 10 seconds
CREATE STREAM s (t BIGINT) WATERMARK FOR t AS t TIMEOUT 1 minute
CREATE STREAM s (t BIGINT) WATERMARK t DELAY OF 10 seconds
CREATE STREAM s (t BIGINT) DRATIO 5% SLACK 20
CREATE STREAM s (t BIGINT) DRATIO 5% ESTIMATOR KIM
CREATE STREAM s (t BIGINT) CLOCK SKEW 2 minutes
CREATE STREAM s (t BIGINT) ON DEMAND 2 minutes
CREATE STREAM s (t BIGINT) BOUNDS (SOURCE a LATENCY 2 s, b TRAILS a BY 5 s AFTER 3 rows, ALL TRAILS ALL BY 9 s)
CREATE STREAM s (t BIGINT) BOUNDS (b TRAILS a BY 5 s AFTER 2 s EXCEEDED 1%)
CREATE STREAM s (t BIGINT) BOUNDS (SOURCE a LATENCY 2 s EXCEEDED 1%, SOURCE a CLOCK WITHIN 5 s RATE AT LEAST 0.9)
CREATE STREAM s (t BIGINT) BOUNDS (SOURCE ALL COUNTER FROM 1 s TO 4 s) GROUPED INTO 3 CLOCK UNIT 500 ms
CREATE STREAM s (t BIGINT) BOUNDS (north TRAILS south BY 5 s) GROUPED (north (a, 'b-1'), south (c)) CLOCK UNIT 1 s
CREATE STREAM s (t BIGINT) ESTIMATED BOUNDS
CREATE STREAM s (t BIGINT) ESTIMATED BOUNDS (WINDOW 100, PAIRWISE)
CREATE STREAM s (t BIGINT) PUNCTUATED BY p
CREATE STREAM s (t BIGINT) PRODDED BY p
CREATE STREAM s (t BIGINT) OWN PROGRESS IDLE AFTER 30 s TIMEOUT 1 minute
CREATE STREAM s (t BIGINT, k STRING) SOURCE BY k EXPECTING (a, 'b-1') GIVE UP AFTER 5 minutes
CREATE BOUNDS (SOURCE temp LATENCY 2 s, temp.'s-1' TRAILS main0.pressure BY 5 s AFTER 1 s) TIMEOUT 1 minute
CREATE FUNCTION f FROM 'file.py' RETURNS BOOLEAN EXPENSIVE
CREATE ALERT a ON s WHEN lag > 30 seconds FOR 1 minute
CREATE ALERT a ON q WHEN (late_ratio > 0.5% OR rows % 5 = 1) AND NOT who IN ('a', 'b') FOR 10 s
CREATE QUERY q AS SELECT COUNT(*) FROM s [RANGE 5 minutes SLIDE 1 minute WATTR ts SLACK 10]
SELECT a, COUNT(*) FROM s [SESSION 10 minutes RETAIN 1 hour] GROUP BY a
SELECT a, COUNT(*) FROM s [SESSION CASE WHEN b > 1 THEN '5 minutes' ELSE INTERVAL '1' HOUR END] GROUP BY a
SELECT a, COUNT(*) FROM s GROUP BY a, SESSION(ts, INTERVAL '10' MINUTE)
CREATE QUERY q AS SELECT COUNT(*) FROM s [RANGE 5 minutes DRATIO 5% SLACK 20 ESTIMATOR KIM]
SELECT a, COUNT(*) FROM s [SESSION 10 minutes PARTITION BY a, b WATTR ts] GROUP BY a, b
SELECT window_start AS x, COUNT(*) FROM s [RANGE 1 hour STEP 10 minutes OFFSET 5 minutes]
CREATE QUERY q AS SELECT COUNT(*) FROM s AS x [RANGE 100 rows] INTO 'dir' FORMAT parquet
CREATE QUERY q AS SELECT COUNT(*) FROM s [RANGE 5 OFFSET 2 EMPTY WINDOWS RETAIN 50] INTO CONSOLE OPTIONS (rows 5)
CREATE QUERY q AS SELECT COUNT(*) FROM s [RANGE 5] PROD EVERY 1 second PROD AT 75%, 90% ESTIMATE INTO 'dir'
SELECT COUNT(*) FROM s WHERE a > 1 GROUP BY b PROD WITHIN 2% ERROR PROD BETWEEN 50% AND 120% PROD SPEED 5%
SELECT COUNT(*) FROM s [RANGE 5] PROD WITHIN 2% ERROR PROD CONFIDENCE 99%
SELECT MAX(total) FROM sums PROD EVERY 10 s
SELECT COUNT(*) FROM s [RANGE 5] PROD EVERY 1 s SIDELINE BURSTS
SELECT COUNT(*) FROM s [RANGE 5] SIDELINE ONE IN 3 SIDELINE WITHIN 10 minutes INTO 'dir'
SELECT MAX(total) FROM sums PROD BY asks COMPARE total WITH off_by, word WITH distance INTO 'dir'
SELECT MAX(total) FROM s [RANGE 5] PROD BY main1.asks ESTIMATE
SELECT MAX(total) FROM s [RANGE 5] ESTIMATE COMPARE total WITH off_by
SELECT MAX(total) FROM s COMPARE total WITH off_by
SELECT MAX(ESTIMATE.total) FROM s AS ESTIMATE WHERE ESTIMATE.a > 1
SELECT MAX(COMPARE.total) FROM s AS COMPARE [RANGE 5]
CREATE QUERY q AS SELECT a, COUNT(*) FROM s [RANGE 5] GROUP BY a HAVING COUNT(*) > 1 CLOSE BY SOURCE INTO 'dir'
SELECT a FROM s UNION ALL SELECT a FROM u EMIT IN ORDER OF TIME INTO 'dir'
SELECT a, COUNT(*) FROM s GROUP BY a EMIT CHANGES STATE TTL 1 day INTO 'dir'
SELECT COUNT(*) FROM s STATE TTL FOREVER EMIT CHANGES
SELECT MAX(STATE.a) FROM s AS STATE WHERE STATE.a > 1
SELECT a.x FROM a JOIN b ON a.x = b.x STATE TTL 10 minutes
SELECT COUNT(*) FROM main1.s [RANGE 5]
SELECT COUNT(*) FROM (SELECT * FROM s) AS x [RANGE 5]
SELECT COUNT(*) FROM s TABLESAMPLE (10 PERCENT) [RANGE 5]
SELECT COUNT(*) FROM s WHERE a > 1 WINDOW [RANGE 5 SLIDE 1]
SELECT tb, COUNT(*) FROM s GROUP BY time / 60 AS tb, a
DROP QUERY q
DROP STREAM main1.s
SHOW STREAMS
SHOW QUERIES
EXPLAIN q
EXPLAIN SELECT COUNT(*) FROM s [RANGE 5]
SET a.b = 5
""".strip().splitlines()

ALIKE = {
    "Query q: SELECT count(*) FROM [main0].s": "CREATE QUERY q AS SELECT COUNT(*) FROM main0.s",
    "select Max(x) from S Window[Range=30 Second, Slide=2min]": "SELECT MAX(x) FROM S [RANGE 30 second SLIDE 2 min]",
    "CREATE BOUNDS (STREAM temp, temp TRAILS p BY 5s)": "CREATE BOUNDS (SOURCE temp, temp TRAILS p BY 5 s)",
    "SELECT 1 FROM s [RANGE 60s SLIDE 10min]": "SELECT 1 FROM s [RANGE 60 s SLIDE 10 min]",
    "SELECT 1 FROM s [RANGE INTERVAL '5' MINUTES SLIDE '1 minute']": "SELECT 1 FROM s [RANGE 5 minutes SLIDE 1 minute]",
    "SELECT 1 FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '5' MINUTES)) AS x": (
        "SELECT 1 FROM s AS x [RANGE 5 minutes WATTR ts]"
    ),
    "SELECT 1 FROM tumble(a.s, ts, INTERVAL '5 minutes', INTERVAL '1' MINUTE)": (
        "SELECT 1 FROM a.s [RANGE 5 minutes OFFSET 1 minute WATTR ts]"
    ),
    "SELECT 1 FROM TABLE(HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '5' MINUTES))": (
        "SELECT 1 FROM s [RANGE 5 minutes SLIDE 1 minute WATTR ts]"
    ),
    "SELECT 1 FROM HOP(DATA => TABLE s, TIMECOL => DESCRIPTOR(ts), SIZE => INTERVAL 5 DAYS, SLIDE => INTERVAL 1 DAY)": (
        "SELECT 1 FROM s [RANGE 5 days SLIDE 1 day WATTR ts]"
    ),
    "SELECT 1 FROM TABLE(CUMULATE(TABLE s, DESCRIPTOR(ts), INTERVAL '2' MINUTES, INTERVAL '1' HOUR))": (
        "SELECT 1 FROM s [RANGE 1 hour STEP 2 minutes WATTR ts]"
    ),
    "SELECT 1 FROM TABLE(SESSION(TABLE s PARTITION BY a, b, DESCRIPTOR(ts), INTERVAL '5' MINUTES))": (
        "SELECT 1 FROM s [SESSION 5 minutes PARTITION BY a, b WATTR ts]"
    ),
    "CREATE STREAM s (v INT, twice INT GENERATED ALWAYS AS (v * 2))": "CREATE STREAM s (v INT, twice INT AS (v * 2))",
    "SELECT 1 FROM s WHERE word foundIn(text)": "SELECT 1 FROM s WHERE FOUNDIN(word, text)",
    "SELECT 1 FROM s WHERE NOT word foundIn(text, 2) AND x": "SELECT 1 FROM s WHERE NOT FOUNDIN(word, text, 2) AND x",
}


@pytest.mark.parametrize("text", SAME)
def test_what_we_add_is_read_and_written_again_unchanged(text: str) -> None:
    assert read(text).sql(EVENTIDE) == text


@pytest.mark.parametrize("text", ALIKE)
def test_other_spellings_mean_the_same(text: str) -> None:
    assert read(text).sql(EVENTIDE) == ALIKE[text]
    assert read(ALIKE[text]).sql(EVENTIDE) == ALIKE[text]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a b, c AS d FROM t",
        "SELECT xs[0], m['k'], transform(xs, x -> x + 1) FROM t WHERE a IN (1, 2) AND NOT b BETWEEN 1 AND 2",
        "SELECT a FROM t x WHERE x.a IS NOT NULL GROUP BY a, b GROUPING SETS ((a), (b))",
        "SELECT sum(a) OVER w FROM t WINDOW w AS (PARTITION BY b)",
        "SELECT lag(a, 2) OVER (PARTITION BY b ORDER BY c) AS x FROM t",
        "SELECT first(a) IGNORE NULLS OVER (ORDER BY c ROWS 2 PRECEDING) AS x FROM t",
        "SELECT max(a) OVER (ORDER BY c RANGE BETWEEN INTERVAL '5' MINUTE PRECEDING AND CURRENT ROW) AS x FROM t",
        "SELECT a FROM t QUALIFY row_number() OVER (PARTITION BY b ORDER BY c) = 1",
        "SELECT DISTINCT ON (a, b) c FROM t",
        "SELECT a FROM t LEFT SEMI JOIN s ON t.x = s.x",
        "SELECT a FROM t WHERE NOT EXISTS(SELECT 1 FROM s WHERE s.x = t.x) AND b IN (SELECT b FROM s)",
        "SELECT CAST(60S AS INT), 5D, 3L FROM t",
        "WITH a AS (SELECT 1 AS x) SELECT * FROM a",
    ],
)
def test_everything_else_is_read_as_spark_reads_it(text: str) -> None:
    import sqlglot

    from eventide.plan.expressions.spark_dialect import SPARK

    ours = read(text).expression
    assert isinstance(ours, exp.Expression)
    assert ours.sql(SPARK) == sqlglot.parse_one(text, read=SPARK).sql(SPARK)
