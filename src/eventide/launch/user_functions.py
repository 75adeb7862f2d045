"""Functions of the user: in queries, and as comparisons of early answers with final ones.

*In queries.* `CREATE FUNCTION name FROM 'file.py'` makes a function known to the engine that runs the script. The file
is read, not run, to find what a function takes and gives; only `run` runs it. What it gives is said by RETURNS, or by
its annotation. The local engine must know what it takes too, from annotations; Spark need not.

>>> import tempfile, pathlib
>>> path = pathlib.Path(tempfile.mkdtemp(), "mine.py")
>>> _ = path.write_text("def double(n: int) -> float: return 2.0 * n")
>>> signature_of(Function("double", str(path)))
Signature(name='double', takes=('BIGINT',), gives='DOUBLE')
>>> loaded(Function("double", str(path)))(4)
8.0

*Comparisons.* `COMPARE value WITH function` finds a function of the script and gives it to the queries that name it.
Such a function takes an early and a final value, none of them NULL, and gives an error, 0 where the early one is as
good as the final. It runs on the driver, over the few early rows that meet their final ones; it need not be known to
the engine, so nothing has to be said of what it takes.

>>> import pathlib, tempfile
>>> import pyarrow as pa
>>> from eventide.language.script import read_script
>>> path = pathlib.Path(tempfile.mkdtemp(), "mine.py")
>>> _ = path.write_text("def off_by(early, final) -> float: return abs(early - final) / 100")
>>> script = read_script(f'''CREATE STREAM s (t BIGINT, v INT); CREATE FUNCTION off_by FROM '{path}';
...     SELECT sum(v) AS total FROM s [RANGE 10] PROD AT 50 % COMPARE total WITH off_by''')
>>> [(value, compare)] = with_comparisons(script.program, script.functions).queries[0].prods.compare
>>> value, compare(pa.array([110]), pa.array([135]))
('total', [0.25])
"""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, time, timedelta
from decimal import Decimal
from difflib import get_close_matches
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np
from duckdb.func import FunctionNullHandling

from eventide.duckdb.executor import DuckDBExecutor
from eventide.engine.local.backend import LocalBackend
from eventide.errors import DeclarationError, InputError
from eventide.language.script import Function
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Compare, Prods
from eventide.results.error import PairwiseComparison
from eventide.sources.arrow_types import duckdb_type
from eventide.storage.storage import with_place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TYPES = {
    "int": "BIGINT",
    "float": "DOUBLE",
    "str": "STRING",
    "bool": "BOOLEAN",
    "datetime": "TIMESTAMP",
    "date": "DATE",
}


VALUES = (bool, int, float, str, bytes, bytearray, Decimal, date, time, timedelta, UUID, np.generic, np.ndarray)
"""What DuckDB makes a value of; a `datetime` is a `date`, too."""


@dataclass(frozen=True)
class Signature:
    """The Spark types of what a function takes, None where that is not said, and of what it gives."""

    name: str
    takes: tuple[str, ...] | None
    gives: str


def signature_of(function: Function) -> Signature:
    """Find the signature of a function in its file, without running the file."""
    found = _definition(function)
    arguments = [*found.args.posonlyargs, *found.args.args]
    kinds = [_type(argument.annotation) for argument in arguments]
    takes = None if found.args.vararg or None in kinds else tuple(kind for kind in kinds if kind is not None)
    gives = function.returns or _type(found.returns)
    if gives is None:
        raise DeclarationError(
            f"what does the function {function.name!r} give? Say it in the script (RETURNS type), or in "
            f"{function.file}: def {found.name}(...) -> str"
        )
    return Signature(function.name, takes, gives)


def loaded(function: Function) -> Callable[..., Any]:
    """Load the function; this runs its file."""
    name = _definition(function).name
    spec = importlib.util.spec_from_file_location(f"eventide_function_{name}", function.file)
    assert spec is not None
    assert spec.loader is not None
    # Not among the modules of this process: so Spark sends the function itself to its workers, not its name.
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except SystemExit as error:
        raise InputError(
            f"{function.file} ends the program when it is loaded (exit code {error.code}): let it define its functions "
            "only, and put what a script does behind `if __name__ == '__main__':`"
        ) from error
    except Exception as error:
        raise InputError(f"{function.file} cannot be run: {type(error).__name__}: {error}") from error
    call: Callable[..., Any] = getattr(module, name)
    return call


