"""Bad input gets a clear error with its SQLSTATE, and nothing is lost."""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest
from psycopg.errors import Diagnostic
from psycopg.pq import DiagnosticField
from servers import Server, launch, rows, wait_until

from sparkwave.server.wire.conversation import as_error

Connection = psycopg.Connection[Any]

ROWS = "SELECT k, v, n FROM t ORDER BY k"
KEPT = [(1, "one", None), (2, "two", 20)]


RELATIONS = "SELECT name FROM rw_catalog.rw_relations ORDER BY name"


@pytest.fixture(scope="module")
def tables(module_server: Server) -> list[tuple[str]]:
    """The names of all relations, once there are some tables and a view."""
    with module_server.connect() as own:
        own.execute("CREATE TABLE t (k int PRIMARY KEY, v varchar NOT NULL, n int)")
        own.execute("INSERT INTO t VALUES (1, 'one', NULL), (2, 'two', 20)")
        own.execute("CREATE TABLE u (k int, b boolean, d date, x numeric(10,2))")
        own.execute("CREATE TABLE log (k int PRIMARY KEY, at timestamp) APPEND ONLY")
        own.execute("CREATE VIEW w AS SELECT k, v FROM t")
        return rows(own, RELATIONS)


@pytest.fixture
def session(tables: list[tuple[str]], connection: Connection) -> Iterator[Connection]:
    """A session on a server with some tables and a view; afterwards it still works and t has the rows it had."""
    yield connection
    found = connection.execute(ROWS).fetchall()
    if found != KEPT:  # for the tests that follow
        connection.execute("DELETE FROM t")
        connection.execute("INSERT INTO t VALUES (1, 'one', NULL), (2, 'two', 20)")
    assert found == KEPT
    assert rows(connection, RELATIONS) == tables


def failure(connection: Connection, statement: str) -> Diagnostic:
    """What the server says of a statement that fails."""
    with pytest.raises(psycopg.Error) as caught:
        connection.execute(statement)
    assert not connection.broken, "the connection was lost"
    return caught.value.diag


