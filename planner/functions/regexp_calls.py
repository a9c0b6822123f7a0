"""Calls of functions with regular expressions that RE2 has not, as calls of `catalog.regexp_functions`."""

from __future__ import annotations

from sqlglot import exp

from sparkwave.catalog.errors import Error
from sparkwave.planner.functions.regexp_escapes import in_re2, is_beyond_re2
from sparkwave.planner.functions.regexp_flags import flags_of, read_flags
from sparkwave.planner.functions.scalar_functions import duckdb_call, ours
from sparkwave.planner.functions.typed import type_of_part

_Args = list[exp.Expr]
# DuckDB's types of results, and for arrays, which are JSON, the structures that it reads them by.
_TYPES = dict.fromkeys(("regexp_like", "regexp_ilike"), "BOOLEAN") | dict.fromkeys(
    ("regexp_count", "regexp_instr"), "INTEGER"
)
_ARRAYS = {
    "regexp_match": '["VARCHAR"]', "regexp_split_to_array": '["VARCHAR"]', "regexp_all_matches": '[["VARCHAR"]]',
}  # fmt: skip


def in_python(name: str, arguments: _Args) -> exp.Expr | None:
    """Return a call whose constant pattern RE2 has not, or whose flags are computed; None for any other call.

    Raises Error 22023.
    """
    place = flags_of(name, len(arguments))
    flags = arguments[place].unnest() if place is not None else None
    if flags is not None and flags.find(exp.Column) is not None:
        return called(name, arguments)
    if not arguments[1].is_string:
        return None
    if flags is not None and flags.is_string and read_flags(name, flags.name).is_literal:
        return None
    if not is_beyond_re2(arguments[1].name) and _is_in_re2(arguments[1].name):
        return None
    return called(name, arguments)


# A pattern that RE2 may not have.
_BEYOND = r"\\[1-9mMyYZBuU]|\(\?<?[=!]|\[\[:[<>]:"


def _is_beyond(pattern: exp.Expr) -> exp.Expr:
    return duckdb_call("regexp_matches", pattern.copy(), exp.Literal.string(_BEYOND))


def for_re2(arguments: _Args) -> _Args:
    """Return arguments whose computed pattern is NULL where RE2 may not have it, for which it would be an error."""
    text, pattern, *others = arguments
    return [text, exp.Case().when(_is_beyond(pattern), exp.null()).else_(pattern), *others]


def by_pattern(name: str, arguments: _Args, made: exp.Expr) -> exp.Expr:
    """Return a call with a computed pattern, of which `made` is the one by RE2."""
    return exp.Case().when(_is_beyond(arguments[1]), called(name, arguments)).else_(made)


def has_basic_flag(name: str, arguments: _Args) -> bool:
    """Return whether a call has the flag of basic regular expressions."""
    place = flags_of(name, len(arguments))
    flags = arguments[place].unnest() if place is not None else None
    return flags is not None and flags.is_string and "b" in flags.name


def _is_in_re2(pattern: str) -> bool:
    try:
        in_re2(pattern)
    except Error:
        return False
    return True


def called(name: str, arguments: _Args) -> exp.Expr:
    """Return the call of a function of `catalog.regexp_functions`."""
    if name == "regexp_replace":
        arguments = _with_number(arguments)
    texts = [each.copy() if each.is_string else exp.cast(each.copy(), exp.DType.VARCHAR) for each in arguments]
    made = ours("regexp_text", exp.Literal.string(name), exp.Array(expressions=texts))
    if name in _ARRAYS:
        return duckdb_call("from_json", made, exp.Literal.string(_ARRAYS[name]))
    return exp.cast(made, _TYPES.get(name, "VARCHAR"), dialect="duckdb")


def _with_number(arguments: _Args) -> _Args:
    """Return the arguments of regexp_replace with a place, the number of a match, 0 for all, and flags."""
    given, more = arguments[:3], arguments[3:]
    one = exp.Literal.number(1)
    type_ = type_of_part(more[0]) if more else None
    has_place = bool(more) and (more[0].unnest().is_int or (type_ is not None and type_.is_integer))
    start = more.pop(0) if has_place else one
    number = more.pop(0) if has_place and more else None
    flags = more[0] if more else exp.Literal.string("")
    if number is None:
        is_all = duckdb_call("contains", flags.copy(), exp.Literal.string("g"))
        number = exp.Case().when(is_all, exp.Literal.number(0)).else_(one.copy())
    return [*given, start, number, flags]
