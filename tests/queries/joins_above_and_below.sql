-- Windows of a join, windows over a join, joins of three, of queries, of a stream with itself
CREATE STREAM a (ts TIMESTAMP, k STRING, v INT);
CREATE STREAM b (ts TIMESTAMP, k STRING, w INT);
CREATE STREAM c (ts TIMESTAMP, k STRING, u INT);
CREATE QUERY windows AS SELECT a.k, v, w FROM a [RANGE 5 s] JOIN b [RANGE 10 s] ON a.k = b.k;
CREATE QUERY counted AS SELECT a.k, count(*) AS n, sum(v + w) AS total
    FROM a JOIN b ON a.k = b.k AND a.ts BETWEEN b.ts - INTERVAL 5 SECONDS AND b.ts + INTERVAL 5 SECONDS
    WINDOW [RANGE 10 seconds] GROUP BY a.k;
CREATE QUERY in_stretches AS SELECT date_trunc('minute', a.ts) AS minute, count(*) AS n FROM a JOIN b ON a.ts = b.ts GROUP BY minute;
CREATE QUERY three AS SELECT a.k, v, w, u
    FROM a JOIN b ON abs(a.ts - b.ts) <= INTERVAL 5 SECONDS AND a.k = b.k
    LEFT JOIN c ON c.ts BETWEEN a.ts AND a.ts + INTERVAL 2 SECONDS AND c.k = b.k;
CREATE QUERY as_ AS SELECT k, count(*) AS n FROM a [RANGE 10 s] GROUP BY k;
CREATE QUERY bs AS SELECT k, count(*) AS n FROM b [RANGE 10 s] GROUP BY k;
CREATE QUERY both AS SELECT coalesce(x.k, y.k) AS k, x.n AS in_a, y.n AS in_b
    FROM as_ x FULL JOIN bs y ON x.window_end = y.window_end AND x.k = y.k;
CREATE QUERY busy AS
    WITH many AS (SELECT k, count(*) AS n FROM a [RANGE 10 s] GROUP BY k HAVING n > 1)
    SELECT many.k, n, w FROM many JOIN (SELECT k, w, ts FROM b WHERE w > 0) AS p
    ON many.k = p.k AND p.ts >= many.window_start AND p.ts < many.window_end;
CREATE QUERY pairs AS SELECT one.v, other.v FROM a AS one JOIN a AS other
    ON one.k = other.k AND other.ts > one.ts AND other.ts <= one.ts + INTERVAL 5 SECONDS;
