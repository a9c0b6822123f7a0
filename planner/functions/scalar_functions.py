"""Postgres' scalar functions as data: the type of each result and DuckDB's spelling of the call.

`FUNCTIONS` maps Postgres' name to a `Function`. The parser keeps calls of these names as written (`trees.Sparkwave`).
`planner.functions.operators` reads operators and calls with a grammar of their own, such as `substring(x FROM 2)`, as
calls. Batch queries and views have the same spelling, so that a view equals its query.

Where DuckDB's own function differs from Postgres', the spelling is `OURS`: a macro in DuckDB's schema `pg`, defined in
`catalog/system/scalar.sql`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

from sqlglot import exp

from sparkwave.catalog.modifiers import TO_MODIFIER
from sparkwave.catalog.types import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    JSON,
    JSONB,
    NUMERIC,
    QUOTIENT,
    REAL,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    VARCHAR,
    Type,
)
from sparkwave.planner.functions.map_types import (
    entries_of_map,
    keys_of_map,
    map_of_arrays,
    map_of_both,
    map_of_entries,
    map_with,
    value_of_map,
    values_of_map,
)
from sparkwave.planner.functions.result_types import (
    Known,
    array_of_first,
    array_of_results,
    array_of_second,
    array_type,
    array_with,
    bytea_or_text,
    common,
    element_of_first,
    first,
    logarithm,
    number_of_first,
    of_arrays,
    part_of_document,
    real_number,
    real_number_of_first,
    row_of,
    rows_of_elements,
    rows_of_pairs,
    subtraction,
    sum_of_first,
    truncated,
)

# Maps the arguments' types, None for an untyped literal, to the result's type, None when it is unknown.
Rule = Type | Callable[[tuple[Known, ...]], Known]

OURS = "pg"
# The function that makes a numeric of a float that is computed from numerics.
AS_NUMERIC = "_real_as_numeric"
# The functions that give the units of decimals, halves of units, and parts of their squares.
UNITS = ("_units_of_float", "_units_in_64", "_units_in_128", "_high_units", "_low_units")
SQUARES = (
    "_square",
    *(f"_square_by_halves_{place}" for place in range(3)),
    *(f"_square_by_limbs_{place}" for place in range(5)),
)
# The functions that give the fields of intervals, which are summed up each by itself.
INTERVAL_FIELDS = ("_months", "_days", "_micros")
# The functions that make the nearest float of a numeric, by the type of float.
NEAREST = {DOUBLE: "_nearest_double", REAL: "_nearest_real"}
IN_RANGE = "time_in_range"
SAME = ""


@dataclass(frozen=True)
class Function:
    """A scalar function. `duckdb` is its name in DuckDB: `SAME` as Postgres', or `OURS`.

    `reads_types` tells that its spelling depends on the types of its arguments, which batch statements do not have
    unless they are bound for them.
    """

    result: Rule
    duckdb: str = OURS
    reads_types: bool = False


F = Function


def duckdb_call(name: str, *arguments: exp.Expr) -> exp.Expr:
    """Return a call of a function by DuckDB's name."""
    return exp.Anonymous(this=name, expressions=list(arguments))


# Macros that repeat an argument 30 times or more, with its place.
_REPEATS = {
    **dict.fromkeys(("quote_literal", "quote_nullable", "text_out", "shown_text", "to_text", "json_key"), 0),
    **dict.fromkeys(("real_text", "double_text"), 0),
    **dict.fromkeys(("number_in_json", "time_in_json", "key_in_json", "justify_interval", "justify_hours"), 0),
    **dict.fromkeys(("sind", "cosd", "tand", "cotd"), 0),
    **dict.fromkeys(("date_part", "extract"), 1),
}
# Such an argument is computed once if it has more nodes or calls a macro itself: DuckDB takes seconds to plan repeated
# macros in each other.
_REPEATED_NODES = 12


def ours(name: str, *arguments: exp.Expr) -> exp.Expr:
    """Return `memory.pg.name(arguments)`."""
    place = _REPEATS.get(name)
    if place is not None and len(arguments) > place:
        value = arguments[place]
        parts = list(islice(value.walk(), _REPEATED_NODES + 1))
        if len(parts) > _REPEATED_NODES or any(isinstance(part, exp.Dot) for part in parts):
            before, behind = arguments[:place], arguments[place + 1 :]
            return worked_out_once(value, lambda once: ours(name, *before, once, *behind))
    function = exp.Anonymous(this=name, expressions=list(arguments))
    return exp.Dot.build([exp.to_identifier("memory"), exp.to_identifier(OURS), function])


