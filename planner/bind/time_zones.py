"""AT TIME ZONE of dates and texts, of offsets written as POSIX has them, whose sign is that of the way to UTC, and of
PostgreSQL's abbreviations, which the engines take for other zones: BST for Bangladesh, PST for a zone with summer time.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot import exp

from sparkwave.catalog.moment_words import CHANGING, DAYLIGHT, STANDARD
from sparkwave.catalog.types import DATE, INTERVAL, TIMESTAMPTZ
from sparkwave.planner.functions.result_types import Known
from sparkwave.planner.functions.typed import data_type

_OFFSET = re.compile(r"(?:[A-Za-z]{3,})?([+-])(\d{1,2})(:[0-5]\d)?")


# Those that the engines know as they are.
_KNOWN = frozenset({"gmt", "utc", "uct", "zulu"})


def with_zones(tree: exp.Expr, type_of: Callable[[exp.Expr], Known], has_abbreviations: bool = True) -> bool:
    """Make intervals of offsets, and times with zones of dates and texts, in place. Returns whether there are any.

    Abbreviations are those of definitions since `since.ZONE_ABBREVIATIONS`.
    """
    found = False
    for node in tree.find_all(exp.AtTimeZone):
        if node.this.is_string or type_of(node.this) == DATE:
            node.set("this", exp.cast(node.this.copy(), data_type(TIMESTAMPTZ)))
            found = True
        made = _zone(node.args["zone"], has_abbreviations)
        if made is not None:
            node.set("zone", made)
            found = True
    return found


def _zone(zone: exp.Expr, has_abbreviations: bool) -> exp.Expr | None:
    """Return the zone that a text means, where the engines would not read it so."""
    if not zone.is_string:
        return None
    if offset := _OFFSET.fullmatch(zone.name):
        sign, hours, minutes = offset.groups("")
        return _distance(f"{'-' if sign == '+' else ''}{hours}{minutes or ':00'}")
    name = zone.name.lower()
    if not has_abbreviations or name in _KNOWN:
        return None
    if name in CHANGING:
        return exp.Literal.string(CHANGING[name])
    minutes_east = STANDARD.get(name, DAYLIGHT.get(name))
    return None if minutes_east is None else _distance(f"{minutes_east} minutes")


def _distance(text: str) -> exp.Expr:
    return exp.cast(exp.Literal.string(text), data_type(INTERVAL))
