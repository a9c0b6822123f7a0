"""Maps statements to their handlers, and implements the client session that the wire uses."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.users import User
from sparkwave.planner import statements
from sparkwave.planner.batch import deep_parameters
from sparkwave.planner.bind.like_tables import with_likes
from sparkwave.planner.bind.user_types import with_domains, with_types
from sparkwave.planner.statements import Statement
from sparkwave.server.context import Context
from sparkwave.server.reads import queries
from sparkwave.server.reads.error_positions import placed
from sparkwave.server.session import atomic, prepared
from sparkwave.server.session.backends import Backend
from sparkwave.server.session.by_literal import by_literal, prepare_lookup
from sparkwave.server.session.plan_cache import parse, split
from sparkwave.server.session.portal import Names
from sparkwave.server.session.prepared import Prepared, is_execute
from sparkwave.server.session.risingwave_words import add_words
from sparkwave.server.session.session import Session
from sparkwave.server.session.suggestions import suggest
from sparkwave.server.statements import (
    alter_columns,
    alter_connectors,
    alter_domain,
    alter_fragments,
    alter_jobs,
    alter_query,
    alter_types,
    audit_view,
    backups,
    comments,
    control,
    copy_rows,
    create_types,
    cursors,
    databases,
    default_privileges,
    functions,
    grants,
    memberships,
    named_connections,
    on_commit,
    owned_objects,
    owners,
    plain_views,
    profiles,
    quotes,
    renames,
    schemas,
    secrets,
    sequences,
    show,
    sources,
    streaming_jobs,
    streaming_settings,
    subscription_cursors,
    subscriptions,
    tables,
    transactions,
    user_accounts,
)
from sparkwave.server.wire import result
from sparkwave.server.wire.command_tags import postgres_tag
from sparkwave.server.wire.result import Notice, Result
from sparkwave.server.writes import dml
from sparkwave.server.writes.with_writes import with_writes
from sparkwave.server.writes.writing import Altered

# Runs a statement with the client's parameter OIDs and values.
Handler = Callable[[Session, Any, tuple[int, ...], tuple[object, ...]], Result]


def _plain(handler: Callable[[Session, Any], Result]) -> Handler:
    """Return a handler for a statement without parameters."""
    return lambda session, statement, oids, values: handler(session, statement)


def _execute(session: Session, statement: statements.Execute) -> Result:
    """Run EXECUTE and return the named statement's result. Raises Error 26000, 42601 for a wrong number of values."""
    target = session.names.statement(statement.name)
    if not isinstance(target.prepared, Prepared) or is_execute(target.prepared):
        raise Error("a prepared EXECUTE cannot be executed by name", errors.FEATURE_NOT_SUPPORTED)
    values = prepared.arguments(session, statement, target)
    try:
        return run(session, target.prepared.statement, target.prepared.oids, target.prepared.constants or values)
    except Error as error:
        error.position = None  # the position is in the text of the PREPARE
        raise


