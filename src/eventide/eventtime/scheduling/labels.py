"""Labels: the sources whose least heartbeat an operator goes by, found from the graph of the plan.

*Labels* (STREAM paper, section 7). The label of an operator contains the sources below it; its heartbeat is the least
of the heartbeats of its label, so a larger label makes it wait longer and never lets it run ahead.

- *operator*: the label is the sources below (section 7.2). Every operator goes as far as its own inputs.
- *query*: the label is all sources of the queries that the operator belongs to (section 7.1).
- *memory*: an operator that gives more rows than it takes waits for the operator above it that makes fewer of them
  again (sections 7.3 and 7.4). A *memory link* leads from an operator to the lowest one above it for which the product
  of the selectivities from the one to the other is at most 1; a root tells its rows, which no operator has to keep, so
  its selectivity counts as 0. All operators along a link go by the same label (figure 6). No operator runs ahead of
  where it would be by *query*, and none without a link over it waits longer than by *operator*.

The paper's plans are trees. Where an operator has several readers, its rows are kept until the slowest of them has
read them: it has a link in every direction, and its label is the union over its linked readers.

>>> from eventide.eventtime.scheduling.labels import Node
>>> figure_5 = Shape(("S1", "S2", "S3"), (Node("O1", ("S1", "S2")), Node("O2", ("O1", "S3"))))
>>> sorted(labels(figure_5, HeartbeatScope.MEMORY, {"O1": 2.0})["O1"])
['S1', 'S2', 'S3']
>>> sorted(labels(figure_5, HeartbeatScope.MEMORY, {"O1": 0.5})["O1"])
['S1', 'S2']

*The graph.* Which operators read what; time has to know no more of a query. An operator reads sources and operators,
never itself, however long the way. *Roots* are the operators that nobody reads. The sources *below* an operator are
those that its rows come from (the set U of the STREAM paper, section 7.4).

>>> figure_5 = Shape(("S1", "S2", "S3"), (Node("O1", ("S1", "S2")), Node("O2", ("O1", "S3"))))
>>> figure_5.below("O1") == {"S1", "S2"}, figure_5.roots, figure_5.readers("O1")
(True, ('O2',), ('O2',))
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from itertools import pairwise

from eventide.errors import DeclarationError
from eventide.eventtime.instant import FOREVER


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


Label = frozenset[str]


class HeartbeatScope(Enum):
    """Where heartbeats are compared: at each operator, in the whole query, or with a view to memory."""

    OPERATOR = "operator"
    QUERY = "query"
    MEMORY = "memory"


def labels(shape: Shape, level: HeartbeatScope, selectivity: Mapping[str, float] | None = None) -> dict[str, Label]:
    """The label of every operator; a selectivity that is not given is 1, neither more nor fewer rows.

    >>> from eventide.eventtime.scheduling.labels import Node
    >>> shared = Shape(("S", "T"), (Node("a", ("S",)), Node("b", ("a", "T")), Node("c", ("a",))))
    >>> {name: sorted(label) for name, label in labels(shared, HeartbeatScope.QUERY).items()}
    {'a': ['S', 'T'], 'b': ['S', 'T'], 'c': ['S']}
    """
    if level is HeartbeatScope.OPERATOR:
        return {node.name: shape.below(node.name) for node in shape.operators}
    linked = memory_links(shape, selectivity or {}) if level is HeartbeatScope.MEMORY else _to_the_roots(shape)
    steps = {step for way in linked for step in pairwise(way)}
    found: dict[str, Label] = {}
    for node in reversed(shape.operators):
        # A link from an operator below this one to one above it leads over a reader of this one.
        over = [reader for reader in shape.readers(node.name) if (node.name, reader) in steps]
        found[node.name] = shape.below(node.name).union(*(found[reader] for reader in over))
    return {node.name: found[node.name] for node in shape.operators}


def memory_links(shape: Shape, selectivity: Mapping[str, float]) -> frozenset[tuple[str, ...]]:
    """The ways, each from an operator up to the lowest one at which no more rows come out than went in.

    >>> from eventide.eventtime.scheduling.labels import Node
    >>> chain = Shape(("S", "T"), (Node("a", ("S",)), Node("b", ("a",)), Node("c", ("b", "T"))))
    >>> sorted(memory_links(chain, {"a": 4.0, "b": 0.25}))
    [('a', 'b')]
    >>> sorted(memory_links(chain, {"a": 4.0, "b": 0.5}))
    [('a', 'b', 'c')]
    """

    def climb(way: tuple[str, ...], product: float) -> list[tuple[str, ...]]:
        readers = shape.readers(way[-1])
        product *= selectivity.get(way[-1], 1.0) if readers else 0.0
        if product <= 1.0:
            return [way]
        return [found for reader in readers for found in climb((*way, reader), product)]

    ways = (way for node in shape.operators for way in climb((node.name,), 1.0))
    return frozenset(way for way in ways if len(way) > 1)


def held_to(label: Label, heartbeats: Mapping[str, int]) -> int:
    """The heartbeat of an operator: the least over its label.

    >>> held_to(frozenset(("S1", "S3")), {"S1": 90, "S2": 80, "S3": 10})
    10
    """
    return min((heartbeats[source] for source in label), default=FOREVER)


def _to_the_roots(shape: Shape) -> frozenset[tuple[str, ...]]:
    """Links as they would be if every operator made more rows than it takes."""
    return memory_links(shape, {node.name: 2.0 for node in shape.operators})
