-- Prodding thesis, Q1-1 and Q1-2: over the most recent 5 minutes, every minute; over tumbling 2 minutes
CREATE STREAM S (timestamp TIMESTAMP, sensor_id INT, speed INT, volume INT) SOURCE BY sensor_id;
CREATE QUERY recent AS SELECT avg(speed) AS mean FROM S [RANGE 5 minutes SLIDE 1 minute];
CREATE QUERY tumbling AS SELECT avg(speed) AS mean FROM S [RANGE 2 minutes];
