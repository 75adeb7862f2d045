"""What to declare for a sample: a drop ratio, from a dry run of it, and the length of a first window.

Law: a ratio is proposed by what it would have cost on the sample: 1 %, or less where that hardly waits longer. A window
is so long that the sample has some dozens of them at most.

>>> window_for(3_600_000_000, None)
Length(amount=300000000, sql='5 minutes', words='5 minutes')
>>> window_for(100, None, plain=True), window_for(3_600_000, "ms", plain=True)
(Length(amount=5, sql='5', words='5'), Length(amount=300000, sql='300000', words='5 minutes'))
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from eventide.commands.roles import Roles, unit_of
from eventide.commands.sample import Sample
from eventide.errors import InputError
from eventide.plan.expressions.columns import WHOLE_NUMBERS
from eventide.profile.amounts import percent, spoken
from eventide.profile.candidates import OURS, candidates
from eventide.profile.disorder import disorder
from eventide.profile.dry_run import dry_runs, timetable
from eventide.profile.files import Columns, parts_of
from eventide.profile.reading import Reading, read
from eventide.profile.rounds import usual_round

RATIOS = (0.001, 0.01, 0.05)
USUAL_RATIO = 0.01
FAR_LESS = 0.8
"""The usual ratio is worth it where it waits less than this share of what the smallest one waits."""

ROUNDS = 1_000
"""A dry run takes about so many rounds: enough to see, and done in a second."""

FEW_ROWS = 500
"""A dry run of fewer rows says little."""

MOST_BYTES = 200_000_000
"""Larger samples are not run through the policies: that would take longer than a starter is worth."""

MOST_WINDOWS, FEWEST_WINDOWS = 40, 4
ROWS_IN_A_WINDOW = 3
"""So many rows of each source in a window make a first answer worth looking at."""

SECOND, MINUTE, HOUR, DAY = 1_000_000, 60_000_000, 3_600_000_000, 86_400_000_000
LENGTHS = (
    *((n * SECOND, f"{n} second") for n in (1, 5, 10, 30)),
    *((n * MINUTE, f"{n} minute") for n in (1, 5, 10, 30)),
    *((n * HOUR, f"{n} hour") for n in (1, 6, 12)),
    *((n * DAY, f"{n} day") for n in (1, 7, 30, 365)),
)
PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


@dataclass(frozen=True)
class Length:
    """A length in the stream's own units, as the script writes it, and in words."""

    amount: int
    sql: str
    words: str

    def times(self, factor: int) -> str:
        """So many of them, as the script writes it.

        >>> Length(300_000_000, "5 minutes", "5 minutes").times(3), Length(60_000_000, "1 minute", "1 minute").times(3)
        ('15 minutes', '3 minutes')
        """
        number, _, unit = self.sql.partition(" ")
        return f"{int(number) * factor} {unit.rstrip('s')}s" if unit else str(int(number) * factor)


@dataclass(frozen=True)
class Advice:
    """The ratio to declare, sentences about what it would have cost, and the first window."""

    ratio: float
    sentences: tuple[str, ...]
    window: Length


def advice_for(sample: Sample, roles: Roles) -> Advice:
    """Run the sample through Eventide's own policy, for a few ratios."""
    if roles.time is None:
        return Advice(USUAL_RATIO, (), Length(10 * SECOND, "10 seconds", "10 seconds"))
    column = sample.column(roles.time)
    plain = column.type in WHOLE_NUMBERS
    sources = 1 if roles.source is None else max(1, sample.column(roles.source).distinct)
    windows = max(FEWEST_WINDOWS, min(MOST_WINDOWS, sample.rows // (ROWS_IN_A_WINDOW * sources)))
    window = window_for(column.span, unit_of(column), plain, column.type == "DATE", windows)
    if sum(Path(part).stat().st_size for part in parts_of(sample.argument)) > MOST_BYTES:
        large = "The sample is large, so no dry run was made: `eventide profile` does that."
        return Advice(USUAL_RATIO, (large,), window)
    if ("header", "false") in sample.options:
        return Advice(USUAL_RATIO, ("1 % is a good start.",), window)
    source = () if roles.source is None else (roles.source,)
    try:
        # To the engine whole numbers are a sequence, whatever they count.
        [reading] = read([sample.argument], Columns(column.name, roles.arrival, source), "none" if plain else None)
    except InputError as error:
        return Advice(USUAL_RATIO, (f"No dry run: {error}",), window)
    ratio, said = _ratio(reading)
    return Advice(ratio, said, window)


def _ratio(reading: Reading) -> tuple[float, tuple[str, ...]]:
    recording, plain = reading.recording, reading.plain
    if recording.rows < FEW_ROWS:
        return USUAL_RATIO, (f"{recording.rows:,} rows are too few to say what it costs; 1 % is a good start.",)
    measured = disorder(recording)
    if measured.out_of_order == 0:
        return USUAL_RATIO, ("All rows of the sample came in the order of their times: this costs next to nothing.",)
    span = int(recording.arrival[-1] - recording.arrival[0])
    plan = timetable(recording, max(usual_round(recording, plain) or 1, span // ROUNDS))
    found = {ratio: dry_runs(plan, candidates(ratio, [OURS]))[OURS].outcome for ratio in RATIOS}
    smaller, usual = found[RATIOS[0]].lag_mean, found[USUAL_RATIO].lag_mean
    worth_it = smaller is None or usual is None or usual < FAR_LESS * smaller
    said = [f"In the sample {percent(measured.out_of_order)} of the rows came out of order. A dry run of it:"]
    for ratio, outcome in found.items():
        said.append(
            f"  DRATIO {100 * ratio:g}% would have lost {percent(outcome.drop_ratio)} and made rows wait "
            f"{spoken(outcome.lag_mean, plain)} on average"
        )
    return USUAL_RATIO if worth_it else RATIOS[0], tuple(said)


def window_for(
    span: int, unit: str | None, plain: bool = False, days: bool = False, windows: int = MOST_WINDOWS
) -> Length:
    """The length of a first window for a sample of this span, that makes at most so many windows.

    `unit` is what plain numbers count, if they do.
    """
    if plain and unit is None:
        amount = 1
        while span // amount > windows:
            amount = amount * 2 if str(amount)[0] in "15" else amount * 5 // 2
        return Length(amount, str(amount), f"{amount:,}")
    in_micros = span if unit is None else span * SECOND // PER_SECOND[unit]
    fitting = [(length, words) for length, words in LENGTHS if not days or length >= DAY]
    length, words = next((one for one in fitting if in_micros // one[0] <= windows), fitting[-1])
    words = words if words.startswith("1 ") else words + "s"
    if unit is None:
        return Length(length, words, words)
    own = length // SECOND * PER_SECOND[unit]
    return Length(own, str(own), words)
