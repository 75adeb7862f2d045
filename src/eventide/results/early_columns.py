"""How a person reads early rows: `614 ± 21 %, ~773`, until the final row takes their place.

Law: the columns that early answers have beside a query's own (`point`, `completeness`, `NAME_error`, `NAME_estimate`)
stand at the end of its results, and are read as part of the values they are about. Of a window and group only the last
row is worth reading, unless it is more than early.

>>> names = ("kind", "window_start", "window_end", "detector", "total", "point", "completeness", "total_error")
>>> early = EarlyColumns.of(names)
>>> early.groups, early.values, EarlyColumns.of(names[:-1])
(('detector',), ('total',), None)
>>> early.amount("614", 0.2123, None), early.amount("614", None, "773"), early.amount("683", None, None)
('614 ± 21 %', '614, ~773', '683')
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from eventide.plan.declared.query import COMPLETENESS, ERROR, ESTIMATE, POINT, RESERVED
from eventide.results.results import Kind

WINDOW = ("window_start", "window_end")


@dataclass(frozen=True)
class EarlyColumns:
    """The groups and values of a query that declares prods, and those of its values that are extrapolated."""

    groups: tuple[str, ...]
    values: tuple[str, ...]
    estimates: tuple[str, ...]

    @classmethod
    def of(cls, names: Sequence[str]) -> EarlyColumns | None:
        """Told by the names of all columns; None where there is nothing about early answers."""
        own = [name for name in names if name not in RESERVED]
        if POINT not in own or own.index(POINT) + 1 >= len(own) or own[own.index(POINT) + 1] != COMPLETENESS:
            return None
        first, added = own[: own.index(POINT)], own[own.index(POINT) + 2 :]
        values = tuple(name.removesuffix(ERROR) for name in added if name.endswith(ERROR))
        estimates = tuple(name.removesuffix(ESTIMATE) for name in added if not name.endswith(ERROR))
        expected = [*(f"{name}{ERROR}" for name in values), *(f"{name}{ESTIMATE}" for name in estimates)]
        if not values or added != expected or tuple(first[len(first) - len(values) :]) != values:
            return None
        return cls(tuple(first[: len(first) - len(values)]), values, estimates)

    @property
    def added(self) -> frozenset[str]:
        """The columns that are read as part of others."""
        of_values = {f"{name}{ERROR}" for name in self.values} | {f"{name}{ESTIMATE}" for name in self.estimates}
        return frozenset({POINT, COMPLETENESS} | of_values)

    def amount(self, value: str, error: float | None, estimate: str | None) -> str:
        """A value as one reads it, with its expected error, and what it will probably be."""
        close = "" if error is None else f" ± {share(error)}"
        return f"{value}{close}" + ("" if estimate is None else f", ~{estimate}")

    def kind(self, kind: str, completeness: float | None) -> str:
        """The kind of a row, and which share of its rows is there, as far as is known.

        >>> EarlyColumns((), ("n",), ()).kind("early", 0.79), EarlyColumns((), ("n",), ()).kind("final", None)
        ('early 79 %', 'final')
        """
        return kind if completeness is None else f"{kind} {share(completeness)}"

    def outlived(self, older: pa.Table, newer: pa.Table) -> pa.Table:
        """The older rows, without early ones of windows and groups that newer rows tell of."""
        if older.num_rows == 0 or newer.num_rows == 0:
            return older
        newest = set(self._keys(newer))
        kinds = older.column("kind").to_pylist()
        kept = [
            kind != Kind.EARLY.value or key not in newest for kind, key in zip(kinds, self._keys(older), strict=True)
        ]
        return older if all(kept) else older.filter(pa.array(kept))

    def latest(self, table: pa.Table) -> pa.Table:
        """The rows of a table without early ones that a later row tells of again.

        >>> rows = {"kind": ["early", "early", "final"], "window_start": [0, 5, 0], "window_end": [5, 9, 5]}
        >>> EarlyColumns((), (), ()).latest(pa.table({**rows, "n": [1, 2, 3]})).column("n").to_pylist()
        [2, 3]
        """
        last = {key: at for at, key in enumerate(self._keys(table))}
        kinds = table.column("kind").to_pylist()
        kept = [kinds[at] != Kind.EARLY.value or last[key] == at for at, key in enumerate(self._keys(table))]
        return table.filter(pa.array(kept, pa.bool_()))

    def _keys(self, table: pa.Table) -> list[str]:
        # By way of text: groups may be lists or structs.
        columns = [table.column(name).to_pylist() for name in (*WINDOW, *self.groups)]
        return [repr(key) for key in zip(*columns, strict=True)]


def share(of_one: float) -> str:
    """A share in percent, as exact as one reads it.

    >>> share(0.2123), share(0.0123), share(2.0)
    ('21 %', '1.2 %', '200 %')
    """
    return f"{100 * of_one:.0f} %" if of_one >= 0.0995 else f"{100 * of_one:.1f} %"


def readings(early: EarlyColumns, table: pa.Table, texts: dict[str, list[str]]) -> dict[str, list[str]]:
    """The columns that are shown, by name: the kind, the groups, and the values with all that is said of them.

    `texts` has the columns as text. While it is not known how many rows are missing, nothing is extrapolated.
    """
    shares: dict[str, list[Any]] = {name: table.column(name).to_pylist() for name in early.added}
    rows = range(table.num_rows)
    shown = {"kind": [early.kind(texts["kind"][at], shares[COMPLETENESS][at]) for at in rows]}
    shown |= {name: texts[name] for name in early.groups}
    for name in early.values:
        about = shares.get(f"{name}{ESTIMATE}", [None] * table.num_rows)
        shown[name] = [
            early.amount(
                texts[name][at],
                shares[f"{name}{ERROR}"][at],
                None if about[at] is None or shares[COMPLETENESS][at] is None else rounded(about[at]),
            )
            for at in rows
        ]
    return shown


def rounded(estimate: float) -> str:
    """An estimate, with no more digits than it deserves.

    >>> rounded(773.1646), rounded(12.345), rounded(1234567.8)
    ('773', '12.3', '1234568')
    """
    return f"{estimate:.0f}" if abs(estimate) >= 100 else f"{estimate:.3g}"
