"""CREATE INDEX: what it keeps, what the catalogs say of it, and queries that read it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from servers import Server, refused, rows
from test_law import as_bag, opened, run

from sparkwave.catalog.lake.expiry import expire
from sparkwave.server.dispatch import Client
from sparkwave.server.reads import execution

Connection = psycopg.Connection[Any]


@pytest.fixture
def session(in_process_server: Server) -> Iterator[Connection]:
    """A session in a schema of its own, with a table t."""
    with in_process_server.connect() as own:
        own.execute("CREATE SCHEMA app")
        own.execute("SET search_path = app")
        own.execute("CREATE TABLE t (k int PRIMARY KEY, a int, b varchar)")
        own.execute("INSERT INTO t VALUES (1, 10, 'X'), (2, 20, 'y'), (3, 10, NULL), (4, NULL, 'z')")
        yield own
        own.execute("RESET ALL")
        own.execute("DROP SCHEMA app CASCADE")


def plan(connection: Connection, query: str) -> str:
    return "\n".join(line for (line,) in rows(connection, f"EXPLAIN {query}"))


def test_an_index_has_its_columns_and_follows(session: Connection) -> None:
    assert session.execute("CREATE INDEX i ON t (a DESC, lower(b)) INCLUDE (k)").statusmessage == "CREATE INDEX"
    session.execute("CREATE INDEX whole ON t (b)")
    session.execute("UPDATE t SET b = 'W' WHERE k = 3")
    session.execute("DELETE FROM t WHERE k = 1")
    session.execute("FLUSH")
    assert [c.name for c in session.execute("SELECT * FROM i").description or ()] == ["a", "lower", "k"]
    assert sorted(rows(session, "SELECT k, a, lower FROM i")) == [(2, 20, "y"), (3, 10, "w"), (4, None, "z")]
    assert [c.name for c in session.execute("SELECT * FROM whole").description or ()] == ["b", "k", "a"]
    assert sorted(rows(session, "SELECT b, k, a FROM whole")) == [("W", 3, 10), ("y", 2, 20), ("z", 4, None)]
    assert refused(session, "INSERT INTO i VALUES (1, 'x', 2)").sqlstate == "42809"
    assert refused(session, "DELETE FROM i").diag.message_primary == 'cannot change index "i"'


def test_names_and_words_of_postgresql(session: Connection) -> None:
    """Without a name an index gets PostgreSQL's; CONCURRENTLY may stand there."""
    for statement in (
        "CREATE INDEX ON t (b)",
        "CREATE INDEX ON t (b)",
        "CREATE UNIQUE INDEX ON t ((k * 2), lower(b), a)",
        'CREATE INDEX CONCURRENTLY IF NOT EXISTS "Odd" ON t USING btree (a)',
    ):
        session.execute(statement.encode())
    listed = "SELECT indexname FROM pg_indexes WHERE schemaname = 'app' AND tablename = 't' ORDER BY 1"
    assert [name for (name,) in rows(session, listed) if name != "t_pkey"] == [
        "Odd", "t_b_idx", "t_b_idx1", "t_expr_lower_a_idx",
    ]  # fmt: skip
    assert rows(session, "SHOW CREATE INDEX t_b_idx1") == [("app.t_b_idx1", "CREATE INDEX t_b_idx1 ON t (b)")]
    session.execute('DROP INDEX CONCURRENTLY IF EXISTS t_b_idx, "Odd"')
    assert refused(session, "CREATE INDEX IF NOT EXISTS ON t (b)").sqlstate == "42601"


def test_a_temporary_table_has_none(session: Connection) -> None:
    notices: list[str] = []
    session.add_notice_handler(lambda told: notices.append(str(told.message_primary)))
    session.execute("CREATE TEMPORARY TABLE own (a int, b varchar)")
    assert session.execute("CREATE INDEX own_a ON own (a)").statusmessage == "CREATE INDEX"
    assert notices == ["temporary tables have no indexes here; none is made"]


