-- Sessions, as we write them, and as Spark and Flink do
CREATE STREAM S (ts TIMESTAMP, k STRING, v INT);
CREATE QUERY ours AS SELECT k, count(*) AS n FROM S [SESSION 30 seconds] GROUP BY k;
CREATE QUERY sparks AS SELECT session_window, k, count(*) AS n FROM S GROUP BY session_window(ts, '30 seconds'), k;
CREATE QUERY flinks AS SELECT k, count(*) AS n FROM S GROUP BY SESSION(ts, INTERVAL '30' SECOND), k;
CREATE QUERY own AS SELECT k, max(v) AS most FROM S [SESSION v * INTERVAL '10' SECONDS] GROUP BY k;
CREATE QUERY above AS SELECT count(*) AS sessions, max(n) AS most FROM ours [RANGE 10 minutes];
CREATE QUERY hops AS SELECT count(*) AS n FROM S GROUP BY HOP(ts, INTERVAL '1' MINUTE, INTERVAL '2' MINUTES);
