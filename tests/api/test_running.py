"""Queries started from Python, on the local engine: their handles, their sinks, and data that is still to come."""

from __future__ import annotations

import gc
import queue
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import eventide
from eventide.api.query import ContinuousQuery
from eventide.api.stream import EventStream
from eventide.errors import DeclarationError, EngineError
from eventide.eventtime.policies.fixed_delay import FixedDelay
from eventide.eventtime.policies.own_progress import OwnProgress
from eventide.eventtime.policies.slack import Slack
from eventide.plan.declared.program import Program
from eventide.sinks.sink import Memory

TIMES = [1, 12, 5, 25, 31, 48]
TABLE = pa.table({"t": TIMES, "k": ["a", "b", "a", "b", "a", "b"], "v": [1, 2, 3, 4, 5, 6]})


def totals(rows: Any = TABLE) -> ContinuousQuery:
    return eventide.stream(rows, time="t", source="k", name="s").delay(0).window(10).agg(total="sum(v)")


def told(table: pa.Table) -> list[tuple[int, int]]:
    return [(row["window_end"], row["total"]) for row in table.to_pylist()]


EVERYTHING = [(10, 4), (20, 2), (30, 4), (40, 5), (50, 6)]


def test_a_table_is_one_round_and_every_window_closes() -> None:
    with totals().start() as running:
        assert running.awaitTermination() is True
        assert told(running.results()) == EVERYTHING
        assert not running.isActive
        assert running.exception() is None
        assert running.status().streams[0].late == 0
        assert repr(running) == "<query: ended>"


def test_each_batch_is_a_round_so_rows_can_be_late() -> None:
    with pytest.warns(eventide.LostRowsWarning, match=r"1 row came too late; .*\.start\(checkpoint=...\) keeps"):
        late = totals(TABLE.to_batches(max_chunksize=1)).run()
    assert told(late) == [(10, 1), *EVERYTHING[1:]], "the row at 5 came after the one at 12"


def test_run_warns_of_rows_that_were_rejected_and_why() -> None:
    rows = pa.table({"t": [1, 12, 25, None], "s": ["1", "x", "3", "4"]})
    query = eventide.stream(rows, time="t").delay(0).window(10).agg(n="sum(CAST(s AS INT))")
    with pytest.warns(eventide.LostRowsWarning, match="2 rows rejected: 1 no time; 1 .* the value is no INT") as caught:
        assert query.run().column("n").to_pylist() == [1, 3]
    assert caught[0].filename == __file__, "the warning names the line that called run"


def test_names_of_columns_may_hold_backticks() -> None:
    rows = pa.table({"t": [1, 12, 3], "it`s": [1, 2, 4], "k`": ["a", "b", "a"]})
    stream = eventide.stream(rows, time="t", source="k`").delay(0)
    for aggregate in ("sum(`it``s`)", "median(`it``s`)"):
        found = stream.window(10).groupBy("k`").agg(n=aggregate).run().to_pylist()
        assert sorted((row["k`"], row["window_end"]) for row in found) == [("a", 10), ("b", 20)]


def test_a_script_must_be_a_text() -> None:
    with pytest.raises(eventide.DeclarationError, match="a script is a text, not None"):
        eventide.sql(None)  # type: ignore[arg-type]


def test_the_same_query_can_be_started_again() -> None:
    query = totals()
    assert told(query.run()) == told(query.run()) == EVERYTHING


def test_an_iterator_answers_while_it_goes_on_and_gives_its_rows_once() -> None:
    coming: queue.Queue[pa.RecordBatch | None] = queue.Queue()
    answers: queue.Queue[pa.Table] = queue.Queue()
    batches = TABLE.to_batches(max_chunksize=3)
    coming.put(batches[0])
    query = totals(iter(coming.get, None))
    with query.start(answers.put) as running:
        coming.put(batches[1])
        first = answers.get(timeout=300)
        assert running.isActive, "the iterator has not ended"
        coming.put(None)
        assert running.awaitTermination(300)
    rest = [answers.get(timeout=1) for _ in range(answers.qsize())]
    assert told(pa.concat_tables([first, *rest])) == EVERYTHING
    with pytest.raises(DeclarationError, match="an iterator gives them once"):
        query.start()


