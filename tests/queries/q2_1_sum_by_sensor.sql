-- Prodding thesis, Q2-1, figure 2.3
CREATE STREAM S (timestamp TIMESTAMP, sensor_id INT, speed INT, volume INT) SOURCE BY sensor_id;
Select Sum(volume) from S Window [RANGE=60s, SLIDE=20s] Group By sensor_id;
