"""CREATE TABLE, with columns or AS a query, and CREATE SOURCE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sparkwave.catalog import errors
from sparkwave.catalog.column_names import check_distinct, escaped
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import ROW_ID, Column, Relation, check_column_name, no_column, row_id_column
from sparkwave.catalog.names import quote
from sparkwave.catalog.relation_details import NO_CONSTRAINTS, Check, Constraints
from sparkwave.catalog.stores.relation_store import already_exists, create_relation
from sparkwave.catalog.stores.source_store import add_source
from sparkwave.catalog.types import column_type_of, duckdb_type
from sparkwave.planner.batch.query import Batch, plan_query
from sparkwave.planner.batch.values import condition_text, default_batch, generated_value
from sparkwave.planner.bind.stored_calls import CHECK, GENERATED
from sparkwave.planner.definitions.counting import draws
from sparkwave.planner.definitions.table_definition import table_text, with_parents
from sparkwave.planner.functions.json_checks import check_key
from sparkwave.planner.statements import ColumnDefinition, CreateSource, CreateTable, CreateTableAs
from sparkwave.server.reads import execution
from sparkwave.server.session.session import Session
from sparkwave.server.statements.new_relations import existing_notice, made_schema, refuse_padded, take_temporary
from sparkwave.server.statements.sequences import (
    add_sequence,
    counting_columns,
    settled_default,
    settled_expression,
)
from sparkwave.server.statements.sources import refuse_constraints, upstreams, with_source
from sparkwave.server.statements.streaming_settings import new_settings
from sparkwave.server.statements.table_keys import unenforced, with_keys, with_table
from sparkwave.server.wire.result import Notice, Result, ResultColumn
from sparkwave.server.writes.sequence_numbers import describe_with
from sparkwave.server.writes.staging import store_new
from sparkwave.server.writes.writing import stage_query


def create_table(session: Session, statement: CreateTable) -> Result:
    """Create a table; without a primary key, the lake's row id is its key."""
    return _create(session, statement, "table")


def create_source(session: Session, statement: CreateSource) -> Result:
    """Create a source: a table that only grows, by the rows that its connector delivers from now on."""
    refuse_constraints(statement.table)
    return _create(session, statement.table, "source")


def _create(session: Session, statement: CreateTable, kind: str) -> Result:
    tag = f"CREATE_{kind.upper()}"
    existing = existing_notice(session, statement)
    if existing is not None:
        return Result(tag, notices=[existing])
    refuse_padded(statement.columns)
    source = None
    if statement.connector is not None:
        statement, source = with_source(session, statement, statement.connector)
    given = [
        replace(
            column, default=settled_default(session, column.default), generated=_generated(session, column, statement)
        )
        for column in statement.columns
    ]
    columns = tuple(column.column for column in given)
    statement = replace(statement, checks=tuple(settled_check(session, check, columns) for check in statement.checks))
    try_expressions(session, columns, statement.checks)
    key = statement.primary_key
    for column in given:
        check_column_name(column.name)
        if column.name in key:
            check_key(column.type)
    store = session.context.store
    with store.change() as cursor:
        id_, schema = store.next_id(cursor), made_schema(session, cursor, statement)
        taken = store.catalog.find(session.database, schema, statement.name.name)
        if taken is not None:
            raise already_exists(taken)
        columns, sequences = counting_columns(session, cursor, schema, id_, statement.name.name, given)
        relation = Relation(
            id=id_,
            database=session.database,
            schema=schema,
            name=statement.name.name,
            kind=kind,
            columns=columns if key else (*(columns or (no_column(),)), row_id_column()),
            key=key or (ROW_ID,),
            definition=statement.definition,
            created=True,
            owner=session.user.name,
            append_only=statement.append_only,
            watermark=statement.watermark,
            conflict=statement.conflict,
            details=_constraints(statement),
            upstreams=upstreams(session, statement),
            streaming=replace(new_settings(session, kind), retention_s=statement.retention_s),
        )
        relation = with_keys(session, cursor, relation, statement.keys)
        catalog = with_table(store.catalog, relation)
        text = table_text(statement.name, relation, catalog) if statement.likes else with_parents(relation, catalog)
        create_relation(store, cursor, replace(relation, definition=text))
        for sequence_id, name, made in sequences:
            add_sequence(session, cursor, sequence_id, schema, name, made)
        if source is not None:
            add_source(cursor, replace(source, relation_id=relation.id))
    session.context.sources.changed()
    take_temporary(session, relation, statement.on_commit)
    return Result(tag, notices=[*_implicit(relation, given, sequences), *unenforced(statement.keys)])


def _generated(session: Session, column: ColumnDefinition, statement: CreateTable) -> str | None:
    """Return the expression of a generated column with the schemas of the functions that it calls."""
    if column.generated is None:
        return None
    return settled_expression(session, column.generated, GENERATED, [each.column for each in statement.columns])


def settled_check(session: Session, check: Check, columns: tuple[Column, ...]) -> Check:
    """Return a CHECK with the schemas of the functions that it calls. Raises Error as `stored_text` does."""
    return replace(check, condition=settled_expression(session, check.condition, CHECK, columns))


