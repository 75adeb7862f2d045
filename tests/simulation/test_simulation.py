"""Stories from seeds: whatever dies, results are those of a batch query; and a fault that is planted is found.

A few seeds every time, hundreds with `--all`, new ones with `--hypothesis-profile=search`; thousands by `make search`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

from eventide.report.stopped_run import read_progress
from eventide.report.why import window_words
from eventide.sources.local_input import LocalInput
from eventide.storage.storage import MissingFileError
from tests.choice import chosen
from tests.simulation.disk import Disk, Faults, KilledError
from tests.simulation.inputs import Topic
from tests.simulation.player import Player, RememberingExecutor, playing
from tests.simulation.search import failure_of
from tests.simulation.story import Story, story_of

EVERY_TIME = 10
PARTS, STORIES = 6, 60
FAR = 60
"""Past every length of the policies: what has not closed so long after waits for a row."""


@pytest.fixture(scope="module")
def executor() -> Iterator[RememberingExecutor]:
    """One for all stories."""
    remembering = RememberingExecutor()
    yield remembering
    remembering.close()


@pytest.mark.parametrize("part", chosen(range(PARTS + 1), lambda part: part == 0))
def test_whatever_dies_results_are_those_of_a_batch_query(part: int, executor: RememberingExecutor) -> None:
    first = part * STORIES if settings().derandomize else random.randrange(2**32)
    for seed in range(first, first + (STORIES if part else EVERY_TIME)):
        failure = failure_of(seed, executor)
        assert failure is None, f"\n{failure}"


class SkippingTopic(Topic):
    """After a restart it passes over a row."""

    def seek(self, position: dict[str, Any]) -> None:
        """Go on after the next row."""
        super().seek({"rows": position["rows"] + 1})


class SkippingPlayer(Player):
    """Reads topics that are faulty."""

    def inputs(self) -> dict[str, LocalInput]:
        """What a new process reads."""
        topics = super().inputs()
        return {name: SkippingTopic(one._rows) if isinstance(one, Topic) else one for name, one in topics.items()}


def test_an_input_that_skips_a_row_after_a_restart_is_found_and_its_story_is_small(
    executor: RememberingExecutor,
) -> None:
    failure = next(found for seed in range(9) if (found := failure_of(seed, executor, player=SkippingPlayer)))
    assert sum(1 for _ in failure.story.arrivals()) <= 3
    assert len(failure.story.program.steps) == 1
    again = failure_of(failure.story.seed, executor, failure.without, SkippingPlayer)
    assert again is not None
    assert str(again) == str(failure)
    assert failure_of(failure.story.seed, executor, failure.without) is None


def test_the_same_seed_is_the_same_story_and_may_be_told_without_its_parts() -> None:
    story = story_of(4)
    assert story == story_of(4)
    assert list(story.without(story.parts()).arrivals()) == []
    assert story.without([]) == story


def test_a_machine_that_loses_its_power_has_what_was_confirmed() -> None:
    disk = Disk(random.Random(1), Faults())
    process = disk.start()
    process.write("slices/a", b"confirmed")
    for number in range(20):
        process.write(f"slices/{number}", b"not yet", flush=False)
    disk.end()
    disk.lose_power()
    left = disk.start().list("slices")
    assert "slices/a" in left
    assert 1 < len(left) < 21
    with pytest.raises(KilledError):
        process.read("slices/a")


def test_a_write_that_is_torn_shows_no_half() -> None:
    disk = Disk(random.Random(1), faults := Faults())
    process = disk.start()
    faults.arm("torn", 0)
    with pytest.raises(KilledError):
        process.write("rounds/1.json", b"whole or not there")
    with pytest.raises(MissingFileError):
        disk.start().read("rounds/1.json")
    assert disk.start().list("rounds", hidden=True) == ["rounds/.1.json.tmp"]


def closings(player: Player, clock: int) -> dict[tuple[str, int], set[int]]:
    """When the clock alone closes the windows of each query, by their ends, tick after tick."""
    found: dict[tuple[str, int], set[int]] = {}
    for now in range(clock, clock + FAR):
        made = player.engine.engine.tick(now)
        for query in player.story.program.queries if made is not None else ():
            assert made is not None
            for end in made.results[query.name].table().column("window_end").to_pylist():
                found.setdefault((query.name, end), set()).add(now)
    return found


def unhurried(seed: int) -> Story:
    """A story in which nobody dies, no result waits, and the clock is right."""
    story = story_of(seed).in_peace()
    return story.without(["flush", "leap"])


@pytest.mark.parametrize("seed", chosen(range(12), lambda seed: seed in (1, 2)))
def test_under_every_schedule_windows_close_when_they_are_said_to(seed: int, executor: RememberingExecutor) -> None:
    story = unhurried(seed if settings().derandomize else random.randrange(2**32))
    with playing(story, executor) as player:
        for moment in story.moments:
            player.moment(moment)
        player.world.settle()
        while player.engine.step(bounded=True):
            pass
        program, queries = player.engine.engine.program, [one for one in story.program.queries if not one.by_source]
        place = player.engine.engine.checkpoint.storage
        said = {
            one.name: read_progress(program, place, one.name, story.scheduling).windows(one.name) for one in queries
        }
        closed = closings(player, player.clock)
    for name, windows in said.items():
        for window in windows:
            assert window_words(window)
            if window.closes_at is not None:
                assert closed[name, window.end] == {window.closes_at}
            elif "no partner can come" not in window_words(window):
                assert (name, window.end) not in closed
