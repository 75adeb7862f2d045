-- Queries of Nexmark about auctions that end when they say: 9, and 4 and 6 over it
CREATE STREAM auction (id BIGINT, seller BIGINT, category BIGINT, dateTime TIMESTAMP, expires TIMESTAMP) TIMESTAMP BY dateTime;
CREATE STREAM bid (auction BIGINT, bidder BIGINT, price BIGINT, dateTime TIMESTAMP) TIMESTAMP BY dateTime;
CREATE QUERY pairs AS SELECT A.id, A.seller, A.category, A.dateTime AS opened, A.expires, B.bidder, B.price, B.dateTime AS bid_at
    FROM auction A JOIN bid B ON A.id = B.auction AND B.dateTime BETWEEN A.dateTime AND A.expires;
-- The winning bid of an auction, when it is over: there is no better one, and no equal one before it.
CREATE QUERY q9 AS SELECT p.id, p.seller, p.category, p.bidder, p.price, p.bid_at FROM pairs p
    WHERE NOT EXISTS (SELECT 1 FROM bid c WHERE c.auction = p.id AND c.dateTime BETWEEN p.opened AND p.expires
        AND (c.price > p.price OR c.price = p.price AND c.dateTime < p.bid_at));
-- Flink updates averages for ever; here they are those of each day.
CREATE QUERY q4 AS SELECT category, avg(price) AS mean FROM q9 [RANGE 1 day] GROUP BY category;
CREATE QUERY q6 AS SELECT seller, avg(price) OVER (PARTITION BY seller ORDER BY window_end ROWS BETWEEN 10 PRECEDING AND CURRENT ROW) AS mean FROM q9;
