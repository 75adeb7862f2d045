-- Stretches of time are rounded down, before 0 as after it: none is split over two windows, none is twice as long.
CREATE STREAM s (time BIGINT, v INT) DELAY 1000;
CREATE QUERY divided AS SELECT tb, sum(v) AS total FROM s GROUP BY time div 60 AS tb;
CREATE QUERY cast_off AS SELECT tb, sum(v) AS total FROM s GROUP BY cast(time / 60 AS INT) AS tb;
CREATE QUERY begins AS SELECT time / 60 * 60 AS begin, sum(v) AS total FROM s GROUP BY begin;
CREATE QUERY twice AS SELECT sum(v) AS total FROM s GROUP BY (time / 60) / 2 AS tb;
