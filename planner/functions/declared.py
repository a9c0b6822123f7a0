"""The casts, operators and aggregates that PostgreSQL declares for its types, as data.

From `pg_cast`, `pg_operator` and `pg_proc` of PostgreSQL 15, with the implicit casts of operands. DuckDB has more: it
casts a date to an integer, adds up dates, and finds a number in an array of texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sparkwave.catalog.types import Type
from sparkwave.planner.functions.result_types import Known

_TIMESTAMPS = "timestamp without time zone", "timestamp with time zone"
# Words for several types in the tables below, and for those with a long name.
_TYPES: dict[str, tuple[str, ...]] = {
    "small": ("smallint", "integer"),
    "integers": ("smallint", "integer", "bigint"),
    "exact": ("smallint", "integer", "bigint", "numeric"),
    "numbers": ("smallint", "integer", "bigint", "numeric", "real", "double precision"),
    "moments": ("date", *_TIMESTAMPS),
    "timestamps": _TIMESTAMPS,
    "durations": ("time", "interval"),
    "documents": ("json", "jsonb"),
    "all": ("smallint", "integer", "bigint", "numeric", "real", "double precision", "boolean", "text", "date",
            *_TIMESTAMPS, "time", "interval", "bytea", "json", "jsonb", "uuid"),
}  # fmt: skip
_PLAIN = frozenset(_TYPES["all"])
_NAMES = {"character varying": "text", "time without time zone": "time"}

# Types of one category of PostgreSQL, of which arrays are another.
_CATEGORIES = (frozenset(("date", "time", *_TIMESTAMPS)), frozenset(("bytea", "json", "jsonb", "uuid")))

_Table = Mapping[str, frozenset[str]]


def _table(rows: Mapping[str, str]) -> _Table:
    """Return types to types, from words to words."""
    found: dict[str, set[str]] = {}
    for words, others in rows.items():
        for word in words.split():
            for name in _TYPES.get(word, (word,)):
                found.setdefault(name, set()).update(
                    each for other in others.split() for each in _TYPES.get(other, (other,))
                )
    return {name: frozenset(others) for name, others in found.items()}


# Explicit casts to other types than text, which everything is cast to and from.
_CASTS = _table({
    "numbers": "numbers", "integer": "boolean", "boolean": "boolean integer", "date": "moments",
    "timestamps": "moments time", "time": "durations", "interval": "durations", "documents": "documents",
    "jsonb": "numbers boolean", "bytea": "bytea", "uuid": "uuid",
})  # fmt: skip
_ARITHMETIC = _table({"numbers": "numbers"})
_BITS = _table({"integers": "integers"})
_EQUAL = _table({
    "numbers": "numbers", "boolean": "boolean", "text": "text", "moments": "moments", "durations": "durations",
    "bytea": "bytea", "jsonb": "jsonb", "uuid": "uuid",
})  # fmt: skip
_COMMON = _table({"numbers": "numbers", "moments": "moments"})
_TEXTS = _table({"text": "text"})
_LIKE = _table({"text": "text", "bytea": "bytea"})
_PARTS = _table({"documents": "small text"})
_PATHS = _table({"documents": "text[]"})
# Operators, each with the types of its left and right operands. Arrays of one type are said in `_OF_ARRAYS`.
_OPERATORS: dict[str, _Table] = {
    "+": _table({
        "numbers": "numbers", "small": "date", "date": "small durations", "time": "moments interval",
        "timestamps": "durations", "interval": "moments durations",
    }),
    "-": _table({
        "numbers": "numbers", "date": "small moments durations", "durations": "durations",
        "timestamps": "moments durations", "jsonb": "small text text[]",
    }),
    "*": _table({"numbers": "numbers durations", "durations": "numbers"}),
    "/": _table({"numbers durations": "numbers"}),
    "%": _table({"exact": "exact"}),
    "^": _ARITHMETIC,
    "||": _table({"text": "all", "all": "text", "bytea": "bytea", "jsonb": "jsonb"}),
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">="), _EQUAL),
    **dict.fromkeys(("&", "|", "#"), _BITS),
    **dict.fromkeys(("<<", ">>"), _table({"integers": "small"})),
    **dict.fromkeys(("->", "->>"), _PARTS),
    **dict.fromkeys(("#>", "#>>"), _PATHS),
    "#-": _table({"jsonb": "text[]"}),
    **dict.fromkeys(("@>", "<@"), _table({"jsonb": "jsonb"})),
    "&&": {},
    "?": _table({"jsonb": "text"}),
    **dict.fromkeys(("?|", "?&"), _table({"jsonb": "text[]"})),
    **dict.fromkeys(("~", "~*", "~~*"), _TEXTS),
    "~~": _LIKE,
}  # fmt: skip
_OF_ARRAYS = frozenset({"=", "<>", "<", "<=", ">", ">=", "@>", "<@", "&&", "||"})
OPERATORS_OF_DOCUMENTS = frozenset({"->", "->>", "#>", "#>>", "#-", "?", "?|", "?&", "@>", "<@"})
# Operators before an operand.
_SIGNS: _Table = _table({"-": "numbers durations", "+": "numbers", "~": "integers", "|/ ||/ @": "numbers"})
# Aggregates, and functions of windows, by the types of their arguments.
_ARGUMENTS = _table({
    "avg sum": "numbers durations", "stddev stddev_pop stddev_samp variance var_pop var_samp": "numbers",
    "bool_and bool_or every": "boolean", "bit_and bit_or bit_xor": "integers", "ntile": "small",
    "corr covar_pop covar_samp regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy "
    "regr_syy": "numbers", "percentile_cont": "numbers durations", "string_agg": "text",
})  # fmt: skip
# Functions of documents, by the types of their arguments, of which the last stands for all further ones.
CALLS: dict[str, tuple[str, ...]] = {
    name: tuple(words.split())
    for names, words in {
        "jsonb_typeof jsonb_array_length jsonb_pretty jsonb_array_elements jsonb_array_elements_text "
        "jsonb_object_keys jsonb_each jsonb_each_text jsonb_to_record jsonb_to_recordset "
        "jsonb_populate_record jsonb_populate_recordset": "jsonb",
        "json_typeof json_array_length json_array_elements json_array_elements_text json_object_keys "
        "json_each json_each_text json_to_record json_to_recordset json_populate_record "
        "json_populate_recordset": "json",
        "jsonb_strip_nulls": "jsonb boolean", "json_strip_nulls": "json boolean",
        "jsonb_extract_path jsonb_extract_path_text jsonb_exists": "jsonb text",
        "json_extract_path json_extract_path_text": "json text",
        "jsonb_exists_any jsonb_exists_all": "jsonb text[]",
        "jsonb_set jsonb_insert": "jsonb text[] jsonb boolean",
        "jsonb_set_lax": "jsonb text[] jsonb boolean text",
        "jsonb_object json_object": "text[]",
        # A jsonpath is a text here.
        "jsonb_path_exists jsonb_path_match jsonb_path_query jsonb_path_query_array jsonb_path_query_first":
        "jsonb text jsonb boolean",
    }.items()
    for name in names.split()
}  # fmt: skip
OF_DOCUMENTS = frozenset(CALLS)


def has_cast(source: Known, target: Known) -> bool:
    """Return whether a value of a type can be cast to another. True also for types of which nothing is known here."""
    own, other = _name(source), _name(target)
    if source is None or target is None or own is None or other is None or "text" in (own, other):
        return True
    if own.endswith("[]") and other.endswith("[]"):
        return own == other or has_cast(_innermost(source), _innermost(target))
    return other in _CASTS.get(own, ())


def have_common(left: Known, right: Known) -> bool:
    """Return whether values of two types are values of one of them: in CASE, ARRAY or UNION. True for unknown ones."""
    own, other = _name(left), _name(right)
    if own is None or other is None or own == other:
        return True
    if left is not None and right is not None and left.dimensions and right.dimensions:
        return have_common(_innermost(left), _innermost(right))  # the types of elements are not known so well
    return other in _COMMON.get(own, ())


def are_alike(left: Known, right: Known) -> bool:
    """Return whether two types are of one category, of which PostgreSQL says that one is not converted to the other."""
    own, other = _name(left) or "", _name(right) or ""
    return (own.endswith("[]") and other.endswith("[]")) or any({own, other} <= kind for kind in _CATEGORIES)


def has_operator(operator: str, left: Known, right: Known) -> bool:
    """Return whether an operator takes operands of these types. True also for what is not known here."""
    own, other, table = _name(left), _name(right), _OPERATORS.get(operator)
    if operator in OPERATORS_OF_DOCUMENTS and own is not None and own not in _OPERATORS[operator]:
        return left is not None and left.dimensions > 0 and operator in _OF_ARRAYS
    if left is None or right is None or own is None or other is None or table is None:
        return True
    if operator in _OF_ARRAYS and (left.dimensions or right.dimensions):
        return _meet_as_arrays(operator, left, right)
    return other in table.get(own, ())


def _meet_as_arrays(operator: str, left: Type, right: Type) -> bool:
    """Return whether operands of which one is an array have one type of elements; `||` takes an element, too."""
    if operator != "||" and not (left.dimensions and right.dimensions):
        return False
    own, other = _name(_innermost(left)), _name(_innermost(right))
    return own == other or other in _EQUAL.get(own or "", ())


def has_sign(operator: str, operand: Known) -> bool:
    """Return whether an operator without a left operand takes one of this type. True also for unknown ones."""
    name = _name(operand)
    return name is None or name in _SIGNS.get(operator, (name,))


def takes_argument(function: str, argument: Known) -> bool:
    """Return whether an aggregate takes an argument of this type. True also for what is not known here."""
    name = _name(argument)
    return name is None or name in _ARGUMENTS.get(function, (name,))


def takes_documents(function: str, arguments: Sequence[Known]) -> bool:
    """Return whether a function of `OF_DOCUMENTS` takes arguments of these types. True also for unknown ones."""
    wanted, names = CALLS[function], map(_name, arguments)
    return all(name in (None, wanted[min(place, len(wanted) - 1)]) for place, name in enumerate(names))


_ZONES = ("timezone", "timezone_hour", "timezone_minute")
_CLOCK = ("hour", "minute", "second", "milliseconds", "microseconds")


def has_part(function: str, unit: str, value: Known) -> bool:
    """Return whether extract or date_part takes a part of a value of this type: days have no clock, and no zone."""
    name = _name(value)
    if unit in _ZONES:
        return name not in ("date", "timestamp without time zone")
    return unit not in _CLOCK or name != "date" or function == "date_part"


def _innermost(type_: Type) -> Type:
    """Return the type of the elements of an array of any dimensions, or a type itself."""
    return replace(type_, dimensions=0)


def _name(type_: Known) -> str | None:
    """Return the name of a type in the tables, the same for text and varchar, None where there is none."""
    if type_ is None:
        return None
    name = _NAMES.get(type_.name, type_.name)
    if type_.labels or type_.fields or type_.named is not None or name not in _PLAIN:
        return None
    return f"{name}[]" if type_.dimensions else name
