"""ORDER BY: the order of the results within a window."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from eventide.language.source_text import SourceText
from eventide.language.words import spark_text
from eventide.plan.declared.query import OrderBy
from eventide.plan.declared.stream import WINDOW_END, WINDOW_START


@dataclass(frozen=True)
class OrderReader:
    """Reads ORDER BY; numbers in it are places of the SELECT, as in Spark."""

    source: SourceText

    def read(self, select: exp.Select, over_results: Callable[[exp.Expr], exp.Expr]) -> tuple[OrderBy, ...]:
        """What to order by; `over_results` gives an expression over the result's columns and aggregates."""
        order = select.args.get("order")
        if order is None:
            return ()
        # All results of a window have its ends, and windows are told one after the other anyway.
        told = [ordered for ordered in order.expressions if not _is_end(ordered.this, ordered)]
        return tuple(self._one(ordered, select, over_results) for ordered in told)

    def _one(self, ordered: exp.Expr, select: exp.Select, over_results: Callable[[exp.Expr], exp.Expr]) -> OrderBy:
        if not isinstance(ordered, exp.Ordered) or ordered.args.get("with_fill"):
            raise self.source.error("this order cannot be read", ordered)
        inner = ordered.this
        if isinstance(inner, exp.Literal) and inner.name.isdigit():
            if not 1 <= int(inner.name) <= len(select.expressions):
                raise self.source.error(f"there is no column number {inner.name} in this SELECT", inner)
            chosen = select.expressions[int(inner.name) - 1]
            inner = chosen.this if isinstance(chosen, exp.Alias) else chosen
        down = bool(ordered.args.get("desc"))
        return OrderBy(spark_text(over_results(inner)), down, bool(ordered.args.get("nulls_first")))


def _is_end(node: exp.Expr, ordered: exp.Expr) -> bool:
    """Whether this is an end of the window, in the order in which windows are told."""
    named = isinstance(node, exp.Column) and len(node.parts) == 1 and node.name.lower() in (WINDOW_START, WINDOW_END)
    return named and not ordered.args.get("desc")
