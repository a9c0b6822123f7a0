"""Finding the relation a command names together with its kind, as DROP, WAIT and ALTER do."""

from __future__ import annotations

from catalog import errors
from catalog.errors import Error, not_found
from catalog.model import Relation
from planner.bind import resolve
from planner.statements import Name
from server.session import Session


def find_of_kind(session: Session, name: Name, kind: str) -> Relation:
    """The relation. Raises, in RisingWave's words (reference §8.3), Error 42704 if there is none, 42809 for another."""
    try:
        relation = resolve(session.context.store.catalog, session.scope, name, kind)
    except Error as error:
        if error.sqlstate != errors.UNDEFINED_TABLE:
            raise
        raise not_found(kind, str(name), position=name.position) from error
    if relation.kind != kind:
        right = relation.kind
        raise Error(f"Use `DROP {right.upper()}` to drop a {right}.", errors.WRONG_OBJECT_TYPE, position=name.position)
    return relation
