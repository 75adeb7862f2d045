"""Who is waited for: the sources that have been heard, and those known in advance even before they speak.

Law: all sources together are as far as the slowest that is waited for; nowhere when nobody is.

>>> own, heard = np.array([30, NEVER, 20]), np.array([True, False, True])
>>> slowest(own, heard), slowest(own, heard, known=2) == NEVER
(20, True)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eventide.errors import DeclarationError
from eventide.eventtime.heartbeat import Heartbeats
from eventide.eventtime.instant import FOREVER, NEVER, Instants


def slowest(by_source: Instants, heard: NDArray[np.bool_], known: int = 0) -> int:
    """The least over the sources that were heard and sources 0 to `known` - 1; `NEVER` when there are none.

    >>> slowest(np.array([5]), np.array([False])) == NEVER
    True
    """
    if known:
        heard = heard | (np.arange(len(heard)) < known)
    return int(by_source.min(where=heard, initial=FOREVER)) if heard.any() else NEVER


def least_without(said: Heartbeats, absent: NDArray[np.bool_]) -> int:
    """What is promised for all together when nobody waits for the `absent`: the least over the others.

    What was promised for everybody holds anyhow; where nobody is left, it is all there is.

    >>> least_without(Heartbeats(10, np.array([10, 30, 20])), np.array([True, False, False]))
    20
    >>> least_without(Heartbeats(10, np.array([10])), np.array([True]))
    10
    """
    waited_for = ~absent[: len(said.by_source)]
    left = np.ones(len(said.by_source), dtype=np.bool_)
    left[: len(waited_for)] = waited_for
    return max(said.combined, slowest(said.by_source, left))


def check_known(known: int) -> None:
    """Refuse a number of known sources that is none.

    >>> check_known(-1)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: -1 known sources: give how many are waited for, 0 to discover them all
    """
    if known < 0:
        raise DeclarationError(f"{known} known sources: give how many are waited for, 0 to discover them all")
