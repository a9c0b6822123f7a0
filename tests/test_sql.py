"""Tables, types, writes, COPY, settings and catalogs through psycopg, on a server without Spark."""

from __future__ import annotations

import datetime
import json
import threading
import time
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from psycopg import sql as compose
from servers import Server, refused, rows

Connection = psycopg.Connection[Any]

UTC = datetime.UTC
# Some 10^12 rows of two small inputs: runs for hours, in little memory.
ENDLESS = "SELECT count(*) FROM range(1000000) AS a (i) CROSS JOIN range(1000000) AS b (j) WHERE i * j % 7 = 3"
LONG = "x" * 100_000

# Type, SQL literal, the Python value psycopg reads.
VALUES = [
    ("boolean", "true", True),
    ("boolean", "false", False),
    ("smallint", "-32768", -(2**15)),
    ("smallint", "32767", 2**15 - 1),
    ("integer", "-2147483648", -(2**31)),
    ("integer", "2147483647", 2**31 - 1),
    ("bigint", "-9223372036854775808", -(2**63)),
    ("bigint", "9223372036854775807", 2**63 - 1),
    ("real", "1.5", 1.5),
    ("real", "'NaN'", float("nan")),
    ("real", "'Infinity'", float("inf")),
    ("real", "'-Infinity'", float("-inf")),
    ("double precision", "0.1", 0.1),
    ("double precision", "1e308", 1e308),
    ("double precision", "'-0'", -0.0),
    ("double precision", "'NaN'", float("nan")),
    ("double precision", "'Infinity'", float("inf")),
    ("double precision", "'-Infinity'", float("-inf")),
    ("numeric(10,2)", "0", Decimal("0.00")),
    ("numeric(10,2)", "12345678.90", Decimal("12345678.90")),
    ("numeric(10,2)", "-0.05", Decimal("-0.05")),
    ("varchar", "''", ""),
    ("varchar", "'it''s \"quoted\"'", 'it\'s "quoted"'),
    ("varchar", "'back\\slash'", "back\\slash"),
    ("varchar", "'žluťoučký 日本 🐘'", "žluťoučký 日本 🐘"),
    ("varchar", "'a\tb\nc'", "a\tb\nc"),
    ("varchar", f"'{LONG}'", LONG),
    ("bytea", "'\\x00ff5c'", b"\x00\xff\\"),
    ("bytea", "''", b""),
    ("date", "'2024-02-29'", datetime.date(2024, 2, 29)),
    ("date", "'0001-01-01'", datetime.date(1, 1, 1)),
    ("timestamp", "'2024-02-29 23:59:59.123456'", datetime.datetime(2024, 2, 29, 23, 59, 59, 123456)),
    ("timestamp", "'1969-12-31 00:00:00'", datetime.datetime(1969, 12, 31)),
    ("timestamptz", "'2024-06-01 12:00:00+02'", datetime.datetime(2024, 6, 1, 10, 0, tzinfo=UTC)),
]
TYPES = list(dict.fromkeys(type_ for type_, _, _ in VALUES))


def notices_of(connection: Connection) -> list[str]:
    found: list[str] = []
    connection.add_notice_handler(lambda notice: found.append(f"{notice.severity}: {notice.message_primary}"))
    return found


def same(left: Any, right: Any) -> bool:
    """Equality under which NaN equals NaN and -0.0 differs from 0.0."""
    return type(left) is type(right) and repr(left) == repr(right)


# Tables.


def test_create_and_drop_table(connection: Connection) -> None:
    notices = notices_of(connection)
    assert connection.execute("CREATE TABLE life (k int PRIMARY KEY)").statusmessage == "CREATE TABLE"
    assert notices == []
    connection.execute("CREATE TABLE IF NOT EXISTS life (other int)")
    assert notices.pop() == 'NOTICE: relation "life" already exists, skipping'
    assert connection.execute("DROP TABLE life").statusmessage == "DROP TABLE"
    with pytest.raises(psycopg.errors.UndefinedTable):
        connection.execute("SELECT * FROM life")
    connection.execute("DROP TABLE IF EXISTS life")
    assert notices.pop() == 'NOTICE: table "life" does not exist, skipping'
    connection.execute("CREATE TABLE life (other varchar)")
    assert rows(connection, "SELECT * FROM life") == []


def test_a_key_may_have_a_name(connection: Connection) -> None:
    connection.execute('CREATE TABLE named (a int, b int, CONSTRAINT "named_key" PRIMARY KEY (b, a))')
    connection.execute("CREATE UNLOGGED TABLE inline (a int CONSTRAINT inline_key PRIMARY KEY, b int)")
    keys = "SELECT conname, conkey FROM pg_constraint WHERE conrelid IN ('named'::regclass, 'inline'::regclass)"
    assert sorted(rows(connection, keys)) == [("inline_key", [1]), ("named_key", [2, 1])]
    connection.execute("INSERT INTO named VALUES (1, 2) ON CONFLICT ON CONSTRAINT named_key DO NOTHING")
    connection.execute("ALTER TABLE named RENAME TO named2")
    connection.execute("ALTER TABLE inline RENAME CONSTRAINT inline_key TO the_key")
    keys = keys.replace("'named'", "'named2'")
    assert sorted(rows(connection, keys)) == [("named_key", [2, 1]), ("the_key", [1])]
    [(_, definition)] = rows(connection, "SHOW CREATE TABLE inline")
    assert definition == "CREATE TABLE inline (a INT, b INT, CONSTRAINT the_key PRIMARY KEY (a))"
    error = refused(connection, "CREATE TABLE other (a int, CONSTRAINT one EXCLUDE USING gist (a WITH =))")
    assert error.sqlstate == "0A000"


def test_names_fold_unless_quoted(connection: Connection) -> None:
    connection.execute('CREATE TABLE "Fold" ("Key" int PRIMARY KEY, Value int, "select" int, "a ""b" int)')
    connection.execute('INSERT INTO public."Fold" VALUES (1, 2, 3, 4)')
    cursor = connection.execute('SELECT "Key", VALUE, "select", "a ""b" FROM dev.public."Fold"')
    assert [column.name for column in cursor.description or ()] == ["Key", "value", "select", 'a "b']
    assert cursor.fetchall() == [(1, 2, 3, 4)]
    with pytest.raises(psycopg.errors.UndefinedTable):
        connection.execute("SELECT * FROM fold")


