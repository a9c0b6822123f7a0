"""Texts without a type as arguments: they take the type that the only function of the name has there."""

from __future__ import annotations

from sqlglot import exp

_MOMENT = ("int", "int", "int", "int", "int", "double precision")
# By name and number of arguments; an argument without a type here stays as it is.
_TYPES: dict[tuple[str, int], tuple[str, ...]] = {
    **{(name, 1): ("interval",) for name in ("justify_days", "justify_hours", "justify_interval")},
    **{(name, 1): ("numeric",) for name in ("min_scale", "scale", "trim_scale")},
    **{(name, 2): ("numeric", "int") for name in ("round", "trunc")},
    ("make_date", 3): ("int", "int", "int"), ("make_time", 3): ("int", "int", "double precision"),
    ("make_timestamp", 6): _MOMENT, ("make_timestamptz", 6): _MOMENT, ("make_timestamptz", 7): (*_MOMENT, ""),
    ("substr", 2): ("", "int"), ("substr", 3): ("", "int", "int"),
}  # fmt: skip


def with_text_arguments(tree: exp.Expr) -> None:
    """Cast such texts, in place."""
    for call in tree.find_all(exp.Anonymous, exp.Overlay):
        for argument, type_ in _typed_arguments(call):
            argument.replace(exp.cast(argument.copy(), type_, dialect="postgres"))


def _typed_arguments(call: exp.Expr) -> list[tuple[exp.Expr, str]]:
    """Return the arguments without a type that take one, with the type."""
    if isinstance(call, exp.Overlay):
        places = map(call.args.get, ("from_", "for_"))
        return [(argument, "int") for argument in places if argument is not None and argument.is_string]
    types = _TYPES.get((call.name.lower(), len(call.expressions)), ())
    arguments = zip(call.expressions, types, strict=False)  # no types for other functions
    return [(each, type_) for each, type_ in arguments if type_ and (each.is_string or isinstance(each, exp.Null))]
