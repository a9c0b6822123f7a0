"""Finds expressions that may raise for a row. In a view they are NULL, because an error would stop the view for good.

RisingWave's streams do the same. `may_raise` returns True unless a node is known to have a value for all values of its
parts, so that a forgotten function is safe too. An expression that may raise gets DuckDB's TRY, which costs nothing
until a row of a vector does raise.
"""

from __future__ import annotations

import re

from sqlglot import exp

from sparkwave.catalog.errors import Error
from sparkwave.catalog.types import DEFAULT_NUMERIC, Type
from sparkwave.planner.functions.aggregates import is_aggregate
from sparkwave.planner.functions.operators import as_call
from sparkwave.planner.functions.python_call import PythonCall
from sparkwave.planner.functions.result_types import Known
from sparkwave.planner.functions.scalar_functions import INTERVAL_FIELDS, SQUARES, UNITS
from sparkwave.planner.functions.typed import sql_type, type_of_part
from sparkwave.planner.parse.text_values import decode_text

# Nodes that are no values, that never raise, or in whose place TRY is impossible.
_NEVER = (
    exp.Column, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Parameter, exp.Placeholder, exp.Is, exp.If, exp.Dot,
    exp.PropertyEQ, exp.Any, exp.All, exp.Exists, exp.Explode, exp.Unnest, exp.Window, exp.Cast, exp.CurrentTimestamp,
    exp.CurrentDate, exp.Localtimestamp, exp.Struct, PythonCall,
)  # fmt: skip
# Nodes whose parts have one common type, which may need casts.
_MEETING = (
    exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Between, exp.In,
    exp.Coalesce, exp.Nullif, exp.Greatest, exp.Least, exp.Array,
)  # fmt: skip
# Nodes that the planner casts to the type that they have already.
_OWN = (exp.Column, exp.AggFunc, exp.Window, exp.Add, exp.Coalesce, exp.Literal)
# Numerics with the digits of their type; DuckDB gives a computed one as many digits as it takes.
_EXACT = (exp.Column, exp.Cast, exp.Literal)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg)
_LOGICAL = (exp.And, exp.Or, exp.Not)
# Nodes around the call of an aggregate or window function.
AROUND_CALL = (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls, exp.Window)
# Nodes with many rows, or none or several: DuckDB has no TRY for these.
_ROWS = (exp.Query, exp.Subquery, exp.Window, exp.Explode, exp.Unnest)

# Marks a cast of such nodes, which is no value of one row.
HOLDS_ROWS = "holds rows"

# DuckDB does not widen sums of numerics of up to this many digits.
_ADDED_DIGITS = 18
# Digits before the point that always fit.
_ROOM = {"smallint": 4, "integer": 9, "bigint": 18, "numeric": DEFAULT_NUMERIC[0] - DEFAULT_NUMERIC[1]}
_NUMBERS = ("smallint", "integer", "bigint", "real", "double precision")
_DIGITS = {"smallint": 5, "integer": 10, "bigint": 19}
# Constants that DuckDB reads as PostgreSQL does, if they are valid values.
_PLAIN = {
    "date": r"\d{4}-\d\d-\d\d",
    "timestamp without time zone": r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d(\.\d{1,6})?)?",
    "timestamp with time zone": r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?[+-]\d\d(:\d\d)?",
    "character varying": r"(?s).*",
    "boolean": r"[a-z]+",
    **dict.fromkeys(_DIGITS, r"-?\d+"),
}


class Rows:
    """The nodes of a tree that contain aggregates or queries, collected from the leaves up."""

    def __init__(self) -> None:
        self._holders: set[int] = set()

    def within(self, node: exp.Expr) -> bool:
        """Return whether a node contains any. To be called for each node, parts first."""
        found = id(node) in self._holders or is_call(node) or isinstance(node, _ROWS)
        # Parts of a query or call are not parts of the nodes around it.
        if found and node.parent is not None:
            self._holders.add(id(node.parent))
        return found


def is_call(node: exp.Expr) -> bool:
    """Return whether a node is the call of an aggregate or a window function, or a part that belongs to one."""
    if is_aggregate(node) or isinstance(node, (*AROUND_CALL, exp.RowNumber)):
        return True
    if isinstance(node, exp.Anonymous):
        return as_call(node) is None  # one of DuckDB's aggregates
    return isinstance(node.parent, AROUND_CALL) and node.arg_key == "this"


def may_raise(node: exp.Expr) -> bool:
    """Return whether a node may raise for values of its parts that do not raise themselves."""
    if isinstance(node, _NEVER):
        return False
    if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal):
        return False
    if isinstance(node, exp.Anonymous) and node.name in (*UNITS, *SQUARES, *INTERVAL_FIELDS):
        return False
    if isinstance(node, _ARITHMETIC) and node.type is None:
        return False  # the planner's own, on states and weights, which must not be lost
    if isinstance(node, exp.Add | exp.Sub | exp.Mul) and (_is_float(node) or _fits(node)):
        return False
    if isinstance(node, _MEETING):
        return not _meet(list(node.iter_expressions()))
    if isinstance(node, _LOGICAL):
        return not all(type_ is None or type_.name == "boolean" for type_ in map(type_of_part, node.iter_expressions()))
    if isinstance(node, exp.Case):
        branches = [branch.args["true"] for branch in node.args["ifs"]]
        default = node.args.get("default")
        return node.this is not None or not _meet([*branches, *([default] if default is not None else [])])
    if isinstance(node, exp.Like | exp.ILike):
        is_plain_text = all(type_ is None or type_.is_text for type_ in map(type_of_part, node.iter_expressions()))
        return not is_plain_text and not isinstance(node.parent, exp.Escape)
    return isinstance(node, exp.Binary | exp.Unary | exp.Func | exp.Bracket | exp.AtTimeZone | exp.Predicate)


