"""Results in a table of any database that Spark reaches by JDBC, exactly once.

Law: a round is one transaction of the database, which also notes the round in the table `eventide_rounds`. Spark's
tasks write the rows into a table beside the target; the transaction takes them over from there, in place of those of
the same round. So after kill -9 the table has all of a round or nothing of it. A database without transactions is
refused.

Every result stays, with its `kind` and its `round` (the mode `append`): what JDBC has in common for all databases knows
no upsert. The table is made when the first results come, by Spark's types for this database; lists and structs are
JSON.

>>> Jdbc("jdbc:postgresql://db/orders?user=eve&password=hunter2", "speeds").where
"the table 'speeds' at jdbc:postgresql://db/orders"
>>> Jdbc("jdbc:postgresql://db/orders", "speeds", mode="upsert")
Traceback (most recent call last):
    ...
eventide.errors.DeclarationError: INTO jdbc appends, and knows no 'upsert': INTO postgres does, or read the newest of \
each window by a view
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from eventide.errors import DeclarationError, EngineError, EventideError
from eventide.masking import masked_text
from eventide.results.results import Results
from eventide.sinks.keys import UPSERT, check_mode
from eventide.sinks.sink import Owner

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROUNDS = "eventide_rounds"
ATTEMPTS = 3
"""So often a round is staged anew when a task of Spark's was repeated after it had written."""
DRIVERS = {
    "mariadb": "org.mariadb.jdbc.Driver",
    "mysql": "com.mysql.cj.jdbc.Driver",
    "oracle": "oracle.jdbc.OracleDriver",
    "postgresql": "org.postgresql.Driver",
    "sqlserver": "com.microsoft.sqlserver.jdbc.SQLServerDriver",
}
"""The classes of usual drivers; of another one the option `driver` says it."""
NESTED = ("array", "struct", "map")


