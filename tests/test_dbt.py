"""dbt-core with dbt-postgres and dbt-risingwave, on the projects in tests/dbt: each command as a user types it."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from client_programs import ENVIRONMENT, TESTS, address, needs_clients
from servers import Server, wait_until

pytestmark = [needs_clients, pytest.mark.long, pytest.mark.timeout(900)]


ORDERS = """id,amount,at
1,10.5,2024-05-01 10:00:00
2,4,2024-05-01 12:00:00
3,7,2024-05-02 09:00:00
"""


class Dbt:
    """A dbt project in a folder of the test's own."""

    def __init__(self, server: Server, project: str, folder: Path) -> None:
        shutil.copytree(TESTS / "dbt" / project, folder / project)
        self.folder = folder / project
        self.files = folder / "files"
        (self.files / "in").mkdir(parents=True)
        (self.files / "in" / "orders.csv").write_text(ORDERS)
        quiet = {"DBT_SEND_ANONYMOUS_USAGE_STATS": "false", "DBT_USE_COLORS": "false", "DBT_PROFILES_DIR": "."}
        self._environment = {**address(server), **quiet, "CHECKS_FILES": str(self.files)}

    def run(self, *arguments: str) -> dict[str, str]:
        """Run a command that has to end well. Returns what it says of each node that it has run."""
        done = subprocess.run(
            [str(ENVIRONMENT / "bin" / "dbt"), *arguments],
            cwd=self.folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=240,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        if arguments[0] in ("debug", "docs"):
            return {}
        results = json.loads((self.folder / "target" / "run_results.json").read_text())["results"]
        assert {one["status"] for one in results} <= {"success", "pass"}, done.stdout
        return {one["unique_id"].split(".")[2]: one["message"] for one in results}

    def catalog(self) -> dict[str, Any]:
        """The relations of `dbt docs generate`, by name."""
        self.run("docs", "generate")
        found = json.loads((self.folder / "target" / "catalog.json").read_text())
        assert not found["errors"]
        return {node["metadata"]["name"]: node for node in found["nodes"].values()}


def rows(server: Server, sql: str) -> list[tuple[Any, ...]]:
    with server.connect() as own:
        return own.execute(sql).fetchall()


def change_people(server: Server) -> None:
    with server.connect() as own:
        own.execute("INSERT INTO analytics.people VALUES (5, 'eve', 'blue', 1, '2024-05-01')")
        own.execute("UPDATE analytics.people SET balance = 99 WHERE id = 4")
        own.execute("FLUSH")


def indexes(server: Server, table: str) -> list[str]:
    """What the indexes of a table are on."""
    found = rows(server, f"SELECT indexdef FROM pg_indexes WHERE tablename = '{table}'")
    return sorted(definition[definition.index("(") :] for (definition,) in found)


def check_added_postgres(server: Server, dbt: Dbt) -> None:
    """A function, indexes, an unlogged table with grants, a named key, a unit test, indexes of a materialized view."""
    doubled = [("blue", 2), ("red", 4), (None, 2)]
    assert rows(server, "SELECT team, members::int FROM analytics.indexed ORDER BY team NULLS LAST") == doubled
    assert indexes(server, "indexed") == ["(members, team)"]
    assert rows(server, "SELECT has_table_privilege('reader', 'analytics.indexed', 'select')") == [(True,)]
    keyed = "SELECT contype FROM pg_constraint WHERE conrelid = 'analytics.keyed'::regclass"
    assert rows(server, keyed) == [("p",)]
    assert indexes(server, "live_indexed") == ["(team)"]
    dbt.run("run", "--select", "live_indexed", "--vars", '{"more_indexes": [{"columns": ["members"]}]}')
    assert indexes(server, "live_indexed") == ["(members)", "(team)"]
    check_gone(server, dbt)


def check_gone(server: Server, dbt: Dbt) -> None:
    """A snapshot has a row that is deleted, and has it again."""
    assert rows(server, "SELECT count(*) FROM analytics_marts.gone") == [(4,)]
    with server.connect() as own:
        own.execute("DELETE FROM analytics.people WHERE id = 1")
        own.execute("FLUSH")
    dbt.run("snapshot", "--select", "gone")
    history = "SELECT dbt_is_deleted FROM analytics_marts.gone WHERE id = 1 ORDER BY dbt_valid_from"
    assert rows(server, history) == [("False",), ("True",)]
    dbt.run("seed")


def check_added_risingwave(server: Server, dbt: Dbt) -> None:
    """A source, a table with a connector, sinks, a subscription, indexes, a function, and a swap over a source."""
    days = [("2024-05-01", 2, 29), ("2024-05-02", 1, 14)]
    shown = "SELECT day::varchar, orders::int, doubled::int FROM analytics.order_days ORDER BY day"
    assert wait_until(lambda: rows(server, shown) == days, 20)
    assert wait_until(lambda: rows(server, "SELECT count(*)::int FROM analytics.even") == [(25,)], 20)
    files = dbt.files / "out"
    sent = {json.loads(line)["day"] for file in files.glob("*.json") for line in file.read_text().splitlines()}
    assert len(sent) == 2
    of_kind = "SELECT name FROM rw_catalog.rw_relations WHERE relation_type = '{}' ORDER BY name"
    assert {name for (name,) in rows(server, of_kind.format("sink"))} >= {"nowhere", "nowhere_raw", "to_files"}
    assert rows(server, of_kind.format("subscription")) == [("day_changes",)]
    assert rows(server, "SELECT name FROM rw_catalog.rw_secrets") == [("token",)]
    assert len(rows(server, of_kind.format("index"))) >= 3
    assert rows(server, "SELECT has_table_privilege('reader', 'analytics.orders', 'select')") == [(True,)]
    check_gone(server, dbt)
    dbt.run("run", "--select", "even", "--vars", '{"zero_downtime": true, "more_even": ", 1 as one"}')
    assert rows(server, "SELECT sum(one)::int FROM analytics.even") == [(25,)]


def check_grown(server: Server) -> None:
    """What the incremental models and snapshots hold after `change_people` and another build."""
    amounts = "SELECT id, balance::int FROM analytics.{} ORDER BY id, balance"
    assert rows(server, amounts.format("grown_append"))[3:] == [(4, 5), (4, 99), (5, 1)]
    assert rows(server, amounts.format("grown_delete_insert"))[3:] == [(4, 99), (5, 1)]
    history = "SELECT id, balance::int, dbt_valid_to IS NULL FROM analytics.history ORDER BY id, balance"
    assert rows(server, history)[3:] == [(4, 5, False), (4, 99, True), (5, 1, True)]
    assert rows(server, "SELECT count(*) FROM analytics.dated") == [(4,)]


def test_dbt_postgres(module_server: Server, tmp_path: Path) -> None:
    with module_server.connect() as own:
        own.execute("ALTER SYSTEM SET backfill_engine = auto")
        own.execute("CREATE USER reader")
    dbt = Dbt(module_server, "postgres", tmp_path)
    assert len(dbt.run("build")) == 23
    check_added_postgres(module_server, dbt)
    assert rows(module_server, "SELECT * FROM analytics_marts.other_name ORDER BY team") == rows(
        module_server, "SELECT team, count(*), sum(balance) FROM analytics.staged GROUP BY team ORDER BY team"
    )
    change_people(module_server)
    dbt.run("build", "--exclude-resource-type", "seed")
    check_grown(module_server)
    assert rows(module_server, "SELECT balance::int FROM analytics.grown_merge WHERE id = 4") == [(99,)]
    live = "SELECT team, members, richest::int FROM analytics.live_teams ORDER BY team NULLS FIRST"
    assert rows(module_server, live) == [(None, 1, 99), ("blue", 2, 20), ("red", 2, 11)]
    catalog = dbt.catalog()
    # Besides the tables of failures.
    assert {name: node["metadata"]["type"] for name, node in catalog.items()}.items() >= {
        "people": "BASE TABLE", "staged": "VIEW", "teams": "BASE TABLE", "contracted": "BASE TABLE",
        "grown_append": "BASE TABLE", "grown_delete_insert": "BASE TABLE", "grown_merge": "BASE TABLE",
        "live_teams": "MATERIALIZED VIEW", "other_name": "VIEW", "history": "BASE TABLE", "dated": "BASE TABLE",
    }.items()  # fmt: skip
    assert catalog["staged"]["metadata"]["comment"] == "People, with a team for everybody. It's the base."
    assert catalog["staged"]["columns"]["id"]["comment"] == 'The "id".'
    assert list(catalog["teams"]["columns"]) == ["team", "members", "balance"]
    # The seed's rows again, into the same table; then everything from nothing.
    dbt.run("seed")
    assert rows(module_server, "SELECT count(*) FROM analytics.people") == [(4,)]
    dbt.run("build", "--full-refresh")
    left = rows(module_server, "SELECT name FROM rw_catalog.rw_relations WHERE name LIKE '%dbt\\_%'")
    assert left == []


@pytest.mark.spark
def test_dbt_risingwave(shared_server: Server, tmp_path: Path) -> None:
    server = shared_server
    with server.connect() as own:
        own.execute("ALTER SYSTEM SET serverless_backfill_enabled = true")
        own.execute("CREATE USER reader")
    dbt = Dbt(server, "risingwave", tmp_path)
    dbt.run("debug")
    assert len(dbt.run("build")) == 29
    check_added_risingwave(server, dbt)
    # live_rich was filled on an application of its own.
    assert len(rows(server, "SELECT id FROM rw_catalog.rw_spark_applications WHERE is_serverless")) == 1
    assert rows(server, "SELECT has_table_privilege('reader', 'analytics.teams', 'select')") == [(True,)]
    assert rows(server, "SELECT has_table_privilege('reader', 'analytics.live_teams', 'select')") == [(True,)]
    change_people(server)
    live = "SELECT team, members, richest::int FROM analytics.live_teams ORDER BY team NULLS FIRST"
    assert rows(server, live) == [(None, 1, 99), ("blue", 2, 20), ("red", 2, 11)]
    dbt.run("build", "--exclude-resource-type", "seed")
    check_grown(server)
    # A view and a materialized view are replaced while others read them; the one over the latter follows on.
    dbt.run(
        "run", "--select", "staged", "live_teams", "--vars",
        '{"zero_downtime": true, "more_staged": ", 1 as added", "more_teams": ", min(balance) as poorest"}',
    )  # fmt: skip
    assert rows(server, "SELECT added FROM analytics.staged LIMIT 1") == [(1,)]
    poorest = "SELECT team, poorest::int FROM analytics.live_teams ORDER BY team NULLS FIRST"
    assert rows(server, poorest) == [(None, 99), ("blue", 1), ("red", 11)]
    catalog = dbt.catalog()
    assert catalog["live_teams"]["metadata"]["comment"] == "Kept up to date by the server."
    assert catalog["live_teams"]["columns"]["members"]["comment"] == "How many."
    assert {"people", "staged", "teams", "live_teams", "live_rich", "ordered", "other_name"} <= set(catalog)
    dbt.run("seed")
    dbt.run("build", "--full-refresh")
    assert rows(server, "SELECT * FROM analytics_marts.other_name ORDER BY team NULLS FIRST") == [
        (None, 2), ("blue", 2), ("red", 4),
    ]  # fmt: skip
