"""Queries, views and sinks that read other databases than their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from servers import Server, refused, rows


def test_across_databases(tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    with server.connect() as own:
        own.execute("CREATE DATABASE shop")
        with server.connect(dbname="shop") as other:
            other.execute("CREATE TABLE orders (id int PRIMARY KEY, amount int)")
            other.execute("INSERT INTO orders VALUES (1, 10), (2, 20)")
            other.execute("CREATE MATERIALIZED VIEW big AS SELECT * FROM orders WHERE amount > 15")
            other.execute("CREATE VIEW ids AS SELECT id FROM orders")
        own.execute("CREATE TABLE names (id int PRIMARY KEY, name varchar)")
        own.execute("INSERT INTO names VALUES (1, 'ann'), (2, 'bob'), (3, 'cyd')")
        joined = "names n JOIN shop.public.big b ON n.id = b.id JOIN shop.public.ids i ON i.id = n.id"
        assert rows(own, f"SELECT n.name, b.amount FROM {joined}") == [("bob", 20)]
        own.execute(
            "CREATE MATERIALIZED VIEW totals AS "
            "SELECT n.name, sum(o.amount) AS t FROM names n JOIN shop.public.orders o ON n.id = o.id GROUP BY n.name"
        )
        own.execute("CREATE VIEW amounts AS SELECT amount FROM shop.public.orders")
        own.execute("CREATE TABLE copied (id int PRIMARY KEY, amount int)")
        own.execute("CREATE SINK copying INTO copied FROM shop.public.big")
        with server.connect(dbname="shop") as other:
            other.execute("INSERT INTO orders VALUES (3, 30)")
            other.execute("ALTER TABLE orders RENAME TO bought")
            other.execute("ALTER MATERIALIZED VIEW big RENAME TO large")
            error = refused(other, "DROP TABLE bought")
            assert error.sqlstate == "2BP01"
            assert "materialized view public.totals depends on it" in str(error.diag.message_detail)
        error = refused(own, "DROP DATABASE shop")
        assert (error.sqlstate, "dev.public.totals depends on it" in str(error.diag.message_detail)) == ("2BP01", True)
        own.execute("ALTER DATABASE shop RENAME TO store")
        own.execute("FLUSH")
        assert "FROM store.public.bought" in str(rows(own, "SHOW CREATE VIEW amounts"))
    server.kill()
    server = Server(tmp_path / "data")
    with server.connect(dbname="store") as other, server.connect() as own:
        other.execute("UPDATE bought SET amount = 40 WHERE id = 1")
        other.execute("FLUSH")
        assert sorted(rows(own, "SELECT * FROM totals")) == [("ann", 40), ("bob", 20), ("cyd", 30)]
        assert sorted(rows(own, "SELECT * FROM amounts")) == [(20,), (30,), (40,)]
        assert sorted(rows(own, "SELECT id FROM copied")) == [(1,), (2,), (3,)]
    server.stop()


REFUSED = [
    ("SELECT * FROM nowhere.public.t", "3D000", 'database "nowhere" does not exist'),
    ("SELECT * FROM shop.public.missing", "42P01", 'relation "shop.public.missing" does not exist'),
    ("SELECT * FROM shop.pg_catalog.pg_class", "0A000", "cross-database references are not implemented"),
    ("INSERT INTO shop.public.t VALUES (1)", "0A000", "cross-database references are not implemented"),
    ("DELETE FROM shop.public.t", "0A000", "cross-database references are not implemented"),
    ("DROP TABLE shop.public.t", "0A000", "cross-database references are not implemented"),
    ("ALTER TABLE shop.public.t RENAME TO u", "0A000", "cross-database references are not implemented"),
    ("CREATE INDEX i ON shop.public.t (a)", "0A000", "cross-database references are not implemented"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Server:
    server = Server(tmp_path_factory.mktemp("across") / "data")
    with server.connect() as own:
        own.execute("CREATE DATABASE shop")
        own.execute("CREATE USER reader")
    with server.connect(dbname="shop") as other:
        other.execute("CREATE TABLE t (a int)")
        other.execute("INSERT INTO t VALUES (1)")
    return server


@pytest.mark.parametrize(("sql", "sqlstate", "message"), REFUSED)
def test_what_is_refused(server: Server, sql: str, sqlstate: str, message: str) -> None:
    with server.connect() as own:
        error = refused(own, sql)
        assert (error.sqlstate, message in str(error)) == (sqlstate, True), str(error)


def test_privileges(server: Server) -> None:
    with server.connect(user="reader") as own:
        assert refused(own, "SELECT * FROM shop.public.t").sqlstate == "42501"
        with server.connect(dbname="shop") as other:
            other.execute("GRANT SELECT ON t TO reader")
        assert rows(own, "SELECT * FROM shop.public.t") == [(1,)]
