"""System catalogs: clients' recorded queries, rewritten and run over a real lake."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlglot
from recorded import recorded
from servers import Server, with_lake

from sparkwave.catalog.lake.ducklake import Cursor, Lake
from sparkwave.catalog.lake.sizes import reads_sizes, set_sizes
from sparkwave.catalog.lake.storage import Storage
from sparkwave.catalog.lake.translation import DuckDBError
from sparkwave.catalog.stores.store import LOADED, PROGRESS
from sparkwave.catalog.system import system_views
from sparkwave.planner.batch import pg_compat
from sparkwave.planner.batch.pg_names import FUNCTIONS, SCHEMAS
from sparkwave.planner.bind.output_names import output_name
from sparkwave.planner.functions.duckdb_spelling import for_duckdb
from sparkwave.planner.parse.trees import parse_tree

SESSION = {"database": "dev", "user": "root", "schema": "public", "search_path": '"$user", public', "jit": "on"}

# The OIDs are those in the recorded statements: \d t asks for 16388, \d mv for 16414.
ROWS = """
INSERT INTO lake.sparkwave.schemas VALUES (1400, 'dev', 's2', 'root'), (1500, 'other', 'public', 'root');
INSERT INTO lake.sparkwave.databases (id, name, owner, resource_group) VALUES (1500, 'other', 'root', 'default');
INSERT INTO lake.sparkwave.relations
    (id, database, schema, name, kind, definition, key, upstreams, created, owner, initialized_at, created_at) VALUES
    (16388, 'dev', 'public', 't', 'table', 'CREATE TABLE t (...)', ['id'], [], true, 'root', now(), now()),
    (16397, 'dev', 'public', 'c', 'table', 'CREATE TABLE c (...)', ['_row_id'], [], true, 'root', now(), now()),
    (16414, 'dev', 'public', 'mv', 'materialized view',
     'CREATE MATERIALIZED VIEW "m as v" AS SELECT name, count(*) AS n FROM t GROUP BY name', ['name'], [16388], true,
     'root', now(), now()),
    (16420, 'dev', 'public', 'pv', 'view', 'CREATE VIEW pv (i) AS SELECT id FROM t', [], [16388], true, 'root',
     now(), now()),
    (16421, 'dev', 's2', 'u', 'table', 'CREATE TABLE s2.u (a INT)', ['_row_id'], [], true, 'postgres', now(), now()),
    (16430, 'other', 'public', 't', 'table', 'CREATE TABLE t (a INT)', ['_row_id'], [], true, 'root', now(), now());
UPDATE lake.sparkwave.relations SET lake_schema = database || '.' || schema, lake_name = name;
INSERT INTO lake.sparkwave.columns
    (relation_id, position, name, type, is_hidden, not_null) VALUES
    (16388, 1, 'id', 'integer', false, false), (16388, 2, 'name', 'character varying', false, false),
    (16388, 3, 'amt', 'numeric(10,2)', false, false), (16388, 4, 'tags', 'integer[]', false, false),
    (16388, 5, 'seen', 'timestamp without time zone', false, true), (16397, 1, '_row_id', 'bigint', true, false),
    (16397, 2, 'x', 'jsonb', false, false), (16414, 1, 'name', 'character varying', false, false),
    (16414, 2, 'n', 'bigint', false, false), (16420, 1, 'i', 'integer', false, false),
    (16421, 1, 'a', 'integer', false, false);
INSERT INTO lake.sparkwave.applications VALUES
    (1, 'risingwave-compute-1', 'default', false, 'READY', 5688, 1, 4, 1024, NULL, now(), now(), now()),
    (6, 'risingwave-backfill-6', 'backfill-6', true, 'DESTROYED', 5689, 1, 2, 512, NULL, now(), now(), now()),
    (7, 'risingwave-backfill-7', 'backfill-1', true, 'PROVISIONING', 5690, 2, 2, 512, NULL, now(), NULL, now());
