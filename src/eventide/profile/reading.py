"""Recordings: streams as they arrived, how files become them, and the rounds in which a dry run goes through them.

Laws. DuckDB reads and converts, Arrow numbers the sources, NumPy sorts; no row becomes an object. What had to be
decided is said, never hidden: a guessed unit, rows set aside and why, a file that was not in arrival order. Without an
arrival column the rows arrive in file order and the clock is the running maximum of their times: the least a clock can
show that has seen them all. A dry run goes row by row, or in rounds of some length.

>>> r = Recording.of("two clocks", time=[10, 12, 11], arrival=[20, 21, 22], source=["a", "b", "a"])
>>> r.rows, r.source.tolist(), r.source_names
(3, [0, 1, 0], ('a', 'b'))

>>> small = Recording.of("small", [1, 2], [1, 2], ["a", "a"])
>>> usual_round(small, unitless=False) is None, chosen("250ms")(small, False), chosen("row")(small, False)
(True, 250000, None)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eventide.errors import DeclarationError, InputError
from eventide.eventtime.instant import Instants
from eventide.profile.amounts import duration
from eventide.profile.files import REASONS, UNITS, ColumnNames, TimeColumn, load, only_row, quoted, time_column

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class LoadedRecording:
    """A recording and what there is to say about how it was read.

    `unit` is that of the time column: a unit of numbers, "text", or None for timestamps. `rejects` counts the rows
    set aside, by reason.
    """

    file: str
    run: str | None
    recording: Recording
    columns: ColumnNames
    unit: str | None
    notes: tuple[str, ...]
    rejects: dict[str, int]

    @property
    def unitless(self) -> bool:
        """Whether times are plain numbers; otherwise they are microseconds."""
        return self.unit == "none"


def read(arguments: list[str], columns: ColumnNames, unit: str | None = None) -> Iterator[LoadedRecording]:
    """Read every argument (a file, a directory or a glob): one reading for each, or for each of its runs.

    `unit` is the unit of numeric times, or `time,arrival` when the two columns differ ("ms,ns").

    >>> import tempfile; directory = tempfile.mkdtemp()
    >>> path = Path(directory, "doors.csv")
    >>> _ = path.write_text("at,seen,door\\n100,105,north\\n,106,north\\n90,107,south\\n")
    >>> [reading] = read([str(path)], ColumnNames("at", "seen", ("door",)), unit="s")
    >>> reading.recording.time.tolist(), reading.recording.source_names, reading.rejects
    ([100000000, 90000000], ('north', 'south'), {'time missing': 1})
    """
    units = time_and_arrival_unit(unit)
    for argument in arguments:
        yield from _read_one(argument, columns, *units)


def time_and_arrival_unit(unit: str | None) -> tuple[str | None, str | None]:
    """The units of both columns, from one text; None is for guessing.

    >>> time_and_arrival_unit("ms,ns"), time_and_arrival_unit("s")
    (('ms', 'ns'), ('s', 's'))
    """
    if unit is None:
        return None, None
    given = [part.strip().lower() for part in unit.split(",")]
    if len(given) > 2 or any(part not in UNITS for part in given):
        raise DeclarationError(
            f"unit {unit!r} is not known: use one of {', '.join(UNITS)}, or two as in ms,ns for time and arrival"
        )
    return given[0], given[-1]


def _read_one(
    argument: str, columns: ColumnNames, time_unit: str | None, arrival_unit: str | None
) -> Iterator[LoadedRecording]:
    import duckdb

    with duckdb.connect() as connection:
        # Text without a zone is UTC wherever the dry run runs.
        connection.execute("SET TimeZone = 'UTC'")
        unreadable_lines = load(connection, argument, columns)
        if only_row(connection, "SELECT count(*) FROM loaded") == (0,):
            raise InputError(f"{argument}: the file has no rows")
        time = time_column(connection, argument, columns.time, time_unit)
        arrival = time_column(connection, argument, columns.arrival, arrival_unit) if columns.arrival else None
        if arrival is not None and arrival.unitless != time.unitless:
            unitless, other = (arrival, time) if arrival.unitless else (time, arrival)
            raise InputError(
                f"{argument}: {unitless.name!r} holds plain numbers but {other.name!r} holds times, so no delay "
                "is known: give --unit, or leave --arrival out"
            )
        table = _converted(connection, time, arrival, columns)
    yield from _by_run(argument, columns, table, time, arrival, unreadable_lines)


def _converted(
    connection: duckdb.DuckDBPyConnection, time: TimeColumn, arrival: TimeColumn | None, columns: ColumnNames
) -> pa.Table:
    """Instants, reasons to set rows aside, and names of source and run, in file order."""
    sources = " || '|' || ".join(f"coalesce(CAST({quoted(name)} AS VARCHAR), 'NULL')" for name in columns.source)
    wanted = [f"{time.instant_sql} AS time", f"CAST({time.reason_sql} AS TINYINT) AS time_reason"]
    if arrival is not None:
        wanted += [f"{arrival.instant_sql} AS arrival", f"CAST({arrival.reason_sql} AS TINYINT) AS arrival_reason"]
    if sources:
        wanted.append(f"{sources} AS source")
    if columns.run is not None:
        wanted.append(f"coalesce(CAST({quoted(columns.run)} AS VARCHAR), 'NULL') AS run")
    # DuckDB keeps the order of insertion, so this is file order.
    converted: pa.Table = connection.sql(f"SELECT {', '.join(wanted)} FROM loaded").to_arrow_table()
    return converted


def _by_run(
    argument: str,
    columns: ColumnNames,
    table: pa.Table,
    time: TimeColumn,
    arrival: TimeColumn | None,
    unreadable_lines: int,
) -> Iterator[LoadedRecording]:
    notes = [column.note for column in (time, arrival) if column is not None and column.note is not None]
    if arrival is None:
        notes.append("no arrival column: rows arrive in file order, and the clock is the largest time seen so far")
    runs, run_names = _numbered(table, "run")
    usable = np.bincount(runs[_usable(table)], minlength=len(run_names))
    if not usable.any():
        why = ", ".join(
            f"{count:,} with {reason}" for reason, count in _rejects(table, np.arange(table.num_rows)).items()
        )
        raise InputError(
            f"{argument}: no row has a usable time ({why}): is {time.name!r} the right column, and --unit?"
        )
    empty = [run_names[number] for number in np.flatnonzero(usable == 0)]
    if empty:
        notes.append(f"runs without a usable row, left out: {', '.join(empty)}")
    if unreadable_lines:
        notes.append(f"{unreadable_lines:,} lines of the file could not be split into columns")
    # A stable sort keeps the file order inside each run.
    order = np.argsort(runs, kind="stable")
    bounds = np.searchsorted(runs[order], np.arange(len(run_names) + 1))
    for number in np.flatnonzero(usable):
        rows = order[bounds[number] : bounds[number + 1]]
        run = None if columns.run is None else run_names[number]
        recording, notes_of = _recording(argument, run, table, rows[_usable(table)[rows]])
        rejects = _rejects(table, rows)
        if rejects:
            counts = ", ".join(f"{count:,} with {reason}" for reason, count in rejects.items())
            notes_of.append(f"rows set aside: {counts}")
        yield LoadedRecording(argument, run, recording, columns, time.unit, (*notes, *notes_of), rejects)


def _reasons(table: pa.Table) -> dict[str, NDArray[np.int8]]:
    return {name: _column(table, f"{name}_reason") for name in ("time", "arrival") if name in table.column_names}


def _usable(table: pa.Table) -> NDArray[np.bool_]:
    return np.logical_and.reduce([reason == 0 for reason in _reasons(table).values()])  # type: ignore[no-any-return]


def _rejects(table: pa.Table, rows: NDArray[np.intp]) -> dict[str, int]:
    """How many of these rows were set aside, by reason; a row with two bad columns counts under each."""
    return {
        f"{name} {REASONS[number - 1]}": int(count)
        for name, reason in _reasons(table).items()
        for number, count in enumerate(np.bincount(reason[rows]))
        if number > 0 and count > 0
    }


def _recording(argument: str, run: str | None, table: pa.Table, rows: NDArray[np.intp]) -> tuple[Recording, list[str]]:
    """These rows in order of arrival, and what there is to say about that."""
    notes_of = []
    time: Instants = _column(table, "time")[rows]
    if "arrival" not in table.column_names:
        arrival = np.maximum.accumulate(time)
    else:
        arrival = _column(table, "arrival")[rows]
        unsorted = int(np.count_nonzero(arrival < np.maximum.accumulate(arrival)))
        if unsorted:
            by_arrival = np.argsort(arrival, kind="stable")
            rows, time, arrival = rows[by_arrival], time[by_arrival], arrival[by_arrival]
            notes_of.append(
                f"{unsorted:,} rows were not in order of arrival: sorted by arrival, ties kept in file order"
            )
    source, names = _numbered(table, "source", rows)
    name = Path(argument).name + (f" / {run}" if run is not None else "")
    return Recording(name, time, arrival, source, names), notes_of


def _column(table: pa.Table, name: str) -> NDArray[Any]:
    """A column as NumPy; NULLs, which only rows set aside have, become 0."""
    import pyarrow.compute as pc

    column = table.column(name)
    return (pc.fill_null(column, 0) if column.null_count else column).to_numpy()


def _numbered(
    table: pa.Table, name: str, rows: NDArray[np.intp] | None = None
) -> tuple[NDArray[np.intp], tuple[str, ...]]:
    """Numbers for the names in a column, in order of first sight; one name for all when there is no such column."""
    if name not in table.column_names:
        return np.zeros(table.num_rows if rows is None else len(rows), dtype=np.intp), ("all",)
    column = table.column(name).combine_chunks()
    encoded = (column if rows is None else column.take(rows)).dictionary_encode()
    return encoded.indices.to_numpy().astype(np.intp), tuple(encoded.dictionary.to_pylist())


@dataclass(frozen=True, eq=False)
class Recording:
    """Columns of equal length; `arrival` never decreases; `source` numbers `source_names`, in order of first sight."""

    name: str
    time: Instants
    arrival: Instants
    source: NDArray[np.intp]
    source_names: tuple[str, ...]

    @classmethod
    def of(
        cls, name: str, time: ArrayLike, arrival: ArrayLike, source: Sequence[object] | NDArray[np.generic]
    ) -> Recording:
        """Number the sources and check the columns.

        >>> Recording.of("backwards", [1, 2], [5, 4], ["a", "a"])
        Traceback (most recent call last):
            ...
        eventide.errors.InputError: backwards: row 2 arrives before row 1 (4 < 5): sort the recording by arrival
        """
        times = np.asarray(time, dtype=np.int64)
        arrivals = np.asarray(arrival, dtype=np.int64)
        labels, first, inverse = np.unique(np.asarray(source), return_index=True, return_inverse=True)
        if not len(times) == len(arrivals) == len(inverse):
            raise InputError(f"{name}: columns differ in length: {len(times)}, {len(arrivals)}, {len(inverse)}")
        back = np.flatnonzero(arrivals[1:] < arrivals[:-1])
        if len(back):
            at = int(back[0])
            raise InputError(
                f"{name}: row {at + 2} arrives before row {at + 1} ({arrivals[at + 1]} < {arrivals[at]}): "
                "sort the recording by arrival"
            )
        by_sight = np.argsort(first)
        rank = np.empty_like(by_sight)
        rank[by_sight] = np.arange(len(by_sight))
        names = tuple(str(label) for label in labels[by_sight])
        return cls(name, times, arrivals, rank[inverse].astype(np.intp), names)

    @property
    def rows(self) -> int:
        """How many rows were recorded."""
        return len(self.time)


MOST_STEPS = 3_000
"""Recordings of more rows go in rounds, and in no more rounds than this: a policy takes about a millisecond a round."""

_MILLISECONDS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 30_000)
_MINUTES = (1, 2, 5, 10, 20, 30, 60, 120, 180, 360, 720, 1_440)
LENGTHS = (*(1_000 * length for length in _MILLISECONDS), *(60_000_000 * length for length in _MINUTES))
"""Rounds to choose from, in microseconds: from 1 ms to a day."""

RoundChoice: TypeAlias = Callable[[Recording, bool], int | None]
"""Finds the round length for a recording (and whether its times are plain); None is row at a time."""


def usual_round(recording: Recording, unitless: bool) -> int | None:
    """Row at a time for small recordings; beyond, the shortest rounds that are not too many."""
    if recording.rows <= MOST_STEPS:
        return None
    if unitless:
        # Plain numbers know no second: their range is cut evenly.
        return max(1, int(recording.arrival[-1] - recording.arrival[0]) // MOST_STEPS)
    for length in LENGTHS:
        if np.count_nonzero(np.diff(recording.arrival // length)) < MOST_STEPS:
            return length
    return LENGTHS[-1]


def chosen(text: str | None) -> RoundChoice:
    """What the user asked for: `row`, a length such as `1s`, a whole number for plain numbers, or nothing.

    >>> chosen("5")(Recording.of("in seconds", [1], [1], ["a"]), False)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: a round of 5 has no unit: write 5s, 5ms, ..., or row
    """
    if text is None:
        return usual_round
    if text.strip().lower() == "row":
        return lambda recording, unitless: None
    bare = text.strip().isdecimal()
    length = int(text) if bare else duration(text)
    if length < 1:
        raise DeclarationError(f"a round of {text} has no length: write 1s, 250ms, ..., or row")

    def fixed(recording: Recording, unitless: bool) -> int:
        if bare and not unitless:
            raise DeclarationError(f"a round of {text} has no unit: write {text}s, {text}ms, ..., or row")
        if unitless and not bare:
            raise DeclarationError(f"a round of {text} for plain numbers: write a whole number, or row")
        return length

    return fixed
