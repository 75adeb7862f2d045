"""Detect SQL whose results are the same in Spark and in DuckDB, whatever their versions.

Law: a query is plain when all that it computes for single rows are columns, whole numbers and fractions added,
subtracted and multiplied, comparisons of like with like, and choices between them; and all that it keeps are counts,
sums, minima and maxima of these. Nothing in it goes from one type to another in a way that engines have their own
views on: no text becomes a number or a time, no time a text, nothing is divided, rounded or matched.

`same_answer` of the dialect is wider: there each function was compared with Spark's, value by value, as far as tests
go. What is plain is so by its smallness, and may take a way around Spark SQL (`engine.spark.file_reduce`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sqlglot import exp

from eventide.plan.bound.query import BoundQuery
from eventide.plan.declared.stream import Stream
from eventide.plan.expressions.columns import WHOLE_NUMBERS
from eventide.plan.expressions.parse import parsed

WHOLE, DECIMAL, FRACTION, TEXT, TRUTH, NULL = "whole", "decimal", "fraction", "text", "truth", "null"
NUMBERS = (WHOLE, DECIMAL, FRACTION)
KINDS = {"DOUBLE": FRACTION, "STRING": TEXT, "BOOLEAN": TRUTH, "DATE": "date", "TIMESTAMP": "instant"} | {
    "TIMESTAMP_NTZ": "reading",
    **dict.fromkeys(WHOLE_NUMBERS, WHOLE),
}
COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ)


def is_portable(query: BoundQuery) -> bool:
    """Whether the reduce of a query is plain."""
    kind = ValueKinds(query.stream)
    where = query.query.where
    return (
        query.query.sample is None
        and (where is None or kind.of(parsed(where, "a condition")) == TRUTH)
        and (not query.has_own_gaps or kind.of(parsed(query.gap or "", "a gap")) == WHOLE)
        and all(kind.of(parsed(key.sql, "a group")) not in (None, NULL, FRACTION) for key in query.keys)
        and all(kind.is_aggregate(parsed(partial.reduce, "a partial")) for partial in query.partials)
    )


def keeps_portably(query: BoundQuery) -> bool:
    """Whether the rows that come into an operator are kept as they are, with nothing computed but what is plain.

    >>> from eventide.plan.bound.rows import port
    >>> from eventide.plan.declared.stream import columns
    >>> traffic = Stream("traffic", columns("ts TIMESTAMP, speed INT"), time="ts")
    >>> chosen = port("j", "left", traffic, traffic.columns, where="rand() > 0.5")
    >>> keeps_portably(port("j", "left", traffic, traffic.columns)), keeps_portably(chosen)
    (True, False)
    """
    return query.operator is not None and is_portable(query)


def has_portable_sources(stream: Stream) -> bool:
    """Whether the sources of a stream are named by columns that are the same in both engines."""
    kind = ValueKinds(stream)
    return all(kind.of(exp.column(name)) not in (None, FRACTION) for name in stream.source)


class ValueKinds:
    """What kind of value an expression over a stream gives, as far as it is plain."""

    def __init__(self, stream: Stream) -> None:
        self._types = {column.name.lower(): column.type for column in stream.columns}

    def of(self, node: exp.Expr | None) -> str | None:
        """The kind; None for an expression that is not plain.

        >>> from eventide.plan.declared.stream import columns
        >>> kinds = ValueKinds(Stream("s", columns("t BIGINT, d DOUBLE, s STRING"), time="t"))
        >>> [kinds.of(parsed(sql, "q")) for sql in ("t + 1", "d > 0.5 AND s <> 'x'", "CAST(s AS INT)", "t / 2")]
        ['whole', 'truth', None, None]
        """
        for kinds, rule in self._RULES:
            if isinstance(node, kinds):
                return rule(self, node)
        return None

    def is_aggregate(self, node: exp.Expr) -> bool:
        """Whether this is a plain aggregate of plain values."""
        if isinstance(node, exp.Count):
            return not node.expressions and (isinstance(node.this, exp.Star) or self.of(node.this) is not None)
        if isinstance(node, exp.Sum):
            return self.of(node.this) in NUMBERS
        if isinstance(node, exp.Min | exp.Max):
            return not node.expressions and self.of(node.this) not in (None, NULL)
        return isinstance(node, exp.LogicalOr | exp.LogicalAnd) and self.of(node.this) == TRUTH

    def _column(self, node: exp.Column) -> str | None:
        if len(node.parts) != 1 or isinstance(node.this, exp.Star):
            return None
        declared = self._types.get(node.name.lower(), "")
        return DECIMAL if declared.startswith("DECIMAL") else KINDS.get(declared)

    def _literal(self, node: exp.Literal) -> str:
        if node.is_string:
            return TEXT
        return WHOLE if node.name.isdigit() else FRACTION if "e" in node.name.lower() else DECIMAL

    def _comparison(self, node: exp.Binary) -> str | None:
        return TRUTH if self._alike((node.this, node.expression)) else None

    def _among(self, node: exp.In) -> str | None:
        return TRUTH if node.expressions and self._alike((node.this, *node.expressions)) else None

    def _between(self, node: exp.Between) -> str | None:
        return TRUTH if self._alike((node.this, node.args["low"], node.args["high"])) else None

    def _connected(self, node: exp.Binary) -> str | None:
        return self._all_true((node.this, node.expression))

    def _not(self, node: exp.Not) -> str | None:
        return self._all_true((node.this,))

    def _is(self, node: exp.Is) -> str | None:
        return TRUTH if isinstance(node.expression, exp.Null) and self.of(node.this) is not None else None

    def _calculated(self, node: exp.Binary) -> str | None:
        kinds = {self.of(node.this), self.of(node.expression)}
        if not kinds <= {WHOLE, FRACTION}:
            return None
        return FRACTION if FRACTION in kinds else WHOLE

    def _of_bits(self, node: exp.Binary) -> str | None:
        return WHOLE if {self.of(node.this), self.of(node.expression)} == {WHOLE} else None

    def _negated(self, node: exp.Neg) -> str | None:
        found = self.of(node.this)
        return found if found in NUMBERS else None

    def _inner(self, node: exp.Paren) -> str | None:
        return self.of(node.this)

    def _choice(self, node: exp.If) -> str | None:
        if self._all_true((node.this,)) is None:
            return None
        return self._same((node.args["true"], node.args.get("false")))

    def _case(self, node: exp.Case) -> str | None:
        branches = node.args["ifs"]
        if node.this is not None or self._all_true(branch.this for branch in branches) is None:
            return None
        return self._same((*(branch.args["true"] for branch in branches), node.args.get("default")))

    def _first_there(self, node: exp.Coalesce) -> str | None:
        return self._same((node.this, *node.expressions))

    def _cast(self, node: exp.Cast) -> str | None:
        """Only to a type that holds every value of the one before."""
        before, to = self.of(node.this), node.to.sql("spark").upper()
        if to == "BIGINT" and before == WHOLE:
            return WHOLE
        if to == "DOUBLE" and before in (WHOLE, FRACTION):
            return FRACTION
        column = node.this
        declared = self._types.get(column.name.lower()) if isinstance(column, exp.Column) else None
        return DECIMAL if before == DECIMAL and declared == to else None

    def _instant(self, node: exp.UnixMicros) -> str | None:
        return WHOLE if self.of(node.this) == KINDS["TIMESTAMP"] else None

    def _all_true(self, parts: Iterable[exp.Expr]) -> str | None:
        return TRUTH if all(self.of(part) in (TRUTH, NULL) for part in parts) else None

    def _alike(self, parts: Iterable[exp.Expr]) -> bool:
        kinds = {self.of(part) for part in parts}
        return None not in kinds and (kinds <= set(NUMBERS) or len(kinds) == 1)

    def _same(self, parts: Iterable[exp.Expr | None]) -> str | None:
        kinds = {self.of(part) if part is not None else NULL for part in parts} - {NULL}
        return kinds.pop() if len(kinds) == 1 else None

    _RULES: tuple[tuple[type | tuple[type, ...], Callable[..., str | None]], ...] = (
        (exp.Column, _column),
        (exp.Literal, _literal),
        (exp.Boolean, lambda self, node: TRUTH),
        (exp.Null, lambda self, node: NULL),
        (exp.Paren, _inner),
        ((exp.And, exp.Or), _connected),
        (exp.Not, _not),
        (exp.Is, _is),
        (COMPARISONS, _comparison),
        (exp.In, _among),
        (exp.Between, _between),
        ((exp.Add, exp.Sub, exp.Mul), _calculated),
        ((exp.BitwiseAnd, exp.BitwiseRightShift), _of_bits),
        (exp.Neg, _negated),
        (exp.If, _choice),
        (exp.Case, _case),
        (exp.Coalesce, _first_there),
        (exp.Cast, _cast),
        (exp.UnixMicros, _instant),
    )
