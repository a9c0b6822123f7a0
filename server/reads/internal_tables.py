"""Internal tables: the states of jobs' operators, which queries can read as the last checkpoint has stored them.

For a query that names one, the table is a relation of its job's schema and owner. It has no grants, so nobody else may
read it but superusers. Only such a query's environment has it, so that no other statement can do anything with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

from sparkwave.catalog.column_names import unescaped
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import INTERNAL_TABLE, Catalog, Column, Relation
from sparkwave.catalog.types import VARCHAR, Type, duckdb_type
from sparkwave.planner.batch.query import Environment
from sparkwave.server.session.session import Session

_IDS = "SELECT id, name FROM memory.rwc._internal_tables"


def with_internal_tables(session: Session, environment: Environment) -> Environment:
    """Return the environment of a query with the internal tables of created jobs as relations."""
    catalog = environment.catalog
    with closing(session.context.lake.cursor()) as cursor:
        ids = {name: id_ for id_, name in cursor.execute(_IDS).fetchall()}
        made = tuple(_relations(cursor, catalog, ids))
    return replace(environment, catalog=replace(catalog, relations=(*catalog.relations, *made)))


def readable_tables(session: Session, schemas: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return the schema and name of the internal tables in schemas that the user may read."""
    catalog, user = session.context.store.catalog, session.user
    found = []
    for name, job_id in catalog.internal_tables.items():
        job = catalog.by_id.get(job_id)
        is_there = job is not None and job.created and job.database == session.database and job.schema in schemas
        if job is not None and is_there and (user.is_super or user.acts_as(job.owner)):
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


def _type(text: str) -> Type:
    """The type of a stored column; types that only states have are shown as text."""
    try:
        return duckdb_type(text)
    except Error:
        return VARCHAR
