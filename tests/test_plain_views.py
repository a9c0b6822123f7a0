"""CREATE VIEW: a query under a name, inlined in batch queries and in materialized views. Without Spark."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from servers import Server, rows

from sparkwave.catalog.model import Catalog, Column, Relation
from sparkwave.catalog.types import parse_type
from sparkwave.planner.bind.binder import Scope, bind
from sparkwave.planner.parse.statement import parse_statement
from sparkwave.planner.plan.stream_plan import plan_view
from sparkwave.planner.statements import CreateMaterializedView

Connection = psycopg.Connection[Any]


@pytest.fixture
def session(in_process_server: Server) -> Iterator[Connection]:
    """A session with tables t and other, which nothing else has changed."""
    with in_process_server.connect() as own:
        own.execute("CREATE TABLE t (k int PRIMARY KEY, v varchar, n numeric(10,2))")
        own.execute("INSERT INTO t VALUES (1, 'a', 1.5), (2, 'b', 2.5), (3, 'a', 4)")
        own.execute("CREATE TABLE other (k int, at timestamptz)")
        own.execute("INSERT INTO other VALUES (2, '2024-01-01 00:00:00+00'), (9, NULL)")
        yield own
        own.execute("DROP TABLE t, other CASCADE")
        for (name,) in own.execute("SHOW VIEWS").fetchall():
            own.execute(f"DROP VIEW {name} CASCADE")


# A view's definition, a query over it, and the same query without the view.
INLINED = [
    ("v AS SELECT k, n * 2 AS dbl FROM t WHERE k > 1", "SELECT * FROM v", "SELECT k, n * 2 FROM t WHERE k > 1"),
    ("v (a, b) AS SELECT k, v FROM t", "SELECT b, a FROM v WHERE a < 3", "SELECT v, k FROM t WHERE k < 3"),
    ("v (a, b) AS SELECT k, v FROM t", "SELECT x.c, x.b FROM v AS x (c)", "SELECT k, v FROM t"),
    ('v ("A b", "select") AS SELECT k, v FROM t', 'SELECT "A b", v."select" FROM v', "SELECT k, v FROM t"),
    ("v AS SELECT * FROM t", "SELECT public.v.k FROM public.v", "SELECT k FROM t"),
    ("v AS SELECT * FROM t", "SELECT a.k, b.k FROM v a JOIN v b USING (v)",
     "SELECT a.k, b.k FROM t a JOIN t b USING (v)"),
    ("v AS SELECT k FROM t", "SELECT v.k, at FROM other LEFT JOIN v ON v.k = other.k",
     "SELECT t.k, at FROM other LEFT JOIN t ON t.k = other.k"),
    ("v AS SELECT k FROM t", "SELECT * FROM (v JOIN other USING (k))", "SELECT k, at FROM t JOIN other USING (k)"),
    ("v AS SELECT k FROM t", "SELECT (SELECT max(k) FROM v), 5 IN (SELECT k FROM v)", "SELECT 3, false"),
    ("v AS SELECT v, count(*), sum(n) + 1 FROM t GROUP BY v", "SELECT v, count FROM v",
     "SELECT v, count(*) FROM t GROUP BY v"),
    ("v AS SELECT k FROM t ORDER BY k DESC LIMIT 2", "SELECT * FROM v", "SELECT * FROM (VALUES (3), (2))"),
    ("v AS (SELECT k FROM t UNION ALL SELECT k FROM other)", "SELECT sum(k) FROM v", "SELECT 17"),
    ("v (x) AS VALUES (1), (2)", "SELECT x + 1 FROM v", "SELECT * FROM (VALUES (2), (3))"),
    # Names of CTEs stay where they are.
    ("v AS WITH t AS (SELECT k FROM t WHERE k > 1) SELECT k FROM t", "SELECT * FROM v", "SELECT k FROM t WHERE k > 1"),
    ("v AS WITH c AS (SELECT k FROM t) SELECT k FROM C", "WITH c AS (SELECT 7 AS k) SELECT v.k, c.k FROM v, c",
     "SELECT k, 7 FROM t"),
    ("v AS SELECT k FROM t", "WITH t AS (SELECT 7 AS k) SELECT v.k FROM v, t", "SELECT k FROM t"),
    ("v AS SELECT k FROM t", "WITH v AS (SELECT k + 1 AS k FROM v) SELECT k FROM v", "SELECT k + 1 FROM t"),
    ("v AS SELECT relname FROM pg_class WHERE relname = 't'", "SELECT * FROM v", "SELECT 't'"),
]  # fmt: skip


def test_reading_a_view_is_reading_its_query(session: Connection) -> None:
    for view, query, plain in INLINED:
        assert session.execute(f"CREATE VIEW {view}").statusmessage == "CREATE VIEW"
        assert sorted(rows(session, query), key=str) == sorted(rows(session, plain), key=str), (view, query)
        session.execute("DROP VIEW v")


def test_a_view_follows_its_tables(session: Connection) -> None:
    session.execute("CREATE VIEW v AS SELECT v, count(*) AS n FROM t GROUP BY v")
    session.execute("CREATE VIEW w (many) AS SELECT v FROM v WHERE n > 1 ORDER BY v")
    assert rows(session, "SELECT * FROM w") == [("a",)]
    session.execute("INSERT INTO t VALUES (4, 'b', 1)")
    assert rows(session, "SELECT * FROM w") == [("a",), ("b",)]


def test_types_of_a_view(session: Connection) -> None:
    session.execute("CREATE VIEW v (a, b, c, d) AS SELECT k, n, at, ARRAY[v] FROM t JOIN other USING (k)")
    columns = "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'v' ORDER BY 1"
    expected = [("a", "integer"), ("b", "numeric"), ("c", "timestamp with time zone"), ("d", "ARRAY")]
    assert rows(session, columns) == expected
    cursor = session.execute("SELECT b, a FROM v WHERE a = %s", (2,))
    assert [column.type_code for column in cursor.description or ()] == [1700, 23]


def test_life_of_a_view(session: Connection) -> None:
    notices: list[str] = []
    session.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
    session.execute("CREATE VIEW v (a) AS select  k from t")
    session.execute("CREATE VIEW IF NOT EXISTS v AS SELECT 1 AS one")
    assert notices.pop() == 'relation "v" already exists, skipping'
    assert rows(session, "SHOW VIEWS") == [("public.v",)]
    assert rows(session, "SHOW VIEWS LIKE 'x%'") == []
    assert rows(session, "SHOW CREATE VIEW v") == [("public.v", "CREATE VIEW v (a) AS SELECT k FROM t")]
    assert rows(session, "SHOW TABLES") == [("public.other",), ("public.t",)]
    assert session.execute("DROP VIEW v").statusmessage == "DROP VIEW"
    session.execute("DROP VIEW IF EXISTS v")
    assert notices.pop() == 'view "v" does not exist, skipping'


def test_writes_read_views(session: Connection) -> None:
    session.execute("CREATE VIEW v AS SELECT k + 10 AS k, v, n FROM t")
    session.execute("INSERT INTO t SELECT * FROM v WHERE k < 13")
    session.execute("UPDATE t SET v = 'seen' WHERE k IN (SELECT k - 10 FROM v WHERE v = 'b')")
    session.execute("DELETE FROM t WHERE k IN (SELECT k FROM v)")
    assert rows(session, "SELECT k, v FROM t ORDER BY k") == [(1, "a"), (2, "seen"), (3, "a")]
    with session.cursor() as cursor, cursor.copy("COPY v (v, k) TO STDOUT") as copy:
        assert b"".join(map(bytes, copy)) == b"a\t11\nseen\t12\na\t13\n"


def test_materialized_views_over_views(session: Connection) -> None:
    """Nested views, one twice, with names that also occur around it."""
    session.execute("CREATE VIEW large (key, n) AS SELECT k, n FROM t WHERE n > 2")
    session.execute(
        "CREATE VIEW kinds (kind, total) AS WITH t AS (SELECT v, l.n FROM t JOIN large l ON l.key = t.k) "
        "SELECT v, sum(n) FROM t GROUP BY v ORDER BY v"
    )
    query = (
        "WITH large AS (SELECT k FROM other) SELECT a.kind, b.total, l.k FROM kinds a "
        "JOIN kinds AS b (name) ON b.name = a.kind JOIN t ON t.v = a.kind JOIN large l ON l.k = t.k"
    )
    session.execute(f"CREATE MATERIALIZED VIEW m AS {query}")
    assert rows(session, "SELECT * FROM m") == rows(session, query) != []
    for change in (
        "INSERT INTO t VALUES (9, 'a', 7), (10, 'c', 8)",
        "UPDATE t SET n = 1 WHERE k = 2",
        "INSERT INTO other VALUES (3, NULL)",
        "DELETE FROM t WHERE k = 3",
    ):
        session.execute(change)
        session.execute("FLUSH")
        assert sorted(rows(session, "SELECT * FROM m")) == sorted(rows(session, query)), change
    with pytest.raises(psycopg.Error) as caught:
        session.execute("DROP VIEW kinds")
    assert caught.value.sqlstate == "2BP01"
    assert caught.value.diag.message_detail == "materialized view public.m depends on it"
    with pytest.raises(psycopg.Error) as caught:
        session.execute("DROP VIEW large")
    assert caught.value.diag.message_detail == "view public.kinds depends on it"
    session.execute("DROP VIEW large CASCADE")
    query = "SELECT name FROM rw_catalog.rw_relations WHERE relation_type <> 'system table' ORDER BY 1"
    assert rows(session, query) == [("other",), ("t",)]


def test_failures_inside_a_view_point_at_its_name(session: Connection) -> None:
    """Not into its definition, whose text the statement does not have."""
    session.execute("CREATE VIEW v AS SELECT k, v FROM t ORDER BY k LIMIT (SELECT 1)")
    session.execute("CREATE VIEW w AS SELECT v.k AS key FROM v")
    session.execute("CREATE VIEW names AS SELECT relname FROM pg_class")
    for statement, word, message in (
        ("CREATE MATERIALIZED VIEW m AS SELECT  key FROM w", "w", "not a constant"),
        ("CREATE MATERIALIZED VIEW m AS SELECT relname FROM names", "names", "pg_class"),
    ):
        with pytest.raises(psycopg.Error) as caught:
            session.execute(statement)
        assert message in str(caught.value)
        assert caught.value.diag.statement_position == str(statement.rindex(word) + 1)


def test_catalogs(session: Connection) -> None:
    session.execute("CREATE VIEW v (a) AS select  k from t")
    tables = "SELECT table_type, is_insertable_into FROM information_schema.tables WHERE table_name = 'v'"
    assert rows(session, tables) == [("VIEW", "NO")]
    definition = "SELECT k FROM t"
    assert rows(session, "SELECT table_name, view_definition FROM information_schema.views") == [("v", definition)]
    assert rows(session, "SELECT viewname, definition FROM pg_views") == [("v", definition)]
    assert rows(session, "SELECT relkind, relhasindex FROM pg_class WHERE relname = 'v'") == [("v", False)]
    assert rows(session, "SELECT pg_get_viewdef('v'::regclass)") == [(definition,)]
    views = "SELECT name, definition, acl FROM rw_catalog.rw_views"
    assert rows(session, views) == [("v", "CREATE VIEW v (a) AS SELECT k FROM t", ["root=r/root"])]
    assert ("v", "view") in rows(session, "SELECT name, relation_type FROM rw_catalog.rw_relations")
    assert rows(session, "SELECT * FROM pg_matviews") == []


def test_psql(session: Connection, in_process_server: Server) -> None:
    session.execute("CREATE VIEW v (a, b) AS SELECT k, v FROM t")
    listed = in_process_server.psql("-Atc", "\\dv")
    assert (listed.stdout, listed.stderr) == ("public|v|view|root\n", "")
    assert "public|v|view|root" in in_process_server.psql("-Atc", "\\d").stdout
    described = in_process_server.psql("-c", "\\d+ v").stdout
    assert 'View "public.v"' in described
    assert [line.split()[0] for line in described.splitlines()[3:5]] == ["a", "b"]
    assert "View definition:\nSELECT k, v FROM t" in described
    assert "CREATE OR REPLACE VIEW public.v AS\nSELECT k, v FROM t" in in_process_server.psql("-c", "\\sv v").stdout


def test_several_sessions_create_one_view(session: Connection, in_process_server: Server) -> None:
    outcomes: list[str] = []

    def create() -> None:
        with in_process_server.connect() as own:
            try:
                own.execute("CREATE VIEW raced AS SELECT k FROM t")
                outcomes.append("created")
            except psycopg.Error as error:
                outcomes.append(error.sqlstate or "")

    threads = [threading.Thread(target=create) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["42P07", "42P07", "42P07", "created"]


@pytest.mark.long
def test_views_are_there_after_a_restart(tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    with server.connect() as own:
        own.execute("CREATE TABLE t (k int)")
        own.execute("CREATE VIEW v (a) AS SELECT k + 1 FROM t")
        own.execute("INSERT INTO t VALUES (1)")
    server.kill()
    restarted = Server(tmp_path / "data")
    try:
        with restarted.connect() as own:
            assert rows(own, "SELECT a FROM v") == [(2,)]
            own.execute("DROP TABLE t CASCADE")
            assert rows(own, "SHOW VIEWS") == []
    finally:
        restarted.kill()


# The planner alone.


def relation(number: int, name: str, columns: str, definition: str = "", schema: str = "public") -> Relation:
    made = tuple(Column(*_column(text)) for text in columns.split(", "))
    kind, key = ("view", ()) if definition else ("table", (made[0].name,))
    return Relation(number, "dev", schema, name, kind, made, key, definition, True)


def _column(text: str) -> tuple[str, Any]:
    name, _, type_ = text.partition(" ")
    return name, parse_type(type_)


def test_a_view_is_bound_where_it_is() -> None:
    """Its table `t` is that of its own schema, also when a query of another schema reads it."""
    catalog = Catalog(
        (
            relation(1, "t", "k int"),
            relation(2, "t", "k int, v varchar", schema="s"),
            relation(3, "v", "a int", "CREATE VIEW v (a) AS SELECT k FROM t", schema="s"),
        )
    )
    statement = parse_statement("CREATE MATERIALIZED VIEW m AS SELECT v.a, t.k FROM s.v JOIN t ON t.k = v.a")
    assert isinstance(statement, CreateMaterializedView)
    plan = plan_view(statement, catalog, Scope("dev"))
    assert [scan.relation.id for scan in plan.scans] == [2, 1]
    assert [column.name for column in plan.columns] == ["a", "k"]
    assert set(bind(statement.query, catalog, Scope("dev")).tables) == {"r1", "r2"}
