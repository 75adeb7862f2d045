-- Groups that are stretches of time make the window
CREATE STREAM S (ts TIMESTAMP, k STRING, v INT);
SELECT date_trunc('minute', ts) AS minute, sum(v) AS total, upper(k) AS letter FROM S GROUP BY minute, k HAVING sum(v) > 1;
CREATE QUERY days AS SELECT cast(ts AS DATE) AS day, count(*) AS n FROM S GROUP BY 1;