# Statement with «the word the position points at», SQLSTATE, a part of the message.
ERRORS = [
    # Names.
    ("SELECT no no", "42703", 'column "no" does not exist'),
    ("SELECT b FROM u ORDER BY nope FETCH FIRST 1 ROW WITH TIES", "42703", 'column "nope" does not exist'),
    ("SELECT * FROM t WHERE k = $0", "42P02", "there is no parameter $0"),
    (
        "CREATE MATERIALIZED VIEW m AS SELECT k, row_number() OVER (PARTITION ) OVER (PARTITION BY v) AS r FROM t",
        "42601", 'syntax error at or near "OVER"',
    ),
    ("SELECT k FROM t UNION CORRESPONDING SELECT 1 AS other", "42601", "at least one column"),
    ("CREATE MATERIALIZED VIEW m AS SELECT k FROM t UNION ALL CORRESPONDING BY (no) SELECT k FROM t", "42601", "`no`"),
    ("SELECT k FROM t UNION ALL BY NAME SELECT k FROM t", "42601", "syntax error"),
    ("SELECT * FROM «nope»", "42P01", "nope"),
    ("SELECT * FROM t JOIN «nope» ON true", "42P01", "nope"),
    ("SELECT * FROM «public.nope»", "42P01", "nope"),
    ("SELECT * FROM «nowhere».t", "42P01", "nowhere.t"),
    ("INSERT INTO «nope» VALUES (1)", "42P01", "nope"),
    ("UPDATE «nope» SET a = 1", "42P01", "nope"),
    ("UPDATE t SET «a»", "42601", "SET takes assignments to columns"),
    ("UPDATE t SET «a» < 1", "42601", "SET takes assignments to columns"),
    ("DELETE FROM «nope»", "42P01", "nope"),
    ("COPY «nope» TO STDOUT", "42P01", "nope"),
    ("COPY «nope» FROM STDIN", "42P01", "nope"),
    ("CREATE MATERIALIZED VIEW m AS SELECT k FROM «nope»", "42P01", "nope"),
    ("SELECT «nope» FROM t", "42703", "nope"),
    ("SELECT «t.nope» FROM t", "42703", "nope"),
    ("SELECT k FROM t WHERE «nope» > 1", "42703", "nope"),
    ("INSERT INTO t (k, nope) VALUES (3, 'x')", "42703", 'column "nope" of relation "t" does not exist'),
    ("UPDATE t SET nope = 1", "42703", 'column "nope" of relation "t" does not exist'),
    ("COPY t (k, nope) FROM STDIN", "42703", "nope"),
    ("CREATE MATERIALIZED VIEW m AS SELECT «nope» FROM t", "42703", 'column "nope" does not exist'),
    ("CREATE MATERIALIZED VIEW m AS SELECT a.k, b.v FROM t a", "42P01", 'missing FROM-clause entry for table "b"'),
    ("CREATE MATERIALIZED VIEW m AS SELECT k FROM t a, u b", "42702", "k"),
    ("SELECT nope(1)", "42883", "nope"),
    ("SELECT * FROM other.public.t", "3D000", 'database "other" does not exist'),
    ("CREATE TABLE «nowhere».x (a int)", "3F000", "nowhere"),
    ("CREATE MATERIALIZED VIEW «nowhere».m AS SELECT k FROM t", "3F000", "nowhere"),
    # Syntax.
    ("«SELEC» 1", "42601", 'syntax error at or near "SELEC"'),
    ("SELECT 1 FORM «t» x", "42601", 'syntax error at or near "t"'),
    ("SELECT * FROM t WHERE «*» = 1", "42601", 'syntax error at or near "*"'),
    ("SELECT k, count(DISTINCT «*») FROM t GROUP BY k", "42601", 'syntax error at or near "*"'),
    ("SELECT «*» name FROM t", "42601", 'syntax error at or near "*"'),
    ("SELECT k FROM t WHERE t.* = 1", "0A000", "STAR expression"),
    ("CREATE MATERIALIZED VIEW m «SELECT» 1", "42601", 'syntax error at or near "SELECT"'),
    ("DROP TABLE t «nonsense»", "42601", 'syntax error at or near "nonsense"'),
    ("CANCEL JOBS «x»", "42601", "syntax error"),
    ("SHOW JOBS «nonsense»", "42601", "syntax error"),
    ("FLUSH «nonsense»", "42601", "syntax error"),
    ("SET implicit_flush «true»", "42601", "syntax error"),
    ("SELECT 'abc", "42601", "unterminated"),
    ("SELECT (1", "42601", "syntax error"),
    ("SELECT *", "42601", "SELECT * with no tables specified is not valid"),
    ("SELECT 1;\n SELECT 2;\n  «SELEC» 3", "42601", "SELEC"),
    ("SELECT 'žluť 🐘' AS a, 1 AS b FROM «nope»", "42P01", "nope"),
    # Values and types.
    ("SELECT 'abc'::int", "22P02", "abc"),
    ("INSERT INTO t VALUES ('abc', 'x', 1)", "22P02", "abc"),
    ("INSERT INTO t VALUES (3, 'x', 1), (4, 'y', 'z')", "22P02", "z"),
    ("INSERT INTO u VALUES (1, 'maybe', NULL, NULL)", "22P02", "maybe"),
    ("INSERT INTO u VALUES (1, true, '2024-02-30', NULL)", "22008", "2024-02-30"),
    ("INSERT INTO u VALUES (1, true, 'yesterday-ish', NULL)", "22007", "yesterday-ish"),
    ("INSERT INTO u VALUES (1, true, NULL, 123456789.00)", "22003", ""),
    ("INSERT INTO t VALUES (2147483648, 'x', 1)", "22003", ""),
    ("SELECT 2147483647::int + 1::int", "22003", ""),
    ("SELECT 1 / 0", "22012", "division by zero"),
    ("UPDATE t SET n = n / (k - 2)", "22012", "division by zero"),
    ("UPDATE t SET n = 'abc'", "22P02", "abc"),
    ("INSERT INTO t VALUES (3, NULL, 1)", "23502", 'null value in column "v" of relation "t"'),
    ("INSERT INTO t VALUES (3, 'x', 1), (NULL, 'y', 1)", "23502", 'null value in column "k" of relation "t"'),
    ("INSERT INTO t (k) VALUES (3)", "23502", 'null value in column "v" of relation "t"'),
    ("UPDATE t SET v = NULL WHERE k = 2", "23502", ""),
    ("INSERT INTO t VALUES (3, 'x', 1, 2)", "42601", "INSERT has more expressions than target columns"),
    ("INSERT INTO t (k, v) VALUES (3)", "42601", "INSERT has more target columns than expressions"),
    ("INSERT INTO t (k, k) VALUES (3, 4)", "42701", 'column "k" specified more than once'),
    ("UPDATE t SET k = 5 WHERE k = 1", "0A000", "PK column"),
    ("SELECT k, count(*) FROM t", "42803", "k"),
    # Tables.
    ("CREATE TABLE «t» (a int)", "42P07", "relation \"t\" already exists"),
    ("CREATE MATERIALIZED VIEW «t» AS SELECT k FROM u", "42P07", "relation \"t\" already exists"),
    ("CREATE TABLE x (a int, a int)", "42701", 'column "a" specified more than once'),
    ("CREATE TABLE x (a nonsense)", "42704", 'type "nonsense" does not exist'),
    ("CREATE TABLE x (a int, PRIMARY KEY (b))", "42703", 'column "b" named in key does not exist'),
    ("CREATE TABLE x (a int PRIMARY KEY, b int PRIMARY KEY)", "42P16", "multiple primary keys"),
    ("CREATE TABLE x (_row_id int)", "42611", "_row_id"),
    ("CREATE OR «REPLACE» MATERIALIZED VIEW m AS SELECT k FROM t", "0A000", "OR REPLACE"),
    ("ALTER TABLE t «CLUSTER» ON x", "0A000", "ALTER TABLE is not supported"),
    ("DROP TABLE «nope»", "42P01", "table \"nope\" does not exist"),
    ("DROP MATERIALIZED VIEW «nope»", "42P01", "materialized view \"nope\" does not exist"),
    ("DROP MATERIALIZED VIEW «t»", "42809", "Use `DROP TABLE` to drop a table."),
    ("DROP TABLE u, «nope»", "42P01", "table \"nope\" does not exist"),
    # Append-only tables and watermarks.
    ("UPDATE «log» SET at = NULL", "0A000", "append-only table does not support update or delete"),
    ("DELETE FROM «log»", "0A000", "append-only table does not support update or delete"),
    ("CREATE TABLE x (at timestamp, WATERMARK FOR «at» AS at)", "0A000",
     "Defining watermarks on table requires the table to be append only."),
    ("CREATE TABLE x (a int, WATERMARK FOR «at» AS at) APPEND ONLY", "42703", 'column "at" does not exist'),
    ("CREATE TABLE x (d date, WATERMARK FOR «d» AS d - INTERVAL '5' SECOND) APPEND ONLY", "42804",
     "must be identical to the watermark column data type"),
    ("CREATE TABLE x (v varchar, WATERMARK FOR «v» AS v) APPEND ONLY", "0A000", "type character varying"),
    ("CREATE TABLE x (a int[], WATERMARK FOR «a» AS a) APPEND ONLY", "0A000", "type integer[]"),
    ("CREATE TABLE x (at timestamp, WATERMARK FOR at AS «now»()) APPEND ONLY", "0A000", "its own column"),
    ("CREATE TABLE x (at timestamp, WATERMARK FOR at AS at «+» INTERVAL '1' DAY) APPEND ONLY", "42601", "syntax error"),
    ("CREATE TABLE x (at timestamp, WATERMARK FOR at AS at - INTERVAL «'1'» MONTH) APPEND ONLY", "22007", "1"),
    ("CREATE TABLE x (at timestamp, WATERMARK FOR at AS at - INTERVAL «'2 s ago'») APPEND ONLY", "22007", "2 s ago"),
    ("CREATE TABLE x (at timestamp, WATERMARK FOR at AS at «WITH» TTLS) APPEND ONLY", "42601", "syntax error"),
    ("CREATE TABLE x (at timestamp, WATERMARK FOR «at» AS at)", "0A000", "append only"),
    ("CREATE TABLE x (at timestamp, WATERMARK FOR at AS at, «WATERMARK» FOR at AS at) APPEND ONLY", "0A000", "one"),
    # Views.
    ("CREATE VIEW «w» AS SELECT k FROM t", "42P07", "relation \"w\" already exists"),
    ("CREATE TABLE «w» (a int)", "42P07", "relation \"w\" already exists"),
    ("CREATE VIEW «t» AS SELECT 1 AS one", "42P07", "relation \"t\" already exists"),
    ("CREATE VIEW «nowhere».x AS SELECT k FROM t", "3F000", "nowhere"),
    ("CREATE VIEW x AS SELECT * FROM «nope»", "42P01", "nope"),
    ("CREATE VIEW x AS SELECT «nope» FROM t", "42703", 'column "nope" does not exist'),
    ("CREATE VIEW x AS SELEC «1»", "42601", "1"),
    ("CREATE VIEW x «SELECT» 1", "42601", "SELECT"),
    ("CREATE VIEW x AS «DELETE» FROM t", "42601", "DELETE"),
    ("CREATE VIEW x (a) AS SELECT k, v FROM t", "42601", "view has different number of columns"),
    ("CREATE VIEW x AS SELECT k, k FROM t", "42701", 'column "k" specified more than once'),
    ("CREATE VIEW x AS SELECT k FROM t WHERE k = $1", "42P02", "there is no parameter $1"),
    ("EXPLAIN «CREATE» VIEW x AS SELECT k FROM t", "0A000", "EXPLAIN"),
    ("SELECT «nope» FROM w", "42703", "nope"),
    ("INSERT INTO «w» VALUES (1, 'x')", "42809", 'cannot change view "w"'),
    ("UPDATE «w» SET k = 1", "42809", 'cannot change view "w"'),
    ("DELETE FROM «w»", "42809", 'cannot change view "w"'),
    ("COPY «w» FROM STDIN", "42809", 'cannot change view "w"'),
    ("DROP VIEW «nope»", "42P01", "view \"nope\" does not exist"),
    ("DROP VIEW «t»", "42809", "Use `DROP TABLE` to drop a table."),
    ("DROP TABLE «w»", "42809", "Use `DROP VIEW` to drop a view."),
    ("DROP MATERIALIZED VIEW «w»", "42809", "Use `DROP VIEW` to drop a view."),
    ("DROP TABLE t", "2BP01", "table used by 1 other objects."),
    ("SHOW CREATE VIEW t", "42809", "is not a view"),
    ("SHOW CREATE TABLE w", "42809", "is not a table"),
    # Materialized views.
    ("CREATE MATERIALIZED VIEW m AS SELECT «nope» FROM w", "42703", "nope"),
    ("CREATE MATERIALIZED VIEW m AS SELECT t.k FROM t LEFT JOIN «u» ON t.k < u.k", "0A000", "nested-loop join"),
    ("CREATE MATERIALIZED VIEW m AS SELECT t.k FROM t ANTI JOIN «u» ON t.k = u.k", "0A000", "ANTI JOIN"),
    ("CREATE MATERIALIZED VIEW m AS SELECT k FROM t WHERE EXISTS (SELECT «1» FROM u WHERE u.k < t.k)", "0A000", ""),
    ("CREATE MATERIALIZED VIEW m AS SELECT k FROM t ORDER BY k LIMIT (SELECT 1)", "0A000", "not a constant"),
    ("CREATE MATERIALIZED VIEW m AS SELECT k FROM t ORDER BY v OFFSET 1 FETCH FIRST ROW WITH TIES", "0A000", "OFFSET"),
    ("CREATE MATERIALIZED VIEW m AS SELECT «k» FROM t FETCH FIRST 1 ROWS WITH TIES", "42601", "without ORDER BY"),
    ("SELECT «k» FROM t FETCH FIRST 1 ROWS WITH TIES", "42601", "without ORDER BY"),
    ("SELECT DISTINCT «k» FROM t ORDER BY k FETCH FIRST 1 ROWS WITH TIES", "0A000", "WITH TIES over DISTINCT"),
    ("CREATE MATERIALIZED VIEW m AS SELECT k, now() AS n FROM t", "0A000", "only allowed in `WHERE`"),
    ("CREATE MATERIALIZED VIEW m AS SELECT k FROM t WHERE «count»(*) > 1", "42803", "not allowed in WHERE"),
    ("CREATE MATERIALIZED VIEW m AS SELECT k FROM t WHERE «rank»() OVER () = 1", "42P20", "not allowed in WHERE"),
    ("CREATE MATERIALIZED VIEW m AS SELECT «sum»(count(*)) AS s FROM t", "42803", "cannot be nested"),
    ("CREATE MATERIALIZED VIEW m AS SELECT «count»(DISTINCT k) OVER () AS s FROM t", "0A000", "DISTINCT is not"),
    ("CREATE MATERIALIZED VIEW m AS SELECT «sum»(k) OVER w AS s FROM t", "42704", 'window "w" does not exist'),
    ("CREATE MATERIALIZED VIEW m AS SELECT k::bit(3) AS b FROM t", "42704", 'type "bit" does not exist'),
    ("SELECT COLUMNS('no') FROM t", "42883", "function columns(unknown) does not exist"),
    ("SELECT columns(*) FROM t", "42883", "function columns(unknown) does not exist"),
    ("CREATE MATERIALIZED VIEW m AS SELECT random() AS r FROM t", "0A000", "random() is not supported"),
    ("CREATE MATERIALIZED VIEW m AS SELECT k FROM t WHERE «nope»(k) > 1", "42883", "nope(integer) does not exist"),
    ("CREATE MATERIALIZED VIEW m AS SELECT k FROM t ORDER BY 2 LIMIT 1", "42P10", "position 2 is not in select list"),
    ("CREATE MATERIALIZED VIEW m AS WITH RECURSIVE r AS (SELECT 1 AS a) SELECT a FROM r", "0A000", "RECURSIVE"),
    ("CREATE MATERIALIZED VIEW m AS SELECT k FROM «t» FOR SYSTEM_TIME AS OF now()", "0A000", "FOR SYSTEM_TIME"),
    ("CREATE MATERIALIZED VIEW m AS SELECT k FROM t UNION SELECT k, b FROM u", "42601", "same number of columns"),
    ("CREATE MATERIALIZED VIEW m AS SELECT k FROM t UNION SELECT b FROM u", "42804", "cannot be matched"),
    ("CREATE MATERIALIZED VIEW m AS SELECT l.n FROM t JOIN LATERAL (SELECT «max»(k) AS n FROM u WHERE u.k = t.k "
     "HAVING count(*) > 1) l ON true", "0A000", "HAVING with an aggregate without GROUP BY in LATERAL"),
    ("CREATE MATERIALIZED VIEW m AS SELECT * FROM «HOP»(log, at, INTERVAL '2' MINUTE, INTERVAL '3' MINUTE)", "22023",
     "a multiple of its slide"),
    ("CREATE MATERIALIZED VIEW m AS SELECT * FROM TUMBLE(log, at, INTERVAL «'1'» MONTH)", "22023", "days or less"),
    ("CREATE MATERIALIZED VIEW m AS SELECT t.k FROM t FULL JOIN «log» FOR SYSTEM_TIME AS OF PROCTIME() ON t.k = log.k",
     "0A000", "a temporal FULL JOIN"),
    ("CREATE MATERIALIZED VIEW m AS SELECT k + 1 FROM t", "42611", "An alias must be specified for the 1st expression"),
    ("CREATE MATERIALIZED VIEW m AS SELECT k, count(*) + 1 FROM t GROUP BY k", "42611", "for the 2nd expression"),
    ("CREATE MATERIALIZED VIEW m AS SELECT 'x' FROM t", "42611", "An alias must be specified for the 1st expression"),
    ("CREATE MATERIALIZED VIEW m AS SELECT k, «n» AS k FROM t", "42701", 'column "k" specified more than once'),
    ("CREATE MATERIALIZED VIEW m AS SELECT v, «k», count(*) AS n FROM t GROUP BY v", "42803", "k"),
    ("CREATE MATERIALIZED VIEW m (a, b) AS SELECT k FROM t", "42601", ""),
    ("CREATE MATERIALIZED VIEW m WITH («nope» = 1) AS SELECT k FROM t", "22023", "unexpected options in WITH clause"),
    (
        "CREATE MATERIALIZED VIEW m WITH (cloud.serverless_backfill_enabled = true, "
        "«cloud.serverless_backfill_enabled» = true) AS SELECT k FROM t",
        "22023",
        "Duplicated option: cloud.serverless_backfill_enabled",
    ),
    (
        "CREATE MATERIALIZED VIEW m WITH (cloud.serverless_backfill_enabled = true) AS SELECT k FROM t",
        "22023",
        "Serverless Backfill is disabled",
    ),
    ("CREATE MATERIALIZED VIEW m WITH (backfill_rate_limit = «'fast'») AS SELECT k FROM t", "22023", "fast"),
    ("CREATE MATERIALIZED VIEW m WITH (backfill_strategy = «fast») AS SELECT k FROM t", "22023", "fast"),
    ("CREATE MATERIALIZED VIEW m WITH («backfill_strategy» = no_shuffle) AS SELECT count(*) AS n FROM t", "0A000",
     "an aggregation needs an exchange"),
    ("CREATE MATERIALIZED VIEW m WITH (backfill_order = FIXED(«u» -> t)) AS SELECT k FROM t", "22023",
     "Table or source 'u' specified in backfill_order is not used in the query"),
    ("CREATE MATERIALIZED VIEW m WITH («backfill_order» = FIXED(t -> t)) AS SELECT k FROM t", "22023",
     "Backfill order strategy has a cycle"),
    ("EXPLAIN CREATE MATERIALIZED VIEW m WITH («nope» = 1) AS SELECT k FROM t", "22023", "unexpected options"),
    ("ALTER MATERIALIZED VIEW «nope» SET PARALLELISM = 2", "42P01", "relation \"nope\" does not exist"),
    ("ALTER MATERIALIZED VIEW «t» SET BACKFILL_RATE_LIMIT = 2", "42809", '"t" is not a materialized view'),
    ("ALTER MATERIALIZED VIEW m SET PARALLELISM = «many»", "22023", "invalid parallelism: many"),
    ("ALTER MATERIALIZED VIEW m «ADD» COLUMN x int", "0A000", "this ALTER MATERIALIZED VIEW is not supported"),
    ("CREATE TABLE x (a «list(varchar, int)»)", "42704", 'type "list" does not exist'),
    ("CREATE TABLE x (a int, b «vector(3)» NOT NULL)", "42704", 'type "vector" does not exist'),
    ("ALTER TABLE t ADD COLUMN x «rw_int256»", "42704", 'type "rw_int256" does not exist'),
    ("ALTER TABLE t ALTER COLUMN k TYPE «list(int, int)»", "42704", 'type "list" does not exist'),
    ("SELECT k::«list(int, int)» FROM t", "42704", 'type "list" does not exist'),
    ("SELECT CAST('[1,2]' AS «vector(2)»)", "42704", 'type "vector" does not exist'),
    ("SELECT «vector» '[1,2]'", "42704", 'type "vector" does not exist'),
    ("SELECT abs(k::«rw_int256») FROM t", "42704", 'type "rw_int256" does not exist'),
    ("SELECT 1::«list(int)»[]", "42704", 'type "list" does not exist'),
    ("UPDATE t SET n = n::«variant»", "42704", 'type "variant" does not exist'),
    ("CREATE MATERIALIZED VIEW x AS SELECT k::«vector(3)» AS v FROM t", "42704", 'type "vector" does not exist'),
    ("CREATE MATERIALIZED VIEW x AS SELECT k FROM t WHERE k::«nope» = 1", "42704", 'type "nope" does not exist'),
    ("CREATE MATERIALIZED VIEW x AS SELECT k FROM t WHERE k::«variant» = 1", "42704", 'type "variant" does not exist'),
    ("CREATE MATERIALIZED VIEW x AS SELECT sum(k::«rw_int256») AS v FROM t", "42704", "rw_int256"),
    ("CREATE FUNCTION x(a «list(int,int)») RETURNS int LANGUAGE sql AS 'SELECT 1'", "42704", 'type "list"'),
    ("CREATE FUNCTION x(a int) RETURNS «vector(3)» LANGUAGE sql AS 'SELECT 1'", "42704", 'type "vector"'),
    ("PREPARE x(«vector(3)») AS SELECT $1", "42704", 'type "vector" does not exist'),
    ("CREATE TYPE x AS (a «vector(3)»)", "42704", 'type "vector" does not exist'),
    ("CREATE TABLE x (a int) WITH («retention_seconds» = 5)", "0A000", "requires the table to be append only."),
    ("CREATE TABLE x (a int) APPEND ONLY WITH («retention_seconds» = 'x')", "22023", "retention_seconds: x"),
    ("ALTER FRAGMENT «7» SET RATE_LIMIT = 5", "42704", "fragment id not found: 7"),
    ("ALTER FRAGMENT 7 SET RATE_LIMIT = «many»", "22023", "invalid value for rate_limit: many"),
    ("ALTER FRAGMENT «7», 8 SET PARALLELISM TO 2", "42704", "fragment id not found: 7"),
    ("ALTER FRAGMENT 7 SET PARALLELISM = «many»", "22023", "invalid parallelism: many"),
    ("ALTER FRAGMENT «x» SET PARALLELISM = 2", "42601", "syntax error"),
    ("RECOVER «now»", "42601", "syntax error"),
    ("BACKUP TO «nowhere»", "42601", "syntax error"),
    ("BACKUP TO «'nowhere'»", "42602", "relative path not allowed for BACKUP"),
    # Settings.
    ("SET nope = 1", "42704", "Unrecognized config entry `nope`"),
    ("SHOW nope", "42704", "Unrecognized config entry `nope`"),
    ("SET statement_timeout = 'soon'", "22023", "Invalid value `soon` for `statement_timeout`"),
    ("SET implicit_flush = maybe", "22023", "Invalid value `maybe` for `implicit_flush`"),
    ("SET TIME ZONE 'Middle/Earth'", "22023", "Middle/Earth"),
    ("ALTER SYSTEM SET nope = 1", "42704", "nope"),
    ("ALTER SYSTEM SET barrier_interval_ms = 1", "22023", "out of range"),
    ("ALTER SYSTEM SET streaming_engine = 'flink'", "22023", "one of auto, spark, duckdb expected"),
    ("ALTER SYSTEM SET serverless_backfill_sku = 'big'", "22023", "unknown SKU"),
    ("WAIT MATERIALIZED VIEW nope", "42P01", "materialized view \"nope\" does not exist"),
    ("WAIT MATERIALIZED VIEW t", "42809", "Use `DROP TABLE` to drop a table."),
    # Others.
    ("COPY t FROM «'/etc/passwd'»", "0A000", "COPY of files on the server is not supported"),
    ("COPY t FROM STDIN («nope» true)", "42601", 'option "nope" not recognized'),
    ("COPY t TO STDOUT («format» xml)", "22023", 'COPY format "xml" not recognized'),
    ("COPY t TO STDOUT «WHERE» true", "42601", "WHERE clause not allowed with COPY TO"),
    ("EXPLAIN «DROP» TABLE t", "0A000", "EXPLAIN"),
    ("SELECT «xmax» FROM t", "42703", 'column "xmax" does not exist'),
    ("EXPLAIN SELECT «nope» FROM t", "42703", 'column "nope" does not exist'),
    ("EXPLAIN SELECT * FROM «nope»", "42P01", "nope"),
    ("EXPLAIN INSERT INTO «nope» VALUES (1)", "42P01", "nope"),
    ("EXPLAIN SELECT nope(1)", "42883", "nope"),
    ("EXPLAIN («costs») SELECT 1", "42601", "unexpected explain options: [costs]"),
    ("EXPLAIN (TYPE «x») SELECT 1", "42601", "unexpected explain type: [x]"),
    ("EXPLAIN (FORMAT «csv») SELECT 1", "42601", "unexpected explain format [csv]"),
    ("EXPLAIN (VERBOSE «x») SELECT 1", "42601", 'syntax error at or near "x"'),
    ("EXPLAIN (TRACE, FORMAT JSON) SELECT k FROM t", "0A000", "Not supported: EXPLAIN (TRACE, JSON FORMAT)"),
    ("EXPLAIN (INCREMENTAL) SELECT k FROM t", "0A000", "keeps nothing up to date"),
    ("EXPLAIN (DISTSQL) SELECT k FROM t", "0A000", "of a batch query"),
    ("EXPLAIN «ANALYZE» DELETE FROM t", "0A000", "EXPLAIN ANALYZE is for queries"),
    ("EXPLAIN (ANALYZE, LOGICAL) SELECT k FROM t", "0A000", "Not supported: EXPLAIN (ANALYZE, LOGICAL)"),
    *((f"SELECT «'{text}'»::{type_}", "22003", f'"{text}" is out of range for type {name}')
      for text, type_, name in (("1e400", "float8", "double precision"), ("-1e-400", "float", "double precision"),
                                ("3.5e38", "real", "real"), ("1e-46", "float4", "real"))),
    ("SELECT 'ö', «'ä'»::int", "22P02", 'invalid input syntax for type integer: "ä"'),
    ("SELECT 'zz' < 'a', k + «'x'» FROM t", "22P02", 'invalid input syntax for type integer: "x"'),
    ("INSERT INTO t (k) VALUES (1), («'x'»)", "22P02", 'invalid input syntax for type integer: "x"'),
    ("SELECT $1", "42P02", "$1"),
    *((f"CREATE TABLE m (a int, b «{type_}»)", "42704", f'type "{type_.partition("(")[0]}" does not exist')
      for type_ in ("timetz", "inet", "bit(3)", "bit varying", "cidr", "xml", "hstore", "money[]", "nosuch")),
    ("ALTER TABLE t ADD COLUMN x «timetz»", "42704", 'type "timetz" does not exist'),
    ("SELECT stddev(a) FROM (VALUES (1e200::float8), (-1e200)) v (a)", "22003", "value out of range: overflow"),
    ("SELECT string_agg('a'::bytea, ',')", "42883", "function string_agg(bytea, unknown) does not exist"),
]  # fmt: skip


