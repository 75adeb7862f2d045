-- The clauses with which Flink and Spark declare a watermark; each names the column that tells the time.
CREATE STREAM clicks (sent TIMESTAMP, ts TIMESTAMP, v INT) WATERMARK FOR ts AS ts - INTERVAL '10' SECONDS;
CREATE STREAM views (sent TIMESTAMP, ts TIMESTAMP, v INT) WATERMARK ts DELAY OF INTERVAL 10 SECONDS;
CREATE QUERY clicked AS SELECT sum(v) AS total FROM clicks [RANGE 1 minute];
CREATE QUERY viewed AS SELECT sum(v) AS total FROM views [RANGE 1 minute];
