"""The types of the values that an INSERT or UPDATE stores are those of the columns, or cast to them by assignment."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import Column, Relation
from sparkwave.catalog.types import BOOLEAN, INTEGER, JSONB, NUMERIC, Type
from sparkwave.planner.batch.interval_fields import in_fields, modifier_of_column
from sparkwave.planner.batch.typer import Typer
from sparkwave.planner.batch.values import is_default, is_written_row
from sparkwave.planner.bind.nearest_floats import make_nearest
from sparkwave.planner.functions.assignment import check_assigned, is_assignable
from sparkwave.planner.functions.typed import type_of_part
from sparkwave.planner.parse.identifiers import folded
from sparkwave.planner.parse.text_values import decode_text
from sparkwave.planner.parse.trees import at, position_of

_Pair = tuple[Column, exp.Expr]


@dataclass(frozen=True)
class _Given:
    """A value that a column is given, or at a place of a row constructor a field of a column of the type `row`."""

    column: Column
    value: exp.Expr
    row: Type | None = None
    place: int = 0

    def check(self, found: Type) -> None:
        """Raise Error 42804, or 42846 for a field, unless a value of the found type may be stored."""
        if self.row is None:
            check_assigned(self.column, found, self.value)
        elif not is_assignable(found, self.column.type):
            raise Error(
                f"cannot cast type record to {self.row.shown}",
                errors.CANNOT_COERCE,
                detail=f"Cannot cast type {found.shown} to {self.column.type.shown} in column {self.place}.",
                position=position_of(self.value),
            )


def fit_values(tree: exp.Expr, target: Relation, columns: tuple[Column, ...], typed: Typer) -> None:
    """Check the values of an UPDATE or of the source of an INSERT's rows; numerics for floats become the nearest ones.

    The values are those of VALUES, of a plain SELECT, and of SET; others are left to DuckDB's casts. Raises Error 42804
    for a value that its column cannot store, 42846 for a field of a row constructor, 22P02 for a text that is no
    integer or no document.
    """
    later: list[_Given] = []
    for given in chain.from_iterable(_given(_Given(*pair)) for pair in assigned_pairs(tree, target, columns)):
        value = given.value
        type_ = given.column.type
        if value.is_string and ((type_.is_integer and not value.name.isdigit()) or type_ == JSONB):
            with at(value):  # the engine would round a fraction, and reads more than documents
                decode_text(value.name, type_)
        if is_default(value) or value.is_string or isinstance(value, exp.Null | exp.Parameter | exp.Star):
            continue
        known = _type_of_constant(value)
        if known is None:
            later.append(given)
        else:
            given.check(known)
    nodes = typed(tree, [given.value for given in later]) if later else []
    for given, node in zip(later, nodes, strict=True):
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Select):
            node = node.this.selects[0].unalias()
        found = type_of_part(node) if node is not None else None
        if found is not None:
            given.check(found)
            if node is not None:
                make_nearest(given.value, found, given.column.type)


def _given(given: _Given) -> Iterator[_Given]:
    """Yield a value without parentheses, or the fields of a row constructor, also of those in an array."""
    bare, type_ = given.value.unalias(), given.column.type
    while isinstance(bare, exp.Paren):
        bare = bare.this
    if type_.fields and type_.dimensions and isinstance(bare, exp.Array):
        for item in bare.expressions:
            yield from _given(replace(given, column=replace(given.column, type=type_.element), value=item))
    elif type_.is_struct and is_written_row(bare) and len(bare.expressions) == len(type_.fields):
        for place, ((_, field), item) in enumerate(zip(type_.fields, bare.expressions, strict=True), start=1):
            yield from _given(_Given(replace(given.column, type=field), item, type_, place))
    else:
        yield replace(given, value=bare)


def read_in_fields(tree: exp.Expr, target: Relation, columns: tuple[Column, ...]) -> None:
    """Read the texts among an INSERT's values that become intervals with fields, in place."""
    if any(modifier_of_column(column, target) is not None for column in columns):
        for column, value in list(assigned_pairs(tree, target, columns)):
            bare = value.unalias()
            made = in_fields(bare, column, target)
            if made is not bare:
                bare.replace(made)


def _type_of_constant(value: exp.Expr) -> Type | None:
    number = value.this if isinstance(value, exp.Neg) else value
    if isinstance(number, exp.Literal):
        return INTEGER if number.name.isdigit() else NUMERIC
    return BOOLEAN if isinstance(value, exp.Boolean) else None


def assigned_pairs(tree: exp.Expr, target: Relation, columns: tuple[Column, ...]) -> Iterator[_Pair]:
    """Yield the values of VALUES, of a plain SELECT, and of SET, each with its column."""
    match tree:
        case exp.Update():
            by_name = {column.name: column for column in target.visible}
            for item in tree.expressions:
                column = by_name.get(folded(item.this.this)) if isinstance(item.this, exp.Column) else None
                if column is not None:
                    yield column, item.expression
        case exp.Values():
            rows = (row.expressions if isinstance(row, exp.Tuple) else [row] for row in tree.expressions)
            yield from chain.from_iterable(zip(columns, row, strict=False) for row in rows)
        case exp.Select() if not any(item.is_star for item in tree.selects):
            yield from zip(columns, tree.selects, strict=False)