def test_a_running_query_says_why_its_windows_are_open_and_a_source_can_be_declared_over() -> None:
    coming: queue.Queue[pa.RecordBatch | None] = queue.Queue()
    answers: queue.Queue[pa.Table] = queue.Queue()
    [batch] = TABLE.to_batches()
    coming.put(batch)
    rows = eventide.stream(iter(coming.get, None), time="t", source="k", name="s").policy(OwnProgress())
    with rows.expecting("a", "c").window(10).agg(total="sum(v)").start(answers.put) as running:
        while not (open_windows := running.why()):
            assert running.isActive
        first = open_windows[0]
        assert (first.window_start, first.closes_at) == (0, None)
        assert [source["source"] for source in first.waits_for["sources"]] == ["c"]
        assert str(first).startswith(
            "window 0 to 10 waits for c (not heard yet), it is expected and has not spoken yet"
        )
        running.together.end_source("s", "c")
        assert told(answers.get(timeout=300)) == EVERYTHING[:3], "c is over; a, at 31, is the slowest"
        assert "waits for a (at 31" in str(running.why()[0])
        assert running.status().queries[0].waits_for is not None
        coming.put(None)
        assert running.awaitTermination(300)
        assert running.why() == []
    assert told(pa.concat_tables([answers.get(timeout=1) for _ in range(answers.qsize())])) == EVERYTHING[3:]


def test_an_iterator_that_fails_is_told_and_the_results_before_stay() -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield from TABLE.to_batches(max_chunksize=3)
        raise OSError("the wire is cut")

    running = totals(failing()).start()
    for _ in "first", "again":
        with pytest.raises(eventide.InputError, match="OSError: the wire is cut"):
            running.awaitTermination(300)
    assert "the wire is cut" in str(running.exception())
    assert told(running.results()) == EVERYTHING[:4]
    assert repr(running) == "<query: failed>"


def test_results_go_to_a_directory_in_the_format_that_is_asked_for(tmp_path: Path) -> None:
    with totals().start(tmp_path / "parquet", name="totals") as running:
        running.awaitTermination()
        assert told(running.results()) == EVERYTHING
    with totals().start(str(tmp_path / "csv"), name="totals", format="csv") as running:
        running.awaitTermination()
        with pytest.raises(EngineError, match="went to Directory"):
            running.results()
    files = sorted((tmp_path / "csv").iterdir())
    assert [pair for file in files for pair in told(pyarrow.csv.read_csv(file))] == EVERYTHING


def test_results_go_to_any_sink() -> None:
    memory = Memory()
    with totals().start(memory, name="totals") as running:
        running.awaitTermination()
    assert told(memory.table("totals")) == EVERYTHING


def test_a_function_that_fails_is_named() -> None:
    def broken(table: pa.Table) -> None:
        raise KeyError("volume")

    running = totals().start(broken)
    with pytest.raises(EngineError, match=r"the function .*broken failed on the results of 'query'.*volume"):
        running.awaitTermination(300)


def test_a_checkpoint_is_continued_and_a_query_without_one_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    batches = TABLE.to_batches(max_chunksize=1)
    memory = Memory()
    with totals(batches[:4]).start(memory, tmp_path / "kept", bounded=False) as running:
        running.awaitTermination(300)
    with totals(batches).start(memory, tmp_path / "kept", bounded=True) as running:
        running.awaitTermination(300)
        assert running.status().streams[0].rows == len(TIMES)
    assert told(memory.table("query")) == [(10, 1), *EVERYTHING[1:]]
    totals().run()
    del running
    gc.collect()
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_queries_started_together_share_their_stream() -> None:
    s = eventide.stream(TABLE, time="t", name="s").delay(0)
    memory = Memory()
    running = eventide.start(
        s.window(50).agg(n="count(*)").named("everything"),
        tens=s.window(10).agg(total="sum(v)"),
        sinks={"everything": memory},
    )
    with running:
        running.awaitTermination(300)
    assert list(running) == ["everything", "tens"]
    assert running.status().streams[0].rows == len(TIMES), "each row was read once"
    assert told(running["tens"].results()) == EVERYTHING
    assert memory.rows("everything")[0]["n"] == len(TIMES)
    assert repr(running) == "<everything, tens: ended>"


def test_what_cannot_start_is_refused_before_anything_runs() -> None:
    s = eventide.stream(TABLE, time="t").delay(0)
    other = eventide.stream(TABLE, time="t").delay(0)
    counted, again = s.window(10).agg(n="count(*)"), other.window(10).agg(n="count(*)")
    with pytest.raises(DeclarationError, match="two different streams are both called 'stream'"):
        eventide.start(counted.named("a"), again.named("b"))
    with pytest.raises(DeclarationError, match="cannot be started twice in one engine"):
        eventide.start(counted, counted)
    with pytest.raises(DeclarationError, match="nothing to start"):
        eventide.start()
    with pytest.raises(DeclarationError, match="no query 'c' to give a sink"):
        eventide.start(counted, sinks={"c": None})
    with pytest.raises(DeclarationError, match="is no aggregate"):
        s.window(10).agg(n="v + 1").start()


