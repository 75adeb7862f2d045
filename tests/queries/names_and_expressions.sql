-- Names in backticks, keywords as names, structs, arrays, CASE, FILTER, texts with quotes
CREATE STREAM `S` (`a time` TIMESTAMP, `order` STRING, s STRUCT<x: INT, y: STRING>, xs ARRAY<INT>, window INT);
SELECT `order` AS `the order`, sum(s.x) AS `x sum`, count(*) FILTER (WHERE s.y = 'it''s') AS quoted,
       max(size(filter(xs, e -> e > window))) AS most, /* not here */ max(CASE WHEN window > 1 THEN 'high' ELSE "low" END) AS level
FROM s AS q [RANGE 1 minute] WHERE q.window IS NOT NULL GROUP BY q.`order` HAVING `x sum` > 0 -- nor here
