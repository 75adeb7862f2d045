"""Hypothesis and Spark for the whole suite.

No deadline: how long an example takes on a busy machine proves nothing. One Spark session for each test process, made
when the first test asks for it: a JVM takes seconds to start.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Tests are always cold: half of Spark's time would go into compiling well what then runs once.
os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

settings.register_profile("eventide", deadline=None, print_blob=True)
settings.load_profile("eventide")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A real Spark on this machine, in UTC, with the settings of the engine."""
    from eventide.engine.spark_session import local_session

    session = local_session("local[2]", log_file=tmp_path_factory.mktemp("spark") / "spark.log")
    yield session
    session.stop()
