"""How a command ends: the exit code, and what is told of an error.

Law: every error of our own root names its way out and is told in one sentence, without a traceback. The code says
whose turn it is: 2, the user's (what was given cannot be used); 3, the machine's (Spark, a disk, a sink); 1, ours.

>>> from eventide.errors import DeclarationError
>>> code_of(DeclarationError("a window of RANGE 0 holds nothing")), code_of(EngineError("the disk is full"))
(2, 3)
>>> code_of(ZeroDivisionError()), code_of(ReaderGoneError())
(1, 141)
"""

from __future__ import annotations

import errno

from eventide.errors import CheckpointError, EngineError, EventideError, LanguageError
from eventide.plan.declared.stream import masked_text

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


def told(error: BaseException) -> str | None:
    """What to say of an error on standard error; None where the user knows already.

    >>> from eventide.errors import DeclarationError
    >>> told(DeclarationError("no stream 's'"))
    "eventide: no stream 's'"
    >>> told(KeyError("x"))
    "eventide: a fault of our own: KeyError: 'x' (--debug shows more)"
    """
    if code_of(error) in (READER_GONE, INTERRUPTED, TERMINATED):
        return None
    if isinstance(error, LanguageError):
        # It begins with file:line:column, which editors look for at the start of a line.
        said = str(error)
    elif isinstance(error, EventideError):
        said = f"eventide: {error}"
    elif isinstance(error, OSError) and _is_full(error):
        said = f"eventide: what there is to say cannot be written: {error.strerror}"
    else:
        said = f"eventide: a fault of our own: {type(error).__name__}: {error} (--debug shows more)"
    return masked_text("\n".join([said, *(f"eventide: {note}" for note in getattr(error, "__notes__", ()))]))


def _is_full(error: BaseException) -> bool:
    return isinstance(error, OSError) and error.errno in NO_ROOM
