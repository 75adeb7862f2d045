-- Spark casts a text or a time to DOUBLE where it sums, without being asked; a text that is no number breaks its row.
CREATE STREAM s (ts TIMESTAMP, k STRING, v INT) DELAY 1 hour;
CREATE QUERY sums AS
    SELECT sum(k) AS total, avg(k) AS mean, stddev(k) AS spread, avg(ts) AS middle, sum(v) AS n
    FROM s [RANGE 1 minute];
CREATE QUERY lists AS
    SELECT k, collect_list(v) AS vs, size(collect_set(v)) AS n, corr(v, v) AS c, regr_slope(v, v) AS slope
    FROM s [RANGE 1 minute] GROUP BY k;
