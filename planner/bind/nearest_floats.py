"""Numbers of many digits that become floats are the nearest floats, as in PostgreSQL: DuckDB (1.5.5) rounds twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from sqlglot import exp

from sparkwave.catalog.model import Relation
from sparkwave.catalog.types import DOUBLE, FLOAT_DIGITS, REAL, Type
from sparkwave.planner.bind.wide_literals import ARITHMETIC
from sparkwave.planner.functions.aggregates import PAIRED
from sparkwave.planner.functions.digits import chosen
from sparkwave.planner.functions.operators import as_call
from sparkwave.planner.functions.result_types import Known, common
from sparkwave.planner.functions.scalar_functions import NEAREST, OF_FLOATS
from sparkwave.planner.functions.typed import data_type, in_float_text, sql_type, type_of_part
from sparkwave.planner.parse.constant_runs import ConstantRun
from sparkwave.planner.parse.trees import selects_of

TypeOf = Callable[[exp.Expr], Known]

_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ)
# Nodes whose parts meet as double precision where one of them is a float, and as the floats' own type.
_MEETING = (*_COMPARISONS, *ARITHMETIC, exp.In, exp.Between, exp.Pow)
_CHOOSING = (exp.Case, exp.Coalesce, exp.Greatest, exp.Least, exp.Array, exp.Nullif)
# A float keeps all numbers of so many digits apart.
_EXACT_DIGITS = {DOUBLE: FLOAT_DIGITS, REAL: 6}


def long_constants(tree: exp.Expr) -> list[tuple[exp.Expr, exp.Expr]]:
    """Return the numbers of many digits of comparisons and arithmetic in a tree, each with the other operand."""
    found = (pair for node in tree.find_all(*_COMPARISONS, *ARITHMETIC, exp.In, exp.Between) for pair in _pairs(node))
    return [(constant, other) for constant, other in found if in_float_text(constant) is not constant]


def _pairs(node: exp.Expr) -> Iterator[tuple[exp.Expr, exp.Expr]]:
    if isinstance(node, exp.Binary):
        yield from ((node.this, node.expression), (node.expression, node.this))
        return
    constants = node.expressions if isinstance(node, exp.In) else (node.args["low"], node.args["high"])
    yield from ((constant, node.this) for constant in constants)


def as_floats(pairs: Iterable[tuple[exp.Expr, exp.Expr | None]]) -> bool:
    """Make floats of the constants beside a typed operand that is one, in place. Returns whether there is one."""
    found = [constant for constant, other in pairs if (known := other and type_of_part(other)) and known.is_float]
    for constant in found:
        text = in_float_text(constant).copy()
        constant.replace(text if isinstance(text, ConstantRun) else exp.cast(text, exp.DType.DOUBLE))
    return bool(found)


def may_make_floats(tree: exp.Expr, read: Iterable[Relation]) -> bool:
    """Return whether numerics of a tree that reads these relations may become floats."""
    if any(column.type.is_float for relation in read for column in relation.visible):
        return True
    return any(_is_of_floats(node) for node in tree.walk())


def _is_of_floats(node: exp.Expr) -> bool:
    if isinstance(node, exp.DataType):
        return node.this in (exp.DType.FLOAT, exp.DType.DOUBLE)
    return isinstance(node, (exp.PercentileCont, *PAIRED)) or _takes_floats(node)


def _takes_floats(node: exp.Expr) -> bool:
    call = as_call(node)
    return call is not None and call[0] in OF_FLOATS


def with_nearest_floats(tree: exp.Expr, type_of: TypeOf) -> bool:
    """Let the numerics of a tree that become floats be the nearest ones, in place. Returns whether there are any."""
    pairs = [pair for node in tree.walk() for pair in _that_become_floats(node, type_of)]
    made = [make_nearest(value, type_of(value), to) for value, to in pairs]
    return any(made)


def make_nearest(value: exp.Expr, type_: Known, to: Type) -> bool:
    """Make the nearest float of a value of a type, in place. Returns whether it is a numeric of so many digits."""
    bare = value.unnest()
    if type_ is None or type_.name != "numeric" or type_.dimensions or to not in _EXACT_DIGITS:
        return False
    if type_.digits[0] <= _EXACT_DIGITS[to] or isinstance(bare, exp.Literal | exp.Neg | ConstantRun):
        return False
    made = exp.Anonymous(this=NEAREST[to])
    made.type = data_type(to)
    is_output = (
        isinstance(value, exp.Column) and isinstance(value.parent, exp.Select) and value.arg_key == "expressions"
    )
    value.replace(exp.alias_(made, value.name, quoted=True, copy=False) if is_output else made)
    made.set("expressions", [value])
    return True


def _that_become_floats(node: exp.Expr, type_of: TypeOf) -> Iterator[tuple[exp.Expr, Type]]:
    """Yield the values of a node that become floats unless they are, each with the type of float."""
    if isinstance(node, exp.Cast):
        to = sql_type(node.args["to"])
        if to in (DOUBLE, REAL):
            yield node.this, to
    elif isinstance(node, exp.In) and isinstance(query := node.args.get("query"), exp.Expr):
        outputs = [select.selects[0].unalias() for select in selects_of(query) if select.selects]
        yield from _of_one_type([node.this, *outputs], type_of)
    elif isinstance(node, _MEETING):
        parts = list(node.iter_expressions())
        if any(type_ is not None and type_.is_float for type_ in map(type_of, parts)):
            yield from ((part, DOUBLE) for part in parts)
    elif isinstance(node, _CHOOSING):
        yield from _of_one_type(chosen(node) or list(node.iter_expressions()), type_of)
    elif isinstance(node, exp.WithinGroup) and isinstance(node.this, exp.PercentileCont):
        yield from ((ordered.this, DOUBLE) for ordered in node.expression.expressions)
    elif isinstance(node, PAIRED):
        yield from ((part, DOUBLE) for part in node.iter_expressions())
    elif isinstance(node, exp.SetOperation) and not isinstance(node.parent, exp.SetOperation):
        rows = [select.selects for select in selects_of(node)]
        if not any(item.is_star for row in rows for item in row):
            for items in zip(*rows, strict=False):
                yield from _of_one_type([item.unalias() for item in items], type_of)
    elif _takes_floats(node):
        yield from ((part, DOUBLE) for part in node.iter_expressions())


def _of_one_type(values: list[exp.Expr], type_of: TypeOf) -> Iterator[tuple[exp.Expr, Type]]:
    found = common(tuple(map(type_of, values)))
    if found in (DOUBLE, REAL):
        yield from ((value, found) for value in values)
