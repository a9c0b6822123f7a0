"""ALTER MATERIALIZED VIEW … AS reads what the view stores, instead of its inputs, where it can."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlglot
from servers import Server
from test_golden import plan_over, relation_of
from test_law import opened, run

from sparkwave.planner.plan.edits import edit
from sparkwave.planner.plan.implication import implies, is_not_true
from sparkwave.server.dispatch import Client

Connection = psycopg.Connection[Any]

TABLES = (
    "CREATE TABLE t (k int PRIMARY KEY, g int, v int, s varchar)",
    "CREATE TABLE d (id int PRIMARY KEY, name varchar)",
    "CREATE TABLE n (a int, b numeric)",
)

MAP = "SELECT k, v, s FROM t WHERE v > 10"
JOINED = "SELECT t.k, d.name, v FROM t JOIN d ON t.g = d.id WHERE v > 20"
GROUPS = "SELECT g, sum(v) AS s, count(*) AS c, max(v) AS m FROM t GROUP BY g"
TOP = "SELECT k, v FROM t ORDER BY v DESC, k LIMIT 9"
FIRST = "SELECT g, k, v FROM (SELECT *, row_number() OVER (PARTITION BY g ORDER BY v, k) AS r FROM t) AS x WHERE r <= 3"
UNION = "SELECT k, v FROM t WHERE v > 10 UNION ALL SELECT id, id * 2 FROM d"

# An old query, a new one, and what the new one's rows are read from; v is the view, v_0 the state of its first
# operator with state.
EDITS = [
    # columns: other names, another order, fewer, computed ones
    (MAP, "SELECT s AS t, v + k AS w, k FROM t WHERE v > 10", "v"),
    (MAP, "SELECT k, upper(s) || v AS u FROM t WHERE v > 10", "v"),
    (JOINED, "SELECT name, v, t.k, coalesce(v, 0) * 2 AS twice FROM t JOIN d ON t.g = d.id WHERE v > 20", "v"),
    ("SELECT k, v * 2 AS w FROM t", "SELECT v * 2 AS x, k FROM t", "v"),
    ("SELECT a, b FROM n", "SELECT b + a AS c FROM n", "v"),
    # fewer rows
    (MAP, "SELECT k, v, s FROM t WHERE v > 30", "v"),
    (MAP, "SELECT k, v FROM t WHERE v > 10 AND s LIKE '%1%'", "v"),
    (MAP, "SELECT k, v, s FROM t WHERE v IN (15, 21, 3)", "v t"),
    (MAP, "SELECT k, v, s FROM t WHERE v = 15 OR v = 21", "v"),
    (JOINED, "SELECT t.k, d.name, v FROM t JOIN d ON t.g = d.id WHERE v > 40 AND name <> 'x3'", "v"),
    # more rows
    (MAP, "SELECT k, v, s FROM t WHERE v >= 5", "v t"),
    (MAP, "SELECT k, v, s FROM t", "v t"),
    (MAP, "SELECT k, v, s FROM t WHERE v > 10 OR s IS NULL", "v t"),
    (MAP, "SELECT k, v, s FROM t WHERE v > 20 OR v < 3", "v t"),
    (JOINED, "SELECT t.k, d.name, v FROM t JOIN d ON t.g = d.id WHERE v > 5", "v t d"),
    (JOINED, "SELECT t.k, d.name, v FROM t JOIN d ON t.g = d.id WHERE v > 20 AND v < 60", "v"),
    # branches
    (MAP, "SELECT k, v, s FROM t WHERE v > 10 UNION ALL SELECT id, id, name FROM d", "v d"),
    (UNION, "SELECT id AS k, id * 2 AS v FROM d UNION ALL SELECT k, v FROM t WHERE v > 10", "v"),
    (UNION, "SELECT k, v FROM t WHERE v > 10", "v"),
    (UNION, f"{UNION} UNION ALL SELECT a, a FROM n", "v n"),
    (UNION, "SELECT k, v FROM t WHERE v > 30 UNION ALL SELECT id, id * 2 FROM d", "v"),
    # groups
    (GROUPS, "SELECT g, c * 2 AS twice, m FROM (SELECT g, count(*) AS c, max(v) AS m FROM t GROUP BY g) AS x", "v"),
    (GROUPS, "SELECT g, avg(v) AS a FROM t GROUP BY g", "v"),
    (GROUPS, f"{GROUPS} HAVING count(*) > 5", "v"),
    (f"{GROUPS} HAVING count(*) > 5", GROUPS, "v_0"),
    (f"{GROUPS} HAVING count(*) > 5", f"{GROUPS} HAVING count(*) > 2", "v v_0"),
    (
        "SELECT g, count(*) AS c FROM t GROUP BY g HAVING count(*) > 5",
        "SELECT g, count(*) AS c FROM t GROUP BY g",
        "v_0",
    ),
    (GROUPS, "SELECT g, sum(v) AS s FROM t WHERE g > 3 GROUP BY g", "v"),
    (GROUPS, f"SELECT x.g, x.c, d.name FROM ({GROUPS}) AS x JOIN d ON d.id = x.g", "v d"),
    # more aggregates of the same groups
    (GROUPS, "SELECT g, sum(v) AS s, min(t.s) AS least FROM t GROUP BY g", "v t"),
    (GROUPS, "SELECT g, max(v) AS m, string_agg(t.s, ',' ORDER BY k) AS all FROM t GROUP BY g", "v t"),
    (GROUPS, f"{GROUPS.replace('max(v)', 'max(v) + max(k)')} HAVING stddev(k) > 2", "v t"),
    (GROUPS, "SELECT g, max(v) AS m, count(t.s) FILTER (WHERE k > 9) AS f FROM t WHERE g > 2 GROUP BY g", "v t"),
    (f"{GROUPS} HAVING count(*) > 5", "SELECT g, avg(v) AS a, avg(k) AS b FROM t GROUP BY g", "v_0 t"),
    (
        GROUPS,
        "SELECT x.*, name FROM (SELECT g, sum(v) AS s, max(k) AS m FROM t GROUP BY g) AS x JOIN d ON g = id",
        "v t d",
    ),
    ("SELECT sum(v) AS s FROM t", "SELECT sum(v) AS s, max(s) AS m FROM t", "v t"),
    (
        "SELECT name, sum(v) AS s FROM t JOIN d ON g = id WHERE t.s <> 's3' GROUP BY name",
        "SELECT name, sum(v) AS s, max(k) AS k FROM t JOIN d ON g = id WHERE t.s <> 's3' GROUP BY name",
        "v t d",
    ),
    (
        "SELECT v % 5 AS k, max(k) AS m FROM t GROUP BY v % 5",
        "SELECT max(k) AS m, max(s) AS s FROM t GROUP BY v % 5",
        "v t",
    ),
    # first rows
    (TOP, "SELECT k, v FROM t ORDER BY v DESC, k LIMIT 4", "v"),
    (TOP, "SELECT k, v FROM t ORDER BY v DESC, k LIMIT 4 OFFSET 3", "v"),
    (FIRST, FIRST.replace("r <= 3", "r <= 2"), "v"),
]

# What a full backfill has to read.
FULL = [
    (MAP, "SELECT k, g FROM t WHERE v > 10"),
    (MAP, "SELECT k, v FROM t WHERE v > 10 AND g = 2"),
    (MAP, "SELECT t.k, v FROM t JOIN d ON t.g = d.id"),
    (GROUPS, "SELECT g, min(v) AS s FROM t GROUP BY g"),
    (GROUPS, "SELECT g, sum(v) AS s FROM t WHERE v > 3 GROUP BY g"),
    (GROUPS, "SELECT s, count(*) AS c FROM t GROUP BY s"),
    (GROUPS, "SELECT g, sum(v) AS s, round(stddev(v), 6) AS d FROM t GROUP BY g"),  # the same columns are read
    (GROUPS, "SELECT g, sum(v) AS s, max(k) AS m FROM t WHERE k > 5 GROUP BY g"),
    (GROUPS, "SELECT g, v, count(*) AS c, max(k) AS m FROM t GROUP BY g, v"),
    (TOP, "SELECT k, v FROM t ORDER BY v DESC, k LIMIT 10"),
    (TOP, "SELECT k, v FROM t ORDER BY v, k LIMIT 3"),
    ("SELECT k, v FROM t a WHERE v > 1", "SELECT k, v FROM t b WHERE v > 1"),
]


@pytest.mark.parametrize(("old", "new", "read"), [*EDITS, *((*pair, "") for pair in FULL)])
def test_what_is_read(old: str, new: str, read: str) -> None:
    before, after = plan_over(TABLES, old), plan_over(TABLES, new)
    view = replace(relation_of(99, "v", before.columns, before.key_columns, "materialized view"))
    plan = edit(before, after, view)
    tables = {"__internal_99_s0_hashagg": "v_0"}
    names = (scan.relation.lake_table.name for scan in plan.scans) if plan is not None else ()
    assert {tables.get(name, name) for name in names} == set(read.split())


def test_columns_of_further_aggregates() -> None:
    """The stored groups are not computed again: of the table, only what the new aggregate needs is read."""
    old = "SELECT g, sum(v) AS total, max(s) AS most FROM t WHERE g > 1 GROUP BY g"
    before, after = plan_over(TABLES, old), plan_over(TABLES, old.replace("AS most", "AS most, min(k) AS least"))
    plan = edit(before, after, replace(relation_of(99, "v", before.columns, before.key_columns, "materialized view")))
    assert plan is not None
    [state] = plan.states
    assert state.computed is not None
    assert [call.name for call in state.computed.calls] == ["_min(t.k)"]
    read = {scan.relation.name: set(scan.columns) for scan in plan.scans}
    assert read == {"t": {"g", "k"}, "v": {"g", "most", "_count", "_count(t.v)", "_sum(t.v)"}}


@pytest.fixture(scope="module")
def db(in_process_server: Server) -> Iterator[Connection]:
    """A schema of the tests' own."""
    with in_process_server.connect() as opened:
        name = f"s{time.time_ns()}"
        opened.execute(f"CREATE SCHEMA {name}")
        opened.execute(f"SET search_path = {name}")
        for table in TABLES:
            opened.execute(table)
        opened.execute("INSERT INTO t SELECT i, i % 7, i * 37 % 101, 's' || i % 9 FROM range(90) AS r(i)")
        opened.execute("INSERT INTO d SELECT i, 'x' || i FROM range(9) AS r(i)")
        opened.execute("INSERT INTO n SELECT i % 5, i / 3.0 FROM range(20) AS r(i)")
        yield opened


