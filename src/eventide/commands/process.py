"""Run a command as a process: its standard streams, signals, errors in one sentence, and exit code.

Law: nothing that happens in a command reaches the user as a traceback, unless `--debug` asks for it; not even that the
error cannot be written, or that standard output cannot take its last words.

*Exit codes.* Every error of our own root names its way out and is written in one sentence, without a traceback. The
code says whose turn it is: 2, the user's (what was given cannot be used); 3, the machine's (Spark, a disk, a sink); 1,
ours.

>>> from eventide.errors import DeclarationError
>>> code_of(DeclarationError("a window of RANGE 0 holds nothing")), code_of(EngineError("the disk is full"))
(2, 3)
>>> code_of(ZeroDivisionError()), code_of(ReaderGoneError())
(1, 141)

*Signals.* Ctrl-C and SIGTERM end a command as long as no engine takes care of them. What was interrupted ends as
interrupted, whatever it made of that. DuckDB, for one, raises an error of its own.

>>> with signals_heard():
...     try:
...         signal.raise_signal(signal.SIGTERM)
...     except TerminatedError:
...         raise RuntimeError("Query interrupted")
Traceback (most recent call last):
    ...
eventide.commands.process.TerminatedError

*Standard streams.* Some may be closed, and some cannot say every letter. After `prepare` all three are there. What is
written to one that was closed is gone, and no file that is opened later takes its number, or what is meant for the one
would be in the other. A letter that standard output cannot say becomes a question mark; it is never an error.
"""

from __future__ import annotations

import errno
import io
import logging
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import IO, Any, NoReturn

from eventide.errors import CheckpointError, EngineError, EventideError, LanguageError
from eventide.masking import masked_text

DONE = 0
"""All went well; also when Ctrl-C or SIGTERM asked for the end and the round under way was committed."""

OUR_FAULT = 1
UNUSABLE = 2
CANNOT_GO_ON = 3
INTERRUPTED = 130
"""Ctrl-C before anything ran, or a second one."""

READER_GONE = 141
"""Nobody reads standard output any more; as a shell reports of any filter whose reader went away."""

TERMINATED = 143
"""SIGTERM before anything ran, or a second one."""

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""What a disk says that takes nothing more, also to who prints into a file."""


class ReaderGoneError(EngineError):
    """Whoever read standard output has closed it; the round has not happened and nothing is lost."""


class TerminatedError(BaseException):
    """SIGTERM came where nothing has to be finished."""


def code_of(error: BaseException) -> int:
    """The exit code for an error."""
    if isinstance(error, ReaderGoneError | BrokenPipeError) or isinstance(error.__cause__, BrokenPipeError):
        return READER_GONE
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, TerminatedError):
        return TERMINATED
    if isinstance(error, EngineError) and not isinstance(error, CheckpointError):
        # A checkpoint of another program was given by the user.
        return CANNOT_GO_ON
    if _is_full(error):
        return CANNOT_GO_ON
    return UNUSABLE if isinstance(error, EventideError) else OUR_FAULT


def message_of(error: BaseException) -> str | None:
    """What to say of an error on standard error; None where the user knows already.

    >>> from eventide.errors import DeclarationError
    >>> message_of(DeclarationError("no stream 's'"))
    "eventide: no stream 's'"
    >>> message_of(KeyError("x"))
    "eventide: a fault of our own: KeyError: 'x' (--debug shows more)"
    """
    if code_of(error) in (READER_GONE, INTERRUPTED, TERMINATED):
        return None
    if isinstance(error, LanguageError):
        # It begins with file:line:column, which editors look for at the start of a line.
        message = str(error)
    elif isinstance(error, EventideError):
        message = f"eventide: {error}"
    elif isinstance(error, OSError) and _is_full(error):
        message = f"eventide: what there is to say cannot be written: {error.strerror}"
    else:
        message = f"eventide: a fault of our own: {type(error).__name__}: {error} (--debug shows more)"
    return masked_text("\n".join([message, *(f"eventide: {note}" for note in getattr(error, "__notes__", ()))]))


def _is_full(error: BaseException) -> bool:
    return isinstance(error, OSError) and error.errno in NO_ROOM


RAISED: dict[int, type[BaseException]] = {signal.SIGINT: KeyboardInterrupt, signal.SIGTERM: TerminatedError}


@contextmanager
def signals_heard() -> Iterator[None]:
    """Inside, Ctrl-C raises KeyboardInterrupt and SIGTERM TerminatedError, where the user lets them through at all."""
    signals: list[int] = []

    def leave(number: int, frame: FrameType | None) -> None:
        signals.append(number)
        raise RAISED[number]

    before = {number: signal.getsignal(number) for number in RAISED}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, leave)
    try:
        yield
    except Exception as error:
        if signals:
            raise RAISED[signals[-1]] from error
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


HIGHEST = 2


def prepare() -> None:
    """Put something in the place of what is closed."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= HIGHEST:
        os.set_inheritable(number, True)
    os.close(number)
    sys.stdin = sys.stdin or open(os.devnull, encoding="utf-8")  # noqa: SIM115 - open until the end
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def was_closed(stream: IO[Any]) -> bool:
    """Whether `prepare` had to put something in its place; `> /dev/null` is a choice of the user, and open."""
    return getattr(stream, "name", None) == os.devnull


def give_up(stream: IO[Any]) -> None:
    """Forget what a stream cannot write any more: the interpreter would try again as it ends, and complain."""
    try:
        stream.flush()
    except (OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def run_to_its_end(command: Callable[[], object], debug: bool) -> NoReturn:
    """Run a command, and leave with its code."""
    prepare()
    if not logging.getLogger().handlers:
        # A library that logs what nobody asked for would otherwise turn on the screen for all of them.
        logging.getLogger().addHandler(logging.NullHandler())
    try:
        with signals_heard():
            try:
                command()
            finally:
                sys.stdout.flush()
    except SystemExit as leaving:
        # The library of the command line has a code of its own for this.
        code = READER_GONE if isinstance(leaving.__context__, BrokenPipeError) else leaving.code
    except BaseException as error:
        code, message = code_of(error), message_of(error)
        with suppress(OSError):
            if debug:
                traceback.print_exc()
            elif message is not None:
                print(message, file=sys.stderr)
    else:
        code = None
    give_up(sys.stdout)
    give_up(sys.stderr)
    raise SystemExit(code)
