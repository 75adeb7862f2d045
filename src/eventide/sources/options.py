"""Inputs of streams: their options by name, limits of a round, and units of times.

Options are Spark's own and do not tell capital letters apart. Some defaults differ from Spark's: the first line of a
CSV file names its columns (`header` true); in CSV a quote inside quotes is doubled (`escape` is the quote), as nearly
every program writes it; single quotes are no JSON; and dates in JSON are not guessed (Spark would take "20200101" for
that many days after 1970).

>>> from eventide.plan.expressions.columns import columns
>>> stream = Stream("s", columns("n BIGINT"), time="n", input=Input("CSV", "in", options=(("HEADER", "false"),)))
>>> given = input_of(stream)
>>> given.format, text_options(given)["header"], text_options(given)["escape"]
('csv', 'false', '"')

*Limits.* The limits of an `Input`, in the words of each format. A limit is either kept or refused; no format ignores
one silently. Files come whole, so a file format can be limited in files (or in bytes, by Spark's own option) but not in
rows.

>>> limit_options(Input("json", path="in", max_files=10))
{'maxFilesPerTrigger': '10'}
>>> limit_options(Input("json", path="in", max_rows=10))
Traceback (most recent call last):
    ...
eventide.errors.DeclarationError: json cannot be limited to 10 rows a round: give max_files, or the option \
maxBytesPerTrigger

*Units.* Times may have been counted in other units than they are read in: 1769850000000 in a TIMESTAMP column is the
year 58054. The first rows that are that far off make a warning, once, of what to declare instead.

>>> from eventide.plan.declared.stream import columns
>>> s = Stream("s", columns("ts TIMESTAMP"), time="ts")
>>> kind = pa.timestamp("us", "UTC")
>>> seconds, millis = (pa.table({"ts": pa.array([n * 10**6], kind)}) for n in (1769850000, 1769850000000))
>>> wrong_unit(s, seconds), wrong_unit(s, millis).split(":")[1].strip()
(None, 'ts is in the year 58054')
"""

from __future__ import annotations

import logging
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from eventide.errors import DeclarationError
from eventide.plan.declared.secrets import revealed
from eventide.plan.declared.stream import Input, Stream
from eventide.plan.sql.stream_rows import MALFORMED

DEFAULTS = {
    "csv": {"header": "true", "sep": ",", "quote": '"', "escape": '"'},
    "json": {"allowsinglequotes": "false", "enabledatetimeparsingfallback": "false"},
}


def input_of(stream: Stream) -> Input:
    """The declared input, its format in small letters; an error when the stream has none, or a name is taken."""
    if stream.input is None:
        raise DeclarationError(f"stream {stream.name!r} has no input: declare where its rows come from")
    if any(column.name.lower() == MALFORMED for column in stream.columns):
        raise DeclarationError(
            f"stream {stream.name!r} cannot have a column {MALFORMED!r}: rows that cannot be read are kept under "
            "that name; declare another one"
        )
    options = revealed(stream.input.options, f"stream {stream.name!r}")
    return replace(stream.input, format=stream.input.format.lower(), options=options)


def text_options(given: Input) -> dict[str, str]:
    """The options of a text format, small letters in their names; those of CSV filled up with our defaults."""
    return _filled(given.format, {name.lower(): value for name, value in given.options})


def split_options(given: Input) -> tuple[dict[str, str], dict[str, str]]:
    """The options for parsing the column `value` (written `value.format`, `value.sep`, ...) and those of the source.

    >>> of_value, of_source = split_options(Input("socket", options=(("port", "9"), ("value.format", "csv"))))
    >>> of_value["format"], of_value["sep"], of_source
    ('csv', ',', {'port': '9'})
    """
    prefix = "value."
    inside = {name.lower()[len(prefix) :]: value for name, value in given.options if name.lower().startswith(prefix)}
    source = {name: value for name, value in given.options if not name.lower().startswith(prefix)}
    # Inside a value there is no first line that names columns.
    return _filled(inside.get("format", ""), {**inside, "header": "false"} if inside else {}), source


