"""Sessions by SQL: rows become stretches, stretches of a group that meet become sessions, sessions become results.

Laws. A slice of a query over sessions is a *stretch*: the rows of a group, some or all, that are one session among
themselves, from `__pane`, the first time, up to `__until`, the last end of a row. Stretches of a group that meet or
touch are one session, whatever rounds, tasks and files they lie in; merging some of them before others changes nothing.
A query that keeps rows has a stretch for each of them.

How stretches that meet are found: in the order of their beginnings, a session begins with each that none of those
before it reaches. Both steps are window functions over the stretches of a group, so a group is worked on in one place.
"""

from __future__ import annotations

from collections.abc import Sequence

from eventide.plan.bound.query import BoundQuery
from eventide.plan.bound.rows import UNTIL, partial_inputs, slice_columns
from eventide.plan.bound.session_gap import until_sql
from eventide.plan.declared.window import SessionWindow
from eventide.plan.expressions.columns import quoted
from eventide.plan.sql.merge import compact_text, group_text, result_text

FEW_STRETCHES = 1024
"""Rows without groups are cut at every so many gaps, so that their stretches are found side by side."""

MOST_SHOWN = 10_000
"""Of the sessions that are open, whoever asks learns of so many, those that end first."""

LIVE, RETAINED = "live", "retained"
"""Stretches that are open, and those of sessions that were emitted and may be retained."""

BEFORE, UP_TO, GONE, DONE = "__before", "__up_to", "__gone", "__done"
"""In the table `edge`: sessions that end by `__before` were emitted before, by `__up_to` they are now; those that end
by `__gone` were not retained any more when the round began, by `__done` they are not when it is over."""


def keys_of(query: BoundQuery) -> list[str]:
    """The names of the groups in a slice."""
    return [f"__k{j}" for j in range(len(query.keys))]


def joined_text(rows: str, keys: Sequence[str], also: Sequence[str] = ()) -> str:
    """Rows with `__pane` and `__until`, and beside them the `__start` and `__end` of their session.

    `also` are columns of 0 and 1: `__any` and its name tells whether any stretch of the session has a 1 there.
    """
    of = f"OVER (PARTITION BY {', '.join([*keys, '__session'])})"
    spans = [f"min(__pane) {of} AS __start", f"max(__until) {of} AS __end"]
    spans += [f"max({name}) {of} AS __any{name}" for name in also]
    return f"SELECT *, {', '.join(spans)} FROM ({_numbered_text(rows, keys)})"


def _numbered_text(rows: str, keys: Sequence[str]) -> str:
    """Rows with the number of their `__session` in their group."""
    # Without groups by what is the same for all: Spark warns of a window that has no partition.
    within = f"PARTITION BY {', '.join(keys or ['__pane IS NULL'])} "
    before = f"OVER ({within}ORDER BY __pane ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    reached = f"SELECT *, max(__until) {before} AS __reach FROM {rows}"
    # Stretches that begin together are peers: whichever comes first among them, all are of one session.
    begins = "sum(CASE WHEN __pane <= __reach THEN 0 ELSE 1 END)"
    return f"SELECT *, {begins} OVER ({within}ORDER BY __pane) AS __session FROM ({reached})"


def until_text(query: BoundQuery) -> str:
    """When the session of a row is over if no other row comes."""
    window = query.query.window
    assert isinstance(window, SessionWindow)
    return until_sql(window, query.stream.time_kind)


def stretches_text(query: BoundQuery, timed_rows: str, wanted: str | None) -> str:
    """The stretches of a round's rows, one for each group and session; `timed_rows` opens with the table `timed`."""
    keys, window = keys_of(query), query.query.window
    assert isinstance(window, SessionWindow)
    named = [f"{key.sql} AS __k{j}" for j, key in enumerate(query.keys)]
    spans = ["__t AS __pane", f"{until_text(query)} AS __until"]
    where = f"__t IS NOT NULL{'' if wanted is None else f' AND {wanted}'}"
    rows = f"SELECT {', '.join([*spans, *named, *map(quoted, partial_inputs(query)), '__t'])} FROM timed WHERE {where}"
    apart = list(keys)
    if not keys and window.by is None and not window.endless:
        rows = f"SELECT *, __pane - pmod(__pane, {window.gap * FEW_STRETCHES}) AS __part FROM ({rows})"
        apart = ["__part"]
    partials = [f"{partial.reduce} AS {partial.name}" for partial in query.partials]
    spans = ["min(__pane) AS __pane", "max(__until) AS __until"]
    kept = [*spans, *keys, "CAST(count(*) AS BIGINT) AS __n", *partials]
    # Rows that all end together are one stretch of their group: they need no order.
    numbered = rows if window.endless else _numbered_text(f"({rows})", apart)
    grouped = ", ".join([*apart, "__until" if window.endless else "__session"])
    return f"{timed_rows} SELECT {', '.join(kept)} FROM ({numbered}) GROUP BY {grouped}"