@pytest.mark.parametrize(("marked", "sqlstate", "message"), ERRORS, ids=[re.sub("[«»]", "", e[0])[:60] for e in ERRORS])
def test_error(session: Connection, marked: str, sqlstate: str, message: str) -> None:
    statement = marked.replace("«", "").replace("»", "")
    found = failure(session, statement)
    assert message in (found.message_primary or "")
    assert found.sqlstate == sqlstate
    assert found.severity == "ERROR"
    if "«" in marked:
        assert found.statement_position is not None, "no position"
        word = marked[marked.index("«") + 1 : marked.index("»")]
        assert statement[int(found.statement_position) - 1 :].startswith(word)
        assert int(found.statement_position) == marked.index("«") + 1


def test_a_type_that_is_not_here_is_not_misspelled(session: Connection) -> None:
    assert failure(session, "CREATE TABLE m (a inet)").message_hint is None
    assert failure(session, "CREATE TABLE m (a integr)").message_hint == 'Perhaps you meant the type "integer".'
    assert failure(session, 'SELECT * FROM "T"').message_hint == 'Perhaps you meant the relation "t".'


def test_unexpected_end_of_input_has_its_position(session: Connection) -> None:
    found = failure(session, "SELECT k FROM")
    assert (found.sqlstate, found.message_primary) == ("42601", "syntax error at end of input")
    assert found.statement_position == str(len("SELECT k FROM") + 1)


