"""Checks what a window's frame says, and gives its offsets types.

PostgreSQL: opt_frame_clause in src/backend/parser/gram.y, transformFrameOffset in src/backend/parser/parse_clause.c.
"""

from __future__ import annotations

import re

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error

_NUMBER = re.compile(r"\s*[-+]?[\d.]+\s*")
_ROW, _WITHOUT_END = "CURRENT ROW", ""
# What ends no frame that begins with the current row, or with an offset behind it.
_BEFORE = {
    (_ROW, "PRECEDING"): "frame starting from current row cannot have preceding rows",
    ("FOLLOWING", "PRECEDING"): "frame starting from following row cannot have preceding rows",
    ("FOLLOWING", _ROW): "frame starting from following row cannot have preceding rows",
    ("FOLLOWING", _WITHOUT_END): "frame starting from following row cannot end with current row",
}


def typed_offset(offset: object) -> object:
    """Return an offset of a frame; a text that is no number is an interval, as only times have such offsets."""
    is_text = isinstance(offset, exp.Literal) and offset.is_string and not _NUMBER.fullmatch(offset.name)
    return exp.cast(offset, exp.DType.INTERVAL) if is_text and isinstance(offset, exp.Expr) else offset


def check_frame(window: exp.Window, place: int, starts: tuple[int, ...]) -> None:
    """Raise Error 42P20 or 22013 for a frame that PostgreSQL refuses.

    `place` is where the window begins in the text, and `starts` where the bounds do.
    """
    spec = window.args["spec"]
    sides = [_side(spec, "start"), _side(spec, "end")]
    places = starts[-2:] if spec.args.get("end") else (starts[-1], starts[-1])
    if sides[0] == "UNBOUNDED FOLLOWING":
        raise _refused("frame start cannot be UNBOUNDED FOLLOWING", places[0])
    if sides[1] == "UNBOUNDED PRECEDING":
        raise _refused("frame end cannot be UNBOUNDED PRECEDING", places[1])
    if (message := _BEFORE.get((sides[0], sides[1]))) is not None:
        raise _refused(message, places[1])
    offsets = [(name, found) for name in ("start", "end") if isinstance(found := spec.args.get(name), exp.Expr)]
    is_range = spec.text("kind").upper() == "RANGE"
    order = window.args.get("order")
    if is_range and offsets and (order is None or len(order.expressions) != 1) and not window.args.get("alias"):
        message = "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column"
        raise _refused(message, place)
    for name, offset in offsets:
        if isinstance(offset, exp.Neg) and isinstance(offset.this, exp.Literal) and offset.this.name.strip("0.") != "":
            message = f"frame {name}ing offset must not be negative"
            invalid = "invalid preceding or following size in window function"
            raise Error(invalid if is_range else message, errors.INVALID_PRECEDING_OR_FOLLOWING_SIZE)


def _side(spec: exp.Expr, bound: str) -> str:
    """Return where a bound is: CURRENT ROW, or an offset's or UNBOUNDED's side; nothing for an end that is not said."""
    value = spec.args.get(bound)
    if value is None or (isinstance(value, str) and value.upper() == _ROW):
        return _ROW if value is not None else _WITHOUT_END
    side = spec.text(f"{bound}_side").upper()
    return f"UNBOUNDED {side}" if isinstance(value, str) else side


def _refused(message: str, position: int) -> Error:
    return Error(message, errors.WINDOWING_ERROR, position=position)
