"""The policy that the window of a query names for its stream.

Law: SLACK, DRATIO and ESTIMATOR in a window say how the heartbeats of the stream are found. Two queries, or a query
and the stream itself, that say different things of one stream are refused.
"""

from __future__ import annotations

from eventide.language.create_stream import DeclaredStream, StreamReader
from eventide.language.grammar.nodes import IN_WINDOWS, Clause
from eventide.language.grammar.source_text import SourceText


def set_policy(declared: DeclaredStream, query: str, asked: dict[str, Clause], source: SourceText) -> None:
    """Let a stream find its heartbeats as the window of a query says."""
    reader = StreamReader(source)
    first = next(iter(asked.values()))
    before = declared.stream.policy
    policy_of = declared.policy_of or ("the stream" if set(IN_WINDOWS) & declared.clauses.keys() else None)
    if policy_of is None:
        reader.with_policy(declared, {**declared.clauses, **asked})
    else:
        kept = {name: clause for name, clause in declared.clauses.items() if name not in IN_WINDOWS}
        reader.with_policy(declared, {**kept, **asked})
        if declared.stream.policy != before:
            raise source.error(
                f"{policy_of} says something else of how stream {declared.stream.name!r} finds its heartbeats",
                first,
                "a stream has one policy: say it once, in CREATE STREAM",
            )
    declared.policy_of = f"query {query!r}"
