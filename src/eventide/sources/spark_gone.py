"""Spark's process may end before we do: killed for memory, or by hand. Whoever asks it next has to know that.

Law: what is raised because nobody answers is told as that, with code 3, and never as a fault of the input or the query.
"""

from __future__ import annotations

import signal
import subprocess


def is_gone(failure: BaseException) -> bool:
    """Whether what was raised says that Spark's process does not answer any more.

    >>> is_gone(ConnectionRefusedError()), is_gone(ValueError())
    (True, False)
    """
    # A broken pipe is one of ours, and the other two come from the library between Python and Spark.
    refused = isinstance(failure, ConnectionRefusedError | ConnectionResetError)
    return refused or type(failure).__name__ == "Py4JNetworkError"


def gone() -> str:
    """That Spark's process has ended, and by what; a machine without memory ends processes without a word."""
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)
    try:
        code = None if process is None else process.wait(timeout=1)
    except subprocess.TimeoutExpired:
        return "Spark's process does not answer. Its log may say why"
    by = "" if code is None else f" with code {code}" if code >= 0 else f", killed by {signal.Signals(-code).name}"
    return f"Spark's process has ended{by}. Its log may say why; is there enough memory for it?"
