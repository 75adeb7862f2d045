"""Where the state of operators is: with the driver while all of it fits there, on the cluster when it does not.

Laws. The place changes no result. There is one budget of the driver's memory for the whole engine, `driver.memory`.
When the state of all operators is larger, that of the largest goes to the cluster, and of the next one, until the rest
fits; it comes back when it would take a small part of what is free, so that state near the edge does not move to and
fro. With a budget of 0 nothing stays. *Sizes* in words: a number of bytes, or a number and a unit: kB, MB, GB and TB by
the thousand, KiB, MiB, GiB and TiB by 1024, and k, m, g and t by 1024 too, as Spark has them.

>>> memory_bytes("256 MiB"), memory_bytes("1.5GB"), memory_bytes("2g"), memory_bytes(0)
(268435456, 1500000000, 2147483648, 0)
>>> memory_bytes("much")
Traceback (most recent call last):
    ...
eventide.errors.DeclarationError: driver.memory 'much' is no size: write such as '256 MiB', '2 GB', or 0
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from eventide.engine.operators.operator import Operator
from eventide.engine.relations.executor import Executor
from eventide.engine.relations.relation import Relation, place_of
from eventide.engine.relations.segments import Segments
from eventide.errors import DeclarationError

DRIVER_MEMORY = 256 * 1024 * 1024
BACK_BELOW = 16
"""State comes back when it would take less than this part of what is free."""


def place(operator: Operator) -> str:
    """Where the state of an operator is."""
    return place_of(part for kind in operator.state.values() for part in kind.parts)


def beside_state(operator: Operator, rows: Relation, executor: Executor) -> Relation:
    """Rows for an operator, where its state is: of what is on the cluster no copy stays with the driver."""
    if rows.table is None or not rows.rows or place(operator) == "driver":
        return rows
    return executor.persisted(rows).without_table()


def state_bytes(operator: Operator) -> int:
    """How large it is, where it is."""
    return sum(kind.bytes for kind in operator.state.values())


def state_rows(operator: Operator) -> int:
    """The number of rows that an operator keeps."""
    return sum(kind.rows for kind in operator.state.values())


def placed(operators: Mapping[str, Operator], executor: Executor) -> dict[str, Operator]:
    """The same operators, the state of each where it belongs after a round; all of it is in files."""
    found = {name: _saved(operator, executor) for name, operator in operators.items()}
    if not executor.backend.has_cluster:
        return found
    here = {name: state_bytes(operator) for name, operator in found.items() if place(operator) == "driver"}
    for name in sorted(here, key=lambda name: -here[name]):
        if sum(here.values()) <= executor.driver_memory:
            break
        found[name] = _moved(found[name], Relation.without_table)
        del here[name]
    free = executor.driver_memory - sum(here.values())
    for name, operator in found.items():
        size = _memory(operator)
        if name not in here and size and size * BACK_BELOW <= free:
            found[name] = _moved(operator, executor.loaded)
            free -= state_bytes(found[name])
    return found


def _memory(operator: Operator) -> int:
    """How much of the driver's memory its state would take, about: files are packed, memory is not."""
    return sum(
        max(part.bytes, part.rows * kind.layout.row_bytes) for kind in operator.state.values() for part in kind.parts
    )


def _saved(operator: Operator, executor: Executor) -> Operator:
    """With all its state in files: of state on the cluster no copy stays with the driver."""
    on_cluster = place(operator) == "cluster"

    def saved(part: Relation) -> Relation:
        part = executor.persisted(part)
        return part.without_table() if on_cluster and part.table is not None else part

    return _moved(operator, saved)


def _moved(operator: Operator, move: Callable[[Relation], Relation]) -> Operator:
    state = operator.state
    moved = {
        kind: Segments(rows.layout, tuple(part if part.rows == 0 else move(part) for part in rows.parts))
        for kind, rows in state.items()
    }
    same = all(moved[kind].parts == rows.parts for kind, rows in state.items())
    return operator if same else operator.with_state(moved)


UNITS = {letter: 1024**power for power, letter in enumerate("bkmgt")}
SIZE = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?:(?P<letter>[kmgt])(?P<unit>i?b)?|b)?", re.IGNORECASE)


def memory_bytes(given: int | str) -> int:
    """A size as it was given, in bytes."""
    found = SIZE.fullmatch(str(given).strip())
    if found is None:
        raise DeclarationError(f"driver.memory {given!r} is no size: write such as '256 MiB', '2 GB', or 0")
    letter, unit = (found["letter"] or "b").lower(), (found["unit"] or "ib").lower()
    factor = UNITS[letter] if unit == "ib" else 1000 ** "bkmgt".index(letter)
    return int(float(found["number"]) * factor) if "." in found["number"] else int(found["number"]) * factor


def size_words(size: int) -> str:
    """A number of bytes, as people read it.

    >>> size_words(0), size_words(900), size_words(268_435_456), size_words(3_400_000_000)
    ('0 bytes', 'less than 1 KiB', '256 MiB', '3.17 GiB')
    """
    if size < UNITS["k"]:
        return "less than 1 KiB" if size else "0 bytes"
    letter = next(letter for letter in "tgmk" if size >= UNITS[letter])
    return f"{size / UNITS[letter]:.3g} {letter.upper()}iB"


def budget_words(size: int | None) -> str:
    """What a budget means; None where there is no cluster.

    >>> budget_words(0), budget_words(None)
    ('nothing stays with the driver: the state of every operator is on the cluster', 'all state is with this process')
    >>> budget_words(2**28)
    'up to 256 MiB of state stay with the driver, of all operators together; above, the largest goes to the cluster'
    """
    if size is None:
        return "all state is with this process"
    if size == 0:
        return "nothing stays with the driver: the state of every operator is on the cluster"
    return (
        f"up to {size_words(size)} of state stay with the driver, of all operators together; above, the largest goes "
        "to the cluster"
    )


def state_words(name: str, placement: str, rows: int, size: int) -> str:
    """Where the state of an operator is, and how large.

    >>> state_words("speeds", "driver", 1200, 48_000), state_words("pairs", "cluster", 1, 3_400_000_000)
    ('speeds keeps 1,200 rows, 46.9 KiB, with the driver', 'pairs keeps 1 row, 3.17 GiB, on the cluster')
    >>> state_words("speeds", "driver", 0, 0)
    'speeds keeps no rows'
    """
    if not rows:
        return f"{name} keeps no rows"
    where = "on the cluster" if placement == "cluster" else "with the driver"
    return f"{name} keeps {rows:,} row{'' if rows == 1 else 's'}, {size_words(size)}, {where}"