def rows(db: Connection, sql: str) -> list[tuple[Any, ...]]:
    return sorted(db.execute(sql).fetchall(), key=repr)


def change(db: Connection, rng: random.Random) -> None:
    """Add, change and remove some rows of all tables."""
    for _ in range(3):
        k, v = rng.randrange(120), rng.choice(["NULL", str(rng.randrange(110))])
        db.execute(f"INSERT INTO t VALUES ({k}, {rng.randrange(8)}, {v}, {rng.choice(['NULL', repr(f's{k % 9}')])})")
        db.execute(f"INSERT INTO n VALUES ({rng.randrange(5)}, {rng.randrange(100)} / 7.0)")
    db.execute(f"UPDATE t SET g = g + 1, v = v + 5 WHERE k % 13 = {rng.randrange(13)}")
    db.execute(f"DELETE FROM t WHERE k % 17 = {rng.randrange(17)}")
    db.execute(f"DELETE FROM n WHERE a = {rng.randrange(5)} AND b > 5")
    db.execute(f"UPDATE d SET name = 'y' || name WHERE id = {rng.randrange(9)}")


def edited(db: Connection, queries: list[str], rng: random.Random) -> None:
    """Give a view one query after the other, with changes in between; it has the rows of each, and right states."""
    db.execute(f"CREATE MATERIALIZED VIEW m AS {queries[0]}")
    for query in queries[1:]:
        change(db, rng)
        db.execute(f"ALTER MATERIALIZED VIEW m AS {query}")
        assert rows(db, "SELECT * FROM m") == rows(db, query), query
        change(db, rng)
        db.execute("FLUSH")
        assert rows(db, "SELECT * FROM m") == rows(db, query), query
        audit = db.execute("AUDIT MATERIALIZED VIEW m").fetchone()
        assert audit is not None and audit[1] == "PROVEN", (query, audit)
    db.execute("DROP MATERIALIZED VIEW m")


