"""Plays a case on a Sparkwave server and a PostgreSQL, and says what is not as it should be."""

from __future__ import annotations

import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg
from postgres import Postgres
from servers import Server

from .cases import ALTER_VIEW, CREATE_VIEW, FLUSH, KILL, RESTART, SCHEMAS, Case
from .compare import Answer, ask, difference, types_differ
from .differences import OPEN, RAISED_THERE, REFUSED, Difference, documented

_INSERT = re.compile(r"INSERT INTO (\S+) (VALUES|SELECT)")
_ONLY_HERE = ("ALTER SYSTEM ", "SET ")
_MOST_ROWS = 3000  # of a view that others may read

# The tables are small, and look-ups by indexes and reductions are to be tried, too.
SMALL_TABLES_AS_LARGE = """\
from sparkwave.executor.epochs import reductions
from sparkwave.executor.memory import copies
copies.LARGE_ROWS = 1
reductions.LEAST_USES = 1
"""


@dataclass(frozen=True)
class Failure:
    """`kind` is what a smaller case has to fail with too; `place` is that of the statement after which it failed."""

    kind: str
    statement: str
    detail: str
    place: int = -1

    def __str__(self) -> str:
        return f"{self.kind}\n{self.statement}\n{self.detail}"


class Bench:
    """One Sparkwave server and one PostgreSQL, for any number of cases."""

    def __init__(self, directory: Path | None = None, known: tuple[Difference, ...] = OPEN) -> None:
        """`known` are failures that are only counted."""
        self.directory = directory or Path(tempfile.mkdtemp(prefix="sparkwave-fuzz-"))
        self.postgres = Postgres()
        self.known = known
        self.seen: Counter[str] = Counter()
        self._start()

    def _start(self) -> None:
        self.server = Server(
            self.directory / "data",
            patch=SMALL_TABLES_AS_LARGE,
            spark_cores=2,
            spark_memory_mib=1024,
            duckdb_threads=os.cpu_count(),
        )
        self._connect()
        # Epochs end with FLUSH, so that a seed is the same run again.
        self._here("ALTER SYSTEM SET barrier_interval_ms = 3600000")

    def _connect(self) -> None:
        self.here = self.server.connect()
        self.there = self.postgres.connect()
        for one in (self.here, self.there):
            ask(one, "SET TimeZone = 'UTC'")
            ask(one, f"SET search_path = {SCHEMAS[0]}")
            ask(one, "SET statement_timeout = '120s'")
        self._here("SET atomic_transactions = on")

    def restart(self, kill: bool) -> None:
        if kill:
            self.server.kill()
        else:
            self.server.stop()
        self._start()

    def close(self) -> None:
        self.server.kill()
        self.postgres.stop()

    def _here(self, sql: str) -> Answer:
        return ask(self.here, sql)

    def play(self, case: Case) -> Failure | None:
        """The first thing that is wrong, if anything is."""
        self._clear()
        try:
            return _Play(self, case).run()
        except psycopg.OperationalError as error:
            alive = self.server.process.poll() is None
            return Failure("connection lost" if alive else "server died", "", f"{error}\n{self.server.log()[-2000:]}")

    def _clear(self) -> None:
        if self.server.process.poll() is not None:
            self._start()
        self._connect()
        for one in (self.here, self.there):
            for schema in SCHEMAS:
                ask(one, f"DROP SCHEMA IF EXISTS {schema} CASCADE")
                answer = ask(one, f"CREATE SCHEMA {schema}")
                if answer.failed:
                    raise RuntimeError(f"CREATE SCHEMA {schema}: {answer.failed}")


