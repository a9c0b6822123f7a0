"""Resolves UNIQUE and FOREIGN KEY as PostgreSQL does (src/backend/commands/tablecmds.c, ATAddForeignKeyConstraint)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sparkwave.catalog import errors
from sparkwave.catalog.column_names import escaped
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import Catalog, Column, Relation
from sparkwave.catalog.relation_details import ForeignKey, Unique
from sparkwave.catalog.types import Type
from sparkwave.catalog.users import User
from sparkwave.planner.bind.privileges import check_relation
from sparkwave.planner.bind.scopes import Scope, resolve
from sparkwave.planner.definitions.object_names import object_name
from sparkwave.planner.functions.result_types import NUMBERS, TIMES
from sparkwave.planner.statements import DeclaredForeignKey, DeclaredUnique, Name


def lake_name_of(column: Column) -> str:
    """Return the name that a column has in the lake, or will have once its table is created."""
    return column.made_as or escaped(column.name)


def unique_of(declared: DeclaredUnique, table: Relation, catalog: Catalog, id_: int) -> Unique:
    """Return a UNIQUE of a table, with PostgreSQL's name unless it has one.

    Raises Error 42703, 42701 for its columns, 42P07 or 42710 for a name in use.
    """
    by_name = {column.name: column for column in table.visible}
    for name in (*declared.columns, *declared.included):
        if name not in by_name:
            message = f'column "{name}" named in key does not exist'
            raise Error(message, errors.UNDEFINED_COLUMN, position=declared.position)
        if declared.columns.count(name) > 1:
            message = f'column "{name}" appears twice in unique constraint'
            raise Error(message, errors.DUPLICATE_COLUMN, position=declared.position)
    taken = {*table.constraints.names, table.key_index or ""}
    check_no_relation(table, catalog, declared.name)
    check_free(table, declared.name, taken)

    def is_free(name: str) -> bool:
        return name not in taken and not _is_relation(table, catalog, name)

    name = declared.name or object_name(table.name, "_".join((*declared.columns, *declared.included)), "key", is_free)
    columns, included = (_in_lake(by_name, names) for names in (declared.columns, declared.included))
    return Unique(id_, name, columns, included, declared.nulls_distinct, declared.deferral)


def check_no_relation(table: Relation, catalog: Catalog, name: str) -> None:
    """Raise Error 42P07 for a name of a UNIQUE of a table, if a relation in its schema has the name already."""
    if _is_relation(table, catalog, name):
        raise Error(f'relation "{name}" already exists', errors.DUPLICATE_TABLE)


def _is_relation(table: Relation, catalog: Catalog, name: str) -> bool:
    place = (table.database, table.schema, name)
    own = (table.name, table.key_index, *(unique.name for unique in table.constraints.uniques))
    return name in own or catalog.find(*place) is not None or catalog.names_key(*place)


def check_free(table: Relation, name: str, taken: Collection[str]) -> None:
    """Raise Error 42710 if a constraint of a table has the name already; "" is no name."""
    if name and name in taken:
        message = f'constraint "{name}" for relation "{table.name}" already exists'
        raise Error(message, errors.DUPLICATE_OBJECT)


def foreign_key_of(
    declared: DeclaredForeignKey, table: Relation, catalog: Catalog, scope: Scope, user: User, id_: int
) -> ForeignKey:
    """Return a FOREIGN KEY of a table, which is in the catalog, with PostgreSQL's name unless it has one.

    As for a view over it, the user needs SELECT on the parent. Raises Error 42P01, 42501, 42809, 42P16 for the parent,
    42703, 42830, 42704, 55000, 42804, 42P10 for columns, 42710 for a name in use.
    """
    parent = _parent(declared.parent, table, catalog, scope, user)
    own = _columns(table, declared.columns)
    if not declared.parent_columns and not parent.primary_key:
        message = f'there is no primary key for referenced table "{parent.name}"'
        raise Error(message, errors.UNDEFINED_OBJECT, position=declared.parent.position)
    theirs = _columns(parent, declared.parent_columns or parent.primary_key)
    key = _key_of(parent, theirs, catalog) if declared.parent_columns else None
    if len(own) != len(theirs):
        message = "number of referencing and referenced columns for foreign key disagree"
        raise Error(message, errors.INVALID_FOREIGN_KEY)
    taken = {*table.constraints.names, table.key_index or ""}
    check_free(table, declared.name, taken)
    name = declared.name or object_name(table.name, "_".join(declared.columns), "fkey", lambda n: n not in taken)
    _check_types(name, own, theirs)
    for name_ in declared.set_columns:
        if name_ not in declared.columns:
            _columns(table, (name_,))
            message = f'column "{name_}" referenced in ON DELETE SET action must be part of foreign key'
            raise Error(message, errors.INVALID_COLUMN_REFERENCE)
    return ForeignKey(
        id_,
        name,
        tuple(map(lake_name_of, own)),
        parent.id,
        tuple(map(lake_name_of, theirs)),
        key,
        declared.is_full,
        declared.on_update,
        declared.on_delete,
        tuple(map(lake_name_of, _columns(table, declared.set_columns))),
        declared.deferral,
    )


def check_types(key: ForeignKey, table: Relation, parent: Relation) -> None:
    """Raise Error 42804 if the types of a foreign key's columns do not fit those of the columns that it references."""
    pairs = ((table, key.columns), (parent, key.parent_columns))
    own, theirs = ([{c.lake_name: c for c in of.columns}[name] for name in names] for of, names in pairs)
    _check_types(key.name, own, theirs)


