"""Finding the relation a command names together with its kind, as DROP, WAIT and ALTER do."""

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
    """The relation. Raises Error 42P01 or 42704 if there is none, 42809 for another kind."""
    relation = find_named(session, name, kind)
    if relation.kind != kind:
        right = relation.kind
        message = f"Use `DROP {right.upper()}` to drop {with_article(right)}."
        raise Error(message, errors.WRONG_OBJECT_TYPE, position=name.position)
    return relation


def find_to_alter(session: Session, name: Name, kind: str) -> Relation:
    """As `find_of_kind`, for ALTER and COMMENT, whose TABLE is any relation as in Postgres."""
    relation = find_named(session, name, "relation" if kind in _POSTGRES else kind)
    if kind not in ("table", relation.kind):
        raise Error(f'"{name}" is not {with_article(kind)}', errors.WRONG_OBJECT_TYPE, position=name.position)
    return relation


def find_named(session: Session, name: Name, kind: str) -> Relation:
    """The relation of this name, of whatever kind. Raises Error 42P01 or 42704 in the words of `kind`."""
    return resolve(session.context.store.catalog, session.scope, name, kind)


# What ALTER and COMMENT of PostgreSQL call a relation if there is none of the name.
_POSTGRES = frozenset({"table", "view", "materialized view", "index", "sequence"})


def check_name(name: str, position: int) -> None:
    """Raise Error 42939 for the name of a system relation that is found without a schema: it would hide the new one."""
    if is_reserved(name, is_system):
        raise Error(f'relation name "{name}" is reserved', errors.RESERVED_NAME, position=position)
