"""FROM with several inputs: joins from left to right, each of two inputs, what belongs together found in ON and WHERE.

Laws. Three and more inputs are joins of joins: all but the last are operators of their own, hidden. A condition of
WHERE goes into the first join that knows all its columns, where that cannot change the answer: into an inner join above
which no right or full outer join stands. What is said of one side of an inner join is said before rows are joined. A
join that relates no times of its two sides has pairs that are at most as far apart as STATE TTL says. Without, it is
refused: it could never let go of a row (Gigascope paper, section 5.5).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from eventide.language.from_clause.join_conditions import take_apart
from eventide.language.from_clause.join_forms import (
    BY_WINDOW,
    LookupReader,
    band_of_life,
    check_same_windows,
    version_of,
    window_band,
)
from eventide.language.from_clause.join_scope import (
    called,
    endless,
    joined_output,
    kind_of,
    of_unknown_length,
    one_sided,
    see,
    unrelated,
)
from eventide.language.from_clause.join_times import JoinInput, bare
from eventide.language.grammar.source_text import SourceText
from eventide.language.scope.expression_text import all_of, column_of, conjuncts, spark_text, unused
from eventide.language.scope.scope import (
    Clock,
    Hide,
    NamedInput,
    Pending,
    Resolver,
    Scope,
    ScopeRelation,
    is_lambda_name,
    over,
    place_of,
)
from eventide.language.scope.state_clauses import StateRequest
from eventide.plan.declared.join import Join, JoinKind, Lookup, Side
from eventide.plan.expressions.parse import aggregates_in

GIGASCOPE = {
    "INNER_JOIN": JoinKind.INNER,
    "LEFT_OUTER_JOIN": JoinKind.LEFT,
    "RIGHT_OUTER_JOIN": JoinKind.RIGHT,
    "OUTER_JOIN": JoinKind.FULL,
}


@dataclass
class JoinStep:
    """One more input: how it is joined, and what must hold."""

    node: exp.Expr
    kind: JoinKind
    input: NamedInput
    level: Scope
    on: list[exp.Expr]
    using: list[exp.Identifier]


@dataclass(frozen=True)
class JoinReader:
    """Reads FROM with several inputs."""

    source: SourceText
    level_of: Callable[[exp.Expr, bool], Scope]
    """What an input is; with True, its computed columns are computed before the join."""

    hide: Hide
    state: StateRequest
    queries: Mapping[str, ScopeRelation] = field(default_factory=dict)

    def read(self, select: exp.Select) -> Scope:
        """What the SELECT sees: the last join, which has no name yet."""
        origin, nodes = select.args["from_"], select.args["joins"]
        kinds = self._kinds(origin, nodes)
        if origin.this.args.get("version") is not None:
            raise self.source.error(
                "AS OF is for the right side of a join",
                origin.this.args["version"],
                "write FROM rows AS r JOIN table FOR SYSTEM_TIME AS OF r.time AS t ON r.key = t.key",
            )
        tables = [origin.this, *(node.this for node in nodes)]
        names = self._names(tables)
        first = self.level_of(origin.this, kinds[0].keeps_right)
        inputs = [called(*names[0], first)]
        steps: list[JoinStep] = []
        for node, kind, name in zip(nodes, kinds, names[1:], strict=True):
            level = self.level_of(node.this, kind.keeps_left)
            inputs.append(called(*name, level))
            on = conjuncts(node.args["on"]) if node.args.get("on") is not None else []
            steps.append(JoinStep(node, kind, inputs[-1], level, on, list(node.args.get("using") or ())))
        rest = self._where(select)
        if origin.args.get("join_kind") is not None:
            steps[0].on, rest = rest, []
        preferred = self._preferred(inputs, steps)
        if steps[0].kind.chooses:
            # The other input chooses, and nothing above sees it.
            return self._chosen(first, inputs, steps[0], rest, preferred, select)
        everything = see(Scope(first.stream, {}, set(), first.clock), inputs, preferred)
        rest = self._allotted(rest, everything, inputs, steps)

        def used(above: list[JoinStep], last: list[exp.Expr]) -> frozenset[tuple[str, str]]:
            return self._used(select, above, last, everything, inputs)

        return self._joined(first, inputs, steps, rest, preferred, used)

    def _chosen(
        self,
        first: Scope,
        inputs: list[NamedInput],
        step: JoinStep,
        rest: list[exp.Expr],
        preferred: dict[str, str],
        select: exp.Select,
    ) -> Scope:
        """A semi or anti join: rows of the first input."""
        both = see(Scope(step.level.stream, {}, set(), step.level.clock), inputs, preferred)
        scope = see(Scope(step.level.stream, {}, set(), step.level.clock), inputs[:1], {})
        left, right = (inputs[0].alias, first), (step.input.alias, step.level)
        resolver = Resolver(self.source)
        join = self.pair(left, right, step, both, [])
        assert isinstance(join, Join)
        join = replace(join, where=all_of(resolver.spelled_out(one, scope) for one in rest))
        speaks = self._used(select, [step], rest, scope, inputs[:1])
        scope.pending = Pending(join, dict((left, right)), (inputs[0],), {}, speaks)
        scope.clock = Clock(kind_of(scope.pending))
        return scope

    def settled(self, scope: Scope, tree: exp.Expr) -> Scope:
        """Make an operator of the join, and give what the SELECT sees then."""
        level, inputs = self._hidden(scope, tree)
        assert scope.pending is not None
        unwrapped = [replace(one, columns={k: (n, bare(e)) for k, (n, e) in one.columns.items()}) for one in inputs]
        level = see(level, unwrapped, scope.pending.preferred)
        level.window = scope.window
        return level

    def _joined(
        self,
        first: Scope,
        inputs: list[NamedInput],
        steps: list[JoinStep],
        rest: list[exp.Expr],
        preferred: dict[str, str],
        used: Callable[[list[JoinStep], list[exp.Expr]], frozenset[tuple[str, str]]],
    ) -> Scope:
        before, left = [inputs[0]], (inputs[0].alias, first)
        joined = [left]
        for number, step in enumerate(steps):
            last = step is steps[-1]
            before = [*before, step.input]
            right = (step.input.alias, step.level)
            scope = see(Scope(step.level.stream, {}, set(), step.level.clock), before, preferred)
            if step.node.meta.get(BY_WINDOW):
                check_same_windows(step.node.this, left[1], right[1], self.queries, self.source)
            join = self.pair(left, right, step, scope, rest if last else [], joined)
            joined = [*joined, right]
            speaks = used(steps[number:], [] if last else rest)
            scope.pending = Pending(join, dict((left, right)), tuple(before), preferred, speaks)
            scope.clock = Clock(kind_of(scope.pending))
            if last:
                return scope
            level, before = self._hidden(scope, step.node)
            left = (level.stream.name, level)
        raise AssertionError("a join has two inputs at least")

    def pair(
        self,
        left: tuple[str, Scope],
        right: tuple[str, Scope],
        step: JoinStep,
        scope: Scope,
        where: list[exp.Expr],
        joined: list[tuple[str, Scope]] | None = None,
    ) -> Join | Lookup:
        """The join of two inputs by what is said in ON; `where` chooses among its pairs.

        Errors speak of the inputs that are `joined` on the left side already, which has no name that the user knows.
        """
        resolver = Resolver(self.source)
        on = [resolver.spelled_out(one, scope) for one in step.on]
        on += [self._equal(name, scope, step.input) for name in step.using]
        if left[1].stream.table is not None:
            raise self.source.error(
                f"{left[0]!r} is a table, and stands on the left", step.node, "let the stream stand first"
            )
        if (version := version_of(step.node)) is not None and right[1].stream.table is not None:
            raise self.source.error(
                f"{right[0]!r} is a table without versions", version, "leave FOR SYSTEM_TIME AS OF out"
            )
        if version is not None:
            chosen = [resolver.spelled_out(one, scope) for one in where]
            as_of = resolver.spelled_out(version, scope)
            reader = LookupReader(self.source)
            return reader.read(left, right, step.kind, on, as_of, chosen, step.node, joined or [left])
        if right[1].stream.table is not None:
            chosen = [resolver.spelled_out(one, scope) for one in where]
            return LookupReader(self.source).read(left, right, step.kind, on, None, chosen, step.node, joined or [left])
        parts = take_apart(on, JoinInput(*left), JoinInput(*right))
        both = (left[1], right[1], step.node, self.source)
        if (band := window_band(*both)) is not None:
            parts.bands.append(band)
        if parts.is_without_end() and (band := band_of_life(*both, self.state)) is not None:
            parts.bands.append(band)
        if parts.is_without_end():
            if parts.open:
                raise of_unknown_length(self.source, on) or one_sided(self.source, parts.open[0], scope)
            if parts.bands:
                sides_of = {left[0]: joined or [left], right[0]: [right]}
                raise endless(self.source, step.node, sides_of, parts.without_end[0].alias)
            raise of_unknown_length(self.source, on) or unrelated(self.source, step.node, joined or [left], right)
        parts.place(step.kind)
        sides = []
        for (alias, level), keys, asked in zip(
            (left, right),
            zip(*parts.keys, strict=True) if parts.keys else ((), ()),
            (parts.left, parts.right),
            strict=True,
        ):
            conditions = all_of([*level.where, *(bare(one) for one in asked)])
            sides.append(Side(level.stream.name, alias, tuple(spark_text(key) for key in keys), conditions))
        after = all_of(resolver.spelled_out(one, scope) for one in where)
        return Join("", sides[0], sides[1], tuple(parts.bands), step.kind, all_of(parts.rest), after)

    def _hidden(self, scope: Scope, tree: exp.Expr) -> tuple[Scope, list[NamedInput]]:
        """The join as an operator, and its inputs with expressions over its columns."""
        pending = scope.pending
        assert pending is not None
        outputs: list[tuple[str, exp.Expr]] = []
        moved: list[tuple[NamedInput, dict[str, tuple[str, str]]]] = []
        for one in pending.inputs:
            mine = {}
            for key, (name, expression) in one.columns.items():
                if (one.alias, key) in pending.used:
                    mine[key] = (name, unused(f"{one.alias}_{name}", [old for old, _ in outputs]))
                    outputs.append((mine[key][1], expression))
            moved.append((one, mine))
        known = self.hide(*joined_output(pending, outputs), tree)
        alias = known.query.name
        inputs = [
            replace(one, columns={key: (name, column_of(out, alias)) for key, (name, out) in mine.items()})
            for one, mine in moved
        ]
        return over(known, set()), inputs

    def _kinds(self, origin: exp.From, nodes: list[exp.Join]) -> list[JoinKind]:
        word = origin.args.get("join_kind")
        kinds = []
        for node in nodes:
            method, side, kind = (str(node.args.get(key) or "").upper() for key in ("method", "side", "kind"))
            chooses = kind in ("SEMI", "ANTI") and side in ("", "LEFT")
            if chooses and len(nodes) > 1:
                raise self.source.error(
                    f"a {kind} JOIN among several joins cannot be run yet", node, "put it into a sub-query, or a WITH"
                )
            if method or (kind not in ("", "INNER", "OUTER", "CROSS") and not chooses):
                words = " ".join(filter(None, (method, side, kind)))
                raise self.source.error(
                    f"{words} JOIN cannot be run yet", node, "write JOIN .. ON, LEFT, RIGHT or FULL OUTER JOIN .. ON"
                )
            for key in ("pivots", "match_condition", "expressions"):
                if node.args.get(key):
                    raise self.source.error("this join cannot be run yet", node)
            if node.this is None:
                raise self.source.error("expected a stream to join", node)
            kinds.append(JoinKind[kind if chooses else side] if side or chooses else JoinKind.INNER)
        if word is None:
            return kinds
        if len(nodes) != 1 or kinds[0] is not JoinKind.INNER or nodes[0].args.get("on") or nodes[0].args.get("using"):
            raise self.source.error(
                f"{word} joins two streams: FROM a, b WHERE ..", nodes[-1], "write JOIN .. ON for more of them"
            )
        return [GIGASCOPE[word]]

    def _names(self, tables: list[exp.Expr]) -> list[tuple[str, set[str]]]:
        """What each input is called in the join, and by which names the user may call it."""
        found: list[tuple[str, set[str]]] = []
        for table in tables:
            if table.alias:
                names = [table.alias]
            elif isinstance(table, exp.Table):
                names = [table.name, *([f"{table.db}_{table.name}"] if table.args.get("db") else [])]
            else:
                raise self.source.error("this sub-query needs a name in a join", table, "add AS name behind it")
            found.append((names[-1], {name.lower() for name in names}))
        for number, (alias, _) in enumerate(found):
            if alias.lower() in {name for _, others in found[:number] for name in others}:
                raise self.source.error(
                    f"two inputs of this join are called {alias!r}", tables[number], "give one another name with AS"
                )
        every = [name for _, mine in found for name in mine]
        return [(alias, {n for n in mine if every.count(n) == 1 or n == alias.lower()}) for alias, mine in found]

    def _where(self, select: exp.Select) -> list[exp.Expr]:
        where = select.args.get("where")
        if where is None:
            return []
        for aggregate in aggregates_in(where.this):
            raise self.source.error("WHERE sees single rows, not aggregates", aggregate, "put this into HAVING")
        return conjuncts(where.this)

    def _allotted(
        self, wheres: list[exp.Expr], everything: Scope, inputs: list[NamedInput], steps: list[JoinStep]
    ) -> list[exp.Expr]:
        """Give each condition of WHERE to the first join that may take it; those that none may take come last."""
        rest = []
        for one in wheres:
            owners = [self._owner(column, everything, inputs) for column in one.find_all(exp.Column)]
            needed = max([1, *(owner for owner in owners if owner is not None)])
            for number in range(needed - 1, len(steps)):
                above = steps[number + 1 :]
                if steps[number].kind is JoinKind.INNER and not any(step.kind.keeps_right for step in above):
                    steps[number].on.append(one)
                    break
            else:
                rest.append(one)
        return rest

    def _owner(self, column: exp.Column, everything: Scope, inputs: list[NamedInput]) -> int | None:
        """The number of the input that a column is of; None where no input has it."""
        if isinstance(column.this, exp.Star) or is_lambda_name(column):
            return None
        columns, parts = place_of(column, everything)
        found = columns.get(parts[0].name.lower())
        return next((n for n, one in enumerate(inputs) if found in one.columns.values()), None) if found else None

    def _used(
        self,
        select: exp.Select,
        steps: list[JoinStep],
        rest: list[exp.Expr],
        everything: Scope,
        inputs: list[NamedInput],
    ) -> frozenset[tuple[str, str]]:
        """The columns that are spoken of above the first of these joins, all where the SELECT says `*`."""
        spoken = [*select.expressions, *(select.args.get(key) for key in ("group", "having", "order")), *rest]
        spoken += [one for step in steps[1:] for one in (*step.on, version_of(step.node))]
        used: set[tuple[str, str]] = set()
        for tree in spoken:
            for node in tree.find_all(exp.Column, exp.Star) if tree is not None else ():
                if isinstance(node, exp.Star):
                    if not isinstance(node.parent, exp.Count):
                        used |= {(one.alias, key) for one in inputs for key in one.starred}
                elif (owner := self._owner(node, everything, inputs)) is not None:
                    key = place_of(node, everything)[1][0].name.lower()
                    used.add((inputs[owner].alias, key))
        names = {name.name.lower() for step in steps[1:] for name in step.using}
        used |= {(one.alias, key) for one in inputs for key in names & one.columns.keys()}
        if not used:
            # Rows that are only counted are rows of some column.
            used = {(one.alias, key) for one in inputs for key in one.starred[:1]}
        return frozenset(used)

    def _preferred(self, inputs: list[NamedInput], steps: list[JoinStep]) -> dict[str, str]:
        """Whose column a name means that USING has made one."""
        found: dict[str, str] = {}
        for number, step in enumerate(steps, 1):
            for name in step.using:
                key = name.name.lower()
                if step.kind is JoinKind.FULL:
                    raise self.source.error(
                        "a FULL JOIN with USING cannot be run yet", name, f"write ON a.{name.name} = b.{name.name}"
                    )
                left = next((one.alias for one in inputs[:number] if key in one.columns), None)
                found[key] = step.input.alias if step.kind is JoinKind.RIGHT else found.get(key, left or "")
        return found

    def _equal(self, name: exp.Identifier, scope: Scope, right: NamedInput) -> exp.Expr:
        """`USING (name)` as a condition."""
        key = name.name.lower()
        assert scope.owned
        pending = [
            columns[key] for alias, columns in scope.owned.items() if key in columns and columns is not right.columns
        ]
        if not pending or key not in right.columns:
            raise self.source.error(f"there is no column {name.name!r} on both sides of this join", name)
        return exp.EQ(this=pending[0][1].copy(), expression=right.columns[key][1].copy())
