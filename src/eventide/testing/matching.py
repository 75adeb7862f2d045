"""Rows that were found against rows that were expected.

Law: every expected row is paired with a found row that has all of its named columns with the same values, and every
found row is paired with an expected one; the order of either does not matter, unless it is asked for. The column
`_reason` is a regular expression. So a transcript names only what it is about, and nothing else may happen.

>>> found = pa.table({"k": ["a", "b"], "n": [1, 2]})
>>> difference([{"n": 2}, {"k": "a"}], [found])
''
>>> print(difference([{"k": "a", "n": 3}], [found]))
missing {'k': 'a', 'n': 3}
not expected {'k': 'a', 'n': 1}
not expected {'k': 'b', 'n': 2}
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from eventide.testing.transcript_values import same


def difference(expected: Sequence[Mapping[str, Any]], found: Sequence[pa.Table], in_order: bool = False) -> str:
    """What is missing and what is too much, a line each; empty where all is as expected.

    >>> difference([{"k": "b"}, {"k": "a"}], [pa.table({"k": ["a", "b"]})], in_order=True)
    "in another order: found {'k': 'a'}, expected {'k': 'b'}"

    >>> difference([{"m": 1}], [pa.table({"k": ["a"]})])
    "missing {'m': 1}: there is no column 'm', there are k\\nnot expected {'k': 'a'}"
    """
    rows = [(row, table.schema) for table in found for row in table.to_pylist()]
    fits = [[_fits(wanted, row, schema) for row, schema in rows] for wanted in expected]
    partner = _paired(fits, len(rows))
    missing = [wanted for number, wanted in enumerate(expected) if number not in partner.values()]
    left = [row for number, (row, _) in enumerate(rows) if number not in partner]
    known = list(dict.fromkeys(name for table in found for name in table.column_names))
    if in_order and not missing and not left:
        swapped = [place for place, fit in enumerate(fits) if not fit[place]]
        told = [f"in another order: found {rows[place][0]}, expected {dict(expected[place])}" for place in swapped]
        return "".join(told[:1])
    lines = [f"missing {dict(wanted)}{_unknown(wanted, known)}" for wanted in missing]
    return "\n".join([*lines, *(f"not expected {row}" for row in left)])


def _fits(wanted: Mapping[str, Any], row: Mapping[str, Any], schema: pa.Schema) -> bool:
    return all(
        name in row and _same_in_column(name, value, row[name], schema.field(name).type)
        for name, value in wanted.items()
    )


def _same_in_column(name: str, wanted: Any, found: Any, kind: pa.DataType) -> bool:
    if name == "_reason" and isinstance(wanted, str):
        return found is not None and re.search(wanted, found) is not None
    return same(wanted, found, kind)


def _paired(fits: list[list[bool]], rows: int) -> dict[int, int]:
    """The most pairs there can be, as the expected row of each found one: first come, first moved on (Kuhn)."""
    partner: dict[int, int] = {}

    def placed(wanted: int, tried: set[int]) -> bool:
        for row in range(rows):
            if fits[wanted][row] and row not in tried:
                tried.add(row)
                if row not in partner or placed(partner[row], tried):
                    partner[row] = wanted
                    return True
        return False

    for wanted in range(len(fits)):
        placed(wanted, set())
    return partner


def _unknown(wanted: Mapping[str, Any], known: Sequence[str]) -> str:
    unknown = [name for name in wanted if name not in known]
    if not unknown or not known:
        return ""
    return f": there is no column {unknown[0]!r}, there are {', '.join(known)}"
