-- Prodding thesis, Q3-3: 58 in the end for the window that ends at 150
CREATE STREAM S (timestamp TIMESTAMP, sensor_id INT, speed INT, volume INT) SOURCE BY sensor_id;
Select Max(volume) from S Window [RANGE=30s, SLIDE=10s];
