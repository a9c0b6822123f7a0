"""Reads operators, and calls with a grammar of their own, as calls of functions; types all of them.

`as_call` returns the function that a node calls; `result_type` the type of a node, given those of its parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.optimizer.annotate_types import TypeAnnotator, annotate_types

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    INTEGER,
    INTERVAL,
    JSONB,
    NUMERIC,
    QUOTIENT,
    SMALLINT,
    TIMESTAMP,
    TIMESTAMPTZ,
    VARCHAR,
    Type,
)
from sparkwave.planner.functions import aggregates
from sparkwave.planner.functions.aggregates import TYPED_HERE, is_aggregate
from sparkwave.planner.functions.digits import OF_TEN_PLACES, type_of_numerics
from sparkwave.planner.functions.map_types import value_of_map
from sparkwave.planner.functions.python_call import PythonCall, result_of
from sparkwave.planner.functions.result_types import (
    Known,
    addition,
    arithmetic,
    array_type,
    common,
    computed,
    concatenation,
    division,
    field_place,
    first,
    is_numeric,
    keeps_digits,
    multiplication,
    part_of_document,
)
from sparkwave.planner.functions.scalar_functions import ALIASES, FUNCTIONS, OF_JSONB, ROUNDINGS, Rule
from sparkwave.planner.functions.typed import data_type, sql_type, type_of_part
from sparkwave.planner.functions.written_json import IS_OF_JSONB
from sparkwave.planner.parse.constant_runs import ConstantRun
from sparkwave.planner.parse.lambdas import ElementLambda
from sparkwave.planner.parse.long_numbers import fitted_text
from sparkwave.planner.parse.trees import position_of
from sparkwave.planner.since import EXACT_ROUNDS, TYPED_SERIES, is_since

Call = tuple[str, list[exp.Expr]]

# Marks a quotient with the scale of its dividend, as before `since.EXACT_NUMERICS`, and a function whose result
# has ten decimal places, as before `since.EXACT_FUNCTIONS`.
INEXACT = "inexact"

# Node classes, each with the function and the names of the node's arguments in the function's order.
CALLS: dict[type[exp.Expr], tuple[str, tuple[str, ...]]] = {
    exp.Pow: ("power", ("this", "expression")),
    exp.Sqrt: ("sqrt", ("this",)),
    exp.Cbrt: ("cbrt", ("this",)),
    exp.Ceil: ("ceil", ("this",)),
    exp.Floor: ("floor", ("this",)),
    exp.Substring: ("substring", ("this", "start", "length")),
    exp.StrPosition: ("strpos", ("this", "substr")),
    exp.Overlay: ("overlay", ("this", "expression", "from_", "for_")),
    exp.StartsWith: ("starts_with", ("this", "expression")),
    exp.SimilarTo: ("similar_to", ("this", "expression")),
    exp.RegexpLike: ("regexp_like", ("this", "expression")),
    exp.RegexpILike: ("regexp_ilike", ("this", "expression")),
    exp.Extract: ("extract", ("this", "expression")),
    exp.Normalize: ("normalize", ("this", "form")),
    exp.ArrayContainsAll: ("array_contains", ("this", "expression")),
    exp.ArrayContainedBy: ("array_contained", ("this", "expression")),
    exp.ArrayOverlaps: ("array_overlaps", ("this", "expression")),
    exp.JSONBContainsTopKey: ("jsonb_exists", ("this", "expression")),
    exp.JSONBContainsAnyTopKeys: ("jsonb_exists_any", ("this", "expression")),
    exp.JSONBContainsAllTopKeys: ("jsonb_exists_all", ("this", "expression")),
    exp.JSONBExtract: ("json_at", ("this", "expression")),
    exp.JSONBExtractScalar: ("json_text_at", ("this", "expression")),
    exp.JSONBDeleteAtPath: ("jsonb_without_path", ("this", "expression")),
}
_TRIMS = {"LEADING": "ltrim", "TRAILING": "rtrim"}


def as_call(node: exp.Expr) -> Call | None:
    """Return the function of a node, by Postgres' name, and its arguments in Postgres' order; None for other nodes."""
    if isinstance(node, exp.Anonymous):
        name = node.name.lower()
        name = OF_JSONB.get(name, name) if node.meta.get(IS_OF_JSONB) else ALIASES.get(name, name)
        return (name, list(node.expressions)) if name in FUNCTIONS else None
    if isinstance(node, exp.Trim):
        arguments = [part for key in ("this", "expression") if (part := node.args.get(key)) is not None]
        return _TRIMS.get((node.args.get("position") or "").upper(), "btrim"), arguments
    if type(node) not in CALLS:
        return None
    name, keys = CALLS[type(node)]
    arguments = [part for key in keys if isinstance(part := node.args.get(key), exp.Expr)]
    if name == "extract":
        arguments[0] = exp.Literal.string(node.this.name.lower())
    return name, arguments


def _case(node: exp.Expr) -> Known:
    branches = [branch.args["true"] for branch in node.args["ifs"]]
    known = common(tuple(type_of_part(part) for part in (*branches, node.args.get("default")) if part is not None))
    return known or VARCHAR  # only string literals and NULL


def _literal(node: exp.Expr) -> Known:
    if node.args.get("is_string"):
        return VARCHAR
    if not node.name.isdigit():
        return computed(len(fitted_text(node.name).partition(".")[2]))
    return INTEGER if int(node.name) < 2**31 else BIGINT if int(node.name) < 2**63 else NUMERIC


def _run(node: exp.Expr) -> Known:
    assert isinstance(node, ConstantRun)
    return _literal(node.first)


def _bracket(node: exp.Expr) -> Known:
    container = type_of_part(node.this)
    if container is not None and container.is_map:
        return value_of_map((container,))
    if container is None or container == JSONB or not container.dimensions:
        return container if container == JSONB else None
    for index in node.expressions:
        container = container if isinstance(index, exp.Slice) or not container.dimensions else container.element
    return container


def check_subscripts(nodes: Iterable[exp.Expr]) -> None:
    """Raise Error 42804 where a value that is neither an array nor jsonb has a subscript: DuckDB takes texts."""
    for node in nodes:
        type_ = type_of_part(node.this.unnest())
        if type_ is not None and type_ != JSONB and not type_.dimensions and not type_.is_map:
            message = f"cannot subscript type {type_.without_digits} because it does not support subscripting"
            raise Error(message, errors.DATATYPE_MISMATCH, position=position_of(node))


def with_document_subscripts(pairs: Iterable[tuple[exp.Expr, exp.Expr]]) -> bool:
    """Replace subscripts of jsonb that are no constants from 0 on, each given with its typed counterpart, in place.

    As in PostgreSQL they are read like elements of a path. Returns whether there is any. Raises Error 42804.
    """
    found = [(node, typed) for node, typed in pairs if type_of_part(typed.this.unnest()) == JSONB]
    for _, typed in found:
        _check_subscript(typed)
    changed = [node for node, _ in found if not isinstance(node.expressions[0].unnest(), exp.Literal)]
    for node in changed:
        index = exp.cast(node.expressions[0].copy(), exp.DType.TEXT)
        made = exp.Anonymous(this="jsonb_extract_path", expressions=[node.this.copy(), index])
        named = node
        while isinstance(named, exp.Bracket | exp.Paren):
            named = named.this
        made.meta["name"] = named.meta.get("name") or named.alias_or_name or "jsonb"
        node.replace(made)
    return bool(changed)


def _check_subscript(node: exp.Expr) -> None:
    index = node.expressions[0]
    if isinstance(index, exp.Slice):
        message = "jsonb subscript does not support slices"
        raise Error(message, errors.DATATYPE_MISMATCH, position=position_of(node))
    type_ = type_of_part(index.unnest())
    if type_ is not None and not type_.is_text and not type_.is_integer:
        message = f"subscript type {type_.without_digits} is not supported"
        hint = "jsonb subscript must be coercible to either integer or text."
        raise Error(message, errors.DATATYPE_MISMATCH, hint=hint, position=position_of(node))


def _array(node: exp.Expr) -> Known:
    # ARRAY(SELECT …) has the query itself as its part.
    parts = [part.selects[0] if isinstance(part, exp.Query) and part.selects else part for part in node.expressions]
    element = common(tuple(map(type_of_part, parts)))
    if element is None and not any(isinstance(part, exp.Column) for part in parts):
        element = VARCHAR if parts else None
    return array_type(element) if element is not None else None


def _field(node: exp.Expr) -> Known:
    """Return the type of `(x).field`; a dot may also precede a function."""
    owner = type_of_part(node.this)
    if owner is None or not owner.is_struct or not isinstance(node.expression, exp.Identifier):
        return None
    place = field_place(owner, node.expression)
    return owner.fields[place - 1][1] if place is not None else None


@dataclass(frozen=True)
class _Of:
    """A rule over the types of a node's parts, in the order of their text."""

    rule: Rule

    def __call__(self, node: exp.Expr) -> Known:
        if isinstance(self.rule, Type):
            return self.rule
        return self.rule(tuple(type_of_part(part) for part in node.iter_expressions()))


