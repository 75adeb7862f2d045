"""Small plans that Hypothesis makes up: sources, and operators that read one or more of what is before them."""

from __future__ import annotations

from hypothesis import strategies as st

from eventide.eventtime.scheduling.labels import Node, Shape


@st.composite
def shapes(draw: st.DrawFn, trees: bool = False) -> Shape:
    """A plan of a few sources and operators; `trees`: nothing is read twice, and there is one root."""
    sources = tuple(f"S{number}" for number in range(draw(st.integers(1, 4))))
    known, operators = list(sources), []
    for number in range(draw(st.integers(1, 5))):
        inputs = draw(st.lists(st.sampled_from(known), min_size=1, max_size=3, unique=True))
        operators.append(Node(f"O{number}", tuple(inputs)))
        known = [name for name in known if not (trees and name in inputs)] + [f"O{number}"]
    if trees and len(known) > 1:
        operators.append(Node("root", tuple(known)))
    return Shape(sources, tuple(operators))
