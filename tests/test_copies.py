"""Epochs look rows up in copies in memory, and what they find there is what the lake has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from test_retention import check, forget, opened, run

from sparkwave.catalog.counters import EPOCH_CACHE_BYTES
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.names import DELTAS_SCHEMA, EPOCHS_SCHEMA, METADATA
from sparkwave.executor.epochs import checkpoints, duckdb_engine
from sparkwave.executor.memory import copies, shared_buffer
from sparkwave.executor.memory.delta_tables import WORN_ROWS, kept_table
from sparkwave.server.context import Context
from sparkwave.server.dispatch import Client

TABLES = (
    "CREATE TABLE f (id int PRIMARY KEY, d int, v int)",
    "CREATE TABLE d (id int PRIMARY KEY, name varchar, region int)",
    "INSERT INTO f SELECT i, i % 10, i FROM range(100) r(i)",
    "INSERT INTO d SELECT i, 'name ' || i, i % 3 FROM range(10) r(i)",
)
# Of an outer join rows are looked up as they are and as they were; the group's rows are a state of their own.
JOINED = "SELECT d.region, d.name, f.v FROM f LEFT JOIN d ON f.d = d.id"
GROUPED = "SELECT d.region, max(f.v) AS most, count(DISTINCT f.v) AS n FROM f JOIN d ON f.d = d.id GROUP BY d.region"
VIEWS = {"joined": JOINED, "grouped": GROUPED, "above": "SELECT region, count(*) AS n FROM joined GROUP BY region"}


def make(client: Client) -> None:
    run(client, *TABLES, *(f"CREATE MATERIALIZED VIEW {name} AS {query}" for name, query in VIEWS.items()))


def change(client: Client, *statements: str) -> None:
    """An epoch with these changes, after which all views are right."""
    run(client, *statements)
    for name, query in VIEWS.items():
        check(client, name, query)


def warm_up(client: Client) -> None:
    """Epochs that look rows up in both tables, so that there are copies of them."""
    for v in range(3):
        change(client, f"UPDATE f SET v = {1000 + v} WHERE id = {v}", f"UPDATE d SET region = {v} WHERE id = {v}")
    assert cached() > 0


def cached() -> float:
    return EPOCH_CACHE_BYTES._value.get()


@pytest.mark.parametrize("least_indexed", [1, copies.LARGE_ROWS])
def test_what_comes_between_is_taken_up(
    tmp_path: Path, least_indexed: int, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """By indexes and by scans."""
    monkeypatch.setattr(copies, "LARGE_ROWS", least_indexed)
    with opened(tmp_path) as (_, client):
        make(client)
        warm_up(client)
        change(client, "DELETE FROM d WHERE id = 9")
        change(client, "INSERT INTO d VALUES (9, 'back', 1)", "UPDATE d SET region = 2 WHERE id = 9")
        # Rows that come and go, and rows that are as they were.
        change(client, "INSERT INTO d VALUES (10, 'new', 1)", "DELETE FROM d WHERE id = 10")
        change(client, "UPDATE d SET region = 7 WHERE id = 5", "UPDATE d SET region = 2 WHERE id = 5")
        change(client, "INSERT INTO f VALUES (200, 9, 1), (201, 10, 2)")
        # Of `d` alone, which nobody looks up, and then of both.
        change(client, "UPDATE d SET region = 5 WHERE id IN (1, 2)", "INSERT INTO d VALUES (10, 'late', 4)")
        change(client, "UPDATE d SET region = 6 WHERE id = 1", "UPDATE f SET d = 2 WHERE id < 20")
        change(client, "DELETE FROM f WHERE id < 50")


def indexes(cursor: Cursor) -> set[str]:
    """The columns of copies that have an index, as `copy_<n>_<column>`."""
    return {name for (name,) in cursor.execute("SELECT index_name FROM duckdb_indexes()").fetchall()}


def test_few_rows_of_many_are_looked_up_by_an_index(tmp_path: Path) -> None:
    """Not by columns with few values, and not by changes of many rows; a worn copy gets its indexes again."""
    with opened(tmp_path, refresh_mode="incremental") as (context, client):
        cursor, text = context.coordinator._cursor, "repeat('n', CASE WHEN i < 9 THEN 9000 ELSE 1 END) || i"
        run(
            client,
            "CREATE TABLE many (id int PRIMARY KEY, kind int, v int, tags int[], name text)",
            f"INSERT INTO many SELECT i, i % 5, i, ARRAY[i], {text} FROM generate_series(0, 29999) r(i)",
            "CREATE TABLE few (id int PRIMARY KEY, one int, kind int, tags int[], name text)",
            f"INSERT INTO few SELECT i, i * 7, i % 5, ARRAY[i], {text} FROM generate_series(0, 99) r(i)",
        )
        queries = {
            "by_key": "SELECT f.id, f.one, m.v FROM few f JOIN many m ON f.one = m.id",
            "by_kind": "SELECT f.id, count(*) AS n FROM few f JOIN many m ON f.kind = m.kind GROUP BY f.id",
            "by_both": "SELECT f.id, m.v FROM few f LEFT JOIN many m ON m.kind = f.kind AND m.id = f.one",
            "by_tags": "SELECT f.id, m.id AS other FROM few f JOIN many m ON m.tags = f.tags",
            "by_name": "SELECT f.id, m.id AS other FROM few f JOIN many m ON m.name = f.name",
        }
        for name, query in queries.items():
            run(client, f"CREATE MATERIALIZED VIEW {name} AS {query}")

        def change(*statements: str) -> None:
            run(client, *statements)
            for name, query in queries.items():
                check(client, name, query)

        for number in range(3):
            change(f"UPDATE few SET one = {3000 + number} WHERE id = {number}")
        [index] = indexes(cursor)
        assert index.startswith("copy_") and index.endswith("_id")
        change("UPDATE many SET v = v + 1 WHERE id % 1000 = 0", "UPDATE few SET one = one + 1000 WHERE id % 2 = 0")
        change(
            "DELETE FROM many WHERE id < 50", "INSERT INTO few (id, one, kind) VALUES (1000, 3000, 1), (1001, 49, 4)"
        )
        change("INSERT INTO many (id, kind, v) VALUES (10, 0, -1), (3000, 1, -3)", "DELETE FROM few WHERE id = 1001")
        change("UPDATE many SET v = -v")  # more rows than an index is used for, and the copy is worn
        for number in range(3):
            change(f"UPDATE few SET one = {number} WHERE id = {number + 50}")
        assert {name.rpartition("_")[2] for name in indexes(cursor)} == {"id"} and index not in indexes(cursor)


def test_few_rows_that_many_changes_meet_are_looked_up_by_an_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """Of many changed lines few are of parts that the view reads, so that few others are looked up."""
    filled: dict[str, str] = {}
    usually = duckdb_engine.fill_table

    def fill(cursor: Cursor, name: str, query: str, *rest: Any, **named: Any) -> int:
        filled[name.rpartition("_retracts_")[2]] = query
        return usually(cursor, name, query, *rest, **named)

    monkeypatch.setattr(duckdb_engine, "fill_table", fill)
    query = """SELECT l.id, l.v, s.most FROM part p JOIN line l ON l.part = p.id
               JOIN (SELECT part, max(v) AS most FROM line GROUP BY part) s ON s.part = p.id WHERE p.brand = 'x'"""
    with opened(tmp_path, refresh_mode="incremental") as (_, client):
        run(
            client,
            "CREATE TABLE part (id int PRIMARY KEY, brand varchar)",
            "CREATE TABLE line (id int PRIMARY KEY, part int, v int)",
            "INSERT INTO part SELECT i, CASE WHEN i % 100 = 0 THEN 'x' ELSE 'y' END FROM generate_series(1, 4000) r(i)",
            "INSERT INTO line SELECT i, i % 4000, i FROM generate_series(1, 30000) r(i)",
            f"CREATE MATERIALIZED VIEW shown AS {query}",
        )
        for number, rows in enumerate((2000, 2000, 2000, 2000, 2000, 4000)):  # lines are read twice
            filled.clear()
            run(client, f"UPDATE line SET v = v + 1 WHERE id BETWEEN {1000 * number + 1} AND {1000 * number + rows}")
            check(client, "shown", query)
        assert any('"?since" < "?until"' in text for text in filled.values())


def test_an_index_is_used(tmp_path: Path) -> None:
    """What DuckDB needs for that: another version may need something else."""
    with opened(tmp_path) as (context, _):
        cursor = context.coordinator._cursor
        cursor.execute("CREATE TEMP TABLE many AS SELECT i % 7 AS b, i AS a, i AS c FROM range(100000) r(i)")
        cursor.execute("CREATE INDEX many_a ON many (a); CREATE TEMP TABLE few AS SELECT 77 AS a")
        copy = copies.Copy("many", dict.fromkeys("bac", "BIGINT"), 100_000, 24, 0.0)
        join = "EXPLAIN (ANALYZE, FORMAT json) SELECT b, c FROM {} AS m JOIN few ON m.a = few.a WHERE b > -1 AND c > 1"
        for rows, is_used in ((copy.by("a", "b < c + 10"), True), ("many", False)):
            [(_, plan)] = cursor.execute(join.format(rows)).fetchall()
            assert ("Index Scan" in plan) == is_used, plan


def in_memory(context: Context) -> set[str]:
    """The tables that the epochs so far have left in memory."""
    with context.coordinator.barrier_lock:
        cursor = context.coordinator._cursor
        schemas = f"schema_name IN ('{EPOCHS_SCHEMA}', '{DELTAS_SCHEMA}')"
        query = f"SELECT table_name FROM duckdb_tables() WHERE temporary OR {schemas}"
        found = {name for (name,) in cursor.execute(query).fetchall()} - {"anchor"}
        for name in found - {name for name in found if name.startswith(("copy_", "pending_"))}:
            assert name.startswith(("j", "feed_", "net_"))
            assert cursor.execute(f"SELECT count(*) <= {WORN_ROWS} FROM {kept_table(name)}").fetchall() == [(True,)]
    return found


@pytest.mark.parametrize("mode", ["incremental", "full"])
def test_what_an_epoch_leaves_in_memory(tmp_path: Path, mode: str) -> None:
    """Copies, what no checkpoint has stored, and small tables to be filled again; of dropped views not those either."""
    with opened(tmp_path, refresh_mode=mode) as (context, client):
        make(client)
        warm_up(client)
        assert in_memory(context)
        run(client, *(f"DROP MATERIALIZED VIEW {name}" for name in ("above", "joined", "grouped")))
        context.coordinator.barrier()
        kept = len(in_memory(context))
        assert kept <= 2, "those of the tables"
        run(client, "DROP TABLE f", "DROP TABLE d")
        context.coordinator.barrier()
        assert in_memory(context) == set()
        assert cached() == 0


INNER = "SELECT f.id, f.v, d.name, d.region FROM f JOIN d ON f.d = d.id"


@pytest.mark.parametrize("is_forgotten", [False, pytest.param(True, marks=pytest.mark.long)])
def test_epochs_that_do_not_look_it_up(tmp_path: Path, is_forgotten: bool) -> None:
    """A change of one side alone looks nothing up there; what that was is known later, or is forgotten."""

    def change(*statements: str) -> None:
        run(client, *statements)
        check(client, "inside", INNER)
        if is_forgotten:
            forget(context)

    with opened(tmp_path) as (context, client):
        run(client, *TABLES, f"CREATE MATERIALIZED VIEW inside AS {INNER}")
        for v in range(3):
            change(f"UPDATE f SET v = {1000 + v} WHERE id = {v}", f"UPDATE d SET region = {v} WHERE id = {v}")
        assert cached() > 0
        for n in range(3):
            change(f"INSERT INTO f VALUES ({200 + n}, {n}, 1)", f"DELETE FROM f WHERE id = {n + 50}")
            change(f"UPDATE d SET region = 100 WHERE id = {n}", f"UPDATE f SET v = {n} WHERE d = {n}")
            change(f"UPDATE d SET name = 'other' WHERE id = {n}", f"INSERT INTO d VALUES ({20 + n}, 'new', 1)")
            change(f"UPDATE f SET d = {20 + n} WHERE id = {200 + n}", f"UPDATE d SET region = 7 WHERE id = {n}")


def test_changes_of_many_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "MANY_ROWS", 5)
    with opened(tmp_path) as (_, client):
        make(client)
        warm_up(client)
        for n in range(3):
            change(client, f"UPDATE f SET v = v + {n}", "UPDATE d SET region = region + 1 WHERE id > 1")
        change(client, "DELETE FROM d", "INSERT INTO f VALUES (300, 1, 1)")
        change(client, "INSERT INTO d SELECT i, 'again', i FROM range(5) r(i)")


def test_tables_without_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path) as (_, client):
        make(client)
        warm_up(client)
        run(client, "ALTER SYSTEM SET epoch_cache_mib = 0")
        change(client, "UPDATE f SET v = 1 WHERE id = 1", "UPDATE d SET region = 9 WHERE id = 1")
        assert cached() == 0
        change(client, "UPDATE f SET v = 2 WHERE id = 1", "UPDATE d SET region = 8 WHERE id = 1")
        assert cached() == 0
        run(client, "ALTER SYSTEM SET epoch_cache_mib = DEFAULT")
        warm_up(client)
        monkeypatch.setattr(copies, "MOST_ROWS", 50)
        run(client, "ALTER SYSTEM SET epoch_cache_mib = 0")
        change(client, "UPDATE f SET v = 3 WHERE id = 1", "UPDATE d SET region = 9 WHERE id = 1")
        run(client, "ALTER SYSTEM SET epoch_cache_mib = DEFAULT")
        warm_up(client)  # with the smaller ones


class Explained:
    """A cursor that keeps how many rows come out of the copies that its statements scan."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self.scanned: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)

    def execute(self, sql: str, *rest: Any) -> Cursor:
        if sql.startswith("CREATE") and "copy_" in sql and f"{METADATA}." not in sql:
            [(_, plan)] = self._cursor.execute(f"EXPLAIN (ANALYZE, FORMAT json) {sql}").fetchall()
            self.scanned += scanned(json.loads(plan))
        return self._cursor.execute(sql, *rest)