INSERT INTO lake.sparkwave.events VALUES (now(), 'META_NODE_START', NULL, '{"a": 1}');
CREATE TABLE lake."dev.public".t AS SELECT i AS id FROM range(100000) r(i);
"""

# Jobs by name: status, the row counts of their slices, how many of these are finished, the progress shown.
JOBS: dict[str, tuple[str, list[int], int, str | None]] = {
    "waiting": ("INITIAL", [10], 0, "0.0%"),
    "planning": ("CREATING", [], 0, "0.0%"),
    "started": ("CREATING", [1234, 8766], 0, "Snapshot [0.00% (0/10000)]"),
    "reading": ("CREATING", [1234, 8000, 766], 1, "Snapshot [12.34% (1234/10000)]"),
    "empty": ("CREATING", [0, 0], 1, "Snapshot [99.99%]"),
    "read": ("CREATING", [5, 5], 2, "LogStore [actor: 0/1, avg lag 0ns]"),
    "failed": ("FAILED", [5, 5], 1, None),
    "done": ("CREATED", [5, 5], 2, None),
}


def _insert_job(cursor: Cursor, id_: int, name: str, status: str, counts: list[int], finished: int) -> None:
    cursor.execute(
        "INSERT INTO lake.sparkwave.relations "
        "(id, database, schema, name, kind, definition, key, upstreams, created, owner, initialized_at, created_at) "
        "VALUES (?, 'dev', 'public', ?, 'materialized view', 'CREATE ...', ['id'], [16388], ?, 'root', now(), now())",
        [id_, name, status == "CREATED"],
    )
    cursor.execute(
        "INSERT INTO lake.sparkwave.jobs BY NAME SELECT ? AS id, ? AS status, true AS is_background, "
        "true AS is_serverless, 'backfill-1' AS resource_group, 'SnapshotBackfill' AS strategy, "
        "3 AS snapshot, [] AS backfill_order",
        [id_, status],
    )
    for slice_id, count in enumerate(counts):
        cursor.execute(
            "INSERT INTO lake.sparkwave.slices VALUES (?, 1, ?, 16388, 't', 0, 0, ?)", [id_, slice_id, count]
        )
        if slice_id < finished:
            cursor.execute(
                "INSERT INTO lake.sparkwave.finished_slices VALUES (?, 1, ?, ?, now())", [id_, slice_id, count]
            )


@pytest.fixture(scope="module")
def cursor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cursor]:
    lake = Lake(Storage(with_lake(tmp_path_factory.mktemp("lake"))))
    cursor = lake.cursor()
    system_views.define_python_functions(cursor, lambda user, process_id, how: False)
    system_views.install(cursor)
    with lake.transaction(cursor):
        cursor.execute(ROWS)
        for number, (name, (status, counts, finished, _)) in enumerate(JOBS.items()):
            _insert_job(cursor, 17000 + number, name, status, counts, finished)
    system_views.refresh(cursor)
    yield cursor
    lake.close()


def rewritten(sql: str, session: dict[str, str] = SESSION) -> str:
    tree = pg_compat.rewrite(parse_tree(pg_compat.prepare_text(sql)), system_views.is_system, session)
    return for_duckdb(tree, lenient=False).sql("duckdb")


def ask(cursor: Cursor, sql: str) -> list[tuple]:
    statement = rewritten(sql)
    count = max((int(number) for number in re.findall(r"\$(\d+)", statement)), default=0)
    if reads_sizes(statement):
        set_sizes(cursor)
    return cursor.execute(statement, [None] * count).fetchall()


def names_of(cursor: Cursor, sql: str) -> list[str]:
    ask(cursor, sql)
    return [column[0] for column in cursor.description]


def queries(client: str) -> dict[int, str]:
    return {statement.number: statement.sql for statement in recorded(client) if statement.is_catalog_query}


PSQL, JDBC = queries("psql"), queries("jdbc")


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (1, [("public", "c", "table", "root"), ("public", "done", "materialized view", "root"),
             ("public", "mv", "materialized view", "root"), ("public", "pv", "view", "root"),
             ("public", "t", "table", "root")]),  # \d
        (37, [("public", "c", "table", "root"), ("public", "t", "table", "root")]),  # \dt
        (39, [("s2", "u", "table", "postgres")]),  # \dt s2.*
        (43, [("public", "done", "materialized view", "root"), ("public", "mv", "materialized view", "root")]),  # \dm
        (41, [("public", "pv", "view", "root")]),  # \dv
        (54, []),  # \df
        (45, [("public", "t_pkey", "index", "root", "t")]),  # \di
        (48, [("public", "root"), ("rw_catalog", "root"), ("s2", "root")]),  # \dn
        (3, [(16388, "public", "t")]),  # \d t: which relation
        (36, []),  # \d nosuch
    ],
)  # fmt: skip
def test_psql_lists(cursor: Cursor, number: int, expected: list[tuple]) -> None:
    assert ask(cursor, PSQL[number]) == expected


def test_psql_databases_and_roles(cursor: Cursor) -> None:
    databases = [row[:5] for row in ask(cursor, PSQL[158])]
    assert databases == [(name, "root", "UTF8", "C.UTF-8", "C.UTF-8") for name in ("dev", "other")]
    assert [row[:2] for row in ask(cursor, PSQL[50])] == [("postgres", True), ("root", True)]


def test_psql_sizes(cursor: Cursor) -> None:
    sizes = {row[1]: row[6] for row in ask(cursor, PSQL[38])}
    assert sizes["c"] == "0 bytes"
    assert re.fullmatch(r"[1-9]\d* (bytes|kB)", sizes["t"])


def test_psql_describes_a_table(cursor: Cursor) -> None:
    assert ask(cursor, PSQL[4])[0][1:3] == ("r", True)
    assert [row[:4] for row in ask(cursor, PSQL[5])] == [
        ("id", "integer", None, True),
        ("name", "character varying", None, False),
        ("amt", "numeric(10,2)", None, False),
        ("tags", "integer[]", None, False),
        ("seen", "timestamp without time zone", None, True),
    ]
    index = "CREATE UNIQUE INDEX t_pkey ON t USING btree (id)"
    assert [row[:8] for row in ask(cursor, PSQL[6])] == [
        ("t_pkey", True, True, False, True, index, "PRIMARY KEY (id)", "p")
    ]


@pytest.mark.parametrize("number", [7, 8, 9, 10, 11, 12, 13, 14, 151, 152, 153, 154])
def test_psql_finds_nothing_else_of_a_table(cursor: Cursor, number: int) -> None:
    """Foreign keys, policies, statistics, publications, triggers, parents and children."""
    assert ask(cursor, PSQL[number]) == []


def test_psql_hides_hidden_columns(cursor: Cursor) -> None:
    assert [row[:2] for row in ask(cursor, PSQL[5].replace("16388", "16397"))] == [("x", "jsonb")]


def test_psql_shows_a_view_definition(cursor: Cursor) -> None:
    assert ask(cursor, PSQL[21]) == [("SELECT name, count(*) AS n FROM t GROUP BY name",)]


def test_jdbc_metadata(cursor: Cursor) -> None:
    assert [row[1:4] for row in ask(cursor, JDBC[8])] == [
        ("public", "done", "MATERIALIZED VIEW"),
        ("public", "mv", "MATERIALIZED VIEW"),
        ("public", "c", "TABLE"),
        ("public", "t", "TABLE"),
        ("public", "pv", "VIEW"),
    ]
    columns = [(row[2], row[3], row[5], row[6], row[8]) for row in ask(cursor, JDBC[9])]
    assert columns[:3] == [("id", 23, -1, 4, 1), ("name", 1043, -1, -1, 2), ("amt", 1700, 655366, -1, 3)]
    assert ask(cursor, JDBC[13]) == [(None, "public", "t", "id", 1, "t_pkey")]
    assert ask(cursor, JDBC[18])[0][5:10] == ("t_pkey", 3, 1, "id", "A")
    assert names_of(cursor, JDBC[5]) == ["table_schem", "table_catalog"]


def test_progress(cursor: Cursor) -> None:
    shown = {name: progress for name, (*_, progress) in JOBS.items() if progress}
    ids = {17000 + number: name for number, name in enumerate(JOBS)}
    rows = ask(
        cursor, "SELECT ddl_id, progress, create_type, is_serverless_backfill, backfill_type FROM rw_ddl_progress"
    )
    assert {ids[row[0]]: row[1] for row in rows} == shown
    assert {row[2:4] for row in rows} == {("BACKGROUND", True)}
    assert {ids[row[0]] for row in rows if row[4] == "NORMAL_BACKFILL"} == {"waiting"}
    jobs = cursor.execute("FROM memory.rwc._show_jobs")
    assert [column[0] for column in jobs.description] == ["Id", "Statement", "Create Type", "Progress"]
    fragments = "SELECT job_name, upstream_table_name, progress FROM rw_catalog.rw_fragment_backfill_progress"
    assert ("public.reading", "public.t", "12.34% (1234/10000)") in ask(cursor, fragments)


def test_progress_is_live(cursor: Cursor) -> None:
    """No refresh between a slice's end and the progress that counts it."""
    cursor.execute("BEGIN")
    cursor.execute("INSERT INTO lake.sparkwave.finished_slices VALUES (17002, 1, 0, 1234, now())")
    assert ask(cursor, "SELECT progress FROM rw_ddl_progress WHERE ddl_id = 17002") == [
        ("Snapshot [12.34% (1234/10000)]",)
    ]
    cursor.execute("ROLLBACK")


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT id, host, type, state FROM rw_worker_nodes",
         [(1000, "risingwave-compute-1-0", "WORKER_TYPE_COMPUTE_NODE", "RUNNING"),
          (7000, "risingwave-backfill-7-0", "WORKER_TYPE_COMPUTE_NODE", "STARTING"),
          (7001, "risingwave-backfill-7-1", "WORKER_TYPE_COMPUTE_NODE", "STARTING")]),
        ("SELECT status FROM rw_materialized_views WHERE name IN ('mv', 'read', 'failed') ORDER BY name",
         [("Created",), ("Creating",)]),
        ("SELECT name, streaming_workers, parallelism FROM rw_resource_groups ORDER BY name",
         [("backfill-1", 2, 4), ("default", 1, 4)]),
        ("SELECT objid, refobjid FROM rw_depend WHERE objid = 16414", [(16414, 16388)]),
        ("SELECT name, is_hidden FROM rw_columns WHERE relation_id = 16397 ORDER BY position",
         [("_row_id", True), ("x", False), ("_rw_timestamp", True)]),
        ("SELECT data_type, numeric_precision, numeric_scale FROM information_schema.columns WHERE column_name = 'amt'",
         [("numeric", 10, 2)]),
        ("SELECT matviewname FROM pg_matviews WHERE schemaname ILIKE 'public' ORDER BY 1", [("done",), ("mv",)]),
        ("SELECT viewname, definition FROM pg_views", [("pv", "SELECT id FROM t")]),
        ("SELECT table_name, view_definition FROM information_schema.views", [("pv", "SELECT id FROM t")]),
        ("SELECT name, relation_type FROM rw_relations WHERE name = 'pv'", [("pv", "view")]),
        ("SELECT column_name, ordinal_position FROM information_schema.key_column_usage ORDER BY 1",
         [("id", 1), ("name", 1)]),
    ],
)  # fmt: skip
def test_catalog_rows(cursor: Cursor, sql: str, expected: list[tuple]) -> None:
    assert ask(cursor, sql) == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("current_database()", "dev"),
        ("pg_catalog.current_schema()", "public"),
        ("current_schemas(false)", ["public"]),
        ("current_user", "root"),
        ("version()", "PostgreSQL 13.14.0-RisingWave-3.0.0 (Sparkwave)"),
        ("current_setting('jit')", "on"),
        ("current_setting('TimeZone')", "UTC"),
        ("current_setting('no.such', true)", None),
        ("'t'::regclass::oid", 16388),
        ("'s2.u'::regclass::oid", 16421),
        ("'s2.u'::regclass", "s2.u"),
        ("16388::regclass", "t"),
        ("'pg_catalog.pg_class'::regclass = 1259", True),
        ("'int4'::regtype", "integer"),
        ("to_regclass('nosuch')", None),
        ("to_regtype('varchar')", "character varying"),
        ("format_type(1700, 655366)", "numeric(10,2)"),
        ("format_type('_int4'::regtype, NULL)", "integer[]"),
        ("1 = ANY('{1,2}')", True),
        ("'x' <> ALL('{a,\"x\"}'::text[])", False),
        ("'{1,2}'::int[]", [1, 2]),
        ("'a_b' LIKE 'a\\_b'", True),
        ("'axb' LIKE 'a\\_b'", False),
        ("'axb' OPERATOR(pg_catalog.~) '^(a.b)$' COLLATE pg_catalog.default", True),
        ("array_to_string(ARRAY['a', NULL], ',', '-')", "a,-"),
        ("array_upper(ARRAY[4, 5], 1)", 2),
        ("quote_ident('A b')", '"A b"'),
        ("pg_size_pretty(20480::bigint)", "20 kB"),
        ("pg_relation_size('t') > 0", True),
        ("pg_relation_size(quote_ident('t')) = pg_relation_size('t')", True),
        ("pg_total_relation_size('public.' || quote_ident('t')) > 0", True),
        ("pg_try_advisory_xact_lock(1) AND pg_try_advisory_lock(1, 2)", True),
        ("pg_advisory_xact_lock(1)::text", ""),
        ("has_table_privilege('t', 'select')", True),
        ("(SELECT array_agg(x) FROM unnest(ARRAY[1, 2]) x)", [1, 2]),
        ("(SELECT indkey[0] FROM pg_index WHERE indrelid = 't'::regclass)", 1),
        ("(SELECT count(*) FROM pg_class WHERE oid = ANY($1::oid[]))", 0),
        ("(SELECT setting FROM pg_settings WHERE name = 'jit')", "on"),
    ],
)  # fmt: skip
def test_functions_and_casts(cursor: Cursor, sql: str, expected: object) -> None:
    assert ask(cursor, f"SELECT {sql}") == [(expected,)]


