"""A line: rows wait in it, and the first of them go, so many at a time, in the order of some columns.

Laws. *Append only*: a row is written once, when it joins the line. Rows that have gone stay in their segments until
these are forgotten or become one; a *cut* says which they are: of the rows that were in the line when it was made,
those that do not come after it. On the driver they leave their table at once, on the cluster nothing is written anew.
*Known*: how many rows wait, and the least value of the first column of the order among them, wherever they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from eventide.engine.operators.time_range import NUMBER, numbered_text, span_of
from eventide.engine.relations.executor import Executor, Inputs, Statement, StatementStep, one_row
from eventide.engine.relations.relation import Layout, Relation
from eventide.engine.relations.segments import MOST_SEGMENTS, Segments
from eventide.eventtime.instant import FOREVER, NEVER
from eventide.plan.expressions.columns import Column

MOST_CUTS = 16
"""With more cuts than this, rows that have gone are taken out of the files: each cut is one more condition."""

Cut = tuple[int, ...]
"""The sequence that all rows were born before which it is about, and the values of the order up to which they went."""


@dataclass(frozen=True)
class Line:
    """Rows in a line. `born` is the column with a sequence, larger for every relation that joins the line."""

    held: Segments
    order: tuple[str, ...]
    born: str
    count: int = 0
    first: int | None = None
    cuts: tuple[Cut, ...] = ()

    @classmethod
    def of(cls, layout: Layout, order: tuple[str, ...], born: str) -> Line:
        """An empty line."""
        return cls(Segments(replace(layout, bounded=(*layout.bounded, born))), order, born)

    @property
    def cut_table(self) -> pa.Table:
        """The cuts, for statements that read `live`."""
        names = ["__born", *(f"__c{place}" for place in range(len(self.order)))]
        columns = zip(*self.cuts, strict=True) if self.cuts else ((),) * len(names)
        return pa.table({name: pa.array(values, pa.int64()) for name, values in zip(names, columns, strict=True)})

    def live(self, rows: str) -> str:
        """The SQL for the rows of a relation that still wait; the statement also reads the table `cuts`."""
        went = _not_after([f"{rows}.{name}" for name in self.order], [f"cuts.__c{i}" for i in range(len(self.order))])
        return f"SELECT {rows}.* FROM {rows} LEFT ANTI JOIN cuts ON {rows}.{self.born} <= cuts.__born AND {went}"

    def add(self, executor: Executor, *rows: Relation) -> Line:
        """A copy with these rows too; many segments are merged, without the rows that have gone."""
        found = tuple(one for one in rows if one.rows)
        if not found:
            return self
        lows = [one.summary.least[self.order[0]] for one in found]
        first = min(lows if self.first is None else [self.first, *lows])
        count = self.count + sum(one.rows for one in found)
        rewritten = len(self.cuts) > MOST_CUTS
        statement, cuts = Statement(self.live("segments"), identified=True), self.cut_table

        def merge(some: Segments) -> Relation:
            return executor.relation(statement, {"segments": some, "cuts": cuts}, some.layout)

        held = self.held.add(*found).merged(merge, 0 if rewritten else MOST_SEGMENTS)
        return replace(self, held=held, count=count, first=first, cuts=() if rewritten else self.cuts)

    def take(
        self, executor: Executor, count: int, shown: Callable[[str], Statement], layout: Layout
    ) -> tuple[Line, Relation]:
        """A copy without its first `count` rows, and these rows, as the statement that `shown` makes gives them."""
        if not count or not self.count:
            return self, Relation.nothing(layout)
        if count >= self.count:
            inputs: Inputs = {"ready": self.held, "cuts": self.cut_table}
            rows = executor.relation(shown(f"({self.live('ready')}) ready"), inputs, layout)
            return self._emptied(), rows
        live, order = f"({self.live('ready')}) ready", self.order
        near = self._near(count)
        inputs = {"ready": near, "cuts": self.cut_table, "span": span_of(near, order[0], NEVER, FOREVER, 0)}
        edges = f"SELECT {', '.join(order)}, {NUMBER} FROM ({numbered_text(order[0], order, live)}) CROSS JOIN limits"
        edges = f"{edges} WHERE {NUMBER} >= __count - 1 AND {NUMBER} <= __count"
        went = _not_after([f"ready.{name}" for name in order], [f"edges.{name}" for name in order])
        going = f"SELECT ready.* FROM {live} JOIN edges ON {went} JOIN limits ON edges.{NUMBER} = limits.__count - 1"
        kept = Layout(tuple(Column(name, "BIGINT") for name in (*order, NUMBER)))
        steps = [
            StatementStep("edges", Statement(edges), kept),
            StatementStep("going", shown(f"({going}) ready"), layout),
            StatementStep("edges_found", Statement("SELECT * FROM edges")),
        ]
        found = executor.run(steps, {**inputs, "limits": one_row(count=count)})
        last, following = found.tables["edges_found"].sort_by(NUMBER).to_pylist()
        line = self._after(executor, tuple(last[name] for name in order))
        return replace(line, count=self.count - count, first=following[order[0]]), found.relations["going"]

    def without(self, executor: Executor, up_to: int, count: int) -> Line:
        """A copy without the rows whose first value is `up_to` or less, of which there are so many."""
        if count == self.count:
            return self._emptied()
        line = self._after(executor, (up_to, *(FOREVER,) * (len(self.order) - 1)))
        statement = Statement(f"SELECT min({self.order[0]}) AS first FROM ({line.live('ready')})")
        found = executor.table(statement, {"ready": line.held, "cuts": line.cut_table})
        return replace(line, count=self.count - count, first=found.column("first")[0].as_py())

    def _emptied(self) -> Line:
        return replace(self, held=Segments(self.held.layout), count=0, first=None, cuts=())

    def _near(self, count: int) -> Segments:
        """The segments that may hold the first rows, and the next: others begin after so many that end before."""
        needed, last = count + 1 + self.held.rows - self.count, NEVER
        for part in sorted(self.held.parts, key=lambda part: part.summary.greatest[self.order[0]]):
            if needed <= 0:
                break
            needed, last = needed - part.rows, part.summary.greatest[self.order[0]]
        return self.held.within(self.order[0], NEVER, last)

    def _after(self, executor: Executor, went_up_to: tuple[int, ...]) -> Line:
        """With one cut more."""
        cut = (executor.files.sequence(), *went_up_to)
        # All sequences of before are smaller: it says what they say whose rows went no further.
        return replace(self, cuts=(*(one for one in self.cuts if one[1:] > cut[1:]), cut))._trimmed((cut,))

    def _trimmed(self, cuts: tuple[Cut, ...]) -> Line:
        parts = self.held.parts
        for cut in cuts:
            parts = tuple(_remaining(part, (self.born, *self.order), cut) for part in parts)
        return replace(self, held=Segments(self.held.layout).add(*parts))

    def saved(self) -> dict[str, Any]:
        """What is saved besides the rows, as plain data for the round record."""
        return {"count": self.count, "first": self.first, "cuts": [list(cut) for cut in self.cuts]}

    def restored(self, saved: Mapping[str, Any], held: Segments) -> Line:
        """The line as it was saved; its files may still hold rows that have gone."""
        cuts = tuple(tuple(cut) for cut in saved["cuts"])
        line = replace(self, held=held, count=saved["count"], first=saved["first"], cuts=cuts)
        return line._trimmed(cuts)


def _not_after(values: list[str], edge: list[str]) -> str:
    """Whether values, one after the other, do not come after an edge.

    >>> _not_after(["a", "b"], ["x", "y"])
    '(a < x OR (a = x AND b <= y))'
    """
    if len(values) == 1:
        return f"{values[0]} <= {edge[0]}"
    return f"({values[0]} < {edge[0]} OR ({values[0]} = {edge[0]} AND {_not_after(values[1:], edge[1:])}))"


def _remaining(part: Relation, names: tuple[str, ...], cut: Cut) -> Relation:
    """A relation without the rows that a cut has let go: on the cluster, it goes as a whole when all of them have."""
    if part.table is None:
        gone = all(part.summary.greatest[name] < edge for name, edge in zip(names[:2], cut, strict=False))
        return Relation.nothing(part.layout) if gone else part
    born, *columns = (part.table.column(name).to_numpy() for name in names)
    later, same = born > cut[0], np.ones(len(born), dtype=bool)
    for values, edge in zip(columns, cut[1:], strict=True):
        later |= same & (values > edge)
        same &= values == edge
    return part if later.all() else part.kept(pa.array(later))
