"""The bridge: Eventide's heartbeats as the watermark of a query that stays plain Spark.

Law: Spark's watermark is the heartbeat of the policy, and nothing else moves it. Rows with time <= watermark are late,
which is the heartbeat law in Spark's words.

How. The frame is a union of two branches. One is the user's rows, without a watermark; on their way a function notes
how many rows of each source came, from which time to which. The other has one row for each heartbeat and a watermark
without delay; its rows end right behind it. Spark knows one watermark then, and takes it from the heartbeats alone.
"""

from __future__ import annotations

import atexit
import base64
import os
import pickle
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from eventide.api.arguments import Length, length
from eventide.api.inputs import SparkRows, given_rows
from eventide.errors import DeclarationError
from eventide.eventtime.heartbeat import Policy, layers
from eventide.eventtime.policies.drop_ratio.policy import DropRatio
from eventide.plan.declared.stream import Stream, TimeKind
from eventide.plan.expressions.columns import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructField

BEAT = "__eventide_beat"


def heartbeats(
    df: DataFrame,
    time: str,
    source: str | Sequence[str] = (),
    policy: Policy | None = None,
    *,
    folder: str | os.PathLike[str] | None = None,
    tick: Length = "1 second",
) -> DataFrame:
    """Give a streaming DataFrame Eventide's heartbeats as its watermark; the query over it stays plain Spark.

    Law: rows at or below the watermark are late, and only the heartbeat of the policy moves it. The DataFrame serves
    one query; call this again for another.

    - `time`: a TIMESTAMP column with the event time.
    - `source`: the column or columns that name a source.
    - `policy`: how heartbeats are computed. By default at most 1 % of the rows may be late.
    - `folder`: where the policy saves what it has learned, for a restart from the query's checkpoint. On a cluster, the
      driver and all workers must reach it by this path.
    - `tick`: how often the clock alone may move the watermark.

    `examples/python_3_heartbeats.py` is a whole program.
    """
    given = given_rows(df)
    if not isinstance(given, SparkRows):
        raise DeclarationError("heartbeats are for Spark: give a streaming DataFrame, made with spark.readStream")
    chosen = DropRatio(0.01) if policy is None else policy
    if not isinstance(chosen, Policy):
        raise DeclarationError(f"{policy!r} is no policy: give one of eventide.eventtime, such as DropRatio(0.01)")
    if any(isinstance(layer, DropRatio) and layer.learned is not None for layer in layers(chosen)):
        raise DeclarationError("heartbeats for Spark learn by themselves: leave `learned` out")
    sources = (source,) if isinstance(source, str) else tuple(source)
    declared = Stream("heartbeats", given.columns, time, sources, policy=chosen)
    kind = declared.column(time).type
    if kind != "TIMESTAMP":
        raise DeclarationError(f"Spark's watermark needs a TIMESTAMP, and {time!r} is {kind}: cast it first")
    place = _place(folder)
    options = {
        "folder": place,
        "policy": base64.b64encode(pickle.dumps(chosen)).decode("ascii"),
        "tick": str(length(tick, TimeKind.TIMESTAMP, "the tick") / 1_000_000),
        "eventide": str(Path(__file__).resolve().parents[2]),
    }
    return _united(df, declared.column(time).name, sources, place, options)


def _united(df: DataFrame, time: str, sources: tuple[str, ...], place: str, options: dict[str, str]) -> DataFrame:
    from pyspark import cloudpickle
    from pyspark.sql import functions
    from pyspark.sql.pandas.functions import arrow_udf

    from eventide.api import bridge_source

    # By value: workers need Arrow, but not Eventide.
    cloudpickle.register_pickle_by_value(sys.modules[bridge_source.__name__])  # type: ignore[no-untyped-call]
    spark = df.sparkSession
    spark.dataSource.register(bridge_source.HeartbeatSource)
    # Not deterministic, so that Spark neither leaves it out nor moves it behind another condition.
    watch = arrow_udf(bridge_source.watching(place), "boolean").asNondeterministic()  # type: ignore[call-overload]
    watched = df.where(watch(_source(sources), functions.col(quoted(time)))).withColumn(BEAT, functions.lit(False))
    beats = spark.readStream.format(bridge_source.FORMAT).schema(f"{quoted(time)} TIMESTAMP").options(**options).load()
    marked = beats.withWatermark(time, "0 seconds").select(
        *(functions.col(quoted(time)) if field.name == time else _nothing(field) for field in df.schema.fields),
        functions.lit(True).alias(BEAT),
    )
    # First the branch with the watermark: a union has the metadata of its first branch.
    united = marked.union(watched).where((~functions.col(BEAT)) | _never(time))
    return united.drop(BEAT)


def _never(time: str) -> Column:
    """A condition that holds for no heartbeat, and of which Spark cannot know that.

    Heartbeats are after 1970 and `rand` is below 1. Spark moves no condition past one that is not deterministic: so
    neither this one nor the user's own, which no heartbeat would fulfil, comes before the watermark.
    """
    from pyspark.sql import functions

    return functions.rand() > functions.unix_seconds(functions.col(quoted(time))) + 2


def _nothing(field: StructField) -> Column:
    """A column of the user's, for a row that has no value in it."""
    from pyspark.sql import functions

    return functions.lit(None).cast(field.dataType).alias(field.name, metadata=field.metadata)


def _source(columns: tuple[str, ...]) -> Column:
    """One text for each source."""
    from pyspark.sql import functions

    texts = [
        functions.coalesce(functions.col(quoted(name)).cast("string"), functions.lit("(null)")) for name in columns
    ]
    return functions.concat_ws("\x1f", *texts) if len(texts) != 1 else texts[0]


def _place(folder: str | os.PathLike[str] | None) -> str:
    if folder is None:
        made = tempfile.mkdtemp(prefix="eventide-heartbeats-")
        atexit.register(shutil.rmtree, made, ignore_errors=True)
        return made
    place = os.path.abspath(folder)
    os.makedirs(place, exist_ok=True)
    return place
