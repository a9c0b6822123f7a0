"""What may raise for a row. In a view that is NULL, as in RisingWave's streams: an error would stop the view for good.

`may_raise` answers yes unless a node is known to have a value for whatever its parts are, so that a function nobody
thought of is safe too. What may raise goes under DuckDB's TRY, which costs nothing until a row of a vector does raise.
"""

from __future__ import annotations

import re

from sqlglot import exp

from sparkwave.catalog.errors import Error
from sparkwave.catalog.types import DEFAULT_NUMERIC, Type
from sparkwave.planner.functions.aggregates import is_aggregate
from sparkwave.planner.functions.operators import as_call, type_of_part
from sparkwave.planner.functions.result_types import Known
from sparkwave.planner.functions.typed import sql_type
from sparkwave.planner.parse.text_values import decode_text

# Nodes that are no values, have one always, or are no place for a TRY.
_NEVER = (
    exp.Column, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Parameter, exp.Placeholder, exp.Is, exp.If, exp.Dot,
    exp.PropertyEQ, exp.Any, exp.All, exp.Exists, exp.Explode, exp.Unnest, exp.Window, exp.Cast, exp.CurrentTimestamp,
    exp.CurrentDate, exp.Localtimestamp, exp.Struct,
)  # fmt: skip
# Nodes whose parts meet in one type, which may need casts.
_MEETING = (
    exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Between, exp.In,
    exp.Coalesce, exp.Nullif, exp.Greatest, exp.Least, exp.Array,
)  # fmt: skip
# What the planner casts to the type that it is.
_OWN = (exp.Column, exp.AggFunc, exp.Window, exp.Add, exp.Coalesce, exp.Literal)
# Numerics that have as many digits as their type says: what is computed DuckDB gives as many as it takes.
_EXACT = (exp.Column, exp.Cast, exp.Literal)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg)
_LOGICAL = (exp.And, exp.Or, exp.Not)
# What wraps the call of an aggregate or window function.
AROUND_CALL = (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls, exp.Window)
# What has many rows in it, or more or fewer than one: DuckDB has no TRY of those.
_ROWS = (exp.Query, exp.Subquery, exp.Window, exp.Explode, exp.Unnest)

# What is so marked is a cast of them: no value for a row.
HOLDS_ROWS = "holds rows"

# DuckDB makes no sum of numerics of up to so many digits longer than that.
_ADDED_DIGITS = 18
# Digits before the point that fit whatever they are.
_ROOM = {"smallint": 4, "integer": 9, "bigint": 18, "numeric": DEFAULT_NUMERIC[0] - DEFAULT_NUMERIC[1]}
_NUMBERS = ("smallint", "integer", "bigint", "real", "double precision")
_DIGITS = {"smallint": 5, "integer": 10, "bigint": 19}
# Constants that DuckDB reads as PostgreSQL does, if they are values at all.
_PLAIN = {
    "date": r"\d{4}-\d\d-\d\d",
    "timestamp without time zone": r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d(\.\d{1,6})?)?",
    "timestamp with time zone": r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?[+-]\d\d(:\d\d)?",
    "character varying": r"(?s).*",
    "boolean": r"[a-z]+",
    **dict.fromkeys(_DIGITS, r"-?\d+"),
}


class Rows:
    """The nodes of a tree that hold aggregates or queries, learnt from the leaves up."""

    def __init__(self) -> None:
        self._holders: set[int] = set()

    def within(self, node: exp.Expr) -> bool:
        """Whether a node holds any; to be asked of each node, its parts first."""
        found = id(node) in self._holders or is_call(node) or isinstance(node, _ROWS)
        # What is computed within a query or a call is no part of what is around it.
        if found and node.parent is not None:
            self._holders.add(id(node.parent))
        return found


def is_call(node: exp.Expr) -> bool:
    """Whether a node is the call of an aggregate or a window function, or what belongs to one."""
    if is_aggregate(node) or isinstance(node, (*AROUND_CALL, exp.RowNumber)):
        return True
    if isinstance(node, exp.Anonymous):
        return as_call(node) is None  # one of DuckDB's aggregates
    return isinstance(node.parent, AROUND_CALL) and node.arg_key == "this"


def may_raise(node: exp.Expr) -> bool:
    """Whether some values of a node's parts make it raise, where these have none that do."""
    if isinstance(node, _NEVER):
        return False
    if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal):
        return False
    if isinstance(node, _ARITHMETIC) and node.type is None:
        return False  # the planner's own, of states and weights, which must not be lost
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
    """Whether an operator is one of floats, which are infinite where they overflow."""
    types = list(map(type_of_part, (node, *node.iter_expressions())))
    return types[0] is not None and types[0].is_float and all(t is not None and t.is_numeric for t in types)


def _fits(node: exp.Expr) -> bool:
    """Whether an operator's values fit its type, because of the digits that its parts have at most."""
    type_, digits = type_of_part(node), _most_digits(node)
    if type_ is None or digits is None or type_.dimensions or type_.name not in _ROOM:
        return False
    if type_.name == "numeric" and isinstance(node, exp.Add | exp.Sub) and sum(digits) > _ADDED_DIGITS:
        return False
    return digits[0] <= _ROOM[type_.name] and digits[1] <= DEFAULT_NUMERIC[1]


def _most_digits(node: exp.Expr) -> tuple[int, int] | None:
    """As `_digits`, of what an expression computes."""
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
    """Whether no value makes a cast raise."""
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
    """Whether a constant's text is a value of the type, and written as DuckDB reads it."""
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
    """Whether values find a common type without a cast that may raise. None is the type of NULL and string literals."""
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
    """A constant day, or something with a time of day: the first is always one of the second's."""
    if isinstance(part, exp.Cast) and part.this.is_string:
        return True
    type_: Known = type_of_part(part)
    return type_ is not None and type_.name.startswith("timestamp") and not type_.dimensions


def _digits(type_: Type) -> tuple[int, int] | None:
    """Digits before and after the point of an exact number."""
    if type_.name == "numeric":
        precision, scale = (type_.precision, type_.scale or 0) if type_.precision is not None else DEFAULT_NUMERIC
        return precision - scale, scale
    return (_DIGITS[type_.name], 0) if type_.name in _DIGITS else None