def test_catalogs(session: Connection) -> None:
    session.execute("CREATE INDEX i ON t (a DESC, lower(b), k) INCLUDE (b) DISTRIBUTED BY (a)")
    assert rows(session, "SHOW INDEXES FROM t") == [("i", "t", "a DESC, lower(b) ASC, k ASC", "b", "a")]
    shown = rows(session, "SHOW CREATE INDEX i")
    assert shown == [("app.i", "CREATE INDEX i ON t (a DESC, lower(b), k) INCLUDE (b) DISTRIBUTED BY (a)")]
    [(table, keys, included)] = rows(
        session, "SELECT primary_table_id, key_columns, include_columns FROM rw_indexes WHERE name = 'i'"
    )
    assert (table, keys, included) == (rows(session, "SELECT id FROM rw_tables WHERE name = 't'")[0][0], [2, 0, 1], [3])
    assert rows(session, "SELECT relation_type FROM rw_relations WHERE name = 'i'") == [("index",)]
    assert rows(session, "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 't' ORDER BY 1") == [
        ("i", "CREATE INDEX i ON app.t USING btree (a DESC, lower(b), k) INCLUDE (b)"),
        ("t_pkey", "CREATE UNIQUE INDEX t_pkey ON app.t USING btree (k)"),
    ]
    assert rows(
        session,
        "SELECT indkey, indnkeyatts, indisunique, indoption FROM pg_index WHERE indexrelid = 'app.i'::regclass",
    ) == [("2 0 1 3", 3, False, "3 0 0")]
    assert rows(session, "SELECT relkind FROM pg_class WHERE relname = 'i'") == [("i",)]
    described = {name: type_ for name, type_, *_ in rows(session, "DESCRIBE t")}
    assert described["i"] == "index(a DESC, lower(b) ASC, k ASC) include(b) distributed by(a)"
    columns = "SELECT c.name, c.is_hidden FROM rw_columns c JOIN rw_indexes i ON i.id = c.relation_id ORDER BY position"
    assert rows(session, columns) == [("a", False), ("lower", False), ("k", False), ("b", False)]
    kinds = "SELECT relation_type FROM rw_catalog.rw_streaming_parallelism WHERE name = 'i'"
    assert rows(session, kinds) == [("index",)]


def test_what_is_included_without_being_asked_for(session: Connection) -> None:
    """PostgreSQL's catalogs list the columns that CREATE INDEX names, RisingWave's all."""
    session.execute("CREATE INDEX i ON t (a)")
    shown = "SELECT indkey, indnatts, indnkeyatts, pg_get_indexdef(indexrelid) FROM pg_index JOIN pg_class c ON "
    shown += "c.oid = indexrelid WHERE relname = 'i'"
    for _ in range(2):
        assert rows(session, shown) == [("2", 1, 1, "CREATE INDEX i ON app.t USING btree (a)")]
        assert rows(session, "SELECT include_columns FROM rw_indexes WHERE name = 'i'") == [([1, 3],)]
        [(_, _, _, included, _)] = rows(session, "SHOW INDEXES FROM t")
        session.execute("ALTER TABLE t RENAME COLUMN b TO c")
        session.execute("ALTER TABLE t RENAME COLUMN c TO b")
    assert included == "k, b"


def test_psql(session: Connection, in_process_server: Server) -> None:
    session.execute("CREATE INDEX by_a ON t (a) INCLUDE (b)")
    shown = in_process_server.psql("-c", "\\d app.t", "-c", "\\d app.by_a", "-c", "\\di app.*").stdout
    assert '"by_a" btree (a) INCLUDE (b)' in shown and 'Index "app.by_a"' in shown
    assert "app    | by_a   | index | root  | t" in shown


REFUSED = [
    ("CREATE INDEX i ON nope (a)", "42P01", 'relation "nope" does not exist'),
    ("CREATE INDEX i ON t (nope)", "42703", 'column "nope" does not exist'),
    ("CREATE INDEX i ON t (a) INCLUDE (nope)", "42703", 'column "nope" does not exist'),
    ("CREATE INDEX i ON v (a)", "42809", '"v" is a view'),
    ("CREATE INDEX i ON old (a)", "42809", '"old" is an index'),
    ("CREATE INDEX old ON t (a)", "42P07", 'relation "old" already exists'),
    ("CREATE INDEX public.i ON t (a)", "42601", "an index is in the schema of its table"),
    ("CREATE INDEX i ON t (a, b) DISTRIBUTED BY (b)", "42P17", "Distributed by columns should be a prefix"),
    ("CREATE INDEX i ON t (1 + 1)", "0A000", "index columns should be columns or expressions"),
    ("CREATE INDEX i ON t (a) WHERE", "42601", "syntax error at end of input"),
    ("CREATE INDEX i ON t (a) WHERE nope > 1", "42703", 'column "nope" does not exist'),
    ("CREATE INDEX i ON t (a) WHERE a", "42804", "argument of WHERE must be type boolean, not type integer"),
    ("CREATE INDEX i ON t (a) WHERE a IN (SELECT 1)", "0A000", "cannot use subquery in index predicate"),
    ("CREATE INDEX i ON t (a) WHERE sum(a) > 1", "42803", "aggregate functions are not allowed in index predicates"),
    (
        "CREATE INDEX i ON t (a) WHERE rank() OVER () > 1",
        "42P20",
        "window functions are not allowed in index predicates",
    ),
    ("CREATE INDEX i ON t (a) WHERE now() > '2020-01-01'", "42P17", "must be marked IMMUTABLE"),
    ("CREATE INDEX i ON t (a) WHERE random() > a", "42P17", "must be marked IMMUTABLE"),
    ("CREATE INDEX i ON t (a) WHERE t.a > 1", "0A000", "a column of an index is named without its table"),
    ("CREATE INDEX i ON t USING gin (a)", "0A000", "index method gin is not supported"),
    ("CREATE INDEX i ON t USING hnsw (a)", "0A000", "index method hnsw is not supported"),
    ("CREATE INDEX i ON t (random() + a)", "0A000", "not supported in a materialized view"),
    ("CREATE INDEX i ON t (a) WITH (nope = 1)", "22023", "unexpected options in WITH clause"),
    ("CREATE INDEX i ON t ()", "42601", "syntax error"),
    ("CREATE INDEX i ON t (a LIMIT 1)", "42601", "syntax error"),
    ("DROP TABLE old", "42809", "Use `DROP INDEX` to drop an index."),
    ("DROP INDEX t", "42809", "Use `DROP TABLE` to drop a table."),
    ("DROP INDEX nope", "42704", 'index "nope" does not exist'),
    ("ALTER INDEX old SET nope = 1", "0A000", "this ALTER INDEX is not supported"),
]