def test_an_edited_view_has_the_rows_of_its_query(db: Connection) -> None:
    rng = random.Random(7)
    for old, new, _ in rng.sample(EDITS, 3):
        edited(db, [old, new, old], rng)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_all_edits(db: Connection) -> None:
    rng = random.Random(8)
    for old, new in [(old, new) for old, new, _ in EDITS] + FULL:
        edited(db, [old, new, old], rng)


IMPLIED = [
    ("x > 5", "x > 3"), ("x > 5", "x >= 5"), ("x >= 5", "x >= 5.0"), ("3 > x", "x <= 3"), ("x = 4", "x >= 4"),
    ("x = 4", "x IN (3, 4)"), ("x IN (1, 2)", "x <= 1 OR x = 2"), ("x = 'a'", "x IN ('b', 'a')"), ("x < -2", "x < 0"),
    ("x > CAST('2024-01-02' AS DATE)", "x > CAST('2024-01-01' AS DATE)"), ("x > 1 OR y > 2", "y > 2 OR x > 0"),
]  # fmt: skip
NOT_IMPLIED = [
    ("x > 3", "x > 5"), ("x >= 5", "x > 5"), ("x > 5", "y > 3"), ("x > 5", "x < 9"), ("x = 'a'", "x <> 'b'"),
    ("x IN (1, 2)", "x = 1"), ("x > 'b'", "x > 'a'"), ("x >= 5", "x > 4"), ("x > 1 OR y > 2", "x > 1"),
    ("x IN (1, NULL)", "x >= 1"),
]  # fmt: skip


