"""ALTER TYPE of enums and composite types, RENAME TO and SET SCHEMA of all users' types.

A type is a part of the types of columns, which are stored with its name, labels and fields. Rows have labels as texts,
so RENAME VALUE writes those columns anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import Catalog, Column, Relation, UserType
from sparkwave.catalog.names import literal, quote
from sparkwave.catalog.stores.relation_store import alter_columns
from sparkwave.catalog.stores.type_store import field_oids_of, put_field_oids, replace_type
from sparkwave.catalog.types import Named, Type, enum_type, struct_type
from sparkwave.executor.epochs.standstill import standing_still
from sparkwave.planner.bind.user_types import with_type
from sparkwave.planner.definitions.dependence import readers_of
from sparkwave.planner.definitions.stored_definitions import namers_of_type
from sparkwave.planner.definitions.table_definition import with_text
from sparkwave.planner.parse.generated import columns_read, expression_of, has_text
from sparkwave.planner.statements import (
    AddAttribute,
    AddLabel,
    AlterAttributes,
    AttributeAction,
    DropAttribute,
    Name,
    PlaceType,
    RenameAttribute,
    RenameLabel,
)
from sparkwave.server.session.session import Session
from sparkwave.server.statements.column_types import rewritten_column
from sparkwave.server.statements.create_types import check_free, check_labels, find_owned
from sparkwave.server.statements.new_relations import schema_of_move
from sparkwave.server.wire.result import Notice, Result

_ALTERED = "ALTER_TYPE"
# By name, each with its type, and the type's OID as the user wrote it.
_Attributes = dict[str, tuple[Type, int]]


def add_label(session: Session, statement: AddLabel) -> Result:
    """Add a label to an enum.

    Raises Error 42704, 42809 for a type that is no enum, 42710 for an existing label, 22023 for an unknown neighbor.
    """
    with session.context.store.change() as cursor:
        made, labels = _enum(session, statement.name)
        check_labels([statement.label])
        if statement.label in labels:
            message = f'enum label "{statement.label}" already exists'
            if statement.if_not_exists:
                return Result(_ALTERED, notices=[Notice(f"{message}, skipping")])
            raise Error(message, errors.DUPLICATE_OBJECT)
        place = len(labels)
        if statement.neighbour is not None:
            place = _place_of(statement.neighbour, labels) + (not statement.is_before)
        labels.insert(place, statement.label)
        _store(session, cursor, made, replace(made, type=enum_type((*labels, made.type.labels[-1]))))
    return Result(_ALTERED)


def rename_label(session: Session, statement: RenameLabel) -> Result:
    """Rename a label of an enum, in the tables' rows, too.

    Raises Error 42704, 42809, 22023 for an unknown label, 42710 for an existing one, 0A000 where a view, a key or an
    expression has the label.
    """
    with _still(session, statement.name), session.context.store.change() as cursor:
        made, labels = _enum(session, statement.name)
        check_labels([statement.new_label])
        place = _place_of(statement.label, labels)
        if statement.new_label in labels:
            raise Error(f'enum label "{statement.new_label}" already exists', errors.DUPLICATE_OBJECT)
        labels[place] = statement.new_label
        after = replace(made, type=enum_type((*labels, made.type.labels[-1])))
        namers = namers_of_type(session.context.store.catalog, made, statement.label)
        if namers:
            raise _refused(made, f"{namers[0]} has the label", statement.name.position)
        _store(session, cursor, made, after, _rewritten(session, cursor, statement, made, after))
    return Result(_ALTERED)


def alter_attributes(session: Session, statement: AlterAttributes) -> Result:
    """Change the attributes of a composite type.

    Raises Error 42704, 42809, 42701, 42703, and 0A000 where a column has the type, or for the last attribute.
    """
    position, notices = statement.name.position, list[Notice]()
    with session.context.store.change() as cursor:
        made = find_owned(session, statement.name)
        if not made.type.fields:
            message = f'"{made.name}" is not a composite type'
            raise Error(message, errors.WRONG_OBJECT_TYPE, position=position)
        _check_unused(session.context.store.catalog, made, position)
        # Each attribute with its type as the user wrote it.
        attributes = zip(made.type.fields, field_oids_of(cursor, made), strict=True)
        kept = {name: (type_, oid) for (name, type_), oid in attributes}
        for action in statement.actions:
            kept = _attributes_after(action, kept, made, notices)
        if not kept:
            message = "a composite type without fields is not supported"
            raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=position)
        type_ = replace(struct_type((name, type_) for name, (type_, _) in kept.items()), named=made.type.named)
        after = replace(made, type=type_)
        _store(session, cursor, made, after)
        put_field_oids(cursor, after, [oid for _, oid in kept.values()])
    return Result(_ALTERED, notices=notices)


def _check_unused(catalog: Catalog, made: UserType, position: int) -> None:
    for relation, column in _columns_of(catalog, made):
        raise _refused(made, f'column "{relation.name}.{column.name}" uses it', position)


def _attributes_after(action: AttributeAction, kept: _Attributes, made: UserType, notices: list[Notice]) -> _Attributes:
    """Return the attributes after an action. Raises Error 42701, 42703."""
    of = f'of relation "{made.name}"'
    new = getattr(action, "new_name", action.name if isinstance(action, AddAttribute) else None)
    if new in kept:
        raise Error(f'column "{new}" {of} already exists', errors.DUPLICATE_COLUMN)
    if not isinstance(action, AddAttribute) and action.name not in kept:
        message = f'column "{action.name}" {of} does not exist'
        if isinstance(action, DropAttribute) and action.if_exists:
            notices.append(Notice(f"{message}, skipping"))
            return kept
        raise Error(message, errors.UNDEFINED_COLUMN)
    match action:
        case DropAttribute(name):
            return {each: value for each, value in kept.items() if each != name}
        case RenameAttribute(name, new_name):
            return {new_name if each == name else each: value for each, value in kept.items()}
    return {**kept, action.name: (action.type, action.type.oid)}


def place_type(session: Session, statement: PlaceType) -> Result:
    """Rename a type, or move it to another schema.

    Raises Error 42704, 42710 for a name in use, 3F000, 42501, 42809, and 0A000 where a definition names the type or a
    streaming relation reads a column of it, because both say the name.
    """
    tag = "ALTER_DOMAIN" if statement.is_domain else _ALTERED
    with session.context.store.change() as cursor:
        made, catalog = find_owned(session, statement.name), session.context.store.catalog
        if statement.is_domain and made.domain is None:
            message = f"{made.name} is not a domain"
            raise Error(message, errors.WRONG_OBJECT_TYPE, position=statement.name.position)
        schema, name = statement.schema or made.schema, statement.new_name or made.name
        if statement.schema is not None:
            schema_of_move(session, schema, statement.position)
        if (schema, name) == (made.schema, made.name) and statement.new_name is None:
            return Result(tag)
        check_free(catalog, made.database, schema, name, statement.position)
        namers = namers_of_type(catalog, made)
        if namers:
            raise _refused(made, f"{namers[0]} names it", statement.name.position)
        for table, column in _columns_of(catalog, made):
            readers = [table, *readers_of(catalog, table, column.lake_name)]
            streaming = next((reader for reader in readers if reader.is_streaming), None)
            if streaming is not None:
                reads = f"{streaming.kind} {streaming.qualified_name} has a column of it"
                raise _refused(made, reads, statement.name.position)
        named = Named(made.id, schema, name)
        type_ = made.type
        type_ = enum_type((*type_.labels[:-1], named.mark)) if type_.labels else replace(type_, named=named)
        _store(session, cursor, made, replace(made, schema=schema, name=name, type=type_))
    return Result(tag)


def _enum(session: Session, name: Name) -> tuple[UserType, list[str]]:
    """Return the enum of a name, and its labels. Raises Error 42704, 42809."""
    made = find_owned(session, name)
    if not made.type.labels:
        raise Error(f"{name.name} is not an enum", errors.WRONG_OBJECT_TYPE, position=name.position)
    return made, [*made.type.labels[:-1]]


def _place_of(label: str, labels: Sequence[str]) -> int:
    if label not in labels:
        raise Error(f'"{label}" is not an existing enum label', errors.INVALID_PARAMETER_VALUE)
    return labels.index(label)


def _refused(made: UserType, why: str, position: int, detail: str | None = None) -> Error:
    message = f'cannot alter type "{made.name}" because {why}'
    return Error(message, errors.FEATURE_NOT_SUPPORTED, detail=detail, position=position)


def _columns_of(catalog: Catalog, made: UserType) -> Iterator[tuple[Relation, Column]]:
    """Yield the columns that have values of a type, each with its relation."""
    for relation in catalog.relations:
        for column in relation.columns:
            if column.type.holds(made.id):
                yield relation, column


def _still(session: Session, name: Name) -> ExitStack:
    """Return a context in which nobody writes or alters the tables with columns of a type.

    Raises Error 42704, 42501, 3F000, 55006.
    """
    held, context = ExitStack(), session.context
    found = dict(_columns_of(context.store.catalog, find_owned(session, name)))
    tables = [relation for relation in found if relation.is_table]
    if tables:
        held.enter_context(standing_still(context.coordinator, context.store, tables, session.running.is_cancelled))
    return held


def _rewritten(
    session: Session, cursor: Cursor, statement: RenameLabel, made: UserType, after: UserType
) -> dict[int, Relation]:
    """Write all columns with a renamed label anew.

    Returns the tables by id. Raises Error 0A000 for a column that something else than rows relies on.
    """
    store, altered = session.context.store, dict[int, Relation]()
    change = store.next_id(cursor)
    for relation, column in _columns_of(store.catalog, made):
        why = _relied_on(store.catalog, relation, column, statement.label)
        if why is not None:
            used = f'column "{relation.name}.{column.name}" uses it'
            raise _refused(made, used, statement.name.position, why)
        table = altered.get(relation.id, relation)
        value, old, new = quote(column.lake_name), literal(statement.label), literal(statement.new_label)
        values = f"CASE WHEN {value} = {old} THEN {new} ELSE {value} END"
        type_ = with_type(column.type, after.type)
        altered[relation.id], _ = rewritten_column(cursor, table, column, type_, values, change)
    return altered


def _relied_on(catalog: Catalog, relation: Relation, column: Column, label: str) -> str | None:
    """Return what relies on the values of a column, in words; None if only the rows of a table do."""
    if relation.kind != "table":
        return f"{relation.kind} {relation.qualified_name} has it."
    if not column.type.labels or column.type.dimensions:
        return f"It is a part of its type {column.type.shown}."
    reader = next(iter(readers_of(catalog, relation, column.lake_name)), None)
    if reader is not None:
        return f"{reader.kind} {reader.qualified_name} reads it."
    if column.name in (*relation.key, *relation.conflict.versions):
        return "It is in a key."
    if any(target.target == relation.id for target in catalog.relations):
        return "A sink writes the table."
    declared, referencing = relation.constraints, catalog.foreign_keys_to(relation.id)
    keys = [(*unique.columns, *unique.included) for unique in declared.uniques]
    keys += [key.columns for key in declared.foreign_keys] + [key.parent_columns for _, key in referencing]
    if any(column.lake_name in key for key in keys):
        return "A UNIQUE or FOREIGN KEY has it."
    texts = [check.condition for check in relation.constraints.checks]
    texts += [c.generated for c in relation.columns if c.generated is not None]
    if any(column.name in columns_read(text) for text in texts):
        return "A CHECK or a generated column reads it."
    if column.default is not None and has_text(expression_of(column.default), label):
        return "Its DEFAULT has the label."
    return None


def _store(
    session: Session, cursor: Cursor, before: UserType, after: UserType, tables: dict[int, Relation] | None = None
) -> None:
    """Store the next version of a type, and the relations with columns of it; `tables` are already changed."""
    store = session.context.store
    relations = store.catalog.relations
    replace_type(cursor, before, after)
    for relation in relations:
        made = (tables or {}).get(relation.id, relation)
        columns = tuple(replace(c, type=with_type(c.type, after.type)) for c in made.columns)
        # Names are not compared, but stored.
        if any(column.type.holds(before.id) for column in relation.columns):
            made = replace(made, columns=columns)
            if made.is_table:
                alter_columns(store, cursor, with_text(made, store.catalog))
            else:
                store.replace_columns(cursor, made)
    for relation in relations:  # also for relations that only cast to the type
        session.context.plans.forget(relation.id)
