"""Calls of constants in queries have PostgreSQL's values, and no error of an engine's.

`test_extreme_values` tries the same calls over columns, in views.
"""

from __future__ import annotations

import re
from typing import Any

import extreme_values as extremes
import psycopg
import pytest
from extreme_differences import explained
from servers import Server
from test_functions import same_value

Connection = psycopg.Connection[Any]


def with_constants(call: str, choice: int) -> str:
    """A call over the columns of `extremes.TABLE` with a constant for each: the argument's value of a number."""

    def constant(column: re.Match[str]) -> str:
        type_ = extremes.TYPES[int(column[2])]
        values = extremes.VALUES[type_]
        value = values[(choice + 2 * "abc".index(column[1])) % len(values)]
        return f"NULL::{type_}" if value is None else "'" + value.replace("'", "''") + f"'::{type_}"

    return re.sub(r"\b([abc])(\d+)\b", constant, call)


def value_of(connection: Connection, call: str) -> str:
    """A call's value as text, NULL, or `!`, the SQLSTATE and the message of its error."""
    try:
        row = connection.execute(f"SELECT CAST({call} AS text)".encode()).fetchone()
    except psycopg.Error as error:
        return f"!{error.sqlstate} {error.diag.message_primary}"
    assert row is not None
    return "NULL" if row[0] is None else str(row[0])


def is_right(call: str, theirs: str, ours: str) -> bool:
    """Whether a value is PostgreSQL's or explained, and an error no internal one."""
    if ours.startswith("!"):
        return not ours.startswith("!XX")
    return same_value(ours, theirs, "numeric") or explained(call, theirs, ours)


def _wrong(server: Server, postgres: Connection, calls: list[str], choices: range) -> tuple[list[object], int]:
    """The calls with other values than PostgreSQL's, and how many had values that were compared."""
    wrong: list[object] = []
    compared = 0
    with server.connect() as connection:
        for call in calls:
            for choice in choices:
                written = with_constants(call, choice)
                theirs = value_of(postgres, written)
                if theirs.startswith(("!42", "!0A")):
                    break
                ours = value_of(connection, written)
                compared += not ours.startswith("!")
                if not is_right(call, theirs, ours):
                    wrong.append((written, theirs[:200], ours[:200]))
                    break
    return wrong, compared


def test_values_are_postgresqls(in_process_server: Server, postgres: Connection) -> None:
    """One call of each shape."""
    calls = extremes.one_of_each(extremes.scalars(postgres))
    wrong, compared = _wrong(in_process_server, postgres, calls, range(1, 2))
    assert wrong == []
    assert compared > 200


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_values_are_postgresqls_whatever_the_types(in_process_server: Server, postgres: Connection) -> None:
    wrong, compared = _wrong(in_process_server, postgres, extremes.scalars(postgres), range(13))
    assert wrong == []
    assert compared > 5000
