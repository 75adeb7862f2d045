"""The console: a live table on a terminal, lines elsewhere, and never a flood."""

from __future__ import annotations

import io
import os
import re
from contextlib import closing, suppress

import pyarrow as pa
import pytest
import rich.console

from eventide.errors import DeclarationError, EngineError
from eventide.eventtime.instant import FOREVER
from eventide.results.results import ROW_SPAN, Results
from eventide.sinks import Console
from eventide.testing.sink_contract import sample

NINE = 1_769_850_000_000_000
MINUTE = 60_000_000
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def speeds(round: int, detectors: list[str | None], kind: str = "final") -> Results:
    size = len(detectors)
    table = pa.table(
        {
            "query": ["speeds"] * size,
            "kind": [kind] * size,
            "window_start": pa.array([NINE] * size, pa.timestamp("us", "UTC")),
            "window_end": pa.array([NINE + 5 * MINUTE] * size, pa.timestamp("us", "UTC")),
            "round": pa.array([round] * size, pa.int64()),
            "rows": [17] * size,
            "heartbeat": pa.array([FOREVER] * size, pa.timestamp("us", "UTC")),
            "detector": pa.array(detectors, pa.string()),
            "mean": [51.5] * size,
        }
    )
    return Results.of_table("speeds", round, table)


def terminal(
    height: int = 40, encoding: str = "utf-8", width: int = 100
) -> tuple[rich.console.Console, io.TextIOWrapper]:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding, write_through=True)
    return rich.console.Console(file=file, force_terminal=True, width=width, height=height), file


def written(file: io.TextIOWrapper) -> str:
    assert isinstance(file.buffer, io.BytesIO)
    return file.buffer.getvalue().decode(file.encoding)


def said_plainly(results: Results) -> str:
    """What is written where there is no terminal."""
    file = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
    Console(console=rich.console.Console(file=file)).emit(results)
    return written(file)


def drawn(results: Results) -> str:
    """What a terminal shows."""
    console, _ = terminal()
    with closing(Console(console=console)) as sink:
        sink.emit(results)
        return "".join(segment.text for line in console.render_lines(sink._drawn()) for segment in line)


def last_drawing(file: io.TextIOWrapper) -> list[str]:
    text = CONTROL.sub("", written(file).rsplit("speeds, round", 1)[-1])
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def test_a_terminal_shows_a_table_with_readable_windows() -> None:
    console, file = terminal()
    sink = Console(console=console)
    sink.emit(speeds(41, ["A"], kind="early"))
    sink.emit(speeds(42, ["A", None]))
    sink.close()
    title, head, _, *rows = last_drawing(file)
    assert title == "42"
    assert head == "window kind detector mean rows"
    window = "2026-01-31 09:00:00 - 09:05:00"
    assert rows == [f"{window} early A 51.5 17", f"{window} final A 51.5 17", f"{window} final null 51.5 17"]


def test_a_terminal_shows_only_the_newest_rows() -> None:
    console, file = terminal()
    sink = Console(rows=3, console=console)
    for round in range(10):
        sink.emit(speeds(round, [f"a{round}", f"b{round}"]))
    sink.close()
    shown = [line.split()[5] for line in last_drawing(file)[3:]]
    assert shown == ["b8", "a9", "b9"]
    assert sink.newest("speeds")["detector"].to_pylist() == ["b8", "a9", "b9"]


def test_a_low_terminal_still_shows_the_newest_rows_of_every_query() -> None:
    console, file = terminal(height=14)
    sink = Console(console=console)
    sink.emit(sample("other", 0, 50))
    sink.emit(speeds(7, [f"d{number}" for number in range(50)]))
    sink.close()
    assert [line.split()[5] for line in last_drawing(file)[3:]] == ["d48", "d49"]


def test_a_terminal_is_not_drawn_for_every_round() -> None:
    console, file = terminal()
    sink = Console(console=console)
    for round in range(400):
        sink.emit(speeds(round, ["A"]))
    sink.close()
    drawn = written(file).count("speeds, round")
    assert 2 <= drawn < 100
    assert last_drawing(file)[0] == "399"


def test_rewound_rounds_leave_the_table() -> None:
    console, _ = terminal()
    sink = Console(console=console)
    for round in range(4):
        sink.emit(speeds(round, [f"d{round}"]))
    sink.rewind("speeds", 1)
    sink.emit(speeds(2, ["again"]))
    sink.close()
    assert sink.newest("speeds")["detector"].to_pylist() == ["d0", "d1", "again"]


