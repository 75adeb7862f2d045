"""A running query that lets other processes ask, on the local engine."""

from __future__ import annotations

import queue

import pyarrow as pa
import pytest

import eventide
from eventide.endpoint.client import Client
from eventide.errors import DeclarationError, EngineError

TABLE = pa.table({"t": [1, 4, 12, 15, 21], "k": ["a", "b", "a", "a", "b"], "v": [1, 2, 3, 4, 5]})


def test_a_running_query_listens_until_it_ends() -> None:
    coming: queue.Queue[pa.RecordBatch | None] = queue.Queue()
    [batch] = TABLE.to_batches()
    coming.put(batch.slice(0, 4))
    query = eventide.stream(iter(coming.get, None), time="t", name="s").delay(100).window(10).groupBy("k")
    with query.agg(total="sum(v)").named("totals").start() as running:
        while running.status().round < 0:
            assert running.isActive
        endpoint = running.listen()
        assert endpoint.url.startswith("http://127.0.0.1:")
        client = Client.of_url(endpoint.url, endpoint.token_file)
        early = running.prod(groups={"k": "a"}).to_pylist()
        told = client.prod("totals", {"k": "a"})["rows"]
        assert [row["total"] for row in told] == [row["total"] for row in early] == [1, 7]
        with pytest.raises(EngineError, match="listens already"):
            running.listen()
        endpoint.close()
        with running.listen() as again:
            assert Client.of_url(again.url, again.token_file).ask("GET", "/queries")["queries"]
        with pytest.warns(UserWarning, match="other machines can ask here"):
            running.listen("0.0.0.0").close()
        with pytest.raises(DeclarationError, match="is no address to listen on"):
            running.listen("no host")
        endpoint = running.listen()
        coming.put(None)
        assert running.awaitTermination(60)
    assert endpoint.closed
    assert not endpoint.token_file.exists()
    with pytest.raises(EngineError, match="nobody listens at"):
        client.ask("GET", "/status")


def test_a_group_of_another_type_is_told_and_not_guessed() -> None:
    coming: queue.Queue[pa.RecordBatch | None] = queue.Queue()
    coming.put(TABLE.to_batches()[0])
    query = eventide.stream(iter(coming.get, None), time="t", name="s").delay(100).window(10).groupBy("k")
    with query.agg(total="sum(v)").start() as running:
        with pytest.raises(DeclarationError, match="group 'k' is of type string, which 7 does not fit: give a text"):
            running.prod(groups={"k": 7})
        coming.put(None)