def test_refused(session: Connection) -> None:
    session.execute("CREATE VIEW v AS SELECT * FROM t")
    session.execute("CREATE INDEX old ON t (a)")
    for sql, sqlstate, message in REFUSED:
        error = refused(session, sql)
        assert (error.sqlstate, message in (error.diag.message_primary or "")) == (sqlstate, True), (sql, error)
    assert rows(session, "SHOW JOBS") == []


def test_if_not_exists_and_drop(session: Connection) -> None:
    session.execute("CREATE INDEX i ON t (a)")
    session.execute("CREATE INDEX IF NOT EXISTS i ON t (b)")
    assert [column for _, _, column, *_ in rows(session, "SHOW INDEXES FROM t")] == ["a ASC"]
    session.execute("CREATE MATERIALIZED VIEW reads AS SELECT count(*) AS n FROM i")
    assert refused(session, "DROP TABLE t").sqlstate == "2BP01"
    session.execute("DROP MATERIALIZED VIEW reads")
    assert session.execute("DROP INDEX i").statusmessage == "DROP INDEX"
    session.execute("DROP INDEX IF EXISTS i")
    session.execute("CREATE INDEX j ON t (b)")
    session.execute("DROP TABLE t")
    assert rows(session, "SELECT name FROM rw_relations WHERE relation_type = 'index'") == []


def test_an_index_goes_where_its_table_goes(session: Connection) -> None:
    session.execute("CREATE SCHEMA other")
    session.execute('CREATE INDEX "__dbt_index_t_a" ON t (a)')
    session.execute('ALTER INDEX "dev"."app"."__dbt_index_t_a" RENAME TO "of a"')
    session.execute("ALTER TABLE t RENAME TO renamed")
    assert rows(session, 'SHOW CREATE INDEX "of a"') == [('app."of a"', 'CREATE INDEX "of a" ON renamed (a)')]
    session.execute("ALTER TABLE renamed SET SCHEMA other")
    session.execute("INSERT INTO other.renamed VALUES (9, 90, 'n')")
    session.execute("FLUSH")
    assert rows(session, 'SELECT k FROM other."of a" WHERE a = 90') == [(9,)]
    session.execute("CREATE USER somebody")
    session.execute("GRANT ALL ON SCHEMA other TO somebody")
    session.execute("ALTER TABLE other.renamed OWNER TO somebody")
    owners = rows(session, "SELECT u.name FROM rw_indexes i JOIN rw_users u ON u.id = i.owner")
    assert owners == [("somebody",)]
    session.execute("DROP SCHEMA other CASCADE")
    session.execute("DROP USER somebody")


def test_a_creating_index(session: Connection) -> None:
    session.execute("SET background_ddl = true")
    session.execute("CREATE INDEX slow ON t (a) WITH (backfill_rate_limit = 0)")
    [(job, statement, kind, _)] = rows(session, "SHOW JOBS")
    assert (statement, kind) == ("CREATE INDEX slow ON t (a) WITH (backfill_rate_limit = 0)", "BACKGROUND")
    assert "slow" not in plan(session, "SELECT k FROM t WHERE a = 10")
    assert refused(session, "SELECT * FROM slow").diag.message_primary == 'index "slow" is still being created'
    session.execute("ALTER INDEX slow SET BACKFILL_RATE_LIMIT = DEFAULT")
    session.execute("WAIT INDEX slow")
    assert "slow" in plan(session, "SELECT k FROM t WHERE a = 10")
    session.execute("CREATE INDEX gone ON t (b) WITH (backfill_rate_limit = 0)")
    session.execute("DROP INDEX gone")
    assert rows(session, "SHOW JOBS") == []
    assert rows(session, "SHOW INDEXES FROM t LIKE 'gone'") == []
    assert job


