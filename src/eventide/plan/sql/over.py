"""Statements of window functions: rows that are ready, beside earlier ones of their groups as far as frames reach.

Laws. *Whole groups*: `ready` holds all rows of each group that it has rows of. *In time order*: rows get numbers in
their group, by time, then by what simultaneous rows are ordered by, then by all their values; numbers go on from the
largest one of the `past`, the rows that are kept. What a frame sees follows from numbers and times alone. Of frames
that begin at the first row, the row of the largest number carries the merge of all up to it, and stands for them.

The `span` has one row: rows that are ready are those from `__first` up to `__last`, and those that were `held` before.
Rows up to `__known` are far enough back for what frames see after them; all are, when everything is over (`__over`).
"""

from __future__ import annotations

from eventide.plan.bound.frames import LAST, NO, FrameColumn
from eventide.plan.bound.over import BoundOver
from eventide.plan.declared.over import Frame
from eventide.plan.declared.query import OrderBy
from eventide.plan.expressions.columns import Column, literal, quoted
from eventide.plan.sql.merge import ordered_words

EMITTABLE, NEW, BEFORE = "__emittable", "__new", "__before"
START = "__start"


def carry_columns(bound: BoundOver) -> tuple[Column, ...]:
    """What the last row of a group carries of all before it."""
    carried = [frame.column for frame in bound.frames if frame.carried]
    return tuple(Column(f"__c{place}", column.type) for place, column in enumerate(carried))


def past_columns(bound: BoundOver) -> tuple[Column, ...]:
    """What is kept of a row that was emitted."""
    return (Column("__t", "BIGINT"), *bound.inner, Column(NO, "BIGINT"), *carry_columns(bound))


def computed_columns(bound: BoundOver) -> tuple[Column, ...]:
    """What is known of a row that is ready, once its functions are computed."""
    own = (Column("__t", "BIGINT"), Column(START, "BIGINT"), *bound.stored)
    numbers = (Column(NO, "BIGINT"), Column(LAST, "BIGINT"))
    return (*own, *numbers, *(frame.column for frame in bound.frames), *carry_columns(bound), Column(EMITTABLE, "INT"))


def inner_columns(bound: BoundOver) -> tuple[Column, ...]:
    """Columns that the statements make and use themselves."""
    made = (Column(NEW, "INT"), Column(BEFORE, "BIGINT"), *computed_columns(bound))
    return (*made, *(Column(_carried(frame), frame.column.type) for frame in bound.frames if frame.carried))


def whole_text(bound: BoundOver) -> str:
    """The output of rows that are ready, where their groups are all there."""
    ready = "SELECT ready.* FROM ready CROSS JOIN span WHERE ready.__t >= span.__first AND ready.__t <= span.__last"
    frames = [f"{_window(bound, frame, frame.source)} AS {frame.column.name}" for frame in bound.frames]
    return output_text(bound, f"(SELECT *, {', '.join(frames)} FROM ({ready}))")


def output_text(bound: BoundOver, computed: str) -> str:
    """Rows with their values, as output."""
    columns = [f"{START} AS window_start", "__t + 1 AS window_end", "CAST(1 AS BIGINT) AS `rows`"]
    columns += [quoted(column.name) for column in bound.shown]
    columns += [f"{value.sql} AS {quoted(value.name)}" for value in bound.values]
    failing = [f"CASE WHEN NOT ({condition}) THEN {literal(reason)} END" for condition, reason in bound.checks]
    lost = f"NULLIF(concat_ws('; ', {', '.join(failing)}), '')" if failing else "CAST(NULL AS STRING)"
    return f"SELECT {', '.join([*columns, f'{lost} AS __lost'])} FROM {computed}"