@dataclass
class Failures:
    """What functions of the user raised in this process, each for the first time.

    >>> failures = Failures()
    >>> failures.watched("half", lambda n: 1 / n)(0)
    Traceback (most recent call last):
        ...
    ZeroDivisionError: division by zero
    >>> failures.sentences()
    ['the function half failed, first with ZeroDivisionError: division by zero']
    """

    first: dict[str, str] = field(default_factory=dict)

    def watched(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a function so that its first error is noted: an engine keeps errors to itself."""

        @wraps(function)
        def noting(*given: Any) -> Any:
            try:
                found = function(*given)
                if not is_value(found):
                    raise TypeError(f"it gave {type(found).__name__}, which is no value of a column")
                return found
            except (Exception, SystemExit) as error:
                self.first.setdefault(name, f"{type(error).__name__}: {error}")
                raise

        return noting

    def sentences(self) -> list[str]:
        """What functions of the user raised, in sentences."""
        return [f"the function {name} failed, first with {raised}" for name, raised in self.first.items()]


def is_value(found: Any) -> bool:
    """Whether an engine can make something of what a function gave: a plain value, or lists and mappings of such.

    >>> is_value([1, None, {"a": 2.5}]), is_value(n for n in "ab"), is_value([object()])
    (True, False, False)
    """
    if isinstance(found, list | tuple):
        return all(map(is_value, found))
    if isinstance(found, dict):
        return all(map(is_value, found)) and all(map(is_value, found.values()))
    return found is None or isinstance(found, VALUES)


def register_on_spark(spark: SparkSession, functions: Sequence[Function]) -> None:
    """Make functions known to a session."""
    for function in functions:
        spark.udf.register(function.name, loaded(function), signature_of(function).gives)


def local_backend(functions: Sequence[Function], run: bool, failures: Failures | None = None) -> LocalBackend:
    """A backend that knows functions; with `run` False only their types, for checking. `failures` collects errors."""
    duckdb_executor, watch = DuckDBExecutor(), failures or Failures()
    for function in functions:
        signature = signature_of(function)
        if signature.takes is None:
            if run:
                raise DeclarationError(
                    f"the local engine must know what {function.name!r} takes: write in {function.file} "
                    "def f(word: str, n: int), for every argument; or use the Spark engine"
                )
            continue
        duckdb_executor.connection.create_function(
            function.name.lower(),
            watch.watched(function.name, loaded(function)) if run else _nothing(len(signature.takes)),
            [duckdb_type(kind) for kind in signature.takes],
            duckdb_type(signature.gives),
            null_handling=FunctionNullHandling.SPECIAL,
        )
    return LocalBackend(duckdb_executor)


def _definition(function: Function) -> ast.FunctionDef:
    try:
        text = Path(function.file).read_text(encoding="utf-8")
        tree = ast.parse(text, function.file)
    except OSError as error:
        place = with_place(function.file)
        raise InputError(f"the function {function.name!r} is not there: {place}: {error.strerror}") from error
    except (SyntaxError, ValueError) as error:
        raise InputError(f"{function.file} is no Python: {error}") from error
    there = {node.name.lower(): node for node in tree.body if isinstance(node, ast.FunctionDef)}
    if function.name.lower() in there:
        return there[function.name.lower()]
    close = get_close_matches(function.name.lower(), there, n=1)
    hint = f"did you mean {there[close[0]].name!r}?" if close else f"it has {', '.join(there) or 'none'}"
    raise DeclarationError(f"{function.file} has no function {function.name!r}; {hint}")


def _type(annotation: ast.expr | None) -> str | None:
    """The Spark type that an annotation names; `int | None` and `datetime.datetime` are known too."""
    if isinstance(annotation, ast.BinOp):
        return _type(annotation.left)
    if isinstance(annotation, ast.Attribute):
        return TYPES.get(annotation.attr)
    return TYPES.get(annotation.id) if isinstance(annotation, ast.Name) else None


def _nothing(arguments: int) -> Callable[..., Any]:
    """A function of so many arguments: DuckDB counts them."""
    found: Callable[..., Any] = eval(f"lambda {', '.join(f'a{i}' for i in range(arguments))}: None")
    return found


def with_comparisons(program: Program, functions: Sequence[Function]) -> Program:
    """The program with the functions in the places of their names; this runs their files."""
    known = {function.name.lower(): function for function in functions}

    def found(compare: Compare) -> Compare:
        return PairwiseComparison(loaded(known[compare.lower()]), compare) if isinstance(compare, str) else compare

    def compared(prods: Prods) -> Prods:
        return replace(prods, compare=tuple((value, found(compare)) for value, compare in prods.compare))

    queries = tuple(
        query if query.prods is None or not query.prods.compare else replace(query, prods=compared(query.prods))
        for query in program.queries
    )
    return replace(program, queries=queries)


def registered(functions: Sequence[Function], program: Program) -> tuple[Function, ...]:
    """The functions that an engine gets: all but those that are there to compare and say not what they take."""
    compared = [how for query in program.queries if query.prods is not None for _, how in query.prods.compare]
    names = {how.lower() for how in compared if isinstance(how, str)}
    return tuple(one for one in functions if one.name.lower() not in names or signature_of(one).takes is not None)