# Queries, and whether they read an index.
QUERIES = [
    ("SELECT k FROM t WHERE a = 10", True),
    ("SELECT * FROM t WHERE a = 10 AND b = 'X'", True),
    ("SELECT * FROM t x WHERE 10 = x.a ORDER BY x.k", True),
    ("SELECT k FROM t WHERE a IN (10, 20)", True),
    ("SELECT k FROM t WHERE a > 10", True),
    ("SELECT k FROM t WHERE a BETWEEN 5 AND 15", True),
    ("SELECT count(*) FROM app.t WHERE app.t.a = 10", True),
    ("SELECT t.k, o.v FROM t JOIN o ON o.k = t.k WHERE t.a = 10", True),
    ("SELECT (SELECT max(k) FROM t WHERE a = 10)", True),
    ("WITH w AS (SELECT * FROM t WHERE a = 10) SELECT * FROM w", True),
    ("SELECT k FROM t WHERE lower(b) = 'x'", True),
    ("SELECT k, b FROM t WHERE lower(b) > 'x'", True),
    ("SELECT k FROM t WHERE k = 1", False),
    ("SELECT k FROM t WHERE a = 10 OR b = 'X'", False),
    ("SELECT k FROM t WHERE a = k", False),
    ("SELECT k FROM t WHERE b = 'X'", False),
    ("SELECT k FROM t", False),
    ("SELECT t FROM t WHERE a = 10", False),
    ("SELECT k FROM t WHERE a <> 10", False),
    ("WITH t AS (SELECT 1 AS a, 2 AS k) SELECT k FROM t WHERE a = 1", False),
    ("SELECT c FROM wide WHERE a = 1", False),
]


def test_queries_read_it(session: Connection) -> None:
    """The rows are the same with and without, and EXPLAIN tells which."""
    session.execute("CREATE TABLE o (k int, v int)")
    session.execute("INSERT INTO o VALUES (1, 7), (3, 8)")
    session.execute("CREATE TABLE wide (a int, c int)")
    for index in ("i ON t (a, b)", "of_lower ON t (lower(b))", "few ON wide (a) INCLUDE (a)"):
        session.execute(f"CREATE INDEX {index}")
    session.execute("FLUSH")
    for query, is_read in QUERIES:
        found = []
        for choice in ("true", "false"):
            session.execute(f"SET enable_index_selection = {choice}")
            result = session.execute(query)
            found.append(([c.name for c in result.description or ()], sorted(result.fetchall(), key=str)))
            if query != "SELECT t FROM t WHERE a = 10":  # the planner has no row as a value
                shown = plan(session, query)
                expected = is_read and choice == "true"
                assert any(f"table: {name}," in shown for name in ("i", "of_lower", "few")) == expected, shown
        assert found[0] == found[1], query


def test_what_is_written_is_read(session: Connection) -> None:
    """An index is behind its table until a barrier comes; nobody may see that, with parameters either."""
    session.execute("CREATE INDEX i ON t (a)")
    session.execute("CREATE MATERIALIZED VIEW m AS SELECT a, count(*) AS n FROM t GROUP BY a")
    session.execute("CREATE INDEX im ON m (n)")
    assert "table: im," in plan(session, "SELECT a FROM m WHERE n = 2")
    for number in range(100, 115):
        session.execute(f"INSERT INTO t VALUES ({number}, {number}, 'n')")
        assert rows(session, "SELECT k FROM t WHERE a = %s", (number,)) == [(number,)]
        session.execute(f"DELETE FROM t WHERE k = {number}")
        assert rows(session, "SELECT k FROM t WHERE a = %s", (number,)) == []
    session.execute("FLUSH")
    assert sorted(rows(session, "SELECT a FROM m WHERE n = 2")) == [(10,)]


