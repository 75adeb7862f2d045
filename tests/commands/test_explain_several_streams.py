"""`eventide explain` of merges and joins: how times belong together, what is held until when, what carries time."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from eventide.commands.check import findings_of
from eventide.language.script import read_script
from eventide.report.explain import plan_of, trees

SCRIPT = """CREATE STREAM north (ts TIMESTAMP, car STRING, speed INT) FROM json 'north';
CREATE STREAM south (ts TIMESTAMP, car STRING, speed INT) FROM json 'south';
CREATE QUERY cars AS SELECT * FROM north UNION ALL SELECT * FROM south;
CREATE QUERY counts AS SELECT minute, count(*) AS n FROM (SELECT * FROM north UNION ALL SELECT * FROM south)
    GROUP BY ts/60 AS minute;
CREATE QUERY sliding AS SELECT date_trunc('minute', ts) AS minute, count(*) AS n
    FROM north [RANGE 5 minutes SLIDE 1 minute] GROUP BY minute;
CREATE QUERY near AS SELECT north.car, north.ts, south.speed FROM north LEFT JOIN south
    ON north.car = south.car AND south.ts BETWEEN north.ts AND north.ts + INTERVAL 5 SECONDS AND north.speed > 3;
"""


def shown(only: str | None = None) -> str:
    console = Console(width=200, highlight=False)
    with console.capture() as capture:
        for tree in trees(plan_of(read_script(SCRIPT)), only):
            console.print(tree)
    return capture.get()


def operators() -> dict[str, dict[str, Any]]:
    return {operator["name"]: operator for operator in plan_of(read_script(SCRIPT))["operators"]}


def test_a_join_tells_its_bands_and_until_when_it_holds() -> None:
    near = operators()["near"]
    assert (near["kind"], near["join"], near["reads"]) == ("join", "left", ["north", "south"])
    assert near["bands"] == [
        {"left": "ts", "right": "ts", "low": 0, "high": 5_000_000, "words": "north.ts <= south.ts <= north.ts + 5 s"}
    ]
    assert (near["keys"], near["condition"]) == ([["car", "car"]], "(north.speed > 3)")
    assert near["held"] == [
        "rows of north until south.ts has passed north.ts + 5 s, then emitted alone if it had no partner",
        "rows of south until north.ts has passed south.ts",
    ]
    assert [told["name"] for told in near["temporal"]] == ["ts"]
    text = shown()
    for said in (
        "join near",
        "pairs: left join of north, south",
        "keys: north.car = south.car",
        "into near, shown above",
    ):
        assert said in text, said


def test_a_merge_that_only_windows_read_holds_nothing() -> None:
    told = operators()
    assert told["cars"]["held"][0].startswith("each row until the heartbeat of all inputs has passed it")
    assert told["counts_below"]["held"] == ["nothing: whoever reads it reads its inputs"]
    assert [value["type"] for value in told["cars"]["values"]] == ["TIMESTAMP", "STRING", "INT"]


def test_outputs_that_carry_time_are_told_with_what_a_heartbeat_says_of_them() -> None:
    plan = plan_of(read_script(SCRIPT))
    assert plan["streams"][0]["temporal"][0]["after"] == "ts > h"
    queries = {query["name"]: query["temporal"] for query in plan["queries"]}
    assert [told["after"] for told in queries["counts"]] == ["minute >= FLOOR(UNIX_SECONDS((h + 1)) / 60)"]
    # In windows that overlap, a later result may be of a minute in the whole range before.
    assert [told["after"] for told in queries["sliding"]] == ["minute >= DATE_TRUNC('MINUTE', (h - 5 min))"]


def test_only_what_a_query_reads_is_explained_with_it() -> None:
    text = shown("near")
    assert "join near" in text
    assert "merge cars" not in text
    assert "stream south" in text


def test_check_binds_operators_too() -> None:
    wrong = SCRIPT + "CREATE QUERY bad AS SELECT * FROM north UNION ALL SELECT ts, car, speed * 1.5 FROM south;"
    findings, _ = findings_of(wrong, "x.sql")
    [error] = [finding for finding in findings if finding.severity == "error"]
    assert "'speed' is INT in 'north'" in error.message
    assert error.line == SCRIPT.count("\n") + 1
    assert not [finding for finding in findings_of(SCRIPT, "x.sql")[0] if finding.severity == "error"]
