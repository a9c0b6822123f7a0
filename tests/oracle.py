"""PostgreSQL's answers for scalar expressions over hard values, kept in `golden/functions.txt`.

Each case there is an expression, the type of its result and its value for every row of `ROWS`, as text or null, or
`!` and the SQLSTATE of an error. `python tests/oracle.py DSN` asks a PostgreSQL for them again; tests need none.
"""

from __future__ import annotations

import datetime
import json
import sys
from decimal import Decimal
from pathlib import Path

import psycopg

GOLDEN = Path(__file__).parent / "golden" / "functions.txt"

COLUMNS: tuple[tuple[str, str], ...] = (
    ("n", "integer"), ("b", "boolean"), ("s", "smallint"), ("i", "integer"), ("j", "integer"), ("l", "bigint"),
    ("r", "real"), ("f", "double precision"), ("g", "double precision"), ("d", "numeric(12,4)"),
    ("e", "numeric(20,2)"), ("q", "numeric"), ("t", "varchar"), ("u", "varchar"), ("dt", "date"), ("du", "date"),
    ("ts", "timestamp"), ("tu", "timestamp"), ("tz", "timestamptz"), ("iv", "interval"), ("js", "jsonb"),
    ("a", "int[]"), ("c", "int[]"), ("v", "varchar[]"), ("y", "bytea"),
)  # fmt: skip

_D, _T, _N = datetime.date.fromisoformat, datetime.datetime.fromisoformat, Decimal

# Leap days, ends of years, ISO weeks of another year, changes of daylight saving time in Europe and America, integers
# at their limits, halves of both signs, letters outside ASCII and outside the 16-bit plane, empty text and arrays.
ROWS: tuple[tuple[object, ...], ...] = (
    (1, True, 1, 7, 2, 9007199254740993, 1.5, 2.5, 0.5, _N("2.5"), _N("1.15"), _N("0.1"), "hello", "l",
     _D("2024-02-29"), _D("2023-02-28"), _T("2024-02-29 23:59:59.999999"), _T("2023-12-31 00:00:00"),
     _T("2024-03-31 00:59:59.5+00:00"), "1 day 02:03:04.5", '{"a": 1, "b": [1, 2, {"c": null}], "x y": "z"}',
     [1, 2, 3], [2, 3], ["a", "b"], b"\x00\xff"),
    (2, False, -1, -7, 2, -1, -1.5, -2.5, -0.5, _N("-2.5"), _N("-1.15"), _N("-1234.567"), "", "", _D("2020-12-31"),
     _D("2021-01-03"), _T("2020-12-31 12:34:56"), _T("2021-01-01 00:00:00"), _T("2024-03-31 01:00:00+00:00"),
     "-1 year -2 months 3 days", "[1, -2.5, \"three\", null, true]", [], [1], [], b""),
    (3, None, None, None, None, None, None, None, None, None, None, None, None, None, None, None, None, None, None,
     None, None, None, None, None, None),
    (4, True, 0, 0, 3, 0, 0.0, -0.0, 0.0, _N("0"), _N("0"), _N("0"), "Žluťoučký kůň", "ů", _D("1970-01-01"),
     _D("1969-12-31"), _T("1970-01-01 00:00:00"), _T("1969-12-31 23:59:59.999999"), _T("1970-01-01 00:00:00+00:00"),
     "00:00:00", '"text"', [None], [None], [None, "NULL", ""], b"caf\xc3\xa9"),
    (5, False, 32767, 2147483647, 0, 9223372036854775807, 1e10, 1e300, 1e-300, _N("12345678.9999"), _N("0.05"),
     _N("99999.99999"), "a🐘b", "🐘", _D("2000-01-01"), _D("1999-12-31"), _T("2001-01-01 00:00:00.000001"),
     _T("2000-02-29 12:00:00"), _T("2024-11-03 05:30:00+00:00"), "1000 days 25:00:00", "{}", [3, 1, 2, 1], [1, 1],
     ["x,y", 'q"q', "back\\slash"], b"\\x41"),
    (6, None, -32768, -2147483648, -1, -9223372036854775808, 0.1, float("nan"), 1.0, _N("-0.0001"), _N("-0.05"),
     _N("0.5"), "  trim me  ", " ", _D("2016-01-03"), _D("2015-12-28"), _T("2016-01-03 08:09:10.5"),
     _T("2015-12-28 01:02:03.000004"), _T("2024-11-03 06:30:00.25+00:00"), "1 month -1 days 00:00:00.000001", "null",
     [1, None, 2], [2, None], ["A", "a", None], b"\x80"),
    (7, True, 5, 10, -3, 10, 123456.7, float("inf"), 2.0, _N("1.005"), _N("100.00"), _N("1.5"), "a,b,,c", ",",
     _D("9999-12-31"), _D("0001-01-01"), _T("9999-12-31 23:59:59"), _T("0001-01-01 00:00:00"),
     _T("2024-07-01 12:00:00+00:00"), "-00:00:01.5", '{"a": {"b": {"c": "deep"}}, "k/~": 2}', [5], [5], ["a"], b"abc"),
    (8, False, -5, -10, 3, -10, 1e-5, float("-inf"), -1.0, _N("3.5"), _N("2.5"), _N("-0.5"), "ABC def 123", "DEF",
     _D("2024-12-30"), _D("2024-12-29"), _T("2024-12-30 00:00:00"), _T("2024-12-29 23:00:00"),
     _T("2024-12-31 23:30:00+00:00"), "23:59:59.999999", '{"a": "1", "b": 2.50}', [2, 2], [2], ["b", "a", "b"], b"'"),
    (9, True, 100, 1000000, 1000, 123456789012345, 16777216.0, 1234567890123456.0, 3.0, _N("99.9950"),
     _N("-99999999999.99"), _N("123456789.123456789"), "100%_x\\y", "%", _D("2023-01-01"), _D("2023-03-01"),
     _T("2023-01-01 13:00:00"), _T("2022-12-25 00:00:01"), _T("1999-12-31 23:59:59.999999+00:00"),
     "1 year 13 months 40 days", "3.0", [1, 2, 3, 4], [4, 1], ["1", "2"], b"\n"),
    (10, False, 2, 3, 3, 3, 3.25, 0.1, 0.2, _N("-1.0050"), _N("0.01"), _N("1e-10"), "straße ŒĲ İ", "SS",
     _D("1900-03-01"), _D("1900-02-28"), _T("1900-03-01 00:00:00.1"), _T("1752-09-14 00:00:00"),
     _T("2000-01-01 00:00:00+00:00"), "1 hour", "[]", [-1, 0], [0], ["é"], b"\xe2\x82\xac"),
)  # fmt: skip


