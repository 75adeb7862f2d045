"""A smoke set of transcripts holds on every minor version of Spark that `pyproject.toml` allows."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from scripts.servers import UnavailableError
from scripts.spark_versions import OTHERS, environment_of

ROOT = Path(__file__).parents[2]
SMOKE = (
    "approximate_quantile", "broken_cast", "decimals", "distinct", "groups_of_every_type", "in_sql", "join_full",
    "lookup_window", "merge_row_windows", "pairs_of_values", "prods_of_groups", "queue", "rejects", "revise",
    "row_windows", "sideline_sliding", "three_levels", "top_of_each_window",
)  # fmt: skip
"""Of each operator, and of each thing in which versions have differed, one."""


@pytest.mark.slow
@pytest.mark.parametrize("version", OTHERS)
def test_the_smoke_set_holds_on_another_version_of_spark(version: str) -> None:
    try:
        environment = environment_of(version)
    except UnavailableError as missing:
        pytest.skip(str(missing))
    asked = [sys.executable, "-c", "import pyspark; print(pyspark.__version__)"]
    assert subprocess.check_output(asked, env=environment, text=True).strip() == version
    file = "tests/engine/test_query_transcripts.py"
    tests = [
        *(f"{file}::test_transcript_holds_on_spark[{name}]" for name in SMOKE),
        f"{file}::test_transcript_holds_with_slices_on_the_cluster[join_full-written]",
        f"{file}::test_transcript_holds_with_slices_on_the_cluster[row_windows-restarted]",
    ]
    # PySpark 4.1 leaves its sockets to the garbage collector.
    lenient = ["-W", "ignore::pytest.PytestUnraisableExceptionWarning"]
    command = [sys.executable, "-m", "pytest", "--all", "-n0", "-q", "-p", "no:cacheprovider", *lenient, *tests]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-1000:]


def test_every_minor_version_that_is_allowed_is_tried() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    [allowed] = project["project"]["optional-dependencies"]["spark"]
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").split()
    [pinned] = [pin.removeprefix("pyspark==") for pin in pins if pin.startswith("pyspark==")]
    minors = sorted(int(version.split(".")[1]) for version in (pinned, *OTHERS))
    assert allowed == f"pyspark>=4.{minors[0]},<4.{minors[-1] + 1}"
    assert minors == list(range(minors[0], minors[-1] + 1))
