"""Choose what to declare for a sample: the roles of its columns, a drop ratio, a first window.

Law: a ratio is proposed by what it would have cost on the sample: 1 %, or less where that hardly waits longer. A window
is so long that the sample has some dozens of them at most.

>>> window_for(3_600_000_000, None)
Length(amount=300000000, sql='5 minutes', words='5 minutes')
>>> window_for(100, None, unitless=True), window_for(3_600_000, "ms", unitless=True)
(Length(amount=5, sql='5', words='5'), Length(amount=300000, sql='300000', words='5 minutes'))

*Roles.* Which column tells the time, which the arrival, which names the source, and which is worth an average? Only
what the sample shows counts: types first, then names, then how many different values there are. What was chosen, and
why, is said; where nothing speaks for a column, none is chosen.

>>> from eventide.commands.init_sample import SampleColumn as C
>>> columns = (C("id", "BIGINT", 900), C("ts", "TIMESTAMP", 800), C("received_at", "TIMESTAMP", 900),
...     C("device", "STRING", 12), C("speed", "DOUBLE", 300))
>>> roles_of(Sample("x.csv", "csv", (), columns, (), 1000, 0))
Roles(time='ts', arrival='received_at', source='device', value='speed')
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from eventide.commands.init_sample import Sample, SampleColumn
from eventide.errors import InputError
from eventide.launch.logs import Report
from eventide.plan.declared.stream import TimeKind, kind_of
from eventide.plan.expressions.columns import WHOLE_NUMBERS, Column
from eventide.profile.amounts import percent, spoken
from eventide.profile.disorder import disorder
from eventide.profile.dry_run import dry_runs, timetable
from eventide.profile.files import ColumnNames, guess_unit, parts_of
from eventide.profile.profiling import OURS, candidates
from eventide.profile.reading import LoadedRecording, read, usual_round

OF_TIME = ("ts", "time", "timestamp", "event_time", "eventtime", "datetime", "date", "when", "t", "at", "occurred")
IN_TIME = ("time", "date", "_ts", "_at", "stamp", "epoch", "millis")
OF_ARRIVAL = ("arriv", "receiv", "ingest", "seen", "process", "insert", "loaded", "logged", "written", "kafka_")
OF_SOURCE = (
    "source", "device", "sensor", "host", "station", "detector", "machine", "node", "meter", "vehicle", "car", "bus",
    "symbol", "ticker", "instrument", "probe", "gateway", "channel", "partition", "interface", "router", "camera",
    "location", "site", "shop", "store", "plant", "asset", "server", "instance", "service", "agent", "client", "door",
)  # fmt: skip
NO_SOURCE = (
    "customer", "user", "person", "account", "buyer", "member", "product", "item", "sku", "category", "status",
    "currency", "url", "path", "method", "session",
)  # fmt: skip
"""What a row is about, not who sent it: a text of such a name is no source unless the user says so."""

NO_AMOUNT = ("status", "code", "zip", "postal", "port", "year", "month", "flag", "version")
"""Numbers of which a mean says nothing."""

NUMBERS = ("DOUBLE", "FLOAT", *WHOLE_NUMBERS)
MOST_SOURCES = 10_000
ROWS_A_SOURCE = 5
"""A column with fewer rows for each of its values names no sources, but things that happen once.

