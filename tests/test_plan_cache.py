"""Plans are made once and used until something that they were made from is another."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import psycopg
from servers import Server, refused

from sparkwave.catalog.model import Catalog
from sparkwave.catalog.users import ROOT, User
from sparkwave.planner.batch.query import Batch, Environment
from sparkwave.planner.bind.binder import Scope
from sparkwave.planner.functions.emit import Sql
from sparkwave.server.session.plan_cache import MOST_PLANS, PlanCache, Settings, parse, split

Connection = psycopg.Connection[Any]
ROOT_USER = User(1, ROOT)
VALUES = {"application_name": "a", "timezone": "UTC"}


def environment(values: dict[str, str] | None = None, catalog: Catalog | None = None, **other: Any) -> Environment:
    values = values or VALUES
    settings = Settings(values.__getitem__, lambda: iter(values))
    return Environment(catalog or CATALOG, Scope("dev"), settings, lambda schema, name: False, ROOT_USER, **other)


CATALOG = Catalog()
IS_SYSTEM = environment().is_system


class Planner:
    """Counts how often it is asked."""

    def __init__(self, *reads: str) -> None:
        self.cache, self.reads, self.asked = PlanCache(), reads, 0

    def plan(self, environment: Environment, sql: str = "SELECT 1", oids: tuple[int, ...] = ()) -> bool:
        """Whether it was asked this time."""
        asked = self.asked
        self.cache.plan(parse(sql), oids, replace(environment, is_system=IS_SYSTEM), self._make)
        return self.asked > asked

    def _make(self, environment: Environment) -> Batch:
        self.asked += 1
        return Batch(Sql(" ".join(environment.settings[name] for name in self.reads)), ())


def test_a_plan_is_used_again_until_what_it_depends_on_changes() -> None:
    planner = Planner("application_name")
    assert planner.plan(environment())
    assert not planner.plan(environment())
    assert planner.plan(environment(), oids=(23,))
    assert planner.plan(environment(), sql="SELECT 2")
    assert not planner.plan(environment())
    assert not planner.plan(environment(VALUES | {"timezone": "Asia/Tokyo"}))  # it has not looked at that
    assert planner.plan(environment(VALUES | {"application_name": "b"}))
    assert planner.plan(environment())
    assert planner.plan(environment(catalog=Catalog()))  # equal, but another: a commit has been in between
    assert planner.plan(environment(snapshot=5))
    assert not planner.plan(environment(snapshot=5))
    assert planner.plan(environment())
    assert planner.plan(replace(environment(), scope=Scope("dev", "other")))
    assert planner.plan(replace(environment(), user=User(2, "someone")))


def test_it_does_not_grow_for_ever() -> None:
    planner = Planner()
    for number in range(MOST_PLANS + 10):
        planner.plan(environment(), oids=(number,))
    assert len(planner.cache._plans) == MOST_PLANS
    assert planner.plan(environment(), oids=(0,))
    assert not planner.plan(environment(), oids=(MOST_PLANS + 9,))


def test_the_same_text_is_the_same_statement() -> None:
    assert parse("SELECT 1 AS same") is parse("SELECT 1 AS same")
    long = "SELECT '" + "x" * 10_000 + "'"
    assert parse(long) is not parse(long)
    assert split("SELECT 1; SELECT 2;") == (("SELECT 1", 0), (" SELECT 2", 9))


def both(connection: Connection, sql: str) -> list[Any]:
    """A simple and a prepared execution."""
    found = [connection.execute(sql).fetchall(), connection.execute(sql, prepare=True).fetchall()]
    assert found[0] == found[1]
    return found[0]


def test_a_constant_query(connection: Connection) -> None:
    """Its row is kept with the plan; what only looks like one is not."""
    for _ in range(3):
        assert both(connection, "SELECT 1, 'x', NULL, -(2.5) AS n, true") == [(1, "x", None, Decimal("-2.5"), True)]
        assert both(connection, "SELECT 1 WHERE false") == []
    moments = {both(connection, "SELECT 1")[0] + connection.execute("SELECT random()").fetchall()[0] for _ in range(3)}
    assert len(moments) == 3


def test_a_changed_relation(connection: Connection) -> None:
    for definition, found in (("SELECT 1 AS a", [(1,)]), ("SELECT 'x' AS a, 2 AS b", [("x", 2)])):
        connection.execute(f"CREATE VIEW planned AS {definition}")
        for _ in range(3):
            assert connection.execute("SELECT * FROM planned").fetchall() == found
        connection.execute("DROP VIEW planned")
        assert refused(connection, "SELECT * FROM planned").sqlstate == "42P01"


def test_rows_are_always_the_newest(connection: Connection) -> None:
    connection.execute("CREATE TABLE planned_rows (k int PRIMARY KEY, v varchar)")
    for number in range(4):
        connection.execute("INSERT INTO planned_rows VALUES (%s, 'v')", (number,), prepare=True)
        assert both(connection, "SELECT count(*) FROM planned_rows") == [(number + 1,)]
    assert connection.execute("UPDATE planned_rows SET v = %s WHERE k < %s", ("w", 2), prepare=True).rowcount == 2
    assert both(connection, "SELECT k FROM planned_rows WHERE v = 'w' ORDER BY k") == [(0,), (1,)]


def test_privileges_are_those_of_now(module_server: Server, connection: Connection) -> None:
    connection.execute("CREATE TABLE planned_secret (k int)")
    connection.execute("CREATE USER planner_reader")
    sql = "SELECT count(*) FROM planned_secret"
    assert both(connection, sql) == [(0,)]
    with module_server.connect(user="planner_reader") as reader:
        for _ in range(2):
            assert refused(reader, sql).sqlstate == "42501"  # another's plan does not open it
            connection.execute("GRANT SELECT ON planned_secret TO planner_reader")
            assert both(reader, sql) == [(0,)]
            connection.execute("REVOKE SELECT ON planned_secret FROM planner_reader")
            with_prepared = reader.pgconn.exec_prepared(b"_pg3_0", [])
            assert b"permission denied" in with_prepared.error_message
    connection.execute("DROP TABLE planned_secret")


def test_a_pinned_snapshot_has_plans_of_its_own(module_server: Server, connection: Connection) -> None:
    connection.execute("CREATE TABLE planned_past (k int)")
    sql = "SELECT count(*) FROM planned_past"
    with module_server.connect() as past:
        assert both(past, sql) == [(0,)]
        past.execute("BEGIN READ ONLY")
        for count in range(1, 4):
            connection.execute("INSERT INTO planned_past VALUES (1)")
            assert both(past, sql) == [(0,)]
            assert both(connection, sql) == [(count,)]
        past.execute("COMMIT")
        assert both(past, sql) == [(3,)]
