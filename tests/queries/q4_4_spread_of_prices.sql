-- Prodding thesis, Q4-4: Max minus Min stock price for IBM every 5 minutes; and the symbols whose spread is above 10
CREATE STREAM Stocks (ts TIMESTAMP, symbol STRING, price DECIMAL(10, 2)) SOURCE BY symbol;
Query ibm: SELECT max(price) - min(price) AS spread FROM Stocks [RANGE 5 minutes] WHERE symbol = 'IBM';
Query wide: SELECT symbol, max(price) - min(price) AS spread FROM Stocks [RANGE 5 minutes] GROUP BY symbol HAVING spread > 10;