In a sample of few rows the name of a column says more than they do: two rows for each value are enough there."""

SMALL_SAMPLE = 50


@dataclass(frozen=True)
class Roles:
    """Names of columns; `time` None asks for the time of arrival."""

    time: str | None
    arrival: str | None = None
    source: str | None = None
    value: str | None = None


def roles_of(sample: Sample, time: str | None = None, source: str | None = None) -> Roles:
    """Find the roles; what is given is only checked."""
    if time is not None:
        chosen: SampleColumn | None = _checked_time(sample, time)
    else:
        chosen = max(sample.columns, key=_as_time, default=None)
        chosen = chosen if chosen is not None and _as_time(chosen) > 0 else None
    arrival = _arrival(sample, chosen) if chosen is not None else None
    named = sample.column(source) if source is not None else _source(sample, chosen, arrival)
    used = {column.name for column in (chosen, arrival, named) if column is not None}
    value = next((c.name for c in sample.columns if c.name not in used and _is_value(c, sample)), None)
    return Roles(_name(chosen), _name(arrival), _name(named), value)


def unit_of(column: SampleColumn) -> str | None:
    """The unit that whole numbers of a time seem to count: s, ms, us, ns; None for timestamps and plain sequences.

    >>> unit_of(SampleColumn("t", "BIGINT", 9, "1415624019862")), unit_of(SampleColumn("t", "BIGINT", 9, "412"))
    ('ms', None)
    """
    if column.type not in WHOLE_NUMBERS or not (column.example or "").lstrip("-").isdigit():
        return None
    unit = guess_unit(abs(float(column.example or 0)), fractions=False)
    return None if unit == "none" else unit


def _checked_time(sample: Sample, name: str) -> SampleColumn:
    column = sample.column(name)
    if kind_of(Column(column.name, column.type)) is None:
        raise InputError(
            f"{sample.argument}: {column.name!r} cannot tell the time: it is {column.type}, such as "
            f"{column.example!r}; times are TIMESTAMP (2026-01-31 09:00:00), DATE or whole numbers"
        )
    return column


def _as_time(column: SampleColumn) -> int:
    """A score for a column as the time column; 0: it cannot be."""
    kind = kind_of(Column(column.name, column.type))
    if kind is None:
        return 0
    name = column.name.lower()
    hint = 20 if name in OF_TIME else 10 if any(part in name for part in IN_TIME) else 0
    worth = {TimeKind.TIMESTAMP: 40, TimeKind.DATE: 15, TimeKind.SEQUENCE: 0}[kind]
    if kind is TimeKind.SEQUENCE:
        # A number is a time if its name says so, or if it counts seconds or less since 1970.
        worth = 20 if unit_of(column) is not None and hint else 12 if hint == 20 else 0
        hint = hint if worth else 0
    return max(0, worth + hint - (30 if worth and _is_arrival(column) else 0))


def _is_arrival(column: SampleColumn) -> bool:
    return any(part in column.name.lower() for part in OF_ARRIVAL)


def _arrival(sample: Sample, time: SampleColumn) -> SampleColumn | None:
    for column in sample.columns:
        same = column.type == time.type and unit_of(column) == unit_of(time)
        if column.name != time.name and _is_arrival(column) and same:
            return column
    return None


def _source(sample: Sample, time: SampleColumn | None, arrival: SampleColumn | None) -> SampleColumn | None:
    used = {column.name for column in (time, arrival) if column is not None}
    possible = [
        column
        for column in sample.columns
        if column.name not in used
        and column.type in ("STRING", *WHOLE_NUMBERS)
        and not column.lost_time
        and 1
        <= column.distinct
        <= min(MOST_SOURCES, sample.rows // (2 if sample.rows <= SMALL_SAMPLE else ROWS_A_SOURCE))
    ]
    named = [column for column in possible if any(part in column.name.lower() for part in OF_SOURCE)]
    if named:
        # The first in the order of our list of names, then in that of the file.
        return min(named, key=_rank)
    repeated = [column for column in possible if column.type == "STRING" and column.distinct >= 2]
    if len(repeated) == 1 and _speaks_of(repeated[0], NO_SOURCE):
        return None
    # Without a telling name: a text that comes again and again, if there is no other.
    return repeated[0] if len(repeated) == 1 and repeated[0].distinct <= sample.rows // ROWS_A_SOURCE else None


def _rank(column: SampleColumn) -> int:
    return next(place for place, part in enumerate(OF_SOURCE) if part in column.name.lower())


def _is_value(column: SampleColumn, sample: Sample) -> bool:
    name = column.name.lower()
    numbered = name == "id" or name.endswith("_id") or _as_time(column) > 0 or _speaks_of(column, NO_AMOUNT)
    return column.type in NUMBERS and column.distinct > 1 and not numbered


def _speaks_of(column: SampleColumn, words: Sequence[str]) -> bool:
    """Whether one of the words is in the name of a column, as a word."""
    return any(word in words for word in re.split(r"[^a-z]+", column.name.lower()))


def _name(column: SampleColumn | None) -> str | None:
    return None if column is None else column.name


RATIOS = (0.001, 0.01, 0.05)
USUAL_RATIO = 0.01
FAR_LESS = 0.8
"""The usual ratio is worth it where it waits less than this share of what the smallest one waits."""

FEW_ROWS = 500
"""A dry run of fewer rows says little."""

MOST_BYTES = 200_000_000
"""Larger samples are not run through the policies: that would take longer than a starter is worth."""

MOST_WINDOWS, FEWEST_WINDOWS = 40, 4
ROWS_IN_A_WINDOW = 3
"""So many rows of each source in a window make a first answer worth looking at."""

SECOND, MINUTE, HOUR, DAY = 1_000_000, 60_000_000, 3_600_000_000, 86_400_000_000
LENGTHS = (
    *((n * SECOND, f"{n} second") for n in (1, 5, 10, 30)),
    *((n * MINUTE, f"{n} minute") for n in (1, 5, 10, 30)),
    *((n * HOUR, f"{n} hour") for n in (1, 6, 12)),
    *((n * DAY, f"{n} day") for n in (1, 7, 30, 365)),
)
PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


@dataclass(frozen=True)
class Length:
    """A length in the stream's own units, as the script writes it, and in words."""

    amount: int
    sql: str
    words: str

    def times(self, factor: int) -> str:
        """So many of them, as the script writes it.

        >>> Length(300_000_000, "5 minutes", "5 minutes").times(3), Length(60_000_000, "1 minute", "1 minute").times(3)
        ('15 minutes', '3 minutes')
        """
        number, _, unit = self.sql.partition(" ")
        return f"{int(number) * factor} {unit.rstrip('s')}s" if unit else str(int(number) * factor)


