"""Infers the types of a statement's parameters like PostgreSQL: a parameter takes the type of its first place.

PostgreSQL documentation 10.2 to 10.5: beside an operator it is assumed to be of the other side's type; among the values
of CASE, IN, ARRAY[..] and the like of their common type; without any such information it is text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Any

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    Type,
    type_of_oid,
)
from sparkwave.planner.batch.argument_types import argument_type
from sparkwave.planner.batch.typer import Typer, output_type, type_of_value
from sparkwave.planner.functions.operators import as_call
from sparkwave.planner.functions.result_types import Known, array_type, common
from sparkwave.planner.functions.typed import data_type
from sparkwave.planner.parse.literals import array_value, moment_value
from sparkwave.planner.parse.parameter_runs import parameter_numbers
from sparkwave.planner.parse.row_values import is_row
from sparkwave.planner.parse.text_values import MOMENTS
from sparkwave.planner.parse.trees import at, column_type

# Results about a node that may contain thousands of parameters, kept for all of them.
Seen = dict[tuple[int, object], Any]


def parameter_number(node: exp.Expr) -> int | None:
    """Return the number of a node's parameter, of a run's first; None when it is none."""
    return next(iter(parameter_numbers(node)), None)


def infer_parameters(
    tree: exp.Expr,
    oids: tuple[int, ...],
    assigned: Mapping[int, Type],
    typed: Typer,
    user_types: Mapping[int, Type],
) -> tuple[Type, ...]:
    """Return the types of a statement's parameters: those that the client gives, else those of their place, else text.

    `assigned` are those of the columns to which parameters are written, `user_types` the users' types by OID.
    """
    numbers = {n for node in tree.find_all(exp.Parameter) for n in parameter_numbers(node)}
    if 0 in numbers:
        raise Error("there is no parameter $0", errors.UNDEFINED_PARAMETER)
    declared = ((n, type_of_oid(oid) or user_types.get(oid)) for n, oid in enumerate(oids, start=1))
    given = {n: type_ for n, type_ in declared if type_ is not None}
    given = {number: type_.as_written for number, type_ in given.items()}
    found: dict[int, Type] = {}
    # PostgreSQL reads an UPDATE's condition before its assignments, and an INSERT's rows after its columns.
    reads_first = isinstance(tree, exp.Update)
    if numbers - given.keys() - (set() if reads_first else assigned.keys()):
        seen: Seen = {}
        for node in typed.copy_of(tree).find_all(exp.Parameter, bfs=False):
            unknown = [number for number in parameter_numbers(node) if number not in found]
            type_ = type_by_place(node, seen) if unknown else None
            if type_ is not None:
                found |= dict.fromkeys(unknown, _unconstrained(type_))
    written = {n: _unconstrained(type_) for n, type_ in assigned.items()}
    known = (written | found if reads_first else found | written) | given
    return tuple(known.get(n, TEXT) for n in range(1, max(len(oids), *numbers, 0) + 1))


def assigned_values(tree: exp.Expr, types: Callable[[str, int], Type | None]) -> dict[int, Type]:
    """Return the types of parameters that are written directly, from those of the columns by name or place.

    `tree` is an UPDATE, whose columns have names, or the source of an INSERT's rows.
    """
    found: dict[int, Type] = {}
    for name, place, value in _written(tree):
        numbers = parameter_numbers(value.unalias().unnest())
        type_ = types(name, place) if numbers else None
        if type_ is not None:
            for number in numbers:
                found.setdefault(number, type_)
    return found


def read_assigned(tree: exp.Expr, types: Callable[[str, int], Type | None], order: str) -> None:
    """Write the dates, times and arrays that an INSERT's query has as texts in the engines' form, in place.

    The arguments are those of `assigned_values`; `order` is that of dates. Raises Error 22007, 22008, 22009, 22023.
    """
    for name, place, value in list(_written(tree)):
        text = value.unalias().unnest()
        type_ = types(name, place) if text.is_string else None
        if type_ in MOMENTS:
            with at(text):
                text.replace(moment_value(text.name, type_, order))
        elif type_ is not None and type_.dimensions:
            with at(text):
                text.replace(exp.cast(array_value(text.name, type_, order), data_type(type_)))


def _written(tree: exp.Expr) -> Iterable[tuple[str, int, exp.Expr]]:
    match tree:
        case exp.Update():
            for assignment in tree.expressions:
                target, value = assignment.this, assignment.expression
                if isinstance(target, exp.Tuple) and not isinstance(value, exp.Query):
                    pairs = zip(target.expressions, value.unnest().expressions, strict=False)
                    yield from ((column.name, 0, item) for column, item in pairs)
                else:
                    yield target.name, 0, value
        case exp.Values():
            for row in tree.expressions:
                yield from (("", place, value) for place, value in enumerate(row.expressions))
        case exp.Select():
            yield from (("", place, value) for place, value in enumerate(tree.expressions))
        case exp.SetOperation():
            yield from _written(tree.this)
            yield from _written(tree.expression)
        case exp.Subquery():
            yield from _written(tree.this)


def _unconstrained(type_: Type) -> Type:
    """Return a type without precision, and for unspecified text the preferred one of the two text types."""
    return type_.without_digits.as_written


def type_by_place(node: exp.Expr, seen: Seen) -> Type | None:
    """Return the type that a parameter or an untyped literal takes from its place."""
    child: exp.Expr = node
    parent = node.parent
    while isinstance(parent, exp.Paren | exp.Neg | exp.Alias):
        child, parent = parent, parent.parent
    if parent is None:
        return None
    if isinstance(parent, exp.Anonymous) and parent.name.upper() in _ANONYMOUS:
        return _ANONYMOUS[parent.name.upper()](parent, child, seen)
    for kinds, rule in _RULES:
        if isinstance(parent, kinds):
            found = rule(parent, child, seen)
            return TEXT if found is not None and found.is_text else found
    return _argument(parent, child, seen)


def _cast(parent: exp.Expr, child: exp.Expr, seen: Seen) -> Known:
    try:
        return column_type(parent.args["to"])
    except Error:
        return None  # regclass and the like: the text


def _compared(parent: exp.Expr, child: exp.Expr, seen: Seen) -> Known:
    other = parent.expression if child is parent.this else parent.this
    array = _quantified(other)
    if array is None:
        return _literal_or_type(other)
    if isinstance(array, exp.Query):
        return output_type(array, 0)
    found = type_of_value(array)
    return found.element if found is not None and found.dimensions else None


def _quantified(node: exp.Expr) -> exp.Expr | None:
    """Return the operand of ANY or ALL."""
    if isinstance(node, exp.Any | exp.All):
        return node.this.unnest()
    return None


def _array_beside(parent: exp.Expr, child: exp.Expr, seen: Seen) -> Known:
    comparison = parent.parent
    if not isinstance(comparison, exp.Binary):
        return None
    element = _literal_or_type(comparison.this)
    if element is None or element.dimensions:
        return element
    return array_type(TEXT if element.is_text else element)


def _listed(parent: exp.Expr, child: exp.Expr, seen: Seen) -> Known:
    query = parent.args.get("query")
    if child is parent.this:
        return output_type(query.unnest(), 0) if query is not None else _common_of(parent, parent.expressions, seen)
    return _literal_or_type(parent.this) or _common_of(parent, parent.expressions, seen)


def _added(parent: exp.Expr, child: exp.Expr, seen: Seen) -> Known:
    """Return the type beside an operator: the other side's if there is such an operator, else that of the only one."""
    other = type_of_value(parent.expression if child is parent.this else parent.this)
    if other is None:
        return None
    match parent:
        case exp.Mul() | exp.Div() if other == INTERVAL:
            return DOUBLE
        case exp.Add() if other in (TIMESTAMP, TIMESTAMPTZ):
            return INTERVAL
        case exp.Add() if other == DATE:
            return INTEGER
    return other


