"""A server deletes no files but its lake's: what it refuses to start with, and what it deletes in the background."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import tarfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from unittest.mock import patch

import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from buckets import SECRET, Bucket
from disks import small_disk
from postgres import Postgres
from servers import PATIENCE_SECONDS, Server, free_port, launch, rows, wait_until
from test_retention import opened, run

from sparkwave.catalog.errors import Error, Refused
from sparkwave.catalog.lake import identity
from sparkwave.catalog.lake.conditional_put import signature
from sparkwave.catalog.lake.ducklake import Lake
from sparkwave.catalog.lake.identity import Identity
from sparkwave.catalog.lake.lake_tables import register_files
from sparkwave.catalog.lake.places import BucketPath
from sparkwave.catalog.lake.s3 import S3
from sparkwave.catalog.lake.storage import IDENTITY_FILE, LOCK_FILE, Storage
from sparkwave.catalog.names import LakeTable
from sparkwave.executor.maintenance.backup import back_up_storage, restore
from sparkwave.executor.maintenance.check import check_directory
from sparkwave.executor.maintenance.orphan_removal import Orphans, Pace

DAY = 86400.0


def contents(*directories: Path) -> dict[Path, bytes]:
    """All files below, without those that tell who looks."""
    found = (path for directory in directories for path in directory.rglob("*"))
    return {path: path.read_bytes() for path in found if path.is_file() and path.name != LOCK_FILE}


def start_in_vain(log: Path, **options: object) -> list[str]:
    """The lines that a server prints which does not start."""
    process = launch(log, listen=f"127.0.0.1:{free_port()}", spark_start="on_demand", **options)
    try:
        assert process.wait(PATIENCE_SECONDS) == 1
    finally:
        process.kill()
    return log.read_text().splitlines()


def fill(server: Server) -> None:
    with server.connect() as own:
        own.execute("CREATE TABLE t (k int PRIMARY KEY, v int)")
        own.execute("INSERT INTO t SELECT i, i FROM range(1000) AS r (i)")


def count(server: Server) -> int:
    with server.connect() as own:
        return int(rows(own, "SELECT count(*) FROM t")[0][0])


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    started = Postgres()
    yield started
    started.stop()


@pytest.mark.long
def test_another_catalog_and_the_same_files(postgres: Postgres, tmp_path: Path) -> None:
    """Of a lake that is served: an empty catalog, another lake's, and a copy of the lake's own are refused."""
    shared = tmp_path / "shared"
    with postgres.connect("postgres") as admin:
        for name in ("one", "two", "three"):
            admin.execute(f"CREATE DATABASE {name}")
    server = Server(tmp_path / "first", catalog=postgres.conninfo("one"), shared=shared)
    other = Server(tmp_path / "other", catalog=postgres.conninfo("three"), shared=tmp_path / "its own")
    try:
        fill(server)
        fill(other)
        other.stop()
        before = contents(shared)
        assert any(path.suffix == ".parquet" for path in before)
        for name, message in (("two", "and no catalog that names them"), ("three", "belong to another lake")):
            options = {"catalog": postgres.conninfo(name), "shared": shared}
            lines = start_in_vain(tmp_path / f"{name}.log", data=tmp_path / name, **options)
            assert len(lines) == 2
            assert message in lines[0] and str(shared) in lines[0] and f'catalog "{name}"' in lines[0]
            assert "--catalog" in lines[1] and "--shared" in lines[1]
            assert contents(shared) == before
        with postgres.connect("two") as second:
            assert rows(second, "SELECT 1 FROM pg_tables WHERE schemaname = 'public'") == []
        assert count(server) == 1000
        server.stop()
        with postgres.connect("postgres") as admin:
            admin.execute("CREATE DATABASE copied TEMPLATE one")
        options = {"catalog": postgres.conninfo("copied"), "shared": shared}
        lines = start_in_vain(tmp_path / "copied.log", data=tmp_path / "copied", **options)
        assert "belong to another database" in lines[0] and IDENTITY_FILE in lines[1]
        # The first database is gone for good.
        (shared / "data" / IDENTITY_FILE).unlink()
        server = Server(tmp_path / "copied", **options)
        assert count(server) == 1000
        server.stop()
        lines = start_in_vain(
            tmp_path / "one.log", data=tmp_path / "first", catalog=postgres.conninfo("one"), shared=shared
        )
        assert "belong to another database" in lines[0]
    finally:
        server.kill()
        other.kill()


@pytest.mark.long
def test_a_place_that_is_not_mounted(postgres: Postgres, tmp_path: Path) -> None:
    with postgres.connect("postgres") as admin:
        admin.execute("CREATE DATABASE mounted")
    options = {"catalog": postgres.conninfo("mounted"), "data": tmp_path / "data"}
    server = Server(shared=tmp_path / "shared", **options)
    fill(server)
    server.stop()
    lines = start_in_vain(tmp_path / "log", shared=tmp_path / "empty", **options)
    assert "lacks 1 of the files that its catalog names" in lines[0] and str(tmp_path / "shared") in lines[1]
    assert contents(tmp_path / "empty") == {}


def test_a_catalog_that_is_missing(tmp_path: Path) -> None:
    """A restore in two steps: nothing is lost, and the second step is all that is needed."""
    server = Server(tmp_path / "data")
    fill(server)
    server.stop()
    catalog = server.data / "catalog.ducklake"
    catalog.rename(tmp_path / "kept")
    before = contents(server.data)
    for is_identified in (True, False):
        if not is_identified:  # as of an earlier version
            (server.data / "data" / IDENTITY_FILE).unlink()
            before.pop(server.data / "data" / IDENTITY_FILE)
        lines = start_in_vain(tmp_path / "data.log.2", data=server.data)
        assert "there are files in" in lines[0] and "and no catalog that names them" in lines[0]
        assert "catalog.ducklake" in lines[1]
        assert contents(server.data) == before
    (tmp_path / "kept").rename(catalog)
    server = Server(tmp_path / "data")
    try:
        assert count(server) == 1000
    finally:
        server.kill()


@pytest.mark.parametrize("left", ["catalog.ducklake.wal", "catalog.ducklake.partial"])
def test_a_part_of_a_catalog(tmp_path: Path, left: str) -> None:
    """Its log without it, and what a restore has left that was cut short."""
    lake = Lake(Storage(tmp_path / "data"))
    lake.close()
    (tmp_path / "data" / "catalog.ducklake").rename(tmp_path / "data" / left)
    shutil.rmtree(tmp_path / "data" / "data")
    before = contents(tmp_path / "data")
    with pytest.raises(Refused, match="of a catalog that is not whole"):
        Lake(Storage(tmp_path / "data"))
    assert contents(tmp_path / "data") == before


def test_an_older_catalog(tmp_path: Path) -> None:
    """It does not name the files that came later: they are not lost by a server that begins with it."""
    with opened(tmp_path / "data") as (_, client):
        run(client, "CREATE TABLE t (k int)", "INSERT INTO t SELECT * FROM range(1000)")
    catalog = tmp_path / "data" / "catalog.ducklake"
    shutil.copy(catalog, tmp_path / "older")
    with opened(tmp_path / "data") as (_, client):
        run(client, "INSERT INTO t SELECT * FROM range(1000)")
    catalog.rename(tmp_path / "newest")
    shutil.copy(tmp_path / "older", catalog)
    before = contents(tmp_path / "data")
    with pytest.raises(Refused, match="are of a newer catalog"):
        Lake(Storage(tmp_path / "data"))
    assert contents(tmp_path / "data") == before
    (tmp_path / "newest").rename(catalog)
    with opened(tmp_path / "data") as (_, client):
        assert run(client, "SELECT count(*) FROM t") == [(2000,)]
    # There is no newer one.
    shutil.copy(tmp_path / "older", catalog)
    (tmp_path / "data" / "data" / IDENTITY_FILE).unlink()
    with opened(tmp_path / "data") as (_, client):
        assert run(client, "SELECT count(*) FROM t") == [(1000,)]


def test_another_lakes_catalog(tmp_path: Path) -> None:
    for name in ("one", "two"):
        Lake(Storage(tmp_path / name)).close()  # a lake of its own, no copy
        with opened(tmp_path / name) as (_, client):
            run(client, "CREATE TABLE t (k int)", "INSERT INTO t SELECT * FROM range(1000)")
    shutil.copy(tmp_path / "one" / "catalog.ducklake", tmp_path / "two")
    before = contents(tmp_path / "two")
    with pytest.raises(Refused, match="belong to another lake"):
        Lake(Storage(tmp_path / "two"))
    assert contents(tmp_path / "two" / "data") == {k: v for k, v in before.items() if "data" in k.parts}
    with pytest.raises(Refused, match="belong to another lake"):
        check_directory(tmp_path / "two", views=False)
    with pytest.raises(Refused, match="belong to another lake"):
        back_up_storage(Storage(tmp_path / "two"), tmp_path / "b")


@pytest.mark.parametrize(
    "stray", ["data/2024/own.parquet", "scratch/notes.txt", "spill/own", "staging/job_1/x", "a.txt"]
)
def test_a_directory_of_somebody_else(tmp_path: Path, stray: str) -> None:
    file = tmp_path / "own" / stray
    file.parent.mkdir(parents=True)
    file.write_text("mine")
    with pytest.raises(Refused, match=f"is neither empty nor a data directory: it has {stray.partition('/')[0]}"):
        Lake(Storage(tmp_path / "own"))
    assert [path for path in (tmp_path / "own").rglob("*") if path.is_file()] == [file]


def test_serving_a_directory_of_somebody_else(tmp_path: Path) -> None:
    files = [tmp_path / "own" / name for name in ("data/2024/own.parquet", "scratch/own/notes.txt")]
    for file in files:
        file.parent.mkdir(parents=True)
        file.write_text("mine")
    lines = start_in_vain(tmp_path / "log", data=tmp_path / "own")
    assert "is neither empty nor a data directory: it has data, scratch" in lines[0]
    assert "--data" in lines[1]
    assert sorted(path for path in (tmp_path / "own").rglob("*") if path.is_file()) == files


def test_what_may_be_in_a_new_directory(tmp_path: Path) -> None:
    """What a file system puts there, and what the server is told to use."""
    (tmp_path / "data" / "lost+found").mkdir(parents=True)
    (tmp_path / "data" / "sparkwave.toml").write_text("")
    Lake(Storage(tmp_path / "data")).close()


def test_strays_in_a_data_directory(tmp_path: Path) -> None:
    """A server starts beside them, and leaves them alone."""
    server = Server(tmp_path / "data")
    fill(server)
    server.stop()
    kept = [server.data / name for name in ("scratch/notes.txt", "scratch/own/x", "spill/own", "staging/own/x", "own")]
    temporary = [
        server.data / name
        for name in ("scratch/risingwave-compute-1/x", "spill/duckdb_temp_storage_S32K-0.tmp", "staging/job_77/f1_s1/x")
    ]
    for path in (*kept, *temporary):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    (server.data / "scratch" / "risingwave-backfill-1").write_text("a file")
    server = Server(tmp_path / "data")
    try:
        assert count(server) == 1000
        assert all(path.exists() for path in kept)
        assert not any(path.exists() for path in temporary)
    finally:
        server.kill()


def orphan(lake: Lake, name: str, age_s: float = DAY) -> Path:
    path = Path(str(lake.data_path / name))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"0123456789")
    os.utime(path, (time.time() - age_s,) * 2)
    return path


UUID = "01a20c9d-beb9-78e7-a5f0-{:012d}"
OF_A_TABLE = f"dev.public/t/ducklake-{UUID}.parquet"


def test_orphans(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Those of Sparkwave's names go when they are old enough, in the background; whatever else is there stays."""
    with opened(tmp_path / "data") as (context, client):
        lake = context.lake
        run(client, "CREATE TABLE t (k int)", "INSERT INTO t SELECT * FROM range(1000)", "DELETE FROM t WHERE k < 500")
        run(client, "SET background_ddl = true")
        run(client, "CREATE MATERIALIZED VIEW slow WITH (backfill_rate_limit = 0) AS SELECT k + 1 AS k FROM t")
        [job] = [job.id for job in context.store.catalog.jobs]
        known = contents(lake.directory / "data")
        for path in known:
            os.utime(path, (time.time() - DAY,) * 2)
        old = [
            orphan(lake, OF_A_TABLE.format(1)),
            orphan(lake, OF_A_TABLE.format(2).replace(".parquet", "-delete.parquet")),
            orphan(lake, "job_9999/f1_s0/part-00000.parquet"),
            orphan(lake, "job_9999/step_3/_temporary/0/part-00001.parquet"),
        ]
        kept = [
            orphan(lake, OF_A_TABLE.format(3), age_s=600),
            orphan(lake, f"job_{job}/f1_s0/part-00000.parquet"),
            orphan(lake, "dev.public/t/own.parquet"),
            orphan(lake, "own/ducklake.parquet"),
            orphan(lake, "job_9999/notes.txt"),
        ]
    with opened(tmp_path / "data") as (context, client):
        assert all(path.exists() for path in (*old, *kept)), "nothing goes at a start"
        caplog.clear()
        orphans = Orphans(context.lake)
        assert not orphans.run_once()
        assert not any(path.exists() for path in old)
        assert not (context.lake.directory / "data" / "job_9999" / "step_3").exists()
        assert all(path.exists() for path in (*kept, *known))
        [record] = [
            record for record in caplog.records if record.name == "sparkwave.executor.maintenance.orphan_removal"
        ]
        assert record.levelno == logging.WARNING
        assert record.getMessage().startswith("deleted 4 files that no snapshot knows (40 bytes)")
        # An open write may be about to commit what is younger than it.
        with context.lake.holding(LakeTable("dev.public", "t")):
            context.lake._writing[LakeTable("dev.public", "t")] -= 700
            Orphans(context.lake, Pace(grace_s=100)).run_once()
        assert kept[0].exists()
        Orphans(context.lake, Pace(grace_s=100)).run_once()
        assert not kept[0].exists()
        # Somebody has put another lake's files there.
        file = context.lake.directory / "data" / IDENTITY_FILE
        file.unlink()
        identity.write(file.parent, Identity("another"))
        last = orphan(context.lake, OF_A_TABLE.format(4))
        with pytest.raises(Error, match="have become another lake's"):
            orphans.run_once()
        assert last.exists()
        assert run(client, "SELECT count(*) FROM t") == [(500,)]


