"""When a query is asked for early answers: `PROD EVERY 1 second`, `PROD AT 75 %, 90 %`, `PROD WITHIN 2 % ERROR`.

Law: the clauses stand behind the SELECT, in any order. BETWEEN says between which points of the slide the point of
WITHIN may be, SPEED how far a window without any error moves it; neither means anything without WITHIN. ESTIMATE asks
for sums and counts extrapolated, beside their raw values, and means nothing without a prod.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from eventide.errors import DeclarationError
from eventide.eventtime.earliness import Earliness
from eventide.language.amounts import Amounts
from eventide.language.nodes import Amount, Clause
from eventide.language.source_text import SourceText
from eventide.plan.prods import Prods
from eventide.plan.query import Query
from eventide.plan.stream import TimeKind


def with_prods(query: Query, written: Sequence[Clause], source: SourceText, kind: TimeKind) -> Query:
    """The query with the prods that the clauses behind its SELECT ask for; `kind` is that of its streams' times."""
    if not written:
        return query
    clauses = {str(clause.this): clause for clause in written}
    amounts = Amounts(source, kind)
    for word, needs in (("PROD BETWEEN", "PROD WITHIN"), ("PROD SPEED", "PROD WITHIN")):
        if word in clauses and needs not in clauses:
            raise source.error(f"{word} without {needs}", clauses[word], "write PROD WITHIN 2 % ERROR")
    if "ESTIMATE" in clauses and len(clauses) == 1:
        raise source.error("ESTIMATE without PROD", clauses["ESTIMATE"], "write PROD AT 75 % ESTIMATE")
    try:
        every = clauses.get("PROD EVERY")
        at = clauses.get("PROD AT")
        prods = Prods(
            every=None if every is None else amounts.length(every.expressions[0], "PROD EVERY"),
            points=() if at is None else tuple(amounts.point(amount, "PROD AT") for amount in at.expressions),
            within=_within(clauses, amounts),
            estimate="ESTIMATE" in clauses,
        )
        return replace(query, prods=prods)
    except DeclarationError as error:
        if type(error) is not DeclarationError:
            raise
        raise source.error(str(error), written[0]) from error


def _within(clauses: dict[str, Clause], amounts: Amounts) -> Earliness | None:
    if "PROD WITHIN" not in clauses:
        return None
    given: dict[str, float] = {"error": amounts.share(clauses["PROD WITHIN"].expressions[0], "PROD WITHIN")}
    if "PROD BETWEEN" in clauses:
        first, last = (part for part in clauses["PROD BETWEEN"].expressions if isinstance(part, Amount))
        given |= {"earliest": amounts.point(first, "PROD BETWEEN"), "latest": amounts.point(last, "PROD BETWEEN")}
    if "PROD SPEED" in clauses:
        given["speed"] = amounts.share(clauses["PROD SPEED"].expressions[0], "PROD SPEED")
    return Earliness(**given)  # type: ignore[arg-type]