class Jdbc:
    """Writes results into the table `table` of the database at `url`, by Spark.

    Law: each round is one transaction, and replaces what the same round wrote before.

    All other options are those of Spark's JDBC writer: `driver`, `user`, `password`, `batchsize`.
    """

    way_out = (
        "INTO jdbc is written by Spark: take the Spark engine; on the local one there is INTO postgres, and "
        "eventide.sinks.Callback for any other database"
    )

    def __init__(self, url: str, table: str, mode: str | None = None, **options: str) -> None:
        check_mode(mode, ())
        if mode == UPSERT:
            raise DeclarationError(
                "INTO jdbc appends, and knows no 'upsert': INTO postgres does, or read the newest of each window by a "
                "view"
            )
        if not url.startswith("jdbc:"):
            raise DeclarationError(
                f"{masked_text(url)} is no address of JDBC: write url 'jdbc:postgresql://host:5432/database'"
            )
        self._url, self._table = url, table
        known = DRIVERS.get(url.split(":")[1])
        self._options = {"url": url, **({"driver": known} if known else {}), **options}
        self._owners: dict[str, Owner] = {}
        self._made: dict[str, pa.Schema] = {}
        self._has_books = False

    def emit(self, results: Results) -> None:
        """Write a round in one transaction, in place of what it gave before."""
        query, round = results.query, results.round
        with self._translated(f"the results of {query!r} in round {round} cannot be written into {self.where}"):
            staging = self._staged(results) if results.rows else None
            with self._transaction() as database:
                noted = database.noted(query)
                if noted is not None and noted >= round:
                    database.delete(query, round, round)
                if staging is not None:
                    database.take_over(staging, results.schema.names)
                if staging is not None or noted is None:
                    database.note(query, max(round, -1 if noted is None else noted))
            if staging is not None:
                with self._transaction() as database:
                    database.drop(staging)

    def rewind(self, query: str, last: int) -> None:
        """Delete the results of later rounds."""
        what = f"the results of {query!r} after round {last} cannot be deleted from {self.where}"
        with self._translated(what), self._transaction() as database:
            self._refuse_others(database, query)
            noted = database.noted(query)
            if noted is not None and noted > last:
                database.delete(query, last + 1, noted)
                database.note(query, last)

    def close(self) -> None:
        """Nothing is left to do: every round was complete when `emit` returned."""

    @property
    def where(self) -> str:
        """The table, for messages."""
        return f"the table {self._table!r} at {self._url.partition('?')[0]}"

    # Whose they are: the database is reached when Spark runs, which is after outputs are claimed.

    def holds(self, query: str) -> bool:
        """False: what is there is looked at when Spark runs."""
        return False

    def owner_of(self, query: str) -> Owner | None:
        """None: the same."""
        return None

    def claim(self, query: str, owner: Owner) -> None:
        """Remember whose the results are: those of another are refused when Spark runs."""
        self._owners[query] = owner

    def _refuse_others(self, database: Database, query: str) -> None:
        owner, mine = database.owner(query), self._owners.get(query)
        if mine is None or owner == mine.id:
            return
        if owner is not None:
            raise DeclarationError(
                f"{self.where} has results of query {query!r} from another checkpoint, which are not deleted here: "
                f"name another table, or delete them and their row in {ROUNDS}"
            )
        database.claim(query, mine.id)

    # Rows

    def _staged(self, results: Results) -> str:
        """Have Spark's tasks write the rows into a table beside the target."""
        frame = self._frame(results)
        name = f"eventide_{sha256(f'{self._table} {results.query}'.encode()).hexdigest()[:12]}"
        *schema, _ = self._table.split(".")
        staging = ".".join([*schema, name])
        if self._made.get(results.query) != results.schema:
            self._write(frame.limit(0), self._table, "append")
            self._made[results.query] = results.schema
        for _ in range(ATTEMPTS):
            self._write(frame, staging, "overwrite")
            with self._transaction() as database:
                there = database.ask(f"SELECT count(*) FROM {staging}")
            if int(there) == results.rows:
                return staging
        raise EngineError(f"Spark's tasks were repeated, and left {there} rows instead of {results.rows}")

    def _write(self, frame: DataFrame, table: str, mode: str) -> None:
        frame.write.format("jdbc").options(**self._options, dbtable=table).mode(mode).save()

    def _frame(self, results: Results) -> DataFrame:
        from pyspark.sql import functions
        from pyspark.sql.pandas.types import from_arrow_schema

        if results.frame is not None:
            frame = results.frame()
        else:
            table = pa.Table.from_batches([batch for batch in results.batches() if batch.num_rows], results.schema)
            schema = from_arrow_schema(table.schema, prefer_timestamp_ntz=True)
            frame = self._spark.createDataFrame(table, schema=schema)
        nested = [one.name for one in frame.schema.fields if one.dataType.typeName() in NESTED]
        return frame.withColumns({name: functions.to_json(functions.col(f"`{name}`")) for name in nested})

    @property
    def _spark(self) -> SparkSession:
        try:
            from pyspark.sql import SparkSession

            return SparkSession.active()
        except Exception as none:
            raise DeclarationError(self.way_out) from none

    @contextmanager
    def _transaction(self) -> Iterator[Database]:
        database = Database(self._spark, self._options, self._table)
        try:
            if not database.connection.getMetaData().supportsTransactions():
                raise DeclarationError(f"{self.where} knows no transactions, so a round could be there in part")
            if not self._has_books:
                database.keep_books()
                self._has_books = True
            database.connection.setAutoCommit(False)
            yield database
            database.connection.commit()
        finally:
            # Without a commit nothing has happened.
            database.connection.close()

    @contextmanager
    def _translated(self, what: str) -> Iterator[None]:
        try:
            yield
        except EventideError:
            raise
        except Exception as error:
            java = getattr(error, "java_exception", None)
            said = str(error) if java is None else str(java.getMessage())
            reason = masked_text(said.strip().partition("\n")[0])
            raise EngineError(
                f"{what}: {reason}. Is its driver there (--package, and the option driver), and may you enter?"
            ) from None


