"""BACKUP, and the client function of `sparkwave backup`, which asks a running server for a backup."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import psycopg

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.names import literal
from sparkwave.catalog.types import VARCHAR
from sparkwave.executor.maintenance.backup import Backup, back_up
from sparkwave.planner import statements
from sparkwave.planner.bind.privileges import permission_denied
from sparkwave.server.reads.result_columns import rows_result
from sparkwave.server.session.session import Session
from sparkwave.server.wire.result import Result

COLUMNS = ("Snapshot", "Files", "Bytes")


def backup(session: Session, statement: statements.Backup) -> Result:
    """Write a backup of the server into a directory of its machine.

    Raises Error 42501 unless the user is a superuser, 42602 for a relative path, and the errors of `back_up`.
    """
    if not session.user.is_super:
        raise permission_denied("only superusers can back up")
    target = Path(statement.target)
    if not target.is_absolute():
        message = "relative path not allowed for BACKUP"
        raise Error(message, errors.INVALID_NAME, position=statement.position)
    with closing(session.context.lake.cursor()) as cursor, session.interrupting(cursor):
        session.store_views()
        done = back_up(session.context.lake, cursor, target, session.running.check)
    row = tuple(str(number) for number in (done.snapshot, done.files, done.size))
    return rows_result("BACKUP", COLUMNS, [row], (VARCHAR,) * len(COLUMNS))


def ask_for_backup(address: tuple[str, int], user: str, target: Path) -> Backup:
    """Have a running server write a backup to `target`, an absolute path on the server's machine. Raises Error.

    The password comes from libpq's sources: PGPASSWORD, PGPASSFILE.
    """
    host, port = address
    try:
        with psycopg.connect(
            host=host, port=port, user=user, dbname="dev", autocommit=True, connect_timeout=10
        ) as connection:
            row = connection.execute(f"BACKUP TO {literal(str(target))}".encode()).fetchone()
    except psycopg.Error as error:
        message = error.diag.message_primary or str(error).strip().splitlines()[0]
        raise Error(message, error.sqlstate or errors.CONNECTION_FAILURE, hint=error.diag.message_hint) from error
    assert row is not None
    return Backup(*map(int, row))
