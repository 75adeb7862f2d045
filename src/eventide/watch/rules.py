"""Rules of one's own (CREATE ALERT): conditions over what a stream or query shows, or over the results of a query.

Laws. A rule that cannot be computed is refused before an engine starts; one that fails over some values is not raised
by them, and the failure is logged once. Results are judged before their round is committed, where they are: of results
on the cluster only the groups come here for which the condition holds, `MOST` at most. A group stands as its last
window said, rows without a window as the last round with such rows.

>>> rule = AlertRule("behind", "s", "lag > 30.0", "lag > 30 s", ("lag",), lasting=10.0)
>>> judged = MeasureRule(rule, DuckDBExecutor(files=False))
>>> judged.holds({"lag": 45.0}), judged.holds({"lag": 30.0}), judged.holds({"lag": None})
(True, False, False)
>>> lasting = Lasting(10.0)
>>> [sorted(lasting.of(["a"], now)) for now in (0.0, 9.0, 10.0)], lasting.of([], 11.0), lasting.of(["a"], 12.0)
([[], [], ['a']], set(), set())
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping

import pyarrow as pa

from eventide.duckdb.executor import DuckDBExecutor
from eventide.engine.round.results import schema_of
from eventide.errors import DeclarationError, EventideError
from eventide.plan.binding import BoundProgram
from eventide.plan.declared.alert import QUERY_MEASURES, STREAM_MEASURES, AlertRule
from eventide.plan.declared.stream import TimeKind
from eventide.plan.expressions.columns import quoted
from eventide.profile.amounts import percent, spoken
from eventide.results.results import Results
from eventide.watch.alert import Finding

log = logging.getLogger(__name__)

MOST = 1_000
"""So many groups of a query are followed for each rule."""
SHARES, LENGTHS = ("late_ratio", "early_error"), ("lag", "silence", "seconds_per_row")

Measures = Mapping[str, float | None]


class Lasting:
    """Who has been found for so many seconds without a break."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since: dict[str, float] = {}

    def of(self, found: Iterable[str], now: float) -> set[str]:
        """Those that have been found for long enough; `found` is everyone who is found now."""
        self._since = {who: self._since.get(who, now) for who in found}
        return {who for who, since in self._since.items() if now - since >= self._seconds}


class MeasureRule:
    """A rule over what a stream or query shows."""

    def __init__(self, rule: AlertRule, executor: DuckDBExecutor, unitless: bool = False) -> None:
        self.rule, self._executor, self._unitless = rule, executor, unitless
        self._text = f"SELECT ({rule.condition}) AS holds FROM shown"
        self._lasting = Lasting(rule.lasting)
        self._failed = False

    def holds(self, values: Measures) -> bool:
        """Whether the condition is true; not where something in it is not known."""
        shown = pa.table({name: pa.array([values.get(name)], pa.float64()) for name in self.rule.reads})
        try:
            return self._executor.ask(self._text, {"shown": shown}).column("holds").to_pylist() == [True]
        except EventideError as error:
            self._failed = _say_once(self._failed, self.rule, error)
            return False

    def found(self, values: Measures, now: float) -> list[Finding]:
        """The alert, where it is to stand at this moment."""
        if not self._lasting.of([""] if self.holds(values) else [], now):
            return []
        told = ", ".join(f"{name} {self._spoken(name, values.get(name))}" for name in self.rule.reads)
        return [_finding(self.rule, "", told)]

    def _spoken(self, name: str, value: float | None) -> str:
        if value is None:
            return "not known"
        if name in SHARES:
            return percent(value)
        if name in LENGTHS and not (name == "lag" and self._unitless):
            return spoken(round(value * 1_000_000), False)
        return f"{value:,.6g}"


