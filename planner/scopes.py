"""Where names are looked up."""

from __future__ import annotations

from dataclasses import dataclass

from catalog.model import Relation
from catalog.names import DEFAULT_SCHEMA


@dataclass(frozen=True)
class Scope:
    """Where unqualified names are looked up: in these schemas, one after the other.

    `temporary` is the session's schema of temporary tables, which is the first in the path if it has one.
    """

    database: str
    path: tuple[str, ...] = (DEFAULT_SCHEMA,)
    temporary: str | None = None


def scope_of(relation: Relation) -> Scope:
    """Where the names in a relation's stored definition are looked up."""
    return Scope(relation.database, (relation.schema,))
