-- Queries 7, 8 and 11 of Nexmark, in Flink's words
CREATE STREAM bid (auction BIGINT, bidder BIGINT, price BIGINT, dateTime TIMESTAMP);
CREATE STREAM person (id BIGINT, name STRING, dateTime TIMESTAMP);
CREATE STREAM auction (id BIGINT, seller BIGINT, dateTime TIMESTAMP);
CREATE QUERY q7 AS SELECT B.auction, B.price, B.bidder FROM bid B JOIN (
  SELECT MAX(price) AS maxprice, window_end AS dateTime
  FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(dateTime), INTERVAL '10' SECOND)) GROUP BY window_start, window_end) B1
ON B.price = B1.maxprice WHERE B.dateTime BETWEEN B1.dateTime - INTERVAL '10' SECOND AND B1.dateTime;
CREATE QUERY q8 AS SELECT P.id, P.name, P.starttime FROM (
  SELECT id, name, window_start AS starttime, window_end AS endtime
  FROM TABLE(TUMBLE(TABLE person, DESCRIPTOR(dateTime), INTERVAL '10' SECOND))
  GROUP BY id, name, window_start, window_end) P
JOIN (SELECT seller, window_start AS starttime, window_end AS endtime
  FROM TABLE(TUMBLE(TABLE auction, DESCRIPTOR(dateTime), INTERVAL '10' SECOND))
  GROUP BY seller, window_start, window_end) A
ON P.id = A.seller AND P.starttime = A.starttime AND P.endtime = A.endtime;
CREATE QUERY q11 AS SELECT B.bidder, count(*) AS bid_count, SESSION_START(B.dateTime, INTERVAL '10' SECOND) AS starttime,
  SESSION_END(B.dateTime, INTERVAL '10' SECOND) AS endtime
FROM bid B GROUP BY B.bidder, SESSION(B.dateTime, INTERVAL '10' SECOND);
