-- Queries of Nexmark in windows: 5 in the words of Flink and of its authors, 7 of its authors, and 15 to 19 day by day
CREATE STREAM bid (auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, dateTime TIMESTAMP);
CREATE QUERY q5 AS SELECT AuctionBids.auction, AuctionBids.num FROM (
    SELECT auction, count(*) AS num, window_start AS starttime, window_end AS endtime
    FROM TABLE(HOP(TABLE bid, DESCRIPTOR(dateTime), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
    GROUP BY auction, window_start, window_end) AS AuctionBids
JOIN (SELECT max(CountBids.num) AS maxn, CountBids.starttime, CountBids.endtime FROM (
        SELECT count(*) AS num, window_start AS starttime, window_end AS endtime
        FROM TABLE(HOP(TABLE bid, DESCRIPTOR(dateTime), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
        GROUP BY auction, window_start, window_end) AS CountBids
    GROUP BY CountBids.starttime, CountBids.endtime) AS MaxBids
ON AuctionBids.starttime = MaxBids.starttime AND AuctionBids.endtime = MaxBids.endtime AND AuctionBids.num >= MaxBids.maxn;
CREATE QUERY q5_of_the_authors AS SELECT auction, num
    FROM (SELECT auction, count(*) AS num FROM bid [RANGE 10 seconds SLIDE 2 seconds] GROUP BY auction)
    WHERE num >= ALL (SELECT count(*) FROM bid [RANGE 10 seconds SLIDE 2 seconds] GROUP BY auction);
CREATE QUERY q7_of_the_authors AS SELECT B.price, B.auction, B.bidder FROM bid [RANGE 10 seconds] B
    WHERE B.price = (SELECT max(B1.price) FROM bid [RANGE 10 seconds] B1);
CREATE QUERY q15 AS SELECT date_format(window_start, 'yyyy-MM-dd') AS day, count(*) AS total_bids,
    count(*) FILTER (WHERE price < 10000) AS rank1_bids, count(DISTINCT bidder) AS total_bidders,
    count(DISTINCT bidder) FILTER (WHERE price < 10000) AS rank1_bidders, count(DISTINCT auction) AS total_auctions
    FROM bid [RANGE 1 day];
CREATE QUERY q16 AS SELECT channel, max(date_format(dateTime, 'HH:mm')) AS minute, count(*) AS total_bids,
    count(DISTINCT bidder) AS total_bidders FROM bid [RANGE 1 day] GROUP BY channel;
CREATE QUERY q17 AS SELECT auction, date_format(window_start, 'yyyy-MM-dd') AS day, count(*) AS total_bids,
    count(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
    min(price) AS min_price, max(price) AS max_price, avg(price) AS avg_price, sum(price) AS sum_price
    FROM bid [RANGE 1 day] GROUP BY auction;
CREATE QUERY q18 AS SELECT bidder, auction, last(price) AS price, last(channel) AS channel FROM bid [RANGE 1 day] GROUP BY bidder, auction;
CREATE QUERY q19 AS SELECT auction, bidder, price FROM bid
    QUALIFY row_number() OVER (PARTITION BY auction, date_trunc('day', dateTime) ORDER BY price DESC) <= 2;
