"""Aggregates that are computed from an array of what they aggregate: `f(array_agg(x) FILTER … OVER …)`.

DuckDB has no such aggregate, or its own takes no FILTER, DISTINCT, ORDER BY or OVER.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from sparkwave.catalog.errors import FEATURE_NOT_SUPPORTED, Error
from sparkwave.catalog.types import DOUBLE, INTERVAL, JSON, JSONB, VARCHAR, Type
from sparkwave.planner.functions.result_types import array_type
from sparkwave.planner.functions.typed import data_type, sql_type
from sparkwave.planner.functions.written_json import IS_OF_JSONB
from sparkwave.planner.parse.trees import position_of

_AROUND = (exp.Filter, exp.Window, exp.WithinGroup)
# The relative error of approx_percentile without a second argument (RisingWave, "Aggregate functions").
_RELATIVE_ERROR = "0.01"


def over_array(node: exp.Expr) -> exp.Expr | None:
    """Return such a whole call, with its FILTER, WITHIN GROUP and OVER, in DuckDB's terms; None for any other node."""
    call: exp.Expr = node
    around: _Around = []
    while isinstance(call, _AROUND):
        around.append(call)
        call = call.this
    known = next((spell for is_one, spell in _KINDS if is_one(call)), None)
    if known is None:
        return None
    function, type_, array, others = known(call, around)
    element = sql_type(argument(array).type)
    made: exp.Expr = array
    for outer in reversed(around):
        if isinstance(outer, exp.WithinGroup):
            continue
        outer = outer.copy()
        outer.set("this", made)
        made = outer
    made.type = data_type(array_type(element)) if element is not None else None
    found = exp.Anonymous(this=function, expressions=[made, *others])
    if type_ == JSON:  # which is no text that is read again
        found.type = data_type(type_)
    return exp.cast(found, data_type(type_))


def argument(call: exp.Expr) -> exp.Expr:
    """Return the first argument of a call, without its DISTINCT and ORDER BY. Raises Error 0A000 if it has none."""
    found = call.expressions[0] if isinstance(call, exp.Anonymous) else call.this
    while isinstance(found, exp.Order | exp.Distinct):
        found = found.this if isinstance(found, exp.Order) else found.expressions[0]
    if not isinstance(found, exp.Expr):
        raise Error(
            f"{call.key} with these arguments is not supported", FEATURE_NOT_SUPPORTED, position=position_of(call)
        )
    return found


_Spelled = tuple[str, Type, exp.ArrayAgg, list[exp.Expr]]
_Around = list[exp.Expr]


def _is_named(*names: str) -> Callable[[exp.Expr], bool]:
    return lambda call: isinstance(call, exp.Anonymous) and call.name.lower() in names


def _array(value: exp.Expr, order: exp.Expr | None) -> exp.ArrayAgg:
    return exp.ArrayAgg(this=exp.Order(this=value, expressions=order.expressions) if order is not None else value)


def _documents(call: exp.Expr, around: _Around) -> _Spelled:
    """Spell json_agg and jsonb_agg, because DuckDB's JSON has another form of Infinity, NaN and times."""
    value = call.this if isinstance(call, exp.JSONArrayAgg) else call.expressions[0]
    made = exp.ArrayAgg(this=value.copy())
    return ("json_of_items", JSON, made, []) if _is_of_json(call) else ("to_jsonb", JSONB, made, [])


def _is_of_json(call: exp.Expr) -> bool:
    return isinstance(call, exp.JSONArrayAgg | exp.JSONObjectAgg) and not call.meta.get(IS_OF_JSONB)


def _fields(call: exp.Expr, around: _Around) -> _Spelled:
    """Spell json_object_agg over texts of fields, and jsonb_object_agg over rows (name, value as jsonb)."""
    key, value = call.iter_expressions()
    order = value if isinstance(value, exp.Order) else None
    value = value.this if order is not None else value
    if _is_of_json(call):
        field = exp.Anonymous(this="json_field", expressions=[key.copy(), value.copy()])
        return "json_of_fields", JSON, _array(field, order), []
    document = exp.Anonymous(this="to_jsonb", expressions=[value.copy()])
    row = exp.Anonymous(this="jsonb_field", expressions=[exp.cast(key.copy(), exp.DataType.Type.TEXT), document])
    return "jsonb_of_fields", JSONB, _array(row, order), []


def _is_joined(call: exp.Expr) -> bool:
    separator = call.args.get("separator") if isinstance(call, exp.GroupConcat) else None
    return isinstance(separator, exp.Expr) and separator.find(exp.Column) is not None


def _joined(call: exp.Expr, around: _Around) -> _Spelled:
    """Spell string_agg with a separator that differs by row, over rows (text, separator)."""
    array = exp.ArrayAgg(this=call.this.copy())
    texts = [argument(array).copy(), call.args["separator"].copy()]
    row = exp.Anonymous(this="joined_text", expressions=[exp.cast(text, exp.DataType.Type.TEXT) for text in texts])
    argument(array).replace(row)
    if array.find(exp.Distinct) is not None:
        array.this.set("expressions", [exp.Ordered(this=row.copy(), nulls_first=False)])
    return "join_texts", VARCHAR, array, []


def _sketched(call: exp.Expr, around: _Around) -> _Spelled:
    """Spell approx_percentile: the middle of the value's bucket (Masson, Rim, Lee, "DDSketch", VLDB 2019)."""
    fraction, *errors = call.expressions
    order = next(outer.expression.copy() for outer in around if isinstance(outer, exp.WithinGroup))
    ordered = order.expressions[0]
    value = exp.cast(ordered.this.copy(), data_type(DOUBLE))
    ordered.set("this", value.copy())
    relative_error = errors[0].copy() if errors else exp.Literal.number(_RELATIVE_ERROR)
    arguments: list[exp.Expr] = [exp.cast(each, data_type(DOUBLE)) for each in (fraction.copy(), relative_error)]
    return "sketched_percentile", DOUBLE, _array(value, order), arguments


def _is_of_intervals(call: exp.Expr) -> bool:
    return isinstance(call, exp.Sum | exp.Avg) and sql_type(argument(call).type) == INTERVAL


def _intervals(call: exp.Expr, around: _Around) -> _Spelled:
    return f"{call.key}_of_intervals", INTERVAL, exp.ArrayAgg(this=call.this.copy()), []


_KINDS: tuple[tuple[Callable[[exp.Expr], bool], Callable[[exp.Expr, _Around], _Spelled]], ...] = (
    (lambda call: isinstance(call, exp.JSONArrayAgg) or _is_named("jsonb_agg", "json_agg")(call), _documents),
    (
        lambda call: (
            isinstance(call, exp.JSONBObjectAgg | exp.JSONObjectAgg)
            or _is_named("jsonb_object_agg", "json_object_agg")(call)
        ),
        _fields,
    ),
    (_is_joined, _joined),
    (_is_named("approx_percentile"), _sketched),
    (_is_of_intervals, _intervals),
)
