"""The names that PostgreSQL gives to a table's dependent objects (src/backend/commands/indexcmds.c, makeObjectName)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

# The most bytes of a PostgreSQL name; here characters (src/include/pg_config_manual.h, NAMEDATALEN).
_LONGEST = 63


def object_name(table: str, column: str | None, kind: str, is_free: Callable[[str], bool]) -> str:
    """Return `table_column_kind`, with a number appended if it is taken; the longer of the names is cut to fit."""
    for number in count():
        end = f"_{kind}{number or ''}"
        first, second = table, column or ""
        while len(first) + len(second) + bool(second) + len(end) > _LONGEST:
            first, second = (first[:-1], second) if len(first) > len(second) else (first, second[:-1])
        found = f"{first}_{second}{end}" if second else f"{first}{end}"
        if is_free(found):
            return found
    raise AssertionError
