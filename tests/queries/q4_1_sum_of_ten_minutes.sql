-- Prodding thesis, Q4-1
CREATE STREAM S (timestamp TIMESTAMP, sensor_id INT, speed INT, volume INT) SOURCE BY sensor_id;
Select Sum(volume) from S Window[Range 10min, Slide 2min];
