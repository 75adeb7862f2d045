"""Every transcript of queries holds on both engines, as written and in every variant; some must fail.

With `--all`, that is. Otherwise a transcript is run on the local engine as written, every third in one variant as
well, in turns, and on Spark those that show something that Spark does in a way of its own.
"""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from eventide.errors import DeclarationError
from eventide.testing.transcript import Transcript, Variant, cases, run_transcript
from tests.choice import chosen

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLDER = Path(__file__).parent / "transcripts"
CASES = cases(FOLDER)
TRANSCRIPTS = [list(variants) for _, variants in groupby(CASES, key=lambda case: str(case[0]))]
VARIED = [others for _, *others in TRANSCRIPTS if others][::3]
IN_TURNS = [others[number % len(others)] for number, others in enumerate(VARIED)]
WRITTEN = [transcript for transcript, variant in CASES if variant is Variant.WRITTEN]
# A round of Spark takes long enough for a choice: partials, rows that are kept, rows that are numbered, late rows.
VARIED_ON_SPARK = [
    (transcript, variant)
    for transcript, variant in CASES
    if str(transcript) in ("distinct", "row_windows", "spread_of_values", "two_queries")
    and variant is not Variant.WRITTEN
]
# Of each thing that Spark reads, computes, numbers, joins or keeps in its own way, the shortest transcript.
ALWAYS_ON_SPARK = {
    "approximate_quantile", "bounded_end", "broken_cast", "broken_sum_of_kept_rows", "by_source_below",
    "controllers", "decimals", "distinct", "distinct_groups", "empty_windows", "first_and_last_of_one_row",
    "groups_of_every_type", "having", "in_sql", "internal_timestamps", "join_band", "join_full", "join_with_itself",
    "lookup_window", "merge_broken_rows", "merge_row_windows", "odd_names", "over_windows_of_rows", "overflow",
    "prods_by_source", "prods_of_groups", "queue", "refused_column_of_level", "rejects", "revise", "row_windows",
    "same_names_other_types", "sample", "session_revised", "sideline_sliding", "slow_flush", "table_left",
    "three_levels", "top_of_each_window", "wall_clock_times",
}  # fmt: skip
ALWAYS_VARIED_ON_SPARK = {
    ("distinct", Variant.SPLIT),
    ("row_windows", Variant.RESTARTED),
    ("spread_of_values", Variant.SHUFFLED),
}
ALWAYS_ON_THE_CLUSTER = {
    ("join_full", Variant.WRITTEN),
    ("lookup_window", Variant.WRITTEN),
    ("merge_ordered", Variant.WRITTEN),
    ("row_windows", Variant.RESTARTED),
    ("sessions", Variant.WRITTEN),
    ("table_left", Variant.RESTARTED),
    ("top_revised", Variant.WRITTEN),
}
# Every transcript as it is written, with nothing left on the driver; some of them split into rounds, or restarted.
SPLIT_ON_THE_CLUSTER = {
    "broken_on_the_second_level", "decimals", "groups_of_every_type", "having", "prods_of_groups",
    "top_of_each_window", "top_of_kept_rows",
}  # fmt: skip
RESTARTED_ON_THE_CLUSTER = {
    "join_full", "lookup", "merge_window", "prod_at_points", "queue", "restart", "row_windows", "table_left",
}  # fmt: skip
ON_THE_CLUSTER = [
    (transcript, variant)
    for transcript, variant in CASES
    if transcript.fails is None
    and (
        variant is Variant.WRITTEN
        or (variant is Variant.SPLIT and str(transcript) in SPLIT_ON_THE_CLUSTER)
        or (variant is Variant.RESTARTED and str(transcript) in RESTARTED_ON_THE_CLUSTER)
    )
]


# The same where state is so large that Spark SQL has to share it out: of each operator those that do most.
BY_SPARK_SQL = [
    (transcript, variant)
    for transcript, variant in ON_THE_CLUSTER
    if str(transcript) in SPLIT_ON_THE_CLUSTER | RESTARTED_ON_THE_CLUSTER
    or str(transcript).startswith(("join", "lookup", "merge", "by_source", "session", "sideline", "slow_flush"))
]
ALWAYS_BY_SPARK_SQL = {("lookup", Variant.WRITTEN)}


def named(case: tuple[Transcript, Variant]) -> tuple[str, Variant]:
    return str(case[0]), case[1]


@pytest.mark.parametrize(
    ("transcript", "variant"), chosen(CASES, lambda case: case[1] is Variant.WRITTEN or case in IN_TURNS), ids=str
)
def test_transcript_holds_on_the_local_engine(transcript: Transcript, variant: Variant) -> None:
    run_transcript(transcript, variant=variant)


