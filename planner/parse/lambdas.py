"""RisingWave's lambda expressions: `|x| x * 2` in `array_transform(array, |x| x * 2)`."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.generator import Generator


class ElementLambda(exp.Lambda):
    """A node for an expression over each element of an array; its only parameter is an identifier, also within it."""

    @property
    def parameter(self) -> exp.Expr:
        found: exp.Expr = self.expressions[0]
        return found

    def uses(self) -> list[exp.Expr]:
        """Return the places of the parameter in the expression."""
        return [part for part in self.this.find_all(exp.Identifier) if part.name == self.parameter.name]


def element_lambda(parameter: exp.Expr, body: exp.Expr, number: int) -> ElementLambda:
    """Return the lambda of a parsed expression, in which columns have the parameter's name.

    `number` tells lambdas within each other apart. The parameter gets a name that no column has.
    """
    name = f"_element{number}"
    holder = exp.Paren(this=body)
    for column in list(holder.find_all(exp.Column)):
        if column.table or not _is_same(column.this, parameter):
            continue
        column.replace(exp.to_identifier(name))
    return ElementLambda(this=holder.this, expressions=[exp.to_identifier(name)])


def _is_same(name: exp.Expr, other: exp.Expr) -> bool:
    folded = (each.name if each.args.get("quoted") else each.name.lower() for each in (name, other))
    return len(set(folded)) == 1


def _lambda_sql(generator: Generator, node: exp.Expr) -> str:
    assert isinstance(node, ElementLambda)
    return f"|{node.parameter.name}| {generator.sql(node, 'this')}"


for _dialect in ("", "postgres"):
    Dialect.get_or_raise(_dialect).generator_class.TRANSFORMS[ElementLambda] = _lambda_sql
