"""Whatever the text: a script or an error that shows its place, and nothing else.

20,000 statements, of every clause that there is, are mutated word by word and letter by letter, with seeds, so that a
failure can be told again: the same ones every time, and new ones with `--hypothesis-profile=search`.
"""

from __future__ import annotations

import random
import re
import string
from pathlib import Path

import pytest
from hypothesis import settings

from eventide.errors import LanguageError
from eventide.language.script import Script, read_script
from tests.choice import chosen

STATEMENTS_MUTATED = 20_000
PARTS = 20
"""In so many tests, for the workers of the suite to share."""
ALWAYS = 2
"""The parts that are run without `--all`."""

CASES = Path(__file__).parent.parent / "queries"

DECLARED = """CREATE STREAM S (ts TIMESTAMP, sensor_id INT, speed INT, volume INT, k STRING, s STRUCT<a: INT>,
xs ARRAY<INT>) FROM json 'in' LIMIT 10 FILES PER ROUND SOURCE BY k DRATIO 1% TIMEOUT 60s;
CREATE STREAM N (t BIGINT, v INT, at TIMESTAMP) TIMESTAMP BY t ARRIVAL BY at FUTURE 5 REJECT
OWN PROGRESS IDLE AFTER 1 min;
"""
OTHERS = """CREATE STREAM B (ts TIMESTAMP, k STRING) USING kafka OPTIONS (subscribe 'x', n 3) SOURCE BY k
BOUNDS (SOURCE a LATENCY 2 s, b TRAILS a BY 5 s AFTER 3 ROWS EXCEEDED 1%, ALL TRAILS ALL BY 10 s);
CREATE STREAM E (ts TIMESTAMP) FROM STDIN FORMAT csv ESTIMATED BOUNDS (WINDOW 100, WEIGHT 0.5, TOLERATED 1%, PAIRWISE);
CREATE FUNCTION foundIn FROM 'f.py' RETURNS BOOLEAN EXPENSIVE;
CREATE STREAM P (ts TIMESTAMP, k STRING, v INT, done BOOLEAN) FROM json 'p' SOURCE BY k EXPECTING (a, 'b c', 3)
GIVE UP AFTER 1 min PUNCTUATED BY done ON DEMAND 2 s;
CREATE STREAM main0.D (time BIGINT, ip STRING) FROM json 'm0' CLOCK SKEW 5 s FUTURE 1 h;
CREATE INTERFACE SET both AS main0, main1;
"""
STATEMENTS = [
    *(DECLARED + OTHERS).strip().split(";\n"),
    "SELECT k, transform(xs, x -> x + 1)[0] AS y, avg(speed) FROM S [RANGE 5 minutes SLIDE 1 minute] GROUP BY k, y",
    "SELECT s.a, count(*) FILTER (WHERE speed > 1) AS n FROM S [RANGE 100 ROWS] GROUP BY s.a ORDER BY n DESC LIMIT 3",
    "SELECT CASE WHEN speed > 3 THEN 'x' ELSE \"it''s\" END c, sum(volume) OVER (PARTITION BY k) FROM S [RANGE 5]",
    "WITH a AS (SELECT *, v * 2 AS w FROM N) SELECT sum(w) AS w FROM a WINDOW [RANGE=5, SLIDE=2] WHERE w NOT IN (1, 2)",
    "CREATE QUERY q AS SELECT DISTINCT k FROM S TABLESAMPLE (10 PERCENT) [RANGE 5 min RETAIN 1 h] INTO 'd'",
    "SELECT max(m) FROM (SELECT sensor_id, sum(volume) m FROM S [RANGE 60s OFFSET 5s WATTR ts] GROUP BY sensor_id)",
    "EXPLAIN SELECT count(*) FROM N [RANGE 5]; SHOW STREAMS; SET a.b = 5 minutes; DROP STREAM S",
    "SELECT a FROM S UNION ALL SELECT b FROM S; SELECT * FROM S JOIN N ON S.x = N.x",
    "SELECT x.k, y.speed AS d FROM S AS x FULL JOIN S y ON abs(x.ts - y.ts) <= INTERVAL 5 SECONDS AND x.k = y.k",
    "SELECT M.v, count(*) FROM N JOIN N AS M ON N.t/2 = M.t + 1 AND N.v < M.v WINDOW [RANGE 9] GROUP BY M.v",
    "SELECT S.k, B.k OUTER_JOIN FROM S, S [RANGE 5 s] AS B WHERE S.ts BETWEEN B.ts - INTERVAL 1 MINUTE AND B.ts",
    "SELECT v FROM N LEFT JOIN (SELECT v + 1 AS u, t FROM N) AS M FOR SYSTEM_TIME AS OF t USING (t) WHERE u IS NULL",
    "SELECT k, ts FROM S WHERE speed > 1 UNION ALL (SELECT k, ts FROM S) ORDER BY ts EMIT IMMEDIATELY INTO 'd'",
    "SELECT date_trunc('hour', ts) AS h, count(*) FROM S GROUP BY h HAVING count(*) BETWEEN 1 AND 3 -- a comment",
    "SELECT k, sum(speed) AS n FROM S [RANGE 9 s SLIDE 3 s] GROUP BY k PROD AT 75 %, 90 % PROD EVERY 1 s ESTIMATE",
    "CREATE QUERY q AS SELECT max(v) FROM N [RANGE 9] PROD WITHIN 2 % ERROR PROD BETWEEN 50 % AND 120 % PROD SPEED 5 %",
    "CREATE QUERY q AS SELECT max(v) FROM N [RANGE 9] PROD WITHIN 2 % ERROR PROD CONFIDENCE 99 %",
    "CREATE QUERY q AS SELECT k, max(v) FROM N [RANGE 9] GROUP BY k PROD AT 75 % PROD WHERE k IN (3, 5)",
    "CREATE STREAM p (t BIGINT, since BIGINT, a INT, b INT, k INT, d BOOLEAN) TIMESTAMP BY t SOURCE BY k PUNCTUATED BY "
    "d FOR t BETWEEN since AND t AND k BETWEEN a AND b",
    "SELECT k, avg(v) AS m FROM P [RANGE 1 min] GROUP BY k HAVING m > 3 CLOSE BY SOURCE INTO CONSOLE OPTIONS (rows 5)",
    "SELECT word, rank() OVER (PARTITION BY k ORDER BY speed DESC ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM S",
    "SET flush.rows = 100; SET spark.sql.shuffle.partitions = 4; SHOW QUERIES; DROP QUERY q; EXPLAIN q",
    "SELECT count(*) FROM (SELECT k, ts FROM S WHERE speed > 8 UNION ALL SELECT k, ts FROM S) GROUP BY ts/60 AS minute",
    "Query f: SELECT S.k, N.v OUTER_JOIN FROM S, N WHERE S.k = N.v AND S.volume = N.t; SELECT * FROM f [RANGE 5]",
    *(path.read_text() for path in sorted(CASES.glob("*.sql"))),
]
ODD_WORDS = [
    "'", '"', "`", "/*", "*/", "--", ";", "(", "[", "\\", "1e999", "99999999999999999999", "-1", "0", "é",
    "\x00", "\t", "::",
    "INTERVAL", "LATERAL VIEW", "PIVOT", "QUALIFY", "VALUES", "INSERT INTO", "ROLLUP", "GROUPING SETS", "->", "=>",
    "CAST(", "STRUCT<", "ARRAY<", "@", "$", "?", ":x", "{", "}", "|>", "CREATE OR REPLACE", "NOT", "IS", "NULL",
    "TRY_CAST", "INTERVAL '1' YEAR", "DATE '2020-01-01'", "X'1F'", "<=>", "!", "~", "&", "|", "^", "%", "FOR", "MATCH",
]  # fmt: skip
WORDS = [*sorted({word for text in STATEMENTS for word in re.findall(r"\w+|[^\w\s]", text)}), *ODD_WORDS]


