"""Spells Postgres' scalar expressions for DuckDB, in the same way for batch queries and views.

`lenient` is for views: where Postgres raises an error for a row, a view has NULL, as in RisingWave's streams, instead
of stopping for good.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection
from dataclasses import replace
from itertools import islice
from re import _parser  # type: ignore[attr-defined]

import sqlglot
from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import OR_NULL
from sparkwave.catalog.types import (
    BYTEA,
    DATE,
    DEFAULT_NUMERIC,
    DOUBLE,
    INTEGER,
    INTERVAL,
    JSON,
    JSONB,
    MOST_DIGITS,
    NUMERIC,
    QUOTIENT,
    REAL,
    SMALLINT,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    VARCHAR,
    Type,
)
from sparkwave.planner.batch.pg_casts import array_items, array_of, depth, escaped, nested_items
from sparkwave.planner.functions import encodings, units
from sparkwave.planner.functions.date_patterns import is_plain, is_read_alike, moment_text, strftime_format
from sparkwave.planner.functions.digits import (
    INT64_DIGITS,
    NARROW,
    OF_TEN_PLACES,
    WIDENING,
    digits,
    digits_of,
    digits_of_both,
    has_many_places,
    has_most_digits,
    of_other_digits,
)
from sparkwave.planner.functions.documents import OF_DOCUMENT, in_document
from sparkwave.planner.functions.equal_intervals import apart
from sparkwave.planner.functions.interval_patterns import interval_chars
from sparkwave.planner.functions.json_spelling import (
    cast_of_json,
    document,
    json_array,
    json_field,
    json_object,
    json_of_items,
    of_jsonb,
    takes_field,
    to_json,
)
from sparkwave.planner.functions.jsonb_contains import contains
from sparkwave.planner.functions.justified import justified
from sparkwave.planner.functions.map_spelling import cast_to_map, map_functions, value_at
from sparkwave.planner.functions.number_patterns import is_number_format, number_read, number_text
from sparkwave.planner.functions.operators import INEXACT, as_call
from sparkwave.planner.functions.python_call import PythonCall, in_form
from sparkwave.planner.functions.regexp_calls import by_pattern, called, for_re2, has_basic_flag, in_python
from sparkwave.planner.functions.regexp_escapes import PATTERNS, with_escapes, without_groups
from sparkwave.planner.functions.regexp_flags import with_flags
from sparkwave.planner.functions.result_types import (
    PAIR,
    Known,
    array_type,
    common,
    field_place,
    holds_struct,
    is_numeric,
)
from sparkwave.planner.functions.safe import HOLDS_ROWS, Rows, is_call, is_safe_cast, may_raise
from sparkwave.planner.functions.safe_aggregates import counted_rows, defined, guarded, or_null
from sparkwave.planner.functions.scalar_functions import (
    AS_NUMERIC,
    ELEMENT,
    FUNCTIONS,
    OURS,
    REAL_FUNCTIONS,
    ROUNDINGS,
    duckdb_call,
    has_varying_places,
    of_each,
    ours,
    worked_out_once,
)
from sparkwave.planner.functions.struct_spelling import cast_to_struct, field_at, rows_of_arrays, text_of
from sparkwave.planner.functions.typed import data_type, has_exponent, sql_type, type_of_part
from sparkwave.planner.functions.undefined import undefined
from sparkwave.planner.parse.calls import NORMAL_FORMS
from sparkwave.planner.parse.constant_runs import expanded
from sparkwave.planner.parse.json_texts import is_json
from sparkwave.planner.parse.lambdas import ElementLambda
from sparkwave.planner.parse.long_numbers import fitted_text
from sparkwave.planner.parse.trees import at, position_of

_Args = list[exp.Expr]
_TEXTS: dict[Known, str] = {
    QUOTIENT: "quotient_text", JSONB: "sorted_text", REAL: "real_text", DOUBLE: "double_text",
}  # fmt: skip
# Functions of values beside a text in `||`, whose own texts differ from PostgreSQL's.
BESIDE_TEXTS: dict[Known, str] = {
    **_TEXTS, **dict.fromkeys((INTERVAL, DATE, TIMESTAMP, TIMESTAMPTZ), "to_text"),
}  # fmt: skip
_SHIFTS: dict[type[exp.Expr], str] = {
    exp.BitwiseLeftShift: "shift_left",
    exp.BitwiseRightShift: "shift_right",
}
_ORDERING = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
_COMPARISONS = (*_ORDERING, exp.Like, exp.ILike, exp.RegexpLike, exp.RegexpILike, exp.SimilarTo)


def for_duckdb(tree: exp.Expr, lenient: bool, copy: bool = True, tries: bool = False) -> exp.Expr:
    """Return the tree with calls, casts and operators in DuckDB's form; columns without a type keep plain operators.

    Without a `copy` the tree itself is changed. `tries` is for a query in which an expression that fails for a row is
    NULL: beside aggregates and subqueries it fails as ever.
    """
    tree = apart(tree.copy() if copy else tree)
    if tries:
        return rewrite_leaves_first(tree, _tried(), copy=False, kept=_KEPT)
    if not lenient:
        return rewrite_leaves_first(tree, lambda node: _for_duckdb(node, lenient), copy=False, kept=_KEPT)
    rows = Rows()

    def spell(node: exp.Expr) -> exp.Expr | None:
        if rows.within(node):
            made = guarded(node) if is_call(node) else or_null(node) or _for_duckdb(node, lenient)
            if isinstance(made, exp.TryCast):
                made.meta[HOLDS_ROWS] = True
            return made
        raises = may_raise(node)
        new = _for_duckdb(node, lenient)
        return duckdb_call("try", new or node) if raises or _is_seen_through(new) else new

    return rewrite_leaves_first(tree, spell, copy=False, kept=_KEPT)


# Two thirds of all nodes: they are spelled as they are, and have neither calls nor queries in them.
_KEPT = frozenset((exp.Identifier, exp.Column, exp.DataType, exp.DataTypeParam, exp.TableAlias))
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Neg)
_GIVING_ROWS = (exp.Table, exp.Lateral, exp.Unnest, exp.Explode)


def _tried() -> Callable[[exp.Expr], exp.Expr | None]:
    """Return the rule that spells nodes for a query, within TRY where they may raise."""
    rows = Rows()

    def spell(node: exp.Expr) -> exp.Expr | None:
        gives_rows = isinstance(node.parent, _GIVING_ROWS) or node.find(exp.ExplodingGenerateSeries) is not None
        if rows.within(node) or gives_rows:
            return _for_duckdb(node, lenient=False)
        is_cast = isinstance(node, exp.Cast) and (node.this.type is None or not is_safe_cast(node.this, node.to))
        raises = is_cast or may_raise(node) or (node.type is None and isinstance(node, _ARITHMETIC))
        new = _for_duckdb(node, lenient=False)
        return duckdb_call("try", new or node) if raises else new

    return spell


def _is_seen_through(node: exp.Expr | None) -> bool:
    """Return whether a TRY_CAST raises in DuckDB (1.5.5), or is dropped: `big::int <> 5` is `big <> 5`."""
    if not isinstance(node, exp.TryCast):
        return False
    source, target = sql_type(node.this.type), sql_type(node.args["to"])
    if source is None or target is None or source.dimensions:
        return False
    return (source.is_integer and target.is_integer) or (source == DATE and target == TIMESTAMPTZ)


def rewrite_leaves_first(
    tree: exp.Expr,
    rule: Callable[[exp.Expr], exp.Expr | None],
    copy: bool = True,
    kept: Collection[type[exp.Expr]] = (),
) -> exp.Expr:
    """Return the tree with its nodes replaced by a rule, leaves first; without a `copy` the tree itself is changed.

    The rule is not asked about nodes of the types `kept`.
    """
    root = tree.copy() if copy else tree
    # The walk is breadth first from the root, so its reverse has leaves first.
    for node in reversed([node for node in root.walk() if type(node) not in kept]):
        parent, key, index = node.parent, node.arg_key, node.index
        new = rule(node)
        if new is None or new is node:
            continue
        if new.type is None:
            new.type = node.type
        if parent is None:
            root = new
        else:
            # Not node.replace: the rule may have put the node inside the new one.
            parent.set(key or "this", new, index)
    return root


# DuckDB.


def _for_duckdb(node: exp.Expr, lenient: bool) -> exp.Expr | None:
    if isinstance(node.parent, exp.Table):
        return None
    if isinstance(node, exp.EQ) and isinstance(node.parent, exp.Update):  # an assignment
        return None
    if isinstance(node, exp.Literal):
        return _fitted(node)
    if isinstance(node, exp.Cast):
        return _cast(node, lenient)
    if not lenient and (value := defined(node) or counted_rows(node)) is not None:
        return value
    if isinstance(node, PythonCall):
        return in_form(node, OR_NULL) if lenient and not node.args.get("form") else node
    if isinstance(node, exp.Dot):
        return _field(node)
    if isinstance(node, ElementLambda) and not _is_argument_of(node, "array_transform", "map_filter"):
        message = "a lambda expression is an argument of array_transform and map_filter alone"
        raise Error(message, errors.SYNTAX_ERROR)
    if isinstance(node, _COMPARISONS) and (quantified := _quantified(node, lenient)) is not None:
        return quantified
    if isinstance(node, (*_ORDERING, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Between, exp.In, exp.Ordered)):
        return _of_intervals(node) or _without_bounds(node) or _of_doubles(node)
    if isinstance(node, exp.Like | exp.ILike):
        return node if isinstance(node.parent, exp.Escape) else _like(node, lenient)
    if isinstance(node, exp.Escape):
        return _complete(node) if lenient else node
    if isinstance(node, exp.Window) and isinstance(node.this, exp.Ntile) and not lenient:
        return exp.cast(node.copy(), data_type(INTEGER))
    if isinstance(node, exp.AtTimeZone):
        return _at_time_zone(node, lenient)
    if isinstance(node, exp.DPipe):
        return _concatenation(node, lenient)
    if type(node) in _SHIFTS:
        return ours(_SHIFTS[type(node)], node.this, node.expression)
    if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div | exp.Mod | exp.Neg):
        return _arithmetic(node, lenient)
    if isinstance(node, exp.Case | exp.Coalesce | exp.Array):
        return _of_quotients(node)
    if isinstance(node, exp.JSONExtract | exp.JSONExtractScalar):
        return _json_extract(node)
    if isinstance(node, exp.Bracket):
        return _subscript(node)
    if isinstance(node, exp.Greatest | exp.Least):
        return _extreme_interval(node) or _of_quotients(node)
    if isinstance(node, exp.Anonymous) and node.name.lower() in _OTHER_MAPS:
        raise undefined(node.name.lower(), node.expressions, position_of(node))
    call = as_call(node)
    if call is None:
        return None
    name, arguments = call
    function = FUNCTIONS[name]
    type_ = type_of_part(node) if name in _OF_QUOTIENTS and arguments else None
    if type_ is not None and type_.name == "numeric" and has_varying_places(name, arguments):
        return _rounded_by(name, arguments, type_)
    if type_ is not None and (has_many_places(type_) or (name in ROUNDINGS and type_.precision is not None)):
        return _function_of_quotients(name, arguments, type_)
    if name in PATTERNS and len(arguments) > 1:
        return _of_pattern(name, arguments, lenient, node)
    build = _BUILDERS.get(name)
    if build is not None:
        try:
            return build(arguments)
        except Error as error:
            if error.sqlstate in (errors.FEATURE_NOT_SUPPORTED, errors.UNDEFINED_FUNCTION):
                error.position = error.position or position_of(node)
            raise
    if function.duckdb == OURS:
        return ours(name, *arguments)
    return duckdb_call(function.duckdb or name, *arguments)


# DuckDB's functions whose maps are in another order.
_OTHER_MAPS = frozenset({"map", "map_concat", "histogram", "histogram_exact"})


def _at_time_zone(node: exp.AtTimeZone, lenient: bool) -> exp.Expr:
    """Return AT TIME ZONE of a name, or of an interval, which a column without a type may be in a query."""
    zone = node.args["zone"]
    if _is_interval(zone) or (isinstance(zone, exp.Column) and zone.type is None and not lenient):
        return ours("at_zone", node.this, zone)
    if lenient or not zone.is_string:
        node.set("zone", ours("zone", zone))
    return node


def _fitted(node: exp.Literal) -> exp.Expr | None:
    """Return a number that DuckDB would make a double of as one with as many digits as a decimal has."""
    if has_exponent(node) and math.isinf(float(node.name)):
        message = "value overflows numeric format"
        raise Error(message, errors.NUMERIC_VALUE_OUT_OF_RANGE, position=position_of(node))
    if node.is_string or len(node.name) <= MOST_DIGITS:
        return None
    with at(node):
        text = fitted_text(node.name)
    return exp.Literal.number(text) if text != node.name else None


def _of_pattern(name: str, arguments: _Args, lenient: bool, node: exp.Expr) -> exp.Expr:
    """Return a call of a function with a regular expression, by RE2 where it can be."""
    try:
        made = in_python(name, arguments)
        if made is not None:
            return made
        chosen = not (lenient or arguments[1].is_string or any(map(_is_null, arguments)))
        given = with_flags(name, with_escapes(name, for_re2(arguments) if chosen else arguments))
        build = _BUILDERS.get(name)
        made = build(given) if build is not None else ours(name, *given)
        return by_pattern(name, arguments, made) if chosen else made
    except Error as error:
        made = called(name, arguments) if error.sqlstate == errors.FEATURE_NOT_SUPPORTED else None
        if made is None or has_basic_flag(name, arguments):
            error.position = error.position or position_of(node)
            raise
        return made


def _is_argument_of(node: exp.Expr, *names: str) -> bool:
    return isinstance(node.parent, exp.Anonymous) and node.parent.name.lower() in names


def _without_bounds(node: exp.Expr) -> exp.Expr | None:
    """Return BETWEEN of arrays or rows in another form: DuckDB (1.5.5) fails on two bounds of one in a filter."""
    if node.args.get("symmetric") or not any(map(_is_nested, node.iter_expressions())):
        return None
    if isinstance(node, exp.Between):
        low, high = node.args["low"], node.args["high"]
        at_least = exp.GTE(this=node.this.copy(), expression=low.copy())
        return exp.paren(exp.and_(_is_true(at_least), exp.LTE(this=node.this.copy(), expression=high.copy())))
    return _is_true(node.copy()) if isinstance(node, exp.GT | exp.GTE | exp.LT | exp.LTE) else None


def _is_nested(node: exp.Expr) -> bool:
    type_ = type_of_part(node)
    return isinstance(node, exp.Array) or (type_ is not None and bool(type_.dimensions or type_.fields))


def _is_true(condition: exp.Expr) -> exp.Expr:
    return exp.paren(exp.EQ(this=exp.paren(condition), expression=exp.true()))


def _concatenation(node: exp.DPipe, lenient: bool) -> exp.Expr | None:
    """Return `||` of jsonb, of arrays, where NULL is an empty array, and of an array and an element."""
    type_ = type_of_part(node)
    if type_ == JSONB:
        return ours("jsonb_concat", node.this, node.expression)
    if type_ is None or not type_.dimensions:
        for side in list(node.iter_expressions()):
            if (text := BESIDE_TEXTS.get(type_of_part(side))) is not None:
                side.replace(ours(text, side.copy()))
        if type_ in (None, TEXT, VARCHAR) and any(map(_is_null_text, node.iter_expressions())):
            return exp.cast(exp.paren(node.copy()), data_type(VARCHAR))  # DuckDB takes it for an integer
        return node
    sides = [_as_array(side, type_, lenient) for side in (node.this, node.expression)]
    if None in map(_dimensions, sides):
        return ours("array_cat", *sides) if any(isinstance(side, exp.Null) for side in sides) else None
    return _joined_arrays(sides)


def _dimensions(side: exp.Expr) -> int | None:
    type_ = type_of_part(side)
    return type_.dimensions if type_ is not None else None


def _joined_arrays(sides: _Args) -> exp.Expr:
    """Return two arrays joined, or an array and an element; NULL is an empty array."""
    left, right = (_dimensions(side) or 0 for side in sides)
    if abs(left - right) > 1:
        raise Error("argument must be empty or one-dimensional array", errors.DATA_EXCEPTION)
    if left == right:
        return ours("array_cat", *sides)
    if not min(left, right):
        return ours("array_append" if left > right else "array_prepend", *sides)
    return ours("array_cat_behind" if left > right else "array_cat_before", *sides)


def _array_cat(arguments: _Args) -> exp.Expr:
    """Return array_cat, whose arguments are both arrays."""
    known = list(map(_dimensions, arguments))
    if 0 in known:
        raise undefined("array_cat", arguments)
    return ours("array_cat", *arguments) if None in known else _joined_arrays(arguments)


def _as_array(side: exp.Expr, type_: Type, lenient: bool) -> exp.Expr:
    """Return a side of `||`: a string literal is an array of the other side's type."""
    if not side.is_string:
        return side
    cast = exp.Cast(this=side.copy(), to=data_type(type_))
    made = _cast(cast, lenient) or cast
    made.type = data_type(type_)
    return made


