"""Read rows from lines: the quick way for most blocks, the fail-safe way for the rest.

*Rows.* They come from a file, a file that grows, or standard input. `read` gives the rows of the next lines in their
order; all rows of one line come together. `offset` is the number of bytes read, those of the header included. The first
line of CSV that is not blank names its columns, in any order; columns that were not declared are passed over. Lines of
plain text are rows as they are, blank ones too.

>>> import io
>>> from eventide.plan.expressions.columns import columns
>>> rows = TextRows(LineFormat("stream 's'", columns("t BIGINT"), "csv"), "x.csv", io.BytesIO(b"s,t\\na,1\\nb,2\\n"))
>>> rows.read(1).to_pydict(), rows.offset, rows.read(9).to_pydict(), rows.read(9)
({'t': [1], '_malformed': [None]}, 8, {'t': [2], '_malformed': [None]}, None)

*Two ways.* Blocks of CSV or JSON lines become tables, most of them the quick way. Rows come in the order of their
lines; each is either all values as Spark would read them, or all NULL with the text of its line in `_malformed`. The
quick way (DuckDB) says of which rows it is sure; only the others are looked at one by one. So are lines that are few:
to begin the quick way takes 13 ms, in which the careful one reads hundreds.

>>> from eventide.plan.expressions.columns import columns
>>> parser = TextParser(columns("n INT, s STRING"), "json", {})
>>> parser.table(b'{"n": 1, "s": "a"}\\n{"n": "?"}\\n').to_pydict()
{'n': [1, None], 's': ['a', None], '_malformed': [None, '{"n": "?"}']}

*Options.* Options of CSV and JSON that the local engine does not keep are refused rather than ignored.

>>> from eventide.plan.declared.stream import Input
>>> local_options("stream 's'", Input("csv", "in", options=(("sep", ";"),)))["sep"]
';'
>>> local_options("stream 's'", Input("csv", "in", options=(("multiLine", "true"),)))
Traceback (most recent call last):
    ...
eventide.errors.DeclarationError: stream 's': the local engine has no option multiline=true for csv: leave it out, or \
use the Spark engine
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eventide.errors import DeclarationError
from eventide.plan.declared.stream import Input
from eventide.plan.expressions.columns import Column
from eventide.plan.sql.stream_rows import MALFORMED
from eventide.sources.arrow_types import places_in_header, schema_of
from eventide.sources.options import text_options
from eventide.sources.text.csv_lines import FailSafeCsv, QuickCsv, fields
from eventide.sources.text.json_lines import FailSafeJson, QuickJson
from eventide.sources.text.lines import ByteReader, LineBlocks, as_block, lines_of, normal

# Options with the values that change nothing; None: any value.
KEPT: dict[str, dict[str, set[str] | None]] = {
    "csv": {
        "header": {"true", "false"},
        "sep": None,
        "quote": None,
        "escape": None,
        "nullvalue": None,
        "multiline": {"false"},
        "enforceschema": {"true", "false"},
    },
    "json": {"multiline": {"false"}, "allowsinglequotes": {"false"}, "enabledatetimeparsingfallback": {"false"}},
    "text": {"wholetext": {"false"}},
}
EVERYWHERE: dict[str, set[str] | None] = {"encoding": {"utf-8"}, "charset": {"utf-8"}}


def local_options(owner: str, given: Input) -> dict[str, str]:
    """The options of a text input, filled up with the defaults, or an error for one that cannot be kept."""
    options = text_options(given)
    known = {**KEPT.get(given.format, {}), **EVERYWHERE}
    for name, value in options.items():
        allowed = known.get(name, set())
        if allowed is not None and value.lower() not in allowed:
            raise DeclarationError(
                f"{owner}: the local engine has no option {name}={value} for {given.format}: leave it out, or use the "
                "Spark engine"
            )
    if given.format == "csv":
        _check_csv(owner, options)
    return options


def _check_csv(owner: str, options: dict[str, str]) -> None:
    if len(options["sep"].encode()) != 1 or options["sep"] in "\r\n":
        raise DeclarationError(
            f"{owner}: the separator {options['sep']!r} is not one plain character: use , ; | or a tab"
        )
    if len(options["quote"].encode()) > 1 or options["escape"] != options["quote"]:
        raise DeclarationError(
            f"{owner}: in the local engine a quote is one plain character (or none) and escapes itself: leave out "
            "quote and escape, or use the Spark engine"
        )


FEW_LINES = 32
"""Up to so many lines of a block are read the fail-safe way."""


class BlockParser(Protocol):
    """Parses many lines at once."""

    def rows(self, lines: pa.Array, block: bytes) -> tuple[pa.Table, NDArray[np.bool_]]:
        """The rows of the lines that are sure, and which lines they are (NumPy booleans).

        `block` has the same lines, each ended by LF, and perhaps blank ones.
        """
        ...


class LineParser(Protocol):
    """Parses one line at a time."""

    def rows(self, line: str) -> list[list[Any] | None]:
        """The rows of a line; None for a malformed one."""
        ...


class TextParser:
    """Lines of one format, for declared columns. `names` are those of a CSV header; None: the declared ones."""

    def __init__(
        self, declared: Sequence[Column], kind: str, options: Mapping[str, str], names: Sequence[str] | None = None
    ) -> None:
        self._schema = schema_of(declared)
        self._kind = kind
        self._quick: BlockParser
        self._careful: LineParser
        if kind == "json":
            self._quick, self._careful = QuickJson(declared), FailSafeJson(declared)
            return
        there = [column.name for column in declared] if names is None else list(names)
        places = places_in_header("the stream", declared, there, "the file")
        shape = (declared, places, len(there), options["sep"], options["quote"], options.get("nullvalue", ""))
        self._quick, self._careful = QuickCsv(*shape), FailSafeCsv(*shape)

    def table(self, block: bytes) -> pa.Table:
        """The rows of a block of whole lines."""
        broken: list[int] = []
        try:
            block.decode()
        except UnicodeDecodeError:
            block, broken = self._repaired(block)
        block = normal(block)
        lines = lines_of(block, self._kind)
        if len(lines) == 0:
            return self._schema.empty_table()
        if len(lines) <= FEW_LINES:
            return self._merged(self._schema.empty_table(), np.zeros(len(lines), np.bool_), lines, set(broken))
        sure = np.ones(len(lines), dtype=np.bool_)
        sure[broken] = False
        tried = lines.filter(pa.array(sure)) if broken else lines
        rows, sure[sure] = self._quick.rows(tried, as_block(tried) + b"\n" if broken else block)
        good = rows.append_column(MALFORMED, pa.nulls(rows.num_rows, pa.string())).cast(self._schema)
        return good if sure.all() else self._merged(good, sure, lines, set(broken))

    def _repaired(self, block: bytes) -> tuple[bytes, list[int]]:
        """Valid UTF-8; in JSON the lines that were not are malformed, in CSV the damage is part of the text."""
        repaired = block.decode("utf-8", "replace").encode()
        if self._kind != "json":
            return repaired, []
        # Which of them, by their place among those not blank: a replaced character is always longer than a blank.
        was = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        kept = [line for line in was if line.strip(b" \t")]
        return repaired, [number for number, line in enumerate(kept) if not _valid(line)]

    def _merged(self, good: pa.Table, sure: NDArray[np.bool_], lines: pa.Array, broken: set[int]) -> pa.Table:
        """The sure rows, and in the places of the others what the fail-safe way makes of them."""
        doubtful = np.flatnonzero(~sure)
        rows: list[Sequence[Any]] = []
        places: list[int] = []
        nothing = [None] * (len(self._schema) - 1)
        for number, line in zip(doubtful.tolist(), lines.take(pa.array(doubtful)).to_pylist(), strict=True):
            for row in [None] if number in broken else self._careful.rows(line):
                rows.append([*nothing, line] if row is None else [*row, None])
                places.append(number)
        columns = zip(*rows, strict=True) if rows else ([] for _ in self._schema)
        arrays = [pa.array(list(column), field.type) for column, field in zip(columns, self._schema, strict=True)]
        both = pa.concat_tables([good, pa.table(arrays, schema=self._schema)])
        order = np.argsort(np.concatenate([np.flatnonzero(sure), np.asarray(places, dtype=np.intp)]), kind="stable")
        return both.take(pa.array(order))


def _valid(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


class LineFormat:
    """What lines mean: a format, its options, the declared columns. Parsers are made once for each header."""

    def __init__(
        self, owner: str, columns: Sequence[Column], kind: str, options: Mapping[str, str] | None = None
    ) -> None:
        self.owner = owner
        self.columns = columns
        self.kind = kind
        self.options = local_options(owner, Input(kind, options=tuple((options or {}).items())))
        if kind == "text" and [column.type for column in columns] != ["STRING"]:
            raise DeclarationError(
                f"{owner} reads lines of text: declare one column, of type STRING; or read csv or json"
            )
        self._parsers: dict[tuple[str, ...] | None, TextParser] = {}
        if kind != "text" and not self.has_header:
            self.parser(None)

    @property
    def has_header(self) -> bool:
        """Whether the first line names the columns."""
        return self.kind == "csv" and self.options["header"].lower() == "true"

    def parser(self, names: tuple[str, ...] | None) -> TextParser:
        """The parser for lines under a header."""
        if names not in self._parsers:
            self._parsers[names] = TextParser(self.columns, self.kind, self.options, names)
        return self._parsers[names]

    def table(self, block: bytes, names: tuple[str, ...] | None) -> pa.Table:
        """The rows of a block of whole lines under a header."""
        if self.kind != "text":
            return self.parser(names).table(block)
        lines = lines_of(block.decode("utf-8", "replace").encode(), "text")
        return pa.table([lines, pa.nulls(len(lines), pa.string())], schema=schema_of(self.columns))


class TextRows:
    """Rows from a reader of bytes; `place` is for errors. `growing`: a last line without an end may go on."""

    def __init__(self, how: LineFormat, place: str, source: ByteReader, growing: bool = False) -> None:
        self._how = how
        self._place = place
        self._blocks = LineBlocks(source, growing)
        self.names: tuple[str, ...] | None = None

    @property
    def offset(self) -> int:
        """Bytes read so far."""
        return self._blocks.offset

    def skip_to(self, offset: int, names: tuple[str, ...] | None) -> None:
        """Pass over what was read before, under a header that was read before."""
        self._blocks.skip_to(offset)
        self.names = names

    def start_at(self, offset: int, names: tuple[str, ...] | None) -> None:
        """The source stands at this byte already."""
        self._blocks.offset = offset
        self.names = names

    @property
    def growing(self) -> bool:
        """Whether a last line without an end may go on."""
        return self._blocks.growing

    def finish(self) -> None:
        """The source does not grow any more: a last line without an end is one."""
        self._blocks.growing = False

    def read(self, max_rows: int) -> pa.Table | None:
        """The rows of the next lines, or None when there are none (now, if the source grows)."""
        if not self.read_header():
            return None
        block = self._blocks.read(max_rows)
        return None if block is None else self._how.table(block, self.names)

    def read_header(self) -> bool:
        """Read the names of the columns, if there are any and they were not read; False if they are not there yet."""
        while self._how.has_header and self.names is None:
            line = self._blocks.read(1)
            if line is None:
                return False
            found = lines_of(line.decode("utf-8", "replace").encode(), "csv")
            if len(found):
                options = self._how.options
                names = tuple(name or "" for name in fields(found[0].as_py(), options["sep"], options["quote"]))
                places_in_header(self._how.owner, self._how.columns, names, self._place)
                self.names = names
        return True

    def close(self) -> None:
        """Let go of the source."""
        self._blocks.close()
