-- Times that are computed, and columns that others are made of
CREATE STREAM clicks (ms BIGINT, day STRING, ts AS timestamp_millis(ms), who STRING, v INT, twice INT AS v * 2);
CREATE STREAM texts (at STRING, n INT) TIMESTAMP BY to_timestamp(at);
CREATE STREAM days (at STRING, n INT) TIMESTAMP BY to_timestamp(at, 'dd.MM.yyyy HH:mm');
CREATE QUERY calendar AS SELECT sum(n) AS n FROM days [RANGE 1 day];
CREATE QUERY sums AS SELECT who, sum(twice) AS total FROM clicks [RANGE 1 minute] GROUP BY who;
CREATE QUERY counts AS SELECT count(*) AS n, max(row_time) AS last FROM texts [RANGE 1 minute];
CREATE QUERY whole AS SELECT twice, ts FROM clicks WHERE twice > 4;
