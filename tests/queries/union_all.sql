-- The rows of several streams: as they are under a window, or with columns of their own
CREATE STREAM north (t BIGINT, car STRING, speed INT);
CREATE STREAM south (t BIGINT, car STRING, speed INT);
CREATE STREAM ferry (at BIGINT, ship STRING, knots DOUBLE) TIMESTAMP BY at;
CREATE QUERY cars AS SELECT * FROM north UNION ALL SELECT * FROM south;
CREATE QUERY per_ten AS SELECT count(*) AS n, max(speed) AS top
    FROM (SELECT * FROM north UNION ALL SELECT * FROM south) [RANGE 10];
CREATE QUERY by_car AS SELECT car, count(*) AS n FROM cars GROUP BY t/10 AS tb, car;
CREATE QUERY moving AS
    SELECT t, car AS name, speed FROM north WHERE speed > 50
    UNION ALL SELECT at, ship, CAST(knots * 2 AS INT) FROM ferry
    UNION ALL SELECT t, 'again', 0 FROM north WHERE car = 'x' ORDER BY t;
