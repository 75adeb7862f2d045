-- A share of all rows is all of them; a query over the results of another over one of rows
CREATE STREAM S (t BIGINT, k STRING, v INT);
CREATE QUERY sums AS SELECT k, sum(v) AS total FROM S TABLESAMPLE (100 PERCENT) [RANGE 10 SLIDE 5] GROUP BY k;
CREATE QUERY spread AS SELECT max(total) - min(total) AS spread FROM sums WHERE k <> 'c';
