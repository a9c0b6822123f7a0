"""Generated columns: checks of their expressions, which are kept as text, and the columns that they read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import Column
from sparkwave.catalog.names import quote_if_needed
from sparkwave.catalog.types import Type
from sparkwave.planner.functions.typed import with_written_numerics
from sparkwave.planner.functions.unstable import mutable_call
from sparkwave.planner.functions.written_json import with_json
from sparkwave.planner.parse.identifiers import folded
from sparkwave.planner.parse.shown_text import shown_text
from sparkwave.planner.parse.time_types import WRITTEN
from sparkwave.planner.parse.trees import declared_type, parse_tree, position_of, unsupported
from sparkwave.planner.statements import ColumnDefinition


def generated_text(value: exp.Expr) -> str:
    """Return the text of an expression over the other columns of a row.

    Raises Error 0A000 for a query, 42803 and 42P20 for a function of several rows, 42P17 for a function that is not
    immutable.
    """
    value = value.unnest() if isinstance(value, exp.Paren) else value
    for part in value.find_all(exp.Query, exp.Parameter):
        raise unsupported(f"{part.sql(dialect='postgres')} in a generated column", part)
    refuse_aggregates(value, "column generation expressions")
    changing = mutable_call(value)
    if changing is not None:
        raise Error(
            "generation expression is not immutable",
            errors.INVALID_OBJECT_DEFINITION,
            detail=f"The value of {changing.sql(dialect='postgres').lower()} is not a function of the row.",
            position=position_of(changing),
        )
    return shown_text(value)


def transform_text(value: exp.Expr) -> str:
    """Return the text of the expression of USING, over the columns of a row.

    Raises Error 0A000 for a query, 42803 and 42P20 for a function of several rows.
    """
    check_one_row(value, "transform expression")
    return shown_text(value)


def check_one_row(value: exp.Expr, place: str) -> None:
    """Raise Error 0A000 for a query in a place, in PostgreSQL's words, 42803 and 42P20 as `refuse_aggregates`."""
    for part in value.find_all(exp.Query, exp.Parameter):
        message = f"cannot use subquery in {place}"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=position_of(part))
    refuse_aggregates(value, f"{place}s")


def refuse_aggregates(value: exp.Expr, place: str) -> None:
    """Raise Error 42803 and 42P20 for a function of several rows in a place, in PostgreSQL's words."""
    if value.find(exp.AggFunc):
        raise Error(f"aggregate functions are not allowed in {place}", errors.GROUPING_ERROR)
    if value.find(exp.Window):
        raise Error(f"window functions are not allowed in {place}", errors.WINDOWING_ERROR)


def check_generated(columns: Sequence[Column | ColumnDefinition], also: Sequence[str] = ()) -> None:
    """Raise Error 42703 for an expression that reads an unknown column, 42P17 for one that reads a generated column.

    `also` are further columns of the table, none of which is generated.
    """
    by_name = {column.name: column for column in columns}
    for column in columns:
        for name in columns_read(column.generated) if column.generated is not None else ():
            if name in also:
                continue
            if name not in by_name:
                raise Error(f'column "{name}" does not exist', errors.UNDEFINED_COLUMN)
            if by_name[name].generated is not None:
                raise Error(
                    f'cannot use generated column "{name}" in column generation expression',
                    errors.INVALID_OBJECT_DEFINITION,
                    detail="A generated column cannot reference another generated column.",
                )


@lru_cache(maxsize=1000)
def expression_of(text: str) -> exp.Expr:
    """Return the tree of an expression, which must not be changed."""
    return with_json(with_written_numerics(parse_tree(f"SELECT {text}"))).expressions[0].unalias()


def columns_read(text: str) -> frozenset[str]:
    """Return the names of the columns in an expression."""
    return frozenset(folded(column.this) for column in expression_of(text).find_all(exp.Column))


def is_column(text: str, name: str, type_: Type) -> bool:
    """Return whether an expression is nothing but a column, or a cast of it to a type."""
    tree = expression_of(text)
    if isinstance(tree, exp.Cast) and declared_type(tree.meta.get(WRITTEN, tree.to)) == type_:
        tree = tree.this
    return isinstance(tree, exp.Column) and folded(tree.this) == name


def renamed(text: str, names: Mapping[str, str]) -> str:
    """Return the expression with columns renamed."""
    tree = expression_of(text).copy()
    for column in list(tree.find_all(exp.Column)):
        if (name := names.get(folded(column.this))) is not None:
            column.set("this", exp.to_identifier(name, quoted=quote_if_needed(name) != name))
    return shown_text(tree)


def has_text(tree: exp.Expr, text: str) -> bool:
    """Return whether a text is a constant of a tree."""
    return any(each.is_string and each.name == text for each in tree.find_all(exp.Literal))
