"""RisingWave's lambda expressions: `|x| x * 2` in `array_transform(array, |x| x * 2)`, `|k, v| v > 1` in map_filter."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.generator import Generator

from sparkwave.planner.parse.identifiers import folded


class ElementLambda(exp.Lambda):
    """A node for an expression over each element of an array, or each key and value of a map.

    Its parameters are identifiers, also within it.
    """

    @property
    def parameters(self) -> list[exp.Expr]:
        found: list[exp.Expr] = self.expressions
        return found

    def uses(self, parameter: exp.Expr) -> list[exp.Expr]:
        """Return the places of a parameter in the expression."""
        return [part for part in self.this.find_all(exp.Identifier) if part.name == parameter.name]


def element_lambda(parameters: Sequence[exp.Expr], body: exp.Expr, number: int) -> ElementLambda:
    """Return the lambda of a parsed expression, in which columns have the parameters' names.

    `number` tells lambdas within each other apart. The parameters get names that no column has.
    """
    names = [f"_element{number}" + (f"_{place}" if place else "") for place in range(len(parameters))]
    holder = exp.Paren(this=body)
    for column in list(holder.find_all(exp.Column)):
        name = next((name for name, own in zip(names, parameters, strict=True) if _is_same(column.this, own)), None)
        if name is not None and not column.table:
            column.replace(exp.to_identifier(name))
    return ElementLambda(this=holder.this, expressions=[exp.to_identifier(name) for name in names])


def _is_same(name: exp.Expr, other: exp.Expr) -> bool:
    return folded(name) == folded(other)


def _lambda_sql(generator: Generator, node: exp.Expr) -> str:
    assert isinstance(node, ElementLambda)
    names = ", ".join(parameter.name for parameter in node.parameters)
    return f"|{names}| {generator.sql(node, 'this')}"


for _dialect in ("", "postgres"):
    Dialect.get_or_raise(_dialect).generator_class.TRANSFORMS[ElementLambda] = _lambda_sql
