"""Auctions that end when they say: the winning bid of each is that of brute force, however rows come."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eventide.duckdb.executor import DuckDBExecutor
from eventide.eventtime.policies.punctuated import Punctuated
from eventide.language.script import read_script
from tests.engine.scenarios import trial_of

CASE = (Path(__file__).parents[1] / "queries" / "nexmark_auctions.sql").read_text()
SCRIPT = CASE.replace("TIMESTAMP", "BIGINT").replace("BIGINT BY", "TIMESTAMP BY").split("-- Flink updates")[0]
AUCTIONS = pa.schema([(name, pa.int64()) for name in ("id", "seller", "category", "dateTime", "expires")])
BIDS = pa.schema([(name, pa.int64()) for name in ("auction", "bidder", "price", "dateTime")])

ahead = st.integers(0, 20)
auctions = st.tuples(ahead, st.one_of(st.none(), st.integers(-2, 40)))
bids = st.tuples(ahead, st.integers(0, 4), st.integers(1, 4))
Step = tuple[list[tuple[int, int | None]], list[tuple[int, int, int]], int, int, bool]
heartbeats = st.integers(0, 15)
rounds = st.tuples(st.lists(auctions, max_size=2), st.lists(bids, max_size=4), heartbeats, heartbeats, st.booleans())
steps = st.lists(rounds, min_size=1, max_size=7)


def winners(opened: list[dict[str, Any]], made: list[dict[str, Any]]) -> Counter[tuple[int, ...]]:
    """Of each auction the bids while it is open that no other one beats."""
    found: Counter[tuple[int, ...]] = Counter()
    for one in opened:
        mine = [
            bid
            for bid in made
            if bid["auction"] == one["id"]
            and one["expires"] is not None
            and one["dateTime"] <= bid["dateTime"] <= one["expires"]
        ]
        for bid in mine:
            if not any((-other["price"], other["dateTime"]) < (-bid["price"], bid["dateTime"]) for other in mine):
                found[one["id"], bid["bidder"], bid["price"], bid["dateTime"]] += 1
    return found


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=steps)
def test_the_winning_bid_of_an_auction_is_that_of_brute_force(
    duckdb_executor: DuckDBExecutor, steps: list[Step]
) -> None:
    program = read_script(SCRIPT).program
    program = replace(program, streams=tuple(replace(one, policy=Punctuated()) for one in program.streams))
    opened, made = list[dict[str, Any]](), list[dict[str, Any]]()
    found, heartbeats = Counter[tuple[int, ...]](), {"auction": -1, "bid": -1}
    with trial_of(program, duckdb_executor=duckdb_executor) as trial:
        for number, (new, asked, of_auctions, of_bids, restart) in enumerate([*steps, ([], [], 500, 500, False)]):
            at, then = heartbeats["auction"] + 1, heartbeats["bid"] + 1
            come = [
                dict(
                    zip(AUCTIONS.names, (len(opened) + n, 0, 0, at + t, None if e is None else at + t + e), strict=True)
                )
                for n, (t, e) in enumerate(new)
            ]
            offered = [
                {"auction": a, "bidder": len(made) + n, "price": price, "dateTime": then + t}
                for n, (t, a, price) in enumerate(asked)
            ]
            opened, made = opened + come, made + offered
            heartbeats = {"auction": at - 1 + of_auctions, "bid": then - 1 + of_bids}
            tables = {"auction": pa.Table.from_pylist(come, AUCTIONS), "bid": pa.Table.from_pylist(offered, BIDS)}
            trial.round(tables, clock=number, heartbeats=heartbeats)
            for final in trial.output().final:
                for row in final.to_pylist():
                    if row["query"] == "q9":
                        found[row["id"], row["bidder"], row["price"], row["bid_at"]] += 1
            if restart:
                trial.restart()
    assert found == winners(opened, made)
