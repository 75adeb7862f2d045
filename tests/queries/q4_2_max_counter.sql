-- Prodding thesis, Q4-2
CREATE STREAM S (ts TIMESTAMP, counter INT);
Select Max(counter) from S Window[Range=5 Second, Slide=1 Second];
