"""ALTER … RENAME TO, SET SCHEMA and SWAP WITH: changes names and schemas of relations.

Only the catalog changes, in one transaction with the definitions that name the relation. Readers and writers of its
rows, running jobs included, use its id and its lake table, which stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Protocol

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error, not_found
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import Catalog, Column, Relation, names_others
from sparkwave.catalog.stores.placing import place
from sparkwave.catalog.stores.relation_store import already_exists, put_fingerprint
from sparkwave.executor.backfill.jobs import refuse_altering
from sparkwave.planner.bind.privileges import check, check_owner
from sparkwave.planner.definitions.stored_definitions import Place, placed, shown
from sparkwave.planner.plan.fingerprint import differences, fingerprint, load
from sparkwave.planner.plan.stream_plan import StreamPlan, plan_definition
from sparkwave.planner.statements import MoveRelation, Name, RenameRelation, SwapRelations
from sparkwave.server.session.session import Session
from sparkwave.server.statements.named_relations import check_kind, check_name, find_to_alter
from sparkwave.server.statements.new_relations import schema_of_move
from sparkwave.server.wire.result import Notice, Result


def rename_relation(session: Session, statement: RenameRelation) -> Result:
    """Rename a relation. Raises Error 42P01, 42704, 42809, 42501, 42939, or 42P07 for a name in use."""
    store = session.context.store
    with store.change() as cursor:
        relation = find_altered(session, statement)
        if isinstance(relation, Notice):
            return altered(statement.kind, relation)
        check_name(statement.new_name, statement.new_position)
        schema = store.catalog.securables[relation.database, relation.schema]
        check(store.catalog, session.user, schema, "CREATE", statement.name.position)
        _check_free(store.catalog, relation, relation.schema, statement.new_name, statement.new_position)
        place = relation.schema, statement.new_name
        store_places(session, cursor, {r.id: place for r in _with_replacement(store.catalog, relation)})
    return altered(statement.kind)


def move_relation(session: Session, statement: MoveRelation) -> Result:
    """Move a relation and its indexes to another schema.

    Raises Error 42P01, 42704, 42809, 42501, 3F000, or 42P07 for a name in use.
    """
    store = session.context.store
    with store.change() as cursor:
        relation = find_altered(session, statement)
        if isinstance(relation, Notice):
            return altered(statement.kind, relation)
        name, position = statement.schema, statement.schema_position
        schema_of_move(session, name, position)
        if name != relation.schema:
            moved = [*_with_replacement(store.catalog, relation), *store.catalog.indexes(relation.id)]
            for each in moved:
                _check_free(store.catalog, each, name, each.name, position)
            _check_keys_free(store.catalog, relation, name, position)
            store_places(session, cursor, {each.id: (name, each.name) for each in moved})
    return altered(statement.kind)


def swap_relations(session: Session, statement: SwapRelations) -> Result:
    """Swap the names of two relations of one kind; views over one of them go on reading the same relation.

    Raises Error 42P01, 42704, 42809 also for two kinds, 42501, 55000 for a view that is still being created, or 55006
    for a view whose query is being altered.
    """
    store = session.context.store
    with store.change() as cursor:
        one, other = (_owned(session, name, statement.kind) for name in (statement.name, statement.other))
        if one.kind != other.kind:
            raise Error(
                f"cannot swap between {one.name} and {other.name}: type mismatch",
                errors.WRONG_OBJECT_TYPE,
                detail=f"{one.name} is a {one.kind}, {other.name} is a {other.kind}.",
                position=statement.other.position,
            )
        if one.kind != statement.kind:
            raise not_found(statement.kind, str(statement.name), position=statement.name.position)
        for relation, name in ((one, statement.name), (other, statement.other)):
            check_created(relation, name)
            refuse_altering(store.catalog, relation)
        if one.id == other.id:
            message = f"cannot swap {one.name} with itself"
            raise Error(message, errors.INVALID_PARAMETER_VALUE, position=statement.other.position)
        store_places(session, cursor, {one.id: (other.schema, other.name), other.id: (one.schema, one.name)})
    return altered(statement.kind)


def check_created(relation: Relation, name: Name) -> None:
    """Raise Error 55000 for a relation that is still being created."""
    if not relation.created:
        raise Error(
            f'{relation.kind} "{name}" is still being created',
            errors.NOT_IN_PREREQUISITE_STATE,
            hint=f"WAIT {relation.kind.upper()} {name} waits for it.",
            position=name.position,
        )


def _with_replacement(catalog: Catalog, relation: Relation) -> list[Relation]:
    """Return a relation, and the relation that will replace it, which has the same name."""
    made = catalog.replacement(relation.id)
    return [relation] if made is None else [relation, made]


def store_places(session: Session, cursor: Cursor, places: Mapping[int, Place]) -> None:
    """Store new schemas and names of relations, by id, and the definitions that name them.

    Raises Error XX000, before it stores anything, when a view would change its meaning.
    """
    catalog = session.context.store.catalog
    changed = placed(catalog, places)
    by_id = {relation.id: relation for relation in changed}
    after = replace(catalog, relations=tuple(by_id.get(r.id, r) for r in catalog.relations))
    plans = {relation.id: _checked_plan(relation, after) for relation in changed if relation.is_streaming}
    place(cursor, with_shown(changed, after))
    for id_, plan in plans.items():
        before = catalog.by_id[id_]
        if before.fingerprint is None or differences(
            load(before.fingerprint), fingerprint(plan_definition(before, catalog))
        ):
            continue
        # An index, or a sink FROM a relation, has no place for the former name, which its fields may begin with.
        put_fingerprint(cursor, id_, fingerprint(plan).dump())


def with_shown(relations: Iterable[Relation], catalog: Catalog) -> Iterator[Relation]:
    """Return the relations with their definitions as clients see them."""
    for relation in relations:
        yield replace(relation, shown=shown(relation, catalog)) if names_others(relation) else relation


def _checked_plan(relation: Relation, catalog: Catalog) -> StreamPlan:
    plan = plan_definition(relation, catalog)
    if (_shape(plan.columns), plan.key_columns) != (_shape(relation.columns), relation.key) or not {
        scan.relation.id for scan in plan.scans
    } <= set(relation.upstreams):
        raise Error(
            f"{relation.kind} {relation.qualified_name} would not be the same under the new names",
            detail=relation.definition,
        )
    return plan


def _shape(columns: Iterable[Column]) -> list[tuple[object, ...]]:
    """Return the columns without NOT NULL: a table's columns can become NOT NULL later."""
    return [(column.name, column.type, column.is_hidden) for column in columns]


