"""CREATE and DROP."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from catalog import errors
from catalog.errors import Error
from catalog.model import DEFAULT_GROUP, INITIAL, RESERVED_COLUMNS, ROW_ID, Column, Job, Relation, row_id_column
from catalog.names import quote_if_needed
from catalog.store import already_exists
from planner.batch.query import check_reads, plan_query, relations_read
from planner.batch.write import default_text
from planner.bind import resolve
from planner.explain.explain import notices
from planner.options import ViewOptions, read_options
from planner.parallelism import ADAPTIVE, DEFAULT, check_maximum
from planner.privileges import check, check_owner
from planner.statements import CreateMaterializedView, CreateTable, CreateTableAs, CreateView, Drop, Name
from planner.stream import StreamPlan, plan_view
from server.dml import stage_query, store_new
from server.kinds import find_of_kind
from server.result import Notice, Result, ResultColumn
from server.session import Session
from server.slow import watch

DISABLED = (
    "Serverless Backfill is disabled. "
    "Use RisingWave cloud at https://cloud.risingwave.com/auth/signup to try this feature"
)


def create_table(session: Session, statement: CreateTable) -> Result:
    """A table; without a primary key its rows are told apart by the lake's row id."""
    existing = _existing(session, statement.name, "table", statement.if_not_exists)
    if existing is not None:
        return Result("CREATE_TABLE", notices=[existing])
    columns = tuple(Column(c.name, c.type, not_null=c.not_null, default=c.default) for c in statement.columns)
    for column in columns:
        if column.default is not None:  # try whether it is one of the type
            session.cursor().execute(f"SELECT {default_text(column, session.environment)}")
    key = statement.primary_key
    store = session.context.store
    with store.change() as cursor:
        relation = Relation(
            id=store.next_id(cursor),
            database=session.database,
            schema=_schema(session, statement.name),
            name=statement.name.name,
            kind="table",
            columns=columns if key else (*columns, row_id_column()),
            key=key or (ROW_ID,),
            definition=statement.definition,
            created=True,
            owner=session.user.name,
            append_only=statement.append_only,
            watermark=statement.watermark,
        )
        store.create_relation(cursor, relation)
    return Result("CREATE_TABLE")


def create_table_as(session: Session, statement: CreateTableAs) -> Result:
    """A table with the rows of a query. The query runs first; then one transaction has the table and its rows."""
    existing = _existing(session, statement.name, "table", statement.if_not_exists)
    if existing is not None:
        return Result("CREATE_TABLE", notices=[existing])
    batch = plan_query(statement.query, session.environment)
    if batch.parameters:
        raise Error("there is no parameter $1", errors.UNDEFINED_PARAMETER)
    columns = _table_columns(statement, session.describe(batch))
    relation = Relation(
        id=0,
        database=session.database,
        schema=_schema(session, statement.name),
        name=statement.name.name,
        kind="table",
        columns=(*columns, row_id_column()),
        key=(ROW_ID,),
        definition=_definition(statement, columns),
        created=True,
        owner=session.user.name,
        append_only=statement.append_only,
    )
    store, cursor = session.context.store, session.cursor()
    with session.running(cursor):
        stage_query(session, cursor, relation, batch, statement.with_data)
        with store.change(cursor=cursor, writes=[relation.lake_table]):
            relation = replace(relation, id=store.next_id(cursor))
            store.create_relation(cursor, relation)
            count = store_new(cursor, relation)
    return Result(f"INSERT 0 {count}")


def _table_columns(statement: CreateTableAs, outputs: tuple[ResultColumn, ...]) -> tuple[Column, ...]:
    """The outputs of a query as columns of a table, the first under the names given. Raises Error 42601, 42701."""
    if len(statement.columns) > len(outputs):
        raise Error("too many column names were specified", errors.SYNTAX_ERROR, position=statement.name.position)
    names = [*statement.columns, *(output.name for output in outputs[len(statement.columns) :])]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise Error(f'column "{name}" specified more than once', errors.DUPLICATE_COLUMN)
        if name in RESERVED_COLUMNS:
            message = f'column name "{name}" conflicts with a system column name'
            raise Error(message, errors.INVALID_COLUMN_DEFINITION)
    return tuple(Column(name, output.type) for name, output in zip(names, outputs, strict=True))


