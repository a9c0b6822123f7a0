"""Frames of RANGE with an offset: PostgreSQL's bounds never overflow, where DuckDB computes them in the key's type."""

from __future__ import annotations

from sqlglot import exp

from sparkwave.catalog.types import INTERVAL, Type
from sparkwave.planner.functions.scalar_functions import ours
from sparkwave.planner.functions.typed import data_type

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


def give_room(key: exp.Expr, type_: Type | None) -> None:
    """Give a sort key, in its window, a type that has room for the bounds, if it is an integer or an interval.

    Intervals, and their offsets, become their lengths: DuckDB misses equal ones of other days.
    """
    if type_ is None or type_.dimensions:
        return
    if type_.name in _INTEGERS:
        key.replace(exp.cast(key.copy(), exp.DType.INT128))
    elif type_ == INTERVAL:
        window = key.find_ancestor(exp.Window)
        assert window is not None
        spec = window.args["spec"]
        key.replace(ours("interval_key", key.copy()))
        for bound in ("start", "end"):
            if isinstance(offset := spec.args.get(bound), exp.Expr):
                typed = exp.cast(offset, data_type(INTERVAL))  # a text may have no type yet
                spec.set(bound, ours("interval_key", typed))
