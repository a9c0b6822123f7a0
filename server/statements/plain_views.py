"""CREATE VIEW, and DROP of any relation."""

from __future__ import annotations

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error, used
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import Column, Relation
from sparkwave.catalog.names import is_temporary_schema
from sparkwave.catalog.stores.relation_store import alter_columns, create_relation, put_view
from sparkwave.planner.batch.query import plan_query, relations_read
from sparkwave.planner.bind.privileges import check_owner
from sparkwave.planner.definitions.stored_definitions import settled
from sparkwave.planner.since import PLANNER
from sparkwave.planner.statements import CreateView, Drop
from sparkwave.server.reads import execution
from sparkwave.server.session.session import Session
from sparkwave.server.statements.cascades import cascaded, check_cascade
from sparkwave.server.statements.named_relations import find_of_kind
from sparkwave.server.statements.new_relations import (
    existing_notice,
    made_schema,
    refuse_temporary,
    take_temporary,
    target_schema,
)
from sparkwave.server.statements.sequences import left_without_default
from sparkwave.server.statements.table_keys import refuse_key_index, refuse_referenced
from sparkwave.server.wire.result import Notice, Result, ResultColumn


def create_view(session: Session, statement: CreateView) -> Result:
    """Create a view, a named query with its columns of this moment, or replace one.

    Raises Error 42809 for another relation to be replaced, 42P16 for columns that would change, 42P17 for a view that
    would read itself, 0A000 for one that others depend on in a way that cannot be kept.
    """
    existing = None if statement.replaces else existing_notice(session, statement)
    if existing is not None:
        return Result("CREATE_VIEW", notices=[existing])
    store = session.context.store
    with store.change() as cursor:  # planning is inside, so that no upstream is dropped meanwhile
        replaced = _replaced(session, statement) if statement.replaces else None
        environment = session.environment
        batch = plan_query(statement.query, environment)
        if batch.parameters:
            raise Error("there is no parameter $1", errors.UNDEFINED_PARAMETER)
        upstreams = relations_read(statement.query, environment)
        schema = made_schema(session, cursor, statement)
        if not is_temporary_schema(schema):
            refuse_temporary(session, upstreams)
        relation = Relation(
            id=store.next_id(cursor) if replaced is None else replaced.id,
            database=session.database,
            schema=schema,
            name=statement.name.name,
            kind="view",
            columns=_view_columns(statement, execution.describe_batch(session, batch)),
            key=(),
            definition=settled(statement.definition, schema, environment),
            created=True,
            owner=session.user.name,
            upstreams=tuple(sorted(upstreams)),
            planner=PLANNER,
        )
        if replaced is not None:
            _check_replacement(session, replaced, relation)
            put_view(store, cursor, relation)
        else:
            relation = create_relation(store, cursor, relation)
    take_temporary(session, relation)
    return Result("CREATE_VIEW")


def _replaced(session: Session, statement: CreateView) -> Relation | None:
    """Return the view that CREATE OR REPLACE VIEW replaces, None if the name is free."""
    catalog, name = session.context.store.catalog, statement.name
    found = catalog.find(session.database, target_schema(session, statement), name.name)
    if found is None:
        return None
    if not found.is_view:
        raise Error(f'"{name.name}" is not a view', errors.WRONG_OBJECT_TYPE, position=name.position)
    check_owner(session.user, found.securable, name.position)
    return found


def _check_replacement(session: Session, before: Relation, after: Relation) -> None:
    """Raise an Error as `create_view` does. Columns stay as they are; new ones may follow them."""
    catalog = session.context.store.catalog
    if before.id in catalog.closure(after.upstreams):
        message = f'infinite recursion detected in rules for relation "{before.name}"'
        raise Error(message, errors.INVALID_OBJECT_DEFINITION)
    if len(after.columns) < len(before.columns):
        raise Error("cannot drop columns from view", errors.INVALID_TABLE_DEFINITION)
    for old, new in zip(before.columns, after.columns, strict=False):
        if old.name != new.name:
            message = f'cannot change name of view column "{old.name}" to "{new.name}"'
            hint = "Use ALTER VIEW ... RENAME COLUMN ... to change name of view column instead."
            raise Error(message, errors.INVALID_TABLE_DEFINITION, hint=hint)
        if old.type != new.type and not (old.type.is_text and new.type.is_text):
            message = f'cannot change data type of view column "{old.name}" from {old.type} to {new.type}'
            raise Error(message, errors.INVALID_TABLE_DEFINITION)
    has_more = len(after.columns) > len(before.columns)
    for reader in catalog.readers(before.id):
        if not reader.is_view or has_more:
            raise Error(
                f'cannot replace view "{before.name}" because {reader.kind} {reader.qualified_name} depends on it',
                errors.FEATURE_NOT_SUPPORTED,
                hint="Views may read a replaced view if its columns stay. Others have to be dropped first.",
            )