def test_temporary_files_of_other_servers(tmp_path: Path) -> None:
    """Below a place that servers share they go by their age, but for this server's and those of creating jobs."""
    lake = Lake(Storage(tmp_path / "data", None, tmp_path / "shared"))
    try:
        names = [
            f"step_1002_{'0' * 8}_{'1' * 8}",
            f"query_{'0' * 8}_{'1' * 8}",
            f"backup_{'a' * 32}",
            f"slice_1002_{'0' * 8}",
            "job_5",
            "own",
        ]
        places = [lake.staging_path / name for name in names] + [lake.new_temporary("query")]
        for path in map(Path, map(str, places)):
            path.mkdir(parents=True)
            (path / "x").write_text("x")
            os.utime(path / "x", (time.time() - 2 * DAY,) * 2)
        Orphans(lake, Pace()).run_once()
        left = {path.name for path in Path(str(lake.staging_path)).iterdir()}
        assert left == {"own", places[-1].name}
        (Path(str(lake.staging_path)) / names[0]).mkdir()
        Orphans(lake, Pace()).run_once()
        assert (Path(str(lake.staging_path)) / names[0]).exists()
    finally:
        lake.close()


@pytest.mark.parametrize("case", ["whole", "no rows in files", "half", "none", "another's"])
def test_a_lake_without_an_identity(tmp_path: Path, case: str, caplog: pytest.LogCaptureFixture) -> None:
    """As earlier versions made it: it gets one when its catalog names files that are there, or none and none are."""
    data = tmp_path / "data"
    with opened(data) as (_, client):
        run(client, "CREATE TABLE t (k int)", "CREATE TABLE u (k int)")
        if case not in ("no rows in files", "another's"):
            run(client, "INSERT INTO t SELECT * FROM range(1000)", "INSERT INTO u SELECT * FROM range(1000)")
    lake = Lake(Storage(data))
    lake.cursor().execute("DELETE FROM __ducklake_metadata_lake.ducklake_metadata WHERE key = 'sparkwave_lake'")
    lake.close()
    (data / "data" / IDENTITY_FILE).unlink()
    files = sorted((data / "data").rglob("*.parquet"))
    for file in files[: {"half": 1, "none": 2}.get(case, 0)]:
        file.unlink()
    if case == "another's":
        (data / "data" / "other").mkdir()
        (data / "data" / "other" / "x.parquet").write_text("x")
    if case in ("none", "another's"):
        with pytest.raises(Refused, match="lacks 2 of the files" if case == "none" else "names none of them"):
            Lake(Storage(data))
        assert not (data / "data" / IDENTITY_FILE).exists()
        return
    lake = Lake(Storage(data))
    assert identity.read(data / "data") == lake.identity
    lake.close()
    assert ("1 files that the catalog names are missing" in caplog.text) == (case == "half")
    Lake(Storage(data)).close()


