"""Postgres' scalar functions as data: the type of each result and how DuckDB and Spark spell the call.

`FUNCTIONS` maps Postgres' name to a `Function`. The parser keeps calls of these names as they are written
(`trees.Sparkwave`); operators and the calls with a grammar of their own, such as `substring(x FROM 2)`, are read as
calls by `planner.functions.operators`. One spelling serves batch queries and views, so that a view equals its query.

Where DuckDB's own function differs from Postgres', the spelling is `OURS`: a macro in DuckDB's schema `pg`, defined in
`catalog/system/scalar.sql`. A Spark spelling is given only where `tests/test_engines.py` proves results
equal; without one a view that uses the function runs on DuckDB alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

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
from planner.functions.result_types import (
    Known,
    array_of_first,
    array_of_second,
    bytea_or_text,
    common,
    element_of_first,
    first,
    number,
    number_of_first,
    row_of,
    subtraction,
    sum_of_first,
    truncated,
)
from planner.functions.spark_case import LOWER, UPPER

# The types of the arguments, None for an untyped literal, to the type of the result, None when it cannot be told.
Rule = Type | Callable[[tuple[Known, ...]], Known]

OURS = "pg"
IN_RANGE = "time_in_range"
SAME = ""


@dataclass(frozen=True)
class Spark:
    """A spelling proven on Spark for a first argument of one of `types` (type names).

    `form` is an expression over `_1`, `_2`, … and holds for as many arguments, or a function's name for any number.
    The other arguments are integers (up to those of the type `rest`), text, or of the first one's type.
    """

    form: str
    types: frozenset[str]
    rest: str = "integer"


def on(form: str, *types: str, rest: str = "integer") -> Spark:
    return Spark(form, frozenset(types), rest)


@dataclass(frozen=True)
class Function:
    """`duckdb` is DuckDB's name for it: `SAME` as Postgres', or `OURS`. `raises`: some values are an error there."""

    result: Rule
    duckdb: str = OURS
    spark: tuple[Spark, ...] = ()
    raises: bool = False


_TEXT, _BYTES, _STAMP = "character varying", "bytea", "timestamp without time zone"
_MICROS = "unix_micros(CAST(_1 AS TIMESTAMP))"
_INT, _BIG, _NUMERIC, _DOUBLE = "integer", "bigint", "numeric", "double precision"

# Spark's ceil and floor give integers. Floats from 2^52 on have no fraction; zero keeps its sign.
_CEIL = on(
    "CASE WHEN _1 > -1 AND _1 < 0 THEN -CAST(0 AS DOUBLE) WHEN _1 <> 0 AND abs(_1) < 4503599627370496"
    " THEN CAST(ceil(_1) AS DOUBLE) ELSE _1 END", _DOUBLE,
)  # fmt: skip
_FLOOR = on("CASE WHEN _1 <> 0 AND abs(_1) < 4503599627370496 THEN CAST(floor(_1) AS DOUBLE) ELSE _1 END", _DOUBLE)
_AS_DOUBLE = on("CAST(_1 AS DOUBLE)", "smallint", _INT, _BIG)
# Substring's bounds, in a width where they cannot overflow.
_LENGTH = "CAST(least(2147483647, greatest(0, CAST(_3 AS BIGINT) + least(_2, 1) - 1)) AS INT)"
_REST = "substring(_1, greatest(_2, 1))"
_SUBSTRING = f"CASE WHEN _3 < 0 THEN NULL ELSE substring(_1, greatest(_2, 1), {_LENGTH}) END"
_LEFT = "CASE WHEN _2 < 0 THEN substring(_1, 1, greatest(0, char_length(_1) + _2)) ELSE left(_1, _2) END"
_RIGHT = (
    "CASE WHEN _2 < 0 THEN substring(_1, CAST(least(2147483647, 1 - CAST(_2 AS BIGINT)) AS INT)) ELSE right(_1, _2) END"
)
_ABS = "CASE WHEN _1 < 0 THEN try_subtract(0, _1) ELSE abs(_1) END"

F = Function


def duckdb_call(name: str, *arguments: exp.Expr) -> exp.Expr:
    """A call of a function by DuckDB's name."""
    return exp.Anonymous(this=name, expressions=list(arguments))


def ours(name: str, *arguments: exp.Expr) -> exp.Expr:
    """`memory.pg.name(arguments)`."""
    function = exp.Anonymous(this=name, expressions=list(arguments))
    return exp.Dot.build([exp.to_identifier("memory"), exp.to_identifier(OURS), function])