def open_text(query: BoundQuery) -> str:
    """The stretches of sessions that end after `__up_to`, one for each where partials are kept."""
    return _kept(query, f"__end > {UP_TO}")


def retained_text(query: BoundQuery) -> str:
    """The stretches of sessions that were emitted by now, and are retained."""
    return _kept(query, f"__end <= {UP_TO} AND __end > {DONE}")


def final_text(query: BoundQuery) -> str:
    """Results of the sessions that end by `__up_to` and were not emitted before."""
    return _results(query, f"__end <= {UP_TO} AND __end > {BEFORE}" + (_FRESH if query.query.retain else ""))


def revised_text(query: BoundQuery) -> str:
    """Results of sessions that late rows have made, or made longer, within the time that was emitted before."""
    return _results(query, f"__end <= {BEFORE} AND __end > {GONE}{_FRESH}")


def withdrawn_text(query: BoundQuery) -> str:
    """Sessions that were emitted and are now part of a longer one: rows without values, of no rows."""
    keys = keys_of(query)
    gone = "__fresh = 0 AND __any__fresh = 1 AND (__first <> __start OR __last <> __end)"
    spans = f"SELECT DISTINCT {', '.join(['__first', '__last', *keys])} FROM ({_sessions(query)}) WHERE {gone}"
    shown = ["__first AS window_start", "__last AS window_end", "CAST(0 AS BIGINT) AS rows"]
    shown += [f"{group_text(f'__k{j}', key.type)} AS {quoted(key.name)}" for j, key in enumerate(query.keys)]
    values = query.outputs[len(keys) :]
    shown += [f"CAST(NULL AS {column.type}) AS {quoted(column.name)}" for column in values]
    return f"SELECT {', '.join(shown)}, CAST(NULL AS STRING) AS __lost FROM ({spans})"


def early_text(query: BoundQuery) -> str:
    """Results of the sessions that have no final answer yet, as they are now."""
    return _results(query, f"__end > {BEFORE}" + (_FRESH if query.query.retain else ""))


def changed_text(query: BoundQuery) -> str:
    """Results of the last open session of each group that is in `fresh` (stretches), or in `ended` (results)."""
    keys = keys_of(query)
    live = LIVE
    if keys:
        ended = ", ".join(f"{quoted(key.name)} AS {name}" for name, key in zip(keys, query.keys, strict=True))
        touched = f"SELECT {', '.join(keys)} FROM fresh UNION SELECT {ended} FROM ended"
        same = " AND ".join(f"live.{key} <=> touched.{key}" for key in keys)
        live = f"(SELECT live.* FROM {LIVE} LEFT SEMI JOIN ({touched}) touched ON {same})"
    of = f"OVER (PARTITION BY {', '.join(keys or ['__pane IS NULL'])})"
    sessions = f"SELECT *, max(__end) {of} AS __latest FROM ({joined_text(live, keys)})"
    return result_text(query, f"SELECT * FROM ({sessions}) WHERE __end = __latest", ["__start", "__end", *keys])


_FRESH = " AND __any__fresh = 1"


def _sessions(query: BoundQuery) -> str:
    """All stretches with their sessions, and the edges; those that were emitted have `__fresh` 0, in their own span.

    Of a session that was emitted every stretch has that session's own span in `__first` and `__last`.
    """
    keys = keys_of(query)
    if not query.query.retain:
        return f"SELECT * FROM ({joined_text(LIVE, keys)}) CROSS JOIN edge"
    names = _names(query)
    retained = f"SELECT {names}, 0 AS __fresh, __start AS __first, __end AS __last FROM ({_retained_rows(query)})"
    live = f"SELECT {names}, 1 AS __fresh, __pane AS __first, __until AS __last FROM {LIVE}"
    return f"SELECT * FROM ({joined_text(f'({live} UNION ALL {retained})', keys, ['__fresh'])}) CROSS JOIN edge"


def _retained_rows(query: BoundQuery) -> str:
    """The stretches of sessions that were emitted and are retained, with their sessions."""
    sessions = f"SELECT * FROM ({joined_text(RETAINED, keys_of(query))}) sessions CROSS JOIN edge"
    return f"SELECT * FROM ({sessions}) WHERE __end > {GONE}"


def _results(query: BoundQuery, condition: str) -> str:
    found = f"SELECT * FROM ({_sessions(query)}) WHERE {condition}"
    return result_text(query, found, ["__start", "__end", *keys_of(query)])


