-- How fast is traffic, on every highway and in each direction? The readings come late and out of order, from 240 detectors
-- whose clocks disagree. At most 1 % of the rows may be late, and a detector that has been silent for a minute is not waited
-- for.

CREATE STREAM readings (
    detector STRING, highway STRING, direction STRING,
    ts TIMESTAMP, arrived TIMESTAMP, cars INT, speed DOUBLE
)
    FROM parquet 'out/demo/input'
    LIMIT 1 FILES PER ROUND
    TIMESTAMP BY ts
    ARRIVAL BY arrived
    SOURCE BY detector
    DRATIO 1%
    IDLE AFTER 1 minute;

-- The mean speed over the last five minutes, every minute. When 60 % of a window's last minute have passed, there is an early
-- result; ESTIMATE also extrapolates the number of cars.
CREATE QUERY speeds AS
    SELECT highway, direction, round(avg(speed), 1) AS mean, sum(cars) AS cars
    FROM readings [RANGE 5 minutes SLIDE 1 minute]
    GROUP BY highway, direction
    PROD AT 60 % ESTIMATE
    INTO 'out/demo/speeds' FORMAT parquet;

-- A query over that query: the slowest road of each window.
CREATE QUERY slowest AS
    SELECT highway, direction, min(mean) AS mean
    FROM speeds
    GROUP BY highway, direction
    ORDER BY mean LIMIT 1
    PROD AT 60 %;