@pytest.mark.long
@pytest.mark.parametrize("commit", ["43bf28f", "8f71e67"])
def test_an_earlier_version(tmp_path: Path, commit: str) -> None:
    """Its directory is served where it is, and has an identity then."""
    with tarfile.open(Path(__file__).parent / "data" / f"{commit}.tar.xz") as archive:
        archive.extractall(tmp_path / "data", filter="data")
    files = {path for path in contents(tmp_path / "data" / "data") if path.suffix == ".parquet"}
    assert files
    server = Server(tmp_path / "data")
    try:
        with server.connect() as own:
            assert rows(own, "SELECT count(*) FROM facts") == [(2727,)]
        assert files <= contents(server.data / "data").keys()
        assert (server.data / "data" / IDENTITY_FILE).exists()
    finally:
        server.kill()


def test_a_backup_is_a_lake_of_its_own(tmp_path: Path) -> None:
    with opened(tmp_path / "data") as (_, client):
        run(
            client, "CREATE TABLE t (k int)", "INSERT INTO t SELECT * FROM range(1000)", f"BACKUP TO '{tmp_path / 'b'}'"
        )
    restore(tmp_path / "b", Storage(tmp_path / "restored"))
    known = {identity.read(tmp_path / name / "data") for name in ("data", "b", "restored")}
    assert len(known) == 3 and None not in known
    for catalog, files in (("b", "data"), ("data", "restored")):
        shutil.rmtree(tmp_path / "mixed", ignore_errors=True)
        shutil.copytree(tmp_path / catalog, tmp_path / "mixed")
        shutil.rmtree(tmp_path / "mixed" / "data")
        shutil.copytree(tmp_path / files / "data", tmp_path / "mixed" / "data")
        with pytest.raises(Refused, match="belong to another lake"):
            Lake(Storage(tmp_path / "mixed"))
    for name in ("data", "b", "restored"):
        with opened(tmp_path / name) as (_, client):
            assert run(client, "SELECT count(*) FROM t") == [(1000,)]