def test_a_notebook_is_shown_how_the_query_stands_and_its_last_results() -> None:
    query = (
        eventide.stream(TABLE, time="t", name="s").delay(0).window(10).groupBy("k").agg("concat('<', max(k)) AS tag")
    )
    with query.start() as running:
        running.awaitTermination()
        shown = running._repr_html_()
    assert "<b>query</b> ended" in shown
    assert "s: 6 rows of 1 source, 0.00% late, every window is closed" in shown
    assert "<td>&lt;b</td>" in shown
    assert "the last 5 of 5 results" in shown


def test_a_live_table_keeps_up_and_tells_the_end() -> None:
    coming: queue.Queue[pa.RecordBatch | None] = queue.Queue()
    shown: queue.Queue[str] = queue.Queue()
    coming.put(TABLE.to_batches()[0])
    with totals(iter(coming.get, None)).start() as running:
        running.live(shown.put, every=0.01)
        assert "<b>query</b> running" in shown.get(timeout=300)
        coming.put(None)
        running.awaitTermination(300)
        last = ""
        while "<b>query</b> ended" not in last:
            last = shown.get(timeout=300)
    assert "the last 5 of 5 results" in last


def test_a_script_in_sql_runs_and_keeps_in_memory_what_names_no_place(tmp_path: Path) -> None:
    pyarrow.csv.write_csv(TABLE, tmp_path / "rows.csv")
    script = eventide.sql(
        f"""
        CREATE STREAM s (t BIGINT, k STRING, v INT) FROM csv '{tmp_path / "rows.csv"}' SOURCE BY k SLACK 0;
        CREATE QUERY totals AS SELECT sum(v) AS total FROM s [RANGE 10];
        CREATE QUERY counts AS SELECT count(*) AS total FROM s [RANGE 50] INTO '{tmp_path / "counts"}' FORMAT parquet;
        """
    )
    by_hand = eventide.stream(
        TABLE.cast(pa.schema([("t", "int64"), ("k", "string"), ("v", "int32")])), "t", "k", name="s"
    )
    assert script.plan.queries[1] == by_hand.window(50).agg("COUNT(*) AS total").named("counts").declared
    with script.start(engine="local", bounded=True) as running:
        running.awaitTermination(300)
        assert told(running["totals"].results()) == EVERYTHING
    assert told(pq.read_table(tmp_path / "counts")) == [(50, 6)]
    memory = Memory()
    with script.start({"counts": memory}, engine="local", bounded=True) as running:
        running.awaitTermination(300)
    assert told(memory.table("counts")) == [(50, 6)]
    with pytest.raises(DeclarationError, match="no query to start"):
        eventide.sql("CREATE STREAM s (t BIGINT) FROM csv 'x'").start(engine="local")
    with pytest.raises(DeclarationError, match="there is no query 'sums'"):
        script.start({"sums": memory}, engine="local")


def test_a_script_reads_streams_that_were_made_in_python() -> None:
    s = eventide.stream(TABLE.to_batches(max_chunksize=1), time="t", source="k")
    text = "CREATE QUERY totals AS\n  SELECT sum(v) AS total FROM s [RANGE 10]"
    found = eventide.sql(text, s=s.delay(0))
    assert found.plan == replace_names(s.delay(0).window(10).agg("SUM(v) AS total"), "s", "totals")
    with pytest.warns(eventide.LostRowsWarning, match="1 row came too late"):
        assert told(found.run()["totals"]) == [(10, 1), *EVERYTHING[1:]]
    loose = eventide.sql("SELECT sum(v) AS total FROM s [RANGE 10 SLACK 2]", s=s)
    assert loose.plan.streams[0].policy == eventide.stream(TABLE, time="t").slack(2).declared.policy
    with loose.start() as running:
        running.awaitTermination(300)
    assert told(running["query_1"].results()) == EVERYTHING
    with pytest.raises(eventide.EventideError, match=r"2:14: there is no column 'w'"):
        eventide.sql(text.replace("v", "w"), s=s)
    own = eventide.sql("SELECT sum(v) AS total FROM s [RANGE 10 SLACK 2]", s=s.delay(0))
    assert [(one.name, one.policy) for one in own.plan.streams] == [("s", FixedDelay(0)), ("s_slack_2", Slack(2))]
    assert told(own.run()["query_1"]) == EVERYTHING
    with pytest.raises(DeclarationError, match="s is 42, no stream"):
        eventide.sql(text, s=42)  # type: ignore[arg-type]


