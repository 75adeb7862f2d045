"""The order of values in DuckDB as in Spark: NULL inside of a struct or an array is below all else.

Law: DuckDB has NULL inside of values on top, so structs and arrays are compared by a key that says of each part whether
it is there. Where the words do not tell what is inside, comparing is refused.
"""

from __future__ import annotations

from sqlglot import exp

from eventide.plan.aggregate_ordered import order_key
from eventide.plan.dialect_saying import Rule, Saying, call
from eventide.plan.spark_grammar import SPARK

NESTED = ("STRUCT", "ARRAY", "MAP")


def _nested(kind: str | None) -> bool:
    return kind is not None and kind.startswith(NESTED)


def _key(self: Saying, node: exp.Expression) -> str | None:
    """What a struct or an array is ordered by, in DuckDB's words."""
    found = order_key(node.sql(SPARK), self.kind(node) or "")
    return None if found is None else self.sql(exp.maybe_parse(found[0], dialect=SPARK))


def _compared(operator: str) -> Rule:
    def rule(self: Saying, node: exp.Expression) -> str:
        sides = (node.this, node.expression)
        kinds = [self.kind(side) for side in sides]
        if not any(map(_nested, kinds)):
            return f"{self.sql(node.this)} {operator} {self.sql(node.expression)}"
        keys = [_key(self, side) for side in sides] if kinds[0] == kinds[1] else []
        if not keys or None in keys:
            return self.refuse(f"the comparison {node.sql(SPARK)}")
        there = " AND ".join(f"{self.sql(side)} IS NOT NULL" for side in sides)
        return f"CASE WHEN {there} THEN {keys[0]} {operator} {keys[1]} END"

    return rule


def _between(self: Saying, node: exp.Between) -> str:
    if _nested(self.kind(node.this)):
        return self.refuse(f"BETWEEN of {self.kind(node.this)}")
    return f"{self.sql(node.this)} BETWEEN {self.sql(node, 'low')} AND {self.sql(node, 'high')}"


def _chosen(self: Saying, node: exp.Expression) -> str:
    parts = [node.this, *node.expressions]
    nested = next((kind for part in parts if _nested(kind := self.kind(part))), None)
    if nested is not None:
        return self.refuse(f"{node.key.upper()} of {nested}")
    return call(node.key.upper(), *(self.sql(part) for part in parts))


def _extreme(self: Saying, node: exp.Expression) -> str:
    """MIN or MAX. The structs of slices tell themselves, in `h`, whether their value is there."""
    kind, value = self.kind(node.this), self.sql(node.this)
    if not _nested(kind) or (kind is not None and kind.startswith("STRUCT<") and "h: BOOLEAN, " in kind):
        return call(node.key.upper(), value)
    key = _key(self, node.this)
    return self.refuse(f"{node.key.upper()} of {kind}") if key is None else call(f"ARG_{node.key.upper()}", value, key)


RULES: dict[type[exp.Expr], Rule] = {
    exp.Between: _between,
    exp.Greatest: _chosen,
    exp.GT: _compared(">"),
    exp.GTE: _compared(">="),
    exp.Least: _chosen,
    exp.LT: _compared("<"),
    exp.LTE: _compared("<="),
    exp.Max: _extreme,
    exp.Min: _extreme,
}
