-- Disorder controller, section 4
CREATE STREAM Traffic (timestamp TIMESTAMP, speed INT);
SELECT MAX(speed) FROM Traffic [RANGE 5 minutes SLIDE 1 minute WATTR timestamp SLACK 10];
