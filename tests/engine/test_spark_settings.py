"""Settings of Spark: those of a new session, and those for one that runs already."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from eventide.errors import DeclarationError
from eventide.launch.spark_session import local_session, settle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
PARTITIONS = "spark.sql.shuffle.partitions"


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """The session of all tests, which has its settings again afterwards."""
    before = spark.conf.get(PARTITIONS)
    yield spark
    spark.conf.set(PARTITIONS, str(before))


def test_a_session_that_runs_takes_what_it_can_and_a_warning_tells_the_rest(session: SparkSession) -> None:
    """A script with SET spark.executor.memory ran in a notebook as if it were not there."""
    with pytest.warns(UserWarning, match=r"only when it starts: spark\.executor\.memory\. Give"):
        settle(session, {PARTITIONS: "7", "spark.executor.memory": "2g", "spark.of.a.connector": "x"})
    assert (session.conf.get(PARTITIONS), session.conf.get("spark.of.a.connector")) == ("7", "x")


def test_a_value_that_spark_cannot_use_is_told_as_such(session: SparkSession, tmp_path: Path) -> None:
    """It was told when the first stream was opened, as a file that cannot be read."""
    with pytest.raises(DeclarationError, match="cannot use a setting: The value 'many' in the config"):
        settle(session, {PARTITIONS: "many"})
    with pytest.raises(DeclarationError, match="cannot use a setting: The value 'many' in the config"):
        local_session("local[2]", {PARTITIONS: "many"}, log_file=tmp_path / "spark.log")
    assert session.range(1).count() == 1