def parsed(text: str) -> sqlglot.exp.Expr:
    return sqlglot.parse_one(text, dialect="postgres")


@pytest.mark.parametrize(
    ("one", "other", "expected"), [*((*p, True) for p in IMPLIED), *((*p, False) for p in NOT_IMPLIED)]
)
def test_implication(one: str, other: str, expected: bool) -> None:
    assert implies(parsed(one), parsed(other)) is expected


def test_the_rest_of_a_range_is_a_range() -> None:
    assert is_not_true([parsed("x > 10")], [parsed("x > 5")]).sql() == "x <= 10"
    assert is_not_true([parsed("x > 10")], [parsed("y > 5")]).sql() == "NOT COALESCE((x > 10), FALSE)"


def counted(client: Client, sql: str) -> Counter[tuple[object, ...]]:
    return Counter(run(client, sql))


def test_between_two_epochs(tmp_path: Path) -> None:
    """Tables are ahead of the views when an edit begins; it takes the changes up that the view's rows lack."""
    with opened(tmp_path, backfill_engine="auto", streaming_engine="duckdb") as (context, client):
        run(client, "CREATE TABLE t (k int PRIMARY KEY, g int, v numeric)")
        run(client, "INSERT INTO t SELECT i, i % 7, i / 3.0 FROM range(200) AS r(i)")
        run(client, "CREATE MATERIALIZED VIEW of_t AS SELECT g, sum(v) AS s, count(*) AS c FROM t GROUP BY g")
        run(client, "CREATE MATERIALIZED VIEW m AS SELECT t.k, t.v, of_t.s FROM t JOIN of_t ON t.g = of_t.g")
        run(client, "DELETE FROM t WHERE k % 10 = 0")  # there is no barrier before the edit begins
        run(client, "INSERT INTO t VALUES (1000, 3, NULL), (1001, 4, 2.5)")
        query = "SELECT of_t.s * 2 AS twice, t.k FROM t JOIN of_t ON t.g = of_t.g WHERE t.v > 20"
        run(client, "SET background_ddl = true")
        run(client, f"ALTER MATERIALIZED VIEW m AS {query}")
        made = context.store.catalog.replacement(context.store.catalog.find("dev", "public", "m").id)  # type: ignore[union-attr]
        assert made is not None
        assert context.store.catalog.job_by_id[made.id].is_edit
        run(client, "UPDATE t SET v = v + 1 WHERE g = 4")
        run(client, "FLUSH")
        run(client, "WAIT")
        run(client, "FLUSH")
        assert counted(client, "SELECT * FROM m") == counted(client, query)
        assert run(client, "AUDIT MATERIALIZED VIEW m")[0][1] == "PROVEN"


