"""The controller of a query: what the window of a query says of heartbeats, for this query and no other.

Law: each query that says SLACK, DRATIO or ESTIMATOR in its window goes by heartbeats of that policy, over the one
reading of its stream (Kim et al., section 4). Where the stream says nothing itself, the first query that does says it
for the stream, and for all who say nothing; every other policy makes a *twin* of the stream: the same rows under a
policy of its own. Queries with the same policy share a twin. WATTR may name any column of the stream that tells a time:
its rows then go by that, under the policy of the window or the usual one, for what the stream says is said of its own
time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from eventide.errors import DeclarationError
from eventide.language.ddl.create_stream import DeclaredStream, StreamReader
from eventide.language.ddl.policies import POLICIES
from eventide.language.grammar.nodes import IN_WINDOWS, Amount, Clause
from eventide.language.grammar.source_text import SourceText
from eventide.language.scope.expression_text import unused
from eventide.language.scope.scope import Clock, Scope
from eventide.plan.declared.program import Step, reads
from eventide.plan.declared.stream import Stream, kind_of

OF_ITS_TIME = (*POLICIES, *IN_WINDOWS, "GROUPED INTO", "GROUPED", "CLOCK UNIT")
"""The clauses of a stream that say how its time is found; the others are of its sources and their silences."""


@dataclass
class Controllers:
    """The twins of streams that the queries of a script have asked for, by name in small letters."""

    source: SourceText
    streams: Mapping[str, DeclaredStream]
    twins: dict[str, DeclaredStream] = field(default_factory=dict)

    def read_by(self, steps: Iterable[Step]) -> list[DeclaredStream]:
        """The twins that some queries and operators read: those of a query that was dropped are gone."""
        wanted = {read.lower() for step in steps for read in reads(step)}
        return [twin for key, twin in self.twins.items() if key in wanted]

    def rows_of(self, key: str) -> str:
        """The stream whose rows a stream has, both in small letters."""
        return self.twins[key].stream.rows_of.lower() if key in self.twins else key

    def settle(self, level: Scope, query: str, used: Iterable[str]) -> None:
        """Let a query read the stream, or the twin of it, that goes as its window says; `used` are names."""
        clauses = {str(one.this): one for one in level.window.expressions} if level.window is not None else {}
        asked = {name: clause for name, clause in clauses.items() if name in IN_WINDOWS}
        if level.below is not None or level.pending is not None:
            self._refuse(asked, level)
            return
        declared = self.streams[level.stream.name.lower()]
        wattr = clauses.get("WATTR")
        time = None if wattr is None else _other_time(wattr, level)
        if time is not None and wattr is not None:
            level.stream = self._by_other_time(declared, time, wattr, asked, used).stream
            level.clock = Clock.of_stream(level.stream)
        elif asked:
            level.stream = self._of_policy(declared, query, asked, used).stream

    def _refuse(self, asked: Mapping[str, Clause], level: Scope) -> None:
        first = next(iter(asked.values()), None)
        if first is None:
            return
        what = "the query" if level.over_query is not None else "several streams"
        named = f" {level.stream.name!r}" if level.over_query is not None else ""
        raise self.source.error(
            f"{first.this} is for a stream, and this reads {what}{named}",
            first,
            "results of a query are never late" if level.over_query is not None else "say it in CREATE STREAM",
        )

    def _of_policy(
        self, declared: DeclaredStream, query: str, asked: dict[str, Clause], used: Iterable[str]
    ) -> DeclaredStream:
        """Who goes by the policy that is asked for: the stream, where it says so or says nothing, or a twin."""
        reader, says_it = StreamReader(self.source), set(OF_ITS_TIME) & declared.clauses.keys()
        if declared.policy_of is None and not says_it:
            reader.with_policy(declared, {**declared.clauses, **asked})
            declared.policy_of = f"query {query!r}"
            return declared
        wanted = self._with_policy(declared.stream, declared, asked)
        if wanted.stream.policy == declared.stream.policy:
            return declared
        return self._twin(declared, wanted, None, asked, used)

    def _by_other_time(
        self, declared: DeclaredStream, time: str, wattr: Clause, asked: dict[str, Clause], used: Iterable[str]
    ) -> DeclaredStream:
        try:
            by_time = declared.stream.twin(declared.stream.name, declared.stream.policy, time=time)
        except DeclarationError as error:
            raise self.source.error(str(error), wattr) from error
        return self._twin(declared, self._with_policy(by_time, declared, asked), time, asked, used)

    def _with_policy(self, stream: Stream, declared: DeclaredStream, asked: dict[str, Clause]) -> DeclaredStream:
        """A stream under the policy of a window, with what its declaration says of its sources."""
        kept = {name: clause for name, clause in declared.clauses.items() if name not in OF_ITS_TIME}
        own = DeclaredStream(stream, kept | asked, declared.tree)
        return StreamReader(self.source).with_policy(own, own.clauses)

    def _twin(
        self,
        declared: DeclaredStream,
        wanted: DeclaredStream,
        time: str | None,
        asked: Mapping[str, Clause],
        used: Iterable[str],
    ) -> DeclaredStream:
        """The twin that is like this, made once for all queries that want it."""
        stream = declared.stream
        policy, known = wanted.stream.policy, wanted.stream.known
        for twin in self.twins.values():
            like = (twin.stream.rows_of, twin.stream.policy, twin.stream.known, twin.stream.time)
            if like == (stream.name, policy, known, time or stream.time):
                return twin
        name = unused("_".join([stream.name, *_spoken(time, asked)]), (*used, *self.twins))
        try:
            made = stream.twin(name, policy, known, time)
        except DeclarationError as error:
            raise self.source.error(str(error), next(iter(asked.values()), None)) from error
        found = self.twins[name.lower()] = replace(wanted, stream=made)
        return found


def _other_time(wattr: Clause, level: Scope) -> str | None:
    """The column of the stream that windows are to go by, where it is another one than that of its time."""
    name = wattr.expressions[0].name.lower()
    if name in level.times or name not in level.columns:
        return None
    inner = level.columns[name][1].unnest()
    if not isinstance(inner, exp.Column):
        return None
    column = next((c for c in level.stream.columns if c.name.lower() == inner.name.lower()), None)
    return None if column is None or kind_of(column) is None else column.name


def _spoken(time: str | None, asked: Mapping[str, Clause]) -> Iterable[str]:
    """What makes a twin another one, as parts of a name: `DRATIO 0.5% SLACK 20` gives `dratio_0_5` and `slack_20`."""
    if time is not None:
        yield time
    for name in sorted(asked):
        said = asked[name].expressions[0]
        words = said.sql() if isinstance(said, Amount) else said.name
        yield "_".join("".join(sign if sign.isalnum() else " " for sign in f"{name} {words}").lower().split())
