"""COMPARE value WITH function: the functions of a script, found and given to the queries that name them.

Law: such a function takes an early and a final value, none of them NULL, and gives an error, 0 where the early one is
as good as the final. It runs on the driver, over the few early rows that meet their final ones; it need not be known to
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

from collections.abc import Sequence
from dataclasses import replace

from eventide.commands.functions import loaded, signature_of
from eventide.language.script import Function
from eventide.plan.declared.early import Compare, Prods
from eventide.plan.declared.program import Program
from eventide.results.comparison import InPairs


def with_comparisons(program: Program, functions: Sequence[Function]) -> Program:
    """The program with the functions in the places of their names; this runs their files."""
    known = {function.name.lower(): function for function in functions}

    def found(compare: Compare) -> Compare:
        return InPairs(loaded(known[compare.lower()]), compare) if isinstance(compare, str) else compare

    def compared(prods: Prods) -> Prods:
        return replace(prods, compare=tuple((value, found(compare)) for value, compare in prods.compare))

    queries = tuple(
        query if query.prods is None or not query.prods.compare else replace(query, prods=compared(query.prods))
        for query in program.queries
    )
    return replace(program, queries=queries)


def registered(functions: Sequence[Function], program: Program) -> tuple[Function, ...]:
    """The functions that an engine is told of: all but those that are there to compare and say not what they take."""
    compared = [how for query in program.queries if query.prods is not None for _, how in query.prods.compare]
    names = {how.lower() for how in compared if isinstance(how, str)}
    return tuple(one for one in functions if one.name.lower() not in names or signature_of(one).takes is not None)