def _arithmetic(node: exp.Expr, lenient: bool) -> exp.Expr | None:
    """Return an operator that differs for some types. In a view a node without a type is one of the planner's own."""
    type_ = sql_type(node.type)
    if lenient and type_ is None:
        return None
    new = node
    known = [type_of_part(part) for part in node.iter_expressions()]
    if isinstance(node, exp.Sub) and known[0] == JSONB:
        return ours("jsonb_without", node.this, node.expression)
    if isinstance(node, exp.Add | exp.Sub) and (made := _of_literal(node)) is not None:
        return made
    if isinstance(node, exp.Add | exp.Sub):
        _with_durations(node, known)
    if isinstance(node, exp.Add | exp.Sub) and not lenient and (made := _moved(node)) is not None:
        return made
    _of_doubles(node)
    if isinstance(node, exp.Mul | exp.Div) and TIME in known:
        for side in list(node.iter_expressions()):
            if type_of_part(side) == TIME:
                side.replace(ours("interval_of_time", side.copy()))
    if isinstance(node, exp.Add | exp.Sub | exp.Mul) and type_ is not None and type_.name == "numeric":
        new = _exact(node)
    elif isinstance(node, exp.Sub):
        is_plain = _is_number(node.this) or _is_number(node.expression)
        is_known = known in ([DATE, DATE], [TIME, TIME])
        if is_known or (type_ in (None, INTEGER) and not is_plain and None in known):
            new = ours("subtract", node.this, node.expression)
    elif isinstance(node, exp.Mod):
        if type_ is not None and (has_many_places(type_) or has_most_digits(type_)):
            return exp.Mod(**{key: _in_type(side, type_) for key, side in node.args.items()})
        if not _is_number(node.expression):
            new = ours("modulo", node.this, node.expression)
    elif isinstance(node, exp.Div) and type_ == QUOTIENT:
        return (_inexact_quotient if node.meta.get(INEXACT) else _quotient)(node.this, node.expression)
    elif isinstance(node, exp.Div):
        is_plain = all(t is not None and (t.is_integer or t in (DOUBLE, REAL)) for t in known)
        # Without a type sqlglot writes the operator unchanged; DuckDB's setting integer_division does the rest.
        new = (
            exp.Div(this=node.this, expression=node.expression)
            if is_plain
            else ours("divide", *node.iter_expressions())
        )
    return new if new is not node else None


def _with_durations(node: exp.Add | exp.Sub, known: list[Known]) -> None:
    """Change the sides of an operator where one is a time, or NULL, that stands for an interval beside the other."""
    left, right = known
    if right == TIME and (left in (TIMESTAMP, TIMESTAMPTZ) or (isinstance(node, exp.Sub) and left in (DATE, INTERVAL))):
        node.set("expression", ours("interval_of_time", node.expression))
        node.expression.type = data_type(INTERVAL)
    elif left == TIME and right in (TIMESTAMP, TIMESTAMPTZ):
        node.set("this", ours("interval_of_time", node.this))
        node.this.type = data_type(INTERVAL)
    elif INTERVAL in known:
        for side in (node.this, node.expression):
            if isinstance(side, exp.Null):
                side.replace(exp.cast(exp.null(), data_type(INTERVAL)))


