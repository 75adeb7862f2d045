"""`eventide check`: what it finds stands at its place, and the code says whether the script can run."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from eventide.commands.check import findings_of
from eventide.report.explain import plan_of, trees
from tests.commands.processes import QUERY, STREAM, Here, doors, eventide
from tests.language.test_fuzz import DECLARED, STATEMENTS, mutated


def test_a_good_script_has_code_0_and_needs_no_data(tmp_path: Path) -> None:
    doors(tmp_path)
    (tmp_path / "doors.csv").unlink()
    ran = eventide(tmp_path, "check", "doors.sql")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == "doors.sql: 1 stream, 1 query, no errors\n"


def test_an_error_shows_its_place_as_editors_know_it(tmp_path: Path, here: Here) -> None:
    doors(tmp_path, STREAM + QUERY.replace("sum(people)", "sum(poeple)"))
    ran = here("check", "doors.sql")
    assert ran.code == 2
    first, line, marker = ran.out.splitlines()[:3]
    place, _, message = first.partition(": error: ")
    file, row, column = place.split(":")
    assert (file, int(row)) == ("doors.sql", 6)
    assert "poeple" in message
    assert line[4 + int(column) - 1 :].startswith("poeple") or "poeple" in line
    assert marker.index("^") == 4 + int(column) - 1


def test_json_has_every_finding_with_its_place(tmp_path: Path, here: Here) -> None:
    doors(tmp_path, "CREATE STREAMM x")
    ran = here("check", "doors.sql", "--json")
    assert (ran.code, ran.out.count("\n")) == (2, 1)
    told = json.loads(ran.out)
    assert told["errors"] == 1
    [finding] = told["findings"]
    assert (finding["severity"], finding["file"], finding["line"]) == ("error", "doors.sql", 1)


def test_a_function_that_only_spark_has_is_a_warning(tmp_path: Path, here: Here) -> None:
    script = STREAM + QUERY.replace("sum(people)", "sum(bit_reverse_of_mine(people))")
    doors(tmp_path, script)
    ran = here("check", "doors.sql")
    assert ran.code == 0, ran.out
    row, column = 6, script.splitlines()[5].index("bit_reverse") + 1
    assert f"doors.sql:{row}:{column}: warning: the local engine cannot run this, Spark may" in ran.out


def test_a_slack_smaller_than_one_round_is_a_warning_and_a_larger_one_is_none() -> None:
    def warned(clauses: str, before: str = "") -> list[str]:
        stream = f"CREATE STREAM s (ts TIMESTAMP, v INT) FROM replay 'in' {clauses} TIMEOUT 1 minute;\n"
        findings, _ = findings_of(before + stream + "SELECT sum(v) AS n FROM s [RANGE 1 minute];", "x.sql")
        return [finding.message for finding in findings if "round" in finding.message]

    of_rows = ["SLACK 10 is smaller than a round, which may have 100 rows: what trails by a round is late"]
    assert warned("SLACK 10 LIMIT 100 ROWS PER ROUND") == of_rows
    assert warned("DRATIO 1% SLACK 10 LIMIT 100 ROWS PER ROUND") == of_rows
    assert warned("DELAY 2 s", "SET every = 10;\n") == [
        "the delay is shorter than a round (10 s): what trails by a round is late"
    ]
    assert warned("SLACK 100 LIMIT 100 ROWS PER ROUND") == warned("SLACK 10") == []
    assert warned("DELAY 2 s") == warned("DELAY 20 s", "SET every = 10;\n") == []


def test_what_is_spelled_almost_as_a_format_or_function_is_told_where_it_stands() -> None:
    script = "CREATE STREAM s (ts TIMESTAMP, k STRING) FROM jsn 'in';\nSELECT ts, uppper(k) AS u FROM s;"
    of_format, of_function = findings_of(script, "x.sql")[0]
    assert (of_format.line, of_format.column) == (1, 1)
    assert "'jsn' is no usual format: did you mean json?" in of_format.message
    assert (of_function.line, of_function.column) == (2, 12)
    assert "no function uppper: did you mean upper?" in of_function.message


def test_sinks_and_settings_are_checked_too(tmp_path: Path, here: Here) -> None:
    wrong_sink = STREAM + "CREATE QUERY q AS " + QUERY.rstrip(";\n") + " INTO parquet;"
    for script, line in ((wrong_sink, 6), ("SET speed = 3;\n" + STREAM + QUERY, 1)):
        doors(tmp_path, script)
        ran = here("check", "doors.sql")
        assert ran.code == 2
        assert ran.out.startswith(f"doors.sql:{line}:"), ran.out


def test_a_script_without_a_query_is_a_warning_and_an_empty_one_an_error(tmp_path: Path, here: Here) -> None:
    doors(tmp_path, STREAM)
    ran = here("check", "doors.sql")
    assert ran.code == 0
    assert "no query" in ran.out
    doors(tmp_path, "-- nothing\n")
    assert here("check", "doors.sql").code == 2


def test_a_file_that_is_no_text_is_told_with_its_line(tmp_path: Path, here: Here) -> None:
    (tmp_path / "odd.sql").write_bytes(b"SELECT 1;\n\xff\xfe")
    ran = here("check", "odd.sql")
    assert ran.code == 2
    assert "odd.sql:2: this is not UTF-8" in ran.err


def test_a_type_that_is_none_is_a_finding(tmp_path: Path, here: Here) -> None:
    doors(tmp_path, STREAM.replace("people INT", "people DECIMAL(10, many)") + QUERY)
    ran = here("check", "doors.sql")
    assert "write DECIMAL(10, 2)" in ran.out


def test_a_column_that_is_a_word_of_sql_is_no_error_in_backticks(tmp_path: Path, here: Here) -> None:
    doors(tmp_path, STREAM.replace("people INT", "`from` INT") + QUERY.replace("sum(people)", "sum(`from`)"))
    ran = here("check", "doors.sql")
    assert (ran.code, ran.out) == (0, "doors.sql: 1 stream, 1 query, no errors\n")


def test_whatever_the_text_check_and_explain_find_or_refuse_and_never_break() -> None:
    chance = random.Random(5)
    scripts = 0
    for _ in range(150):
        text = DECLARED + mutated(chance.choice(STATEMENTS), chance)
        findings, script = findings_of(text, "fuzz.sql")
        assert findings or script is not None
        if script is not None and not script.functions:
            scripts += 1
            assert trees(plan_of(script))
    assert scripts


def test_every_error_is_told_and_what_follows_from_one_is_not(tmp_path: Path, here: Here) -> None:
    doors(
        tmp_path,
        STREAM.replace("TIMESTAMP BY", "TIMESTMP BY")
        + QUERY
        + "CREATE STREAM other (at TIMESTAMP, n INT) FROM csv 'x' DELAY 1 s;\n"
        + "SELECT sum(m) FROM other [RANGE 1 minute];\n"
        + "SELECT sum(n) FROM other [RANGE 1 minut];\n"
        + "DROP QUERY nobody;\n",
    )
    ran = here("check", "doors.sql")
    assert ran.code == 2
    errors = [line.split(": error: ") for line in ran.out.splitlines() if ": error: " in line]
    assert [place.split(":")[1] for place, _ in errors] == ["3", "8", "9", "10"]


NUMBERS = '"type": "record", "name": "r", "fields": [{"name": "at", "type": "long"}, {"name": "n", "type": "long"}]'


@pytest.mark.parametrize(
    ("columns", "option", "message"),
    [
        ("item STRING", "xml", "value.format 'xml' is not known: use json, csv or avro"),
        (
            "item STRING",
            "avro",
            "by which schema are its values written? Add value.schema, which is JSON or a file",
        ),
        ("n INT", f"avro', \"value.schema\" '{{{NUMBERS}}}", "has at BIGINT: declare it as it is there"),
        ("item STRING, kafka_key STRING", "json", "declares kafka_key STRING, but a record of kafka has"),
        ("item STRING, kafka_ofset BIGINT", "json", "kafka_ofset"),
    ],
)
def test_what_spark_would_refuse_of_records_is_told_before_it_starts(
    columns: str, option: str, message: str, tmp_path: Path, here: Here
) -> None:
    text = f"CREATE STREAM o (at TIMESTAMP, {columns}) USING kafka OPTIONS (subscribe 'o', \"value.format\" '{option}')"
    doors(tmp_path, text + " DELAY 1 s TIMEOUT 1 min;\nSELECT count(*) FROM o [RANGE 1 minute];\n")
    ran = here("check", "doors.sql")
    assert ran.code == 2
    assert message in ran.out


def test_every_wrong_statement_is_told_and_nothing_that_only_follows_from_one() -> None:
    script = """CREATE STREAM a (ts TIMESTAMP, k STRING, v INT) FROM json 'in' OPTIONS (multiLine 'maybe');
