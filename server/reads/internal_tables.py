"""Internal tables: the states of jobs' operators, and of backfills, which queries can read as they are stored.

For a query that names one, the table is a relation of its job's schema and owner. An internal table has no
grants, so only its owner and superusers may read it. Only the environment of such a query has internal tables, so no
other statement can use one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

from sparkwave.catalog.column_names import unescaped
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import INTERNAL_TABLE, Catalog, Column, Relation
from sparkwave.catalog.types import BIGINT, BOOLEAN, INTEGER, VARCHAR, Type, described_type
from sparkwave.planner.batch.query import Environment
from sparkwave.server.session.session import Session

_IDS = "SELECT id, name FROM memory.rwc._internal_tables"
_BACKFILLS = "SELECT id, name, job_id, fragment_id, is_snapshot FROM memory.rwc._backfill_tables ORDER BY job_id, id"
# The columns of a backfill's table, as in RisingWave (src/frontend/src/optimizer/plan_node/stream_table_scan.rs) with
# the row id for the upstream's key: of a snapshot backfill, and of any other.
_ROWS_OF_SNAPSHOTS = "vnode, epoch, row_count, is_finished AS is_epoch_finished, _row_id"
_ROWS = "vnode, _row_id, is_finished AS backfill_finished, row_count"
_TYPES = {
    "vnode": INTEGER, "epoch": BIGINT, "row_count": BIGINT, "_row_id": BIGINT, "is_epoch_finished": BOOLEAN,
    "backfill_finished": BOOLEAN,
}  # fmt: skip


def with_internal_tables(session: Session, environment: Environment) -> Environment:
    """Return the environment of a query with the internal tables of created jobs, and of backfills, as relations."""
    catalog = environment.catalog
    with closing(session.context.system_views.cursor("rwc._internal_tables", "rwc._backfill_tables")) as cursor:
        ids = {name: id_ for id_, name in cursor.execute(_IDS).fetchall()}
        made = (*_relations(cursor, catalog, ids), *_backfills(cursor, catalog))
    return replace(environment, catalog=replace(catalog, relations=(*catalog.relations, *made)))


def readable_tables(session: Session, schemas: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return the schema and name of the internal tables in schemas that the user may read."""
    catalog, user = session.context.store.catalog, session.user
    found = []
    with closing(session.context.system_views.cursor("rwc._backfill_tables")) as cursor:
        backfills = [(name, job_id, False) for _, name, job_id, _, _ in cursor.execute(_BACKFILLS).fetchall()]
    for name, job_id, is_created in [*((*each, True) for each in catalog.internal_tables.items()), *backfills]:
        job = catalog.by_id.get(job_id)
        is_there = job is not None and job.created is is_created
        if job is None or not is_there or job.database != session.database or job.schema not in schemas:
            continue
        if user.is_super or user.acts_as(job.owner):
            found.append((job.schema, name))
    return sorted(found, key=lambda each: (schemas.index(each[0]), each[1]))


def _relations(cursor: Cursor, catalog: Catalog, ids: dict[str, int]) -> Iterator[Relation]:
    for name, job_id in catalog.internal_tables.items():
        job = catalog.by_id.get(job_id)
        if job is None or not job.created or name not in ids:
            continue
        table = replace(job.lake_table, name=name)
        columns = tuple(
            Column(unescaped(column), _type(type_), made_as=column)
            for column, type_, *_ in cursor.execute(f"DESCRIBE {table.sql}").fetchall()
        )
        yield Relation(
            ids[name], job.database, job.schema, name, INTERNAL_TABLE, columns, definition="", created=True, key=(),
            owner=job.owner, made_as=table,
        )  # fmt: skip


def _backfills(cursor: Cursor, catalog: Catalog) -> Iterator[Relation]:
    """Return the tables of backfills, which are views of what their jobs have stored."""
    for id_, name, job_id, fragment_id, is_snapshot in cursor.execute(_BACKFILLS).fetchall():
        job = catalog.by_id.get(job_id)
        if job is None or job.created:
            continue
        rows = _ROWS_OF_SNAPSHOTS if is_snapshot else _ROWS
        columns = tuple(Column(name, _TYPES[name]) for name in (part.split()[-1] for part in rows.split(", ")))
        definition = (
            f"CREATE VIEW {name} AS SELECT {rows} FROM rw_catalog.rw_backfill_states WHERE fragment_id = {fragment_id}"
        )
        yield Relation(
            id_, job.database, job.schema, name, "view", columns, definition=definition, created=True, key=(),
            owner=job.owner,
        )  # fmt: skip


def _type(text: str) -> Type:
    """Return the type of a stored column; types that only states have are shown as text."""
    try:
        return described_type(text)
    except Error:
        return VARCHAR
