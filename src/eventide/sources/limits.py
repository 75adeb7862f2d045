"""How much one round may take: the limits of an `Input`, in the words of each format.

Law: a limit is either kept or refused; no format ignores one silently. Files come whole, so a file format can be
limited in files (or in bytes, by Spark's own option) but not in rows.

>>> limit_options(Input("json", path="in", max_files=10))
{'maxFilesPerTrigger': '10'}
>>> limit_options(Input("json", path="in", max_rows=10))
Traceback (most recent call last):
    ...
eventide.errors.DeclarationError: json cannot be limited to 10 rows a round: give max_files, or the option \
maxBytesPerTrigger
"""

from __future__ import annotations

from eventide.errors import DeclarationError
from eventide.plan.declared.stream import Input

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
    said = {option.lower() for option, _ in given.options}
    for option, text in options.items():
        if option.lower() in said:
            raise DeclarationError(
                f"{name}: the limit {text} is given twice, and once as the option {option}: give it once"
            )
    return options


def _refused(name: str, asked: str) -> DeclarationError:
    ways = {"max_files, or the option maxBytesPerTrigger": FILES | TABLES, "max_rows": ROWS.keys()}
    way = next((way for way, names in ways.items() if name in names), None)
    advice = f"give {way}" if way else "see which options its connector has, and give those"
    return DeclarationError(f"{name} cannot be limited to {asked} a round: {advice}")
