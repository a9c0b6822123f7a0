"""Several servers on one catalog in a PostgreSQL: one writes, the others read and take its place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from postgres import Postgres
from servers import PATIENCE_SECONDS, Server, free_port, launch, refused, rows, sparkwave, wait_until

from sparkwave.catalog.lake.ducklake import Lake
from sparkwave.catalog.lake.storage import Storage

pytestmark = pytest.mark.long

ADVERTISED = "writer.example:4566"
VIEW = "SELECT v, count(*) AS n FROM t GROUP BY v"


class Pair:
    """Two servers. The first one writes."""

    def __init__(self, postgres: Postgres, directory: Path) -> None:
        self.postgres = postgres
        options = {"catalog": postgres.conninfo(), "shared": directory / "shared"}
        self.first = Server(directory / "first", **options, advertise=ADVERTISED)
        self.second = Server(directory / "second", **options)
        with self.first.connect() as own:
            own.execute("ALTER SYSTEM SET backfill_engine = auto")
            own.execute("CREATE TABLE t (k INT PRIMARY KEY, v INT)")
            own.execute("INSERT INTO t SELECT x, x % 3 FROM generate_series(1, 50) x")
            own.execute(f"CREATE MATERIALIZED VIEW m AS {VIEW}")

    def takes_over(self) -> bool:
        """Whether the second one comes to write."""
        return wait_until(lambda: f"sparkwave ready on {self.second.address}\n" in self.second.log(), PATIENCE_SECONDS)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    postgres = Postgres()
    both = Pair(postgres, tmp_path)
    yield both
    both.first.kill()
    both.second.kill()
    postgres.stop()


def test_reads(pair: Pair) -> None:
    """What the first one has committed the second one sees with the next statement; it writes nothing."""
    assert f"sparkwave ready on {pair.second.address} for reading" in pair.second.log()
    with pair.first.connect() as own, pair.second.connect() as other:
        for k in range(100, 105):
            own.execute("INSERT INTO t VALUES (%s, 7)", (k,))
            own.execute("FLUSH")
            assert rows(other, "SELECT n FROM m WHERE v = 7") == [(k - 99,)]
        own.execute("ALTER TABLE t ADD COLUMN w INT DEFAULT 3")
        assert rows(other, "SELECT w, count(*) FROM t GROUP BY w") == [(3, 55)]
        own.execute("DROP MATERIALIZED VIEW m")
        assert refused(other, "SELECT * FROM m").sqlstate == "42P01"
        for sql in ("INSERT INTO t VALUES (1, 1)", "CREATE TABLE u (k INT)", "DROP TABLE t", "FLUSH",
                    "CREATE TEMP TABLE u (k INT)", "ALTER SYSTEM SET barrier_interval_ms = 500"):  # fmt: skip
            error = refused(other, sql)
            assert error.sqlstate == "25006"
            assert error.diag.message_hint == f"Connect to {ADVERTISED}."


def test_compares_rows_with_checksums(pair: Pair) -> None:
    """The second one reads the rows of a view again, and tells where they are not those that the first has recorded."""
    with pair.first.connect() as own, pair.second.connect() as other:
        assert [row[1] for row in rows(other, "AUDIT MATERIALIZED VIEW m")] == ["SKIPPED"], "none is recorded yet"
        first = rows(own, "SHOW CHECKSUM m")
        own.execute("INSERT INTO t VALUES (100, 1)")
        own.execute("FLUSH")
        changed = rows(own, "SHOW CHECKSUM m")
        assert first != changed == rows(other, "SHOW CHECKSUM m")
        assert [row[1:4] for row in rows(other, "AUDIT MATERIALIZED VIEW m")] == [("SAME", *changed[0][1:])]
        compared = "1 views and indexes compared with their checksums"
        done = sparkwave("check", "--online", "--listen", pair.second.address)
        assert (done.returncode, done.stdout) == (0, f"{compared}: no findings\n")
        with psycopg.connect(pair.postgres.conninfo(), autocommit=True) as catalog:
            [(table,)] = catalog.execute(
                "SELECT i.table_name FROM ducklake_inlined_data_tables i JOIN ducklake_table t USING (table_id) "
                "WHERE t.table_name = 'm' AND t.end_snapshot IS NULL"
            ).fetchall()
            catalog.execute(f'UPDATE "{table}" SET n = n + 1 WHERE v = 1 AND end_snapshot IS NULL'.encode())
        assert [row[1] for row in rows(other, "AUDIT MATERIALIZED VIEW m")] == ["DIFFERENT"]
        done = sparkwave("check", "--online", "--listen", pair.second.address)
        assert done.returncode == 1
        assert done.stdout.startswith("materialized view public.m: the stored rows have the checksum ")
        assert done.stdout.endswith(f"{compared}: 1 findings\n")


def test_clients_find_the_one_that_writes(pair: Pair) -> None:
    """libpq's target_session_attrs, and what drivers ask to the same end."""
    servers = [pair.second, pair.first]
    for wanted, found in (("read-write", 1), ("primary", 1), ("read-only", 0), ("standby", 0), ("any", 0)):
        ports = ",".join(str(server.port) for server in servers)
        hosts = {"host": "127.0.0.1,127.0.0.1", "port": ports, "user": "root", "dbname": "dev"}
        with psycopg.connect(**hosts, target_session_attrs=wanted) as client:
            assert client.info.port == servers[found].port, wanted
    for server, expected in ((pair.first, "off"), (pair.second, "on")):
        with server.connect() as own:
            for name in ("transaction_read_only", "in_hot_standby"):
                assert rows(own, f"SHOW {name}") == [(expected,)]
                assert rows(own, f"SELECT current_setting('{name}')") == [(expected,)]
            assert rows(own, "SELECT pg_is_in_recovery()") == [(expected == "on",)]


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_the_second_takes_over(pair: Pair, end: str) -> None:
    with pair.first.connect() as own:
        own.execute("INSERT INTO t VALUES (1000, 9)")
    getattr(pair.first, end)()
    assert pair.takes_over()
    with pair.second.connect() as own:
        own.execute("INSERT INTO t VALUES (1001, 9)")
        own.execute("FLUSH")
        assert sorted(rows(own, "SELECT * FROM m")) == sorted(rows(own, VIEW))
        assert rows(own, "SELECT n FROM m WHERE v = 9") == [(2,)]