def test_a_missing_relation_is_an_error(cursor: Cursor) -> None:
    with pytest.raises(DuckDBError, match='relation "nosuch" does not exist'):
        ask(cursor, "SELECT 'nosuch'::regclass")


def test_output_names(cursor: Cursor) -> None:
    sql = (
        "SELECT version(), 1, 'a'::text, 'v'::text::oid, c.oid::regclass, count(*) > 0, CASE 1 WHEN 1 THEN 2 END, now()"
    )
    items = sqlglot.parse_one(sql, read="postgres").expressions
    assert [output_name(item) for item in items[:-1]] == [
        "version", "?column?", "text", "oid", "oid", "?column?", "case",
    ]  # fmt: skip
    assert names_of(cursor, 'SELECT Current_Database(), relname AS Name, 1 AS "Q" FROM pg_class LIMIT 1') == [
        "current_database", "name", "Q",
    ]  # fmt: skip


def test_user_relations_stay() -> None:
    assert rewritten("SELECT a FROM t WHERE b = '{c}'") == "SELECT a FROM t WHERE b = '{c}'"
    assert (
        rewritten("SELECT age(a, b), user FROM t") == 'SELECT memory.pg.age(a, b) AS "age", \'root\' AS "user" FROM t'
    )
    assert rewritten("WITH pg_class AS (SELECT 1 AS a) SELECT a FROM pg_class") == (
        "WITH pg_class AS (SELECT 1 AS a) SELECT a FROM pg_class"
    )
    assert rewritten("SELECT a FROM t WHERE b = ANY($1) AND c LIKE 'x%'") == (
        "SELECT a FROM t WHERE b = ANY($1) AND c LIKE 'x%'"
    )


