"""Rows from lines: of a file, a file that grows, or standard input.

Law: `read` gives the rows of the next lines in their order; all rows of one line come together. `offset` is the number
of bytes read, those of the header included. The first line of CSV that is not blank names its columns, in any order;
columns that were not declared are passed over. Lines of plain text are rows as they are, blank ones too.

>>> import io
>>> from eventide.plan.expressions.columns import columns
>>> rows = TextRows(LineFormat("stream 's'", columns("t BIGINT"), "csv"), "x.csv", io.BytesIO(b"s,t\\na,1\\nb,2\\n"))
>>> rows.read(1).to_pydict(), rows.offset, rows.read(9).to_pydict(), rows.read(9)
({'t': [1], '_malformed': [None]}, 8, {'t': [2], '_malformed': [None]}, None)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from eventide.errors import DeclarationError
from eventide.plan.declared.stream import Input
from eventide.plan.expressions.columns import Column
from eventide.sources.arrow_schema import schema_of
from eventide.sources.careful_csv import fields
from eventide.sources.conform import places_in_header
from eventide.sources.line_blocks import LineBlocks, Reads
from eventide.sources.lines import lines_of
from eventide.sources.text_options import local_options
from eventide.sources.text_parser import TextParser


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

    def __init__(self, how: LineFormat, place: str, source: Reads, growing: bool = False) -> None:
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
