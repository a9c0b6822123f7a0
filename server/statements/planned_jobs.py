"""Plans the job that a CREATE or ALTER asks for, without storing or provisioning anything."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import DEFAULT_GROUP, Relation, check_column_name
from sparkwave.catalog.names import quote_if_needed
from sparkwave.catalog.relation_details import StreamingSettings
from sparkwave.planner.backfill.strategy import BackfillSettings
from sparkwave.planner.batch.definition_checks import check_definition
from sparkwave.planner.batch.query import Environment
from sparkwave.planner.bind.binder import resolve
from sparkwave.planner.definitions.object_names import object_name
from sparkwave.planner.definitions.view_options import JobOptions, read_options
from sparkwave.planner.parse.index import create_index
from sparkwave.planner.parse.statement import column_list, parse_statement
from sparkwave.planner.plan.stream_plan import StreamPlan, plan_view
from sparkwave.planner.plan.streaming_query import KINDS, Streaming, streaming_of
from sparkwave.planner.statements import AlterQuery, CreateIndex, CreateMaterializedView, CreateStreaming
from sparkwave.server.session.session import Session
from sparkwave.server.statements.streaming_settings import new_settings


@dataclass(frozen=True)
class PlannedJob:
    """A job that a statement asks for, with the group that will run it; `began` is when planning began (monotonic)."""

    streaming: Streaming
    options: JobOptions
    made: StreamingSettings
    settings: BackfillSettings
    plan: StreamPlan
    is_serverless: bool
    specific_group: str | None
    group: str
    began: float


def placed_index(session: Session, statement: CreateIndex) -> CreateIndex:
    """Return the index in the schema of its table, with a free name if it has none."""
    environment = session.environment
    return _placed(statement, resolve(environment.catalog, environment.scope, statement.table), environment)


def planned_job(session: Session, statement: CreateStreaming, replaces: Relation | None = None) -> PlannedJob:
    """Plan what a statement asks for. Nothing is stored or provisioned.

    Raises the errors of such a statement, except the errors that `server.reads.execution.check_plan` finds.
    """
    began, environment = time.monotonic(), session.environment
    catalog, scope = environment.catalog, environment.scope
    streaming = streaming_of(statement, catalog, scope)
    options = read_options(streaming.options)
    if options.refresh is not None and not isinstance(statement, CreateMaterializedView):
        message = f'unexpected options in WITH clause: ["{options.refresh.name}"]'
        raise Error(message, errors.INVALID_PARAMETER_VALUE, position=options.refresh.position)
    made = new_settings(session, KINDS[type(statement)])
    settings = options.applied(session.backfill_settings)
    check_definition(streaming.query if isinstance(statement, CreateIndex) else statement.query, environment)
    plan = plan_view(statement, catalog, scope, settings)
    for column in plan.columns if isinstance(statement, CreateMaterializedView) else ():
        if not column.is_hidden:
            check_column_name(column.name)
    is_serverless, group = _resource_type(session, options)
    if replaces is not None:
        running = catalog.job_by_id.get(replaces.id)
        if running is None:  # it was dropped a moment ago
            message = f'relation "{replaces.name}" does not exist'
            raise Error(message, errors.UNDEFINED_TABLE, position=statement.name.position)
        made, group = replace(made, parallelism=running.parallelism), running.specific_group
    made = replace(made, barrier_latency_target_ms=options.barrier_target_ms, refresh_s=options.refresh_s)
    usual = session.context.store.catalog.databases[session.database]
    return PlannedJob(streaming, options, made, settings, plan, is_serverless, group, group or usual, began)


def creation_of(view: Relation, statement: AlterQuery) -> CreateMaterializedView:
    """Return the CREATE statement of the view with its new query."""
    made = parse_statement(view.definition)
    assert isinstance(made, CreateMaterializedView)
    definition = f"CREATE MATERIALIZED VIEW {made.name.sql}{column_list(made.columns)} AS {statement.text}"
    return CreateMaterializedView(
        statement.name, made.columns, statement.query, (), False, definition, statement.emit_on_window_close
    )


def _placed(statement: CreateIndex, table: Relation, environment: Environment) -> CreateIndex:
    """Return the index with the schema of its table. Raises Error 42601 when its name has another schema."""
    name = statement.name
    if name.schema not in (None, table.schema):
        message = f'an index is in the schema of its table: "{table.schema}"'
        raise Error(message, errors.SYNTAX_ERROR, position=name.position)
    if not statement.is_named:
        statement = _with_free_name(statement, table, environment)
    return replace(statement, name=replace(statement.name, schema=table.schema))


def _with_free_name(statement: CreateIndex, table: Relation, environment: Environment) -> CreateIndex:
    """Return the statement with a number appended to its name if that is taken."""
    old, catalog = statement.name, environment.catalog
    stem = old.name.removesuffix("_idx")
    name = object_name(stem, None, "idx", lambda own: catalog.find(table.database, table.schema, own) is None)
    new = replace(old, name=name)
    words = create_index(statement.is_unique)
    rest = statement.definition.removeprefix(f"{words} {old.sql} ")
    return replace(statement, name=new, definition=f"{words} {new.sql} {rest}")


def _resource_type(session: Session, options: JobOptions) -> tuple[bool, str | None]:
    """Return whether the backfill is serverless, and the named resource group; an option overrides the variable.

    (RisingWave: src/frontend/src/handler/create_mv.rs, resolve_streaming_job_resource_type.) Raises Error 22023 when
    serverless backfill is not enabled, 0A000 where it is not possible, 42704 for an unknown group.
    """
    option = options.resource_group
    if option is not None:
        session.context.groups.check_exists(option.value, option.value_position)
        return False, None if option.value == DEFAULT_GROUP else option.value
    wanted = (
        session.variables.flag("enable_serverless_backfill") if options.is_serverless is None else options.is_serverless
    )
    if wanted and session.variables.get("serverless_backfill_enabled") != "true":
        raise Error(
            "Serverless Backfill is disabled",
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