def test_table_without_a_key_keeps_duplicates(connection: Connection) -> None:
    connection.execute("CREATE TABLE bag (v int)")
    connection.execute("INSERT INTO bag VALUES (1), (1), (2)")
    connection.execute("INSERT INTO bag VALUES (1)")
    assert rows(connection, "SELECT * FROM bag ORDER BY v") == [(1,), (1,), (1,), (2,)]
    assert connection.execute("DELETE FROM bag WHERE v = 1").rowcount == 3
    assert rows(connection, "SELECT * FROM bag") == [(2,)]


# Append-only tables and watermarks.


def test_append_only_table(connection: Connection) -> None:
    """As in RisingWave, a row whose key is there already is ignored."""
    connection.execute("CREATE TABLE grown (k int, j int, v varchar, PRIMARY KEY (k, j)) APPEND ONLY")
    assert connection.execute("INSERT INTO grown VALUES (1, 1, 'a'), (1, 1, 'b'), (1, 2, 'c')").rowcount == 3
    connection.execute("INSERT INTO grown VALUES (1, 2, 'd'), (2, 1, 'e')")
    with connection.cursor() as cursor, cursor.copy("COPY grown FROM STDIN") as copy:
        copy.write("2\t1\tf\n2\t2\tg\n")
    assert rows(connection, "SELECT * FROM grown ORDER BY k, j") == [
        (1, 1, "a"), (1, 2, "c"), (2, 1, "e"), (2, 2, "g"),
    ]  # fmt: skip
    assert rows(connection, "SELECT append_only FROM rw_catalog.rw_tables WHERE name = 'grown'") == [(True,)]
    connection.execute("CREATE TABLE grown_bag (v int) APPEND ONLY")
    connection.execute("INSERT INTO grown_bag VALUES (1), (1)")
    assert rows(connection, "SELECT * FROM grown_bag") == [(1,), (1,)]


@pytest.mark.parametrize(
    ("type_", "delay"),
    [("timestamp", " - INTERVAL '5' SECOND"), ("timestamptz", " - INTERVAL '5 seconds'"), ("timestamp", "")],
)
def test_late_rows_are_dropped(connection: Connection, type_: str, delay: str) -> None:
    """Rows below the watermark of the statements before; the statement's own rows do not count."""
    connection.execute("DROP TABLE IF EXISTS late")
    connection.execute(f"CREATE TABLE late (k int, at {type_}, WATERMARK FOR at AS at{delay}) APPEND ONLY")
    connection.execute("INSERT INTO late VALUES (1, '2024-01-01 00:00:10'), (2, '2024-01-01 00:00:00'), (3, NULL)")
    second = 5 if delay else 10
    assert connection.execute(
        f"INSERT INTO late VALUES (4, '2024-01-01 00:00:{second:02}'), (5, NULL), "
        f"(6, '2024-01-01 00:00:{second - 1:02}.999999'), (7, '2024-01-01 00:01:00')"
    ).rowcount == 4  # fmt: skip
    assert rows(connection, "SELECT k FROM late ORDER BY k") == [(1,), (2,), (3,), (4,), (7,)]
    with connection.cursor() as cursor, cursor.copy("COPY late FROM STDIN") as copy:
        copy.write("8\t2024-01-01 00:00:54\n9\t2024-01-01 00:01:00\n")
    assert rows(connection, "SELECT k FROM late WHERE k > 7") == [(9,)]


