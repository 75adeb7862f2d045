"""Results on the screen: on a terminal a live table of the newest ones, elsewhere plain lines.

Law: the terminal is drawn a few times a second, however fast results come, and shows at most so many rows of each
query, the newest at the bottom. Into a pipe or a file goes a line for each result, at most so many of one round, and
how many were left out is said. What a screen has shown cannot be taken back: a round that comes again is shown again.
Early rows tell how far off they may be; on a terminal the next row of their window and group takes their place.

>>> import io
>>> from eventide.results.results import Results
>>> output = io.StringIO()
>>> sink = Console(rows=2, console=rich.console.Console(file=output))
>>> sink.emit(Results.of_table("speeds", 42, pa.table({"kind": ["final"] * 3, "window_start": [0, 0, 300],
...     "window_end": [300, 300, 600], "detector": ["A", "B", "A"], "mean": [51.5, None, 48.25], "rows": [2, 1, 4]})))
>>> print(output.getvalue(), end="")
speeds round=42: 1 more
speeds round=42 final [0, 300) detector=B mean=null rows=1
speeds round=42 final [300, 600) detector=A mean=48.25 rows=4
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import rich.console
from pyarrow import types
from rich import box
from rich.cells import cell_len
from rich.live import Live
from rich.table import Table
from rich.text import Text

from eventide.errors import DeclarationError, EngineError
from eventide.plan.declared.query import RESERVED
from eventide.results.results import ROW_SPAN, EarlyColumns, Kind, Results, readings

DRAWN_PER_SECOND = 4
STYLES = {"early": "yellow", "final": "green", "revised": "magenta", "changed": "cyan"}
LINES_AROUND_A_TABLE = 5
"""Its title, its head, and the three lines around these."""

AROUND_A_CELL = 3
WINDOW = {"window_start", "window_end"}
LEAST_TEXT = 8
"""Letters of a text that are shown on the narrowest screen."""

KEPT = 100_000
"""Rows of a query that are kept for the screen, however many go into a pipe."""


class Console:
    """Shows the newest results on a terminal, `rows` of each query; elsewhere prints a line for each result.

    Law: one console serves all queries; two would draw over each other.

    `console` is a Rich console, by default one on standard output. `below` is a function that returns the line which a
    terminal shows under the tables.

    >>> import io
    >>> import rich.console
    >>> screen = io.StringIO()
    >>> means = Results.of_table("speeds", 3, pa.table({"round": [3], "mean": [51.5]}))
    >>> Console(console=rich.console.Console(file=screen)).emit(means)
    >>> screen.getvalue()
    'speeds round=3 mean=51.5\\n'
    """

    def __init__(
        self,
        rows: int = 20,
        console: rich.console.Console | None = None,
        below: Callable[[], str] | None = None,
    ) -> None:
        if rows < 1:
            raise DeclarationError(f"a console of {rows} rows shows nothing: give 1 or more")
        self._limit, self._kept = rows, min(rows, KEPT)
        self._console = console or rich.console.Console()
        self._lock = threading.Lock()
        self._shown: dict[str, dict[int, pa.Table]] = {}
        self._live: Live | None = None
        self._below = below

    @property
    def is_live(self) -> bool:
        """Whether this is a terminal, which can be drawn on."""
        return self._console.is_terminal and not self._console.is_dumb_terminal

    def show(self) -> None:
        """Begin to draw, before the first result, where this is a terminal."""
        if self.is_live and self._live is None:
            self._live = Live(console=self._console, get_renderable=self._drawn, refresh_per_second=DRAWN_PER_SECOND)
            self._live.start(refresh=True)

    def newest(self, query: str) -> pa.Table:
        """The results of a query that are shown, the newest last."""
        with self._lock:
            rounds = list(self._shown.get(query, {}).values())
        if not rounds:
            return pa.table({})
        together = pa.concat_tables(rounds, promote_options="default")
        return together.slice(max(0, together.num_rows - self._kept))

    def emit(self, results: Results) -> None:
        """Show the newest rows of the round."""
        tail = _tail(results, self._limit)
        with self._lock:
            rounds = self._shown.setdefault(results.query, {})
            rounds.pop(results.round, None)
            if self.is_live and (early := EarlyColumns.of(tail.column_names)) is not None:
                for round, older in list(rounds.items()):
                    rounds[round] = early.outlived(older, tail)
            if tail.num_rows:
                rounds[results.round] = tail.slice(max(0, tail.num_rows - self._kept))
            self._forget_old(rounds)
        try:
            if self.is_live:
                self.show()
            else:
                self._print(results, tail)
        except OSError as error:
            raise EngineError(f"results cannot be shown: {error.strerror or error}") from error

    def rewind(self, query: str, last: int) -> None:
        """Take later rounds from the live table."""
        with self._lock:
            for round in [round for round in self._shown.get(query, {}) if round > last]:
                del self._shown[query][round]

    def close(self) -> None:
        """Draw the table a last time and leave it there."""
        live, self._live = self._live, None
        if live is not None:
            live.stop()

    def _forget_old(self, rounds: dict[int, pa.Table]) -> None:
        held = sum(table.num_rows for table in rounds.values())
        for round in list(rounds):
            held -= rounds[round].num_rows
            if held < self._kept:
                break
            del rounds[round]

    def _print(self, results: Results, tail: pa.Table) -> None:
        left_out = results.rows - tail.num_rows
        lines = [f"{results.query} round={results.round}: {left_out:,} more"] if left_out else []
        columns, said = _shown(tail, _readable)
        spans = _spans(tail, "[{}, {})", "[{}, {}]")
        early = EarlyColumns.of(tail.column_names)
        values = () if early is None else early.values
        for at in range(tail.num_rows):
            row = {name: values[at] for name, values in columns.items()}
            words = [results.query, f"round={results.round}"]
            words += [row["kind"].replace(" %", "%")] if "kind" in row else []
            words += spans[at : at + 1]
            estimated = values if row.get("kind", "").startswith(Kind.EARLY.value) else ()
            words += [f"{name}={_word(_close(row[name]) if name in estimated else row[name])}" for name in said]
            lines.append(" ".join(words))
        self._console.file.write("".join(self._printable(line) + "\n" for line in lines))
        self._console.file.flush()

    def _drawn(self) -> rich.console.RenderableType:
        with self._lock:
            queries = list(self._shown)
        height = self._console.size.height - (self._below is not None)
        least = LINES_AROUND_A_TABLE + 1
        shown = queries if len(queries) * least <= height else queries[: max(1, (height - 1) // least)]
        left_out = len(queries) - len(shown)
        room = (height - bool(left_out)) // max(1, len(shown)) - LINES_AROUND_A_TABLE
        tables: list[rich.console.RenderableType] = [self._table(query, max(1, room)) for query in shown]
        if left_out:
            tables.append(Text(f"and {left_out:,} more queries, for which this screen is too low", style="dim"))
        if self._below is None:
            return rich.console.Group(*tables)
        return rich.console.Group(*tables, Text(self._below(), style="dim", no_wrap=True, overflow="ellipsis"))

    def _table(self, query: str, room: int) -> Table:
        newest = self.newest(query)
        return self.table(query, newest.slice(max(0, newest.num_rows - room)))

    def table(self, query: str, newest: pa.Table) -> Table:
        """Results of a query as a table to draw."""
        title = self._printable(query)
        if "round" in newest.column_names and newest.num_rows:
            title += f", round {newest.column('round')[-1].as_py()}"
        drawn = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
        cells: list[list[Text]] = []
        if set(newest.column_names) >= WINDOW:
            drawn.add_column("time" if _is_of_rows(newest) else "window", no_wrap=True)
            cells.append(list(map(Text, _spans(newest))))
        columns, names = _shown(newest, _short)
        if "kind" in newest.column_names:
            drawn.add_column("kind", no_wrap=True)
            styles = [STYLES.get(kind, "") for kind in newest.column("kind").to_pylist()]
            cells.append([Text(kind, style=style) for kind, style in zip(columns["kind"], styles, strict=True)])
        texts = {name: [self._printable(value) for value in columns[name]] for name in names}
        numbers = [name for name in names if _is_number(newest.schema.field(name).type)]
        # A number of which a part is missing is another number; and a row is one line, or the screen overflows.
        kept = [max(map(cell_len, [name, *texts[name]])) for name in numbers]
        kept += [max((cell.cell_len for cell in column), default=0) for column in cells]
        free = self._console.width - sum(kept) - AROUND_A_CELL * (len(cells) + len(names)) - 2
        share = max(LEAST_TEXT, free // max(1, len(names) - len(numbers)))
        for name in names:
            number = name in numbers
            drawn.add_column(
                Text(self._printable(name)),
                justify="right" if number else "left",
                overflow="ellipsis",
                no_wrap=True,
                max_width=None if number else share,
            )
            cells.append(list(map(Text, texts[name])))
        for row in zip(*cells, strict=True):
            drawn.add_row(*row)
        return drawn

    def _printable(self, text: str) -> str:
        """Nothing in the data may move the cursor, ring the bell, or be more than this screen can show."""
        encoding = self._console.encoding
        plain = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)
        plain = plain if _can_say(encoding, "±") else plain.replace("±", "+-")
        return plain.encode(encoding, "replace").decode(encoding)


def _is_number(kind: pa.DataType) -> bool:
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def _tail(results: Results, limit: int) -> pa.Table:
    kept: list[pa.RecordBatch] = []
    for batch in results.batches():
        kept.append(batch)
        while sum(other.num_rows for other in kept[1:]) >= limit:
            del kept[0]
    table = pa.Table.from_batches(kept, results.schema)
    return table.slice(max(0, table.num_rows - limit))


def _columns_of_value(table: pa.Table) -> list[str]:
    """The user's own columns, then how many rows went in."""
    own = [name for name in table.column_names if name not in RESERVED]
    return own + [name for name in table.column_names if name == "rows"]


