-- Gigascope paper, section 5: the flows of two sets of interfaces, and the full outer join of them
CREATE STREAM main0.DataProtocol (time BIGINT, protocol INT, srcIP STRING, destIP STRING, srcPort INT, destPort INT);
CREATE STREAM control.DataProtocol (time BIGINT, protocol INT, srcIP STRING, destIP STRING, srcPort INT, destPort INT);
CREATE STREAM main1.DataProtocol (time BIGINT, protocol INT, srcIP STRING, destIP STRING, srcPort INT, destPort INT);
CREATE INTERFACE SET main0_and_control AS main0, control;
Query flow1:
SELECT tb,protocol,srcIP,destIP,srcPort,destPort,count(*) as cnt
FROM [main0_and_control].DataProtocol
GROUP BY time/10 as tb,protocol,srcIP,destIP, srcPort, destPort;
Query flow2:
SELECT tb,protocol,srcIP,destIP,srcPort,destPort,count(*) as cnt
FROM main1.DataProtocol
GROUP BY time/10 as tb,protocol,srcIP,destIP, srcPort, destPort;
Query full_flow:
SELECT flow1.tb,flow1.protocol,flow1.srcIP,flow1.destIP,flow1.srcPort,flow1.destPort,flow1.cnt, flow2.cnt
OUTER_JOIN FROM flow1, flow2
WHERE flow1.srcIP=flow2.srcIP and flow1.destIP=flow2.destIP and flow1.srcPort=flow2.srcPort
  and flow1.destPort=flow2.destPort and flow1.protocol=flow2.protocol and flow1.tb = flow2.tb;