def _of_doubles(node: exp.Expr) -> exp.Expr | None:
    """Return an operator with a real beside another number, where PostgreSQL computes with double precision.

    Changes the node. Returns None for any other operator. A list of several values has their common type, a real.
    """
    if isinstance(node, exp.In) and len(node.expressions) != 1:
        return None
    sides = list(node.iter_expressions())
    types = [type_of_part(side) for side in sides]
    if REAL not in types or not any(type_ not in (None, REAL) and is_numeric(type_) for type_ in types):
        return None
    for side, type_ in zip(sides, types, strict=True):
        if is_numeric(type_) and type_ != DOUBLE:
            side.replace(exp.cast(side.copy(), data_type(DOUBLE)))
    return node


def _moved(node: exp.Add | exp.Sub) -> exp.Expr | None:
    """Return a time with time zone plus or minus an interval with days, which count in local time."""
    sides = [node.this, node.expression]
    if not any(map(_is_interval, sides)) or TIMESTAMPTZ not in map(type_of_part, sides):
        return None
    moment, interval = sides if _is_interval(node.expression) else reversed(sides)
    if isinstance(interval, exp.Interval) and (interval.text("unit") or "day").lower().rstrip("s") in _CLOCK_UNITS:
        return None
    length = exp.Neg(this=exp.paren(interval)) if isinstance(node, exp.Sub) else interval
    return ours("add_interval", moment, length)


_CLOCK_UNITS = ("hour", "minute", "second", "millisecond", "microsecond")


# Expressions that are computed so fast that repeating them costs less than storing the result.
_CHEAP = (exp.Column, exp.Identifier, exp.Literal, exp.Paren, exp.Neg, exp.Cast, exp.DataType, exp.DataTypeParam)
_CHEAP_SIZE = 12  # nodes


def _quotient(dividend: exp.Expr, divisor: exp.Expr) -> exp.Expr:
    """Return a quotient of exact numbers.

    A quotient of few decimal places by an integer takes a tenth of the time of other quotients.
    """
    whole = _integer_in(dividend)
    type_ = type_of_part(dividend)
    if whole is not None:
        type_ = Type("numeric", 38, 0)
        dividend = exp.cast(whole.copy(), data_type(type_))
    integer = _integer_in(divisor)
    is_short = type_ is not None and type_.name == "numeric" and type_.digits[1] <= DEFAULT_NUMERIC[1]
    if not is_short or integer is None:
        return ours("divide_numerics", dividend, divisor)
    assert type_ is not None
    written = divisor.unnest().name.partition(".")[2] if isinstance(divisor.unnest(), exp.Literal) else ""
    places = max(type_.scale or 0, len(written))
    nodes = list(islice(dividend.walk(), _CHEAP_SIZE))
    is_cheap = len(nodes) < _CHEAP_SIZE and all(isinstance(node, _CHEAP) for node in nodes)
    divide = "divide_by_integer" if is_cheap else "divide_once_by_integer"
    return ours(divide, dividend, integer, exp.null() if type_.is_unconstrained else exp.Literal.number(places))


def _inexact_quotient(dividend: exp.Expr, divisor: exp.Expr) -> exp.Expr:
    """Return a quotient as it was before `since.EXACT_NUMERICS`."""
    integers = [inner for side in (dividend, divisor) if (inner := _integer_in(side, as_before=True)) is not None]
    return ours("divide_integers", *integers) if len(integers) == 2 else ours("divide_quotients", dividend, divisor)


def _integer_in(value: exp.Expr, as_before: bool = False) -> exp.Expr | None:
    """Return the integer from which a numeric is computed, also a literal like 3.0; None for any other numeric.

    `as_before` is for versions that did not consider literals, nor the digits of casts.
    """
    inner = value.unnest()
    if isinstance(inner, exp.Literal) and not inner.is_string and not as_before:
        digits_before, _, digits_behind = inner.name.partition(".")
        is_whole = digits_before.isdigit() and len(digits_before) <= INT64_DIGITS and not digits_behind.strip("0")
        return exp.Literal.number(digits_before) if is_whole else None
    if isinstance(inner, exp.Neg) and not inner.is_int:
        negated = _integer_in(inner.this, as_before)
        return None if negated is None else exp.Neg(this=exp.paren(negated.copy()))
    if isinstance(inner, exp.Cast) and inner.to.this == exp.DType.DECIMAL:
        to = sql_type(inner.to)
        if as_before or (to is not None and to.is_unconstrained):
            inner = inner.this.unnest()
    type_ = type_of_part(inner)
    is_integer = inner.is_int if isinstance(inner, exp.Literal | exp.Neg) else type_ is not None and type_.is_integer
    return inner if is_integer else None


def _of_literal(node: exp.Add | exp.Sub) -> exp.Expr | None:
    """Return an operator with a string literal cast to the type that the operator wants beside the other side."""
    left, right = node.this.unnest(), node.expression.unnest()
    if left.is_string == right.is_string:
        return None
    name = "add" if isinstance(node, exp.Add) else "subtract"
    if left.is_string and isinstance(node, exp.Sub) and type_of_part(right) in _READ_BEFORE:
        return ours("subtract", _READ_BEFORE[type_of_part(right)](node.this), node.expression)
    return (
        ours(f"{name}_literal", node.this, node.expression)
        if right.is_string
        else (ours("add_literal", node.expression, node.this) if name == "add" else None)
    )


# Readers of a text before a minus, by the type behind it.
_READ_BEFORE: dict[Known, Callable[[exp.Expr], exp.Expr]] = {
    INTERVAL: lambda text: ours("_read_interval", text),
    TIME: lambda text: exp.cast(ours("time_in", text, exp.Literal.string(TIME.name)), data_type(TIME)),
}


def _in_type(value: exp.Expr, type_: Type) -> exp.Expr:
    # `exp.cast` would leave a cast to other digits as it is.
    return value if type_of_part(value) == type_ else exp.Cast(this=value.copy(), to=data_type(type_))


def _of_quotients(node: exp.Expr) -> exp.Expr | None:
    """Return an expression of numerics with many digits, of which DuckDB would leave fewer after the point.

    This happens beside a value with many digits before the point.
    """
    wanted = type_of_part(node)
    if wanted is None or not (has_many_places(wanted) or wanted.name == "numeric"):
        return None
    element = replace(wanted, dimensions=wanted.dimensions - 1) if isinstance(node, exp.Array) else wanted
    others = of_other_digits(node, element)
    if not (has_many_places(wanted) or has_most_digits(element)) or not others:
        return node if has_many_places(wanted) else None
    for value in others:
        value.replace(_in_type(value, element))
    return node


# Those whose floats overflow and underflow in other words than numerics, or have fewer digits.
_OF_NUMERIC = {"exp": "exp_of_numeric", "log": "log_of_numeric", "power": "power_of_numeric"}
_OF_QUOTIENTS = ROUNDINGS | REAL_FUNCTIONS | {"modulo"}


def _function_of_quotients(name: str, arguments: _Args, type_: Type) -> exp.Expr:
    if name == "modulo":
        made: exp.Expr = exp.Mod(this=_in_type(arguments[0], type_), expression=_in_type(arguments[1], type_))
    elif name in REAL_FUNCTIONS:
        made = _digits(
            _of_floats(_OF_NUMERIC.get(name, name), [exp.cast(argument, "double") for argument in arguments])
        )
    else:
        made = duckdb_call(name, *arguments)
    return exp.cast(made, data_type(type_))


def _rounded_by(name: str, arguments: _Args, type_: Type) -> exp.Expr:
    """Return round or trunc to a number of places that may differ by row. Raises Error 42883 if they are no int."""
    places = type_of_part(arguments[1])
    if places not in (None, SMALLINT, INTEGER) and not arguments[1].unnest().is_int:
        raise undefined(name, arguments)
    own = type_of_part(arguments[0])
    scale = max(own.digits[1] if own is not None else QUOTIENT.digits[1], type_.digits[1])
    room, number = Type("numeric", 38, scale), exp.Literal.number(scale)
    units = exp.cast(ours("_units", number), data_type(array_type(room)))
    made = ours(f"{name}_by", exp.cast(arguments[0], data_type(room)), arguments[1], number.copy(), units)
    return made if scale == type_.digits[1] else exp.cast(made, data_type(type_))


def _digits(value: exp.Expr) -> exp.Expr:
    return duckdb_call("format", exp.Literal.string("{:.16g}"), value)  # at least as many digits as PostgreSQL has


def _real_as_numeric(arguments: _Args) -> exp.Expr:
    return exp.cast(_digits(ours("_as_numeric", *arguments)), data_type(QUOTIENT))


def _of_floats(name: str, arguments: _Args) -> exp.Expr:
    if len(arguments) == 1:
        return worked_out_once(arguments[0], lambda x: ours(name, x))
    places = [exp.Literal.number(place) for place in (1, 2)]
    fields = lambda both: [duckdb_call("struct_extract", both.copy(), place) for place in places]  # noqa: E731
    return worked_out_once(duckdb_call("row", *arguments), lambda both: ours(name, *fields(both)))


def _exact(node: exp.Add | exp.Sub | exp.Mul) -> exp.Expr:
    """Return a sum, difference or product of numerics.

    If both sides fit 18 digits DuckDB keeps the result in 18, so one side is made wider.
    """
    if node.meta.get(OF_TEN_PLACES):
        return _product_of_ten_places(node) if isinstance(node, exp.Mul) else node
    sides: list[exp.Expr] = list(node.iter_expressions())
    known = [digits(side) for side in sides]
    both = [own or digits_of(type_of_part(side)) for own, side in zip(known, sides, strict=True)]
    declared = [own for own in both if own is not None]
    if len(declared) != len(sides) or node.meta.get(NARROW):
        return node
    width, scale = digits_of_both(node, declared)
    result = type_of_part(node)
    if isinstance(node, exp.Mul) and result == QUOTIENT and scale > QUOTIENT.digits[1]:
        has_more = any(own[1] > QUOTIENT.digits[1] for own in declared)
        return ours("multiply_places" if has_more else "multiply_quotients", *sides)
    if width <= INT64_DIGITS or any(own is not None and own[0] > INT64_DIGITS for own in known):
        return node
    place = known.index(None) if None in known else 0
    wide = exp.DataType.build(f"DECIMAL({DEFAULT_NUMERIC[0]}, {declared[place][1]})", dialect="duckdb")
    sides[place] = exp.Cast(this=sides[place], to=wide)
    sides[place].meta[WIDENING] = True
    return type(node)(this=sides[0], expression=sides[1])


