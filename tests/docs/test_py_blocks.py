"""Python of the pages that is no session (`py` blocks) runs as it stands; the blocks of one page are one program."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.docs.blocks import tagged
from tests.docs.scenes import HERE, ON_SPARK, Page, Scene

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run(page: str, scene: Scene, session: SparkSession | None = None) -> None:
    """Run the blocks of a page one after the other."""
    blocks = [block for block in tagged("py") if block.page == page]
    with scene(Page(blocks, session)) as names:
        for block in blocks:
            exec(compile(block.text, str(block), "exec"), names)


@pytest.mark.parametrize("page", HERE)
def test_the_python_of_a_page_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(page, HERE[page])


@pytest.fixture
def spark_here(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SparkSession]:
    """Spark in the test's own folder: a JVM stays where it was started, so its file system is told."""
    jvm = spark._jvm
    assert jvm is not None
    files = jvm.org.apache.hadoop.fs.FileSystem.get(spark._jsc.hadoopConfiguration())
    before = files.getWorkingDirectory()
    monkeypatch.chdir(tmp_path)
    files.setWorkingDirectory(jvm.org.apache.hadoop.fs.Path(str(tmp_path)))
    yield spark
    files.setWorkingDirectory(before)


@pytest.mark.spark
@pytest.mark.parametrize("page", ON_SPARK)
def test_the_python_of_a_page_runs_on_spark(page: str, spark_here: SparkSession) -> None:
    run(page, ON_SPARK[page], spark_here)


def test_every_page_with_python_has_a_scene() -> None:
    assert {block.page for block in tagged("py")} == {*HERE, *ON_SPARK}