class _Alteration(Protocol):
    """An ALTER of a relation."""

    @property
    def kind(self) -> str: ...
    @property
    def name(self) -> Name: ...
    @property
    def if_exists(self) -> bool: ...


def find_altered(session: Session, statement: _Alteration, is_exact: bool = False) -> Relation | Notice:
    """Return the relation to alter, or with IF EXISTS a notice that it does not exist.

    If `is_exact`, TABLE is no other relation. Raises Error 42P01, 42704, 42809 or 42501.
    """
    try:
        found = _owned(session, statement.name, statement.kind)
        if is_exact:
            check_kind(found, statement.name, statement.kind)
        return found
    except Error as error:
        if not statement.if_exists or error.sqlstate not in errors.MISSING:
            raise
        return Notice(f'relation "{statement.name}" does not exist, skipping')


def _owned(session: Session, name: Name, kind: str) -> Relation:
    relation = find_to_alter(session, name, kind)
    check_owner(session.user, relation.securable, name.position)
    return relation


def _check_free(catalog: Catalog, relation: Relation, schema: str, name: str, position: int) -> None:
    taken = catalog.find(relation.database, schema, name)
    if taken is not None:
        error = already_exists(taken)
        error.position = position
        raise error
    if catalog.names_key(relation.database, schema, name):
        message = f'relation "{name}" already exists'
        raise Error(message, errors.DUPLICATE_TABLE, position=position)


def _check_keys_free(catalog: Catalog, table: Relation, schema: str, position: int) -> None:
    """Raise Error 42P07 if a relation of a schema has the name of a UNIQUE of a table that moves there."""
    for unique in table.constraints.uniques:
        place = (table.database, schema, unique.name)
        if catalog.find(*place) is not None or catalog.names_key(*place):
            message = f'relation "{unique.name}" already exists in schema "{schema}"'
            raise Error(message, errors.DUPLICATE_TABLE, position=position)


def altered(kind: str, *notices: Notice) -> Result:
    return Result(f"ALTER_{kind.upper().replace(' ', '_')}", notices=list(notices))
