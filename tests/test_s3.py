"""Sources and sinks of S3, against moto's server, which speaks its protocol."""

from __future__ import annotations

import io
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from buckets import SECRET, Bucket
from pyarrow import parquet
from servers import Server, refused, rows, wait_until
from test_sources import status, wait_for, wait_for_reason

Connection = psycopg.Connection[Any]


@pytest.fixture(scope="module")
def bucket() -> Iterator[Bucket]:
    made = Bucket()
    yield made
    made.stop()


@pytest.fixture
def session(in_process_server: Server) -> Iterator[Connection]:
    with in_process_server.connect() as opened:
        yield opened


@pytest.mark.long
def test_objects_are_read_once(session: Connection, bucket: Bucket) -> None:
    """Of three formats, new ones too, with what INCLUDE knows."""
    bucket.put("in/a.csv", b"id,t\n1,one\n2,\n")
    bucket.put("in/.hidden.csv", b"id,t\n9,no\n")
    bucket.put("in/a.json", b'{"id": 3, "t": "three"}\n{"id": 4}\n')
    table = pa.table({"id": pa.array([5, 6], pa.int64()), "t": ["five", None]})
    written = io.BytesIO()
    parquet.write_table(table, written, row_group_size=1)
    bucket.put("in/a.parquet", written.getvalue())
    for encode, first in (("CSV", 1), ("JSON", 3), ("PARQUET", 5)):
        given = bucket.options(f"match_pattern = 'in/*.{encode.lower()}', refresh.interval.sec = 1")
        session.execute(
            f"CREATE SOURCE of_{encode} (id int, t varchar, twice int AS id * 2) INCLUDE file AS f "
            f"WITH ({given}) FORMAT PLAIN ENCODE {encode}"
        )
        texts = {1: "one", 3: "three", 5: "five"}
        file = f"in/a.{encode.lower()}"
        expected = [(first, texts[first], 2 * first, file), (first + 1, None, 2 * first + 2, file)]
        wait_for(session, f"SELECT id, t, twice, f FROM of_{encode} ORDER BY id", expected)
    session.execute("CREATE MATERIALIZED VIEW of_s3 AS SELECT f, count(*) AS n FROM of_csv GROUP BY f")
    bucket.put("in/b/c.csv", b"id,t\n7,seven\n")
    wait_for(session, "SELECT f, n FROM of_s3 ORDER BY f", [("in/a.csv", 2), ("in/b/c.csv", 1)])
    assert status(session, "of_csv") == ("RUNNING", "3 rows consumed", None)


def test_what_is_wrong_is_said(session: Connection, bucket: Bucket) -> None:
    bucket.put("bad/a.json", b'{"id": 1}\n{"id": "x"}\n')
    given = bucket.options("match_pattern = 'bad/*', refresh.interval.sec = 1")
    session.execute(f"CREATE SOURCE bad (id int) WITH ({given}) FORMAT PLAIN ENCODE JSON")
    reason = 's3://data/bad/a.json, line 2: column "id": invalid input syntax for type integer: "x"'
    assert wait_for_reason(session, "bad") == reason
    elsewhere = given.replace("'data'", "'none'")
    error = refused(session, f"CREATE SOURCE s (id int) WITH ({elsewhere}) FORMAT PLAIN ENCODE JSON")
    assert (error.sqlstate, error.diag.message_primary) == ("58P01", 'bucket "none" does not exist')
    session.execute("DROP SOURCE bad")


def kept(bucket: Bucket, folder: str) -> Counter[tuple[Any, ...]]:
    """The rows that the objects of a sink leave when they are applied in order; no row goes that is not there."""
    found: Counter[tuple[Any, ...]] = Counter()
    for name in bucket.names(folder):
        with bucket.files.open_input_file(name) as file:
            for operation, *row in zip(*parquet.read_table(file).to_pydict().values(), strict=True):
                found[tuple(row)] += 1 if operation == "insert" else -1
                assert found[tuple(row)] >= 0
    return +found


