-- Gigascope paper, section 3: the same protocol on three interfaces; the merges are put in by the planner
CREATE STREAM main0.DataProtocol (time BIGINT, protocol INT, srcIP STRING, destIP STRING, srcPort INT, destPort INT);
CREATE STREAM main1.DataProtocol (time BIGINT, protocol INT, srcIP STRING, destIP STRING, srcPort INT, destPort INT);
CREATE STREAM control.DataProtocol (time BIGINT, protocol INT, srcIP STRING, destIP STRING, srcPort INT, destPort INT);
SELECT tb,protocol,srcIP,destIP,srcPort, destPort, count(*)
FROM DataProtocol
GROUP BY time/10 as tb, protocol, srcIP, destIP, srcPort, destPort;
