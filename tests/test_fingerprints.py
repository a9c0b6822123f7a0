"""What is stored for one plan is never used by another: it is found at the start, and made anew."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from servers import wait_until
from test_golden import plan
from test_law import check, opened, run

from sparkwave.catalog.lake.ducklake import Lake
from sparkwave.catalog.lake.storage import Storage
from sparkwave.catalog.model import CREATED, FAILED, Catalog, Relation
from sparkwave.executor.epochs import plans, replanning
from sparkwave.planner.plan import rules
from sparkwave.planner.plan.fingerprint import Fingerprint, Stored, differences, fingerprint, load
from sparkwave.planner.plan.stream_plan import StreamPlan
from sparkwave.server.context import Context
from sparkwave.server.dispatch import Client

TABLES = (
    "CREATE TABLE t (k int PRIMARY KEY, g int, v int)",
    "CREATE TABLE u (g int PRIMARY KEY, name varchar)",
    "INSERT INTO t SELECT i, i % 3, i FROM generate_series(1, 12) AS s(i)",
    "INSERT INTO u VALUES (0, 'zero'), (1, 'one')",
)
VIEWS = {
    "sums": "SELECT g, count(*) AS n, sum(v) AS s FROM t GROUP BY g",
    "halves": "SELECT s / 2 AS h, count(*) AS n FROM sums GROUP BY s / 2",
    "first_ones": "SELECT k, v FROM t ORDER BY v DESC, k LIMIT 3",
    "joined": "SELECT t.k, u.name FROM t LEFT JOIN u ON t.g = u.g",
    "of_each": "SELECT k, g FROM (SELECT k, g, row_number() OVER (PARTITION BY g ORDER BY v, k) AS place FROM t) AS x "
    "WHERE place <= 2",
}
CHANGES = ("INSERT INTO t VALUES (100, 1, 50)", "DELETE FROM t WHERE k = 3", "UPDATE t SET v = v + 10 WHERE k % 4 = 0")


def make(client: Client) -> None:
    for statement in (*TABLES, *(f"CREATE MATERIALIZED VIEW {name} AS {query}" for name, query in VIEWS.items())):
        run(client, statement)
    run(client, "CREATE INDEX by_v ON t (v)")


def change(context: Context, client: Client, by: int) -> None:
    for statement in CHANGES:
        run(client, statement.replace("100", str(100 + by)))
    context.coordinator.flush(lambda: False)


def system(directory: Path, *statements: str) -> None:
    """Run SQL on Sparkwave's own relations while no server runs."""
    lake = Lake(Storage(directory))
    try:
        for statement in statements:
            lake.cursor().execute(statement)
    finally:
        lake.close()


def statuses(context: Context) -> dict[str, str]:
    catalog = context.store.catalog
    return {catalog.by_id[job.id].name: job.status for job in catalog.jobs}


def settle(context: Context) -> None:
    """Until nothing is made anew any more."""
    done = lambda: all(job.status == CREATED for job in context.store.catalog.jobs)  # noqa: E731
    assert wait_until(done, 120), [(job.id, job.status, job.error) for job in context.store.catalog.jobs]


def events(client: Client, name: str) -> list[tuple[object, ...]]:
    return run(client, f"SELECT info FROM rw_catalog.rw_event_logs WHERE event_type = '{name}'")


def in_process(directory: Path) -> Any:
    return opened(directory, streaming_engine="duckdb", backfill_engine="auto")


def test_the_same_plan_goes_on(tmp_path: Path) -> None:
    with in_process(tmp_path / "lake") as (context, client):
        make(client)
        made = {relation.name: (relation.made_as, relation.fingerprint) for relation in context.store.catalog.relations}
    for by in (1, 2):
        with in_process(tmp_path / "lake") as (context, client):
            assert set(statuses(context).values()) == {CREATED}
            change(context, client, by)
            check(client, VIEWS, "after a start")
            assert not run(client, "SELECT * FROM rw_catalog.rw_event_logs WHERE event_type LIKE '%PLAN%'")
            now = context.store.catalog.relations
            assert {relation.name: (relation.made_as, relation.fingerprint) for relation in now} == made


def without_digests(directory: Path) -> None:
    system(directory, "UPDATE lake.sparkwave.relations SET fingerprint = NULL")


def with_another_digest(directory: Path) -> None:
    changed = (
        """UPDATE lake.sparkwave.relations SET fingerprint = regexp_replace(fingerprint, '"[0-9a-f]{64}"', '"0"')"""
    )
    system(directory, changed)


def with_another_column(directory: Path) -> None:
    """A stored column of `sums` is called otherwise, as if another version had named it."""
    system(
        directory,
        "UPDATE lake.sparkwave.relations SET fingerprint = NULL",
        """UPDATE lake.sparkwave.columns SET name = 'earlier' WHERE is_hidden AND name = '_sum(t.v)'
           AND relation_id IN (SELECT id FROM lake.sparkwave.relations WHERE name = 'sums')""",
    )


