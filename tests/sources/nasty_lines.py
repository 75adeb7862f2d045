"""Lines that readers disagree about: for the tests that two engines, and two ways in one engine, do agree.

Values are separated by `|` or a line end, and stand in texts that end with `|` where the last one is empty.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

COLUMNS = (
    "i INT, d DOUBLE, s STRING, b BOOLEAN, t TIMESTAMP, e DECIMAL(8, 2), dt DATE, n TIMESTAMP_NTZ, h SMALLINT, f FLOAT"
)
NAMES = ["i", "d", "s", "b", "t", "e", "dt", "n", "h", "f"]


def parts(text: str) -> list[str]:
    return text.replace("\n", "|").split("|")


TIMES = parts("""2020|2020-01|2020-1-1|2020-01-01 1:2:3|2020-01-01T10:11:12.123456789Z|2020-01-01 10:11:12+01:00
2020-01-01 10:11:12+0100|2020-01-01 10:11:12+01|2020-01-01 10:11:12-1|2020-01-01 10:11:12 Europe/Berlin
2020-02-30|2020-01-01 25:00:00|2020-01-01 23:59:60|2020-01-01T24:00:00|now|20200101|2020-01-01T|2020-01-01 | 2020-01-01
2020-01-01T10|2020-01-01T10:|2020-01-01T10:11|2020-01-01T10:11:12.|2020-01-01T10:11:12z|2020-01-01T10:11:12 UTC
2020-01-01T10:11:12 GMT+1|2020-01-01T10:11:12 PST|0000-01-01|-0001-01-01|9999-12-31 23:59:59.999999|10000-01-01
294247-01-10 04:00:54.775807|294248-01-01|2020-01-01 10:11:12+19:00|2020-01-01 10:11:12+18:00|2020/01/01
2020-01-01 10:11:12.5+01:00:30|20-01-01|2020-13-01|2020-01-01  10:11|2020-01-01Z|2020-01-01T10:11Z|1700000000|GMT+20102
1893-03-01 00:00:00 Europe/Berlin|2020-03-29 02:30:00 Europe/Berlin|2020-10-25 02:30:00 Europe/Berlin|2020-01-01junk
2020-01-01 10:11:12-119|2020-01-01 10:11:12 Nowhere|2020-02-29|2019-02-29|1969-12-31 23:59:59.000001|1582-10-10""")

CSV_VALUES = {
    "i": '| 1|1 |+1|-0|01|1.0|1e2|2147483647|2147483648|x|1_0|0x1|\u0661|"1"|" 1"',
    "d": """| 1.5|1.5 |+1|.5|5.|1e3|1d|0x1p3|NaN|nan|Inf|-Inf|Infinity|inf|1e400|1_0|+|--1|1e|0.1|1e-400
12345678901234567890""",
    "s": """| |""|"a""b"|"a"b|a"b|"abc|""\""|"a,b"|'a'|a\\b|"a\\"b"|NULL|\u00e4\U0001f600|"a" |"a"  b| "a"|"|a""b
x\x00y|#x|\ufeffx|"a""|"a""\"b"|\u2028|\u00a0""",
    "b": 'true|TRUE|False|t|1| true|"true"',
    "t": "|".join(["", *TIMES]),
    "e": """1|1.255|1.245|-1.255|999999.994|999999.995|1234567|1e2|x| 1.5|+1.5|"1,000.5"|.5|5.|NaN|1e-400|-|0.005|-0.005
1e99999999999""",
    "dt": "|".join(["", *TIMES, "18262|1000000|9999999-12-31|12345678-01-01|2020-|2020-01-01Tjunk"]),
    "n": "|".join(TIMES),
    "h": "32767|32768|-32768",
    "f": "0.1|1e39|16777217|1.00000017881393432617187501|NaN",
}

WHOLE_CSV_LINES = parts('|  |\x1f|x|,|1,1,1,1,1,1,1,1,1,1,1|,,,,,,,,,|,,,,,,,,,,|",,,,,,,,,|1,2,"x\ty",,,,,,,')


def csv_lines() -> list[bytes]:
    """Lines with one nasty value each, and lines that are nasty as a whole."""
    lines = list(WHOLE_CSV_LINES)
    for name, values in CSV_VALUES.items():
        for value in parts(values):
            row = {**dict.fromkeys(NAMES, ""), "h" if name != "h" else "i": "7", name: value}
            lines.append(",".join(row[column] for column in NAMES))
    return [line.encode() for line in lines] + [b"1,,\xff\xfe,,,,,,,", b"1,,\xc3,,,,,,,", b"1,,a\xe2\x82b,,,,,,,"]


