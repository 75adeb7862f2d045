-- A sub-query and a WITH that only compute columns
CREATE STREAM S (t BIGINT, a INT, b INT);
WITH some AS (SELECT *, a * 2 AS twice FROM S WHERE b < 80)
SELECT sum(x.twice) AS total, count(*) AS n FROM (SELECT t, twice FROM some WHERE a > 1) x [RANGE 10] WHERE x.twice < 10;
CREATE QUERY shifted AS SELECT sum(b) AS total FROM (SELECT t + 5 AS later, b FROM S) [RANGE 10 WATTR later];
