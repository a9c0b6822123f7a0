"""Materialized views on a real server with Spark: creation, what they hold, how they follow changes, and their jobs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from marking import long_but
from servers import Server, wait_until

pytestmark = pytest.mark.spark

Connection = psycopg.Connection[Any]

# Each is a query over the tables orders, customers and events, and the views before it.
VIEWS = {
    "projection": "SELECT id, amount * 2 AS double, upper(note) AS note FROM orders",
    "filtered": "SELECT id, customer FROM orders WHERE amount > 50 AND note IS NOT NULL",
    "united": "SELECT id, 'order' AS kind FROM orders UNION ALL SELECT id, name FROM customers",
    "joined": "SELECT o.id, c.name, o.amount FROM orders o JOIN customers c ON o.customer = c.id",
    "comma_joined": "SELECT o.id, c.city FROM orders o, customers c WHERE o.customer = c.id AND c.city <> 'Brno'",
    "grouped": (
        "SELECT customer, count(*) AS n, count(note) AS notes, sum(amount) AS total, avg(quantity) AS mean, "
        "min(amount) AS lowest, max(note) AS last_note, count(*) FILTER (WHERE amount > 50) AS large "
        "FROM orders GROUP BY customer"
    ),
    "overall": "SELECT count(*) AS n, sum(amount) AS total, min(id) AS first, max(note) AS last_note FROM orders",
    "frequent": "SELECT customer, count(*) AS n FROM orders GROUP BY customer HAVING count(*) > 2",
    "cities": (
        "SELECT c.city, sum(o.amount) AS total FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.city"
    ),
    "nested": (
        "SELECT x.customer, x.n * 10 AS tens "
        "FROM (SELECT customer, count(*) AS n FROM orders GROUP BY customer) AS x"
    ),
    "with_cte": (
        "WITH large AS (SELECT id, customer FROM orders WHERE amount > 20) "
        "SELECT customer, count(*) AS n FROM large GROUP BY customer"
    ),
    "bag": "SELECT kind, n + 1 AS next FROM events WHERE n > 1",
    "bag_sums": "SELECT kind, sum(n) AS total, min(n) AS lowest FROM events GROUP BY kind",
    "on_view": "SELECT n, count(*) AS customers FROM grouped GROUP BY n",
    "on_view_on_view": "SELECT sum(n * customers) AS orders FROM on_view",
    "view_with_table": "SELECT c.name, g.total FROM grouped g JOIN customers c ON g.customer = c.id",
}  # fmt: skip

# A second each, so not all of them.
FILLED_ON_SPARK = ["projection", "united", "joined", "grouped", "overall", "nested", "bag_sums", "on_view"]

TABLES = """
CREATE TABLE orders (id int PRIMARY KEY, customer int, amount numeric(10,2), quantity int, note varchar);
CREATE TABLE customers (id int PRIMARY KEY, name varchar, city varchar);
CREATE TABLE events (kind varchar, n int);
INSERT INTO orders SELECT i, i % 7, (i * 13 % 100) + 0.25, i % 11, CASE WHEN i % 3 = 0 THEN NULL ELSE 'n' || i END
    FROM range(60) AS r (i);
