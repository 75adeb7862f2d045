-- Queries inside expressions that have one value in each window
CREATE STREAM bids (ts TIMESTAMP, item STRING, price INT, bidder STRING);
CREATE QUERY above AS SELECT item, max(price) AS most FROM bids [RANGE 10 minutes] GROUP BY item
    HAVING max(price) > (SELECT avg(price) FROM bids [RANGE 10 minutes]);
CREATE QUERY part AS SELECT item, sum(price) / (SELECT sum(price) FROM bids [RANGE 10 minutes]) AS part, window_start
    FROM bids [RANGE 10 minutes] GROUP BY item;
CREATE QUERY highest AS SELECT price, bidder FROM bids [RANGE 10 minutes] b
    WHERE b.price = (SELECT max(c.price) FROM bids [RANGE 10 minutes] c);
CREATE QUERY hot AS SELECT item, n, window_end AS at FROM (SELECT item, count(*) AS n FROM bids [RANGE 20 minutes SLIDE 10 minutes] GROUP BY item)
    WHERE n >= ALL (SELECT count(*) FROM bids [RANGE 20 minutes SLIDE 10 minutes] GROUP BY item);
CREATE QUERY above_its_own AS SELECT item, bidder, max(price) AS most FROM bids [RANGE 10 minutes] b GROUP BY item, bidder
    HAVING most >= (SELECT avg(price) FROM bids [RANGE 10 minutes] c WHERE c.item = b.item) AND count(*) > 0;
CREATE QUERY dear AS SELECT item, (SELECT count(*) FROM bids [RANGE 10 minutes] WHERE price > 8) AS dear,
    (SELECT max(price) FROM bids [RANGE 10 minutes] WHERE price > 8) AS dearest
    FROM bids GROUP BY item, window(ts, '10 minutes');
CREATE QUERY sums AS SELECT item, sum(price) AS total FROM bids [RANGE 10 minutes] GROUP BY item;
CREATE QUERY small AS SELECT s.* FROM sums AS s WHERE s.total BETWEEN (SELECT min(total) FROM sums) AND (SELECT max(total) FROM sums) / 2;
