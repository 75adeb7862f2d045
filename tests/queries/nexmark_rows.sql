-- Queries of Nexmark that give rows: 0 to 3, 13, 14 and 20 to 22, in Flink's words where these have no end
CREATE STREAM bid (auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, dateTime TIMESTAMP, extra STRING);
CREATE STREAM person (id BIGINT, name STRING, city STRING, state STRING, dateTime TIMESTAMP);
CREATE STREAM auction (id BIGINT, itemName STRING, seller BIGINT, category BIGINT, dateTime TIMESTAMP, expires TIMESTAMP)
    TIMESTAMP BY dateTime;
CREATE TABLE side_input (key BIGINT, value STRING) FROM json 'side_input';
CREATE QUERY q0 AS SELECT auction, bidder, price, dateTime, extra FROM bid;
CREATE QUERY q1 AS SELECT auction, bidder, 0.908 * price AS price, dateTime, extra FROM bid;
CREATE QUERY q2 AS SELECT auction, price FROM bid WHERE MOD(auction, 123) = 0;
-- Flink keeps both sides for ever; here an auction is looked for a day behind its seller.
CREATE QUERY q3 AS SELECT P.name, P.city, P.state, A.id FROM auction AS A INNER JOIN person AS P ON A.seller = P.id
    AND A.dateTime BETWEEN P.dateTime AND P.dateTime + INTERVAL 1 DAY
    WHERE A.category = 10 AND (P.state = 'OR' OR P.state = 'ID' OR P.state = 'CA');
CREATE QUERY q13 AS SELECT B.auction, B.bidder, B.price, B.dateTime, S.value FROM bid AS B JOIN side_input AS S ON MOD(B.auction, 10000) = S.key;
CREATE QUERY q14 AS SELECT auction, bidder, 0.908 * price AS price,
    CASE WHEN HOUR(dateTime) >= 8 AND HOUR(dateTime) <= 18 THEN 'dayTime'
         WHEN HOUR(dateTime) <= 6 OR HOUR(dateTime) >= 20 THEN 'nightTime' ELSE 'otherTime' END AS bidTimeType,
    dateTime, extra, length(extra) - length(replace(extra, 'c', '')) AS c_counts
    FROM bid WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000;
-- A bid is made while its auction is open, so nothing has to be kept for longer.
CREATE QUERY q20 AS SELECT B.auction, B.bidder, B.price, A.itemName, A.seller, A.category FROM bid AS B INNER JOIN auction AS A
    ON B.auction = A.id AND B.dateTime BETWEEN A.dateTime AND A.expires WHERE A.category = 10;
CREATE QUERY q21 AS SELECT auction, bidder, price, channel, CASE
    WHEN lower(channel) = 'apple' THEN '0' WHEN lower(channel) = 'google' THEN '1'
    WHEN lower(channel) = 'facebook' THEN '2' WHEN lower(channel) = 'baidu' THEN '3'
    ELSE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2) END AS channel_id
    FROM bid WHERE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2) <> '' OR lower(channel) IN ('apple', 'google', 'facebook', 'baidu');
CREATE QUERY q22 AS SELECT auction, bidder, price, channel,
    split_part(url, '/', 4) AS dir1, split_part(url, '/', 5) AS dir2, split_part(url, '/', 6) AS dir3 FROM bid;
