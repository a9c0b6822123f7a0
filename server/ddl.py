"""CREATE of views, and DROP."""

from __future__ import annotations

from collections.abc import Iterable

from catalog import errors
from catalog.errors import Error
from catalog.model import DEFAULT_GROUP, INITIAL, Column, Job, Relation
from catalog.names import quote_if_needed
from planner.batch.query import Environment, check_reads, plan_query, relations_read
from planner.bind import resolve
from planner.definitions import settled
from planner.explain.explain import notices
from planner.options import ViewOptions, read_options
from planner.parallelism import ADAPTIVE, DEFAULT, check_maximum
from planner.privileges import check_owner
from planner.statements import CreateMaterializedView, CreateView, Drop
from planner.stream import StreamPlan, plan_view
from server.kinds import find_of_kind
from server.placing import existing_notice, refuse_temporary, target_schema
from server.result import Notice, Result, ResultColumn
from server.session import Session
from server.slow import watch

DISABLED = (
    "Serverless Backfill is disabled. "
    "Use RisingWave cloud at https://cloud.risingwave.com/auth/signup to try this feature"
)


def create_materialized_view(session: Session, statement: CreateMaterializedView) -> Result:
    """Plan the view, start its job, and wait for it unless `background_ddl` is on.

    A plan error, a wrong option or a disabled feature is found before anything is reserved or provisioned.
    """
    existing = existing_notice(session, statement)
    if existing is not None:
        if not session.flag("background_ddl"):
            found = resolve(session.context.store.catalog, session.scope, statement.name)
            session.context.jobs.wait(found.id, watch(session, "CREATE MATERIALIZED VIEW"))
        return Result("CREATE_MATERIALIZED_VIEW", notices=[existing])
    options = read_options(statement.options)
    parallelism, backfill_parallelism = _parallelism(session), _backfill_parallelism(session)
    settings = options.applied(session.backfill_settings)
    environment = session.environment
    check_reads(statement.query, environment)
    plan = plan_view(statement, environment.catalog, environment.scope, settings)
    is_serverless, group = _resource_type(session, options)
    is_background = session.flag("background_ddl")
    upstreams = {scan.relation.id for scan in plan.scans} | relations_read(statement.query, environment)
    refuse_temporary(session, upstreams)
    relation = _view_relation(session, environment, statement, plan, upstreams)
    job = Job(
        0,
        INITIAL,
        is_background,
        is_serverless,
        group or session.context.store.catalog.databases[session.database],
        plan.strategy,
        rate_limit=settings.rate_limit,
        parallelism=parallelism,
        backfill_parallelism=backfill_parallelism,
        order=plan.order,
        specific_group=group,
    )
    backfill = session.context.jobs.create(relation, plan, job, environment.catalog)
    check = session.check_cancelled if is_background else watch(session, "CREATE MATERIALIZED VIEW")
    try:
        session.context.jobs.wait_for(backfill, check, is_background)
    except Error:
        session.context.jobs.cancel((backfill.id,))
        raise
    texts = notices(statement.query, plan)
    if is_serverless and plan.duckdb_only:
        texts = [*texts, "Serverless backfill has no effect on a view that is filled in the server."]
    return Result("CREATE_MATERIALIZED_VIEW", notices=[Notice(text) for text in texts])


def _view_relation(
    session: Session,
    environment: Environment,
    statement: CreateMaterializedView,
    plan: StreamPlan,
    upstreams: Iterable[int],
) -> Relation:
    schema = target_schema(session, statement)
    return Relation(
        id=0,
        database=session.database,
        schema=schema,
        name=statement.name.name,
        kind="materialized view",
        columns=plan.columns,
        key=plan.key,
        definition=settled(statement.definition, schema, environment),
        created=False,
        owner=session.user.name,
        upstreams=tuple(sorted(upstreams)),
    )


def create_view(session: Session, statement: CreateView) -> Result:
    """A view: a query under a name, with the columns it has now."""
    existing = existing_notice(session, statement)
    if existing is not None:
        return Result("CREATE_VIEW", notices=[existing])
    store = session.context.store
    with store.change() as cursor:  # planned in it, so that nothing it reads can be dropped meanwhile
        environment = session.environment
        batch = plan_query(statement.query, environment)
        if batch.parameters:
            raise Error("there is no parameter $1", errors.UNDEFINED_PARAMETER)
        upstreams = relations_read(statement.query, environment)
        refuse_temporary(session, upstreams)
        schema = target_schema(session, statement)
        relation = Relation(
            id=store.next_id(cursor),
            database=session.database,
            schema=schema,
            name=statement.name.name,
            kind="view",
            columns=_view_columns(statement, session.describe_batch(batch)),
            key=(),
            definition=settled(statement.definition, schema, environment),
            created=True,
            owner=session.user.name,
            upstreams=tuple(sorted(upstreams)),
        )
        store.create_relation(cursor, relation)
    return Result("CREATE_VIEW")


