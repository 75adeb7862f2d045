"""Streams, queries and rows say in a line what they are, and `.explain()` how they are computed."""

from __future__ import annotations

import pyarrow as pa
import pytest

import eventide

TRADES = pa.table({"t": [1, 2, 3], "symbol": ["a", "b", "a"], "price": [1.0, 2.0, 3.0]})


def test_what_is_declared_in_python_is_shown_in_a_line() -> None:
    trades = eventide.stream(TRADES, time="t", source="symbol", name="trades")
    query = trades.window(10).groupBy("symbol").agg(most="max(price)").named("highs")
    assert repr(trades) == "<stream 'trades' (t BIGINT, symbol STRING, price DOUBLE), time by t, source by symbol>"
    assert repr(query) == "<query 'highs': max(price) AS most by symbol; .explain() tells more>"
    assert repr(trades.select("t", "price")).startswith("<rows ")


def test_explain_prints_the_plan_of_a_query(capsys: pytest.CaptureFixture[str]) -> None:
    trades = eventide.stream(TRADES, time="t", source="symbol", name="trades")
    trades.window(10).groupBy("symbol").agg(most="max(price)").named("highs").explain()
    printed = capsys.readouterr().out
    assert "stream trades" in printed
    assert "query highs" in printed
    assert "slices keep" in printed
