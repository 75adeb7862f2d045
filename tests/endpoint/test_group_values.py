"""Values of groups from outside: what results show of a group names that group, and nothing else is taken."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.engine.early.group_values import group_value
from eventide.errors import DeclarationError
from eventide.eventtime.pattern import Pattern
from eventide.results.accuracy import filtered
from eventide.sinks.lines import LineWriter

TIMES = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1))
GROUPS: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.string(), st.text(st.characters(codec="utf-8", exclude_characters="\0"))),
    (pa.bool_(), st.booleans()),
    (pa.int8(), st.integers(-128, 127)),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.float64(), st.floats(allow_nan=False, allow_infinity=False)),
    (pa.float32(), st.floats(allow_nan=False, allow_infinity=False, width=32)),
    (pa.decimal128(38, 10), st.decimals(-(10**20), 10**20, places=10)),
    (pa.date32(), st.dates()),
    (pa.timestamp("us", "UTC"), TIMES.map(lambda t: t.replace(tzinfo=UTC))),
    (pa.timestamp("us"), TIMES),
    (pa.binary(), st.binary()),
]


@pytest.mark.parametrize(
    ("type", "values"), GROUPS, ids=lambda value: str(value) if isinstance(value, pa.DataType) else ""
)
def test_what_a_result_shows_of_a_group_names_that_group(type: pa.DataType, values: st.SearchStrategy[Any]) -> None:
    written = LineWriter("json", pa.schema([("g", type)]))

    @given(st.lists(st.none() | values, min_size=1, max_size=8))
    def check(held: list[Any]) -> None:
        table = pa.table({"g": pa.array(held, type)})
        lines = written.of(table).decode().removesuffix("\n").split("\n")
        for shown, row in zip(lines, table.column("g"), strict=True):
            # As a program reads it from JSON, and as a person types what is shown.
            plain = json.loads(shown, parse_float=Decimal)["g"]
            typed = plain if plain is None or isinstance(plain, str) else shown[5:-1]
            for given_as in (plain, typed):
                found = filtered(table, {"g": Pattern.of(group_value("g", type, given_as))}).column("g")
                assert len(found) == sum(other.equals(row) for other in table.column("g"))
                assert all(one.equals(row) for one in found)

    check()


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.decimals() | st.binary(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=3,
)


@pytest.mark.parametrize("type", [type for type, _ in GROUPS] + [pa.list_(pa.int32()), pa.null()], ids=str)
def test_whatever_is_given_becomes_a_value_that_can_be_compared_or_a_clear_error(type: pa.DataType) -> None:
    @given(ANYTHING)
    def check(value: Any) -> None:
        said = f"group 'g' is of type {type}, which "
        try:
            found = group_value("g", type, value)
        except DeclarationError as error:
            found, said = None, str(error)
        assert said.startswith(f"group 'g' is of type {type}, which ")
        assert len(said) < 400
        filtered(pa.table({"g": pa.nulls(1, type)}), {"g": Pattern.of(found)})

    check()


@pytest.mark.parametrize(
    ("type", "value"),
    [
        (pa.string(), 7),
        (pa.int32(), "7.0"),
        (pa.int32(), "seven"),
        (pa.int32(), 2**31),
        (pa.int32(), True),
        (pa.bool_(), 1),
        (pa.bool_(), "yes"),
        (pa.float64(), "NaN"),
        (pa.float64(), "much"),
        (pa.decimal128(4, 2), "1.005"),
        (pa.decimal128(4, 2), "100"),
        (pa.decimal128(4, 2), Decimal("1e999999")),
        (pa.date32(), "2026-02-30"),
        (pa.date32(), 20260131),
        (pa.timestamp("us", "UTC"), "soon"),
        (pa.timestamp("us"), "2026-01-31T12:00:00Z"),
        (pa.binary(), "%%%"),
    ],
    ids=str,
)
def test_what_is_none_of_the_type_is_refused(type: pa.DataType, value: Any) -> None:
    with pytest.raises(DeclarationError, match="does not fit: give "):
        group_value("g", type, value)


def test_python_values_are_taken_as_they_are() -> None:
    assert group_value("g", pa.date32(), date(2026, 1, 31)) == date(2026, 1, 31)
    noon = datetime(2026, 1, 31, 12)
    assert group_value("g", pa.timestamp("us"), noon) == noon
    assert group_value("g", pa.timestamp("us", "UTC"), noon) == group_value(
        "g", pa.timestamp("us", "UTC"), "2026-01-31 12:00"
    )
