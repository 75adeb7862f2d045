-- Prodding thesis, chapter 4
CREATE STREAM S (timestamp TIMESTAMP, sensor_id INT, speed INT, volume INT) SOURCE BY sensor_id;
Select Max(speed) from S Window[Range=30 Second, Slide=10 Second];