# The parameter of lambdas, a name that no column has.
ELEMENT = "_element"


def of_each(array: exp.Expr, computed: exp.Expr, element: str = ELEMENT) -> exp.Expr:
    """Return the array of `computed` for each element of an array; `element` is the element's name in it."""
    function = exp.Lambda(this=computed, expressions=[exp.to_identifier(element)])
    return duckdb_call("list_transform", array, function)


def of_one(value: exp.Expr, computed: exp.Expr, element: str = ELEMENT) -> exp.Expr:
    """Return `computed` for one value, named `element` in it. The value is computed once, and its type is known."""
    return duckdb_call(
        "list_extract", of_each(exp.Array(expressions=[value]), computed, element), exp.Literal.number(1)
    )


def worked_out_once(value: exp.Expr, of: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """Return an expression over a value whose text is long, such as an average, without repeating the value."""
    number = exp.column("_number")
    number.type = value.type
    return of_one(value, of(number), number.name)


_OF_JSON = {
    "json_typeof": F(VARCHAR),
    "json_array_length": F(INTEGER),
    "json_build_object": F(JSON),
    "json_build_array": F(JSON),
    "json_extract_path": F(JSON),
    "json_extract_path_text": F(VARCHAR),
    "json_strip_nulls": F(JSON),
}
_TEXTS, _INTEGERS = Type("character varying", dimensions=1), Type("integer", dimensions=1)
FUNCTIONS: dict[str, Function] = {
    # Numbers.
    "abs": F(first, SAME),
    "ceil": F(number_of_first),
    "floor": F(number_of_first),
    "round": F(number_of_first),
    "trunc": F(number_of_first),
    "sign": F(number_of_first),
    "sqrt": F(real_number_of_first),
    "cbrt": F(DOUBLE, SAME),
    "exp": F(real_number_of_first),
    "ln": F(real_number_of_first),
    "log": F(logarithm),
    "log10": F(real_number_of_first),
    "power": F(real_number),
    "div": F(NUMERIC),
    "gcd": F(common),
    "lcm": F(common),
    "pi": F(DOUBLE, SAME),
    "degrees": F(DOUBLE),
    "radians": F(DOUBLE, SAME),
    **{
        name: F(DOUBLE, SAME)
        for name in ("sin", "cos", "tan", "atan", "atan2", "sinh", "cosh", "tanh", "asinh")
    },
    **{
        name: F(DOUBLE)
        for name in ("asin", "acos", "acosh", "atanh", "cot", "sind", "cosd", "tand", "cotd", "asind", "acosd", "atand",
                     "atan2d", "gamma", "lgamma")
    },
    **{name: F(type_) for type_, name in NEAREST.items()},
    "factorial": F(NUMERIC),
    "scale": F(INTEGER),
    "min_scale": F(INTEGER),
    "trim_scale": F(NUMERIC),
    "width_bucket": F(INTEGER),
    # Text.
    "length": F(INTEGER),
    "octet_length": F(INTEGER),
    "bit_length": F(INTEGER),
    "lower": F(VARCHAR, SAME),
    "upper": F(VARCHAR),
    "initcap": F(VARCHAR),
    "casefold": F(VARCHAR),
    "substring": F(bytea_or_text, reads_types=True),
    "left": F(VARCHAR, SAME),
    "right": F(VARCHAR, SAME),
    "lpad": F(VARCHAR),
    "rpad": F(VARCHAR),
    "btrim": F(bytea_or_text),
    "ltrim": F(bytea_or_text),
    "rtrim": F(bytea_or_text),
    "replace": F(VARCHAR, SAME),
    "translate": F(VARCHAR),
    "reverse": F(VARCHAR),
    "repeat": F(VARCHAR),
    "strpos": F(INTEGER),
    "split_part": F(VARCHAR),
    "starts_with": F(BOOLEAN, SAME),
    "overlay": F(bytea_or_text),
    "ascii": F(INTEGER),
    "chr": F(VARCHAR),
    "md5": F(VARCHAR),
    **dict.fromkeys(("sha224", "sha256", "sha384", "sha512"), F(BYTEA)),
    "sha1": F(BYTEA),
    "int8send": F(BYTEA),
    "int8recv": F(BIGINT),
    "hmac": F(BYTEA, reads_types=True),
    **dict.fromkeys(("encrypt", "decrypt", "encrypt_iv", "decrypt_iv"), F(BYTEA, reads_types=True)),
    **dict.fromkeys(("pgp_sym_encrypt", "pgp_sym_encrypt_bytea", "pgp_sym_decrypt_bytea"), F(BYTEA, reads_types=True)),
    "pgp_sym_decrypt": F(VARCHAR, reads_types=True),
    "crc32": F(BIGINT),
    "crc32c": F(BIGINT),
    "encode": F(VARCHAR),
    "decode": F(BYTEA),
    "to_hex": F(VARCHAR),
    "concat": F(VARCHAR),
    "concat_ws": F(VARCHAR),
    "quote_literal": F(VARCHAR),
    "quote_nullable": F(VARCHAR),
    "format": F(VARCHAR),
    "format_of": F(VARCHAR),
    "regexp_replace": F(VARCHAR),
    "regexp_match": F(_TEXTS),
    "regexp_split_to_array": F(_TEXTS),
    "regexp_count": F(INTEGER),
    "regexp_like": F(BOOLEAN),
    "regexp_ilike": F(BOOLEAN),
    "regexp_substr": F(VARCHAR),
    "regexp_instr": F(INTEGER),
    "similar_to": F(BOOLEAN),
    "string_to_array": F(_TEXTS),
    "convert_from": F(VARCHAR),
    "convert_to": F(BYTEA),
    "convert": F(BYTEA),
    "get_byte": F(INTEGER),
    "set_byte": F(BYTEA),
    "get_bit": F(INTEGER),
    "set_bit": F(BYTEA),
    "bit_count": F(BIGINT),
    "normalize": F(VARCHAR),
    "is_normalized": F(BOOLEAN),
    "is_json": F(BOOLEAN, reads_types=True),
    "unistr": F(VARCHAR),
    "quote_ident": F(VARCHAR),
    "num_nulls": F(INTEGER),
    "pg_typeof": F(VARCHAR),
    "num_nonnulls": F(INTEGER),
    "array_to_string": F(VARCHAR),
    # Dates and times.
    "modulo": F(common),
    "extract": F(NUMERIC),
    "date_part": F(DOUBLE),
    "date_trunc": F(truncated),
    # Sparkwave's own: the parts of TUMBLE and HOP, over a time and microseconds.
    "tumble_start": F(
        first
    ),
    "shift_time": F(
        first
    ),
    # Sparkwave's own: the integers of range().
    "_numbers_before": F(lambda types: array_type(BIGINT) if all(t is None or t.is_integer for t in types) else None),
    # Sparkwave's own: a time cut or rounded as its type with a modifier has it.
    TO_MODIFIER: F(first),
    # Sparkwave's own: a date or time in PostgreSQL's range, or NULL.
    IN_RANGE: F(first),
    "date_bin": F(lambda types: types[1] if len(types) > 1 else None),
    "age": F(INTERVAL),
    "justify_hours": F(INTERVAL),
    "justify_days": F(INTERVAL),
    "justify_interval": F(INTERVAL),
    # Sparkwave's own: an array, a row or a map with its intervals justified.
    "justify_intervals": F(first, reads_types=True),
    "make_date": F(DATE),
    "make_time": F(TIME),
    "make_timestamp": F(TIMESTAMP),
    "make_timestamptz": F(TIMESTAMPTZ),
    "make_interval": F(INTERVAL),
    "between_moments": F(INTERVAL),
    "overlaps": F(BOOLEAN),
    "isfinite": F(BOOLEAN),
    "to_char": F(VARCHAR, reads_types=True),
    "to_timestamp": F(TIMESTAMPTZ),
    "to_date": F(DATE),
    "to_number": F(NUMERIC),
    # jsonb.
    "jsonb_typeof": F(VARCHAR),
    "jsonb_array_length": F(INTEGER),
    "jsonb_build_object": F(JSONB, "json_object"),
    "jsonb_build_array": F(JSONB, "json_array"),
    "jsonb_extract_path": F(JSONB),
    "jsonb_extract_path_text": F(VARCHAR),
    "jsonb_exists": F(BOOLEAN),
    "jsonb_path_exists": F(BOOLEAN),
    "jsonb_path_match": F(BOOLEAN),
    "jsonb_path_query_array": F(JSONB),
    "jsonb_path_query_first": F(JSONB),
    "jsonb_exists_any": F(BOOLEAN),
    "jsonb_exists_all": F(BOOLEAN),
    "to_jsonb": F(JSONB, "to_json"),
    "json_at": F(part_of_document),
    "json_text_at": F(VARCHAR),
    **dict.fromkeys(("jsonb_set", "jsonb_set_lax"), F(JSONB)),
    "jsonb_without": F(JSONB),
    "jsonb_without_path": F(JSONB),
    "jsonb_pretty": F(VARCHAR),
    "jsonb_insert": F(JSONB),
    "jsonb_strip_nulls": F(JSONB),
    "json_object": F(JSON, reads_types=True),
    "jsonb_object": F(JSONB, reads_types=True),
    # Sparkwave's own: keys to compare, sort and group documents by (`planner.bind.comparison_keys`).
    "jsonb_key": F(VARCHAR),
    "jsonb_keys_of_each": F(_TEXTS),
    "jsonb_canonical": F(JSONB),
    # Sparkwave's own: aggregates of an array (`planner.functions.array_aggregates`) of rows without a type outside.
    **dict.fromkeys(("jsonb_field", "joined_text"), F(lambda types: None)),
    "jsonb_of_fields": F(JSONB),
    "join_texts": F(VARCHAR),
    "sketched_percentile": F(DOUBLE),
    **dict.fromkeys(("sum_of_intervals", "avg_of_intervals"), F(INTERVAL)),
    # json.
    **_OF_JSON,
    "to_json": F(JSON),
    # Sparkwave's own: json from an array of values or of fields, rows without a type outside.
    **dict.fromkeys(("json_of_items", "json_of_fields"), F(JSON)),
    "json_field": F(lambda types: None),
    # Sparkwave's own: json, or what may be json, as jsonb.
    "document": F(JSONB),
    # Arrays of the results of set-returning functions of json.
    **dict.fromkeys(("json_elements", "json_values"), F(Type("json", dimensions=1))),
    **dict.fromkeys(("json_element_texts", "json_value_texts", "json_keys"), F(_TEXTS)),
    # Arrays of the results of set-returning functions (`planner.parse.set_returning`).
    "jsonb_elements": F(Type("jsonb", dimensions=1)),
    "jsonb_element_texts": F(_TEXTS),
    "jsonb_keys": F(_TEXTS),
    "jsonb_values": F(Type("jsonb", dimensions=1)),
    "jsonb_value_texts": F(_TEXTS),
    # Documents whose fields are columns, and values of such fields (`planner.parse.record_functions`).
    **dict.fromkeys(("jsonb_record", "json_record", "jsonb_value"), F(JSONB)),
    **dict.fromkeys(("jsonb_records", "json_records", "jsonb_array_of_documents"), F(Type("jsonb", dimensions=1))),
    **dict.fromkeys(("jsonb_array_of_texts", "text_within"), F(VARCHAR)),
    "regexp_all_matches": F(Type("character varying", dimensions=2)),
    "array_subscripts": F(_INTEGERS),
    "series_of_integers": F(array_type(INTEGER)),
    "series_of_numerics": F(array_type(QUOTIENT)),
    "zip_arrays": F(rows_of_elements),
    "zip_pairs": F(rows_of_pairs, reads_types=True),
    # Arrays.
    "array_fill": F(lambda types: array_type(types[0]) if types and types[0] is not None else None),
    "array_length": F(INTEGER),
    "cardinality": F(INTEGER, reads_types=True),
    "array_lower": F(INTEGER),
    "array_upper": F(INTEGER),
    "array_ndims": F(INTEGER),
    "array_dims": F(VARCHAR),
    "array_append": F(array_of_first),
    "array_prepend": F(array_of_second),
    "array_cat": F(of_arrays, reads_types=True),
    "array_remove": F(array_with),
    "array_replace": F(array_with),
    "array_position": F(INTEGER),
    "array_positions": F(_INTEGERS),
    "array_contains": F(BOOLEAN),
    "array_contained": F(BOOLEAN),
    "array_overlaps": F(BOOLEAN),
    "array_distinct": F(first),
    "array_flatten": F(element_of_first, "flatten"),
    "array_reverse": F(first, "list_reverse"),
    "array_transform": F(array_of_results, reads_types=True),
    "array_sort": F(first),
    "array_min": F(element_of_first),
    "array_max": F(element_of_first),
    "array_sum": F(sum_of_first),
    "trim_array": F(first),
    # Maps.
    "map_from_key_values": F(map_of_arrays, reads_types=True),
    "map_from_entries": F(map_of_entries, reads_types=True),
    "map_access": F(value_of_map, reads_types=True),
    "map_keys": F(keys_of_map, reads_types=True),
    "map_values": F(values_of_map, reads_types=True),
    "map_entries": F(entries_of_map, reads_types=True),
    "map_length": F(INTEGER, reads_types=True),
    "map_contains": F(BOOLEAN, reads_types=True),
    "map_cat": F(map_of_both, reads_types=True),
    "map_insert": F(map_with, reads_types=True),
    "map_delete": F(first, reads_types=True),
    "map_filter": F(first, reads_types=True),
    "jsonb_populate_map": F(first, reads_types=True),
    # Rows.
    "row": F(row_of, SAME),
    # Operators that differ in DuckDB; `planner.functions.operators` reads them as these functions.
    "subtract": F(subtraction),
    # An average: of a sum, a count and the decimal places of the values.
    AS_NUMERIC: F(QUOTIENT),
    "_avg": F(lambda types: QUOTIENT if len(types) == 3 else None),
    # Standard deviations and variances: units of decimals, squares of units, and what is computed of their sums.
    **dict.fromkeys(UNITS, F(Type("numeric", 38, 0))),
    **dict.fromkeys(SQUARES, F(Type("numeric", 38, 0))),
    **dict.fromkeys(("_spread_of_squares", "_spread_of_halves", "_spread_of_limbs"), F(QUOTIENT)),
    **dict.fromkeys(INTERVAL_FIELDS, F(BIGINT)),
    **dict.fromkeys(("_interval_sum", "_interval_average"), F(INTERVAL)),
    # The value of a scalar subquery, and its number of rows.
    "_only": F(first),
    "divide": F(common),
    "multiply": F(common),
    "to_text": F(VARCHAR),
    **dict.fromkeys(("real_text", "double_text"), F(VARCHAR)),
    "text_out": F(VARCHAR),
    "any_true": F(BOOLEAN),
    "all_true": F(BOOLEAN),
}  # fmt: skip

# Other names of functions.
ALIASES = {
    "ceiling": "ceil",
    "pow": "power",
    "substr": "substring",
    "array_concat": "array_cat",
    "array_join": "array_to_string",
    "char_length": "length",
    "character_length": "length",
    **dict.fromkeys(("row_to_json", "array_to_json"), "to_json"),
    **dict.fromkeys(("array_is_overlap", "array_is_intersect"), "array_overlaps"),
}

# Those that take decimal places away.
ROUNDINGS = frozenset({"round", "trunc", "ceil", "floor", "sign"})


def has_varying_places(name: str, arguments: Sequence[exp.Expr]) -> bool:
    """Return whether a call rounds to places that may differ by row, or are before the point.

    DuckDB (1.5.5) cannot do the former, and makes a NULL zero where a type has not so many digits before the point.
    """
    if name not in ("round", "trunc") or len(arguments) != 2:
        return False
    places = arguments[1].unnest()
    if places.is_int:
        return places.to_py() < 0
    return not all(isinstance(part, _FIXED) for part in places.walk())


_FIXED = (
    exp.Literal, exp.Neg, exp.Paren, exp.Cast, exp.DataType, exp.DataTypeParam, exp.Parameter,
    exp.Placeholder, exp.Add, exp.Sub, exp.Mul,
)  # fmt: skip
# Those of floats alone.
OF_FLOATS = frozenset({
    "cbrt", "degrees", "radians", "sin", "cos", "tan", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "asin", "acos",
    "acosh", "atanh", "cot", "sind", "cosd", "tand", "cotd", "asind", "acosd", "atand", "atan2d",
})  # fmt: skip
# Those whose results have decimal places of their own.
REAL_FUNCTIONS = frozenset(
    name for name, function in FUNCTIONS.items() if function.result in (real_number, real_number_of_first, logarithm)
)
# Functions of json, with those of jsonb for definitions in which json is another name of it
# (`planner.functions.written_json`).
OF_JSONB = {
    **dict.fromkeys(("to_json", "row_to_json", "array_to_json"), "to_jsonb"),
    **{name: f"jsonb{name.removeprefix('json')}" for name in _OF_JSON},
}