def test_pinned_snapshots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """READ ONLY and atomic transactions read an index that had all rows at their snapshot, and else the table."""
    used: list[bool] = []
    run_indexed = execution.run_indexed

    def spy(*given: Any) -> bool:
        used.append(run_indexed(*given))
        return used[-1]

    monkeypatch.setattr(execution, "run_indexed", spy)
    with opened(tmp_path / "lake", streaming_engine="duckdb", backfill_engine="auto") as (context, client):
        other = Client(context, {"user": "root"})

        def found(query: str) -> tuple[list[tuple[object, ...]], bool]:
            used.clear()
            return sorted(run(client, query), key=str), used == [True]

        query = "SELECT k FROM t WHERE a = 1"
        run(client, "CREATE TABLE t (k int PRIMARY KEY, a int)")
        run(client, "INSERT INTO t VALUES (1, 1), (2, 2)")
        run(client, "CREATE INDEX i ON t (a)")
        context.coordinator.flush(lambda: False)
        version = context.lake.pin()
        for begin in ("BEGIN READ ONLY", "BEGIN"):
            run(client, f"SET atomic_transactions = {begin == 'BEGIN'}")
            run(client, begin)
            assert found(query) == ([(1,)], True)
            run(other, "INSERT INTO t VALUES (3, 1)")
            context.coordinator.flush(lambda: False)
            assert found(query) == ([(1,)], True)
            run(client, "COMMIT")
            run(other, "INSERT INTO t VALUES (4, 1)")
            run(client, begin)  # at a snapshot that the index is behind
            context.coordinator.flush(lambda: False)
            assert found(query) == ([(1,), (3,), (4,)], False)
            run(client, "COMMIT")
            run(other, "DELETE FROM t WHERE k > 2")
            context.coordinator.flush(lambda: False)
        run(client, "BEGIN")
        run(client, "UPDATE t SET a = 1 WHERE k = 2")
        assert found(query) == ([(1,), (2,)], False)
        run(client, "COMMIT")
        context.coordinator.flush(lambda: False)
        assert found(query) == ([(1,), (2,)], True)
        past = query.replace("t WHERE", f"t FOR SYSTEM_VERSION AS OF {version} WHERE")
        assert found(past) == ([(1,)], False)


def test_forgotten_snapshots_may_have_changed_anything(tmp_path: Path) -> None:
    with opened(tmp_path / "lake") as (context, client):
        run(client, "CREATE TABLE t (k int)")
        run(client, "CREATE TABLE other (k int)")
        [table] = [r.lake_table for r in context.store.catalog.relations if r.name == "t"]
        cursor = context.lake.cursor()
        start = context.lake.snapshot(cursor)
        run(client, "INSERT INTO other VALUES (1)")
        run(client, "INSERT INTO other VALUES (2)")
        end = context.lake.snapshot(cursor)
        assert not context.lake.has_changed(cursor, [table], start, end)
        expire(cursor, start + 2, 1000)
        assert context.lake.has_changed(cursor, [table], start, end)
        assert not context.lake.has_changed(cursor, [table], start + 1, end)


@pytest.mark.long
def test_what_is_indexed_gets_another_name(session: Connection) -> None:
    """Of relations without a key, whose row ids the index carries along."""
    session.execute("CREATE TABLE bag (a int, b int)")
    session.execute("CREATE MATERIALIZED VIEW m AS SELECT a, b FROM bag")
    session.execute("CREATE MATERIALIZED VIEW n AS SELECT a, b + 1 AS b FROM bag")
    session.execute("CREATE INDEX of_bag ON bag (a)")
    session.execute("CREATE INDEX of_m ON m (a)")
    session.execute("CREATE INDEX of_n ON n (b)")
    session.execute("ALTER MATERIALIZED VIEW m SWAP WITH n")
    session.execute("ALTER TABLE bag RENAME TO sack")
    session.execute("ALTER MATERIALIZED VIEW m RENAME TO o")
    session.execute("INSERT INTO sack VALUES (1, 2), (1, 2)")
    session.execute("FLUSH")
    assert [rows(session, f"SELECT * FROM {index}") for index in ("of_bag", "of_m", "of_n")] == [
        [(1, 2)] * 2, [(1, 2)] * 2, [(3, 1)] * 2,
    ]  # fmt: skip
    session.execute("ALTER TABLE sack RENAME TO bag")


def test_rows_lie_in_the_order_of_the_key(tmp_path: Path) -> None:
    with opened(tmp_path / "lake", backfill_engine="auto") as (context, client):
        run(client, "CREATE TABLE t (k int, v int)")
        run(client, "INSERT INTO t SELECT (i * 7919) % 10007, i FROM range(10007) AS r(i)")
        run(client, "CREATE INDEX i ON t (k DESC) INCLUDE (v)")
        [index] = [relation for relation in context.store.catalog.relations if relation.name == "i"]
        stored = context.lake.cursor().execute(f"SELECT k FROM {index.lake_name} ORDER BY rowid").fetchall()
        assert stored == [(k,) for k in reversed(range(10007))]


