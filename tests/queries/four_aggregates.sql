-- Prodding thesis, section 4: AGGREGATE = Average, Max, Sum, Count
CREATE STREAM S (ts TIMESTAMP, value DOUBLE);
Select Average(value) from S Window [Range 30 Second, Slide 10 Second];
Select Max(value) from S Window [Range 30 Second, Slide 10 Second];
Select Sum(value) from S Window [Range 30 Second, Slide 10 Second];
Select Count(value) from S Window [Range 30 Second, Slide 10 Second];
