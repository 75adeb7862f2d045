"""The statements of a script, taken one after the other into one program.

Law: a statement sees what stands before it. Names are the same whatever their capital letters, and a stream and a
query never share one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from eventide.errors import DeclarationError, LanguageError
from eventide.eventtime.policies.drop_ratio.policy import DropRatio
from eventide.language.ddl.controllers import Controllers
from eventide.language.ddl.create_alert import alert_of, refuse_watched
from eventide.language.ddl.create_function import Function, function_of
from eventide.language.ddl.create_stream import DeclaredStream, OutputTarget, StreamReader, name_of, output_of
from eventide.language.ddl.stream_bounds import relate_streams
from eventide.language.ddl.warnings import Warning, about_operator, about_policy, about_query, about_stream, warning_at
from eventide.language.from_clause.from_clause import FromReader, Interfaces
from eventide.language.grammar.clause_words import PROD_CLAUSES, QUEUE_CLAUSES, STATE_CLAUSES
from eventide.language.grammar.nodes import (
    Clause,
    CreateAlert,
    CreateBounds,
    CreateFunction,
    CreateInterfaces,
    CreateQuery,
    CreateStream,
    Order,
)
from eventide.language.grammar.source_text import (
    AlertStatement,
    BoundsStatement,
    DropStatement,
    ExplainStatement,
    FunctionStatement,
    InterfaceStatement,
    QueryStatement,
    ScriptStatement,
    SetStatement,
    ShowStatement,
    SourceText,
    StatementTokens,
    StreamStatement,
)
from eventide.language.grammar.spelling import meant
from eventide.language.scope.expression_text import in_spark_words, unused
from eventide.language.scope.scope import Clock, Scope, ScopeRelation
from eventide.language.scope.state_clauses import StateRequest
from eventide.language.select.aggregate_query import QueryReader
from eventide.language.select.over import OverReader, looks_around, over_results, windows_of
from eventide.language.select.query_clauses import (
    ScriptContext,
    needs_queue,
    refuse_same_place,
    with_prods,
    with_sideline,
)
from eventide.language.select.row_query import BY_TIME, RowsReader, UnionReader, by_time_alone, gives_rows
from eventide.language.select.rows_of_groups import rewritten
from eventide.plan.binding import through
from eventide.plan.declared.alert import AlertRule
from eventide.plan.declared.program import NAME, Operator, Program, Step, reads, streams_below
from eventide.plan.declared.query import Query
from eventide.plan.declared.rows import Queue, queued
from eventide.plan.declared.stream import Stream, TimeKind
from eventide.plan.expressions.columns import Column

BY_SOURCE = "CLOSE BY SOURCE"
AT_ONCE = "EMIT IMMEDIATELY"
"""Rows in the round in which they come, not in the order of time."""


@dataclass
class Builder:
    """The program that the statements so far declare."""

    source: SourceText
    streams: dict[str, DeclaredStream] = field(default_factory=dict)
    queries: dict[str, ScopeRelation] = field(default_factory=dict)
    outputs: dict[str, OutputTarget] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    interfaces: Interfaces = field(default_factory=Interfaces)
    alerts: dict[str, AlertRule] = field(default_factory=dict)
    bare: int = 0
    controllers: Controllers = field(init=False)
    about_bounds: list[tuple[str, exp.Expr]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.controllers = Controllers(self.source, self.streams)

    def know(self, streams: Iterable[Stream]) -> None:
        """Add streams that were declared elsewhere; a policy of their own stays what it is."""
        for stream in streams:
            own = None if stream.policy == DropRatio(0.01) else "its declaration"
            self.streams[stream.name.lower()] = DeclaredStream(stream, {}, None, own)

    def take(self, tree: exp.Expr, piece: StatementTokens) -> ScriptStatement:
        """Do what a statement says."""
        if isinstance(tree, CreateStream):
            return StreamStatement(piece.place, piece.text, self._stream(tree))
        if isinstance(tree, CreateQuery):
            return QueryStatement(piece.place, piece.text, self._query(tree), tree.this is not None)
        if isinstance(tree, CreateFunction):
            return FunctionStatement(piece.place, piece.text, self._function(tree))
        if isinstance(tree, CreateBounds):
            self.about_bounds += relate_streams(tree, self.streams, self.source)
            return BoundsStatement(piece.place, piece.text)
        if isinstance(tree, CreateInterfaces):
            return InterfaceStatement(piece.place, piece.text, self.interfaces.declare(tree, self.streams, self.source))
        if isinstance(tree, CreateAlert):
            return AlertStatement(piece.place, piece.text, self._alert(tree))
        if isinstance(tree, Order):
            return self._order(tree, piece)
        raise self.source.error("this statement cannot be read", piece.offset)

    def program(self) -> Program:
        """The streams and queries."""
        return self._program(self.streams, self.queries)

    def _program(self, streams: Iterable[str], queries: Iterable[str]) -> Program:
        steps = [self.queries[key].query for key in queries]
        declared = (*(self.streams[key] for key in streams), *self.controllers.read_by(steps))
        return Program(
            tuple(one.stream for one in declared),
            tuple(step for step in steps if isinstance(step, Query)),
            tuple(step for step in steps if not isinstance(step, Query)),
        )

    def part(self, name: str) -> Program:
        """A query and all that it reads: the rest was checked when it was taken in."""
        seen, waiting = dict[str, None](), [name.lower()]
        while waiting:
            if (one := waiting.pop()) not in seen:
                seen[one] = None
                waiting += sorted(_read_by(self.queries[one])) if one in self.queries else ()
        below = list(dict.fromkeys(map(self.controllers.rows_of, reversed(seen))))
        return self._program(
            [key for key in below if key in self.streams], [key for key in below if key in self.queries]
        )

    def warnings(self) -> tuple[Warning, ...]:
        """The warnings about the whole script."""
        read = {self.controllers.rows_of(key) for known in self.queries.values() for key in _read_by(known)}
        found = [warning for key, one in self.streams.items() for warning in about_stream(one, key in read)]
        twins = self.controllers.read_by(known.query for known in self.queries.values())
        found += [warning for twin in twins for warning in about_policy(twin)]
        streams = {one.stream.name.lower(): one.stream for one in (*self.streams.values(), *twins)}
        for known in self.queries.values():
            if isinstance(known.query, Query):
                found += about_query(known.query, known.tree)
            else:
                found += about_operator(known.query, known.tree, streams)
        said = (warning_at(*warning, self.source) for warning in (*found, *self.about_bounds))
        return tuple(sorted(said, key=lambda w: (w.line, w.column)))

    def _stream(self, tree: CreateStream) -> str:
        name = name_of(tree.this)
        self._new(name, tree.this, "stream")
        self.streams[name.lower()] = StreamReader(self.source).read(tree)
        return name

    def _query(self, tree: CreateQuery) -> str:
        if tree.this is None:
            self.bare += 1
            while f"query_{self.bare}" in self.queries or f"query_{self.bare}" in self.streams:
                self.bare += 1
        name = tree.this.name if tree.this is not None else f"query_{self.bare}"
        self._new(name, tree.this or tree, "query")
        clauses = tree.args.get("into") or []
        by_source = next((clause for clause in clauses if clause.this == BY_SOURCE), None)
        asked = [clause for clause in clauses if clause.this in PROD_CLAUSES]
        aside = [clause for clause in clauses if clause.this in QUEUE_CLAUSES]
        others = {**PROD_CLAUSES, **QUEUE_CLAUSES, **STATE_CLAUSES, BY_SOURCE: ()}
        output_clauses = [clause for clause in clauses if clause.this not in others]
        output = output_of(name, output_clauses, self.source)
        refuse_same_place(output, self.outputs.values(), tree, self.source)
        at_once = next((clause for clause in clauses if clause.this == AT_ONCE), None)
        state = StateRequest.of(clauses, self.source)
        known = self._compiled(name, tree.expression, {}, state, ordered=at_once is None)
        known = self.queries[name.lower()] = replace(known, query=state.settled(known.query))
        waits = "a window is emitted when it is over" if known.operator is None else "OVER waits for those before them"
        if at_once is not None and (known.operator is None or looks_around(tree.expression)):
            raise self.source.error(f"{AT_ONCE} is for rows, and {waits}", at_once, "leave it out")
        by_time = next((clause for clause in clauses if clause.this == BY_TIME), None)
        if by_time is not None:
            self.queries[name.lower()] = replace(known, query=by_time_alone(known.query, by_time, self.source))
        if by_source is not None:
            self._close_by_source(name, by_source)
        if asked:
            self._prod(name, asked)
        if aside:
            self._sideline(name, aside)
        self.outputs[name.lower()] = output
        return name

    def _compiled(
        self,
        name: str,
        tree: exp.Expr,
        above: Mapping[str, exp.Expr],
        state: StateRequest,
        hidden: bool = False,
        ordered: bool = True,
    ) -> ScopeRelation:
        """Take a SELECT in under a name, and those below it under names made of it."""

        def made(below: exp.Expr, around: Mapping[str, exp.Expr]) -> ScopeRelation:
            # Whoever reads rows needs no order: a window and a join find their own, and a merge makes one.
            return self._compiled(self._free(f"{name}_below"), below, around, state, hidden=True, ordered=False)

        def hide(operator: Operator, columns: tuple[Column, ...], clock: Clock, at: exp.Expr) -> ScopeRelation:
            one = replace(operator, name=self._free(operator.name or f"{name}_below"))
            return self._take_in(ScopeRelation(one, at, columns, clock, hidden=True))

        origin = FromReader(self.source, self.streams, self.queries, made, hide, self.interfaces, state)
        tree = tree.transform(in_spark_words)
        while isinstance(tree, exp.Subquery | exp.Paren):
            tree = tree.this
        if isinstance(tree, exp.Select):
            tree = rewritten(tree, self.source, self.streams)
        step: Step
        if isinstance(tree, exp.SetOperation):
            step, columns, clock = UnionReader(self.source, origin).read(name, tree, above, ordered)
            return self._take_in(ScopeRelation(step, tree, columns, clock, hidden))
        of_rows = isinstance(tree, exp.Select) and gives_rows(tree)
        if isinstance(tree, exp.Select) and not of_rows and windows_of(tree):
            tree, of_rows = over_results(tree, self.source), True
        select, level = origin.read(tree, above)
        self.controllers.settle(level, name, (*self.queries, *self.streams))
        if of_rows and looks_around(select):
            step, columns, clock = OverReader(self.source, origin).read(name, select, level, ordered)
        elif of_rows:
            step, columns, clock = RowsReader(self.source, origin).read(name, select, level, ordered)
        else:
            level = origin.settled(level, tree)
            step, columns, clock = QueryReader(self.source, origin).read(name, select, level)
            step = self._queued(step, tree, level)
        return self._take_in(ScopeRelation(step, tree, columns, clock, hidden))

    def _queued(self, query: Query, tree: exp.Expr, level: Scope) -> Query:
        """The query, behind a queue where it calls an expensive function."""
        expensive = [function.name for function in self.functions.values() if function.expensive]
        if not needs_queue(query, expensive):
            return query
        name = self._free(f"{query.name}_queue")
        queue, query = queued(query, through(self.part(level.stream.name), query), name, expensive)
        self._take_in(ScopeRelation(queue, tree, tuple(level.stream.columns), level.clock, hidden=True))
        return query

    def _sideline(self, name: str, aside: list[Clause]) -> None:
        """Let bursts be set aside that wait before a query."""
        known = self.queries[name.lower()]
        if not isinstance(known.query, Query):
            raise self.source.error("SIDELINE is for windows, and these are rows", aside[0], "leave it out")
        below = self.queries.get(known.query.stream.lower())
        queue = below.query if below is not None and isinstance(below.query, Queue) else None
        made = with_sideline(queue, known.query, aside, self.source)
        assert below is not None
        self.queries[made.name.lower()] = replace(below, query=made)

    def _take_in(self, known: ScopeRelation) -> ScopeRelation:
        self.queries[known.query.name.lower()] = known
        # What does not fit together is an error at this statement.
        self.part(known.query.name)
        return known

    def _close_by_source(self, name: str, clause: Clause) -> None:
        """Let the groups of a query close with their own sources."""
        known = self.queries[name.lower()]
        if not isinstance(known.query, Query):
            raise self.source.error("CLOSE BY SOURCE is for windows, and these are rows", clause, "leave it out")
        if (reason := self.part(name).not_by_source(known.query)) is not None:
            raise self.source.error(f"query {name!r} cannot close by source: {reason}", clause)
        self.queries[name.lower()] = replace(known, query=replace(known.query, by_source=True))

    def _prod(self, name: str, asked: list[Clause]) -> None:
        """Let a query tell early answers, too."""
        known = self.queries[name.lower()]
        if not isinstance(known.query, Query):
            raise self.source.error("PROD is for windows, and these are rows", asked[0], "leave it out")
        part = self.part(name)
        names_below = streams_below(part, known.query.name)
        below = [stream for stream in part.streams if stream.name in names_below]
        sequences = {stream.time_kind is TimeKind.SEQUENCE for stream in below}
        kind = TimeKind.SEQUENCE if sequences == {True} else TimeKind.TIMESTAMP
        names = {key: declared.stream.name for key, declared in self.streams.items()}
        prodded = any(stream.prods is not None for stream in below)
        around = ScriptContext(names, {key: one.name for key, one in self.functions.items()}, prodded)
        query = with_prods(known.query, asked, self.source, kind, around)
        self.queries[name.lower()] = replace(known, query=query)
        try:
            self.part(name)
        except LanguageError:
            raise
        except DeclarationError as error:
            at = next((clause for clause in asked if clause.this == "PROD BY"), asked[0])
            raise self.source.error(str(error), at) from error

    def _free(self, name: str) -> str:
        return unused(name, (*self.queries, *self.streams))

    def _function(self, tree: CreateFunction) -> str:
        found = function_of(tree, self.functions, self.source)
        self.functions[found.name.lower()] = found
        return found.name

    def _alert(self, tree: CreateAlert) -> str:
        streams = {key: one.stream for key, one in {**self.streams, **self.controllers.twins}.items()}
        found = alert_of(tree, self.alerts, streams, self.queries, self.source)
        self.alerts[found.name.lower()] = found
        return found.name

    def _order(self, tree: Order, piece: StatementTokens) -> ScriptStatement:
        verb = tree.this
        if verb == "SHOW":
            return ShowStatement(piece.place, piece.text, tree.args["kind"].lower())
        if verb == "SET":
            key, value = tree.args["kind"], tree.args["value"]
            self.settings[key] = value
            return SetStatement(piece.place, piece.text, key, value)
        if verb == "EXPLAIN":
            if isinstance(tree.expression, CreateQuery):
                return ExplainStatement(piece.place, piece.text, self._query(tree.expression))
            known = self.queries[self._known(tree.expression, "query")]
            return ExplainStatement(piece.place, piece.text, known.query.name)
        kind = tree.args["kind"].lower()
        name = name_of(tree.expression)
        key = self._known(tree.expression, kind)
        self._check_unread(key, tree)
        if kind == "query":
            del self.outputs[key], self.queries[key]
            self.forget_unread()
        else:
            del self.streams[key]
        return DropStatement(piece.place, piece.text, kind, name)

    def _check_unread(self, key: str, tree: Order) -> None:
        read = {key, *(twin for twin in self.controllers.twins if self.controllers.rows_of(twin) == key)}
        # Operators that were put in go by the name of the query that needed them.
        while hidden := {k for k in self._hidden - read if read & _read_by(self.queries[k])}:
            read |= hidden
        refuse_watched(key, self.alerts.values(), tree, self.source)
        readers = [known.query.name for known in self.queries.values() if not known.hidden and read & _read_by(known)]
        if readers:
            raise self.source.error(
                f"the query {readers[0]!r} reads it", tree.expression, f"DROP QUERY {readers[0]} before"
            )

    @property
    def _hidden(self) -> set[str]:
        """The queries that were made of sub-queries."""
        return {key for key, known in self.queries.items() if known.hidden}

    def forget_unread(self) -> None:
        """Take out what was made for a query that is gone."""
        while unread := {k for k in self._hidden if not any(k in _read_by(known) for known in self.queries.values())}:
            for key in unread:
                del self.queries[key]

    def _known(self, node: exp.Expr, kind: str) -> str:
        name = name_of(node) if isinstance(node, exp.Table) else str(node.name)
        there: Iterable[str] = self.outputs if kind == "query" else self.streams
        if name.lower() not in there:
            names = [known.query.name for known in self.queries.values() if not known.hidden]
            known = names if kind == "query" else [d.stream.name for d in self.streams.values()]
            raise self.source.error(f"there is no {kind} {name!r}", node, meant(name, known))
        return name.lower()

    def _new(self, name: str, node: exp.Expr, kind: str) -> None:
        if not NAME.fullmatch(name):
            raise self.source.error(
                f"{name!r} cannot name a {kind}", node, "use letters, digits and underscores, a letter first"
            )
        for other, there in (("stream", self.streams.keys()), ("query", self.queries.keys())):
            if name.lower() in there:
                raise self.source.error(f"there is already a {other} {name!r}", node, "choose another name")


def _read_by(known: ScopeRelation) -> set[str]:
    """What a query or operator reads, or is prodded by, in small letters."""
    return {name.lower() for name in (*reads(known.query), *_asks(known))}


def _asks(known: ScopeRelation) -> tuple[str, ...]:
    """The stream whose rows prod a query."""
    prods = known.query.prods if isinstance(known.query, Query) else None
    return () if prods is None or prods.by is None else (prods.by,)
