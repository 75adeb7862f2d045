-- Rows, one by one: some columns, computed ones, all of them; at once or in the order of time
CREATE STREAM traffic (ts TIMESTAMP, detector STRING, speed INT);
CREATE QUERY fast AS SELECT detector, speed * 2 AS doubled, ts FROM traffic WHERE speed > 50 ORDER BY ts;
CREATE QUERY everything AS SELECT * FROM traffic EMIT IMMEDIATELY;
CREATE QUERY named AS SELECT upper(d) AS d, window_start FROM (SELECT detector AS d, speed FROM traffic) WHERE speed <= 50;
CREATE QUERY per_minute AS SELECT detector, count(*) AS n FROM traffic [RANGE 1 minute] GROUP BY detector;
CREATE QUERY busy AS SELECT detector, n + 1 AS more, window_end AS until FROM per_minute WHERE n > 1;
CREATE QUERY again AS SELECT count(*) AS n FROM fast [RANGE 1 minute];