def test_prepare_text_keeps_positions_and_strings() -> None:
    sql = "SELECT '::regtype[] $1', $1::regtype[],$2, $$ $1 $$ -- ::regtype[] $1"
    prepared = pg_compat.prepare_text(sql)
    assert prepared == "SELECT '::regtype[] $1', @1::regtype[],@2, $$ $1 $$ -- ::regtype[] $1"
    assert len(prepared) == len(sql)


def test_changes_of_what_is_copied_are_told() -> None:
    """Copies are made again of the tables whose changes `Store.changed_since` tells."""
    copied = {table for copy in system_views.COPIES_IN_ORDER for table in copy.sources}
    assert {"relations", "columns", "users"} < copied <= LOADED - PROGRESS
    assert all(copy.sources for copy in system_views.COPIES_IN_ORDER)


def test_set_config_calls() -> None:
    tree = sqlglot.parse_one("SELECT pg_catalog.set_config('search_path', 's2', false)", read="postgres")
    assert pg_compat.set_config_calls(tree) == (("search_path", "s2", False),)


@pytest.mark.parametrize("schema", sorted(system_views.SYSTEM_RELATIONS))
def test_every_system_relation_can_be_read(cursor: Cursor, schema: str) -> None:
    relations = system_views.SYSTEM_RELATIONS[schema]
    assert len(relations) > 30
    for name in sorted(relations):
        ask(cursor, f"SELECT * FROM {schema}.{name} LIMIT 3")
        assert cursor.description, name


