-- Gigascope paper, section 3: one stream of three interfaces, each with its own progress
CREATE STREAM DataProtocol (time BIGINT, protocol INT, srcIP STRING, destIP STRING, srcPort INT, destPort INT, interface STRING) SOURCE BY interface;
SELECT tb,protocol,srcIP,destIP,srcPort, destPort, count(*)
FROM DataProtocol
GROUP BY time/10 as tb, protocol, srcIP, destIP, srcPort, destPort;
