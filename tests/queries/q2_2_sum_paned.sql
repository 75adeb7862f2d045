-- Prodding thesis, Q2-2, figure 2.5: panes of 75, 75 and 60
CREATE STREAM S (timestamp TIMESTAMP, sensor_id INT, speed INT, volume INT) SOURCE BY sensor_id;
Select Sum(volume) from S Window [Range=60s, Slide=20s];