def test_every_system_relation_needs_the_copies_that_are_told(tmp_path: Path) -> None:
    """A relation is described while the database of copies has no other table than those that `needs` tells."""
    lake = Lake(Storage(with_lake(tmp_path / "lake")))
    cursor = lake.cursor()
    system_views.define_python_functions(cursor, lambda user, process_id, how: False)
    system_views.install(cursor)
    system_views.refresh(cursor)
    cursor.execute("CREATE SCHEMA copies.kept")
    tables = {copy.name: f'copies.kept."{copy.name}"' for copy in system_views.COPIES_IN_ORDER}
    cursor.execute("; ".join(f"CREATE TABLE {kept} AS FROM copies.{name} LIMIT 0" for name, kept in tables.items()))
    by_needs: dict[frozenset[str], list[str]] = {}
    for schema, relations in system_views.SYSTEM_RELATIONS.items():
        for name in (f"{system_views.SCHEMAS[schema][0]}.{relation}" for relation in relations):
            told = frozenset(copy.name for copy in system_views.needs(frozenset({name})).copies)
            by_needs.setdefault(told, []).append(name)
    assert len(by_needs) > 20
    for told, names in by_needs.items():
        for name, kept in tables.items():
            cursor.execute(f"DROP TABLE IF EXISTS copies.{name}")
            if name in told:
                cursor.execute(f"CREATE TABLE copies.{name} AS FROM {kept}")
        for name in names:
            assert cursor.execute(f"DESCRIBE FROM memory.{name}").fetchall(), name
    lake.close()


