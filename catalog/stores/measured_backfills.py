"""The relation `measured_backfills`: how long finished backfills took, by which later ones are quoted.

Only the newest KEPT are kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.names import system_table

# Backfills that are kept: enough for each kind of engine.
KEPT = 300


@dataclass(frozen=True)
class MeasuredBackfill:
    """A finished backfill of `rows` input rows, which took `seconds` without the `start_s` of its resource group.

    `kind` is that of its engine, as in `planner.backfill.cost_model`, which also defines the `work` estimated for it.
    """

    job_id: int
    kind: str
    cores: int
    rows: int
    start_s: float
    seconds: float
    work: Mapping[str, float]


def add_measured(cursor: Cursor, found: Iterable[MeasuredBackfill]) -> None:
    """Store finished backfills, and forget the oldest ones above KEPT."""
    table = system_table("measured_backfills")
    for each in found:
        cursor.execute(
            f"INSERT INTO {table} VALUES (?, now(), ?, ?, ?, ?, ?, ?)",
            [each.job_id, each.kind, each.cores, each.rows, each.start_s, each.seconds, json.dumps(dict(each.work))],
        )
    if cursor.execute(f"SELECT 1 FROM {table} OFFSET {KEPT} LIMIT 1").fetchone() is None:
        return  # a DELETE is the slowest statement of a lake
    cursor.execute(
        f"DELETE FROM {table} WHERE (finished_at, job_id) NOT IN "
        f"(SELECT (finished_at, job_id) FROM {table} ORDER BY finished_at DESC, job_id DESC LIMIT {KEPT})"
    )


def load_measured(cursor: Cursor) -> list[MeasuredBackfill]:
    """Return the stored backfills, the newest first."""
    rows = cursor.execute(
        "SELECT job_id, kind, cores, row_count, start_s, seconds, work "
        f"FROM {system_table('measured_backfills')} ORDER BY finished_at DESC, job_id DESC"
    ).fetchall()
    return [
        MeasuredBackfill(job_id, kind, cores, count, start_s, seconds, json.loads(work))
        for job_id, kind, cores, count, start_s, seconds, work in rows
    ]
