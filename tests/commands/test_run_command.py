"""`eventide run` as a shell meets it: results, codes, pipes, signals."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.commands.processes import (
    ANSWERS,
    COMMAND,
    ENVIRONMENT,
    QUERY,
    ROWS,
    STREAM,
    Here,
    Ran,
    begun,
    doors,
    ends,
    eventide,
)

PIPED = STREAM.replace("FROM csv 'doors.csv'", "FROM STDIN OPTIONS (format 'csv')")
FOLDER = STREAM.replace("'doors.csv'", "'in'")


def test_json_is_one_object_a_result_and_nothing_else(tmp_path: Path) -> None:
    ran = eventide(doors(tmp_path), "run", "doors.sql", "--bounded", "--engine", "local", "--json")
    assert ran.code == 0
    assert ran.answers == ANSWERS
    assert list(ran.rows[0]) == ["query", "kind", "window_start", "window_end", "round", "door", "people"]
    assert {row["kind"] for row in ran.rows} == {"final"}


def test_elsewhere_than_on_a_terminal_a_result_is_a_plain_line(tmp_path: Path) -> None:
    ran = eventide(doors(tmp_path), "run", "doors.sql", "--bounded", "--engine", "local")
    assert ran.code == 0
    assert len(ran.out.splitlines()) == len(ANSWERS)
    assert "[2026-01-31 09:00:00, 2026-01-31 09:01:00) door=north people=8 rows=2" in ran.out
    assert "\x1b" not in ran.out
    assert "5 rows" in ran.err
    assert "4 results" in ran.err


def test_a_single_file_ends_by_itself_with_every_window_closed(tmp_path: Path, here: Here) -> None:
    doors(tmp_path)
    assert here("run", "doors.sql", "--engine", "local", "--json").answers == ANSWERS


def test_a_stream_from_standard_input_makes_a_filter(tmp_path: Path) -> None:
    ran = eventide(doors(tmp_path, PIPED + QUERY), "run", "doors.sql", "--json", given=ROWS)
    assert (ran.code, ran.answers) == (0, ANSWERS)


def test_the_script_may_come_through_standard_input(tmp_path: Path) -> None:
    doors(tmp_path)
    ran = eventide(tmp_path, "run", "-", "--engine", "local", "--json", given=STREAM + QUERY)
    assert ran.answers == ANSWERS


def test_script_and_rows_cannot_both_come_through_standard_input(tmp_path: Path) -> None:
    ran = eventide(tmp_path, "run", "-", given=PIPED + QUERY)
    assert ran.code == 2
    assert "put the script into a file" in ran.err


def test_a_query_that_names_files_writes_files(tmp_path: Path, here: Here) -> None:
    script = STREAM + "CREATE QUERY people AS " + QUERY.rstrip(";\n") + " INTO json 'out';"
    doors(tmp_path, script)
    ran = here("run", "doors.sql", "--engine", "local", "--json")
    assert (ran.code, ran.out) == (0, "")
    written = "".join(path.read_text() for path in sorted((tmp_path / "out").glob("*.json")))
    assert Ran(0, written, "").answers == ANSWERS


def test_a_bounded_run_goes_on_from_its_checkpoint_and_says_when_it_had_ended(tmp_path: Path, here: Here) -> None:
    arguments = ("run", "doors.sql", "--engine", "local", "--json", "--checkpoint", "state")
    doors(tmp_path)
    assert here(*arguments).answers == ANSWERS
    again = here(*arguments)
    assert (again.code, again.out) == (0, "")
    assert "had ended before" in again.err


def test_a_temporary_checkpoint_is_said_and_gone(tmp_path: Path, here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    doors(tmp_path)
    made, make = list[str](), tempfile.mkdtemp

    def noted(**named: str) -> str:
        made.append(make(**named))
        return made[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", noted)
    ran = here("run", "doors.sql", "--engine", "local")
    assert "the temporary checkpoint is removed" in ran.err
    [checkpoint] = [folder for folder in made if "eventide-checkpoint-" in folder]
    assert not Path(checkpoint).exists()


def test_rows_that_cannot_be_read_are_told_with_the_reason_and_kept_with_a_checkpoint(
    tmp_path: Path, here: Here
) -> None:
    doors(tmp_path, rows=ROWS + "soon,north,many\n")
    ran = here("run", "doors.sql", "--engine", "local", "--json", "--checkpoint", "state")
    assert ran.answers == ANSWERS
    assert "1 row rejected: malformed row; see state/rejects" in ran.err
    assert list((tmp_path / "state" / "rejects" / "doors").glob("*.parquet"))


def test_settings_of_the_script_count_and_the_command_line_wins(tmp_path: Path, here: Here) -> None:
    script = "SET engine = local;\nSET checkpoint = state;\n" + STREAM + QUERY
    doors(tmp_path, script)
    ran = here("run", "doors.sql", "--json", "--checkpoint", "other")
    assert ran.answers == ANSWERS
    assert (tmp_path / "other").is_dir()
    assert not (tmp_path / "state").exists()


def test_a_trace_has_a_line_for_every_decision_and_the_script_says_how_it_is_scheduled(
    tmp_path: Path, here: Here
) -> None:
    doors(tmp_path, "SET timestamps = 'every 1 second';\nSET heartbeats = 'query';\n" + STREAM + QUERY)
    ran = here("run", "doors.sql", "--engine", "local", "--json", "--trace", "trace.jsonl")
    assert ran.answers == ANSWERS
    lines = [json.loads(line) for line in (tmp_path / "trace.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {line["move"] for line in lines} == {"forward", "encore"}
    assert list(lines[0]) == ["round", "clock", "at", "move", "to", "why"]


@pytest.mark.parametrize(
    ("script", "arguments", "said"),
    [
        (STREAM + QUERY.replace("doors", "dors"), (), r"doors\.sql:6:\d+: .*'dors'"),
        (STREAM, (), "nothing to run"),
        ("SET speed = 3;\n" + STREAM + QUERY, (), "no setting 'speed'"),
        (STREAM.replace("doors.csv", "nowhere.csv") + QUERY, (), "nowhere.csv"),
        ("SET timestamps = 'often';\n" + STREAM + QUERY, (), "write 'on demand'"),
        (STREAM + QUERY, ("--trace", "no/such/folder/x"), "cannot write the trace"),
        (STREAM + QUERY, ("--conf", "nonsense"), "key=value"),
        (STREAM + QUERY, ("--conf", "tik=3"), "there is no setting 'tik'; did you mean 'tick'?"),
        (STREAM + QUERY, ("--conf", "driver.memory=much"), "driver.memory 'much' is no size"),
        (STREAM + QUERY, ("--package", "kafka"), "write group:name:version"),
        (STREAM + QUERY, ("--checkpoint", ""), "--checkpoint needs a value"),
        (STREAM + QUERY, ("--checkpoint", "--json"), "--checkpoint needs a value"),
        (PIPED + QUERY, ("--engine", "spark"), "only the local engine can"),
    ],
)
def test_what_cannot_be_used_is_told_with_code_2(
    tmp_path: Path, here: Here, script: str, arguments: tuple[str, ...], said: str
) -> None:
    engine = () if "--engine" in arguments else ("--engine", "local")
    doors(tmp_path, script)
    ran = here("run", "doors.sql", *engine, *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert re.search(said, ran.err), ran.err


def test_a_script_that_is_not_there_is_told_with_the_name_near_it(tmp_path: Path, here: Here) -> None:
    doors(tmp_path)
    ran = here("run", "door.sql")
    assert ran.code == 2
    assert "door.sql: no such file; did you mean doors.sql?" in ran.err


def test_debug_shows_the_traceback(tmp_path: Path, here: Here) -> None:
    doors(tmp_path, "SELECT")
    ran = here("run", "doors.sql", "--debug")
    assert ran.code == 2
    assert "Traceback" in ran.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_lets_the_round_finish_and_a_later_run_goes_on_from_there(
    tmp_path: Path, number: signal.Signals
) -> None:
    doors(tmp_path, FOLDER + QUERY)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "first.csv").write_text(ROWS, encoding="utf-8")
    arguments = ("run", "doors.sql", "--engine", "local", "--json", "--checkpoint", "state")
    with begun(tmp_path, *arguments) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        first = process.stdout.readline()
        process.send_signal(number)
        rest, said = process.stdout.read(), process.stderr.read()
    assert process.returncode == 0, said
    assert "it goes on from there" in said
    (tmp_path / "in" / "second.csv").write_text("at,door,people\n2026-01-31 09:03:30,north,2\n", encoding="utf-8")
    later = eventide(tmp_path, *arguments, "--bounded")
    together = Ran(0, first + rest + later.out, "").answers
    assert together == [*ANSWERS[:-1], ("09:03", "north", 9)]


def test_a_filter_that_is_stopped_while_its_pipe_is_open_ends_quietly(tmp_path: Path) -> None:
    """The interpreter could not end while a thread of ours waited inside its standard input."""
    doors(tmp_path, PIPED + QUERY)
    with begun(tmp_path, "run", "doors.sql", "--json") as process:
        given, out, err = ends(process)
        given.write(ROWS)
        given.flush()
        out.readline()
        process.send_signal(signal.SIGINT)
        said = err.read()
        assert process.wait(timeout=300) == 0
    assert "Fatal" not in said
    assert "stopped" in said


def test_a_reader_that_goes_away_ends_the_run_as_it_ends_any_filter(tmp_path: Path) -> None:
    doors(tmp_path, PIPED + QUERY)
    with begun(tmp_path, "run", "doors.sql", "--json") as process:
        given, out, err = ends(process)
        out.close()
        given.write(ROWS)
        given.close()
        said = err.read()
        assert process.wait(timeout=300) == 141
    assert said == ""


def test_json_needs_a_standard_output_that_is_open(tmp_path: Path) -> None:
    doors(tmp_path)
    command = [*COMMAND, "run", "doors.sql", "--engine", "local", "--json"]
    closed = ["sh", "-c", 'exec "$@" >&-', "sh", *command]
    found = subprocess.run(closed, cwd=tmp_path, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True, check=False)
    assert (found.returncode, found.stderr) == (2, "eventide: --json has nowhere to write: standard output is closed\n")
