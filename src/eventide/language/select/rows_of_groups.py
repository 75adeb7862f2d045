"""Windows over the last rows of each group, `[RANGE 3 ROWS SLIDE 1 ROWS PARTITION BY k]`, as frames of OVER.

Law: a window of a group is full with its n-th row in the order of time, and with every SLIDE rows after that; its
result has the time of the row that filled it. A window that is not full when the stream ends has no result. Each
aggregate is one over the frame of the last n rows of the group, and QUALIFY chooses the rows that fill a window.

>>> import sqlglot
>>> window = StreamWindow(expressions=[
...     Clause(this="RANGE", expressions=[Amount(this="3", unit="rows")]),
...     Clause(this="PARTITION BY", expressions=[exp.to_identifier("k")])])
>>> select = sqlglot.parse_one("SELECT k, sum(v) AS n FROM s GROUP BY k", read="spark")
>>> select.args["from_"].this.set("stream_window", window)
>>> print(over_rows_of_groups(select, SourceText(""), lambda table: "t").sql())
SELECT k, SUM(v) OVER (PARTITION BY k ORDER BY t ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS n FROM s QUALIFY \
ROW_NUMBER() OVER (PARTITION BY k ORDER BY t) >= 3 AND (ROW_NUMBER() OVER (PARTITION BY k ORDER BY t) - 3) % 3 = 0
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from eventide.language.ddl.create_stream import DeclaredStream, name_of
from eventide.language.grammar.nodes import Amount, Clause, StreamWindow
from eventide.language.grammar.source_text import SourceText
from eventide.language.scope.expression_text import column_of, name_for
from eventide.language.select.scalar_subqueries import ScalarReader
from eventide.plan.expressions.parse import aggregates_in

ALLOWED = ("RANGE", "SLIDE", "PARTITION BY")


def rewritten(select: exp.Select, source: SourceText, streams: Mapping[str, DeclaredStream]) -> exp.Select:
    """A SELECT in words that everything behind has: without queries inside expressions, or windows of groups."""

    def time_of(table: exp.Expr) -> str | None:
        declared = streams.get(name_of(table).lower()) if isinstance(table, exp.Table) else None
        return declared.stream.time if declared is not None else None

    return over_rows_of_groups(ScalarReader(source, streams).read(select), source, time_of)


def over_rows_of_groups(
    select: exp.Select, source: SourceText, time_of: Callable[[exp.Expr], str | None]
) -> exp.Select:
    """The SELECT with OVER in the place of such a window; itself where it has none."""
    origin = select.args["from_"].this if select.args.get("from_") is not None else None
    window = origin.args.get("stream_window") if isinstance(origin, exp.Expr) else None
    clauses = {str(one.this): one for one in window.expressions} if isinstance(window, StreamWindow) else {}
    if "PARTITION BY" not in clauses or _rows(clauses.get("RANGE")) is None:
        return select
    length, slide = _rows(clauses["RANGE"]), _rows(clauses.get("SLIDE", clauses["RANGE"]))
    assert length is not None
    assert origin is not None
    other = next((one for name, one in clauses.items() if name not in ALLOWED), None)
    if other is not None or not slide or length < 1:
        raise source.error(
            "the last rows of a group have a RANGE and a SLIDE of ROWS", other or clauses["RANGE"], "leave this out"
        )
    time = time_of(origin)
    if time is None:
        raise source.error("the last rows of a group are those of a stream with a time column", origin, "name one")
    for key in ("order", "limit", "distinct", "qualify", "joins"):
        if (part := select.args.get(key)) is not None:
            at = part[0] if isinstance(part, list) else part
            raise source.error(f"{key.upper()} beside windows of groups cannot be run yet", at, "put it around")
    keys = [exp.column(name.copy()) for name in clauses["PARTITION BY"].expressions]
    group = select.args.get("group")
    if group is None or {one.name.lower() for one in group.expressions} != {key.name.lower() for key in keys}:
        raise source.error(
            "windows of the rows of groups are those of the groups of the query, and PARTITION BY names others",
            clauses["PARTITION BY"],
            "group by the same columns",
        )

    def over(call: exp.Expr, frame: exp.WindowSpec | None = None) -> exp.Window:
        order = exp.Order(expressions=[exp.Ordered(this=column_of(time), nulls_first=True)])
        return exp.Window(this=call, partition_by=[key.copy() for key in keys], order=order, spec=frame)

    def framed(item: exp.Expr) -> exp.Expr:
        root = exp.Paren(this=item.copy())
        for call in aggregates_in(root):
            frame = exp.WindowSpec(kind="ROWS", start=str(length - 1), start_side="PRECEDING", end="CURRENT ROW")
            call.replace(over(call.copy(), frame))
        return root.this  # type: ignore[no-any-return]

    found = select.copy()
    found.args["from_"].this.set("stream_window", None)
    found.set("group", None)
    items = [one if one.alias_or_name else exp.alias_(one.copy(), name_for(one)) for one in select.expressions]
    found.set("expressions", [framed(one) for one in items])
    number, full = over(exp.RowNumber()), exp.Literal.number(length)
    since = exp.Paren(this=exp.Sub(this=number.copy(), expression=full.copy()))
    turn = exp.EQ(this=exp.Mod(this=since, expression=exp.Literal.number(slide)), expression=exp.Literal.number(0))
    chosen: list[exp.Expr] = [exp.GTE(this=number, expression=full), turn]
    if (having := found.args.pop("having", None)) is not None:
        chosen.append(framed(having.this))
    found.set("qualify", exp.Qualify(this=exp.and_(*chosen, copy=False)))
    return found


def _rows(clause: Clause | None) -> int | None:
    """How many rows a clause says; None where it says anything else."""
    amount = clause.expressions[0] if clause is not None else None
    if not isinstance(amount, Amount) or str(amount.args.get("unit") or "").lower() not in ("row", "rows"):
        return None
    return int(str(amount.this)) if str(amount.this).isdigit() else None
