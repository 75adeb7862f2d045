"""Everything Eventide raises on purpose: one root, one class per stage.

A message names what is wrong and the way out. `EventideError` is the only class a caller has to catch.

>>> raise DeclarationError("drop ratio 3 is not between 0 and 1: write 0.03 for 3 %")
Traceback (most recent call last):
    ...
eventide.errors.DeclarationError: drop ratio 3 is not between 0 and 1: write 0.03 for 3 %
"""

from __future__ import annotations

from eventide.masking import masked_text


class EventideError(Exception):
    """The root of every error that Eventide raises on purpose. Its message shows no secret.

    >>> str(EngineError("no server at postgresql://eve:hunter2@db"))
    'no server at postgresql://eve:***@db'
    """

    def __str__(self) -> str:
        return masked_text(super().__str__())


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


class GrammarError(EngineError):
    """A result came that may not come any more: a second final one, or an early one after it. This is a fault."""


class CheckpointError(EngineError):
    """A checkpoint cannot be continued from: damaged, of another query, or of another format."""


class LanguageError(DeclarationError):
    """A text in Eventide's SQL cannot be read, or does not make sense; it says where, and shows the place.

    >>> print(LanguageError("there is no stream 'trafic'", "x.sql", 2, 6, "FROM trafic", "did you mean 'traffic'?"))
    x.sql:2:6: there is no stream 'trafic'
        FROM trafic
             ^
      did you mean 'traffic'?
    """

    def __init__(
        self,
        message: str,
        file: str | None = None,
        line: int = 1,
        column: int = 1,
        text: str = "",
        hint: str | None = None,
    ) -> None:
        self.message, self.file, self.line, self.column, self.text, self.hint = message, file, line, column, text, hint
        super().__init__(message)

    def __str__(self) -> str:
        # A tab before the place stays a tab, so that the marker stands below it on every screen.
        before = "".join("\t" if c == "\t" else " " for c in self.text[: self.column - 1])
        place, said = f"{self.file or '<text>'}:{self.line}:{self.column}", masked_text(self.message)
        shown = f"{place}: {said}\n    {self.text}\n    {before}^"
        return f"{shown}\n  {self.hint}" if self.hint else shown

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.message, self.file, self.line, self.column, self.text, self.hint)


class LostRowsWarning(UserWarning):
    """Rows came too late, or were rejected, while `.run()` collected results from Python."""


def first_line(error: BaseException) -> str:
    """What it says, without its stack; what a function of the user raised stands in the last line.

    >>> first_line(Exception("a worker failed:\\nTraceback\\n  in f\\nValueError: no number"))
    'a worker failed: ValueError: no number'
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return f"{lines[0]} {lines[-1]}" if lines[0].endswith(":") and len(lines) > 1 else lines[0]