@dataclass(frozen=True)
class _Exact(_Of):
    """An `_Of` for operators whose numerics have as many digits as their parts need."""

    def __call__(self, node: exp.Expr) -> Known:
        assert isinstance(node, exp.Add | exp.Sub | exp.Mul)
        if not keeps_digits():
            node.meta[OF_TEN_PLACES] = True
        return type_of_numerics(node) or super().__call__(node)


def _quotient(node: exp.Expr) -> Known:
    rule = multiplication if node.meta.get(INEXACT) else division
    return rule(tuple(type_of_part(part) for part in node.iter_expressions()))


_BOOLEANS = (
    exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ,
    exp.Is, exp.Between, exp.In, exp.Like, exp.ILike, exp.Escape, exp.Exists,
)  # fmt: skip

_RULES: dict[type[exp.Expr], Callable[[exp.Expr], Known]] = {
    **dict.fromkeys(_BOOLEANS, _Of(BOOLEAN)),
    exp.Literal: _literal,
    PythonCall: result_of,
    ConstantRun: _run,
    exp.Paren: _Of(first),
    exp.Neg: _Of(first),
    exp.Add: _Exact(addition),
    exp.Sub: _Exact(FUNCTIONS["subtract"].result),
    exp.Mul: _Exact(multiplication),
    exp.Div: _quotient,
    exp.Mod: _Of(arithmetic),
    exp.BitwiseAnd: _Of(common),
    exp.BitwiseOr: _Of(common),
    exp.BitwiseXor: _Of(common),
    exp.BitwiseNot: _Of(first),
    exp.BitwiseLeftShift: _Of(first),
    exp.BitwiseRightShift: _Of(first),
    exp.DPipe: _Of(concatenation),
    exp.JSONExtract: _Of(part_of_document),
    exp.JSONExtractScalar: _Of(VARCHAR),
    exp.Case: _case,
    exp.Coalesce: _Of(common),
    exp.Nullif: _Of(first),
    exp.Greatest: _Of(common),
    exp.Least: _Of(common),
    exp.Array: _array,
    exp.Dot: _field,
    exp.Bracket: _bracket,
    exp.Interval: _Of(INTERVAL),
    exp.Grouping: _Of(INTEGER),
    exp.ExplodingGenerateSeries: lambda node: type_of_series(node, type_of_part),
    exp.AtTimeZone: lambda node: TIMESTAMP if type_of_part(node.this) == TIMESTAMPTZ else TIMESTAMPTZ,
    exp.Uuid: _Of(Type("uuid")),
    exp.CurrentDate: _Of(DATE),
    exp.CurrentTimestamp: _Of(TIMESTAMPTZ),
    exp.Localtimestamp: _Of(TIMESTAMP),
}


