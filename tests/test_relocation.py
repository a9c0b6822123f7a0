"""A data directory that was moved, or copied, serves what it has from where it is now."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from test_retention import check, opened, run

from sparkwave.catalog.errors import Error

GROUPED = "SELECT k % 7 AS g, sum(k) AS s FROM t GROUP BY k % 7"


def make(directory: Path) -> None:
    with opened(directory) as (_, client):
        run(client, "CREATE TABLE t (k int PRIMARY KEY, v varchar)")
        run(client, "INSERT INTO t SELECT i, 'value ' || i FROM range(10000) r(i)")
        run(client, f"CREATE MATERIALIZED VIEW grouped AS {GROUPED}")


def go_on(directory: Path, rows: int) -> None:
    with opened(directory) as (_, client):
        assert run(client, "SELECT count(*), count(DISTINCT v) FROM t") == [(rows, rows)]
        run(client, "INSERT INTO t SELECT i + 20000, 'late ' || i FROM range(1000) r(i)", "DELETE FROM t WHERE k < 10")
        check(client, "grouped", GROUPED)


def test_moved(tmp_path: Path) -> None:
    make(tmp_path / "here")
    shutil.move(tmp_path / "here", tmp_path / "there's another")
    go_on(tmp_path / "there's another", 10_000)
    shutil.move(tmp_path / "there's another", tmp_path / "here")
    go_on(tmp_path / "here", 10_990)


def test_copied(tmp_path: Path) -> None:
    """Neither reads or writes the other's files."""
    make(tmp_path / "first")
    shutil.copytree(tmp_path / "first", tmp_path / "second")
    go_on(tmp_path / "second", 10_000)
    shutil.rmtree(tmp_path / "second")
    go_on(tmp_path / "first", 10_000)


def test_a_catalog_alone(tmp_path: Path) -> None:
    make(tmp_path / "whole")
    (tmp_path / "part").mkdir()
    shutil.copy(tmp_path / "whole" / "catalog.ducklake", tmp_path / "part")
    with pytest.raises(Error, match=r"cannot be opened: .* lacks 1 of the files") as raised, opened(tmp_path / "part"):
        pass
    assert raised.value.sqlstate == "XX001"
    go_on(tmp_path / "whole", 10_000)
