"""Temporal attributes in words: which outputs carry time, and what a heartbeat says of them.

Law: after heartbeat h of what is read, no later row has a time of h or less; so an output that grows with time is at
least what it is for the instant after h, and one that falls with time at most that.

>>> from eventide.plan.declared.stream import columns
>>> packets = Stream("packets", columns("time BIGINT, len INT"), time="time")
>>> [told["after"] for told in attributes([("tb", "time div 60"), ("len", "len"), ("back", "-time")], packets)]
['tb >= (h + 1) DIV 60', 'back <= -(h + 1)']
>>> of_stream(packets)[0]["after"], is_same_in(Window(30), "time div 60", packets)
('time > h', True)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlglot import exp

from eventide.errors import DeclarationError
from eventide.plan.declared.stream import Derived, Stream
from eventide.plan.declared.temporal import in_plain_words
from eventide.plan.declared.time_columns import over_carrier
from eventide.plan.declared.window import Window
from eventide.plan.expressions.columns import quoted
from eventide.plan.expressions.parse import parsed
from eventide.plan.expressions.spark_dialect import SPARK


def attributes(outputs: Iterable[tuple[str, str]], stream: Stream, since: str | None = None) -> list[dict[str, Any]]:
    """Of these outputs over a stream, the ones that carry time; `h` is the heartbeat of the stream.

    `since` is the first instant that a later row may come from, by default the one after the heartbeat.
    """
    found = []
    for name, sql in outputs:
        try:
            carried = over_carrier(sql, stream)
        except DeclarationError:
            carried = None
        if carried is None:
            continue
        column, times = carried
        compares = ">=" if times.increasing else "<="
        found.append(
            {
                "name": name,
                "sql": sql,
                "direction": "increasing" if times.increasing else "decreasing",
                "after": f"{name} {compares} {_later(sql, column, stream, since)}".replace(">= h + 1", "> h"),
            }
        )
    return found


def of_stream(stream: Stream) -> list[dict[str, Any]]:
    """The attribute of a stream that carries time: its time column."""
    return attributes([(stream.time, quoted(stream.time))], stream) if stream.time is not None else []


def is_same_in(window: Window, sql: str, stream: Stream) -> bool:
    """Whether an output over a stream is the same all through each window."""
    found = over_carrier(sql, stream)
    bucket = found[1].bucket if found is not None else None
    if bucket is None or window.slide < window.range:
        return False
    return bucket.width % window.slide == 0 and (bucket.offset - window.offset) % window.slide == 0


def _later(sql: str, column: str, stream: Stream, since: str | None) -> str:
    """The expression for the first instant after the heartbeat; over results, for the least later value of a column."""
    after = exp.column(since, quoted=True) if since is not None else exp.column("h") + exp.Literal.number(1)
    least = exp.Paren(this=after)
    told = exp.column(f"least {column}", quoted=True) if isinstance(stream, Derived) else least
    root = exp.Paren(this=in_plain_words(parsed(sql, "an output")))
    for node in list(root.find_all(exp.Column)):
        node.replace(told.copy())
    inner: exp.Expr = root.this
    inner = inner.this if isinstance(inner, exp.Paren) else inner
    return str(inner.sql(SPARK)).replace("`", "")
