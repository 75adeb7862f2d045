-- The last rows of each group, whatever comes for the others
CREATE STREAM S (t BIGINT, k STRING, v INT);
CREATE QUERY every_third AS SELECT k, sum(v) AS total, max(v) - min(v) FROM S [RANGE 3 ROWS PARTITION BY k] GROUP BY k;
CREATE QUERY every_row AS SELECT k, avg(v) AS mean, count(*) AS n FROM S [RANGE 2 ROWS SLIDE 1 ROWS PARTITION BY k] WHERE v > 0 GROUP BY k;
CREATE QUERY large AS SELECT k, last(v) AS newest FROM S [RANGE 2 ROWS PARTITION BY k] GROUP BY k HAVING sum(v) > 6;
