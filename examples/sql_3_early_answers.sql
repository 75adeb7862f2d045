-- Early answers: the turnover of a shop while its window is still open, and what it will probably be.
--   eventide run examples/sql_3_early_answers.sql --engine local
-- `614±21%,~773` means: 614 so far; in earlier windows such a value was 21 % off; it will probably be 773.

CREATE STREAM sales (at TIMESTAMP, arrived TIMESTAMP, shop STRING, amount INT)
    FROM csv 'examples/data/sales.csv'
    LIMIT 20 ROWS PER ROUND   -- read the recording in small rounds (micro-batches)
    TIMESTAMP BY at
    ARRIVAL BY arrived        -- the clock is that of the recording
    DRATIO 1%;

SELECT shop, sum(amount) AS turnover
FROM sales [RANGE 4 minutes]
GROUP BY shop
PROD AT 50 % ESTIMATE;        -- prod (an early trigger) each window once, half-way through

-- It prints:
-- query_1 round=1 early [2026-01-31 09:00:00, 2026-01-31 09:04:00) shop=harbour turnover=187 rows=21
-- query_1 round=1 early [2026-01-31 09:00:00, 2026-01-31 09:04:00) shop=market turnover=163 rows=19
-- query_1 round=4 final [2026-01-31 09:00:00, 2026-01-31 09:04:00) shop=harbour turnover=488 rows=44
-- query_1 round=4 final [2026-01-31 09:00:00, 2026-01-31 09:04:00) shop=market turnover=355 rows=36
-- query_1 round=5 early 50% [2026-01-31 09:04:00, 2026-01-31 09:08:00) shop=harbour turnover=227±58%,~454 rows=19
-- query_1 round=5 early 50% [2026-01-31 09:04:00, 2026-01-31 09:08:00) shop=market turnover=246±58%,~492 rows=21
-- query_1 round=8 final [2026-01-31 09:04:00, 2026-01-31 09:08:00) shop=harbour turnover=420 rows=43
-- query_1 round=8 final [2026-01-31 09:04:00, 2026-01-31 09:08:00) shop=market turnover=401 rows=37
-- query_1 round=9 early 50% [2026-01-31 09:08:00, 2026-01-31 09:12:00) shop=market turnover=182±50%,~364 rows=16
-- query_1 round=9 early 50% [2026-01-31 09:08:00, 2026-01-31 09:12:00) shop=harbour turnover=199±50%,~398 rows=24
-- query_1 round=12 final [2026-01-31 09:08:00, 2026-01-31 09:12:00) shop=market turnover=403 rows=33
-- query_1 round=12 final [2026-01-31 09:08:00, 2026-01-31 09:12:00) shop=harbour turnover=447 rows=47