def _product_of_ten_places(node: exp.Mul) -> exp.Expr:
    """Return a product as it was before `since.EXACT_DIGITS`: where it overflowed then, it does now, as in states."""
    if type_of_part(node) == QUOTIENT:
        types = [type_of_part(side) for side in node.iter_expressions()]
        is_exact = any(type_ is not None and type_.is_integer for type_ in types)
        return node if is_exact else ours("multiply_quotients", *node.iter_expressions())
    known = digits(node, of_choices=False)
    if known is None or known[1] > DEFAULT_NUMERIC[1]:
        is_plain = _is_number(node.this) or _is_number(node.expression)
        return node if is_plain else ours("multiply", node.this, node.expression)
    if known[0] <= INT64_DIGITS or node.meta.get(NARROW):
        return node
    left = digits(node.this, of_choices=False)
    assert left is not None
    wide = exp.DataType.build(f"DECIMAL({DEFAULT_NUMERIC[0]}, {left[1]})", dialect="duckdb")
    return exp.Mul(this=exp.Cast(this=node.this, to=wide), expression=node.expression)


def _json_extract(node: exp.Expr) -> exp.Expr:
    """Return `->` and `->>` as functions, because among arguments DuckDB takes an arrow for a lambda's.

    A constant field name becomes DuckDB's path; any other text would be taken for a path too.
    """
    path, is_text = node.expression, isinstance(node, exp.JSONExtractScalar)
    if type_of_part(node.this) == JSON:
        held = document(node.this)
        node.set("this", held if takes_field(node) else ours("json_of_parts", held))
        made = _json_extract(node)
        return made if is_text else of_jsonb(made)
    if not isinstance(path, exp.JSONPath):
        return ours("json_get_text" if is_text else "json_get", node.this, path)
    number = path.expressions[-1].this if isinstance(path.expressions[-1], exp.JSONPathSubscript) else None
    if isinstance(number, int):
        item = exp.cast(exp.Literal.number(number), "INTEGER", dialect="duckdb")
        return ours("json_get_text" if is_text else "json_get", node.this, item)
    constant = sqlglot.parse_one(path.sql(dialect="duckdb"), read="duckdb")
    return ours("json_text", node.this, constant) if is_text else duckdb_call("json_extract", node.this, constant)


def _subscript(node: exp.Bracket) -> exp.Expr | None:
    """Return an element or slice of an array.

    DuckDB counts subscripts below 1 from the end; in PostgreSQL they are NULL.
    """
    index, container = node.expressions[0], type_of_part(node.this)
    if container is not None and container.is_map:
        return value_at(node.this, index)
    if isinstance(index, exp.Slice):
        first, last = index.this or exp.Literal.number(1), index.expression or exp.Literal.number(2**31 - 1)
        return ours("array_slice", node.this, first, last)
    is_element = type_of_part(node.this) not in (None, JSONB) or not index.is_string
    return ours("array_element", node.this, index) if is_element and not _is_number(index) else None


def _extreme_interval(node: exp.Greatest | exp.Least) -> exp.Expr | None:
    """Return the longest or shortest interval: the first in the order of lengths."""
    values = [node.this, *node.expressions]
    if not any(map(_is_interval, values)):
        return None
    name = "greatest_interval" if isinstance(node, exp.Greatest) else "least_interval"
    return ours(name, exp.cast(exp.Array(expressions=values), "INTERVAL[]", dialect="duckdb"))


def _is_number(node: exp.Expr) -> bool:
    return isinstance(node.unnest(), exp.Literal) and not node.unnest().is_string


def _of_intervals(node: exp.Expr) -> exp.Expr | None:
    """Return a comparison of intervals by their length. For DuckDB `1 day -12:00:00` and `12:00:00` differ."""
    if (query := _compared_query(node)) is not None:
        return _of_interval_query(node, query) if _is_interval(node.this) else None
    parts = list(node.iter_expressions())
    if not any(map(_is_interval, parts)) or any(isinstance(part, exp.Query | exp.Subquery) for part in parts):
        return None
    if isinstance(node, exp.Ordered):
        select = node.parent.parent if node.parent is not None else None
        if not isinstance(select, exp.Select) or select.args.get("distinct") or select.args.get("group"):
            return None
    for part in list(expanded(node).iter_expressions()):
        part.replace(_interval_key(part.copy()))
    return node


def _compared_query(node: exp.Expr) -> exp.Query | None:
    """Return the query of `x IN (query)` or `x = ANY (query)` and the like."""
    right = node.args.get("query") if isinstance(node, exp.In) else node.args.get("expression")
    inner = right.this if isinstance(right, exp.Any | exp.All) else right if isinstance(node, exp.In) else None
    query = inner.unnest() if inner is not None else None
    return query if isinstance(query, exp.Query) else None


def _of_interval_query(node: exp.Expr, query: exp.Query) -> exp.Expr:
    """Return the comparison with the lengths of the intervals that a query selects."""
    [select] = query.selects if isinstance(query, exp.Select) and len(query.selects) == 1 else [None]
    if select is not None and not select.is_star:
        select.unalias().replace(_interval_key(select.unalias().copy()))
    else:
        names = exp.TableAlias(this=exp.to_identifier("q"), columns=[exp.to_identifier("x")])
        source = exp.Subquery(this=query.copy(), alias=names)
        value = exp.cast(exp.column("x"), "interval", dialect="duckdb")  # in a UNION it may be a text
        query.replace(exp.select(_interval_key(value)).from_(source, copy=False))
    node.this.replace(_interval_key(node.this.copy()))
    return node


def _is_interval(node: exp.Expr) -> bool:
    type_ = type_of_part(node)
    return isinstance(node, exp.Interval) or (type_ is not None and type_.name == "interval")


def _interval_key(part: exp.Expr) -> exp.Expr:
    value = exp.cast(part, "interval", dialect="duckdb") if part.is_string or isinstance(part, exp.Null) else part
    return ours("interval_key", ours("interval_of_time", value) if type_of_part(part) == TIME else value)


def _like(node: exp.Expr, lenient: bool) -> exp.Expr:
    new = escaped(node)
    return _complete(new) if lenient and isinstance(new, exp.Escape) else new


def _complete(node: exp.Escape) -> exp.Expr:
    """Return LIKE that is NULL where the pattern ends in its escape character; no TRY catches DuckDB's error."""
    pattern, escape = node.this.expression, re.escape(node.expression.name)
    if isinstance(pattern, exp.Any | exp.All) or not escape:
        return node
    whole = exp.Literal.string(rf"(?s)(?:{escape}.|[^{escape}])*")
    return exp.Case().when(duckdb_call("regexp_full_match", pattern.copy(), whole), node)


def _quantified(node: exp.Expr, lenient: bool) -> exp.Expr | None:
    """Return `x = ANY(array)` or ALL as a fold over the elements."""
    right = node.expression
    if not isinstance(right, exp.Any | exp.All):
        return None
    array = right.this.unnest()
    if isinstance(array, exp.Query | exp.Parameter):
        return None
    is_plain = isinstance(node, exp.EQ) and isinstance(right, exp.Any) and not (_is_interval(node.this) or lenient)
    if is_plain and array.find(exp.Column) and _is_in_subquery(node):
        return None
    items, type_ = array_items(array), type_of_part(node.this)
    if items is not None:
        array = array_of(items)
        array = exp.cast(array, data_type(array_type(type_))) if type_ is not None else array
    one: exp.Expr = type(node)(this=node.this.copy(), expression=exp.column(ELEMENT))
    if isinstance(one, exp.Like | exp.ILike):
        one.set("negate", node.args.get("negate"))
        one = _like(one, lenient)
    elif (call := as_call(one)) is not None:
        one = ours(*call[:1], *call[1])
    elif _is_interval(node.this) or _is_interval(array):
        one = type(node)(this=_interval_key(one.this), expression=_interval_key(one.expression))
    return ours("any_true" if isinstance(right, exp.Any) else "all_true", of_each(array, one))


def _is_in_subquery(node: exp.Expr) -> bool:
    """Return whether an expression is in a correlated subquery, where DuckDB (1.5.5) has no lambdas."""
    select = node.find_ancestor(exp.Select)
    around = select.find_ancestor(exp.Select, exp.From, exp.Join, exp.Lateral) if select is not None else None
    return isinstance(around, exp.Select | exp.Lateral)


