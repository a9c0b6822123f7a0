"""Prepares statements that a cursor runs repeatedly: DuckDB needs longer to plan a step of an epoch than to run it.

Found by experiment, with 1.5.5 (asserted by tests/test_statements.py):

- a plan uses the statistics of the rows at the time of planning, and is not planned again when other rows come: it
  would return wrong rows. DuckDB has no statistics of a table to which a transaction has added rows that it has not
  committed. So statements are prepared in a transaction that adds a row to each of their tables, and rolls back;
- DuckDB crashes when a thread plans while another one changes `disabled_optimizers`, which is global. So statistics are
  not turned off instead;
- a prepared statement is planned again at each run once a table or view is created or dropped in a database that it
  reads: to create or drop a temporary one, callers use `define`, and for one in the `BUFFER`, `define_shared`.
"""

from __future__ import annotations

import re
import time
from contextlib import suppress
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from sparkwave.catalog.lake.translation import Cursor, DuckDBError
from sparkwave.catalog.names import BUFFER, EPOCHS_SCHEMA

# The optimizers that no query may use.
DISABLED_OPTIMIZERS = ("common_subexpressions",)
# The most statements of a cursor, and the most seconds they are kept.
_MOST, _MOST_S = 4000, 300.0
_DROPPED = re.compile(r"\bDROP TABLE (?:IF EXISTS )?(\w+)")
# Tables of the buffer; the name of a sequence is a string.
_SHARED = re.compile(rf"(?<!')\b{BUFFER}\.{EPOCHS_SCHEMA}\.\w+")
_WORD = re.compile(r"\w+")
_NEVER = ""


@dataclass
class _Prepared:
    """The names of a cursor's prepared statements by their text; None for a statement that is not prepared yet.

    A statement with the name _NEVER is not prepared. `since` is the value of `_shared` when they were prepared; `due`
    are those to prepare next, in order.
    """

    since: object = None
    began: float = 0.0
    names: dict[str, str | None] = field(default_factory=dict)
    due: dict[str, None] = field(default_factory=dict)


_PREPARED: WeakKeyDictionary[Cursor, _Prepared] = WeakKeyDictionary()
# The names of each cursor's temporary tables.
_TEMPORARY: WeakKeyDictionary[Cursor, set[str]] = WeakKeyDictionary()
# Replaced by a new object at each definition in any buffer.
_shared: object = None


def define(cursor: Cursor, statement: str) -> Cursor:
    """Create or drop temporary tables or views of the cursor."""
    _PREPARED.pop(cursor, None)
    _TEMPORARY.setdefault(cursor, set()).difference_update(_DROPPED.findall(statement))
    return cursor.execute(statement)


def make_temporary(cursor: Cursor, name: str, query: str) -> int:
    """Create or replace a temporary table with the rows of a query. Returns their number."""
    [(count,)] = define(cursor, f"CREATE OR REPLACE TEMPORARY TABLE {name} AS {query}").fetchall()
    _TEMPORARY.setdefault(cursor, set()).add(name)
    return count


def define_shared(cursor: Cursor, statement: str) -> Cursor:
    """Create or drop tables or views in the buffer."""
    global _shared
    try:
        return cursor.execute(statement)
    finally:
        _shared = object()


def run(cursor: Cursor, *statements: str) -> Cursor:
    """Execute statements over temporary tables (`make_temporary`) and tables of the buffer's epochs alone.

    Several are sent together, which saves the time of a call each, and the result is the last one's. Once a statement
    has run twice, `prepare_due` prepares it. It must have no parameters, since with parameters it would be planned each
    time.
    """
    prepared, now = _PREPARED.setdefault(cursor, _Prepared()), time.monotonic()
    if prepared.since is not _shared or len(prepared.names) > _MOST or now - prepared.began > _MOST_S:
        prepared.since, prepared.began, prepared.names, prepared.due = _shared, now, {}, {}
    known = {text: prepared.names[text] for text in statements if text in prepared.names}
    prepared.names |= {text: None for text in statements if text not in known}
    done = cursor.execute("; ".join(f"EXECUTE {known[text]}" if known.get(text) else text for text in statements))
    prepared.due |= {text: None for text, name in known.items() if name is None}
    return done


def run_once(cursor: Cursor, *statements: str) -> Cursor:
    """As `run`, for statements whose texts differ each time."""
    return cursor.execute("; ".join(statements))


def prepare_due(cursor: Cursor) -> None:
    """Prepare the statements that have run twice. The cursor must not be in a transaction."""
    prepared = _PREPARED.get(cursor)
    if prepared is None or not prepared.due:
        return
    due, prepared.due = [*prepared.due], {}
    if prepared.since is not _shared:
        return
    tables = {name for text in due for name in _SHARED.findall(text)}
    tables |= _TEMPORARY.get(cursor, set()) & {word for text in due for word in _WORD.findall(text)}
    places = {text: number for number, text in enumerate(prepared.names)}
    try:
        cursor.execute("BEGIN; " + "; ".join(f"INSERT INTO {table} DEFAULT VALUES" for table in sorted(tables)))
        for text in due:
            cursor.execute(f"PREPARE statement_{places[text]} AS {text}")
    except DuckDBError:  # another thread may have changed a table
        prepared.names |= dict.fromkeys(due, _NEVER)
        return
    finally:
        with suppress(DuckDBError):
            cursor.execute("ROLLBACK")
    prepared.names |= {text: f"statement_{places[text]}" for text in due}
