-- Windows: how many people walk through each door, every minute, and over the last three.
--   eventide run examples/sql_1_windows.sql --engine local
-- The rows are in a file, in the order of their arrival; two of them are out of order.

CREATE STREAM doors (at TIMESTAMP, door STRING, people INT)
    FROM csv 'examples/data/doors.csv'
    TIMESTAMP BY at       -- the event time
    SOURCE BY door        -- who sends rows: each door has its own heartbeat (watermark)
    DRATIO 1%;            -- at most 1 % of the rows may be late; no delay has to be guessed

-- Tumbling windows.
CREATE QUERY every_minute AS
    SELECT door, sum(people) AS people FROM doors [RANGE 1 minute] GROUP BY door;

-- Sliding windows; HAVING keeps only busy ones.
CREATE QUERY busy AS
    SELECT sum(people) AS people FROM doors [RANGE 3 minutes SLIDE 1 minute] HAVING people > 15;

-- It prints:
-- every_minute round=0 final [2026-01-31 09:00:00, 2026-01-31 09:01:00) door=north people=8 rows=3
-- every_minute round=0 final [2026-01-31 09:00:00, 2026-01-31 09:01:00) door=south people=1 rows=1
-- every_minute round=0 final [2026-01-31 09:01:00, 2026-01-31 09:02:00) door=south people=2 rows=1
-- every_minute round=0 final [2026-01-31 09:01:00, 2026-01-31 09:02:00) door=north people=6 rows=1
-- every_minute round=0 final [2026-01-31 09:02:00, 2026-01-31 09:03:00) door=south people=7 rows=2
-- every_minute round=0 final [2026-01-31 09:02:00, 2026-01-31 09:03:00) door=north people=2 rows=1
-- busy round=0 final [2026-01-31 08:59:00, 2026-01-31 09:02:00) people=17 rows=6
-- busy round=0 final [2026-01-31 09:00:00, 2026-01-31 09:03:00) people=26 rows=9
-- every_minute round=1 final [2026-01-31 09:03:00, 2026-01-31 09:04:00) door=north people=1 rows=1
-- every_minute round=1 final [2026-01-31 09:03:00, 2026-01-31 09:04:00) door=south people=3 rows=1
-- every_minute round=1 final [2026-01-31 09:04:00, 2026-01-31 09:05:00) door=north people=2 rows=1
-- busy round=1 final [2026-01-31 09:01:00, 2026-01-31 09:04:00) people=21 rows=7
