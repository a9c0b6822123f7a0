"""The definitions of the system catalogs are opened from a file where there can be one, and work without it."""

from __future__ import annotations

from pathlib import Path

import pytest
from disks import small_disk
from test_law import opened, run


def used(directory: Path) -> str | None:
    """The file that a server of a new directory has the definitions from; None if it has them in memory."""
    with opened(directory) as (context, client):
        run(client, "CREATE TABLE t (a int)")
        assert run(client, "SELECT relname FROM pg_class WHERE relname = 't'") == [("t",)]
        assert run(client, "SELECT upper('ß'), pg_is_in_recovery()") == [("ß", False)]
        cursor = context.lake.cursor()
        [(path,)] = cursor.execute("SELECT path FROM duckdb_databases() WHERE database_name = 'memory'").fetchall()
        cursor.close()
    return None if path is None else str(path)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(path))
    return path


def test_the_first_start_leaves_a_file_for_the_others(tmp_path: Path, cache: Path) -> None:
    first = used(tmp_path / "a")
    [file] = (cache / "sparkwave").iterdir()
    made = file.stat().st_ino
    assert first == used(tmp_path / "b") == str(file)
    assert file.stat().st_ino == made


def test_a_damaged_file_is_made_anew(tmp_path: Path, cache: Path) -> None:
    used(tmp_path / "a")
    [file] = (cache / "sparkwave").iterdir()
    file.write_bytes(b"\0" * 5000)
    assert used(tmp_path / "b") == str(file)
    assert file.stat().st_size > 100_000


def test_without_a_directory_for_it_they_are_in_memory(tmp_path: Path, cache: Path) -> None:
    cache.write_text("")
    assert used(tmp_path / "a") is None


@pytest.mark.parametrize("size", ["40k", "400k", "800k"])
def test_without_room_for_it_they_are_in_memory(tmp_path: Path, cache: Path, size: str) -> None:
    with small_disk(tmp_path, size) as disk:
        cache.symlink_to(disk)
        assert used(tmp_path / "a") is None
        assert list((disk / "sparkwave").iterdir()) == []


def test_without_a_home_they_are_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobodys() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", nobodys)
    assert used(tmp_path / "a") is None
