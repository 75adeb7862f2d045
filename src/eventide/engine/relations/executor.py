"""Statements over relations, and the executor that runs them where the relations are.

Laws. *Place*: where every relation that a statement reads is with the driver, DuckDB runs it there, or Spark over the
small tables where DuckDB's answer could be another; where one is on the cluster, a Spark job does, over files alone,
and its rows stay there. The answer is the same. *Small answers*: `table` brings rows to the driver, for statements
whose answer steers and is small by its nature. *Fail-safe*: a row that makes a statement fail makes it run again in its
fail-safe form, and the relation says that it is lossy.

*Statements* are Spark's SQL, whatever the place. Each is the same text every round, so that neither engine has to
understand it anew; what changes from round to round is in small tables that it reads. *Steps* are run one after the
other, together: as one job where they are on the cluster and small. A later step may read the rows of an earlier one by
its name.

>>> one_row(first=5, last=9).to_pylist()
[{'__first': 5, '__last': 9}]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from eventide.engine.relations.backend import Backend, ClusterStep, Given, StoredRows, Target
from eventide.engine.relations.files import RelationFiles
from eventide.engine.relations.relation import Layout, Relation, Summary, numbered
from eventide.engine.relations.segments import Segments
from eventide.errors import DataFaultError
from eventide.plan.declared.stream import Stream
from eventide.plan.duckdb.transpile import tables_in
from eventide.plan.expressions.columns import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Inputs = Mapping[str, Relation | Segments | pa.Table]
"""What a statement reads, by the names that it has for it; tables are small and go where it runs."""


BIRTHS = 4
"""What comes to the driver at once may take this part of its memory: state, and the rest of the round, take some too.
"""


class Executor:
    """Runs the statements of one engine, or of one question that is asked beside it (`apart`)."""

    def __init__(self, backend: Backend, files: RelationFiles, driver_memory: int) -> None:
        self.backend = backend
        self.files = files
        self.driver_memory = driver_memory if backend.has_cluster else 2**62

    def apart(self, files: RelationFiles) -> Executor:
        """A copy that writes its files to another place."""
        other = copy(self)
        other.files = files
        return other

    def fits(self, size: int) -> bool:
        """Whether rows of about this size may come to the driver from Spark."""
        return size <= self.driver_memory // BIRTHS

    def relation(self, statement: Statement, inputs: Inputs, layout: Layout) -> Relation:
        """Run a statement; its rows stay where those are that it reads."""
        return self.run([StatementStep("rows", statement, layout)], inputs).relations["rows"]

    def table(self, statement: Statement, inputs: Inputs) -> pa.Table:
        """Run a statement whose answer is small by its nature."""
        return self.run([StatementStep("rows", statement)], inputs).tables["rows"]

    def run(self, steps: Sequence[StatementStep], inputs: Inputs) -> StepResults:
        """Run statements one after the other; their rows stay where those are that the first ones read."""
        read = frozenset[str]().union(*(tables_in(step.statement.sql) for step in steps))
        given = {name: rows for name, rows in _relations(inputs).items() if name.lower() in read}
        if all(part.table is not None for parts in given.values() for part in parts.parts):
            tables = {**_tables(inputs), **{name: parts.table() for name, parts in given.items()}}
            return self._on_driver(steps, tables)
        return self._on_cluster(steps, {**_tables(inputs), **self._stored_rows(given)})

    def stored(
        self,
        stream: Stream,
        sql: str,
        portable: bool,
        layout: Layout,
        tables: Mapping[str, pa.Table] | None = None,
    ) -> Relation:
        """Run a statement over the rows of a round; its rows stay on the cluster."""
        target = self._target(layout, identified=False)
        return self._adopted(target, self.backend.store(stream, sql, portable, self._placed(target), tables))

    def of_table(self, layout: Layout, table: pa.Table, lossy: bool = False, identified: bool = False) -> Relation:
        """A table as a relation of the driver: with the columns of the layout, numbered where it says so."""
        if layout.is_numbered and not identified:
            table = numbered(table, self.files.sequence())
        return Relation.of_table(layout, table.select(layout.schema.names).cast(layout.schema), lossy)

    def merged(self, segments: Segments, statement: Statement | None = None) -> Relation:
        """Several segments as one, under the name `segments` in the statement."""
        tables = [part.table for part in segments.parts if part.table is not None]
        if statement is None and len(tables) == len(segments.parts):
            return Relation.of_table(segments.layout, pa.concat_tables(tables).combine_chunks())
        # Rows keep the numbers that they have.
        statement_of = replace(statement or Statement("SELECT * FROM segments"), identified=True)
        return self.relation(statement_of, {"segments": segments}, segments.layout)

    def loaded(self, relation: Relation) -> Relation:
        """Bring the rows of a relation to the driver."""
        return self.files.loaded(relation)

    def persisted(self, relation: Relation) -> Relation:
        """Write the rows of a relation into files, too."""
        return relation if relation.files else self.files.persisted(relation)

    def batches(self, relation: Relation) -> Iterator[pa.Table]:
        """The rows, part by part; those on the cluster are read as they are needed."""
        if relation.table is not None:
            yield relation.table
        else:
            yield from self.files.batches(relation)

    def frame(self, sql: str, inputs: Inputs) -> DataFrame:
        """A statement over relations as a DataFrame of Spark, for a sink that takes one."""
        return self.backend.frame_over(sql, {**_tables(inputs), **self._stored_rows(_relations(inputs))})

    def _on_driver(self, steps: Sequence[StatementStep], tables: dict[str, pa.Table]) -> StepResults:
        relations, small = dict[str, Relation](), dict[str, pa.Table]()
        for step in steps:
            if step.layout is None:
                small[step.name] = self._asked(step.statement, tables)[0]
            elif step.needs and not any(relations[name].rows for name in step.needs):
                relations[step.name] = Relation.nothing(step.layout)
            else:
                answer, lossy = self._asked(step.statement, tables)
                relations[step.name] = self.of_table(step.layout, answer, lossy, step.statement.identified)
            if step.name in relations and (table := relations[step.name].table) is not None:
                tables[step.name] = table
        return StepResults(relations, small)

    def _asked(self, statement: Statement, tables: Mapping[str, pa.Table]) -> tuple[pa.Table, bool]:
        """The answer to a statement over tables of the driver, and whether values of it may be lost."""
        sql_executor = self.backend.sql(statement.portable)
        try:
            return sql_executor.ask(statement.sql + statement.order, tables, statement.inner), False
        except DataFaultError:
            if statement.fail_safe is None:
                raise
            return sql_executor.ask(statement.fail_safe() + statement.order, tables, statement.inner), True

    def _on_cluster(self, steps: Sequence[StatementStep], given: Given) -> StepResults:
        targets = {
            step.name: self._target(step.layout, step.statement.identified) for step in steps if step.layout is not None
        }
        placed = {name: self._placed(target) for name, target in targets.items()}
        fail_safe = False
        try:
            answers = self.backend.run_over([_for_cluster(step, placed, False) for step in steps], given)
        except DataFaultError:
            if all(step.statement.fail_safe is None for step in steps):
                raise
            fail_safe = True
            answers = self.backend.run_over([_for_cluster(step, placed, True) for step in steps], given)
        relations, small = dict[str, Relation](), dict[str, pa.Table]()
        for step, answer in zip(steps, answers, strict=True):
            if isinstance(answer, Summary):
                found = self._adopted(targets[step.name], answer)
                lossy = fail_safe and step.statement.fail_safe is not None
                relations[step.name] = replace(found, lossy=lossy and found.rows > 0)
            else:
                small[step.name] = answer
        return StepResults(relations, small)

    def _target(self, layout: Layout, identified: bool) -> Target:
        """A new folder of the checkpoint for rows of a layout."""
        sequence = self.files.sequence() if layout.is_numbered and not identified else None
        return Target(self.files.folder(), layout, sequence)

    def _placed(self, target: Target) -> Target:
        """The same target, by the path that Spark uses."""
        return replace(target, folder=self.files.uri(target.folder))

    def _adopted(self, target: Target, summary: Summary) -> Relation:
        """What was written to a folder, as a relation."""
        if not summary.rows:
            self.files.discard(target.folder)
            return Relation.nothing(target.layout)
        files = self.files.adopted(target.folder)
        return Relation(target.layout, None, files, replace(summary, bytes=sum(file.bytes for file in files)))

    def _stored_rows(self, given: Mapping[str, Segments]) -> dict[str, StoredRows]:
        """Relations as Spark finds them."""
        return {
            name: StoredRows(
                tuple(self.files.uri(file.name) for part in parts.parts for file in self.persisted(part).files),
                parts.layout,
                parts.rows * parts.layout.row_bytes,
            )
            for name, parts in given.items()
        }


def _for_cluster(step: StatementStep, targets: Mapping[str, Target], fail_safe: bool) -> ClusterStep:
    statement_of = step.statement
    sql = statement_of.fail_safe() if fail_safe and statement_of.fail_safe is not None else statement_of.sql
    order = statement_of.order if statement_of.ordered else ""
    return ClusterStep(
        step.name, sql + order, statement_of.portable, statement_of.inner, targets.get(step.name), step.needs
    )


def _relations(inputs: Inputs) -> dict[str, Segments]:
    found = {}
    for name, given in inputs.items():
        if isinstance(given, Relation):
            found[name] = Segments(given.layout).add(given)
        elif isinstance(given, Segments):
            found[name] = given
    return found


def _tables(inputs: Inputs) -> dict[str, pa.Table]:
    return {name: given for name, given in inputs.items() if isinstance(given, pa.Table)}


@dataclass(frozen=True)
class Statement:
    """Spark's SQL over the names of relations.

    `portable`: DuckDB gives Spark's answer of it. `order` follows it where its rows are few, or where their order is
    asked for (`ordered`): sorting what nobody asked to be in order is one shuffle more. `fail_safe` gives the form in
    which what fails for a row is counted as lost instead; it is asked when a row has made the other one fail. `inner`
    are columns that the statement makes and uses itself. `identified`: its rows have their identity already.
    """

    sql: str
    portable: bool = True
    order: str = ""
    ordered: bool = False
    fail_safe: Callable[[], str] | None = None
    inner: tuple[Column, ...] = ()
    identified: bool = False


@dataclass(frozen=True)
class StatementStep:
    """A statement whose answer is a relation of this layout; without one it is a small table, for the driver.

    It has no rows where all of the earlier steps that it `needs` have none: then it is not run.
    """

    name: str
    statement: Statement
    layout: Layout | None = None
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class StepResults:
    """The answers of steps by their names: relations, and small tables."""

    relations: Mapping[str, Relation]
    tables: Mapping[str, pa.Table]


def one_row(**values: int | None) -> pa.Table:
    """A table of one row, for what changes from round to round; no column of a user begins with `__`, as these do."""
    return pa.table({f"__{name}": pa.array([value], pa.int64()) for name, value in values.items()})
