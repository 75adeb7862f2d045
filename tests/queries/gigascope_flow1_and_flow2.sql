-- Gigascope paper, section 5: the flows of two interfaces
CREATE STREAM [main0_and_control].DataProtocol (time BIGINT, protocol INT, srcIP STRING, destIP STRING, srcPort INT, destPort INT);
CREATE STREAM main1.DataProtocol (time BIGINT, protocol INT, srcIP STRING, destIP STRING, srcPort INT, destPort INT);
Query flow1:
SELECT tb,protocol,srcIP,destIP,srcPort,destPort,count(*) as cnt
FROM [main0_and_control].DataProtocol
GROUP BY time/10 as tb,protocol,srcIP,destIP, srcPort, destPort;
Query flow2:
SELECT tb,protocol,srcIP,destIP,srcPort,destPort,count(*) as cnt
FROM main1.DataProtocol
GROUP BY time/10 as tb,protocol,srcIP,destIP, srcPort, destPort;