def _shifted(parent: exp.Expr, child: exp.Expr, seen: Seen) -> Known:
    return INTEGER if child is parent.expression else type_of_value(parent.expression)


def _joined(parent: exp.Expr, child: exp.Expr, seen: Seen) -> Known:
    other = type_of_value(parent.expression if child is parent.this else parent.this)
    return other if other is not None and (other.dimensions or other.name in ("json", "jsonb", "bytea")) else TEXT


def _siblings(parent: exp.Expr, child: exp.Expr, seen: Seen) -> Known:
    return _common_of(parent, parent.iter_expressions(), seen)


def _in_series(parent: exp.Expr, child: exp.Expr, seen: Seen) -> Known:
    """Return the type of a bound or a step: that of the others, but the step of moments is an interval."""
    found = _siblings(parent, child, seen)
    is_of_moments = found in (DATE, TIMESTAMP, TIMESTAMPTZ)
    return INTERVAL if is_of_moments and child.arg_key == "step" else found


def _of_case(parent: exp.Expr, child: exp.Expr, seen: Seen) -> Known:
    case = parent if isinstance(parent, exp.Case) else parent.parent
    assert case is not None
    branches = case.args.get("ifs") or []
    if child.arg_key == "this":
        subject = case.args.get("this")
        if subject is None:
            return BOOLEAN
        return _common_of(case, chain([subject], (branch.this for branch in branches)), seen, "this")
    default = case.args.get("default")
    return _common_of(case, chain((b.args["true"] for b in branches), [default] if default else []), seen)


