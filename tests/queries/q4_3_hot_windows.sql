-- Prodding thesis, Q4-3: the hourly count of the 5-minute windows having Max(Temperature) above 80
CREATE STREAM S (ts TIMESTAMP, temperature DOUBLE);
CREATE QUERY hot AS SELECT max(temperature) AS warmest FROM S [RANGE 5 minutes] HAVING max(temperature) > 80;
CREATE QUERY hourly AS SELECT count(*) AS windows FROM hot [RANGE 1 hour];
WITH hot_too AS (SELECT max(temperature) AS warmest FROM S [RANGE 5 minutes] HAVING warmest > 80)
SELECT count(*) AS windows, max(warmest) AS warmest FROM hot_too [RANGE 1 hour];
