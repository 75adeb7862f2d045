-- Queries over queries: one plan, in which windows close together with the windows that they read.
--   eventide run examples/sql_2_queries_over_queries.sql --engine local

CREATE STREAM doors (at TIMESTAMP, door STRING, people INT) FROM csv 'examples/data/doors.csv' SOURCE BY door;

CREATE QUERY sums AS
    SELECT door, sum(people) AS people FROM doors [RANGE 1 minute] GROUP BY door INTO MEMORY;

-- A query without a window of its own has the windows of the query that it reads: the busier door of each minute.
CREATE QUERY busier AS
    SELECT door, max(people) AS people FROM sums GROUP BY door ORDER BY people DESC LIMIT 1;

-- A query with a window of its own reads the results of many windows: how often did more than 5 people in a minute use a door?
CREATE QUERY rushes AS
    SELECT count(*) AS rushes FROM sums [RANGE 10 minutes] WHERE people > 5;

-- It prints:
-- busier round=0 final [2026-01-31 09:00:00, 2026-01-31 09:01:00) door=north people=8 rows=1
-- busier round=0 final [2026-01-31 09:01:00, 2026-01-31 09:02:00) door=north people=6 rows=1
-- busier round=0 final [2026-01-31 09:02:00, 2026-01-31 09:03:00) door=south people=7 rows=1
-- busier round=1 final [2026-01-31 09:03:00, 2026-01-31 09:04:00) door=south people=3 rows=1
-- busier round=1 final [2026-01-31 09:04:00, 2026-01-31 09:05:00) door=north people=2 rows=1
-- rushes round=1 final [2026-01-31 09:00:00, 2026-01-31 09:10:00) rushes=3 rows=3
