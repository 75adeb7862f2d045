"""Read bounds between the sources of a stream.

`BOUNDS (SOURCE A LATENCY 2 s, B TRAILS A BY 5 s AFTER 1 s, ...)` declares bounds between named sources. `B TRAILS A BY
x` says that once A has sent a row with time T, B sends only rows with times above T - x; with `AFTER y`, from y later
on; with `AFTER n ROWS`, once n more rows of B have come. ALL stands for every source that is named, a source and itself
included. LATENCY is how long a row may be on its way. Sources have the numbers in which they are named.

`EXCEEDED p%` is the share of the rows of B that may break the bound, or of A that may be longer on their way; a source
may have several latencies, each with its share. `DRATIO p%` is the budget of all that may fail for one source.

The two systems of section 4 (Srivastava and Widom): `SOURCE A CLOCK WITHIN 5 s RATE AT LEAST 0.9` says that the clock
with which A stamps its rows is off by less than 5 s, and advances by 0.9 s in each second at least; `SOURCE A COUNTER
FROM 1 s TO 4 s` that A stamps rows with tokens of one common counter, which it works on for so long. SOURCE ALL says
it of every source that is named. Bounds between all sources that have a clock, or a counter, follow from that.

`SOURCE A LATENCY 2 s IN ORDER` says that its rows are not reordered on the way: what comes later was sent later.

`GROUPED (north (a, b), south (c))` behind the bounds watches these sources as two (section 5.2). In bounds, the name
of a group stands for all of its sources.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeVar

from sqlglot import exp

from eventide.errors import DeclarationError
from eventide.eventtime.policies.skew.bounds import RowBound, SkewBound, TimeBound
from eventide.eventtime.policies.skew.confidence import affordable
from eventide.eventtime.policies.skew.matrix import InOrder, Skew
from eventide.eventtime.policies.skew.per_source import distributed_sensors, global_counter
from eventide.language.grammar.nodes import IN_ORDER, Amount, Amounts, Clause
from eventide.language.grammar.spelling import LENGTHS
from eventide.plan.declared.stream import TimeKind

ALL = "ALL"

T = TypeVar("T")


@dataclass
class SkewClauses:
    """Bounds while they are read; sources by the names that the clauses give them."""

    amounts: Amounts
    clock: Amounts
    sources: dict[str, int] = field(default_factory=dict)
    clocks: dict[str, tuple[int, float | None]] = field(default_factory=dict)
    """By how much the clock of a source may be off, and the least rate at which it advances."""
    counters: dict[str, tuple[int, int]] = field(default_factory=dict)
    """How long a source takes at least, and at most, from the issue of a token to its row."""
    latency: dict[str, dict[float, int]] = field(default_factory=dict)
    """How long rows of a source may be on their way, by the share of them that are longer."""
    in_order: dict[str, bool] = field(default_factory=dict)
    """Whose rows are not reordered on the way."""
    pairs: list[tuple[str, str, SkewBound]] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    """What is to be said of bounds that the budget does not afford."""
    groups: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The sources of each group, by its name."""

    def take_groups(self, clause: Clause) -> None:
        """Learn which sources are watched as one; each of them is named by that, and may be said more of."""
        for item in clause.expressions:
            name, members = item.expressions[0], item.expressions[1].expressions
            if name.name in self.groups:
                raise self.amounts.source.error(f"there are two groups {name.name!r}", name, "put them together")
            for source in members:
                if source.name in self.sources:
                    raise self.amounts.source.error(f"{source.name!r} is in two groups", source, "name it once")
                self.sources[source.name] = len(self.sources)
            self.groups[name.name] = tuple(source.name for source in members)
        for item in clause.expressions:
            if item.expressions[0].name in self.sources:
                group = item.expressions[0]
                raise self.amounts.source.error(f"{group.name!r} is a group and a source: rename the group", group)

    def assignment(self, at: exp.Expr) -> tuple[int, ...]:
        """The number of the group of each source."""
        group_of = {source: number for number, group in enumerate(self.groups.values()) for source in group}
        alone = next((source for source in self.sources if source not in group_of), None)
        if alone is not None:
            raise self.amounts.source.error(f"{alone!r} has bounds and is in no group", at, "add it to one")
        return tuple(group_of[source] for source in self.sources)

    def read(self, at: exp.Expr, items: Iterable[Clause], budget: float | None = None) -> tuple[Skew, tuple[str, ...]]:
        """The matrix, and the names of the sources in the order of their numbers.

        Of the bounds that may fail only those are in it that a budget of losses affords.
        """
        for item in items:
            self._take(item)
        if not self.sources:
            raise self.amounts.source.error("BOUNDS names no source", at, "add SOURCE name for each of them")
        names = tuple(self.sources)
        entries: list[list[list[SkewBound]]] = [[[] for _ in names] for _ in names]
        for target, sender, bound in (*self.pairs, *self._of_systems(at)):
            for i in self._numbers(sender):
                for j in self._numbers(target):
                    entries[i][j].append(bound)
        try:
            matrix, unused = affordable(
                entries, [self._said_of(name, self.latency) or {} for name in names], 1.0 if budget is None else budget
            )
        except DeclarationError as error:
            raise self.amounts.source.error(str(error), at) from error
        self.unused += (
            f"a bound of {names[target]!r} behind {names[sender]!r} is not used: it may fail for "
            f"{100 * bound.exceeded:.4g} % of the rows, and with what is used already that is more than DRATIO permits"
            for sender, target, bound in unused
        )
        ordered = tuple(number for name, number in self.sources.items() if self._said_of(name, self.in_order))
        return (InOrder(matrix, ordered) if ordered else matrix), names

    def _take(self, item: Clause) -> None:
        parts = dict(_parts_of(item))
        if item.this == "SOURCE":
            name = self._source(item.expressions[0])
            if "LATENCY" in parts:
                exceeded = self.amounts.share(parts["EXCEEDED"], "EXCEEDED") if "EXCEEDED" in parts else 0.0
                self.latency.setdefault(name, {})[exceeded] = self._positive(parts["LATENCY"], "LATENCY")
            elif "EXCEEDED" in parts:
                raise self.amounts.source.error("EXCEEDED of what? Give a LATENCY before it", parts["EXCEEDED"])
            if any(isinstance(part, exp.Var) and part.name == IN_ORDER for part in item.expressions):
                self.in_order[name] = True
            self._take_system(name, parts)
            return
        target, sender = self._source(item.expressions[0]), self._source(item.expressions[2])
        lag = self.amounts.length(parts["BY"], "BY")
        if lag < 0:
            raise self.amounts.source.error("a source cannot trail by less than 0", parts["BY"])
        exceeded = self.amounts.share(parts["EXCEEDED"], "EXCEEDED") if "EXCEEDED" in parts else 0.0
        after = parts.get("AFTER")
        if after is not None and self.amounts.says_rows(after):
            self.pairs.append((target, sender, RowBound(self.amounts.rows(after, "AFTER"), lag, exceeded)))
        else:
            wait = self._positive(after, "AFTER") if after is not None else 0
            self.pairs.append((target, sender, TimeBound(wait, lag, exceeded)))

    def _take_system(self, name: str, parts: Mapping[str, Amount]) -> None:
        """What a source says of its clock, or of the tokens that it stamps its rows with."""
        for word, before in (("RATE AT LEAST", "CLOCK WITHIN"), ("TO", "COUNTER FROM"), ("COUNTER FROM", "TO")):
            if word in parts and before not in parts:
                raise self.amounts.source.error(f"{word} goes with {before}: give both", parts[word])
        if "CLOCK WITHIN" in parts:
            off, rate = self.amounts.length(parts["CLOCK WITHIN"], "CLOCK WITHIN"), parts.get("RATE AT LEAST")
            if off < 0:
                raise self.amounts.source.error("a clock cannot be off by less than 0", parts["CLOCK WITHIN"])
            self.clocks[name] = off, None if rate is None else self._rate(rate)
        if "COUNTER FROM" in parts:
            least, most = (self._positive(parts[word], word) for word in ("COUNTER FROM", "TO"))
            if least > most:
                raise self.amounts.source.error("COUNTER FROM is more than TO: swap them", parts["TO"])
            self.counters[name] = least, most

    def _rate(self, amount: Amount) -> float:
        """How much of the stream's time passes in a unit of the clock; numbers of a sequence in a second."""
        found = float(amount.this) if amount.args.get("unit") is None else 0.0
        if found <= 0:
            raise self.amounts.source.error("RATE AT LEAST takes a number above 0, such as 0.99", amount)
        of_seconds = self.amounts.kind is TimeKind.SEQUENCE and self.clock.kind is not TimeKind.SEQUENCE
        return found / LENGTHS["s"] if of_seconds else found

    def _of_systems(self, at: exp.Expr) -> Iterator[tuple[str, str, SkewBound]]:
        """The bounds of the two systems of section 4 (Srivastava and Widom)."""
        with_clock = {name: of for name in self.sources if (of := self._said_of(name, self.clocks)) is not None}
        with_counter = {name: of for name in self.sources if (of := self._said_of(name, self.counters)) is not None}
        rates = [rate for _, rate in with_clock.values()]
        if any(rates) and None in rates:
            raise self.amounts.source.error("RATE AT LEAST is given for some clocks only: give all or none", at)
        no_latency = [0] * len(with_clock)
        if with_clock:
            known_rates = [rate for rate in rates if rate is not None]
            sensors = distributed_sensors([off for off, _ in with_clock.values()], no_latency, known_rates or None)
            yield from _pairs(sensors, list(with_clock))
        if with_counter:
            least, most = zip(*with_counter.values(), strict=True)
            yield from _pairs(global_counter(least, most, [0] * len(least)), list(with_counter))

    def _positive(self, amount: Amount, what: str) -> int:
        length = self.clock.length(amount, what)
        if length < 0:
            raise self.clock.source.error(f"{what} cannot be below 0", amount)
        return length

    def _source(self, name: exp.Expr) -> str:
        if is_all(name):
            return ALL
        if name.name not in self.groups:
            self.sources.setdefault(name.name, len(self.sources))
        return name.name

    def _numbers(self, name: str) -> list[int]:
        if name == ALL:
            return list(self.sources.values())
        return [self.sources[source] for source in self.groups.get(name, (name,))]

    def _said_of(self, name: str, said: Mapping[str, T]) -> T | None:
        """What was said of a source, or else of its group, or else of all."""
        of_group = next(
            (said[group] for group, sources in self.groups.items() if name in sources and group in said), None
        )
        return said.get(name, said.get(ALL) if of_group is None else of_group)


def _pairs(skew: Skew, names: list[str]) -> Iterator[tuple[str, str, SkewBound]]:
    """The bounds of a system by the names of its sources: target, sender, bound."""
    for i, sender in enumerate(names):
        for j, target in enumerate(names):
            yield from ((target, sender, bound) for bound in skew.bounds(i, j))


def is_all(name: exp.Expr) -> bool:
    """Whether this stands for all sources."""
    return name.name.upper() == ALL and isinstance(name, exp.Identifier) and not name.args.get("quoted")


def silence(clock: Amounts, amount: Amount, name: str) -> int:
    """How long a silence may last."""
    found = clock.length(amount, name)
    if found < 1:
        raise clock.source.error(f"{name} {amount.sql()} would never wait: give more than 0", amount)
    return found


def _parts_of(item: Clause) -> Iterator[tuple[str, Amount]]:
    """Each word and the amount behind it."""
    parts = item.expressions
    for word, amount in pairwise(parts):
        if isinstance(word, exp.Var) and isinstance(amount, Amount):
            yield word.name, amount
