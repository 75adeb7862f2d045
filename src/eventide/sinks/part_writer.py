"""Parts of results, each written into a file of a folder by one of Spark's tasks.

Law: when `write` has returned, every part is there as a whole. What the outside refuses to a task is told here, in the
same words as if the driver had written. A folder that tasks do not see, since it is on a disk of the driver's machine,
is a `NotInTasksError`, and so is a job that fails: then the driver can write instead.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from eventide.errors import EngineError
from eventide.results.results import Parts
from eventide.sinks.folder import Folder
from eventide.sinks.result_file import ResultFile


class NotInTasksError(EngineError):
    """Spark's tasks cannot write these results, and may never (`is_lasting`)."""

    def __init__(self, message: str, is_lasting: bool = False) -> None:
        super().__init__(message, is_lasting)
        self.is_lasting = is_lasting

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True)
class PartWriter:
    """What a task is given: the folder to write into, the format, the columns, and what the rows are in words."""

    folder: Folder
    format: str
    schema: pa.Schema
    what: str

    def write(self, parts: Parts) -> None:
        """Have all parts written."""
        try:
            answers = parts.map(self)
        except EngineError as error:
            raise NotInTasksError(str(error)) from error
        for answer in answers:
            if isinstance(answer, EngineError):
                raise answer
        if {answer for answer in answers if isinstance(answer, str)} - set(self.folder.parts("")):
            raise NotInTasksError(f"Spark's tasks have another disk at {self.folder.where}", is_lasting=True)

    def __call__(self, number: int, batches: Iterator[pa.RecordBatch]) -> str | EngineError:
        """Write a part, in a task; its name, or what was refused."""
        if not self.folder.exists():
            return NotInTasksError(f"Spark's tasks do not see {self.folder.where}", is_lasting=True)
        name = f"part-{number:05d}.{self.format}"
        try:
            with self.folder.writing(name, new=True) as file:
                _result_file(self.format, self.schema).write(file, self._read(batches), self.what)
        except EngineError as error:
            return error
        return name

    def _read(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows; what fails here is not the fault of the folder."""
        try:
            yield from batches
        except (OSError, pa.ArrowException) as error:
            raise EngineError(f"cannot read {self.what}: {error}") from error


def can_be_given(folder: Folder) -> bool:
    """Whether another process can be told of a folder: Arrow's own file systems can be pickled.

    >>> from pyarrow import fs
    >>> from eventide.sinks.folder import folder_at
    >>> can_be_given(folder_at("out")), can_be_given(folder_at("out", fs._MockFileSystem()))
    (True, False)
    """
    try:
        pickle.dumps(folder)
    except (TypeError, AttributeError, NotImplementedError, pickle.PicklingError, pa.ArrowException):
        return False
    return True


@lru_cache(maxsize=8)
def _result_file(format: str, schema: pa.Schema) -> ResultFile:
    """One for each worker process, which Spark uses again and again: to plan the lines takes longer than some parts."""
    return ResultFile(format, schema)
