"""A join with a table whose versions are streamed: `JOIN prices FOR SYSTEM_TIME AS OF o.ts AS p ON o.id = p.id`.

Law: each row of the left side meets the version of its key that holds at its own time; ON says which keys are equal.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from eventide.language.known import Level
from eventide.language.relations import Input, bare, tables_of, take_apart
from eventide.language.source_text import SourceText
from eventide.language.words import all_of, spark_text
from eventide.plan.declared.join import JoinKind, Lookup, Side


def version_of(node: exp.Expr) -> exp.Expr | None:
    """The time whose version is meant, where a join has AS OF."""
    table = node.this if isinstance(node, exp.Join) else None
    version = table.args.get("version") if isinstance(table, exp.Expr) else None
    return version.expression if version is not None and isinstance(version.expression, exp.Expr) else None


def with_version(time: exp.Expr) -> exp.Join:
    """A join that has AS OF this time, as the parser gives it.

    >>> str(version_of(with_version(exp.column("ts", "orders"))))
    'orders.ts'
    """
    return exp.Join(this=exp.Table(version=exp.Version(this="TIMESTAMP", kind="AS OF", expression=time)))


@dataclass(frozen=True)
class LookupReader:
    """Reads a join with AS OF."""

    source: SourceText

    def read(
        self,
        left: tuple[str, Level],
        right: tuple[str, Level],
        kind: JoinKind,
        said: list[exp.Expr],
        as_of: exp.Expr,
        where: list[exp.Expr],
        node: exp.Expr,
        joined: list[tuple[str, Level]],
    ) -> Lookup:
        """The lookup; conditions are spelled out, with the names of the two sides.

        The left side are the inputs that are `joined` already, or one; errors speak of those.
        """
        self._check_time(left, as_of, joined)
        if kind not in (JoinKind.INNER, JoinKind.LEFT):
            raise self.source.error("a join AS OF is an inner or a LEFT join", node, "write JOIN or LEFT JOIN")
        for _, level in (left, right):
            if level.window is not None:
                raise self.source.error("a join AS OF has no windows", level.window, "leave the window out")
        parts = take_apart(said, Input(*left), Input(*right), by_time=False)
        if not parts.keys:
            raise self.source.error(
                "this join AS OF has no equal keys, so nothing says whose version is meant",
                node,
                f"add ON {joined[0][0]}.key = {right[0]}.key",
            )
        after = [*where]
        if kind is JoinKind.INNER:
            after += [*parts.right, *parts.rest]
        elif others := [*parts.left, *parts.right, *parts.rest]:
            raise self.source.error(
                "a LEFT JOIN AS OF has equal keys and no other condition", others[0], "put this into WHERE"
            )
        sides = []
        for (alias, level), number, asked in ((left, 0, parts.left), (right, 1, [])):
            conditions = all_of([*level.where, *(bare(one) for one in asked)])
            keys = tuple(spark_text(pair[number]) for pair in parts.keys)
            sides.append(Side(level.stream.name, alias, keys, conditions))
        return Lookup("", sides[0], sides[1], kind is JoinKind.LEFT, where=all_of(after))

    def _check_time(self, left: tuple[str, Level], as_of: exp.Expr, joined: list[tuple[str, Level]]) -> None:
        alias, level = left
        times = level.clock.of(bare(as_of)) if tables_of(as_of) == {alias} else None
        if times is not None and times.shifted == 0:
            return
        names = [name for name, one in level.times.items() if one.shifted == 0]
        if len(joined) > 1:
            whose = " and ".join(repr(one) for one, _ in joined)
            raise self.source.error(
                f"AS OF goes by the time of the pairs of {whose}, which is that of the later row",
                as_of,
                "join with the table first; or name the pairs, CREATE QUERY pairs AS .., and join them AS OF "
                "pairs.window_end",
            )
        way = f"write AS OF {alias}.{names[0]}" if names else f"no column of {alias!r} carries its time here"
        raise self.source.error(f"AS OF goes by the time of {alias!r}", as_of, way)