@pytest.mark.parametrize(
    ("statement", "option"),
    [
        ("CREATE TABLE m (a int) WITH (appendony = true)", "appendonly"),
        ("CREATE TABLE m (a int) APPEND ONLY WITH (retention_second = 5)", "retention_seconds"),
        ("EXPLAIN (verbos) SELECT 1", "verbose"),
        ("COPY t TO STDOUT WITH (formt csv)", "format"),
    ],
)
def test_misspelled_options_get_a_suggestion(session: Connection, statement: str, option: str) -> None:
    assert failure(session, statement).message_hint == f'Perhaps you meant the option "{option}".'


def test_what_no_view_can_do_says_what_views_can_do(session: Connection) -> None:
    found = failure(session, "CREATE MATERIALIZED VIEW m AS SELECT t.k FROM t LEFT JOIN u ON t.k < u.k")
    assert found.message_primary is not None and found.message_primary.startswith("a LEFT JOIN without an equality")
    assert "Only inner joins may do without" in (found.message_hint or "")


def test_serverless_disabled_says_who_can_enable_it(session: Connection) -> None:
    session.execute("SET enable_serverless_backfill = true")
    found = failure(session, "CREATE MATERIALIZED VIEW m AS SELECT k FROM t")
    assert found.message_primary == "Serverless Backfill is disabled"
    assert "ALTER SYSTEM SET serverless_backfill_enabled" in (found.message_hint or "")
    found = failure(session, "EXPLAIN CREATE MATERIALIZED VIEW m AS SELECT nope FROM t")
    assert found.sqlstate == "42703"


