"""Copies in memory of relations that are read often: they answer as the lake does, at every moment."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from servers import Server, refused, rows, wait_until
from test_law import as_bag, opened, run

from sparkwave.catalog.lake import expiry
from sparkwave.executor.memory.serving_copies import Pace
from sparkwave.server.context import Context
from sparkwave.server.dispatch import Client

Connection = psycopg.Connection[Any]


def lake(client: Client, sql: str) -> list[tuple[object, ...]]:
    """What the lake says now: a pinned snapshot is read there."""
    run(client, "BEGIN READ ONLY")
    try:
        return run(client, sql)
    finally:
        run(client, "COMMIT")


def hits(context: Context) -> int:
    """Queries over the copies that there are."""
    return sum(copy.hits for copy in context.serving.copies[1])


def copied(context: Context, client: Client, *names: str) -> None:
    """Read some relations until there are copies of them."""

    def is_there() -> bool:
        for name in names:
            run(client, f"SELECT count(*) FROM {name}")
        return set(names) <= {copy.relation.name for copy in context.serving.copies[1]}

    assert wait_until(is_there, 10, 0.01), names


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[tuple[Context, Client]]:
    with opened(tmp_path / "lake", backfill_engine="auto") as (context, client):
        yield context, client


# What may be asked of every table and view: whole rows, one by its key, sums, a join.
QUERIES = (
    "SELECT * FROM t",
    "SELECT k, s FROM t WHERE k = {key}",
    "SELECT * FROM t WHERE s = '{text}'",
    "SELECT s, n FROM v WHERE s = '{text}'",
    "SELECT count(*), sum(n), sum(total) FROM v",
    "SELECT count(*), sum(a) FROM u",
    "SELECT t.k, u.a, v.n FROM t JOIN u ON t.k = u.k JOIN v ON v.s = t.s",
    "SELECT (SELECT count(*) FROM t) - (SELECT sum(n) FROM v) AS behind",
)
SCHEMA = (
    "CREATE TABLE t (k int PRIMARY KEY, s varchar, d double precision)",
    "CREATE TABLE u (k int, a bigint)",
    "CREATE MATERIALIZED VIEW v AS SELECT s, count(*) AS n, sum(k) AS total FROM t GROUP BY s",
)


def change(random: random.Random) -> tuple[str, ...]:
    """Statements that change something, or nothing."""
    key, other, text = random.randrange(40), random.randrange(40), f"s{random.randrange(6)}"
    many = f"SELECT i, 's' || i % 6, i / 7.0 FROM generate_series({key}, {key + other}) AS g(i)"
    common = (
        (f"INSERT INTO t VALUES ({key}, '{text}', {other}), ({other}, NULL, -0.0)",),
        (f"UPDATE t SET s = '{text}', d = -d WHERE k BETWEEN {key} AND {other}",),
        (f"DELETE FROM t WHERE k = {key}", f"INSERT INTO t VALUES ({key}, '{text}', 0)",
         f"DELETE FROM t WHERE k = {key}"),
        (f"INSERT INTO u VALUES ({key}, {other}), ({key}, {other})",),
        (f"UPDATE u SET a = a + 1 WHERE k = {key}", f"UPDATE u SET a = a + 1 WHERE k >= {other}"),
        (f"DELETE FROM u WHERE k = {key}", "FLUSH"),
        ("FLUSH",),
        (f"INSERT INTO t {many}",),
        ("SET atomic_transactions = on", "BEGIN", f"UPDATE t SET d = 1 WHERE k = {key}",
         f"INSERT INTO u VALUES ({other}, 1)", random.choice(("COMMIT", "ROLLBACK")), "SET atomic_transactions = off"),
    )  # fmt: skip
    rare = (
        ("TRUNCATE u",),
        ("DELETE FROM t",),
        (f"INSERT INTO u SELECT i, i FROM generate_series(1, {random.choice((10, 400))}) AS g(i)",),
        ("ALTER TABLE u RENAME TO gone", "ALTER TABLE gone RENAME TO u"),
        ("DROP TABLE u", "CREATE TABLE u (k int, a bigint)", f"INSERT INTO u VALUES ({key}, 7)"),
        ("CREATE TABLE other (k int, a bigint)", f"INSERT INTO other VALUES ({key}, 70)",
         "ALTER TABLE u SWAP WITH other", "DROP TABLE other"),
        ("DROP MATERIALIZED VIEW v", SCHEMA[2]),
    )  # fmt: skip
    return random.choice(common if random.random() < 0.85 else rare)


@pytest.mark.parametrize(
    ("seed", "steps"), [(0, 12), *(pytest.param(seed, 100, marks=pytest.mark.long) for seed in range(1, 4))]
)
def test_a_copy_says_what_the_lake_says(serving: tuple[Context, Client], seed: int, steps: int) -> None:
    context, client = serving
    context.serving._pace = Pace(reads=1, most_changes=100)
    choices, served = random.Random(seed), 0
    other, cursor = Client(context, {"user": "root"}), context.lake.cursor()
    for statement in SCHEMA:
        run(client, statement)
    for step in range(steps):
        done = change(choices)
        for statement in done:
            run(other if step % 2 else client, statement)
        for query in choices.sample(QUERIES, 3):
            sql = query.format(key=choices.randrange(40), text=f"s{choices.randrange(6)}")
            newest = None
            while newest != context.lake.newest(cursor):  # else an epoch was committed meanwhile
                newest, before = context.lake.newest(cursor), hits(context)
                found = run(client, sql)
                served += hits(context) > before
                stored = lake(client, sql)
            assert as_bag(found) == as_bag(stored), (step, done, sql)
        if choices.random() < 0.3:
            time.sleep(0.02)  # so that copies are made
    assert served > steps


def test_every_type(serving: tuple[Context, Client]) -> None:
    context, client = serving
    values = {
        "bool": "true", "int2": "1", "int4": "2", "int8": "3", "float4": "1.5", "float8": "-0.0",
        "numeric(10,2)": "1.25", "numeric": "2.5", "varchar": "'é'", "bytea": "'\\x01ff'::bytea",
        "date": "DATE '2024-02-29'", "time": "TIME '01:02:03'",
        "timestamp": "TIMESTAMP '2024-01-01 00:00:00'", "timestamptz": "TIMESTAMPTZ '2024-01-01 00:00:00+00'",
        "interval": "INTERVAL '1 month'", "jsonb": "'{\"a\": 1}'::jsonb", "int[]": "ARRAY[1, NULL]",
        "STRUCT<a int, b varchar>": "ROW(1, 'x')",
    }  # fmt: skip
    columns = ", ".join(f"c{n} {type_}" for n, type_ in enumerate(values))
    run(client, f"CREATE TABLE every (k int PRIMARY KEY, {columns})")
    run(client, f"INSERT INTO every SELECT 1, {', '.join(values.values())}")
    run(client, "INSERT INTO every (k) VALUES (2)")
    copied(context, client, "every")
    (copy,) = context.serving.copies[1]
    for sql in ("SELECT * FROM every ORDER BY k", "SELECT * FROM every WHERE k = 1", "SELECT * FROM every WHERE k = 2"):
        found = [shown(client, sql) for _ in range(3)]  # by a query of the copy
        assert "=" not in sql or wait_until(lambda: "k" in copy.sorted.rows, 10, 0.01)
        found.append(shown(client, sql))  # by a lookup
        run(client, "BEGIN READ ONLY")
        assert all(one == shown(client, sql) for one in found), sql
        run(client, "COMMIT")
    assert copy.hits > 9


def shown(client: Client, sql: str) -> tuple[object, ...]:
    """The columns, types and values that a query gives, to the last bit."""
    result = client.execute(client.prepare(sql, ()), ())
    (batch,) = [batch for batch in result.batches or () if batch.num_rows]
    result.close()
    return result.columns, [column.type for column in batch.columns], str(batch.to_pylist())


def test_what_loses_its_copy(serving: tuple[Context, Client]) -> None:
    context, client = serving
    run(client, "CREATE TABLE kept (k int)")
    run(client, "CREATE TABLE lost (k int)")
    run(client, "INSERT INTO lost VALUES (1)")

    def names() -> set[str]:
        return {copy.relation.name for copy in context.serving.copies[1]}

    def read() -> list[tuple[object, ...]]:
        run(client, "SELECT count(*) FROM kept")
        return run(client, "SELECT count(*) FROM lost")

    copied(context, client, "kept", "lost")
    # Unread for long: it costs nothing while nothing changes, and is not brought up to date.
    lost = next(copy for copy in context.serving.copies[1] if copy.relation.name == "lost")
    lost.read_at -= 1000
    run(client, "SELECT count(*) FROM kept")
    assert names() == {"kept", "lost"}
    run(client, "INSERT INTO lost VALUES (2)")
    run(client, "SELECT count(*) FROM kept")
    assert names() == {"kept"}
    # More rows at once than it is worth: loaded again.
    copied(context, client, "kept", "lost")
    first = {copy.table for copy in context.serving.copies[1]}
    run(client, "INSERT INTO lost SELECT i FROM generate_series(1, 30000) AS g(i)")
    assert read() == [(30002,)]
    assert names() == {"kept"}
    copied(context, client, "lost")
    assert len(first & {copy.table for copy in context.serving.copies[1]}) == 1
    # What the lake has forgotten cannot be applied.
    for number in (3, 4):
        run(client, f"INSERT INTO lost VALUES ({number})")
    cursor = context.lake.cursor()
    expiry.expire(cursor, context.lake.newest(cursor), 1000)
    assert read() == [(30004,)]
    assert names() == set()
    # No room.
    copied(context, client, "kept", "lost")
    run(client, "ALTER SYSTEM SET serving_cache_mib = 0")
    assert read() == [(30004,)]
    assert wait_until(lambda: names() == set(), 5)
    for _ in range(10):
        assert read() == [(30004,)]
    assert names() == set()
    tables = "SELECT count(*) FROM duckdb_tables() WHERE schema_name = 'serving'"
    assert context.lake.cursor().execute(tables).fetchone() == (0,)


def test_room(serving: tuple[Context, Client]) -> None:
    """What is not in use makes room, what is too large gets no copy."""
    context, client = serving
    run(client, "ALTER SYSTEM SET serving_cache_mib = 1")
    for name, number in (("small", 10_000), ("half", 40_000), ("large", 200_000)):
        run(client, f"CREATE TABLE {name} (k bigint)")
        run(client, f"INSERT INTO {name} SELECT i FROM generate_series(1, {number}) AS g(i)")
    copied(context, client, "small", "half")
    for _ in range(10):
        assert run(client, "SELECT count(*) FROM large") == [(200_000,)]
        time.sleep(0.01)
    assert {copy.relation.name for copy in context.serving.copies[1]} == {"small", "half"}
    run(client, "CREATE TABLE another AS SELECT i AS k FROM generate_series(1, 30000) AS g(i)")
    for copy in context.serving.copies[1]:
        copy.read_at -= 1000 if copy.relation.name == "half" else 0
    copied(context, client, "another", "small")
    assert {copy.relation.name for copy in context.serving.copies[1]} == {"small", "another"}


def looked_up(connection: Connection, sql: str, *parameters: object) -> list[Any]:
    """Once by a prepared statement, once by a text with the value, if it is the last thing there."""
    found = rows(connection, sql, parameters, prepare=True)
    (value,) = parameters
    if value is not None:
        text = sql.replace("%s", f"'{value}'" if isinstance(value, str) else str(value))
        assert rows(connection, text) == found
        with connection.cursor() as simple:
            assert simple.connection.pgconn.exec_(text.encode()).ntuples == len(found)
    return found


def test_lookups(in_process_server: Server, connection: Connection) -> None:
    connection.execute("CREATE TABLE looked (k int PRIMARY KEY, g bigint, s varchar)")
    connection.execute("INSERT INTO looked SELECT i, i % 10, 'n' || i % 100 FROM generate_series(1, 5000) AS g(i)")
    connection.execute("INSERT INTO looked VALUES (0, NULL, NULL), (-1, -1, '')")
    connection.execute("CREATE MATERIALIZED VIEW looked_mv AS SELECT s, count(*) AS n FROM looked GROUP BY s")
    for round in range(12):
        assert looked_up(connection, "SELECT * FROM looked WHERE k = %s", 7) == [(7, 7, "n7")]
        assert looked_up(connection, "SELECT s AS a, k, s FROM looked x WHERE x.k = %s", 107) == [("n7", 107, "n7")]
        assert looked_up(connection, "SELECT k FROM looked WHERE looked.k = %s", 5001) == []
        assert looked_up(connection, "SELECT k FROM looked WHERE k = %s", None) == []
        assert looked_up(connection, "SELECT k FROM looked WHERE k = %s", 3_000_000_000) == []
        assert len(looked_up(connection, "SELECT k FROM looked WHERE s = %s", "n5")) == 50
        assert looked_up(connection, "SELECT k FROM looked WHERE s = %s", "") == [(-1,)]
        assert looked_up(connection, 'SELECT n FROM "looked_mv" WHERE s = %s', "n5") == [(50,)]
        assert looked_up(connection, "SELECT n FROM looked_mv WHERE s = %s;", "none") == []
        assert sum(g for (g,) in looked_up(connection, "SELECT g FROM looked WHERE g = %s", 3)) == 1500
        assert rows(connection, "SELECT k FROM looked WHERE k = 7 OR k = 8") == [(7,), (8,)]
        assert refused(connection, "SELECT k FROM looked WHERE s = 7").sqlstate == "42883"
        assert refused(connection, "SELECT nothing FROM looked WHERE k = 7").sqlstate == "42703"
        assert refused(connection, "SELECT k FROM nowhere WHERE k = 7").sqlstate == "42P01"
        assert rows(connection, "SELECT DISTINCT g FROM looked WHERE g = 3") == [(3,)]
        if round > 6:  # a change is seen at once
            connection.execute("UPDATE looked SET g = g WHERE k = 5")
            connection.execute("INSERT INTO looked VALUES (6000, %s, 'changed')", (round,))
            assert looked_up(connection, "SELECT g, s FROM looked WHERE k = %s", 6000) == [(round, "changed")]
    cached = "SELECT rows > 0, bytes > 0, hits > 10, since <= now() FROM rw_catalog.rw_serving_cache"
    assert rows(connection, f"{cached} WHERE relation_name = 'looked'") == [(True, True, True, True)]
    # Another's privileges, and a text that only looks like one.
    connection.execute("CREATE USER looker")
    with in_process_server.connect(user="looker") as other:
        assert refused(other, "SELECT k FROM looked WHERE k = 7").sqlstate == "42501"
    assert rows(connection, "SELECT 1 AS a -- WHERE k = 5") == [(1,)]
    # The lake's own names, which a copy has not.
    assert rows(connection, "SELECT k FROM looked WHERE k = 5 AND k >= 0") == [(5,)]


@pytest.mark.long
def test_writers_and_readers(in_process_server: Server, connection: Connection) -> None:
    """Money moves between two tables: every reader finds all of it, and nobody goes back in time."""
    for table in ("left_side", "right_side"):
        connection.execute(f"CREATE TABLE {table} (k int PRIMARY KEY, v bigint)")
        connection.execute(f"INSERT INTO {table} SELECT i, 100 FROM generate_series(1, 50) AS g(i)")
    connection.execute("CREATE TABLE clock (k int PRIMARY KEY, v bigint)")
    connection.execute("INSERT INTO clock VALUES (1, 0)")
    connection.execute("CREATE MATERIALIZED VIEW side_sum AS SELECT sum(v) AS v FROM left_side")
    until, failures = time.monotonic() + 6, []

    def work(task: Any, seed: int) -> None:
        try:
            with in_process_server.connect() as own:
                choices = random.Random(seed)
                state: dict[str, int] = {}
                while time.monotonic() < until and not failures:
                    task(own, choices, state)
        except BaseException as error:
            failures.append(error)

    def move(own: Connection, choices: random.Random, state: dict[str, int]) -> None:
        own.execute("SET atomic_transactions = on")
        amount, sides = choices.randrange(50), choices.sample(("left_side", "right_side"), 2)
        try:
            with own.transaction():
                for table, sign in zip(sides, (1, -1), strict=True):
                    change = f"UPDATE {table} SET v = v + %s WHERE k = %s"
                    own.execute(change, (sign * amount, choices.randrange(50) + 1))
        except psycopg.errors.SerializationFailure:
            pass
        time.sleep(0.02)

    def tick(own: Connection, choices: random.Random, state: dict[str, int]) -> None:
        state["v"] = state.get("v", 0) + 1
        own.execute("UPDATE clock SET v = %s WHERE k = 1", (state["v"],))
        assert rows(own, "SELECT v FROM clock WHERE k = %s", (1,), prepare=True) == [(state["v"],)]
        assert rows(own, "SELECT max(v) FROM clock") == [(state["v"],)]
        time.sleep(0.02)

    def watch(own: Connection, choices: random.Random, state: dict[str, int]) -> None:
        both = "SELECT ((SELECT sum(v) FROM left_side) + (SELECT sum(v) FROM right_side))::bigint"
        assert rows(own, both, prepare=True) == [(10_000,)]
        query = choices.choice(("SELECT v FROM clock WHERE k = 1", "SELECT max(v) FROM clock"))
        ((seen,),) = rows(own, query)
        assert seen >= state.get("v", 0)
        state["v"] = seen

    tasks = [move, move, tick, watch, watch, watch]
    threads = [threading.Thread(target=work, args=(task, seed)) for seed, task in enumerate(tasks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert not failures, failures
    served = dict(rows(connection, "SELECT relation_name, hits FROM rw_catalog.rw_serving_cache"))
    assert served["left_side"] > 5 and served["clock"] > 5, served
    connection.execute("FLUSH")
    assert rows(connection, "SELECT v FROM side_sum") == rows(connection, "SELECT sum(v) FROM left_side")
