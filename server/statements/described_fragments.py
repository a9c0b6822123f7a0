"""DESCRIBE FRAGMENTS and DESCRIBE FRAGMENT (RisingWave: src/frontend/src/handler/describe.rs)."""

from __future__ import annotations

from contextlib import closing

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error, not_found
from sparkwave.catalog.model import Relation
from sparkwave.catalog.system.system_views import is_system
from sparkwave.planner.batch.pg_names import IMPLICIT_SCHEMAS
from sparkwave.planner.bind.binder import resolve
from sparkwave.planner.explain.distsql import described
from sparkwave.planner.explain.fragment_plans import fragment_operators
from sparkwave.planner.parse.describe import FRAGMENTS
from sparkwave.planner.statements import Name, Show
from sparkwave.server.session.session import Session

_FRAGMENT = """
SELECT distribution_type, parallelism, max_parallelism, state_table_ids, upstream_fragment_ids
FROM memory.rwc.rw_fragments WHERE fragment_id = ? AND table_id = fragment_id
"""
_ACTORS = "SELECT actor_id FROM memory.rwc._actors WHERE table_id = ? ORDER BY actor_id"


def describe_fragments(session: Session, statement: Show) -> list[tuple[object, ...]]:
    """Return a relation's fragment as a row with its text and an empty row; or the fragment with an id as one row.

    Raises Error 42P01, 42704 for an unknown fragment, 0A000 for a relation without fragments.
    """
    if statement.what == FRAGMENTS:
        assert statement.relation is not None
        relation = _relation(session, statement.relation)
        with closing(session.context.system_views.cursor("rwc._actors")) as cursor:
            actors = cursor.execute(_ACTORS, [relation.id]).fetchall()
        head = f"Fragment {relation.id} (Actor {','.join(str(actor) for (actor,) in actors)})"
        return [("\n".join([head, *_plan(session, relation)]),), ("",)]
    assert statement.fragment is not None
    id_, position = statement.fragment
    found = session.context.store.catalog.by_id.get(id_)
    with closing(session.context.system_views.cursor("rwc.rw_fragments")) as cursor:
        row = cursor.execute(_FRAGMENT, [id_]).fetchone()
    if found is None or row is None:
        raise not_found("fragment", str(id_), position=position, hint="rw_catalog.rw_fragments has those of all jobs.")
    distribution, parallelism, vnodes, states, upstreams = row
    lines = [f"Fragment {id_} (Table {id_})", f"Distribution Type: {distribution}", f"Parallelism: {parallelism}"]
    lines.append(f"VNode Count: {vnodes}")
    for what, ids in (("State Tables", states), ("Upstream Fragments", upstreams)):
        lines += [f"{what}: [{', '.join(map(str, ids))}]"] if ids else []
    return [("\n".join([*lines, "Stream Plan:", *_plan(session, found)]),)]


def _relation(session: Session, name: Name) -> Relation:
    """Return the relation of a name, which has fragments."""
    schemas = IMPLICIT_SCHEMAS if name.schema is None else (name.schema,)
    if any(is_system(schema, name.name) for schema in schemas):
        raise _no_fragments("system table", name)
    relation = resolve(session.context.store.catalog, session.scope, name)
    if not (relation.is_streaming or relation.kind in ("table", "source")):
        raise _no_fragments(relation.kind, name)
    return relation


def _no_fragments(kind: str, name: Name) -> Error:
    message = f"Not supported: {kind} has no fragments to describe"
    hint = "Use `DESCRIBE` instead of `DESCRIBE FRAGMENTS`"
    return Error(message, errors.FEATURE_NOT_SUPPORTED, hint=hint, position=name.position)


def _plan(session: Session, relation: Relation) -> list[str]:
    return described(fragment_operators(relation, session.context.store.catalog))