def test_a_copy_is_made_again_when_its_rows_have_changed(in_process_server: Server) -> None:
    with in_process_server.connect() as own:
        count = "SELECT count(*) FROM pg_class WHERE relname = 'made_again'"
        assert own.execute(count).fetchone() == (0,)
        own.execute("CREATE TABLE made_again (a int)")
        assert own.execute(count).fetchone() == (1,)
        own.execute("COMMENT ON TABLE made_again IS 'seen'")
        described = "SELECT obj_description('made_again'::regclass, 'pg_class')"
        assert own.execute(described).fetchone() == ("seen",)
        own.execute("COMMENT ON TABLE made_again IS 'changed'")
        assert own.execute(count).fetchone() == (1,)  # which reads other copies
        assert own.execute(described).fetchone() == ("changed",)
        own.execute("DROP TABLE made_again")
        assert own.execute(count).fetchone() == (0,)


def test_another_database(cursor: Cursor) -> None:
    cursor.execute("SET VARIABLE database = 'other'")
    assert ask(cursor, "SELECT relname, nspname FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace "
               "WHERE nspname = 'public'") == [("t", "public")]  # fmt: skip
    cursor.execute("RESET VARIABLE database")


def test_schema_names_agree() -> None:
    """The planner knows DuckDB's schemas by name without importing the module that makes them."""
    assert {name: schema for name, (schema, _) in system_views.SCHEMAS.items()} == SCHEMAS
    assert system_views.FUNCTION_SCHEMA == FUNCTIONS


def test_install_is_fast_and_repeatable(cursor: Cursor) -> None:
    def seconds() -> float:
        """Of the processor, whatever else the machine does."""
        start = time.process_time()
        system_views.install(cursor)
        return time.process_time() - start

    assert min(seconds() for _ in range(5)) < 1


def test_rw_catalog_can_be_browsed(in_process_server: Server) -> None:
    with in_process_server.connect() as connection:
        found = connection.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = 'rw_catalog.rw_ddl_progress'::regclass ORDER BY attnum"
        ).fetchall()
        assert [name for (name,) in found][:3] == ["ddl_id", "ddl_statement", "create_type"]
        visible = "SELECT relkind, pg_table_is_visible(oid) FROM pg_class WHERE relname = 'rw_ddl_progress'"
        assert connection.execute(visible).fetchall() == [("v", False)]
        kinds = "SELECT relation_type FROM rw_catalog.rw_relations WHERE name = 'rw_ddl_progress'"
        assert connection.execute(kinds).fetchall() == [("system table",)]
        listed = "SELECT table_type FROM information_schema.tables WHERE table_name = 'rw_ddl_progress'"
        assert connection.execute(listed).fetchall() == [("SYSTEM TABLE",)]