def computed_text(bound: BoundOver) -> str:
    """The rows that are ready, with what every function says of each, and whether it can be emitted."""
    groups = ", ".join(bound.groups)
    every = f"(SELECT * FROM ({_numbered(bound)}) UNION ALL {_earlier(bound)})"
    by = f"OVER (PARTITION BY {groups})"
    placed = f"max({NO}) {by} AS {LAST}, max(CASE WHEN {NEW} = 0 THEN {NO} END) {by} AS {BEFORE}"
    every = f"(SELECT *, {placed} FROM {every})"
    carried = [frame for frame in bound.frames if frame.carried]
    if carried:
        sums = [_merged_so_far(frame, place) for place, frame in enumerate(carried)]
        every = f"(SELECT *, {', '.join(sums)} FROM {every})"
    values = [f"{_window(bound, frame, _source(frame))} AS {frame.column.name}" for frame in bound.frames]
    so_far = [_window(bound, _from_the_first(frame), _source(frame)) for frame in carried]
    values += [f"{sql} AS __d{place}" for place, sql in enumerate(so_far)]
    framed = f"SELECT {', '.join(['*', *values])} FROM {every}"
    shown = [*_stored(bound), NO, LAST, *(frame.column.name for frame in bound.frames)]
    shown += [f"__d{place} AS __c{place}" for place in range(len(carried))]
    return f"SELECT {', '.join([*shown, _emittable(bound)])} FROM ({framed}) CROSS JOIN span WHERE {NEW} = 1"


def _stored(bound: BoundOver) -> list[str]:
    return ["__t", START, *(quoted(column.name) for column in bound.stored)]


def _ready(bound: BoundOver) -> str:
    """The rows that time has passed since the last time, and those that were held."""
    new = f"SELECT {', '.join(f'new.{name}' for name in _stored(bound))} FROM new CROSS JOIN span"
    new = f"{new} WHERE new.__t >= span.__first AND new.__t <= span.__last"
    return f"({new} UNION ALL SELECT {', '.join(_stored(bound))} FROM held)" if bound.reach.waits else f"({new})"


def _past(bound: BoundOver) -> str:
    """The rows that are kept of the groups of those that are ready."""
    wanted = f"(SELECT DISTINCT {', '.join(bound.groups)} FROM {_ready(bound)})"
    same = " AND ".join(f"past.{name} <=> r.{name}" for name in bound.groups)
    return f"(SELECT past.* FROM past LEFT SEMI JOIN {wanted} r ON {same})"


def _numbered(bound: BoundOver) -> str:
    """The rows that are ready, with their numbers; they carry nothing yet."""
    named = ", ".join(f"{name} AS _{name}" for name in bound.groups)
    last = f"(SELECT {named}, max({NO}) AS {BEFORE} FROM {_past(bound)} GROUP BY {', '.join(bound.groups)})"
    same = " AND ".join(f"r.{name} <=> l._{name}" for name in bound.groups)
    mine = ", ".join(f"r.{name}" for name in bound.groups)
    place = f"row_number() OVER (PARTITION BY {mine} ORDER BY {_total(bound)})"
    columns = [f"r.{name}" for name in _stored(bound)]
    columns.append(f"CAST(coalesce(l.{BEFORE}, 0) + {place} AS BIGINT) AS {NO}")
    columns += [f"CAST(NULL AS {column.type}) AS {column.name}" for column in carry_columns(bound)]
    return f"SELECT {', '.join(columns)}, 1 AS {NEW} FROM {_ready(bound)} r LEFT JOIN {last} l ON {same}"


def _earlier(bound: BoundOver) -> str:
    """The rows that are kept, with the columns of those that are ready."""
    columns = ["__t", f"CAST(NULL AS BIGINT) AS {START}"]
    columns += [f"CAST(NULL AS {column.type}) AS {quoted(column.name)}" for column in bound.shown]
    columns += [column.name for column in past_columns(bound)[1:]]
    return f"SELECT {', '.join(columns)}, 0 AS {NEW} FROM {_past(bound)}"


def past_text(bound: BoundOver) -> str:
    """What is kept of rows that were `computed` and emitted."""
    columns = ", ".join(column.name for column in past_columns(bound))
    return f"SELECT {columns} FROM computed CROSS JOIN span WHERE {EMITTABLE} = 1 AND ({_reached(bound)})"


