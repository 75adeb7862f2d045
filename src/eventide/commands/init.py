"""`eventide init`: write a commented script from a sample, ready to be checked and run.

Law: what is written passes `check` and runs to its end on the local engine, over the sample itself.

>>> from eventide.commands.init_advice import Length
>>> from eventide.commands.init_sample import SampleColumn as C
>>> sample = Sample("doors.csv", "csv", (), (C("at", "TIMESTAMP", 9), C("door", "STRING", 2)), (), 9, 0)
>>> advice = Advice(0.01, (), Length(60_000_000, "1 minute", "1 minute"))
>>> text = starter_text(sample, Roles("at", source="door"), advice)
>>> print(text[text.index("SELECT"):], end="")
SELECT
  door,
  count(*) AS events
FROM doors [RANGE 1 minute]
GROUP BY door;
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from eventide.commands.check import findings_of
from eventide.commands.init_advice import Advice, Roles, advice_for, roles_of, unit_of
from eventide.commands.init_sample import Sample, SampleColumn, look_at
from eventide.errors import InputError
from eventide.launch.logs import progress_shown, say
from eventide.plan.declared.query import RESERVED
from eventide.plan.expressions.columns import quoted
from eventide.plan.expressions.spark_dialect import Spark4

PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
UNIT_WORDS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
TAKEN_WORDS = frozenset(word.lower() for words in Spark4.Tokenizer.KEYWORDS for word in words.split())
"""Words that mean something in SQL: as a name they are written in quotes, or not used."""


def starter_text(sample: Sample, roles: Roles, advice: Advice, script: str = "FILE.sql") -> str:
    """The script; `script` is the name it will have."""
    name = stream_name(sample.argument)
    stream, query = _stream(sample, roles, advice, name), _query(sample, roles, advice, name)
    return "\n".join([*_head(sample, script), *stream, "", *query])


def stream_name(argument: str) -> str:
    """A name for the stream, after its file or folder.

    >>> stream_name("data/My sensors-2026.csv.gz"), stream_name("logs/*.json"), stream_name("table.csv")
    ('my_sensors_2026', 'logs', 'events')
    """
    path = Path(argument)
    stem = path.parent.name if any(sign in path.name for sign in "*?[") else path.name.split(".")[0]
    name = re.sub(r"\W+", "_", stem.lower(), flags=re.ASCII).strip("_")
    return name if PLAIN_NAME.fullmatch(name) and name not in TAKEN_WORDS else "events"


def written(name: str) -> str:
    """A column as SQL writes it, in quotes where it needs them.

    >>> written("speed"), written("wind speed"), written("time")
    ('speed', '`wind speed`', '`time`')
    """
    return name if PLAIN_NAME.fullmatch(name) and name.lower() not in TAKEN_WORDS else quoted(name)


def _head(sample: Sample, script: str) -> list[str]:
    steps = [("check", "what is wrong with it, if anything"), ("explain", "how it will be computed")]
    if Path(sample.argument).is_file():
        steps.append(("run", "all rows of the file (--engine local: without Spark)"))
    else:
        steps.append(("run", "new files as they come, until Ctrl-C (--engine local: without Spark)"))
    commands = [(f"eventide {step} {script}", what) for step, what in steps]
    width = max(len(command) for command, _ in commands)
    lines = [
        f"-- Written by `eventide init` from {sample.rows:,} rows of {sample.argument}. Change what you like, then:"
    ]
    lines += [f"--   {command:<{width}}   {what}" for command, what in commands]
    if sample.broken:
        lines.append(f"-- Rows of the sample that are not as declared here: {sample.broken:,}. A run rejects them.")
    if sample.left_out:
        lines.append(f"-- Columns that cannot be declared were left out: {', '.join(sample.left_out)}.")
    return [*lines, ""]


def _stream(sample: Sample, roles: Roles, advice: Advice, name: str) -> list[str]:
    width = max(len(written(column.name)) for column in sample.columns)
    declared = [f"  {written(column.name):<{width}} {column.type}," for column in sample.columns]
    declared[-1] = declared[-1].removesuffix(",")
    edge = max(map(len, declared))
    lines = [f"CREATE STREAM {name} ("]
    for line, column in zip(declared, sample.columns, strict=True):
        lines.append(f"{line:<{edge}}{_example(column)}".rstrip())
    options = ", ".join(f"{key} '{_quoted(value)}'" for key, value in sample.options)
    lines += [")", f"FROM {sample.format} '{_quoted(sample.argument)}'" + (f" OPTIONS ({options})" if options else "")]
    lines += _time(sample, roles)
    if roles.source is not None:
        lines += [
            f"-- Who sends rows: each of the {sample.column(roles.source).distinct:,} is given a time of its own.",
            f"SOURCE BY {written(roles.source)}",
        ]
    elif roles.time is not None:
        lines.append("-- If a column says who sent a row (a device, a host), add: SOURCE BY that_column")
    if roles.time is None:
        return [*lines[:-1], lines[-1] + ";"]
    lines.append("-- How many rows may come too late: time moves as early as that allows.")
    lines += [f"-- {sentence}" for sentence in advice.sentences]
    return [*lines, f"DRATIO {100 * advice.ratio:g}%;"]


def _time(sample: Sample, roles: Roles) -> list[str]:
    if roles.time is None:
        lines = ["-- No column was found that tells the time, so a row has the time at which it is read."]
        for column in sample.columns:
            if column.lost_time:
                lines += [
                    f"-- {column.name} looks like a time, but is not written as 2026-01-31 09:00:00. On Spark it can "
                    "be declared as TIMESTAMP, with",
                    f"--   OPTIONS (timestampFormat '{column.written_as or 'dd.MM.yyyy HH:mm:ss'}') after FROM "
                    f"{sample.format}, and TIMESTAMP BY {written(column.name)}",
                ]
        return [*lines, "TIMESTAMP BY ARRIVAL"]
    column = sample.column(roles.time)
    unit = unit_of(column)
    counted = f", in {UNIT_WORDS[unit]}: so are the lengths of windows" if unit is not None else ""
    lines = [f"-- When it happened{counted}.", f"TIMESTAMP BY {written(column.name)}"]
    if roles.arrival is not None:
        lines += [
            "-- When it arrived: a recording is then computed as if it came now.",
            f"ARRIVAL BY {written(roles.arrival)}",
        ]
    return lines


def _query(sample: Sample, roles: Roles, advice: Advice, name: str) -> list[str]:
    counts = unit_of(sample.column(roles.time)) if roles.time is not None else None
    length = advice.window.words + (f" ({advice.window.sql} {UNIT_WORDS[counts]})" if counts else "")
    each = f" and {roles.source}" if roles.source is not None else ""
    selected = []
    if roles.source is not None:
        is_reserved = roles.source.lower() in (*RESERVED, "events")
        selected.append(f"{written(roles.source)} AS {roles.source}_" if is_reserved else written(roles.source))
    selected.append("count(*) AS events")
    if roles.value is not None:
        short = re.sub(r"\W+", "_", roles.value)
        selected += [f"avg({written(roles.value)}) AS mean_{short}", f"max({written(roles.value)}) AS max_{short}"]
    lines = [
        f"-- A first question: for every {length.removeprefix('1 ')}{each}, how many rows"
        + (f", and how large {roles.value} was." if roles.value is not None else "."),
        f"-- For a longer window that moves on in steps: FROM {name} "
        f"[RANGE {advice.window.times(3)} SLIDE {advice.window.sql}]",
        "SELECT",
        ",\n".join(f"  {item}" for item in selected),
        f"FROM {name} [RANGE {advice.window.sql}]",
    ]
    if roles.source is not None:
        lines.append(f"GROUP BY {written(roles.source)}")
    return [*lines[:-1], lines[-1] + ";", ""]


def _example(column: SampleColumn) -> str:
    """A comment with a value, where that fits on the line."""
    text = column.example
    if text is None or len(text) > 40 or not text.isprintable():
        return ""
    return f"  -- such as {text}"


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'").replace("\t", "\\t")


def _other_times(columns: Sequence[SampleColumn]) -> str:
    """What to do about times that are written otherwise than our readers know."""
    names = ", ".join(column.name for column in columns)
    as_ = next((column.written_as for column in columns if column.written_as), None) or "dd.MM.yyyy HH:mm:ss"
    return (
        f"{names}: only times written as 2026-01-31 09:00:00 can be read; Spark reads others, declared as TIMESTAMP "
        f"with OPTIONS (timestampFormat '{as_}')"
    )


def init_file(sample: str, output: Path | None, time: str | None, source: str | None, force: bool) -> None:
    """Look at the sample, write the script, and say what was found."""
    if output is not None and output.exists() and not force:
        raise InputError(f"{output} is there already: name another file, or write over it with --force")
    with progress_shown() as progress:
        progress("looking at the sample", 0.0)
        found = look_at(sample)
        roles = roles_of(found, time, source)
        advice = advice_for(found, roles, progress)
    text = starter_text(found, roles, advice, "FILE.sql" if output is None else str(output))
    # What cannot be checked is not worth handing out; this would be a fault of our own.
    errors = [finding for finding in findings_of(text, "starter")[0] if finding.severity == "error"]
    if errors:
        raise AssertionError(f"the script that was written cannot be used: {errors[0]}\n{text}")
    if output is None:
        # Scripts are UTF-8, whatever a terminal is.
        sys.stdout.buffer.write(text.encode())
    else:
        try:
            output.write_text(text, encoding="utf-8")
        except OSError as error:
            raise InputError(f"{output} cannot be written: {error.strerror}") from error
    for sentence in _summary(found, roles):
        say(sentence)
    if output is not None:
        say(f"wrote {output}; now: eventide check {output}, then eventide run {output}")


def _summary(sample: Sample, roles: Roles) -> list[str]:
    lines = [f"{_some(sample.rows, 'row')} looked at, {_some(len(sample.columns), 'column')}"]
    unread = [column for column in sample.columns if column.lost_time]
    why = f" ({_other_times(unread)})" if unread else ""
    if sample.left_out:
        lines.append(f"columns left out, which cannot be declared: {', '.join(sample.left_out)}")
    lines.append(
        f"no column tells the time: rows get the time at which they are read{why}"
        if roles.time is None
        else f"time: {roles.time}"
    )
    if roles.arrival is not None:
        lines.append(f"arrival: {roles.arrival}")
    lines.append(f"source: {roles.source or 'none found; --source COL names one'}")
    if sample.broken:
        lines.append(f"rows of the sample that are not as declared, which a run rejects: {sample.broken:,}")
    return lines


def _some(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