@dataclass(frozen=True)
class Advice:
    """The ratio to declare, sentences about what it would have cost, and the first window."""

    ratio: float
    sentences: tuple[str, ...]
    window: Length


def advice_for(sample: Sample, roles: Roles, progress: Report = lambda stage, share: None) -> Advice:
    """Run the sample through Eventide's own policy, for a few ratios; `progress` gets stage and share done."""
    if roles.time is None:
        return Advice(USUAL_RATIO, (), Length(10 * SECOND, "10 seconds", "10 seconds"))
    column = sample.column(roles.time)
    unitless = column.type in WHOLE_NUMBERS
    sources = 1 if roles.source is None else max(1, sample.column(roles.source).distinct)
    windows = max(FEWEST_WINDOWS, min(MOST_WINDOWS, sample.rows // (ROWS_IN_A_WINDOW * sources)))
    window = window_for(column.span, unit_of(column), unitless, column.type == "DATE", windows)
    if sum(Path(part).stat().st_size for part in parts_of(sample.argument)) > MOST_BYTES:
        large = "The sample is large, so no dry run was made: `eventide profile` does that."
        return Advice(USUAL_RATIO, (large,), window)
    if ("header", "false") in sample.options:
        return Advice(USUAL_RATIO, ("1 % is a good start.",), window)
    source = () if roles.source is None else (roles.source,)
    try:
        # To the engine whole numbers are a sequence, whatever they count.
        [reading] = read(
            [sample.argument], ColumnNames(column.name, roles.arrival, source), "none" if unitless else None
        )
    except InputError as error:
        return Advice(USUAL_RATIO, (f"No dry run: {error}",), window)
    ratio, sentences = _ratio(reading, progress)
    return Advice(ratio, sentences, window)


def _ratio(reading: LoadedRecording, progress: Report) -> tuple[float, tuple[str, ...]]:
    recording, unitless = reading.recording, reading.unitless
    if recording.rows < FEW_ROWS:
        return USUAL_RATIO, (f"{recording.rows:,} rows are too few to say what it costs; 1 % is a good start.",)
    measured = disorder(recording)
    if measured.out_of_order == 0:
        return USUAL_RATIO, ("All rows of the sample came in the order of their times: this costs next to nothing.",)
    # The rounds of `eventide profile`, so that both say the same.
    plan = timetable(recording, usual_round(recording, unitless))
    policies = {ratio: candidates(ratio, [OURS])[OURS] for ratio in RATIOS}
    runs = dry_runs(plan, policies, lambda share: progress("trying drop ratios on the sample", share))
    found = {ratio: run.outcome for ratio, run in runs.items()}
    smaller, usual = found[RATIOS[0]].lag_mean, found[USUAL_RATIO].lag_mean
    worth_it = smaller is None or usual is None or usual < FAR_LESS * smaller
    sentences = [f"In the sample {percent(measured.out_of_order)} of the rows came out of order. A dry run of it:"]
    for ratio, outcome in found.items():
        sentences.append(
            f"  DRATIO {100 * ratio:g}% would have lost {percent(outcome.drop_ratio)} and made rows wait "
            f"{spoken(outcome.lag_mean, unitless)} on average"
        )
    return USUAL_RATIO if worth_it else RATIOS[0], tuple(sentences)


def window_for(
    span: int, unit: str | None, unitless: bool = False, days: bool = False, windows: int = MOST_WINDOWS
) -> Length:
    """The length of a first window for a sample of this span, that makes at most so many windows.

    `unit` is what plain numbers count, if they do.
    """
    if unitless and unit is None:
        amount = 1
        while span // amount > windows:
            amount = amount * 2 if str(amount)[0] in "15" else amount * 5 // 2
        return Length(amount, str(amount), f"{amount:,}")
    in_micros = span if unit is None else span * SECOND // PER_SECOND[unit]
    fitting = [(length, words) for length, words in LENGTHS if not days or length >= DAY]
    length, words = next((one for one in fitting if in_micros // one[0] <= windows), fitting[-1])
    words = words if words.startswith("1 ") else words + "s"
    if unit is None:
        return Length(length, words, words)
    own = length // SECOND * PER_SECOND[unit]
    return Length(own, str(own), words)
