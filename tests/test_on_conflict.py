"""Rows whose key is there: ON CONFLICT of tables as in RisingWave, and of INSERT as in PostgreSQL; the views follow."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from servers import Server, refused, rows

Connection = psycopg.Connection[Any]
Row = tuple[Any, ...]


@pytest.fixture
def session(in_process_server: Server) -> Any:
    with in_process_server.connect() as own:
        yield own
        for (table,) in rows(own, "SELECT name FROM rw_catalog.rw_tables"):
            own.execute(f"DROP TABLE {table} CASCADE")


# A model: what a table keeps of rows (k, v, w) that come one by one. `v` is the version where there is one.


def not_lower(old: Row, new: Row) -> bool:
    return old[1] is None or (new[1] is not None and new[1] >= old[1])


def overwrite(old: Row, new: Row) -> Row:
    return new


def ignore(old: Row, new: Row) -> Row:
    return old


def fill_up(old: Row, new: Row) -> Row:
    return tuple(o if n is None else n for o, n in zip(old, new, strict=True))


BEHAVIOURS: dict[str, tuple[Callable[[Row, Row], Row], bool]] = {
    "": (overwrite, False),
    "ON CONFLICT OVERWRITE": (overwrite, False),
    "ON CONFLICT DO UPDATE FULL WITH VERSION COLUMN(v)": (overwrite, True),
    "ON CONFLICT DO NOTHING": (ignore, False),
    "ON CONFLICT IGNORE": (ignore, False),
    "ON CONFLICT DO UPDATE IF NOT NULL": (fill_up, False),
    "ON CONFLICT DO UPDATE IF NOT NULL WITH VERSION COLUMN(v)": (fill_up, True),
}


def expected(stored: dict[int, Row], new: list[Row], merge: Callable[[Row, Row], Row], versioned: bool) -> None:
    for row in new:
        old = stored.get(row[0])
        if old is None:
            stored[row[0]] = row
        elif not versioned or not_lower(old, row):
            stored[row[0]] = merge(old, row)


@pytest.mark.parametrize("clause", BEHAVIOURS)
def test_a_table_keeps_what_one_row_after_the_other_would_leave(session: Connection, clause: str) -> None:
    merge, versioned = BEHAVIOURS[clause]
    chance = random.Random(clause)
    session.execute(f"CREATE TABLE t (k int PRIMARY KEY, v int, w varchar) {clause}")
    session.execute("CREATE MATERIALIZED VIEW m AS SELECT v, count(*) AS n, max(w) AS w FROM t GROUP BY v")
    stored: dict[int, Row] = {}
    for number in range(12):
        new = [
            (chance.randint(1, 5), chance.choice((None, 1, 2, 3, 4)), chance.choice((None, f"{number}a", f"{number}b")))
            for _ in range(chance.randint(1, 6))
        ]
        if number % 3 == 2:
            with session.cursor() as cursor, cursor.copy("COPY t FROM STDIN") as copy:
                for row in new:
                    copy.write_row(row)
        else:
            session.cursor().execute(
                f"INSERT INTO t SELECT * FROM (VALUES {', '.join(map(written, new))}) AS r (k, v, w)"
                if number % 2
                else f"INSERT INTO t VALUES {', '.join(map(written, new))}"
            )
        expected(stored, new, merge, versioned)
        assert rows(session, "SELECT * FROM t ORDER BY k") == sorted(stored.values()), (number, new)
    session.execute("FLUSH")
    query = "SELECT v, count(*) AS n, max(w) AS w FROM t GROUP BY v"
    assert rows(session, f"(SELECT * FROM m EXCEPT ALL {query}) UNION ALL ({query} EXCEPT ALL SELECT * FROM m)") == []


def written(row: Row) -> str:
    k, v, w = row
    return f"({k}, {'NULL::int' if v is None else v}, {'NULL::varchar' if w is None else repr(w)})"


def test_several_version_columns_count_one_after_the_other(session: Connection) -> None:
    session.execute(
        "CREATE TABLE t (k int PRIMARY KEY, day date, n int, w varchar) ON CONFLICT OVERWRITE "
        "WITH VERSION COLUMN(day, n)"
    )
    for day, n, w, kept in (
        ("2024-01-02", 5, "first", "first"),
        ("2024-01-01", 9, "older", "first"),
        ("2024-01-02", 4, "lower", "first"),
        ("2024-01-02", 5, "equal", "equal"),
        ("2024-01-02", None, "none", "equal"),
        ("2024-01-03", None, "later", "later"),
    ):
        session.execute("INSERT INTO t VALUES (1, %s, %s, %s)", (day, n, w))
        assert rows(session, "SELECT w FROM t") == [(kept,)]


def test_update_and_delete_do_what_they_say(session: Connection) -> None:
    """As in RisingWave, whose UPDATE takes the old row away before the new one comes."""
    session.execute("CREATE TABLE t (k int PRIMARY KEY, v int, w int) ON CONFLICT DO NOTHING WITH VERSION COLUMN(v)")
    session.execute("INSERT INTO t VALUES (1, 5, 1), (2, 5, 2)")
    session.execute("UPDATE t SET v = 1, w = NULL WHERE k = 1")
    session.execute("DELETE FROM t WHERE k = 2")
    assert rows(session, "SELECT * FROM t") == [(1, 1, None)]


def test_a_part_of_a_row_needs_no_other_columns(session: Connection) -> None:
    session.execute(
        "CREATE TABLE t (k int PRIMARY KEY, a int NOT NULL, b int NOT NULL, c int AS a + b) "
        "ON CONFLICT DO UPDATE IF NOT NULL"
    )
    session.execute("INSERT INTO t (k, a, b) VALUES (1, 1, 2)")
    session.execute("INSERT INTO t (k, a) VALUES (1, 10)")
    assert rows(session, "SELECT * FROM t") == [(1, 10, 2, 12)]
    assert refused(session, "INSERT INTO t (k, a) VALUES (2, 10)").sqlstate == "23502"
    assert refused(session, "INSERT INTO t (a, b) VALUES (2, 10)").sqlstate == "23502"
    assert rows(session, "SELECT * FROM t") == [(1, 10, 2, 12)]


def test_definitions_and_plans_tell_it(session: Connection) -> None:
    session.execute(
        "CREATE TABLE t (k int PRIMARY KEY, v int) on conflict do update if not null with version column(v)"
    )
    ((_, definition),) = rows(session, "SHOW CREATE TABLE t")
    assert definition.endswith("ON CONFLICT DO UPDATE IF NOT NULL WITH VERSION COLUMN(v)")
    session.execute(definition.replace("TABLE t", "TABLE u"))
    assert rows(session, "SHOW CREATE TABLE u")[0][1] == definition.replace("TABLE t", "TABLE u")
    plan = rows(session, "EXPLAIN CREATE TABLE x (k int PRIMARY KEY) ON CONFLICT DO NOTHING")
    assert any("pk_conflict: IgnoreConflict" in line for (line,) in plan)


CREATE_ERRORS = (
    ("CREATE TABLE x (k int PRIMARY KEY) APPEND ONLY ON CONFLICT OVERWRITE", "42601",
     "When PRIMARY KEY constraint applied to an APPEND ONLY table, the ON CONFLICT behavior must be DO NOTHING."),
    ("CREATE TABLE x (k int PRIMARY KEY) ON CONFLICT DO SOMETHING", "42601", 'syntax error at or near "DO"'),
    ("CREATE TABLE x (k int PRIMARY KEY) ON CONFLICT OVERWRITE WITH VERSION COLUMN(v)", "22023",
     "The specified version column name is not in the current columns."),
    ("CREATE TABLE x (k int PRIMARY KEY, v jsonb) WITH VERSION COLUMN(v)", "22023",
     "The specified version column data type is invalid."),
)  # fmt: skip


@pytest.mark.parametrize(("sql", "sqlstate", "message"), CREATE_ERRORS)
def test_what_create_refuses(session: Connection, sql: str, sqlstate: str, message: str) -> None:
    error = refused(session, sql)
    assert (error.sqlstate, error.diag.message_primary) == (sqlstate, message)
    assert error.diag.statement_position is not None


# PostgreSQL's.


@pytest.fixture
def stock(session: Connection) -> Connection:
    session.execute("CREATE TABLE stock (id int PRIMARY KEY, name varchar, n int DEFAULT 1, twice int AS n * 2)")
    session.execute("CREATE MATERIALIZED VIEW total AS SELECT count(*) AS c, sum(n) AS n, sum(twice) AS t FROM stock")
    session.execute("INSERT INTO stock VALUES (1, 'a', 10), (2, 'b', 20)")
    return session


# Statement, tag, what it returns, and what the table has then; all begin with rows 1 and 2.
UPSERTS: tuple[tuple[str, str, list[Row], list[Row]], ...] = (
    ("INSERT INTO stock VALUES (1, 'x', 0), (3, 'c', 30) ON CONFLICT DO NOTHING RETURNING id", "INSERT 0 1", [(3,)],
     [(1, "a", 10, 20), (2, "b", 20, 40), (3, "c", 30, 60)]),
    ("INSERT INTO stock (id, name) SELECT i, 'n' FROM generate_series(2, 3) AS g(i) ON CONFLICT (id) DO NOTHING",
     "INSERT 0 1", [], [(1, "a", 10, 20), (2, "b", 20, 40), (3, "n", 1, 2)]),
    ("INSERT INTO stock VALUES (3, 'p', 1), (3, 'q', 2) ON CONFLICT ON CONSTRAINT stock_pkey DO NOTHING",
     "INSERT 0 1", [], [(1, "a", 10, 20), (2, "b", 20, 40), (3, "p", 1, 2)]),
    ("INSERT INTO stock VALUES (2, 'x', 5), (3, 'c', 30) ON CONFLICT (id) DO UPDATE SET name = excluded.name, "
     "n = stock.n + excluded.n RETURNING *", "INSERT 0 2", [(2, "x", 25, 50), (3, "c", 30, 60)],
     [(1, "a", 10, 20), (2, "x", 25, 50), (3, "c", 30, 60)]),
    ("INSERT INTO stock AS s VALUES (1, 'x', 5), (2, 'y', 6) ON CONFLICT (id) DO UPDATE SET (id, n) = (excluded.id, 0) "
     "WHERE s.n > 10 RETURNING id", "INSERT 0 1", [(2,)], [(1, "a", 10, 20), (2, "b", 0, 0)]),
    ("INSERT INTO stock VALUES (2, 'x', 5) ON CONFLICT (id) DO UPDATE SET n = DEFAULT, name = NULL", "INSERT 0 1", [],
     [(1, "a", 10, 20), (2, None, 1, 2)]),
    ("INSERT INTO stock VALUES (2, 'x', 5) ON CONFLICT (id) DO UPDATE SET n = (SELECT max(n) FROM stock) + excluded.n",
     "INSERT 0 1", [], [(1, "a", 10, 20), (2, "b", 25, 50)]),
    ("INSERT INTO stock VALUES (1, 'x', 5) ON CONFLICT (id) DO UPDATE SET id = excluded.id WHERE false", "INSERT 0 0",
     [], [(1, "a", 10, 20), (2, "b", 20, 40)]),
)  # fmt: skip


@pytest.mark.parametrize("in_transaction", [False, True])
def test_upserts(stock: Connection, in_transaction: bool) -> None:
    for sql, tag, returned, after in UPSERTS:
        stock.execute("TRUNCATE stock")
        stock.execute("INSERT INTO stock VALUES (1, 'a', 10), (2, 'b', 20)")
        if in_transaction:
            stock.execute("SET atomic_transactions = on")
            stock.execute("BEGIN")
        done = stock.execute(sql)
        assert done.statusmessage == tag, sql
        assert sorted(done.fetchall() if done.description else []) == returned, sql
        assert rows(stock, "SELECT * FROM stock ORDER BY id") == after, sql
        if in_transaction:
            stock.execute("COMMIT")
            stock.execute("SET atomic_transactions = off")
        assert rows(stock, "SELECT * FROM stock ORDER BY id") == after, sql
        stock.execute("FLUSH")
        assert rows(stock, "SELECT c, n, t FROM total") == rows(stock, "SELECT count(*), sum(n), sum(twice) FROM stock")


def test_parameters_of_an_upsert(stock: Connection) -> None:
    sql = (
        "INSERT INTO stock (id, name, n) VALUES (%s, %s, %s) ON CONFLICT (id) DO UPDATE SET n = %s, "
        "name = excluded.name || %s WHERE stock.n < %s RETURNING n, name"
    )
    assert rows(stock, sql, (1, "x", 3, 77, "!", 15)) == [(77, "x!")]
    assert rows(stock, sql, (2, "x", 3, 77, "!", 15)) == []
    assert rows(stock, sql, (3, "x", 3, 77, "!", 15)) == [(3, "x")]


def test_the_statement_comes_before_the_table(session: Connection) -> None:
    session.execute("CREATE TABLE t (k int PRIMARY KEY, v int, w int) ON CONFLICT DO NOTHING WITH VERSION COLUMN(v)")
    session.execute("INSERT INTO t VALUES (1, 5, 5)")
    session.execute("INSERT INTO t VALUES (1, 1, 1) ON CONFLICT (k) DO UPDATE SET v = excluded.v")
    assert rows(session, "SELECT * FROM t") == [(1, 1, 5)]


def test_a_table_without_a_key_has_no_conflicts(session: Connection) -> None:
    session.execute("CREATE TABLE t (a int)")
    session.execute("INSERT INTO t VALUES (1), (1) ON CONFLICT DO NOTHING")
    assert rows(session, "SELECT a FROM t") == [(1,), (1,)]
    assert refused(session, "INSERT INTO t VALUES (1) ON CONFLICT (a) DO NOTHING").sqlstate == "42P10"


REFUSED = (
    ("INSERT INTO stock VALUES (1) ON CONFLICT (name) DO NOTHING", "42P10"),
    ("INSERT INTO stock VALUES (1) ON CONFLICT (nothing) DO NOTHING", "42703"),
    ("INSERT INTO stock VALUES (1) ON CONFLICT ON CONSTRAINT other DO NOTHING", "42704"),
    ("INSERT INTO stock VALUES (1) ON CONFLICT DO UPDATE SET n = 1", "42601"),
    ("INSERT INTO stock VALUES (1) ON CONFLICT (id) DO UPDATE SET nothing = 1", "42703"),
    ("INSERT INTO stock VALUES (1) ON CONFLICT (id) DO UPDATE SET n = excluded.nothing", "42703"),
    ("INSERT INTO stock VALUES (1) ON CONFLICT (id) DO UPDATE SET n = n + 1", "42702"),
    ("INSERT INTO stock VALUES (1) ON CONFLICT (id) DO UPDATE SET id = 5", "0A000"),
    ("INSERT INTO stock VALUES (1) ON CONFLICT (id) DO UPDATE SET twice = 5", "428C9"),
    ("INSERT INTO stock VALUES (1, 'a'), (1, 'b') ON CONFLICT (id) DO UPDATE SET n = 1", "21000"),
    ("INSERT INTO stock VALUES (1, 'a') ON CONFLICT (id) DO UPDATE SET n = 1 / 0", "22012"),
    ("INSERT INTO stock VALUES (NULL) ON CONFLICT (id) DO NOTHING", "23502"),
    ("INSERT INTO log VALUES (1) ON CONFLICT (k) DO UPDATE SET v = 1", "0A000"),
)  # fmt: skip


def test_refused_upserts_change_nothing(stock: Connection) -> None:
    stock.execute("CREATE TABLE log (k int PRIMARY KEY, v int) APPEND ONLY")
    for sql, sqlstate in REFUSED:
        assert refused(stock, sql).sqlstate == sqlstate, sql
        assert rows(stock, "SELECT id, name, n FROM stock ORDER BY id") == [(1, "a", 10), (2, "b", 20)], sql


def test_an_upsert_needs_the_privileges_of_both(stock: Connection, in_process_server: Server) -> None:
    stock.execute("CREATE USER writer")
    stock.execute("GRANT INSERT ON stock TO writer")
    sql = "INSERT INTO stock VALUES (1) ON CONFLICT (id) DO {}"
    with in_process_server.connect(user="writer") as own:
        assert refused(own, sql.format("UPDATE SET n = 1")).sqlstate == "42501"
        own.execute(sql.format("NOTHING"))
    stock.execute("REVOKE ALL ON stock FROM writer")
    stock.execute("DROP USER writer")
