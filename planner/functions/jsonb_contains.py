"""jsonb's `@>` with a constant, unrolled, because DuckDB's macros cannot recurse (PostgreSQL documentation 8.14.3).

An object contains another's keys with values that contain theirs; an array contains another's elements, each in one of
its own elements; a scalar is equal. Only at the top an array contains a scalar.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from functools import partial

from sqlglot import exp

from sparkwave.catalog.types import JSONB, Type
from sparkwave.planner.functions.scalar_functions import duckdb_call, ours
from sparkwave.planner.functions.typed import type_of_part
from sparkwave.planner.parse.json_texts import check_json
from sparkwave.planner.parse.trees import at

# The digits that DECIMAL(38,10) holds exactly.
_WHOLE_DIGITS, _FRACTION_DIGITS = 28, 10
_NUMBERS = ("BIGINT", "UBIGINT", "HUGEINT", "UHUGEINT", "DOUBLE")


def contains(container: exp.Expr, contained: exp.Expr, type_: Type | None) -> exp.Expr | None:
    """Return `container @> contained` over jsonb; None when it is over arrays. `type_` is the container's, if known.

    Where the contained value is not a constant, a function in Python tells. Raises Error 22P02.
    """
    text = _constant(contained)
    is_json = type_ == JSONB or _is_json(contained) or _is_json(container)
    if text is None and is_json:
        return ours("jsonb_contains", container, contained)
    if text is None or (type_ is not None and type_ != JSONB):
        return None
    try:
        value = json.loads(text, parse_float=Decimal, parse_int=Decimal)
    except ValueError:
        if is_json:
            with at(contained):
                check_json(text, is_read=True)
        return None
    found = exp.func("coalesce", _contains(container, value, is_top=True), exp.false())
    answer = exp.Case().when(exp.Not(this=exp.Is(this=container.copy(), expression=exp.null())), found)
    if value or is_json:
        return answer
    # '{}' is also an empty array: the value decides.
    is_document = exp.EQ(this=duckdb_call("typeof", container.copy()), expression=exp.Literal.string("JSON"))
    empty = exp.cast(exp.Array(expressions=[]), "VARCHAR[]", dialect="duckdb")
    as_array = ours("array_contains", exp.cast(container.copy(), "VARCHAR[]", dialect="duckdb"), empty)
    return exp.Case().when(is_document, answer).else_(as_array)


def _constant(node: exp.Expr) -> str | None:
    """Return the text of a string constant, also one cast to jsonb; else None."""
    inner = node.unnest()
    while isinstance(inner, exp.Cast) or (isinstance(inner, exp.Anonymous) and inner.name in ("json", "try")):
        inner = (inner.this if isinstance(inner, exp.Cast) else inner.expressions[0]).unnest()
    return inner.name if inner.is_string else None


def _is_json(node: exp.Expr) -> bool:
    """Return whether a node is visibly jsonb; text such as '{"a": 1}' is no array."""
    inner = node.unnest()
    is_cast = isinstance(inner, exp.Cast) and inner.to.is_type(exp.DataType.Type.JSON, exp.DataType.Type.JSONB)
    return is_cast or type_of_part(inner) == JSONB or (inner.is_string and '":' in inner.name.replace(" ", ""))


def _contains(document: exp.Expr, value: object, is_top: bool = False) -> exp.Expr:
    """Return the condition; NULL, for missing parts, counts as false."""
    if isinstance(value, dict):
        pairs = (
            _contains(duckdb_call("json_extract", document.copy(), _pointer(key)), part) for key, part in value.items()
        )
        return exp.and_(_is_of(document, "OBJECT"), *pairs, copy=False)
    if isinstance(value, list):
        each = (_some(document, partial(_contains, value=part)) for part in value)
        return exp.and_(_is_of(document, "ARRAY"), *each, copy=False)
    if not is_top:
        return _equals(document, value)
    inside = _some(document, partial(_equals, value=value))
    return exp.or_(_equals(document, value), exp.and_(_is_of(document, "ARRAY"), inside, copy=False), copy=False)


def _some(array: exp.Expr, condition: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    depth = sum(1 for _ in array.find_all(exp.Anonymous))  # a name that no enclosing element has
    name = f"_element{depth}"
    elements = duckdb_call("json_extract", array.copy(), exp.Literal.string("$[*]"))
    test = exp.Lambda(this=condition(exp.column(name)), expressions=[exp.to_identifier(name)])
    return exp.GT(this=duckdb_call("len", duckdb_call("list_filter", elements, test)), expression=exp.Literal.number(0))


def _equals(document: exp.Expr, value: object) -> exp.Expr:
    if value is None:
        return _is_of(document, "NULL")
    if isinstance(value, bool):
        written = exp.cast(document.copy(), "VARCHAR")
        same = exp.EQ(this=written, expression=exp.Literal.string(str(value).lower()))
        return exp.and_(_is_of(document, "BOOLEAN"), same, copy=False)
    if isinstance(value, Decimal):
        return exp.and_(_is_of(document, *_NUMBERS), *_same_number(document, value), copy=False)
    text = duckdb_call("json_extract_string", document.copy(), exp.Literal.string("$"))
    same = exp.EQ(this=text, expression=exp.Literal.string(str(value)))
    return exp.and_(_is_of(document, "VARCHAR"), same, copy=False)


def _same_number(document: exp.Expr, value: Decimal) -> list[exp.Expr]:
    """Return comparisons as floats, and as decimals if they hold the constant.

    Integers beyond 2^53 are not exact floats.
    """
    kinds = ["DOUBLE"]
    if value.adjusted() < _WHOLE_DIGITS and -int(value.normalize().as_tuple().exponent) <= _FRACTION_DIGITS:
        kinds.append("DECIMAL(38, 10)")
    made: list[exp.Expr] = []
    for kind in kinds:
        to = exp.DataType.build(kind, dialect="duckdb")
        own, other = (
            exp.TryCast(this=side, to=to.copy()) for side in (document.copy(), exp.Literal.string(str(value)))
        )
        made.append(exp.EQ(this=own, expression=other))
    return made


def _is_of(document: exp.Expr, *kinds: str) -> exp.Expr:
    return exp.In(
        this=duckdb_call("json_type", document.copy()), expressions=[exp.Literal.string(kind) for kind in kinds]
    )


def _pointer(key: str) -> exp.Expr:
    return exp.Literal.string("/" + key.replace("~", "~0").replace("/", "~1"))