def test_a_closed_console_opens_again() -> None:
    console, file = terminal()
    sink = Console(console=console)
    sink.emit(speeds(0, ["A"]))
    sink.close()
    sink.emit(speeds(1, ["B"]))
    sink.close()
    assert last_drawing(file)[0] == "1"


def test_nothing_in_the_data_commands_the_terminal() -> None:
    console, file = terminal()
    sink = Console(console=console)
    sink.emit(speeds(0, ["\x1b[2J\x07[red]x", "two\nlines"]))
    sink.close()
    assert "\x1b[2J" not in written(file)
    assert "\x07" not in written(file)
    assert "[2J\N{REPLACEMENT CHARACTER}[red]x" in written(file)
    assert "two\N{REPLACEMENT CHARACTER}lines" in written(file)


@pytest.mark.parametrize("live", [True, False])
def test_a_screen_without_the_letters_shows_the_rest(live: bool) -> None:
    console, file = terminal(encoding="ascii")
    if not live:
        console = rich.console.Console(file=file)
    with closing(Console(console=console)) as sink:
        sink.emit(speeds(0, ["grün"]))
    assert "gr?n" in written(file)


def lines_of(*results: Results, rows: int = 20) -> list[str]:
    file = io.StringIO()
    sink = Console(rows, rich.console.Console(file=file, width=10))
    for each in results:
        sink.emit(each)
    sink.close()
    return file.getvalue().splitlines()


def test_elsewhere_each_result_is_a_line_however_narrow_the_place() -> None:
    window = "[2026-01-31 09:00:00, 2026-01-31 09:05:00)"
    assert lines_of(speeds(41, ["A"], kind="early"), speeds(42, ["A b", None])) == [
        f"speeds round=41 early {window} detector=A mean=51.5 rows=17",
        f'speeds round=42 final {window} detector="A b" mean=51.5 rows=17',
        f"speeds round=42 final {window} detector=null mean=51.5 rows=17",
    ]


def test_elsewhere_a_large_round_does_not_flood() -> None:
    many = sample("speeds", 0, 2000, batch_rows=300)
    first, *rest = lines_of(many, rows=5)
    assert first == "speeds round=0: 1,995 more"
    assert [re.findall(r"total=(\d+)", line) for line in rest] == [["1995"], ["1996"], ["1997"], ["1998"], ["1999"]]


def test_elsewhere_rounds_without_rows_say_nothing() -> None:
    assert lines_of(sample("speeds", 0, 0)) == []


def test_results_over_a_sequence_and_of_any_shape_are_shown() -> None:
    table = pa.table(
        {"window_start": [0], "window_end": [50], "x": [[1, 2]], "at": pa.array([FOREVER], pa.timestamp("us"))}
    )
    assert lines_of(Results.of_table("q", 0, table)) == ['q round=0 [0, 50) x="[1, 2]" at=infinity']
    assert lines_of(Results.of_table("q", 0, pa.table({"total": [1.25]}))) == ["q round=0 total=1.25"]


def test_a_dumb_terminal_is_given_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    console, file = terminal()
    with closing(Console(console=console)) as sink:
        sink.emit(speeds(1, ["A"]))
    assert written(file).startswith("speeds round=1 final [2026-01-31 09:00:00, ")


def test_a_reader_that_went_away_is_told() -> None:
    read, write = os.pipe()
    os.close(read)
    file = os.fdopen(write, "w")
    sink = Console(console=rich.console.Console(file=file))
    with pytest.raises(EngineError, match="results cannot be shown: Broken pipe"):
        sink.emit(speeds(0, ["A"]))
    with suppress(BrokenPipeError):
        file.close()


def test_a_console_that_shows_nothing_is_refused() -> None:
    with pytest.raises(DeclarationError, match="give 1 or more"):
        Console(rows=0)


def volumes(round: int, kind: str, total: int, known: bool = True, start: int = NINE) -> Results:
    """A row of a query that declares prods, with what is expected of it; of final rows nothing is."""
    early = kind == "early"
    table = pa.table(
        {
            "query": ["speeds"],
            "kind": [kind],
            "window_start": pa.array([start], pa.timestamp("us", "UTC")),
            "window_end": pa.array([start + 5 * MINUTE], pa.timestamp("us", "UTC")),
            "round": pa.array([round], pa.int64()),
            "rows": [7],
            "heartbeat": pa.array([FOREVER], pa.timestamp("us", "UTC")),
            "detector": ["north"],
            "total": [total],
            "point": pa.array([0.75 if early else None], pa.float64()),
            "completeness": pa.array([0.79 if early and known else None], pa.float64()),
            "total_error": pa.array([0.2123 if early and known else None], pa.float64()),
            "total_estimate": pa.array([total / 0.79 if early else None], pa.float64()),
        }
    )
    return Results.of_table("speeds", round, table)


