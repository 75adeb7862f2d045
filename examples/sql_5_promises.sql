-- Promises in the data: each machine says itself when a minute is over, and no machine waits for another.
--   eventide run examples/sql_5_promises.sql --engine local

CREATE STREAM machines (ts TIMESTAMP, machine STRING, load DOUBLE, done BOOLEAN)
    FROM json 'examples/data/machines.jsonl'
    LIMIT 1 ROWS PER ROUND
    SOURCE BY machine
    PUNCTUATED BY done        -- a row with done = TRUE promises that no more rows up to its time come
    TIMEOUT 1 hour;           -- when all machines are silent for an hour, their heartbeats move to the largest time seen

SELECT machine, avg(load) AS mean, max(load) AS most
FROM machines [RANGE 1 minute]
GROUP BY machine
CLOSE BY SOURCE;

-- It prints:
-- query_1 round=3 final [2026-01-31 09:00:00, 2026-01-31 09:01:00) machine=press mean=0.6 most=0.7 rows=2
-- query_1 round=6 final [2026-01-31 09:01:00, 2026-01-31 09:02:00) machine=press mean=0.9 most=0.9 rows=1
-- query_1 round=7 final [2026-01-31 09:00:00, 2026-01-31 09:01:00) machine=saw mean=0.3 most=0.4 rows=2
