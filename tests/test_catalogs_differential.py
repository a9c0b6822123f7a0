"""The system catalogs against a real PostgreSQL: the same schema on both, and every catalog query that clients send.

OIDs of relations and indexes are compared as the things they mean. What differs is listed here with its reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import psycopg
import pytest
from postgres import Postgres
from psycopg import pq
from recorded import Recorded, arguments, execute, recorded
from servers import Server

from sparkwave.catalog.lake.ducklake import Lake
from sparkwave.catalog.lake.storage import Storage
from sparkwave.catalog.stores.store import Store

pytestmark = pytest.mark.long

SCHEMA = (
    "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR, amt NUMERIC(10,2), ts TIMESTAMP, b BOOLEAN, j JSONB, arr INT[], "
    "iv INTERVAL, tm TIME, d DATE, f8 DOUBLE PRECISION, i8 BIGINT NOT NULL, by BYTEA)",
    "CREATE TABLE c (id INT, t_id INT, PRIMARY KEY (t_id, id))",
    "CREATE VIEW v AS SELECT id, name FROM t",
    "CREATE MATERIALIZED VIEW mv AS SELECT name, count(*) AS n FROM t GROUP BY name",
)
RELATIONS = ("t", "c", "v", "mv", "t_pkey", "c_pkey")

# psql looked at these by the OIDs they had; its statements are the same for every kind of relation.
_RECORDED_OID = re.compile(r"(?<!\w)16(388|414|412|397)(?!\w)")
_ASKED_FOR = ("t", "c", "v", "mv", "t_pkey")

# Statements whose rows are compared only where they are about the schema above: of its own PostgreSQL has more.
LISTS_THE_SYSTEM = {
    "adbc@3", "adbc@15", "jdbc@7", "jdbc@12", "jdbc@19", "jdbc@20", "node@13", "pgcli@5", "pgcli@6",
    "pgcli@9", "pgcli@10", "psql-tab-completion@10", "psql-tab-completion@11",
    "psql-tab-completion@12", "psql-tab-completion@13", "psql@40", "psql@62", "psql@68", "psql@69", "psql@71",
    "psql@72", "psql@73", "psql@81", "psql@82", "psql@83", "psql@131", "sqlalchemy@19",
}  # fmt: skip

SIZES = "bytes on disk"
VIEW_TEXT = "a view's query is shown as it was written, PostgreSQL shows it as it was parsed"
ROLES = "other built-in roles, owner and privileges of databases and of `public`"
SETTINGS = "a setting of the server"
OPCLASS = "indexes have no operator classes"
DIFFERENT = {
    "psql@2": SIZES, "psql@38": SIZES, "psql@44": SIZES, "psql@46": SIZES, "psql@93": SIZES, "jdbc@18": SIZES,
    "psql@21": VIEW_TEXT, "psql@87": VIEW_TEXT, "sqlalchemy@25": VIEW_TEXT,
    "psql@48": ROLES, "psql@49": ROLES, "psql@50": ROLES, "psql@51": ROLES, "psql@52": ROLES, "psql@53": ROLES,
    "psql@158": ROLES, "psql@159": ROLES, "pgcli@13": ROLES, "psql-tab-completion@22": ROLES,
    "asyncpg@4": SETTINGS, "asyncpg@6": SETTINGS, "pgcli@2": SETTINGS, "pgcli@15": SETTINGS, "sqlalchemy@4": SETTINGS,
    "sqlalchemy@20": OPCLASS, "sqlalchemy@38": OPCLASS, "sqlalchemy@111": OPCLASS, "sqlalchemy@114": OPCLASS,
    "adbc@2": "no columns ctid, xmin and the like", "adbc@3": "relations have no row types",
    "jdbc@29": "other keywords", "psql@15": "NULL || array is NULL to DuckDB: no options either way",
    "psql-tab-completion@8": "of PostgreSQL's functions LIMIT leaves no room for schemas",
    "psql-tab-completion@19": "what this test has prepared",
}  # fmt: skip

# What PostgreSQL refuses, and why.
REFUSED = {
    "jdbc@27": "cut in the recording",
    "jdbc@76": "cut in the recording",
    "psql@88": "names a function that does not exist",
    "dbt-risingwave@7": "SHOW PROCESSLIST is RisingWave's",
    "sqlalchemy-risingwave@16": "relhasoids is gone since PostgreSQL 12",
    "sqlalchemy-risingwave@29": "relhasoids is gone since PostgreSQL 12",
}

Row = tuple[str | None, ...]


@dataclass
class Side:
    """One of the two, with the OIDs that the relations have there."""

    connection: psycopg.Connection
    oids: Mapping[str, int]

    def run(self, statement: Recorded, sql: str) -> list[tuple[list[str], list[Row]]]:
        """Names and rows, in any order, of each result. Raises psycopg.Error."""
        results = execute(self.connection.pgconn, statement, sql, arguments(statement, self.oids))
        return [
            (
                [(result.fname(column) or b"").decode() for column in range(result.nfields)],
                [self._row(result, number) for number in range(result.ntuples)],
            )
            for result in results
            if result.status == pq.ExecStatus.TUPLES_OK
        ]

    def _row(self, result: pq.abc.PGresult, number: int) -> Row:
        cells = (result.get_value(number, column) for column in range(result.nfields))
        return tuple(None if cell is None else self._without_oids(cell.decode()) for cell in cells)

    def _without_oids(self, text: str) -> str:
        meant = {str(oid): f"<{name}>" for name, oid in self.oids.items()}
        return re.sub(r"(?<![\w.])\d{5,}(?!\w)", lambda found: meant.get(found[0], found[0]), text)

    def with_oid(self, sql: str, relation: str) -> str:
        """The statement about another relation than the one that was recorded."""
        return _RECORDED_OID.sub(lambda found: str(self.oids["c" if found[1] == "397" else relation]), sql)


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    """PostgreSQL and Sparkwave, both with the schema. Sparkwave's OIDs begin where PostgreSQL's do, to be told from
    those of types."""
    postgres = Postgres()
    data = tmp_path_factory.mktemp("sparkwave") / "data"
    lake = Lake(Storage(data))
    with Store(lake).change() as cursor:
        cursor.execute("UPDATE lake.sparkwave.identifiers SET next_id = 16384")
    lake.close()
    server = Server(data)
    try:
        with postgres.connect() as theirs, server.connect() as ours:
            for statement in SCHEMA:
                theirs.execute(statement)
                ours.execute(statement)
            yield _side(theirs), _side(ours)
    finally:
        server.kill()
        postgres.stop()


def _side(connection: psycopg.Connection) -> Side:
    listed = ", ".join(f"'{name}'" for name in RELATIONS)
    rows = connection.execute(f"SELECT relname, oid FROM pg_class WHERE relname IN ({listed})").fetchall()
    assert {name for name, _ in rows} == set(RELATIONS)
    return Side(connection, dict(rows))


def _as_here(sql: str) -> str:
    """The statement with the names of the database and schema of the recording replaced by those of this test."""
    return re.sub(r"'(dbt_s|app)'", "'public'", sql).replace("'dbtdb'", "'dev'").replace('"dbtdb"', '"dev"')


def _compared(statement: Recorded, rows: list[Row]) -> list[Row]:
    """The rows that both should have, in an order of their own."""
    kept = [row for row in rows if "rw_catalog" not in row and "pg_toast" not in row]
    if statement.id in LISTS_THE_SYSTEM:
        kept = [row for row in kept if any(cell in ("public", "dev") or (cell or "").startswith("<") for cell in row)]
    return sorted(kept, key=str)


@pytest.mark.parametrize("client", sorted({statement.client for statement in recorded()}))
def test_rows_are_postgresqls(sides: tuple[Side, Side], client: str) -> None:
    postgres, sparkwave = sides
    wrong = []
    for statement in recorded(client):
        if not statement.is_catalog_query or re.search(r"\brw_\w+", statement.sql):
            continue
        asked_for = _ASKED_FOR if _RECORDED_OID.search(statement.sql) else ("",)
        for relation in asked_for:
            wrong += _differences(statement, relation, postgres, sparkwave)
    assert not wrong, "\n".join(wrong)


def _differences(statement: Recorded, relation: str, postgres: Side, sparkwave: Side) -> list[str]:
    sql, where = _as_here(statement.sql), f"{statement.id} {relation} [{statement.action}]"
    try:
        expected = postgres.run(statement, postgres.with_oid(sql, relation))
    except psycopg.DatabaseError as error:
        return [] if statement.id in REFUSED else [f"{where}: PostgreSQL: {error}"]
    try:
        found = sparkwave.run(statement, sparkwave.with_oid(sql, relation))
    except psycopg.DatabaseError as error:
        return [f"{where}: {error}"]
    if statement.id in DIFFERENT:
        return []
    if len(expected) != len(found):
        return [f"{where}: {len(found)} results instead of {len(expected)}"]
    wrong = []
    for (names, rows), (our_names, our_rows) in zip(expected, found, strict=True):
        is_show = re.match(r"show\b", sql, re.IGNORECASE) is not None  # whose columns are called as in RisingWave
        if not is_show and names != our_names:
            wrong.append(f"{where}: columns {our_names} instead of {names}")
        theirs, ours = _compared(statement, rows), _compared(statement, our_rows)
        if theirs != ours:
            missing = [row for row in theirs if row not in ours]
            extra = [row for row in ours if row not in theirs]
            wrong.append(f"{where}:\n  missing {missing[:3]}\n  instead {extra[:3]}")
    return wrong


_COLUMNS = """
    SELECT n.nspname || '.' || c.relname, a.attname, t.typname
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
    JOIN pg_type t ON t.oid = a.atttypid
    WHERE n.nspname IN ('pg_catalog', 'information_schema') AND c.relkind IN ('r', 'v') AND a.attnum > 0
    ORDER BY 1, a.attnum