INSERT INTO customers SELECT i, 'name ' || i, CASE WHEN i % 2 = 0 THEN 'Brno' ELSE 'Praha' END FROM range(5) AS r (i);
INSERT INTO events VALUES ('a', 1), ('a', 1), ('b', 5), (NULL, 2), ('b', NULL);
"""

# Batches of changes; after each all views are compared.
CHANGES = [
    "INSERT INTO orders VALUES (100, 3, 77.00, 1, 'new'), (101, 99, 1.00, NULL, NULL), (102, NULL, NULL, 3, 'zzz')",
    "INSERT INTO orders VALUES (5, 6, 0.01, 2, 'overwritten'); UPDATE orders SET amount = amount + 1 WHERE id % 4 = 0",
    "DELETE FROM orders WHERE customer = 2; DELETE FROM customers WHERE id = 1",
    "INSERT INTO customers VALUES (6, 'f', 'Plzeň'); INSERT INTO events VALUES ('a', 1), ('c', 9)",
    "DELETE FROM events WHERE kind = 'b'; UPDATE events SET n = 4 WHERE kind IS NULL",
    "UPDATE customers SET city = 'Ostrava' WHERE id = 3; UPDATE orders SET customer = 6 WHERE customer = 3",
    "DELETE FROM orders; DELETE FROM events",
    "INSERT INTO orders VALUES (1, 6, 5.00, 5, 'again'); INSERT INTO events VALUES ('z', 2)",
]  # fmt: skip

BIG_ROWS = 100_000


@pytest.fixture
def session(shared_server: Server) -> Iterator[Connection]:
    """A session; afterwards all tables and views are dropped and the parameters are as they were."""
    with shared_server.connect() as own:
        parameters = own.execute("SHOW PARAMETERS").fetchall()
        yield own
        for job in own.execute("SHOW JOBS").fetchall():
            own.execute(f"CANCEL JOBS {job[0]}")
        for (table,) in own.execute("SHOW TABLES").fetchall():
            own.execute(f"DROP TABLE {table} CASCADE")
        for name, value, *_ in parameters:
            if own.execute(f"SHOW {name}").fetchone() != (value,):
                own.execute(f"ALTER SYSTEM SET {name} = '{value}'")


def rows(connection: Connection, query: str) -> list[Any]:
    """All rows, in an order that depends on nothing else."""
    return sorted(connection.execute(query).fetchall(), key=repr)


def create_big_table(connection: Connection, slice_rows: int = 5_000) -> None:
    """Table big, and slices so small that its backfills take many."""
    connection.execute("CREATE TABLE big (k int PRIMARY KEY, g int, v int)")
    for start in range(0, BIG_ROWS, BIG_ROWS // 10):
        connection.execute(
            f"INSERT INTO big SELECT i, i % 10, i % 1000 FROM range({start}, {start + BIG_ROWS // 10}) AS r (i)"
        )
    connection.execute("ALTER SYSTEM SET backfill_engine = spark")
    connection.execute(f"ALTER SYSTEM SET backfill_slice_rows = {slice_rows}")


def consumed(progress: str) -> int:
    """The rows a progress text says are read."""
    found = re.search(r"\((\d+)/\d+\)", progress)
    return int(found[1]) if found else 0


def job_of(connection: Connection, view: str) -> int:
    found = connection.execute("SELECT id FROM rw_catalog.rw_materialized_views WHERE name = %s", (view,)).fetchone()
    assert found is not None
    return found[0]


def wait_for_first_slice(connection: Connection) -> None:
    def is_reading() -> bool:
        progress = connection.execute("SELECT progress FROM rw_catalog.rw_ddl_progress").fetchone()
        return progress is not None and consumed(progress[0]) > 0

    assert wait_until(is_reading, 60)


# What views hold.


def check_views(connection: Connection, names: list[str], when: str) -> None:
    connection.execute("FLUSH")
    for name in names:
        assert rows(connection, f"SELECT * FROM {name}") == rows(connection, VIEWS[name]), f"{name} {when}"


def create_views(connection: Connection, names: list[str], engine: str) -> None:
    connection.execute(f"ALTER SYSTEM SET backfill_engine = {engine}")
    connection.execute(TABLES)
    for name in names:
        connection.execute(f"CREATE MATERIALIZED VIEW {name} AS {VIEWS[name]}")


@pytest.mark.parametrize(
    ("engine", "names", "changes"),
    [
        pytest.param("spark", FILLED_ON_SPARK, ["; ".join(CHANGES[:5])], id="spark"),
        pytest.param("auto", list(VIEWS), CHANGES, id="auto", marks=pytest.mark.long),
    ],
)
def test_views_follow_their_tables(session: Connection, engine: str, names: list[str], changes: list[str]) -> None:
    """`engine` is the one that fills them."""
    create_views(session, names, engine)
    check_views(session, names, "after creation")
    for change in changes:
        session.execute(change)
        check_views(session, names, f"after {change}")


@pytest.mark.long
@pytest.mark.parametrize("engine", ["spark", "duckdb"])
def test_both_engines_maintain_alike(session: Connection, engine: str) -> None:
    names = ["united", "joined", "grouped", "overall", "bag", "on_view"]
    session.execute(f"ALTER SYSTEM SET streaming_engine = {engine}")
    create_views(session, names, "auto")
    check_views(session, names, "after creation")
    for change in ("; ".join(CHANGES[:6]), "; ".join(CHANGES[6:])):
        session.execute(change)
        check_views(session, names, f"on {engine} after {change}")


TYPED = """
CREATE TABLE typed (
    k int PRIMARY KEY, small smallint, big bigint, single real, double double precision, exact numeric(10,2),
    b boolean, day date, clock time, moment timestamp, zoned timestamptz, t varchar, bin bytea, list int[],
    texts varchar[], pair struct<a int, b varchar>
);
"""
VALUES = """-1, 1e10::bigint, 0.1, 1e-300, -1.50, true, '0001-01-01', '23:59:59.999999', '2026-01-01 00:00:00.000001',
'2026-01-01 12:00+05', 'é😀', '\\x00ff', ARRAY[1, NULL], ARRAY['', NULL], ROW(1, NULL)"""
COUNTED = "SELECT clock, moment, zoned, count(*) AS n FROM typed GROUP BY clock, moment, zoned"


@pytest.mark.long
def test_spark_keeps_values_of_every_type(session: Connection) -> None:
    session.execute("ALTER SYSTEM SET backfill_engine = spark; ALTER SYSTEM SET streaming_engine = spark")
    session.execute(TYPED)
    session.execute(f"INSERT INTO typed VALUES (1, {VALUES})")
    session.execute("CREATE MATERIALIZED VIEW kept AS SELECT * FROM typed WHERE k > 0")
    session.execute(f"CREATE MATERIALIZED VIEW counted AS {COUNTED}")
    for added in ("", f"INSERT INTO typed VALUES (2, {VALUES}); INSERT INTO typed (k) VALUES (3)"):
        session.execute(added)
        session.execute("FLUSH")
        assert rows(session, "SELECT * FROM kept") == rows(session, "SELECT * FROM typed")
        assert rows(session, "SELECT * FROM counted") == rows(session, COUNTED)


def test_columns_of_views_have_the_types_of_their_queries(session: Connection) -> None:
    session.execute(TABLES)
    session.execute(f"CREATE MATERIALIZED VIEW grouped AS {VIEWS['grouped']}")
    view, query = session.execute("SELECT * FROM grouped"), session.execute(VIEWS["grouped"])
    texts = {25: 1043}  # every text is a varchar in a view
    types = lambda cursor: [(c.name, texts.get(c.type_code, c.type_code)) for c in cursor.description or ()]  # noqa: E731
    assert types(view) == types(query)


def test_aggregates_over_an_empty_table(session: Connection) -> None:
    session.execute("CREATE TABLE empty (k int PRIMARY KEY, v int)")
    session.execute("CREATE MATERIALIZED VIEW total AS SELECT count(*) AS n, sum(v) AS s, max(v) AS m FROM empty")
    session.execute("CREATE MATERIALIZED VIEW totals AS SELECT k, count(*) AS n FROM empty GROUP BY k")
    session.execute("CREATE MATERIALIZED VIEW copied AS SELECT k, v FROM empty")
    assert rows(session, "SELECT * FROM total") == [(0, None, None)]
    assert rows(session, "SELECT * FROM totals") == rows(session, "SELECT * FROM copied") == []
    session.execute("INSERT INTO empty VALUES (1, 5), (2, NULL), (3, 7)")
    session.execute("FLUSH")
    assert rows(session, "SELECT * FROM total") == [(3, 12, 7)]
    session.execute("DELETE FROM empty")
    session.execute("FLUSH")
    assert rows(session, "SELECT * FROM total") == [(0, None, None)]
    assert rows(session, "SELECT * FROM totals") == rows(session, "SELECT * FROM copied") == []


def test_implicit_flush_makes_changes_visible_at_once(session: Connection) -> None:
    session.execute("ALTER SYSTEM SET barrier_interval_ms = 5000")
    session.execute("CREATE TABLE seen (k int PRIMARY KEY, v int)")
    session.execute("CREATE MATERIALIZED VIEW seen_sum AS SELECT sum(v) AS s FROM seen")
    session.execute("SET implicit_flush = true")
    for statement, expected in [
        ("INSERT INTO seen VALUES (1, 1), (2, 2)", 3),
        ("UPDATE seen SET v = 10 WHERE k = 1", 12),
        ("DELETE FROM seen WHERE k = 2", 10),
    ]:
        session.execute(statement)
        assert session.execute("SELECT s FROM seen_sum").fetchone() == (expected,)
    with session.cursor() as cursor, cursor.copy("COPY seen FROM STDIN") as copy:
        copy.write("7\t5\n")
    assert session.execute("SELECT s FROM seen_sum").fetchone() == (15,)


def test_changes_show_up_without_a_flush(session: Connection) -> None:
    session.execute("CREATE TABLE ticking (k int PRIMARY KEY)")
    session.execute("CREATE MATERIALIZED VIEW ticks AS SELECT count(*) AS n FROM ticking")
    session.execute("INSERT INTO ticking VALUES (1), (2)")
    assert wait_until(lambda: session.execute("SELECT n FROM ticks").fetchone() == (2,), 10)


# Creating and dropping.


def test_creation_in_the_foreground_and_if_not_exists(session: Connection) -> None:
    notices: list[str] = []
    session.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
    session.execute(TABLES)
    created = session.execute(
        'CREATE MATERIALIZED VIEW named ("Id", total) AS SELECT id, amount FROM orders ORDER BY id'
    )
    assert created.statusmessage == "CREATE MATERIALIZED VIEW"
    order_by = "The ORDER BY clause in the CREATE MATERIALIZED VIEW statement does not guarantee"
    assert any(notice.startswith(order_by) for notice in notices), notices
    assert rows(session, 'SELECT "Id", total FROM named') == rows(session, "SELECT id, amount FROM orders")
    assert session.execute("SHOW MATERIALIZED VIEWS").fetchall() == [("public.named",)]
    session.execute("CREATE MATERIALIZED VIEW IF NOT EXISTS named AS SELECT id FROM orders")
    assert notices[-1] == 'relation "named" already exists, skipping'
    with pytest.raises(psycopg.errors.DuplicateTable, match=r"relation \"named\" already exists\n"):
        session.execute("CREATE MATERIALIZED VIEW named AS SELECT id FROM orders")
    [(name, definition)] = session.execute("SHOW CREATE MATERIALIZED VIEW named").fetchall()
    session.execute("DROP MATERIALIZED VIEW named")
    session.execute(definition)
    assert (name, rows(session, "SELECT * FROM named")) == (
        "public.named",
        rows(session, "SELECT id, amount FROM orders"),
    )
    assert session.execute("SELECT status FROM rw_catalog.rw_materialized_views").fetchall() == [("Created",)]


def test_drop_with_dependents(session: Connection) -> None:
    session.execute(TABLES)
    session.execute("CREATE MATERIALIZED VIEW lower_view AS SELECT id, amount FROM orders")
    session.execute("CREATE MATERIALIZED VIEW upper_view AS SELECT count(*) AS n FROM lower_view")
    with pytest.raises(psycopg.errors.DependentObjectsStillExist) as caught:
        session.execute("DROP TABLE orders")
    assert caught.value.diag.message_primary == "table used by 1 other objects."
    assert caught.value.diag.message_detail == "materialized view public.lower_view depends on it"
    assert caught.value.diag.message_hint == "Use DROP ... CASCADE to drop the dependent objects too."
    with pytest.raises(psycopg.errors.DependentObjectsStillExist):
        session.execute("DROP MATERIALIZED VIEW lower_view")
    with pytest.raises(
        psycopg.errors.WrongObjectType, match="Use `DROP MATERIALIZED VIEW` to drop a materialized view"
    ):
        session.execute("DROP TABLE upper_view")
    assert len(session.execute("SHOW MATERIALIZED VIEWS").fetchall()) == 2
    session.execute("DROP TABLE orders CASCADE")
    assert session.execute("SHOW MATERIALIZED VIEWS").fetchall() == []
    assert sorted(session.execute("SHOW TABLES").fetchall()) == [("public.customers",), ("public.events",)]


@pytest.mark.parametrize("engine", long_but(["auto"], ["spark", "auto"]))
def test_backfill_that_fails(session: Connection, engine: str) -> None:
    """The reason reaches the client, nothing is left of the view, and its name is free."""
    session.execute(f"ALTER SYSTEM SET backfill_engine = {engine}")
    session.execute("CREATE TABLE wide (k int PRIMARY KEY, v numeric(38, 0))")
    session.execute(f"INSERT INTO wide VALUES (1, {'9' * 38}), (2, {'9' * 38})")
    with pytest.raises(psycopg.Error) as caught:
        session.execute(f"CREATE MATERIALIZED VIEW numbers_{engine} AS SELECT sum(v) AS n FROM wide")
    assert re.search("overflow|out of range|cannot be represented", str(caught.value), re.IGNORECASE), caught.value
    assert session.execute("SHOW JOBS").fetchall() == []
    assert session.execute("SELECT name FROM rw_catalog.rw_materialized_views").fetchall() == []
    events = "SELECT count(*) FROM rw_catalog.rw_event_logs WHERE event_type = 'CREATE_STREAM_JOB_FAIL'"
    assert session.execute(f"{events} AND info::varchar LIKE '%numbers_{engine}%'").fetchone() == (1,)
    session.execute("DELETE FROM wide WHERE k = 2")
    session.execute(f"CREATE MATERIALIZED VIEW numbers_{engine} AS SELECT sum(v) AS n FROM wide")
    assert rows(session, f"SELECT * FROM numbers_{engine}") == [(Decimal("9" * 38),)]


# Jobs.


def test_background_creation_and_its_progress(session: Connection, shared_server: Server) -> None:
    """SHOW JOBS and the catalogs tell of a running job, DML goes on meanwhile, WAIT waits."""
    create_big_table(session)
    session.execute("SET background_ddl = true")
    # Rows of which each becomes many, so that the job is seen running.
    series = "SELECT g, v, generate_series(1, 1000) AS i FROM big"
    query = f"SELECT g, count(*) AS n, sum(v) AS s FROM ({series}) AS s GROUP BY g"
    session.execute(f"CREATE MATERIALIZED VIEW watched AS {query}")
    job = job_of(session, "watched")
    [(id_, statement, kind, _)] = session.execute("SHOW JOBS").fetchall()
    assert (id_, statement, kind) == (job, f"CREATE MATERIALIZED VIEW watched AS {query}", "BACKGROUND")
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="still being created"):
        session.execute("SELECT * FROM watched")
    assert session.execute("SHOW MATERIALIZED VIEWS").fetchall() == []
    seen: list[int] = []
    number = BIG_ROWS
    states: list[str] = []
    kind_of_job = "SELECT backfill_type FROM rw_catalog.rw_ddl_progress"
    assert wait_until(lambda: session.execute(kind_of_job).fetchone() == ("SNAPSHOT_BACKFILL",), 60)
    while found := session.execute("SELECT * FROM rw_catalog.rw_ddl_progress").fetchone():
        states += [state for (state,) in session.execute("SELECT state FROM rw_catalog.rw_backfill_status").fetchall()]
        assert (found[0], found[2], found[5], found[6]) == (job, "BACKGROUND", False, "SNAPSHOT_BACKFILL")
        assert re.match(r"0\.0%|Snapshot (\[\d+\.\d\d% \(\d+/\d+\)\]|finished)|LogStore |Finishing ", found[3]), found[
            3
        ]
        seen.append(consumed(found[3]) if "(" in found[3] else (0 if found[3] == "0.0%" else BIG_ROWS))
        session.execute("INSERT INTO big VALUES (%s, 3, 1), (%s, 11, 2)", (number, number + 1))
        session.execute("DELETE FROM big WHERE k = %s", (number - BIG_ROWS,))
        number += 2
    assert seen == sorted(seen)
    assert len(set(seen)) >= 4, f"progress went {seen}"
    assert "RUNNING" in states
    assert set(states) <= {"RUNNING", "CATCHING UP", "FINISHING"}
    session.execute("WAIT MATERIALIZED VIEW watched")
    session.execute("FLUSH")
    assert rows(session, "SELECT * FROM watched") == rows(session, query)
    assert not list((shared_server.data / "staging").glob(f"job_{job}*"))


@pytest.mark.long
def test_wait_and_if_not_exists_wait_for_a_running_job(session: Connection, shared_server: Server) -> None:
    create_big_table(session, slice_rows=20_000)
    session.execute("SET background_ddl = true")
    statement = "MATERIALIZED VIEW {} awaited AS SELECT k, v FROM big WHERE v < 500"
    session.execute("CREATE " + statement.format(""))
    session.execute("CREATE " + statement.format("IF NOT EXISTS"))
    assert len(session.execute("SHOW JOBS").fetchall()) == 1, "a background statement does not wait"
    with shared_server.connect() as foreground:
        foreground.execute("CREATE " + statement.format("IF NOT EXISTS"))
        assert foreground.execute("SHOW JOBS").fetchall() == []
    session.execute("DROP MATERIALIZED VIEW awaited")
    session.execute("CREATE " + statement.format(""))
    session.execute("WAIT")
    assert rows(session, "SELECT * FROM awaited") == rows(session, "SELECT k, v FROM big WHERE v < 500")


ENDS = ["CANCEL JOBS {job}, 999999", "DROP MATERIALIZED VIEW doomed"]


@pytest.mark.parametrize("command", long_but(ENDS[:1], ENDS))
def test_ending_a_running_job(session: Connection, shared_server: Server, command: str) -> None:
    create_big_table(session)
    session.execute("SET background_ddl = true")
    session.execute("SET backfill_rate_limit = 20000")  # it runs when it is ended
    session.execute("CREATE MATERIALIZED VIEW doomed AS SELECT k, v + 1 AS w FROM big")
    session.execute("RESET backfill_rate_limit")
    job = job_of(session, "doomed")
    wait_for_first_slice(session)
    result = session.execute(command.format(job=job))
    if command.startswith("CANCEL"):
        assert result.fetchall() == [(str(job),)]
    assert session.execute("SHOW JOBS").fetchall() == []
    assert session.execute("SELECT name FROM rw_catalog.rw_relations WHERE name = 'doomed'").fetchall() == []
    assert not list((shared_server.data / "data").glob(f"job_{job}"))
    assert not list((shared_server.data / "staging").glob(f"job_{job}*"))
    session.execute("SET background_ddl = false")
    session.execute("ALTER SYSTEM SET backfill_slice_rows TO DEFAULT")
    session.execute("CREATE MATERIALIZED VIEW doomed AS SELECT k, v + 1 AS w FROM big")
    assert (
        session.execute("SELECT count(*), sum(w) FROM doomed").fetchall()
        == session.execute("SELECT count(*), sum(v + 1) FROM big").fetchall()
    )


@pytest.mark.long
def test_cancel_of_a_serverless_job_ends_its_node(session: Connection, shared_server: Server) -> None:
    create_big_table(session)
    session.execute("ALTER SYSTEM SET serverless_backfill_enabled = true")
    session.execute("ALTER SYSTEM SET serverless_backfill_sku = '1c2g'")
    session.execute("SET background_ddl = true")
    session.execute("SET enable_serverless_backfill = true")
    before = shared_server.java_processes()
    session.execute("CREATE MATERIALIZED VIEW stopped AS SELECT k, v FROM big")
    assert wait_until(lambda: len(shared_server.java_processes()) == len(before) + 1, 15)
    session.execute(f"CANCEL JOBS {job_of(session, 'stopped')}")
    assert session.execute("SHOW JOBS").fetchall() == []
    assert session.execute("SELECT count(*) FROM rw_catalog.rw_worker_nodes").fetchone() == (1,)
    assert wait_until(lambda: shared_server.java_processes() == before, 15)


def test_names_that_need_quotes(shared_server: Server) -> None:
    """The stored definition can be planned again, as a restart does."""
    with shared_server.connect() as session:
        session.execute('CREATE TABLE "Odd table" ("A b" int PRIMARY KEY, "select" int)')
        session.execute('INSERT INTO "Odd table" VALUES (1, 2)')
        session.execute('CREATE MATERIALIZED VIEW "Odd ""view" ("X y", z) AS SELECT "A b", "select" FROM "Odd table"')
        session.execute('INSERT INTO "Odd table" VALUES (3, 4)')
        session.execute("FLUSH")
        assert session.execute('SELECT "X y", z FROM "Odd ""view" ORDER BY 1').fetchall() == [(1, 2), (3, 4)]
        session.execute('DROP TABLE "Odd table" CASCADE')
