"""Read the clauses that name a heartbeat policy.

| clauses | policy |
|---|---|
| none | `DropRatio(0.01)` |
| `SLACK n [ROWS]` | `Slack(n)` |
| `SLACK length`, `DELAY length` | `FixedDelay(length)` |
| `WATERMARK FOR ts AS ts - length`, `WATERMARK ts DELAY OF length` | `FixedDelay(length)` |
| `DRATIO p%` | `DropRatio(p)` |
| `DRATIO p% LEARNED FROM 'file'` | `DropRatio(p, Learned(file))` |
| `DRATIO p% SLACK n` | `Cap(DropRatio(p), rows=n)`; with `SLACK 0` no cap |
| `DRATIO p% SLACK length` | `Cap(DropRatio(p), behind_largest=length)` |
| `DRATIO p% [SLACK n] ESTIMATOR KIM` | `Kim(p, n)`, of the disorder controller |
| `DRATIO p% ESTIMATOR ADHOC` | `KimAdhoc(p)`, its baseline |
| `DRATIO p% ESTIMATOR QUANTILE` | `DelayQuantile(1 - p)` |
| `CLOCK SKEW length` | `ClockSkew(length)` |
| `ON DEMAND length` | `OnDemand(length)` |
| `BOUNDS (...) [DRATIO p%]` | `DeclaredSkew(matrix)`, of the bounds that may fail for p of the rows together |
| `BOUNDS (...) GROUPED INTO n` | `MergedSources(DeclaredSkew(group(matrix, groups)), groups)`, by `partition` |
| `BOUNDS (...) GROUPED (north (a, b), ...)` | the same, of these groups |
| `BOUNDS (...) CLOCK UNIT length` | `DeclaredSkew(matrix, clock_unit)` |
| `ESTIMATED BOUNDS (...)` | `EstimatedSkew(...)` |
| `OWN PROGRESS [SLACK length]` | `OwnProgress(length)` |
| `... PUNCTUATED BY column` | `Punctuated(...)`; `Punctuated()` without any other clause of these |
| `... IDLE AFTER length` | `Idle(..., length)` |
| `... EXPECTING (a, b) [GIVE UP AFTER length]` | `Expected(..., sources, length)` |
| `... TIMEOUT length` | `Timeout(..., length)` |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from eventide.errors import DeclarationError
from eventide.eventtime.heartbeat import Policy
from eventide.eventtime.policies.clock_skew import ClockSkew
from eventide.eventtime.policies.delay_quantile import DelayQuantile
from eventide.eventtime.policies.drop_ratio.learned import Learned
from eventide.eventtime.policies.drop_ratio.policy import DropRatio
from eventide.eventtime.policies.fixed_delay import FixedDelay
from eventide.eventtime.policies.kim import Kim, KimAdhoc
from eventide.eventtime.policies.on_demand import OnDemand
from eventide.eventtime.policies.own_progress import OwnProgress
from eventide.eventtime.policies.punctuated import Punctuated
from eventide.eventtime.policies.skew.declared import DeclaredSkew
from eventide.eventtime.policies.skew.estimated import Adaptivity, ClockSpan, EstimatedSkew
from eventide.eventtime.policies.skew.grouping import group, partition
from eventide.eventtime.policies.skew.matrix import Skew
from eventide.eventtime.policies.slack import Slack
from eventide.eventtime.policies.wrappers.cap import Cap
from eventide.eventtime.policies.wrappers.expected_sources import Expected
from eventide.eventtime.policies.wrappers.idleness import Idle
from eventide.eventtime.policies.wrappers.source_groups import MergedSources
from eventide.eventtime.policies.wrappers.timeout import Timeout
from eventide.language.ddl.bounds import SkewClauses, silence
from eventide.language.grammar.nodes import Amount, Amounts, Clause
from eventide.language.grammar.source_text import SourceText
from eventide.language.grammar.spelling import meant
from eventide.plan.declared.stream import Stream
from eventide.plan.expressions.columns import Column

WATERMARKS = ("WATERMARK FOR", "WATERMARK")
"""DELAY as Flink and Spark spell it, with the name of the column that tells the time."""

POLICIES = (
    "DRATIO",
    "DELAY",
    *WATERMARKS,
    "CLOCK SKEW",
    "ON DEMAND",
    "BOUNDS",
    "ESTIMATED BOUNDS",
    "OWN PROGRESS",
)
"""Clauses of which a stream has at most one; SLACK goes alone, with DRATIO or with OWN PROGRESS."""

MEAN_GAP = 1_000_000
"""How often a source is taken to speak where groups are looked for: once a second."""

ESTIMATORS = ("KIM", "ADHOC", "QUANTILE")
ESTIMATION = ("WINDOW", "MAXIMUM", "WEIGHT", "TOLERATED", "STEADY", "UNIT", "AHEAD", "PAIRWISE")


@dataclass(frozen=True)
class PolicyReader:
    """Builds policies: `amounts` for application time, `clock` for the clock."""

    amounts: Amounts
    clock: Amounts
    unused: list[str] = field(default_factory=list)
    """What is to be said of bounds that have no effect."""

    def read(self, clauses: Mapping[str, Clause]) -> tuple[Policy, tuple[str, ...]]:
        """The policy, and the names of sources that it numbers."""
        given = [name for name in POLICIES if name in clauses]
        if "BOUNDS" in given and "DRATIO" in given and not {"SLACK", "ESTIMATOR"} & clauses.keys():
            # How many rows the bounds may lose.
            given.remove("DRATIO")
        if len(given) > 1:
            raise self.amounts.source.error(
                f"{given[0]} and {given[1]} are two ways to find heartbeats: keep one of them", clauses[given[1]]
            )
        chosen = given[0] if given else None
        if "SLACK" in clauses and chosen not in (None, "DRATIO", "OWN PROGRESS"):
            raise self.amounts.source.error(f"SLACK does not go with {chosen}: keep one of them", clauses["SLACK"])
        if "ESTIMATOR" in clauses and chosen != "DRATIO":
            raise self.amounts.source.error("ESTIMATOR without DRATIO", clauses["ESTIMATOR"], "add DRATIO and a share")
        if "LEARNED FROM" in clauses and (chosen != "DRATIO" or "ESTIMATOR" in clauses):
            raise self.amounts.source.error(
                "LEARNED FROM is for DRATIO without an ESTIMATOR",
                clauses["LEARNED FROM"],
                "write DRATIO 1% LEARNED FROM 'recording.parquet'",
            )
        for name in ("GROUPED INTO", "GROUPED", "CLOCK UNIT"):
            if name in clauses and chosen != "BOUNDS":
                raise self.amounts.source.error(f"{name} is for BOUNDS, and there are none", clauses[name])
        known: tuple[str, ...] = ()
        if chosen == "BOUNDS":
            bounds, ratio = clauses["BOUNDS"], clauses.get("DRATIO")
            budget = None if ratio is None else self.amounts.share(ratio.expressions[0], "DRATIO")
            reader = SkewClauses(self.amounts, self.clock, unused=self.unused)
            if (grouped := clauses.get("GROUPED")) is not None:
                reader.take_groups(grouped)
            matrix, known = reader.read(bounds, bounds.expressions, budget)
            policy: Policy = self._of_groups(matrix, clauses, reader)
        else:
            policy = self._simple(chosen, clauses)
        if "PUNCTUATED BY" in clauses:
            policy = Punctuated(policy if chosen is not None or "SLACK" in clauses else None)
        if "IDLE AFTER" in clauses:
            policy = Idle(policy, self._silence(clauses, "IDLE AFTER"))
        if "EXPECTING" in clauses:
            policy, known = self._expected(policy, known, clauses)
        elif "GIVE UP AFTER" in clauses:
            raise self.amounts.source.error(
                "GIVE UP AFTER without EXPECTING: nobody is waited for before he speaks",
                clauses["GIVE UP AFTER"],
                "add EXPECTING and the names of sources, or write IDLE AFTER",
            )
        if "TIMEOUT" in clauses:
            policy = Timeout(policy, self._silence(clauses, "TIMEOUT"))
        return policy, known

    def _expected(
        self, policy: Policy, known: tuple[str, ...], clauses: Mapping[str, Clause]
    ) -> tuple[Policy, tuple[str, ...]]:
        """Sources that are waited for by name; a silence that makes one idle gives up one that never spoke, too."""
        names: dict[str, int] = {name: number for number, name in enumerate(known)}
        sources = []
        for item in clauses["EXPECTING"].expressions:
            if known and item.name not in names:
                raise self.amounts.source.error(
                    f"{item.name!r} is expected, but BOUNDS does not name it", item, "add it to BOUNDS: SOURCE name"
                )
            sources.append(names.setdefault(item.name, len(names)))
        given_up = next((name for name in ("GIVE UP AFTER", "IDLE AFTER") if name in clauses), None)
        wait = None if given_up is None else self._silence(clauses, given_up)
        return Expected(policy, tuple(dict.fromkeys(sources)), wait), tuple(names)

    def _of_groups(self, matrix: Skew, clauses: Mapping[str, Clause], reader: SkewClauses) -> Policy:
        """Bounds between sources, or between groups of them (Srivastava and Widom, sections 5.1 and 5.2)."""
        unit = None if "CLOCK UNIT" not in clauses else self._silence(clauses, "CLOCK UNIT")
        if "GROUPED" in clauses:
            if "GROUPED INTO" in clauses:
                raise self.amounts.source.error(
                    "GROUPED INTO looks for groups, and GROUPED names them: keep one", clauses["GROUPED INTO"]
                )
            assignment = reader.assignment(clauses["BOUNDS"])
            return MergedSources(DeclaredSkew(group(matrix, assignment), unit), assignment)
        if "GROUPED INTO" not in clauses:
            return DeclaredSkew(matrix, unit)
        amount = clauses["GROUPED INTO"].expressions[0]
        groups, sources = self.amounts.count(amount, "GROUPED INTO", ("groups", "groups")), len(matrix.latency)
        if not 1 <= groups <= sources:
            raise self.amounts.source.error(f"{sources} sources cannot be grouped into {amount.sql()}", amount)
        assignment = partition(matrix, groups, gap=MEAN_GAP)
        return MergedSources(DeclaredSkew(group(matrix, assignment), unit), assignment)

    def _simple(self, chosen: str | None, clauses: Mapping[str, Clause]) -> Policy:
        slack: Amount | None = clauses["SLACK"].expressions[0] if "SLACK" in clauses else None
        if chosen == "DRATIO":
            learned = clauses.get("LEARNED FROM")
            origin = None if learned is None else Learned(learned.expressions[0].name)
            return self._drop_ratio(clauses["DRATIO"].expressions[0], slack, clauses.get("ESTIMATOR"), origin)
        if chosen == "OWN PROGRESS":
            return OwnProgress(self._length(slack, "SLACK") if slack is not None else 0)
        if chosen == "DELAY":
            return FixedDelay(self._length(clauses["DELAY"].expressions[0], "DELAY"))
        if chosen in WATERMARKS:
            delays = [part for part in clauses[chosen].expressions if isinstance(part, Amount)]
            return FixedDelay(self._length(delays[0], "WATERMARK") if delays else 0)
        if chosen == "CLOCK SKEW":
            return ClockSkew(self.clock.length(clauses["CLOCK SKEW"].expressions[0], "CLOCK SKEW"))
        if chosen == "ON DEMAND":
            return OnDemand(self._length(clauses["ON DEMAND"].expressions[0], "ON DEMAND"))
        if chosen == "ESTIMATED BOUNDS":
            return self._estimated(clauses["ESTIMATED BOUNDS"])
        if slack is None:
            return DropRatio(0.01)
        return Slack(self.amounts.rows(slack, "SLACK")) if self.amounts.is_rows(slack) else self._delay(slack)

    def _delay(self, slack: Amount) -> FixedDelay:
        return FixedDelay(self._length(slack, "SLACK"))

    def _drop_ratio(
        self, share: Amount, slack: Amount | None, estimator: Clause | None, learned: Learned | None
    ) -> Policy:
        ratio = self.amounts.share(share, "DRATIO")
        name = estimator.expressions[0].name.upper() if estimator is not None else ""
        if name == "KIM":
            return Kim(ratio, self.amounts.rows(slack, "SLACK") if slack is not None else None)
        if estimator is not None and name not in ESTIMATORS:
            raise self.amounts.source.error(f"there is no estimator {name}", estimator, meant(name, ESTIMATORS))
        others: dict[str, Policy] = {"ADHOC": KimAdhoc(ratio), "QUANTILE": DelayQuantile(1 - ratio)}
        policy = others.get(name, DropRatio(ratio, learned))
        if slack is None:
            return policy
        if not self.amounts.is_rows(slack):
            return Cap(policy, behind_largest=self._length(slack, "SLACK"))
        rows = self.amounts.rows(slack, "SLACK")
        return Cap(policy, rows=rows) if rows else policy

    def _estimated(self, clause: Clause) -> EstimatedSkew:
        parts: dict[str, Clause] = {}
        for item in clause.expressions:
            name = str(item.this).upper()
            if name not in ESTIMATION:
                raise self.amounts.source.error(
                    f"ESTIMATED BOUNDS has no option {item.this}", item, meant(name, ESTIMATION)
                )
            if name not in ("MAXIMUM", "STEADY", "PAIRWISE") and not (
                item.expressions and isinstance(item.expressions[0], Amount)
            ):
                raise self.amounts.source.error(f"{name} needs a number", item)
            parts[name] = item
        for one, other in (("MAXIMUM", "WINDOW"), ("STEADY", "TOLERATED")):
            if one in parts and other in parts:
                raise self.amounts.source.error(f"{one} and {other} exclude each other: keep one", parts[other])
        usual = Adaptivity()
        tolerated = None if "STEADY" in parts else usual.tolerated
        if "TOLERATED" in parts:
            tolerated = self.amounts.share(parts["TOLERATED"].expressions[0], "TOLERATED")
        window = None if "MAXIMUM" in parts else self._window_of_estimates(parts, usual)
        adaptivity = Adaptivity(window, self._weight(parts, usual.weight), tolerated)
        unit = self.clock.length(parts["UNIT"].expressions[0], "UNIT") if "UNIT" in parts else 1
        return EstimatedSkew(adaptivity, unit, self._count(parts, "AHEAD", 0), "PAIRWISE" in parts)

    def _count(self, parts: Mapping[str, Clause], name: str, usual: int) -> int:
        return self.amounts.rows(parts[name].expressions[0], name) if name in parts else usual

    def _window_of_estimates(self, parts: Mapping[str, Clause], usual: Adaptivity) -> int | ClockSpan | None:
        """How many rows, or how long, an estimate stands at least."""
        if "WINDOW" not in parts:
            return usual.window
        amount = parts["WINDOW"].expressions[0]
        if self.amounts.is_rows(amount):
            return self.amounts.rows(amount, "WINDOW")
        return ClockSpan(self.clock.length(amount, "WINDOW"))

    def _weight(self, parts: Mapping[str, Clause], usual: float) -> float:
        if "WEIGHT" not in parts:
            return usual
        amount = parts["WEIGHT"].expressions[0]
        return float(amount.this) if amount.args.get("unit") is None else self.amounts.share(amount, "WEIGHT")

    def _length(self, amount: Amount, what: str) -> int:
        found = self.amounts.length(amount, what)
        if found < 0:
            raise self.amounts.source.error(f"{what} cannot be {amount.sql()}: give 0 or more", amount)
        return found

    def _silence(self, clauses: Mapping[str, Clause], name: str) -> int:
        return silence(self.clock, clauses[name].expressions[0], name)


def with_ranges(
    stream: Stream, clause: Clause | None, column: Callable[[exp.Expr], Column], source: SourceText
) -> Stream:
    """The stream with the ranges of which its promises speak.

    `PUNCTUATED BY done FOR column BETWEEN first AND last`, AND between several.
    """
    found = []
    given = [] if clause is None else clause.expressions[2:]
    for one in [part for all in given for part in (all.flatten() if isinstance(all, exp.And) else [all])]:
        edges = [one.this, one.args["low"], one.args["high"]] if isinstance(one, exp.Between) else []
        if len(edges) != 3 or not all(isinstance(edge, exp.Column) for edge in edges):
            raise source.error(
                f"{one.sql('spark')!r} is no range of which promises speak",
                clause,
                "write FOR column BETWEEN first_column AND last_column, with AND between several",
            )
        name, first, last = (column(edge.this).name for edge in edges)
        found.append((name, first, last))
    try:
        return replace(stream, promised=tuple(found))
    except DeclarationError as error:
        raise source.error(str(error), clause) from None