@pytest.mark.long
def test_what_has_no_fingerprint_gets_one(tmp_path: Path) -> None:
    with in_process(tmp_path / "lake") as (context, client):
        make(client)
    without_digests(tmp_path / "lake")
    with in_process(tmp_path / "lake") as (context, client):
        assert set(statuses(context).values()) == {CREATED}
        fingerprints = [r.fingerprint for r in context.store.catalog.relations if r.is_streaming]
        assert all(text is not None and load(text).digest is not None for text in fingerprints)
        change(context, client, 1)
        check(client, VIEWS, "with fingerprints")


@pytest.mark.parametrize(
    ("tamper", "reason"),
    [
        (with_another_digest, "its operators compute something else"),
        pytest.param(with_another_column, "earlier ", marks=pytest.mark.long),
    ],
)
def test_another_plan_makes_the_rows_anew(tmp_path: Path, tamper: Callable[[Path], None], reason: str) -> None:
    """Views over views too, the upstream one first, and the index."""
    with in_process(tmp_path / "lake") as (context, client):
        make(client)
        ids = {relation.name: relation.id for relation in context.store.catalog.relations}
    tamper(tmp_path / "lake")
    with in_process(tmp_path / "lake") as (context, client):
        settle(context)
        assert {relation.name: relation.id for relation in context.store.catalog.relations} == ids
        assert reason in str(events(client, "STREAM_JOB_PLAN_CHANGED"))
        check(client, VIEWS, "made anew")
        change(context, client, 1)
        check(client, VIEWS, "after a change")
    with in_process(tmp_path / "lake") as (context, client):
        assert set(statuses(context).values()) == {CREATED}
        change(context, client, 2)
        check(client, VIEWS, "after another start")


@pytest.mark.long
def test_another_rule_makes_the_rows_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rules are gone without another version of the planner: what was the view's state now is beside it."""
    with in_process(tmp_path / "lake") as (context, client):
        make(client)
    gone = (rules.drop_known_places, rules.place_rows)
    monkeypatch.setattr(rules, "RULES", tuple(rule for rule in rules.RULES if rule not in gone))
    with in_process(tmp_path / "lake") as (context, client):
        settle(context)
        [(info,)] = events(client, "STREAM_JOB_PLAN_CHANGED")
        assert "of_each" in str(info) and "the plan has state s0, and none is stored" in str(info)
        change(context, client, 1)
        check(client, VIEWS, "by another plan")


def test_what_cannot_be_planned_has_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server starts, and the others go on."""
    with in_process(tmp_path / "lake") as (context, client):
        make(client)
    planned = plans.plan_definition

    def breaks(relation: Relation, catalog: Catalog) -> StreamPlan:
        assert relation.name != "joined", "a fault of the planner"
        return planned(relation, catalog)

    monkeypatch.setattr(plans, "plan_definition", breaks)
    monkeypatch.setattr(replanning, "parse_statement", None)  # nor can it be made anew
    with in_process(tmp_path / "lake") as (context, client):
        change(context, client, 1)
        check(client, {name: query for name, query in VIEWS.items() if name != "joined"}, "the others")
        assert statuses(context)["joined"] == FAILED
        [reason] = [job.error or "" for job in context.store.catalog.jobs if job.error]
        assert "cannot be planned: a fault of the planner" in reason
    monkeypatch.undo()
    with in_process(tmp_path / "lake") as (context, client):
        settle(context)
        check(client, VIEWS, "when it can be planned again")


@pytest.mark.long
def test_what_cannot_be_made_anew_has_failed(tmp_path: Path) -> None:
    """A view that is subscribed is computed in place; a sink gets nothing any more, and all know why."""
    with in_process(tmp_path / "lake") as (context, client):
        make(client)
        run(client, "CREATE SUBSCRIPTION followed FROM first_ones WITH (retention = '1D')")
        run(client, "CREATE TABLE taken (k int PRIMARY KEY, v int)")
        run(client, "CREATE SINK into_taken INTO taken AS SELECT k, v FROM t")
    with_another_digest(tmp_path / "lake")
    with in_process(tmp_path / "lake") as (context, client):
        failed = {"into_taken"}
        wanted = {name: FAILED if name in failed else CREATED for name in statuses(context)}
        assert wait_until(lambda: statuses(context) == wanted, 120), statuses(context)
        errors = {context.store.catalog.by_id[j.id].name: j.error for j in context.store.catalog.jobs if j.error}
        assert "it cannot be made anew" in (errors["into_taken"] or "")
        change(context, client, 1)
        assert len(run(client, "SELECT * FROM taken")) == 12
        check(client, VIEWS, "the others")
    # A version whose plan fits goes on with the sink from where it stands.
    system(tmp_path / "lake", "UPDATE lake.sparkwave.relations SET fingerprint = NULL WHERE kind = 'sink'")
    with in_process(tmp_path / "lake") as (context, client):
        settle(context)
        context.coordinator.flush(lambda: False)
        assert sorted(run(client, "SELECT * FROM taken")) == sorted(run(client, "SELECT k, v FROM t"))


@pytest.mark.long
def test_a_creation_begins_again(tmp_path: Path) -> None:
    with in_process(tmp_path / "lake") as (context, client):
        make(client)
        run(client, "SET background_ddl = true")
        run(client, "SET backfill_rate_limit = 0")
        run(client, f"CREATE MATERIALIZED VIEW slow AS {VIEWS['sums']}")
        slow = next(relation.id for relation in context.store.catalog.relations if relation.name == "slow")
    with_another_digest(tmp_path / "lake")
    with in_process(tmp_path / "lake") as (context, client):
        again = next(relation.id for relation in context.store.catalog.relations if relation.name == "slow")
        assert again != slow
        run(client, "ALTER MATERIALIZED VIEW slow SET BACKFILL_RATE_LIMIT = DEFAULT")
        settle(context)
        check(client, {"slow": VIEWS["sums"]}, "begun again")


FINGERPRINTS = """
import sys
sys.path.insert(0, "tests")
from test_queries_page import catalog, plan
from sparkwave.planner.plan.fingerprint import fingerprint
nexmark = catalog("nexmark", "")
for query in (
    "SELECT auction, price FROM (SELECT auction, price, row_number() OVER (PARTITION BY auction ORDER BY date_time) "
    "AS place FROM bid) AS placed WHERE place <= 1",
    "SELECT a.id, count(*) AS n FROM auction a JOIN bid b ON a.id = b.auction AND b.price > a.reserve "
    "WHERE a.id NOT IN (SELECT auction FROM bid WHERE price > 7 GROUP BY auction HAVING count(DISTINCT bidder) > 2) "
    "GROUP BY ROLLUP (a.id)",
):
    print(fingerprint(plan(query, nexmark)).dump())
