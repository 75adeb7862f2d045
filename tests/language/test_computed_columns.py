"""Columns that are computed, and times that are: what they are over, and what is refused at its place."""

from __future__ import annotations

import pytest

from eventide.errors import LanguageError
from eventide.language.script import read_script
from eventide.plan.declared.stream import Timestamps
from eventide.plan.expressions.columns import columns


def test_a_computed_column_has_the_type_that_its_words_tell_or_that_is_declared() -> None:
    script = read_script(
        "CREATE STREAM s (ms BIGINT, ts AS timestamp_millis(ms), x STRING, at TIMESTAMP AS try_to_timestamp(x), "
        "twice INT GENERATED ALWAYS AS (ms * 2)) TIMESTAMP BY ts"
    )
    [stream] = script.program.streams
    assert stream.columns == columns("ms BIGINT, ts TIMESTAMP, x STRING, at TIMESTAMP, twice INT")
    assert dict(stream.computed) == {
        "ts": "TIMESTAMP_MILLIS(ms)", "at": "TRY_TO_TIMESTAMP(x)", "twice": "(ms * 2)",
    }  # fmt: skip
    assert stream.as_read.columns == columns("ms BIGINT, x STRING")
    assert (stream.time, stream.as_read.time, stream.as_read.timestamps) == ("ts", None, Timestamps.LATENT)


def test_a_time_that_is_computed_is_a_column_of_its_own() -> None:
    [stream] = read_script("CREATE STREAM s (ms BIGINT, k STRING) TIMESTAMP BY timestamp_millis(ms)").program.streams
    assert (stream.time, stream.computed) == ("row_time", (("row_time", "TIMESTAMP_MILLIS(ms)"),))


REFUSED = {
    "(ts TIMESTAMP, x AS nobody + 1)": "there is no column 'nobody' that is read",
    "(ts TIMESTAMP, a INT, x AS a + 1, y AS x + 1)": "there is no column 'x' that is read",
    "(ts TIMESTAMP, a INT, a AS ts)": "declared twice",
    "(ts TIMESTAMP, a INT, x AS sum(a))": "a computed column is over one row",
    "(ts TIMESTAMP, a ARRAY<INT>, x INT AS explode(a))": "EXPLODE makes several rows of one",
    "(ts TIMESTAMP, a INT, x AS my_own(a))": "the words do not tell the type of 'x'",
    "(ts AS CAST('2020-01-01' AS TIMESTAMP))": "none is read",
    "(ts TIMESTAMP, x AS)": "unexpected|expected",
    "(a STRING) TIMESTAMP BY upper(a)": "time must be TIMESTAMP, DATE or a whole number",
    "(ms BIGINT, row_time INT) TIMESTAMP BY timestamp_millis(ms)": "would be a column 'row_time', and there is one",
}


@pytest.mark.parametrize("declared", REFUSED)
def test_what_cannot_be_computed_is_refused(declared: str) -> None:
    with pytest.raises(LanguageError, match=REFUSED[declared]):
        read_script(f"CREATE STREAM s {declared}")


def test_a_table_computes_nothing() -> None:
    with pytest.raises(LanguageError, match="a table has the columns that are read"):
        read_script("CREATE TABLE t (a INT, b AS a + 1) FROM parquet 'x'")
