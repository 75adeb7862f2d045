"""Read the clauses behind a SELECT: PROD for early answers, SIDELINE for expensive functions.

*PROD.* `PROD EVERY 1 second`, `PROD EVERY 100 ROWS`, `PROD AT 75 %, 90 %` and `PROD WITHIN 2 % ERROR` say when a query
is asked for early answers. The clauses stand behind the SELECT, in any order. BETWEEN says between which points of the
slide the point of WITHIN may be, SPEED how far a window without any error moves it, CONFIDENCE how surely the error is
kept; they mean nothing without WITHIN. ESTIMATE asks for sums and counts extrapolated, beside their raw values, COMPARE
names a function for a value; they mean nothing without a prod. BY names a stream whose rows are prods; where prods are
among the rows of a query's own streams (PRODDED BY), none of these words is needed. WHERE leaves
groups out of all of them.

*SIDELINE.* A query that calls an expensive function has a queue before it, and SIDELINE says what becomes of bursts. A
query with windows of its own that calls a function declared EXPENSIVE, in a value, a group or a condition, reads its
rows from a queue; one over the few results of another query does not. SIDELINE means nothing without a queue.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from eventide.errors import DeclarationError
from eventide.eventtime.early.triggers import Earliness
from eventide.language.ddl.create_stream import PLACES, OutputTarget, name_of
from eventide.language.grammar.nodes import Amount, Amounts, Clause
from eventide.language.grammar.source_text import SourceText
from eventide.language.grammar.spelling import meant
from eventide.language.select.group_patterns import patterns_of
from eventide.plan.declared.query import Prods, Query
from eventide.plan.declared.rows import Queue, Sideline, calls, check_sideline
from eventide.plan.declared.stream import TimeKind
from eventide.plan.declared.window import SameWindow


@dataclass(frozen=True)
class ScriptContext:
    """What a script has said before: streams and functions by their names in small letters.

    `in_stream`: whether the query reads a stream with prods among its rows.
    """

    streams: Mapping[str, str]
    functions: Mapping[str, str]
    in_stream: bool = False


def with_prods(
    query: Query, written: Sequence[Clause], source: SourceText, kind: TimeKind, around: ScriptContext | None = None
) -> Query:
    """The query with the prods that the clauses behind its SELECT ask for; `kind` is that of its streams' times."""
    if not written:
        return query
    around = around or ScriptContext({}, {})
    clauses = {str(clause.this): clause for clause in written}
    amounts = Amounts(source, kind)
    for word in ("PROD BETWEEN", "PROD SPEED", "PROD CONFIDENCE"):
        if word in clauses and "PROD WITHIN" not in clauses:
            raise source.error(f"{word} without PROD WITHIN", clauses[word], "write PROD WITHIN 2 % ERROR")
    for word in ("ESTIMATE", "COMPARE", "DISCARDING"):
        if word in clauses and not around.in_stream and clauses.keys() <= {"ESTIMATE", "COMPARE", "DISCARDING"}:
            prod = "PROD EVERY 100 ROWS" if word == "DISCARDING" else "PROD AT 75 %"
            raise source.error(f"{word} without PROD", clauses[word], f"write {prod} {clauses[word].sql()}")
    try:
        every = clauses.get("PROD EVERY")
        by_rows = every is not None and amounts.says_rows(every.expressions[0])
        at = clauses.get("PROD AT")
        prods = Prods(
            every=None if every is None or by_rows else amounts.length(every.expressions[0], "PROD EVERY"),
            every_rows=None if every is None or not by_rows else amounts.rows(every.expressions[0], "PROD EVERY"),
            points=() if at is None else tuple(amounts.point(amount, "PROD AT") for amount in at.expressions),
            within=_within(clauses, amounts),
            estimate="ESTIMATE" in clauses,
            by=_by(clauses["PROD BY"], source, around) if "PROD BY" in clauses else None,
            in_stream=around.in_stream,
            discarding="DISCARDING" in clauses,
            where=_where(query, clauses["PROD WHERE"], source) if "PROD WHERE" in clauses else {},
            compare=_compared(query, clauses["COMPARE"], source, around) if "COMPARE" in clauses else (),
        )
        return replace(query, prods=prods)
    except DeclarationError as error:
        if type(error) is not DeclarationError:
            raise
        raise source.error(str(error), written[0]) from error


def _by(clause: Clause, source: SourceText, around: ScriptContext) -> str:
    """The stream whose rows are prods."""
    [table] = clause.expressions
    name = name_of(table)
    return around.streams[_known(name, table, "stream", around.streams, source)]


