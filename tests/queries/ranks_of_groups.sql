-- Ranks, shares and running sums beside the aggregates of a window, with one SELECT and by DISTINCT ON
CREATE STREAM S (t BIGINT, k STRING, v INT);
SELECT k, count(*) AS n, rank() OVER (ORDER BY count(*) DESC) AS place, sum(v) / sum(sum(v)) OVER () AS share
FROM S [RANGE 10] GROUP BY k QUALIFY place <= 2;
CREATE QUERY so_far AS
    SELECT t, k, v, sum(v) OVER w AS total, v - avg(v) OVER (PARTITION BY k ORDER BY t ROWS 1 PRECEDING) AS above
    FROM S WHERE v > 0 WINDOW w AS (ORDER BY t);
CREATE QUERY firsts AS SELECT DISTINCT ON (k) k, v FROM S [RANGE 4];
