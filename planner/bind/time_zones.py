"""AT TIME ZONE of dates and texts, and of offsets written as POSIX has them, whose sign is that of the way to UTC."""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot import exp

from sparkwave.catalog.types import DATE, INTERVAL, TIMESTAMPTZ
from sparkwave.planner.functions.result_types import Known
from sparkwave.planner.functions.typed import data_type

_OFFSET = re.compile(r"(?:[A-Za-z]{3,})?([+-])(\d{1,2})(:[0-5]\d)?")


def with_zones(tree: exp.Expr, type_of: Callable[[exp.Expr], Known]) -> bool:
    """Make intervals of offsets, and times with zones of dates and texts, in place. Returns whether there are any."""
    found = False
    for node in tree.find_all(exp.AtTimeZone):
        if node.this.is_string or type_of(node.this) == DATE:
            node.set("this", exp.cast(node.this.copy(), data_type(TIMESTAMPTZ)))
            found = True
        zone = node.args["zone"]
        if zone.is_string and (offset := _OFFSET.fullmatch(zone.name)):
            sign, hours, minutes = offset.groups("")
            distance = f"{'-' if sign == '+' else ''}{hours}{minutes or ':00'}"
            node.set("zone", exp.cast(exp.Literal.string(distance), data_type(INTERVAL)))
            found = True
    return found
