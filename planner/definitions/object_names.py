"""The names that PostgreSQL gives to what is made for a table (src/backend/commands/indexcmds.c, makeObjectName)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

# As many bytes as a name of PostgreSQL has; here characters (src/include/pg_config_manual.h, NAMEDATALEN).
_LONGEST = 63


def object_name(table: str, column: str | None, kind: str, is_free: Callable[[str], bool]) -> str:
    """`table_column_kind`, with a number behind it if that is not free; the longer of the names is cut for it."""
    for number in count():
        end = f"_{kind}{number or ''}"
        first, second = table, column or ""
        while len(first) + len(second) + bool(second) + len(end) > _LONGEST:
            first, second = (first[:-1], second) if len(first) > len(second) else (first, second[:-1])
        found = f"{first}_{second}{end}" if second else f"{first}{end}"
        if is_free(found):
            return found
    raise AssertionError
