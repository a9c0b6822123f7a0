"""Checks operations on json, which PostgreSQL neither compares nor orders."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.types import Type
from sparkwave.planner.functions.result_types import Known, holds_json
from sparkwave.planner.functions.typed import type_of_part
from sparkwave.planner.functions.undefined import called, undefined_call
from sparkwave.planner.parse.trees import position_of

_OPERATORS: dict[type[exp.Expr], str] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<=", exp.NullSafeEQ: "=",
    exp.NullSafeNEQ: "=", exp.Nullif: "=", exp.In: "=", exp.Between: ">=",
}  # fmt: skip
COMPARISONS = tuple(_OPERATORS)
# Nodes whose values have to be of one type, by PostgreSQL's words for them.
_MEET: dict[type[exp.Expr], str] = {
    exp.Case: "CASE", exp.Coalesce: "COALESCE", exp.Array: "ARRAY", exp.Values: "VALUES", exp.Union: "UNION",
    exp.Intersect: "INTERSECT", exp.Except: "EXCEPT",
}  # fmt: skip
_EXTREMES = {exp.Greatest: "GREATEST", exp.Least: "LEAST"}


# Operators of jsonb, and functions that compare the elements of an array.
_OF_JSONB = (
    exp.ArrayContainsAll, exp.ArrayContainedBy, exp.JSONBContainsTopKey, exp.JSONBContainsAnyTopKeys,
    exp.JSONBContainsAllTopKeys, exp.JSONBDeleteAtPath,
)  # fmt: skip
_COMPARING = frozenset(
    {"array_position", "array_positions", "array_remove", "array_replace", "array_distinct", "array_sort", "array_min",
     "array_max"}
)  # fmt: skip


def check_key(type_: Type) -> None:
    """Raise Error 42704 for the type of a key of a table or an index that holds json, or a map."""
    if type_.holds_json or type_.holds_map:
        message = f'data type {type_.without_digits} has no default operator class for access method "btree"'
        hint = "You must specify an operator class for the index or define a default operator class for the data type."
        raise Error(message, errors.UNDEFINED_OBJECT, hint=hint)


def check_json(tree: exp.Expr) -> None:
    """Raise an Error for an invalid operation on json in a typed tree: 42883, 42804."""
    for node in tree.walk():
        if type(node) in _OPERATORS:
            _check_comparison(node)
        elif isinstance(node, exp.Order | exp.Window | exp.Group | exp.Distinct):
            _check_order(node)
        elif type(node) in _EXTREMES and any(map(_is_json, node.iter_expressions())):
            raise _not_found("comparison function", node)
        elif type(node) in _MEET:
            _check_meeting(node)
        elif isinstance(node, exp.Min | exp.Max) and _is_json(node.this):
            raise undefined_call(node)
        elif isinstance(node, exp.DPipe):
            _check_concatenation(node)
        elif isinstance(node, _OF_JSONB) and any(map(_is_json, node.iter_expressions())):
            raise undefined_call(node)
        elif _searches_text(node):
            raise Error("operator does not exist: text @@ text", errors.UNDEFINED_FUNCTION, position=position_of(node))
        elif isinstance(node, exp.Func):
            _check_call(node)


def _searches_text(node: exp.Expr) -> bool:
    """Return whether a node is `@@` of a text, PostgreSQL's text search; it is parsed as `@@` of jsonb."""
    if not isinstance(node, exp.Anonymous) or node.name != "jsonb_path_match" or len(node.expressions) < 4:
        return False
    type_ = type_of_part(node.expressions[0])
    return type_ is not None and type_.is_text and not node.expressions[0].is_string


def _is_json(node: exp.Expr) -> bool:
    return holds_json(type_of_part(node))


def _check_comparison(node: exp.Expr) -> None:
    if isinstance(node.parent, exp.Update):  # an assignment
        return
    sides = list(node.iter_expressions())
    if isinstance(node, exp.NullSafeEQ | exp.NullSafeNEQ) and any(isinstance(side, exp.Null) for side in sides):
        return
    if isinstance(node, exp.In) and (query := node.args.get("query")) is not None:
        sides = [node.this, *query.unnest().selects[:1]]
    if any(map(_is_json, sides)):
        types = [type_of_part(side.unalias()) for side in sides[:2]]
        if any(type_ is not None and (type_.dimensions or type_.fields) for type_ in types):
            raise _not_found("equality operator", node)
        message = f"operator does not exist: {f' {_OPERATORS[type(node)]} '.join(map(_written, types))}"
        position = position_of(node)
        raise Error(message, errors.UNDEFINED_FUNCTION, hint=errors.NO_OPERATOR, position=position)