def _implicit(
    relation: Relation, columns: Sequence[ColumnDefinition], sequences: Sequence[tuple[int, str, object]]
) -> list[Notice]:
    """Return PostgreSQL's messages of what a table brings along, which few clients ask for."""
    serial = [column.name for column in columns if column.counts is not None and column.identity is None]
    made = [
        f'will create implicit sequence "{name}" for serial column "{relation.name}.{column}"'
        for column, (_, name, _) in zip(serial, sequences, strict=False)
    ]
    if relation.primary_key:
        made.append(f'/ PRIMARY KEY will create implicit index "{relation.key_index}" for table "{relation.name}"')
    return [Notice(f"CREATE TABLE {text}", "DEBUG") for text in made]


def _constraints(statement: CreateTable) -> Constraints | None:
    lengths = ((escaped(column.name), column.length) for column in statement.columns)
    limited = tuple((name, length) for name, length in lengths if length is not None)
    made = Constraints(statement.checks, limited, key_name=statement.key_name)
    return None if made == NO_CONSTRAINTS else made


def try_expressions(session: Session, columns: tuple[Column, ...], checks: tuple[Check, ...]) -> None:
    """Check that defaults, generated columns and checks have the right types.

    Raises Error, also for an unknown name.
    """
    cursor = session.cursor()
    rows = ", ".join(f"CAST(NULL AS {column.type.duckdb()}) AS {quote(column.name)}" for column in columns)
    for column in columns:
        if column.default is not None:
            batch = default_batch(column, session.environment)
            execution.show_system(session, cursor, batch)
            describe_with(cursor, batch.draws)
            cursor.execute(f"SELECT {batch.sql}")
        if column.generated is not None:
            value = generated_value(column, columns, session.environment)
            execution.show_system(session, cursor, Batch(value, ()))
            cursor.execute(f"SELECT {value} FROM (SELECT {rows}) AS stored")
    for check in checks:
        try_check(session, cursor, check, columns, f"(SELECT {rows}) AS stored")


def try_check(session: Session, cursor: Cursor, check: Check, columns: tuple[Column, ...], rows: str) -> None:
    """Check that a CHECK is a condition over rows. Raises Error 42804, 0A000, also for an unknown name or function."""
    if draws(check.condition):
        raise Error("nextval in a check constraint is not supported", errors.FEATURE_NOT_SUPPORTED)
    condition = condition_text(check.condition, columns, session.environment)
    execution.show_system(session, cursor, Batch(condition, ()))
    [(_, found, *_)] = cursor.execute(f"DESCRIBE SELECT {condition} FROM {rows}").fetchall()
    if found != "BOOLEAN":
        message = f"argument of CHECK must be type boolean, not type {duckdb_type(found)}"
        raise Error(message, errors.DATATYPE_MISMATCH)


def create_table_as(session: Session, statement: CreateTableAs) -> Result:
    """Create a table with the rows of a query.

    The query runs first; one transaction then stores the table and its rows.
    """
    existing = existing_notice(session, statement)
    if existing is not None:
        return Result("CREATE TABLE AS", notices=[existing])
    batch = plan_query(statement.query, session.environment)
    if batch.parameters:
        raise Error("there is no parameter $1", errors.UNDEFINED_PARAMETER)
    columns = _table_columns(statement, execution.describe_batch(session, batch))
    relation = Relation(
        id=0,
        database=session.database,
        schema="",
        name=statement.name.name,
        kind="table",
        columns=(*columns, row_id_column()),
        key=(ROW_ID,),
        definition="",
        created=True,
        owner=session.user.name,
        append_only=statement.append_only,
        streaming=new_settings(session, "table"),
    )
    relation = replace(relation, definition=table_text(statement.name, relation, session.context.store.catalog))
    store, cursor = session.context.store, session.cursor()
    with session.interrupting(cursor, batch.sql):
        stage_query(session, cursor, relation, batch, statement.with_data)
        with store.change(cursor=cursor):
            schema = made_schema(session, cursor, statement)
            relation = replace(relation, id=store.next_id(cursor), schema=schema)
            relation = create_relation(store, cursor, relation)
            with session.context.lake.inlining.off(column.type for column in columns):
                count = store_new(cursor, relation)
        take_temporary(session, relation, statement.on_commit)
    return Result(f"SELECT {count}" if statement.with_data else "CREATE TABLE AS")


def _table_columns(statement: CreateTableAs, outputs: tuple[ResultColumn, ...]) -> tuple[Column, ...]:
    """Return a query's outputs as a table's columns, the first with the given names. Raises Error 42601, 42701."""
    if len(statement.columns) > len(outputs):
        raise Error("too many column names were specified", errors.SYNTAX_ERROR, position=statement.name.position)
    names = [*statement.columns, *(output.name for output in outputs[len(statement.columns) :])]
    check_distinct(names)
    for name in names:
        check_column_name(name)
    return tuple(Column(name, column_type_of(output.type)) for name, output in zip(names, outputs, strict=True))
