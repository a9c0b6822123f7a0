"""Prepares statements that a cursor runs repeatedly: DuckDB needs longer to plan a step of an epoch than to run it.

Found by experiment, with 1.5.5 (asserted by tests/test_statements.py):

- a plan uses the statistics of the rows at the time of planning, and is not planned again when other rows come: it
  would return wrong rows. DuckDB has no statistics of a table to which a transaction has added rows that it has not
  committed. So statements are prepared in a transaction that adds a row to each of their tables, and rolls back;
- DuckDB crashes when a thread plans while another one changes `disabled_optimizers`, which is global. So statistics are
  not turned off instead;
- a prepared statement is planned again at each run once a table or view is created or dropped in a database that it
  reads: to create or drop one in the buffer, callers use `define_shared`. Temporary tables are in another database.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from sparkwave.catalog.lake.direct_calls import Direct
from sparkwave.catalog.lake.direct_calls import execute as execute_directly
from sparkwave.catalog.lake.schema_gate import GatedCursor
from sparkwave.catalog.lake.translation import Cursor, DuckDBError
from sparkwave.catalog.names import BUFFER, DELTAS_SCHEMA, EPOCHS_SCHEMA

# The type of `run` and `run_once`.
Run = Callable[..., Cursor | Direct]
# The optimizers that no query may use.
DISABLED_OPTIMIZERS = ("common_subexpressions",)
# The most statements of a cursor, and the most seconds they are kept.
_MOST, _MOST_S = 4000, 300.0
# So many times plans are made anew at once, although those before have hardly run.
_PATIENCE = 3
# Tables of the buffer; the name of a sequence is a string.
_SHARED = re.compile(rf"(?<!')\b{BUFFER}\.(?:{EPOCHS_SCHEMA}|{DELTAS_SCHEMA})\.\w+")
_NEVER = ""


@dataclass
class _Prepared:
    """The names of a cursor's prepared statements by their text; None for a statement that is not prepared yet.

    A statement with the name _NEVER is not prepared. `since` is the value of `_shared` when they were prepared, at
    `began`, and `runs` how often any of them has run since. `due` are those to prepare next, in order. `patience` is
    how many times more they are made anew at once, although those before have hardly run. `unprepared` counts what
    DuckDB has planned to run it once.
    """

    since: object = None
    began: float = 0.0
    runs: int = 0
    unprepared: int = 0
    patience: int = _PATIENCE
    names: dict[str, str | None] = field(default_factory=dict)
    due: dict[str, None] = field(default_factory=dict)

    def renew(self) -> None:
        """Let all statements be planned anew: at once, as long as this has been worth it."""
        planned = [text for text, name in self.names.items() if name]
        if planned:
            self.patience = _PATIENCE if self.runs >= 2 * len(planned) else max(self.patience - 1, 0)
        self.names, self.due = {}, dict.fromkeys([*planned, *self.due] if self.patience else ())
        self.since, self.began, self.runs = _shared, time.monotonic(), 0


_PREPARED: WeakKeyDictionary[Cursor, _Prepared] = WeakKeyDictionary()
# Replaced by a new object at each definition in any buffer.
_shared: object = None


def define_shared(cursor: Cursor, statement: str) -> Cursor:
    """Create or drop tables or views in the buffer."""
    global _shared
    _PREPARED.setdefault(cursor, _Prepared()).unprepared += 1
    try:
        return cursor.execute(statement)
    finally:
        _shared = object()


def run(cursor: Cursor, *statements: str) -> Cursor | Direct:
    """Execute statements over tables of the buffer's epochs alone, their states and deltas.

    They run as `catalog.lake.direct_calls.execute` does, and return numbers alone.
    Several are sent together, which saves the time of a call each, and the result is the last one's. Once a statement
    has run twice, `prepare_due` prepares it. It must have no parameters, since with parameters it would be planned each
    time.
    """
    prepared = _PREPARED.setdefault(cursor, _Prepared())
    _renew_worn(prepared)
    known = {text: prepared.names[text] for text in statements if text in prepared.names}
    prepared.names |= {text: None for text in statements if text not in known}
    done = run_once(cursor, *(f"EXECUTE {known[text]}" if known.get(text) else text for text in statements))
    prepared.due |= {text: None for text, name in known.items() if name is None}
    prepared.runs += len(statements)
    prepared.unprepared += sum(not known.get(text) for text in statements)
    return done


def unprepared_runs(cursor: Cursor) -> int:
    """Return how many statements of `run` and `define_shared` DuckDB has planned to run them once."""
    return _PREPARED.setdefault(cursor, _Prepared()).unprepared


def _renew_worn(prepared: _Prepared) -> None:
    if len(prepared.names) > _MOST:
        prepared.names, prepared.due = {}, {}
    if prepared.since is not _shared or time.monotonic() - prepared.began > _MOST_S:
        prepared.renew()


def run_once(cursor: Cursor, *statements: str) -> Cursor | Direct:
    """Run statements whose texts differ each time, as `run` does."""
    text = "; ".join(statements)
    return cursor.execute_directly(text) if isinstance(cursor, GatedCursor) else execute_directly(cursor, text)


def prepare_due(cursor: Cursor) -> None:
    """Prepare the statements that have run twice. The cursor must not be in a transaction."""
    prepared = _PREPARED.get(cursor)
    if prepared is None:
        return
    _renew_worn(prepared)
    due, prepared.due = [*prepared.due], {}
    if not due:
        return
    prepared.names |= dict.fromkeys(due)
    tables = {name for text in due for name in _SHARED.findall(text)}
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
