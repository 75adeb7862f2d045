-- Pairs whose times belong together, and rows that have no partner
CREATE STREAM a (t BIGINT, k STRING, v INT);
CREATE STREAM b (t BIGINT, k STRING, w INT);
CREATE QUERY equal_times AS SELECT a.k, v, w FROM a JOIN b ON a.t = b.t;
CREATE QUERY near AS SELECT a.k, v, w FROM a JOIN b ON abs(a.t - b.t) <= 3 AND a.k = b.k;
CREATE QUERY comma AS SELECT x.k, v, w FROM a AS x, b y WHERE x.t BETWEEN y.t - 3 AND y.t + 3 AND x.k = y.k AND v > 10;
CREATE QUERY lefts AS SELECT a.t, a.k, b.t, w FROM a LEFT JOIN b ON a.k = b.k AND a.t >= b.t AND a.t <= b.t + 3 AND v < 30;
CREATE QUERY rights AS SELECT v, b.t, b.k FROM a RIGHT OUTER JOIN b USING (k, t) WHERE v IS NULL;
CREATE QUERY fulls AS SELECT a.t AS at, b.t AS bt FROM a FULL JOIN b ON a.k = b.k AND a.t/10 = b.t/10;