def create_table(name: str, placeholder: str) -> tuple[str, str]:
    """CREATE TABLE and INSERT, the second with a placeholder for each value of a row."""
    columns = ", ".join(f"{column} {type_}" for column, type_ in COLUMNS)
    values = ", ".join(f"CAST({placeholder} AS {type_})" for _, type_ in COLUMNS)
    return f"CREATE TABLE {name} ({columns})", f"INSERT INTO {name} VALUES ({values})"


def read_golden() -> dict[str, tuple[str, list[str | None]]]:
    """Expression to its type and values."""
    lines = [line for line in GOLDEN.read_text().splitlines() if line and not line.startswith("#")]
    return {lines[n]: (lines[n + 1].strip(), json.loads(lines[n + 2])) for n in range(0, len(lines), 3)}


def ask(dsn: str, expressions: list[str]) -> None:
    """Write the golden file from a PostgreSQL's answers."""
    out = []
    with psycopg.connect(dsn, autocommit=True, options="-c timezone=UTC") as connection:
        create, insert = create_table("pg_temp.h", "%s")
        connection.execute(create)
        connection.cursor().executemany(insert, ROWS)
        for expression in expressions:
            values: list[str | None] = []
            kind = "?"
            for row in ROWS:
                try:
                    cursor = connection.execute(f"SELECT {expression} FROM h WHERE n = {row[0]}".encode())
                    assert cursor.pgresult is not None
                    value = cursor.pgresult.get_value(0, 0)
                    values.append(None if value is None else value.decode())
                    oid = cursor.pgresult.ftype(0)
                    kind = connection.execute("SELECT format_type(%s, NULL)", (oid,)).fetchone()[0]  # type: ignore[index]
                except psycopg.Error as error:
                    values.append(f"!{error.sqlstate}")
            out.append(f"{expression}\n  {kind}\n  {json.dumps(values, ensure_ascii=False)}\n")
    GOLDEN.write_text("# Written by tests/oracle.py from PostgreSQL's answers.\n" + "".join(out))


if __name__ == "__main__":
    ask(sys.argv[1], list(read_golden()) if len(sys.argv) < 3 else Path(sys.argv[2]).read_text().splitlines())
