"""Servers, and their Spark, whose lake is in a bucket: views are what their queries give, whatever happens."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from buckets import SECRET, Bucket
from crashes import (
    BASE_ROWS,
    Writer,
    check_rows,
    check_views,
    create_in_background,
    create_tables,
    join,
    start_writers,
    wait_for_progress,
)
from crashes import VIEWS as LAW
from postgres import Postgres
from servers import PATIENCE_SECONDS, Server, refused, rows, wait_until

from sparkwave.catalog.lake.ducklake import Lake
from sparkwave.catalog.lake.integrity import check_files, known_files
from sparkwave.catalog.lake.places import BucketPath
from sparkwave.catalog.lake.s3 import S3
from sparkwave.catalog.lake.storage import Storage
from sparkwave.executor.maintenance.orphan_removal import Orphans, Pace

pytestmark = [pytest.mark.long, pytest.mark.timeout(1500)]

KEYS = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": SECRET}
Connection = psycopg.Connection[Any]
COLUMNS = """k int PRIMARY KEY, g int, v bigint, n numeric, f double precision, at timestamptz, ts timestamp, day date,
             b bytea, tags int[], name varchar"""
ROWS = """i, i % 7, i * 11, i / 4.0, i / 7.0, to_timestamp(i), '2024-01-01'::timestamp + i * INTERVAL '1 second',
          '2024-01-01'::date + (i % 365)::int, decode('0' || i % 10, 'hex'),
          ARRAY[i, NULL, i % 3], CASE WHEN i % 5 > 0 THEN 'n' || i % 100 END"""


class Deployment:
    """A PostgreSQL for the catalog, a bucket for the files, and servers on them."""

    def __init__(self, directory: Path) -> None:
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self.directory = directory
        self.postgres = Postgres()
        self.bucket = Bucket()
        self.servers: list[Server] = []

    def serve(self, name: str, **options: object) -> Server:
        """Another server. Keys are in its environment."""
        given = {
            "catalog": self.postgres.conninfo(),
            "shared": "s3://data/lake",
            "s3_endpoint": self.bucket.url,
            "spark_cores": 2,
            "spark_memory_mib": 1024,
        }
        self.servers.append(Server(self.directory / name, KEYS, **{**given, **options}))
        return self.servers[-1]

    def lake(self, read_only: bool = True) -> Lake:
        """While no server writes."""
        top = BucketPath(S3("us-east-1", self.bucket.url, "a", SECRET), "data/lake")
        return Lake(Storage(self.directory / "reader", self.postgres.conninfo(), top), read_only=read_only)

    def delete_what_crashes_left(self) -> None:
        with closing(self.lake(read_only=False)) as lake:
            Orphans(lake, Pace(grace_s=-5, temporary_s=-5)).run_once()

    def stop(self) -> None:
        for server in self.servers:
            server.kill()
        self.bucket.stop()
        self.postgres.stop()


def comes_to_write(server: Server) -> bool:
    """Whether it does, now that another one is dead."""
    return wait_until(lambda: f"sparkwave ready on {server.address}\n" in server.log(), PATIENCE_SECONDS)


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[Deployment]:
    started = Deployment(tmp_path)
    yield started
    started.stop()


def differences(own: Connection, view: str, query: str) -> list[Any]:
    """Rows of a view and not of its query, or of the query and not of the view; not counted twice."""
    own.execute("FLUSH")
    found = rows(own, f"(SELECT * FROM {view} EXCEPT ALL {query}) UNION ALL ({query} EXCEPT ALL SELECT * FROM {view})")
    return found[:3]


def check_lake(deployment: Deployment) -> None:
    """Of servers that have stopped: nothing is missing, or is what it should not be, and keys are nowhere."""
    deployment.delete_what_crashes_left()
    with closing(deployment.lake()) as lake:
        cursor = lake.cursor()
        files = known_files(lake, cursor)
        assert files
        assert list(check_files(lake, cursor, files)) == []
    own = [path for path in deployment.directory.rglob("*") if path.is_file()]
    assert not [path for path in own if path.suffix == ".parquet"]
    assert not [path for path in own if SECRET.encode() in path.read_bytes()]
    with deployment.postgres.connect() as connection:
        for (table,) in rows(connection, "SELECT format('%I', tablename) FROM pg_tables WHERE schemaname = 'public'"):
            assert rows(connection, f"SELECT 1 FROM {table} AS t WHERE t::text LIKE '%{SECRET}%'") == []


VIEWS = {
    ("sums", "snapshot"): """SELECT g, name, count(*) AS c, sum(v) AS s, sum(n) AS n, max(at) AS at, min(ts) AS ts,
                             max(day) AS day, max(b) AS b, sum(w) AS w FROM r GROUP BY g, name""",
    ("copied", "snapshot"): "SELECT k, v + 1 AS v, n, f, at, ts, day, b, tags, name, w FROM r WHERE g <> 3",
    ("paired", "arrangement"): "SELECT r.k, u.name, r.n FROM r JOIN u ON r.g = u.k WHERE r.k % 10 = 1",
    ("mapped", "no_shuffle"): "SELECT k, upper(name) AS name, at, n * 2 AS n, w FROM r WHERE v % 2 = 0",
}


@pytest.mark.spark
def test_views_on_spark(deployment: Deployment) -> None:
    """Each strategy, over files with deletes and updates, a later column, rows in the catalog; then changes."""
    server = deployment.serve("first")
    with server.connect() as own:
        own.execute(f"CREATE TABLE r ({COLUMNS})")
        own.execute("CREATE TABLE u (k int PRIMARY KEY, name varchar)")
        own.execute("INSERT INTO u SELECT i, 'u' || i FROM range(5) AS x (i)")
        for start in (0, 120_000):
            own.execute(f"INSERT INTO r SELECT {ROWS} FROM range({start}, {start + 120_000}) AS x (i)")
        own.execute("DELETE FROM r WHERE k % 100 = 7")
        own.execute("UPDATE r SET v = v + 1000000 WHERE k % 50 = 3")
        own.execute("ALTER TABLE r ADD COLUMN w int DEFAULT 3")
        own.execute(f"INSERT INTO r SELECT {ROWS}, 4 FROM range(300000, 300005) AS x (i)")
        own.execute(f"ALTER SYSTEM SET serverless_backfill_provision_timeout = {PATIENCE_SECONDS}")
        own.execute("ALTER SYSTEM SET backfill_engine = spark")
        own.execute("ALTER SYSTEM SET backfill_slice_rows = 100000")
        for (view, strategy), query in VIEWS.items():
            own.execute(f"CREATE MATERIALIZED VIEW {view} WITH (backfill_strategy = '{strategy}') AS {query}")
            assert differences(own, view, query) == [], view
        assert any("/job_" in name for name in deployment.bucket.names("lake/data"))

        own.execute("ALTER SYSTEM SET streaming_engine = spark")
        own.execute("UPDATE r SET v = 1, name = 'same' WHERE k % 1000 = 5")
        own.execute("DELETE FROM r WHERE k % 1000 = 6")
        for (view, _), query in VIEWS.items():
            assert differences(own, view, query) == [], view
        own.execute("ALTER SYSTEM SET streaming_engine = auto")

        own.execute("SET query_mode = distributed")
        query = "SELECT g, count(*), sum(v), max(name) FROM r GROUP BY g ORDER BY g"
        on_spark = rows(own, query)
        own.execute("SET query_mode = local")
        assert on_spark == rows(own, query)
        own.execute("SET query_mode = distributed")
        error = refused(own, "SELECT k, 1 / (k - 5) AS x FROM r")
        assert error.sqlstate == "22012", error
    server.stop()
    assert deployment.bucket.names("lake/staging") == []
    check_lake(deployment)


def check_command(deployment: Deployment, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`sparkwave check` of the deployment's lake."""
    lake = ("--catalog", deployment.postgres.conninfo(), "--shared", "s3://data/lake", "--s3-endpoint")
    return subprocess.run(
        [sys.executable, "-m", "sparkwave", "check", "--data", str(deployment.directory / "checked"), *lake,
         deployment.bucket.url, *arguments],
        env={**os.environ, **KEYS}, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False,
    )  # fmt: skip


