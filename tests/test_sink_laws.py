"""The rules by which sinks write tables, computed independently row by row, after any changes cut into any epochs."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest
from servers import Server, rows, wait_until
from test_law import NoEpochs, opened, run

from sparkwave.executor.backfill.creation import BackfillJob
from sparkwave.executor.sinks import first_delivery
from sparkwave.server.context import Context
from sparkwave.server.dispatch import Client

Row = tuple[Any, ...]
OVERWRITE, IGNORE, FILL_UP = "overwrite", "do nothing", "do update if not null"
FORCED = "type = 'append-only', force_append_only = 'true'"
SEEDS = [1, 2]


@pytest.fixture(autouse=True)
def _small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_delivery, "STEP_ROWS", 7)


@dataclass
class Table:
    """A table with the columns k, a, b, v that follows its ON CONFLICT, one row after the other."""

    action: str = OVERWRITE
    has_version: bool = False
    rows: dict[Any, Row] = field(default_factory=dict)

    def delete(self, keys: Iterable[Any]) -> None:
        for key in keys:
            self.rows.pop(key, None)

    def insert(self, row: Row) -> None:
        key, stored = row[0], self.rows.get(row[0])
        if stored is None:
            self.rows[key] = row
        elif self.action == IGNORE or (self.has_version and _version(row) < _version(stored)):
            pass
        elif self.action == FILL_UP:
            self.rows[key] = tuple(new if new is not None else old for old, new in zip(stored, row, strict=True))
        else:
            self.rows[key] = row

    @property
    def bag(self) -> Counter[Row]:
        return Counter(self.rows.values())

    @property
    def clause(self) -> str:
        return f"ON CONFLICT {self.action}" + (" WITH VERSION COLUMN (v)" if self.has_version else "")


def _version(row: Row) -> tuple[bool, int]:
    return row[3] is not None, row[3] or 0


@dataclass
class Bag:
    """A table without a key."""

    rows: Counter[Row] = field(default_factory=Counter)

    def delete(self, keys: Iterable[Any]) -> None:
        assert not list(keys)

    def insert(self, row: Row) -> None:
        self.rows[row] += 1

    @property
    def bag(self) -> Counter[Row]:
        return +self.rows


@dataclass
class Sink:
    """A sink's source: rows k, a, b, v by their stream key, as its table has them and as they are now."""

    query: str  # the stream key, as one column, and then the row
    removes: bool = True
    before: dict[Any, Row] = field(default_factory=dict)
    after: dict[Any, Row] = field(default_factory=dict)

    def look(self, client: Client) -> None:
        self.after = {key: tuple(row) for key, *row in run(client, self.query)}

    def changes(self, action: str) -> tuple[set[Any], list[Row]]:
        """The keys that an epoch removes, and the rows that it adds, in the order of the stream key."""
        changed = [key for key in self.before.keys() | self.after.keys() if self.before.get(key) != self.after.get(key)]
        added = [self.after[key] for key in sorted(changed) if key in self.after]
        removed = {self.before[key][0] for key in changed if key in self.before}
        self.before = self.after
        if not self.removes:
            return set(), added
        return removed if action == IGNORE else removed - {row[0] for row in added}, added


def deliver(table: Table | Bag, *sinks: Sink) -> None:
    """One epoch."""
    found = [sink.changes(table.action if isinstance(table, Table) else OVERWRITE) for sink in sinks]
    for removed, _ in found:
        table.delete(removed)
    for _, added in found:
        for row in added:
            table.insert(row)


def epoch(context: Context, act: Callable[[], None]) -> None:
    """Let exactly one epoch take up what `act` does."""
    held = NoEpochs(context)
    context.coordinator.flush(lambda: False)
    held.begin()
    try:
        act()
    finally:
        held.end()
    context.coordinator.flush(lambda: False)


