-- Windows as functions in FROM and GROUP BY, as Flink and RisingWave write them, with the edges under other names
CREATE STREAM bid (auction BIGINT, price BIGINT, ts TIMESTAMP);
CREATE QUERY tumbled AS SELECT window_start, window_end, auction, count(*) AS n
FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '10' MINUTES)) GROUP BY auction, window_start, window_end;
CREATE QUERY hopped AS SELECT max(price) AS most, window_end FROM hop(bid, ts, INTERVAL '5 minutes', INTERVAL '10 minutes')
GROUP BY window_end;
CREATE QUERY grown AS SELECT sum(price) AS total, window_start AS begin, window_end - INTERVAL '1' SECOND AS last
FROM TABLE(CUMULATE(TABLE bid, DESCRIPTOR(ts), INTERVAL '5' MINUTES, INTERVAL '10' MINUTES))
GROUP BY window_start, window_end;
CREATE QUERY sessions AS SELECT auction, count(*) AS n
FROM TABLE(SESSION(TABLE bid PARTITION BY auction, DESCRIPTOR(ts), INTERVAL '4' MINUTES)) AS b
GROUP BY auction, window_start, window_end;
CREATE QUERY old_style AS SELECT TUMBLE_START(ts, INTERVAL '10' MINUTES) AS starts, count(*) AS n FROM bid
GROUP BY TUMBLE(ts, INTERVAL '10' MINUTES);
-- The hottest items, Nexmark's query 5
CREATE QUERY num AS SELECT auction, count(*) AS num, window_start AS starttime, window_end AS endtime
FROM TABLE(HOP(TABLE bid, DESCRIPTOR(ts), INTERVAL '5' MINUTES, INTERVAL '10' MINUTES))
GROUP BY auction, window_start, window_end;
CREATE QUERY maxima AS SELECT max(num) AS maxn, starttime, endtime FROM num GROUP BY starttime, endtime;
CREATE QUERY hottest AS SELECT n.auction, n.num FROM num AS n JOIN maxima AS m
ON n.starttime = m.starttime AND n.endtime = m.endtime AND n.num >= m.maxn;
