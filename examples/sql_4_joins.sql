-- Joins: which orders were paid within ten minutes, and which were not?
--   eventide run examples/sql_4_joins.sql --engine local
-- The condition on the times says how long a row is kept for its partner; a join without one is refused.

CREATE STREAM orders (ts TIMESTAMP, id INT, amount INT) FROM csv 'examples/data/orders.csv';
CREATE STREAM payments (ts TIMESTAMP, id INT, paid INT) FROM csv 'examples/data/payments.csv';

CREATE QUERY paid AS
    SELECT o.id, amount, paid
    FROM orders AS o JOIN payments AS p
        ON o.id = p.id AND p.ts BETWEEN o.ts AND o.ts + INTERVAL 10 MINUTES;

-- A row without a partner is given when no partner can come any more.
CREATE QUERY unpaid AS
    SELECT o.id, amount
    FROM orders AS o LEFT JOIN payments AS p
        ON o.id = p.id AND p.ts BETWEEN o.ts AND o.ts + INTERVAL 10 MINUTES
    WHERE p.id IS NULL;

-- It prints:
-- paid round=0 final [2026-01-31 09:00:00, 2026-01-31 09:02:00] id=1 amount=30 paid=30 rows=2
-- paid round=0 final [2026-01-31 09:03:00, 2026-01-31 09:04:30] id=3 amount=55 paid=50 rows=2
-- paid round=0 final [2026-01-31 09:30:00, 2026-01-31 09:31:00] id=5 amount=20 paid=20 rows=2
-- unpaid round=1 final 2026-01-31 09:01:00 id=2 amount=12 rows=1
-- unpaid round=1 final 2026-01-31 09:05:00 id=4 amount=8 rows=1