@pytest.mark.parametrize("drop", ["MATERIALIZED VIEW m", "TABLE t CASCADE", "SCHEMA public CASCADE"])
@pytest.mark.parametrize("begins", ["before", "meanwhile"])
def test_a_view_is_dropped_while_it_is_edited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drop: str, begins: str
) -> None:
    """What is to replace the view goes, too, also where it comes after DROP has looked for what depends on it."""
    with opened(tmp_path, backfill_engine="auto", streaming_engine="duckdb") as (context, client):
        run(client, "CREATE TABLE t (k int PRIMARY KEY, v int)")
        run(client, "INSERT INTO t SELECT i, i FROM range(200) AS r(i)")
        run(client, "CREATE MATERIALIZED VIEW m AS SELECT k, v FROM t WHERE v > 50")
        run(client, "SET background_ddl = true")
        run(client, "SET backfill_rate_limit = 0")
        cancel = context.jobs.cancel
        seen: list[tuple[int, ...]] = []

        def edited(ids: tuple[int, ...]) -> list[int]:
            found = cancel(ids)
            if not seen:
                run(client, "ALTER MATERIALIZED VIEW m AS SELECT k, v * 2 AS v FROM t")
            seen.append(ids)
            return found

        if begins == "before":
            edited(())
        else:
            monkeypatch.setattr(context.jobs, "cancel", edited)
        run(Client(context, {"user": "root"}), f"DROP {drop}")
        assert [relation for relation in context.store.catalog.relations if not relation.is_table] == []
        assert begins == "before" or [len(ids) for ids in seen] == [0, 1]


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize(
    ("old", "query"),
    [
        (
            "SELECT t.k, d.name, t.v FROM t JOIN d ON t.g = d.id WHERE v > 50",
            "SELECT t.k, d.name, t.v * 2 AS w FROM t JOIN d ON t.g = d.id WHERE t.v > 10",
        ),
        (
            "SELECT k % 1000 AS m, sum(v) AS s FROM t GROUP BY k % 1000",
            "SELECT k % 1000 AS m, sum(v) AS s, max(g) AS x FROM t GROUP BY k % 1000 HAVING count(*) > 3",
        ),
        (
            "SELECT k % 1000 AS m, sum(v) AS s FROM t GROUP BY k % 1000",
            "SELECT k % 1000 AS m, sum(v) AS s, string_agg(g::varchar, ',' ORDER BY k) AS x FROM t GROUP BY k % 1000",
        ),
    ],
)
def test_in_slices_on_spark_with_a_kill(tmp_path: Path, old: str, query: str) -> None:
    """A server that is killed in the middle of an edit goes on with the slices that are left."""
    tables = ("CREATE TABLE t (k int PRIMARY KEY, g int, v int)", "CREATE TABLE d (id int PRIMARY KEY, name varchar)")
    server = Server(tmp_path / "data", fills_on_spark=True)
    try:
        with server.connect() as own:
            for table in tables:
                own.execute(table)
            own.execute("INSERT INTO t SELECT i, i % 9, i % 100 FROM generate_series(1, 40000) AS r(i)")
            own.execute("INSERT INTO d SELECT i, 'n' || i FROM generate_series(0, 8) AS r(i)")
            own.execute(f"CREATE MATERIALIZED VIEW m AS {old}")
            own.execute("ALTER SYSTEM SET backfill_slice_rows = 4000")
            assert "an edit" in str(rows(own, f"EXPLAIN (BACKFILL, COST) ALTER MATERIALIZED VIEW m AS {query}"))
            own.execute("SET background_ddl = true")
            own.execute("SET backfill_rate_limit = 8000")
            own.execute(f"ALTER MATERIALIZED VIEW m AS {query}")
            done = "SELECT count(*) FROM rw_catalog.rw_ddl_progress WHERE progress NOT LIKE '0.00%%'"
            deadline = time.monotonic() + 120
            while own.execute(done).fetchone() == (0,) and time.monotonic() < deadline:
                time.sleep(0.05)
            own.execute("DELETE FROM t WHERE k % 7 = 0")
        server.kill()
        server = Server(tmp_path / "data")
        with server.connect() as own:
            own.execute("INSERT INTO t VALUES (99999, 3, 77)")
            own.execute("WAIT")
            own.execute("FLUSH")
            assert rows(own, "SELECT * FROM m") == rows(own, query)
            audit = own.execute("AUDIT MATERIALIZED VIEW m").fetchone()
            assert audit is not None and audit[1] == "PROVEN", audit
    finally:
        server.kill()


