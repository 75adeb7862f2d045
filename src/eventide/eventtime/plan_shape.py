"""The shape of a plan: which operators read what. All that time has to know of queries.

Law: an operator reads sources and operators, never itself, however long the way. *Roots* are the operators that nobody
reads. The sources *below* an operator are those that its rows come from (the set U of the STREAM paper, section 7.4).

>>> figure_5 = Shape(("S1", "S2", "S3"), (Node("O1", ("S1", "S2")), Node("O2", ("O1", "S3"))))
>>> figure_5.below("O1") == {"S1", "S2"}, figure_5.roots, figure_5.readers("O1")
(True, ('O2',), ('O2',))
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from eventide.errors import DeclarationError


@dataclass(frozen=True)
class Node:
    """An operator and what it reads."""

    name: str
    inputs: tuple[str, ...]


@dataclass(frozen=True)
class Shape:
    """Sources, and operators over them, each after all that it reads.

    >>> Shape(("S",), (Node("O", ("T",)),))
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: operator 'O' reads 'T', which is neither a source nor an operator before it
    """

    sources: tuple[str, ...]
    operators: tuple[Node, ...]

    def __post_init__(self) -> None:
        known = set(self.sources)
        for node in self.operators:
            for read in node.inputs:
                if read not in known:
                    raise DeclarationError(
                        f"operator {node.name!r} reads {read!r}, which is neither a source nor an operator before it"
                    )
            known.add(node.name)

    @cached_property
    def _nodes(self) -> dict[str, Node]:
        return {node.name: node for node in self.operators}

    @cached_property
    def _below(self) -> dict[str, frozenset[str]]:
        found = {source: frozenset((source,)) for source in self.sources}
        for node in self.operators:
            found[node.name] = frozenset().union(*(found[read] for read in node.inputs))
        return found

    @cached_property
    def _readers(self) -> dict[str, tuple[str, ...]]:
        names = (*self.sources, *self._nodes)
        return {name: tuple(node.name for node in self.operators if name in node.inputs) for name in names}

    def is_source(self, name: str) -> bool:
        """Whether rows begin there."""
        return name not in self._nodes

    def inputs(self, name: str) -> tuple[str, ...]:
        """What an operator reads; a source reads nothing."""
        return self._nodes[name].inputs if name in self._nodes else ()

    def readers(self, name: str) -> tuple[str, ...]:
        """The operators that read a source or an operator."""
        return self._readers[name]

    def below(self, name: str) -> frozenset[str]:
        """The sources that its rows come from; of a source, itself."""
        return self._below[name]

    @cached_property
    def _operators_below(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = dict.fromkeys(self.sources, ())
        place = {node.name: number for number, node in enumerate(self.operators)}
        for node in self.operators:
            below = {name for read in node.inputs for name in (*found[read], read) if name in place}
            found[node.name] = tuple(sorted(below, key=place.__getitem__))
        return found

    def operators_below(self, name: str) -> tuple[str, ...]:
        """The operators that its rows come through, each after what it reads, itself left out.

        >>> Shape(("S",), (Node("a", ("S",)), Node("b", ("a",)), Node("c", ("S",)))).operators_below("b")
        ('a',)
        """
        return self._operators_below[name]

    @cached_property
    def roots(self) -> tuple[str, ...]:
        """The operators that nobody reads."""
        return tuple(node.name for node in self.operators if not self._readers[node.name])

    def above(self, name: str) -> tuple[str, ...]:
        """All operators that its rows go through, each after what it reads, itself left out.

        >>> Shape(("S",), (Node("a", ("S",)), Node("b", ("a",)), Node("c", ("S",)))).above("a")
        ('b',)
        """
        reached = {name}
        for node in self.operators:
            if reached.intersection(node.inputs):
                reached.add(node.name)
        return tuple(node.name for node in self.operators if node.name in reached and node.name != name)
