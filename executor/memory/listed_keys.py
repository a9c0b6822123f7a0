"""How DuckDB looks rows up by keys from a small table: by a list of them, which skips row groups without any."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakSet

from sparkwave.catalog.lake.ducklake import Cursor

# A join with at most so many keys looks rows up by a list of keys, in the usual case and with `listed_keys`.
_USUAL_KEYS, MOST_KEYS = 50, 5000
# Cursors that always do so.
_ALWAYS: WeakSet[Cursor] = WeakSet()


def list_keys_always(cursor: Cursor) -> None:
    """Let a cursor, which reads memory alone, look up to MOST_KEYS keys up as a list."""
    cursor.execute(f"SET dynamic_or_filter_threshold = {MOST_KEYS}")
    _ALWAYS.add(cursor)


@contextmanager
def listed_keys(cursor: Cursor, keys: int) -> Iterator[None]:
    """While entered, up to MOST_KEYS keys are looked up as a list, if there are more `keys` than usual."""
    is_set = keys > _USUAL_KEYS and cursor not in _ALWAYS
    if is_set:
        cursor.execute(f"SET dynamic_or_filter_threshold = {MOST_KEYS}")
    try:
        yield
    finally:
        if is_set:
            cursor.execute("RESET dynamic_or_filter_threshold")
