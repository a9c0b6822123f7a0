"""Types of columns, the kinds that expressions know them by, and literals of each."""

from __future__ import annotations

import random

# What a column is declared as, and its kind. Expressions are typed by kinds.
TYPES: dict[str, str] = {
    "smallint": "smallint", "int": "int", "bigint": "bigint", "numeric(8,2)": "numeric", "numeric": "numeric",
    "real": "real", "double precision": "double", "boolean": "bool", "varchar": "text", "bytea": "bytea",
    "date": "date", "time": "time", "timestamp": "timestamp", "timestamptz": "timestamptz", "interval": "interval",
    "jsonb": "jsonb", "int[]": "int[]", "varchar[]": "text[]",
}  # fmt: skip

# A type whose literals an expression of a kind takes.
LITERAL_TYPE = {kind: type_ for type_, kind in reversed(TYPES.items())}

_DAYS = ("2024-02-29", "2023-12-31", "2024-01-01")
_TIMES = ("2024-02-29 00:00:00", "2024-02-29 00:00:30", "2024-02-29 00:01:59", "2023-12-31 23:59:59.5")

# Few, so that keys meet and rows repeat. No two are equal and look different.
USUAL: dict[str, tuple[str, ...]] = {
    "smallint": ("-1", "0", "1", "2", "3"),
    "int": ("-1", "0", "1", "2", "3", "4", "5"),
    "bigint": ("-1", "0", "1", "2", "3", "7"),
    "numeric(8,2)": ("0", "1.5", "2.25", "-1.10", "3"),
    "numeric": ("0", "0.1", "2", "-3.25", "1.5", "12.3456789"),
    "real": ("0.5", "-1.25", "2", "0"),
    "double precision": ("0.5", "-1.25", "2", "3.75", "0"),
    "boolean": ("true", "false"),
    "varchar": ("'a'", "'b'", "'c'", "''", "'żółw'", "'ab'"),
    "bytea": (r"'\x'", r"'\x00ff'", r"'\x61'"),
    "date": tuple(f"'{day}'" for day in _DAYS),
    "time": ("'00:00:00'", "'12:34:56.789'", "'23:59:59'"),
    "timestamp": tuple(f"'{time}'" for time in _TIMES),
    "timestamptz": tuple(f"'{time}+00'" for time in _TIMES),
    "interval": ("'1 day'", "'02:00:00'", "'1 month'", "'1 year 2 days 00:00:01.5'"),
    "jsonb": ("'1'", "'\"a\"'", "'{\"a\": 1}'", "'[1, 2]'", "'{}'", "'null'", "'true'"),
    "int[]": ("'{}'", "'{1}'", "'{1,2}'", "'{2,NULL}'", "'{NULL}'", "'{3,1,3}'"),
    "varchar[]": ("'{}'", "'{a}'", "'{a,b}'", "'{NULL,b}'", '\'{"x,y",""}\''),
}

# At the limits of their types, and what programs trip over.
EXTREME: dict[str, tuple[str, ...]] = {
    "smallint": ("32767", "-32768"),
    "int": ("2147483647", "-2147483648"),
    "bigint": ("9223372036854775807", "-9223372036854775808", "9007199254740993"),
    "numeric(8,2)": ("999999.99", "-999999.99", "0.01"),
    "numeric": ("1234567890123456789.123456789", "-0.0000000001"),
    "real": ("'NaN'", "'Infinity'", "'-Infinity'"),
    "double precision": ("'NaN'", "'Infinity'", "'-Infinity'", "10000000000"),
    "varchar": ("'it''s'", "' '", r"'\'", "'🐘'", "'NULL'", "'%'", "'line\nline'", "'\"q\"'", f"'{'é' * 150}'"),
    "bytea": (r"'\x5c27'", r"'\xff00ff'"),
    "date": ("'0001-01-01'", "'9999-12-31'", "'1969-12-31'"),
    "time": ("'23:59:59.999999'",),
    "timestamp": ("'0001-01-01 00:00:00'", "'9999-12-31 23:59:59.999999'", "'1969-12-31 23:59:59.999999'"),
    "timestamptz": ("'1970-01-01 00:00:00+00'", "'2024-03-31 01:30:00+02'", "'2024-10-27 00:30:00.000001+00'"),
    "interval": ("'0'", "'1000 days 00:00:00.000001'"),
    "jsonb": ('\'{"a": {"b": [null, "x y"]}}\'', "'\"it''s\"'"),
    "int[]": ("'{2147483647,-2147483648}'",),
    "varchar[]": ('\'{"NULL",NULL,"a\\"b"}\'', '\'{"{","}"}\''),
}


def literal(chance: random.Random, type_: str, extremes: bool) -> str:
    """A literal that takes its type from where it is."""
    if extremes and type_ in EXTREME and chance.random() < 0.2:
        return chance.choice(EXTREME[type_])
    return chance.choice(USUAL[type_])


def typed(chance: random.Random, kind: str, extremes: bool) -> str:
    """A literal of that kind wherever it is."""
    type_ = LITERAL_TYPE[kind]
    text = literal(chance, type_, extremes)
    if kind in ("int", "bool") and text != "-2147483648":
        return text
    return f"({text})::{type_}" if text.startswith("-") else f"{text}::{type_}"
