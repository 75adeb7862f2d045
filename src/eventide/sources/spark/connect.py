"""Sessions of Spark Connect, which cannot run an engine, are refused where they are given.

Law: rounds run in the driver: its JVM calls back into this process with each micro-batch. With Spark Connect the driver
is elsewhere, and what it would call cannot be sent there.
"""

from __future__ import annotations

from eventide.errors import DeclarationError


def refuse_connect(given: object, what: str) -> None:
    """Refuse a session or DataFrame of Spark Connect.

    >>> refuse_connect(42, "this session")
    """
    if any(base.__module__.startswith("pyspark.sql.connect.") for base in type(given).__mro__):
        raise DeclarationError(
            f"{what} is one of Spark Connect, whose driver is in another process; Eventide works in the driver. Make "
            "the session without .remote(...) (SparkSession.builder.master(...).getOrCreate(), with SPARK_REMOTE "
            "unset), or send the program to the cluster with spark-submit. eventide.heartbeats works with Spark "
            "Connect, for queries that stay plain Spark"
        )