@pytest.mark.long
def test_a_sink_over_an_outage_and_a_kill(server: Server, bucket: Bucket) -> None:
    """Views go on while the bucket cannot be reached, and in the end each change is there once."""
    with server.connect() as own:
        own.execute("ALTER SYSTEM SET backfill_engine = auto")
        own.execute("CREATE TABLE t (k int PRIMARY KEY, v int)")
        own.execute("INSERT INTO t VALUES (1, 10), (2, 20)")
        given = bucket.options("s3.path = 'out/rows'")
        own.execute(f"CREATE SINK s FROM t WITH ({given}) FORMAT UPSERT ENCODE PARQUET")
        own.execute("CREATE MATERIALIZED VIEW m AS SELECT sum(v) AS s FROM t")
        assert wait_until(lambda: kept(bucket, "out/rows") == Counter([(1, 10), (2, 20)]), 30)
        bucket.stop()
        own.execute("UPDATE t SET v = 11 WHERE k = 1")
        own.execute("FLUSH")
        own.execute("DELETE FROM t WHERE k = 2")
        own.execute("FLUSH")
        assert rows(own, "TABLE m") == [(11,)]
        failed = "SELECT count(*) FROM rw_catalog.rw_event_logs WHERE event_type = 'SINK_FAIL'"
        assert wait_until(lambda: rows(own, failed) == [(1,)], 60)
    server.kill()
    assert SECRET not in server.log()
    again = Server(server.data)
    try:
        bucket.start()
        with again.connect() as own:
            own.execute("INSERT INTO t VALUES (3, 30)")
            expected = Counter([(1, 11), (3, 30)])
            assert wait_until(lambda: kept(bucket, "out/rows") == expected, 60)
            assert len(bucket.names("out/rows")) == 4
            assert SECRET not in str(rows(own, "SHOW CREATE SINK s"))
    finally:
        again.kill()


def test_a_limited_sink(session: Connection, bucket: Bucket) -> None:
    """It waits at 0, goes on as its limit allows, and at once without one."""
    session.execute("CREATE TABLE limited (k int PRIMARY KEY)")
    given = bucket.options("s3.path = 'limited', sink_rate_limit = 0, snapshot = 'false'")
    session.execute(f"CREATE SINK slow FROM limited WITH ({given}) FORMAT UPSERT ENCODE PARQUET")
    for k in range(3):
        session.execute(f"INSERT INTO limited VALUES ({3 * k}), ({3 * k + 1}), ({3 * k + 2})")
        session.execute("FLUSH")
    time.sleep(2.5)
    assert not bucket.names("limited")
    session.execute("ALTER SINK slow SET SINK_RATE_LIMIT = 1")
    assert wait_until(lambda: len(bucket.names("limited")) == 1, 10)
    time.sleep(1.2)
    assert len(bucket.names("limited")) == 1
    session.execute("ALTER SINK slow SET SINK_RATE_LIMIT TO DEFAULT")
    expected = Counter((k,) for k in range(9))
    assert wait_until(lambda: kept(bucket, "limited") == expected, 20)
    session.execute("DROP SINK slow")


def test_an_append_only_sink_is_what_a_source_reads(session: Connection, bucket: Bucket) -> None:
    session.execute("CREATE TABLE facts (id int, t varchar) APPEND ONLY")
    session.execute("INSERT INTO facts SELECT i, 'text ' || i FROM generate_series(1, 1000) AS g (i)")
    into = bucket.options("s3.path = 'facts'")
    session.execute(f"CREATE SINK f FROM facts WITH ({into}) FORMAT PLAIN ENCODE JSON")
    session.execute("INSERT INTO facts VALUES (1001, NULL)")
    given = bucket.options("match_pattern = 'facts/*.json', refresh.interval.sec = 1")
    session.execute(f"CREATE SOURCE back (id int, t varchar) WITH ({given}) FORMAT PLAIN ENCODE JSON")
    wait_for(session, "SELECT count(*), count(DISTINCT id), count(t) FROM back", [(1001, 1001, 1000)])


def test_the_servers_own_credentials_are_for_superusers(in_process_server: Server, bucket: Bucket) -> None:
    with in_process_server.connect() as own:
        own.execute("CREATE USER plain_reader PASSWORD 'p'")
        own.execute("GRANT CREATE ON SCHEMA public TO plain_reader")
        own.execute("CREATE TABLE readable (a int)")
        own.execute("GRANT SELECT ON readable TO plain_reader")
    given = "connector = 's3', s3.region_name = 'r', s3.bucket_name = 'data', enable_config_load = 'true'"
    with in_process_server.connect(user="plain_reader", password="p") as other:
        for sql in (
            f"CREATE SOURCE s (a int) WITH ({given}) FORMAT PLAIN ENCODE CSV",
            f"CREATE SINK s FROM readable WITH ({given}, type = 'append-only', force_append_only = 'true')",
        ):
            error = refused(other, sql)
            assert error.diag.message_primary == "must be superuser to use the server's own credentials"
