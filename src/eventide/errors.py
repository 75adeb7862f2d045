"""Everything Eventide raises on purpose: one root, one class per stage.

A message names what is wrong and the way out. `EventideError` is the only class a caller has to catch.

>>> raise DeclarationError("drop ratio 3 is not between 0 and 1: write 0.03 for 3 %")
Traceback (most recent call last):
    ...
eventide.errors.DeclarationError: drop ratio 3 is not between 0 and 1: write 0.03 for 3 %
"""


class EventideError(Exception):
    """The root of every error that Eventide raises on purpose."""


class DeclarationError(EventideError, ValueError):
    """What the user declared (a bound, a ratio, a matrix, a name) cannot hold."""


class InputError(EventideError):
    """A file or stream cannot be read, or does not have the columns that were named."""


class SnapshotError(EventideError):
    """A saved state cannot be restored: another kind, another version, or damaged."""


class EngineError(EventideError):
    """The engine cannot go on: Spark did not start, a sink refused, the disk is full. What was committed is safe."""


class DataFaultError(EngineError):
    """A statement failed because of the values of a row, not because of the statement."""


class CheckpointError(EngineError):
    """A checkpoint cannot be continued from: damaged, of another query, or of another format."""
