"""A lookup as SQL statements: each row with its version, and the versions that can still be asked for."""

from __future__ import annotations

from eventide.plan.bound.join_inputs import LEFT, RIGHT
from eventide.plan.bound.lookup import BoundLookup
from eventide.plan.bound.rows import IDENTITY
from eventide.plan.duckdb.transpile import same_answer
from eventide.plan.expressions.columns import Column, quoted
from eventide.plan.expressions.order_key import order_key
from eventide.plan.sql.join import met_columns, told_order, told_text

PASSED = "__passed"
"""Of a version: whether it holds before any row that can still come, unless a later one does."""


def versions_text(bound: BoundLookup, rows: str, versions: str) -> str:
    """Each row with its version, both with all their columns; rows without a version are left out.

    Versions and rows of a key are put in the order of time; a row takes the latest time before it. So the work grows
    with the rows and the versions of their keys, not with their product.
    """
    equal = " AND ".join(f"l_{key} = r_{key}" for key in bound.keys)
    keys = ", ".join(f"l_{key} AS {key}" for key in bound.keys)
    of_versions = ", ".join(f"r_{key} AS {key}" for key in bound.keys)
    wanted = f"SELECT * FROM {versions} LEFT SEMI JOIN {rows} ON {equal}"
    both = (
        f"SELECT {_identity('l_', '__row')}, l___t AS __at, CAST(NULL AS BIGINT) AS __since, {keys} FROM {rows} "
        f"UNION ALL SELECT {_nobody('__row')}, r___t AS __at, r___t AS __since, {of_versions} FROM ({wanted})"
    )
    # Peers in the order of a window count too, so a version that begins at the time of the row does.
    over = f"OVER (PARTITION BY {', '.join(bound.keys)} ORDER BY __at)"
    numbers = ", ".join(f"__row{column.name}" for column in IDENTITY)
    last = f"SELECT {numbers}, max(__since) {over} AS __last FROM ({both})"
    dated = f"SELECT {numbers}, __last FROM ({last}) WHERE __row{IDENTITY[0].name} IS NOT NULL"
    columns = ", ".join(quoted(c.name) for side in (LEFT, RIGHT) for c in met_columns(bound.joined, side))
    own = ", ".join(f"l_{column.name}" for column in IDENTITY)
    same = " AND ".join(f"l_{column.name} = __row{column.name}" for column in IDENTITY)
    ranked = f"row_number() OVER (PARTITION BY {own} ORDER BY {', '.join(_greatest(bound))}) AS __place"
    found = (
        f"SELECT {columns}, {ranked} FROM {rows} JOIN ({dated}) ON {same} JOIN {versions} ON {equal} AND r___t = __last"
    )
    ended = "" if bound.removed is None else f" AND NOT r_{bound.removed}"
    return f"SELECT {columns} FROM ({found}) WHERE __place = 1{ended}"


def needed_text(bound: BoundLookup, versions: str) -> str:
    """The versions that can still be asked for: those not passed, and of those passed the latest of each key."""
    latest = f"max(CASE WHEN {PASSED} THEN __t END) OVER (PARTITION BY {', '.join(bound.keys)}) AS __last"
    ended = "" if bound.removed is None else f" AND NOT ({PASSED} AND {bound.removed})"
    return f"SELECT * FROM (SELECT *, {latest} FROM {versions}) WHERE (__last IS NULL OR __t >= __last){ended}"


def lookup_exact(bound: BoundLookup) -> bool:
    """Whether DuckDB gives Spark's answer of what a lookup tells."""
    known = (*met_columns(bound.joined, LEFT), *met_columns(bound.joined, RIGHT), Column("__rows", "BIGINT"))
    return same_answer(f"SELECT * FROM ({told_text(bound.joined, 'told')}){told_order(bound.joined)}", known)


def _greatest(bound: BoundLookup) -> list[str]:
    """What orders versions of one time, the one that counts first; those that end a row come last."""
    parts = [] if bound.removed is None else [f"r_{bound.removed}"]
    for column in bound.ports[RIGHT].kept:
        name = quoted(f"r_{column.name}")
        key = order_key(name, column.type)
        if key is not None:
            parts += [f"({name} IS NULL)"] if key[0] != name else []
            parts.append(f"{key[0]} DESC NULLS LAST")
    return [*parts, *(f"r_{column.name}" for column in IDENTITY)]


def _identity(prefix: str, name: str) -> str:
    return ", ".join(f"{prefix}{column.name} AS {name}{column.name}" for column in IDENTITY)


def _nobody(name: str) -> str:
    return ", ".join(f"CAST(NULL AS {column.type}) AS {name}{column.name}" for column in IDENTITY)