CREATE STREAM b (ts TIMESTAMP, k STRNG) FROM csv 'b';
CREATE STREAM c (ts TIMESTAMP, k STRING) FROM csv 'b' OPTIONS (sepp ';');
SELECT max(vv) FROM a [RANGE 5];
SELECT max(k) FROM b [RANGE 5];
CREATE QUERY wrong AS SELECT k, sum(v) FROM a;
SELECT * FROM wrong;
SELECT sum(k + nofun(v)) AS x FROM a [RANGE 5];
SELECT max(v) FROM a [RANGE 5] INTO CONSOLE OPTIONS (rows 'many');
SET every = 'often';
SET engin = 'local';
SELECT max(v) FROM a [RANGE 5] INTO CONSOLE OPTIONS (colour 'red');"""
    found, checked = findings_of(script, "x.sql")
    assert checked is None
    errors = [(finding.line, finding.message) for finding in found if finding.severity == "error"]
    assert [line for line, _ in errors] == [1, 2, 4, 6, 9, 10, 11, 12]
    assert errors[0][1] == "stream 'a': multiLine is true or false, not 'maybe'"
    assert [finding.line for finding in found if finding.severity == "warning"] == [3, 8]


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ("FROM csv 'in' OPTIONS (mode 'XX')", "mode is one of permissive, dropmalformed, failfast, not 'XX'"),
        ("FROM json 'in' OPTIONS (maxFilesPerTrigger 'many')", "maxFilesPerTrigger is a whole number, not 'many'"),
        ("FROM json 'in' LIMIT 10 ROWS PER ROUND", "json cannot be limited to 10 rows a round"),
        ("FROM json 'in' OPTIONS (timestampFormat 'QQQ')", "has no option timestampformat=QQQ"),
        ("FROM xml 'in'", "the local engine cannot read xml"),
    ],
)
def test_what_an_input_would_be_refused_for_when_it_runs_is_an_error(given: str, wrong: str) -> None:
    script = f"SET engine = 'local';\nCREATE STREAM s (ts TIMESTAMP) {given};\nSELECT count(*) FROM s [RANGE 5];"
    [finding] = [one for one in findings_of(script, "x.sql")[0] if one.severity == "error"]
    assert (finding.line, wrong in finding.message) == (2, True), finding.message
