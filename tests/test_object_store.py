"""The lake's files in a bucket of S3 (moto's server, which speaks the protocol)."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator
from dataclasses import astuple
from pathlib import Path

import pytest
from buckets import SECRET, Bucket

from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake import compaction
from sparkwave.catalog.lake.change_feed import keep_changes, table_changes
from sparkwave.catalog.lake.ducklake import Lake
from sparkwave.catalog.lake.integrity import check_files, known_files
from sparkwave.catalog.lake.lake_tables import register_files
from sparkwave.catalog.lake.places import BucketPath, check_url, keep_list, listed, remove_tree
from sparkwave.catalog.lake.s3 import S3
from sparkwave.catalog.lake.storage import Storage
from sparkwave.catalog.lake.stored_changes import stored_changes
from sparkwave.catalog.lake.translation import DuckDBError, translate
from sparkwave.catalog.names import LakeTable
from sparkwave.executor.maintenance.compactor import compact_once
from sparkwave.executor.maintenance.orphan_removal import Orphans, Pace
from sparkwave.server.operations.config import load_config

TABLE = LakeTable("s", "t of ours")


@pytest.fixture(scope="module")
def bucket() -> Iterator[Bucket]:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    started = Bucket()
    yield started
    started.stop()


def place(bucket: Bucket, prefix: str) -> BucketPath:
    return BucketPath(S3("us-east-1", bucket.url, "a", SECRET), f"data/{prefix}")


def findings(lake: Lake) -> list[str]:
    cursor = lake.cursor()
    return list(check_files(lake, cursor, known_files(lake, cursor)))


def test_a_lake(bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows, changes, feeds, compaction, and what is left over: all of it in the bucket, none of it in the directory."""
    monkeypatch.setattr(compaction, "INLINED_ROWS", 5)
    monkeypatch.setattr(compaction, "TIERS", ((1 << 20, 3), (16 << 20, 2)))
    storage = Storage(tmp_path, None, place(bucket, "lake"))
    lake = Lake(storage)
    cursor = lake.cursor()
    cursor.execute(f"CREATE SCHEMA lake.s; CREATE TABLE {TABLE.sql} (k INTEGER, v VARCHAR)")
    first = lake.snapshot(cursor)
    for start in range(0, 20_000, 5_000):
        with lake.table_transaction(cursor, TABLE):
            cursor.execute(f"INSERT INTO {TABLE.sql} SELECT i, 'v' || i FROM range({start}, {start + 5_000}) AS r (i)")
    with lake.table_transaction(cursor, TABLE):
        cursor.execute(f"DELETE FROM {TABLE.sql} WHERE k % 3 = 0")
    before = lake.snapshot(cursor)
    with lake.table_transaction(cursor, TABLE):
        cursor.execute(f"UPDATE {TABLE.sql} SET v = 'new' WHERE k % 7 = 1")
    newest = lake.snapshot(cursor)
    keep_changes(cursor, "kept", TABLE, before, newest, True, "rowid, k, v")
    ducklakes = table_changes(TABLE, before, newest, True, "rowid, k, v")
    assert cursor.execute(f"(FROM kept) EXCEPT ALL ({ducklakes})").fetchall() == []
    assert None not in astuple(stored_changes(cursor, TABLE, before, newest, True))
    added = lake.data_path / "job_7" / "f1" / "x.parquet"
    cursor.execute(f"COPY (SELECT 50000 AS k, 'added' AS v) TO '{added}' (FORMAT parquet)")
    with lake.transaction(cursor):
        register_files(cursor, TABLE, [str(added)])
    expected = {(k, "new" if k % 7 == 1 else f"v{k}") for k in range(20_000) if k % 3} | {(50_000, "added")}

    def check() -> None:
        assert set(cursor.execute(f"FROM {TABLE.sql}").fetchall()) == expected
        feed = table_changes(TABLE, first, lake.snapshot(cursor))
        net = cursor.execute(f"SELECT k, v FROM ({feed}) GROUP BY ALL HAVING sum(_weight) > 0").fetchall()
        assert set(net) == expected

    check()
    count = len(bucket.names("lake/data"))
    while compact_once(lake):
        check()
    assert len(bucket.names("lake/data")) > count  # the old ones are still those of older snapshots
    assert findings(lake) == []
    assert not list(tmp_path.rglob("*.parquet"))

    left = f"lake/data/s/t/ducklake-{uuid.uuid4()}.parquet"
    bucket.put(left, b"x")
    bucket.put("lake/data/job_9/step_1/left.parquet", b"x")
    assert [finding.partition(" ")[2].split("/lake/data/")[1].split()[0] for finding in findings(lake)] == [
        "job_9/step_1/left.parquet",
        left.removeprefix("lake/data/"),
    ]
    lake.close()
    lake = Lake(storage)
    Orphans(lake, Pace(grace_s=-5)).run_once()
    assert findings(lake) == []
    cursor = lake.cursor()
    check()
    victim = known_files(lake, cursor)[-1]
    bucket.files.delete_file(victim.path.removeprefix("s3://"))
    assert findings(lake) == [f"{victim.table}: file {victim.path} is missing"]
    lake.close()
    assert SECRET.encode() not in b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())