HANDLERS: dict[type, Handler] = {
    statements.Query: queries.select,
    statements.Insert: dml.insert,
    statements.Update: dml.change,
    statements.Delete: dml.change,
    statements.Merge: dml.change,
    statements.WithWrites: lambda session, statement, oids, values: with_writes(session, statement, oids, values, run),
    statements.Do: lambda session, statement, oids, values: _do(session, statement),
    statements.Truncate: _plain(dml.truncate),
    statements.Copy: _plain(copy_rows.copy),
    statements.Explain: _plain(quotes.explain),
    statements.ExplainJob: _plain(profiles.explain_job),
    statements.CreateTable: _plain(tables.create_table),
    statements.CreateTableAs: _plain(tables.create_table_as),
    statements.CreateSource: _plain(tables.create_source),
    statements.CreateMaterializedView: _plain(streaming_jobs.create_streaming),
    statements.CreateIndex: _plain(streaming_jobs.create_streaming),
    statements.CreateSink: _plain(streaming_jobs.create_streaming),
    statements.CreateView: _plain(plain_views.create_view),
    statements.CreateSubscription: _plain(subscriptions.create_subscription),
    statements.CreateFunction: _plain(functions.create_function),
    statements.DropFunction: _plain(functions.drop_function),
    statements.AlterFunction: _plain(functions.alter_function),
    statements.CreateType: _plain(create_types.create_type),
    statements.CreateDomain: _plain(create_types.create_domain),
    statements.AddLabel: _plain(alter_types.add_label),
    statements.RenameLabel: _plain(alter_types.rename_label),
    statements.AlterAttributes: _plain(alter_types.alter_attributes),
    statements.PlaceType: _plain(alter_types.place_type),
    statements.AlterDomain: _plain(alter_domain.alter_domain),
    statements.DropType: _plain(create_types.drop_types),
    statements.CreateSecret: _plain(secrets.create_secret),
    statements.AlterSecret: _plain(secrets.alter_secret),
    statements.DropSecret: _plain(secrets.drop_secret),
    statements.CreateConnection: _plain(named_connections.create_connection),
    statements.AlterConnection: _plain(named_connections.alter_connection),
    statements.MoveConnection: _plain(named_connections.move_connection),
    statements.DropConnection: _plain(named_connections.drop_connection),
    statements.Drop: _plain(plain_views.drop),
    statements.Show: _plain(show.show),
    statements.ShowCreate: _plain(show.show_create),
    statements.Kill: _plain(control.kill),
    statements.ShowVariable: _plain(show.show_variable),
    statements.SetVariable: _plain(show.set_variable),
    statements.UseDatabase: _plain(databases.use_database),
    statements.CreateSequence: _plain(sequences.create_sequence),
    statements.AlterSequence: _plain(sequences.alter_sequence),
    statements.AlterQuery: _plain(alter_query.alter_query),
    statements.AlterRateLimit: _plain(alter_jobs.set_rate_limit),
    statements.AlterSinkRateLimit: _plain(alter_jobs.set_sink_rate_limit),
    statements.AlterBarrierTarget: _plain(streaming_settings.set_barrier_target),
    statements.AlterConnector: _plain(alter_connectors.alter_connector),
    statements.AlterDmlRateLimit: _plain(streaming_settings.set_dml_rate_limit),
    statements.AlterSourceRateLimit: _plain(sources.set_rate_limit),
    statements.AlterFragments: _plain(alter_fragments.alter_fragments),
    statements.AlterParallelism: _plain(alter_jobs.set_parallelism),
    statements.AlterBackfillParallelism: _plain(alter_jobs.set_backfill_parallelism),
    statements.AlterRetention: _plain(subscriptions.alter_retention),
    statements.AlterConfig: _plain(streaming_settings.alter_config),
    statements.AlterResourceGroup: _plain(alter_jobs.set_resource_group),
    statements.CreateDatabase: _plain(databases.create_database),
    statements.DropDatabase: _plain(databases.drop_database),
    statements.AlterDatabase: _plain(databases.alter_database),
    statements.AlterDatabaseParameter: _plain(databases.alter_database_parameter),
    statements.RenameDatabase: _plain(databases.rename_database),
    statements.CreateSchema: _plain(schemas.create_schema),
    statements.DropSchema: _plain(schemas.drop_schema),
    statements.RenameSchema: _plain(schemas.rename_schema),
    statements.RenameRelation: _plain(renames.rename_relation),
    statements.MoveRelation: _plain(renames.move_relation),
    statements.SwapRelations: _plain(renames.swap_relations),
    statements.AlterOwner: _plain(owners.alter_owner),
    statements.AlterTable: _plain(alter_columns.alter_table),
    statements.Comment: _plain(comments.comment),
    statements.CreateUser: _plain(user_accounts.create_user),
    statements.AlterUser: _plain(user_accounts.alter_user),
    statements.RenameUser: _plain(user_accounts.rename_user),
    statements.DropUser: _plain(user_accounts.drop_user),
    statements.ChangeMembership: _plain(memberships.change_membership),
    statements.ChangePrivileges: _plain(grants.change_privileges),
    statements.AlterDefaultPrivileges: _plain(default_privileges.alter_default_privileges),
    statements.ReassignOwned: _plain(owned_objects.reassign_owned),
    statements.DropOwned: _plain(owned_objects.drop_owned),
    statements.Flush: _plain(control.flush),
    statements.Refresh: _plain(control.refresh),
    statements.AuditView: _plain(audit_view.audit),
    statements.ShowChecksum: _plain(audit_view.show_checksum),
    statements.Recover: _plain(control.recover),
    statements.Backup: _plain(backups.backup),
    statements.Wait: _plain(control.wait),
    statements.CancelJobs: _plain(control.cancel_jobs),
    statements.Transaction: _plain(transactions.transaction),
    statements.Prepare: _plain(prepared.prepare),
    statements.Execute: _plain(_execute),
    statements.Deallocate: _plain(prepared.deallocate),
    statements.DeclareCursor: cursors.declare,
    statements.DeclareSubscriptionCursor: _plain(subscription_cursors.declare),
    statements.Fetch: _plain(cursors.fetch),
    statements.CloseCursor: _plain(cursors.close),
    statements.Discard: _plain(control.discard),
    statements.CreateExtension: _plain(control.create_extension),
    statements.Vacuum: _plain(control.vacuum),
}

