"""CREATE TABLE, with columns or AS a query."""

from __future__ import annotations

from dataclasses import replace

from catalog import errors
from catalog.errors import Error
from catalog.model import RESERVED_COLUMNS, ROW_ID, Column, Relation, row_id_column
from catalog.names import quote_if_needed
from planner.batch.query import plan_query
from planner.batch.write import default_text
from planner.statements import CreateTable, CreateTableAs
from server.dml import stage_query, store_new
from server.placing import existing_notice, made_schema, take_temporary
from server.result import Result, ResultColumn
from server.session import Session


def create_table(session: Session, statement: CreateTable) -> Result:
    """A table; without a primary key its rows are told apart by the lake's row id."""
    existing = existing_notice(session, statement)
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
            schema=made_schema(session, cursor, statement),
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
    take_temporary(session, relation)
    return Result("CREATE_TABLE")


def create_table_as(session: Session, statement: CreateTableAs) -> Result:
    """A table with the rows of a query. The query runs first; then one transaction has the table and its rows."""
    existing = existing_notice(session, statement)
    if existing is not None:
        return Result("CREATE_TABLE", notices=[existing])
    batch = plan_query(statement.query, session.environment)
    if batch.parameters:
        raise Error("there is no parameter $1", errors.UNDEFINED_PARAMETER)
    columns = _table_columns(statement, session.describe_batch(batch))
    relation = Relation(
        id=0,
        database=session.database,
        schema="",
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
        with store.change(cursor=cursor):
            schema = made_schema(session, cursor, statement)
            relation = replace(relation, id=store.next_id(cursor), schema=schema)
            relation = store.create_relation(cursor, relation)
            count = store_new(cursor, relation)
        take_temporary(session, relation)
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
