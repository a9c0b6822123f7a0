"""UNIQUE and FOREIGN KEY of tables: clients read them in the system catalogs, and nothing enforces them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import Catalog, Function, Relation, UserType
from sparkwave.catalog.names import is_temporary_schema, quote_if_needed
from sparkwave.catalog.relation_details import ForeignKey
from sparkwave.planner.bind.key_resolution import foreign_key_of, unique_of
from sparkwave.planner.definitions.table_definition import with_constraints
from sparkwave.planner.statements import DeclaredForeignKey, DeclaredKey, DeclaredUnique, Name
from sparkwave.server.session.session import Session
from sparkwave.server.wire.result import Notice

_HINT = "Use DROP ... CASCADE to drop the dependent objects too."


def with_keys(session: Session, cursor: Cursor, table: Relation, declared: Sequence[DeclaredKey]) -> Relation:
    """Return the table with the keys that a statement declares, UNIQUE first, which a FOREIGN KEY may reference.

    Raises the errors of `unique_of` and `foreign_key_of`.
    """
    store, scope = session.context.store, session.scope
    if is_temporary_schema(table.schema) and scope.temporary is None:  # this statement makes the schema
        scope = replace(scope, temporary=table.schema, path=(table.schema, *scope.path))
    for unique in _distinct(declared, table.primary_key):
        made = unique_of(unique, table, store.catalog, store.next_id(cursor))
        table = with_constraints(table, replace(table.constraints, uniques=(*table.constraints.uniques, made)))
    for key in (each for each in declared if isinstance(each, DeclaredForeignKey)):
        catalog = with_table(store.catalog, table)
        found = foreign_key_of(key, table, catalog, scope, session.user, store.next_id(cursor))
        keys = (*table.constraints.foreign_keys, found)
        table = with_constraints(table, replace(table.constraints, foreign_keys=keys))
    return table


def with_table(catalog: Catalog, table: Relation) -> Catalog:
    """Return the catalog with a table that is being made or altered."""
    others = tuple(relation for relation in catalog.relations if relation.id != table.id)
    return replace(catalog, relations=(*others, table))


def _distinct(declared: Iterable[DeclaredKey], primary_key: tuple[str, ...]) -> list[DeclaredUnique]:
    """Return the UNIQUE keys without those that are equal to an earlier key, as in PostgreSQL.

    A key that is left out gives its name to the earlier key if that has no name.
    """
    found = {_meaning(DeclaredUnique("", primary_key)): DeclaredUnique("", primary_key)} if primary_key else {}
    for unique in declared:
        if isinstance(unique, DeclaredUnique):
            there = found.setdefault(_meaning(unique), unique)
            found[_meaning(unique)] = replace(there, name=there.name or unique.name)
    return list(found.values())[bool(primary_key) :]


def _meaning(unique: DeclaredUnique) -> DeclaredUnique:
    return replace(unique, name="", position=None)


def unenforced(declared: Iterable[DeclaredKey]) -> list[Notice]:
    """Return the warning of a statement that declares keys; those that are NOT ENFORCED need none."""
    told = [each for each in declared if isinstance(each, DeclaredUnique) or not each.is_unenforced]
    kinds = {"UNIQUE" if isinstance(each, DeclaredUnique) else "FOREIGN KEY" for each in told}
    return [unenforced_warning(sorted(kinds, reverse=True))] if kinds else []


def unenforced_warning(kinds: Collection[str]) -> Notice:
    """Return the warning for constraints that are kept and not enforced, for DDL of other systems.

    It is no NOTICE, which many frameworks tell the server not to send.
    """
    verb = "is" if len(kinds) == 1 else "are"
    message = f"{' and '.join(kinds)} {verb} kept, but not enforced here; PRIMARY KEY, NOT NULL and CHECK are enforced"
    return Notice(message, "WARNING", errors.WARNING)


def foreign_keys_into(catalog: Catalog, dropped: Iterable[Relation]) -> list[tuple[Relation, ForeignKey, Relation]]:
    """Return the foreign keys of other tables that reference dropped tables or indexes.

    Each is the table that has it, the key, and the first of the dropped relations that it references.
    """
    gone = {relation.id: relation for relation in dropped}
    found: dict[int, tuple[Relation, ForeignKey, Relation]] = {}
    for relation in gone.values():
        for table, key in catalog.foreign_keys_to(relation.id):
            if table.id not in gone:
                found.setdefault(key.id, (table, key, relation))
    return list(found.values())


def refuse_referenced(session: Session, targets: Collection[Relation], dropped: Iterable[Relation]) -> None:
    """Raise Error 2BP01 for a table or index to be dropped that a foreign key of another table references."""
    found = foreign_keys_into(session.context.store.catalog, dropped)
    if found:
        what = f"{found[0][2].kind} {found[0][2].name}" if len(targets) == 1 else "desired object(s)"
        lines = [f"{described(session, key, table)} depends on {on.kind} {on.name}" for table, key, on in found]
        raise depended_on(what, lines, "it" if len(targets) == 1 else "them")


def refuse_key_index(session: Session, name: Name) -> None:
    """Raise Error 2BP01 if an index to be dropped is that of a primary key or UNIQUE."""
    tables = [relation for relation in session.context.store.catalog.named if relation.database == session.database]
    for schema in (name.schema,) if name.schema else session.scope.path:
        for table in (each for each in tables if each.is_table and each.schema == schema):
            if name.name in (table.key_index, *(unique.name for unique in table.constraints.uniques)):
                raise Error(
                    f"cannot drop index {name.name} because constraint {name.name} on table {table.name} requires it",
                    errors.DEPENDENT_OBJECTS_STILL_EXIST,
                    hint=f"You can drop constraint {name.name} on table {table.name} instead.",
                    position=name.position,
                )


def described(session: Session, key: ForeignKey, table: Relation) -> str:
    """Return `constraint name on table name`, the table with its schema unless that is in the search path."""
    return f"constraint {quote_if_needed(key.name)} on table {shown_name(session, table)}"


def shown_name(session: Session, thing: Relation | Function | UserType) -> str:
    """Return a name as PostgreSQL prints it, with its schema unless that is in the search path."""
    return quote_if_needed(thing.name) if thing.schema in session.scope.path else thing.qualified_name


def depended_on(what: str, lines: Iterable[str], it: str = "it", position: int | None = None) -> Error:
    """Return PostgreSQL's error for a thing that others depend on."""
    return Error(
        f"cannot drop {what} because other objects depend on {it}",
        errors.DEPENDENT_OBJECTS_STILL_EXIST,
        detail="\n".join(lines),
        hint=_HINT,
        position=position,
    )