def _cast(node: exp.Expr, lenient: bool) -> exp.Expr | None:
    value, to = node.this, node.args["to"]
    if isinstance(value, exp.Null):
        return None
    source = None if value.is_string else sql_type(value.type)
    if source is None and node.meta.get(OF_DOCUMENT):
        source = JSONB
    target, kind = sql_type(to), to.this
    if target is not None and (holds_struct(target) or target.name == "map"):
        if lenient and source is None and isinstance(value, exp.Column | exp.AggFunc | exp.Window):
            return None  # the planner's own cast, to the type that it has
        spell = _spell(lenient)
        return (cast_to_struct if holds_struct(target) else cast_to_map)(value, source, target, spell)
    if kind in exp.DataType.TEXT_TYPES and source is not None and _has_parts(source):
        text = text_of(value, source, _printed)
        return duckdb_call("left", text, to.expressions[0].this.copy()) if to.expressions else text
    if target is not None and source is not None and _has_parts(source) and _are_texts(target, source):
        return of_each(value, _spell(lenient)(exp.column(ELEMENT), source.element, target.element))
    if JSON in (_element(source), _element(target)):
        made = cast_of_json(node, source, target, lenient)
        if made is not None:
            return made
    items = nested_items(value) if kind == exp.DataType.Type.ARRAY else None
    if items is not None:
        if target is not None and depth(items) > target.dimensions:
            hint = f"Here its type is written {target.element}{'[]' * depth(items)}."
            raise Error(f"an array of arrays is not of type {target}", errors.FEATURE_NOT_SUPPORTED, hint=hint)
        node.set("this", array_of(items))
        return None
    if target is not None and target.dimensions and source == VARCHAR and not value.is_string:
        read = _array_in(value, target)
        return duckdb_call("try", read) if lenient else read
    if target is not None and _may_be_text(value, source, target) and not lenient:
        array, reader = ours(_ARRAYS_OF_TEXT[target.dimensions], value), _READ_AS.get(target.name)
        node.set("this", _each_read(array, reader, target.dimensions) if reader is not None else array)
        return None
    if kind == exp.DataType.Type.VARBINARY and value.is_string:
        return bytea(value)
    if source is None and target is not None and not lenient and not (value.is_string or _is_parameter(value)):
        reader = _READ_AS.get(target.name) if not target.dimensions else None
        if reader is not None:
            node.set("this", ours(reader, value))
            return None
    if kind in exp.DataType.TEXT_TYPES:
        plain = (
            value.is_string
            or isinstance(value.unnest(), exp.Parameter)
            or (source is None and lenient)  # the planner's own cast, to the type that it has
            or (source is not None and source.name not in _OWN_TEXT and not source.dimensions)
        )
        text = node if plain else ours(_TEXTS.get(source, "to_text" if lenient else "shown_text"), value)
        return duckdb_call("left", text, to.expressions[0].this.copy()) if to.expressions else text
    is_text = source == VARCHAR or (source is None and not lenient)
    if target in _MOMENT_TEXTS and is_text and not value.is_string and not _is_parameter(value):
        node.set("this", ours(_MOMENT_TEXTS[target], value, exp.Literal.string(target.name)))
    if kind == exp.DataType.Type.DECIMAL and not to.expressions:
        node.set("to", data_type(NUMERIC))
    if kind in (exp.DataType.Type.JSON, exp.DataType.Type.JSONB) and source in (None, VARCHAR):
        # Without spaces, so that equal documents are equal text.
        is_document = value.is_string and is_json(value.name)
        read = duckdb_call("json", value) if is_document else ours("jsonb_in", value)
        node.set("this", duckdb_call("try", read) if lenient and source is not None else read)
    if source is not None and target is not None and (changed := _value_to_cast(value, source, target)) is not None:
        node.set("this", changed)
        if lenient:
            return duckdb_call("try", exp.Cast(this=node.this, to=node.args["to"]))
    if not lenient:
        return None
    if kind == exp.DataType.Type.FLOAT and value.type is None and not isinstance(value, exp.Column):
        return ours("real", value)  # the planner's own, of a sum
    if isinstance(node, exp.TryCast) or is_safe_cast(value, to):
        return None
    cast = exp.TryCast(this=node.this, to=node.args["to"])
    # DuckDB's (1.5.5) TRY_CAST raises for the time of an infinite timestamp.
    is_time = kind == exp.DataType.Type.TIME and source is not None and source != TIME
    return duckdb_call("try", cast) if is_time else cast


def _are_texts(target: Type, source: Type) -> bool:
    """Return whether a type is an array of texts, of the dimensions of another."""
    return target.dimensions == source.dimensions > 0 and replace(target, dimensions=0).is_text


def _has_parts(type_: Type) -> bool:
    """Return whether a type is a struct or a map, or an array of them."""
    return type_.name in ("struct", "map")


def _element(type_: Known) -> Known:
    """Return the type of an array's elements, of any number of dimensions, or the type itself."""
    return replace(type_, dimensions=0) if type_ is not None else None


def _value_to_cast(value: exp.Expr, source: Type, target: Type) -> exp.Expr | None:
    """Return the value to cast where DuckDB would misread the original one; None where it would not."""
    if source.dimensions or target.dimensions:
        return value if source.dimensions and target.dimensions and source != target else None
    match source.name, target.name:
        case "real" | "double precision", "numeric":
            return ours("float_digits", value)
        case "character varying", "bytea":
            return ours("bytea_in", value)
        case "character varying", "boolean" if not value.is_string:
            return ours("boolean_in", value)
        case "character varying", "smallint" | "integer" | "bigint" if not (value.is_string or _is_printed(value)):
            return ours("integer_in", value, exp.Literal.string(target.name))
        case "jsonb", "boolean":
            return ours("jsonb_of_kind", value, exp.Literal.string("boolean"), exp.Literal.string(str(target)))
        case "jsonb", _ if target.is_integer:
            return ours("jsonb_integer", value, exp.Literal.string(target.name))
        case "jsonb", _ if target.is_numeric:
            return ours("jsonb_of_kind", value, exp.Literal.string("number"), exp.Literal.string(target.name))
        case "time without time zone", "interval":
            return ours("interval_of_time", value)
        case "interval", "time without time zone":
            return ours("time_of_interval", value)
        case "timestamp with time zone", "time without time zone":
            return exp.cast(value, "TIMESTAMP", dialect="duckdb")
    return None


def _may_be_text(value: exp.Expr, source: Known, target: Type) -> bool:
    """Return whether a value of a type that nobody knows may be the text of an array whose elements DuckDB can cast."""
    is_known = source is not None or value.is_string or _is_parameter(value) or isinstance(value, exp.Array)
    return target.dimensions in _ARRAYS_OF_TEXT and target.name != "jsonb" and not is_known


# The macros that read a text as an array of that many dimensions, and leave other values.
_ARRAYS_OF_TEXT = {1: "as_array", 2: "as_arrays"}


def _each_read(array: exp.Expr, reader: str, dimensions: int) -> exp.Expr:
    """Return an array with each of its elements, within all dimensions, read by a macro."""
    element = exp.column(ELEMENT)
    return of_each(array, ours(reader, element) if dimensions == 1 else _each_read(element, reader, dimensions - 1))


# The macros that bring the text of a date, time or interval into DuckDB's form, and leave other values.
_MOMENT_TEXTS = {
    DATE: "date_in", TIMESTAMP: "date_in", TIMESTAMPTZ: "date_in", TIME: "time_in", INTERVAL: "interval_in",
}  # fmt: skip
# The macros that read a text as a type otherwise than DuckDB, and leave other values.
_READ_AS = {
    "boolean": "as_boolean", "bytea": "to_bytea", "smallint": "as_smallint", "integer": "as_integer",
    "bigint": "as_bigint",
}  # fmt: skip


def _is_printed(value: exp.Expr) -> bool:
    """Return whether a value is the text of an integer, as in a domain's condition."""
    return isinstance(value, exp.Cast) and isinstance(value.this, exp.Cast) and bool(value.this.to.is_type("int"))


def _array_in(value: exp.Expr, target: Type) -> exp.Expr:
    """Return the array that a text means, such as `{1,NULL}`."""
    texts = ours("array_in" if target.dimensions == 1 else "arrays_in", value)
    return of_each(texts, _spell(lenient=False)(exp.column(ELEMENT), VARCHAR, target.element))


def _is_parameter(value: exp.Expr) -> bool:
    return isinstance(value.unnest(), exp.Parameter | exp.Placeholder)


def _spell(lenient: bool) -> Callable[[exp.Expr, Known, Type], exp.Expr]:
    """Return a function that casts a value that is spelled already."""

    def spelled(value: exp.Expr, source: Known, target: Type) -> exp.Expr:
        value = value.copy()
        value.type = data_type(source) if source is not None else None
        cast = exp.Cast(this=value, to=data_type(target))
        return _cast(cast, lenient) or cast

    return spelled


def _printed(value: exp.Expr, type_: Type) -> exp.Expr:
    """Return the text of a field of a row."""
    return text_of(value, type_, _printed) if _has_parts(type_) else ours("text_out", value)


def _field(node: exp.Dot) -> exp.Expr | None:
    """Return `(x).field` for a row of known type."""
    owner = type_of_part(node.this)
    if owner is None or not owner.is_struct or not isinstance(node.expression, exp.Identifier):
        return None
    place = field_place(owner, node.expression)
    return field_at(node.this, place) if place is not None else None


# Types whose text differs from DuckDB's.
_OWN_TEXT = frozenset(
    {"real", "double precision", "numeric", "bytea", "interval", "date", "timestamp without time zone",
     "timestamp with time zone", "jsonb"}
)  # fmt: skip


def bytea(literal: exp.Expr) -> exp.Expr:
    """Return a bytea literal: hex after `\\x`, or the text's bytes. DuckDB has other escapes."""
    text = literal.name
    if text.startswith("\\x"):
        return duckdb_call("from_hex", exp.Literal.string(text[2:]))
    return duckdb_call("encode", literal.copy())


def _output_all(arguments: _Args) -> _Args:
    return [argument if argument.is_string else _output(argument) for argument in arguments]


def _output(value: exp.Expr) -> exp.Expr:
    if _is_text(value):
        return value  # the macro would repeat it 40 times, so that DuckDB plans nested calls for seconds
    return ours("quotient_text" if type_of_part(value) == QUOTIENT else "text_out", value)


def _is_text(spelled: exp.Expr) -> bool:
    """Return whether a call in DuckDB's spelling, perhaps within TRY, is one of a function that returns a text."""
    call = spelled.unnest()
    is_ours = isinstance(call, exp.Dot)
    call = call.expression if is_ours else call
    if not isinstance(call, exp.Anonymous):
        return False
    name = call.name.lower()
    if name == "try":
        return _is_text(call.expressions[0])
    function = FUNCTIONS.get(name)  # DuckDB's own encode() makes a blob
    if function is None or function.result != VARCHAR:
        return False
    return name in ("concat", "concat_ws") or is_ours == (function.duckdb == OURS)


def _path(arguments: _Args) -> exp.Expr:
    """Return the keys of a jsonb path, the second argument."""
    return _texts(arguments[1])


def _texts(array: exp.Expr) -> exp.Expr:
    """Return an array of texts, given as `'{a,b}'` or an array."""
    items = array_items(array)
    if items is None:
        return exp.cast(array, "VARCHAR[]", dialect="duckdb")
    texts = exp.Array(expressions=[exp.null() if item is None else exp.Literal.string(item) for item in items])
    return exp.cast(texts, "VARCHAR[]", dialect="duckdb")