def _is_float(node: exp.Expr) -> bool:
    """Return whether an operator is one of floats, which overflow to infinity."""
    types = list(map(type_of_part, (node, *node.iter_expressions())))
    return types[0] is not None and types[0].is_float and all(t is not None and t.is_numeric for t in types)


def _fits(node: exp.Expr) -> bool:
    """Return whether an operator's values fit its type, by the most digits of its parts."""
    type_, digits = type_of_part(node), _most_digits(node)
    if type_ is None or digits is None or type_.dimensions or type_.name not in _ROOM:
        return False
    if type_.name == "numeric" and isinstance(node, exp.Add | exp.Sub) and sum(digits) > _ADDED_DIGITS:
        return False
    return digits[0] <= _ROOM[type_.name] and digits[1] <= DEFAULT_NUMERIC[1]


def _most_digits(node: exp.Expr) -> tuple[int, int] | None:
    """Return the digits of an expression's value, as `_digits` does those of a type."""
    node = node.unnest()
    if isinstance(node, exp.Neg):
        return _most_digits(node.this)
    if isinstance(node, exp.Literal):
        whole, _, fraction = node.name.partition(".")
        return (len(whole), len(fraction)) if not node.is_string and (whole + fraction).isdigit() else None
    if isinstance(node, exp.Cast):
        room, inner = sql_type(node.args["to"]), _most_digits(node.this)
        room_digits = _digits(room) if room is not None and not room.dimensions else None
        if inner is None or room_digits is None:
            return room_digits
        rounded = inner[0] + (inner[1] > room_digits[1])  # 9.99 becomes 10.0
        return min(rounded, room_digits[0]), min(inner[1], room_digits[1])
    if isinstance(node, exp.Case):
        branches = [branch.args["true"] for branch in node.args["ifs"]] + [node.args.get("default") or exp.null()]
        found = [_most_digits(branch) for branch in branches if not isinstance(branch, exp.Null)]
        known = [digits for digits in found if digits is not None]
        return (max(d[0] for d in known), max(d[1] for d in known)) if known and len(known) == len(found) else None
    if not isinstance(node, exp.Add | exp.Sub | exp.Mul):
        type_ = type_of_part(node) if isinstance(node, exp.Column | exp.Cast) else None
        return _digits(type_) if type_ is not None and not type_.dimensions else None
    left, right = _most_digits(node.this), _most_digits(node.expression)
    if left is None or right is None:
        return None
    if isinstance(node, exp.Mul):
        return left[0] + right[0], left[1] + right[1]
    return max(left[0], right[0]) + 1, max(left[1], right[1])


def is_safe_cast(value: exp.Expr, to: exp.DataType) -> bool:
    """Return whether a cast raises for no value."""
    target = sql_type(to)
    if target is None:
        return False
    if value.is_string:
        return is_plain(value.name, target)
    source = type_of_part(value)
    if source is None:
        return value.type is None and isinstance(value, _OWN)
    if target.name == "numeric" and source.name == "numeric" and not isinstance(value.unnest(), _EXACT):
        most, room = _most_digits(value), _digits(target)
        return most is not None and room is not None and most[0] <= room[0] and most[1] <= room[1]
    if source == target or (target.is_text and not target.dimensions and not source.dimensions):
        return True
    return _is_widening(source, target)


def is_plain(text: str, type_: Type) -> bool:
    """Return whether a constant's text is a value of the type in a form that DuckDB reads."""
    pattern = _PLAIN.get(type_.name)
    if pattern is None or type_.dimensions or not re.fullmatch(pattern, text):
        return False
    try:
        decode_text(text, type_)
    except (Error, ValueError):
        return False
    return True


def _is_widening(source: Type, target: Type) -> bool:
    if source.dimensions or target.dimensions:
        return False
    if source.name in _NUMBERS and target.name in _NUMBERS:
        return _NUMBERS.index(source.name) <= _NUMBERS.index(target.name)
    if source.name == "numeric" and target.name in ("real", "double precision"):
        return True
    own, room = _digits(source), _digits(target)
    return own is not None and room is not None and own[0] <= room[0] and own[1] <= room[1]


def _meet(parts: list[exp.Expr]) -> bool:
    """Return whether values have a common type without a cast that may raise.

    None is the type of NULL and string literals.
    """
    types = {type_ for part in parts if (type_ := type_of_part(part)) is not None}
    if len({(type_.name, type_.dimensions, type_.fields) for type_ in types}) > 1:
        numbers = all(type_.is_numeric and not type_.dimensions for type_ in types)
        if not numbers and not all(_is_day(part) for part in parts):
            return False
    texts = [part.name for part in parts if part.is_string]
    one = next(iter(types), None)
    if one is not None and not all(is_plain(text, one) for text in texts):
        return False
    exact = [digits for type_ in types if (digits := _digits(type_)) is not None]
    return not exact or max(whole for whole, _ in exact) + max(scale for _, scale in exact) <= DEFAULT_NUMERIC[0]


def _is_day(part: exp.Expr) -> bool:
    """Return whether a part is a constant date, which always converts, or a type with a time of day."""
    if isinstance(part, exp.Cast) and part.this.is_string:
        return True
    type_: Known = type_of_part(part)
    return type_ is not None and type_.name.startswith("timestamp") and not type_.dimensions


def _digits(type_: Type) -> tuple[int, int] | None:
    """Return the digits before and after the point of an exact number."""
    if type_.name == "numeric":
        precision, scale = (type_.precision, type_.scale or 0) if type_.precision is not None else DEFAULT_NUMERIC
        return precision - scale, scale
    return (_DIGITS[type_.name], 0) if type_.name in _DIGITS else None
