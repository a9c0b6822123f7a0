"""Finds the relation that a command names together with its kind, as DROP, WAIT and ALTER do."""

from __future__ import annotations

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import Relation
from sparkwave.catalog.relation_details import with_article
from sparkwave.catalog.system.system_views import is_system
from sparkwave.planner.batch.pg_names import is_reserved
from sparkwave.planner.bind.binder import resolve
from sparkwave.planner.statements import Name
from sparkwave.server.session.session import Session


def find_of_kind(session: Session, name: Name, kind: str) -> Relation:
    """Return the relation of a name and kind. Raises Error 42P01 or 42704 if there is none, 42809 for another kind."""
    relation = find_named(session, name, kind)
    if relation.kind != kind:
        right = relation.kind
        message = f"Use `DROP {right.upper()}` to drop {with_article(right)}."
        raise Error(message, errors.WRONG_OBJECT_TYPE, position=name.position)
    return relation


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
