"""Gigascope's interfaces: one protocol seen in several places, merged by the planner (Gigascope paper, section 3).

Laws. `main1.DataProtocol` is one stream. `[both].DataProtocol`, with `CREATE INTERFACE SET both AS main0, main1`, is
the merge of those of the interfaces that have it; `DataProtocol` alone, where no stream has just that name, is the
merge of all that are declared so far. The streams of a merge have the same columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from eventide.language.common_time import common_clock
from eventide.language.known import Clock, Hide, Known
from eventide.language.nearest import meant
from eventide.language.source_text import SourceText
from eventide.language.streams import Declared, name_of
from eventide.plan.declared.rows import Rows


@dataclass
class Interfaces:
    """The sets of interfaces that were declared: their names, and their members in small letters."""

    sets: dict[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)

    def declare(self, tree: exp.Expr, streams: Mapping[str, Declared], source: SourceText) -> str:
        """Take in `CREATE INTERFACE SET name AS a, b`."""
        name, members = tree.this, tree.expressions
        if name.name.lower() in self.sets:
            raise source.error(f"there is already an interface set {name.name!r}", name, "choose another name")
        known = {interface for one in streams.values() if (interface := interface_of(one)) is not None}
        if name.name.lower() in known:
            raise source.error(f"there is already an interface {name.name!r}", name, "choose another name")
        found: list[str] = []
        for member in members:
            for one in (
                self.sets[member.name.lower()][1] if member.name.lower() in self.sets else (member.name.lower(),)
            ):
                if member.name.lower() not in self.sets and one not in known:
                    raise source.error(
                        f"there is no interface {member.name!r}",
                        member,
                        meant(member.name, sorted(known))
                        or f"declare a stream of it before: CREATE STREAM {member.name}.P",
                    )
                if one not in found:
                    found.append(one)
        self.sets[name.name.lower()] = (name.name, tuple(found))
        return str(name.name)

    def members(self, table: exp.Table, streams: Mapping[str, Declared], source: SourceText) -> list[Declared]:
        """The streams that a name stands for, beside one of just that name."""
        protocol, interface = table.name.lower(), table.db.lower()
        if interface and interface not in self.sets:
            return []
        wanted = self.sets[interface][1] if interface else None
        found = [
            one
            for one in streams.values()
            if one.tree is not None
            and one.tree.this.name.lower() == protocol
            and (mine := interface_of(one)) is not None
            and (wanted is None or mine in wanted)
        ]
        if interface and not found:
            raise source.error(
                f"no interface of {self.sets[interface][0]!r} has a stream {table.name!r}",
                table,
                f"its interfaces are {', '.join(self.sets[interface][1])}",
            )
        return found

    def merged(
        self, table: exp.Table, members: list[Declared], queries: Mapping[str, Known], hide: Hide, source: SourceText
    ) -> Known:
        """The merge of these streams, made once for all queries that read it."""
        names = tuple(one.stream.name for one in members)
        for known in queries.values():
            if known.hidden and isinstance(known.query, Rows) and known.query.is_plain and known.query.inputs == names:
                return known
        first = members[0].stream
        for other in members[1:]:
            for mine, theirs in zip(first.columns, other.stream.columns, strict=False):
                if (mine.name.lower(), mine.type) != (theirs.name.lower(), theirs.type):
                    raise source.error(
                        f"{spoken(other)} has {theirs.name} {theirs.type} where {spoken(members[0])} has "
                        f"{mine.name} {mine.type}, so they cannot be merged",
                        table,
                        "declare the same columns for every interface, or name the one you mean",
                    )
            if len(first.columns) != len(other.stream.columns):
                raise source.error(
                    f"{spoken(other)} has {len(other.stream.columns)} columns and {spoken(members[0])} has "
                    f"{len(first.columns)}, so they cannot be merged",
                    table,
                    "declare the same columns for every interface, or name the one you mean",
                )
        clock = common_clock([Clock.of_stream(one.stream) for one in members], table, source)
        return hide(Rows(name_of(table), names, ordered=False), first.columns, clock, table)


def interface_of(declared: Declared) -> str | None:
    """The interface that a stream was declared for, in small letters."""
    return declared.tree.this.db.lower() or None if declared.tree is not None else None


def spoken(declared: Declared) -> str:
    """The name of a stream as it was declared."""
    if declared.tree is None or not declared.tree.this.db:
        return declared.stream.name
    return f"{declared.tree.this.db}.{declared.tree.this.name}"
