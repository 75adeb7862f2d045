"""Conditions of a join taken apart say what they said: checked pair by pair against plain Python."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.language.from_clause.join_conditions import take_apart
from eventide.language.from_clause.join_scope import qualified
from eventide.language.from_clause.join_times import JoinInput
from eventide.language.scope.scope import over_stream
from eventide.plan.declared.join import Band
from eventide.plan.declared.stream import Stream, columns
from eventide.plan.expressions.parse import parsed

LEFT, RIGHT = (Stream(name, columns("t BIGINT, v INT"), time="t") for name in ("l", "r"))
SIDES = [JoinInput(stream.name, over_stream(stream, {stream.name})) for stream in (LEFT, RIGHT)]

numbers = st.integers(-6, 6).map(lambda n: f"({n})")
factors = st.sampled_from(["1", "2", "3", "-1", "-2"])


@st.composite
def sides(draw: st.DrawFn, name: str) -> str:
    """A whole expression over one side: its time, moved, multiplied or divided; sometimes another column."""
    time = draw(st.sampled_from([f"{name}.t", f"{name}.t", f"{name}.t", f"{name}.v"]))
    shape = draw(st.sampled_from(["{x}", "{x} + {n}", "{n} - {x}", "{f} * {x} + {n}", "{x} / 2", "({x} + {n}) * {f}"]))
    return "(" + shape.format(x=time, n=draw(numbers), f=draw(factors)) + ")"


@st.composite
def conditions(draw: st.DrawFn) -> str:
    """A comparison of both sides."""
    one, other = draw(st.permutations([draw(sides("l")), draw(sides("r"))]))
    form = draw(st.sampled_from(["compare", "compare", "between", "mixed", "distance", "difference"]))
    operator = draw(st.sampled_from(["=", "<", "<=", ">", ">="]))
    if form == "compare":
        return f"{one} {operator} {other}"
    if form == "between":
        return f"{one} BETWEEN {other} - {draw(numbers)} AND {other} + {draw(numbers)}"
    if form == "mixed":
        # One half compares times, the other one anything.
        return f"{one} BETWEEN {other} - {draw(numbers)} AND {draw(sides('r'))}"
    if form == "distance":
        return f"abs({one} - {other}) {draw(st.sampled_from(['<', '<=']))} {draw(numbers)}"
    return f"{one} - {other} {operator} {draw(numbers)}"


def holds(sql: str, l: tuple[int, int], r: tuple[int, int]) -> bool:  # noqa: E741
    """The condition for two rows, computed by Python; a time divided counts in whole numbers."""
    text = sql.lower().replace(" / ", " // ").replace(" div ", " // ")
    if " between " in text:
        value, _, ends = text.partition(" between ")
        low, _, high = ends.partition(" and ")
        text = f"{low} <= {value} <= {high}"
    elif " = " in text:
        text = text.replace(" = ", " == ")
    for name, given_value in (("l.t", l[0]), ("l.v", l[1]), ("r.t", r[0]), ("r.v", r[1])):
        text = text.replace(name, f"({given_value})")
    return bool(eval(text, {"abs": abs, "pmod": lambda x, n: x % n}))


def number(sql: str, t: int, v: int) -> int:
    """A side of a band for a row."""
    text = sql.lower().replace("floor(", "int_(").replace(" / ", " // ")
    return int(eval(text, {"t": t, "v": v, "int_": int}))


def within(band: Band, difference: int) -> bool:
    """Whether a band has a difference between its ends; one of them may be open."""
    return (band.low is None or band.low <= difference) and (band.high is None or difference <= band.high)


PAIRS = [((t, 3 * t % 7 - 3), (u, 5 * u % 7 - 3)) for t in range(-7, 8, 2) for u in range(-6, 8)]


@settings(max_examples=120, deadline=None)
@given(st.lists(conditions(), min_size=1, max_size=3))
def test_the_parts_of_a_condition_say_what_it_says(said: list[str]) -> None:
    # Times are divided in whole numbers where they are compared with times; elsewhere division is Spark's.
    said = [one for one in said if "/ 2" not in one or ".v" not in one]
    left, right = SIDES
    parts = take_apart([parsed(one, "q") for one in said], left, right)
    kept = {id(one) for one in (*parts.left, *parts.right, *parts.rest)}
    assert len(kept) == len(parts.left) + len(parts.right) + len(parts.rest)
    for l, r in PAIRS:  # noqa: E741
        whole = all(holds(one, l, r) for one in said)
        bands = all(within(band, number(band.right, *r) - number(band.left, *l)) for band in parts.bands)
        rest = all(holds(one.sql("spark"), l, r) for one in (*parts.left, *parts.right, *parts.rest))
        keys = all(
            holds(f"{qualified(one, 'l').sql('spark')} = {qualified(other, 'r').sql('spark')}", l, r)
            for one, other in parts.keys
        )
        assert (bands and rest and keys) == whole
