"""Grouping: watch several sources as one, so that memory and work follow the groups (Srivastava and Widom, 5.2).

The bounds from group a to group b hold for every sender in a and every target in b: the join of all their sets. The
latency of a group is its longest. A group is never promised more than any of its members would be.

>>> from eventide.eventtime.skew_systems import distributed_sensors
>>> sensors = distributed_sensors(deviation=[1, 2, 9], latency=[4, 5, 6])
>>> small = group(sensors, [0, 0, 1])
>>> small.bounds(0, 0), small.bounds(0, 1), small.latency
((TimeBound(after=0, lag=3),), (TimeBound(after=0, lag=11),), (5, 6))
"""

from __future__ import annotations

from collections.abc import Sequence

from eventide.errors import DeclarationError
from eventide.eventtime.skew_bounds import join_senders, join_targets
from eventide.eventtime.skew_matrix import Skew, SkewMatrix


def group(skew: Skew, assignment: Sequence[int]) -> SkewMatrix:
    """The skew between groups, where `assignment` names the group of each source: 0, 1, ..., none left out.

    >>> from eventide.eventtime.skew_systems import distributed_sensors
    >>> group(distributed_sensors([1, 2], latency=[0, 0]), [0, 2])
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: group 1 has no source: number the groups 0, 1, 2, ... without a gap
    """
    members = members_of(assignment)
    if len(assignment) != len(skew.latency):
        raise DeclarationError(
            f"{len(assignment)} sources were assigned to groups, {len(skew.latency)} have bounds: assign each once"
        )
    entries = [
        [join_targets(join_senders(skew.bounds(i, j) for i in senders) for j in targets) for targets in members]
        for senders in members
    ]
    return SkewMatrix.of(entries, [max(skew.latency[j] for j in targets) for targets in members])


def members_of(assignment: Sequence[int]) -> list[list[int]]:
    """The sources of each group.

    >>> members_of([1, 0, 1])
    [[1], [0, 2]]
    """
    if len(assignment) == 0:
        raise DeclarationError("no source was assigned to a group: name the group of each source")
    used = set(assignment)
    if min(used) < 0:
        raise DeclarationError(f"group {min(used)} is negative: number the groups 0, 1, 2, ...")
    empty = next((number for number in range(max(used)) if number not in used), None)
    if empty is not None:
        raise DeclarationError(f"group {empty} has no source: number the groups 0, 1, 2, ... without a gap")
    members: list[list[int]] = [[] for _ in used]
    for source, number in enumerate(assignment):
        members[number].append(source)
    return members
