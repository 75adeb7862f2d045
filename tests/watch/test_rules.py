"""Alerts that a script declares: raised and cleared by what is shown, and refused where they make no sense."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eventide
from benchmarks.console import Steered
from eventide.commands.check import findings_of
from eventide.duckdb.executor import DuckDBExecutor
from eventide.engine.local.engine import LocalEngine
from eventide.errors import DeclarationError, LanguageError
from eventide.language.script import read_script
from eventide.plan.declared.alert import QUERY_MEASURES, STREAM_MEASURES, AlertRule
from eventide.results.results import Results
from eventide.sinks.sink import Memory
from eventide.watch.alert import Alert
from eventide.watch.rules import ResultsRule
from eventide.watch.watching import watch
from tests.watch.test_alerts import metrics_of

SCRIPT = """
CREATE STREAM s (t BIGINT, who STRING, v INT) FROM json 'in' TIMESTAMP BY t SOURCE BY who DELAY 5;
CREATE QUERY sums AS SELECT who, sum(v) AS total FROM s [RANGE 10] GROUP BY who;
CREATE QUERY large AS SELECT t, who, v FROM s WHERE v > 50;
"""


class Played:
    """An engine with rules; `told` has every alert as (name, about, whether it was raised)."""

    def __init__(self, engine: LocalEngine) -> None:
        self.engine = engine
        self.told: list[tuple[str, str, bool]] = []
        self.words: list[str] = []

    def note(self, alert: Alert) -> None:
        if alert.kind not in ("silence", "clock jump", "clock drift", "bound"):
            self.told.append((alert.kind, alert.who, alert.cleared is None))
            self.words.append(alert.words())

    def round(self, *rows: tuple[int, str, int]) -> None:
        """A round with these rows."""
        times, names, values = zip(*rows, strict=True)
        table = pa.table({"t": times, "who": names, "v": pa.array(values, pa.int32())})
        self.engine.noted(self.engine.engine.round({"s": table}))


@contextmanager
def played(folder: Path, rules: str) -> Iterator[Played]:
    script = read_script(SCRIPT + rules)
    sinks = {"sums": Memory(), "large": Memory()}
    with LocalEngine(script.program, str(folder / "state"), sinks, {"s": Steered()}) as engine:
        watching = watch(engine)
        watching.add(script.alerts)
        run = Played(engine)
        watching.board.listen(run.note)
        yield run


def test_a_group_is_raised_by_its_last_window_and_cleared_by_the_next(tmp_path: Path) -> None:
    with played(tmp_path, "CREATE ALERT busy ON sums WHEN total > 10;") as run:
        run.round((1, "a", 20), (2, "b", 5))
        assert run.told == []
        run.round((16, "a", 1), (16, "b", 30))
        assert run.told == [("busy", "a", True)]
        assert run.words == ["busy of a of sums: expected not total > 10, seen total 20"]
        assert 'eventide_alerts{kind="busy",of="sums"} 1.0' in metrics_of(run.engine)
        run.round((26, "a", 1))
        assert run.told[1:] == [("busy", "a", False), ("busy", "b", True)]


def test_rows_without_windows_stand_until_a_round_has_none_of_them(tmp_path: Path) -> None:
    with played(tmp_path, "CREATE ALERT huge ON large WHEN v >= 90;") as run:
        run.round((1, "a", 95), (2, "b", 60))
        run.round((10, "a", 1))
        assert run.told == [("huge", "", True)]
        run.round((20, "a", 55))
        run.round((30, "a", 55))
        assert run.told == [("huge", "", True), ("huge", "", False)]


def test_what_a_stream_shows_raises_and_clears(tmp_path: Path) -> None:
    rules = "CREATE ALERT behind ON s WHEN lag >= 5 AND rows > 1; CREATE ALERT lost ON s WHEN late_ratio > 20%;"
    with played(tmp_path, rules) as run:
        run.round((1, "a", 1))
        assert run.told == []
        run.round((100, "a", 1))
        assert run.told == [("behind", "", True)]
        run.round((3, "a", 1), (4, "a", 1), (5, "a", 1))
        assert run.told == [("behind", "", True), ("lost", "", True)]
        assert run.words[1] == "lost of s: expected not late_ratio > 20%, seen late_ratio 60.01 %"


def test_every_measure_can_be_asked(tmp_path: Path) -> None:
    rules = [f"CREATE ALERT s_{name} ON s WHEN {name} >= 0;" for name in STREAM_MEASURES]
    rules += [f"CREATE ALERT q_{name} ON sums WHEN {name} >= 0;" for name in QUERY_MEASURES]
    with played(tmp_path, "".join(rules)) as run:
        run.round((1, "a", 1))
        run.round((50, "a", 1))
        raised = {name for name, _, up in run.told if up}
    # No early answer was ever asked for.
    assert raised == {rule.split()[2] for rule in rules} - {"q_early_error"}


def test_an_alert_that_has_to_last_is_not_raised_before(tmp_path: Path) -> None:
    with played(tmp_path, "CREATE ALERT busy ON sums WHEN total > 10 FOR 1 hour;") as run:
        run.round((1, "a", 20))
        run.round((16, "a", 1))
        assert run.told == []


@given(
    st.lists(
        st.lists(st.tuples(st.integers(1, 4), st.sampled_from(["a", "b", "o'x", None]), st.integers(0, 9)), max_size=4),
        max_size=3,
    )
)
def test_groups_stand_as_brute_force_has_it(rounds: list[list[tuple[int, str | None, int]]]) -> None:
    executor = DuckDBExecutor(threads=1, files=False)
    rule = ResultsRule(AlertRule("x", "q", "total > 4", "total > 4", ("total",), True), executor, ["who"], True)
    wanted: dict[str, str] = {}
    for number, rows in enumerate(rounds):
        last: dict[str | None, tuple[int, int]] = {}
        for end, who, total in rows:
            if who not in last or end > last[who][0]:
                last[who] = end, total
        for who, (_, total) in last.items():
            wanted.pop(str(who) if who is not None else "NULL", None)
            if total > 4:
                wanted[str(who) if who is not None else "NULL"] = f"total {total}"
        kept = {(who, end): (end, who, total) for end, who, total in reversed(rows)}
        table = pa.table(
            {
                "kind": pa.array(["final"] * len(kept), pa.string()),
                "window_end": pa.array([row[0] for row in kept.values()], pa.int64()),
                "who": pa.array([row[1] for row in kept.values()], pa.string()),
                "total": pa.array([row[2] for row in kept.values()], pa.int64()),
            }
        )
        rule.look(Results.of_table("q", number, table))
        assert {finding.who: finding.seen for finding in rule.found(0.0)} == wanted
    executor.close()


WRONG = {
    "CREATE ALERT a ON cars WHEN lag > 3": "there is no stream or query 'cars'",
    "CREATE ALERT a ON s WHEN v > 3": "'s' does not show 'v'",
    "CREATE ALERT a ON sums WHEN totl > 3": "'sums' does not show 'totl'",
    "CREATE ALERT a ON sums WHEN total > 3 AND lag > 3": "'lag' is no column of the results of 'sums'",
    "CREATE ALERT sink ON s WHEN lag > 3": "'sink' is an alert that is raised without a rule",
    "CREATE ALERT a ON s WHEN lag > 30 seconds": "lag cannot be 30 seconds: the time of this stream is a sequence",
    "CREATE ALERT a ON s WHEN max(lag) > 3": "an alert compares what is shown",
    "CREATE ALERT a ON s WHEN 1 > 0": "this condition speaks of nothing that is shown",
    "CREATE ALERT a ON s WHEN lag > 3 FOR 3 rows": "FOR cannot be 3 rows",
    "CREATE ALERT a ON s WHEN lag > 3; CREATE ALERT A ON s WHEN lag > 4": "there is already an alert 'A'",
    "CREATE ALERT a ON sums WHEN total > 3; DROP QUERY sums": "the alert 'a' is ON it",
    "CREATE ALERT a ON s lag > 3": "expected WHEN, not 'lag'",
    "CREATE ALERT a ON s WHEN": "expected a condition",
}


@pytest.mark.parametrize("rule", WRONG)
def test_a_rule_that_makes_no_sense_is_refused_at_its_place(rule: str) -> None:
    with pytest.raises(LanguageError, match=r"\d+:\d+") as refused:
        read_script(SCRIPT + rule)
    assert WRONG[rule] in str(refused.value)
    assert refused.value.line == 5


@pytest.mark.parametrize("condition", ["total", "total + 1", "no_such(total) > 1"])
def test_a_condition_that_cannot_be_computed_is_found_by_check_and_before_a_start(
    condition: str, tmp_path: Path
) -> None:
    text = f"{SCRIPT}CREATE ALERT a ON sums WHEN {condition};"
    found, _ = findings_of(text, "s.sql")
    assert [one.line for one in found if one.severity == "error"] == [5]
    with (
        pytest.raises(DeclarationError, match="alert 'a'"),
        played(tmp_path, f"CREATE ALERT a ON sums WHEN {condition};"),
    ):
        pass


def test_a_script_started_in_python_is_watched_by_its_rules() -> None:
    rows: queue.Queue[pa.RecordBatch | None] = queue.Queue()
    schema = pa.schema([("t", pa.int64()), ("who", pa.string()), ("v", pa.int32())])
    for time, total in ((1, 20), (16, 1)):
        rows.put(pa.RecordBatch.from_pydict({"t": [time], "who": ["a"], "v": [total]}, schema))
    cars = eventide.stream(pa.RecordBatchReader.from_batches(schema, iter(rows.get, None)), time="t").delay(5)
    text = "CREATE QUERY q AS SELECT sum(v) AS total FROM s [RANGE 10]; CREATE ALERT a ON q WHEN total > 10;"
    told: queue.Queue[str] = queue.Queue()
    with eventide.sql(text, s=cars).start(bounded=False) as running:
        running.on_alert(lambda alert: told.put(alert.words()))
        assert told.get(timeout=60) == "a of q: expected not total > 10, seen total 20"
        rows.put(None)
