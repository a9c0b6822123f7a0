"""CREATE VIEW, and DROP of any relation."""

from __future__ import annotations

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error, used
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import Column, Relation
from sparkwave.catalog.names import is_temporary_schema
from sparkwave.planner.batch.query import plan_query, relations_read
from sparkwave.planner.bind.privileges import check_owner
from sparkwave.planner.definitions.stored_definitions import settled
from sparkwave.planner.plan.rules import PLANNER
from sparkwave.planner.statements import CreateView, Drop
from sparkwave.server.reads import execution
from sparkwave.server.session.session import Session
from sparkwave.server.statements.cascades import check_cascade
from sparkwave.server.statements.named_relations import find_of_kind
from sparkwave.server.statements.new_relations import existing_notice, made_schema, refuse_temporary, take_temporary
from sparkwave.server.statements.sequences import left_without_default
from sparkwave.server.wire.result import Notice, Result, ResultColumn


def create_view(session: Session, statement: CreateView) -> Result:
    """Create a view: a named query, with its columns of this moment."""
    existing = existing_notice(session, statement)
    if existing is not None:
        return Result("CREATE_VIEW", notices=[existing])
    store = session.context.store
    with store.change() as cursor:  # planning is inside, so that no upstream is dropped meanwhile
        environment = session.environment
        batch = plan_query(statement.query, environment)
        if batch.parameters:
            raise Error("there is no parameter $1", errors.UNDEFINED_PARAMETER)
        upstreams = relations_read(statement.query, environment)
        schema = made_schema(session, cursor, statement)
        if not is_temporary_schema(schema):
            refuse_temporary(session, upstreams)
        relation = Relation(
            id=store.next_id(cursor),
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
        relation = store.create_relation(cursor, relation)
    take_temporary(session, relation)
    return Result("CREATE_VIEW")


def _view_columns(statement: CreateView, outputs: tuple[ResultColumn, ...]) -> tuple[Column, ...]:
    """The view's columns: the query's outputs, under the declared names if any. Raises Error 42601 or 42701."""
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
            if not statement.if_exists or error.sqlstate not in errors.MISSING:
                raise
            notices_.append(Notice(f'{statement.kind} "{name}" does not exist, skipping'))
    dropped = with_dependents(session, targets, statement.cascade)
    if statement.cascade and targets:
        check_cascade(session, f"DROP {statement.kind.upper()}", (relation.kind for relation in dropped))
    refuse_creating([relation for relation in dropped if relation not in targets])
    left = left_without_default(session, dropped, statement.cascade)

    def remove_defaults(cursor: Cursor) -> None:
        for table in left:
            session.context.store.alter_columns(cursor, table)

    session.context.jobs.drop(dropped, remove_defaults)
    return Result(tag, notices=notices_)


def with_dependents(session: Session, targets: list[Relation], cascade: bool) -> list[Relation]:
    """Return relations and their dependents.

    Without `cascade`, raises Error 2BP01 for dependents other than indexes.
    """
    catalog = session.context.store.catalog
    found = {relation.id: relation for relation in targets}
    pending = list(targets)
    while pending:
        relation = pending.pop()
        dependents = [d for d in catalog.dependents(relation.id) if d.id not in found]
        dependents += [s for s in catalog.sequences_of(relation) if s.id not in found]
        others = [d for d in dependents if not (d.is_index or d.is_sequence)]
        if others and not cascade:
            users = [f"{d.kind} {d.qualified_name}" for d in others]
            raise used(relation.kind, users, "Use DROP ... CASCADE to drop the dependent objects too.")
        found |= {d.id: d for d in dependents}
        pending += dependents
    return list(found.values())


def refuse_creating(dependents: list[Relation]) -> None:
    """Raise Error 55006 for relations being created: CASCADE cancels no job, as in RisingWave."""
    creating = [relation for relation in dependents if not relation.created]
    if creating:
        raise Error(
            f"cannot drop {len(creating)} streaming job(s) that are still being created; please cancel them first",
            errors.OBJECT_IN_USE,
            detail="\n".join(f"{r.kind} {r.qualified_name} is still being created" for r in creating),
            hint=f"CANCEL JOBS {', '.join(str(r.id) for r in creating)}",
        )
