"""`sparkwave status`, `sql` and `check --online`: clients of a running server."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import psycopg
import psycopg.sql

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error

_CONNECT_S = 5
_ROLE = "SELECT version(), current_setting('in_hot_standby') = 'on'"
_JOBS = """
SELECT count(*) FILTER (state = 'FOLLOWING'), count(*) FILTER (state = 'CREATING'),
    count(*) FILTER (state = 'BEHIND'), count(*) FILTER (state = 'FAILED')
FROM rw_catalog.rw_job_status"""
_TROUBLE = """
SELECT state, job_type, schema_name || '.' || job_name, coalesce(reason, '')
FROM rw_catalog.rw_job_status WHERE state IN ('BEHIND', 'FAILED') ORDER BY 3"""
_COMPARABLE = """
SELECT job_type, schema_name, job_name FROM rw_catalog.rw_job_status
WHERE state <> 'CREATING' AND job_type IN ('materialized view', 'index') AND database_name = current_database()
ORDER BY job_id"""
_PROGRESS = "SELECT ddl_statement, progress FROM rw_catalog.rw_ddl_progress ORDER BY ddl_id"
_NODES = """
SELECT resource_group, sum(parallelism)::bigint, sum(system_total_memory_bytes)::bigint
FROM rw_catalog.rw_worker_nodes WHERE resource_group IS NOT NULL GROUP BY 1 ORDER BY 1"""


@dataclass(frozen=True)
class Target:
    """The server to connect to, and the user. libpq finds a password in PGPASSWORD or its password file."""

    host: str
    port: int
    user: str
    database: str

    def connect(self) -> psycopg.Connection[tuple[object, ...]]:
        """Return a connection that commits each statement by itself.

        Raises Error 08006 when the server cannot be reached.
        """
        try:
            return psycopg.connect(
                host=self.host, port=self.port, user=self.user, dbname=self.database, autocommit=True,
                connect_timeout=_CONNECT_S, application_name="sparkwave",
            )  # fmt: skip
        except psycopg.OperationalError as error:
            reason = str(error).splitlines()[0].rpartition(" failed: ")[2]
            hint = "Start one with `sparkwave serve`, or name another with --listen."
            raise Error(
                f"no server on {self.host}:{self.port}: {reason}", errors.CONNECTION_FAILURE, hint=hint
            ) from error


def status(target: Target) -> int:
    """Print a server's state. Returns 1 if a view has failed or is behind. Raises Error 08006 without a server."""
    with target.connect() as connection:
        [(version, reads_only)] = connection.execute(_ROLE).fetchall()
        [(following, creating, behind, failed)] = connection.execute(_JOBS).fetchall()
        print(f"{target.host}:{target.port}{', for reading' if reads_only else ''}: {version}")
        print(f"jobs: {following} follow, {creating} are created, {behind} are behind, {failed} have failed")
        for statement, progress in connection.execute(_PROGRESS).fetchall():
            print(f"  {progress}: {' '.join(str(statement).split())[:100]}")
        for state, kind, name, reason in connection.execute(_TROUBLE).fetchall():
            print(f"  {state}: {kind} {name}: {reason}")
        for group, cores, memory in connection.execute(_NODES).fetchall():
            print(f"resource group {group}: {cores} cores, {int(str(memory)) >> 20} MiB")
    return 1 if behind or failed else 0


def check(target: Target) -> int:
    """Have a server compare the views and indexes of a database with their queries. Returns 1 if any is different.

    A server that only reads compares them with their checksums. Raises Error 08006 without a server, and the server's
    error for a view of another user.
    """
    compared, different = 0, 0
    with target.connect() as connection:
        [(_, reads_only)] = connection.execute(_ROLE).fetchall()
        what = "checksums" if reads_only else "queries"
        for kind, schema, name in connection.execute(_COMPARABLE).fetchall():
            statement = psycopg.sql.SQL("AUDIT {} {}").format(
                psycopg.sql.SQL("INDEX" if kind == "index" else "MATERIALIZED VIEW"),
                psycopg.sql.Identifier(str(schema), str(name)),
            )
            try:
                [(_, result, *_, detail)] = connection.execute(statement).fetchall()
            except psycopg.Error as error:
                raise Error(
                    error.diag.message_primary or str(error), error.sqlstate or errors.INTERNAL_ERROR
                ) from error
            compared, different = compared + (result != "SKIPPED"), different + (result == "DIFFERENT")
            if result == "SKIPPED":
                print(f"not compared: {kind} {schema}.{name}: {detail}")
            elif result == "DIFFERENT":
                print(f"{kind} {schema}.{name}: {detail}")
    print(f"{compared} views and indexes compared with their {what}: {different or 'no'} findings")
    return 1 if different else 0


def sql(target: Target, texts: Sequence[str]) -> int:
    """Run psql, or a small prompt if psql is missing. Returns the exit code; 1 when a statement has failed."""
    psql = shutil.which("psql")
    if psql is not None:
        arguments = ["-h", target.host, "-p", str(target.port), "-U", target.user, "-d", target.database]
        sys.stdout.flush()
        os.execv(psql, [psql, *arguments, *(part for text in texts for part in ("-c", text))])
    with target.connect() as connection:
        if texts:
            return max(0 if _run(connection, text) else 1 for text in texts)
        return _prompt(connection)


def _prompt(connection: psycopg.Connection[tuple[object, ...]]) -> int:
    """Run statements from standard input, each up to a line that ends with a semicolon. Returns the exit code."""
    is_terminal, lines, is_fine = sys.stdin.isatty(), list[str](), True
    if is_terminal:
        print("psql is not installed; statements end with ;  and Ctrl-D ends this prompt.")
    while True:
        try:
            line = input(("-> " if lines else "sparkwave=> ") if is_terminal else "")
        except (EOFError, KeyboardInterrupt):
            break
        lines.append(line)
        if line.rstrip().endswith(";"):
            is_fine &= _run(connection, "\n".join(lines))
            lines.clear()
    if any(line.strip() for line in lines):
        is_fine &= _run(connection, "\n".join(lines))
    return 0 if is_fine or is_terminal else 1


def _run(connection: psycopg.Connection[tuple[object, ...]], text: str) -> bool:
    """Run a text and print its results. Returns whether it succeeded."""
    try:
        cursor = psycopg.ClientCursor(connection)
        cursor.execute(text.encode())
    except psycopg.Error as error:
        print(f"ERROR:  {error}", file=sys.stderr)
        return False
    while True:
        if cursor.description is None:
            print(cursor.statusmessage or "")
        else:
            _print_table([column.name for column in cursor.description], cursor.fetchall())
        if not cursor.nextset():
            return True


def _print_table(names: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows in psql's layout, with all columns aligned to the left."""
    cells = [["" if value is None else str(value) for value in row] for row in rows]
    widths = [max(len(name), *(len(row[at]) for row in cells), 0) for at, name in enumerate(names)]
    print("|".join(f" {name.ljust(width)} " for name, width in zip(names, widths, strict=True)).rstrip())
    print("+".join("-" * (width + 2) for width in widths))
    for row in cells:
        print("|".join(f" {cell.ljust(width)} " for cell, width in zip(row, widths, strict=True)).rstrip())
    print(f"({len(cells)} row{'s' * (len(cells) != 1)})\n")