def _filled(kind: str, options: dict[str, str]) -> dict[str, str]:
    if "delimiter" in options:
        options["sep"] = options.pop("delimiter")
    if kind == "csv" and "quote" in options:
        options.setdefault("escape", options["quote"])
    return {**DEFAULTS.get(kind, {}), **options}


def needs_path(stream: Stream, given: Input) -> str:
    """The path of an input that cannot do without."""
    if not given.path:
        raise DeclarationError(f"stream {stream.name!r} reads {given.format} and has no path: say where it is")
    return given.path


FILES = frozenset({"parquet", "orc", "json", "csv", "text", "avro", "xml", "binaryfile"})
TABLES = frozenset({"table", "delta"})

# What a format calls the number of rows that one round (for `rate`: one second) may take.
ROWS = {
    "kafka": "maxOffsetsPerTrigger",
    "rate": "rowsPerSecond",
    "rate-micro-batch": "rowsPerBatch",
    "replay": "maxRows",
}


def limit_options(given: Input) -> dict[str, str]:
    """The options that keep the limits of an input, or an error that says what this format can be limited by."""
    name = given.format.lower()
    for words, number in (("files", given.max_files), ("offsets", given.max_offsets), ("rows", given.max_rows)):
        if number is not None and number < 1:
            raise DeclarationError(f"{number} {words} a round is too few: give 1 or more, or no limit")
    options = {}
    if given.max_files is not None:
        if name not in FILES | TABLES:
            raise _refused(name, f"{given.max_files} files")
        options["maxFilesPerTrigger"] = str(given.max_files)
    if given.max_offsets is not None:
        if name != "kafka":
            raise _refused(name, f"{given.max_offsets} offsets")
        options["maxOffsetsPerTrigger"] = str(given.max_offsets)
    if given.max_rows is not None:
        if name not in ROWS:
            raise _refused(name, f"{given.max_rows} rows")
        options[ROWS[name]] = str(min(given.max_rows, given.max_offsets or given.max_rows))
    named = {option.lower() for option, _ in given.options}
    for option, text in options.items():
        if option.lower() in named:
            raise DeclarationError(
                f"{name}: the limit {text} is given twice, and once as the option {option}: give it once"
            )
    return options


def _refused(name: str, asked: str) -> DeclarationError:
    ways = {"max_files, or the option maxBytesPerTrigger": FILES | TABLES, "max_rows": ROWS.keys()}
    way = next((way for way, names in ways.items() if name in names), None)
    advice = f"give {way}" if way else "see which options its connector has, and give those"
    return DeclarationError(f"{name} cannot be limited to {asked} a round: {advice}")


FAR = 32_503_680_000
"""Seconds from 1970 to the year 3000."""

MICROS_FROM = 10**14
"""As seconds, a number of microseconds of our time is beyond this; one of milliseconds is not."""

YEAR = 31_556_952

LOG = logging.getLogger(__name__)


def wrong_unit(stream: Stream, rows: pa.Table) -> str | None:
    """What to say of the times of these rows, if most of them cannot be meant."""
    if stream.time is None or not rows.num_rows:
        return None
    name = stream.column(stream.time).name
    times = rows.column(name) if name in rows.column_names else None
    if times is None or not pa.types.is_timestamp(times.type):
        return None
    first = pc.min(pc.cast(times, pa.timestamp("us", times.type.tz)).cast(pa.int64())).as_py()
    if first is None or first // 10**6 < FAR:
        return None
    seconds = first // 10**6
    unit, minute = ("microseconds", 60_000_000) if seconds >= MICROS_FROM else ("milliseconds", 60_000)
    return (
        f"stream {stream.name!r}: {name} is in the year {1970 + seconds // YEAR}: numbers in a TIMESTAMP column are "
        f"seconds, and these look like {unit}. Declare {name} BIGINT, and windows in {unit} ([RANGE {minute}] is one "
        "minute); or let the times be written as 2026-01-31T09:00:00Z"
    )


class UnitWatch:
    """Looks at the rows of a stream until it has seen some, and warns once."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._done = stream.time is None

    def look(self, rows: pa.Table | None) -> None:
        """Look at rows that were just read."""
        if self._done or rows is None or not rows.num_rows:
            return
        self._done = True
        if (wrong := wrong_unit(self._stream, rows)) is not None:
            LOG.warning("%s", wrong)
