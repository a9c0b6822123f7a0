"""The relation `applications`: the Spark applications, each of which is a resource group while it lives."""

from __future__ import annotations

from dataclasses import dataclass

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.system_rows import SystemRows
from sparkwave.catalog.names import system_table

# The states of an application. A draining one has no job; it is destroyed unless a job takes it before.
PROVISIONING, READY, DRAINING, DESTROYED = "PROVISIONING", "READY", "DRAINING", "DESTROYED"
# The most destroyed applications that are kept.
REMEMBERED = 1000

_NAME = "applications"
_TABLE = system_table(_NAME)


@dataclass(frozen=True)
class ApplicationRow:
    """A row of `applications`; memory is in bytes for each node."""

    id: int
    name: str
    resource_group: str
    is_serverless: bool
    port: int
    replicas: int
    cores: int
    memory_bytes: int


def next_id(cursor: Cursor) -> int:
    row = cursor.execute(f"SELECT coalesce(max(id), 0) + 1 FROM {_TABLE}").fetchone()
    assert row is not None
    return int(row[0])


def add(cursor: Cursor, row: ApplicationRow) -> None:
    """Store an application that is being provisioned."""
    cursor.execute(
        f"INSERT INTO {_TABLE} VALUES (?, ?, ?, ?, '{PROVISIONING}', ?, ?, ?, ?, NULL, now(), NULL, now())",
        [row.id, row.name, row.resource_group, row.is_serverless, row.port, row.replicas, row.cores, row.memory_bytes],
    )


def set_state(cursor: Cursor, id_: int, state: str, reason: str | None = None) -> None:
    """Store an application's state and the reason for it, if there is a special one."""
    ready = ", ready_at = coalesce(ready_at, now())" if state == READY else ""
    cursor.execute(
        f"UPDATE {_TABLE} SET state = ?, reason = ?, changed_at = now(){ready} WHERE id = ?", [state, reason, id_]
    )


def usual_starts_s(cursor: Cursor) -> dict[bool, float]:
    """Return the median seconds in which the last ten applications became ready, by whether they are serverless."""
    rows = cursor.execute(
        f"SELECT is_serverless, median(epoch(ready_at) - epoch(started_at)) FROM (FROM {_TABLE} "
        "WHERE ready_at IS NOT NULL QUALIFY row_number() OVER (PARTITION BY is_serverless ORDER BY id DESC) <= 10) "
        "GROUP BY is_serverless"
    ).fetchall()
    return dict(rows)


def destroy_all(cursor: Cursor, reason: str) -> list[str]:
    """Mark all applications as destroyed, and remove old ones. Return the names of the applications that were alive.

    The cursor's transaction must not have written the relation before.
    """
    stored = SystemRows((_NAME,)).relation(cursor, _NAME)
    names = cursor.execute(f"SELECT name FROM {stored} WHERE state <> '{DESTROYED}' ORDER BY id").fetchall()
    if names:
        cursor.execute(
            f"UPDATE {_TABLE} SET state = '{DESTROYED}', reason = ?, changed_at = now() WHERE state <> '{DESTROYED}'",
            [reason],
        )
    old = f"WHERE id <= (SELECT max(id) FROM {stored}) - {REMEMBERED}"
    if cursor.execute(f"SELECT 1 FROM {stored} {old} LIMIT 1").fetchall():
        cursor.execute(f"DELETE FROM {_TABLE} {old}")
    return [name for (name,) in names]
