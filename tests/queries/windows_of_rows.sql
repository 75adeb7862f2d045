-- A window over a count of rows, in the order of time
CREATE STREAM S (t BIGINT, v INT);
SELECT sum(v) AS total FROM S [RANGE 2 ROWS SLIDE 1 ROWS];
SELECT sum(v) AS total FROM S [RANGE 2 SLIDE 2 WATTR ROWS];
