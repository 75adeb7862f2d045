"""The text of a script, and the settings of a run.

*Settings.* They come from `SET` in the script; what is given on the command line wins.

>>> settings = RunSettings.of({"engine": "local", "tick": "0.5", "spark.executor.memory": "2g"})
>>> settings.engine, settings.tick, settings.spark
('local', 0.5, {'spark.executor.memory': '2g'})
>>> RunSettings.of({"checkpiont": "state"})
Traceback (most recent call last):
    ...
eventide.errors.DeclarationError: there is no setting 'checkpiont'; did you mean 'checkpoint'? There are checkpoint, \
driver.memory, engine, every, expensive.rows, expensive.seconds, flush.rows, heartbeats, master, tick, timestamps, and \
those of Spark, which begin with spark.

*Text.* It is read from a file, or from standard input where the name is `-`.

>>> import tempfile, pathlib
>>> path = pathlib.Path(tempfile.mkdtemp(), "q.sql")
>>> _ = path.write_text("SHOW STREAMS;")
>>> text_of(str(path))
'SHOW STREAMS;'
>>> text_of("no-such.sql")
Traceback (most recent call last):
    ...
eventide.errors.InputError: no-such.sql: no such file
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

from eventide.engine.scheduling.queue_pace import QueuePace
from eventide.errors import DeclarationError, InputError
from eventide.eventtime.scheduling.options import Scheduling
from eventide.language.script import Script, read_script, scheduling_of
from eventide.profile.amounts import memory_bytes

KNOWN = (
    "checkpoint", "driver.memory", "engine", "every", "expensive.rows", "expensive.seconds", "flush.rows", "heartbeats",
    "master", "tick", "timestamps",
)  # fmt: skip
ENGINES = ("spark", "local")


@dataclass(frozen=True)
class RunSettings:
    """Where a script runs; how often rounds begin (`every`, in seconds) and the clock is asked (`tick`).

    `driver_memory`: so many bytes of state stay with the driver, on Spark. `flush_rows`: about so many results of a
    query are emitted in one round. `scheduling`: when silent streams are asked (`timestamps`), and by which
    `heartbeats` operators go. `pace`: how many rows go through the queue of an expensive function in a round
    (`expensive.rows`), or for how long (`expensive.seconds`).
    """

    engine: str | None = None
    master: str | None = None
    checkpoint: str | None = None
    every: float | None = None
    tick: float | None = None
    driver_memory: int | None = None
    scheduling: Scheduling = field(default_factory=Scheduling)
    flush_rows: int | None = None
    pace: QueuePace = field(default_factory=QueuePace)
    spark: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Mapping[str, str]) -> RunSettings:
        """Read settings; refuse names that nobody knows."""
        spark = {key: value for key, value in given.items() if key.lower().startswith("spark.")}
        own = {key.lower(): value for key, value in given.items() if key not in spark}
        for key in own:
            if key not in KNOWN:
                close = get_close_matches(key, KNOWN, n=1)
                hint = f"did you mean {close[0]!r}? " if close else ""
                raise DeclarationError(
                    f"there is no setting {key!r}; {hint}There are {', '.join(KNOWN)}, and those of Spark, which begin "
                    "with spark."
                )
        return cls(
            engine=checked_engine(own.get("engine")),
            master=own.get("master"),
            checkpoint=own.get("checkpoint"),
            every=_seconds("every", own.get("every")),
            tick=_seconds("tick", own.get("tick")),
            driver_memory=memory_bytes(own["driver.memory"]) if "driver.memory" in own else None,
            scheduling=scheduling_of(own),
            flush_rows=_above_zero("flush.rows", own.get("flush.rows")),
            pace=_pace(own.get("expensive.seconds"), own.get("expensive.rows")),
            spark=spark,
        )


def _pace(seconds: str | None, rows: str | None) -> QueuePace:
    if seconds is not None and rows is not None:
        raise DeclarationError("SET expensive.seconds and expensive.rows say the same in two ways: give one of them")
    given = _seconds("expensive.seconds", seconds)
    return QueuePace(rows=_above_zero("expensive.rows", rows)) if given is None else QueuePace(given)


def checked_engine(name: str | None) -> str | None:
    """The name of an engine, in small letters."""
    if name is not None and name.lower() not in ENGINES:
        raise DeclarationError(f"there is no engine {name!r}: choose {' or '.join(ENGINES)}")
    return None if name is None else name.lower()


def _seconds(key: str, text: str | None) -> float | None:
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf") or (key in ("tick", "expensive.seconds") and value == 0):
        raise DeclarationError(f"SET {key} = {text}: give a number of seconds, such as 0.5")
    return value


def _whole(key: str, text: str | None) -> int | None:
    if text is not None and not text.isdecimal():
        raise DeclarationError(f"SET {key} = {text}: give a whole number")
    return None if text is None else int(text)


def _above_zero(key: str, text: str | None) -> int | None:
    if text is not None and _whole(key, text) == 0:
        raise DeclarationError(f"SET {key} = {text}: nothing would ever be emitted; give 1 or more")
    return _whole(key, text)


STANDARD_INPUT = "-"


def text_of(name: str) -> str:
    """The whole text of a script, read as UTF-8."""
    try:
        given = sys.stdin.buffer.read() if name == STANDARD_INPUT else Path(name).read_bytes()
    except FileNotFoundError:
        raise InputError(f"{name}: no such file{_near(name)}") from None
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror}") from error
    try:
        return given.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = given[: error.start].count(b"\n") + 1
        raise InputError(f"{shown_as(name)}:{line}: this is not UTF-8: save the script in that encoding") from error


def script_of(name: str) -> Script:
    """The script in a file, read and checked."""
    return read_script(text_of(name), shown_as(name))


def shown_as(name: str) -> str:
    """The name of a script in messages."""
    return "standard input" if name == STANDARD_INPUT else name


def _near(name: str) -> str:
    path = Path(name)
    there = [other.name for other in path.parent.glob("*.sql")] if path.parent.is_dir() else []
    close = get_close_matches(path.name, there, n=1)
    return f"; did you mean {path.parent / close[0]}?" if close else ""
