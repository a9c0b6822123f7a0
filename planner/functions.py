"""Postgres' scalar functions as data: the type of each result and how DuckDB and Spark spell the call.

`FUNCTIONS` maps Postgres' name to a `Function`. The parser keeps calls of these names as they are written
(`trees.Sparkwave`); operators and the calls with a grammar of their own, such as `substring(x FROM 2)`, are read as
calls by `planner.operators`. One spelling serves batch queries and views, so that a view equals its query.

Where DuckDB's own function differs from Postgres', the spelling is `OURS`: a macro in DuckDB's schema `pg`, defined in
`catalog/system/scalar.sql`. A Spark spelling is given only where `tests/test_functions.py` proves result and type
equal; without one a view that uses the function runs on DuckDB alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from catalog.types import (
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    JSONB,
    NUMERIC,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    VARCHAR,
    Type,
)
from planner.result_types import (
    Known,
    array_of_first,
    array_of_second,
    bytea_or_text,
    common,
    element_of_first,
    first,
    number,
    number_of_first,
    subtraction,
    sum_of_first,
    truncated,
)

# The types of the arguments, None for an untyped literal, to the type of the result, None when it cannot be told.
Rule = Type | Callable[[tuple[Known, ...]], Known]

OURS = "pg"
SAME = ""


@dataclass(frozen=True)
class Function:
    """`duckdb` and `spark` are names: `SAME` as Postgres', or `OURS` (DuckDB only).

    A Spark spelling with a parenthesis is a whole expression over `_1`, `_2`, …; None is no proven spelling.
    `raises` says that some values are an error on DuckDB.
    """

    result: Rule
    duckdb: str = OURS
    spark: str | None = None
    raises: bool = False


F = Function

FUNCTIONS: dict[str, Function] = {
    # Numbers.
    "abs": F(first, SAME, SAME, raises=True),
    "ceil": F(number_of_first, raises=True),
    "floor": F(number_of_first, raises=True),
    "round": F(number_of_first, raises=True),
    "trunc": F(number_of_first, raises=True),
    "sign": F(number_of_first),
    "sqrt": F(number_of_first, raises=True),
    "cbrt": F(DOUBLE, SAME),
    "exp": F(number_of_first, raises=True),
    "ln": F(number_of_first, raises=True),
    "log": F(number, raises=True),
    "log10": F(number_of_first, raises=True),
    "power": F(number, raises=True),
    "div": F(NUMERIC, raises=True),
    "gcd": F(common, raises=True),
    "lcm": F(common, raises=True),
    "pi": F(DOUBLE, SAME),
    "degrees": F(DOUBLE, SAME),
    "radians": F(DOUBLE, SAME),
    **{
        name: F(DOUBLE, SAME)
        for name in ("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh",
                     "acosh", "atanh")
    },
    **{name: F(DOUBLE) for name in ("cot", "sind", "cosd", "tand")},
    # Text.
    "length": F(INTEGER),
    "octet_length": F(INTEGER),
    "bit_length": F(INTEGER),
    "lower": F(VARCHAR, SAME),
    "upper": F(VARCHAR),
    "initcap": F(VARCHAR),
    "substring": F(bytea_or_text, raises=True),
    "left": F(VARCHAR, SAME, raises=True),
    "right": F(VARCHAR, SAME, raises=True),
    "lpad": F(VARCHAR, raises=True),
    "rpad": F(VARCHAR, raises=True),
    "btrim": F(VARCHAR),
    "ltrim": F(VARCHAR),
    "rtrim": F(VARCHAR),
    "replace": F(VARCHAR, SAME),
    "translate": F(VARCHAR),
    "reverse": F(VARCHAR),
    "repeat": F(VARCHAR, SAME, raises=True),
    "strpos": F(INTEGER),
    "split_part": F(VARCHAR, raises=True),
    "starts_with": F(BOOLEAN, SAME),
    "overlay": F(VARCHAR, raises=True),
    "ascii": F(INTEGER),
    "chr": F(VARCHAR, raises=True),
    "md5": F(VARCHAR),
    "sha256": F(BYTEA),
    "sha1": F(BYTEA),
    "encode": F(VARCHAR),
    "decode": F(BYTEA, raises=True),
    "to_hex": F(VARCHAR),
    "concat": F(VARCHAR),
    "concat_ws": F(VARCHAR),
    "quote_literal": F(VARCHAR),
    "quote_nullable": F(VARCHAR),
    "format": F(VARCHAR),
    "regexp_replace": F(VARCHAR),
    "regexp_match": F(Type("character varying", dimensions=1)),
    "regexp_count": F(INTEGER),
    "regexp_like": F(BOOLEAN),
    "regexp_ilike": F(BOOLEAN),
    "regexp_substr": F(VARCHAR),
    "similar_to": F(BOOLEAN),
    "string_to_array": F(Type("character varying", dimensions=1)),
    "array_to_string": F(VARCHAR),
    # Dates and times.
    "extract": F(NUMERIC, raises=True),
    "date_part": F(DOUBLE, raises=True),
    "date_trunc": F(truncated, raises=True),
    "date_bin": F(lambda types: types[1] if len(types) > 1 else None, raises=True),
    "age": F(INTERVAL),
    "make_date": F(DATE, raises=True),
    "make_time": F(TIME, raises=True),
    "make_timestamp": F(TIMESTAMP, raises=True),
    "to_char": F(VARCHAR, raises=True),
    "to_timestamp": F(TIMESTAMPTZ, raises=True),
    "to_date": F(DATE, raises=True),
    # jsonb.
    "jsonb_typeof": F(VARCHAR),
    "jsonb_array_length": F(INTEGER),
    "jsonb_build_object": F(JSONB, "json_object"),
    "jsonb_build_array": F(JSONB, "json_array"),
    "jsonb_extract_path": F(JSONB),
    "jsonb_extract_path_text": F(VARCHAR),
    "jsonb_exists": F(BOOLEAN),
    "to_jsonb": F(JSONB, "to_json"),
    "json_at": F(JSONB),
    "json_text_at": F(VARCHAR),
    # Arrays.
    "array_length": F(INTEGER),
    "cardinality": F(INTEGER),
    "array_lower": F(INTEGER),
    "array_upper": F(INTEGER),
    "array_append": F(array_of_first),
    "array_prepend": F(array_of_second),
    "array_cat": F(first),
    "array_remove": F(first),
    "array_replace": F(first),
    "array_position": F(INTEGER),
    "array_positions": F(Type("integer", dimensions=1)),
    "array_contains": F(BOOLEAN),
    "array_contained": F(BOOLEAN),
    "array_overlaps": F(BOOLEAN),
    "array_distinct": F(first),
    "array_sort": F(first),
    "array_min": F(element_of_first),
    "array_max": F(element_of_first),
    "array_sum": F(sum_of_first, raises=True),
    "trim_array": F(first),
    # Operators that are not the same on DuckDB; `planner.operators` reads them as these.
    "subtract": F(subtraction),
    "divide": F(common),
    "multiply": F(common),
    "to_text": F(VARCHAR),
    "text_out": F(VARCHAR),
    "any_true": F(BOOLEAN),
    "all_true": F(BOOLEAN),
}  # fmt: skip

# Other names of some of them.
ALIASES = {
    "ceiling": "ceil",
    "pow": "power",
    "substr": "substring",
    "char_length": "length",
    "character_length": "length",
}
