"""Parallelisms as text, in the form SHOW prints them.

`default`, `adaptive`, a number, `bounded(n)` or `ratio(r)` (RisingWave: src/common/src/session_config/parallelism.rs).
"""

from __future__ import annotations

import re

DEFAULT, ADAPTIVE = "default", "adaptive"
# The largest number of vnodes of a job, and so of its parallel parts (VirtualNode::MAX_COUNT).
LARGEST = 32768

# The parallelism of each kind of relation unless a variable says another (src/stream_fragmenter/parallelism.rs).
BUILT_IN = {
    "table": "bounded(4)",
    "source": "bounded(4)",
    "sink": "bounded(8)",
    "materialized view": "bounded(64)",
    "index": "bounded(64)",
}

_CALL = re.compile(r"(bounded|ratio)\s*\(\s*([\d.]+)\s*\)")


def normalise_parallelism(text: str) -> str:
    """Return the parallelism as SHOW prints it. Raises ValueError with the reason."""
    word = text.strip().lower()
    if word in (ADAPTIVE, "auto", "0"):
        return ADAPTIVE
    if word == DEFAULT:
        return DEFAULT
    call = _CALL.fullmatch(word)
    if call is None:
        return str(_positive(word))
    if call[1] == "bounded":
        return f"bounded({_positive(call[2])})"
    return f"ratio({_ratio(call[2])})"


def normalise_backfill_parallelism(text: str) -> str:
    """Return the parallelism of a backfill, like `normalise_parallelism`. Raises ValueError with the reason."""
    found = normalise_parallelism(text)
    if found != DEFAULT and not found.isdigit():
        raise ValueError(
            "Only `default` or fixed backfill parallelism is supported here; "
            "adaptive backfill strategy is deferred to a later change."
        )
    return found


def check_maximum(parallelism: str, maximum: int, what: str = "parallelism") -> None:
    """Raise ValueError for a fixed parallelism above the maximum (RisingWave: stream_fragmenter/parallelism.rs)."""
    if parallelism.isdigit() and int(parallelism) > maximum:
        raise ValueError(f"specified {what} {parallelism} should not exceed max parallelism {maximum}")


def _positive(text: str) -> int:
    if not re.fullmatch(r"\d+", text):
        raise ValueError("invalid digit found in string")
    if int(text) == 0:
        raise ValueError("parallelism must be greater than 0")
    return int(text)


def _ratio(text: str) -> str:
    try:
        value = float(text)
    except ValueError:
        raise ValueError("invalid float literal") from None
    if not 0 <= value <= 1:
        raise ValueError("ratio must be between 0 and 1")
    return f"{value:g}"