def _shown(table: pa.Table, words: Callable[[pa.ChunkedArray], list[str]]) -> tuple[dict[str, list[str]], list[str]]:
    """All columns as text, and the names of those that are shown; what is said of early values is part of them."""
    texts = {name: words(table.column(name)) for name in table.column_names}
    early = EarlyColumns.of(table.column_names)
    if early is None:
        return texts, _columns_of_value(table)
    return texts | readings(early, table, texts), [n for n in _columns_of_value(table) if n not in early.added]


def _short(column: pa.ChunkedArray) -> list[str]:
    """As `_readable`, for a table with little room: of a fraction, four digits.

    >>> _short(pa.chunked_array([[5.159663865, 0.0123456789, 1234567.0, None]]))
    ['5.1597', '0.01235', '1234567', 'null']
    """
    if not types.is_floating(column.type):
        return _readable(column)
    plain = zip(column.to_pylist(), _readable(column), strict=True)
    return [text if value is None or len(text) < 8 or "e" in text else _cut(value) for value, text in plain]


def _cut(value: float) -> str:
    if not math.isfinite(value) or abs(value) < 1:
        return format(value, ".4g")
    return format(value, ".4f").rstrip("0").rstrip(".")


def _readable(column: pa.ChunkedArray) -> list[str]:
    """Values as a person wants to read them; only for the few that are shown."""
    if types.is_timestamp(column.type):
        # By way of the number: in UTC whatever the zone of the column, and for any instant, not only Python's years.
        numbers = column.cast(pa.int64())
        texts = numbers.cast(pa.timestamp(column.type.unit)).cast(pa.string())
        return [_moment(*each) for each in zip(numbers.to_pylist(), texts.to_pylist(), strict=True)]
    return ["null" if value is None else _number(value) for value in column.to_pylist()]