"""


def test_it_depends_on_the_plan_alone() -> None:
    found = {
        subprocess.run(
            [sys.executable, "-c", FINGERPRINTS], env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.getcwd()},
            capture_output=True, text=True, check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }  # fmt: skip
    assert len(found) == 1


def test_the_case_of_words_has_no_meaning() -> None:
    query = "SELECT sum(distance) OVER (ORDER BY origin ROWS BETWEEN 2 FOLLOWING AND 3 FOLLOWING) AS s FROM routes"
    written = (f"CREATE MATERIALIZED VIEW v AS {text}" for text in (query, query.replace("FOLLOWING", "following")))
    one, other = (fingerprint(plan(sql)).dump() for sql in written)
    assert one == other


def test_what_differs_is_said() -> None:
    one = Fingerprint(Stored((("a", "integer"), ("_count", "bigint")), ("a",)), {}, ("Scan", "Project"), "x")
    assert differences(load(one.dump()), one) == []
    assert differences(one, replace(one, digest="y")) == ["its operators compute something else"]
    assert differences(replace(one, digest=None), replace(one, digest="y")) == []
    assert "Scan, Project, and are Scan" in differences(one, replace(one, operators=("Scan",), digest="y"))[0]
    assert "b integer" in differences(one, replace(one, rows=Stored((("b", "integer"),), ("a",))))[0]
    assert "has the key (a)" in differences(one, replace(one, rows=replace(one.rows, key=("_count",))))[0]
    state = Stored((("g", "integer"),), ("g",))
    assert differences(one, replace(one, states={"s0": state})) == ["the plan has state s0, and none is stored"]
    assert differences(replace(one, states={"s0": state}), one) == ["state s0 is stored, and the plan has none"]
    assert json.loads(one.dump())[0] == 1


def test_a_renamed_table_keeps_its_index_and_sink(tmp_path: Path) -> None:
    """Their plans have the table's name, for which their definitions have no other place."""
    with opened(tmp_path / "lake") as (_, client):
        make(client)
        run(client, "CREATE SINK hole FROM t WITH (connector = 'blackhole')")
        run(client, "ALTER TABLE t RENAME TO renamed")
    with opened(tmp_path / "lake") as (context, client):
        assert set(statuses(context).values()) == {CREATED}
        assert not any(job.error for job in context.store.catalog.jobs)


@pytest.mark.parametrize(
    ("expression", "is_other"),
    [("distance::float8::text", True), ("distance::real || ''", True), ("concat(distance::float8)", True),
     ("distance::text", False), ("distance::float8", False)],
)  # fmt: skip
def test_what_prints_floats_was_something_else(
    monkeypatch: pytest.MonkeyPatch, expression: str, is_other: bool
) -> None:
    made = plan(f"CREATE MATERIALIZED VIEW v AS SELECT {expression} AS x FROM routes")
    now = fingerprint(made)
    monkeypatch.setattr("sparkwave.planner.plan.fingerprint._prints_floats", lambda _: False)
    assert (now != fingerprint(made)) == is_other
