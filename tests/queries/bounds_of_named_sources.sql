-- Rows of sources that BOUNDS does not name are rejected, and the stream goes on.
CREATE STREAM S (ts TIMESTAMP, k STRING, v INT) SOURCE BY k
BOUNDS (a TRAILS b BY 20 s, b TRAILS a BY 30 s, ALL TRAILS ALL BY 60 s) TIMEOUT 1 hour;
SELECT k, sum(v) AS total FROM S [RANGE 1 minute] GROUP BY k;