def times_of_series(ends: Iterable[Known]) -> Known:
    """Return the type of a series of times; None for one of numbers or dates."""
    types = set(ends)
    return TIMESTAMPTZ if TIMESTAMPTZ in types else TIMESTAMP if TIMESTAMP in types else None


def type_of_series(series: exp.Expr, type_of: Callable[[exp.Expr], Known]) -> Known:
    """Return the type of a series; None for one of dates, and for one of numbers in definitions of earlier versions."""
    parts = [part for key in ("start", "end", "step") if isinstance(part := series.args.get(key), exp.Expr)]
    types = {type_of(part) for part in parts}
    if (found := times_of_series(map(type_of, parts[:2]))) is not None or not is_since(TYPED_SERIES):
        return found
    if None in types or not all(map(is_numeric, types)):
        return None
    if any(type_ is not None and type_.name == NUMERIC.name for type_ in types):
        return QUOTIENT
    return BIGINT if BIGINT in types else INTEGER if types <= {SMALLINT, INTEGER} else None


def result_type(node: exp.Expr) -> Known:
    """Return the type of a node whose parts are annotated; None when it is unknown."""
    call = as_call(node)
    if call is not None:
        name, arguments = call
        rule = FUNCTIONS[name].result
        if isinstance(rule, Type):
            return rule
        types = tuple(type_of_part(part) for part in arguments)
        value = types[0] if types else None
        if name in ROUNDINGS and keeps_digits() and (exact := _exact_type(value, len(arguments))) is not None:
            return _rounded(exact, arguments[1:])
        found = rule(types)
        return NUMERIC if node.meta.get(INEXACT) and found == QUOTIENT and QUOTIENT not in types else found
    return _RULES[type(node)](node)


