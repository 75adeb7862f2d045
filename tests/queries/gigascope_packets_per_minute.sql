-- Gigascope paper, section 2: time in seconds, cut into minutes
CREATE STREAM TCP (time BIGINT, srcIP STRING);
SELECT tb, srcIP, count(*) from TCP GROUP BY time/60 as tb, srcIP;
