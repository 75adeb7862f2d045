"""The engine that a run asks for; folders that last as long as a command; whose results a directory or table holds.

Laws. *Start*: it is Spark, with its start shown and its log named, or the local one. What was made here is gone in the
end, however that comes: a session that was started, a temporary checkpoint, and Spark's log, unless something failed;
then the log stays, and the error names it. *Ownership*: an engine that starts anew forgets all earlier results of its
queries. Where they stay it does so only if they are its own, by an id that checkpoint and place both keep, or where the
user said `--replace` (in Python `replace=True`): results of another checkpoint, or of one that was lost, are
refused.

>>> with temporary_folder("eventide-example-") as folder:
...     folder.is_dir()
True
>>> folder.is_dir()
False
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from eventide.engine.local.engine import LocalEngine
from eventide.engine.running import Running
from eventide.engine.scheduling.queue_pace import QueuePace
from eventide.engine.scheduling.trace import Trace
from eventide.errors import CheckpointError, DeclarationError, EngineError
from eventide.eventtime.scheduling.options import Scheduling
from eventide.language.script import Script
from eventide.launch.connectors import CONNECTORS, formats_of, missing_settings
from eventide.launch.logs import under_way
from eventide.launch.settings import RunSettings
from eventide.launch.user_functions import Failures, local_backend, register_on_spark, registered, with_comparisons
from eventide.plan.declared.evolution import Consent
from eventide.plan.declared.program import Program
from eventide.sinks.sink import OwnedSink, Owner, Sink
from eventide.sources.spark_errors import gone, is_gone
from eventide.storage.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_there: set[Path] = set()


@contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """A folder for the time inside; `keep` lets it stay."""
    try:
        folder = Path(tempfile.mkdtemp(prefix=prefix))
    except OSError as error:
        raise EngineError(
            f"there is no place for temporary files: {error.strerror or error}. Set TMPDIR to a folder that you can "
            "write to"
        ) from error
    _there.add(folder)
    try:
        yield folder
    finally:
        if folder in _there:
            _remove(folder)


def keep(folder: Path) -> None:
    """Let a folder stay: somebody may want to look into it."""
    _there.discard(folder)


def remove_all() -> None:
    """Remove all temporary folders, before the process ends at once."""
    for folder in list(_there):
        _remove(folder)


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    _there.discard(folder)


TICK = 1.0
DEFAULT_MASTER = "local[*]"


@dataclass(frozen=True)
class Where:
    """Where a program runs: the engine, and for Spark its master, settings and packages."""

    engine: str
    master: str = DEFAULT_MASTER
    conf: Mapping[str, str] = field(default_factory=dict)
    packages: tuple[str, ...] = ()


class EngineOptions(TypedDict):
    """The options that both engines take."""

    tick: float
    scheduling: Scheduling
    trace: Trace | None
    flush_rows: int | None
    pace: QueuePace
    consent: Consent | None


def reads_standard_input(program: Program) -> bool:
    """Whether some stream of a program is a pipe.

    >>> reads_standard_input(Program(()))
    False
    """
    return any(stream.input is not None and stream.input.format.lower() == "stdin" for stream in program.streams)


def chosen_engine(asked: str | None, program: Program) -> str:
    """The engine that was asked for; by default Spark, or the local engine for standard input.

    >>> chosen_engine(None, Program(()))
    'spark'
    """
    piped = reads_standard_input(program)
    if piped and asked == "spark":
        raise DeclarationError(
            "a stream reads standard input, which only the local engine can: leave `spark` out, or read a file"
        )
    return asked or ("local" if piped else "spark")


@contextmanager
def checkpoint_at(given: str | None) -> Iterator[str | Storage]:
    """The checkpoint that was given, or a temporary one."""
    if given is not None:
        yield given
        return
    with temporary_folder("eventide-checkpoint-") as folder:
        # It need not survive the machine: no disk is waited for.
        yield Storage.at(folder, sync=False)


@contextmanager
def engine_for(
    script: Script,
    where: Where,
    checkpoint: str | Storage,
    sinks: Mapping[str, Sink],
    settings: RunSettings,
    trace: Trace | None = None,
    failures: Failures | None = None,
    consent: Consent | None = None,
) -> Iterator[Running]:
    """An engine for the program of a script that has not started yet; it is stopped in the end.

    `failures` collects what functions of the user raise, on the local engine; `consent` says what a changed program may
    do to the checkpoint.
    """
    program = with_comparisons(script.program, script.functions)
    functions = registered(script.functions, script.program)
    options: EngineOptions = {
        "tick": settings.tick or TICK,
        "scheduling": settings.scheduling,
        "trace": trace,
        "flush_rows": settings.flush_rows,
        "pace": settings.pace,
        "consent": consent,
    }
    if where.engine == "local":
        backend = local_backend(functions, run=True, failures=failures)
        seconds = settings.every or 0.0
        with LocalEngine(program, checkpoint, sinks, every=seconds, backend=backend, **options) as engine:
            yield engine
        return
    with _spark(_with_connectors(where, formats_of(program, script.outputs))) as spark:
        from eventide.engine.operators.placement import DRIVER_MEMORY
        from eventide.engine.spark.engine import SparkEngine

        register_on_spark(spark, functions)
        every = None if settings.every is None else f"{settings.every} seconds"
        memory = DRIVER_MEMORY if settings.driver_memory is None else settings.driver_memory
        with SparkEngine(spark, program, checkpoint, sinks, every=every, driver_memory=memory, **options) as engine:
            yield engine


def _with_connectors(where: Where, formats: Set[str]) -> Where:
    """The same place, with the connectors that a program needs and the user has not named."""
    if not formats & CONNECTORS.keys() or find_spec("pyspark") is None:
        return where
    found = missing_settings(formats, where.conf, where.packages, version("pyspark"))
    return replace(where, conf={**where.conf, **found})


@contextmanager
def _spark(where: Where) -> Iterator[SparkSession]:
    """A session of Spark, ended with the block; where the block fails, the error names Spark's log."""
    if find_spec("pyspark") is None:
        raise EngineError(
            "Spark is not installed: `pip install 'eventide[spark]'` adds it (it needs Java 17, too), and "
            "`--engine local` runs without it"
        )
    with temporary_folder("eventide-spark-") as logs:
        log_file = logs / "spark.log"
        try:
            spark = _started(where, log_file)
            try:
                yield spark
            finally:
                with suppress(Exception):
                    # It may have died, which was reported already.
                    spark.stop()
        except Exception as failure:
            error = EngineError(gone()) if is_gone(failure) else failure
            if log_file.exists():
                keep(logs)
                if str(log_file) not in str(error):
                    error.add_note(f"Spark's log: {log_file}")
            if error is failure:
                raise
            raise error from failure