def _moment(number: int | None, text: str | None) -> str:
    if number is None or text is None:
        return "null"
    if text.startswith("<"):  # Arrow's word for what is beyond its calendar
        return "infinity" if number > 0 else "-infinity"
    whole, _, fraction = text.partition(".")
    return f"{whole}.{fraction.rstrip('0')}" if fraction.strip("0") else whole


def _number(value: Any) -> str:
    return format(value, ".10g") if isinstance(value, float) else str(value)


def _is_of_rows(table: pa.Table) -> bool:
    """Whether results are rows of streams, single or joined, and not of windows."""
    return (table.schema.field("window_end").metadata or {}).items() >= ROW_SPAN.items()


def _spans(table: pa.Table, window: str = "", pair: str = "") -> list[str]:
    """The window of each result; of a row its time, of joined ones the first and the last of their times.

    `window` and `pair` say how two times are written; without them their day is said once.

    >>> names, second = ("window_start", "window_end"), pa.field("window_end", pa.int64(), metadata=ROW_SPAN)
    >>> _spans(pa.table([[0, 3], [5, 4]], names=names), "[{}, {})")
    ['[0, 5)', '[3, 4)']
    >>> _spans(pa.table([[0, 3], [5, 4]], pa.schema([(names[0], pa.int64()), second])), "[{}, {})", "[{}, {}]")
    ['[0, 4]', '3']
    """
    if not set(table.column_names) >= WINDOW:
        return []
    written = {False: window.format if window else _span, True: pair.format if pair else _span}
    of_rows, ends = _is_of_rows(table), table.column("window_end")
    if of_rows:
        # The window of a row ends just behind it.
        ends = pc.subtract(ends.cast(pa.int64()), 1).cast(ends.type)
    texts = zip(_readable(table.column("window_start")), _readable(ends), strict=True)
    return [start if of_rows and start == end else written[of_rows](start, end) for start, end in texts]


def _span(start: str, end: str) -> str:
    """A window in words; a day that both ends share is written once.

    >>> _span("2026-01-31 09:00:00", "2026-01-31 09:05:00"), _span("100", "150")
    ('2026-01-31 09:00:00 - 09:05:00', '100 - 150')
    """
    day, _, time = end.partition(" ")
    return f"{start} - {time if time and start.startswith(day + ' ') else end}"


def _close(amount: str) -> str:
    """A value with its error, as one word of a line.

    >>> _close("614 ± 21 %, ~773")
    '614±21%,~773'
    """
    return amount.replace(" ± ", "±").replace(" %", "%").replace(", ~", ",~")


@cache
def _can_say(encoding: str, letter: str) -> bool:
    return letter.encode(encoding, "replace").decode(encoding) == letter


def _word(text: str) -> str:
    return json.dumps(text, ensure_ascii=False) if not text or set(text) & set(' "\n\r\t=') else text
