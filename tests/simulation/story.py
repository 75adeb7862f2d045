"""Stories: a random program, what arrives moment by moment, and what goes wrong; all of it from one seed.

Law: the same seed is the same story, and so are its parts. So many seeds after each other have the same program and
rows, and other things go wrong in each: whoever plays them asks most questions only once. A story without some of its
parts is a story too: that is how one that fails is made smaller.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from random import Random

from eventide.eventtime.policies.own_progress import OwnProgress
from eventide.eventtime.scheduling.options import Scheduling
from eventide.plan.declared.program import Program, reads
from eventide.plan.declared.query import Query
from tests.simulation.batch_oracle import Row
from tests.simulation.programs import SCHEDULES, random_program

SOURCES = ("a", "b")
CRASHES = ("killed before", "killed after", "torn", "power", "refused")
VARIANTS = 25
"""So many stories have the same program and rows."""
LEAP = 7_200_000_000
"""Microseconds: more than an honest clock runs ahead."""


@dataclass(frozen=True)
class Arrival:
    """A row that arrives: broken, a promise, or one with a number of its own as value."""

    stream: str
    time: int
    source: str | None
    number: int
    promise: bool = False
    broken: bool = False

    def row(self) -> Row:
        """As a batch query would see it."""
        values = (("t", self.time), ("who", self.source), ("v", self.number))
        return Row(self.time, self.time + 1, values)

    def __str__(self) -> str:
        if self.broken:
            return f"{self.stream}: a broken row [r{self.number}]"
        what = f"a promise up to {self.time}" if self.promise else f"t={self.time} v={self.number}"
        return f"{self.stream}: {what} of {self.source or 'all'} [r{self.number}]"


@dataclass(frozen=True)
class Moment:
    """What happens at one reading of the clock; `wall` is what the machine believes, `clock` what has passed.

    `crash`: after so many operations; `down`: who dies now is not started again before the next moment. `damage`: the
    process is killed, and a file is damaged, before anything else.
    """

    place: int
    clock: int
    wall: int
    arrivals: tuple[Arrival, ...]
    over: tuple[str, str] | None = None
    tick: bool = False
    restart: bool = False
    damage: bool = False
    crash: tuple[str, int] | None = None
    down: bool = False

    def lines(self) -> Iterator[str]:
        """In words, each with the name of its part."""
        leap = "" if self.wall == self.clock else f", and the machine believes {self.wall} [leap]"
        yield f"at {self.clock}{leap} [m{self.place}]"
        if self.damage:
            yield f"  the process is killed and a file of the checkpoint damaged [damage{self.place}]"
        if self.restart:
            yield f"  the engine is stopped and started again [restart{self.place}]"
        for one in self.arrivals:
            yield f"  {one}"
        if self.crash is not None:
            yield f"  {self.crash[0]}, {self.crash[1]} operations from here [crash{self.place}]"
        if self.down:
            yield f"  who dies now is not started again before the next moment [down{self.place}]"
        if self.over is not None:
            yield f"  source {self.over[1]} of {self.over[0]} is over [over{self.place}]"
        if self.tick:
            yield f"  a little later, the clock alone [tick{self.place}]"


@dataclass(frozen=True)
class Story:
    """A program, its moments, and how it is run."""

    seed: int
    program: Program
    moments: tuple[Moment, ...]
    scheduling: Scheduling
    flush_rows: int | None

    def arrivals(self) -> Iterator[Arrival]:
        """All rows, in the order in which they arrive."""
        for moment in self.moments:
            yield from moment.arrivals

    @property
    def is_damaged(self) -> bool:
        """Whether files of the checkpoint are damaged: rounds then happen again, after others have been seen."""
        return any(moment.damage for moment in self.moments)

    @property
    def is_peaceful(self) -> bool:
        """Whether no process dies."""
        return not any(one.crash or one.restart or one.damage for one in self.moments)

    @property
    def is_ever_down(self) -> bool:
        """Whether a process that died may be started again only when the clock has gone on.

        One that is to die after so many operations may do so moments later.
        """
        return any(moment.down for moment in self.moments[self._first_crash :])

    @property
    def _first_crash(self) -> int:
        return next((n for n, moment in enumerate(self.moments) if moment.crash), len(self.moments))

    @property
    def leaps(self) -> bool:
        """Whether the clock of the machine is ever wrong."""
        return any(moment.wall != moment.clock for moment in self.moments)

    def in_peace(self) -> Story:
        """The same, and no process dies; it is the same story for many seeds."""
        moments = (replace(one, crash=None, restart=False, damage=False, down=False) for one in self.moments)
        return replace(self, seed=self.seed // VARIANTS * VARIANTS, moments=tuple(moments))

    def parts(self) -> list[str]:
        """The names of what can be left out, the largest first."""
        found = [f"m{moment.place}" for moment in self.moments]
        found += [step.name for step in reversed(self.program.steps)]
        for number, moment in enumerate(self.moments):
            chosen: dict[str, object] = {
                "crash": moment.crash,
                "down": number >= self._first_crash and moment.down,
                "damage": moment.damage,
            }
            chosen |= {"restart": moment.restart, "over": moment.over, "tick": moment.tick}
            found += [f"{name}{moment.place}" for name, there in chosen.items() if there]
        found += ["leap"] * self.leaps + ["flush"] * (self.flush_rows is not None)
        found += ["schedule"] * (self.scheduling != Scheduling())
        found += [f"policy-{s.name}" for s in self.program.streams if s.policy != OwnProgress() and not s.punctuation]
        found += [f"input-{s.name}" for s in self.program.inputs if s.input and s.input.format != "topic"]
        return found + [f"r{one.number}" for one in self.arrivals()]

    def without(self, parts: Collection[str]) -> Story:
        """The story without some of its parts; a step that is left out takes those with it that read it."""
        gone = set(parts)
        moments = tuple(_less(one, gone) for one in self.moments if f"m{one.place}" not in gone)
        return Story(
            self.seed,
            _smaller(self.program, gone),
            moments,
            Scheduling() if "schedule" in gone else self.scheduling,
            None if "flush" in gone else self.flush_rows,
        )

    def lines(self) -> Iterator[str]:
        """The story in words."""
        for stream in self.program.streams:
            assert stream.input is not None
            most = f", {stream.input.max_rows} rows a round" if stream.input.max_rows else ""
            promises = " with promises" if stream.punctuation else ""
            what = f"twin of {stream.twin_of}" if stream.twin_of else f"{stream.input.format}{most}"
            yield f"stream {stream.name} ({what}){promises} under {stream.policy}"
        for step in self.program.steps:
            yield f"{step} [{step.name}]"
        if self.flush_rows is not None:
            yield f"{self.flush_rows} results a round [flush]"
        if self.scheduling != Scheduling():
            yield f"{self.scheduling} [schedule]"
        for moment in self.moments:
            yield from moment.lines()


def _less(moment: Moment, gone: set[str]) -> Moment:
    place = moment.place
    return replace(
        moment,
        arrivals=tuple(one for one in moment.arrivals if f"r{one.number}" not in gone),
        over=None if f"over{place}" in gone else moment.over,
        tick=moment.tick and f"tick{place}" not in gone,
        restart=moment.restart and f"restart{place}" not in gone,
        damage=moment.damage and f"damage{place}" not in gone,
        crash=None if f"crash{place}" in gone else moment.crash,
        down=moment.down and f"down{place}" not in gone,
        wall=moment.clock if "leap" in gone else moment.wall,
    )


def _smaller(program: Program, gone: set[str]) -> Program:
    absent = set(gone)
    for step in program.steps:
        if absent.intersection(reads(step)):
            absent.add(step.name)
    streams = []
    for stream in program.streams:
        assert stream.input is not None
        policy = OwnProgress() if f"policy-{stream.name}" in gone else stream.policy
        format = "topic" if f"input-{stream.rows_of}" in gone else stream.input.format
        streams.append(replace(stream, policy=policy, input=replace(stream.input, format=format)))
    kept = [step for step in program.steps if step.name not in absent]
    queries = tuple(step for step in kept if isinstance(step, Query))
    return Program(tuple(streams), queries, tuple(step for step in kept if not isinstance(step, Query)))


def story_of(seed: int) -> Story:
    """The story of a seed."""
    chance = Random(seed // VARIANTS)
    program = random_program(chance)
    number, clock, calm = 0, 100, []
    at = {(stream.name, source): 100 for stream in program.inputs for source in SOURCES}
    for place in range(chance.choice((2, 3, 4, 5))):
        clock += chance.randint(0, 6)
        arrivals = []
        for stream in program.inputs:
            for _ in range(chance.randint(0, 3)):
                source = chance.choice(SOURCES)
                at[stream.name, source] = time = at[stream.name, source] + chance.randint(0, 4)
                number += 1
                broken = chance.randrange(25) == 0
                arrivals.append(Arrival(stream.name, time - chance.randint(0, 3), source, number, broken=broken))
            if stream.punctuation and chance.random() < 0.5:
                number += 1
                whose = chance.choice((*SOURCES, None))
                base = min(at[stream.name, one] for one in SOURCES if whose in (one, None))
                arrivals.append(Arrival(stream.name, base - chance.randint(0, 3), whose, number, promise=True))
        over = (chance.choice(program.inputs).name, chance.choice(SOURCES)) if chance.randrange(10) == 0 else None
        calm.append(Moment(place, clock, clock, tuple(arrivals), over, tick=chance.random() < 0.4))
    chance = Random(f"what goes wrong in {seed}")
    leaps_at = chance.randrange(4) if chance.randrange(10) == 0 else None
    deadly = chance.random() < 0.9
    moments = tuple(_eventful(moment, chance, deadly, moment.place == leaps_at) for moment in calm)
    flush = chance.choice((None, None, None, 1, 3))
    return Story(seed, program, moments, chance.choice(SCHEDULES), flush)


def _eventful(moment: Moment, chance: Random, deadly: bool, leaps: bool) -> Moment:
    return replace(
        moment,
        wall=moment.clock + LEAP if leaps else moment.clock,
        restart=deadly and chance.random() < 0.15,
        damage=deadly and chance.random() < 0.08,
        crash=(chance.choice(CRASHES), chance.randint(0, 25)) if deadly and chance.random() < 0.4 else None,
        down=chance.random() < 0.15,
    )
