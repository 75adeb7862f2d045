"""Patterns: which values of a group a prod asks for.

Law: a pattern is a union of closed ranges, and of NULL or not. A value is a range from itself to itself, a list several
of these, and a range may be open at either end; so equality, lists and ranges are one thing, wherever they come from.
NULL lies in no range. (Prodding thesis, section 3.1: "a prod, like a punctuation, may contain any combination of
predicates or patterns".)

>>> Pattern.of([3, {"between": [5, 7]}]).matches(6), Pattern.of({"between": [None, 7]}).matches(None)
(True, False)

*As data*, in JSON and in Python, a pattern is a value, `{"between": [low, high]}` (null is an open end), or a list of
these:

>>> Pattern.of(3).saved(), Pattern.of([None, 3]).saved(), Pattern.of({"between": [3, None]}).saved()
(3, [3, None], {'between': [3, None]})
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from eventide.errors import DeclarationError

BETWEEN = "between"


@dataclass(frozen=True)
class Pattern:
    """The values in these closed ranges, None being an open end; and NULL, if `null`.

    >>> Pattern(((7, 3),))
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: no value is between 7 and 3: give the smaller one first
    """

    ranges: tuple[tuple[Any, Any], ...] = ()
    null: bool = False

    def __post_init__(self) -> None:
        if not self.ranges and not self.null:
            raise DeclarationError("a pattern without a value matches nothing: give one, or leave the group out")
        for low, high in self.ranges:
            if low is not None and high is not None and not _ordered(low, high):
                raise DeclarationError(f"no value is between {low} and {high}: give the smaller one first")

    @classmethod
    def of(cls, data: Any, convert: Callable[[Any], Any] = lambda value: value) -> Pattern:
        """The pattern that data stands for, each value but open ends converted; a pattern is itself.

        >>> Pattern.of({"from": 3})
        Traceback (most recent call last):
            ...
        eventide.errors.DeclarationError: {'from': 3} is no range: write {"between": [low, high]}
        """
        if isinstance(data, Pattern):
            return data
        ranges, null = [], False
        for one in data if isinstance(data, list | tuple | set | frozenset) else [data]:
            if isinstance(one, dict):
                edges = one.get(BETWEEN)
                if one.keys() != {BETWEEN} or not isinstance(edges, list | tuple) or len(edges) != 2:
                    raise DeclarationError(f'{str(one)[:60]} is no range: write {{"between": [low, high]}}')
                ranges.append(tuple(None if edge is None else convert(edge) for edge in edges))
            elif one is None:
                null = True
            else:
                ranges.append((value := convert(one), value))
        return cls(tuple((low, high) for low, high in ranges), null)

    def matches(self, value: Any) -> bool:
        """Whether a value is one of it."""
        if value is None:
            return self.null
        return any(
            (low is None or _ordered(low, value)) and (high is None or _ordered(value, high))
            for low, high in self.ranges
        )

    def covers(self, other: Pattern) -> bool:
        """Whether every value of the other is one of it, as far as a single range of it tells.

        >>> Pattern.of({"between": [3, 7]}).covers(Pattern.of([4, 5])), Pattern.of([4, 5]).covers(Pattern.of([4, None]))
        (True, False)
        """
        within = (
            any(
                (low is None or (inner[0] is not None and _ordered(low, inner[0])))
                and (high is None or (inner[1] is not None and _ordered(inner[1], high)))
                for low, high in self.ranges
            )
            for inner in other.ranges
        )
        return (self.null or not other.null) and all(within)

    def saved(self) -> Any:
        """The pattern as data."""
        parts: list[Any] = [low if low is high or low == high else {BETWEEN: [low, high]} for low, high in self.ranges]
        parts += [None] if self.null else []
        return parts[0] if len(parts) == 1 else parts


def _ordered(low: Any, high: Any) -> bool:
    """Whether one value is not above another; values that cannot be compared are only equal to themselves."""
    try:
        return bool(low <= high)
    except TypeError:
        return bool(low == high)