def _view_columns(statement: CreateView, outputs: tuple[ResultColumn, ...]) -> tuple[Column, ...]:
    """The outputs of a view's query under the names it declares. Raises Error 42601 or 42701."""
    names = statement.columns or tuple(output.name for output in outputs)
    if len(names) != len(outputs):
        raise Error("view has different number of columns than the query's columns", errors.SYNTAX_ERROR)
    for index, name in enumerate(names):
        if name in names[:index]:
            raise Error(f'column "{name}" specified more than once', errors.DUPLICATE_COLUMN)
    return tuple(Column(name, output.type) for name, output in zip(names, outputs, strict=True))


def _resource_type(session: Session, options: ViewOptions) -> tuple[bool, str | None]:
    """Whether the backfill is serverless, and the resource group that is named: an option beats the session variable.

    (RisingWave: src/frontend/src/handler/create_mv.rs, resolve_streaming_job_resource_type.) Raises Error 22023 when
    serverless backfill is not enabled, 0A000 where it is not possible, 42704 for an unknown group.
    """
    option = options.resource_group
    if option is not None:
        session.context.groups.check_exists(option.value, option.value_position)
        return False, None if option.value == DEFAULT_GROUP else option.value
    wanted = session.flag("enable_serverless_backfill") if options.is_serverless is None else options.is_serverless
    if wanted and session.get("serverless_backfill_enabled") != "true":
        raise Error(
            DISABLED,
            errors.INVALID_PARAMETER_VALUE,
            hint="An administrator can enable it here: ALTER SYSTEM SET serverless_backfill_enabled = true",
        )
    group = session.context.store.catalog.databases[session.database]
    if wanted and group != DEFAULT_GROUP:
        raise Error(
            "Serverless Backfill is not supported for databases in non-default resource groups: "
            f'database "{session.database}" is in "{group}"',
            errors.FEATURE_NOT_SUPPORTED,
            hint=f"ALTER DATABASE {quote_if_needed(session.database)} RESET RESOURCE_GROUP",
        )
    return wanted, None


def _parallelism(session: Session) -> str:
    """That of views if set, else that of all jobs (src/frontend/src/stream_fragmenter/parallelism.rs of v2.8)."""
    names = ("streaming_parallelism_for_materialized_view", "streaming_parallelism")
    found = next((value for name in names if (value := session.get(name)) != DEFAULT), ADAPTIVE)
    return _within_maximum(session, found, "parallelism")


def _backfill_parallelism(session: Session) -> int | None:
    found = session.get("streaming_parallelism_for_backfill")
    return None if found == DEFAULT else int(_within_maximum(session, found, "backfill parallelism"))


def _within_maximum(session: Session, parallelism: str, what: str) -> str:
    try:
        check_maximum(parallelism, int(session.get("streaming_max_parallelism")), what)
    except ValueError as error:
        raise Error(
            str(error), errors.INVALID_PARAMETER_VALUE, hint="SET streaming_max_parallelism raises the maximum."
        ) from error
    return parallelism


def drop(session: Session, statement: Drop) -> Result:
    """Drop relations, with their dependents if CASCADE says so. Dropping a creating view cancels it."""
    tag = f"DROP_{statement.kind.upper().replace(' ', '_')}"
    notices_, targets = [], []
    for name in statement.names:
        try:
            found = find_of_kind(session, name, statement.kind)
            check_owner(session.user, found.securable, name.position)
            targets.append(found)
        except Error as error:
            if not statement.if_exists or error.sqlstate != errors.UNDEFINED_OBJECT:
                raise
            notices_.append(Notice(f'{statement.kind} "{name}" does not exist, skipping'))
    dropped = with_dependents(session, targets, statement.cascade)
    refuse_creating([relation for relation in dropped if relation not in targets])
    session.context.jobs.drop(dropped)
    return Result(tag, notices=notices_)


def with_dependents(session: Session, targets: list[Relation], cascade: bool) -> list[Relation]:
    """Relations, and what depends on them. Raises Error 2BP01 for any such without `cascade`."""
    catalog = session.context.store.catalog
    found = {relation.id: relation for relation in targets}
    pending = list(targets)
    while pending:
        relation = pending.pop()
        dependents = [d for d in catalog.dependents(relation.id) if d.id not in found]
        if dependents and not cascade:
            raise Error(
                f"{relation.kind} used by {len(dependents)} other objects.",
                errors.DEPENDENT_OBJECTS_STILL_EXIST,
                detail="\n".join(f"{d.kind} {d.qualified_name} depends on it" for d in dependents),
                hint="Use DROP ... CASCADE to drop the dependent objects too.",
            )
        found |= {d.id: d for d in dependents}
        pending += dependents
    return list(found.values())


def refuse_creating(dependents: list[Relation]) -> None:
    """CASCADE cancels no job, as in RisingWave. Raises Error 55006."""
    creating = [relation for relation in dependents if not relation.created]
    if creating:
        raise Error(
            f"cannot drop {len(creating)} streaming job(s) that are still being created; please cancel them first",
            errors.OBJECT_IN_USE,
            detail="\n".join(f"{r.kind} {r.qualified_name} is still being created" for r in creating),
            hint=f"CANCEL JOBS {', '.join(str(r.id) for r in creating)}",
        )
