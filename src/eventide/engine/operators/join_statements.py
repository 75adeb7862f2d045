"""The statements of a join: pairs, rows alone, and what the driver has to know of the rows that are held.

Law: each is the same text every round; what changes from round to round it finds in the table `limits`: of each band
the values below which rows are late (`floor`), are done with (`now`), and were done with before (`was`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from eventide.engine.relations.relation import SEQUENCE, Layout
from eventide.engine.relations.statement import Statement
from eventide.plan.bound.join import SIDES, BoundJoin
from eventide.plan.bound.join_inputs import LEFT, PREFIXES, RIGHT
from eventide.plan.bound.rows import IDENTITY
from eventide.plan.expressions.columns import Column, quoted
from eventide.plan.sql.join import driver_exact, met_text, output_text, pairs_text

MATCHED = Layout((Column("__t", "BIGINT"), *IDENTITY), ("__t",))
FIRST = "__first"
SAME = " AND ".join(f"found.{column.name} = matched.{column.name}" for column in IDENTITY)


@dataclass(frozen=True)
class JoinStatements:
    """The statements of one join; what changes from round to round they find in the table `limits`."""

    bound: BoundJoin

    @cached_property
    def portable(self) -> bool:
        """Whether DuckDB gives Spark's answer."""
        return all(port.driver_exact for port in self.bound.ports) and driver_exact(self.bound)

    @property
    def _bands(self) -> range:
        return range(1, len(self.bound.bands) + 1)

    def dead(self, rows: str, limits: str) -> str:
        """Whether a row is below the limit of some band."""
        return "(" + " OR ".join(f"{rows}.__k{band} < limits.__{limits}{band}" for band in self._bands) + ")"

    def hopeless(self, rows: str) -> str:
        """Whether NULL keeps a row from having a partner."""
        compared = [*(f"__k{band}" for band in self._bands), *self.bound.keys]
        return "(" + " OR ".join(f"{rows}.{name} IS NULL" for name in compared) + ")"

    def accepted(self) -> Statement:
        """The rows `found` that are not late."""
        text = f"SELECT found.* FROM found CROSS JOIN limits WHERE NOT ({self.late('found')})"
        return Statement(text, identified=True)

    def late(self, rows: str) -> str:
        """Whether the time of a row is promised to be over, or partners of it may be gone."""
        return f"{rows}.__t <= limits.__time OR COALESCE({self.dead(rows, 'floor')}, FALSE)"

    def pairs(self, new_left: bool, new_right: bool, fail_safe: bool = False) -> str:
        """New left rows with all right rows, and held left rows with new right rows."""
        parts = []
        if new_left:
            right = "(SELECT * FROM near_right UNION ALL SELECT * FROM new_right)"
            parts.append(self._pairs("new_left", right, fail_safe))
        if new_right:
            parts.append(self._pairs("near_left", "new_right", fail_safe))
        return " UNION ALL ".join(parts)

    def _pairs(self, left: str, right: str, fail_safe: bool) -> str:
        sides = met_text(self.bound, LEFT, left), met_text(self.bound, RIGHT, right)
        return pairs_text(self.bound, *sides, fail_safe)

    def emitted(self, rows: str, fail_safe: bool = False) -> str:
        """What the user sees of pairs and rows alone."""
        return output_text(self.bound, f"({rows})", fail_safe)

    def alone(self, side: int, with_pairs: bool) -> Statement:
        """Of the rows that no partner can come for any more, held and new, those that never had one."""
        name, limits = SIDES[side], f"limits_{SIDES[side]} limits"
        held = (
            f"SELECT held.* FROM ending_{name} held CROSS JOIN {limits} WHERE {self.dead('held', 'now')} "
            f"AND NOT {self.dead('held', 'was')} AND NOT {self.hopeless('held')}"
        )
        new = (
            f"SELECT new.* FROM new_{name} new CROSS JOIN {limits} "
            f"WHERE {self.dead('new', 'now')} OR {self.hopeless('new')}"
        )
        return Statement(f"SELECT found.* {_unmatched(f'{held} UNION ALL {new}', side, with_pairs)}", identified=True)

    def matched(self, side: int) -> Statement:
        """The identities of rows of a side that had a partner."""
        prefix = PREFIXES[side]
        named = ", ".join(f"{prefix}{column.name} AS {column.name}" for column in MATCHED.columns)
        return Statement(f"SELECT DISTINCT {named} FROM pairs")

    def earliest_alone(self, side: int, with_pairs: bool) -> Statement:
        """By sequence, the earliest time of a held row that may still be emitted alone."""
        found = f"SELECT {self._live_columns} FROM {self._live(side)}"
        minima = f"SELECT found.{SEQUENCE}, min(found.__t) AS {FIRST} {_unmatched(found, side, with_pairs)}"
        return Statement(f"{minima} GROUP BY found.{SEQUENCE}")

    def least(self, side: int, columns: Mapping[str, str]) -> Statement:
        """By sequence, the least values of columns, each with the SQL that tells it, in held rows."""
        minima = ", ".join(f"min({sql}) AS {quoted(name)}" for name, sql in columns.items())
        return Statement(f"SELECT found.{SEQUENCE}, {minima} FROM {self._live(side)} GROUP BY found.{SEQUENCE}")

    @property
    def _live_columns(self) -> str:
        return ", ".join(f"found.{column.name}" for column in MATCHED.columns)

    def _live(self, side: int) -> str:
        """Rows of a side that partners can still come for."""
        rows = f"(SELECT * FROM touched_{SIDES[side]} UNION ALL SELECT * FROM new_{SIDES[side]}) found"
        live = f"NOT {self.dead('found', 'now')} AND NOT {self.hopeless('found')}"
        return f"{rows} CROSS JOIN limits_{SIDES[side]} limits WHERE {live}"


def _unmatched(rows: str, side: int, with_pairs: bool) -> str:
    """Rows of a side that never had a partner, neither before (`matched`) nor, with pairs, in this round."""
    names = [f"matched_{SIDES[side]}", *([f"met_{SIDES[side]}"] if with_pairs else [])]
    matched = " UNION ALL ".join(f"SELECT * FROM {name}" for name in names)
    return f"FROM ({rows}) found LEFT ANTI JOIN ({matched}) matched ON {SAME}"
