"""Keep the classes that Spark loads in one file, from which a JVM takes them in half of the time.

`python -m scripts.spark_archive FILE` runs a small script on Spark, and lets its JVM write the file when it ends. Every
JVM that is told `-XX:SharedArchiveFile=FILE` starts from it, and starts as always where it was written by another Java
or for another Spark. The tests start some thirty of them.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For what is always cold: half of Spark's time would go into compiling well what then runs once."""


def archive(file: Path) -> None:
    """Run Spark once, and write the file."""
    os.environ["JAVA_TOOL_OPTIONS"] = f"{QUICK_JVM} -XX:ArchiveClassesAtExit={file}"
    from pyspark import SparkContext

    from benchmarks.startup import prepared
    from eventide.engine.spark.engine import SparkEngine
    from eventide.language.script import read_script
    from eventide.launch.spark_session import local_session
    from eventide.sinks.sink import Memory

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spark = local_session("local[2]", log_file=folder / "spark.log")
        text = (prepared(folder) / "numbers.sql").read_text(encoding="utf-8")
        script = read_script(text.replace("'numbers.csv'", f"'{folder}/numbers.csv'"))
        engine = SparkEngine(spark, script.program, str(folder / "state"), {"query_1": Memory()})
        engine.start(bounded=True).await_end()
        spark.stop()
        gateway = SparkContext._gateway
        assert gateway is not None
        process = gateway.proc
        gateway.shutdown()
        process.stdin.close()
        process.wait()
    if not file.exists():
        raise SystemExit("Spark's classes were not kept: this Java cannot do it")


def java_options(file: Path) -> str:
    """What to tell a JVM of the tests.

    >>> java_options(Path("not/there"))
    '-XX:TieredStopAtLevel=1 -XX:+UseSerialGC'
    """
    return f"{QUICK_JVM} -XX:SharedArchiveFile={file}" if file.exists() else QUICK_JVM


if __name__ == "__main__":
    archive(Path(sys.argv[1]))
