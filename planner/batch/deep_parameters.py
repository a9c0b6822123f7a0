"""Parameters whose values are arrays of more dimensions than their types say, as PostgreSQL's `int[]` has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from sqlglot import exp

from sparkwave.catalog.types import Type
from sparkwave.planner.batch.statement_trees import with_trees
from sparkwave.planner.functions.typed import data_type
from sparkwave.planner.parse.parameter_runs import parameter_numbers

T = TypeVar("T")


def depth(value: object) -> int:
    """Return the number of dimensions of an array; 0 for any other value."""
    count = 0
    while isinstance(value, list):
        count, value = count + 1, next((each for each in value if each is not None), None)
    return count


def deeper_types(types: tuple[Type, ...], values: tuple[object, ...]) -> dict[int, Type]:
    """Return the types of the parameters whose values have more dimensions than their types, by number."""
    found = {}
    for number, (type_, value) in enumerate(zip(types, values, strict=False), start=1):
        if type_.dimensions and depth(value) > type_.dimensions:
            found[number] = replace(type_, dimensions=depth(value))
    return found


def with_types(part: T, types: Mapping[int, Type]) -> T:
    """Return a statement, or a part of one, in which some parameters are cast to types."""

    def cast(tree: exp.Expr) -> exp.Expr:
        made = tree.copy()
        for node in list(made.find_all(exp.Parameter)):
            numbers = parameter_numbers(node)
            if len(numbers) == 1 and numbers[0] in types:
                node.replace(exp.cast(node.copy(), data_type(types[numbers[0]])))
        return made

    return with_trees(part, cast)
