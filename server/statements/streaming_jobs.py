"""CREATE MATERIALIZED VIEW, INDEX and SINK: starts a job that fills the relation and keeps it up to date."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import INITIAL, Connection, Job, Relation
from sparkwave.catalog.relation_details import KAFKA, SINK, UPSERT, Details, Sink
from sparkwave.catalog.sealing import sealed
from sparkwave.catalog.stores.compute_errors import COMPUTE_ERRORS, ComputeErrors, compute_errors
from sparkwave.executor.backfill.creation import BackfillJob
from sparkwave.executor.backfill.jobs import PlanOutdated, refuse_altering
from sparkwave.executor.epochs.takeover import replacement
from sparkwave.executor.sinks.deliveries import OPERATION
from sparkwave.executor.sinks.outbox import receiver
from sparkwave.planner.batch.query import Environment, relations_read
from sparkwave.planner.batch.values import check_given
from sparkwave.planner.batch.write import always_identity
from sparkwave.planner.bind.binder import resolve
from sparkwave.planner.bind.privileges import check_relation, permission_denied
from sparkwave.planner.definitions.sinks import check_no_circle, check_target, later_changes_only, target_of
from sparkwave.planner.definitions.stored_definitions import settled
from sparkwave.planner.explain.lines import notices
from sparkwave.planner.plan.fingerprint import fingerprint
from sparkwave.planner.plan.stream_plan import StreamPlan
from sparkwave.planner.plan.streaming_query import KINDS
from sparkwave.planner.since import PLANNER
from sparkwave.planner.statements import CreateIndex, CreateSink, CreateStreaming
from sparkwave.server.reads.execution import check_plan
from sparkwave.server.session.session import Session
from sparkwave.server.statements.named_connections import with_connection
from sparkwave.server.statements.new_relations import existing_notice, refuse_refreshed, refuse_temporary, target_schema
from sparkwave.server.statements.planned_jobs import placed_index, planned_job
from sparkwave.server.statements.quotes import check_cost
from sparkwave.server.statements.secrets import named_secrets
from sparkwave.server.statements.slow_notice import watch
from sparkwave.server.statements.table_keys import unenforced_warning
from sparkwave.server.wire.result import Notice, Result

_PLANS = 5  # of a statement


def create_streaming(session: Session, statement: CreateStreaming) -> Result:
    """Plan the relation, start its job, and wait for it unless `background_ddl` is on.

    A plan error, a wrong option or a disabled feature raises before any resource is reserved or provisioned.
    """
    what = f"CREATE {KINDS[type(statement)].upper()}"
    environment = session.environment
    if isinstance(statement, CreateIndex):
        if resolve(environment.catalog, environment.scope, statement.table).is_temporary:
            return Result("CREATE_INDEX", notices=[Notice("temporary tables have no indexes here; none is made")])
        statement = placed_index(session, statement)
    existing = existing_notice(session, statement)
    if existing is not None:
        if not session.variables.flag("background_ddl"):
            found = resolve(session.context.store.catalog, environment.scope, statement.name)
            session.context.jobs.wait(found.id, watch(session, what))
        return Result(what.replace(" ", "_"), notices=[existing])
    return run_job(session, statement, what)


def run_job(session: Session, statement: CreateStreaming, what: str, replaces: Relation | None = None) -> Result:
    """Plan a statement, start its job, and wait for it unless `background_ddl` is on.

    If `replaces` is given, the new relation takes that view's place in the end. Then the function also raises the
    errors of `executor.epochs.takeover.replacement`, 55006 for a view that is being replaced, and 0A000 for a
    circle. A plan that other statements have outdated is made again, several times before PlanOutdated is raised.
    """
    for _ in range(_PLANS - 1):
        with suppress(PlanOutdated):
            return _run_job(session, statement, what, replaces)
    return _run_job(session, statement, what, replaces)


def _run_job(session: Session, statement: CreateStreaming, what: str, replaces: Relation | None) -> Result:
    kind, environment = KINDS[type(statement)], session.environment
    catalog, connection = environment.catalog, None
    if isinstance(statement, CreateSink):
        options, connection = with_connection(session, statement.options)
        statement = replace(statement, options=options)
    planned = planned_job(session, statement, replaces)
    streaming, made, plan = planned.streaming, planned.made, planned.plan
    upstreams = frozenset(scan.relation.id for scan in plan.scans) | relations_read(streaming.query, environment)
    if isinstance(statement, CreateSink):
        _check_sink(session, statement, plan, upstreams)
    check_cost(session, statement, planned, replaces)
    is_background = session.variables.flag("background_ddl")
    refuse_temporary(session, upstreams)
    schema = target_schema(session, statement) if replaces is None else replaces.schema
    relation = replace(_relation(session, environment, statement, plan, upstreams, schema), streaming=made)
    refuse_refreshed(session, relation)
    if connection is not None:
        relation = replace(relation, details=_connected(relation.sink, connection))
    if replaces is not None:
        relation = replace(relation, name=replaces.name, owner=replaces.owner, replaces=replaces.id)
        refuse_altering(catalog, replaces)
        check_no_circle(kind, upstreams, replaces.id, statement.name.position, catalog)
        replacement(catalog, relation)
    if relation.is_sink and relation.sink.is_remote:
        _check_receiver(session, relation, statement.name.position)
    job = Job(
        0,
        INITIAL,
        is_background,
        planned.is_serverless,
        planned.group,
        plan.strategy,
        rate_limit=planned.settings.rate_limit,
        parallelism=made.parallelism,
        backfill_parallelism=made.backfill_parallelism,
        order=plan.order,
        specific_group=planned.specific_group,
    )
    before = session.context.store.snapshot
    check = partial(check_plan, session, plan)
    backfill = session.context.jobs.create(relation, plan, job, catalog, check, planned.began)
    told = [Notice(text) for text in notices(streaming.query, plan, kind)]
    if isinstance(statement, CreateIndex) and statement.is_unique:
        told.append(unenforced_warning(["UNIQUE"]))
    if not is_background:
        _wait_for(session, backfill, what)
        told += _failed_rows(session, backfill.id if replaces is None else replaces.id, before)
    return Result(what.replace(" ", "_"), notices=told)


def _wait_for(session: Session, job: BackfillJob, what: str) -> None:
    """Wait for a job, which is cancelled if the statement fails."""
    try:
        session.context.jobs.wait_for(job, watch(session, what))
    except Error:
        session.context.jobs.cancel((job.id,))
        raise


def _failed_rows(session: Session, id_: int, before: int) -> list[Notice]:
    """Return warnings of rows for which an expression has failed during the backfill, since a snapshot."""
    lake = session.context.lake
    with closing(lake.cursor()) as cursor:
        if not lake.has_changed(cursor, [COMPUTE_ERRORS], before, lake.newest(cursor)):
            return []
        failed = [found for found, _ in compute_errors(cursor, id_).values()]
    return [Notice(_told(found), severity="WARNING") for found in failed]


def _told(failed: ComputeErrors) -> str:
    what = "1 row had an expression" if failed.rows == 1 else f"{failed.rows} rows had expressions"
    text = f"{what} that failed and {'is' if failed.rows == 1 else 'are'} NULL"
    return f"{text}: {failed.message}" if failed.message is not None else text


def _relation(
    session: Session,
    environment: Environment,
    statement: CreateStreaming,
    plan: StreamPlan,
    upstreams: Iterable[int],
    schema: str,
) -> Relation:
    return Relation(
        id=0,
        database=session.database,
        schema=schema,
        name=statement.name.name,
        kind=KINDS[type(statement)],
        columns=plan.columns,
        key=plan.key_columns,
        definition=settled(statement.definition, schema, environment),
        created=False,
        owner=session.user.name,
        upstreams=tuple(sorted(upstreams)),
        details=_details(session, statement, plan.details),
        planner=PLANNER,
        fingerprint=fingerprint(plan).dump(),
    )


def _details(session: Session, statement: CreateStreaming, details: Details | None) -> Details | None:
    """Return a sink's details, with sealed secrets and a unique token for its file names. Raises Error 42704, 42501."""
    if not isinstance(details, Sink) or not isinstance(statement, CreateSink):
        return details
    details = replace(details, is_decoupled=session.variables.get("sink_decouple") != "disable")
    limit = int(session.variables.get("sink_rate_limit"))
    if details.rate_limit is None and details.may_be_limited and limit >= 0:
        details = replace(details, rate_limit=limit)
    options = sealed(dict(details.options), session.context.store.cipher)
    named = named_secrets(session, statement.options)
    return replace(
        details,
        token=secrets.token_hex(8) if details.format is not None else None,
        options=tuple(options.items()),
        secrets=tuple(named.items()),
    )


