"""Frames of RANGE with an offset: PostgreSQL's bounds never overflow, where DuckDB computes them in the key's type."""

from __future__ import annotations

from sqlglot import exp

from sparkwave.catalog.types import Type

_INTEGERS = ("smallint", "integer", "bigint")


def has_offset(spec: exp.Expr | None) -> bool:
    """Return whether a frame is one of RANGE with an offset."""
    if not isinstance(spec, exp.WindowSpec) or spec.text("kind").upper() != "RANGE":
        return False
    return any(isinstance(spec.args.get(bound), exp.Expr) for bound in ("start", "end"))


def sort_keys_of_offsets(tree: exp.Expr) -> list[exp.Expr]:
    """Return the sort keys of windows whose frames have offsets; such a window has one."""
    windows = (window for window in tree.find_all(exp.Window) if has_offset(window.args.get("spec")))
    return [order.expressions[0].this for window in windows if (order := window.args.get("order")) is not None]


def widened(key: exp.Expr, type_: Type | None) -> exp.Expr:
    """Return a sort key in a type that has room for the bounds, if it is an integer; any other key as it is."""
    is_integer = type_ is not None and not type_.dimensions and type_.name in _INTEGERS
    return exp.cast(key.copy(), exp.DType.INT128) if is_integer else key