@pytest.mark.spark
# What tests the harness itself needs no second engine.
@pytest.mark.parametrize(
    "transcript",
    chosen([told for told in WRITTEN if told.fails is None], lambda told: str(told) in ALWAYS_ON_SPARK),
    ids=str,
)
def test_transcript_holds_on_spark(transcript: Transcript, spark: SparkSession) -> None:
    run_transcript(transcript, "spark", spark=spark)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("transcript", "variant"),
    chosen(VARIED_ON_SPARK, lambda case: named(case) in ALWAYS_VARIED_ON_SPARK),
    ids=str,
)
def test_variant_of_a_transcript_holds_on_spark(transcript: Transcript, variant: Variant, spark: SparkSession) -> None:
    run_transcript(transcript, "spark", variant, spark)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("transcript", "variant"), chosen(ON_THE_CLUSTER, lambda case: named(case) in ALWAYS_ON_THE_CLUSTER), ids=str
)
def test_transcript_holds_with_slices_on_the_cluster(
    transcript: Transcript, variant: Variant, spark: SparkSession
) -> None:
    run_transcript(transcript, "spark", variant, spark, driver_memory=0)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("transcript", "variant"), chosen(BY_SPARK_SQL, lambda case: named(case) in ALWAYS_BY_SPARK_SQL), ids=str
)
def test_transcript_holds_with_state_too_large_for_one_task(
    transcript: Transcript, variant: Variant, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eventide.engine.spark.state_tasks.TASK_BYTES", -1)
    run_transcript(transcript, "spark", variant, spark, driver_memory=0)


def test_what_is_always_run_is_there() -> None:
    assert {str(told) for told in WRITTEN} >= ALWAYS_ON_SPARK
    assert {named(case) for case in VARIED_ON_SPARK} >= ALWAYS_VARIED_ON_SPARK
    assert {named(case) for case in ON_THE_CLUSTER} >= ALWAYS_ON_THE_CLUSTER
    assert {named(case) for case in BY_SPARK_SQL} >= ALWAYS_BY_SPARK_SQL


def test_most_transcripts_can_be_split_into_rounds_of_one_row() -> None:
    split = [transcript for transcript, variant in CASES if variant is Variant.SPLIT]
    assert len(split) > len(WRITTEN) / 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"round": []}, "a transcript has no 'round': did you mean 'rounds'"),
        ({"rounds": [{}, {"row": []}]}, "step 2: a step has no 'row': did you mean 'rows'"),
        ({"rounds": [{"expect": {"finals": []}}]}, "step 1: `expect` has no 'finals': did you mean 'final'"),
        ({"rounds": [{"rows": {"T": []}}]}, "step 1: rows: there is no stream 'T'"),
        ({"rounds": [{"rows": {"S": [[1]]}}]}, "step 1: the row .* is not a list of t, v"),
        ({"rounds": [{}, {"rows": {"S": [[1, "x"]]}}]}, "step 2: column 'v' of stream 'S': 'x' is no value"),
        (
            {"rounds": [{"rows": {"S": [[1, 3000000000]]}}]},
            "step 1: column 'v' of stream 'S': Value 3000000000 too large",
        ),
        ({"rounds": [{"rows": {"S": [{"w": 1}]}}]}, "step 1: stream 'S' has no column 'w'"),
        ({"rounds": [{"heartbeat": {"S": 1.5}}]}, "step 1: 1.5 is no instant of a sequence"),
        ({"query": "SELECT sum(v) FROM S"}, "could never close"),
        ({"queries": {"a": "SELECT sum(v) FROM S [RANGE 5]", "b": {}}}, "write all in one way"),
        ({"query": {"selects": {}}}, "query 'query' has no 'selects'"),
        ({"query": {"select": {"n": "count(*)"}, "window": {"range": 10, "slde": 1}}}, "did you mean 'slide'"),
        ({"query": {"select": {"n": "count(*)"}, "window": {"range": 10, "slide": 0}}}, "SLIDE 0 is not above 0"),
        ({"streams": {"S": {"columns": {"t": "bigint"}, "tme": "t"}}}, "stream 'S' has no 'tme': did you mean 'time'"),
        ({"streams": {"S": {"columns": {"t": "bigint"}, "time": "t", "policy": "Fixed"}}}, "'Fixed' is no policy"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_step_and_the_way_out(change: dict[str, object], message: str) -> None:
    written = {"name": "x", "streams": {"S": {"columns": {"t": "bigint", "v": "int"}, "time": "t"}}}
    with pytest.raises(DeclarationError, match=message):
        Transcript.of(written | change)


def test_a_file_that_is_no_yaml_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("a: [", encoding="utf-8")
    with pytest.raises(DeclarationError, match="cannot read the transcript"):
        Transcript.read(tmp_path / "x.yaml")