def mutated(text: str, chance: random.Random) -> str:
    """The text with a few words changed, lost, doubled or exchanged, sometimes a letter."""
    words = re.findall(r"\s+|\w+|[^\w\s]", text)
    for _ in range(chance.randint(1, 4)):
        if not words:
            break
        at = chance.randrange(len(words))
        match chance.randrange(7):
            case 0:
                words[at] = chance.choice(WORDS)
            case 1:
                del words[at]
            case 2:
                words.insert(at, f" {chance.choice(WORDS)} ")
            case 3:
                other = chance.randrange(len(words))
                words[at], words[other] = words[other], words[at]
            case 4:
                del words[at : at + chance.randint(1, 12)]
            case 5:
                words.insert(at, "".join(words[at : at + chance.randint(1, 8)]))
            case _:
                letter = chance.randrange(len(words[at]) + 1)
                words[at] = words[at][:letter] + chance.choice(string.printable) + words[at][letter:]
    return "".join(words)


def check(text: str) -> bool:
    """Read it; true when it is a script."""
    refused: LanguageError | None = None
    try:
        found = read_script(text, "fuzz.sql")
    except LanguageError as error:
        refused = error
    except BaseException as error:
        raise AssertionError(f"{type(error).__name__} for this text:\n{text}") from error
    if refused is None:
        assert isinstance(found, Script)
        return True
    lines = text.split("\n")
    assert 1 <= refused.line <= len(lines), (text, refused)
    assert 1 <= refused.column <= len(refused.text) + 1, (text, refused)
    assert lines[refused.line - 1].rstrip("\r") == refused.text
    assert str(refused).startswith(f"fuzz.sql:{refused.line}:{refused.column}: ")
    return False


@pytest.mark.parametrize("part", chosen(range(PARTS), lambda part: part < ALWAYS))
def test_a_mutated_statement_is_a_script_or_an_error_with_a_place(part: int) -> None:
    seed = part if settings().derandomize else random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    good = bad = 0
    while good + bad < STATEMENTS_MUTATED // PARTS:
        text = mutated(chance.choice(STATEMENTS), chance)
        if check(DECLARED + text if chance.random() < 0.4 else text):
            good += 1
        else:
            bad += 1
    assert good
    assert bad


def test_noise_is_an_error_with_a_place() -> None:
    chance = random.Random(11)
    for _ in range(300):
        check("".join(chance.choice(string.printable) for _ in range(chance.randint(0, 60))))
        check(" ".join(chance.choice(WORDS) for _ in range(chance.randint(0, 25))))


@pytest.mark.parametrize("deep", ["(" * 5000, "SELECT " + "(" * 3000 + "1" + ")" * 3000, "SELECT " + "-" * 3000 + "1",
                                  "SELECT " + "NOT " * 3000 + "a FROM S [RANGE 5]", "SELECT " + "1 + " * 20000 + "1",
                                  "SELECT " + "CASE WHEN a THEN " * 1500, "SELECT a" + "[0" * 3000,
                                  "CREATE STREAM s (a " + "ARRAY<" * 2000 + "INT" + ">" * 2000 + ")",
                                  "SELECT count(*) FROM " + "(SELECT * FROM " * 400 + "S" + ")" * 400])  # fmt: skip
def test_what_is_nested_too_deeply_is_an_error_with_a_place(deep: str) -> None:
    assert not check(DECLARED + deep)
