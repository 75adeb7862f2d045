"""The command as a user meets it: what is printed where, and the exit code."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eventide.cli import main
from eventide.profile.profiling import ONLINE, YARDSTICKS


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def runs(self) -> list[dict[str, Any]]:
        found = json.loads(self.out)
        assert list(found) == ["runs"]
        return list(found["runs"])


Command = Callable[..., Ran]


@pytest.fixture
def eventide(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    def run(*arguments: str) -> Ran:
        monkeypatch.setattr(sys, "argv", ["eventide", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        code = ended.value.code
        return Ran(code if isinstance(code, int) else 0, printed.out, printed.err)

    return run


@pytest.fixture
def recording(tmp_path: Path) -> str:
    """Two sensors for 2,000 rows, one trailing the other by about half a second; a third speaks rarely."""
    random = np.random.default_rng(7)
    sensor = random.choice(["north", "south", "rare"], 2_000, p=[0.6, 0.39, 0.01])
    time = 1_700_000_000_000 + np.sort(random.integers(0, 200_000, 2_000))
    arrival = time + np.where(sensor == "south", 500, 20) + random.integers(0, 100, 2_000)
    order = np.argsort(arrival, kind="stable")
    rows = "".join(f"{time[at]},{arrival[at]},{sensor[at]},{'day' if at < 1_500 else 'night'}\n" for at in order)
    path = tmp_path / "sensors.csv"
    path.write_text("event_time,received,sensor,shift\n" + rows)
    return str(path)


COLUMNS = ("--time", "event_time", "--arrival", "received", "--source", "sensor")


def test_json_is_one_line_with_the_promised_keys(eventide: Command, recording: str) -> None:
    ran = eventide("profile", recording, *COLUMNS, "--round", "1s", "--json")
    assert ran.code == 0
    assert ran.out.count("\n") == 1
    [run] = ran.runs
    assert {"file", "run", "rows", "sources", "disorder", "policies"} <= run.keys()
    assert (run["file"], run["run"], run["rows"], run["sources"]) == (recording, None, 2_000, 3)
    assert set(run["policies"]) == {*ONLINE, *YARDSTICKS}
    promised = {
        "drop_ratio",
        "drop_ratio_after_1000",
        "worst_source_drop_ratio",
        "lag_mean_ms",
        "lag_p95_ms",
        "buffered_mean_rows",
    }
    for policy in run["policies"].values():
        assert promised <= policy.keys()
    assert run["policies"]["fixed_best"]["drop_ratio"] <= 0.01
    assert run["policies"]["clairvoyant"]["lag_mean_ms"] < run["policies"]["fixed_best"]["lag_mean_ms"] < 1_500


def test_json_tells_the_disorder_in_milliseconds(eventide: Command, recording: str) -> None:
    [run] = eventide("profile", recording, *COLUMNS, "--json", "--policy", "own_progress").runs
    disorder = run["disorder"]
    assert 0.1 < disorder["out_of_order"] < 0.6
    assert 20 <= disorder["delay_ms"]["min"] < 30
    north, south, rare = disorder["per_source"]
    assert [north["source"], south["source"], rare["source"]] == ["north", "south", "rare"]
    assert 500 <= south["clock_offset_ms"] < 510
    assert 540 < south["median_delay_ms"] < 560
    assert north["rows_per_second"] == pytest.approx(6, rel=0.1)
    assert set(run["policies"]) == {"clairvoyant", "fixed_best", "own_progress"}


def test_each_run_is_a_recording_of_its_own(eventide: Command, recording: str) -> None:
    runs = eventide("profile", recording, *COLUMNS, "--run", "shift", "--json", "--policy", "kim").runs
    assert [(run["run"], run["rows"]) for run in runs] == [("day", 1_500), ("night", 500)]
    assert runs[1]["policies"]["kim"]["drop_ratio_after_1000"] is None
    assert runs[1]["policies"]["kim"]["worst_source_drop_ratio"] is None


def test_the_report_tells_disorder_policies_and_what_to_paste(eventide: Command, recording: str) -> None:
    ran = eventide("profile", recording, *COLUMNS, "--drop-ratio", "5%")
    assert ran.code == 0
    for told in ("2,000 rows from 3 sources", "row at a time", "Disorder", "north", "Policies", *ONLINE, *YARDSTICKS):
        assert told in ran.out
    assert "policy = DropRatio(0.05)" in ran.out
    assert 'timestamp_millis("event_time")).withWatermark("event_time", "' in ran.out
    assert "'event_time' is taken to be in ms" in ran.out


def test_plots_are_drawn_as_png_and_svg(eventide: Command, recording: str, tmp_path: Path) -> None:
    plots = tmp_path / "deep" / "plots"
    asked = ("profile", recording, *COLUMNS, "--round", "1s", "--policy", "eventide")
    ran = eventide(*asked, "--json", "--plot", str(plots))
    assert len(ran.runs) == 1
    names = {path.name for path in plots.iterdir()}
    kinds = ("delay", "lag-loss", "heartbeat")
    assert names == {f"sensors.csv-{kind}.{ending}" for kind in kinds for ending in ("png", "svg")}
    assert all(path.stat().st_size > 5_000 for path in plots.iterdir())


def test_rounds_make_rows_wait_for_their_end(eventide: Command, recording: str) -> None:
    asked = ("profile", recording, *COLUMNS, "--json", "--policy", "own_progress")
    [by_row] = eventide(*asked, "--round", "row").runs
    [in_rounds] = eventide(*asked, "--round", "1s").runs
    assert (by_row["round_ms"], in_rounds["round_ms"]) == (None, 1_000)
    lags = [run["policies"]["own_progress"]["lag_mean_ms"] for run in (by_row, in_rounds)]
    assert lags[0] + 200 < lags[1] < lags[0] + 1_000


def test_plain_numbers_stay_plain(eventide: Command, tmp_path: Path) -> None:
    path = tmp_path / "numbers.jsonl"
    path.write_text("".join(f'{{"n": {number}}}\n' for number in (1, 2, 4, 3, 5, 6)))
    ran = eventide("profile", str(path), "--time", "n")
    assert ran.code == 0
    assert "times are plain numbers" in ran.out
    assert "withWatermark takes timestamps only" in ran.out
    [run] = eventide("profile", str(path), "--time", "n", "--json").runs
    assert run["unit"] == "none"
    assert run["disorder"]["lateness_ms"]["max"] == 1


@pytest.mark.parametrize("rows", ["7\n", "7\n7\n7\n", "-5\n-9\n-7\n", "3\n\n5\n"])
def test_small_and_odd_recordings_get_an_answer(eventide: Command, tmp_path: Path, rows: str) -> None:
    path = tmp_path / "odd.csv"
    path.write_text("t\n" + rows)
    for more in (("--plot", str(tmp_path / "plots"), "--policy", "own_progress"), ("--round", "2")):
        ran = eventide("profile", str(path), "--time", "t", "--unit", "none", *more)
        assert ran.code == 0, ran.err
    [run] = eventide("profile", str(path), "--time", "t", "--unit", "none", "--json").runs
    assert set(run["policies"]) == {*ONLINE, *YARDSTICKS}


def test_one_row_from_the_future_is_reported_and_can_be_drawn(eventide: Command, tmp_path: Path) -> None:
    path = tmp_path / "future.csv"
    rows = [(at, at) for at in range(1_700_000_000, 1_700_000_300)]
    rows[150] = (1_900_000_000, rows[150][1])
    path.write_text("t,a\n" + "".join(f"{time},{arrival}\n" for time, arrival in rows))
    more = ("--policy", "own_progress", "--plot", str(tmp_path))
    ran = eventide("profile", str(path), "--time", "t", "--arrival", "a", *more)
    assert ran.code == 0
    assert "1 rows are stamped far ahead of the clock" in " ".join(ran.out.replace("│", " ").split())


BAD: list[tuple[tuple[str, ...], str]] = [
    (("--time", "event_tim"), "did you mean 'event_time'"),
    (("--time", "sensor"), "holds mostly no times"),
    (("--time", "event_time", "--drop-ratio", "0"), "not between 0 and 1"),
    (("--time", "event_time", "--drop-ratio", "100%"), "not between 0 and 1"),
    (("--time", "event_time", "--drop-ratio", "few"), "no number"),
    (("--time", "event_time", "--drop-ratio", "nan"), "not between 0 and 1"),
    (("--time", "event_time", "--round", "soon"), "no length of time"),
    (("--time", "event_time", "--round", "0s"), "no length"),
    (("--time", "event_time", "--round", "5"), "no unit"),
    (("--time", "event_time", "--unit", "weeks"), "use one of s, ms, us, ns, none"),
    (("--time", "event_time", "--policy", "hope"), "no policy 'hope'"),
    (("--time", "event_time", "--plot", "/dev/null/plots"), "plots cannot be written there"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_what_cannot_be_used_is_told_in_one_sentence_with_exit_code_2(
    eventide: Command, recording: str, arguments: tuple[str, ...], message: str
) -> None:
    ran = eventide("profile", recording, *arguments)
    assert ran.code == 2
    assert message in ran.err
    assert "Traceback" not in ran.err
    assert ran.out == ""


def test_usage_errors_have_exit_code_2_too(eventide: Command, recording: str) -> None:
    assert eventide("profile", recording).code == 2
    assert eventide("profile", "--time", "t").code == 2
    assert eventide("profit").code == 2


def test_debug_shows_the_traceback(eventide: Command) -> None:
    ran = eventide("profile", "nowhere.csv", "--time", "t", "--debug")
    assert ran.code == 2
    assert "Traceback" in ran.err
    assert "InputError: nowhere.csv (" in ran.err
    assert "nowhere.csv): no such file" in ran.err


def test_help_names_every_option_and_the_version_is_told(eventide: Command) -> None:
    told = eventide("profile", "--help").out
    for option in ("--time", "--arrival", "--source", "--run", "--drop-ratio", "--round", "--unit", "--json", "--plot"):
        assert option in told
    version = eventide("version")
    assert version.code == 0
    assert version.out.startswith(("0.", "run from its sources"))