def _in_row(parent: exp.Expr, child: exp.Expr, seen: Seen) -> Known:
    """Return the type in a row beside another row, field by field."""
    place = child.index or 0
    comparison = parent.parent
    while isinstance(comparison, exp.Paren):
        comparison = comparison.parent
    if isinstance(comparison, exp.Values):
        cells = (row.expressions[place] for row in comparison.expressions if place < len(row.expressions))
        return _common_of(comparison, cells, seen, place)
    if not isinstance(comparison, exp.Binary | exp.In):
        return None
    rows = (part.unnest() for part in comparison.iter_expressions())
    cells = (
        r.expressions[place] for r in rows if (is_row(r) or isinstance(r, exp.Tuple)) and place < len(r.expressions)
    )
    return _common_of(comparison, cells, seen, place)  # the parameter itself has no type


def _of_union(parent: exp.Expr, child: exp.Expr, seen: Seen) -> Known:
    """Return the type of an output from its counterpart in a UNION."""
    query = parent.parent
    place = child.index if child.arg_key == "expressions" else None
    while isinstance(query, exp.Subquery):
        query = query.parent
    if place is None or not isinstance(query, exp.SetOperation):
        return None
    return common(tuple(output_type(side.unnest(), place) for side in (query.this, query.expression)))


def _argument(parent: exp.Expr, child: exp.Expr, seen: Seen) -> Known:
    key = id(parent), "call"
    if key not in seen:
        seen[key] = _call(parent)
    if seen[key] is None:
        return None
    name, places, known = seen[key]
    return argument_type(name, places[id(child)], len(places), known) if id(child) in places else None


def _call(node: exp.Expr) -> tuple[str, dict[int, int], dict[int, Type]] | None:
    """Return the function that a node calls, the places of its arguments, and their known types."""
    found = as_call(node)
    if found is None and isinstance(node, exp.Func):
        name = node.name.lower() if isinstance(node, exp.Anonymous) else node.sql_name().lower()
        parts = node.expressions if isinstance(node, exp.Anonymous) else node.iter_expressions()
        found = name, list(parts)
    if found is None:
        return None
    name, arguments = found
    types = ((place, type_of_value(argument)) for place, argument in enumerate(arguments))
    known = {place: type_ for place, type_ in types if type_ is not None}
    return name, {id(argument): place for place, argument in enumerate(arguments)}, known


def _common_of(parent: exp.Expr, parts: Iterable[exp.Expr], seen: Seen, which: object = None) -> Known:
    """Return the common type of some of a node's parts, which is the same for all parameters among them."""
    key = id(parent), which
    if key not in seen:
        seen[key] = _common(parts)
    return seen[key]


def _common(parts: Iterable[exp.Expr]) -> Known:
    """Return the common type of values. Text literals count only where nothing else has a type."""
    listed = list(parts)
    found = common(tuple(map(type_of_value, listed)))
    return found or (TEXT if any(_is_text(part) for part in listed) else None)


def _literal_or_type(node: exp.Expr) -> Known:
    return TEXT if _is_text(node) else type_of_value(node)


def _is_text(node: exp.Expr) -> bool:
    return node.unnest().is_string


def _fixed(type_: Type) -> _Rule:
    return lambda parent, child, seen: type_


_Rule = Callable[[Any, exp.Expr, Seen], Known]
_ANONYMOUS: dict[str, _Rule] = {"ROW": _in_row}
# The first match counts: comparisons are predicates, and some functions are operators.
_RULES: tuple[tuple[tuple[type[exp.Expr], ...], _Rule], ...] = (
    ((exp.Cast,), _cast),
    ((exp.Any, exp.All), _array_beside),
    ((exp.Limit, exp.Offset, exp.Fetch), _fixed(BIGINT)),
    ((exp.BitwiseLeftShift, exp.BitwiseRightShift), _shifted),
    ((exp.Like, exp.ILike, exp.SimilarTo, exp.Escape, exp.RegexpLike, exp.RegexpILike), _fixed(TEXT)),
    ((exp.JSONExtract, exp.JSONExtractScalar, exp.JSONBExtract, exp.JSONBExtractScalar), _fixed(TEXT)),
    ((exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ), _compared),
    ((exp.Nullif, exp.ArrayContainsAll, exp.ArrayContainedBy, exp.ArrayOverlaps), _compared),
    ((exp.In,), _listed),
    ((exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor), _added),
    ((exp.DPipe,), _joined),
    ((exp.And, exp.Or, exp.Not, exp.Where, exp.Having, exp.Join), _fixed(BOOLEAN)),
    ((exp.Case, exp.If), _of_case),
    ((exp.Between, exp.Coalesce, exp.Greatest, exp.Least, exp.Array), _siblings),
    ((exp.GenerateSeries, exp.ExplodingGenerateSeries), _in_series),
    ((exp.Lag, exp.Lead, exp.NthValue, exp.Ntile), _fixed(INTEGER)),
    ((exp.GroupConcat,), _fixed(TEXT)),
    ((exp.Tuple,), _in_row),
    ((exp.Select,), _of_union),
)
