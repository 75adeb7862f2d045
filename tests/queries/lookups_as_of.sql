-- Each order with the price that held at its time; prices come as a stream of versions
CREATE STREAM orders (ts BIGINT, product STRING, amount INT) TIMESTAMP BY ts;
CREATE STREAM prices (since BIGINT, product STRING, price INT) TIMESTAMP BY since;
CREATE QUERY priced AS SELECT o.ts, o.product, amount * price AS total
    FROM orders AS o JOIN prices FOR SYSTEM_TIME AS OF o.ts AS p ON o.product = p.product WHERE amount > 0;
CREATE QUERY unpriced AS SELECT o.ts, o.product
    FROM orders AS o LEFT JOIN prices TIMESTAMP AS OF o.ts AS p USING (product) WHERE p.price IS NULL;
CREATE QUERY turnover AS SELECT o.product, sum(amount * price) AS total
    FROM orders AS o JOIN prices FOR SYSTEM_TIME AS OF ts AS p ON o.product = p.product
    GROUP BY o.ts/10 AS tb, o.product;
