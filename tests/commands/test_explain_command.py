"""`eventide explain`: the plan in words and as JSON, without running anything."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eventide.eventtime.heartbeat import Policy
from eventide.report.operators import in_words
from tests.commands.processes import QUERY, STREAM, Here, doors, eventide
from tests.endpoint import asking
from tests.endpoint.asking import asked
from tests.eventtime.policy_examples import EXAMPLES

SLIDING = QUERY.replace("[RANGE 1 minute]", "[RANGE 1 minute SLIDE 20 seconds]")


def test_the_tree_tells_time_windows_slices_and_sql(tmp_path: Path) -> None:
    ran = eventide(doors(tmp_path, STREAM + SLIDING), "explain", "doors.sql")
    assert (ran.code, ran.err) == (0, "")
    for said in (
        "stream doors",
        "from: csv doors.csv",
        "time: column at (timestamp)",
        "sources: door",
        "time moves: 10 s behind the largest time seen",
        "windows: 1 min long, one every 20 s -> each window is 3 panes of 20 s",
        "groups: door (STRING)",
        "people = SUM(people) (BIGINT)",
        "slices keep: partials",
        "GROUP BY",
        "on the driver, in DuckDB",
        "results: the console",
    ):
        assert said.lower() in ran.out.lower(), said


def test_json_has_the_same_as_plain_data(tmp_path: Path, here: Here) -> None:
    doors(tmp_path, STREAM + SLIDING)
    ran = here("explain", "doors.sql", "--json")
    assert ran.out.count("\n") == 1
    plan = json.loads(ran.out)
    [stream], [query] = plan["streams"], plan["queries"]
    assert (stream["name"], stream["source"]) == ("doors", ["door"])
    assert (query["window"]["pane"], query["slices"]["keep"]) == (20_000_000, "partials")
    assert "slices" in query["merge"]["sql"]


def test_the_budget_of_state_that_stays_with_the_driver_is_said(tmp_path: Path, here: Here) -> None:
    doors(tmp_path, STREAM + QUERY)
    assert "driver.memory: up to 256 MiB of state stay with the driver" in here("explain", "doors.sql").out
    doors(tmp_path, "SET driver.memory = 0;" + STREAM + QUERY)
    ran = here("explain", "doors.sql", "--json")
    assert json.loads(ran.out)["driver_memory"]["bytes"] == 0
    doors(tmp_path, "SET driver.memory = '2 GB';" + STREAM + QUERY)
    assert "up to 1.86 GiB of state" in here("explain", "doors.sql").out


def test_alerts_of_the_script_are_told(tmp_path: Path, here: Here) -> None:
    alert = "CREATE ALERT late ON doors WHEN lag > 30 s FOR 1 minute;"
    ran = here("explain", str(doors(tmp_path, STREAM + QUERY + alert) / "doors.sql"))
    assert "alert late: on doors when lag > 30 s for 1 min" in ran.out


def test_an_aggregate_without_partials_is_said_to_keep_rows(tmp_path: Path, here: Here) -> None:
    script = STREAM + QUERY.replace("sum(people)", "count(DISTINCT people)")
    doors(tmp_path, script)
    ran = here("explain", "doors.sql")
    assert "slices keep: the rows themselves (people)" in ran.out


def test_a_function_that_only_spark_has_is_explained_as_far_as_it_goes(tmp_path: Path, here: Here) -> None:
    script = STREAM + QUERY.replace("sum(people)", "sum(bit_reverse_of_mine(people))")
    doors(tmp_path, script)
    ran = here("explain", "doors.sql")
    assert ran.code == 0
    assert "note: only Spark can tell more" in ran.out


@pytest.mark.parametrize("policy", EXAMPLES.values(), ids=EXAMPLES.keys())
def test_every_policy_has_words(policy: Policy) -> None:
    assert "=" not in in_words(policy, unitless=False)


def test_a_question_is_answered_by_what_stands_before_it_though_it_is_dropped_later(tmp_path: Path, here: Here) -> None:
    asked = (
        "SHOW STREAMS; SHOW QUERIES; EXPLAIN people; DROP QUERY people; SHOW QUERIES; DROP STREAM doors; SHOW STREAMS"
    )
    ran = here("run", str(doors(tmp_path, f"{STREAM}CREATE QUERY people AS {QUERY}{asked}") / "doors.sql"))
    assert ran.code == 0
    streams, queries, *plan = ran.out.splitlines()
    assert streams == "doors (at TIMESTAMP, door STRING, people INT)"
    assert queries == "people reads doors, results to the console"
    assert [line for line in plan if line.startswith("stream") or "query people" in line] == [
        "stream doors",
        "└── query people",
    ]
    assert plan[-1].startswith("    "), "what was dropped is shown no more"


def test_what_each_step_has_done_in_a_run_is_said_beside_its_plan(tmp_path: Path, here: Here) -> None:
    with asked(tmp_path / "run") as running:
        (tmp_path / "q.sql").write_text(asking.SCRIPT.replace("DELAY 100", "FROM json 'in' DELAY 100"))
        checkpoint = str(running.endpoint.folder)
        plan = json.loads(here("explain", "q.sql", "--analyze", checkpoint, "--json").out)
        tree = here("explain", "q.sql", "--analyze", checkpoint).out
        status = running.engine.status()
    [stream], queries = plan["streams"], {one["name"]: one for one in plan["queries"]}
    assert stream["measured"]["rows_in"] == asking.ROWS.num_rows
    assert queries["people"]["measured"] == {
        **status.work["people"].as_json(),
        "words": queries["people"]["measured"]["words"],
    }
    held = next(one.state_rows for one in status.queries if one.name == "people")
    assert f"holds {held} rows" in queries["people"]["measured"]["words"]
    assert f"measured: {queries['people']['measured']['words']}" in " ".join(tree.replace("│", " ").split())


def test_a_run_that_has_ended_cannot_be_analyzed_and_that_is_said(tmp_path: Path, here: Here) -> None:
    doors(tmp_path, STREAM + QUERY)
    ran = here("explain", "doors.sql", "--analyze", str(tmp_path))
    assert ran.code == 3
    assert "no engine that can be asked works on" in ran.err