def test_a_failed_statement_of_many_rows_changes_nothing(session: Connection) -> None:
    values = ", ".join(f"({k}, 'v', 1)" for k in range(1, 1000))
    assert failure(session, f"INSERT INTO t VALUES {values}, (5000, NULL, 1)").sqlstate == "23502"
    assert failure(session, f"INSERT INTO t VALUES {values}, (5000, 'v', 'bad')").sqlstate == "22P02"


def test_bad_parameters(session: Connection) -> None:
    for placeholder in ("%t", "%b"):
        with pytest.raises(psycopg.errors.NumericValueOutOfRange):
            session.execute(f"INSERT INTO t VALUES ({placeholder}, 'x', 1)", (2**40,))
    with pytest.raises(psycopg.errors.InvalidTextRepresentation):
        session.execute("INSERT INTO t VALUES (%s, 'x', 1)", ("abc",))
    with pytest.raises(psycopg.errors.NotNullViolation):
        session.execute("INSERT INTO t VALUES (%s, %s, 1)", (3, None))


# COPY.

BROKEN_COPIES = [
    ("", "7\tseven\t7\n8\teight\n", "22P04", 'missing data for column "n"', "line 2"),
    ("", "7\tseven\t7\n\n", "22P04", 'missing data for column "v"', "line 2"),
    ("", "7\tseven\t7\n8\teight\t8\textra\n", "22P04", "extra data after last expected column", "line 2"),
    ("(FORMAT csv, HEADER)", "k,v,n\n7,seven,7\n8,eight\n", "22P04", 'missing data for column "n"', "line 3"),
    ("(FORMAT csv)", '7,seven,7\n8,"eight,8\n', "22P04", "unterminated CSV quoted field", "line 2"),
    ("", "7\tseven\t7\nabc\teight\t8\n", "22P02", 'invalid input syntax for type integer: "abc"', "column k"),
    ("(FORMAT csv)", "7,seven,7\n8,eight,nine\n", "22P02", 'invalid input syntax for type integer: "nine"', "column n"),
    ("", "7\tseven\t7\n8\t\\N\t8\n", "23502", 'null value in column "v"', ""),
]


