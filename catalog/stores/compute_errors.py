"""Rows of views for which an expression failed, and is NULL: the relation `compute_errors`.

What writes takes the cursor of the transaction that commits the rows, so that no row counts twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sparkwave.catalog.lake.ducklake import Cursor, first_row
from sparkwave.catalog.names import SYSTEM_SCHEMA, LakeTable, system_table

COMPUTE_ERRORS = LakeTable(SYSTEM_SCHEMA, "compute_errors")
_TABLE = system_table(COMPUTE_ERRORS.name)
# So many rows beyond one a relation are kept before they are added up.
_SLACK = 100


@dataclass(frozen=True)
class ComputeErrors:
    """How many rows, and why for the last of them, if that is known."""

    rows: int
    message: str | None


def add_errors(cursor: Cursor, relation_id: int, errors: ComputeErrors | None) -> None:
    """Count more of a relation. One more row: to change one costs a checkpoint as much as a view does."""
    if errors is not None:
        cursor.execute(f"INSERT INTO {_TABLE} VALUES (?, ?, ?, now())", [relation_id, errors.rows, errors.message])


def compute_errors(cursor: Cursor, relation_id: int | None = None) -> dict[int, tuple[ComputeErrors, datetime]]:
    """What is counted of one relation or all, by id, and the time of the last."""
    rows = cursor.execute(
        "SELECT relation_id, sum(row_count)::BIGINT, max_by(message, failed_at), max(failed_at) "
        f"FROM {_TABLE} WHERE coalesce(relation_id = $1, true) GROUP BY 1",
        [relation_id],
    ).fetchall()
    return {id_: (ComputeErrors(count, message), failed_at) for id_, count, message, failed_at in rows}


def add_up(cursor: Cursor) -> None:
    """Keep one row a relation, if there are many more."""
    row = first_row(cursor.execute(f"SELECT count(*) > count(DISTINCT relation_id) + {_SLACK} FROM {_TABLE}"))
    if row == (True,):
        found = compute_errors(cursor)
        cursor.execute(f"DELETE FROM {_TABLE}")
        for id_, (errors, failed_at) in found.items():
            cursor.execute(f"INSERT INTO {_TABLE} VALUES (?, ?, ?, ?)", [id_, errors.rows, errors.message, failed_at])


def move_errors(cursor: Cursor, made_id: int, relation_id: int) -> None:
    """Give a relation those of what took its place, instead of its own."""
    cursor.execute(f"DELETE FROM {_TABLE} WHERE relation_id = ?", [relation_id])
    cursor.execute(f"UPDATE {_TABLE} SET relation_id = ? WHERE relation_id = ?", [relation_id, made_id])
