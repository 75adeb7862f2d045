-- Prodding thesis, Q3-4: the sum of each sensor, and the largest of the sums, in the same windows
CREATE STREAM S (t BIGINT, sensor_id INT, speed INT, volume INT);
CREATE QUERY sums AS SELECT sensor_id, sum(volume) AS total FROM S [RANGE 50] GROUP BY sensor_id;
CREATE QUERY most AS SELECT max(total) AS most, count(*) AS sensors FROM sums;
SELECT max(total) AS again FROM (SELECT sum(volume) AS total FROM S [RANGE 50] GROUP BY sensor_id);