def _compared(query: Query, clause: Clause, source: SourceText, around: ScriptContext) -> tuple[tuple[str, str], ...]:
    """Which function compares which value."""
    values = {item.name.lower(): item.name for item in query.select}
    found: dict[str, str] = {}
    for one in clause.expressions:
        value, _, function = one.expressions
        name = values[_known(value.name, value, "value", values, source)]
        if name in found:
            raise source.error(f"{name!r} is compared twice", one)
        found[name] = around.functions[_known(function.name, function, "function", around.functions, source)]
    return tuple(found.items())


def _where(query: Query, clause: Clause, source: SourceText) -> dict[str, Any]:
    """The groups that are asked for."""
    groups = {group.name.lower(): group.name for group in query.groups}
    condition = clause.expressions[0]
    found = patterns_of(condition, source)
    return {groups[_known(name, condition, "group", groups, source)]: data for name, data in found.items()}


def _known(name: str, node: exp.Expr, what: str, known: Mapping[str, str], source: SourceText) -> str:
    if name.lower() not in known:
        hint = meant(name, known.values())
        if what == "function" and not known:
            hint = f"declare it before: CREATE FUNCTION {name} FROM 'file.py'"
        raise source.error(f"there is no {what} {name!r}", node, hint)
    return name.lower()


def _within(clauses: dict[str, Clause], amounts: Amounts) -> Earliness | None:
    if "PROD WITHIN" not in clauses:
        return None
    given: dict[str, float] = {"error": amounts.share(clauses["PROD WITHIN"].expressions[0], "PROD WITHIN")}
    if "PROD BETWEEN" in clauses:
        first, last = (part for part in clauses["PROD BETWEEN"].expressions if isinstance(part, Amount))
        given |= {"earliest": amounts.point(first, "PROD BETWEEN"), "latest": amounts.point(last, "PROD BETWEEN")}
    if "PROD SPEED" in clauses:
        given["speed"] = amounts.share(clauses["PROD SPEED"].expressions[0], "PROD SPEED")
    if "PROD CONFIDENCE" in clauses:
        given["confidence"] = amounts.share(clauses["PROD CONFIDENCE"].expressions[0], "PROD CONFIDENCE")
    return Earliness(**given)  # type: ignore[arg-type]


def needs_queue(query: Query, expensive: Collection[str]) -> bool:
    """Whether each of its rows goes through an expensive function.

    >>> from eventide.plan.declared.query import named_as
    >>> from eventide.plan.declared.window import Window
    >>> needs_queue(Query("q", "s", Window(10), named_as(n="count(*)"), where="foundIn(word, 'x')"), ["foundin"])
    True
    """
    if not expensive or isinstance(query.window, SameWindow):
        return False
    texts = (query.where, *(item.sql for item in (*query.select, *query.groups)))
    return any(calls(text, expensive) for text in texts)


def with_sideline(queue: Queue | None, query: Query, written: Sequence[Clause], source: SourceText) -> Queue:
    """The queue of a query as the clauses behind its SELECT say; they are about the clock, so lengths are of time."""
    if queue is None:
        raise source.error(
            f"SIDELINE is for rows that wait before an expensive function, and query {query.name!r} calls none",
            written[0],
            "leave it out, or declare the function it calls EXPENSIVE",
        )
    clauses = {str(clause.this): clause for clause in written}
    amounts = Amounts(source)
    one_in, within = clauses.get("SIDELINE ONE IN"), clauses.get("SIDELINE WITHIN")
    try:
        sideline = Sideline(
            None if one_in is None else amounts.count(one_in.expressions[0], "SIDELINE ONE IN", ("row", "rows")),
            None if within is None else amounts.length(within.expressions[0], "SIDELINE WITHIN"),
        )
        check_sideline(query)
        return replace(queue, sideline=sideline)
    except DeclarationError as error:
        if type(error) is not DeclarationError:
            raise
        raise source.error(str(error), written[0]) from error


def refuse_same_place(output: OutputTarget, others: Iterable[OutputTarget], tree: exp.Expr, source: SourceText) -> None:
    """Refuse that two queries write into one directory, topic or table."""
    for other in others:
        if output.path is not None and other.path == output.path:
            raise source.error(
                f"the query {other.query!r} writes into {output.path!r} already",
                tree,
                f"give each its own {PLACES[output.kind]}",
            )