def _kept(query: BoundQuery, condition: str) -> str:
    found = f"SELECT * FROM ({_sessions(query)}) WHERE {condition}"
    return f"SELECT {_names(query)} FROM ({found})" if query.keeps_rows else _merged(query, found)


def compacted_text(query: BoundQuery, stretches: str) -> str:
    """The same stretches of partials, those of a session merged to one."""
    return _merged(query, joined_text(stretches, keys_of(query)))


def _names(query: BoundQuery) -> str:
    return ", ".join(quoted(column.name) for column in slice_columns(query))


def _merged(query: BoundQuery, joined: str) -> str:
    """One stretch for each session, of stretches with their sessions."""
    spans = ("__pane", UNTIL.name)
    own = [quoted(column.name) for column in slice_columns(query) if column.name not in spans]
    whole = f"(SELECT {', '.join(own)}, __start AS __pane, __end AS {UNTIL.name} FROM ({joined}))"
    return f"SELECT {_names(query)} FROM ({compact_text(query, whole, UNTIL.name)})"


def cut_text(query: BoundQuery) -> str:
    """Where to stop so that about `__most` sessions are emitted, the first to end; NULL where there are not so many."""
    closing = f"__end <= {UP_TO} AND __end > {BEFORE}"
    spans = ", ".join(["__start", "__end", UP_TO, *keys_of(query)])
    ends = f"SELECT DISTINCT {spans} FROM ({_sessions(query)}) WHERE {closing}"
    placed = f"SELECT __end, row_number() OVER (PARTITION BY {UP_TO} ORDER BY __end) AS __place FROM ({ends})"
    return f"SELECT min(__end) AS cut FROM ({placed}) placed CROSS JOIN edge WHERE __place >= edge.__most"


def judged_text(query: BoundQuery) -> str:
    """The sessions of rows of a round (`found`) that are late or revise: their groups, spans, and how many rows.

    `__late` is 1 where a session was answered and is not retained, so that the rows are late; else they revise it.
    """
    keys, retain = keys_of(query), query.query.retain
    spans = ["__pane", UNTIL.name, *keys]
    new = f"SELECT {', '.join([*spans, '1' if query.keeps_rows else '__n'])} AS __rows, 0 AS __retained FROM found"
    old = f"SELECT {', '.join(f'live.{name}' for name in spans)}, 0 AS __rows, 0 AS __retained FROM {LIVE}"
    if keys and not retain:
        # All other groups have only rows whose sessions are open whatever they meet.
        behind = f"WHERE found.{UNTIL.name} <= edge.{GONE}"
        suspects = f"SELECT DISTINCT {', '.join(keys)} FROM found CROSS JOIN edge {behind}"
        same = " AND ".join(f"live.{key} <=> suspects.{key}" for key in keys)
        old += f" LEFT SEMI JOIN ({suspects}) suspects ON {same}"
    both = f"{new} UNION ALL {old}"
    if retain:
        both += f" UNION ALL SELECT {', '.join(spans)}, 0 AS __rows, 1 AS __retained FROM ({_retained_rows(query)})"
    joined = f"SELECT * FROM ({joined_text(f'({both})', keys, ['__retained'])}) sessions CROSS JOIN edge"
    answered = f"__end <= {BEFORE} OR __any__retained = 1" if retain else f"__end <= {GONE}"
    late = f"CAST(CASE WHEN __end <= {GONE} THEN 1 ELSE 0 END AS BIGINT) AS __late"
    shown = [*keys, "__start AS __first", "__end AS __last", late, "CAST(sum(__rows) AS BIGINT) AS __rows"]
    grouped = ", ".join([*keys, "__start", "__end", GONE])
    return f"SELECT {', '.join(shown)} FROM ({joined}) WHERE __rows > 0 AND ({answered}) GROUP BY {grouped}"


def within_late(query: BoundQuery, rows: str, time: str) -> str:
    """The condition under which a row lies in one of the sessions of the table `late_sessions`."""
    same = [f"{rows}.{key} <=> late_sessions.{key}" for key in keys_of(query)]
    within = [f"{rows}.{time} >= late_sessions.__first", f"{rows}.{time} <= late_sessions.__last"]
    return " AND ".join([*same, *within])


def in_time_text(query: BoundQuery) -> str:
    """The stretches of a round that are in none of the `late_sessions`."""
    return f"SELECT found.* FROM found LEFT ANTI JOIN late_sessions ON {within_late(query, 'found', '__pane')}"


def spans_text(keys: Sequence[str], stretches: str) -> str:
    """The spans of the sessions that end first, those that end first before others."""
    spans = f"SELECT DISTINCT {', '.join([*keys, '__start', '__end'])} FROM ({joined_text(stretches, keys)})"
    return f"SELECT __start, __end FROM ({spans}) ORDER BY __end, __start LIMIT {MOST_SHOWN}"
