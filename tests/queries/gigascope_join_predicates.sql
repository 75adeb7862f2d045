-- Gigascope paper, section 5.5: predicates that relate temporal attributes; tr/2 counts in whole numbers
CREATE STREAM R (tr BIGINT, x STRING) TIMESTAMP BY tr;
CREATE STREAM S (ts BIGINT, y STRING) TIMESTAMP BY ts;
CREATE QUERY same AS SELECT x, y FROM R, S WHERE R.tr=S.ts;
CREATE QUERY halves AS SELECT x, y FROM R, S WHERE R.tr/2=S.ts+1;
CREATE QUERY doubled AS SELECT x, y FROM R, S WHERE R.tr = 2 * S.ts;
