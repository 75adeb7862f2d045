"""`eventide init`: what it writes passes `check` and runs, whatever the sample; what it found is right."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventide.commands.check import findings_of
from eventide.commands.init import init_file
from eventide.commands.init_advice import Roles, roles_of
from eventide.commands.init_sample import look_at
from eventide.errors import InputError
from eventide.profile.amounts import percent, spoken
from tests.commands.processes import Here, eventide

MINUTES = [f"2026-01-31 09:{minute:02d}:00" for minute in range(40)]


def csv(head: str, lines: list[str]) -> str:
    return "\n".join([head, *lines, ""])


SAMPLES = {
    "plain.csv": csv("ts,sensor,speed", [f"{at},s{i % 3},{i / 2}" for i, at in enumerate(MINUTES)]),
    "with tabs.tsv": csv("when\tstation id\tquery", [f"{at}\tst{i % 2}\t{i}" for i, at in enumerate(MINUTES)]),
    "semicolons.csv": csv("Time;host;it's", [f"{at}Z;h{i % 2};x" for i, at in enumerate(MINUTES)]),
    "headless.csv": "".join(f"{at},a{i % 2},{i}\n" for i, at in enumerate(MINUTES)),
    "ragged.csv": csv("ts,v", [f"{at},{i}" for i, at in enumerate(MINUTES)] + ["2026-01-31 10:00:00", "x,1,2"]),
    "numbers.csv": csv("t,v", [f"{i},{i}" for i in range(200)]),
    "no-time.csv": csv("name,amount", [f"n{i},{i}" for i in range(20)]),
    "odd-times.csv": csv("date,amount", [f"{1 + i}/01/2026 10:00,{i}" for i in range(20)]),
    "index.csv": csv(",ts,v,v", [f"{i},{at},{i},0" for i, at in enumerate(MINUTES)]),
    "days.csv": csv("date,shop,sales", [f"2026-01-{1 + i:02d},s{i % 2},{i}.5" for i in range(20)]),
    "select.csv": csv("time,rows,window_start", [f"{at},{i},{i}" for i, at in enumerate(MINUTES)]),
    "nested.jsonl": "".join(
        json.dumps({"ts": at, "host": f"h{i % 2}", "load": i / 7, "tags": ["a"], "user": {"id": i}}) + "\n"
        for i, at in enumerate(MINUTES)
    ),
    "millis.jsonl": "".join(
        json.dumps({"timestamp": 1_700_000_000_000 + 250 * i, "device": f"d{i % 4}", "v": i}) + "\n" for i in range(600)
    ),
    "broken.jsonl": "".join(json.dumps({"ts": at, "v": i}) + "\n" for i, at in enumerate(MINUTES)) + "{broken\n",
}


@pytest.mark.parametrize("name", SAMPLES)
def test_what_init_writes_has_no_errors(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(SAMPLES[name], encoding="utf-8")
    init_file(name, Path("first.sql"), None, None, False)
    text = Path("first.sql").read_text(encoding="utf-8")
    assert [finding for finding in findings_of(text, "first.sql")[0] if finding.severity == "error"] == []


@pytest.mark.parametrize("name", ["plain.csv", "with tabs.tsv", "headless.csv", "select.csv", "millis.jsonl"])
def test_what_init_writes_runs_over_the_sample_and_loses_no_row(name: str, tmp_path: Path, here: Here) -> None:
    (tmp_path / name).write_text(SAMPLES[name], encoding="utf-8")
    assert here("init", name, "-o", "first.sql").code == 0
    ran = here("run", "first.sql", "--bounded", "--engine", "local", "--json")
    assert ran.code == 0, ran.err
    rows = SAMPLES[name].count("\n") - (not name.startswith(("headless", "millis")))
    assert sum(row["events"] for row in ran.rows) == rows


def test_columns_of_parquet_are_declared_as_they_are_or_left_out(tmp_path: Path, here: Here) -> None:
    columns = {
        "ts": pa.array(range(50), pa.timestamp("us", "UTC")),
        "sensor": pa.array(["a", "b"] * 25),
        "small": pa.array([1] * 50, pa.int8()),
        "price": pa.array([1] * 50, pa.decimal128(10, 2)),
        "hour": pa.array([1] * 50, pa.time64("us")),
    }
    pq.write_table(pa.table(columns), "trades.parquet")
    found = look_at("trades.parquet")
    assert {column.name: column.type for column in found.columns} == {
        "ts": "TIMESTAMP",
        "sensor": "STRING",
        "small": "TINYINT",
        "price": "DECIMAL(10, 2)",
    }
    assert found.left_out == ("hour",)
    init_file("trades.parquet", Path("first.sql"), None, None, False)
    ran = here("run", "first.sql", "--engine", "local", "--json")
    assert (ran.code, sum(row["events"] for row in ran.rows)) == (0, 50)


def test_time_arrival_and_source_are_found_by_type_and_name(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    lines = [f"{i},{at}.5,{at},d{i % 3},{i % 2},{i}" for i, at in enumerate(MINUTES)]
    path.write_text(csv("id,received_at,event_time,device,level,speed", lines), encoding="utf-8")
    assert roles_of(look_at(str(path))) == Roles("event_time", "received_at", "device", "level")
    assert roles_of(look_at(str(path)), time="received_at", source="level").time == "received_at"


@pytest.mark.parametrize(("odd", "kind", "broken"), [(1, "BIGINT", 1), (30, "STRING", 0)])
def test_a_few_values_that_are_no_numbers_are_exceptions_and_many_make_a_column_text(
    odd: int, kind: str, broken: int, tmp_path: Path
) -> None:
    path = tmp_path / "late.csv"
    lines = [f"2026-01-31 09:00:00,{i}" for i in range(100)] + ["2026-01-31 09:00:00,n/a"] * odd
    path.write_text(csv("ts,v", lines), encoding="utf-8")
    found = look_at(str(path))
    assert (found.column("v").type, found.broken) == (kind, broken)


def test_a_file_that_is_there_is_not_written_over_unless_forced(tmp_path: Path, here: Here) -> None:
    (tmp_path / "plain.csv").write_text(SAMPLES["plain.csv"], encoding="utf-8")
    (tmp_path / "mine.sql").write_text("-- mine", encoding="utf-8")
    ran = here("init", "plain.csv", "-o", "mine.sql")
    assert ran.code == 2
    assert "--force" in ran.err
    assert (tmp_path / "mine.sql").read_text(encoding="utf-8") == "-- mine"
    assert here("init", "plain.csv", "-o", "mine.sql", "--force").code == 0
    assert "CREATE STREAM plain" in (tmp_path / "mine.sql").read_text(encoding="utf-8")


def test_without_a_file_the_script_and_nothing_else_is_on_standard_output(tmp_path: Path) -> None:
    (tmp_path / "plain.csv").write_text(SAMPLES["plain.csv"], encoding="utf-8")
    script = eventide(tmp_path, "init", "plain.csv").out
    ran = eventide(tmp_path, "run", "-", "--engine", "local", "--json", given=script)
    assert sum(row["events"] for row in ran.rows) == len(MINUTES)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("empty.csv", "", "empty"),
        ("notes.docx", "x", "unknown ending"),
        ("head.csv", "ts,v\n", "no rows"),
        ("rubbish.jsonl", "no json\nat all\n", "rubbish.jsonl"),
    ],
)
def test_a_sample_that_cannot_be_used_is_told(tmp_path: Path, name: str, text: str, said: str) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=said):
        look_at(str(path))


def lines(*rows: dict[str, object]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


@pytest.mark.parametrize(
    ("rows", "source"),
    [
        ([{"ts": at, "device": f"d{i % 3}"} for i, at in enumerate(MINUTES[:8])], "device"),
        ([{"ts": at, "device": "one"} for at in MINUTES[:8]], "device"),
        ([{"ts": at, "city": f"c{i % 2}", "n": i} for i, at in enumerate(MINUTES)], "city"),
        ([{"ts": at, "city": f"c{i % 2}", "mood": f"m{i % 3}"} for i, at in enumerate(MINUTES)], None),
        ([{"ts": at, "note": f"n{i}"} for i, at in enumerate(MINUTES)], None),
    ],
    ids=["few rows", "one source", "no telling name", "two that could be", "never again"],
)
def test_a_source_is_found_by_its_name_or_because_it_is_the_only_text_that_comes_again(
    rows: list[dict[str, object]], source: str | None, tmp_path: Path
) -> None:
    (tmp_path / "rows.jsonl").write_bytes(lines(*rows))
    assert roles_of(look_at(str(tmp_path / "rows.jsonl"))).source == source


def test_whole_numbers_of_json_that_are_missing_in_places_stay_whole(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"ts": at, "n": None if i % 3 else i} for i, at in enumerate(MINUTES)]
    (tmp_path / "rows.jsonl").write_bytes(lines(*rows))
    assert look_at(str(tmp_path / "rows.jsonl")).column("n").type == "BIGINT"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("latin.csv", "ts,s\n2026-01-31,caf\xe9\n".encode("latin1") * 9, "line 2 is not UTF-8: .* iconv"),
        ("wide.csv", "ts,s\n2026-01-31,a\n".encode("utf-16") * 9, "it is UTF-16: .* iconv -f utf-16"),
        ("lines.csv", b"ts,s,n\n" + b'2026-01-31,"a\nb",1\n' * 4, "a text in quotes must not go on in the next line"),
        ("latin.jsonl", '{"s": "caf\xe9"}\n'.encode("latin1") * 9, "is not UTF-8: .* iconv"),
        ("huge.csv", b"ts,s\n2026-01-31," + b"x" * 3_000_000 + b"\n", "is too long to be a row"),
    ],
)
def test_why_a_file_cannot_be_read_is_told(name: str, content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=said):
        look_at(str(tmp_path / name))


def test_who_a_row_is_about_is_no_source_and_a_status_no_amount(tmp_path: Path) -> None:
    """200 customers were 200 sources, each waited for; and the mean of the status of requests was computed."""
    lines = [f"{at},c{i % 8},{200 + i % 3},{i / 2}" for i, at in enumerate(MINUTES)]
    (tmp_path / "orders.csv").write_text(csv("ts,customer,status,amount", lines))
    assert roles_of(look_at(str(tmp_path / "orders.csv"))) == Roles("ts", None, None, "amount")


@pytest.mark.slow
def test_init_and_profile_say_the_same_of_the_same_file_and_ratio(tmp_path: Path, here: Here) -> None:
    """They went in rounds of different lengths, and told 0.32 % and 0.83 %."""
    shuffled = [(7 * i) % 4_000 // 40 * 40 + i % 40 for i in range(4_000)]
    rows = [f"2026-01-31 {9 + at // 3600:02d}:{at // 60 % 60:02d}:{at % 60:02d},s{at % 3},{at}" for at in shuffled]
    (tmp_path / "rows.csv").write_text(csv("ts,sensor,v", rows), encoding="utf-8")
    script = here("init", "rows.csv").out
    ran = here("profile", "rows.csv", "--time", "ts", "--source", "sensor", "--policy", "eventide", "--json")
    [run] = json.loads(ran.out)["runs"]
    found = run["policies"]["eventide"]
    lost, lag = percent(found["drop_ratio"]), spoken(1000 * found["lag_mean_ms"])
    assert f"DRATIO 1% would have lost {lost} and made rows wait {lag} on average" in script


def test_times_that_cannot_be_read_are_shown_as_they_are_written(tmp_path: Path, here: Here) -> None:
    """German dates stood in the comments as 2026-01-31, which their file does not have anywhere."""
    rows = [f"{1 + i}.02.2026 09:{i:02d}:30;s{i % 2};{i}" for i in range(28)]
    (tmp_path / "messung.csv").write_text(csv("zeit;sensor;wert", rows), encoding="utf-8")
    script = here("init", "messung.csv").out
    assert "zeit   STRING,  -- such as 1.02.2026 09:00:30\n" in script
    assert "OPTIONS (timestampFormat 'dd.MM.yyyy HH:mm:ss') after FROM csv, and TIMESTAMP BY zeit" in script
