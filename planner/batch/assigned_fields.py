"""UPDATE of fields of composite columns: `SET a.zip = 7` sets the whole column, with its other fields as they are."""

from __future__ import annotations

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import Column, Relation
from sparkwave.planner.functions.result_types import field_place
from sparkwave.planner.parse.identifiers import folded
from sparkwave.planner.parse.trees import position_of


def with_whole_columns(tree: exp.Expr, target: Relation, alias: str) -> exp.Expr:
    """Return an UPDATE in which each column is set as a whole. Raises Error 42703 or 42804 for a field that is none.

    `alias` is the name of the table in the statement, which may stand before a column.
    """
    columns = {column.name: column for column in target.visible}
    if not any(_owner(item, columns, alias) is not None for item in tree.expressions):
        return tree
    tree, whole, items = tree.copy(), dict[str, exp.Expr](), list[exp.Expr]()
    for item in tree.expressions:
        column = _owner(item, columns, alias)
        if column is None:
            items.append(item)
            continue
        if column.name not in whole:
            whole[column.name] = exp.Anonymous(this="row", expressions=_fields(column, alias))
            place = exp.column(exp.to_identifier(column.name, quoted=True))
            items.append(exp.EQ(this=place, expression=whole[column.name]))
        parts = whole[column.name].expressions
        parts[_place(item.this, column) - 1] = item.expression
        whole[column.name].set("expressions", parts)
    tree.set("expressions", items)
    return tree


def _owner(item: exp.Expr, columns: dict[str, Column], alias: str) -> Column | None:
    """Return the column of which an item of SET sets a field; None where it sets a whole one."""
    place = item.this
    if not isinstance(place, exp.Column) or not place.table or folded(place.args["table"]) == alias:
        return None
    return columns.get(folded(place.args["table"]))


def _fields(column: Column, alias: str) -> list[exp.Expr]:
    own = exp.column(exp.to_identifier(column.name, quoted=True), table=exp.to_identifier(alias, quoted=True))
    names = (exp.to_identifier(name, quoted=True) for name, _ in column.type.fields)
    return [exp.Dot(this=exp.paren(own.copy()), expression=name) for name in names]


def _place(place: exp.Column, column: Column) -> int:
    """Return the place of the field of a column that an item of SET names, from 1."""
    prefix = f'cannot assign to field "{place.name}" of column "{column.name}" because'
    if not column.type.is_struct:
        message = f"{prefix} its type {column.type.shown} is not a composite type"
        raise Error(message, errors.DATATYPE_MISMATCH, position=position_of(place))
    found = field_place(column.type, place.this)
    if found is None:
        message = f"{prefix} there is no such column in data type {column.type.shown}"
        raise Error(message, errors.UNDEFINED_COLUMN, position=position_of(place))
    return found
