"""Where names are looked up."""

from __future__ import annotations

from dataclasses import dataclass

from catalog.model import Relation
from catalog.names import DEFAULT_SCHEMA


@dataclass(frozen=True)
class Scope:
    """Where unqualified names are looked up: in these schemas, one after the other.

    `temporary` is the session's schema of temporary tables, which is the first in the path if it has one. `as_of` is
    the id of the definition that the names are in: it knows tables as they were when it was made.
    """

    database: str
    path: tuple[str, ...] = (DEFAULT_SCHEMA,)
    temporary: str | None = None
    as_of: int | None = None


def scope_of(relation: Relation) -> Scope:
    """Where the names in a relation's stored definition are looked up."""
    return Scope(relation.database, (relation.schema,), as_of=relation.definition_id)
