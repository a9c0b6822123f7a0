"""Converts arguments by name, `make_interval(days => 3)`, to arguments by place."""

from __future__ import annotations

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error

_DAY = ("year", "month", "day")
_MOMENT = ("year", "month", "mday", "hour", "min", "sec")
# PostgreSQL's names of arguments, for functions with several named arguments.
_NAMES = {
    "make_interval": ("years", "months", "weeks", "days", "hours", "mins", "secs"),
    "make_date": _DAY,
    "make_time": ("hour", "min", "sec"),
    "make_timestamp": _MOMENT,
    "make_timestamptz": (*_MOMENT, "timezone"),
    "jsonb_set": ("jsonb_in", "path", "replacement", "create_if_missing"),
    "jsonb_insert": ("jsonb_in", "path", "replacement", "insert_after"),
    "jsonb_set_lax": ("jsonb_in", "path", "replacement", "create_if_missing", "null_value_treatment"),
    **dict.fromkeys(
        (
            "jsonb_path_exists",
            "jsonb_path_match",
            "jsonb_path_query",
            "jsonb_path_query_array",
            "jsonb_path_query_first",
        ),
        ("target", "path", "vars", "silent"),
    ),
}
# The default of an omitted argument before a given one.
_DEFAULTS: dict[str, exp.Expr] = {
    "make_interval": exp.Literal.number(0),
    "jsonb_set_lax": exp.true(),
    **{name: exp.Literal.string("{}") for name in _NAMES if name.startswith("jsonb_path_")},
}


def with_places(tree: exp.Expr) -> exp.Expr:
    """Return the tree, changed in place. Raises Error 42601 and 42883; calls of other functions stay as they are."""
    for call in tree.find_all(exp.Anonymous):
        names = _NAMES.get(call.name.lower())
        if names is not None and any(map(_is_named, call.expressions)):
            call.set("expressions", _placed(call, names))
    return tree


def _is_named(argument: exp.Expr) -> bool:
    return isinstance(argument, exp.Kwarg | exp.PropertyEQ)


def _placed(call: exp.Anonymous, names: tuple[str, ...]) -> list[exp.Expr]:
    placed: dict[int, exp.Expr] = {}
    is_named = False
    for place, argument in enumerate(call.expressions):
        is_named = is_named or _is_named(argument)
        if not is_named:
            placed[place] = argument
        elif not _is_named(argument):
            raise Error("positional argument cannot follow named argument", errors.SYNTAX_ERROR)
        else:
            name = argument.this.name.lower()
            if name not in names:
                message = f'function {call.name.lower()} has no argument "{name}"'
                raise Error(message, errors.UNDEFINED_FUNCTION, hint=f"Its arguments are {', '.join(names)}.")
            if names.index(name) in placed:
                raise Error(f'argument name "{name}" used more than once', errors.SYNTAX_ERROR)
            placed[names.index(name)] = argument.expression
    default = _DEFAULTS.get(call.name.lower())
    made = [placed.get(place, default) for place in range(max(placed) + 1)]
    missing = [name for name, argument in zip(names, made, strict=False) if argument is None]
    if missing:
        message = f'function {call.name.lower()} needs the argument "{missing[0]}"'
        raise Error(message, errors.UNDEFINED_FUNCTION)
    return [argument.copy() for argument in made if argument is not None]