# Statements that contain types of columns, fields, arguments or parameters.
_WITH_TYPES = (
    statements.CreateTable, statements.CreateSource, statements.AlterTable, statements.CreateFunction,
    statements.CreateType, statements.CreateDomain, statements.AlterAttributes, statements.AlterDomain,
    statements.Prepare,
)  # fmt: skip

# How often a statement is planned again when other sessions alter its tables, or create what it has not found.
_ATTEMPTS = 10


def run(session: Session, statement: Statement, oids: tuple[int, ...], values: tuple[object, ...]) -> Result:
    """Run a statement. Raises Error, with its position in the client's text if known."""
    if isinstance(statement, _WITH_TYPES):
        catalog = session.context.store.catalog
        if isinstance(statement, statements.CreateTable):
            statement = with_likes(statement, catalog, session.scope, session.user)
        statement = with_domains(with_types(statement, catalog, session.scope), catalog)
    if any(deep_parameters.depth(value) > 1 for value in values):
        types = deep_parameters.deeper_types(Prepared(session, statement, oids).parameters, values)
        statement = deep_parameters.with_types(statement, types)
        oids = tuple(0 if number in types else oid for number, oid in enumerate(oids, start=1))
    atomic.check(session, statement)
    transactions.check_writable(session, statement)

    def handle(attempts: int = 1) -> Result:
        try:
            return HANDLERS[type(statement)](session, statement, oids, values)
        except Error as error:
            is_outdated = isinstance(error, Altered) and session.transaction.block is None
            if attempts == _ATTEMPTS or not (is_outdated or _is_taken(statement, error)):
                raise
            return handle(attempts + 1)

    with placed(statement, session):
        done = handle() if atomic.is_part(session, statement) else atomic.run_between(session, statement, handle)
    transactions.note_committed(session, statement)
    if session.temporary.on_commit and not isinstance(statement, statements.Query):
        on_commit.end_transaction(session)
    return done


def _do(session: Session, statement: statements.Do) -> Result:
    """Run the statement of a DO block. Raises its errors, without those that the block handles."""
    try:
        notices = run(session, parse(statement.text, session.variables.date_order), (), ()).notices
    except Error as error:
        if not {error.sqlstate, ""} & {*statement.handled}:
            error.position = None  # which is that in the block's text
            raise
        notices = []
    return Result("DO", notices=notices)


def _is_taken(statement: Statement, error: Error) -> bool:
    """Return whether a CREATE IF NOT EXISTS failed because another session took the name after the look-up."""
    return error.sqlstate == errors.DUPLICATE_TABLE and getattr(statement, "if_not_exists", False)


def _parsed(sql: str, order: str) -> Statement:
    """Return the statement of a text, which semicolons may follow. Raises Error 42601, also for several statements."""
    try:
        return parse(sql, order)
    except Error as error:
        [(text, offset), *more] = split(sql)
        if more:
            message = "cannot insert multiple commands into a prepared statement"
            raise Error(message, errors.SYNTAX_ERROR) from error
        if offset or text == sql:
            raise
    return parse(text, order)