class Changes:
    """Random changes of a table with the columns s (its key), k, a, b, v."""

    def __init__(self, seed: int, table: str = "src", keys: int = 8) -> None:
        self.random, self.table, self.keys = random.Random(seed), table, keys

    def row(self) -> str:
        pick = self.random.choice
        a, b, v = pick(("NULL", "1", "2", "3")), pick(("NULL", "'x'", "'y'")), pick(("NULL", "1", "2", "3"))
        return f"{self.random.randrange(self.keys)}, {a}, {b}, {v}"

    def statement(self) -> str:
        s, (k, a, b, v) = self.random.randrange(30), self.row().split(", ")
        return self.random.choice(
            (
                f"INSERT INTO {self.table} VALUES ({s}, {k}, {a}, {b}, {v})",
                f"INSERT INTO {self.table} VALUES ({s}, {k}, {a}, {b}, {v}), ({s + 1}, {k}, {v}, {b}, {a})",
                f"UPDATE {self.table} SET a = {a}, v = {v} WHERE s % 5 = {s % 5}",
                f"UPDATE {self.table} SET k = {k} WHERE s = {s}",
                f"UPDATE {self.table} SET k = {self.keys} - 1 - k WHERE s % 4 = {s % 4}",
                f"DELETE FROM {self.table} WHERE s % 6 = {s % 6}",
                f"DELETE FROM {self.table} WHERE k = {k}",
            )
        )

    def statements(self) -> Iterator[str]:
        for _ in range(self.random.randint(1, 6)):
            yield self.statement()


def fill(client: Client, changes: Changes) -> None:
    run(client, f"CREATE TABLE {changes.table} (s int PRIMARY KEY, k int, a int, b varchar, v int)")
    for s in changes.random.sample(range(25), 25):  # stored in another order than that of the key
        run(client, f"INSERT INTO {changes.table} VALUES ({s}, {changes.row()})")


def columns_of(client: Client, table: str) -> Counter[Row]:
    return Counter(run(client, f"SELECT k, a, b, v FROM {table}"))


def on_one(directory: Path) -> Any:
    return opened(directory / "lake", streaming_engine="duckdb", backfill_engine="auto")


OF_SOURCE = "SELECT s, k, a, b, v FROM src"


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.long
def test_each_rule_of_a_key(tmp_path: Path, seed: int) -> None:
    """Sinks whose rows the table tells apart by another key, into every kind of table."""
    changes = Changes(seed)
    upserts = {
        "plain": Table(), "ignores": Table(IGNORE), "fills": Table(FILL_UP),
        "versioned": Table(has_version=True), "fills_versioned": Table(FILL_UP, True),
    }  # fmt: skip
    kept = {"forced": Table(), "forced_fills": Table(FILL_UP), "undeleted": Table()}
    sinks = {name: Sink(OF_SOURCE, name in upserts) for name in (*upserts, *kept, "bag")}
    tables: dict[str, Table | Bag] = {**upserts, **kept, "bag": Bag()}
    options = {
        "forced": FORCED, "forced_fills": FORCED, "bag": FORCED, "undeleted": "type = 'upsert', ignore_delete = 'true'",
    }  # fmt: skip

    def check(moment: object) -> None:
        for name, table in tables.items():
            assert columns_of(client, name) == table.bag, (name, moment)
        assert dict(run(client, "SELECT k, n FROM counts")) == Counter(row[0] for row in tables["plain"].bag)

    for part in range(2):  # a restart in between
        with on_one(tmp_path) as (context, client):
            if part == 0:
                fill(client, changes)
                for name, table in tables.items():
                    key = f"PRIMARY KEY (k)) {table.clause}" if isinstance(table, Table) else "w int)"
                    run(client, f"CREATE TABLE {name} (k int, a int, b varchar, v int, {key}")
                    with_ = f" WITH ({options[name]})" if name in options else ""
                    run(client, f"CREATE SINK into_{name} INTO {name} AS SELECT k, a, b, v FROM src{with_}")
                    sinks[name].look(client)
                    deliver(table, sinks[name])
                run(client, "CREATE MATERIALIZED VIEW counts AS SELECT k, count(*) AS n FROM plain GROUP BY k")
                check("at first")
            for number in range(6):

                def act() -> None:
                    for sql in changes.statements():
                        run(client, sql)
                    for name, table in upserts.items():  # clients write, too
                        k = changes.random.randrange(10)
                        run(client, f"DELETE FROM {name} WHERE k = {k}")
                        table.delete([k])
                        run(client, f"INSERT INTO {name} VALUES ({k - 1}, 7, 'own', NULL)")
                        table.insert((k - 1, 7, "own", None))

                epoch(context, act)
                for name, table in tables.items():
                    sinks[name].look(client)
                    deliver(table, sinks[name])
                check((part, number))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.long
