"""to_char, to_number, to_date, to_timestamp, format() and others, as functions for DuckDB's databases.

`catalog/system/scalar.sql` calls them for patterns that no function of DuckDB has. This module is sent to Spark's
executors (`executor.spark.kernel`), so it imports nothing of this package but what is sent with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from sparkwave.catalog.ciphers import of_cipher
from sparkwave.catalog.errors import Error
from sparkwave.catalog.moment_casts import marked
from sparkwave.catalog.moment_chars import moment_chars
from sparkwave.catalog.number_texts import number_chars, number_of
from sparkwave.catalog.pgp_messages import of_message
from sparkwave.catalog.read_patterns import moment_by_pattern
from sparkwave.catalog.regexp_functions import regexp
from sparkwave.catalog.text_functions import BY_NAME, formatted

CHARS, NUMBER, FORMAT, MOMENT = "sparkwave_chars", "sparkwave_number", "sparkwave_format", "sparkwave_by_pattern"
REGEXP, CIPHER = "sparkwave_regexp", "sparkwave_cipher"
OPENED, SEALED = "sparkwave_opened", "sparkwave_sealed"
_MOMENTS = ("DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "INTERVAL", "TIME")
_NUMBERS = {
    "TINYINT": "integer", "SMALLINT": "smallint", "INTEGER": "integer", "BIGINT": "bigint", "FLOAT": "real",
    "DOUBLE": "double precision",
}  # fmt: skip


def define_patterns(database: Any) -> None:
    """Define the functions in a DuckDB database, from texts to a text, or an error's mark (`catalog.moment_casts`).

    DuckDB would look up the types of their parameters, which executors lack; those of a lambda have none.
    """
    text = "VARCHAR"
    functions: dict[str, tuple[list[str], Callable[..., str | None]]] = {
        CHARS: ([text] * 4, _chars),
        NUMBER: ([text] * 2, number_of),
        MOMENT: ([text] * 3, moment_by_pattern),
        REGEXP: ([text, f"{text}[]"], regexp),
        CIPHER: ([text, f"{text}[]"], of_cipher),
        **dict.fromkeys((OPENED, SEALED), ([text, f"{text}[]"], of_message)),
        FORMAT: ([text, f"{text}[]"], lambda template, values: formatted(template, values)),
        **{name: ([text] * 2, function) for name, function in BY_NAME.items()},
    }
    for name, (types, function) in functions.items():
        made = _over_rows(function, len(types), is_random=name == SEALED)
        database.create_function(
            name, made, types, text, type="arrow", null_handling="special", side_effects=name == SEALED
        )


def _chars(value: str, pattern: str, type_: str, zone: str) -> str | None:
    """Return to_char of a value, given as DuckDB's text of it and the name of its type."""
    if type_ in _MOMENTS:
        return moment_chars(value, type_, pattern, zone)
    return number_chars(value, _NUMBERS.get(type_, "numeric"), pattern)


def _values(column: pa.Array) -> list[Any]:
    """Return the texts of a column, or its lists as tuples."""
    values = column.to_pylist()
    return [tuple(value) if isinstance(value, list) else value for value in values]


def _over_rows(function: Callable[..., str | None], count: int, is_random: bool = False) -> Callable[..., pa.Array]:
    """Return a function of so many arrays of texts; a row with NULL is NULL.

    Equal rows are computed once, unless the function gives another text each time.
    """

    def of_row(*values: Any) -> str | None:
        if None in values:
            return None
        try:
            return function(*values)
        except Error as error:
            return marked(error)

    def of_rows(*columns: pa.Array) -> pa.Array:
        known: dict[tuple[Any, ...], str | None] = {}
        rows = list(zip(*map(_values, columns), strict=True))
        if is_random:
            return pa.array([of_row(*row) for row in rows], pa.string())
        for row in rows:
            if row not in known:
                known[row] = of_row(*row)
        return pa.array([known[row] for row in rows], pa.string())

    if count == 2:
        return lambda a, b: of_rows(a, b)
    if count == 3:
        return lambda a, b, c: of_rows(a, b, c)
    return lambda a, b, c, d: of_rows(a, b, c, d)
