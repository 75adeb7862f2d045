"""Inputs of streams: their options by name, and limits of a round.

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
"""

from __future__ import annotations

from dataclasses import replace

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


VALUES = ("json", "csv", "avro")
"""What the values of records may be."""


def unknown_format(owner: str, kind: str) -> DeclarationError:
    """That values cannot be of that kind.

    >>> unknown_format("stream 's'", "xml").args[0]
    "stream 's': value.format 'xml' is not known: use json, csv or avro"
    """
    return DeclarationError(
        f"{owner}: value.format {kind!r} is not known: use {', '.join(VALUES[:-1])} or {VALUES[-1]}"
    )


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
TABLES = frozenset({"table", "delta", "iceberg"})

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