INDEXES = {
    "i1": ("(a, b DESC)", "SELECT a, b, k, s FROM t"),
    "i2": ("(a + b) INCLUDE (k)", "SELECT a + b, k FROM t"),
    "i3": ("(lower(s), a)", "SELECT lower(s), a, k, b, s FROM t"),
    "i4": ("(b) WHERE a IS NULL OR a > 2", "SELECT b, k, a, s FROM t WHERE a IS NULL OR a > 2"),
    "i5": ("(a, b) WHERE s = 'X' AND a > 1", "SELECT a, b, k, s FROM t WHERE s = 'X' AND a > 1"),
}


@pytest.mark.long
def test_law(tmp_path: Path) -> None:
    """After any changes an index has the rows of its table, and queries over it theirs, also before it has followed."""
    number = random.Random(5)
    queries = [
        "SELECT k FROM t WHERE a = {}", "SELECT * FROM t WHERE a = {} AND b > 1", "SELECT b, s FROM t WHERE a <= {}",
        "SELECT k FROM t WHERE a + b = {}", "SELECT k FROM t WHERE b = {} AND (a IS NULL OR a > 2)",
        "SELECT k, b FROM t WHERE a = {} AND s = 'X' AND b >= 1 AND a > 1",
        "SELECT count(*) FROM t WHERE lower(s) = 'x' AND a = {}",
    ]  # fmt: skip
    with opened(tmp_path / "lake", streaming_engine="duckdb", backfill_engine="auto") as (context, client):
        run(client, "CREATE TABLE t (k int PRIMARY KEY, a int, b int, s varchar)")
        run(client, "INSERT INTO t SELECT i, i % 5, i % 3, if(i % 2 = 0, 'X', 'y') FROM range(40) AS r(i)")
        for name, (columns, _) in INDEXES.items():
            run(client, f"CREATE INDEX {name} ON t {columns}")
        for _ in range(4):
            for _ in range(number.randint(1, 4)):
                k, a = number.randrange(60), number.choice([*range(5), "NULL"])
                run(
                    client,
                    number.choice(
                        (
                            f"INSERT INTO t VALUES ({k}, {a}, {k % 3}, 'X')",
                            f"UPDATE t SET a = {a} WHERE k % 7 = {k % 7}",
                            f"DELETE FROM t WHERE k = {k} OR (k % 5 = 0 AND a IS NULL)",
                        )
                    ),
                )
                for query in queries:
                    text = query.format(number.randrange(5))
                    run(client, "SET enable_index_selection = true")
                    indexed = as_bag(run(client, text))
                    run(client, "SET enable_index_selection = false")
                    assert indexed == as_bag(run(client, text)), text
            context.coordinator.flush(lambda: False)
            for name, (_, query) in INDEXES.items():
                assert as_bag(run(client, f"SELECT * FROM {name}")) == as_bag(run(client, query)), name


@pytest.mark.spark
@pytest.mark.long
def test_on_spark(shared_server: Server) -> None:
    """Filled by slices on Spark, each in the order of the key."""
    with shared_server.connect() as own:
        own.execute("CREATE TABLE spark_t (k int, v varchar)")
        own.execute("INSERT INTO spark_t SELECT (i * 7919) % 1009, i::varchar FROM range(1009) AS r(i)")
        own.execute("ALTER SYSTEM SET backfill_slice_rows = 500")
        own.execute("CREATE INDEX spark_i ON spark_t (k DESC)")
        own.execute("ALTER SYSTEM SET backfill_slice_rows = DEFAULT")
        assert rows(own, "SELECT count(*), sum(k), count(DISTINCT v) FROM spark_i") == [(1009, 1009 * 504, 1009)]
        assert rows(own, "SELECT v FROM spark_t WHERE k = 0") == [("0",)]
        own.execute("DROP TABLE spark_t")