def _check_types(name: str, own: list[Column], theirs: list[Column]) -> None:
    for column, other in zip(own, theirs, strict=True):
        if not _is_comparable(column.type, other.type):
            types = " and ".join(each.type.without_digits.shown for each in (column, other))
            raise Error(
                f'foreign key constraint "{name}" cannot be implemented',
                errors.DATATYPE_MISMATCH,
                detail=f'Key columns "{column.name}" and "{other.name}" are of incompatible types: {types}.',
            )


def _parent(name: Name, table: Relation, catalog: Catalog, scope: Scope, user: User) -> Relation:
    parent = resolve(catalog, scope, name)
    if parent.id != table.id:
        check_relation(catalog, user, parent, "SELECT", name.position)
    if parent.kind != "table":
        message = f'referenced relation "{parent.name}" is not a table'
        raise Error(message, errors.WRONG_OBJECT_TYPE, position=name.position)
    if parent.is_temporary != table.is_temporary:
        kind = "temporary" if table.is_temporary else "permanent"
        message = f"constraints on {kind} tables may reference only {kind} tables"
        raise Error(message, errors.INVALID_TABLE_DEFINITION, position=name.position)
    return parent


def _columns(table: Relation, names: Sequence[str]) -> list[Column]:
    by_name = {column.name: column for column in table.visible}
    for name in names:
        if name not in by_name:
            message = f'column "{name}" referenced in foreign key constraint does not exist'
            raise Error(message, errors.UNDEFINED_COLUMN)
    return [by_name[name] for name in names]


def _key_of(parent: Relation, columns: list[Column], catalog: Catalog) -> int | None:
    """Return the id of the UNIQUE or unique index of exactly these columns, in any order; None for the primary key."""
    names = {column.name for column in columns}
    if len(names) < len(columns):
        message = "foreign key referenced-columns list must not contain duplicates"
        raise Error(message, errors.INVALID_FOREIGN_KEY)
    if names == {*parent.primary_key}:
        return None
    wanted = {lake_name_of(column) for column in columns}
    found = [unique for unique in parent.constraints.uniques if {*unique.columns} == wanted]
    ids = [unique.id for unique in found if not unique.deferral]
    ids += [index.id for index in catalog.indexes(parent.id) if index.created and _is_unique(index, names, parent)]
    if found and not ids:
        message = f'cannot use a deferrable unique constraint for referenced table "{parent.name}"'
        raise Error(message, errors.NOT_IN_PREREQUISITE_STATE)
    if not ids:
        message = f'there is no unique constraint matching given keys for referenced table "{parent.name}"'
        raise Error(message, errors.INVALID_FOREIGN_KEY)
    return ids[0]


def _is_unique(index: Relation, names: set[str], table: Relation) -> bool:
    """Return whether an index is declared to be unique, and its key is exactly these columns of its table."""
    sources = {key.source for key in index.index.keys}
    then = {column.name_for(index.definition_id) for column in table.visible if column.name in names}
    is_whole = not index.index.condition and not any(key.is_expression for key in index.index.keys)
    return index.index.is_unique and sources == then and is_whole


def _is_comparable(own: Type, theirs: Type) -> bool:
    """Return whether PostgreSQL compares a foreign key's values with its parent's, by an index or a cast."""
    if own.without_digits == theirs.without_digits or (own.is_text and theirs.is_text):
        return True
    if own.dimensions or theirs.dimensions:
        return False
    if own.name in NUMBERS and theirs.name in NUMBERS:
        is_alike = (own.is_integer and theirs.is_integer) or (own.is_float and theirs.is_float)
        return is_alike or NUMBERS.index(own.name) < NUMBERS.index(theirs.name)
    return own.name in TIMES and theirs.name in TIMES


def _in_lake(by_name: dict[str, Column], names: Sequence[str]) -> tuple[str, ...]:
    return tuple(lake_name_of(by_name[name]) for name in names)
