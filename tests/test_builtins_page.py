"""docs/builtins.md tells which of PostgreSQL's functions and operators there are. `make golden` writes it again.

PostgreSQL's own catalog has their signatures. That values are PostgreSQL's is what test_extreme_values.py proves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb
import extreme_values as extremes
import psycopg
import pytest
from extreme_differences import ANY, DIFFERENCES
from servers import Server
from test_extreme_values import KINDS, KNOWN, Kind, is_accepted
from view_functions import view_database

Connection = psycopg.Connection[Any]
Calls = Mapping[str, dict[str, str]]  # by name, the calls by their argument types

PAGE = Path(__file__).parent.parent / "docs" / "builtins.md"
INTRODUCTION = """\
# Functions and operators

Each function, aggregate and operator of PostgreSQL 15 that is here by its name, called with every combination of
argument types of its signatures in `pg_proc` and `pg_operator`, as far as tables have columns of these types. *Queries*
and *views* say which combinations are accepted; the others are refused. Text stands for `varchar`, too. What has a
grammar of its own (`extract`, LIKE), functions of the system, functions that return sets, and RisingWave's are in
[Compatibility](compatibility.md).

A difference is one of values, for some arguments; [Limits](limits.md) says more. All others are PostgreSQL's, at the
limits of the types, too: [a test](../tests/test_extreme_values.py) compares them. This page is written by
[a test](../tests/test_builtins_page.py).
"""
_NAMES = r"""
SELECT DISTINCT proname FROM pg_proc WHERE provolatile = 'i' OR proname IN ('age', 'now', 'random')
   OR proname ~ '^(concat|format|json_|jsonb_|to_char|to_json|to_timestamp|to_date|make_timestamptz|date_|array_to)'
"""
_SHORT = {
    "character varying": "text", "double precision": "float8", "timestamp without time zone": "timestamp",
    "timestamp with time zone": "timestamptz", "time without time zone": "time",
}  # fmt: skip


@pytest.mark.long
def test_page_is_true(in_process_server: Server, postgres: Connection, request: pytest.FixtureRequest) -> None:
    binder = view_database()
    columns = extremes.TABLE.replace(" numeric", " DECIMAL(38, 19)").replace(" jsonb", " JSON")
    binder.execute(f"CREATE TABLE i0_new {columns}")
    lines = [INTRODUCTION]
    with in_process_server.connect() as connection:
        connection.execute("DROP TABLE IF EXISTS t CASCADE")
        connection.execute(f"CREATE TABLE t {extremes.TABLE}".encode())
        names = [name for (name,) in connection.execute(_NAMES.encode()).fetchall()]
        for title, kind, calls in (
            ("Functions", "scalars", extremes.calls_of(postgres, "f", names)),
            ("Aggregates", "aggregates", extremes.calls_of(postgres, "a", names)),
            ("Window functions", "windows", extremes.calls_of(postgres, "w", names)),
            ("Operators", "scalars", extremes.operator_calls(postgres)),
        ):
            lines += [f"## {title}", "", "| name | queries | views | differences |", "|---|---|---|---|"]
            lines += _rows(connection, binder, KINDS[kind], calls)
            lines.append("")
    page = "\n".join(lines)
    if request.config.getoption("--update-golden"):
        PAGE.write_text(page)
    assert PAGE.read_text() == page


def _rows(connection: Connection, binder: duckdb.DuckDBPyConnection, kind: Kind, calls: Calls) -> Iterator[str]:
    for name, of_types in calls.items():
        asked = {types: _runs(connection, kind, call) for types, call in of_types.items()}
        if not any(asked.values()):
            continue
        kept = {types: asked[types] and is_accepted(binder, kind, call) for types, call in of_types.items()}
        differences = "; ".join(dict.fromkeys(_differences(list(of_types.values()))))
        shown = name.replace("|", "\\|")
        yield f"| `{shown}` | {_told(asked)} | {_told(kept)} | {differences} |"


def _runs(connection: Connection, kind: Kind, call: str) -> bool:
    try:
        connection.execute(kind.query.format(f"{call} AS x", "t").encode())
    except psycopg.Error:
        return False
    return True


def _told(accepted: dict[str, bool]) -> str:
    """`yes`, `no`, or the argument types that are or are not accepted, whichever are fewer."""
    if len(set(accepted.values())) == 1:
        return "yes" if all(accepted.values()) else "no"
    yes = [types for types, is_so in accepted.items() if is_so]
    no = [types for types, is_so in accepted.items() if not is_so]
    fewer = f"not {', '.join(no)}" if len(no) <= len(yes) else ", ".join(yes)
    for long, short in _SHORT.items():
        fewer = fewer.replace(long, short)
    return fewer


def _differences(calls: list[str]) -> Iterator[str]:
    yield from (why for call, why in KNOWN.items() if call in calls)
    for each in DIFFERENCES:
        if each.call != ANY and any(re.search(each.call, call) for call in calls):
            yield each.why.removeprefix("docs/limits.md: ").removeprefix("open: ")
