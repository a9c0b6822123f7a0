"""Checks operations on maps, which RisingWave neither compares nor orders."""

from __future__ import annotations

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.types import BOOLEAN, Type, map_type
from sparkwave.planner.functions.json_checks import COMPARISONS
from sparkwave.planner.functions.map_types import OF_MAPS
from sparkwave.planner.functions.operators import as_call
from sparkwave.planner.functions.result_types import Known
from sparkwave.planner.functions.typed import type_of_part
from sparkwave.planner.functions.undefined import undefined_call
from sparkwave.planner.parse.lambdas import ElementLambda
from sparkwave.planner.parse.trees import at, position_of


def check_maps(tree: exp.Expr) -> None:
    """Raise an Error for an invalid operation on maps in a typed tree: 42804, 42883, 42P18 or 0A000."""
    for node in tree.walk():
        if isinstance(node, COMPARISONS) and not isinstance(node.parent, exp.Update):
            _check_comparison(node)
        elif isinstance(node, exp.Bracket) and isinstance(node.expressions[0], exp.Slice):
            type_ = type_of_part(node.this)
            if type_ is not None and type_.is_map:
                message = f"type {type_} does not support slices"
                raise Error(message, errors.DATATYPE_MISMATCH, position=position_of(node))
        elif isinstance(node, exp.Min | exp.Max) and _is_map(type_of_part(node.this)):
            raise undefined_call(node)
        elif isinstance(node, exp.Anonymous) and (call := as_call(node)) is not None:
            with at(node):
                _check_call(node, *call)


def _is_map(type_: Known) -> bool:
    return type_ is not None and type_.is_map


def _check_comparison(node: exp.Expr) -> None:
    types = [type_of_part(side) for side in node.iter_expressions()]
    if not any(map(_is_map, types)) or any(isinstance(side, exp.Null) for side in node.iter_expressions()):
        return
    names = ", ".join(str(type_.without_digits) if type_ is not None else "unknown" for type_ in types[:2])
    message = f"function {_NAMES.get(type(node), 'equal')}({names}) does not exist"
    raise Error(message, errors.UNDEFINED_FUNCTION, hint=errors.NO_OPERATOR, position=position_of(node))


# As RisingWave names the operators.
_NAMES: dict[type[exp.Expr], str] = {
    exp.NEQ: "not_equal", exp.GT: "greater_than", exp.GTE: "greater_than_or_equal", exp.LT: "less_than",
    exp.LTE: "less_than_or_equal",
}  # fmt: skip


def _check_call(node: exp.Anonymous, name: str, arguments: list[exp.Expr]) -> None:
    types = [type_of_part(argument) for argument in arguments]
    match name:
        case "map_from_key_values":
            _check_arrays(node, arguments, types)
        case "map_from_entries":
            _check_entries(arguments[0], types[0])
        case "map_filter":
            _check_filter(arguments[1], types[0])
        case "jsonb_populate_map" if _is_map(types[0]) and types[0] is not None:
            if not types[0].fields[0][1].is_text:
                message = "cannot convert jsonb to a map with non-string keys"
                raise Error(message, errors.INVALID_PARAMETER_VALUE)
        case _ if name in OF_MAPS and types[0] is not None and not types[0].is_map:
            raise undefined_call(node)


def _check_arrays(node: exp.Anonymous, arguments: list[exp.Expr], types: list[Known]) -> None:
    if all(isinstance(argument, exp.Array) and not argument.expressions for argument in arguments):
        if not isinstance(node.parent, exp.Cast):
            hint = "Explicitly cast to the desired type, for example MAP{}::map(int,int)."
            raise Error("cannot determine type of empty map", errors.INDETERMINATE_DATATYPE, hint=hint)
        return
    if any(type_ is not None and not type_.dimensions for type_ in types):
        raise undefined_call(node)
    if types[0] is not None:
        _check_key(types[0].element)


def _check_key(key: Type) -> None:
    map_type(key, BOOLEAN)


def _check_entries(entries: exp.Expr, type_: Known) -> None:
    if isinstance(entries, exp.Array) and not entries.expressions:
        hint = "Explicitly cast to the desired type, for example ARRAY[]::integer[]."
        raise Error("cannot determine type of empty array", errors.INDETERMINATE_DATATYPE, hint=hint)
    if type_ is None:
        message = "Cannot implicitly cast 'null:Varchar' to polymorphic type AnyArray"
        raise Error(message, errors.INDETERMINATE_DATATYPE)
    element = type_.element if type_.dimensions else type_
    if not type_.dimensions or not element.is_struct:
        message = f"invalid map entries type, expected struct, got: {element.shown}"
        raise Error(message, errors.DATATYPE_MISMATCH)
    if len(element.fields) != 2:
        given = ", ".join(field.shown for _, field in element.fields)
        message = f"the underlying struct for map must have exactly two fields, got: {given}"
        raise Error(message, errors.DATATYPE_MISMATCH)
    _check_key(element.fields[0][1])


def _check_filter(function: exp.Expr, type_: Known) -> None:
    if type_ is not None and not type_.is_map:
        raise Error(f"Input must be Map type, got {type_.shown}", errors.DATATYPE_MISMATCH)
    if not isinstance(function, ElementLambda):
        return
    count = len(function.parameters)
    if count != 2:
        message = f"Lambda must have exactly two parameters (key, value), got {count}"
        raise Error(message, errors.DATATYPE_MISMATCH)
    result = type_of_part(function.this)
    if result is not None and result != BOOLEAN:
        raise Error(f"Lambda must return Boolean type, got {result.shown}", errors.DATATYPE_MISMATCH)
