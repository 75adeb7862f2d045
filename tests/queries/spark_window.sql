-- A window in the words of Spark
CREATE STREAM S (ts TIMESTAMP, k STRING);
SELECT window.start, k, count(*) AS n FROM S GROUP BY window(ts, '1 minute', '30 seconds'), k;