class Database:
    """A connection that Spark's JVM opens, with the driver that Spark has loaded, and the statements of a round."""

    def __init__(self, spark: SparkSession, options: dict[str, str], table: str) -> None:
        jvm: Any = spark._jvm
        known = jvm.PythonUtils.toScalaMap({**options, "dbtable": table})
        given = jvm.org.apache.spark.sql.execution.datasources.jdbc.JDBCOptions(known)
        self._dialect = jvm.org.apache.spark.sql.jdbc.JdbcDialects.get(options["url"])
        self.connection: Any = self._dialect.createConnectionFactory(given).apply(-1)
        self._table = table

    def run(self, statement: str, *parameters: object) -> int:
        """Run a statement; how many rows it changed."""
        prepared = self.connection.prepareStatement(statement)
        for place, value in enumerate(parameters):
            prepared.setObject(place + 1, value)
        changed = int(prepared.executeUpdate())
        prepared.close()
        return changed

    def ask(self, statement: str, *parameters: object) -> Any:
        """The first value of the answer; None where there is none."""
        prepared = self.connection.prepareStatement(statement)
        for place, value in enumerate(parameters):
            prepared.setObject(place + 1, value)
        found = prepared.executeQuery()
        value = found.getObject(1) if found.next() else None
        prepared.close()
        return value

    @cached_property
    def _rounds(self) -> str:
        *schema, _ = self._table.split(".")
        return ".".join([*schema, ROUNDS])

    def keep_books(self) -> None:
        """Make the table in which rounds are noted, if it is not there."""
        schema, name = self._rounds.rpartition(".")[::2]
        upper = self.connection.getMetaData().storesUpperCaseIdentifiers()
        where = [one.upper() if upper else one for one in (schema, name)]
        if not self.connection.getMetaData().getTables(None, where[0] or None, where[1], None).next():
            texts = ", ".join(f"{column} VARCHAR(255)" for column in ("target", "query", "owner"))
            self.run(f"CREATE TABLE {self._rounds} ({texts}, round BIGINT)")

    def noted(self, query: str) -> int | None:
        """The last round of a query that is in the table."""
        found = self.ask(f"SELECT round FROM {self._rounds} WHERE target = ? AND query = ?", self._table, query)
        return None if found is None else int(found)

    def owner(self, query: str) -> str | None:
        """Whose the results of a query are."""
        found = self.ask(f"SELECT owner FROM {self._rounds} WHERE target = ? AND query = ?", self._table, query)
        return None if found is None else str(found)

    def note(self, query: str, round: int) -> None:
        """Note the last round that is in the table."""
        whose = round, self._table, query
        if not self.run(f"UPDATE {self._rounds} SET round = ? WHERE target = ? AND query = ?", *whose):
            self.run(f"INSERT INTO {self._rounds} (round, target, query) VALUES (?, ?, ?)", *whose)

    def claim(self, query: str, owner: str) -> None:
        """Note whose the results of a query are."""
        if self.noted(query) is None:
            self.note(query, -1)
        self.run(f"UPDATE {self._rounds} SET owner = ? WHERE target = ? AND query = ?", owner, self._table, query)

    def delete(self, query: str, first: int, last: int) -> None:
        """Delete the rows of some rounds."""
        quoted = [self._dialect.quoteIdentifier(name) for name in ("query", "round")]
        self.run(f"DELETE FROM {self._table} WHERE {quoted[0]} = ? AND {quoted[1]} BETWEEN ? AND ?", query, first, last)

    def take_over(self, staging: str, names: list[str]) -> None:
        """Put the rows of another table into this one."""
        columns = ", ".join(self._dialect.quoteIdentifier(name) for name in names)
        self.run(f"INSERT INTO {self._table} ({columns}) SELECT {columns} FROM {staging}")

    def drop(self, table: str) -> None:
        """Remove a table."""
        self.run(f"DROP TABLE {table}")