def pruned_text(bound: BoundOver) -> str:
    """Of the rows that are kept, those that later frames can still reach."""
    columns = ", ".join(column.name for column in past_columns(bound))
    last = f"max({NO}) OVER (PARTITION BY {', '.join(bound.groups)}) AS {LAST}"
    return f"SELECT {columns} FROM (SELECT past.*, {last} FROM past) CROSS JOIN span WHERE {_reached(bound)}"


def held_text(bound: BoundOver) -> str:
    """The rows that were `computed` and wait for later ones."""
    return f"SELECT {', '.join(_stored(bound))} FROM computed WHERE {EMITTABLE} = 0"


def _reached(bound: BoundOver) -> str:
    reach = bound.reach
    near = [f"{LAST} - {NO} < {reach.rows + reach.ahead_rows}"] if reach.rows else []
    near += ["__t >= span.__since"] if reach.time else []
    return " OR ".join(near)


def _emittable(bound: BoundOver) -> str:
    """Whether a row has all the rows after it that its frames look at."""
    reach = bound.reach
    enough = [f"{LAST} - {NO} >= {reach.ahead_rows}"] if reach.ahead_rows else []
    enough += ["__t <= span.__known"] if reach.ahead_time else []
    if not enough:
        return f"1 AS {EMITTABLE}"
    return f"CASE WHEN span.__over = 1 OR ({' AND '.join(enough)}) THEN 1 ELSE 0 END AS {EMITTABLE}"


def _carried(frame: FrameColumn) -> str:
    """The column that a frame from the first row merges: of earlier rows, what the last of them carries."""
    return f"__y{frame.column.name}"


def _source(frame: FrameColumn) -> str:
    return _carried(frame) if frame.carried else frame.source


def _merged_so_far(frame: FrameColumn, place: int) -> str:
    value = f"CASE WHEN {NEW} = 1 THEN {frame.source} WHEN {NO} = {BEFORE} THEN __c{place} END"
    return f"{value} AS {_carried(frame)}"


def _from_the_first(frame: FrameColumn) -> FrameColumn:
    """The same, up to the row itself and no further."""
    return FrameColumn(frame.column, frame.call, Frame(True, None, 0), NO)


def _window(bound: BoundOver, frame: FrameColumn, source: str) -> str:
    """The function with its OVER (..)."""
    groups = [*bound.groups, *(["__t"] if frame.simultaneous else [])]
    order = [frame.along] if frame.along else [part for column, one in frame.order for part in _words(column, one)]
    order += _ties(bound) if frame.total else []
    parts = [f"PARTITION BY {', '.join(groups)}"]
    parts += [f"ORDER BY {', '.join(order)}"] if order else []
    parts += [frame_words(frame.frame)] if frame.frame is not None else []
    return frame.call.format(source=source, over=f"OVER ({' '.join(parts)})")


def _total(bound: BoundOver) -> str:
    """Time, what simultaneous rows are ordered by, and all values."""
    return ", ".join(["__t", *(part for column, one in bound.order for part in _words(column, one)), *_ties(bound)])


def _ties(bound: BoundOver) -> list[str]:
    return [part for column in bound.stored for part in _words(column, OrderBy(column.name))]


def _words(column: Column, one: OrderBy) -> list[str]:
    return ordered_words(quoted(column.name), column.type, one)


def frame_words(frame: Frame) -> str:
    """A frame as SQL writes it.

    >>> frame_words(Frame(True, None, 0)), frame_words(Frame(False, 5, -1))
    ('ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW', 'RANGE BETWEEN 5 PRECEDING AND 1 PRECEDING')
    """
    back = "UNBOUNDED PRECEDING" if frame.back is None else _edge_words(-frame.back)
    ahead = "UNBOUNDED FOLLOWING" if frame.ahead is None else _edge_words(frame.ahead)
    return f"{'ROWS' if frame.rows else 'RANGE'} BETWEEN {back} AND {ahead}"


def _edge_words(edge: int) -> str:
    if edge == 0:
        return "CURRENT ROW"
    return f"{abs(edge)} {'FOLLOWING' if edge > 0 else 'PRECEDING'}"
