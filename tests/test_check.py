"""`sparkwave check`: a whole data directory has nothing to say, and whatever is broken in one is named."""

from __future__ import annotations

import gc
import shutil
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from servers import Server, sparkwave
from test_retention import forget, opened, run

from sparkwave.catalog.lake import compaction
from sparkwave.catalog.lake.ducklake import Cursor, Lake
from sparkwave.catalog.lake.storage import Storage
from sparkwave.catalog.names import system_table
from sparkwave.executor.maintenance import check
from sparkwave.executor.maintenance.backup import back_up_storage, restore
from sparkwave.executor.maintenance.check import Report, check_directory
from sparkwave.executor.maintenance.compactor import compact_once
from sparkwave.executor.maintenance.view_check import ViewCheck
from sparkwave.server.dispatch import Client

VIEWS = {
    "grouped": "SELECT g, count(*) AS n, sum(v) AS s, min(v) AS low, sum(f) AS f, avg(f) AS mean FROM t GROUP BY g",
    "joined": "SELECT t.k, t.v, u.name FROM t LEFT JOIN u ON t.g = u.k",
    "of_view": "SELECT count(*) AS groups, max(n) AS largest FROM grouped",
    "top": "SELECT k, v FROM t ORDER BY v DESC, k LIMIT 5",
    "hourly": "SELECT window_start, count(*) AS n FROM TUMBLE(t, at, INTERVAL '1 hour') GROUP BY window_start",
    "documents": "SELECT jsonb_build_object('g', g) AS doc, count(*) AS n FROM t GROUP BY 1",
    "latest": "SELECT k, at FROM t WHERE at > now() - INTERVAL '1 hour'",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with views of every kind after changes, a compaction, and a change no barrier has seen."""
    directory = tmp_path_factory.mktemp("check") / "data"
    eager = pytest.MonkeyPatch()
    eager.setattr(compaction, "INLINED_ROWS", 20)
    eager.setattr(compaction, "TIERS", ((1 << 20, 3), (16 << 20, 16)))
    with opened(directory) as (context, client):
        run(client, "CREATE TABLE t (k int PRIMARY KEY, g int, v bigint, f double precision, at timestamptz)",
            "CREATE TABLE u (k int PRIMARY KEY, name varchar)",
            "INSERT INTO u SELECT i, 'u' || i FROM range(4) AS r(i)",
            *(f"CREATE MATERIALIZED VIEW {name} AS {query}" for name, query in VIEWS.items()),
            "CREATE INDEX by_g ON t (g)")  # fmt: skip
        for step in range(3):
            run(client, f"INSERT INTO t SELECT {step} * 50 + i, i % 7, i * {step}, i / 7.0, now() FROM range(50) r(i)",
                f"UPDATE t SET v = v + 1, f = f * 1.1 WHERE k % 5 = {step}", f"DELETE FROM t WHERE k % 11 = {step}",
                "FLUSH")  # fmt: skip
            compact_once(context.lake)
        forget(context)
        run(client, "INSERT INTO t VALUES (10000, 1, 1, 1.5, now())")
    eager.undo()
    return directory


@pytest.fixture
def data(made: Path) -> Iterator[Path]:
    """The directory as it was made: what a test does to it is taken back. The catalog notes where its files are."""
    kept = made.with_name("kept")
    shutil.copytree(made, kept)
    yield made
    shutil.rmtree(made)
    kept.rename(made)


def files_of(data: Path, table: str) -> list[Path]:
    return sorted((data / "data").glob(f"*/{table}/*.parquet"))


def write(data: Path, sql: str) -> None:
    lake = Lake(Storage(data))
    with lake.transaction(lake.cursor()) as cursor:
        cursor.execute(sql)
    lake.close()


def only_finding(report: Report) -> str:
    [finding] = report.findings
    return finding


def test_a_whole_directory(data: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in data.rglob("*") if path.is_file() and path.name != "LOCK"}
    report = check_directory(data, views=True)
    assert (report.findings, report.skipped, report.views) == ((), (), len(VIEWS) + 1)
    assert report.files > 5
    assert {p: p.stat().st_mtime_ns for p in data.rglob("*") if p.is_file() and p.name != "LOCK"} == before


def test_functions_are_there_as_long_as_views_call_them(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB frees a function in Python with the cursor that has defined it, and crashes in its next call, or not."""
    define, compare, defined, checked = check.system_views.define_python_functions, check.check_view, [], []

    def defining(cursor: Cursor, signal: Callable[[str, int, str], bool]) -> None:
        defined.append(weakref.ref(cursor))
        define(cursor, signal)

    def comparing(*args: Any) -> ViewCheck:
        gc.collect()
        checked.append([cursor() is not None for cursor in defined])
        return compare(*args)

    monkeypatch.setattr(check.system_views, "define_python_functions", defining)
    monkeypatch.setattr(check, "check_view", comparing)
    check_directory(data, views=True)
    assert checked == [[True]] * (len(VIEWS) + 1)


def test_a_deleted_file(data: Path) -> None:
    file = files_of(data, "t")[0]
    file.unlink()
    assert f"dev.public.t: file {file} is missing" in check_directory(data, views=False).findings


def test_a_truncated_file(data: Path) -> None:
    file = files_of(data, "t")[0]
    size = file.stat().st_size
    file.write_bytes(file.read_bytes()[:-10])
    found = only_finding(check_directory(data, views=False))
    assert found == f"dev.public.t: file {file} has {size - 10} bytes and should have {size}"


def test_a_file_of_other_bytes(data: Path) -> None:
    """Of the right size, but no Parquet; the other files are still looked at."""
    file = files_of(data, "t")[0]
    file.write_bytes(b"x" * file.stat().st_size)
    assert only_finding(check_directory(data, views=False)) == f"dev.public.t: file {file} cannot be read as Parquet"


def test_a_file_of_other_rows(data: Path) -> None:
    file = files_of(data, "t")[0]
    write(data, f"UPDATE __ducklake_metadata_lake.ducklake_data_file SET record_count = 7 WHERE path = '{file.name}'")
    assert "rows and should have 7" in only_finding(check_directory(data, views=False))


def test_an_extra_file(data: Path) -> None:
    extra = files_of(data, "t")[0].with_name("extra.parquet")
    duckdb.sql(f"COPY (SELECT 1 AS k) TO '{extra}'")
    assert only_finding(check_directory(data, views=False)).startswith(f"file {extra} belongs to no snapshot")


def test_files_of_a_job_that_was_given_up(data: Path, tmp_path: Path) -> None:
    """They are deleted at once, while snapshots still name them: nobody can read the view that never was."""
    file = data / "data" / "job_99" / "f0_s0" / "part.parquet"
    file.parent.mkdir(parents=True)
    duckdb.sql(f"COPY (SELECT 1 AS k) TO '{file}'")
    write(data, 'CREATE TABLE lake."dev.public".given_up (k INTEGER)')
    write(data, f"CALL ducklake_add_data_files('lake', 'given_up', '{file}', schema => 'dev.public')")
    assert not check_directory(data, views=False).findings
    file.unlink()
    assert only_finding(check_directory(data, views=False)) == f"dev.public.given_up: file {file} is missing"
    write(data, 'DROP TABLE lake."dev.public".given_up')
    assert not check_directory(data, views=False).findings
    back_up_storage(Storage(data), tmp_path / "backup")
    assert not check_directory(tmp_path / "backup", views=False).findings


@pytest.mark.parametrize(
    ("sql", "finding"),
    [
        ('UPDATE lake."dev.public".joined SET name = \'wrong\' WHERE k = 100',
         "materialized view public.joined: 1 row is unexpected: "),
        ('UPDATE lake."dev.public".grouped SET f = f + 0.001 WHERE g = 1',
         "materialized view public.grouped: 1 row is unexpected: "),
        ('DELETE FROM lake."dev.public".by_g WHERE g = 1 AND k < 60', "rows are missing: "),
        ('INSERT INTO lake."dev.public".top FROM lake."dev.public".top LIMIT 1', "1 row is unexpected"),
    ],
)  # fmt: skip
def test_a_wrong_row(data: Path, sql: str, finding: str) -> None:
    write(data, sql)
    assert check_directory(data, views=False).findings == ()
    assert finding in check_directory(data, views=True).findings[0]


def test_rows_are_compared_with_checksums(tmp_path: Path) -> None:
    """Of a restored backup without computing a query; also of a view whose rows cannot be computed again."""
    queries = {
        "groups": "SELECT g, count(*) AS n, sum(v) AS s FROM t GROUP BY g",
        "rows": "SELECT k, v, at FROM t WHERE v > 3",
        "renamed": 'SELECT k AS "K", v AS rowid FROM t',
        "looked_up": "SELECT t.k, u.name FROM t JOIN u FOR SYSTEM_TIME AS OF PROCTIME() ON t.g = u.k",
        "altered": "SELECT k FROM t",
    }
    with opened(tmp_path / "data") as (_, client):
        run(client, "CREATE TABLE t (k int PRIMARY KEY, g int, v numeric, at timestamptz)",
            "CREATE TABLE u (k int PRIMARY KEY, name varchar)",
            "INSERT INTO u SELECT i, 'u' || i FROM range(9) AS r(i)",
            "INSERT INTO t SELECT i, i % 7, i / 3.0, now() FROM range(200) AS r(i)",
            *(f"CREATE MATERIALIZED VIEW {name} AS {query}" for name, query in queries.items()),
            "CREATE INDEX by_g ON t (g)")  # fmt: skip
        assert check_backup(tmp_path / "before", client).checksums == 0, "none is recorded"
        run(client, *(f"SHOW CHECKSUM {name}" for name in (*queries, "by_g")))
        run(client, "UPDATE t SET v = v + 1, g = g + 1 WHERE k % 5 = 1", "DELETE FROM t WHERE k % 11 = 1",
            "ALTER MATERIALIZED VIEW altered AS SELECT k, v FROM t", "SHOW CHECKSUM altered",
            "INSERT INTO t VALUES (1000, 1, NULL, now())", "FLUSH")  # fmt: skip
        report = check_backup(tmp_path / "copy", client)
        assert (report.findings, report.checksums, report.views) == ((), len(queries) + 1, 0)
    back_up_storage(Storage(tmp_path / "data"), tmp_path / "backup")
    restore(tmp_path / "backup", Storage(tmp_path / "restored"))
    wrong = {
        "groups": "UPDATE {} SET s = s + 1 WHERE g = 2", "rows": "DELETE FROM {} WHERE k = 102",
        "looked_up": "UPDATE {} SET name = upper(name) WHERE k = 8", "by_g": "INSERT INTO {} FROM {} LIMIT 1",
    }  # fmt: skip
    for name, sql in wrong.items():
        write(tmp_path / "restored", sql.replace("{}", f'lake."dev.public".{name}'))
    found = check_directory(tmp_path / "restored", views=False).findings
    assert {finding.split(":")[0].split(".")[-1] for finding in found} == set(wrong)
    assert all("the stored rows have the checksum " in finding for finding in found)
    computed = check_directory(tmp_path / "restored", views=True)
    assert (computed.checksums, computed.views, len(computed.findings)) == (1, len(queries), len(wrong))
    assert any("public.looked_up: the stored rows have the checksum" in finding for finding in computed.findings)
    with opened(tmp_path / "restored") as (_, client):
        run(client, "REFRESH MATERIALIZED VIEW groups REBUILD", "FLUSH")
    found = check_directory(tmp_path / "restored", views=False).findings
    assert {finding.split(":")[0].split(".")[-1] for finding in found} == set(wrong) - {"groups"}
    assert check_directory(tmp_path / "data", views=False).findings == ()


def check_backup(copy: Path, client: Client) -> Report:
    """Check a backup of a running server."""
    run(client, f"BACKUP TO '{copy}'")
    return check_directory(copy, views=False)


@pytest.mark.parametrize(
    ("sql", "finding"),
    [
        (f"UPDATE {system_table('epoch')} SET snapshot = 999999",
         "the views have applied snapshot 999999, which is missing"),
        (f"UPDATE {system_table('jobs')} SET status = 'CREATING', snapshot = 1 WHERE id = (SELECT id FROM "
         f"{system_table('relations')} WHERE name = 'top')", "it stands at snapshot 1, which is missing"),
        (f"DELETE FROM {system_table('jobs')} WHERE id = (SELECT id FROM {system_table('relations')} "
         "WHERE name = 'top')", "materialized view public.top: it has no job"),
        ('DROP TABLE lake."dev.public".top', 'its table lake."dev.public"."top" is missing'),
        (f"INSERT INTO {system_table('positions')} (job_id, vnode, row_id_from, row_id_to, position) "
         f"SELECT id, 3, 10, 20, 21 FROM {system_table('relations')} WHERE name = 'top'",
         "vnode 3 stands at row 21, outside of 10 to 20"),
    ],
)  # fmt: skip
def test_a_wrong_reference(data: Path, sql: str, finding: str) -> None:
    write(data, sql)
    assert any(finding in found for found in check_directory(data, views=False).findings)


def test_after_another_query_for_a_view(tmp_path: Path) -> None:
    """Nothing is left of the job that has made the view's new rows."""
    with opened(tmp_path / "lake", streaming_engine="duckdb", backfill_engine="auto") as (_, client):
        run(client, "CREATE TABLE t (k int PRIMARY KEY, v int)")
        run(client, "INSERT INTO t SELECT i, i FROM range(100) AS r (i)")
        run(client, "CREATE MATERIALIZED VIEW m AS SELECT v % 5 AS g, count(*) AS n FROM t GROUP BY v % 5")
        run(client, "ALTER MATERIALIZED VIEW m AS SELECT v % 7 AS g, count(*) AS n FROM t GROUP BY v % 7")
    report = check_directory(tmp_path / "lake", views=True)
    assert (report.findings, report.views) == ((), 1)


@pytest.mark.long
def test_the_command(tmp_path: Path) -> None:
    """Refused while a server runs; after a kill -9 the catalog is read with its log."""
    server = Server(tmp_path / "data")
    try:
        with server.connect() as connection:
            connection.execute("ALTER SYSTEM SET backfill_engine = auto")
            connection.execute("CREATE TABLE t (k int PRIMARY KEY, v int)")
            connection.execute("INSERT INTO t SELECT i, i FROM range(1000) AS r(i)")
            connection.execute("CREATE MATERIALIZED VIEW m AS SELECT sum(v) AS s FROM t")
        held = sparkwave("check", "--data", server.data)
        assert held.returncode == 1
        assert "is in use by another server (pid" in held.stderr
    finally:
        server.kill()
    whole = sparkwave("check", "--data", server.data, "--views")
    assert (whole.returncode, whole.stderr) == (0, "")
    assert whole.stdout.endswith("2 relations, 1 views and indexes compared with their queries: no findings\n")
    [file] = files_of(server.data, "t")
    file.unlink()
    broken = sparkwave("check", "--data", server.data)
    assert broken.returncode == 1
    assert broken.stdout.startswith(f"dev.public.t: file {file} is missing\n")
    nothing = sparkwave("check", "--data", tmp_path / "nothing")
    assert nothing.returncode == 1
    assert nothing.stderr == f'sparkwave: there is no catalog in the directory "{tmp_path / "nothing"}"\n'
    assert not (tmp_path / "nothing").exists()
