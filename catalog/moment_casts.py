"""Brings texts of dates, times and intervals into DuckDB's form, in its databases.

DuckDB reads fewer forms than PostgreSQL, and takes the beginning of others. `catalog/system/scalar.sql` calls the
function for what is not plainly ISO. This module is sent to Spark's executors (`executor.spark.kernel`), so it imports
nothing of this package but what is sent with it.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from sparkwave.catalog.errors import Error
from sparkwave.catalog.interval_texts import duckdb_text, read_interval
from sparkwave.catalog.moment_texts import MDY, iso_text, no_moment, read_moment
from sparkwave.catalog.moment_words import RELATIVE

NAME = "sparkwave_moment_text"
# Encloses an error, in a text that DuckDB refuses: `catalog.wording` finds it in DuckDB's message.
MARK, BEFORE_HINT = "\x1e", "\x1f"
_MOST_KNOWN = 10_000


def define_moments(database: Any) -> None:
    """Define the function in a DuckDB database: of a text, the name of a type, and the order of DateStyle or NULL.

    The type and the order are the same for all texts. The result is NULL for NULL.
    """
    known: dict[tuple[str, str, str], str] = {}  # of this database, since this module is sent to executors as it is
    # DuckDB would look up the types of a function's parameters, which executors lack; those of a lambda have none.
    function = lambda texts, types, orders: _written(texts, types[0].as_py(), orders[0].as_py(), known)  # noqa: E731
    database.create_function(NAME, function, ["VARCHAR"] * 3, "VARCHAR", type="arrow", null_handling="special")


def _written(
    texts: pa.Array | pa.ChunkedArray, type_: str, order: str | None, known: dict[tuple[str, str, str], str]
) -> pa.Array:
    """Return texts in DuckDB's form. A text takes about 20 µs, so equal ones are read once, and the last are kept."""
    whole = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    distinct = whole.dictionary_encode()
    keys = [(text, type_, order or MDY) for text in distinct.dictionary.to_pylist()]
    if len(known) > _MOST_KNOWN:
        known.clear()
    read = [known.get(key) or known.setdefault(key, _text(*key)) for key in keys]
    return pa.array(read, pa.string()).take(distinct.indices)


def marked(error: Error) -> str:
    """Return the text of an error that DuckDB refuses to cast to anything."""
    return f"{MARK}{error.sqlstate}{error.message}{BEFORE_HINT}{error.hint or ''}{MARK}"


def _text(text: str, type_: str, order: str) -> str:
    try:
        if type_ == "interval":
            return duckdb_text(read_interval(text))
        moment = read_moment(text, type_, order)
        if moment.word in RELATIVE:  # only a literal may mean the current time
            raise no_moment(text, type_)
    except Error as error:
        return marked(error)
    return iso_text(moment, type_)