def _object_of_texts(name: str, arguments: _Args) -> exp.Expr:
    """Return an object of texts: keys and values in turn, in pairs, or in two arrays. Raises Error 2202E."""
    sizes = [type_.dimensions if (type_ := type_of_part(argument)) is not None else 1 for argument in arguments]
    if sizes == [2]:
        return ours(f"{name}_of_pairs", exp.cast(arguments[0], "VARCHAR[][]", dialect="duckdb"))
    if max(sizes) > 1:
        raise Error("wrong number of array subscripts", errors.ARRAY_SUBSCRIPT_ERROR)
    return ours(name, *map(_texts, arguments))


def _document(argument: exp.Expr) -> exp.Expr:
    """Return a jsonb argument, which may be given as text."""
    return duckdb_call("json", argument) if argument.is_string else argument


def _read(name: str) -> Callable[[_Args], exp.Expr]:
    """Return a function of json by that of jsonb, which takes the same arguments."""
    return lambda arguments: ours(name, document(arguments[0]), *arguments[1:])


def _part(name: str) -> Callable[[_Args], exp.Expr]:
    """Return a function of json that gives json, by that of jsonb."""
    return lambda arguments: of_jsonb(_BUILDERS[name]([document(arguments[0]), *arguments[1:]]))


def _parts(name: str) -> Callable[[_Args], exp.Expr]:
    """Return a function of json that gives an array of json, by that of jsonb."""
    return lambda arguments: of_each(ours(name, document(arguments[0])), of_jsonb(exp.column(ELEMENT)))


def _with_document(name: str) -> Callable[[_Args], exp.Expr]:
    """Return a function of a document, a path in it and a new document for this path."""
    return lambda arguments: ours(
        name, _document(arguments[0]), _path(arguments), *map(_document, arguments[2:3]), *arguments[3:]
    )


_OF_DOCUMENTS = (
    "jsonb_pretty", "jsonb_strip_nulls", "jsonb_elements", "jsonb_element_texts", "jsonb_keys",
    "jsonb_record", "jsonb_records",
)  # fmt: skip


def _of_document(name: str, count: int | None = None) -> Callable[[_Args], exp.Expr]:
    """Return a function of a document and the first `count` arguments."""
    return lambda arguments: ours(name, _document(arguments[0]), *arguments[1:count])


def _as_jsonb(argument: exp.Expr) -> exp.Expr:
    return document(argument) if type_of_part(argument) == JSON else argument


def _at_path(arguments: _Args) -> exp.Expr:
    made = ours("json_at", _as_jsonb(arguments[0]), _path(arguments))
    return of_jsonb(made) if type_of_part(arguments[0]) == JSON else made


def _are_null(arguments: _Args) -> exp.Expr:
    return exp.Array(expressions=[exp.paren(exp.Is(this=part, expression=exp.null())) for part in arguments])


def _keys(arguments: _Args) -> exp.Expr:
    return exp.cast(exp.Array(expressions=arguments[1:]), "VARCHAR[]", dialect="duckdb")


def _groups(pattern: exp.Expr) -> int:
    """Return the number of groups in a constant pattern, because DuckDB wants their numbers as constants."""
    try:
        return re.compile(pattern.name).groups if pattern.is_string else 0
    except re.error:  # DuckDB's error is the one that is told
        return 0


def _group_or_null(found: exp.Expr, pattern: exp.Expr, number: int) -> exp.Expr:
    """Return a group that has been found, or NULL where it took no part: DuckDB finds an empty text there.

    Where the group itself may match an empty text it stays one.
    """
    least, _ = _parser.parse(pattern.name).state.groupwidths[number]
    return exp.Nullif(this=found, expression=exp.Literal.string("")) if least else found


# The number of groups assumed for a pattern that is not a constant.
_MOST_GROUPS = 9


def _regexp_substr(arguments: _Args) -> exp.Expr:
    """Return regexp_substr of a text, a pattern, a place to start at, the number of the match, flags and a group."""
    text, pattern = arguments[:2]
    if len(arguments) > 2:
        return _nth_match(*arguments)
    group = exp.Literal.number(min(1, _groups(pattern)))
    found = duckdb_call("regexp_extract", text, pattern, group, exp.Literal.string("s"))
    return exp.Case().when(duckdb_call("regexp_matches", text.copy(), pattern.copy(), exp.Literal.string("s")), found)


def _nth_match(
    text: exp.Expr,
    pattern: exp.Expr,
    start: exp.Expr,
    number: exp.Expr | None = None,
    flags: exp.Expr | None = None,
    group: exp.Expr | None = None,
) -> exp.Expr:
    number, group = number or exp.Literal.number(1), group or exp.Literal.number(0)
    if not group.unnest().is_int or (flags is not None and not flags.unnest().is_string):
        message = "regexp_substr with flags or a group that are not constants is not supported"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED)
    options = exp.Literal.string("s" + (flags.unnest().name if flags is not None else ""))
    if pattern.is_string and int(group.unnest().name) > _groups(pattern):
        return exp.cast(exp.null(), exp.DType.TEXT)
    found = duckdb_call("regexp_extract_all", ours("_rest", text, start), pattern, group.unnest(), options)
    return duckdb_call("list_extract", found, ours("_match_number", number))


def _regexp_replace(arguments: _Args) -> exp.Expr:
    """Return regexp_replace, with flags or with a place to start at, the number of the match and flags."""
    if len(arguments) < 4 or (len(arguments) == 4 and not _is_place(arguments[3])):
        return ours("regexp_replace", *arguments)
    text, pattern, replacement, start, *rest = arguments
    number = rest[0].unnest() if rest else exp.Literal.number(1)
    if not number.is_int or not all(flags.is_string for flags in rest[1:]):
        message = "regexp_replace with the number of a match or flags that are not constants is not supported"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED)
    if (count := number.to_py()) < 0:
        raise Error(f'invalid value for parameter "n": {count}', errors.INVALID_PARAMETER_VALUE)
    options = (rest[1].name if len(rest) > 1 else "").replace("g", "") + ("g" if count == 0 else "")
    behind = ours("_rest", text, start)
    if count > 1:
        replacement = _shifted_groups(replacement)
        pattern = _from_start(pattern, count)
    replaced = ours("regexp_replace", behind, pattern, replacement, exp.Literal.string(options))
    return ours("_behind_start", text.copy(), start.copy(), replaced)


_MOST_MATCHES, _LAST_GROUP = 1000, 9  # of RE2


def _from_start(pattern: exp.Expr, number: int) -> exp.Expr:
    """Return a pattern of a text up to a match by its number: what is before it, and the match, in two groups.

    Raises Error 0A000 for a pattern that is no constant, or that an empty text matches, which is not counted so.
    """
    if not pattern.is_string or number > _MOST_MATCHES or _least_width(pattern.name) == 0:
        message = "a match by its number of a pattern that is not a constant or matches an empty text is not supported"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED)
    before = f"(?:.*?(?:{without_groups(pattern.name)})){{{number - 1}}}" if number > 1 else ""
    return exp.Literal.string(f"^({before}.*?)({pattern.name})")


def _least_width(pattern: str) -> int:
    """Return the fewest characters of a match, 0 where it is not known."""
    try:
        return int(_parser.parse(pattern).getwidth()[0])
    except (re.error, OverflowError):
        return 0


def _shifted_groups(replacement: exp.Expr) -> exp.Expr:
    """Return a constant replacement of a match behind two groups. Raises Error 0A000."""
    if not replacement.is_string:
        message = "a replacement of a match by its number that is not a constant is not supported"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED)

    def shifted(match: re.Match[str]) -> str:
        group = 0 if match[1] == "&" else int(match[1]) if match[1].isdigit() else None
        if group is not None and group + 2 > _LAST_GROUP:
            raise Error("more than 7 groups in a replacement are not supported", errors.FEATURE_NOT_SUPPORTED)
        return f"\\{group + 2}" if group is not None else match[0]

    return exp.Literal.string("\\1" + re.sub(r"\\(.)", shifted, replacement.name, flags=re.DOTALL))


def _regexp_instr(arguments: _Args) -> exp.Expr:
    """Return regexp_instr: the place of a match, or of the character behind it. Raises Error 0A000 for a group's."""
    defaults = [exp.Literal.number(1), exp.Literal.number(1), exp.Literal.number(0), exp.Literal.string("")]
    given = [*arguments, *defaults[max(len(arguments) - 2, 0) :]]
    (text, pattern, start, number, end, flags), group = given[:6], given[6:]
    number, flags = number.unnest(), flags.unnest()
    one = group[0].unnest() if group else exp.Literal.number(0)
    if not number.is_int or not flags.is_string or not one.is_int or one.to_py() > 0:
        message = "regexp_instr of a group, or with a number or flags that are not constants, is not supported"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED)
    for name, value, least in (("n", number, 1), ("subexpr", one, 0)):
        if value.to_py() < least:
            message = f'invalid value for parameter "{name}": {value.to_py()}'
            raise Error(message, errors.INVALID_PARAMETER_VALUE)
    options = exp.Literal.string("s" + flags.name)
    rest = ours("_rest", text, start)
    if number.to_py() == 1 and (not pattern.is_string or _least_width(pattern.name) == 0):
        joined: exp.Expr = exp.DPipe(this=exp.Literal.string("^(.*?)("), expression=pattern.copy())
        whole: exp.Expr = exp.paren(exp.DPipe(this=joined, expression=exp.Literal.string(")")))
    else:
        whole = _from_start(pattern, number.to_py())
    found = [duckdb_call("regexp_extract", rest.copy(), whole.copy(), exp.Literal.number(n), options) for n in (1, 2)]
    is_found = duckdb_call("regexp_matches", rest, whole, options)
    return ours("_place_of", is_found, *found, text.copy(), start.copy(), end)


def _is_place(argument: exp.Expr) -> bool:
    """Return whether an argument is a number and no text of flags."""
    type_ = type_of_part(argument)
    value = argument.unnest()
    return value.is_int or (type_ is not None and type_.is_integer)


def _is_null(argument: exp.Expr) -> bool:
    value = argument.unnest()
    return isinstance(value.this if isinstance(value, exp.Cast) else value, exp.Null)


