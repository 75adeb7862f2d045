"""Scripts that are made up: every clause and statement of the language, in right places and wrong ones, from seeds.

Law: the same seed gives the same script. Some are what somebody could have meant, most have something wrong: a part of
another clause, a word too many, names that are hard to read, numbers that are too long, nesting without end.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from eventide.language.grammar.clause_words import (
    BOUNDS_CLAUSES,
    FUNCTION_CLAUSES,
    INTO_CLAUSES,
    PROD_CLAUSES,
    QUEUE_CLAUSES,
    STATE_CLAUSES,
    STREAM_CLAUSES,
    WINDOW_CLAUSES,
    Parts,
)
from tests.commands.query_mill import COLUMNS, STREAM, TYPES, QueryMill

AMOUNTS = [
    "1", "10 s", "5 minutes", "1 day", "0", "0 s", "-1 s", "1.5 s", "100 ms", "50 %", "1 %", "100 %", "101 %", "0.1 %",
    "3 ROWS", "1 us", "9999999999 days", "9" * 30 + " s", "1e3 s", "1e400 s", "INTERVAL 1 DAY", "1 month", "1 s s", "s",
    "'1 s'", "NULL", "1 FILES", "10 ROWS", "1 / 2 s", "10s", "1m", ".5 s", "1. s", "0x10 s", "1_000 s",
]  # fmt: skip
NAMES = [
    "S",
    "S",
    "T",
    "q0",
    "q1",
    "k",
    "v",
    "ts",
    "d",
    "S.k",
    "q0.x0",
    "[main0].S",
    "[main0].",
    "`odd name`",
    "`a``b`",
    "``",
    "`S`",
    "select",
    "window",
    "range",
    "ünïcödé",
    "数",
    "_",
    "__t",
    "_malformed",
    "window_start",
    "x" * 300,
    "1a",
    "a-b",
    "'text'",
    '"quoted"',
    "s.a",
    "m['a']",
    "`__k0`",
    "rows",
    "kind",
    "timestamp",
    "*",
    "",
    "a.b.c.d",
    "$x",
    "@x",
    ":x",
    "?",
    "null",
]
TEXTS = ["'in'", "'json'", "''", "'a''b'", r"'\\'", "'%'", "'" + "x" * 2000 + "'", "'\n'", "'☃'", "'*.csv'", '"in"']
OPEN_ENDS = [
    "'",
    '"',
    "`",
    "/*",
    "(",
    "[",
    "--",
    ")",
    "]",
    ";",
    "*/",
    "\\",
    "\x00",
    "\ufeff",
    "\t",
    "\r",
    "\u2028",
    "{",
    "}",
]
KEYS = [
    "timestamps", "heartbeats", "checkpoint", "every", "driver.memory", "engine", "tick", "flush.rows", "output",
    "queue.seconds", "odd", "spark.sql.shuffle.partitions", "state.limit", "log",
]  # fmt: skip
WORDS = re.compile(r"'[^']*'|`[^`]*`|\w+|\s+|.", re.S)


class ScriptMill(QueryMill):
    """Makes up whole scripts."""

    def script(self) -> str:
        """A script of one to eight statements."""
        pick = self._chance.random()
        if pick < 0.3:
            return super().script()
        if pick < 0.45:
            return self._damaged(super().script())
        if pick < 0.5:
            return STREAM + self._nested()
        if pick < 0.53:
            return self._wide()
        statements = [self._stream("S") if self._maybe(0.3) else STREAM.strip().rstrip(";")]
        statements += [self._statement(number) for number in range(self._chance.randint(1, 6))]
        text = self._one([";\n", ";\n", ";", " ;; ", "\n"]).join(statements)
        return self._damaged(text) if self._maybe(0.2) else text

    def _statement(self, number: int) -> str:
        pick = self._chance.random()
        if pick < 0.15:
            return self._stream(self._one(["T", "T", "U", "S", *NAMES]))
        if pick < 0.22:
            clauses = self._clauses(FUNCTION_CLAUSES, 2)
            return f"CREATE FUNCTION {self._one(['f', 'g', *NAMES])} {clauses}"
        if pick < 0.27:
            return f"SET {self._one(KEYS)} = {self._one([*TEXTS, *AMOUNTS, 'true'])}"
        if pick < 0.35:
            return self._one(["DROP QUERY ", "DROP STREAM ", "EXPLAIN ", "SHOW "]) + self._one(
                ["STREAMS", "QUERIES", *NAMES]
            )
        if pick < 0.36:
            shown = self._one(["lag", "late_ratio", "total", "rows % 5", *NAMES])
            compared = f"{shown} {self._one(['>', '<=', '=', 'IS', ''])} {self._one([*AMOUNTS, *NAMES])}"
            lasting = self._one(["", " FOR 1 minute", f" FOR {self._one(AMOUNTS)}"])
            return f"CREATE ALERT {self._name()} ON {self._one(['S', 'q0', *NAMES])} WHEN {compared}{lasting}"
        if pick < 0.38:
            return f"CREATE INTERFACE SET {self._name()} AS {self._name()}, {self._name()}"
        if pick < 0.41:
            names = [self._one(["S", "T", "S.k", "T.'x'", "ALL", *NAMES]) for _ in range(4)]
            bounds = ", ".join(f"{a} TRAILS {b} BY {self._one(AMOUNTS)}" for a, b in (names[:2], names[2:]))
            return f"CREATE BOUNDS ({bounds}) {self._clauses(BOUNDS_CLAUSES, 1)}"
        head = self._one(
            [f"CREATE QUERY q{number} AS ", f"CREATE QUERY q{number} AS ", f"Query q{number}: ", "", "EXPLAIN "]
        )
        return head + self._select(2) + self._behind()

    def _stream(self, name: str) -> str:
        columns = [f"{column} {kind}" for column, kind in COLUMNS.items() if self._maybe(0.8)]
        if self._maybe(0.2):
            columns.append(f"{self._name()} {self._one(TYPES)}")
        usual = self._one(["FROM json 'in' TIMESTAMP BY ts SOURCE BY k ", "FROM json 'in' TIMESTAMP BY ts ", ""])
        return f"CREATE STREAM {name} ({', '.join(columns)})\n{usual}{self._clauses(STREAM_CLAUSES, 2)}"

    def _select(self, depth: int) -> str:
        pick = self._chance.random()
        if depth > 0 and pick < 0.12:
            return f"WITH w AS ({self._select(depth - 1)}) SELECT * FROM w{self._window()}"
        if depth > 0 and pick < 0.24:
            union = self._one(["UNION ALL", "UNION ALL", "UNION", "EXCEPT", "INTERSECT"])
            return f"{self._select(depth - 1)} {union} {self._select(depth - 1)}"
        values = ", ".join(
            f"{self._value(2, True) if self._maybe(0.3) else self._aggregate(2)}{self._alias(place)}"
            for place in range(self._one([1, 1, 2, 4]))
        )
        key = f"{self._value(1)} AS g, " if self._maybe(0.3) else ""
        group = self._one(["GROUP BY g", "GROUP BY 1", "GROUP BY ALL", "GROUP BY CUBE (g)", "GROUP BY "]) if key else ""
        star = self._one(["", "", "DISTINCT ", "ALL ", "*, ", "S.*, "])
        tail = self._one(
            [
                *[""] * 8,
                "ORDER BY x0",
                "LIMIT 3",
                "LIMIT x",
                "ORDER BY 1 DESC NULLS LAST",
                "QUALIFY x0 > 1",
                "TABLESAMPLE (10 PERCENT)",
            ]
        )
        return f"SELECT {star}{key}{values} FROM {self._from(depth)}{self._where()} {group} {tail}"

    def _alias(self, place: int) -> str:
        return self._one([f" AS x{place}", f" AS x{place}", "", f" AS {self._name()}", f" {self._name()}"])

    def _from(self, depth: int) -> str:
        below = f"({self._select(depth - 1)}) AS b" if depth > 0 else "S"
        read = self._one(["S", "S", "S", "S a", "T", "q0", "q1", "S, T", "STDIN", below, self._name()])
        if self._maybe(0.25):
            kind = self._one(
                ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN", "ASOF JOIN", "LATERAL VIEW", ","]
            )
            other = self._one(["S b", "T b", "q0", below, "S FOR SYSTEM_TIME AS OF a.ts b"])
            on = self._one(
                ["a.ts = b.ts", "a.ts BETWEEN b.ts - INTERVAL 5 SECONDS AND b.ts", "a.k = b.k", self._value(2)]
            )
            read += f" {kind} {other} {self._one(['ON ' + on, 'ON ' + on, 'USING (k)', ''])}"
        return read + self._window()

    def _window(self) -> str:
        if self._maybe(0.3):
            return ""
        return f" [RANGE {self._one(['10 s', '10 s', '10 ROWS', *AMOUNTS])} {self._clauses(WINDOW_CLAUSES, 2)}]"

    def _behind(self) -> str:
        tables = [{}, {}, INTO_CLAUSES, PROD_CLAUSES, QUEUE_CLAUSES, {**STATE_CLAUSES, **INTO_CLAUSES, **PROD_CLAUSES}]
        return " " + self._clauses(self._one(tables), 3)

    def _clauses(self, table: Mapping[str, Parts], most: int) -> str:
        if not table:
            return ""
        chosen = [self._one(list(table)) for _ in range(self._chance.randint(0, most))]
        return " ".join(f"{words} {' '.join(map(self._part, table[words]))}" for words in chosen)

    def _part(self, part: str) -> str:
        if self._maybe(0.04):
            return self._one([*AMOUNTS, *NAMES, *TEXTS, self._value(1)])
        if part in ("amount", "amounts", "comparisons"):
            return ", ".join(self._one(AMOUNTS) for _ in range(1 if part == "amount" else self._chance.randint(1, 3)))
        if part in ("name", "names", "stream"):
            return ", ".join(self._name() for _ in range(1 if part != "names" else self._chance.randint(1, 3)))
        if part in ("text", "output"):
            return self._one([*TEXTS, "json 'out'", "CONSOLE", "csv 'o'", "kafka"])
        if part == "input":
            return self._one(["json 'in'", "csv 'in'", "STDIN", "kafka 'topic'", "rate", "'in'", "jsn 'in'"])
        if part in ("pairs", "bounds", "sources", "pairs?"):
            pairs = [f"{self._one([*TEXTS, *NAMES])} {self._one(['', '=', ':'])} {self._one([*TEXTS, *AMOUNTS])}"]
            return f"({', '.join(pairs * self._chance.randint(0, 3))})"
        if part == "type":
            return self._one(TYPES)
        if part == "quota":
            return self._one(["10 FILES", "1000 ROWS", "5 OFFSETS", *AMOUNTS])
        return part.rstrip("?") if not part.endswith("?") or self._maybe(0.5) else ""

    def _name(self) -> str:
        return self._one(["k", "v", "ts", "S", *NAMES])

    def _nested(self) -> str:
        """Something within itself, again and again."""
        depth = self._one([20, 60, 150, 190, 210, 500, 3000])
        before, middle, after = self._one(
            [
                ("(", "v", ")"), ("abs(", "v", ")"), ("- ", "v", ""), ("NOT ", "o", ""),
                ("CASE WHEN o THEN ", "v", " END"),
                ("v + ", "v", ""), ("v || ", "k", ""), ("array(", "v", ")"), ("CAST(", "v", " AS INT)"),
                ("", "v", "::INT"),
                ("coalesce(v, ", "v", ")"), ("if(o, v, ", "v", ")"), ("o AND ", "o", ""), ("", "xs", "[0]"),
                ("", "s", ".a"),
                ("struct(", "v", ")"), ("x -> ", "x", ""), ("v IN (", "v", ")"), ("~", "v", ""), ("(SELECT ", "1", ")"),
            ]
        )  # fmt: skip
        value = before * depth + middle + after * depth
        outer = self._one(["sum({})", "count({})", "{}"])
        if self._maybe(0.3):
            select = "SELECT * FROM (" * depth + "SELECT ts, v FROM S" + ")" * depth
            return select
        return f"SELECT {outer.format(value)} AS x0 FROM S [RANGE 10 s]"

    def _wide(self) -> str:
        """Many columns, many values."""
        count = self._one([100, 300])
        columns = ", ".join(f"c{number} {self._one(['INT', 'STRING', 'DOUBLE'])}" for number in range(count))
        stream = f"CREATE STREAM S (ts TIMESTAMP, k STRING, {columns}) FROM json 'in' TIMESTAMP BY ts DELAY 1 s;\n"
        chosen = self._chance.sample(range(count), self._one([1, 20, 50]))
        values = ", ".join(f"{self._one(['max', 'min', 'count'])}(c{number}) AS x{number}" for number in chosen)
        return f"{stream}SELECT {values} FROM S [RANGE 10 s] {self._one(['', 'GROUP BY k', 'WHERE c1 > 1'])}"

    def _damaged(self, text: str) -> str:
        """A few words are gone, doubled, exchanged, or others."""
        words = WORDS.findall(text)
        for _ in range(self._one([1, 1, 2, 4])):
            at, other = self._chance.randrange(len(words)), self._chance.randrange(len(words))
            change = self._chance.randrange(5)
            if change == 0:
                words[at] = ""
            elif change == 1:
                words[at] *= 2
            elif change == 2:
                words[at], words[other] = words[other], words[at]
            elif change == 3:
                words[at] = self._one([*OPEN_ENDS, *NAMES, *AMOUNTS, *TEXTS])
            else:
                words[at] += self._one(OPEN_ENDS)
        return "".join(words)


def script_of(seed: int) -> str:
    """The script of a seed."""
    return ScriptMill(seed).script()