def scanned(operator: dict[str, Any]) -> list[int]:
    """Rows of each scan of a copy below an operator of a plan."""
    below = [rows for child in operator.get("children", ()) for rows in scanned(child)]
    is_copy = ".copy_" in operator.get("extra_info", {}).get("Table", "")
    return [*below, operator["operator_cardinality"]] if is_copy else below


def test_many_keys_far_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a large copy an epoch reads what is near the keys, of which it has a list."""
    query = "SELECT f.id, f.v, big.v AS w FROM f JOIN big ON f.id = big.id"
    with opened(tmp_path, refresh_mode="incremental") as (context, client):
        run(client, "CREATE TABLE f (id int PRIMARY KEY, v int)", "CREATE TABLE big (id int PRIMARY KEY, v int)")
        run(client, "INSERT INTO big SELECT i, i FROM range(400000) r(i)", f"CREATE MATERIALIZED VIEW v AS {query}")
        for n in range(3):
            cursor = Explained(context.coordinator._cursor)
            with monkeypatch.context() as patched:
                patched.setattr(context.coordinator, "_cursor", cursor)
                ends = f"SELECT abs(399999 * (i % 2) - {n} * 200 - i), i FROM range(200) r(i)"
                run(client, f"INSERT INTO f {ends}", "FLUSH")
        check(client, "v", query)
        assert cursor.scanned and max(cursor.scanned) < 300_000


def test_copies_made_ahead(tmp_path: Path) -> None:
    """The next reader that finds none gets one, unless it is forgotten before; there is none without room."""
    with opened(tmp_path) as (context, client):
        found, cursor, finished = context.coordinator._engines._copies, context.lake.cursor(), list[copies.Copy]()

        def make(name: str, maker: str) -> None:
            found.make_ahead(cursor, ("owner", name), "FROM range(10)", maker, finished.append)

        for name, maker in (("a", "one"), ("b", "two"), ("a", "two")):
            make(name, maker)
        assert [copy.rows for copy in finished] == [10, 10]
        found.forget_ahead(lambda _, maker: maker == "one")
        assert found.get(("owner", "a")) is None
        assert found.get(("owner", "b")) is found.find(("owner", "b")) is finished[1]
        assert found._left == [finished[0].name]
        run(client, "ALTER SYSTEM SET epoch_cache_mib = 0")
        make("c", "two")
        assert found.get(("owner", "c")) is None


def test_an_epoch_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After some of its changes are in memory, which are undone; and a checkpoint, which is tried again."""
    with opened(tmp_path) as (context, client):
        make(client)
        warm_up(client)
        run(client, "UPDATE f SET v = 5000 WHERE id = 3", "UPDATE d SET region = 1 WHERE id = 3")
        fail_once(context, monkeypatch)
        change(client, "UPDATE f SET v = 5001 WHERE id = 3", "UPDATE d SET region = 2 WHERE id = 3")
        warm_up(client)


