"""What a source has against what was declared: the same columns, or an error that names both sides.

Law: the result has exactly the declared columns, in order and with the declared types. A column may be wider than what
the source has (INT there, BIGINT declared); nothing is ever narrowed or reinterpreted.

>>> widens("INT", "BIGINT"), widens("BIGINT", "INT"), widens("INT", "DECIMAL(10, 0)"), widens("INT", "DECIMAL(5, 0)")
(True, False, True, False)
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from eventide.errors import InputError
from eventide.plan.expressions.columns import Column

# Every type to its right holds all values of a type exactly.
LADDER = ("TINYINT", "SMALLINT", "INT", "BIGINT")
DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 19}
EXACT = {("TINYINT", "FLOAT"), ("SMALLINT", "FLOAT"), ("FLOAT", "DOUBLE")} | {
    (kind, "DOUBLE") for kind in ("TINYINT", "SMALLINT", "INT")
}


def widens(there: str, declared: str) -> bool:
    """Whether every value of the type that is there is a value of the declared type."""
    if there in LADDER and declared in LADDER:
        return LADDER.index(there) <= LADDER.index(declared)
    wanted = _decimal(declared)
    if wanted is not None:
        has = (DIGITS[there], 0) if there in DIGITS else _decimal(there)
        return has is not None and wanted[0] - wanted[1] >= has[0] - has[1] and wanted[1] >= has[1]
    return there == declared or (there, declared) in EXACT


def _decimal(kind: str) -> tuple[int, int] | None:
    found = re.fullmatch(r"DECIMAL\((\d+)(?:, *(\d+))?\)", kind)
    return (int(found.group(1)), int(found.group(2) or 0)) if found else None


def matched(owner: str, columns: Sequence[Column], there: Mapping[str, str], place: str) -> list[tuple[str, Column]]:
    """For every declared column the name that the source gives it; `there` maps its names to Spark's types.

    >>> from eventide.plan.expressions.columns import columns
    >>> cars = columns("ts TIMESTAMP, speed INT")
    >>> matched("stream 'cars'", cars, {"TS": "TIMESTAMP", "Speed": "SMALLINT"}, "in")[1]
    ('Speed', Column(name='speed', type='INT'))
    >>> matched("stream 'cars'", cars, {"ts": "TIMESTAMP"}, "in")
    Traceback (most recent call last):
        ...
    eventide.errors.InputError: stream 'cars' declares speed INT, but in has only ts TIMESTAMP: declare what is there, \
or read another place
    >>> matched("stream 'cars'", cars, {"ts": "TIMESTAMP", "speed": "STRING"}, "in")
    Traceback (most recent call last):
        ...
    eventide.errors.InputError: stream 'cars' declares speed INT, but in has speed STRING: declare it as it is there \
and convert it in the query
    """
    spelled = {name.lower(): name for name in there}
    found = []
    for column in columns:
        name = spelled.get(column.name.lower())
        asked = f"{owner} declares {column.name} {column.type}, but {place}"
        if name is None:
            has = ", ".join(f"{other} {kind}" for other, kind in there.items()) or "no columns"
            raise InputError(f"{asked} has only {has}: declare what is there, or read another place")
        if not widens(there[name], column.type):
            raise InputError(f"{asked} has {name} {there[name]}: declare it as it is there and convert it in the query")
        found.append((name, column))
    return found


def places_in_header(owner: str, columns: Sequence[Column], names: Sequence[str], place: str) -> list[int]:
    """Where the declared columns stand among those that the first line of a CSV file names.

    >>> from eventide.plan.expressions.columns import columns
    >>> places_in_header("stream 's'", columns("a INT, b INT"), ["B", "c", "A"], "x.csv")
    [2, 0]
    >>> places_in_header("stream 's'", columns("a INT, b INT"), ["a", "c"], "x.csv")
    Traceback (most recent call last):
        ...
    eventide.errors.InputError: stream 's' declares b, but the first line of x.csv names a, c: declare those, or give \
the option header=false if it names nothing
    """
    known = [name.lower() for name in names]
    missing = [column.name for column in columns if column.name.lower() not in known]
    if missing:
        raise InputError(
            f"{owner} declares {', '.join(missing)}, but the first line of {place} names {', '.join(names)}: declare "
            "those, or give the option header=false if it names nothing"
        )
    return [known.index(column.name.lower()) for column in columns]