def test_an_index_follows_the_names_of_columns(session: Connection) -> None:
    session.execute("CREATE INDEX i ON t (a DESC, lower(b)) INCLUDE (k) DISTRIBUTED BY (a)")
    session.execute("CREATE INDEX late ON t (b)")
    for rename in ("a TO c", "b TO a", "c TO b", 'k TO "Key"'):  # which in the end swaps a and b
        session.execute(f"ALTER TABLE t RENAME COLUMN {rename}")
    session.execute("CREATE INDEX after_all ON t (a)")
    assert rows(session, "SHOW INDEXES FROM t") == [
        ("after_all", "t", "a ASC", "Key, b", "a"),
        ("i", "t", "b DESC, lower(a) ASC", "Key", "b"),
        ("late", "t", "a ASC", "Key, b", "a"),
    ]
    [(_, shown)] = rows(session, "SHOW CREATE INDEX i")
    assert shown == 'CREATE INDEX i ON t (b DESC, lower(a)) INCLUDE ("Key") DISTRIBUTED BY (b)'
    assert rows(session, "SELECT indexdef FROM pg_indexes WHERE indexname = 'i'") == [
        ('CREATE INDEX i ON app.t USING btree (b DESC, lower(a)) INCLUDE ("Key")',)
    ]
    assert rows(session, "SELECT key_columns, include_columns FROM rw_indexes WHERE name = 'i'") == [([2, 0], [1])]
    for query, index, expected in (
        ('SELECT "Key", b FROM t WHERE b = 10', "i", [(1, 10), (3, 10)]),
        ("SELECT \"Key\" FROM t WHERE b = 20 AND lower(a) = 'y'", "i", [(2,)]),
        ("SELECT * FROM t WHERE a = 'z'", "late", [(4, None, "z")]),
    ):
        session.execute("FLUSH")
        assert index in plan(session, query), plan(session, query)
        assert sorted(rows(session, query)) == expected
    session.execute("UPDATE t SET a = 'new' WHERE b = 20")
    session.execute("FLUSH")
    assert rows(session, "SELECT \"Key\" FROM t WHERE b = 20 AND lower(a) = 'new'") == [(2,)]
    session.execute("ALTER TABLE t RENAME TO t2")  # the indexes are planned again
    assert rows(session, "SELECT \"Key\" FROM t2 WHERE b = 20 AND lower(a) = 'new'") == [(2,)]


def test_partial_indexes(session: Connection) -> None:
    """Such an index has the rows of its condition, and is read by queries that have it."""
    session.execute("CREATE INDEX i ON t (a) WHERE b IS NULL")
    session.execute("CREATE UNIQUE INDEX u ON t (b) INCLUDE (a) WHERE k > 1 AND a IS NOT NULL")
    session.execute("INSERT INTO t VALUES (5, 10, 'p'), (6, 10, NULL)")
    session.execute("UPDATE t SET b = 'now' WHERE k = 3")
    session.execute("FLUSH")
    assert sorted(rows(session, "SELECT a, k, b FROM i")) == [(10, 6, None)]
    assert sorted(rows(session, "SELECT b, a FROM u WHERE b IS NOT NULL")) == [("now", 10), ("p", 10), ("y", 20)]
    for query, index in (
        ("SELECT k FROM t WHERE a = 10 AND b IS NULL", "i"),
        ("SELECT x.k FROM t AS x WHERE x.b IS NULL AND x.a IN (10, 11) AND k > 0", "i"),
        ("SELECT k FROM t WHERE a = 10", ""),
        ("SELECT k FROM t WHERE a = 10 OR b IS NULL", ""),
        ("SELECT k FROM t WHERE a = 10 AND b IS NOT NULL", ""),
        ("SELECT t.k FROM t, t AS o WHERE t.a = 10 AND o.b IS NULL", ""),
        ("SELECT a FROM t WHERE b = 'p' AND a IS NOT NULL AND k > 1", ""),  # which needs a column that u has not
    ):
        shown = plan(session, query)
        assert [name for name in ("i", "u") if f"table: {name}," in shown] == ([index] if index else []), shown
        found = sorted(rows(session, query))
        session.execute("SET enable_index_selection = false")
        assert found == sorted(rows(session, query)), query
        session.execute("SET enable_index_selection = true")
    assert rows(session, "SELECT pg_get_expr(indpred, indrelid) FROM pg_index WHERE indexrelid = 'i'::regclass") == [
        ("(b IS NULL)",)
    ]


def test_rows_of_a_query_around_are_no_condition(session: Connection) -> None:
    """Neither an expression nor a condition of an index is one that a subquery has of the row of the query around."""
    session.execute("CREATE INDEX part ON t (a) WHERE b IS NULL")
    session.execute("CREATE INDEX of_lower ON t (lower(b))")
    session.execute("UPDATE t SET b = NULL WHERE k = 2")
    session.execute("FLUSH")
    for query, expected in (
        ("SELECT k, (SELECT count(*) FROM t WHERE t.a = 10 AND o.b IS NULL) FROM t AS o", [0, 2, 2, 0]),
        ("SELECT k, (SELECT count(*) FROM t WHERE lower(o.b) = 'x') FROM t AS o", [4, 0, 0, 0]),
        ("SELECT k, (SELECT count(*) FROM t WHERE lower(t.b) = 'x' AND o.k > 0) FROM t AS o", [1, 1, 1, 1]),
    ):
        assert sorted(rows(session, query)) == list(enumerate(expected, 1)), query