def test_on_a_terminal_an_early_row_tells_its_error_until_the_final_one_takes_its_place() -> None:
    console, file = terminal()
    sink = Console(console=console)
    with closing(sink):
        sink.emit(volumes(0, "final", 500, start=NINE - 5 * MINUTE))
        sink.emit(volumes(1, "early", 303))
        sink.emit(volumes(2, "early", 614))
    drawn = last_drawing(file)
    assert drawn[1] == "window kind detector total rows"
    assert drawn[3:] == [
        "2026-01-31 08:55:00 - 09:00:00 final north 500 7",
        "2026-01-31 09:00:00 - 09:05:00 early 79 % north 614 ± 21 %, ~777 7",
    ]
    sink = Console(console=console)
    with closing(sink):
        sink.emit(volumes(2, "early", 614))
        sink.emit(volumes(3, "final", 780))
    assert last_drawing(file)[3:] == ["2026-01-31 09:00:00 - 09:05:00 final north 780 7"]


def test_into_a_pipe_goes_every_early_row_with_its_error_and_the_final_one() -> None:
    file = io.StringIO()
    sink = Console(console=rich.console.Console(file=file))
    for results in (volumes(0, "early", 303, known=False), volumes(1, "early", 614), volumes(2, "final", 780)):
        sink.emit(results)
    window = "[2026-01-31 09:00:00, 2026-01-31 09:05:00) detector=north"
    assert file.getvalue().splitlines() == [
        f"speeds round=0 early {window} total=303 rows=7",
        f"speeds round=1 early 79% {window} total=614±21%,~777 rows=7",
        f"speeds round=2 final {window} total=780 rows=7",
    ]


def test_columns_that_only_look_like_those_of_early_answers_are_the_users_own() -> None:
    file = io.StringIO()
    table = pa.table({"kind": ["final"], "point": [1], "completeness": [2], "n_error": [3]})
    Console(console=rich.console.Console(file=file)).emit(Results.of_table("q", 0, table))
    assert file.getvalue() == "q round=0 final point=1 completeness=2 n_error=3\n"


def row_table(first: int, last: int) -> pa.Table:
    """A row, or rows that were joined, as the engine gives them: with a window that ends just behind them."""
    starts, ends = (pa.array([time], pa.timestamp("us", "UTC")) for time in (first, last + 1))
    end = pa.field("window_end", ends.type, metadata=ROW_SPAN)
    return pa.table([starts, ends, ["A"]], pa.schema([("window_start", starts.type), end, ("v", pa.string())]))


def test_rows_that_were_joined_are_shown_with_their_first_and_last_time() -> None:
    """They stood there as a window up to 09:00:05.000001."""
    pair = Results.of_table("pairs", 0, row_table(NINE, NINE + 5_000_000))
    assert said_plainly(pair) == "pairs round=0 [2026-01-31 09:00:00, 2026-01-31 09:00:05] v=A\n"
    assert "2026-01-31 09:00:00 - 09:00:05 " in drawn(pair)


def test_a_window_as_short_as_a_row_is_a_window_all_the_same() -> None:
    table = pa.table({"window_start": [3], "window_end": [4], "n": [1]})
    assert said_plainly(Results.of_table("w", 0, table)) == "w round=0 [3, 4) n=1\n"


def test_a_row_without_a_window_is_shown_with_its_time() -> None:
    row = Results.of_table("speeds", 0, row_table(NINE, NINE))
    assert said_plainly(row) == "speeds round=0 2026-01-31 09:00:00 v=A\n"
    shown = drawn(row)
    assert shown.split()[:3] == ["speeds", "time", "v"]
    assert "2026-01-31 09:00:00 " in shown
    assert " - " not in shown


def test_the_status_line_stays_however_many_rows_and_queries_there_are() -> None:
    """Long values wrapped, and many tables were higher than the screen: its last line was the first to go."""
    console, _ = terminal(height=16, width=60)
    sink = Console(console=console, below=lambda: "18 rows/s")
    for number in range(9):
        wide = {"word": ["very long words " * 9] * 30, "n": [123_456_789] * 30}
        sink.emit(Results.of_table(f"q{number}", 0, pa.table(wide)))
    sink.close()
    lines = console.render_lines(sink._drawn(), pad=False)
    assert len(lines) <= 16
    text = ["".join(segment.text for segment in line).rstrip() for line in lines]
    assert text[-1] == "18 rows/s"
    assert any("more queries" in line for line in text)
    assert any("123456789" in line for line in text)