def fail_once(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError("this disk is broken")

    with monkeypatch.context() as patched:
        patched.setattr(shared_buffer, "_statements", fail)
        with pytest.raises(OSError, match="broken"):
            context.coordinator.barrier()
    context.coordinator.barrier()
    with monkeypatch.context() as patched:
        patched.setattr(checkpoints, "store_epoch", fail)
        with pytest.raises(OSError, match="broken"):
            context.coordinator.checkpoints.run()


def test_a_column_of_another_type(tmp_path: Path) -> None:
    """A copy has a column as it was when a view read it that is dropped."""
    with opened(tmp_path) as (_, client):
        make(client)
        run(client, "CREATE TABLE e (id int PRIMARY KEY, x int)", "INSERT INTO e VALUES (1, 10), (2, 20)")
        reading = "SELECT f.id, e.x FROM f JOIN e ON f.d = e.id"
        run(client, f"CREATE MATERIALIZED VIEW reading AS {reading}")
        warm_up(client)
        run(client, "DROP MATERIALIZED VIEW reading", "ALTER TABLE e ALTER COLUMN x TYPE bigint")
        run(client, "INSERT INTO e VALUES (3, 3000000000)", f"CREATE MATERIALIZED VIEW reading AS {reading}")
        for n in range(3):
            change(client, f"INSERT INTO f VALUES ({400 + n}, 3, 1)", f"INSERT INTO e VALUES ({n + 5}, 4000000000)")
            check(client, "reading", reading)


def test_a_view_of_the_same_name(tmp_path: Path) -> None:
    with opened(tmp_path) as (_, client):
        make(client)
        warm_up(client)
        run(client, "DROP MATERIALIZED VIEW above", "DROP MATERIALIZED VIEW joined", "DROP MATERIALIZED VIEW grouped")
        run(client, *(f"CREATE MATERIALIZED VIEW {name} AS {query}" for name, query in VIEWS.items()))
        warm_up(client)
        run(client, "DROP MATERIALIZED VIEW above", "DROP MATERIALIZED VIEW joined", "DROP MATERIALIZED VIEW grouped")
        run(client, "DROP TABLE d", TABLES[1], TABLES[3])
        run(client, *(f"CREATE MATERIALIZED VIEW {name} AS {query}" for name, query in VIEWS.items()))
        warm_up(client)


def test_a_first_null_in_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of a large copy are looked up by `=` until one of them has a NULL in its key."""
    monkeypatch.setattr(copies, "LARGE_ROWS", 3)
    with opened(tmp_path, refresh_mode="incremental") as (context, client):
        run(
            client,
            "CREATE TABLE n (id int PRIMARY KEY, a int, b text, day date)",
            "INSERT INTO n SELECT i, i % 9, 'b' || i % 2, date '2026-01-01' + i % 3 FROM generate_series(1, 90) r(i)",
        )
        queries = {
            "of_view": "SELECT a, b, count(*) AS n FROM n GROUP BY a, b",
            "of_state": "SELECT a, max(id) - min(id) AS width FROM n GROUP BY a HAVING count(*) > 1",
            "by_day": "SELECT day, b, max(id) AS last FROM n GROUP BY day, b",
            "first": "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY b ORDER BY id DESC) AS r FROM n) t "
            "WHERE r < 3",
        }
        for name, query in queries.items():
            run(client, f"CREATE MATERIALIZED VIEW {name} AS {query}")

        def change(*statements: str) -> set[tuple[str, ...]]:
            run(client, *statements)
            for name, query in queries.items():
                check(client, name, query)
            known = (copy.present for copy in context.coordinator._engines._copies._copies.values())
            return {tuple(sorted(present)) for present in known if present is not None}

        for id_ in range(3):
            refused = change(f"UPDATE n SET a = a + 1, b = 'b' || {id_ % 2} WHERE id = {id_ + 1}")
        assert {("a", "b"), ("b", "day"), ("b",)} <= {tuple(n.rpartition(".")[2] for n in names) for names in refused}
        refused = change("INSERT INTO n VALUES (100, NULL, 'b1', NULL), (101, 1, 'b1', '2026-01-02')")
        assert not any(name.endswith(("a", "day")) for names in refused for name in names)
        assert any(name.endswith("b") for names in refused for name in names)
        change("UPDATE n SET a = NULL WHERE id < 10", "INSERT INTO n VALUES (102, 3, 'b0', NULL)")
        change("INSERT INTO n VALUES (103, 3, NULL, NULL)", "DELETE FROM n WHERE b IS NULL OR id = 101")
        change("UPDATE n SET a = 4 WHERE a IS NULL", "UPDATE n SET b = NULL WHERE id % 2 = 0")
        change("FLUSH", "DELETE FROM n WHERE a IS NULL OR b IS NULL")
