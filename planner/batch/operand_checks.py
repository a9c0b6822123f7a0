"""Conditions are booleans, and operands of a comparison are of types that PostgreSQL compares.

DuckDB casts instead: a text to a number that it is compared with, a number to boolean, and anything to text for `||`.
Only stored definitions, which are not checked, may still rely on that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import Relation
from sparkwave.catalog.types import BOOLEAN, Type
from sparkwave.planner.batch.typer import Typer
from sparkwave.planner.functions.assignment import DOCUMENTS, MOMENTS, NUMBERS, TEXTS, group_of
from sparkwave.planner.functions.typed import type_of_part
from sparkwave.planner.parse.constant_runs import ConstantRun
from sparkwave.planner.parse.operator_places import TEXT, operator_position
from sparkwave.planner.parse.trees import column_type, folded, position_of

_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=", exp.DPipe: "||",
    exp.NullSafeEQ: "=", exp.NullSafeNEQ: "=", exp.Nullif: "=",
}  # fmt: skip
_NUMERIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Neg, exp.Count, exp.Sum, exp.Length)
_PLAIN = frozenset((NUMBERS, MOMENTS, "boolean"))

# What a name may be: the groups of the types of all columns that are called so, by name.
_Names = Mapping[str, set[str]]


def check_operands(tree: exp.Expr, relations: Callable[[], Iterable[Relation] | None], typed: Typer) -> None:
    """Raise Error 42804 for a condition that is no boolean, 42883 for operands that do not fit an operator.

    `relations` returns those that the tree reads, None where there are others. Types are worked out only where those of
    the columns with an operand's name leave a doubt.
    """
    conditions, operators = list(_conditions(tree)), list(tree.find_all(*_COMPARISONS, exp.In))
    unions = [node for node in tree.find_all(exp.SetOperation) if not node.args.get("by_name")]
    if not conditions and not operators and not unions:
        return
    read = relations()
    if read is None:
        return
    names: dict[str, set[str]] = {}
    for relation in read:
        for column in relation.visible:
            names.setdefault(column.name, set()).add(_group(column.type) or "")
    conditions = [(what, node) for what, node in conditions if not _groups(node, names) <= {"boolean"}]
    pairs = [(node, *pair) for node in operators for pair in _pairs(node) if _is_doubtful(*pair, names)]
    nodes = [node for _, node in conditions] + [part for _, _, *parts in pairs for part in parts]
    found = typed(tree, [*unions, *nodes]) if unions or nodes else []
    for union in found[: len(unions)]:
        if isinstance(union, exp.SetOperation):
            _check_outputs(union)
    types = [_type_of(node) for node in found[len(unions) :]]
    for (what, node), type_ in zip(conditions, types, strict=False):
        if type_ is not None and type_ != BOOLEAN and _group(type_) is not None:
            message = f"argument of {what} must be type boolean, not type {type_.shown}"
            raise Error(message, errors.DATATYPE_MISMATCH, position=position_of(node))
    rest = iter(types[len(conditions) :])
    for node, operator, left, _ in pairs:
        own, other = next(rest), next(rest)
        if own is not None and other is not None and _differ(operator, _group(own), _group(other)):
            raise Error(
                f"operator does not exist: {own.shown} {operator} {other.shown}",
                errors.UNDEFINED_FUNCTION,
                hint=errors.NO_OPERATOR,
                position=operator_position(node, tree.meta.get(TEXT)) or position_of(_place(node, left)),
            )


def _place(node: exp.Expr, left: exp.Expr) -> exp.Expr:
    """Return where an operator is whose sign cannot be found; NULLIF is a call."""
    return node if isinstance(node, exp.Nullif) else left


def _check_outputs(union: exp.SetOperation) -> None:
    """Raise Error 42804 for queries of a typed set operation whose outputs have types without a common one."""
    for left, right in zip(union.left.selects, union.right.selects, strict=False):
        own, other = _type_of(left.unalias()), _type_of(right.unalias())
        if own is None or other is None or None in (_group(own), _group(other)):
            continue
        if _group(own) != _group(other):
            message = f"{union.key.upper()} types {own.shown} and {other.shown} cannot be matched"
            raise Error(message, errors.DATATYPE_MISMATCH, position=position_of(right))


def _type_of(node: exp.Expr | None) -> Type | None:
    return type_of_part(node) if node is not None else None


def _conditions(tree: exp.Expr) -> Iterator[tuple[str, exp.Expr]]:
    """Yield what has to be boolean, with the clause as PostgreSQL's errors name it."""
    for node in tree.find_all(exp.Where, exp.Having, exp.Join, exp.And, exp.Or, exp.Not, exp.Is, exp.Case):
        match node:
            case exp.Where():
                yield from _leaf("FILTER" if isinstance(node.parent, exp.Filter) else "WHERE", node.this)
            case exp.Having():
                yield from _leaf("HAVING", node.this)
            case exp.Join() if node.args.get("on") is not None:
                yield from _leaf("JOIN/ON", node.args["on"])
            case exp.And() | exp.Or():
                yield from _leaf(node.key.upper(), node.this)
                yield from _leaf(node.key.upper(), node.expression)
            case exp.Not():
                yield from _leaf("NOT", node.this)
            case exp.Is(expression=exp.Boolean(this=is_true)):
                negated = "NOT " if isinstance(node.parent, exp.Not) else ""
                yield from _leaf(f"IS {negated}{str(is_true).upper()}", node.this)
            case exp.Case() if node.args.get("this") is None:
                for branch in node.args["ifs"]:
                    yield from _leaf("CASE/WHEN", branch.this)


