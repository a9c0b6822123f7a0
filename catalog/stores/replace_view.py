"""ALTER MATERIALIZED VIEW … AS in the catalog: gives a view the rows, state and job of its new definition."""

from __future__ import annotations

from dataclasses import replace

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import CREATED, Relation
from sparkwave.catalog.names import system_table
from sparkwave.catalog.stores import view_checksums
from sparkwave.catalog.stores.comment_store import put_comment
from sparkwave.catalog.stores.compute_errors import move_errors
from sparkwave.catalog.stores.relation_store import drop_tables
from sparkwave.catalog.stores.store import Store
from sparkwave.catalog.stores.user_store import move_column_grants


def replaced(before: Relation, made: Relation, change: int) -> Relation:
    """Return the view after the change with the id `change`; `made` is the relation with its new rows.

    New columns do not exist for definitions made before. A column that was nullable stays nullable, so that its readers
    go on when a later definition allows NULL.
    """
    old = {column.name: column for column in before.columns}
    columns = tuple(
        replace(column, since=old[column.name].since, not_null=column.not_null and old[column.name].not_null)
        if column.name in old
        else replace(column, since=change)
        for column in made.columns
    )
    return replace(
        before,
        columns=columns,
        key=made.key,
        definition=made.definition,
        upstreams=made.upstreams,
        made_as=made.made_as,
        shown=made.shown,
        defined_by=made.id,
        planner=made.planner,
        fingerprint=made.fingerprint,
    )


def put_replaced(store: Store, cursor: Cursor, relation: Relation, group: str) -> None:
    """Store a view as `replaced` returns it. Its job is created and belongs to the resource group `group`.

    The view's old tables and state are dropped; comments and privileges stay on the columns that it still has.
    """
    before, made_id = store.catalog.by_id[relation.id], relation.definition_id
    drop_tables(store, cursor, before)
    jobs, states, relations = map(system_table, ("jobs", "states", "relations"))
    cursor.execute(f"DELETE FROM {jobs} WHERE id = ?", [relation.id])
    cursor.execute(
        f"UPDATE {jobs} SET id = ?, status = '{CREATED}', snapshot = NULL, views_at = NULL, waiting = NULL, "
        "waiting_since = NULL, resource_group = ? WHERE id = ?",
        [relation.id, group, made_id],
    )
    move_errors(cursor, made_id, relation.id)
    view_checksums.forget(cursor, relation.id)
    cursor.execute(f"DELETE FROM {states} WHERE job_id = ?", [relation.id])
    cursor.execute(f"UPDATE {states} SET job_id = ? WHERE job_id = ?", [relation.id, made_id])
    cursor.execute(f"DELETE FROM {system_table('columns')} WHERE relation_id = ?", [made_id])
    store.replace_columns(cursor, relation)
    cursor.execute(f"DELETE FROM {relations} WHERE id = ?", [made_id])
    cursor.execute(
        f"UPDATE {relations} SET key = ?, definition = ?, upstreams = ?, lake_schema = ?, lake_name = ?, shown = ?, "
        "defined_by = ?, planner = ?, fingerprint = ? WHERE id = ?",
        [
            list(relation.key),
            relation.definition,
            list(relation.upstreams),
            relation.lake_table.schema,
            relation.lake_table.name,
            relation.shown,
            made_id,
            relation.planner,
            relation.fingerprint,
            relation.id,
        ],
    )
    for column in before.visible:
        if not any(column.name == kept.name for kept in relation.visible):
            put_comment(cursor, relation.id, column.name, None)
            move_column_grants(cursor, relation.id, column.name, None)
