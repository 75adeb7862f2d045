"""Connectors that Spark does not bring along: found for the running version of Spark, fetched once, and kept.

Law: a program that reads Kafka starts Spark with the connector of exactly that version, unless the user names one
(`--package`, `spark.jars`, `spark.jars.packages`) or Spark has it among its own. What was fetched stays in the user's
cache (`XDG_CACHE_HOME`, else `~/.cache`), so the second start needs no network. A connector that cannot be had is an
error that says which part is missing, and the ways around it.

Ivy, which is part of Spark, fetches the parts from Maven Central. What Spark has already is left out.

>>> missing_settings({"csv"}, {}, (), "4.2.0")
{}
>>> missing_settings({"kafka"}, {}, ("org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",), "4.2.0")
{}
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from eventide.errors import EngineError
from eventide.language.script import OutputTarget
from eventide.launch.logs import under_way
from eventide.plan.declared.program import Program

SPARK = "org.apache.spark"
TOKENS = "spark-token-provider-kafka-0-10_2.13"
LOST = re.compile(r"::\s+([\w.-]+)#([\w.-]+);([\w.-]+): not found")
VERSION = re.compile(r"-\d[\w.]*$")
JARS = "spark.jars"


@dataclass(frozen=True)
class Part:
    """A package: its name, its version ({spark} is that of Spark), and what it would bring and must not."""

    name: str
    version: str = "{spark}"
    without: str | None = None
    group: str = SPARK

    def xml(self, spark: str) -> str:
        """The part as a dependency, in Ivy's words."""
        given = f'org="{self.group}" name="{self.name}" rev="{self.version.format(spark=spark)}"'
        excluded = "" if self.without is None else f'<exclude org="{SPARK}" module="{self.without}"/>'
        return f'<dependency {given} conf="default-&gt;master,runtime">{excluded}</dependency>'


CONNECTORS: dict[str, tuple[tuple[Part, ...], ...]] = {
    "kafka": (
        (Part("spark-sql-kafka-0-10_2.13"),),
        # Its part for Kerberos is not published everywhere for every version; that of 4.0 fits all of them.
        (Part("spark-sql-kafka-0-10_2.13", without=TOKENS), Part(TOKENS, "4.0.0")),
    ),
    "postgresql": ((Part("postgresql", "42.7.4", group="org.postgresql"),),),
}
"""For each format the sets of parts that will do, the best first."""


def formats_of(program: Program, outputs: Iterable[OutputTarget] = ()) -> set[str]:
    """The formats that the streams of a program read, and the databases that JDBC has to reach.

    >>> formats_of(Program(()), [OutputTarget("q", "jdbc", "t", (("url", "jdbc:postgresql://db/orders"),))])
    {'postgresql'}
    """
    formats = {stream.input.format.lower() for stream in program.streams if stream.input is not None}
    by_jdbc = any(
        stream.input.format.lower() == "postgres" for stream in program.streams if stream.input and stream.table
    )
    urls = [dict(output.options).get("url", "") for output in outputs if output.kind == "jdbc"]
    databases = {url.split(":")[1] for url in urls if url.count(":") > 1}
    return formats | databases | ({"postgresql"} if by_jdbc else set())


def missing_settings(
    formats: Collection[str], conf: Mapping[str, str], packages: Iterable[str], spark: str
) -> dict[str, str]:
    """The settings that give Spark the connectors for these formats; none for those that it has."""
    named = " ".join([*packages, conf.get(JARS, ""), conf.get("spark.jars.packages", "")])
    wanted = [format for format in CONNECTORS if format in formats and CONNECTORS[format][0][0].name not in named]
    jars = [jar for format in wanted for jar in jars_of(format, spark)]
    return {JARS: ",".join([*filter(None, [conf.get(JARS)]), *jars])} if jars else {}


def jars_of(format: str, spark: str) -> list[str]:
    """The files of a connector; fetched where they are not there yet."""
    import pyspark

    own = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent) / "jars"
    first = CONNECTORS[format][0][0].name
    if any(own.glob(f"{first}*.jar")):
        return []
    folder = _cache() / f"spark-{spark}" / format
    if not folder.exists():
        with under_way(f"fetching the connector of Spark {spark} for {format}"):
            _fetch(format, spark, own, folder)
    return sorted(map(str, folder.glob("*.jar")))


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "eventide"


def _fetch(format: str, spark: str, own: Path, folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    there = {VERSION.sub("", jar.stem) for jar in own.glob("*.jar")}
    with tempfile.TemporaryDirectory(prefix=f"{format}-", dir=folder.parent) as name:
        for parts in CONNECTORS[format]:
            lost = _retrieved(parts, spark, own, Path(name))
            if not lost:
                break
        else:
            raise EngineError(
                f"the connector of Spark {spark} for {format} cannot be had: {lost}. Maven Central does not have it, "
                "or is not reached from here; `--package group:name:version` names another, and `--engine local` "
                "needs none"
            )
        kept = Path(name) / "kept"
        kept.mkdir()
        for jar in (Path(name) / "jars").glob("*.jar"):
            if VERSION.sub("", jar.stem) not in there:
                jar.rename(kept / jar.name)
        if not folder.exists():
            # Whole at once: whoever finds the folder finds all of it.
            kept.rename(folder)


def _retrieved(parts: Sequence[Part], spark: str, own: Path, below: Path) -> str:
    """What is missing; nothing where all parts are in the folder `jars` now."""
    shutil.rmtree(below / "jars", ignore_errors=True)
    dependencies = "".join(part.xml(spark) for part in parts)
    (below / "ivy.xml").write_text(
        '<ivy-module version="2.0"><info organisation="eventide" module="connector"/>'
        f"<dependencies>{dependencies}</dependencies></ivy-module>",
        encoding="utf-8",
    )
    ivy = next(iter(own.glob("ivy-*.jar")), None)
    java = Path(os.environ["JAVA_HOME"]) / "bin" / "java" if os.environ.get("JAVA_HOME") else "java"
    target = below / "jars" / "[artifact]-[revision].[ext]"
    command = [java, "-cp", str(ivy), "org.apache.ivy.Main", "-cache", below / "cache", "-ivy", below / "ivy.xml"]
    try:
        done = subprocess.run(
            [*map(str, command), "-retrieve", str(target), "-types", "jar", "bundle"],
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        return f"Java, which fetches it, does not start ({error.strerror})"
    if done.returncode == 0:
        return ""
    lost = dict.fromkeys(":".join(found) for found in LOST.findall(done.stdout + done.stderr))
    return f"there is no {', '.join(lost)}" if lost else "it cannot be fetched"