@pytest.mark.parametrize(("options", "data", "sqlstate", "message", "detail"), BROKEN_COPIES)
def test_broken_copy(session: Connection, options: str, data: str, sqlstate: str, message: str, detail: str) -> None:
    with (
        pytest.raises(psycopg.Error) as caught,
        session.cursor() as cursor,
        cursor.copy(f"COPY t FROM STDIN {options}") as copy,
    ):
        copy.write(data)
    found = caught.value.diag
    assert message in (found.message_primary or "")
    assert found.sqlstate == sqlstate
    assert detail in (found.message_detail or "") + (found.context or "")


def test_broken_line_after_many_good_ones(session: Connection) -> None:
    """The bad line comes when earlier ones have been staged already."""
    with (
        pytest.raises(psycopg.errors.BadCopyFileFormat) as caught,
        session.cursor() as cursor,
        cursor.copy("COPY t FROM STDIN") as copy,
    ):
        for start in range(10, 300_010, 1000):
            copy.write("".join(f"{k}\tvalue\t{k}\n" for k in range(start, start + 1000)))
        copy.write("broken\n")
    diagnostic = caught.value.diag
    assert "line 300001" in (diagnostic.message_detail or "") + (diagnostic.context or "")


def test_client_that_gives_up_a_copy(session: Connection) -> None:
    pgconn = session.pgconn
    pgconn.exec_(b"COPY t FROM STDIN")
    pgconn.put_copy_data(b"7\tseven\t7\n")
    pgconn.put_copy_end(b"changed my mind")
    result = pgconn.get_result()
    assert result is not None
    assert result.error_field(DiagnosticField.SQLSTATE) == b"57014"
    assert b"changed my mind" in (result.error_field(DiagnosticField.MESSAGE_PRIMARY) or b"")
    assert pgconn.get_result() is None