def test_another_time_zone_reads_the_table(session: Connection) -> None:
    """An index is computed in UTC: a session of another zone or order of dates means other rows by the same words."""
    session.execute("CREATE TABLE times (k int, a int, at timestamptz(3), d date)")
    session.execute("INSERT INTO times VALUES (1, 1, '2024-01-01 20:00+00', '2024-02-01')")
    session.execute("INSERT INTO times VALUES (2, 1, '2024-01-02 03:00+00', '2024-01-02')")
    session.execute("CREATE INDEX later ON times (a) WHERE at > '2024-01-02'")
    session.execute("CREATE INDEX from_day ON times (a) WHERE d >= '01/02/2024'")
    session.execute("CREATE INDEX by_day ON times ((at::date))")
    session.execute("CREATE INDEX known ON times (a) WHERE at IS NOT NULL")
    session.execute("SET timezone = 'Asia/Tokyo'")
    session.execute("SET datestyle = 'ISO, DMY'")
    session.execute("FLUSH")
    for query, expected in (
        ("SELECT k FROM times WHERE a = 1 AND at > '2024-01-02'", [(1,), (2,)]),
        ("SELECT k FROM times WHERE a = 1 AND d >= '01/02/2024'", [(1,)]),
        ("SELECT k FROM times WHERE at::date = '2024-01-02'", [(1,), (2,)]),
    ):
        assert "table: times," in plan(session, query), plan(session, query)
        assert sorted(rows(session, query)) == expected, query
    query = "SELECT k FROM times WHERE a = 1 AND at IS NOT NULL"
    assert "table: known," in plan(session, query) and sorted(rows(session, query)) == [(1,), (2,)]


def test_a_partial_index_follows_the_names_of_columns(session: Connection) -> None:
    session.execute("CREATE INDEX i ON t (a) WHERE b IS NULL")
    session.execute("CREATE INDEX gone ON t (a) WHERE k > 1 AND b > 'a'")
    session.execute('ALTER TABLE t RENAME COLUMN b TO "B b"')
    defined = "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'app' AND indexname <> 't_pkey' ORDER BY 1"
    assert rows(session, defined)[1] == ("i", 'CREATE INDEX i ON app.t USING btree (a) WHERE ("B b" IS NULL)')
    assert rows(session, "SHOW CREATE INDEX i") == [("app.i", 'CREATE INDEX i ON t (a) WHERE "B b" IS NULL')]
    session.execute("ALTER TABLE t ADD COLUMN c int")
    session.execute("ALTER TABLE t ALTER COLUMN a TYPE bigint")  # the indexes are made again
    session.execute("FLUSH")
    query = 'SELECT k FROM t WHERE a = 10 AND "B b" IS NULL'
    assert "table: i," in plan(session, query) and rows(session, query) == [(3,)]
    session.execute("CREATE FUNCTION app.odd(int) RETURNS boolean LANGUAGE sql AS 'SELECT $1 % 2 = 1'")
    session.execute("CREATE INDEX calling ON t (a) WHERE odd(k)")
    assert refused(session, "DROP FUNCTION odd").diag.message_detail == "index app.calling depends on it"
    session.execute('ALTER TABLE t DROP COLUMN "B b"')
    assert [name for name, _ in rows(session, defined)] == ["calling"]


def test_unique_is_accepted_and_not_enforced(session: Connection) -> None:
    notices: list[str | None] = []
    session.add_notice_handler(lambda notice: notices.append(notice.message_primary))
    session.execute("CREATE TABLE doubled (a int)")
    assert session.execute("CREATE UNIQUE INDEX IF NOT EXISTS once ON doubled (a)").statusmessage == "CREATE INDEX"
    assert notices == ["UNIQUE is kept, but not enforced here; PRIMARY KEY, NOT NULL and CHECK are enforced"]
    session.execute("INSERT INTO doubled VALUES (1), (1)")
    assert session.execute("SELECT indexdef FROM pg_indexes WHERE indexname = 'once'").fetchall() == [
        ("CREATE UNIQUE INDEX once ON app.doubled USING btree (a)",)
    ]
    flags = "SELECT indisunique, indisvalid FROM pg_index WHERE indexrelid = 'once'::regclass"
    assert rows(session, flags) == [(True, False)]
    session.execute("ALTER INDEX once RENAME TO twice")
    assert rows(session, "SHOW CREATE INDEX twice") == [("app.twice", "CREATE UNIQUE INDEX twice ON doubled (a)")]
    session.execute("DROP TABLE doubled CASCADE")