class _Play:
    def __init__(self, bench: Bench, case: Case) -> None:
        self.bench, self.case = bench, case
        self.seen = bench.seen
        self.views: dict[str, str] = {}
        self.refused: dict[str, str] = {}  # queries that no view can have, which are asked alone
        self.altered = any(statement.startswith("ALTER TABLE ") for statement in case.statements)
        self.tables: dict[str, str] = {}  # what PostgreSQL needs to overwrite rows of the same key

    def run(self) -> Failure | None:
        for place, statement in enumerate(self.case.statements):
            failure = self._step(statement)
            if failure:
                # After a statement that only one has taken nothing more can be compared.
                return replace(failure, place=place) if self._known(failure) else None
        return None

    def _step(self, sql: str) -> Failure | None:
        if sql in (RESTART, KILL):
            self.bench.restart(sql == KILL)
            return None
        if sql == FLUSH:
            answer = self._here(sql)
            return Failure("FLUSH fails", sql, answer.failed) if answer.failed else self._check()
        if sql.startswith((CREATE_VIEW, ALTER_VIEW)):
            return self._view(sql)
        if sql.startswith(_ONLY_HERE):
            answer = self._here(sql)
            return Failure("a setting fails", sql, answer.failed) if answer.failed else None
        return self._both(sql)

    def _here(self, sql: str) -> Answer:
        return ask(self.bench.here, sql)

    def _there(self, sql: str) -> Answer:
        return ask(self.bench.there, sql) if self.case.on_postgres else Answer()

    def _view(self, sql: str) -> Failure | None:
        """A view that is made, or gets another query."""
        head, _, query = sql.partition(" AS ")
        name = head.rpartition(" ")[2]
        here, there = self._here(sql), self._there(f"CREATE VIEW next_view AS {query}")
        if not here.failed and not there.failed:
            self._there(f"DROP VIEW IF EXISTS {name}")
            schema, _, last = name.rpartition(".")
            self._there(f"ALTER VIEW next_view SET SCHEMA {schema or SCHEMAS[0]}")
            self._there(f"ALTER VIEW {schema or SCHEMAS[0]}.next_view RENAME TO {last}")
            self.seen["views"] += 1
            self.views[name] = query
            self.refused.pop(name, None)
            return None
        self._there("DROP VIEW IF EXISTS next_view")
        if there.failed and not here.failed:
            return self._known(Failure(f"only PostgreSQL refuses a view: {there.code}", sql, there.failed))
        if here.code == "42P01" and any(other in query for other in self.refused):
            return None  # nor has PostgreSQL it, in a case for both
        if not there.failed and not documented(here.failed, REFUSED):
            return self._known(Failure(f"only Sparkwave refuses a view: {here.code}", sql, here.failed))
        if not there.failed:
            self.refused[name] = query
        self.seen[f"{'both refuse' if there.failed else 'refused'}: {here.failed}"] += 1
        return None

    def _known(self, failure: Failure) -> Failure | None:
        """A failure, unless it is one that shall only be counted."""
        if not documented(f"{failure}", self.bench.known):
            return failure
        self.seen[f"known: {failure.kind}"] += 1
        return None

    def _both(self, sql: str) -> Failure | None:
        """A statement that both have to take, or both to refuse."""
        here, there = self._here(sql), self._there(self._overwriting(sql))
        self.seen["statements"] += 1
        if not self.case.on_postgres:
            if here.failed and not here.code.startswith("22"):
                return Failure(f"a statement fails: {here.code}", sql, here.failed)
        elif bool(here.failed) != bool(there.failed):
            who, answer = ("Sparkwave", here) if here.failed else ("PostgreSQL", there)
            return Failure(f"only {who} fails: {answer.code}", sql, answer.failed)
        elif here.code != there.code:
            return Failure(f"{here.code}, not {there.code}", sql, f"{here.failed}\n{there.failed}")
        elif here.status != there.status and sql.split()[0] in ("INSERT", "UPDATE", "DELETE"):
            return Failure("other counts", sql, f"{here.status}, not {there.status}")
        if sql.startswith(("CREATE TABLE ", "ALTER TABLE ")) and not here.failed:
            self._remember(sql.split()[2])
        return None

    def _remember(self, table: str) -> None:
        self.tables[table] = ""
        if not self.case.on_postgres:
            return
        key = self._columns(table, "a.attnum = ANY(i.indkey)")
        rest = self._columns(table, "NOT a.attnum = ANY(i.indkey)")
        if key:
            update = ", ".join(f"{column} = excluded.{column}" for column in rest)
            self.tables[table] = f" ON CONFLICT ({', '.join(key)}) DO " + (
                f"UPDATE SET {update}" if rest else "NOTHING"
            )

    def _columns(self, table: str, condition: str) -> list[str]:
        found = self._there(
            f"SELECT quote_ident(attname) FROM pg_attribute a JOIN pg_index i ON i.indrelid = a.attrelid"
            f" WHERE a.attrelid = '{table}'::regclass AND a.attnum > 0 AND {condition}"
        )
        return [str(row[0]) for row in found.rows]

    def _overwriting(self, sql: str) -> str:
        """An INSERT as PostgreSQL has to be told that rows replace those of the same key."""
        insert = _INSERT.match(sql)
        return sql + self.tables.get(insert[1], "") if insert and " ON CONFLICT " not in sql else sql

    # Comparisons.

    def _check(self) -> Failure | None:
        for name in self.tables:
            if failure := self._table(name):
                return failure
        for name in list(self.views):
            failure = self._law(name) if name in self.views else None
            if failure and (unknown := self._known(failure)):
                return unknown
            if failure:
                self._forget(name)
        for name in list(self.refused):
            failure = self._asked(self.refused[name])
            if failure and (unknown := self._known(failure)):
                return unknown
            if failure:
                del self.refused[name]
        return None

    def _asked(self, query: str) -> Failure | None:
        """A query that no view has is PostgreSQL's all the same."""
        here, there = self._here(query), self._there(query)
        self.seen["queries alone"] += 1
        if there.failed and documented(there.failed, RAISED_THERE):
            return None
        if here.failed and not there.failed and not documented(here.failed, REFUSED):
            return Failure(f"a query fails: {here.code}", query, here.failed)
        if here.failed or there.failed:
            self.seen[f"a query is refused: {here.failed or there.failed}"] += 1
            return None
        if self.case.on_postgres and (differs := difference(here, there)):
            return Failure("a query is not PostgreSQL's", query, differs)
        return None

    def _forget(self, name: str) -> None:
        """Compare a view no longer, and none that reads it."""
        self.views.pop(name, None)
        for reader in [other for other, query in self.views.items() if re.search(rf"{re.escape(name)}\b", query)]:
            self._forget(reader)

    def _table(self, name: str) -> Failure | None:
        sql = f"SELECT * FROM {name}"
        here, there = self._here(sql), self._there(sql)
        if here.failed:
            return Failure("a table cannot be read", sql, here.failed)
        if self.case.on_postgres and (differs := difference(here, there)):
            return Failure("a table has other rows than in PostgreSQL", sql, differs)
        return None

    def _law(self, name: str) -> Failure | None:
        """A view has the rows of its query, here and there."""
        sql, query = f"SELECT * FROM {name}", self.views[name]
        statement = f"{name} AS {query}"
        here, there = self._here(sql), self._there(sql)
        self.seen["comparisons"] += 1
        if here.failed:
            return Failure(f"a view cannot be read: {here.code}", statement, here.failed)
        if there.failed:
            if not documented(there.failed, RAISED_THERE):
                return Failure(f"PostgreSQL cannot read a view: {there.code}", statement, there.failed)
            self.seen[f"PostgreSQL raises {there.code}"] += 1
            return None
        # `*` is what it was when the view was made.
        asked = here if query.startswith("SELECT *") and self.altered else self._here(query)
        if asked.failed and self.case.on_postgres:
            return Failure(f"only as a query it fails: {asked.code}", statement, asked.failed)
        wrong = self.case.on_postgres and difference(here, there)
        if not asked.failed and (differs := difference(here, asked)):
            more = (
                f"\nagainst PostgreSQL:\n{wrong}"
                if wrong
                else "\nwhat PostgreSQL has too"
                if self.case.on_postgres
                else ""
            )
            return Failure("a view is not its query", statement, differs + more)
        if wrong:
            return Failure("a view is not PostgreSQL's", statement, wrong)
        if self.case.on_postgres and (types := types_differ(here, there)):
            return Failure(f"a view has other types: {types}", statement, types)
        return None


def summary(seen: Iterable[tuple[str, int]]) -> str:
    return "\n".join(f"{number:7} {what}" for what, number in seen)