def test_client_that_leaves_a_copy(session: Connection, module_server: Server) -> None:
    leaving = module_server.connect()
    leaving.pgconn.exec_(b"COPY t FROM STDIN")
    leaving.pgconn.put_copy_data(b"7\tseven\t7\n")
    leaving.pgconn.finish()
    assert session.execute("SELECT count(*) FROM t").fetchone() == (2,)


# Connections.


def test_unknown_database(module_server: Server) -> None:
    refused = module_server.psql("-d", "nope", "-c", "SELECT 1")
    assert refused.returncode == 2
    assert 'database "nope" does not exist' in refused.stderr
    with pytest.raises(psycopg.OperationalError) as caught:
        module_server.connect(dbname="nope")
    assert caught.value.sqlstate in ("3D000", None)  # libpq does not keep it while connecting
    assert 'database "nope" does not exist' in str(caught.value)


def test_wrong_startup_parameter(module_server: Server) -> None:
    with pytest.raises(psycopg.OperationalError, match="Invalid value `soon` for `statement_timeout`"):
        module_server.connect(options="-c statement_timeout=soon")


def test_oversized_message(tmp_path: Path) -> None:
    server = Server(tmp_path / "data", max_message_bytes=100_000)
    try:
        with server.connect() as other:
            other.execute("CREATE TABLE small (v varchar)")
            with server.connect() as own, pytest.raises(psycopg.OperationalError) as caught:
                own.execute("INSERT INTO small VALUES (%s)", ("x" * 200_000,))
            assert "exceeds the limit of 100000 bytes" in str(caught.value)
            other.execute("INSERT INTO small VALUES (%s)", ("x" * 90_000,))
            assert other.execute("SELECT count(*), max(length(v)) FROM small").fetchone() == (1, 90_000)
    finally:
        server.kill()


# Servers that cannot start.


def start_in_vain(tmp_path: Path, **options: object) -> list[str]:
    """The lines a server prints that exits with code 1."""
    log = tmp_path / "vain.log"
    process = launch(log, **{"spark_start": "on_demand", **options})
    try:
        assert wait_until(lambda: process.poll() is not None, 20), f"still running:\n{log.read_text()}"
    finally:
        process.kill()
    assert process.returncode == 1
    lines = log.read_text().splitlines()
    assert all(line.startswith("sparkwave: ") for line in lines), lines
    return lines


def test_port_in_use(module_server: Server, tmp_path: Path) -> None:
    address = f"127.0.0.1:{module_server.port}"
    lines = start_in_vain(tmp_path, data=tmp_path / "data", listen=address)
    assert lines[0] == f"sparkwave: cannot listen on {address}: the port is in use"


def test_data_directory_in_use(module_server: Server, tmp_path: Path) -> None:
    lines = start_in_vain(tmp_path, data=module_server.data, listen="127.0.0.1:0")
    assert f"in use by another server (pid {module_server.process.pid})" in lines[0]
    with module_server.connect() as own:
        assert own.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize("content", [b"this is no catalog " * 1000, b"\0" * 4096, b"x"], ids=["text", "zeros", "byte"])
def test_corrupt_catalog(tmp_path: Path, content: bytes) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "catalog.ducklake").write_bytes(content)
    lines = start_in_vain(tmp_path, data=data, listen="127.0.0.1:0")
    assert f'data directory "{data}" cannot be opened' in lines[0]
    assert (data / "catalog.ducklake").read_bytes() == content


def test_truncated_catalog(tmp_path: Path) -> None:
    """The second half is missing; the first must be left as it was."""
    server = Server(tmp_path / "data")
    with server.connect() as own:
        own.execute("CREATE TABLE t (k int PRIMARY KEY)")
    server.stop()
    catalog = server.data / "catalog.ducklake"
    half = catalog.read_bytes()[: catalog.stat().st_size // 2]
    catalog.write_bytes(half)
    lines = start_in_vain(tmp_path, data=server.data, listen="127.0.0.1:0")
    assert "cannot be opened" in lines[0]
    assert catalog.read_bytes() == half


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_unwritable_data_directory(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    lines = start_in_vain(tmp_path, data=tmp_path / "closed" / "data", listen="127.0.0.1:0")
    assert "cannot be used: Permission denied" in lines[0]


def test_data_directory_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    lines = start_in_vain(tmp_path, data=tmp_path / "file", listen="127.0.0.1:0")
    assert f'data directory "{tmp_path / "file"}" cannot be used' in lines[0]
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nonsense = 1\n", 'unknown setting "nonsense" in '),
        ('spark_cores = "many"\n', 'invalid value "many" for '),
        ("listen = \n", "config.toml: "),
        ("[parameters]\nnonsense = 1\n", 'unrecognized system parameter "nonsense"'),
        ("[parameters]\nbarrier_interval_ms = 1\n", "Invalid value `1` for `barrier_interval_ms`"),
        ('spark_start = "sometimes"\n', 'invalid value "sometimes" for '),
        ('listen = "nowhere"\n', '"nowhere" is not an address'),
    ],
)  # fmt: skip
def test_wrong_config_file(tmp_path: Path, text: str, message: str) -> None:
    config = tmp_path / "config.toml"
    config.write_text(text)
    log = tmp_path / "vain.log"
    process = launch(log, config=config, data=tmp_path / "data")
    assert process.wait(20) == 1
    assert message in log.read_text()
    assert "Traceback" not in log.read_text()
    assert not (tmp_path / "data").exists()


def test_missing_config_file(tmp_path: Path) -> None:
    lines = start_in_vain(tmp_path, data=tmp_path / "data", config=tmp_path / "nope.toml")
    assert lines == [f"sparkwave: cannot read {tmp_path / 'nope.toml'}: No such file or directory"]