def _written(type_: Known) -> str:
    return str(type_.without_digits) if type_ is not None else "unknown"


def _check_order(node: exp.Expr) -> None:
    """Check ORDER BY, PARTITION BY, GROUP BY and DISTINCT."""
    if isinstance(node, exp.Window):
        keys, what = node.args.get("partition_by") or [], "equality"
    elif isinstance(node, exp.Order):
        keys, what = [ordered.this for ordered in node.expressions], "ordering"
    elif isinstance(node, exp.Distinct):
        keys, what = list(_distinct(node)), "equality"
    else:
        keys, what = node.expressions, "equality"
    if (found := next(filter(_is_json, keys), None)) is not None:
        raise _not_found(f"{what} operator", found)


def _distinct(node: exp.Distinct) -> Iterator[exp.Expr]:
    """Yield the values that DISTINCT compares: of a call, of ON, or all outputs of a query."""
    on = node.args.get("on")
    if isinstance(on, exp.Tuple):
        yield from on.expressions
    elif node.expressions or not isinstance(node.parent, exp.Select):
        yield from node.expressions
    else:
        yield from (each.unalias() for each in node.parent.selects)


def _not_found(what: str, node: exp.Expr) -> Error:
    message = f"could not identify {'an' if what[0] in 'eo' else 'a'} {what} for type json"
    hint = "Use an explicit ordering operator or modify the query." if what.startswith("ordering") else None
    return Error(message, errors.UNDEFINED_FUNCTION, hint=hint, position=position_of(node))


def _check_meeting(node: exp.Expr) -> None:
    for values in _meeting(node):
        types = [type_ for value in values if (type_ := type_of_part(value.unalias())) is not None]
        found = next(filter(holds_json, types), None)
        other = next((type_ for type_ in types if type_ != found), None)
        if found is not None and other is not None:
            second = found if types[0] == other else other
            message = f"{_MEET[type(node)]} types {_written(types[0])} and {_written(second)} cannot be matched"
            raise Error(message, errors.DATATYPE_MISMATCH, position=position_of(node))
        if found is not None and isinstance(node, exp.SetOperation) and node.args.get("distinct"):
            raise _not_found("equality operator", node)


def _meeting(node: exp.Expr) -> Iterator[list[exp.Expr]]:
    """Yield the values that have to be of one type; those of each column in VALUES and set operations."""
    if isinstance(node, exp.SetOperation):
        yield from map(list, zip(node.left.selects, node.right.selects, strict=False))
    elif isinstance(node, exp.Values):
        rows = [row.expressions for row in node.expressions if isinstance(row, exp.Tuple)]
        yield from map(list, zip(*rows, strict=False))
    elif isinstance(node, exp.Case):
        default = node.args.get("default")
        yield [*(branch.args["true"] for branch in node.args["ifs"]), *([default] if default is not None else [])]
    else:
        yield list(node.iter_expressions())


def _check_concatenation(node: exp.DPipe) -> None:
    types = [type_of_part(side) for side in node.iter_expressions()]
    if all(holds_json(type_) and type_ is not None and not type_.dimensions for type_ in types):
        message = f"operator does not exist: {' || '.join(map(_written, types))}"
        raise Error(message, errors.UNDEFINED_FUNCTION, hint=errors.NO_OPERATOR, position=position_of(node))


def _check_call(node: exp.Func) -> None:
    """Raise Error 42883 for a call of a function of jsonb with json."""
    found = called(node) if isinstance(node, exp.Anonymous) else None
    if found is not None and found[0] in _COMPARING and any(map(_is_json, found[1][:1])):
        raise _not_found("equality operator", node)
    if found is None or not found[0].startswith("jsonb_") or _takes_any(found[0]):
        return
    if any(map(_is_json, found[1][:1])):
        raise undefined_call(node)


def _takes_any(name: str) -> bool:
    return name.startswith(("jsonb_build_", "jsonb_agg", "jsonb_object_agg"))
