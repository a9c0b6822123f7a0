"""Finds the relation that a command names together with its kind, as DROP, WAIT and ALTER do."""

from __future__ import annotations

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error, not_found
from sparkwave.catalog.model import Relation
from sparkwave.catalog.names import TEMPORARY_SCHEMA, is_temporary_schema
from sparkwave.catalog.relation_details import with_article
from sparkwave.catalog.system.system_views import is_system
from sparkwave.planner.batch.pg_names import is_reserved
from sparkwave.planner.bind.binder import resolve
from sparkwave.planner.bind.scopes import OF_THE_SYSTEM
from sparkwave.planner.statements import Name
from sparkwave.server.session.session import Session


def find_of_kind(session: Session, name: Name, kind: str) -> Relation:
    """Return the relation of a name and kind.

    Raises Error 42P01 or 42704 if there is none, 3F000 if its schema is missing, 42809 for another kind.
    """
    _check_schema(session, name)
    relation = find_named(session, name, kind)
    if relation.kind != kind:
        right = relation.kind
        message = f"Use `DROP {right.upper()}` to drop {with_article(right)}."
        raise Error(message, errors.WRONG_OBJECT_TYPE, position=name.position)
    return relation


def _check_schema(session: Session, name: Name) -> None:
    """Raise Error 3F000 for a name in a schema that is missing."""
    schema, known = name.schema, session.context.store.catalog.schemas
    if name.database is not None or schema is None or (session.database, schema) in known:
        return
    if schema not in (*OF_THE_SYSTEM, TEMPORARY_SCHEMA) and not is_temporary_schema(schema):
        raise not_found("schema", schema, sqlstate=errors.INVALID_SCHEMA_NAME, position=name.position)


def find_to_alter(session: Session, name: Name, kind: str) -> Relation:
    """Work as `find_of_kind`, for ALTER and COMMENT, where TABLE is any relation, as in Postgres."""
    relation = find_named(session, name, "relation" if kind in _POSTGRES else kind)
    if kind not in ("table", relation.kind):
        raise Error(f'"{name}" is not {with_article(kind)}', errors.WRONG_OBJECT_TYPE, position=name.position)
    return relation


def check_kind(relation: Relation, name: Name, kind: str) -> None:
    """Raise Error 42809 for a relation of another kind."""
    if relation.kind != kind:
        raise Error(f'"{name}" is not {with_article(kind)}', errors.WRONG_OBJECT_TYPE, position=name.position)


def find_named(session: Session, name: Name, kind: str) -> Relation:
    """Return the relation of a name, of any kind. Raises Error 42P01 or 42704 in the words of `kind`."""
    return resolve(session.context.store.catalog, session.scope, name, kind)


# The kinds for which PostgreSQL's ALTER and COMMENT say "relation" when there is none of the name.
_POSTGRES = frozenset({"table", "view", "materialized view", "index", "sequence"})


def check_name(name: str, position: int) -> None:
    """Raise Error 42939 for the name of a system relation found without a schema: it would hide the new one."""
    if is_reserved(name, is_system):
        raise Error(f'relation name "{name}" is reserved', errors.RESERVED_NAME, position=position)
