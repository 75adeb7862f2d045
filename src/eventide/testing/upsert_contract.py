"""What a sink has to keep besides its contract if it shows the newest result of each window and group.

Law: after every round a reader sees, of each key, what a dictionary would hold that took all rows of all rounds one
after the other: an early result gives way to the final one, and that to a revised one. If the engine starts again, the
newest round is taken back, with what it had replaced, and comes again with the same rows, with others or with none.

`check_upserts(make, read)` plays such rounds, made up from a seed, and compares with the dictionary after each.
`make()` opens the sink at one and the same empty place; `read(query)` gives what a reader sees there, as dictionaries.

>>> from eventide.sinks.sink import Memory
>>> memory = Memory()
>>> check_upserts(make=lambda: memory, read=memory.rows)  # doctest: +ELLIPSIS
Traceback (most recent call last):
    ...
AssertionError: the newest result of each key is there: after round ... (seed 0) there should be ...
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TypeAlias

import pyarrow as pa

from eventide.results.results import Results
from eventide.testing.sink_contract import MINUTE, SCHEMA, Make, Read

QUERY = "upserts"
KEY = ("window_start", "window_end", "device")
DEVICES = ("a", "b", "c", None)
WINDOWS = range(3)

Shown: TypeAlias = dict[tuple[int, str | None], tuple[int, str, int]]
"""By window and device: the round, the kind and the total."""
Rows: TypeAlias = list[tuple[int, str | None, str, int]]
"""Window, device, kind and total."""


def check_upserts(make: Make, read: Read, seed: int = 0, rounds: int = 12) -> None:
    """Play rounds of a seed, with restarts among them; raise where a reader would see something else."""
    choices = random.Random(seed)
    sink = make()
    sink.rewind(QUERY, -1)
    shown: Shown = {}
    for round in range(rounds):
        before = shown
        shown = _emitted(sink, round, _made_up(choices), before)
        _must_show(read, shown, f"after round {round} (seed {seed})")
        while choices.random() < 0.4:
            sink.close()
            sink = make()
            sink.rewind(QUERY, round - 1)
            shown = _emitted(sink, round, _made_up(choices), before)
            _must_show(read, shown, f"after round {round} came again (seed {seed})")
    sink.close()


def upserted(round: int, rows: Rows, query: str = QUERY) -> Results:
    """Results of a round, each with its window and device as its key.

    >>> upserted(3, [(0, "a", "early", 7)]).table().select(["round", "device", "total"]).to_pylist()
    [{'round': 3, 'device': 'a', 'total': 7}]
    """
    size = len(rows)
    starts = [window * MINUTE for window, *_ in rows]
    columns: list[list[Any]] = [
        [query] * size,
        [kind for _, _, kind, _ in rows],
        starts,
        [start + MINUTE for start in starts],
        [round] * size,
        [window for window, *_ in rows],
        [MINUTE] * size,
        [device for _, device, *_ in rows],
        [total for *_, total in rows],
    ]
    table = pa.table([pa.array(column, type) for column, type in zip(columns, SCHEMA.types, strict=True)], SCHEMA)
    return replace(Results.of_table(query, round, table), key=KEY)


def _made_up(choices: random.Random) -> Rows:
    kinds = ("early", "final", "revised", "changed")
    return [
        (choices.choice(WINDOWS), choices.choice(DEVICES), choices.choice(kinds), choices.randrange(100))
        for _ in range(choices.randrange(6))
    ]


def _emitted(sink: Any, round: int, rows: Rows, before: Shown) -> Shown:
    sink.emit(upserted(round, rows))
    return {**before, **{(window, device): (round, kind, total) for window, device, kind, total in rows}}


def _must_show(read: Read, shown: Shown, when: str) -> None:
    found = sorted(_comparable(read(QUERY)), key=repr)
    wanted = sorted(((*key, *row) for key, row in shown.items()), key=repr)
    if found != wanted:
        raise AssertionError(
            f"the newest result of each key is there: {when} there should be {wanted}, and there is {found}"
        )


def _comparable(rows: Iterable[Any]) -> list[tuple[Any, ...]]:
    return [(int(r["rows"]), r["device"], int(r["round"]), str(r["kind"]), int(r["total"])) for r in rows]