def _view_columns(statement: CreateView, outputs: tuple[ResultColumn, ...]) -> tuple[Column, ...]:
    """Return the view's columns: the query's outputs, under the declared names if any. Raises Error 42601 or 42701."""
    names = statement.columns or tuple(output.name for output in outputs)
    if len(names) != len(outputs):
        raise Error("view has different number of columns than the query's columns", errors.SYNTAX_ERROR)
    for index, name in enumerate(names):
        if name in names[:index]:
            raise Error(f'column "{name}" specified more than once', errors.DUPLICATE_COLUMN)
    return tuple(Column(name, output.type) for name, output in zip(names, outputs, strict=True))


def drop(session: Session, statement: Drop) -> Result:
    """Drop relations with their indexes, and with CASCADE their dependents. A relation being created is cancelled."""
    tag = f"DROP_{statement.kind.upper().replace(' ', '_')}"
    notices_, targets = [], []
    for name in statement.names:
        try:
            found = find_of_kind(session, name, statement.kind)
            check_owner(session.user, found.securable, name.position)
            targets.append(found)
        except Error as error:
            if statement.kind == "index":
                refuse_key_index(session, name)
            if not statement.if_exists or error.sqlstate not in errors.MISSING:
                raise
            notices_.append(Notice(f'{statement.kind} "{name}" does not exist, skipping'))
    dropped = with_dependents(session, targets, statement.cascade)
    if statement.cascade and targets:
        check_cascade(session, f"DROP {statement.kind.upper()}", (relation.kind for relation in dropped))
    notices_ += cascaded(session, dropped, {relation.id for relation in targets})
    refuse_creating([relation for relation in dropped if relation not in targets])
    left = left_without_default(session, dropped, statement.cascade)

    def remove_defaults(cursor: Cursor) -> None:
        for table in left:
            alter_columns(session.context.store, cursor, table)

    session.context.jobs.drop(dropped, remove_defaults, statement.cascade)
    return Result(tag, notices=notices_)


def with_dependents(session: Session, targets: list[Relation], cascade: bool) -> list[Relation]:
    """Return relations and their dependents, without the tables whose foreign keys reference them.

    Without `cascade`, raises Error 2BP01 for such foreign keys, and for dependents other than indexes, sequences,
    subscriptions and what is to replace a relation.
    """
    catalog = session.context.store.catalog
    found = {relation.id: relation for relation in targets}
    pending = list(targets)
    while pending:
        relation = pending.pop()
        dependents = [d for d in catalog.dependents(relation.id) if d.id not in found]
        dependents += [s for s in catalog.sequences_of(relation) if s.id not in found]
        others = [
            d for d in dependents if not (d.is_index or d.is_sequence or d.is_subscription or d.replaces == relation.id)
        ]
        if others and not cascade:
            users = [f"{d.kind} {d.qualified_name}" for d in others]
            raise used(relation.kind, users, "Use DROP ... CASCADE to drop the dependent objects too.")
        found |= {d.id: d for d in dependents}
        pending += dependents
    if not cascade:
        refuse_referenced(session, targets, found.values())
    return list(found.values())


def refuse_creating(dependents: list[Relation]) -> None:
    """Raise Error 55006 for relations being created: CASCADE cancels no job, as in RisingWave.

    What is to replace a relation is dropped with it.
    """
    creating = [relation for relation in dependents if not relation.created and relation.replaces is None]
    if creating:
        raise Error(
            f"cannot drop {len(creating)} streaming job(s) that are still being created; please cancel them first",
            errors.OBJECT_IN_USE,
            detail="\n".join(f"{r.kind} {r.qualified_name} is still being created" for r in creating),
            hint=f"CANCEL JOBS {', '.join(str(r.id) for r in creating)}",
        )