def test_one_of_several_concurrent_creations_wins(module_server: Server) -> None:
    """All others hear that the name is taken, and the table is there for everybody at once."""
    with contextlib.ExitStack() as stack:
        sessions = [stack.enter_context(module_server.connect()) for _ in range(4)]
        for round_ in range(5):
            outcomes: list[str] = []

            def create(own: Connection, number: int = round_, outcomes: list[str] = outcomes) -> None:
                try:
                    own.execute(f"CREATE TABLE raced_{number} (k int PRIMARY KEY)")
                    outcomes.append("created")
                except psycopg.Error as error:
                    outcomes.append(error.sqlstate or "")
                own.execute(f"INSERT INTO raced_{number} VALUES (1)")

            threads = [threading.Thread(target=create, args=(own,)) for own in sessions]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert sorted(outcomes) == ["42P07", "42P07", "42P07", "created"]
            assert sessions[0].execute(f"SELECT * FROM raced_{round_}").fetchall() == [(1,)]
        for round_ in range(5):
            sessions[0].execute(f"DROP TABLE raced_{round_}")


RACED = {
    "TABLE": "CREATE TABLE IF NOT EXISTS {name} (k int)",
    "TABLE as": "CREATE TABLE IF NOT EXISTS {name} AS SELECT 1 AS k",
    "INDEX": "CREATE INDEX IF NOT EXISTS {name} ON raced (k)",
    "MATERIALIZED VIEW": "CREATE MATERIALIZED VIEW IF NOT EXISTS {name} AS SELECT k, count(*) FROM raced GROUP BY k",
    "VIEW": "CREATE VIEW IF NOT EXISTS {name} AS SELECT k FROM raced",
    "SEQUENCE": "CREATE SEQUENCE IF NOT EXISTS {name}",
    "SUBSCRIPTION": "CREATE SUBSCRIPTION IF NOT EXISTS {name} FROM raced WITH (retention = '1 hour')",
}


def test_several_sessions_create_what_may_exist(module_server: Server) -> None:
    """One of them creates it, the others get PostgreSQL's notice."""
    with contextlib.ExitStack() as stack:
        sessions = [stack.enter_context(module_server.connect()) for _ in range(4)]
        sessions[0].execute("CREATE TABLE raced (k int)")
        for kind, statement in RACED.items():
            told: list[str | None] = []
            start = threading.Barrier(len(sessions))

            def create(
                own: Connection,
                start: threading.Barrier = start,
                statement: str = statement,
                told: list[str | None] = told,
            ) -> None:
                own.add_notice_handler(note := lambda notice: told.append(notice.message_primary))
                start.wait()
                own.execute(statement.format(name="at_once"))
                own.remove_notice_handler(note)

            with ThreadPoolExecutor(len(sessions)) as threads:
                list(threads.map(create, sessions))
            assert told == ['relation "at_once" already exists, skipping'] * 3, kind
            sessions[0].execute(f"DROP {kind.partition(' as')[0]} at_once")
        sessions[0].execute("DROP TABLE raced")


# A view in creation.


def is_creating(connection: Connection, view: str) -> bool:
    """Whether the server knows the view and does not let anybody read it yet."""
    try:
        connection.execute(f"SELECT * FROM {view}")
    except psycopg.Error as error:
        return error.sqlstate == "55000"
    return False


@pytest.fixture
def creating(stuck_server: Server) -> Iterator[Connection]:
    """A session on a server with a table t and a view m on it that stays in creation."""
    with stuck_server.connect() as own:
        own.execute("CREATE TABLE t (k int PRIMARY KEY, v varchar)")
        own.execute("INSERT INTO t VALUES (1, 'one')")
        creator = stuck_server.connect()
        creator.pgconn.send_query(b"CREATE MATERIALIZED VIEW m AS SELECT k FROM t")
        assert wait_until(lambda: is_creating(own, "m"), 10)
        yield own
        creator.pgconn.finish()


def test_name_of_a_creating_view_is_taken(creating: Connection) -> None:
    found = failure(creating, "CREATE MATERIALIZED VIEW m AS SELECT v FROM t")
    assert (found.sqlstate, found.message_primary) == (
        "42P07",
        'relation "m" already exists and is still being created',
    )
    assert failure(creating, "CREATE TABLE m (a int)").sqlstate == "42P07"


def test_creating_view_cannot_be_read(creating: Connection) -> None:
    found = failure(creating, "SELECT * FROM m")
    assert (found.sqlstate, found.statement_position) == ("55000", "15")
    assert "still being created" in (found.message_primary or "")
    assert "WAIT" in (found.message_hint or "")
    assert failure(creating, "CREATE MATERIALIZED VIEW n AS SELECT k FROM m").sqlstate == "55000"
    assert creating.execute("SHOW MATERIALIZED VIEWS").fetchall() == []


def test_table_of_a_creating_view_cannot_be_dropped(creating: Connection) -> None:
    found = failure(creating, "DROP TABLE t")
    assert found.sqlstate == "2BP01"
    assert found.message_primary == "table used by 1 other objects."
    assert found.message_detail == "materialized view public.m depends on it"
    assert found.message_hint == "Use DROP ... CASCADE to drop the dependent objects too."
    assert creating.execute("SELECT * FROM t").fetchall() == [(1, "one")]


def test_creating_view_cannot_be_written_or_dropped_as_a_table(creating: Connection) -> None:
    for statement in ("INSERT INTO m VALUES (1)", "UPDATE m SET k = 1", "DELETE FROM m", "COPY m FROM STDIN"):
        assert failure(creating, statement).sqlstate == "42809", statement
    found = failure(creating, "DROP TABLE m")
    assert (found.sqlstate, found.message_primary) == (
        "42809",
        "Use `DROP MATERIALIZED VIEW` to drop a materialized view.",
    )


def test_an_interrupt_is_no_internal_error(caplog: pytest.LogCaptureFixture) -> None:
    """Also where no statement of the client is being run, as in the COMMIT of a COPY whose client has gone."""
    assert as_error(duckdb.InterruptException("INTERRUPT Error: Interrupted!")).sqlstate == "57014"
    assert not caplog.text
