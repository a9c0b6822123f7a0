"""Checks operations on rows, and calls with maps; the types of rows are those of `result_types`.

DuckDB matches the fields of two structs by name, PostgreSQL and RisingWave by place. So two structs may be combined
only if their fields have the same names; a row constructor has no names and may be combined with any as wide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.types import Type
from sparkwave.planner.functions.documents import makes_document
from sparkwave.planner.functions.map_types import OF_MAPS
from sparkwave.planner.functions.operators import as_call
from sparkwave.planner.functions.python_call import PythonCall
from sparkwave.planner.functions.result_types import Known, field_place, holds_struct
from sparkwave.planner.functions.typed import type_of_part
from sparkwave.planner.parse.row_values import is_row
from sparkwave.planner.parse.trees import position_of

_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ)


def _case_results(node: exp.Expr) -> Iterator[exp.Expr]:
    yield from (branch.args["true"] for branch in node.args["ifs"])
    if node.args.get("default") is not None:
        yield node.args["default"]


def _of_in(node: exp.Expr) -> Iterator[exp.Expr]:
    yield node.this
    query = node.args.get("query")
    yield from node.expressions if query is None else query.unnest().selects[:1]


# Nodes whose parts have to be of one type, with these parts.
_MEET: dict[type[exp.Expr], Callable[[exp.Expr], Iterable[exp.Expr]]] = {
    **dict.fromkeys(
        (*_COMPARISONS, exp.Between, exp.Coalesce, exp.Nullif, exp.Greatest, exp.Least, exp.Array),
        lambda node: node.iter_expressions(),
    ),
    exp.Case: _case_results,
    exp.In: _of_in,
}
# Other operations on rows as a whole, and functions by name.
_TAKE_ROWS = (
    exp.Paren, exp.Is, exp.Cast, exp.TryCast, exp.Dot, exp.Bracket, exp.If, exp.Count, exp.Min, exp.Max, exp.ArrayAgg,
    exp.AnyValue, exp.First, exp.Last, exp.FirstValue, exp.LastValue, exp.NthValue, exp.Lag, exp.Lead, exp.Explode,
    exp.Unnest, exp.Exists, exp.Window, exp.Filter, exp.Distinct, exp.SetOperation, exp.Struct, exp.PropertyEQ,
)  # fmt: skip
_FUNCTIONS = frozenset(
    {"row", "array_length", "array_lower", "array_upper", "cardinality", "pg_typeof", "array_transform",
     "map_from_entries", "map_from_key_values", "map_filter", "jsonb_populate_map", "justify_intervals", *OF_MAPS}
)  # fmt: skip


_PART = {"struct": "a field of it, as in (x).field", "map": "a value of it, as in x['key']"}


def check_structs(tree: exp.Expr) -> None:
    """Raise an Error for an invalid operation on rows in a typed tree: 42703, 42804, 42809 or 0A000."""
    for node in tree.walk():
        if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
            _check_field(node)
        elif isinstance(node, exp.SetOperation):
            for left, right in zip(node.left.selects, node.right.selects, strict=False):
                _check_meeting(node, [left.unalias(), right.unalias()])
        elif isinstance(node, exp.Values):
            rows = [row.expressions for row in node.expressions if isinstance(row, exp.Tuple)]
            for column in zip(*rows, strict=False):
                _check_meeting(node, list(column))
        elif type(node) in _MEET:
            _check_meeting(node, list(_MEET[type(node)](node)))
        elif isinstance(node, exp.Func | exp.Binary | exp.Unary) and not isinstance(node, _TAKE_ROWS):
            _check_call(node)


def _check_field(node: exp.Dot) -> None:
    owner = type_of_part(node.this)
    if owner is None or (owner.is_struct and field_place(owner, node.expression) is not None):
        return
    name, position = node.expression.name, position_of(node)
    if owner.is_struct:
        raise Error(
            f'field "{name}" not found in struct type',
            errors.UNDEFINED_COLUMN,
            hint=f"Its type is {owner}.",
            position=position,
        )
    raise Error(
        f"column notation .{name} applied to type {owner}, which is not a composite type",
        errors.WRONG_OBJECT_TYPE,
        position=position,
    )


def _check_meeting(node: exp.Expr, parts: list[exp.Expr]) -> None:
    structs = [part for part in parts if holds_struct(type_of_part(part))]
    for part in parts if structs else ():
        if not _meet(structs[0], part):
            other = type_of_part(part)
            known = other.without_digits if other is not None else "unknown"
            raise Error(
                f"types {type_of_part(structs[0])} and {known} cannot be matched",
                errors.DATATYPE_MISMATCH,
                hint="Rows meet when they have the same field names; cast one to the other's type.",
                position=position_of(node),
            )


def _meet(left: exp.Expr, right: exp.Expr) -> bool:
    one, other = left.unnest(), right.unnest()
    if is_row(one) and is_row(other):
        pairs = list(zip(one.expressions, other.expressions, strict=False))
        return len(one.expressions) == len(other.expressions) and all(_meet(*pair) for pair in pairs)
    if isinstance(other, exp.Array) and isinstance(one, exp.Array):
        return all(_meet(one.expressions[0], item) for item in other.expressions) if one.expressions else True
    if is_row(one) or isinstance(one, exp.Array):
        one, other = other, one
    return _fits(other, type_of_part(one), is_text=one.is_string)


def _fits(value: exp.Expr, type_: Known, is_text: bool = False) -> bool:
    """Return whether a value may be in a place of this type."""
    own = type_of_part(value)
    if not holds_struct(own) and not holds_struct(type_):
        return True
    if isinstance(value, exp.Any | exp.All):
        return False
    if own is None or type_ is None:
        return not value.is_string and not is_text
    if is_row(value) and type_.is_struct:
        fields = [field for _, field in type_.fields]
        values = value.expressions
        return len(fields) == len(values) and all(map(_fits, (v.unnest() for v in values), fields))
    if isinstance(value, exp.Array) and type_.dimensions:
        return all(_fits(item.unnest(), type_.element) for item in value.expressions)
    return same_names(own, type_)


def same_names(left: Type, right: Type) -> bool:
    """Return whether two types have the same fields, by name and place, at all levels."""
    if (left.name == "struct" or right.name == "struct") and left.dimensions != right.dimensions:
        return False
    return len(left.fields) == len(right.fields) and all(
        one.lower() == other.lower() and same_names(left_type, right_type)
        for (one, left_type), (other, right_type) in zip(left.fields, right.fields, strict=True)
    )


def _name(node: exp.Expr) -> str:
    """Return the name of an operation as written."""
    return "||" if isinstance(node, exp.DPipe) else node.sql(dialect="postgres").partition("(")[0].lower()


def _check_call(node: exp.Expr) -> None:
    call = as_call(node)
    if makes_document(node) or isinstance(node, PythonCall) or (call is not None and call[0] in _FUNCTIONS):
        return
    if isinstance(node, exp.Anonymous) and call is None:  # an unknown function
        return
    parts = call[1] if call is not None else list(node.iter_expressions())
    types = [type_ for part in parts if (type_ := type_of_part(part)) is not None]
    found = next((type_ for type_ in types if holds_struct(type_) or type_.name == "map"), None)
    if found is not None:
        raise Error(
            f"{_name(node)} of a value of type {found} is not supported",
            errors.FEATURE_NOT_SUPPORTED,
            hint=f"Name {_PART[found.name]}, or cast it to varchar.",
            position=position_of(node),
        )