def _connected(sink: Sink, connection: Connection) -> Sink:
    """Return the sink with its connection, whose secrets are its own too."""
    return replace(sink, secrets=(*sink.secrets, *connection.secrets.items()), connection=connection.id)


def _check_sink(session: Session, statement: CreateSink, plan: StreamPlan, upstreams: frozenset[int]) -> None:
    """Check that the user may write the sink's target, and that the rows fit.

    Raises Error 42501, 0A000, 22023 or 58030.
    """
    catalog, sink = session.environment.catalog, plan.details
    assert isinstance(sink, Sink)
    target = target_of(statement, catalog, session.scope)
    if target is not None:
        assert statement.target is not None
        for privilege in ("INSERT",) if target.append_only else ("INSERT", "UPDATE", "DELETE"):
            check_relation(catalog, session.user, target, privilege, statement.target.position)
        refuse_temporary(session, (target.id,))
        check_no_circle(SINK, upstreams, target.id, statement.target.position, catalog)
        check_target(statement, sink, plan.columns, target)
        written = {column.name for column in plan.columns if not column.is_hidden}
        identity = always_identity(target, session.environment)
        check_given((column for column in target.visible if column.name in written), identity=identity)
    if statement.source is not None and not sink.has_snapshot:
        source = resolve(catalog, session.scope, statement.source, is_read=True)
        if not source.is_stored:
            raise later_changes_only(statement.source.position)
    is_written = sink.format is not None and sink.type == UPSERT and sink.connector != KAFKA
    if is_written and any(column.name == OPERATION for column in plan.columns if not column.is_hidden):
        message = f'"{OPERATION}" is the column that says what becomes of a row in the files of a sink'
        raise Error(message, errors.RESERVED_NAME, position=statement.name.position)
    if sink.is_local:
        if not session.user.is_super:
            raise permission_denied("must be superuser to write files of the server", statement.name.position)
        _check_directory(session, Path(sink.path or ""), statement.name.position)


def _check_receiver(session: Session, relation: Relation, position: int) -> None:
    """Check that a sink's receiver accepts rows. Raises Error 42501, 0A000, 22023, 42704, 58P01 or 08006."""
    if dict(relation.sink.options).get("enable_config_load", "").lower() == "true" and not session.user.is_super:
        raise permission_denied("must be superuser to use the server's own credentials", position)
    try:
        receiver(session.context.store, relation).check()
    except Error as error:
        error.position = position
        raise


def _check_directory(session: Session, path: Path, position: int) -> None:
    """Create a sink's directory if it is missing.

    Raises Error 22023 for a directory in the lake's, which deletes unknown files, or 58030.
    """
    data = session.context.lake.directory
    if path.resolve().is_relative_to(data.resolve()):
        message = f"the directory of a sink is not in the data directory: {path}"
        raise Error(message, errors.INVALID_PARAMETER_VALUE, position=position)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f'could not create directory "{path}": {error.strerror}'
        raise Error(message, errors.IO_ERROR, position=position) from error