CONDITIONS = (
    "v > 10", "v > 30", "v <= 60", "v BETWEEN 20 AND 70", "v IN (3, 21, 40, 55)", "v = 40", "g > 2", "g <> 4",
    "s LIKE '%1%'", "s = 's3'", "s IN ('s1', 's3', 's5')", "s IS NOT NULL", "v < 15 OR v > 80", "k % 3 = 0",
    "NOT v > 50",
)  # fmt: skip
COLUMNS = ("g", "v", "s", "v * 2 AS twice", "upper(s) AS big", "coalesce(v, 0) + g AS sum", "v > 50 AS is_high")
CALLS = ("count(*) AS n", "sum(v) AS total", "max(v) AS most", "min(s) AS least", "avg(v) AS mean")
FURTHER = (
    "max(k) AS last", "sum(k) AS keys", "string_agg(s, ',' ORDER BY k) AS texts", "count(s) AS present",
    "sum(v) FILTER (WHERE k > 50) AS some", "round(stddev(k), 6) AS spread", "bool_or(s = 's1') AS any",
    "array_to_string(array_agg(k ORDER BY k), ',') AS list", "max(v % 7) AS rest", "count(DISTINCT k) AS distinct",
)  # fmt: skip
GROUPED = (
    "SELECT g, {} FROM t GROUP BY g", "SELECT s, {} FROM t GROUP BY s", "SELECT g, s, {} FROM t GROUP BY g, s",
    "SELECT v % 5 AS m, {} FROM t GROUP BY v % 5", "SELECT {} FROM t", "SELECT g, {} FROM t WHERE s <> 's3' GROUP BY g",
    "SELECT name, {} FROM t JOIN d ON g = id GROUP BY name", "SELECT g, {} FROM t WHERE g > 2 GROUP BY g",
    "SELECT g, {} FROM t GROUP BY g HAVING count(*) > 4",
    "SELECT name, x.* FROM (SELECT g, {} FROM t GROUP BY g) AS x JOIN d ON g = id",
)  # fmt: skip