"""

# PostgreSQL's types that are another here: all text is varchar, what is only ever NULL too.
_TYPES = {
    "int2vector": "_int2", "oidvector": "_oid", "xid": "oid", "cardinal_number": "int4", "time_stamp": "timestamptz",
    "_text": "_varchar", "_name": "_varchar", "_char": "_varchar", "_aclitem": "_varchar", "_regtype": "_varchar",
}  # fmt: skip
_OTHER_TEXT = {
    "text", "name", "char", "regproc", "regtype", "pg_node_tree", "sql_identifier", "character_data", "yes_or_no",
    "anyarray", "inet", "pg_lsn", "pg_ndistinct", "pg_dependencies", "pg_mcv_list",
}  # fmt: skip
_WITHOUT_PLACE_IN_POSTGRESQL = {("pg_catalog.pg_class", "relhasoids")}
_ONLY_NULL = {("pg_catalog.pg_statistic_ext_data", "stxdexpr")}


def test_columns_of_system_relations_are_postgresqls(sides: tuple[Side, Side]) -> None:
    """Names, order and types, for whatever reads them by place."""
    columns: list[dict[str, list[tuple[str, str]]]] = []
    for side in sides:
        columns.append({})
        for relation, name, type_ in side.connection.execute(_COLUMNS).fetchall():
            if (relation, name) not in _WITHOUT_PLACE_IN_POSTGRESQL | _ONLY_NULL:
                kind = "varchar" if type_ in _OTHER_TEXT else _TYPES.get(type_, type_)
                columns[-1].setdefault(relation, []).append((name, kind))
    theirs, ours = columns
    assert set(ours) <= set(theirs)
    assert len(ours) > 150
    assert {relation: found for relation, found in ours.items() if found != theirs[relation]} == {}
