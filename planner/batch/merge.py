"""MERGE for DuckDB: a query of the pairs of rows, each with its action."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import Relation
from sparkwave.catalog.names import ROW
from sparkwave.planner.batch.interval_fields import in_fields
from sparkwave.planner.batch.query import (
    WHEN_NAME,
    Environment,
    check_reads,
    infer,
    prepared,
    row_id,
    typed_for_writing,
    typer,
    with_given_types,
)
from sparkwave.planner.batch.values import (
    as_column,
    assignments,
    check_given,
    column_of,
    generated_columns,
    given_columns,
    is_default,
    named,
    target_column,
)
from sparkwave.planner.batch.write import WHEN, Change, marked, refuse_append_only, resolve_target, staged_batch
from sparkwave.planner.bind.privileges import check_relation
from sparkwave.planner.functions.emit import Sql
from sparkwave.planner.parse.identifiers import folded
from sparkwave.planner.parse.trees import alias_of
from sparkwave.planner.statements import Merge


def resolve_merged(statement: Merge, environment: Environment) -> Relation:
    """Return the table. Raises the errors of `resolve_target` for each action, and 0A000 for an append-only table."""
    actions = [action for when in _whens(statement.tree) if (action := _action(when)) is not None]
    target = resolve_target(statement.table, "SELECT", environment)
    for action in actions:
        check_relation(environment.catalog, environment.user, target, action, statement.table.position)
    if {"UPDATE", "DELETE"} & set(actions):
        refuse_append_only(target, statement.table)
    return target


def plan_merge(statement: Merge, target: Relation, environment: Environment, oids: tuple[int, ...] = ()) -> Change:
    """Return the change. The first WHEN whose condition holds applies to a pair. Raises Error 42703, 42601, 0A000."""
    environment = with_given_types(environment, oids)
    check_reads(statement.tree, environment, statement.tree.this)
    tree = typed_for_writing(prepared(statement.tree, environment, typer(environment)), environment)
    parameters = infer(tree, environment, oids)
    alias = alias_of(tree.this)
    row = row_id(target, alias)
    choice, actions, values = exp.Case(), [], []
    for when in _whens(tree):
        if not when.args["matched"]:
            _see_source_only(when, alias_of(tree.args["using"]))
        action = _action(when)
        if action is not None:
            actions.append(action)
            values.append(_values(when.args["then"], action, target, environment))
        choice = choice.when(_condition(when, row), exp.Literal.number(len(actions) if action else 0))
    items = [named(choice.else_(exp.Literal.number(0)), WHEN_NAME), named(row, ROW)]
    for column in target.visible:
        given = [(number, each[column.name]) for number, each in enumerate(values, start=1) if column.name in each]
        value: exp.Expr = column_of(column.name, alias)
        if given:
            value = exp.Case(this=column_of(WHEN_NAME)).else_(value)
            for number, each in given:
                value = value.when(exp.Literal.number(number), each)
        items.append(named(value, column.lake_name))
    join_type = "inner" if all(when.args["matched"] for when in _whens(tree)) else "left"
    query = exp.select(*items).from_(tree.args["using"])
    query = query.join(marked(tree.this), on=tree.args["on"], join_type=join_type)
    query.set("with_", tree.args.get("with_"))
    pairs = staged_batch(query, target, environment, parameters)
    updated = {name for action, each in zip(actions, values, strict=True) if action == "UPDATE" for name in each}
    updated |= {column.name for column in generated_columns(target)} if updated else set()
    assigned = tuple(column.name for column in target.visible if column.name in updated)
    chosen = f'SELECT * RENAME ("{WHEN_NAME}" AS "{WHEN}") FROM ({pairs.sql}) AS pairs WHERE "{WHEN_NAME}" > 0'
    return Change(replace(pairs, sql=Sql(chosen, pairs.sql.reads)), False, tuple(actions), assigned)


def _whens(tree: exp.Expr) -> list[exp.When]:
    return tree.args["whens"].expressions


def _action(when: exp.When) -> str | None:
    """Return the action of a WHEN; None for DO NOTHING."""
    then = when.args["then"]
    word = then.key.upper() if isinstance(then, exp.Insert | exp.Update) else then.name.upper()
    return None if word == "DO NOTHING" else word


def _condition(when: exp.When, row: exp.Column) -> exp.Expr:
    no_match = exp.Is(this=row.copy(), expression=exp.null())
    condition: exp.Expr = exp.not_(no_match) if when.args["matched"] else no_match
    more = when.args.get("condition")
    return condition if more is None else exp.and_(condition, more)


def _see_source_only(when: exp.When, source: str) -> None:
    """Let a bare name in WHEN NOT MATCHED be one of the source, because there is no row of the table."""
    then = when.args["then"]
    values = then.expression.expressions if isinstance(then, exp.Insert) and then.expression else []
    for part in [when.args.get("condition"), *values]:
        for column in part.find_all(exp.Column) if part is not None else ():
            is_bare = not column.table and column.find_ancestor(exp.Select) is None
            if is_bare and column.sql().upper() != "DEFAULT":
                column.set("table", exp.to_identifier(source, quoted=True))


def _values(then: exp.Expr, action: str, target: Relation, environment: Environment) -> dict[str, exp.Expr]:
    """Return the values of the columns in a WHEN; for an INSERT those of all columns."""
    if action == "UPDATE":
        return assignments(then.expressions, target, environment)
    if action == "DELETE":
        return {}
    places = then.this.expressions if then.this is not None else []
    columns = tuple(target_column(target, place) for place in places) or given_columns(target)
    given = then.expression.expressions if isinstance(then.expression, exp.Tuple) else []
    check_given(columns, lambda place: place >= len(given) or not is_default(given[place]))
    names = [folded(place.this if isinstance(place, exp.Column) else place) for place in places]
    repeated = next((name for index, name in enumerate(names) if name in names[:index]), None)
    if repeated is not None:
        raise Error(f'column "{repeated}" specified more than once', errors.DUPLICATE_COLUMN)
    if len(given) > len(columns):
        raise Error("INSERT has more expressions than target columns", errors.SYNTAX_ERROR)
    if places and len(given) < len(columns):
        raise Error("INSERT has more target columns than expressions", errors.SYNTAX_ERROR)
    by_name = {column.name: in_fields(value, column, target) for column, value in zip(columns, given, strict=False)}
    return {c.name: as_column(by_name.get(c.name, exp.var("DEFAULT")), c, environment) for c in target.visible}
