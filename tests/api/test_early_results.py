"""Early results asked for from Python, on the local engine."""

from __future__ import annotations

import queue
import re

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import eventide
from eventide.errors import DeclarationError, EngineError
from eventide.pages.notebook import results_table

TABLE = pa.table({"t": [1, 4, 12, 15, 21], "k": ["a", "b", "a", "a", "b"], "v": [1, 2, 3, 4, 5]})


def test_a_running_query_is_asked_for_early_results_and_they_are_scored() -> None:
    coming: queue.Queue[pa.RecordBatch | None] = queue.Queue()
    [batch] = TABLE.to_batches()
    coming.put(batch.slice(0, 4))
    query = eventide.stream(iter(coming.get, None), time="t", name="s").delay(100).window(10).groupBy("k")
    with query.agg(total="sum(v)").start() as running:
        while running.status().round < 0:
            assert running.isActive
        early = running.prod()
        told = {(row["window_end"], row["k"]): row["total"] for row in early.to_pylist()}
        assert told == {(10, "a"): 1, (10, "b"): 2, (20, "a"): 7}
        assert set(early.column("kind").to_pylist()) == {"early"}
        assert running.prod(up_to=9, groups={"k": "b"}).column("total").to_pylist() == [2]
        with pytest.raises(DeclarationError, match="has no group 'x' to prod"):
            running.prod(groups={"x": 1})
        coming.put(batch.slice(4))
        coming.put(None)
        assert running.awaitTermination(60)
        assert sum(row["total"] for row in running.results().to_pylist()) == 15
        summary = running.accuracy()
        assert summary is not None
        assert summary.error == 0.0
        with pytest.raises(EngineError, match="cannot prod query"):
            running.prod()


def test_a_query_that_declares_prods_tells_early_results_beside_the_final_ones() -> None:
    rows = eventide.stream(TABLE.to_batches(max_chunksize=1), time="t", name="s").delay(5)
    query = rows.window(10).agg(total="sum(v)").prodded(at=0.5, estimate=True)
    told = [(row["kind"], row["window_end"], row["total"], row["point"]) for row in query.run().to_pylist()]
    assert told == [
        ("early", 10, 3, 1.2),
        ("final", 10, 3, None),
        ("early", 20, 7, 0.5),
        ("final", 20, 7, None),
        ("final", 30, 5, None),
    ]


def test_a_notebook_shows_an_early_row_until_the_final_one_takes_its_place() -> None:
    own = {"kind": ["early", "early", "final"], "window_start": [0, 10, 0], "window_end": [10, 20, 10], "n": [3, 4, 5]}
    about = {"point": [0.5, 0.5, None], "completeness": [0.6, 0.6, None], "n_error": [0.4, 0.4, None]}
    shown = results_table(pa.table({**own, **about}))
    assert re.findall(r"<td>(.*?)</td>", shown) == ["final", "0", "10", "5", "early 60 %", "10", "20", "4 ± 40 %"]
    assert shown.count("font-style: italic") == 1
    assert "n_error" not in shown


def test_prods_need_to_know_when() -> None:
    query = eventide.stream(TABLE, time="t", name="s").window(10).agg(total="sum(v)")
    with pytest.raises(DeclarationError, match="PROD needs to know when"):
        query.prodded()
    with pytest.raises(DeclarationError, match="give a whole number"):
        query.prodded(every="1 second")


ASKING = TABLE.append_column("ask", pa.array([False, None, False, False, False]))
PROD = pa.table({"t": [9], "k": ["b"], "v": pa.array([None], pa.int64()), "ask": [True]})


def test_rows_of_a_stream_that_are_prods_ask_for_early_results() -> None:
    rows = eventide.stream([*ASKING.to_batches(), *PROD.to_batches()], time="t", name="s", prodded="ask").delay(100)
    told = rows.window(10).groupBy("k").agg(total="sum(v)").run().to_pylist()
    assert [(row["window_end"], row["k"], row["total"]) for row in told if row["kind"] == "early"] == [(10, "b", 2)]
    assert sum(row["total"] for row in told if row["kind"] == "final") == 15


def test_sql_over_a_python_stream_keeps_its_prods_whatever_its_window_says() -> None:
    rows = eventide.stream([*ASKING.to_batches(), *PROD.to_batches()], time="t", prodded="ask")
    told = eventide.sql("SELECT k, sum(v) AS total FROM s [RANGE 10 SLACK 100 ROWS] GROUP BY k ESTIMATE", s=rows).run()
    early = [row for row in told["query_1"].to_pylist() if row["kind"] == "early"]
    assert [(row["k"], row["total"], row["total_estimate"]) for row in early] == [("b", 2, 2.0)]


def test_a_function_of_the_user_compares_early_and_final_values() -> None:
    def off_by(early: pa.Array, final: pa.Array) -> pa.Array:
        return pc.divide(pc.abs(pc.subtract(early, final)), pa.scalar(100.0))

    rows = eventide.stream(TABLE.to_batches(max_chunksize=1), time="t", name="s").delay(5)
    query = rows.window(20).agg(total="sum(v)", n="count(*)").prodded(at=0.5, compare={"total": off_by})
    with query.start() as running:
        assert running.awaitTermination(60)
        summary = running.accuracy()
        assert summary is not None
        # Of 10 there were 6, and of four rows three: by the usual measure that is 0.25.
        assert summary.error == 0.25
        told = running.results().to_pylist()
    assert [(row["window_end"], row["total"]) for row in told if row["kind"] == "early"] == [(20, 6)]


def test_a_comparison_that_fails_stops_nothing_and_is_told_in_the_status() -> None:
    def fails(early: pa.Array, final: pa.Array) -> pa.Array:
        raise ValueError("no idea")

    rows = eventide.stream(TABLE.to_batches(max_chunksize=1), time="t", name="s").delay(5)
    plain = rows.window(10).agg(total="sum(v)")
    within = plain.prodded(within=0.1, compare={"total": fails})
    with within.start() as running:
        assert running.awaitTermination(60)
        [status] = running.status().queries
        final = [row["total"] for row in running.results().to_pylist() if row["kind"] == "final"]
    assert status.early is not None
    assert status.early["error"] is None
    assert status.early["warnings"] == ["early values of 'total' cannot be compared by fails: ValueError: no idea"]
    assert final == [row["total"] for row in plain.run().to_pylist()]


def test_what_cannot_prod_or_compare_is_refused() -> None:
    query = eventide.stream(TABLE, time="t", name="s").window(10).agg(total="sum(v)")
    with pytest.raises(DeclarationError, match="no value 'totl' to compare: did you mean 'total'"):
        query.prodded(at=0.5, compare={"totl": max})
    with pytest.raises(DeclarationError, match="5 cannot compare 'total'"):
        query.prodded(at=0.5, compare={"total": 5})  # type: ignore[dict-item]
    with pytest.raises(DeclarationError, match="'asks'\\) is no stream"):
        query.prodded(by="asks")  # type: ignore[arg-type]
    with pytest.raises(DeclarationError, match="it is STRING; make it BOOLEAN"):
        eventide.stream(TABLE, time="t", prodded="k")