def test_watermark_of_concurrent_writers(connection: Connection, module_server: Server) -> None:
    """Each row was at or above the watermark when it came, whoever wrote at the same time."""
    connection.execute("CREATE TABLE raced (k int, WATERMARK FOR k AS k) APPEND ONLY")

    def write(first: int) -> None:
        with module_server.connect() as own:
            for k in range(first, first + 60, 3):
                own.execute(f"INSERT INTO raced VALUES ({k})")

    threads = [threading.Thread(target=write, args=(first,)) for first in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stored = [k for (k,) in rows(connection, "SELECT k FROM raced")]
    assert stored == sorted(stored)
    assert 20 <= len(stored) <= 60


def test_show_create_of_append_only_table_makes_the_same_table(connection: Connection) -> None:
    connection.execute(
        'CREATE TABLE clauses (WATERMARK FOR "At" AS "At" -- not "k"\n - INTERVAL \'1 hour\', k int PRIMARY KEY, '
        '/* , */ "At" timestamp) APPEND ONLY'
    )
    [(_, definition)] = rows(connection, "SHOW CREATE TABLE clauses")
    assert definition == (
        'CREATE TABLE clauses (k INT PRIMARY KEY, "At" TIMESTAMP, '
        'WATERMARK FOR "At" AS "At" - INTERVAL \'1 hour\') APPEND ONLY'
    )
    connection.execute("DROP TABLE clauses")
    connection.execute(definition)
    assert rows(connection, "SHOW CREATE TABLE clauses") == [("public.clauses", definition)]
    connection.execute("INSERT INTO clauses VALUES (1, '2024-01-01 12:00:00')")
    connection.execute("INSERT INTO clauses VALUES (2, '2024-01-01 10:59:59'), (3, '2024-01-01 11:00:00')")
    assert rows(connection, "SELECT k FROM clauses ORDER BY k") == [(1,), (3,)]


# Writes.


def test_insert_values_and_select(connection: Connection) -> None:
    connection.execute("CREATE TABLE source (k int PRIMARY KEY, v varchar, w int)")
    assert connection.execute("INSERT INTO source VALUES (1, 'a', 10)").statusmessage == "INSERT 0 1"
    assert connection.execute("INSERT INTO source (v, k) VALUES ('b', 2), (NULL, 3)").statusmessage == "INSERT 0 2"
    connection.execute("INSERT INTO source SELECT k + 10, upper(v), w FROM source WHERE v IS NOT NULL")
    expected = [(1, "a", 10), (2, "b", None), (3, None, None), (11, "A", 10), (12, "B", None)]
    assert rows(connection, "SELECT * FROM source ORDER BY k") == expected


def test_insert_of_an_existing_key_overwrites(connection: Connection) -> None:
    connection.execute("CREATE TABLE pairs (a int, b varchar, v int, w int, PRIMARY KEY (a, b))")
    connection.execute("INSERT INTO pairs VALUES (1, 'x', 1, 1), (1, 'y', 2, 2), (2, 'x', 3, 3)")
    assert connection.execute("INSERT INTO pairs VALUES (1, 'x', 10, 10), (3, 'z', 4, 4)").rowcount == 2
    connection.execute("INSERT INTO pairs (a, b, v) VALUES (2, 'x', 30)")
    expected = [(1, "x", 10, 10), (1, "y", 2, 2), (2, "x", 30, None), (3, "z", 4, 4)]
    assert rows(connection, "SELECT * FROM pairs ORDER BY a, b") == expected


def test_last_row_of_a_key_in_one_statement_wins(connection: Connection) -> None:
    connection.execute("CREATE TABLE latest (k int PRIMARY KEY, v varchar)")
    connection.execute("INSERT INTO latest VALUES (1, 'first'), (2, 'other'), (1, 'last')")
    assert rows(connection, "SELECT * FROM latest ORDER BY k") == [(1, "last"), (2, "other")]
    connection.execute("INSERT INTO latest VALUES (2, 'a'), (1, 'b'), (2, 'c')")
    assert rows(connection, "SELECT * FROM latest ORDER BY k") == [(1, "b"), (2, "c")]


def test_table_of_key_columns_only(connection: Connection) -> None:
    connection.execute("CREATE TABLE keys_only (k int PRIMARY KEY)")
    connection.execute("INSERT INTO keys_only VALUES (1), (2)")
    connection.execute("INSERT INTO keys_only VALUES (2), (3), (3)")
    assert rows(connection, "SELECT * FROM keys_only ORDER BY k") == [(1,), (2,), (3,)]


def test_update_and_delete(connection: Connection) -> None:
    connection.execute("CREATE TABLE changed (k int PRIMARY KEY, v int)")
    connection.execute("INSERT INTO changed SELECT i, i FROM range(10) AS r (i)")
    assert connection.execute("UPDATE changed SET v = v * 100 WHERE k >= 8").statusmessage == "UPDATE 2"
    assert connection.execute("UPDATE changed SET v = NULL WHERE k = 7").rowcount == 1
    assert connection.execute("UPDATE changed SET v = 0 WHERE k = 99").rowcount == 0
    assert connection.execute("DELETE FROM changed WHERE k < 7").statusmessage == "DELETE 7"
    assert rows(connection, "SELECT * FROM changed ORDER BY k") == [(7, None), (8, 800), (9, 900)]
    assert connection.execute("DELETE FROM changed").rowcount == 3
    assert rows(connection, "SELECT count(*) FROM changed") == [(0,)]


def test_nulls(connection: Connection) -> None:
    connection.execute("CREATE TABLE nulls (k int PRIMARY KEY, v varchar)")
    connection.execute("INSERT INTO nulls VALUES (1, NULL), (2, ''), (3, 'NULL')")
    assert rows(connection, "SELECT k FROM nulls WHERE v IS NULL") == [(1,)]
    assert rows(connection, "SELECT k FROM nulls WHERE v = ''") == [(2,)]
    assert rows(connection, "SELECT count(*), count(v) FROM nulls WHERE v <> 'NULL' OR v IS NULL") == [(2, 1)]
    assert rows(connection, "SELECT k, v FROM nulls ORDER BY v, k") == [(2, ""), (3, "NULL"), (1, None)]


def test_concurrent_writers_of_a_table_lose_nothing(module_server: Server) -> None:
    with module_server.connect() as first:
        first.execute("CREATE TABLE contended (k int PRIMARY KEY, v int)")

    def write(start: int) -> None:
        with module_server.connect() as own:
            for i in range(20):
                own.execute("INSERT INTO contended VALUES (%s, %s)", (start + i, i))

    threads = [threading.Thread(target=write, args=(start,)) for start in (0, 100, 200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with module_server.connect() as own:
        assert rows(own, "SELECT count(*), sum(v) FROM contended") == [(60, 570)]


# Types.


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
@pytest.mark.parametrize("type_", TYPES)
def test_literals_round_trip(connection: Connection, type_: str, binary: bool) -> None:
    literals = [(literal, value) for of, literal, value in VALUES if of == type_]
    name = compose.Identifier(f"literals {type_} {binary}")
    connection.execute(compose.SQL(f"CREATE TABLE {{}} (k int PRIMARY KEY, v {type_})").format(name))
    listed = ", ".join(f"({k}, {literal})" for k, (literal, _) in enumerate(literals))
    connection.execute(compose.SQL("INSERT INTO {} VALUES " + listed + ", (-1, NULL)").format(name))
    found = connection.execute(compose.SQL("SELECT v FROM {} ORDER BY k").format(name), binary=binary).fetchall()
    assert found[0] == (None,)
    for (value,), (literal, expected) in zip(found[1:], literals, strict=True):
        assert same(value, expected), literal


def test_a_real_is_shown_as_it_was_written(connection: Connection) -> None:
    found = connection.execute("SELECT 0.1::real, ARRAY[0.1::real], 0.1::float")
    assert found.fetchall() == [(0.1, [0.1], 0.1)]
    assert [column.type_code for column in found.description or ()] == [700, 1021, 701]


@pytest.mark.parametrize("placeholder", ["%t", "%b"], ids=["text", "binary"])
@pytest.mark.parametrize("type_", TYPES)
def test_parameters_round_trip(connection: Connection, type_: str, placeholder: str) -> None:
    """Values of the client, the last a NULL, are stored and read back as they were."""
    values = [value for of, _, value in VALUES if of == type_]
    name = compose.Identifier(f"parameters {type_} {placeholder[1]}")
    connection.execute(compose.SQL(f"CREATE TABLE {{}} (k int PRIMARY KEY, v {type_})").format(name))
    insert = compose.SQL(f"INSERT INTO {{}} VALUES ({placeholder}, {placeholder})").format(name)
    for k, value in enumerate([*values, None]):
        connection.execute(insert, (k, value))
    found = [value for (value,) in connection.execute(compose.SQL("SELECT v FROM {} ORDER BY k").format(name))]
    assert found[-1] is None
    for value, expected in zip(found, values, strict=False):
        assert same(value, expected)


@pytest.mark.parametrize("placeholder", ["%t", "%b"], ids=["text", "binary"])
def test_parameters_in_queries(connection: Connection, placeholder: str) -> None:
    p = placeholder
    assert rows(connection, f"SELECT {p}::int, {p}::varchar, {p}::bigint", (-5, "a'b", None)) == [(-5, "a'b", None)]
    query = f"SELECT i FROM range(10) AS r (i) WHERE i > {p} ORDER BY i LIMIT {p} OFFSET {p}"
    assert rows(connection, query, (-3, 2, 4)) == [(4,), (5,)]
    assert rows(connection, f"SELECT -{p} + 1", (-7,)) == [(8,)]


def test_prepared_statement_runs_again(connection: Connection) -> None:
    connection.execute("CREATE TABLE prepared (k int PRIMARY KEY, v varchar)")
    for k in range(5):
        connection.execute("INSERT INTO prepared VALUES (%s, %s)", (k, None if k == 2 else f"v{k}"), prepare=True)
    for k in (-1, 2, 4):
        found = rows(connection, "SELECT v FROM prepared WHERE k = %s", (k,), prepare=True)
        assert found == {-1: [], 2: [(None,)], 4: [("v4",)]}[k]
    with connection.cursor() as cursor:
        cursor.executemany("INSERT INTO prepared VALUES (%s, %s)", [(10, "x"), (11, None)])
    assert rows(connection, "SELECT k, v FROM prepared WHERE k >= 10 ORDER BY k") == [(10, "x"), (11, None)]


def test_statement_prepared_before_a_change_sees_it(connection: Connection) -> None:
    connection.execute("CREATE TABLE recreated (a int)")
    connection.execute("INSERT INTO recreated VALUES (1)")
    assert rows(connection, "SELECT * FROM recreated", prepare=True) == [(1,)]
    connection.execute("INSERT INTO recreated VALUES (2)")
    assert rows(connection, "SELECT count(*) FROM recreated", prepare=True) == [(2,)]


def test_time_zone_of_the_session(connection: Connection) -> None:
    connection.execute("CREATE TABLE moments (at timestamptz)")
    connection.execute("INSERT INTO moments VALUES ('2024-06-01 12:00:00+00')")
    connection.execute("SET TIME ZONE 'Europe/Prague'")
    assert rows(connection, "SELECT at::varchar FROM moments") == [("2024-06-01 14:00:00+02",)]
    assert rows(connection, "SELECT at FROM moments") == [(datetime.datetime(2024, 6, 1, 12, tzinfo=UTC),)]


# Several statements at once.


def test_several_statements_in_one_query(connection: Connection) -> None:
    cursor = connection.execute(
        "CREATE TABLE several (a int); INSERT INTO several VALUES (1), (2); -- a comment; not a statement\n"
        "SELECT ';' AS s, count(*) FROM several; ; SELECT max(a) FROM several;"
    )
    results = [(cursor.statusmessage, cursor.fetchall() if cursor.description else None)]
    while cursor.nextset():
        results.append((cursor.statusmessage, cursor.fetchall() if cursor.description else None))
    assert results == [
        ("CREATE TABLE", None),
        ("INSERT 0 2", None),
        ("SELECT 1", [(";", 2)]),
        ("SELECT 1", [(2,)]),
    ]


def test_statements_before_a_failing_one_stay(connection: Connection) -> None:
    """Each statement commits by itself, as in RisingWave; those behind the failing one do not run."""
    script = (
        "CREATE TABLE part (a int); INSERT INTO part VALUES (1); SELECT nope FROM part; INSERT INTO part VALUES (2)"
    )
    with pytest.raises(psycopg.errors.UndefinedColumn):
        connection.execute(script)
    assert rows(connection, "SELECT a FROM part") == [(1,)]


def test_empty_query_and_transactions_are_accepted(module_server: Server) -> None:
    with module_server.connect(autocommit=False) as own:
        assert own.execute("").statusmessage is None
        own.execute("CREATE TABLE accepted (a int)")
        own.commit()
        own.execute("INSERT INTO accepted VALUES (1)")
        own.commit()
        assert own.execute("SELECT a FROM accepted").fetchall() == [(1,)]


# COPY.

COPIED = [
    (1, "plain", Decimal("1.50"), datetime.datetime(2024, 1, 2, 3, 4, 5)),
    (2, "tab\there, \"quotes\", back\\slash\nnew line\r", Decimal("-0.01"), None),
    (3, "", None, datetime.datetime(1970, 1, 1)),
    (4, None, Decimal("99999999.99"), None),
    (5, "\\N", None, None),
    (6, "日本 🐘", Decimal("0.00"), datetime.datetime(9999, 12, 31, 23, 59, 59, 999999)),
]  # fmt: skip


@pytest.mark.parametrize("options", ["", "(FORMAT csv)", "(FORMAT csv, HEADER, DELIMITER ';', NULL 'nil')"])
def test_copy_round_trip(connection: Connection, options: str) -> None:
    columns = "(k int PRIMARY KEY, v varchar, n numeric(10,2), at timestamp)"
    for name in ("copy_a", "copy_b"):
        connection.execute(f"DROP TABLE IF EXISTS {name}")
        connection.execute(f"CREATE TABLE {name} {columns}")
    with connection.cursor() as cursor:
        with cursor.copy("COPY copy_a FROM STDIN") as copy:
            for row in COPIED:
                copy.write_row(row)
        assert cursor.statusmessage == f"COPY {len(COPIED)}"
        with cursor.copy(f"COPY copy_a TO STDOUT {options}") as copy:
            data = b"".join(bytes(part) for part in copy)
        assert cursor.rowcount == len(COPIED)
        with cursor.copy(f"COPY copy_b FROM STDIN {options}") as copy:
            for start in range(0, len(data), 7):
                copy.write(data[start : start + 7])
    assert rows(connection, "SELECT * FROM copy_a ORDER BY k") == COPIED
    assert rows(connection, "SELECT * FROM copy_b ORDER BY k") == COPIED


def test_copy_text_and_csv_as_bytes(connection: Connection) -> None:
    connection.execute("CREATE TABLE copy_bytes (k int PRIMARY KEY, v varchar)")
    connection.execute("INSERT INTO copy_bytes VALUES (1, 'a\tb'), (2, NULL), (3, ''), (4, 'x,\"y\"')")
    query = "(SELECT v, k FROM copy_bytes ORDER BY k)"

    def out(options: str) -> str:
        with connection.cursor() as cursor, cursor.copy(f"COPY {query} TO STDOUT {options}") as copy:
            return b"".join(bytes(part) for part in copy).decode()

    assert out("") == 'a\\tb\t1\n\\N\t2\n\t3\nx,"y"\t4\n'
    assert out("(FORMAT csv, HEADER)") == 'v,k\na\tb,1\n,2\n"",3\n"x,""y""",4\n'


def test_copy_of_arrays(connection: Connection) -> None:
    connection.execute("CREATE TABLE copy_arrays (k int PRIMARY KEY, a int[], t varchar[], y bytea[], m int[][])")
    data = '1\t{1,NULL,3}\t{"a b",NULL,"c,\\\\"d"}\t{"\\\\\\\\x00ff"}\t{{1,2},{3,4}}\n2\t\\N\t{}\t{}\t{}\n'
    with connection.cursor() as cursor:
        with cursor.copy("COPY copy_arrays FROM STDIN") as copy:
            copy.write(data)
        with cursor.copy("COPY (SELECT * FROM copy_arrays ORDER BY k) TO STDOUT") as copy:
            assert b"".join(bytes(part) for part in copy).decode() == data
    expected = [(1, [1, None, 3], ["a b", None, 'c,"d'], [b"\0\xff"], [[1, 2], [3, 4]]), (2, None, [], [], [])]
    assert rows(connection, "SELECT * FROM copy_arrays ORDER BY k") == expected
    with (
        pytest.raises(psycopg.Error, match="malformed array literal") as caught,
        connection.cursor() as cursor,
        cursor.copy("COPY copy_arrays FROM STDIN (FORMAT csv)") as copy,
    ):
        copy.write("3,oops,,,\n")
    assert caught.value.sqlstate == "22P02"


def test_copy_of_some_columns_overwrites_keys(connection: Connection) -> None:
    connection.execute("CREATE TABLE copy_some (k int PRIMARY KEY, v varchar, w int)")
    connection.execute("INSERT INTO copy_some VALUES (1, 'old', 1), (2, 'kept', 2)")
    with connection.cursor() as cursor, cursor.copy("COPY copy_some (v, k) FROM STDIN (FORMAT csv)") as copy:
        copy.write("new,1\nfirst,3\nlast,3\n")
    expected = [(1, "new", None), (2, "kept", 2), (3, "last", None)]
    assert rows(connection, "SELECT * FROM copy_some ORDER BY k") == expected


def test_copy_of_many_rows(connection: Connection) -> None:
    connection.execute("CREATE TABLE copy_many (k int PRIMARY KEY, v varchar)")
    with connection.cursor() as cursor, cursor.copy("COPY copy_many FROM STDIN") as copy:
        for start in range(0, 200_000, 1000):
            copy.write("".join(f"{k}\tvalue {k}\n" for k in range(start, start + 1000)))
    found = rows(connection, "SELECT count(*), sum(k), count(DISTINCT v) FROM copy_many")
    assert found == [(200_000, 19_999_900_000, 200_000)]


# Settings.


def test_set_show_reset(connection: Connection) -> None:
    assert rows(connection, "SHOW background_ddl") == [("false",)]
    assert connection.execute("SET background_ddl = on").statusmessage == "SET"
    assert rows(connection, "SHOW background_ddl") == [("true",)]
    connection.execute("RESET background_ddl")
    assert rows(connection, "SHOW background_ddl") == [("false",)]
    connection.execute("SET statement_timeout TO '2 min'")
    assert rows(connection, "SHOW statement_timeout") == [("2min",)]
    connection.execute("SET statement_timeout TO DEFAULT")
    connection.execute("SET application_name = 'tests'")
    assert connection.info.parameter_status("application_name") == "tests"
    connection.execute("RESET ALL")
    assert rows(connection, "SHOW application_name") == [("",)]


def test_settings_are_of_the_session(connection: Connection, module_server: Server) -> None:
    connection.execute("SET implicit_flush = true")
    with module_server.connect(options="-c statement_timeout=5s", application_name="mine") as other:
        assert rows(other, "SHOW implicit_flush") == [("false",)]
        assert rows(other, "SHOW statement_timeout") == [("5s",)]
        assert rows(other, "SHOW application_name") == [("mine",)]


def test_show_lists(connection: Connection) -> None:
    connection.execute("CREATE TABLE show_me (k int PRIMARY KEY, v varchar NOT NULL)")
    assert ("public.show_me",) in rows(connection, "SHOW TABLES")
    assert rows(connection, "SHOW TABLES LIKE 'show_m%'") == [("public.show_me",)]
    assert rows(connection, "SHOW MATERIALIZED VIEWS") == []
    assert rows(connection, "SHOW DATABASES") == [("dev",)]
    assert ("public",) in rows(connection, "SHOW SCHEMAS")
    cursor = connection.execute("SHOW JOBS")
    assert [column.name for column in cursor.description or ()] == ["Id", "Statement", "Create Type", "Progress"]
    assert cursor.statusmessage == "SHOW"
    assert cursor.fetchall() == []


def test_show_create_table_makes_the_same_table(connection: Connection) -> None:
    connection.execute("CREATE TABLE original (k int, j varchar, v numeric(10,2) NOT NULL, PRIMARY KEY (k, j))")
    [(name, definition)] = rows(connection, "SHOW CREATE TABLE original")
    assert name == "public.original"
    connection.execute("DROP TABLE original")
    connection.execute(definition)
    columns = "SELECT column_name, data_type, is_nullable FROM information_schema.columns"
    assert rows(connection, f"{columns} WHERE table_name = 'original' ORDER BY ordinal_position") == [
        ("k", "integer", "NO"),
        ("j", "character varying", "NO"),
        ("v", "numeric", "NO"),
    ]


def test_show_all_and_parameters(connection: Connection) -> None:
    settings = {name: value for name, value, _ in rows(connection, "SHOW ALL")}
    assert settings["background_ddl"] == "false"
    assert settings["server_version"].startswith("13.")
    parameters = {name: (value, mutable) for name, value, _, mutable in rows(connection, "SHOW PARAMETERS")}
    assert parameters["barrier_interval_ms"] == ("1000", "t")
    assert parameters["serverless_backfill_enabled"] == ("false", "t")


def test_alter_system(connection: Connection, module_server: Server) -> None:
    notices = notices_of(connection)
    assert connection.execute("ALTER SYSTEM SET barrier_interval_ms = 250").statusmessage == "ALTER SYSTEM"
    with module_server.connect() as other:
        assert rows(other, "SHOW barrier_interval_ms") == [("250",)]
    connection.execute("ALTER SYSTEM SET barrier_interval_ms TO DEFAULT")
    assert rows(connection, "SHOW barrier_interval_ms") == [("1000",)]
    assert notices == []
    connection.execute("ALTER SYSTEM SET implicit_flush = true")
    assert notices == ["NOTICE: The config implicit_flush of the current session has already been set to true"]
    with module_server.connect() as other:
        assert rows(other, "SHOW implicit_flush") == [("true",)]
    connection.execute("ALTER SYSTEM SET implicit_flush TO DEFAULT")


def test_wait_flush_and_cancel_without_jobs(connection: Connection) -> None:
    assert connection.execute("FLUSH").statusmessage == "FLUSH"
    assert connection.execute("WAIT").statusmessage == "WAIT"
    cursor = connection.execute("CANCEL JOBS 12345, 12346")
    assert (cursor.statusmessage, cursor.fetchall()) == ("CANCEL COMMAND", [])


# EXPLAIN and catalogs.


def test_explain(connection: Connection) -> None:
    connection.execute("CREATE TABLE explained (k int PRIMARY KEY, v varchar)")
    assert rows(connection, "EXPLAIN SELECT * FROM explained WHERE k = 1")
    plan = rows(connection, "EXPLAIN CREATE MATERIALIZED VIEW m AS SELECT v, count(*) AS n FROM explained GROUP BY v")
    words = [line.strip("└─ ").split(" ")[0] for (line,) in plan]
    assert (words[0], words[-1]) == ("StreamMaterialize", "StreamTableScan")
    assert "StreamHashAgg" in words
    assert rows(connection, "EXPLAIN DELETE FROM explained")
    assert rows(connection, "SELECT count(*) FROM explained") == [(0,)]
    assert rows(connection, "SELECT name FROM rw_catalog.rw_relations WHERE name = 'm'") == []


def test_explaining_a_write_does_not_write(connection: Connection) -> None:
    connection.execute("CREATE TABLE untouched (k int PRIMARY KEY, v int)")
    connection.execute("EXPLAIN INSERT INTO untouched VALUES (1)")
    assert rows(connection, "SELECT * FROM untouched") == []
    connection.execute("INSERT INTO untouched VALUES (2)")
    connection.execute("EXPLAIN UPDATE untouched SET v = 3 WHERE false")
    connection.execute("EXPLAIN DELETE FROM untouched")
    assert rows(connection, "SELECT * FROM untouched") == [(2, None)]


EXPLAIN_OPTIONS = (
    "", "(VERBOSE)", "(TRACE)", "(BACKFILL)", "(INCREMENTAL)", "(LOGICAL)", "(PHYSICAL)", "(DISTSQL)",
    "(DISTSQL, VERBOSE)", "(FORMAT JSON)", "(FORMAT YAML)", "(FORMAT XML)", "(FORMAT DOT)", "(BACKFILL, FORMAT DOT)",
)  # fmt: skip


def test_explaining_a_view_creates_nothing(connection: Connection) -> None:
    connection.execute("CREATE TABLE seen (k int PRIMARY KEY, v varchar)")
    before = rows(connection, "SELECT name FROM rw_catalog.rw_relations ORDER BY name")
    for options in EXPLAIN_OPTIONS:
        lines = rows(connection, f"EXPLAIN {options} CREATE MATERIALIZED VIEW seen AS SELECT v FROM seen WHERE k > 1")
        assert lines, options
    assert rows(connection, "EXPLAIN CREATE TABLE seen (a int)")  # names are not checked, as in RisingWave
    assert rows(connection, "SELECT name FROM rw_catalog.rw_relations ORDER BY name") == before
    assert rows(connection, "SHOW JOBS") == []


def test_explain_format_json(connection: Connection) -> None:
    connection.execute("CREATE TABLE shown (k int PRIMARY KEY, v varchar)")
    lines = rows(connection, "EXPLAIN (FORMAT JSON) CREATE MATERIALIZED VIEW m AS SELECT v FROM shown WHERE k > 1")
    plan = json.loads("\n".join(line for (line,) in lines))
    assert plan["name"] == "StreamMaterialize"
    assert plan["fields"]["stream_key"] == ["shown.k"]
    assert [child["name"] for child in plan["children"]] == ["StreamProject"]


def test_explaining_what_only_duckdb_plans(connection: Connection) -> None:
    assert rows(connection, "EXPLAIN SELECT relname FROM pg_catalog.pg_class WHERE relname ~ 'x'")
    assert rows(connection, "EXPLAIN SELECT 1 AS a, 2 AS a")
    for statement in ("EXPLAIN SELECT nope", "EXPLAIN INSERT INTO nope VALUES (1)", "EXPLAIN DELETE FROM nope"):
        with pytest.raises(psycopg.Error, match="nope"):
            connection.execute(statement)


def test_catalogs(connection: Connection) -> None:
    connection.execute("CREATE TABLE listed (k int PRIMARY KEY, v varchar, n numeric(10,2))")
    tables = "SELECT table_schema, table_type FROM information_schema.tables WHERE table_name = 'listed'"
    assert rows(connection, tables) == [("public", "BASE TABLE")]
    attributes = (
        "SELECT attname, format_type(atttypid, atttypmod) FROM pg_catalog.pg_attribute "
        "WHERE attrelid = 'listed'::regclass AND attnum > 0 ORDER BY attnum"
    )
    assert rows(connection, attributes) == [
        ("k", "integer"),
        ("v", "character varying"),
        ("n", "numeric(10,2)"),
    ]
    joined = "SELECT nspname, relkind FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace"
    assert rows(connection, f"{joined} WHERE relname = 'listed'") == [("public", "r")]
    assert rows(connection, "SELECT current_database(), current_schema(), current_user") == [("dev", "public", "root")]
    assert "RisingWave" in rows(connection, "SELECT version()")[0][0]
    connection.execute("DROP TABLE listed")
    assert rows(connection, tables) == []


def test_client_learns_types_from_the_catalog(connection: Connection) -> None:
    info = psycopg.types.TypeInfo.fetch(connection, "numeric")
    assert info is not None
    assert (info.oid, info.name) == (1700, "numeric")


# Stopping statements.


def test_statement_timeout(connection: Connection) -> None:
    connection.execute("SET statement_timeout = '300ms'")
    started = time.monotonic()
    with pytest.raises(psycopg.errors.QueryCanceled) as caught:
        connection.execute(ENDLESS)
    assert 0.2 < time.monotonic() - started < 5
    assert caught.value.sqlstate == "57014"
    assert "statement timeout" in str(caught.value)
    assert rows(connection, "SELECT 1") == [(1,)]
    connection.execute("RESET statement_timeout")
    assert rows(connection, "SELECT count(*) FROM range(1000)") == [(1000,)]


@pytest.mark.parametrize(
    "statement",
    [
        ENDLESS,
        f"INSERT INTO never {ENDLESS}",
        f"UPDATE never SET k = ({ENDLESS})",
        f"DELETE FROM never WHERE k = ({ENDLESS})",
    ],
    ids=["select", "insert", "update", "delete"],
)
def test_cancel_a_running_statement(connection: Connection, statement: str) -> None:
    connection.execute("CREATE TABLE IF NOT EXISTS never (k bigint)")
    connection.execute("DELETE FROM never")
    connection.execute("INSERT INTO never VALUES (1)")
    timer = threading.Timer(0.5, connection.cancel)
    timer.start()
    started = time.monotonic()
    with pytest.raises(psycopg.errors.QueryCanceled):
        connection.execute(statement)
    assert time.monotonic() - started < 5
    timer.join()
    assert rows(connection, "SELECT * FROM never") == [(1,)]
    connection.execute("INSERT INTO never VALUES (2)")
    assert rows(connection, "SELECT count(*) FROM never") == [(2,)]


def test_cancel_while_rows_are_sent(connection: Connection) -> None:
    timer = threading.Timer(0.5, connection.cancel)
    timer.start()
    with pytest.raises(psycopg.errors.QueryCanceled), connection.cursor() as cursor:
        for _ in cursor.stream("SELECT i FROM range(10000000000) AS r (i)"):
            pass
    timer.join()
    assert rows(connection, "SELECT 1") == [(1,)]


def test_cancel_of_an_idle_session_does_nothing(connection: Connection) -> None:
    connection.cancel()
    time.sleep(0.2)
    assert rows(connection, "SELECT 1") == [(1,)]


def test_client_that_leaves_ends_its_statement(module_server: Server) -> None:
    """The server notices at the latest when it sends rows; other sessions go on meanwhile."""
    leaving = module_server.connect()
    cursor = leaving.cursor()
    stream = cursor.stream("SELECT i FROM range(10000000000) AS r (i)")
    next(stream)
    leaving.pgconn.finish()
    with module_server.connect() as other:
        assert rows(other, "SELECT 1") == [(1,)]


# Restart.


def test_everything_is_there_after_a_restart(server: Server) -> None:
    with server.connect() as own:
        own.execute("CREATE TABLE kept (k int PRIMARY KEY, v varchar)")
        own.execute("INSERT INTO kept VALUES (1, 'a'), (2, 'b')")
        own.execute("UPDATE kept SET v = 'c' WHERE k = 2")
        own.execute("ALTER SYSTEM SET barrier_interval_ms = 300")
        own.execute("CREATE TABLE gone (k int)")
        own.execute("DROP TABLE gone")
    assert server.stop() == 0
    restarted = Server(server.data)
    try:
        with restarted.connect() as own:
            assert rows(own, "SELECT * FROM kept ORDER BY k") == [(1, "a"), (2, "c")]
            assert rows(own, "SHOW TABLES") == [("public.kept",)]
            assert rows(own, "SHOW barrier_interval_ms") == [("300",)]
            own.execute("INSERT INTO kept VALUES (2, 'd'), (3, 'e')")
            assert rows(own, "SELECT * FROM kept ORDER BY k") == [(1, "a"), (2, "d"), (3, "e")]
    finally:
        restarted.kill()


def test_any_word_is_a_name_after_as(connection: Connection) -> None:
    """Metabase asks for privileges AS select, AS update, …"""
    cursor = connection.execute("SELECT 1 AS select, 2 AS update, t.* FROM (SELECT 3 AS select) t")
    assert [column.name for column in cursor.description or ()] == ["select", "update", "select"]
    assert cursor.fetchall() == [(1, 2, 3)]


def test_parameters_without_spaces(connection: Connection) -> None:
    """As pgjdbc writes them: `$1,$2` is no dollar quote."""
    connection.execute("CREATE TABLE tight (a int, b varchar)")
    connection.execute("INSERT INTO tight VALUES (%s,%s),(%s,%s)", (1, "$1,$2", 2, None))
    assert rows(connection, "SELECT a, b FROM tight ORDER BY a") == [(1, "$1,$2"), (2, None)]
    assert rows(connection, "SELECT $$a$1$$, $x$b'$x$, 'it''s $1', E'\\'$1'") == [("a$1", "b'", "it's $1", "'$1")]


def test_an_array_in_text_takes_its_columns_type(connection: Connection) -> None:
    connection.execute("CREATE TABLE lists (k int PRIMARY KEY, words varchar[], numbers int[])")
    rows = """(1, ARRAY['a'], '{1,NULL}'), (2, '{}', '{}'), (3, '{x,"y z"}', NULL)"""
    connection.execute(f"INSERT INTO lists VALUES {rows}")
    found = connection.execute("SELECT words, numbers FROM lists ORDER BY k").fetchall()
    assert found == [(["a"], [1, None]), ([], []), (["x", "y z"], None)]


# REFRESH MATERIALIZED VIEW.


def test_refresh_waits_until_the_view_has_followed(connection: Connection) -> None:
    connection.execute("ALTER SYSTEM SET backfill_engine = auto")
    connection.execute("CREATE TABLE refreshed (k int PRIMARY KEY)")
    connection.execute("CREATE MATERIALIZED VIEW refreshed_view AS SELECT count(*) AS n FROM refreshed")
    for count in range(1, 4):
        connection.execute(f"INSERT INTO refreshed VALUES ({count})")
        cursor = connection.execute("REFRESH MATERIALIZED VIEW refreshed_view")
        assert cursor.statusmessage == "REFRESH MATERIALIZED VIEW"
        assert rows(connection, "SELECT n FROM refreshed_view") == [(count,)]
    connection.execute('REFRESH MATERIALIZED VIEW CONCURRENTLY "refreshed_view" WITH DATA')
    for sql, sqlstate in [
        ("REFRESH MATERIALIZED VIEW nothing", "42P01"),
        ("REFRESH MATERIALIZED VIEW refreshed", "42809"),
        ("REFRESH MATERIALIZED VIEW refreshed_view WITH NO DATA", "0A000"),
        ("REFRESH TABLE refreshed", "42601"),
    ]:
        assert refused(connection, sql).sqlstate == sqlstate
    connection.execute("BEGIN READ ONLY")
    assert refused(connection, "REFRESH MATERIALIZED VIEW refreshed_view").sqlstate == "25006"
    connection.execute("ROLLBACK")


def test_float_with_bits(connection: Connection) -> None:
    connection.execute("CREATE TABLE bits (a float(1), b float(24), c FLOAT ( 25 ), d float(53), e float)")
    types = "SELECT pg_typeof(a), pg_typeof(b), pg_typeof(c), pg_typeof(d), pg_typeof(e) FROM bits"
    connection.execute("INSERT INTO bits VALUES (1.1, 1.1, 1.1, 1.1, 1.1)")
    assert rows(connection, types) == [("real", "real", *["double precision"] * 3)]
    assert rows(connection, "SELECT a = 1.1::float(24), c = 1.1::float(25), pg_typeof(1::float(7)) FROM bits") == [
        (True, True, "real")
    ]
    for bits, message in ((0, "at least 1 bit"), (54, "less than 54 bits")):
        error = refused(connection, f"SELECT 1::float({bits})")
        assert (error.sqlstate, error.diag.message_primary) == ("22023", f"precision for type float must be {message}")
    connection.execute("DROP TABLE bits")


def test_rollback_says_what_stays(module_server: Server) -> None:
    said: list[tuple[str | None, str | None]] = []
    with module_server.connect() as own:
        own.add_notice_handler(lambda notice: said.append((notice.sqlstate, notice.message_primary)))
        for statements, warns in [
            (["BEGIN", "SELECT 1", "ROLLBACK"], False),
            (["BEGIN", "CREATE TABLE stays (a int)", "ROLLBACK"], True),
            (["BEGIN", "ROLLBACK"], False),
            (["BEGIN", "INSERT INTO stays VALUES (1)", "COMMIT", "BEGIN", "ROLLBACK"], False),
            (["BEGIN", "INSERT INTO stays VALUES (2)", "ROLLBACK"], True),
            (["INSERT INTO stays VALUES (3)", "ROLLBACK"], False),
            (["BEGIN", "SAVEPOINT a", "INSERT INTO stays VALUES (5)", "ROLLBACK TO a", "COMMIT"], True),
            (["SET atomic_transactions = on", "BEGIN", "INSERT INTO stays VALUES (4)", "ROLLBACK"], False),
        ]:
            said.clear()
            for statement in statements:
                own.execute(statement)
            assert [sqlstate for sqlstate, message in said if "undoes nothing" in (message or "")] == ["01000"] * warns
        assert own.execute("SELECT a FROM stays ORDER BY a").fetchall() == [(1,), (2,), (3,), (5,)]


def test_warnings_of_begin_commit_and_rollback(module_server: Server) -> None:
    said: list[tuple[str | None, str | None]] = []
    with module_server.connect() as own:
        own.add_notice_handler(lambda notice: said.append((notice.sqlstate, notice.message_primary)))
        for statement in ("COMMIT", "BEGIN", "SAVEPOINT a", "RELEASE a", "BEGIN", "ROLLBACK", "ROLLBACK"):
            own.execute(statement)
    already, none = "there is already a transaction in progress", "there is no transaction in progress"
    assert said == [("25P01", none), ("25001", already), ("25P01", none)]


# As Grafana finds the schemas that are searched for names.
IN_PATH = """
    IN (SELECT CASE WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END
        FROM generate_series(array_lower(string_to_array(current_setting('search_path'), ','), 1),
                             array_upper(string_to_array(current_setting('search_path'), ','), 1)) AS i,
             string_to_array(current_setting('search_path'), ',') s)"""


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("SELECT * FROM upper('x')", [("X",)]),
        ("SELECT s.word, word FROM upper('x') AS s (word)", [("X", "X")]),
        ("SELECT i, s[i] FROM generate_series(1, 2) i, string_to_array('a,b', ',') s ORDER BY i", [(1, "a"), (2, "b")]),
        ("SELECT v, u FROM (VALUES ('a'), ('b')) AS t (v), upper(v) AS u ORDER BY 1", [("a", "A"), ("b", "B")]),
        ("SELECT * FROM current_schema()", [("public",)]),
        ("SELECT * FROM current_database()", [("dev",)]),
        ("SELECT now = now() FROM now()", [(True,)]),
        (f"SELECT nspname FROM pg_namespace WHERE quote_ident(nspname) {IN_PATH}", [("public",)]),
        ('SELECT parse_ident(\'A."B""c"\')', [(["a", 'B"c'],)]),
    ],
)
def test_functions_in_from(connection: Connection, query: str, found: list[Any]) -> None:
    assert rows(connection, query) == found


def test_columns_named_with_a_schema_that_the_table_is_not(connection: Connection) -> None:
    connection.execute("CREATE TABLE plainly (k int PRIMARY KEY, v int)")
    connection.execute("INSERT INTO plainly VALUES (1, 2), (2, 3)")
    assert rows(connection, "SELECT public.plainly.v FROM plainly WHERE dev.public.plainly.k = 2") == [(3,)]
    connection.execute("UPDATE plainly SET v = public.plainly.v + 1 WHERE public.plainly.k = 1")
    connection.execute("CREATE VIEW over AS SELECT public.plainly.v FROM plainly")
    connection.execute("ALTER TABLE plainly RENAME TO renamed")
    assert sorted(rows(connection, "SELECT v FROM over")) == [(3,), (3,)]
    assert refused(connection, "SELECT other.renamed.v FROM renamed").sqlstate == "42P01"


def test_explain_analyze_runs_the_query(connection: Connection) -> None:
    connection.execute('CREATE TABLE analyzed (k int PRIMARY KEY, "My Col" int)')
    connection.execute("INSERT INTO analyzed SELECT i, i % 7 FROM generate_series(1, 1000) AS s (i)")
    query = 'SELECT "My Col", count(*) FROM analyzed WHERE k > 5 GROUP BY 1 ORDER BY 2'
    lines = [line for (line,) in rows(connection, f"EXPLAIN ANALYZE {query}")]
    assert lines[0].startswith("Query { rows: 7, time: ")
    assert "rows: 995, " in lines[-1] and "table: analyzed" in lines[-1]
    found = json.loads("\n".join(line for (line,) in rows(connection, f"EXPLAIN (ANALYZE, FORMAT json) {query}")))
    assert found["name"] == "Query" and found["fields"]["rows"] == "7"
    assert refused(connection, "EXPLAIN ANALYZE SELECT 1 / 0").sqlstate == "22012"
    for shape in ("text", "json", "yaml", "xml", "dot"):
        assert rows(connection, f"EXPLAIN (ANALYZE, FORMAT {shape}) SELECT count(*) FROM analyzed")
        assert rows(connection, f"EXPLAIN (FORMAT {shape}) SELECT typname FROM pg_type")