FUNCTIONS: dict[str, Function] = {
    # Numbers.
    "abs": F(first, SAME, spark=(on(_ABS, _INT, _BIG), on("abs", _DOUBLE, _NUMERIC),), raises=True),
    "ceil": F(number_of_first, spark=(_CEIL, _AS_DOUBLE, on("ceil", _NUMERIC),), raises=True),
    "floor": F(number_of_first, spark=(_FLOOR, _AS_DOUBLE, on("floor", _NUMERIC),), raises=True),
    "round": F(number_of_first, spark=(on("rint", _DOUBLE), _AS_DOUBLE, on("round", _NUMERIC),), raises=True),
    "trunc": F(number_of_first, raises=True),
    "sign": F(number_of_first, spark=(on("CAST(sign(_1) AS DOUBLE)", _INT, _BIG),)),
    "sqrt": F(number_of_first, spark=(on("CASE WHEN _1 < 0 THEN NULL ELSE sqrt(_1) END", _DOUBLE, _INT),), raises=True),
    "cbrt": F(DOUBLE, SAME),
    "exp": F(number_of_first, raises=True),
    "ln": F(number_of_first, raises=True),
    "log": F(number, raises=True),
    "log10": F(number_of_first, raises=True),
    "power": F(number, raises=True),
    "div": F(NUMERIC, raises=True),
    "gcd": F(common, raises=True),
    "lcm": F(common, raises=True),
    "pi": F(DOUBLE, SAME, spark=(on("pi", ""),)),
    "degrees": F(DOUBLE, SAME),
    "radians": F(DOUBLE, SAME),
    **{
        name: F(DOUBLE, SAME)
        for name in ("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh",
                     "atanh")
    },
    "acosh": F(DOUBLE, raises=True),
    **{name: F(DOUBLE) for name in ("cot", "sind", "cosd", "tand")},
    # Text.
    "length": F(INTEGER, spark=(on("char_length", _TEXT),)),
    "octet_length": F(INTEGER, spark=(on("octet_length", _TEXT, _BYTES),)),
    "bit_length": F(INTEGER, spark=(on("bit_length", _TEXT, _BYTES),)),
    "lower": F(VARCHAR, SAME, spark=(on(LOWER, _TEXT),)),
    "upper": F(VARCHAR, spark=(on(UPPER, _TEXT),)),
    "initcap": F(VARCHAR),
    "substring": F(bytea_or_text, spark=(on(_REST, _TEXT), on(_SUBSTRING, _TEXT)), raises=True),
    "left": F(VARCHAR, SAME, spark=(on(_LEFT, _TEXT),), raises=True),
    "right": F(VARCHAR, SAME, spark=(on(_RIGHT, _TEXT),), raises=True),
    "lpad": F(VARCHAR, spark=(on("lpad", _TEXT),), raises=True),
    "rpad": F(VARCHAR, spark=(on("rpad", _TEXT),), raises=True),
    "btrim": F(VARCHAR, spark=(on("btrim", _TEXT),)),
    "ltrim": F(VARCHAR, spark=(on("ltrim(_1)", _TEXT), on("trim(LEADING _2 FROM _1)", _TEXT),)),
    "rtrim": F(VARCHAR, spark=(on("rtrim(_1)", _TEXT), on("trim(TRAILING _2 FROM _1)", _TEXT),)),
    "replace": F(VARCHAR, SAME, spark=(on("replace", _TEXT),)),
    "translate": F(VARCHAR, spark=(on("translate", _TEXT),)),
    "reverse": F(VARCHAR, spark=(on("reverse", _TEXT),)),
    "repeat": F(VARCHAR, spark=(on("repeat", _TEXT),), raises=True),
    "strpos": F(INTEGER, spark=(on("instr", _TEXT),)),
    "split_part": F(VARCHAR, spark=(on("split_part(_1, _2, nullif(_3, 0))", _TEXT),), raises=True),
    "starts_with": F(BOOLEAN, SAME, spark=(on("startswith", _TEXT),)),
    "overlay": F(VARCHAR, raises=True),
    "ascii": F(INTEGER, spark=(on("ascii", _TEXT),)),
    "chr": F(VARCHAR, raises=True),
    "md5": F(VARCHAR, spark=(on("md5(encode(_1, 'UTF-8'))", _TEXT),)),
    "sha256": F(BYTEA, spark=(on("unhex(sha2(_1, 256))", _BYTES),)),
    "sha1": F(BYTEA),
    "encode": F(VARCHAR),
    "decode": F(BYTEA, raises=True),
    "to_hex": F(VARCHAR, spark=(on("lower(hex(_1))", _BIG),)),
    "concat": F(VARCHAR, spark=(on("concat_ws", _TEXT, _INT),)),
    "concat_ws": F(VARCHAR, spark=(on("concat_ws", _TEXT),)),
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
    "array_to_string": F(VARCHAR, spark=(on("array_join(_1, _2)", "integer[]", "bigint[]", "character varying[]"),)),
    # Dates and times.
    "modulo": F(common),
    "extract": F(NUMERIC, raises=True),
    "date_part": F(DOUBLE, raises=True),
    "date_trunc": F(truncated, raises=True),
    # Ours: what TUMBLE and HOP are made of, over a time and microseconds.
    "tumble_start": F(
        first, spark=(on(f"CAST(timestamp_micros({_MICROS} - pmod({_MICROS}, _2)) AS TIMESTAMP_NTZ)", _STAMP),)
    ),
    "shift_time": F(
        first, spark=(on(f"CAST(timestamp_micros({_MICROS} + _2) AS TIMESTAMP_NTZ)", _STAMP, rest="bigint"),)
    ),
    # Ours: a day or time that PostgreSQL has, or NULL.
    IN_RANGE: F(first),
    "date_bin": F(lambda types: types[1] if len(types) > 1 else None, raises=True),
    "age": F(INTERVAL),
    "justify_hours": F(INTERVAL),
    "justify_days": F(INTERVAL),
    "justify_interval": F(INTERVAL),
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
    "jsonb_exists_any": F(BOOLEAN),
    "jsonb_exists_all": F(BOOLEAN),
    "to_jsonb": F(JSONB, "to_json"),
    "json_at": F(JSONB),
    "json_text_at": F(VARCHAR),
    # Arrays.
    "array_length": F(INTEGER),
    "cardinality": F(INTEGER, spark=(on("cardinality", "integer[]", "bigint[]", "character varying[]"),)),
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
    # Rows.
    "row": F(row_of, SAME),
    # Operators that are not the same on DuckDB; `planner.functions.operators` reads them as these.
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
