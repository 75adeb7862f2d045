"""What a running engine answers over HTTP, and what it refuses to understand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.endpoint.auth import HttpError
from eventide.endpoint.prod_request import PROD_KEYS, asked_of
from eventide.engine.early.prodding import EarlyResults
from eventide.eventtime.early.prod import Prod
from eventide.sinks.lines import LineWriter
from tests.endpoint.asking import ROWS, Answer, Asked, asked


def rows(answer: Answer) -> list[tuple[Any, ...]]:
    assert answer.status == 200, answer
    return sorted((r["window_end"], r["door"] or "", r["floor"], r["people"]) for r in answer.data["rows"])


ALL = [(10, "north", 0, 1), (10, "south", 1, 2), (20, "", 1, 4), (20, "north", 0, 3)]


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({}, ALL),
        ({"groups": None}, ALL),
        ({"groups": {"door": "north"}}, [ALL[0], ALL[3]]),
        ({"groups": {"door": None}}, [ALL[2]]),
        ({"groups": {"floor": 1}}, [ALL[1], ALL[2]]),
        ({"groups": {"floor": "1", "door": "south"}}, [ALL[1]]),
        ({"groups": {"floor": {"between": [1, 2]}}}, [ALL[1], ALL[2]]),
        ({"groups": {"floor": {"between": ["-9", "0"]}, "door": ["north", None]}}, [ALL[0], ALL[3]]),
        ({"groups": {"door": [{"between": ["o", None]}, None]}}, [ALL[1], ALL[2]]),
        ({"up_to": 9}, ALL[:2]),
        ({"up_to": "9"}, ALL[:2]),
        ({"after": 9}, ALL[2:]),
        ({"groups": {"door": "north' OR 1=1 --"}}, []),
    ],
)
def test_a_prod_gives_early_rows_of_what_it_asks_for(
    engine: Asked, more: dict[str, Any], told: list[tuple[Any, ...]]
) -> None:
    assert rows(engine.post({"query": "people", **more})) == told


def test_the_rows_are_those_that_run_json_would_print(engine: Asked) -> None:
    found = engine.engine.prod("most", Prod())
    table = found.table().drop_columns(["rows", "heartbeat"])
    lines = LineWriter("json", table.schema).of(table).splitlines()
    answer = engine.post({"query": "most"})
    assert [json.loads(line) for line in lines] == answer.data["rows"]
    assert list(answer.data["rows"][0])[:5] == ["query", "kind", "window_start", "window_end", "round"]
    assert {"point", "completeness", "most_error"} <= set(answer.data["rows"][0])
    assert (answer.data["query"], answer.data["round"]) == ("most", found.round)


@pytest.mark.parametrize(
    ("more", "timing"), [({"up_to": -1000}, "too late"), ({"after": 1000}, "too early"), ({"up_to": 11}, "repeated")]
)
def test_the_answer_says_how_the_prod_came(engine: Asked, more: dict[str, Any], timing: str) -> None:
    engine.post({"query": "people", "up_to": 11})
    assert engine.post({"query": "people", **more}).data["timing"] == timing


def test_asking_again_while_nothing_happens_asks_the_engine_only_once(
    engine: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted, prod = list[str](), engine.engine.prod

    def counting(name: str, given: Prod | None = None) -> EarlyResults:
        counted.append(name)
        return prod(name, given)

    monkeypatch.setattr(engine.engine, "prod", counting)
    first = engine.post({"query": "people", "after": -5})
    again = [engine.post({"query": "people", "after": -5}) for _ in range(20)]
    assert counted == ["people"]
    assert {answer.data["timing"] for answer in again} == {"repeated"}
    assert all(answer.data["rows"] == first.data["rows"] for answer in again)


def test_an_answer_that_was_given_before_is_not_given_after_the_next_round(tmp_path: Path) -> None:
    with asked(tmp_path) as own:
        assert rows(own.post({"query": "people"})) == ALL
        own.coming.put(ROWS.slice(0, 1).to_batches()[0])
        while own.engine.status().round < 1:
            assert not own.engine.ended.is_set()
        assert rows(own.post({"query": "people"})) == [(10, "north", 0, 2), *ALL[1:]]


def test_status_why_and_queries_are_those_of_the_engine(engine: Asked) -> None:
    status = engine.get("/status").data
    assert (status["round"], [stream["rows"] for stream in status["streams"]]) == (0, [4])
    why = engine.get("/why?query=people").data
    assert [window["window_end"] for window in why["windows"]] == [10, 20]
    assert all("waits for stream doors" in window["words"] for window in why["windows"])
    assert engine.get("/queries").data["queries"] == [
        {"query": "most", "groups": {}, "times": "sequence", "prods_itself": True},
        {"query": "people", "groups": {"door": "STRING", "floor": "INT"}, "times": "sequence", "prods_itself": False},
    ]


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"", 400, "no JSON"),
        (b"{", 400, "no JSON"),
        (b"\xff\xfe{}", 400, "no JSON"),
        (b'{"query": NaN}', 400, "no JSON"),
        (b'{"up_to": 1' + b"0" * 5000 + b"}", 400, "no JSON"),
        (b"[" * 60_000, 400, "no JSON"),
        (b'{"a":' * 10_000, 400, "no JSON"),
        (b"[]", 400, "no object"),
        (b'"people"', 400, "no object"),
        (b"{}", 400, "which query"),
        (b'{"query": 7}', 400, "which query"),
        (b'{"query": "people", "query": "most"}', 400, "twice"),
        (b'{"query": "people", "sql": "DROP"}', 400, "no 'sql'"),
        (b'{"query": "poeple"}', 404, "did you mean 'people'"),
        (b'{"query": "doors"}', 404, "no query 'doors'"),
        (b'{"query": "people", "groups": []}', 400, "no object"),
        (b'{"query": "people", "groups": {"dor": 1}}', 400, "it has door, floor"),
        (b'{"query": "most", "groups": {"door": 1}}', 400, "it has none"),
        (b'{"query": "people", "groups": {"door": 7}}', 400, "give a text"),
        (b'{"query": "people", "groups": {"door": "\\ud800"}}', 400, "whole characters"),
        (b'{"query": "people", "groups": {"door": [["north"]]}}', 400, "type list"),
        (b'{"query": "people", "groups": {"floor": "one"}}', 400, "whole number"),
        (b'{"query": "people", "groups": {"floor": 1.5}}', 400, "whole number"),
        (b'{"query": "people", "groups": {"floor": 99999999999}}', 400, "whole number from"),
        (b'{"query": "people", "groups": {"floor": true}}', 400, "whole number"),
        (b'{"query": "people", "groups": {"floor": {"a": 1}}}', 400, "is no range"),
        (b'{"query": "people", "groups": {"floor": {"between": [2, 1]}}}', 400, "smaller one first"),
        (b'{"query": "people", "groups": {"floor": {"between": ["1", "x"]}}}', 400, "whole number"),
        (b'{"query": "people", "groups": {"floor": []}}', 400, "matches nothing"),
        (b'{"query": "people", "up_to": "noon"}', 400, "number of the sequence"),
        (b'{"query": "people", "up_to": 1e400}', 400, "number of the sequence"),
        (b'{"query": "people", "up_to": 9223372036854775808}', 400, "number of the sequence"),
        (b'{"query": "people", "up_to": true}', 400, "number of the sequence"),
        (b'{"query": "people", "up_to": 5, "after": 5}', 400, "asks for no window"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_way_out(engine: Asked, body: bytes, status: int, said: str) -> None:
    answer = engine.post(body)
    assert answer.status == status
    assert said in f"{answer.data['error']} {answer.data['hint']}"


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("GET /", 404),
        ("GET /prod/", 404),
        ("GET /../../endpoint.token", 404),
        ("GET /%70rod", 404),
        ("GET /prod", 405),
        ("HEAD /status", 405),
        ("OPTIONS /prod", 405),
        ("DELETE /status", 405),
        ("GET /why", 400),
        ("GET /why?query=people&query=most", 400),
        ("GET /why?query=%FF", 400),
        ("GET /why?window=1", 400),
        ("GET /why?query=nobody", 404),
        ("GET /status?verbose=1", 400),
    ],
)
def test_other_paths_methods_and_parameters_are_refused(engine: Asked, line: str, status: int) -> None:
    answer = engine.send(engine.head(f"{line} HTTP/1.1").encode())
    assert answer.status == status
    assert status != 405 or answer.headers["allow"] in ("GET", "POST")
    assert answer.headers["cache-control"] == "no-store"
    assert not any(name.startswith("access-control") for name in answer.headers)


@given(
    st.binary(max_size=200)
    | st.recursive(st.none() | st.text() | st.integers(), st.lists).map(json.dumps).map(str.encode)
)
def test_no_body_brings_anything_but_an_object_or_a_refusal(body: bytes) -> None:
    try:
        status, understood = 200, asked_of(body, PROD_KEYS)
    except HttpError as refusal:
        status, understood = refusal.status, {}
    assert status in (200, 400)
    assert set(understood) <= set(PROD_KEYS)