def test_a_bucket(tmp_path: Path) -> None:
    """The same for files in a bucket."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    bucket = Bucket()
    try:
        place = BucketPath(S3("us-east-1", bucket.url, "a", SECRET), "data/lake")
        storage = Storage(tmp_path / "one", None, place)
        lake = Lake(storage)
        cursor = lake.cursor()
        table = LakeTable("s", "t")
        cursor.execute(f"CREATE SCHEMA lake.s; CREATE TABLE {table.sql} (k INTEGER)")
        added = place / "data" / "job_7" / "f1_s0" / "x.parquet"
        cursor.execute(f"COPY (SELECT 1 AS k) TO '{added}' (FORMAT parquet)")
        with lake.transaction(cursor):
            register_files(cursor, table, [str(added)])
        lake.close()
        bucket.put("lake/data/job_9/f1_s0/left.parquet", b"x")
        bucket.put("lake/data/own.parquet", b"x")
        before = bucket.names("lake")
        with pytest.raises(Refused, match="and no catalog that names them"):
            Lake(Storage(tmp_path / "two", None, place))
        assert bucket.names("lake") == before
        lake = Lake(storage)
        Orphans(lake, Pace()).run_once()
        assert bucket.names("lake") == before
        Orphans(lake, Pace(grace_s=-5)).run_once()
        assert bucket.names("lake") == [name for name in before if "left" not in name]
        lake.close()
    finally:
        bucket.stop()


def bucket_path(bucket: Bucket, key: str) -> BucketPath:
    return BucketPath(S3("us-east-1", bucket.url, "a", SECRET, "a token"), f"data/{key}")


@pytest.mark.parametrize("where", ["directory", "without links", "bucket"])
def test_the_first_of_several_says_whose_the_files_are(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    bucket = Bucket()
    try:
        place = bucket_path(bucket, "a prefix/ä+b") if where == "bucket" else tmp_path
        if where == "without links":
            monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(PermissionError()))
        given = [Identity(str(number)) for number in range(8)]
        with ThreadPoolExecutor(len(given)) as pool:
            list(pool.map(lambda own: identity.write(place, own), given))
        first = identity.read(place)
        assert first in given
        identity.write(place, Identity("late"))
        assert identity.read(place) == first
        identity.replace(place, Identity("other"))
        assert identity.read(place) == Identity("other")
        if isinstance(place, Path):
            assert [path.name for path in place.iterdir()] == [IDENTITY_FILE]
    finally:
        bucket.stop()


def test_signature() -> None:
    """Amazon's own example of a PUT, in its documentation, has other headers: botocore signs ours."""
    s3 = S3("eu-west-1", "http://localhost:9000", "a", SECRET, "a token")
    url, now = "http://localhost:9000/data/a%20prefix/%C3%A4%2Bb", datetime(2024, 2, 29, 12, 30, 5, tzinfo=UTC)
    request = AWSRequest("PUT", url, {"Content-Type": "application/octet-stream"}, b"content")
    signer = S3SigV4Auth(Credentials("a", SECRET, "a token"), "s3", "eu-west-1")
    with patch("botocore.auth.get_current_datetime", return_value=now.replace(tzinfo=None)):
        signer.add_auth(request)
    ours = signature(s3, url, b"content", now)
    assert ours["Authorization"] == request.headers["Authorization"]


