"""The prods that came with the rows of a round, and the early rows that they ask for.

Laws. Prods are answered when the rows of their round are taken and its windows closed: they overtake nothing. A row is
emitted once, however many prods of the round ask for it: it is emitted if its window ends up to the time of one whose
pattern its groups have. Of more than `MOST` patterns in a round, one prod up to the latest time, for every group, takes
the place. A round run again finds the same prods in the same rows. (Prodding thesis, sections 3.1 and 3.2.)

>>> asked = pa.table({"sensor": pa.array([1, None], pa.int32()), UP_TO: [99, 49]})
>>> early = pa.table({"window_end": [50, 100, 50, 100], "sensor": pa.array([1, 1, 2, 2], pa.int32())})
>>> asked_for(early, asked).tolist()
[True, True, True, False]
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eventide.engine.round.reduce import Reduction
from eventide.eventtime.instant import NEVER
from eventide.plan.declared.stream import Stream, Timestamps
from eventide.plan.sql.stream_rows import MOST, ProdTarget, asked_by, patterns_portable, prods_text
from eventide.results.breakdown import numbered

if TYPE_CHECKING:
    from eventide.engine.round.engine import Engine

log = logging.getLogger(__name__)

UP_TO = "__hi"


@dataclass(frozen=True)
class ProdRows:
    """The rows of one stream that are prods: those that it marks, or all others, for queries that take them so."""

    stream: Stream
    asked: tuple[ProdTarget, ...]
    marked: bool

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the stream that name a group of some query."""
        return tuple(dict.fromkeys(column for one in self.asked for column in one.columns.values()))

    def collected(self, engine: Engine, clock: int) -> tuple[pa.Table, int]:
        """The distinct patterns of a round's prods, each with the time up to which it asks, and the number of prods."""
        columns = self.columns
        answer = self._ask(engine, columns)
        found = _latest(answer.drop_columns(["__n"]).rename_columns([*columns, UP_TO]), columns)
        if found.num_rows > MOST:
            log.warning(
                "stream %r has more than %d different prods in a round: every group is asked",
                self.stream.name,
                MOST,
                extra={"event": "too many prods"},
            )
            answer = self._ask(engine, ())
            found = _latest(answer.drop_columns(["__n"]), ())
            for name in columns:
                found = found.append_column(name, pa.nulls(found.num_rows))
        if self.stream.timestamps is not Timestamps.EXTERNAL:
            # Such rows have the clock of their round for a time.
            place = found.schema.get_field_index(UP_TO)
            found = found.set_column(place, UP_TO, pa.array(np.full(found.num_rows, clock, dtype=np.int64)))
        return found, int(pc.sum(answer.column("__n")).as_py() or 0)

    def _ask(self, engine: Engine, columns: tuple[str, ...]) -> pa.Table:
        text = prods_text(self.stream, columns, self.marked)
        return engine.backend.reduce(self.stream, text, patterns_portable(self.stream, columns))


class StreamProds:
    """Finds the prods among the rows of a round, for the queries of an engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._kinds: tuple[ProdRows, ...] = ()

    def begin(self) -> None:
        """See which streams have prods, and for whom: queries may have come or gone."""
        found = []
        for stream in self._engine.program.streams:
            for marked in (True, False) if stream.prods is not None else (False,):
                asked = asked_by(self._engine.program, stream, marked)
                asked = tuple(one for one in asked if not marked or self._has_results(one.query))
                found += [ProdRows(stream, asked, marked)] if asked else []
        self._kinds = tuple(found)

    def _has_results(self, query: str) -> bool:
        """Whether someone sees the results of a query: prods of a stream are for what comes out in the end."""
        return query in self._engine.sinks or not self._engine.program.readers(query)

    def of(self, reductions: Mapping[str, Reduction], clock: int, ending: bool) -> dict[str, pa.Table]:
        """For each query that is asked: the patterns of its groups (a group that is not there is any), with `UP_TO`."""
        found: dict[str, list[pa.Table]] = {}
        for kind in self._kinds:
            reduction = reductions.get(kind.stream.name)
            if reduction is None or ending or not (kind.marked or reduction.cells.rows):
                continue
            time = self._engine.streams[kind.stream.name]
            prods, count = kind.collected(self._engine, time.moment_of(clock))
            if prods.num_rows == 0:
                continue
            time.losses.prods += count if kind.marked else 0
            for one in kind.asked:
                found.setdefault(one.query, []).append(_latest(_for_groups(prods, one), tuple(one.columns)))
        return {query: pa.concat_tables(parts, promote_options="permissive") for query, parts in found.items()}


def widest(prods: pa.Table) -> int:
    """The latest time up to which prods ask."""
    latest: int = pc.max(prods.column(UP_TO)).as_py()
    return latest


def asked_for(early: pa.Table, prods: pa.Table, by_time: bool = True) -> NDArray[np.bool_]:
    """Which early rows prods ask for; `by_time` is False where windows are over counts of rows, which have no times."""
    lasts = early.column("window_end").cast(pa.int64()).to_numpy() - 1
    found = np.zeros(early.num_rows, dtype=np.bool_)
    groups = [name for name in prods.column_names if name != UP_TO]
    named = np.zeros((prods.num_rows, len(groups)), dtype=np.bool_)
    for place, name in enumerate(groups):
        named[:, place] = pc.is_valid(prods.column(name)).to_numpy()
    for shape in np.unique(named, axis=0):
        alike = prods.filter(pa.array((named == shape).all(axis=1)))
        columns = [name for name, is_named in zip(groups, shape, strict=True) if is_named]
        numbers, patterns = numbered([_widened(early, columns), _widened(alike, columns)], columns)
        up_to = np.full(max(numbers.max(initial=0), patterns.max(initial=0)) + 1, NEVER, dtype=np.int64)
        np.maximum.at(up_to, patterns, alike.column(UP_TO).to_numpy())
        asked = up_to[numbers]
        found |= (lasts <= asked) if by_time else (asked > NEVER)
    return found


def _widened(table: pa.Table, columns: list[str]) -> pa.Table:
    """The columns with all whole numbers as wide as they can be: a prod may name one that no group can have."""
    found = table.select(columns)
    for place, field in enumerate(found.schema):
        if pa.types.is_integer(field.type):
            found = found.set_column(place, field.name, found.column(place).cast(pa.int64()))
    # Without columns, Arrow forgets how many rows there are.
    return found if columns else table.select([table.column_names[0]])


def _for_groups(prods: pa.Table, asked: ProdTarget) -> pa.Table:
    """The patterns as they are for the groups of one query."""
    columns = {group: prods.column(column) for group, column in asked.columns.items()}
    return pa.table({**columns, UP_TO: prods.column(UP_TO)})


def _latest(prods: pa.Table, columns: tuple[str, ...]) -> pa.Table:
    """Each pattern once, with the latest of its times."""
    if prods.num_rows == 0:
        return prods
    [numbers] = numbered([prods], list(columns))
    _, first, line = np.unique(numbers, return_index=True, return_inverse=True)
    up_to = np.full(len(first), NEVER, dtype=np.int64)
    np.maximum.at(up_to, line, prods.column(UP_TO).to_numpy())
    found = prods.take(pa.array(first)).drop_columns([UP_TO])
    return found.append_column(UP_TO, pa.array(up_to)) if columns else pa.table({UP_TO: up_to})