def _is_null_text(side: exp.Expr) -> bool:
    """Return whether a text is NULL whatever the rows are."""
    value = side.unnest()
    while isinstance(value, exp.Cast) and value.to.is_type(*exp.DataType.TEXT_TYPES):
        value = value.this.unnest()
    if isinstance(value, exp.DPipe):
        return _is_null_text(value.this) or _is_null_text(value.expression)
    return isinstance(value, exp.Null)


def _regexp_match(arguments: _Args) -> exp.Expr:
    if any(map(_is_null, arguments)):
        return exp.cast(exp.null(), "VARCHAR[]", dialect="duckdb")
    text, pattern = arguments[:2]
    if len(arguments) > 2 and not arguments[2].is_string:
        raise Error("regexp_match with flags that are not a constant is not supported", errors.FEATURE_NOT_SUPPORTED)
    flags = exp.Literal.string("s" + (arguments[2].name if len(arguments) > 2 else ""))
    count = _groups(pattern) if pattern.is_string else _MOST_GROUPS
    groups: _Args = [
        duckdb_call("regexp_extract", text.copy(), pattern.copy(), exp.Literal.number(number), flags.copy())
        for number in range(count + 1)
    ]
    made: exp.Expr = exp.Array(expressions=groups)
    if pattern.is_string and count:
        found = [_group_or_null(group, pattern, number) for number, group in enumerate(groups) if number]
        made = exp.Array(expressions=found)
    elif not pattern.is_string:
        made = ours("regexp_groups", exp.Array(expressions=groups), pattern.copy())
    return exp.Case().when(duckdb_call("regexp_matches", text, pattern, flags), made)


def _regexp_all_matches(arguments: _Args) -> exp.Expr:
    """Return the groups of each match, or of the first one without the flag g: an array of arrays."""
    if any(map(_is_null, arguments)):
        return exp.cast(exp.null(), "VARCHAR[][]", dialect="duckdb")
    text, pattern = arguments[:2]
    if not pattern.is_string or not all(flag.is_string for flag in arguments[2:]):
        message = "regexp_matches with a pattern or flags that are not constants is not supported"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED)
    flags = arguments[2].name if len(arguments) > 2 else ""
    options, count = exp.Literal.string("s" + flags.replace("g", "")), _groups(pattern)
    groups = [
        duckdb_call("regexp_extract_all", text.copy(), pattern.copy(), exp.Literal.number(number), options.copy())
        for number in (range(1, count + 1) if count else (0,))
    ]
    is_all = exp.true() if "g" in flags else exp.false()
    return ours("side_by_side", exp.Array(expressions=groups), is_all)


def _array_transform(arguments: _Args) -> exp.Expr:
    array, function = arguments
    if not isinstance(function, ElementLambda) or len(function.parameters) != 1:
        raise undefined("array_transform", arguments)
    return duckdb_call("list_transform", array, exp.Lambda(this=function.this, expressions=function.expressions))


def _pg_typeof(arguments: _Args) -> exp.Expr:
    type_ = type_of_part(arguments[0])
    if type_ is not None and type_.name == "map":
        return exp.Literal.string(str(type_))
    return ours("pg_typeof", exp.null() if arguments[0].is_string else arguments[0])


def _of_numerics(name: str) -> Callable[[_Args], exp.Expr]:
    """Return a function of integers that is another one for numerics."""

    def build(arguments: _Args) -> exp.Expr:
        type_ = common(tuple(map(type_of_part, arguments)))
        if type_ is None or type_.name != "numeric":
            return ours(name, *arguments)
        return exp.cast(ours(f"{name}_of_numerics", *arguments), data_type(type_))

    return build


def _cardinality(arguments: _Args) -> exp.Expr:
    """Return the number of elements of an array, of all dimensions."""
    array = arguments[0]
    for _ in range(1, _dimensions(array) or 1):
        array = duckdb_call("flatten", array)
    return ours("cardinality", array)


def _array_to_string(arguments: _Args) -> exp.Expr:
    is_fixed = isinstance(arguments[1].unnest(), exp.Literal | exp.Null | exp.Parameter | exp.Cast)
    return ours("array_to_string" if is_fixed else "array_to_string_by", *arguments)


def _substring(arguments: _Args) -> exp.Expr:
    """Return substring by a place and length, by a regular expression, or by SQL's regular expression and an escape."""
    if not any(argument.is_string or type_of_part(argument) == VARCHAR for argument in arguments[1:]):
        return ours("substring", *arguments)
    if len(arguments) == 2:
        if in_python("regexp_substr", arguments) is not None:
            return called("substring", arguments)
        return _regexp_substr(with_escapes("regexp_substr", arguments))
    pattern, escape = (argument.name if argument.is_string else "" for argument in arguments[1:])
    if "|" in pattern and escape and f'{escape}"' in pattern:  # in a view it would be NULL
        message = "alternatives beside escape-double-quote separators are not supported"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED)
    return ours("substring_similar", *arguments)


_QUOTED = {"I": "identifier", "L": "quote_nullable"}
# Formats with widths that are arguments, or with an argument 0.
_BY_ARGUMENTS = re.compile(r"%(?:(?:\d+\$)?-?\*|0+\$)")


def _format(arguments: _Args) -> exp.Expr:
    """Return `format('%s and %2$-10I', a, b)` for a constant format, in PostgreSQL's form (documentation 9.4.1).

    Raises Error 22023 for a wrong format or too few arguments.
    """
    template, values = arguments[0], arguments[1:]
    if not template.is_string or _BY_ARGUMENTS.search(template.name):
        texts = exp.Array(expressions=_output_all(values))
        return ours("format_of", template, exp.cast(texts, "VARCHAR[]", dialect="duckdb"))
    parts: _Args = []
    place = end = 0
    for found in _SPECIFIER.finditer(template.name):
        position, is_left, width, kind = found.groups()
        parts.append(exp.Literal.string(template.name[end : found.start()]))
        end = found.end()
        if kind == "%":
            parts.append(exp.Literal.string("%"))
            continue
        if kind not in ("s", "I", "L"):
            raise _wrong_specifier(kind)
        place = int(position) if position else place + 1
        if not 0 < place <= len(values):
            raise Error("too few arguments for format()", errors.INVALID_PARAMETER_VALUE)
        value = values[place - 1].copy()
        text = _output(value) if kind == "s" else ours(_QUOTED[kind], value)
        count = int(width) * (-1 if is_left else 1) if width else 0
        parts.append(ours("padded", text, exp.Literal.number(count)) if count else text)
    parts.append(exp.Literal.string(template.name[end:]))
    return duckdb_call("concat", *parts)


def _format_of(arguments: _Args) -> exp.Expr:
    """Return format of the elements of an array."""
    template, array = arguments
    type_ = type_of_part(array)
    element = exp.column(ELEMENT)
    element.type = data_type(type_.element) if type_ is not None else None
    return ours("format_of", template, of_each(array, _output(element)))


_SPECIFIER = re.compile(r"%(?:(\d+)\$)?(-)?(\d+|\*(?:\d+\$)?)?(.|$)", re.DOTALL)


def _wrong_specifier(kind: str) -> Error:
    what = f'unrecognized format() type specifier "{kind}"' if kind else "unterminated format() type specifier"
    return Error(what, errors.INVALID_PARAMETER_VALUE, hint='For a single "%" use "%%".')


def _to_jsonb(arguments: _Args) -> exp.Expr:
    """Return to_jsonb of one value. Raises Error 42883 for json's pretty printing, since jsonb has one form."""
    if len(arguments) != 1:
        raise Error("function to_jsonb with more than one argument does not exist", errors.UNDEFINED_FUNCTION)
    return duckdb_call("to_json", in_document(arguments[0]))


def _contains(container: exp.Expr, contained: exp.Expr) -> exp.Expr:
    """Return `@>` of jsonb or of arrays."""
    found = contains(container, contained, type_of_part(container))
    return found if found is not None else ours("array_contains", container, contained)


def _to_char(arguments: _Args) -> exp.Expr:
    """Return to_char, made of DuckDB's functions for constant patterns that have them."""
    value, pattern = arguments
    type_ = type_of_part(value)
    is_moment = type_ in (DATE, TIMESTAMP, TIMESTAMPTZ, INTERVAL, TIME)
    if type_ is not None and (type_.dimensions or not (type_.is_numeric or is_moment)):
        raise undefined("to_char", arguments)
    is_number = type_.is_numeric if type_ is not None else pattern.is_string and is_number_format(pattern.name)
    if pattern.is_string and (is_number or is_plain(pattern)):
        try:
            return _number_chars(value, pattern) if is_number else _moment_chars(value, pattern)
        except Error as error:
            if error.sqlstate != errors.FEATURE_NOT_SUPPORTED:
                raise
    return ours("chars", value, pattern)


def _number_chars(value: exp.Expr, pattern: exp.Expr) -> exp.Expr:
    if type_of_part(value) == QUOTIENT:
        return worked_out_once(value, lambda number: number_text(number, pattern, is_quotient=True))
    return number_text(value, pattern)


def _moment_chars(value: exp.Expr, pattern: exp.Expr) -> exp.Expr:
    type_ = type_of_part(value)
    if type_ in (INTERVAL, TIME):
        return interval_chars(value if type_ == INTERVAL else ours("interval_of_time", value), pattern)
    return (
        ours("day_as_text", value)
        if pattern.name == "YYYY-MM-DD" and type_ is not None
        else moment_text(value, pattern)
    )


def _to_number(arguments: _Args) -> exp.Expr:
    try:
        return number_read(*arguments)
    except Error as error:
        if error.sqlstate != errors.FEATURE_NOT_SUPPORTED:
            raise
    return ours("number_of", *arguments)


def _to_date(arguments: _Args) -> exp.Expr:
    return _read_by("date_of", arguments, DATE)


def _to_timestamp(arguments: _Args) -> exp.Expr:
    return ours("to_timestamp", *arguments) if len(arguments) == 1 else _read_by("moment_of", arguments, TIMESTAMPTZ)


def _read_by(name: str, arguments: _Args, type_: Type) -> exp.Expr:
    """Return the time that a text says by a pattern: what DuckDB reads is read by it, which takes less time."""
    text, pattern = arguments
    made = ours(name, text, pattern)
    if not pattern.is_string or not is_read_alike(pattern):
        return made
    read = exp.cast(duckdb_call("try_strptime", text.copy(), strftime_format(pattern)), data_type(type_))
    return exp.Coalesce(this=read, expressions=[made])