def _definition(statement: CreateTableAs, columns: tuple[Column, ...]) -> str:
    """The CREATE TABLE that would make the same table."""
    listed = ", ".join(f"{quote_if_needed(column.name)} {column.type}" for column in columns)
    return f"CREATE TABLE {statement.name.sql} ({listed})" + (" APPEND ONLY" if statement.append_only else "")


def create_materialized_view(session: Session, statement: CreateMaterializedView) -> Result:
    """Plan the view, start its job, and wait for it unless `background_ddl` is on.

    A plan error, a wrong option or a disabled feature is found before anything is reserved or provisioned.
    """
    existing = _existing(session, statement.name, "materialized view", statement.if_not_exists)
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
    relation = _view_relation(session, statement, plan, upstreams)
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
    backfill = session.context.jobs.create(relation, plan, job)
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
    session: Session, statement: CreateMaterializedView, plan: StreamPlan, upstreams: Iterable[int]
) -> Relation:
    return Relation(
        id=0,
        database=session.database,
        schema=_schema(session, statement.name),
        name=statement.name.name,
        kind="materialized view",
        columns=plan.columns,
        key=plan.key,
        definition=statement.definition,
        created=False,
        owner=session.user.name,
        upstreams=tuple(sorted(upstreams)),
    )


def create_view(session: Session, statement: CreateView) -> Result:
    """A view: a query under a name, with the columns it has now."""
    existing = _existing(session, statement.name, "view", statement.if_not_exists)
    if existing is not None:
        return Result("CREATE_VIEW", notices=[existing])
    store = session.context.store
    with store.change() as cursor:  # planned in it, so that nothing it reads can be dropped meanwhile
        environment = session.environment
        batch = plan_query(statement.query, environment)
        if batch.parameters:
            raise Error("there is no parameter $1", errors.UNDEFINED_PARAMETER)
        relation = Relation(
            id=store.next_id(cursor),
            database=session.database,
            schema=_schema(session, statement.name),
            name=statement.name.name,
            kind="view",
            columns=_view_columns(statement, session.describe(batch)),
            key=(),
            definition=statement.definition,
            created=True,
            owner=session.user.name,
            upstreams=tuple(sorted(relations_read(statement.query, environment))),
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
    dropped = _with_dependents(session, targets, statement.cascade)
    _refuse_creating([relation for relation in dropped if relation not in targets])
    session.context.jobs.drop(dropped)
    return Result(tag, notices=notices_)


def _with_dependents(session: Session, targets: list[Relation], cascade: bool) -> list[Relation]:
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


def _refuse_creating(dependents: list[Relation]) -> None:
    """CASCADE cancels no job, as in RisingWave. Raises Error 55006."""
    creating = [relation for relation in dependents if not relation.created]
    if creating:
        raise Error(
            f"cannot drop {len(creating)} streaming job(s) that are still being created; please cancel them first",
            errors.OBJECT_IN_USE,
            detail="\n".join(f"{r.kind} {r.qualified_name} is still being created" for r in creating),
            hint=f"CANCEL JOBS {', '.join(str(r.id) for r in creating)}",
        )


def _schema(session: Session, name: Name) -> str:
    """The schema a new relation goes to. Raises Error 3F000, or 42501 without the privilege CREATE on it."""
    schema = name.schema or session.scope.schema
    catalog = session.context.store.catalog
    if (session.database, schema) not in catalog.schemas:
        raise Error(f"schema not found: {schema}", errors.INVALID_SCHEMA_NAME, position=name.position)
    check(catalog, session.user, catalog.securables[session.database, schema], "CREATE", name.position)
    return schema


def _existing(session: Session, name: Name, kind: str, if_not_exists: bool) -> Notice | None:
    """A notice when the name is taken and that is allowed. Raises Error 42710 when it is not."""
    found = session.context.store.catalog.find(session.database, _schema(session, name), name.name)
    if found is None:
        return None
    if if_not_exists:
        return Notice(f'relation "{name.name}" already exists, skipping')
    error = already_exists(found)
    error.position = name.position
    raise error
