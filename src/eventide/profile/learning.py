"""Learn from a recording, for a stream whose policy is to start with what it shows: `DRATIO p LEARNED FROM 'file'`.

The policy goes over the recording once, row by row or in the rounds that `eventide profile` takes, and what it has
learned then is put into it (`eventtime/policies/drop_ratio/learned.py`). The recording has the columns by which the
stream is declared: its time, its sources, and its arrival if the stream has one.

>>> import tempfile
>>> from eventide.eventtime.arrivals import Arrivals
>>> from eventide.plan.declared.stream import columns
>>> path = Path(tempfile.mkdtemp(), "ten.csv")
>>> _ = path.write_text("at,seen\\n" + "".join(f"{10 * t},{10 * t}\\n" for t in range(200)))
>>> policy = DropRatio(0.01, Learned(str(path)))
>>> doors = Stream("doors", columns("at BIGINT, seen BIGINT"), time="at", arrival="seen", policy=policy)
>>> generator = experienced(doors).policy.start()
>>> for clock in range(0, 80, 10):
...     generator.observe(Arrivals.of_row(clock, source=0, time=clock))
>>> generator.heartbeats(clock=70).combined  # eight rows are enough
79
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from eventide.errors import InputError
from eventide.eventtime.heartbeat import Snapshot, layers
from eventide.eventtime.policies.drop_ratio.learned import Learned, experience
from eventide.eventtime.policies.drop_ratio.policy import DropRatio
from eventide.plan.declared.stream import Stream, TimeKind
from eventide.profile.dry_run import timetable
from eventide.profile.files import ColumnNames, parts_of
from eventide.profile.reading import Recording, read, usual_round

SEPARATOR, NO_VALUE = "|", "NULL"
"""How a recording writes the name of a source that several columns tell, or none."""


def experienced(stream: Stream, separator: str = SEPARATOR, no_value: str = NO_VALUE) -> Stream:
    """The stream with a policy that has read what it is to learn from; as it is where there is nothing to learn.

    Its sources are known by name then, in the order of their numbers in what was learned. `separator` and `no_value`
    are what stands in the names of sources between columns, and for NULL.
    """
    policy = learning_policy(stream)
    if policy is None or policy.learned is None:
        return stream
    origin = policy.learned.origin
    columns, is_sequence = _columns(stream, origin)
    names = (separator, no_value, len(stream.source))
    state, sources = _read(origin, _stamp(origin), columns, is_sequence, names, stream.known, policy.ratio)
    return replace(with_learned(stream, state), known=sources if stream.source else ())


def with_learned(stream: Stream, state: Snapshot) -> Stream:
    """The stream with a policy that has learned this."""
    policy = learning_policy(stream)
    assert policy is not None
    assert policy.learned is not None
    return replace(stream, policy=_with(stream.policy, replace(policy.learned, state=state)))


def unlearned(stream: Stream) -> Stream:
    """The stream with a policy that starts with nothing."""
    return stream if learning_policy(stream) is None else replace(stream, policy=_with(stream.policy, None))


def check_recording(stream: Stream) -> None:
    """Raise an error if the policy of a stream is to learn from what is not there, or is none of its recordings."""
    policy = learning_policy(stream)
    if policy is not None and policy.learned is not None:
        _recording(policy.learned.origin, *_columns(stream, policy.learned.origin))


def learning_policy(stream: Stream) -> DropRatio | None:
    """The policy of a stream that is to learn, whatever is wrapped around it."""
    found = (layer for layer in layers(stream.policy) if isinstance(layer, DropRatio))
    return next((policy for policy in found if policy.learned is not None), None)


def _with(policy: Any, learned: Learned | None) -> Any:
    """The same policy, or one that wraps it, with this to learn from."""
    return replace(
        policy, **({"learned": learned} if isinstance(policy, DropRatio) else {"inner": _with(policy.inner, learned)})
    )


def _columns(stream: Stream, origin: str) -> tuple[ColumnNames, bool]:
    """What a recording of a stream has to have, and whether its times are plain numbers."""
    if stream.time is None:
        raise InputError(f"stream {stream.name!r} takes its time from the clock: nothing can be learned from {origin}")
    return ColumnNames(stream.time, stream.arrival, stream.source), stream.time_kind is TimeKind.SEQUENCE


def _recording(origin: str, columns: ColumnNames, is_sequence: bool) -> Recording:
    [loaded] = read([origin], columns, "none" if is_sequence else None)
    if loaded.unitless and not is_sequence:
        raise InputError(
            f"{origin}: {columns.time!r} holds plain numbers, and the stream has times: name a recording that has the "
            "columns of the stream"
        )
    return loaded.recording


def _stamp(origin: str) -> tuple[tuple[int, int], ...]:
    """What changes when a recording does."""
    stats = [Path(part).stat() for part in parts_of(origin)]
    return tuple((found.st_size, found.st_mtime_ns) for found in stats)


# A program is started several times before its first round is committed: to be looked at, and when a round fails.
@lru_cache(maxsize=16)
def _read(
    origin: str,
    stamp: tuple[tuple[int, int], ...],
    columns: ColumnNames,
    is_sequence: bool,
    written: tuple[str, str, int],
    known: tuple[str, ...],
    ratio: float,
) -> tuple[Snapshot, tuple[str, ...]]:
    """What can be learned, and the names of the sources: those known first, by their numbers."""
    recording = _recording(origin, columns, is_sequence)
    names = [_name(name, *written) for name in recording.source_names]
    sources = (*known, *(name for name in names if name not in known))
    number = {name: place for place, name in enumerate(sources)}
    places = np.array([number[name] for name in names], dtype=np.intp)
    return _learned(
        replace(recording, source=places[recording.source], source_names=sources), ratio, is_sequence
    ), sources


def _name(name: str, separator: str, no_value: str, columns: int) -> str:
    """The name of a source as the stream has it.

    >>> _name("north|NULL", "/", "-", 2), _name("a|b", "/", "-", 1)
    ('north/-', 'a|b')
    """
    parts = [name] if columns < 2 else name.split(SEPARATOR)
    return separator.join(no_value if part == NO_VALUE else part for part in parts)


def _learned(recording: Recording, ratio: float, is_sequence: bool) -> Snapshot:
    generator = DropRatio(ratio).start()
    plan = timetable(recording, usual_round(recording, is_sequence))
    questions, asked = plan.questions.tolist(), 0
    for arrivals, after in zip(plan.arrivals(), plan.after.tolist(), strict=True):
        for clock in questions[asked:after]:
            generator.heartbeats(clock)
        generator.observe(arrivals)
        generator.heartbeats(questions[after])
        asked = after + 1
    return experience(generator.snapshot(), ratio)
