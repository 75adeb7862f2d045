-- Each row says itself until when its partners come: offers that expire, stretches that overlap
CREATE STREAM offers (ts TIMESTAMP, item STRING, price INT, expires TIMESTAMP) TIMESTAMP BY ts;
CREATE STREAM bids (ts TIMESTAMP, item STRING, bid INT);
CREATE STREAM jobs (ts TIMESTAMP, machine STRING, job STRING, till TIMESTAMP) TIMESTAMP BY ts;
CREATE QUERY sold AS SELECT o.item, price, bid FROM offers o JOIN bids b ON o.item = b.item AND b.ts BETWEEN o.ts AND o.expires;
CREATE QUERY late_bids AS
    SELECT o.item, bid FROM offers o JOIN bids b
    ON o.item = b.item AND b.ts BETWEEN o.ts AND o.expires + INTERVAL 1 HOUR WHERE b.ts > o.expires;
CREATE QUERY unsold AS SELECT item, price FROM offers o
    WHERE NOT EXISTS (SELECT 1 FROM bids b WHERE b.item = o.item AND b.ts >= o.ts AND b.ts < o.expires);
CREATE QUERY bids_alone AS SELECT b.item, bid, price FROM offers o RIGHT JOIN bids b
    ON b.item = o.item AND o.ts <= b.ts AND o.expires >= b.ts AND b.ts <= o.ts + INTERVAL 1 DAY;
CREATE QUERY together AS SELECT x.job AS one, y.job AS other FROM jobs x JOIN jobs y
    ON x.machine = y.machine AND x.ts <= y.till AND y.ts <= x.till AND x.job < y.job;
