-- The two largest of each window, ties by group
CREATE STREAM S (t BIGINT, k STRING, v INT);
SELECT k, sum(v) AS total FROM S [RANGE 10] GROUP BY k ORDER BY total DESC LIMIT 2;
CREATE QUERY seen AS SELECT DISTINCT k FROM S [RANGE 20] WHERE v > 1;
