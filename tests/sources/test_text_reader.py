"""The quick way is sure only of what the fail-safe way would say; lines keep their order and are cut at any byte."""

from __future__ import annotations

import io

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.plan.declared.stream import Input
from eventide.plan.expressions.columns import columns
from eventide.sources.options import text_options
from eventide.sources.text.csv_lines import FailSafeCsv, QuickCsv
from eventide.sources.text.json_lines import FailSafeJson, QuickJson
from eventide.sources.text.lines import LineBlocks, as_block, lines_of
from eventide.sources.text.reader import BlockParser, LineParser, TextParser
from tests.sources.nasty_lines import (
    COLUMNS,
    NESTED_COLUMNS,
    NESTED_LINES,
    csv_lines,
    json_lines,
    plain_rows,
    plain_values,
)

DECLARED = columns(COLUMNS)
WIDTH = len(DECLARED)
SHAPE = (DECLARED, list(range(WIDTH)), WIDTH, ",", '"', "")
QUICK_CSV, CAREFUL_CSV = QuickCsv(*SHAPE), FailSafeCsv(*SHAPE)
QUICK_JSON, CAREFUL_JSON = QuickJson(DECLARED), FailSafeJson(DECLARED)


def agree(quick: BlockParser, fail_safe: LineParser, lines: list[str]) -> int:
    """Wherever the quick way is sure it says what the fail-safe way says; how many times that was."""
    rows, sure = quick.rows(pa.array(lines, pa.string()), "".join(line + "\n" for line in lines).encode())
    found = [fail_safe.rows(line) for line, known in zip(lines, sure.tolist(), strict=True) if known]
    expected = [row for rows in found for row in rows]
    assert all(row is not None for row in expected)
    values = [
        pa.array([row[place] for row in expected if row], rows.schema[place].type) for place in range(len(rows.schema))
    ]
    for name, column, wanted in zip(rows.column_names, rows.columns, values, strict=True):
        assert repr(plain_values(column)) == repr(plain_values(wanted)), name
    return len(expected)


def test_the_two_ways_agree_on_nasty_lines() -> None:
    csv = [line.decode("utf-8", "replace") for line in csv_lines() if line.strip()]
    assert agree(QUICK_CSV, CAREFUL_CSV, csv) > 40
    json = [line.decode("utf-8", "replace") for line in json_lines() if line.strip(b" \t")]
    assert agree(QUICK_JSON, CAREFUL_JSON, json) > 40
    nested = columns(NESTED_COLUMNS)
    assert agree(QuickJson(nested), FailSafeJson(nested), [line.decode() for line in NESTED_LINES]) > 5


PIECES = [
    "1",
    "-",
    ".",
    "e",
    "0",
    "9",
    "12345",
    "true",
    "2020-01-01",
    "T10:11:12",
    "Z",
    "+01:00",
    " ",
    "x",
    "ä",
    "NaN",
    "",
]
VALUES = st.lists(st.sampled_from(PIECES), max_size=4).map("".join)
FIELDS = VALUES | VALUES.map(lambda text: f'"{text}"') | st.sampled_from(['"a""b"', '"a,b"', '"a', 'a"b', "a,b"])


@given(st.lists(st.lists(FIELDS, min_size=WIDTH, max_size=WIDTH).map(",".join), min_size=1, max_size=20))
def test_the_two_ways_agree_on_any_csv(lines: list[str]) -> None:
    agree(QUICK_CSV, CAREFUL_CSV, [line for line in lines if line.strip()] or ["x"])


TOKENS = (
    VALUES | VALUES.map(lambda text: f'"{text}"') | st.sampled_from(["null", "[1]", '{"i": 1}', '"\\u00e4"', '"a\\nb"'])
)
PAIRS = st.tuples(st.sampled_from([column.name for column in DECLARED] + ["other"]), TOKENS)
OBJECTS = st.lists(PAIRS, max_size=4).map(lambda pairs: "{" + ", ".join(f'"{n}": {v}' for n, v in pairs) + "}")


@given(st.lists(OBJECTS, min_size=1, max_size=20))
def test_the_two_ways_agree_on_any_json(lines: list[str]) -> None:
    agree(QUICK_JSON, CAREFUL_JSON, lines)


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_rows_keep_the_order_of_their_lines_however_they_are_cut(kind: str) -> None:
    lines = csv_lines() if kind == "csv" else json_lines()
    parser = TextParser(DECLARED, kind, text_options(Input(kind)))
    pieces = [b"\n".join(lines[at : at + 31]) for at in range(0, len(lines), 31)]
    alone = [row for piece in pieces for row in plain_rows(parser.table(piece))]
    assert plain_rows(parser.table(b"\n".join(lines))) == alone


def test_json_that_is_no_utf_8_is_malformed_and_csv_is_repaired() -> None:
    json = TextParser(columns("s STRING"), "json", {})
    assert json.table(b'\n{"s": "a"}\n{"s": "\xff"}\r\n\n{"s": "b"}').to_pydict() == {
        "s": ["a", None, "b"],
        "_malformed": [None, '{"s": "\ufffd"}', None],
    }
    csv = TextParser(columns("s STRING"), "csv", text_options(Input("csv")))
    assert csv.table(b"a\n\xff\n").to_pydict() == {"s": ["a", "\ufffd"], "_malformed": [None, None]}


@given(
    st.lists(st.sampled_from(["a", "bc", "", " ", "\r", "\n", "\r\n", "é"]), max_size=30),
    st.integers(1, 5),
    st.integers(1, 4),
)
def test_blocks_put_together_are_the_file(pieces: list[str], max_lines: int, at_once: int) -> None:
    text = "".join(pieces).encode()

    class Slow(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            return super().read(at_once)

    for growing in (False, True):
        blocks = LineBlocks(Slow(text), growing)
        found: list[bytes] = []
        while (block := blocks.read(max_lines)) is not None:
            assert blocks.offset == len(b"".join(found)) + len(block)
            assert len(lines_of(block, "text")) <= max_lines
            found.append(block)
        whole = b"".join(found)
        assert whole == text[: len(whole)]
        assert growing or whole == text
        assert not growing or b"\n" not in text[len(whole) :]


@given(st.lists(st.text(st.characters(blacklist_characters="\r\n", blacklist_categories=["Cs"]), min_size=1)))
def test_lines_are_cut_and_joined_again(lines: list[str]) -> None:
    assert lines_of("\n".join(lines).encode(), "text").to_pylist() == (lines or [""])
    if lines:
        assert as_block(pa.array(lines)) == "\n".join(lines).encode()
