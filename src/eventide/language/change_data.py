"""The columns of change data: those of a table, and what each change has beside them.

>>> columns_of_changes((("path", "in"),), {}, (), SourceText(""))
()
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from eventide.language.grammar.nodes import Clause
from eventide.language.grammar.source_text import SourceText
from eventide.plan.declared.stream import CHANGED_AT, ENVELOPE, REMOVED
from eventide.plan.expressions.columns import Column

KNOWN = "debezium"
FORMATS = ("json", "kafka")


def columns_of_changes(
    options: Iterable[tuple[str, str]], clauses: Mapping[str, Clause], columns: Iterable[Column], source: SourceText
) -> tuple[Column, ...]:
    """The columns that change data has beside those of its table, the time first; none for other streams."""
    envelope = next((value for name, value in options if name.lower() == ENVELOPE), None)
    if envelope is None:
        return ()
    if envelope.lower() != KNOWN:
        raise source.error(f"there is no envelope {envelope!r}", clauses["OPTIONS"], f"write envelope '{KNOWN}'")
    origin = clauses.get("FROM") or clauses.get("USING")
    if origin is not None and origin.expressions[0].name.lower() not in FORMATS:
        raise source.error(
            "messages of change data come from Kafka or from files of JSON", origin, "write FROM kafka, or FROM json"
        )
    for column in columns:
        if column.name.lower() in (CHANGED_AT, REMOVED):
            raise source.error(f"a change has a column {column.name!r} of its own", clauses["OPTIONS"], "leave it out")
    return Column(CHANGED_AT, "TIMESTAMP"), Column(REMOVED, "BOOLEAN")