def random_query(rng: random.Random, shape: str) -> str:
    """A query over t and d: of rows, of a join, of groups, or of a union."""
    where = " AND ".join(rng.sample(CONDITIONS, rng.randrange(3))) or "true"
    columns = ", ".join(["k", *rng.sample(COLUMNS, rng.randrange(1, 5))])
    match shape:
        case "rows":
            return f"SELECT {columns} FROM t WHERE {where}"
        case "join":
            return f"SELECT {columns}, d.name FROM t JOIN d ON t.g = d.id WHERE {where}"
        case "groups":
            having = rng.choice(["", " HAVING count(*) > 2", " HAVING count(*) > 4"])
            where = rng.choice(["true", "g > 2", "g <> 4"])
            return (
                f"SELECT g, {', '.join(rng.sample(CALLS, rng.randrange(1, 4)))} FROM t WHERE {where} GROUP BY g{having}"
            )
    branches = rng.sample(
        [f"SELECT k, v FROM t WHERE {where}", "SELECT id AS k, id AS v FROM d", "SELECT k, g FROM t"], 2
    )
    return " UNION ALL ".join(branches)


def random_pair(rng: random.Random) -> tuple[str, str]:
    """Two queries; of the same groups, the second one has other aggregates."""
    shape = rng.choice(["rows", "rows", "join", "groups", "union", "further", "further"])
    if shape != "further":
        return random_query(rng, shape), random_query(rng, shape)
    one, *others = rng.sample(GROUPED, 1) if rng.random() < 0.8 else rng.sample(GROUPED, 2)
    calls = rng.sample(CALLS + FURTHER, rng.randrange(2, 6))
    shared = calls[: rng.randrange(1, len(calls))]
    pair = [one.format(", ".join(shared)), (*others, one)[0].format(", ".join(calls))]
    return tuple(rng.sample(pair, 2))  # type: ignore[return-value]


def check_random_pairs(directory: Path, seed: int, number: int) -> Counter[str]:
    """Edit views from one random query to another. Returns how many fills were edits, and had further aggregates."""
    rng, found = random.Random(seed), Counter[str]()
    with opened(directory, backfill_engine="auto", streaming_engine="duckdb") as (_, client):
        for table in TABLES[:2]:
            run(client, table)
        run(client, "INSERT INTO t SELECT i, i % 7, i * 37 % 101, 's' || i % 9 FROM range(90) AS r(i)")
        run(client, "INSERT INTO d SELECT i, 'x' || i FROM range(9) AS r(i)")
        for _ in range(number):
            old, new = random_pair(rng)
            run(client, f"CREATE MATERIALIZED VIEW m AS {old}")
            for query in (new, old):
                k, v = rng.randrange(120), rng.randrange(110)
                run(
                    client,
                    f"INSERT INTO t VALUES ({k}, {rng.randrange(8)}, {v}, 's{k % 9}'), ({200 + k}, 3, NULL, NULL)",
                )
                run(client, f"DELETE FROM t WHERE k % 17 = {rng.randrange(17)}")
                lines = str(run(client, f"EXPLAIN (BACKFILL, COST) ALTER MATERIALIZED VIEW m AS {query}"))
                found.update(edits="an edit" in lines, further="of the stored groups" in lines)
                run(client, f"ALTER MATERIALIZED VIEW m AS {query}")
                run(client, f"UPDATE t SET v = v + 7 WHERE k % 11 = {rng.randrange(11)}")
                run(client, "FLUSH")
                assert counted(client, "SELECT * FROM m") == counted(client, query), (old, new, query)
                assert run(client, "AUDIT MATERIALIZED VIEW m")[0][1] == "PROVEN", (old, new, query)
            run(client, "DROP MATERIALIZED VIEW m")
    return found


def test_random_pairs(tmp_path: Path) -> None:
    found = check_random_pairs(tmp_path / "quick", 4, 3)
    assert found["edits"] and found["further"]


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_many_random_pairs(tmp_path: Path) -> None:
    counters = (check_random_pairs(tmp_path / str(seed), seed, 20) for seed in range(5))
    found = sum(counters, Counter[str]())
    assert found["edits"] > 50 and found["further"] > 5, found