def test_several_sinks_into_one_table(tmp_path: Path, seed: int) -> None:
    """Rows that all sinks lose go first, then each sink's new rows come, in the order of the sinks' creation."""
    sources = [Changes(seed), Changes(seed + 100, "other"), Changes(seed + 200, "third")]
    tables = {"plain": Table(), "ignores": Table(IGNORE), "fills": Table(FILL_UP), "versioned": Table(FILL_UP, True)}
    queries = [
        "SELECT s, k, a, b, v FROM src",
        "SELECT s, k, NULL::int AS a, b, v FROM other",
        "SELECT t.s * 100 + u.s, t.k, u.a, t.b, u.v FROM third t JOIN other u ON t.s % 7 = u.s % 7 AND t.a = u.a",
    ]
    bodies = [
        "SELECT k, a, b, v FROM src",
        "SELECT k, NULL::int AS a, b, v FROM other",
        "SELECT t.k, u.a, t.b, u.v FROM third t JOIN other u ON t.s % 7 = u.s % 7 AND t.a = u.a",
    ]
    with on_one(tmp_path) as (context, client):
        for changes in sources:
            fill(client, changes)
        sinks = {name: [Sink(query) for query in queries] for name in tables}
        for name, table in tables.items():
            run(client, f"CREATE TABLE {name} (k int PRIMARY KEY, a int, b varchar, v int) {table.clause}")
            for number, body in enumerate(bodies):
                run(client, f"CREATE SINK into_{name}_{number} INTO {name} AS {body}")
                sinks[name][number].look(client)
                deliver(table, sinks[name][number])
        for number in range(8):
            epoch(context, lambda: [run(client, sql) for changes in sources for sql in changes.statements()])
            for name, table in tables.items():
                for sink in sinks[name]:
                    sink.look(client)
                deliver(table, *sinks[name])
                assert columns_of(client, name) == table.bag, (name, number)


@pytest.mark.long
def test_later_changes_only(tmp_path: Path) -> None:
    """snapshot = false, over a table and a view: an epoch's changes, and nothing from before."""
    changes = Changes(5)
    view = "SELECT max(s) AS s, k, count(a)::int AS a, max(b) AS b, max(v) AS v FROM src GROUP BY k"
    with on_one(tmp_path) as (context, client):
        fill(client, changes)
        run(client, f"CREATE MATERIALIZED VIEW grouped AS {view}")
        tables: dict[str, Table | Bag] = {"of_table": Table(FILL_UP), "of_view": Table(), "bag": Bag()}
        sinks = {"of_table": Sink(OF_SOURCE), "of_view": Sink("SELECT k, k, a, b, v FROM grouped")}
        sinks["bag"] = Sink(OF_SOURCE, removes=False)
        run(
            client, "CREATE TABLE of_table (s int, k int PRIMARY KEY, a int, b varchar, v int) " + Table(FILL_UP).clause
        )
        run(client, "CREATE TABLE of_view (s int, k int PRIMARY KEY, a int, b varchar, v int)")
        run(client, "CREATE TABLE bag (s int, k int, a int, b varchar, v int)")
        for sql in changes.statements():
            run(client, sql)
        run(client, "CREATE SINK s1 INTO of_table FROM src WITH (snapshot = 'false')")
        run(client, "CREATE SINK s2 INTO of_view FROM grouped WITH (snapshot = false)")
        run(client, f"CREATE SINK s3 INTO bag FROM src WITH (snapshot = false, {FORCED})")
        for name, sink in sinks.items():
            sink.look(client)
            sink.before = sink.after
            assert not columns_of(client, name)
        for number in range(8):
            epoch(context, lambda: [run(client, sql) for sql in changes.statements()])
            for name, sink in sinks.items():
                sink.look(client)
                deliver(tables[name], sink)
                assert columns_of(client, name) == tables[name].bag, (name, number)