JSON_VALUES = {
    "i": '1|1.0|"1"|2147483648|1e2|true|null|01|+1|-0|-|.5|[1]|{}|1 2|tru|99999999999999999999',
    "d": '1|"1"|NaN|"NaN"|Infinity|-INF|+INF|INF|"-Infinity"|"INF"|1e400|true|12345678901234567890|1.10|0.1e-5|+NaN|""',
    "s": """1|1.10|1E5|-0|true|{"a" : 1}|[1, 2]|null|""|"\u00e4\U0001f600\\u00e4\\ud83d\\ude00"|"a\\nb"|"a\tb"
"\\x"|"\\ud800"|"a\\u0000b"|"a\\/b"|'x'|"x|"a\x7fb"|NaN|",}"|12345678901234567890123""",
    "b": '"true"|1|false|true|null|TRUE',
    "t": '1577836800|1577836800.5|"1577836800"|""|-1|true',
    "e": """1|1.255|1.245|"1.5"|1234567|"x"|1e2|" 1.5 "|"1,000.5"|-1.255|999999.999|1e-400|0.005|100000.0|123456.789
true""",
    "dt": '18262|"18262"|"x"|"2020-01-01 x"|""',
    "n": '1577836800|""',
    "h": "32767|32768|-0",
    "f": '0.1|1e39|16777217|"NaN"|1.00000017881393432617187501|"Infinity"',
}

WHOLE_JSON_LINES = parts("""{}|[]| [ ] |[{"i": 1}, {"i": 2}]|[{"i": 1}, {"i": "x"}]|[{"i": 1}|[{"i": 1}, 5]|[1]|1|"x"
null|{"i": 1|{"i": 1} x|{"i": 1}{"i": 2}|{"i": 1,}|{'i': 1}|{i: 1}|  {"i": 1}  |{"I": 5}|{"i": 1, "i": 2}
{"i": 1, "i": "x"}|{"i": "x", "i": 1}|{"i": 1, "i": null}|{"i": 1, "more": nope}|{"i": 1, "more": {"a": [1, {"i": 9}]}}
{"\\u0069": 4}|{"i" 1}|{,"i": 1}|{"i": 1,, "h": 2}|{"i": 1 "h": 2}|// x|{"i": 1 /* c */}|{"i": 1}]|x
{"s": "[1,]", "i": 3}|{"s": "i", "i": 3}|\ufeff{"i": 1}|{"i": 1}\x00|\x0b|\x0c{"i": 1}|\u00a0{"i": 1}|{"i": 1\u00a0}
\x00||  """)


def json_lines() -> list[bytes]:
    """Objects with one nasty value each, and lines that are nasty as a whole."""
    lines = list(WHOLE_JSON_LINES)
    for name, values in JSON_VALUES.items():
        lines += [f'{{"{name}": {value}' + (', "h": 7}' if name != "h" else "}") for value in parts(values)]
    lines += [f'{{"{name}": "{value}", "h": 7}}' for name in ("t", "dt", "n") for value in TIMES]
    return [line.encode() for line in lines] + [b'{"s": "\xff"}', b'{"s": "a\xe2\x82b", "i": 1}', b"\xff"]


NESTED_COLUMNS = (
    "a ARRAY<INT>, s STRUCT<x: INT, y: STRING>, m MAP<STRING, DOUBLE>, q ARRAY<STRUCT<t: TIMESTAMP>>, b BINARY"
)
NESTED_LINES = [
    line.encode()
    for line in parts("""{"a": [1, 2]}|{"a": [1, "x"]}|{"a": [1, null]}|{"a": 1}|{"a": {}}|{"a": []}|{"a": ""}
{"a": null}
{"s": {"x": 1, "y": "k"}}|{"s": {"x": 1}}|{"s": {"x": "q", "y": "k"}}|{"s": []}|{"s": [{"x": 1}]}|{"s": "x"}|{"s": {}}
{"s": {"x": 1, "x": 2}}|{"s": {"X": 1}}|{"s": {"y": 1.10}}|{"m": {"k": 1.5}}|{"m": {"k": 1, "l": 2.5}}|{"m": {"k": "z"}}
{"m": {"k": 1, "k": 2}}|{"m": {"k": null}}|{"m": []}|{"m": ""}|{"q": [{"t": "2020"}, {"t": 1}]}|{"q": [{"t": "x"}]}
{"q": [null]}|{"b": "YWI="}|{"b": "YWI"}|{"b": "x!"}|{"b": 1}|{"a": [1.0]}|{"a": [2147483648]}
{"s": {"x": null, "y": null}}""")
]


def plain_values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Values of which Python can say whether they are the same: instants of any year as numbers."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    elif pa.types.is_date(column.type):
        column = column.cast(pa.int32())
    values: list[Any] = column.to_pylist()
    return [sorted(value) if pa.types.is_map(column.type) and value else value for value in values]


def plain_rows(table: pa.Table) -> list[str]:
    """Rows as text, so that NaN equals NaN."""
    return [repr(row) for row in zip(*map(plain_values, table.columns), strict=True)]
