-- Disorder controller, section 4: Q1 and Q2 over one stream, each with a controller of its own
CREATE STREAM Traffic (timestamp TIMESTAMP, speed INT);
CREATE QUERY q1 AS SELECT MAX(speed) FROM Traffic [RANGE 5 minutes SLIDE 1 minute WATTR timestamp SLACK 10];
CREATE QUERY q2 AS SELECT MAX(speed) FROM Traffic [RANGE 5 minutes SLIDE 1 minute WATTR timestamp DRATIO 5% SLACK 20];