def have_decided(servers: list[subprocess.Popen[bytes]], logs: list[Path]) -> bool:
    """Whether each serves or has ended."""
    pairs = zip(servers, logs, strict=True)
    return all(process.poll() is not None or "sparkwave ready" in log.read_text() for process, log in pairs)


@pytest.mark.parametrize("turns", [1, pytest.param(5, marks=pytest.mark.long)])
@pytest.mark.parametrize("is_bucket", [False, True])
def test_two_servers_at_the_same_instant(postgres: Postgres, tmp_path: Path, is_bucket: bool, turns: int) -> None:
    """Two empty catalogs, and one empty place for their files: one gets it."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    bucket = Bucket()
    try:
        for turn in range(turns):
            names = [f"{'bucket' if is_bucket else 'shared'}_{turns}_{turn}_{number}" for number in range(2)]
            with postgres.connect("postgres") as admin:
                for name in names:
                    admin.execute(f"CREATE DATABASE {name}")
            shared = f"s3://data/{turn}" if is_bucket else tmp_path / f"shared_{turn}"
            keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": SECRET} if is_bucket else {}
            started = []
            for name in names:
                options: dict[str, object] = {"s3_endpoint": bucket.url} if is_bucket else {}
                options |= {"listen": f"127.0.0.1:{free_port()}", "spark_start": "on_demand"}
                options |= {"catalog": postgres.conninfo(name), "shared": shared, "data": tmp_path / name}
                started.append(launch(tmp_path / f"{name}.log", keys, **options))
            try:
                logs = [tmp_path / f"{name}.log" for name in names]
                assert wait_until(partial(have_decided, started, logs), PATIENCE_SECONDS)
                time.sleep(0.3)
                ended = [process.poll() for process in started]
                said = [log.read_text() for log in logs]
                assert sorted(ended, key=str) == [1, None], said
                assert (
                    "belong to another lake" in said[ended.index(1)] or "no catalog that names" in said[ended.index(1)]
                )
            finally:
                for process in started:
                    process.kill()
                    process.wait()
    finally:
        bucket.stop()


@pytest.mark.parametrize("is_new", [True, False])
def test_a_full_disk(tmp_path: Path, is_new: bool) -> None:
    """A start says so, and goes well as soon as there is room."""
    with small_disk(tmp_path, "24m") as disk:
        check_full_disk(disk, tmp_path, is_new)


def check_full_disk(disk: Path, tmp_path: Path, is_new: bool) -> None:
    data = disk / "data"
    if not is_new:
        server = Server(data)
        fill(server)
        server.kill()
    ballast = disk / "ballast"
    with open(ballast, "wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
        while True:
            file.write(b"\0" * 4096)
    lines = start_in_vain(tmp_path / "full.log", data=data)
    assert "No space left on device" in "\n".join(lines)
    assert lines[-1] == "sparkwave: Free space on the disk of the data directory."
    assert not any("Traceback" in line or "backup" in line for line in lines), lines
    ballast.unlink()
    server = Server(data)
    try:
        if not is_new:
            assert count(server) == 1000
    finally:
        server.kill()
