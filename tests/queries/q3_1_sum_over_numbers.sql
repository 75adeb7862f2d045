-- Prodding thesis, Q3-1: a sequence in its own numbers; 135 in all, as in figure 3.1
CREATE STREAM S (t BIGINT, sensor_id INT, speed INT, volume INT);
Select Sum(volume) from S Window [RANGE=50, SLIDE=50] Group by sensor_id;
CREATE QUERY total AS Select Sum(volume) as total from S Window [RANGE=50, SLIDE=50];
