"""Every function, operator, cast and aggregate over extreme values: what there is, and what PostgreSQL makes of it.

PostgreSQL's own catalog has the signatures, for the names in the planner's tables, so that a new function is tried
without being listed here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from typing import Any

import psycopg

from sparkwave.planner.functions.scalar_functions import ALIASES, FUNCTIONS

Connection = psycopg.Connection[Any]

# The values of each type: nothing, zero, its limits, and what is rarely thought of.
VALUES: dict[str, tuple[str | None, ...]] = {
    "boolean": (None, "t", "f"),
    "smallint": (None, "0", "-1", "32767", "-32768", "3"),
    "integer": (None, "0", "1", "-1", "2147483647", "-2147483648", "5", "31"),
    "bigint": (None, "0", "1", "-1", "9223372036854775807", "-9223372036854775808", "63"),
    "real": (None, "0", "-0.5", "3.4028235e38", "1e-45", "Infinity", "-Infinity", "NaN"),
    "double precision": (None, "0", "-1.5", "1e308", "-1e308", "5e-324", "Infinity", "-Infinity", "NaN", "1"),
    "numeric": (None, "0", "-1", "9999999999999999999.9999999999999999999", "-9999999999999999999.9999999999999999999",
                "0.0000000000000000001", "2.5"),
    "character varying": (None, "", "a", "é🐘", "%", "\\", "([{", "2024-02-30", "-1", "NaN", "UTC", "day", "x" * 3000),
    "date": (None, "2024-02-29", "0001-01-01", "9999-12-31", "infinity", "-infinity", "4713-01-01 BC", "1970-01-01"),
    "timestamp without time zone": (None, "2024-02-29 23:59:59.999999", "0001-01-01 00:00:00", "9999-12-31 23:59:59",
                                    "infinity", "-infinity", "4713-01-01 00:00:00 BC", "290000-01-01 00:00:00"),
    "timestamp with time zone": (None, "2024-02-29 23:59:59.999999+00", "0001-01-01 00:00:00+00",
                                 "9999-12-31 23:59:59+00", "infinity", "-infinity", "4713-01-01 00:00:00+00 BC"),
    "time without time zone": (None, "00:00:00", "23:59:59.999999", "12:34:56"),
    "interval": (None, "00:00:00", "1 mon -1 days", "178000000 years", "-178000000 years", "2147483647 days",
                 "-00:00:00.000001"),
    "jsonb": (None, "null", "{}", "[]", "1", '"a"', '{"a": [1, null]}', '[1, "a"]'),
    "bytea": (None, "\\x", "\\x00ff", "\\x61"),
    "integer[]": (None, "{}", "{NULL}", "{1,2147483647}", "{-1,NULL,5}"),
    "character varying[]": (None, "{}", "{NULL}", '{a,"",NULL}', "{%}"),
}  # fmt: skip
TYPES = tuple(VALUES)
_TIMES = TYPES[8:13]
_PLACES = ("a", "b", "c")


def column(place: int, type_: str) -> str:
    """The column with the values of a type for an argument; the arguments after the third have the first's."""
    if type_ == "json":
        return f"{column(place, 'jsonb')}::json"
    return f"{_PLACES[place % len(_PLACES)]}{TYPES.index(type_)}"


COLUMNS = tuple((column(place, type_), type_) for place in range(len(_PLACES)) for type_ in TYPES)
TABLE = f"(n integer PRIMARY KEY, {', '.join(f'{name} {type_}' for name, type_ in COLUMNS)})"


def rows(size: int) -> list[tuple[object, ...]]:
    """Rows in which two arguments have all pairs of their first `size` values, and a third most triples."""
    pairs = enumerate(product(range(size), repeat=2))
    return [
        (number, *(VALUES[t][place % len(VALUES[t])] for place in (one, two, one + 2 * two + 1) for t in TYPES))
        for number, (one, two) in pairs
    ]


def shape(call: str) -> str:
    """A call without the types of its arguments."""
    return re.sub(r"\b[abc]\d+\b", "_", call)