@pytest.mark.long
def test_the_table_is_altered(tmp_path: Path) -> None:
    """Its sinks go on over new, renamed and dropped columns and over restarts, and views see all of it."""
    number, added = random.Random(8), 0
    names, defaults = {"k": "k", "a": "a"}, dict[str, int | None]()
    source: dict[int, int] = {}
    rows: dict[int, dict[str, int | None]] = {}
    for part in range(3):
        with on_one(tmp_path) as (context, client):
            if part == 0:
                run(client, "CREATE TABLE src (k int PRIMARY KEY, a int)")
                run(client, "CREATE TABLE t (k int PRIMARY KEY, a int, g int AS k * 2)")
                run(client, "CREATE SINK whole INTO t FROM src")
                run(client, "CREATE SINK named INTO t (a, k) AS SELECT a, k FROM src")
                run(client, "CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n, sum(k) AS k, sum(a) AS a FROM t")
            for step in range(8):
                match number.choice(["add", "add", "rename", "default", "drop"]):
                    case "add":
                        added += 1
                        name = f"n{added}"
                        default = number.choice([None, added])
                        run(client, f"ALTER TABLE t ADD COLUMN {name} int" + (f" DEFAULT {default}" if default else ""))
                        defaults[name] = default
                        for row in rows.values():
                            row[name] = default
                    case "rename":
                        column = number.choice(["k", "a"])
                        new = f"{column}{part}_{step}"
                        run(client, f"ALTER TABLE t RENAME COLUMN {names[column]} TO {new}")
                        names[column] = new
                    case "default" if defaults:
                        name = number.choice(list(defaults))
                        defaults[name] = step + 100
                        run(client, f"ALTER TABLE t ALTER COLUMN {name} SET DEFAULT {step + 100}")
                    case "drop" if defaults:
                        name = number.choice(list(defaults))
                        run(client, f"ALTER TABLE t DROP COLUMN {name}")
                        del defaults[name]
                        for row in rows.values():
                            del row[name]
                k, a = number.randrange(6), number.randrange(100)
                gone = number.randrange(6)

                def act() -> None:
                    run(client, f"INSERT INTO src VALUES ({k}, {a})")  # noqa: B023
                    run(client, f"DELETE FROM src WHERE k = {gone}")  # noqa: B023

                before = dict(source)
                source[k] = a
                source.pop(gone, None)
                epoch(context, act)
                rows = {k: row for k, row in rows.items() if k in source}
                rows |= {k: {"a": a, **defaults} for k, a in source.items() if before.get(k) != a}
                listed = ", ".join((names["k"], names["a"], "g", *defaults))
                found = run(client, f"SELECT {listed} FROM t ORDER BY 1")
                expected = [(k, row["a"], 2 * k, *(row[name] for name in defaults)) for k, row in sorted(rows.items())]
                assert found == expected, (part, step)
                sums = (len(source), sum(source) if source else None, sum(source.values()) if source else None)
                assert [tuple(map(int_or_none, row)) for row in run(client, "TABLE m")] == [sums], (part, step)
            names_now = f"({names['a']}, {names['k']})"
            [(_, shown)] = run(client, "SHOW CREATE SINK named")
            assert names_now in str(shown)


def int_or_none(value: Any) -> int | None:
    return None if value is None else int(value)


