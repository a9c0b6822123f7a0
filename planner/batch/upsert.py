"""INSERT … ON CONFLICT as in PostgreSQL: finds the conflicting rows, and computes DO UPDATE's new rows."""

from __future__ import annotations

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import Column, Relation
from sparkwave.catalog.types import Type
from sparkwave.planner.batch.query import Batch, Environment, check_reads, typed_for_writing
from sparkwave.planner.batch.values import assignments, column_of, named
from sparkwave.planner.batch.write import INSERTED, marked, refuse_append_only, staged_batch, staged_rows, written_table
from sparkwave.planner.bind.privileges import check_relation
from sparkwave.planner.bind.table_references import resolve_references
from sparkwave.planner.parse.identifiers import folded
from sparkwave.planner.parse.trees import alias_of
from sparkwave.planner.statements import Insert

EXCLUDED = "excluded"


def check_upsert(statement: Insert, target: Relation, environment: Environment) -> None:
    """Raise Error 42P10 unless the conflict target is the primary key, and for DO UPDATE the errors of an UPDATE."""
    upsert = statement.upsert
    assert upsert is not None
    names = upsert.target
    if upsert.constraint is not None:
        if upsert.constraint in [unique.name for unique in target.constraints.uniques]:
            raise _unmatched(upsert.position, _UNENFORCED)
        if upsert.constraint != target.key_index:
            message = f'constraint "{upsert.constraint}" for table "{target.name}" does not exist'
            raise Error(message, errors.UNDEFINED_OBJECT, position=upsert.position)
    elif names is not None and (not target.primary_key or set(names) != set(target.primary_key)):
        unknown = next((name for name in names if name not in [column.name for column in target.visible]), None)
        if unknown is not None:
            message = f'column "{unknown}" does not exist'
            raise Error(message, errors.UNDEFINED_COLUMN, position=upsert.position)
        meant = {column.lake_name for column in target.visible if column.name in names}
        is_declared = any(meant == {*unique.columns} for unique in target.constraints.uniques)
        raise _unmatched(upsert.position, _UNENFORCED if is_declared else None)
    if upsert.tree is not None:
        refuse_append_only(target, statement.table)
        check_relation(environment.catalog, environment.user, target, "UPDATE", statement.table.position)
        check_relation(environment.catalog, environment.user, target, "SELECT", statement.table.position)
        check_reads(upsert.tree, environment)


_UNENFORCED = "UNIQUE is kept, but not enforced here: ON CONFLICT knows the primary key alone."


def _unmatched(position: int | None, hint: str | None) -> Error:
    message = "there is no unique or exclusion constraint matching the ON CONFLICT specification"
    return Error(message, errors.INVALID_COLUMN_REFERENCE, hint=hint, position=position)


def upsert_query(statement: Insert, target: Relation, environment: Environment, is_staged: bool) -> exp.Select:
    """Return the stored rows that DO UPDATE changes, in their new form.

    Not staged, over the table for the types alone.
    """
    upsert = statement.upsert
    assert upsert is not None and upsert.tree is not None
    table = written_table(statement)
    alias = alias_of(table)
    excluded = staged_rows(INSERTED, target).subquery() if is_staged else table.copy()
    excluded.set("alias", exp.TableAlias(this=exp.to_identifier(EXCLUDED, quoted=True)))
    assigned = upsert.tree.copy().expressions
    values = assignments(assigned, target, environment, lambda c, value: _keeps_key(c, value, target))
    chosen = (values.get(column.name, column_of(column.name, alias)) for column in target.visible)
    query = exp.select(*(named(value, column.lake_name) for value, column in zip(chosen, target.visible, strict=True)))
    query = query.from_(excluded)
    same = (exp.EQ(this=column_of(k, alias), expression=column_of(k, EXCLUDED)) for k in target.primary_key)
    query = query.join(marked(table) if is_staged else table, on=exp.and_(*same), copy=False)
    where = upsert.tree.args.get("where")
    query = query.where(where.this.copy()) if where is not None else query
    return resolve_references(query, environment.catalog, environment.scope)


def plan_upsert(statement: Insert, target: Relation, environment: Environment, parameters: tuple[Type, ...]) -> Batch:
    """Return DuckDB's text of `upsert_query` over the staged rows."""
    query = typed_for_writing(upsert_query(statement, target, environment, True), environment)
    assert isinstance(query, exp.Select)
    return staged_batch(query, target, environment, parameters)


def _keeps_key(column: Column, value: exp.Expr, target: Relation) -> bool:
    """Return whether an assignment leaves a key column unchanged: `SET id = excluded.id`."""
    is_excluded = isinstance(value, exp.Column) and value.table.lower() == EXCLUDED
    return column.name in target.primary_key and is_excluded and folded(value.this) == column.name