def _jsonb_build_object(arguments: _Args) -> exp.Expr:
    if len(arguments) % 2:
        hint = "The arguments of jsonb_build_object() must consist of alternating keys and values."
        raise Error("argument list must have even number of elements", errors.INVALID_PARAMETER_VALUE, hint=hint)
    parts: _Args = []
    for place, argument in enumerate(arguments):
        is_key = place % 2 == 0 and not argument.is_string
        type_ = type_of_part(argument)
        if is_key and type_ is not None and (type_.dimensions or type_.fields or type_ in (JSON, JSONB)):
            message = "key value must be scalar, not array, composite, or json"
            raise Error(message, errors.INVALID_PARAMETER_VALUE)
        if is_key:
            parts.append(ours("json_key", argument, exp.Literal.number(place + 1)))
        else:
            parts.append(in_document(argument) if place % 2 else argument)
    return duckdb_call("json_object", *_in_order(parts))


def _in_order(parts: _Args) -> _Args:
    """Return keys and values in the order of the keys' bytes, each key once, where all keys are constants."""
    if not all(key.is_string for key in parts[::2]):
        return parts
    values = {key.name.encode(): (key, value) for key, value in zip(parts[::2], parts[1::2], strict=True)}
    return [part for key in sorted(values) for part in values[key]]


def _of_bytes(name: str) -> Callable[[_Args], exp.Expr]:
    """Return a function of bytes, which may be given as text."""

    def of(value: exp.Expr) -> exp.Expr:
        if isinstance(value, exp.Null):
            return exp.cast(exp.null(), data_type(BYTEA))
        return bytea(value) if value.is_string else value

    return lambda arguments: ours(name, of(arguments[0]), *arguments[1:])


def _make_interval(arguments: _Args) -> exp.Expr:
    """Return make_interval; omitted arguments are zero."""
    zeros = [exp.Literal.number(0) for _ in range(7 - len(arguments))]
    return ours("make_interval", *arguments, *zeros)


def _make_timestamptz(arguments: _Args) -> exp.Expr:
    """Return make_timestamptz in the session's time zone, or in a given one."""
    moment, zone = ours("make_timestamp", *arguments[:6]), arguments[6:]
    if zone:
        return exp.AtTimeZone(this=moment, zone=ours("zone", *zone))
    return exp.cast(moment, "TIMESTAMPTZ", dialect="duckdb")


def _overlaps(arguments: _Args) -> exp.Expr:
    """Return OVERLAPS of two spans; a span is given as its two ends, or one end and its length."""
    ends = [
        exp.Add(this=arguments[place - 1].copy(), expression=argument) if _is_length(argument) else argument
        for place, argument in enumerate(arguments)
    ]
    return ours("overlaps", *ends)


def _is_length(argument: exp.Expr) -> bool:
    return type_of_part(argument) == INTERVAL


def _hmac(arguments: _Args) -> exp.Expr:
    """Return hmac of bytes, as in RisingWave. Raises Error 42883 for a text: pgcrypto's takes the secret last."""
    secret, content, name = arguments
    if not content.is_string and type_of_part(content) not in (None, BYTEA):
        raise undefined("hmac", arguments)
    return ours("hmac", secret, bytea(content) if content.is_string else content, name)


def _enciphered(name: str, places: tuple[int, ...]) -> Callable[[_Args], exp.Expr]:
    """Return a function of pgcrypto with bytes at some places. Raises Error 42883 for arguments of other types."""

    def build(arguments: _Args) -> exp.Expr:
        wanted = [BYTEA if place in places else VARCHAR for place in range(len(arguments))]
        for argument, type_ in zip(arguments, wanted, strict=True):
            if not argument.is_string and type_of_part(argument) not in (None, type_):
                raise undefined(name, arguments)
        given = zip(arguments, wanted, strict=True)
        return ours(name, *(bytea(part) if type_ == BYTEA and part.is_string else part for part, type_ in given))

    return build


def _is_json(arguments: _Args) -> exp.Expr:
    """Return IS JSON of a text, or of what is json. Raises Error 42804 for other types."""
    type_ = type_of_part(arguments[0])
    if type_ is not None and (type_.dimensions or not (type_.is_text or type_ in (JSON, JSONB, BYTEA))):
        message = f"cannot use type {type_.without_digits} in IS JSON predicate"
        raise Error(message, errors.DATATYPE_MISMATCH, position=position_of(arguments[0]))
    text = ours("convert_from", arguments[0], exp.Literal.string("UTF8")) if type_ == BYTEA else arguments[0]
    return ours("is_json", exp.cast(text, "VARCHAR", dialect="duckdb"), arguments[1])


def _normalize(arguments: _Args) -> exp.Expr:
    """Return normalize of a text with a normalization form, a keyword. Raises Error 42601."""
    form = arguments[1].name.upper() if len(arguments) > 1 else "NFC"
    if form not in NORMAL_FORMS:
        raise Error(f'syntax error at or near "{arguments[1].name}"', errors.SYNTAX_ERROR)
    return ours("normalize", arguments[0], *([exp.Literal.string(form)] if form != "NFC" else []))


_CIPHERS = ("encrypt", "decrypt", "encrypt_iv", "decrypt_iv")
_MESSAGES = ("pgp_sym_encrypt", "pgp_sym_encrypt_bytea", "pgp_sym_decrypt", "pgp_sym_decrypt_bytea")
_BUILDERS: dict[str, Callable[[_Args], exp.Expr]] = {
    "array_cat": _array_cat,
    "cardinality": _cardinality,
    "array_to_string": _array_to_string,
    "array_transform": _array_transform,
    **map_functions(_spell),
    "concat": lambda arguments: duckdb_call("concat", *_output_all(arguments)),
    "concat_ws": lambda arguments: duckdb_call("concat_ws", arguments[0], *_output_all(arguments[1:])),
    "convert": encodings.convert,
    "convert_from": encodings.convert_from,
    "convert_to": encodings.convert_to,
    "div": lambda arguments: ours("div_quotients" if QUOTIENT in map(type_of_part, arguments) else "div", *arguments),
    "format": _format,
    "format_of": _format_of,
    "substring": _substring,
    "regexp_substr": _regexp_substr,
    "regexp_replace": _regexp_replace,
    "regexp_instr": _regexp_instr,
    **{name: _of_numerics(name) for name in ("gcd", "lcm")},
    "is_normalized": lambda arguments: ours("is_normalized", *arguments),
    "is_json": _is_json,
    "hmac": _hmac,
    **{name: _enciphered(name, (0, 1, 2)[: 3 if name.endswith("_iv") else 2]) for name in _CIPHERS},
    **{name: _enciphered(name, () if name == "pgp_sym_encrypt" else (0,)) for name in _MESSAGES},
    "regexp_match": _regexp_match,
    AS_NUMERIC: _real_as_numeric,
    "regexp_all_matches": _regexp_all_matches,
    **{name: _with_document(name) for name in ("jsonb_set", "jsonb_set_lax", "jsonb_insert")},
    "jsonb_without_path": lambda arguments: ours("jsonb_without_path", _document(arguments[0]), _path(arguments)),
    **{name: _of_document(name) for name in _OF_DOCUMENTS},
    **{name: _of_document(name, 1) for name in ("jsonb_values", "jsonb_value_texts")},
    "json_object": lambda arguments: ours("json_from_lake", _object_of_texts("json_object", arguments)),
    "jsonb_object": lambda arguments: _object_of_texts("jsonb_object", arguments),
    "normalize": _normalize,
    **{name: _of_bytes(name) for name in ("get_byte", "set_byte", "get_bit", "set_bit", "bit_count", "int8recv")},
    "justify_intervals": lambda arguments: justified(arguments[0]),
    "make_interval": _make_interval,
    "make_timestamptz": _make_timestamptz,
    "overlaps": _overlaps,
    "zip_arrays": rows_of_arrays,
    "zip_pairs": lambda arguments: rows_of_arrays(arguments, PAIR),
    "extract": units.extract,
    "date_part": units.date_part,
    "date_trunc": units.date_trunc,
    "num_nulls": lambda arguments: ours("_null_count", _are_null(arguments), exp.true()),
    "num_nonnulls": lambda arguments: ours("_null_count", _are_null(arguments), exp.false()),
    "pg_typeof": _pg_typeof,
    "to_char": _to_char,
    "to_jsonb": _to_jsonb,
    "jsonb_build_array": lambda arguments: duckdb_call("json_array", *map(in_document, arguments)),
    "jsonb_build_object": _jsonb_build_object,
    "array_contains": lambda arguments: _contains(arguments[0], arguments[1]),
    "array_contained": lambda arguments: _contains(arguments[1], arguments[0]),
    "jsonb_exists_any": lambda arguments: ours("jsonb_exists_any", arguments[0], _path(arguments)),
    "jsonb_exists_all": lambda arguments: ours("jsonb_exists_all", arguments[0], _path(arguments)),
    **{
        f"json_{name}": _read(f"jsonb_{name}")
        for name in ("typeof", "array_length", "element_texts", "keys", "record", "records")
    },
    "json_value_texts": lambda arguments: ours("jsonb_value_texts", document(arguments[0])),
    "json_extract_path": _part("jsonb_extract_path"),
    "json_extract_path_text": lambda arguments: ours("json_text_at", document(arguments[0]), _keys(arguments)),
    "json_strip_nulls": _part("jsonb_strip_nulls"),
    "json_elements": _parts("jsonb_elements"),
    "json_values": _parts("jsonb_values"),
    "to_json": to_json,
    "json_build_array": json_array,
    "json_build_object": json_object,
    "json_of_items": json_of_items,
    "json_field": json_field,
    "to_date": _to_date,
    "to_number": _to_number,
    "to_timestamp": _to_timestamp,
    "json_at": _at_path,
    "json_text_at": lambda arguments: ours("json_text_at", _as_jsonb(arguments[0]), _path(arguments)),
    "jsonb_extract_path": lambda arguments: ours("json_at", arguments[0], _keys(arguments)),
    "jsonb_extract_path_text": lambda arguments: ours("json_text_at", arguments[0], _keys(arguments)),
}