def test_never_two_write(pair: Pair) -> None:
    """The first one loses its lock, not its life: it commits nothing more, and reads from then on."""
    own = pair.first.connect()
    with pair.postgres.connect() as database:
        database.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            f"WHERE application_name = 'sparkwave lease {ADVERTISED}'"
        )
    acknowledged = 0
    with pytest.raises(psycopg.Error):
        for k in range(1000, 1500):
            own.execute("INSERT INTO t VALUES (%s, 9)", (k,))
            acknowledged += 1
    assert wait_until(lambda: pair.first.log().count("sparkwave ready on") == 2, PATIENCE_SECONDS)
    assert wait_until(lambda: reads_only(pair.first) != reads_only(pair.second), PATIENCE_SECONDS)
    writers = [server for server in (pair.first, pair.second) if not reads_only(server)]
    with writers[0].connect() as left:
        left.execute("FLUSH")
        assert rows(left, "SELECT count(*) FROM t WHERE v = 9") == [(acknowledged,)]
        assert sorted(rows(left, "SELECT * FROM m")) == sorted(rows(left, VIEW))


def reads_only(server: Server) -> bool:
    last = [line for line in server.log().splitlines() if line.startswith("sparkwave ready on")][-1]
    return last.endswith("for reading")


def test_both_start_at_once(tmp_path: Path) -> None:
    """On an empty catalog one makes it, and the other one waits until it is made."""
    postgres = Postgres()
    options = {"catalog": postgres.conninfo(), "shared": tmp_path / "shared", "spark_start": "on_demand"}
    logs = [tmp_path / "0.log", tmp_path / "1.log"]
    started = [
        launch(log, listen=f"127.0.0.1:{free_port()}", data=tmp_path / log.stem, **options)  # type: ignore[arg-type]
        for log in logs
    ]
    try:
        assert wait_until(lambda: all("sparkwave ready on" in log.read_text() for log in logs), PATIENCE_SECONDS)
        assert sorted("for reading" in log.read_text() for log in logs) == [False, True]
    finally:
        for process in started:
            process.kill()
            process.wait()
        postgres.stop()


def test_another_version(pair: Pair, tmp_path: Path) -> None:
    """A reader does not read what is not of its version, and does when the server that writes has made it so."""
    version = "(SELECT max(version) FROM lake.sparkwave.migrations)"
    lake = Lake(Storage(tmp_path / "third", pair.postgres.conninfo(), tmp_path / "shared"))
    with lake.transaction(lake.cursor()) as cursor:
        [(newest,)] = cursor.execute(f"SELECT {version}").fetchall()
        cursor.execute(f"DELETE FROM lake.sparkwave.migrations WHERE version = {version}")
    pair.second.stop()
    log = tmp_path / "again.log"
    options = {"catalog": pair.postgres.conninfo(), "shared": tmp_path / "shared"}
    again = launch(log, listen=f"127.0.0.1:{free_port()}", data=tmp_path / "again", **options)
    try:
        assert wait_until(lambda: "is not of this version; it waits" in log.read_text(), PATIENCE_SECONDS)
        assert again.poll() is None and "sparkwave ready" not in log.read_text()
        with lake.transaction(lake.cursor()) as cursor:
            cursor.execute("INSERT INTO lake.sparkwave.migrations VALUES (?)", [newest])
        assert wait_until(lambda: "for reading" in log.read_text(), PATIENCE_SECONDS)
    finally:
        again.kill()
        again.wait()
        lake.close()