@pytest.mark.long
@pytest.mark.parametrize("clause", ["", "ON CONFLICT DO UPDATE IF NOT NULL"])
def test_a_row_that_the_table_refuses(tmp_path: Path, clause: str) -> None:
    """It stops its sink alone, also where only the row of its key shows what is wrong; then the sink catches up."""
    with on_one(tmp_path) as (context, client):
        for name in ("one", "other"):
            run(client, f"CREATE TABLE {name} (k int PRIMARY KEY, a int)")
        run(client, f"CREATE TABLE t (k int PRIMARY KEY, a int, b int, CHECK (a + b < 10)) {clause}")
        run(client, "CREATE SINK first INTO t (k, b, a) AS SELECT k, a, 0 FROM one")
        run(client, "CREATE SINK second INTO t (k, a) AS SELECT k, a FROM other")
        run(client, "CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n FROM other")
        run(client, "INSERT INTO one VALUES (1, 8), (2, 8)")
        context.coordinator.flush(lambda: False)

        def act() -> None:
            run(client, "UPDATE one SET a = 7")
            run(client, "INSERT INTO one VALUES (3, 9)" if clause else "INSERT INTO one VALUES (3, 10)")
            run(client, "INSERT INTO other VALUES (1, 2), (3, 1)")

        epoch(context, act)
        assert wait_until(lambda: run(client, "TABLE m") == [(2,)], 30)
        status = "SELECT job_name, state = 'FAILED', reason FROM rw_catalog.rw_job_status"
        wrong = 'new row for relation "t" violates check constraint "t_check"'
        behind, others = ("second", "first") if clause else ("first", "second")
        assert wait_until(lambda: (behind, True, wrong) in run(client, status), 30), run(client, status)
        assert (others, False, None) in run(client, status)
        expected = {
            "first": [(1, 0, 7), (2, 0, 7), (3, 0, 9)],
            "second": [(1, 2, None), (2, 0, 8), (3, 1, None)],
        }[others]
        assert run(client, "SELECT k, a, b FROM t ORDER BY k") == expected
        run(client, "DELETE FROM one WHERE k = 3")
        run(client, "DELETE FROM other WHERE k = 3")
        context.coordinator.flush(lambda: False)
        assert wait_until(lambda: (behind, False, None) in run(client, status), 60), run(client, status)
        expected = {"first": [(1, 2, 7), (2, 0, 7)], "second": [(1, 0, 7), (2, 0, 7)]}[others]
        assert run(client, "SELECT k, a, b FROM t ORDER BY k") == expected


def test_an_ordered_first_delivery_goes_on_after_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changes, sink, table = Changes(9), Sink(OF_SOURCE), Table(FILL_UP)
    original, reached, steps = first_delivery._deliver, threading.Event(), list[int]()

    def stopping(*arguments: Any) -> None:
        steps.append(1)
        if len(steps) == 3:  # the server ends here
            reached.set()
            threading.Event().wait(3600)
        original(*arguments)

    with monkeypatch.context() as patch, on_one(tmp_path) as (_, client):
        patch.setattr(first_delivery, "_deliver", stopping)
        monkeypatch.setattr(BackfillJob, "wait_until_stopped", lambda *arguments: True)
        fill(client, changes)
        run(client, f"CREATE TABLE t (k int PRIMARY KEY, a int, b varchar, v int) {table.clause}")
        sink.look(client)
        run(client, "SET background_ddl = true")
        run(client, "CREATE SINK s INTO t AS SELECT k, a, b, v FROM src")
        assert reached.wait(200)
        run(client, "UPDATE src SET k = k + 1")
    with on_one(tmp_path) as (_, client):
        run(client, "WAIT")
        run(client, "FLUSH")
        deliver(table, sink)
        sink.look(client)
        deliver(table, sink)
        assert columns_of(client, "t") == table.bag