def _started(where: Where, log_file: Path) -> SparkSession:
    from eventide.launch.spark_session import local_session

    on_interrupt = signal.getsignal(signal.SIGINT)
    try:
        with under_way(f"starting Spark on {where.master}"):
            return local_session(where.master, where.conf, where.packages, log_file)
    except EngineError as error:
        raise EngineError(f"{error}. `--engine local` runs without Spark and Java") from error
    finally:
        # PySpark's own way with Ctrl-C asks the JVM something in the middle of another question.
        signal.signal(signal.SIGINT, on_interrupt)


NAME = "owner.json"
"""The file of a checkpoint that has its id."""


@dataclass(frozen=True)
class CheckpointOptions:
    """How a user names a checkpoint, and says that results are to be replaced."""

    checkpoint: str
    replace: str


ON_THE_COMMAND_LINE = CheckpointOptions("--checkpoint {}", "--replace")
IN_PYTHON = CheckpointOptions("checkpoint={!r}", "replace=True")


def claim_outputs(
    sinks: Mapping[str, Sink],
    checkpoint: str | Storage,
    given: str | None,
    replace: bool,
    options: CheckpointOptions = ON_THE_COMMAND_LINE,
) -> None:
    """Make the checkpoint the owner of the places that its queries write to; refuse those of another."""
    owned = {query: sink for query, sink in sinks.items() if isinstance(sink, OwnedSink)}
    if not owned:
        return
    storage = Storage.at(checkpoint)
    fresh = not storage.list("", hidden=True)
    id = _id_in(storage, options) if storage.exists(NAME) else uuid.uuid4().hex
    owner = Owner(id, None if given is None else os.path.abspath(given))
    for query, sink in owned.items():
        other = sink.owner_of(query)
        strange = other is not None and other.id != id
        # Without a mark they are older than marks are: whoever goes on from a checkpoint wrote them.
        unknown = other is None and fresh and sink.holds(query)
        if (strange or unknown) and not replace:
            raise DeclarationError(_refusal(query, sink, other, options))
    if not storage.exists(NAME):
        storage.write(NAME, json.dumps({"id": id}).encode())
    for query, sink in owned.items():
        sink.claim(query, owner)


def _id_in(storage: Storage, options: CheckpointOptions) -> str:
    try:
        return str(json.loads(storage.read(NAME))["id"])
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(
            f"{storage.where}: {NAME} is damaged: remove it, and say {options.replace} once; results of committed "
            "rounds stay"
        ) from error


def _refusal(query: str, sink: OwnedSink, other: Owner | None, options: CheckpointOptions) -> str:
    theirs = None if other is None else other.checkpoint
    back = f"go on from their own ({options.checkpoint.format(theirs)})" if theirs else "keep them: name another place"
    return (
        f"{sink.where} has results of query {query!r} from another checkpoint, and this run would delete them: "
        f"{back}, or say {options.replace} to delete them"
    )
