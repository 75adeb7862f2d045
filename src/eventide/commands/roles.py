"""Which column of a sample tells the time, which the arrival, which names the source, which is worth an average.

Law: only what the sample shows counts: types first, then names, then how many different values there are. What was
chosen, and why, is said; where nothing speaks for a column, none is chosen.

>>> from eventide.commands.sample import SampleColumn as C
>>> columns = (C("id", "BIGINT", 900), C("ts", "TIMESTAMP", 800), C("received_at", "TIMESTAMP", 900),
...     C("device", "STRING", 12), C("speed", "DOUBLE", 300))
>>> roles_of(Sample("x.csv", "csv", (), columns, (), 1000, 0))
Roles(time='ts', arrival='received_at', source='device', value='speed')
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from eventide.commands.sample import Sample, SampleColumn
from eventide.errors import InputError
from eventide.plan.declared.stream import TimeKind, kind_of
from eventide.plan.expressions.columns import WHOLE_NUMBERS, Column
from eventide.profile.time_columns import guess_unit

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

FEW_ROWS = 50


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
    taken = {column.name for column in (chosen, arrival, named) if column is not None}
    value = next((c.name for c in sample.columns if c.name not in taken and _is_value(c, sample)), None)
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
    """How much speaks for a column as the time; 0 for nothing."""
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
    taken = {column.name for column in (time, arrival) if column is not None}
    possible = [
        column
        for column in sample.columns
        if column.name not in taken
        and column.type in ("STRING", *WHOLE_NUMBERS)
        and not column.lost_time
        and 1 <= column.distinct <= min(MOST_SOURCES, sample.rows // (2 if sample.rows <= FEW_ROWS else ROWS_A_SOURCE))
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
