"""Rows of earlier statements as CTEs of a later one: each column is the array of a parameter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from sqlglot import exp

from sparkwave.catalog.types import Type
from sparkwave.planner.batch.statement_trees import trees_in, with_trees
from sparkwave.planner.functions.typed import data_type
from sparkwave.planner.parse.identifiers import folded
from sparkwave.planner.parse.parameter_runs import parameter_numbers
from sparkwave.planner.parse.trees import is_cte, name_of
from sparkwave.planner.statements import Name, Query

T = TypeVar("T")


@dataclass(frozen=True)
class GivenRows:
    """The name of the CTE, its columns with their types, and the number of the parameter of the first one."""

    name: str
    columns: tuple[tuple[str, Type], ...]
    first: int

    def cte(self) -> exp.CTE:
        """Return the CTE: it unnests an array for each column, which are the parameters from `first` on."""
        arrays = [
            exp.cast(exp.Parameter(this=exp.Literal.number(self.first + place)), data_type(_array_of(type_)))
            for place, (_, type_) in enumerate(self.columns)
        ]
        names = [exp.to_identifier(name, quoted=True) for name, _ in self.columns]
        rows = exp.Unnest(
            expressions=arrays, alias=exp.TableAlias(this=exp.to_identifier("_rows"), columns=names), offset=False
        )
        alias = exp.TableAlias(this=exp.to_identifier(self.name, quoted=True))
        typed = (
            exp.alias_(exp.cast(exp.column(name.copy()), data_type(type_)), name.name, quoted=True)
            for name, (_, type_) in zip(names, self.columns, strict=True)
        )
        return exp.CTE(this=exp.select(*typed).from_(rows), alias=alias)


def _array_of(type_: Type) -> Type:
    return replace(type_, dimensions=type_.dimensions + 1)


def with_given(part: T, given: Sequence[GivenRows]) -> T:
    """Return a statement, or a part of one, that has the rows that it reads as CTEs."""

    def beside(tree: exp.Expr) -> exp.Expr:
        made = tree.copy()
        whole = isinstance(made, exp.Query | exp.DML)
        readers = [made] if whole else [each for each in made.find_all(exp.Select) if not each.parent_select]
        for reader in readers:
            _add_read(reader, given)
        return made

    return with_trees(part, beside)


def _add_read(reader: exp.Expr, given: Sequence[GivenRows]) -> None:
    read = {folded(table.this) for table in reader.find_all(exp.Table) if isinstance(table.this, exp.Identifier)}
    ctes = [rows.cte() for rows in given if rows.name in read]
    if ctes:
        with_ = reader.args.get("with_")
        reader.set("with_", exp.With(expressions=[*ctes, *(with_.expressions if with_ is not None else ())]))


def numbers_in(part: object) -> set[int]:
    """Return the numbers of the parameters in a statement, or in a part of one."""
    nodes = (node for tree in trees_in(part) for node in tree.find_all(exp.Parameter))
    return {number for node in nodes for number in parameter_numbers(node)}


def renumbered(query: Query) -> tuple[Query, list[int]]:
    """Return a query whose parameters count from 1 without gaps, and the numbers that they had."""
    numbers = sorted(numbers_in(query))
    if numbers == list(range(1, len(numbers) + 1)):
        return query, numbers
    tree = query.tree.copy()
    for node in list(tree.find_all(exp.Parameter)):
        for number in parameter_numbers(node)[:1]:
            node.set("this", exp.Literal.number(numbers.index(number) + 1))
    return replace(query, tree=tree), numbers


def tables_in(part: object) -> list[Name]:
    """Return the names of the tables, apart from CTEs, in the trees of a statement."""
    tables = (table for tree in trees_in(part) for table in tree.find_all(exp.Table))
    return [name_of(table) for table in tables if isinstance(table.this, exp.Identifier) and not is_cte(table)]
