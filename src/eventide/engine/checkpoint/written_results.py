"""Which rounds have written results into a directory, so that a file that somebody removed is noticed.

Law: rounds are noted with the commit that makes them happen, as stretches, the last hundred of them; a run that gives
results in every round is one. What was found missing is reported once, and not expected any more.

>>> seen = {}
>>> for round in (3, 4, 5, 8):
...     seen = noted(seen, {"q": ("out", "csv")}, {"q"}, round)
>>> seen["q"]["rounds"], list(rounds_of(seen["q"]))
([[3, 5], [8, 8]], [3, 4, 5, 8])
>>> without(seen["q"], {4})["rounds"]
[[3, 3], [5, 5], [8, 8]]
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

WrittenFiles = dict[str, Any]
"""The directory, the format, and the stretches of rounds that have files there, as plain data."""

STRETCHES = 100
"""So many are remembered for each query."""


def noted(
    before: Mapping[str, WrittenFiles], directories: Mapping[str, tuple[str, str]], gave: Collection[str], round: int
) -> dict[str, WrittenFiles]:
    """What is known after a round, in which the queries `gave` have written a file each."""
    found = dict(before)
    for query in gave:
        if query in directories:
            directory, format = directories[query]
            known = found.get(query)
            rounds = known["rounds"] if known is not None and known["directory"] == directory else []
            found[query] = {"directory": directory, "format": format, "rounds": _longer(rounds, round)}
    return found


def _longer(rounds: list[list[int]], round: int) -> list[list[int]]:
    if rounds and rounds[-1][1] == round - 1:
        return [*rounds[:-1], [rounds[-1][0], round]]
    return [*rounds, [round, round]][-STRETCHES:]


def rounds_of(written: WrittenFiles) -> Iterator[int]:
    """The rounds that have written results, one by one."""
    for first, last in written["rounds"]:
        yield from range(first, last + 1)


def without(written: WrittenFiles, missing: Collection[int]) -> WrittenFiles:
    """The note on written results, without some rounds."""
    rounds: list[list[int]] = []
    for round in _others(rounds_of(written), missing):
        rounds = _longer(rounds, round)
    return {**written, "rounds": rounds}


def _others(rounds: Iterable[int], missing: Collection[int]) -> Iterator[int]:
    return (round for round in rounds if round not in missing)


def missing_words(query: str, written: WrittenFiles, names: list[str]) -> str:
    """The warning about files of results that are gone.

    >>> missing_words("q", {"directory": "out"}, ["q-0000000003.csv"])
    "out has lost 1 file of results of query 'q' (q-0000000003.csv): its rounds are committed, and are not written \
again. Restore it from a copy; or compute all results anew with another checkpoint"
    """
    shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
    one = len(names) == 1
    return (
        f"{written['directory']} has lost {len(names):,} file{'' if one else 's'} of results of query {query!r} "
        f"({shown}): {'its' if one else 'their'} rounds are committed, and are not written again. Restore "
        f"{'it' if one else 'them'} from a copy; or compute all results anew with another checkpoint"
    )
