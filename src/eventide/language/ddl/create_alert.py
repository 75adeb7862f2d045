"""Read CREATE ALERT: a rule over what a stream or a query shows, or over the results of a query.

Law: a rule whose names, amounts or target are wrong is refused at their place, with what there is instead.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping

from sqlglot import exp

from eventide.language.grammar.dialect import EVENTIDE
from eventide.language.grammar.nodes import Amount, Amounts, CreateAlert, Order
from eventide.language.grammar.source_text import SourceText
from eventide.language.grammar.spelling import COUNTS, meant
from eventide.language.scope.scope import ScopeRelation
from eventide.plan.declared.alert import KINDS, LAG, QUERY_MEASURES, STREAM_MEASURES, AlertRule
from eventide.plan.declared.program import NAME
from eventide.plan.declared.query import RESERVED
from eventide.plan.declared.stream import Stream, TimeKind
from eventide.plan.expressions.spark_dialect import SPARK

SECOND = 1_000_000
OF_RESULTS = tuple(name for name in RESERVED if name not in ("query", "heartbeat", "round"))
"""Columns of every result that a rule may speak of."""


def alert_of(
    tree: CreateAlert,
    known: Container[str],
    streams: Mapping[str, Stream],
    queries: Mapping[str, ScopeRelation],
    source: SourceText,
) -> AlertRule:
    """The rule that a statement declares; `known` are the alerts before it. All keys are in small letters."""
    name, target = str(tree.this.name), tree.args["of"]
    if not NAME.fullmatch(name):
        raise source.error(f"{name!r} cannot name an alert", tree.this, "use letters, digits and underscores")
    if name.lower() in known:
        raise source.error(f"there is already an alert {name!r}", tree.this, "choose another name")
    if name.lower() in KINDS:
        raise source.error(
            f"{name!r} is an alert that is raised without a rule", tree.this, f"name it otherwise: my_{name}"
        )
    key = target.name.lower()
    query = None if key not in queries or queries[key].hidden else queries[key]
    if key not in streams and query is None:
        names = [stream.name for stream in streams.values()]
        names += [one.query.name for one in queries.values() if not one.hidden]
        raise source.error(f"there is no stream or query {target.name!r}", target, meant(target.name, names))
    columns = {} if query is None else {column.name.lower(): column.name for column in query.outputs}
    reads = _Names(tree, streams.get(key), columns, source)
    of_results = reads.of_results()
    kind = streams[key].time_kind if query is None else query.clock.kind
    condition = tree.expression.copy().transform(_as_number(kind, source))
    lasting = tree.args.get("lasting")
    seconds = 0.0 if lasting is None else Amounts(source).length(lasting, "FOR") / SECOND
    if lasting is not None and seconds < 0:
        raise source.error(f"FOR cannot be {lasting.sql()}", lasting, "give a length such as 1 minute")
    words = tree.expression.sql(dialect=EVENTIDE)
    of = streams[key].name if query is None else query.query.name
    return AlertRule(name, of, condition.sql(dialect=SPARK), words, tuple(reads.found), of_results, float(seconds))


def refuse_watched(key: str, alerts: Iterable[AlertRule], tree: Order, source: SourceText) -> None:
    """Refuse to drop what an alert is about; `key` is its name in small letters."""
    for alert in alerts:
        if alert.of.lower() == key:
            raise source.error(f"the alert {alert.name!r} is ON it", tree.expression, "declare no alert on it")


class _Names:
    """The names that a condition speaks of: all measures, or all columns of results."""

    def __init__(
        self,
        tree: CreateAlert,
        stream: Stream | None,
        columns: Mapping[str, str],
        source: SourceText,
    ) -> None:
        self._target, self._stream, self._columns, self._source = tree.args["of"], stream, columns, source
        self._nodes = list(tree.expression.find_all(exp.Column))
        self.found = dict.fromkeys(node.name.lower() for node in self._nodes)
        condition = tree.expression
        if next(condition.find_all(exp.AggFunc, exp.Window, exp.Query), None) is not None:
            raise source.error(
                "an alert compares what is shown, and computes nothing over several rows",
                condition,
                "write a query that does, and an alert ON it",
            )
        if not self._nodes:
            raise source.error("this condition speaks of nothing that is shown", condition, self._there_are())

    def of_results(self) -> bool:
        """Whether these are columns of results; a name that is neither is refused, and so is a mixture."""
        columns = {**self._columns, **{name: name for name in OF_RESULTS}} if self._stream is None else {}
        measures = QUERY_MEASURES if self._stream is None else STREAM_MEASURES
        for node in self._nodes:
            name = node.name.lower()
            if name not in columns and name not in measures:
                raise self._source.error(f"{self._target.name!r} does not show {node.name!r}", node, self._hint(name))
        of_results = any(name in columns for name in self.found)
        for node in self._nodes if of_results else ():
            if node.name.lower() not in columns:
                raise self._source.error(
                    f"{node.name!r} is no column of the results of {self._target.name!r}",
                    node,
                    "an alert speaks of results, or of the query itself: write two",
                )
        return of_results

    def _hint(self, name: str) -> str:
        stream = self._stream
        if stream is not None and name in {column.name.lower() for column in stream.columns}:
            select = f"SELECT * FROM {stream.name} WHERE .."
            return f"it is a column of its rows: CREATE QUERY found AS {select}, and the alert ON found"
        return self._there_are()

    def _there_are(self) -> str:
        measures = STREAM_MEASURES if self._stream is not None else QUERY_MEASURES
        own = f"columns {', '.join(self._columns.values())}; or " if self._columns else ""
        return f"there are: {own}{', '.join(measures)}"


def _as_number(kind: TimeKind, source: SourceText) -> Callable[[exp.Expr], exp.Expr]:
    """Amounts as the numbers that they are compared with."""
    amounts = Amounts(source)

    def number(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, Amount):
            return node
        unit = node.args.get("unit")
        if unit is None or unit in COUNTS:
            return exp.Literal.number(node.this)
        if unit == "%":
            return exp.Literal.number(amounts.point(node, "a share"))
        compared = node.find_ancestor(exp.Predicate)
        about = {one.name.lower() for one in compared.find_all(exp.Column)} if compared is not None else set()
        if LAG in about and kind is TimeKind.SEQUENCE:
            Amounts(source, kind).length(node, LAG)
        return exp.Literal.number(amounts.length(node, "a length") / SECOND)

    return number
