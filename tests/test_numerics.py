"""`numeric` without a precision: no digit is lost that PostgreSQL keeps, up to 19 before the point and 19 after it."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from decimal import ROUND_HALF_UP, Context, Decimal, localcontext
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
import pytest
from postgres import beside
from servers import Server

from sparkwave.catalog.types import parse_type
from sparkwave.server.wire.text_format import float_text, text_array

Connection = psycopg.Connection[Any]

VALUES = (
    "1.123456789012345678", "0.00000000012345", "-0.0000000000000000001", "9999999999999999999.9999999999999999999",
    "-9999999999999999999.9999999999999999999", "0", "-7.5", "1e18", "123456789.000000001",
)  # fmt: skip
COLUMNS = "id int PRIMARY KEY, s smallint, i int, g bigint, d numeric(8,3), n numeric, m numeric"
EXACT = ("{a} + {b}", "{a} - {b}", "{a} * {b}", "-{a}", "abs({a})", "greatest({a}, {b})", "coalesce({a}, {b})",
         "CASE WHEN {a} > {b} THEN {a} ELSE {b} END", "round({a}, 4)", "trunc({a}, 3)", "ceil({a})", "floor({a})",
         "sign({a})", "{a} % 7", "({a})::numeric", "({a})::text::numeric")  # fmt: skip
AGGREGATES = ("sum({a})", "min({a})", "max({a})", "count(DISTINCT {a})", "sum({a} * {b})", "max({a}) - min({b})")
PLACES = Decimal(1).scaleb(-19)


@pytest.fixture(scope="module")
def both(in_process_server: Server) -> Iterator[tuple[Connection, Connection]]:
    with beside(in_process_server) as clients:
        yield clients


def test_values_come_back_as_they_were(both: tuple[Connection, Connection]) -> None:
    """Written as constants, as parameters, by COPY; read in queries and in a view, as text and in binary."""
    here, _ = both
    here.execute("CREATE TABLE kept (id int, n numeric)")
    here.execute("CREATE MATERIALIZED VIEW kept_view AS SELECT id, n, n::text AS t FROM kept")
    for number, value in enumerate(VALUES):
        here.execute(f"INSERT INTO kept VALUES ({number}, {value})".encode())
        here.execute("INSERT INTO kept VALUES (%s, %s)", (number, Decimal(value)))
        here.execute("INSERT INTO kept VALUES (%s, %s)", (number, value))
        with here.cursor() as cursor, cursor.copy("COPY kept FROM STDIN") as copy:
            copy.write_row((number, value))
    here.execute("FLUSH")
    expected = [(number, Decimal(value), 4) for number, value in enumerate(VALUES)]
    for relation in ("kept", "kept_view"):
        for binary in (False, True):
            query = f"SELECT id, n, count(*) FROM {relation} GROUP BY id, n ORDER BY id"
            assert here.execute(query.encode(), binary=binary).fetchall() == expected
    texts = here.execute("SELECT DISTINCT id, t FROM kept_view ORDER BY id").fetchall()
    assert [Decimal(text) for _, text in texts] == [Decimal(value) for value in VALUES]


@pytest.mark.parametrize("value", ["10000000000000000000", "-1e19", "12345678901234567890123456789"])
def test_what_does_not_fit_is_an_error(both: tuple[Connection, Connection], value: str) -> None:
    here, _ = both
    here.execute("CREATE TABLE IF NOT EXISTS full_up (n numeric)")
    for statement, given in (
        (f"INSERT INTO full_up VALUES ({value})", None), ("INSERT INTO full_up VALUES (%s)", (Decimal(value),)),
        (f"SELECT '{value}'::numeric", None),
    ):  # fmt: skip
        with pytest.raises(psycopg.errors.NumericValueOutOfRange):
            here.execute(statement.encode(), given)


@pytest.fixture(scope="module")
def random_rows(both: tuple[Connection, Connection]) -> tuple[Connection, Connection]:
    """Clients of two servers with a table r of random values of all exact types."""
    dice = random.Random(7)
    for client in both:
        client.execute(f"CREATE TABLE r ({COLUMNS})".encode())
    for id_ in range(40):
        row = (
            id_, dice.randint(-300, 300), dice.randint(-(10**6), 10**6), dice.randint(-(10**9), 10**9),
            Decimal(dice.randint(-(10**7), 10**7)).scaleb(-3), Decimal(dice.randint(-(10**12), 10**12)).scaleb(-9),
            Decimal(dice.randint(-(10**9), 10**9)).scaleb(-dice.randint(0, 10)),
        )  # fmt: skip
        for client in both:
            client.execute("INSERT INTO r VALUES (%s, %s, %s, %s, %s, %s, %s)", row)
    return both


def test_arithmetic_is_postgresqls(random_rows: tuple[Connection, Connection]) -> None:
    """In queries and in views over changes."""
    both = random_rows
    pairs = [("n", other) for other in ("s", "i", "g", "d", "n", "m")] + [("m", "d"), ("i::numeric", "n")]
    for number, (a, b) in enumerate(pairs):
        listed = ", ".join(f"{form.format(a=a, b=b)} AS x{place}" for place, form in enumerate(EXACT))
        totals = ", ".join(f"{form.format(a=a, b=b)} AS x{place}" for place, form in enumerate(AGGREGATES))
        for shape, query in (("rows", f"SELECT id, {listed} FROM r"), ("totals", f"SELECT {totals} FROM r")):
            both[0].execute(f"CREATE MATERIALIZED VIEW {shape}{number} AS {query}".encode())
    for client in both:
        client.execute("UPDATE r SET n = n + 0.000000000000001, m = NULL WHERE id % 7 = 0")
        client.execute("DELETE FROM r WHERE id % 5 = 3")
    both[0].execute("FLUSH")
    for number, (a, b) in enumerate(pairs):
        listed = ", ".join(f"{form.format(a=a, b=b)} AS x{place}" for place, form in enumerate(EXACT))
        totals = ", ".join(f"{form.format(a=a, b=b)} AS x{place}" for place, form in enumerate(AGGREGATES))
        for shape, query in (("rows", f"SELECT id, {listed} FROM r"), ("totals", f"SELECT {totals} FROM r")):
            expected = _rounded(both[1], query)
            assert _rounded(both[0], query) == expected, (a, b)
            assert _rounded(both[0], f"SELECT * FROM {shape}{number}") == expected, (a, b)


QUOTIENTS = ("i / 3.0", "-i / 7.00", "50 / 3.0", "1.0 / 3", "i::numeric / 7", "n / 3", "n / g", "g / 2.7", "d / -7",
             "d / s", "n / (d + 0.5)", "1 / (abs(n) + 1)", "n / m", "100.0 * i / 7", "i / 3.0 / 1.7", "(g / 3.0) * 3",
             "s / 1e-3", "round(i / 3.0, 12)", "CASE WHEN i > 0 THEN i / 3.0 ELSE 0 END",
             "coalesce(m / 3, 1)")  # fmt: skip
QUOTIENTS_OF_TOTALS = ("sum(i) / 3.0", "sum(d) / count(*)", "sum(n / 3)", "avg(n) / 3", "100.0 * sum(i) / sum(s)",
                       "max(i / 7.0)", "sum(g) / 1000000.0")  # fmt: skip


def test_quotients_are_postgresqls(random_rows: tuple[Connection, Connection]) -> None:
    """All places that PostgreSQL has, but for the twentieth, in queries and in views over changes."""
    both = random_rows
    for client in both:
        client.execute("DELETE FROM r WHERE s = 0 OR d IN (0, -0.5) OR m = 0 OR g = 0")
    queries = {
        "ratios": f"SELECT id, {', '.join(f'{form} AS x{n}' for n, form in enumerate(QUOTIENTS))} FROM r",
        "ratios_of_all": f"SELECT {', '.join(f'{form} AS x{n}' for n, form in enumerate(QUOTIENTS_OF_TOTALS))} FROM r",
    }
    for name, query in queries.items():
        both[0].execute(f"CREATE MATERIALIZED VIEW {name} AS {query}".encode())
    for client in both:
        client.execute("UPDATE r SET n = n + 1, i = i * 3 + 1 WHERE id % 4 = 1")
    both[0].execute("FLUSH")
    for name, query in queries.items():
        expected = _rounded(both[1], query)
        for found in (_rounded(both[0], query), _rounded(both[0], f"SELECT * FROM {name}")):
            _check_places(found, expected, name)


_SPREADS = ("stddev", "stddev_pop", "variance", "var_pop")
# Columns of all ways to sum squares up, and how to draw their values; in `near` they differ in the last digits alone.
_SPREAD: dict[str, Callable[[random.Random], object]] = {
    "s smallint": lambda dice: dice.randint(-(2**15), 2**15 - 1),
    "i int": lambda dice: dice.choice((dice.randint(-(2**31), 2**31 - 1), dice.randint(0, 3) * 10**6)),
    "g bigint": lambda dice: dice.randint(-(10**9), 10**9),
    "near bigint": lambda dice: 2**62 + dice.randint(0, 3),
    "d numeric(12,3)": lambda dice: Decimal(dice.randint(-(10**12) + 1, 10**12 - 1)).scaleb(-3),
    "near_d numeric(12,3)": lambda dice: Decimal(10**11 + dice.randint(0, 9)).scaleb(-3),
    "e numeric(9,9)": lambda dice: Decimal(dice.randint(0, 10 ** dice.randint(0, 9) - 1)).scaleb(-9),
    "m numeric(18,2)": lambda dice: Decimal(dice.randint(-(10**11), 10**11)).scaleb(-2),
    "long_m numeric(18,4)": lambda dice: Decimal(10**17 + dice.randint(0, 10**9)).scaleb(-4),
    "w numeric(30,10)": lambda dice: Decimal(dice.randint(-(10**19), 10**19)).scaleb(-10),
    "near_w numeric(30,10)": lambda dice: Decimal(10**25 + dice.randint(0, 10**6)).scaleb(-10),
    "n numeric": lambda dice: Decimal(dice.randint(-(10**28), 10**28)).scaleb(-19),
    "cents numeric": lambda dice: Decimal(dice.randint(-(10**6), 10**6)).scaleb(-2),
    "large_n numeric": lambda dice: dice.randint(9 * 10**18, 9 * 10**18 + 10**9),  # with a total that is no numeric
    "near_n numeric": lambda dice: 10**16 + Decimal(dice.randint(0, 9)).scaleb(-19),
}


def _spread_row(dice: random.Random, id_: int) -> tuple[object, ...]:
    values = (None if dice.random() < 0.1 else draw(dice) for draw in _SPREAD.values())
    return (id_, id_ % 7 if id_ % 40 else None, *values)


def _numbered(calls: list[str]) -> str:
    return ", ".join(f"{call} AS x{number}" for number, call in enumerate(calls))


def test_spreads_are_postgresqls(both: tuple[Connection, Connection]) -> None:
    """Standard deviations and variances: all places but for the twentieth, in queries, and in views over changes."""
    dice = random.Random(19)
    names = [column.split()[0] for column in _SPREAD]
    calls = [f"{call}({name})" for place, name in enumerate(names) for call in _SPREADS[place % 2 :: 2]]
    some = [f"{call}({name}) FILTER (WHERE id % 3 > 0)" for place, name in enumerate(names)
            for call in _SPREADS[1 - place % 2 :: 2]]  # fmt: skip
    over = [f"{_SPREADS[place % 4]}({name}) OVER (PARTITION BY k ORDER BY id ROWS 3 PRECEDING)"
            for place, name in enumerate(names) if place % 3 == 0]  # fmt: skip
    queries = {
        "by_k": f"SELECT k, {_numbered(calls)} FROM sp GROUP BY k",
        "of_all": f"SELECT {_numbered(some)} FROM sp",
        "over_k": f"SELECT id, {_numbered(over)} FROM sp",
        "far": "SELECT stddev(far) AS a, stddev_pop(far) AS b FROM (SELECT g * 9000000000 AS far FROM sp) AS t",
    }
    rows = [_spread_row(dice, id_) for id_ in range(120)]
    marks = ", ".join(["%s"] * len(rows[0]))
    for client in both:
        client.execute(f"CREATE TABLE sp (id int PRIMARY KEY, k int, {', '.join(_SPREAD)})".encode())
        client.cursor().executemany(f"INSERT INTO sp VALUES ({marks})", rows[:60])
    for name, query in queries.items():
        both[0].execute(f"CREATE MATERIALIZED VIEW {name} AS {query}".encode())
    for client in both:
        client.cursor().executemany(f"INSERT INTO sp VALUES ({marks})", rows[60:])
        for change in ("DELETE FROM sp WHERE id % 5 = 3", "UPDATE sp SET i = i / 2 + 1, n = n * 2, k = k + 1"):
            client.execute(change.encode())
    both[0].execute("FLUSH")
    for name, query in queries.items():
        expected = _rounded(both[1], query)
        for found in (_rounded(both[0], query), _rounded(both[0], f"SELECT * FROM {name}")):
            _check_places(found, expected, name)


def _check_places(
    found: list[tuple[Decimal | None, ...]], expected: list[tuple[Decimal | None, ...]], what: str
) -> None:
    """Check that all numbers are the same, but for one in the last place."""
    assert len(found) == len(expected)
    for own, theirs in zip(found, expected, strict=True):
        for place, (one, other) in enumerate(zip(own, theirs, strict=True)):
            same = one == other or (one is not None and other is not None and abs(one - other) <= PLACES)
            assert same, (what, place, one, other)


NESTED = (
    "SELECT '{1.123456789012345,2}'::numeric[]", "SELECT array[1.123456789012345, 2]::numeric[]",
    "SELECT string_to_array('1.123456789012345,2', ',')::numeric[]", "SELECT '{{1.123456789012345},{3}}'::numeric[]",
    "SELECT a, b, a[1], a[1] / 3, a || 2.0000000000000001, cardinality(a) FROM nested ORDER BY id",
    "SELECT id, u FROM (SELECT id, unnest(a) AS u FROM nested) AS each ORDER BY id, u",
    "SELECT array_agg(a[1] ORDER BY id), sum(a[1]), max(a[1]) FROM nested", "SELECT id FROM nested WHERE 2 = ANY(a)",
    "SELECT (c).x, (c).x * 2 FROM nested ORDER BY id", "SELECT third(1.123456789012345, '{1.000000000000001}')",
    "SELECT a FROM nested WHERE a = '{7.000000000000001}'",
)  # fmt: skip


def test_numerics_in_arrays_rows_and_functions_keep_their_digits(both: tuple[Connection, Connection]) -> None:
    for client in both:
        client.execute("CREATE TYPE pair AS (x numeric, y int)")
        client.execute("CREATE TABLE nested (id int PRIMARY KEY, a numeric[], b numeric(10,2)[], c pair)")
        client.execute("""CREATE FUNCTION third(a numeric, b numeric[]) RETURNS numeric LANGUAGE SQL
                          AS $$ SELECT a / 3 + b[1] $$""")
        client.execute("INSERT INTO nested VALUES (1, '{1.123456789012345,2}', '{1.239}', row(1.123456789012345, 1))")
        client.execute("INSERT INTO nested VALUES (2, %s, NULL, NULL)", ([Decimal("7.000000000000001")],))
        with client.cursor() as cursor, cursor.copy("COPY nested (id, a) FROM STDIN") as copy:
            copy.write("3\t{0.0000000000000000001,NULL}\n")
    here, there = both
    here.execute("""CREATE MATERIALIZED VIEW nested_view AS
                    SELECT id, a, a[1] AS e, a || 2.0000000000000001 AS more, (c).x AS x FROM nested""")
    for client in both:
        client.execute("UPDATE nested SET a = array[a[1], 5.123456789012345] WHERE id > 1")
    here.execute("FLUSH")
    for query in NESTED:
        for binary in (False,) if "{{" in query else (False, True):
            expected = there.execute(query.encode(), binary=binary).fetchall()
            found = here.execute(query.encode(), binary=binary).fetchall()
            assert _within(found) == _within(expected), query
    view, query = (
        "SELECT * FROM nested_view ORDER BY id",
        ("SELECT id, a, a[1], a || 2.0000000000000001, (c).x FROM nested ORDER BY id"),
    )
    assert _within(here.execute(view).fetchall()) == _within(there.execute(query).fetchall())


def _within(rows: list[tuple[Any, ...]]) -> list[Any]:
    """The rows, with numbers to 19 places, in arrays too."""

    def rounded(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [rounded(each) for each in value]
        return round(value, 19) if isinstance(value, Decimal) else value

    return rounded(rows)


def test_a_quotient_that_rows_are_grouped_by(random_rows: tuple[Connection, Connection]) -> None:
    query = b"SELECT i / 3.0 AS q, count(*) FROM r GROUP BY i / 3.0 HAVING i / 3.0 > 1 ORDER BY i / 3.0 DESC"
    found, expected = (client.execute(query).fetchall() for client in random_rows)
    assert [(round(q, 16), n) for q, n in found] == [(round(q, 16), n) for q, n in expected]
    assert len(found) > 5


WIDE = (
    "f + f", "f - g", "g + i", "h + h", "f + a", "-f", "f * 2", "i * f", "g * s", "s * s * s * s", "h * 2", "h + 1",
    "i * 1.000000000001", "a * 1.000000000001", "a * a", "i + 0.123456789012345", "f + n", "(a * s) * g",
    "s * (1 - s) * (1 + s)", "b * 1.1", "1e-12 * i", "f % g", "h % g", "mod(f, 2)", "a * 0.001 * 0.001 * 0.001 * 0.001",
    "round(a, 1)", "round(s, 6)", "round(a)", "ceil(a)", "floor(f)", "sign(a)", "trunc(h, 20)", "round(a * s, 2) * s",
    "round(a * s, 2) * round(s, 1)", "round(i * 0.5)", "abs(h)", "abs(a)", "0.123456789012345",
    "coalesce(a, a) * coalesce(a, a)", "(a * s) * (s * s)",
)  # fmt: skip
WIDE_TOTALS = (
    "sum(s * s * s * s)", "sum(i * 1.000000000001)", "sum(a * s)", "sum(a * a)", "sum(a * s * g)", "sum(f) * 2",
    "sum(b * 1.5) * sum(b * 1.5)", "min(s * s * s * s)", "sum(h)",
)  # fmt: skip
# The digits after the point differ among the rows in PostgreSQL, or are more than 19.
MIXED = (
    "f * f", "g * g", "n * f", "n * 1.5", "f * 1.0000000001", "-(f * g)", "f * g + a * s", "h * a", "h * h", "b * h",
    "h * n", "h + i", "coalesce(f, 0)", "CASE WHEN i > 0 THEN f ELSE g END", "greatest(f, g)",
)  # fmt: skip


def test_computed_numerics_have_the_digits_of_postgresql(both: tuple[Connection, Connection]) -> None:
    """Products of more than 18 digits, more than ten places, and zeros at the end; in queries and in views."""
    here, there = both
    for client in both:
        client.execute("""CREATE TABLE wide (i int, b bigint, f numeric(20,15), g numeric(12,11), h numeric(38,30),
                                             a numeric(15,2), n numeric, s numeric(6,4))""")
        client.execute("""INSERT INTO wide VALUES (7, 123456789012, 12345.123456789012345, 1.12345678901,
                                                   1.123456789012345678901234567891, 123456789012.45, 3.1, 99.9999),
            (2, 3, 0.000000000000001, 0.00000000001, 0.000000000000000000000000000001, 0.01, 0.1, 0.0001),
            (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)""")
    for view, expressions in (("wide_rows", ("i", *WIDE)), ("wide_totals", WIDE_TOTALS)):
        listed = ", ".join(f"{expression} AS x{number}" for number, expression in enumerate(expressions))
        here.execute(f"CREATE MATERIALIZED VIEW {view} AS SELECT {listed} FROM wide".encode())
    for number, expression in enumerate(MIXED):
        query = f"SELECT i, {expression} AS x FROM wide WHERE i > 0"
        here.execute(f"CREATE MATERIALIZED VIEW mixed{number} AS {query}".encode())
        expected = _rounded(there, query)
        assert expected == _rounded(here, query) == _rounded(here, f"SELECT * FROM mixed{number}"), expression
    for client in both:
        client.execute("INSERT INTO wide SELECT -i, -b, -f, -g, -h, -a, -n, -s FROM wide WHERE i = 7")
    here.execute("FLUSH")
    for view, expressions in (("wide_rows", ("i", *WIDE)), ("wide_totals", WIDE_TOTALS)):
        for number, expression in enumerate(expressions):
            query = f"SELECT ({expression})::text FROM wide ORDER BY 1"
            expected = there.execute(query.encode()).fetchall()
            assert here.execute(query.encode()).fetchall() == expected, expression
            kept = here.execute(f"SELECT x{number}::text FROM {view} ORDER BY 1".encode()).fetchall()
            assert kept == expected, expression


PLACES_BY_ROW = (
    "round(q, k)", "trunc(q, k)", "round(d, k)", "trunc(d, k)", "round(g, k)", "trunc(g, k)", "round(h, s)",
    "trunc(h, s)", "round(i, k)", "trunc(b, s)", "round(i / 3.0, least(k, 18))", "round(d * 2, k - 1)",
    "round(d, k) * 2", "round(round(d, k), 1)", "round(1.2345, k)", "round(12345, k)", "round(coalesce(d, 1.5), k)",
    "round(CASE WHEN id > 2 THEN i ELSE 2.55 END, k)", "round(d, length(i::text))", "round(i, 2)", "trunc(i, -1)",
    "round(d, -6)", "round(q, -28)", "trunc(d, -40)", "round(d, 2147483647)", "round(d, NULL)",
)  # fmt: skip
TOTALS_BY_ROW = ("round(sum(d), max(k))", "max(round(d, k))", "round(avg(d), min(k))", "sum(trunc(q, k))")


def test_places_may_differ_by_row(both: tuple[Connection, Connection]) -> None:
    """Negative ones, those beyond the digits, and NULL; in queries and in views."""
    here, there = both
    for client in both:
        client.execute("""CREATE TABLE placed (id int PRIMARY KEY, q numeric, d numeric(10,4), g numeric(38,19),
                                               h numeric(38,0), i int, b bigint, s smallint, k int)""")
        client.execute("""INSERT INTO placed VALUES
            (1, 12345.6789, 12.3456, 2.123456789012345678, 49999999999999999999999999999999999999, 1255, 7, 1, 2),
            (2, -1255.5, -5.5, -1.5, -51, -7, -15, 0, -1), (3, 1.5, 2.5, 3.5, 3, 3, 5, NULL, NULL),
            (4, 155.155, 99.9999, 0.00005, 4, 2, 1, 25, 20), (6, NULL, NULL, NULL, NULL, NULL, NULL, 2, 2),
            (5, 555, 555.5, 555, -49999999999999999999999999999999999999, 5, 5, -37, -3),
            (7, -999999999999999999.9999999999999999999, -999999.9999, 9999999999999999999.4999999999999999999, -15, 15,
             9223372036854775807, 0, 0), (9, 1, 1, 1, 1, 1, 1, -19, 2147483647), (10, 2, 2, 2, 2, 2, 2, -38, -99)""")
    listed = ", ".join(f"{call} AS x{number}" for number, call in enumerate(PLACES_BY_ROW))
    totals = ", ".join(f"{call} AS x{number}" for number, call in enumerate(TOTALS_BY_ROW))
    queries = {"placed_rows": f"SELECT id, {listed} FROM placed", "placed_totals": f"SELECT {totals} FROM placed"}
    for view, query in queries.items():
        here.execute(f"CREATE MATERIALIZED VIEW {view} AS {query}".encode())
    for client in both:
        client.execute("UPDATE placed SET k = k + 1 WHERE id IN (1, 5)")
    here.execute("FLUSH")
    for view, query in queries.items():
        expected = _rounded(there, query)
        assert _rounded(here, query) == expected
        assert _rounded(here, f"SELECT * FROM {view}") == expected
        types = [[column.type_code for column in client.execute(query.encode()).description or ()] for client in both]
        assert types[0] == types[1]
    for call in ("round(d, b)", "round(d, d)", "trunc(1.5::float8, k)", "round(i, d)"):
        for query in (
            f"SELECT {call} AS x FROM placed",
            f"CREATE MATERIALIZED VIEW v AS SELECT {call} AS x FROM placed",
        ):
            with pytest.raises(psycopg.errors.UndefinedFunction):
                here.execute(query.encode())
    with pytest.raises(psycopg.errors.NumericValueOutOfRange):
        here.execute("SELECT round(99999999999999999999999999999999999999::numeric(38,0), -38 + id * 0) FROM placed")


def _rounded(client: Connection, query: str) -> list[tuple[Decimal | None, ...]]:
    """The rows, in the order of the first column, with 19 places."""
    with localcontext() as context:
        context.prec = 60
        rows = client.execute(query.encode()).fetchall()
        rounded = (tuple(None if v is None else Decimal(v).quantize(PLACES) for v in row) for row in rows)
        return sorted(rounded, key=lambda row: [(v is None, v or 0) for v in row])


def test_floats_of_long_constants_are_the_nearest(both: tuple[Connection, Connection]) -> None:
    """DuckDB rounds twice where it makes a float of a decimal of more than 15 digits."""
    here, _ = both
    dice = random.Random(3)
    values = [dice.uniform(-1, 1) * 10 ** dice.randint(-3, 6) for _ in range(200)]
    here.execute("CREATE TABLE floats (id int PRIMARY KEY, f float8)")
    listed = ", ".join(f"({number}, {value!r})" for number, value in enumerate(values))
    here.execute(f"INSERT INTO floats VALUES {listed}".encode())
    assert [f for (f,) in here.execute("SELECT f FROM floats ORDER BY id").fetchall()] == values
    cast = here.execute(f"SELECT {', '.join(f'{value!r}::float8' for value in values)}".encode())
    assert list(cast.fetchone() or ()) == values


FLOATS_OF_NUMERICS = (
    "n::float8", "n::real", "wide::float8", "(n * 3)::float8", "sum(n)::float8", "avg(n)::float8", "n + f", "f * n",
    "n = n::float8", "CASE WHEN id % 2 = 0 THEN n ELSE f END", "coalesce(n, f)", "greatest(f, n)", "atan2(n, 1)",
    "power(f, n / 1e18)", "n::float8 IN (n, 1)", "(ARRAY[n, f])[1]", "max(n::float8)",
    "percentile_cont(1) WITHIN GROUP (ORDER BY n)",
)  # fmt: skip


def test_numerics_become_the_nearest_floats(both: tuple[Connection, Connection]) -> None:
    """In queries, views and what is written: DuckDB (1.5.5) has one in a hundred off by a unit in the last place."""
    dice, here = random.Random(5), both[0]
    rows = []
    for id_ in range(400):
        digits = dice.randint(4, 18)
        n = Decimal(dice.randint(1, 10**digits - 1)).scaleb(-dice.randint(0, digits))
        rows.append((id_, n, dice.randint(1, 10**17), dice.random()))
    for client in both:
        client.execute("CREATE TABLE fine (id int PRIMARY KEY, n numeric, wide numeric(20,2), f float8)")
        client.execute("CREATE TABLE made (id int PRIMARY KEY, d float8, r real, s float8)")
        with client.cursor() as cursor:
            cursor.executemany("INSERT INTO fine VALUES (%s, %s, %s * 0.01, %s)", rows)
        client.execute("INSERT INTO made SELECT id, n, n, wide FROM fine")
        client.execute("UPDATE made SET d = n * 7, s = n FROM fine WHERE fine.id = made.id AND made.id > 200")
    of_rows = [form for form in FLOATS_OF_NUMERICS if not re.match("sum|avg|max|percentile", form)]
    of_groups = [form for form in FLOATS_OF_NUMERICS if form not in of_rows]
    queries = (
        "SELECT id, " + ", ".join(f"{form} AS x{place}" for place, form in enumerate(of_rows)) + " FROM fine",
        "SELECT id / 4 AS g, " + ", ".join(f"{form} AS x{place}" for place, form in enumerate(of_groups))
        + " FROM fine GROUP BY id / 4",
        "SELECT id, f AS x FROM fine UNION ALL SELECT id, n FROM fine",
        "SELECT id FROM fine WHERE n::float8 IN (SELECT n FROM fine)",
        "SELECT id, d, r, s FROM made",
    )  # fmt: skip
    for number, query in enumerate(queries):
        here.execute(f"CREATE MATERIALIZED VIEW nearest{number} AS {query}".encode())
        expected = sorted(both[1].execute(query.encode()).fetchall())
        assert sorted(here.execute(query.encode()).fetchall()) == expected, query
        assert sorted(here.execute(f"SELECT * FROM nearest{number}".encode()).fetchall()) == expected, query
    ordered = "SELECT n::float8, count(*) FROM fine GROUP BY n::float8 ORDER BY n::float8 LIMIT 5"
    assert here.execute(ordered.encode()).fetchall() == both[1].execute(ordered.encode()).fetchall()


def test_texts_of_large_floats_are_postgresqls(both: tuple[Connection, Connection]) -> None:
    """Shortest digits that are as near to another float are not enough for PostgreSQL."""
    dice = random.Random(9)
    doubles = [dice.uniform(-1, 1) * 10 ** dice.randint(15, 41) for _ in range(2000)]
    reals = [np.float32(dice.uniform(-1, 1) * 10 ** dice.randint(-8, 38)) for _ in range(2000)]
    reals += [np.float32(dice.randint(1, 10**7) / 64) for _ in range(2000)]
    doubles += [2.0**power for power in range(-1074, 1024)]  # of three DuckDB's texts are other numbers
    reals += [np.float32(2.0**power) for power in range(-149, 128)]
    for values, type_ in ((doubles, "float8"), (reals, "real")):
        query = f"SELECT x::{type_}::text FROM unnest(%s::float8[]) AS x".encode()
        texts = both[1].execute(query, ([float(value) for value in values],)).fetchall()
        assert [float_text(value) for value in values] == [text for (text,) in texts]
        assert both[0].execute(query, ([float(value) for value in values],)).fetchall() == texts
        arrow = pa.array(values, pa.float64() if type_ == "float8" else pa.float32())
        shown = text_array(arrow, parse_type("real" if type_ == "real" else "double precision"))
        assert shown.to_pylist() == [text for (text,) in texts]


LONG = (
    "1.1234567890123456789012345678901234567890123", "1234567890123456789.1234567890123456789012345",
    "0.1000000000000000055511151231257827021181583404541015625", "-9999999999999999999.99999999999999999994",
)  # fmt: skip


def test_numbers_of_more_than_38_digits_are_rounded_once(both: tuple[Connection, Connection]) -> None:
    """DuckDB makes doubles of such constants and parameters."""
    here, _ = both
    here.execute("CREATE TABLE long (id int, n numeric)")
    here.execute(
        f"CREATE MATERIALIZED VIEW of_long AS SELECT id, n > {LONG[1]} AS x, {LONG[0]} AS y FROM long".encode()
    )
    rounded = [Decimal(value).quantize(PLACES, ROUND_HALF_UP, Context(60)) for value in LONG]
    for number, value in enumerate(LONG):
        for statement, given in (
            (f"INSERT INTO long VALUES ({number}, {value})", None), ("INSERT INTO long VALUES (%s, %s)", (value,)),
            ("INSERT INTO long VALUES (%s, %t)", (Decimal(value),)),
            ("INSERT INTO long VALUES (%s, %b)", (Decimal(value),)),
            ("INSERT INTO long SELECT %s, (%b::numeric[])[1]", ([Decimal(value)],)),
            (f"INSERT INTO long SELECT {number}, {value}::numeric", None),
        ):  # fmt: skip
            here.execute(statement.encode(), given and (number, *given))
    assert here.execute("SELECT id, n, count(*) FROM long GROUP BY id, n ORDER BY id").fetchall() == [
        (number, value, 6) for number, value in enumerate(rounded)
    ]
    here.execute("FLUSH")
    assert here.execute("SELECT DISTINCT x, round(y, 30) FROM of_long").fetchall() == [
        (False, Decimal("1.123456789012345678901234567890"))
    ]
    row = here.execute(f"SELECT {LONG[2]}::float8, {'0.' + '0' * 45}12345 * 1.0::float8".encode()).fetchone()
    assert row == (0.1, 1.2345e-46)
    with pytest.raises(psycopg.errors.NumericValueOutOfRange):
        here.execute(f"SELECT {'1' * 39}.5".encode())


def test_texts_of_floats_in_views_are_postgresqls(both: tuple[Connection, Connection]) -> None:
    """Reals and doubles beyond the digits that tell them apart, as texts, beside texts, in arrays and as groups."""
    here, there = both
    query = (
        "SELECT r::text AS x, d || '' AS y, concat(r, ' ', d) AS z, ARRAY[r]::text AS a, count(*) AS n FROM printed "
        "GROUP BY 1, 2, 3, 4"
    )
    for client in both:
        client.execute("CREATE TABLE printed (id int PRIMARY KEY, r real, d float8)")
        client.execute("INSERT INTO printed SELECT i, 2775.65625 + i / 32.0, 2.0::float8 ^ (i + 80) FROM "
                       "generate_series(1, 9) AS i")  # fmt: skip
    here.execute(f"CREATE MATERIALIZED VIEW of_printed AS {query}".encode())
    for change in ("UPDATE printed SET r = r * 1.5 WHERE id = 3", "DELETE FROM printed WHERE id < 3",
                   "INSERT INTO printed VALUES (20, 1067658432, 66651525643534064)"):  # fmt: skip
        for client in both:
            client.execute(change.encode())
        here.execute("FLUSH")
        expected = sorted(there.execute(query.encode()).fetchall())
        assert sorted(here.execute(query.encode()).fetchall()) == expected
        assert sorted(here.execute("SELECT * FROM of_printed").fetchall()) == expected
