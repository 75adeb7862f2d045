"""Searches story after story for one that goes wrong, and makes that one small.

Law: a story that was made small still goes wrong in the same way. What is printed says how to play it again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache

from eventide.duckdb.executor import DuckDBExecutor
from eventide.errors import EventideError
from tests.simulation.player import Player, RememberingExecutor, judge
from tests.simulation.story import Story, story_of

TRIALS = 150
"""Smaller stories that are played for one that goes wrong."""


@dataclass(frozen=True)
class Failure:
    """A story that goes wrong: why, and which parts of its seed's story it does not have."""

    story: Story
    without: tuple[str, ...]
    why: str

    def __str__(self) -> str:
        less = f" --without {','.join(self.without)}" if self.without else ""
        command = f"python -m tests.simulation --seed {self.story.seed}{less}"
        return "\n".join([*self.story.lines(), f"=> {self.why}", f"again: {command}"])


def wrong_of(story: Story, executor: DuckDBExecutor, player: type[Player] = Player) -> str | None:
    """What goes wrong in a story, None if nothing does."""
    try:
        judge(story, executor, player)
    except (Exception, BaseExceptionGroup) as wrong:
        name = "" if isinstance(wrong, EventideError) else f"{type(wrong).__name__}: "
        return f"{name}{wrong}"
    return None


def failure_of(
    seed: int, executor: DuckDBExecutor, without: Collection[str] = (), player: type[Player] = Player
) -> Failure | None:
    """The small story of a seed that goes wrong; None if it goes well. `without`: just these parts are left out."""
    story = story_of(seed).without(without)
    why = wrong_of(story, executor, player)
    if why is None or without:
        return None if why is None else Failure(story, tuple(without), why)
    kind = _kind(why)
    gone = smallest(story.parts(), lambda parts: _kind(wrong_of(story.without(parts), executor, player)) == kind)
    small = story.without(gone)
    return Failure(small, tuple(gone), wrong_of(small, executor, player) or why)


def failures_of(seeds: range) -> list[str]:
    """What goes wrong in some stories, in words; for a process that does nothing else."""
    logging.disable(logging.WARNING)
    return [str(failure) for seed in seeds if (failure := failure_of(seed, the_executor())) is not None]


@cache
def the_executor() -> RememberingExecutor:
    """That of this process."""
    return RememberingExecutor()


def smallest(parts: list[str], fails: Callable[[list[str]], bool]) -> list[str]:
    """The parts that can be left out, so that it still fails.

    >>> smallest(list("abcdef"), lambda gone: not {"b", "e"} & set(gone))
    ['a', 'c', 'd', 'f']
    """
    gone: list[str] = []
    trials, length = 0, max(1, len(parts) // 2)
    while length:
        rest = [part for part in parts if part not in gone]
        for start in range(0, len(rest), length):
            tried = [*gone, *rest[start : start + length]]
            trials += 1
            if trials > TRIALS:
                return gone
            if fails(tried):
                gone = tried
        length = length // 2
    return [part for part in parts if part in gone]


def _kind(why: str | None) -> str | None:
    """The beginning of a sentence, without the names and numbers in it."""
    return (
        None
        if why is None
        else "".join(letter for letter in why.partition(" in the place")[0] if letter.isalpha())[:24]
    )