@pytest.mark.spark
def test_another_server_goes_on(deployment: Deployment) -> None:
    """A server is killed in the middle of a backfill: another one goes on from the partial results in the bucket."""
    first = deployment.serve("first")
    with first.connect() as own:
        create_tables(own, BASE_ROWS // 8)
        writers = start_writers(first, seed=5)
        create_in_background(own, "sums", "snapshot")
        wait_for_progress(own, 0.2)
        first.kill()
    join(writers)
    with closing(deployment.lake()) as lake:
        finished = lake.cursor().execute("FROM lake.sparkwave.finished_slices").fetchall()
    assert finished
    second = deployment.serve("second")
    with second.connect() as own:
        own.execute("WAIT")
        check_rows(own, writers)
        assert check_views(own) == ["sums"]
        writers = start_writers(second, seed=9, before=writers)
        time.sleep(1)
        second.kill()
    join(writers)
    with deployment.serve("third").connect() as own:
        check_rows(own, writers)
        assert check_views(own) == ["sums"]
    deployment.servers[-1].stop()
    check_lake(deployment)


def test_the_law(deployment: Deployment) -> None:
    """Views that DuckDB fills follow random writes of several clients through crashes, takeovers and compaction."""
    first = deployment.serve("first")
    with first.connect() as own:
        own.execute("ALTER SYSTEM SET compaction_interval_ms = 500")
        create_tables(own, BASE_ROWS, "auto")
        for name, query in LAW.items():
            own.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    writers: list[Writer] = []
    for number, server in enumerate((first, deployment.serve("second"), None)):
        writing = server or deployment.serve("third")
        assert comes_to_write(writing)
        with writing.connect() as own:
            writers = start_writers(writing, seed=10 * number, before=writers)
            for _ in range(3):
                time.sleep(1)
                own.execute("FLUSH")
            if number == 2:
                for writer in writers:
                    writer.stop()
                check_rows(own, writers)
                assert sorted(check_views(own)) == sorted(LAW)
            else:
                writing.kill()
                join(writers)
    refused_check = check_command(deployment)
    assert f"is in use by the server at {writing.address}" in refused_check.stderr
    writing.stop()
    deployment.delete_what_crashes_left()
    done = check_command(deployment, "--views")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert done.stdout.endswith("4 views and indexes compared with their queries: no findings\n")
    check_lake(deployment)
