"""Names inside a join: `alias.column`, and what it is called where rows of both sides meet.

Law: where rows meet, a column of the left input has its own name behind `l_`, one of the right input behind `r_`: no
two are alike, so types and values are never mistaken. A name without an alias is known if one side alone has it.

>>> from eventide.plan.columns import columns
>>> both = (columns("t INT, v INT"), columns("t INT, pos STRUCT<x: INT>"))
>>> names = Names("j", ("a", "b"), both, both)
>>> names.met("a.t + b.pos.x > v", "the condition").sql("spark")
'`l_t` + `r_pos`.x > `l_v`'
>>> names.met("t > 1", "the condition")
Traceback (most recent call last):
    ...
eventide.errors.DeclarationError: join 'j': both inputs have a column 't': write a.t or b.t
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from eventide.errors import DeclarationError
from eventide.plan.bound_rows import told_columns
from eventide.plan.columns import Column, named
from eventide.plan.derived import Derived
from eventide.plan.expressions import aggregates_in, lambda_names, parsed
from eventide.plan.join import Join
from eventide.plan.query import RESERVED, Named
from eventide.plan.spark_grammar import SPARK
from eventide.plan.stream import Stream, Timestamps

PREFIXES = ("l_", "r_")
"""What stands before the names of the left and of the right input's columns where rows meet."""

LEFT, RIGHT = 0, 1


@dataclass(frozen=True)
class Names:
    """The columns of both sides of a join, and how they are called."""

    join: str
    aliases: tuple[str, str]
    columns: tuple[tuple[Column, ...], tuple[Column, ...]]
    told: tuple[tuple[Column, ...], tuple[Column, ...]]
    """Those that are told where nothing is selected: of results all but their span, which goes into the pair's."""

    def met(self, sql: str, what: str) -> exp.Expression:
        """An expression over both sides, with the names that columns have where rows meet."""
        whole = exp.Paren(this=parsed(sql, f"{what} of join {self.join!r}"))
        if aggregates_in(whole):
            raise DeclarationError(
                f"join {self.join!r}: {what} {sql!r} aggregates rows, a join relates them one by one: "
                "aggregate in a query over the join"
            )
        for column in list(whole.find_all(exp.Column)):
            if column.parts[0].name.lower() not in lambda_names(column):
                column.replace(self._met(column))
        found = whole.this
        assert isinstance(found, exp.Expression)
        return found

    def spoken(self, side: int, expressions: list[exp.Expression]) -> tuple[Column, ...]:
        """The columns of a side that these expressions, over names where rows meet, speak of."""
        wanted = {column.name for one in expressions for column in one.find_all(exp.Column)}
        return tuple(column for column in self.columns[side] if PREFIXES[side] + column.name in wanted)

    @property
    def every(self) -> tuple[Named, ...]:
        """All columns of both sides; a name that would be there twice gets the alias before it."""
        own = [{column.name.lower() for column in one} for one in self.told]
        found = []
        for alias, mine, others in zip(self.aliases, self.told, reversed(own), strict=True):
            for column in mine:
                taken = column.name.lower() in others or column.name.lower() in RESERVED
                name = f"{alias}_{column.name}" if taken else column.name
                found.append(Named(name, f"`{alias}`.`{column.name}`"))
        return tuple(found)

    def _met(self, column: exp.Column) -> exp.Expression:
        first, *rest = column.parts
        sides = [side for side, alias in enumerate(self.aliases) if rest and alias.lower() == first.name.lower()]
        if sides:
            [side] = sides
            first, *rest = rest
        else:
            side = self._side_of(first.name)
        known = named(first.name, self.columns[side], f"join {self.join!r}: input {self.aliases[side]!r}")
        told: exp.Expression = exp.column(exp.to_identifier(PREFIXES[side] + known.name, quoted=True))
        for field in rest:
            told = exp.Dot(this=told, expression=field.copy())
        return told

    def _side_of(self, name: str) -> int:
        has = [any(column.name.lower() == name.lower() for column in one) for one in self.columns]
        left, right = self.aliases
        if all(has):
            raise DeclarationError(
                f"join {self.join!r}: both inputs have a column {name!r}: write {left}.{name} or {right}.{name}"
            )
        if not any(has):
            named(name, (*self.columns[LEFT], *self.columns[RIGHT]), f"join {self.join!r} of {left!r} and {right!r}")
        return has.index(True)


def names_of(join: Join, left: Stream, right: Stream) -> Names:
    """The names of a join of these two."""
    told = (told_columns(left), told_columns(right))
    return Names(join.name, (join.left.alias, join.right.alias), (left.columns, right.columns), told)


def meeting(join: Join, left: Stream, right: Stream) -> Derived:
    """A stream, of which no rows come, of the columns of both sides where rows meet: over it types are asked.

    >>> from eventide.plan.join import Band, Side
    >>> from eventide.plan.stream import columns
    >>> a, b = (Stream(name, columns("t INT"), time="t") for name in "ab")
    >>> [column.name for column in meeting(Join("j", Side("a"), Side("b"), (Band("t", "t"),)), a, b).columns]
    ['l_t', 'r_t']
    """
    every = tuple(
        Column(prefix + column.name, column.type)
        for prefix, stream in zip(PREFIXES, (left, right), strict=True)
        for column in stream.columns
    )
    return Derived(f"{join.name}__meeting", every, timestamps=Timestamps.INTERNAL)


def text(expression: exp.Expression) -> str:
    """An expression in Spark SQL."""
    return str(expression.sql(SPARK))