class Client:
    """Implements `server.wire.client_session.ClientSession` over the running server."""

    def __init__(self, context: Context, startup: dict[str, str]) -> None:
        context.follow()
        self._session = Session(context, startup)
        self._in_transaction = False  # as last reported to the client

    @property
    def notify(self) -> Callable[[Notice], None]:
        return self._session.notify

    @notify.setter
    def notify(self, send: Callable[[Notice], None]) -> None:
        session = self._session
        session.notify = lambda notice: (
            send(notice) if notice.is_shown_at(session.variables.get("client_min_messages")) else None
        )

    @property
    def names(self) -> Names:
        return self._session.names

    @property
    def user(self) -> User:
        """The session's user. Raises Error 28000 when that user has been dropped."""
        return self._session.user

    def split(self, sql: str) -> Iterable[tuple[str, int]]:
        single = by_literal(sql)
        return split(sql) if single is None else ((single.text, 0),)

    def prepare(self, sql: str, parameter_oids: tuple[int, ...]) -> Prepared:
        self._session.context.follow()
        given = by_literal(sql)
        lookup = prepare_lookup(self._session, given) if given is not None else None
        if lookup is not None:
            atomic.check_failed(self._session, lookup.statement)
            return lookup
        statement = _parsed(sql, self._session.variables.date_order)
        atomic.check_failed(self._session, statement)
        return Prepared(self._session, statement, parameter_oids, sql)

    def execute(self, prepared: result.Prepared, values: tuple[object, ...]) -> Result:
        assert isinstance(prepared, Prepared)
        self._session.context.follow()
        with self._session.statement():
            if self._session.backend is not None:  # from here on a cancel finds it
                self._session.backend.begin(prepared.text)
            done = run(self._session, prepared.statement, prepared.oids, prepared.constants or values)
        level = self._session.variables.get("client_min_messages")
        done.notices = [notice for notice in done.notices if notice.is_shown_at(level)]
        if not self._session.variables.flag("risingwave_command_tags"):
            done.tag = postgres_tag(done.tag)
        return done

    def begin_implicit(self) -> None:
        if self._session.transaction.block is None and atomic.applies(self._session):
            atomic.begin(self._session, implicit=True)

    def begins_pipeline(self, prepared: result.Prepared) -> bool:
        assert isinstance(prepared, Prepared)
        return atomic.begins_pipeline(self._session, prepared.statement)

    def end_implicit(self) -> None:
        block = self._session.transaction.block
        if block is not None and block.is_implicit:
            with self._session.statement(), placed(statements.Empty(), self._session):
                atomic.commit(self._session)
            on_commit.end_transaction(self._session)

    def explain(self, error: Error) -> None:
        suggest(self._session, error)
        if self._session.variables.flag("risingwave_error_details"):
            add_words(error)

    def fail(self) -> None:
        atomic.fail(self._session)

    def transaction_status(self) -> bytes:
        """Return the status of ReadyForQuery: idle unless a COMMIT would end something, as statements commit alone."""
        block = self._session.transaction.block
        has_failed = block is not None and block.has_failed
        is_open = self._session.transaction.pinned is not None or self._session.names.has_open_portals
        self._in_transaction = is_open or has_failed
        if self._session.backend is not None:
            self._session.backend.rest(is_open, has_failed)
        if has_failed:
            return b"E"
        return b"T" if is_open else b"I"

    def attach(self, process_id: int, address: tuple[str, int], terminate: Callable[[], None]) -> None:
        self._session.backend = Backend(process_id, address, self._session, terminate)
        self._session.context.backends.add(self._session.backend)

    def idle_limit(self) -> tuple[float, Error] | None:
        return self._session.idle_limit(self._in_transaction)

    def parameters(self) -> dict[str, str]:
        return self._session.variables.reported()

    def cancel(self) -> None:
        self._session.running.cancel()

    def close(self) -> None:
        if self._session.backend is not None:
            self._session.context.backends.remove(self._session.backend.process_id)
        self._session.close()