def test_a_script_brings_its_functions_to_the_local_engine(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def half(n: int) -> int: return n // 2", encoding="utf-8")
    s = eventide.stream(TABLE, time="t").delay(0)
    text = f"CREATE FUNCTION half FROM '{tmp_path / 'mine.py'}'; SELECT sum(half(v * 2)) AS total FROM s [RANGE 10]"
    assert told(eventide.sql(text, s=s).run()["query_1"]) == EVERYTHING


def replace_names(query: ContinuousQuery, stream: str, name: str) -> Program:
    assert isinstance(query.stream, EventStream)
    return Program((replace(query.stream.declared, name=stream),), (replace(query.declared, name=name, stream=stream),))


@pytest.mark.parametrize("way", ["one query", "several", "a script"])
def test_results_of_another_checkpoint_are_refused_unless_they_may_be_replaced(way: str, tmp_path: Path) -> None:
    """A start without its checkpoint deleted all results of the directory."""
    out, state = tmp_path / "out", tmp_path / "state"
    totals().start(out, checkpoint=state, name="q").awaitTermination()

    def again(**how: Any) -> Any:
        if way == "one query":
            return totals().start(out, name="q", **how)
        if way == "several":
            return eventide.start(q=totals(), sinks={"q": out}, **how)
        rows = eventide.stream(TABLE, time="t", source="k").delay(0)
        text = "CREATE QUERY q AS SELECT sum(v) AS total FROM s [RANGE 10]"
        return eventide.sql(text, s=rows).start({"q": out}, **how)

    with pytest.raises(DeclarationError, match=r"go on from their own \(checkpoint='.*state'\), or say replace=True"):
        again()
    assert told(pq.read_table(out)) == EVERYTHING
    again(checkpoint=tmp_path / "other", replace=True).awaitTermination()
    assert told(pq.read_table(out)) == EVERYTHING


def test_spark_connect_is_refused_where_it_is_given_with_the_way_out(tmp_path: Path) -> None:
    """It was accepted, and the start failed with a PySparkPicklingError."""
    from eventide.engine.spark.engine import SparkEngine

    session = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    frame = type("DataFrame", (), {"__module__": "pyspark.sql.connect.dataframe", "isStreaming": True})()
    with pytest.raises(DeclarationError, match=r"this DataFrame is one of Spark Connect.*eventide\.heartbeats works"):
        eventide.stream(frame, time="t")
    with pytest.raises(DeclarationError, match="this session is one of Spark Connect"):
        SparkEngine(session, Program(()), str(tmp_path))
    script = "CREATE STREAM s (t BIGINT) FROM json 'in'; SELECT count(*) AS n FROM s [RANGE 5];"
    with pytest.raises(DeclarationError, match="the session is one of Spark Connect"):
        eventide.sql(script).start(spark=session, checkpoint=tmp_path / "state")


def test_whatever_is_built_is_shown_in_a_line_that_says_how_to_go_on() -> None:
    """A join and a window were walls of the texts of dataclasses."""
    cars = eventide.stream(TABLE, time="t", source="k", name="cars")
    others = eventide.stream(TABLE, time="t", name="others")
    for built in (
        cars,
        cars.union(others),
        cars.join(others, on="k", within=5),
        cars.window(10).where("v > 1").groupBy("k"),
        cars.rows(10).sample(0.5),
        totals(),
    ):
        assert len(repr(built)) < 200, repr(built)
        assert not {"declared=", "exp.", "Side("} & set(repr(built).split())
    assert repr(cars.window(10).groupBy("k")).endswith(
        "source by k> in windows of 10 every 10 by k; .agg(...) makes it a query, .select() rows>"
    )


def test_a_notebook_is_told_of_rejected_rows_and_why() -> None:
    """The handle said how many rows there were, and nothing of those that were in no answer."""
    running = eventide.stream(TABLE, time="t", name="s").delay(0).window(10).agg(n="sum(1 / (v - 3))").start()
    running.awaitTermination()
    assert "<b>1 rejected</b>: 1 " in running._repr_html_()