def _exact_type(value: Known, count: int) -> Known:
    """Return the type of a numeric to round, of `count` arguments; with places an integer is a numeric, too."""
    if value is None or value.dimensions:
        return None
    return (
        computed(0)
        if value.is_integer and count == 2 and is_since(EXACT_ROUNDS)
        else value
        if value.name == "numeric"
        else None
    )


def _rounded(type_: Type, places: list[exp.Expr]) -> Type:
    """Return the type of a numeric that is rounded to so many places, to none by default.

    More than 19 places beyond its own would take room from the digits before the point.
    """
    written = places[0].unnest() if places else exp.Literal.number(0)
    own = type_.digits[1]
    return computed(min(max(written.to_py(), 0), max(own, QUOTIENT.digits[1])) if written.is_int else own)


def is_known(call: exp.Anonymous) -> bool:
    """Return whether a call is of a known function or aggregate."""
    return as_call(call) is not None or is_aggregate(call)


def _annotate(annotator: TypeAnnotator, node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Anonymous) and not is_known(node):
        return node
    if isinstance(node, exp.Anonymous) and node.expressions:
        _type_lambda(node.expressions[0], node.expressions[-1])
    is_call = isinstance(node, TYPED_HERE) or is_aggregate(node)
    found = aggregates.result_type(node, type_of_part) if is_call else result_type(node)
    annotator._set_type(node, data_type(found) if found is not None else None)
    return node


def _type_lambda(given: exp.Expr, last: exp.Expr) -> None:
    """Type a lambda expression over the parts of a typed array or map again, by the types of its parameters."""
    if not isinstance(last, ElementLambda):
        return
    parts = [data_type(type_) for type_ in _parts(type_of_part(given))]
    for parameter, part in zip_longest(last.parameters, parts[: len(last.parameters)]):
        for use in last.uses(parameter):
            use.type = part
            node = use.parent
            while node is not None and node is not last:
                node.type = None
                node = node.parent
    # A cast always has a type, so that sqlglot does not look below it.
    casts = reversed(list(last.find_all(exp.Cast)))
    for part in [*(cast.this for cast in casts), last.this]:
        annotate_types(part, expression_metadata=METADATA, dialect="postgres", overwrite_types=False)
    last.type = last.this.type


def _parts(type_: Known) -> list[Type]:
    """Return the type of an array's elements, or those of a map's keys and values."""
    if type_ is None:
        return []
    return [type_.element] if type_.dimensions else [part for _, part in type_.fields] if type_.is_map else []


def _annotate_cast(annotator: TypeAnnotator, node: exp.Expr) -> exp.Expr:
    """Annotate a cast; a cast of a quotient to numeric keeps the quotient's digits."""
    if sql_type(node.args["to"]) == NUMERIC and type_of_part(node.this) == QUOTIENT:
        node.set("to", data_type(QUOTIENT))
    annotator._set_type(node, node.args["to"])
    return node


_CAST: dict[str, Any] = {"annotator": _annotate_cast}
_ANNOTATED: dict[str, Any] = {"annotator": _annotate}
# Rules for scalar expressions in `annotate_types`; sqlglot has the other rules itself.
METADATA: dict[type[exp.Expr], Any] = {
    **Dialect.get_or_raise("postgres").EXPRESSION_METADATA,
    **dict.fromkeys((exp.Anonymous, exp.Trim, *CALLS), _ANNOTATED),
    **dict.fromkeys(_RULES, _ANNOTATED),
    **dict.fromkeys(TYPED_HERE, _ANNOTATED),
    **dict.fromkeys((exp.Cast, exp.TryCast), _CAST),
}