def one_of_each(calls: list[str]) -> list[str]:
    """Of the calls that differ only in the types of their arguments, the middle one."""
    by_shape: dict[str, list[str]] = {}
    for call in calls:
        by_shape.setdefault(shape(call), []).append(call)
    return [same[len(same) // 2] for same in by_shape.values()]


_POLYMORPHIC = {
    "anyelement": ("integer", "character varying"), "anycompatible": ("integer", "character varying"),
    "anynonarray": ("integer", "character varying"), "anycompatiblenonarray": ("integer", "character varying"),
    '"any"': ("integer", "character varying", "double precision", "interval"),
    "anyarray": ("integer[]", "character varying[]"), "anycompatiblearray": ("integer[]", "character varying[]"),
    "text": ("character varying",), "text[]": ("character varying[]",), "json": ("json",),
}  # fmt: skip
# RisingWave's, of which PostgreSQL's catalog knows nothing.
_OWN = ("array_distinct", "array_sort", "array_min", "array_max", "array_sum")
# What has a grammar of its own.
_SPELLED = ("extract", "overlay", "row")


def _signatures(postgres: Connection, kind: str, names: list[str] | None) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The functions of a kind (`f`, `a` or `w`) with the types of their arguments, of those that we have types for."""
    found = postgres.execute(
        "SELECT proname, ARRAY(SELECT format_type(o, NULL) FROM unnest(proargtypes::oid[]) WITH ORDINALITY u(o, p)"
        " ORDER BY p), provariadic <> 0 FROM pg_proc p LEFT JOIN pg_aggregate g ON aggfnoid = p.oid"
        " WHERE prokind = %s AND NOT proretset AND aggkind IS DISTINCT FROM 'h'"
        " AND (%s::text[] IS NULL OR proname = ANY(%s)) AND pronamespace = 'pg_catalog'::regnamespace ORDER BY 1, 2",
        (kind, names, names),
    )
    for name, arguments, is_variadic in found:
        if is_variadic:
            arguments = [*arguments[:-1], *[arguments[-1].removesuffix("[]").replace("array", "element")] * 2]
        yield from ((name, each) for each in _expanded(arguments))


def _expanded(arguments: list[str]) -> Iterator[tuple[str, ...]]:
    listed = [_POLYMORPHIC.get(a, (a,) if a in VALUES else ()) for a in arguments]
    polymorphic = {place for place, a in enumerate(arguments) if a.startswith("any")}
    for types in product(*listed):
        if len({types[place].removesuffix("[]") for place in polymorphic}) < 2:
            yield types


def scalars(postgres: Connection) -> list[str]:
    """Calls of functions, operators and casts over the columns."""
    names = sorted({*FUNCTIONS, *ALIASES})
    made = [
        f"{name}({', '.join(column(place, type_) for place, type_ in enumerate(types))})"
        for name, types in (*_signatures(postgres, "f", names), *((name, ("integer[]",)) for name in _OWN))
        if name not in _SPELLED
    ]
    made += [f"extract({field} FROM {column(0, type_)})" for field in ("epoch", "year", "week", "second", "century")
             for type_ in _TIMES]  # fmt: skip
    made += [f"date_trunc('{unit}', {column(0, type_)})" for unit in ("week", "century") for type_ in _TIMES]
    made += ["overlay(a7 placing b7 from c2)", "overlay(a7 placing b7 from a2 for b2)", "substring(a7 from b7)"]
    return list(dict.fromkeys((*made, *_operators(postgres), *_conditions(), *_casts())))


def calls_of(postgres: Connection, kind: str, names: list[str]) -> dict[str, dict[str, str]]:
    """By the name of a function of a kind (`f`, `a` or `w`), its calls by the types of their arguments."""
    found: dict[str, dict[str, str]] = {}
    for name, types in _signatures(postgres, kind, names):
        listed = [_flags(name, place, type_) or column(place, type_) for place, type_ in enumerate(types)]
        call = f"{name}({', '.join(listed) or '*' * (name == 'count')})"
        if name in ("mode", "percentile_cont", "percentile_disc"):
            fraction, ordered = ("", listed[0]) if name == "mode" else ("0.5", listed[-1])
            call = f"{name}({fraction}) WITHIN GROUP (ORDER BY {ordered})"
        over = " OVER (PARTITION BY a0 ORDER BY n)" if kind == "w" else ""
        found.setdefault(name, {})[f"({', '.join(types)})"] = call + over
    return found


def _flags(name: str, place: int, type_: str) -> str:
    """The argument for flags of a regular expression, which are constants."""
    is_last = type_ == "character varying" and place > (2 if name == "regexp_replace" else 1)
    return "'i'" if is_last and name.startswith("regexp_") else ""


def operator_calls(postgres: Connection) -> dict[str, dict[str, str]]:
    """By the name of an operator of two operands, its calls by the types of these."""
    made: dict[str, dict[str, str]] = {}
    found = postgres.execute(
        "SELECT oprname, format_type(oprleft, NULL), format_type(oprright, NULL) FROM pg_operator"
        " WHERE oprnamespace = 'pg_catalog'::regnamespace AND oprkind = 'b' ORDER BY 1, 2, 3"
    )
    for name, left, right in found:
        for one, two in _expanded([left, right]):
            made.setdefault(name, {})[f"{one} {name} {two}"] = f"{column(0, one)} {name} {column(1, two)}"
    return made


def _operators(postgres: Connection) -> Iterator[str]:
    yield from (call for calls in operator_calls(postgres).values() for call in calls.values())
    yield from (f"{name}{column(0, type_)}" for name in ("-", "~", "+") for type_ in TYPES)
    yield from (f"{column(0, t)} {word} {column(1, t)}" for t in TYPES for word in ("IS DISTINCT FROM", "=", "<"))
    yield from ("a15[b2]", "a15[b2:c2]", "a16[b2]", "a13 -> b7", "a13 -> b2", "a13 ->> b7", "a7 SIMILAR TO b7",
                "a7 LIKE b7 ESCAPE '%'", "a9 AT TIME ZONE b7", "a10 AT TIME ZONE b7")  # fmt: skip


def _conditions() -> Iterator[str]:
    yield from (f"a7 {word} ANY (b16)" for word in ("=", "LIKE", "NOT LIKE", "~", "<", "ILIKE"))
    yield from (f"a7 {word} ALL (b16)" for word in ("=", "LIKE", "<>", ">"))
    yield from ("a2 = ANY (b15)", "a2 <> ALL (b15)")
    yield from (f"coalesce({column(0, one)}, {column(1, two)})" for one, two in product(TYPES[1:7], repeat=2))
    yield from (f"greatest({column(0, type_)}, {column(1, type_)})" for type_ in TYPES)
    yield from (f"nullif({column(0, type_)}, {column(1, type_)})" for type_ in TYPES)


def _casts() -> Iterator[str]:
    targets = (*TYPES, "numeric(5,2)", "character varying(2)")
    yield from (f"CAST({column(0, one)} AS {two})" for one, two in product(TYPES, targets) if one != two)


def aggregates(postgres: Connection) -> list[str]:
    """Calls of aggregates over the columns."""
    made = []
    for name, types in _signatures(postgres, "a", None):
        listed = ", ".join(column(place, type_) for place, type_ in enumerate(types))
        if name == "string_agg":
            made.append(f"string_agg({column(0, types[0])}, ',')")
        elif name in ("percentile_cont", "percentile_disc"):
            made.append(f"{name}(0.5) WITHIN GROUP (ORDER BY {column(1, types[-1])})")
        elif name == "mode":
            made.append(f"mode() WITHIN GROUP (ORDER BY {listed})")
        else:
            made.append(f"{name}({listed or '*'})")
            if len(types) == 1:
                made += [f"{name}(DISTINCT {listed})", f"{name}({listed}) FILTER (WHERE a0)"]
    made += [f"array_agg({column(0, t)} ORDER BY {column(1, t)})" for t in TYPES]
    return list(dict.fromkeys(made))


def windows(postgres: Connection) -> list[str]:
    """Calls of window functions, and of aggregates over windows."""
    calls = [
        f"{name}({', '.join(column(place, type_) for place, type_ in enumerate(types))})"
        for name, types in _signatures(postgres, "w", None)
    ]
    calls += [call for call in aggregates(postgres)
              if not any(word in call for word in ("DISTINCT", "WITHIN", "FILTER", "ORDER"))]  # fmt: skip
    return list(dict.fromkeys(f"{call} OVER (PARTITION BY a0 ORDER BY n)" for call in calls))


# A call's value in each row, or `!`, the SQLSTATE and the message of its error; alone that of PostgreSQL's refusal.
_ASK = """
CREATE OR REPLACE FUNCTION pg_temp.ask(call text, numbers int[]) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE found text[]; one text; number int;
BEGIN
    BEGIN
        EXECUTE format('SELECT array_agg(CAST(%s AS text) ORDER BY n) FROM t', call) INTO found;
        RETURN found;
    EXCEPTION WHEN OTHERS THEN
        IF SQLSTATE LIKE '42%' OR SQLSTATE LIKE '0A%' THEN RETURN NULL; END IF;
    END;
    FOREACH number IN ARRAY numbers LOOP
        BEGIN
            EXECUTE format('SELECT CAST(%s AS text) FROM t WHERE n = $1', call) INTO one USING number;
        EXCEPTION WHEN OTHERS THEN one := '!' || SQLSTATE || ' ' || SQLERRM;
        END;
        found := found || one;
    END LOOP;
    RETURN found;
END $$
"""


def prepare(postgres: Connection, made: list[tuple[object, ...]]) -> None:
    """The rows in a table of PostgreSQL's, and the function that asks for all values of a call."""
    postgres.execute("SET TimeZone = 'UTC'; DROP TABLE IF EXISTS t")
    postgres.execute(f"CREATE TEMPORARY TABLE t {TABLE}".encode())
    marks = ", ".join(f"%s::{type_}" for type_ in ("integer", *(type_ for _, type_ in COLUMNS)))
    postgres.cursor().executemany(f"INSERT INTO t VALUES ({marks})".encode(), made)
    postgres.execute(_ASK)


def ask(postgres: Connection, call: str, numbers: list[int]) -> list[str | None] | None:
    """PostgreSQL's values of a call; None if it has no such call."""
    row = postgres.execute("SELECT pg_temp.ask(%s, %s)", (call, numbers)).fetchone()
    assert row is not None
    found: list[str | None] | None = row[0]
    return found
