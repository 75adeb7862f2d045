"""Read CREATE BOUNDS: bounds between streams.

`CREATE BOUNDS (temp TRAILS pressure BY 5 s, temp.'s-1' TRAILS pressure BY 1 s, ...) TIMEOUT 10 s` says of streams, and
of single sources of streams, what `BOUNDS` says of the sources of one. A stream stands for all its sources, those that
are named themselves included; where only sources of it are named, rows of its other sources are rejected. The streams
have no policy of their own besides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from eventide.errors import DeclarationError
from eventide.eventtime.heartbeat import Policy
from eventide.eventtime.policies.skew.between_streams import BetweenStreams, Member
from eventide.eventtime.policies.skew.declared import DeclaredSkew
from eventide.eventtime.policies.wrappers.timeout import Timeout
from eventide.language.ddl.bounds import ALL, SkewClauses, T, is_all, silence
from eventide.language.ddl.create_stream import DeclaredStream
from eventide.language.ddl.warnings import POLICIES, about_bounds
from eventide.language.grammar.nodes import Amounts, CreateBounds
from eventide.language.grammar.source_text import SourceText
from eventide.language.grammar.spelling import meant
from eventide.plan.declared.common_time import check_shared
from eventide.plan.declared.stream import Stream, TimeKind, kind_of


@dataclass
class MemberClauses(SkewClauses):
    """Bounds between streams while they are read: names are streams, or sources of streams."""

    streams: Mapping[str, Stream] = field(default_factory=dict)
    members: dict[str, Member] = field(default_factory=dict)

    def _source(self, name: exp.Expr) -> str:
        if is_all(name):
            return ALL
        member = member_of(name, self.streams, self.amounts.source)
        self.members.setdefault(str(member), member)
        self.sources.setdefault(str(member), len(self.sources))
        return str(member)

    def _numbers(self, name: str) -> list[int]:
        if name == ALL or self.members[name].source is not None:
            return super()._numbers(name)
        stream = self.members[name].stream
        return [number for key, number in self.sources.items() if self.members[key].stream == stream]

    def _said_of(self, name: str, said: Mapping[str, T]) -> T | None:
        """What was said of a member, or else of its stream, or else of all."""
        return said.get(name, said.get(self.members[name].stream, said.get(ALL)))


def member_of(name: exp.Expr, streams: Mapping[str, Stream], source: SourceText) -> Member:
    """The stream, or the source of a stream, that is named; a stream of an interface has two words for a name."""
    parts = list(name.flatten()) if isinstance(name, exp.Dot) else [name]
    of_interface = "_".join(part.name for part in parts[:2]).lower()
    used = 2 if len(parts) > 1 and of_interface in streams else 1
    key = of_interface if used == 2 else parts[0].name.lower()
    if key not in streams:
        known = [stream.name for stream in streams.values()]
        raise source.error(f"there is no stream {parts[0].name!r}", parts[0], meant(parts[0].name, known))
    stream, rest = streams[key], parts[used:]
    if len(rest) > 1:
        raise source.error("expected a stream, or a stream and one source of it", rest[1])
    if rest and len(stream.source) != 1:
        names = "more than one column that names" if stream.source else "no column that names"
        raise source.error(
            f"a source of stream {stream.name!r} is named, and it has {names} them",
            rest[0],
            "write SOURCE BY and one column in CREATE STREAM",
        )
    return Member(stream.name, rest[0].name if rest else None)


def relate_streams(
    tree: CreateBounds, declared: Mapping[str, DeclaredStream], source: SourceText
) -> list[tuple[str, exp.Expr]]:
    """Let streams take their heartbeats from bounds between them; what is to be said about these, and where."""
    streams = {key: one.stream for key, one in declared.items()}
    named = [
        streams[member_of(name, streams, source).stream.lower()]
        for item in tree.expressions
        for name in (item.expressions[0], item.expressions[2] if item.this != "SOURCE" else item.expressions[0])
        if not is_all(name)
    ]
    if not named:
        raise source.error("these bounds name no stream", tree, "write temp TRAILS pressure BY 5 s, for example")
    for stream in named:
        _check_free(declared[stream.name.lower()], tree, source)
    first = named[0]
    try:
        for stream in named:
            check_shared(stream, first)
    except DeclarationError as error:
        raise source.error(str(error), tree) from error
    clock = Amounts(source, (first.arrival and kind_of(first.column(first.arrival))) or TimeKind.TIMESTAMP)
    reader = MemberClauses(Amounts(source, first.time_kind), clock, streams=streams)
    clauses = {clause.this: clause.expressions[0] for clause in tree.args.get("clauses") or ()}
    budget = reader.amounts.share(clauses["DRATIO"], "DRATIO") if "DRATIO" in clauses else None
    matrix, names = reader.read(tree, tree.expressions, budget)
    policy: Policy = DeclaredSkew(matrix)
    if "TIMEOUT" in clauses:
        policy = Timeout(policy, silence(clock, clauses["TIMEOUT"], "TIMEOUT"))
    members = tuple(reader.members[name] for name in names)
    for stream in named:
        one = declared[stream.name.lower()]
        own = BetweenStreams(policy, members, stream.name)
        one.stream, one.policy_of = replace(stream, policy=own, known=tuple(own.sources)), "CREATE BOUNDS"
    said = (*reader.unused, *about_bounds(matrix, names, isinstance(policy, Timeout)))
    return [(message, tree) for message in said]


def _check_free(declared: DeclaredStream, tree: CreateBounds, source: SourceText) -> None:
    """Refuse a stream of which something else says how its heartbeats are found."""
    own = next((f"{name} in CREATE STREAM" for name in POLICIES if name in declared.clauses), declared.policy_of)
    if own is not None:
        raise source.error(
            f"{own} says how stream {declared.stream.name!r} finds its heartbeats, and these bounds say it, too",
            tree,
            "leave out one of them",
        )
