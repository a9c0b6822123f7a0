"""Scripts of SQL with what they answer, in the format of sqllogictest that RisingWave's own end-to-end tests use.

A record is `statement ok`, `statement count N`, `statement error PATTERN` or `query [TYPES] [rowsort]`, the SQL below
it, and of a query `----` and its rows as text: values with a space between, NULL and (empty) in words. A pattern is
searched in SQLSTATE, message, detail and hint, a line each.

A comment `# works: what`, `# differs: what | why` or `# refused: what | why` names the feature that the records after
it prove; the first comment is the script's title. docs/compatibility.md is written from these. A script with the
comment `# postgres` is run on PostgreSQL too, which has to answer the same; one with `# long` takes more than a few
seconds, one with `# long: extended` when it is run by both protocols.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import psycopg
from psycopg import pq

SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("*.slt"))

ON_POSTGRES, LONG = "# postgres", {"# long": ("simple", "extended"), "# long: extended": ("extended",)}
WORKS, DIFFERS, REFUSED = "works", "differs", "refused"

_FEATURE = re.compile(rf"# ({WORKS}|{DIFFERS}|{REFUSED}): ([^|]+?)(?: \| (.+))?")
_RECORD = re.compile(r"(statement) (ok|count \d+|error .+)|(query)(?: [A-Z]+)?( rowsort)?")


@dataclass(frozen=True)
class Record:
    """One statement and what it must do: `expected` is `ok`, `count N`, `error PATTERN`, or a query's rows."""

    line: int
    sql: str
    expected: str | tuple[str, ...]
    is_sorted: bool = False


@dataclass(frozen=True)
class Feature:
    """What some records prove. `why` says how it differs or why it is refused."""

    state: str
    what: str
    why: str
    records: tuple[Record, ...]


@dataclass(frozen=True)
class Script:
    """The features of an area, whether PostgreSQL has them all, and the protocols by which it takes long."""

    title: str
    features: tuple[Feature, ...]
    on_postgres: bool
    long: tuple[str, ...]


@lru_cache
def read(path: Path) -> Script:
    """Parse a script. Raises ValueError with the line of what is no record, or proves nothing."""
    title, features = "", []
    named: tuple[str, str, str] | None = None
    records: list[Record] = []

    def close(number: int) -> None:
        if named is not None:
            refusals = any(isinstance(r.expected, str) and r.expected.startswith("error") for r in records)
            if not records or (named[0] == REFUSED and not refusals):
                raise ValueError(f"{path.name}, before line {number}: {named[1]!r} is not proven")
            features.append(Feature(*named, tuple(records)))

    lines = path.read_text().splitlines()
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        feature = _FEATURE.fullmatch(line)
        if feature:
            close(number)
            named, records = (feature[1], feature[2], feature[3] or ""), []
        elif line.startswith("# ") and not title:
            title = line[2:]
        elif line and not line.startswith("#"):
            start = number
            while number < len(lines) and lines[number]:
                number += 1
            records.append(_record(path, start, line, lines[start:number]))
    close(number)
    long = next((LONG[line] for line in lines if line in LONG), ())
    return Script(title, tuple(features), ON_POSTGRES in lines, long)


def _record(path: Path, line: int, head: str, body: list[str]) -> Record:
    found = _RECORD.fullmatch(head)
    if not found or not body:
        raise ValueError(f"{path.name}, line {line}: {head!r} is no record")
    if found[1]:
        return Record(line, "\n".join(body), found[2])
    if "----" not in body:
        raise ValueError(f"{path.name}, line {line}: a query without ----")
    end = body.index("----")
    return Record(line, "\n".join(body[:end]), tuple(body[end + 1 :]), bool(found[4]))


Execute = Callable[[bytes], pq.abc.PGresult]


def simple(connection: psycopg.Connection[Any]) -> Execute:
    """Runs a statement by the simple query protocol."""
    return connection.pgconn.exec_


def extended(connection: psycopg.Connection[Any]) -> Execute:
    """Runs a statement by Parse, Bind, Describe, Execute."""
    return lambda sql: connection.pgconn.exec_params(sql, None)


def refreshing(connection: psycopg.Connection[Any], path: Path) -> Execute:
    """Runs a statement on PostgreSQL, where FLUSH brings a script's materialized views up to date, oldest first."""
    views = "SELECT oid::regclass FROM pg_class WHERE relkind = 'm' AND relnamespace = %s::regnamespace ORDER BY oid"

    def execute(sql: bytes) -> pq.abc.PGresult:
        if sql == b"FLUSH":
            found = connection.execute(views, (schema_of(path),)).fetchall()
            sql = ";".join(f"REFRESH MATERIALIZED VIEW {name}" for (name,) in found).encode()
        return connection.pgconn.exec_(sql)

    return execute


def schema_of(path: Path) -> str:
    """The schema that a script is run in."""
    return f"script_{path.stem}"


def run(path: Path, execute: Execute) -> None:
    """Run a script in a schema of its own. Raises AssertionError with the line of what is not as it says."""
    schema = schema_of(path)
    for sql in (f"DROP SCHEMA IF EXISTS {schema} CASCADE", f"CREATE SCHEMA {schema}", f"SET search_path = {schema}"):
        _check(path, Record(0, sql, "ok"), execute(sql.encode()))
    for feature in read(path).features:
        for record in feature.records:
            _check(path, record, execute(record.sql.encode()))


def _check(path: Path, record: Record, result: pq.abc.PGresult) -> None:
    expected = record.expected
    where = f"{path.name}, line {record.line}: {record.sql}"
    if isinstance(expected, str) and expected.startswith("error"):
        report, pattern = _report(result), expected.removeprefix("error ")
        assert re.search(pattern, report), f"{where}\nexpected {pattern}\nfound    {report or 'no error'}"
        return
    assert result.status != pq.ExecStatus.FATAL_ERROR, f"{where}\n{_report(result)}"
    if isinstance(expected, str):
        count = (result.command_status or b"").rpartition(b" ")[2].decode()
        assert expected == "ok" or expected == f"count {count}", f"{where}\nfound count {count}"
    else:
        found = [_row(result, row) for row in range(result.ntuples)]
        if record.is_sorted:
            found, expected = sorted(found), tuple(sorted(expected))
        assert tuple(found) == expected, f"{where}\nfound\n" + "\n".join(found)


def _report(result: pq.abc.PGresult) -> str:
    """SQLSTATE, message, detail and hint of an error; nothing of what is none."""
    fields = (
        pq.DiagnosticField.SQLSTATE,
        pq.DiagnosticField.MESSAGE_PRIMARY,
        pq.DiagnosticField.MESSAGE_DETAIL,
        pq.DiagnosticField.MESSAGE_HINT,
    )
    return "\n".join(text.decode() for field in fields if (text := result.error_field(field)))


def _row(result: pq.abc.PGresult, row: int) -> str:
    values = (result.get_value(row, column) for column in range(result.nfields))
    return " ".join("NULL" if value is None else value.decode() or "(empty)" for value in values)
