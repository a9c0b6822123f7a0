"""The relation `view_audits`: the results of comparing views with their queries (`executor.maintenance.audits`)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.names import SYSTEM_SCHEMA, LakeTable, system_table
from sparkwave.catalog.stores.view_checksums import Checksum

VIEW_AUDITS = LakeTable(SYSTEM_SCHEMA, "view_audits")
_TABLE = system_table(VIEW_AUDITS.name)
# The results that are kept of each relation.
KEPT = 20

# The results: the rows are those of the query; they are not; they were not compared. SAME is not stored: the rows have
# the recorded checksum.
PROVEN, DIFFERENT, SKIPPED, SAME = "PROVEN", "DIFFERENT", "SKIPPED", "SAME"


@dataclass(frozen=True)
class Audit:
    """The result of an audit of a relation at a snapshot of the lake.

    - `checksum`: of the stored rows; None if they were not read.
    - `engine`: the engine that computed the query.
    - `detail`: why nothing was compared, or what differs, in words; `evidence` is a JSON object with differing rows.
    """

    relation_id: int
    started_at: datetime
    seconds: float
    snapshot: int
    result: str
    engine: str | None = None
    checksum: Checksum | None = None
    detail: str | None = None
    evidence: str | None = None


def add_audit(cursor: Cursor, audit: Audit) -> None:
    """Store a result, in the cursor's transaction."""
    checksum = audit.checksum
    cursor.execute(
        f"INSERT INTO {_TABLE} VALUES ({', '.join('?' * 10)})",
        [
            audit.relation_id, audit.started_at, audit.seconds, audit.snapshot, audit.result, audit.engine,
            str(checksum) if checksum else None, checksum.rows if checksum else None, audit.detail, audit.evidence,
        ],
    )  # fmt: skip


def newest_results(cursor: Cursor) -> dict[int, tuple[str, datetime, int]]:
    """Return the newest result of each relation, by id, with the time at which the audit started, and its snapshot."""
    rows = cursor.execute(
        f"SELECT relation_id, max_by(result, started_at), max(started_at), max_by(snapshot, started_at) "
        f"FROM {_TABLE} GROUP BY relation_id"
    ).fetchall()
    return {id_: (result, at, snapshot) for id_, result, at, snapshot in rows}


def audits(cursor: Cursor) -> list[Audit]:
    """Return the kept results, newest first."""
    rows = cursor.execute(f"SELECT * FROM {_TABLE} ORDER BY started_at DESC").fetchall()
    return [
        Audit(id_, at, seconds, snapshot, result, engine, _checksum(value, count), detail, evidence)
        for id_, at, seconds, snapshot, result, engine, value, count, detail, evidence in rows
    ]


def _checksum(value: str | None, rows: int) -> Checksum | None:
    return Checksum(int(value, 16), rows) if value is not None else None


def keep_newest(cursor: Cursor, stored: str) -> None:
    """Delete all but the newest results of each relation, if `stored`, SQL of the relation's rows, has many more."""
    older = (
        f"SELECT relation_id, started_at FROM {stored} "
        f"QUALIFY row_number() OVER (PARTITION BY relation_id ORDER BY started_at DESC) > {KEPT}"
    )
    if len(cursor.execute(f"{older} LIMIT {KEPT}").fetchall()) == KEPT:
        cursor.execute(
            f"DELETE FROM {_TABLE} AS t USING ({older}) AS o "
            "WHERE t.relation_id = o.relation_id AND t.started_at = o.started_at"
        )
