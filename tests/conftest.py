"""Hypothesis, Spark and the command for the whole suite.

No deadline: how long an example takes on a busy machine proves nothing. The same random examples every time, so that a
change is not blamed for what another one did, and a third of those that a test asks for; `--all` tries all of them,
`--hypothesis-profile=search` as many new ones. One Spark session for the whole run, made when the first test asks for
it: a JVM takes seconds to start, and two would share the cores that one can use. What is marked `slow` runs with
`--all`, which is `make test-all`.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from hypothesis import is_hypothesis_test, settings

from scripts.spark_archive import java_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from scripts.kafka_server import KafkaServer
    from scripts.postgres_server import PostgresServer
    from tests.commands.processes import Here

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell that runs the tests in the background has Ctrl-C ignored, also by all programs that they start.
    signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ.setdefault("JAVA_TOOL_OPTIONS", java_options(Path(sys.prefix) / "spark.jsa"))
os.environ["EVENTIDE_TESTS_PYTHON"] = sys.executable
os.environ["PYSPARK_PYTHON"] = str(Path(__file__).parent / "workers" / "python")

Server = TypeVar("Server")

settings.register_profile("search", deadline=None, print_blob=True)
settings.register_profile("eventide", settings.get_profile("search"), derandomize=True)
settings.load_profile("eventide")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", "--all-places", action="store_true", help="run what is marked slow as well")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """Give all tests of the Spark session to one process."""
    from tests.both_ends import BothEnds

    return BothEnds(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is slow, unless it is asked for; those of Spark come first."""
    if not config.getoption("--all"):
        slow = [item for item in items if item.get_closest_marker("slow")]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if not item.get_closest_marker("slow")]
        if settings().derandomize:
            shorten({item.function for item in items if isinstance(item, pytest.Function)})
    items.sort(key=lambda item: item.get_closest_marker("spark") is None)


def shorten(tests: Iterable[Callable[..., object]]) -> None:
    """Let each of the tests of Hypothesis try a third of its examples, but not less than a few."""
    for test in filter(is_hypothesis_test, tests):
        asked: settings = test._hypothesis_internal_use_settings  # type: ignore[attr-defined]
        fewer = max(asked.max_examples // 3, min(asked.max_examples, 2))
        test._hypothesis_internal_use_settings = settings(asked, max_examples=fewer)  # type: ignore[attr-defined]


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[SparkSession]:
    """A real Spark on this machine, in UTC, with the settings of the engine; with `--all` also connectors."""
    from eventide.launch.spark_session import local_session

    connectors = connector_settings() if pytestconfig.getoption("--all") else {}
    session = local_session("local[2]", connectors, log_file=tmp_path_factory.mktemp("spark") / "spark.log")
    yield session
    session.stop()


def connector_settings() -> dict[str, str]:
    """What gives Spark its connectors; nothing where they cannot be fetched, for tests to be skipped."""
    from pyspark import __version__

    from eventide.errors import EngineError
    from eventide.launch.connectors import missing_settings

    try:
        return missing_settings({"kafka", "postgresql"}, {}, (), __version__)
    except EngineError:
        return {}


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A real PostgreSQL, started by the first test of a process that asks for it."""
    from scripts.postgres_server import postgres

    yield from started(postgres)


@pytest.fixture(scope="session")
def kafka_server() -> Iterator[KafkaServer]:
    """A real Kafka broker, started by the first test of a process that asks for it."""
    from scripts.kafka_server import kafka

    yield from started(kafka)


def started(server: Callable[[], AbstractContextManager[Server]]) -> Iterator[Server]:
    """The server while tests use it; those that need it are skipped, with the reason, where there is none."""
    from scripts.servers import UnavailableError

    with ExitStack() as stack:
        try:
            running = stack.enter_context(server())
        except UnavailableError as missing:
            pytest.skip(str(missing))
        yield running


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Here:
    """Runs a command of `eventide` in this process, in the test's own folder: a start costs a second."""
    from eventide.cli import main
    from tests.commands.processes import Ran

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str) -> Ran:
        monkeypatch.setattr(sys, "argv", ["eventide", *arguments])
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        sys.stdout.flush()
        printed = capfd.readouterr()
        code = ended.value.code
        return Ran(code if isinstance(code, int) else 0, printed.out, printed.err)

    return run
