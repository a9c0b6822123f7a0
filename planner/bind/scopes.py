"""The scopes in which names are looked up, and the relations that the names mean."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error, not_found
from sparkwave.catalog.model import Catalog, Relation
from sparkwave.catalog.moment_texts import MDY
from sparkwave.catalog.names import DEFAULT_SCHEMA, TEMPORARY_SCHEMA, is_temporary_schema
from sparkwave.catalog.types import Type
from sparkwave.planner.batch.pg_names import IMPLICIT_SCHEMAS, IsSystem
from sparkwave.planner.since import PLANNER
from sparkwave.planner.statements import Name

OF_THE_SYSTEM = ("pg_catalog", "rw_catalog", "information_schema")


def _has_none(_schema: str, _name: str) -> bool:
    return False


@dataclass(frozen=True)
class Scope:
    """Where unqualified names are looked up: in the schemas of `path`, one after the other.

    `temporary` is the session's schema of temporary tables, which is first in the path if there is one. `as_of` is the
    id of the definition that contains the names: tables are as they were when it was made. With `is_stored` the names
    are of a stored definition, in which earlier versions took names that are ambiguous. `planner` is the version of the
    planner by whose rules a definition is read. `order` is the session's order of day, month and year in dates.
    `parameters` are the types of $1, $2, … where they are known. `is_system` tells whether a schema has a system
    relation of a name.
    """

    database: str
    path: tuple[str, ...] = (DEFAULT_SCHEMA,)
    temporary: str | None = None
    as_of: int | None = None
    is_stored: bool = False
    planner: int = PLANNER
    order: str = MDY
    parameters: tuple[Type | None, ...] = ()
    is_system: IsSystem = _has_none


def scope_of(relation: Relation) -> Scope:
    """Return the scope of the names in a relation's stored definition."""
    temporary = relation.schema if relation.is_temporary else None
    return Scope(relation.database, (relation.schema,), temporary, as_of=relation.definition_id, is_stored=True)


def find(catalog: Catalog, scope: Scope, name: Name) -> Relation | None:
    """Return the relation of a name, if there is one, as it is known in the scope; temporary ones are the session's.

    Raises Error 0A000 for another database's.
    """
    check_database(name, scope.database)
    schemas: tuple[str | None, ...] = (name.schema,) if name.schema else scope.path
    if name.schema == TEMPORARY_SCHEMA:
        schemas = (scope.temporary,)
    own = (s for s in schemas if s is not None and (s == scope.temporary or not is_temporary_schema(s)))
    found = (catalog.find(scope.database, schema, name.name) for schema in own)
    return next((relation.as_of(scope.as_of) for relation in found if relation is not None), None)


def find_read(catalog: Catalog, scope: Scope, name: Name) -> Relation | None:
    """Find a relation that is only read: it may be in another database, but for the system's relations.

    Raises Error 3D000 for a database that does not exist.
    """
    if not name.database or name.database == scope.database:
        return find(catalog, scope, name)
    if name.schema in OF_THE_SYSTEM:
        check_database(name, scope.database)
    if name.database not in catalog.databases:
        raise not_found("database", name.database, sqlstate=errors.INVALID_CATALOG_NAME, position=name.position)
    assert name.schema is not None
    found = None if is_temporary_schema(name.schema) else catalog.find(name.database, name.schema, name.name)
    return None if found is None else found.as_of(scope.as_of)


def check_database(name: Name, database: str) -> None:
    """Raise Error 0A000 for a name in another database than the session's."""
    if name.database and name.database != database:
        raise Error(
            f'cross-database references are not implemented: "{name}"',
            errors.FEATURE_NOT_SUPPORTED,
            position=name.position,
        )


_OF_A_BACKFILL = re.compile(r"__internal_(\d+)_\d+_streamscan")


def _is_internal(catalog: Catalog, name: str) -> bool:
    """Return whether an internal table has the name: an operator's state, or that of a creating job's backfill."""
    found = _OF_A_BACKFILL.fullmatch(name)
    job = catalog.by_id.get(int(found[1])) if found is not None else None
    return name in catalog.internal_tables or (job is not None and not job.created)


def resolve(catalog: Catalog, scope: Scope, name: Name, kind: str = "relation", is_read: bool = False) -> Relation:
    """Return the relation of a name, in another database only if it `is_read`.

    Raises Error 0A000 for another database's, 42P01 or 42704 if there is none, 42809 for an internal table, and 42501
    for a system relation, or 0A000 if it `is_read`.
    """
    relation = find_read(catalog, scope, name) if is_read else find(catalog, scope, name)
    if relation is None and _is_internal(catalog, name.name):
        raise Error(
            f'cannot use internal table "{name.name}" here',
            errors.WRONG_OBJECT_TYPE,
            hint="A query by the owner of its job, or by a superuser, can read it; nothing else can be done with it.",
            position=name.position,
        )
    if relation is None:
        schemas = (name.schema,) if name.schema else IMPLICIT_SCHEMAS
        if any(scope.is_system(schema, name.name) for schema in schemas):
            raise _system_catalog(name, is_read)
        raise not_found(kind, str(name), position=name.position)
    return relation


def _system_catalog(name: Name, is_read: bool) -> Error:
    """Return the error for a system relation where only others are known: plain queries alone read these."""
    if is_read:
        message = f'"{name.name}" is a system catalog, which only queries and views read, nothing that is maintained'
        return Error(message, errors.FEATURE_NOT_SUPPORTED, position=name.position)
    message = f'permission denied: "{name.name}" is a system catalog'
    return Error(message, errors.INSUFFICIENT_PRIVILEGE, position=name.position)