def test_later_changes_after_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What changes while such a sink is being created is delivered, once, also by the next server."""
    waiting = threading.Event()

    def hold(*arguments: Any) -> None:
        waiting.set()
        threading.Event().wait(3600)

    with monkeypatch.context() as patch, on_one(tmp_path) as (_, client):
        patch.setattr(BackfillJob, "_finish", hold)
        monkeypatch.setattr(BackfillJob, "wait_until_stopped", lambda *arguments: True)
        run(client, "CREATE TABLE src (k int PRIMARY KEY, a int)")
        run(client, "CREATE TABLE t (k int, a int)")
        run(client, "INSERT INTO src VALUES (1, 1), (2, 2)")
        run(client, "SET background_ddl = true")
        run(client, f"CREATE SINK s INTO t FROM src WITH (snapshot = 'false', {FORCED})")
        assert waiting.wait(60)
        run(client, "UPDATE src SET a = 20 WHERE k = 2")
    with on_one(tmp_path) as (_, client):
        run(client, "WAIT")
        run(client, "INSERT INTO src VALUES (3, 3)")
        run(client, "FLUSH")
        assert sorted(run(client, "TABLE t")) == [(2, 20), (3, 3)]


@pytest.mark.long
@pytest.mark.timeout(600)
def test_kill(tmp_path: Path) -> None:
    """kill -9 at any moment: keys that move between rows are where they belong, in every kind of table."""
    number, data = random.Random(4), tmp_path / "data"
    tables = {"plain": Table(), "ignores": Table(IGNORE), "fills": Table(FILL_UP), "later": Table()}
    server = Server(data)
    with server.connect() as own:
        own.execute("ALTER SYSTEM SET backfill_engine = auto")
        own.execute("ALTER SYSTEM SET barrier_interval_ms = 50")
        own.execute("CREATE TABLE src (s int PRIMARY KEY, k int, a int)")
        for name, table in tables.items():
            own.execute(f"CREATE TABLE {name} (s int, k int PRIMARY KEY, a int) {table.clause}")
            own.execute(f"CREATE SINK into_{name} INTO {name} FROM src WITH (snapshot = {name != 'later'})")
        own.execute("CREATE MATERIALIZED VIEW sums AS SELECT count(*) AS n, sum(k) AS k, sum(a) AS a FROM plain")
        for s in range(20):
            own.execute(f"INSERT INTO src VALUES ({s}, {s}, 0)")
    for round_ in range(5):
        killer = threading.Timer(number.uniform(0.2, 2.0), server.kill)
        killer.start()
        with pytest.raises(psycopg.OperationalError), server.connect() as own:
            for step in range(1, 100_000):
                one, other = number.sample(range(20), 2)
                a = round_ * 100_000 + step
                # The two rows exchange their keys, or one goes, or comes with a key that nobody has.
                both = f"IN ({one}, {other})"
                exchanged = f"FROM (SELECT s, k FROM src) x WHERE src.s {both} AND x.s {both} AND x.s <> src.s"
                own.execute(f"UPDATE src SET k = x.k, a = {a} {exchanged}")
                own.execute(f"DELETE FROM src WHERE s = {one}")
                free = "SELECT min(free) FROM range(40) AS r (free) WHERE free NOT IN (SELECT k FROM src)"
                own.execute(f"INSERT INTO src SELECT {one}, ({free}), {a}")
        killer.join()
        server = Server(data)
        with server.connect() as own:
            own.execute("FLUSH")
            expected = Counter(rows(own, "TABLE src"))
            assert len({k for _, k, _ in expected}) == len(expected)
            for name in tables:
                assert Counter(rows(own, f"TABLE {name}")) == expected, (name, round_)
            sums = len(expected), sum(k for _, k, _ in expected), sum(a for _, _, a in expected)
            assert rows(own, "TABLE sums") == [sums]
    server.kill()


def test_a_generated_column_that_fails(tmp_path: Path) -> None:
    """Its value fails only once a row has met the row of its key: the sink stays behind, and others go on."""
    with on_one(tmp_path) as (context, client):
        for name in ("one", "other"):
            run(client, f"CREATE TABLE {name} (k int PRIMARY KEY, a int)")
        generated = "g int AS 10 / (coalesce(a, 1) - coalesce(b, 0))"
        run(client, f"CREATE TABLE t (k int PRIMARY KEY, a int, b int, {generated}) ON CONFLICT DO UPDATE IF NOT NULL")
        run(client, "CREATE SINK of_a INTO t (k, a) FROM one")
        run(client, "CREATE SINK of_b INTO t (k, b) FROM other")
        epoch(context, lambda: run(client, "INSERT INTO one VALUES (1, 5)"))
        run(client, "INSERT INTO other VALUES (1, 5)")
        reason = "SELECT job_name, reason FROM rw_catalog.rw_job_status WHERE reason IS NOT NULL"
        assert wait_until(lambda: run(client, reason) == [("of_b", "division by zero")], 30)
        epoch(context, lambda: run(client, "INSERT INTO one VALUES (2, 5)"))
        assert run(client, "SELECT k, a, b, g FROM t ORDER BY k") == [(1, 5, None, 2), (2, 5, None, 2)]
        run(client, "UPDATE other SET a = 4")
        assert wait_until(lambda: run(client, "SELECT b, g FROM t WHERE k = 1") == [(4, 10)], 60)