class ResultsRule:
    """A rule over the results of a query."""

    def __init__(self, rule: AlertRule, executor: DuckDBExecutor, groups: Collection[str], windows: bool) -> None:
        self.rule, self._executor = rule, executor
        self._groups, self._windows = tuple(map(quoted, groups)), windows
        self._lasting = Lasting(rule.lasting)
        self._standing: dict[str, str] = {}
        self._failed = False

    def text(self, standing: Iterable[str] = ()) -> str:
        """The groups of `results` for which the condition holds, and whether it does for those that stand."""
        who = " || ', ' || ".join(f"coalesce(CAST({name} AS STRING), 'NULL')" for name in self._groups) or "''"
        shown = " || ', ' || ".join(
            f"'{name} ' || coalesce(CAST({quoted(name)} AS STRING), 'NULL')" for name in self.rule.reads
        )
        judged = f"SELECT {who} AS who, coalesce({self.rule.condition}, FALSE) AS holds, {shown} AS seen"
        if not self._windows:
            held = "max(CASE WHEN holds THEN seen END)"
            return f"SELECT '' AS who, bool_or(holds) AS holds, {held} AS seen FROM ({judged} FROM results) AS judged"
        partition = f"PARTITION BY {', '.join(self._groups)} " if self._groups else ""
        last = (
            f"SELECT *, row_number() OVER ({partition}ORDER BY window_end DESC) AS __n FROM results "
            "WHERE kind <> 'early'"
        )
        known = ", ".join("'" + one.replace("\\", "\\\\").replace("'", "\\'") + "'" for one in standing)
        also = f" OR who IN ({known})" if known else ""
        return f"SELECT * FROM ({judged} FROM ({last}) AS last WHERE __n = 1) AS judged WHERE holds{also} LIMIT {MOST}"

    def look(self, results: Results) -> None:
        """Judge the results of a round."""
        if not results.rows:
            return
        try:
            found = self._asked(results, self.text(self._standing))
        except Exception as error:
            # Whatever it is, the round goes on without it.
            self._failed = _say_once(self._failed, self.rule, error)
            return
        # Made anew, not changed: somebody may be looking.
        standing = dict(self._standing)
        for who, holds, seen in zip(
            *(found.column(name).to_pylist() for name in ("who", "holds", "seen")), strict=True
        ):
            standing.pop(who, None)
            if holds and len(standing) < MOST:
                standing[who] = seen
        self._standing = standing

    def _asked(self, results: Results, text: str) -> pa.Table:
        if results.frame is None:
            return self._executor.ask(text, {"results": results.table()})
        frame = results.frame()
        escaped = text.replace("{", "{{").replace("}", "}}").replace("FROM results", "FROM {results}")
        return frame.sparkSession.sql(escaped, results=frame).toArrow()

    def found(self, now: float) -> list[Finding]:
        """An alert for every group that is to have one at this moment."""
        standing = self._standing
        lasting = self._lasting.of(standing, now)
        return [_finding(self.rule, who, seen) for who, seen in standing.items() if who in lasting]


class Rules:
    """The rules of an engine: those over results look before a commit, those over measures whenever they are asked."""

    def __init__(self, measures: Callable[[AlertRule], Measures]) -> None:
        self._measures = measures
        self._of_measures: list[MeasureRule] = []
        self._of_results: dict[str, list[ResultsRule]] = {}
        self._executor: DuckDBExecutor | None = None

    def add(self, rules: Iterable[AlertRule], plan: BoundProgram) -> None:
        """Watch by these, too; what could not be computed is refused."""
        self._executor = self._executor or DuckDBExecutor(threads=1, files=False)
        for rule in rules:
            made = checked(rule, plan, self._executor)
            if isinstance(made, MeasureRule):
                self._of_measures.append(made)
            else:
                self._of_results.setdefault(rule.of, []).append(made)

    def close(self) -> None:
        """Judge nothing any more."""
        self._of_measures, self._of_results = [], {}
        if self._executor is not None:
            self._executor.close()

    def look(self, results: Results) -> None:
        """Judge the results of a query in a round."""
        for rule in self._of_results.get(results.query, ()):
            rule.look(results)

    def found(self, now: float) -> list[Finding]:
        """All that is to stand at this moment; `now` is a clock of the machine in seconds."""
        by_measures = [one for rule in self._of_measures for one in rule.found(self._measures(rule.rule), now)]
        return by_measures + [one for rules in self._of_results.values() for rule in rules for one in rule.found(now)]


def checked(rule: AlertRule, plan: BoundProgram, executor: DuckDBExecutor) -> MeasureRule | ResultsRule:
    """The rule, where its condition can be computed and says yes or no."""
    made: MeasureRule | ResultsRule
    unitless = plan.program.times_of(rule.of) is TimeKind.SEQUENCE
    if not rule.of_results:
        names = (*STREAM_MEASURES, *QUERY_MEASURES)
        made, kinds = MeasureRule(rule, executor, unitless), pa.schema([(name, pa.float64()) for name in names])
    else:
        bound = plan.queries.get(rule.of)
        groups = () if bound is None else [key.name for key in bound.keys]
        made, kinds = ResultsRule(rule, executor, groups, bound is not None), schema_of(plan, rule.of)
    text = f"SELECT ({rule.condition}) AS holds FROM shown"
    try:
        kind = executor.ask(text, {"shown": kinds.empty_table()}).schema.field("holds").type
        if isinstance(made, ResultsRule):
            executor.ask(made.text(["x"]), {"results": kinds.empty_table()})
    except EventideError as error:
        raise DeclarationError(f"alert {rule.name!r}: {rule.words} cannot be computed: {error}") from error
    if not pa.types.is_boolean(kind):
        raise DeclarationError(f"alert {rule.name!r}: {rule.words} is no condition: compare it with something")
    return made


def _finding(rule: AlertRule, who: str, seen: str) -> Finding:
    until = f" for {spoken(round(rule.lasting * 1_000_000), False)}" if rule.lasting else ""
    return Finding(rule.name, rule.of, who, f"not {rule.words}{until}", seen)


def _say_once(said: bool, rule: AlertRule, error: Exception) -> bool:
    if not said:
        log.warning(
            "alert %s cannot be computed: %s: %s",
            rule.name,
            type(error).__name__,
            error,
            extra={"event": "alert not computed"},
        )
    return True
