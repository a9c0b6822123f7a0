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
    for call in tree.find_all(exp.Anonymous):
        types = _TYPES.get((call.name.lower(), len(call.expressions)))
        for argument, type_ in zip(call.expressions, types, strict=True) if types else ():
            if type_ and (argument.is_string or isinstance(argument, exp.Null)):
                argument.replace(exp.cast(argument.copy(), type_, dialect="postgres"))
    for overlay in tree.find_all(exp.Overlay):
        for place in ("from_", "for_"):
            if (argument := overlay.args.get(place)) is not None and argument.is_string:
                argument.replace(exp.cast(argument.copy(), "int"))