def _leaf(what: str, node: exp.Expr) -> Iterator[tuple[str, exp.Expr]]:
    node = _inner(node)
    if isinstance(node, (exp.Column, exp.Cast, *_NUMERIC)) or (isinstance(node, exp.Literal) and not node.is_string):
        yield what, node


def _inner(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _pairs(node: exp.Expr) -> Iterator[tuple[str, exp.Expr, exp.Expr]]:
    """Yield the operands that an operator compares, with the operator."""
    if not isinstance(node, exp.In):
        yield _COMPARISONS[type(node)], _inner(node.this), _inner(node.expression)
        return
    query = node.args.get("query")
    if query is not None:
        select = query.unnest()
        if isinstance(select, exp.Select) and len(select.selects) == 1:
            yield "=", _inner(node.this), _inner(select.selects[0].unalias())
    elif node.expressions and not isinstance(node.expressions[0], ConstantRun):
        yield from (("=", _inner(node.this), _inner(each)) for each in node.expressions[:1])


def _groups(node: exp.Expr, names: _Names) -> set[str]:
    """Return the groups that the type of an operand may be of; none where nothing is known."""
    if isinstance(node, exp.Column):
        return names.get(folded(node.this), set()) if isinstance(node.this, exp.Identifier) else set()
    if isinstance(node, exp.Literal):
        return set() if node.is_string else {NUMBERS}
    if isinstance(node, exp.Boolean):
        return {"boolean"}
    if isinstance(node, exp.Cast):
        try:
            return {_group(column_type(node.to)) or ""}
        except Error:
            return set()
    return {NUMBERS} if isinstance(node, _NUMERIC) else set()


def _group(type_: Type) -> str | None:
    return None if type_.dimensions else group_of(type_)


def _is_doubtful(operator: str, left: exp.Expr, right: exp.Expr, names: _Names) -> bool:
    return any(_differ(operator, a, b) for a in _groups(left, names) for b in _groups(right, names))


def _differ(operator: str, left: str | None, right: str | None) -> bool:
    """Whether an operator does not take operands of these groups."""
    if not left or not right:
        return False
    if operator == "||":
        return {left, right} <= _PLAIN
    return left != right and {left, right} != {TEXTS, DOCUMENTS}