@pytest.mark.long
def test_what_a_failure_leaves(bucket: Bucket, tmp_path: Path) -> None:
    """The files of a transaction that failed are deleted; without the bucket statements fail, and go on after."""
    lake = Lake(Storage(tmp_path, None, place(bucket, "failing")))
    cursor = lake.cursor()
    cursor.execute(f"CREATE SCHEMA lake.s; CREATE TABLE {TABLE.sql} (k INTEGER)")
    fill = f"INSERT INTO {TABLE.sql} SELECT * FROM range(10000)"
    with pytest.raises(ZeroDivisionError), lake.table_transaction(cursor, TABLE):
        cursor.execute(fill)
        assert len(bucket.names("failing")) == 2
        raise ZeroDivisionError
    assert bucket.names("failing") == ["data/failing/data/IDENTITY"]
    bucket.stop()
    try:
        with pytest.raises(DuckDBError) as caught, lake.table_transaction(cursor, TABLE):
            cursor.execute(fill)
        assert translate(caught.value).sqlstate == "58030"
    finally:
        bucket.start()
    with lake.table_transaction(cursor, TABLE):
        cursor.execute(fill)
    assert cursor.execute(f"SELECT count(*) FROM {TABLE.sql}").fetchone() == (10_000,)
    lake.close()


def test_places(bucket: Bucket) -> None:
    top = place(bucket, "places")
    assert list(top.iterdir()) == [] and not top.exists()
    for name in ("f1_s1/a.parquet", "f1_s1/left.parquet", "f1_s2/b.parquet", "f10_s1/c.parquet"):
        bucket.put(f"places/{name}", b"x")
    for directory, file in (("f1_s1", "a"), ("f1_s2", "b"), ("f10_s1", "c")):
        keep_list(top / directory, [f"{top}/{directory}/{file}.parquet"])
    assert listed(top, "f1_s*") == [f"{top}/f1_s1/a.parquet", f"{top}/f1_s2/b.parquet"]
    assert [path.name for path in top.iterdir()] == ["f10_s1", "f1_s1", "f1_s2"]
    assert [str(path) for path in (top / "f1_s2").glob("*.parquet")] == [f"{top}/f1_s2/b.parquet"]
    remove_tree(top / "f1_s1")
    remove_tree(top / "f1_s1")  # which is no error
    assert listed(top, "f1_s*") == [f"{top}/f1_s2/b.parquet"]
    with pytest.raises(Error, match='bucket "nowhere" does not exist'):
        BucketPath(top.s3, "nowhere/lake").check()
    assert SECRET not in repr(top) and SECRET not in str(top)


def test_configuration(tmp_path: Path) -> None:
    amazon = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_ENDPOINT_URL": "http://127.0.0.1:1/"}
    arguments = {"shared": "s3://data/lake/", "catalog": "dbname=dev"}
    config, _ = load_config(arguments, amazon, None)
    root = config.storage.root
    assert isinstance(root, BucketPath)
    assert (str(root), root.s3.endpoint, root.s3.region) == ("s3://data/lake", "http://127.0.0.1:1", "us-east-1")
    assert SECRET not in repr(config)
    own, _ = load_config(arguments, amazon | {"SPARKWAVE_S3_ACCESS_KEY": "b"}, None)
    assert isinstance(own.storage.root, BucketPath) and own.storage.root.s3.access_key == "b"
    with pytest.raises(Error, match="there are no keys for s3://data/lake"):
        _ = load_config(arguments, {}, None)[0].storage
    for url in ("s3://", "s3:data", "s3://data//x", "s3://data/a*", "s3://UPPER"):
        with pytest.raises(Error, match="invalid value"):
            load_config({**arguments, "shared": url}, amazon, None)
    assert check_url("s3://data") == "s3://data"
    local, _ = load_config({**arguments, "shared": str(tmp_path)}, amazon, None)
    assert local.storage.root == tmp_path
