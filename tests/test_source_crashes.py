"""kill -9 while sources deliver: every row is there exactly once, and views are what their queries give."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from servers import Server, rows, wait_until

NUMBERS, LINES, FILES = 40_000, 400, 60
COMPLETE = [(NUMBERS, NUMBERS, 0, NUMBERS - 1)]


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[list[Server]]:
    started: list[Server] = []
    yield started
    for server in started:
        server.kill()


def start(servers: list[Server], tmp_path: Path) -> Server:
    servers.append(Server(tmp_path / "data"))
    return servers[-1]


def create(own: psycopg.Connection[Any], root: Path, rate: int) -> None:
    own.execute("ALTER SYSTEM SET backfill_engine = auto")
    own.execute(
        "CREATE SOURCE numbers (n int) WITH (connector = 'datagen', fields.n.kind = 'sequence', "
        f"fields.n.end = {NUMBERS - 1}, datagen.rows.per.second = {rate})"
    )
    own.execute(
        "CREATE TABLE lines (file int, line int, PRIMARY KEY (file, line)) WITH (connector = 'posix_fs', "
        f"posix_fs.root = '{root}', source_rate_limit = 3000) FORMAT PLAIN ENCODE CSV"
    )
    own.execute(
        "CREATE SOURCE seen (file int, line int) WITH (connector = 'posix_fs', "
        f"posix_fs.root = '{root}', source_rate_limit = 3000) FORMAT PLAIN ENCODE CSV"
    )
    own.execute(
        "CREATE MATERIALIZED VIEW per_file AS SELECT file, count(*) AS n, sum(line) AS s FROM seen GROUP BY file"
    )
    own.execute("CREATE MATERIALIZED VIEW evens AS SELECT n FROM numbers WHERE n % 2 = 0")


def write(root: Path, count: int) -> None:
    """Files that appear whole."""
    for number in range(count):
        hidden = root / f".{number}"
        hidden.write_text("file,line\n" + "".join(f"{number},{line}\n" for line in range(LINES)))
        hidden.rename(root / f"{number}.csv")


def check(own: psycopg.Connection[Any], files: int) -> None:
    """What is there now is there once, and the positions say how much it is."""
    own.execute("BEGIN READ ONLY")
    [(count, distinct, highest)] = rows(own, "SELECT count(*), count(DISTINCT n), coalesce(max(n), -1) FROM numbers")
    assert count == distinct == highest + 1
    assert rows(own, "SELECT file, line, count(*) FROM seen GROUP BY 1, 2 HAVING count(*) > 1") == []
    [(seen,)] = rows(own, "SELECT count(*) FROM seen")
    assert seen <= files * LINES
    own.execute("COMMIT")


def finish(own: psycopg.Connection[Any], files: int) -> None:
    numbers = "SELECT count(*), count(DISTINCT n), min(n), max(n) FROM numbers"
    assert wait_until(lambda: rows(own, numbers) == COMPLETE, 60), rows(own, numbers)
    for table in ("lines", "seen"):
        assert wait_until(lambda t=table: rows(own, f"SELECT count(*) FROM {t}") == [(files * LINES,)], 60)
    own.execute("FLUSH")
    expected = [(number, LINES, LINES * (LINES - 1) // 2) for number in range(files)]
    assert rows(own, "SELECT * FROM per_file ORDER BY file") == expected
    assert rows(own, "SELECT count(*), count(DISTINCT n) FROM evens") == [(NUMBERS // 2, NUMBERS // 2)]
    consumed = "SELECT source_name, rows_consumed FROM rw_catalog.rw_source_status ORDER BY 1"
    assert rows(own, consumed) == [
        ("public.lines", files * LINES), ("public.numbers", NUMBERS), ("public.seen", files * LINES)
    ]  # fmt: skip


@pytest.mark.parametrize("kills", [1, pytest.param(12, marks=pytest.mark.long)])
def test_each_row_exactly_once(servers: list[Server], tmp_path: Path, kills: int) -> None:
    chooser = random.Random(kills)
    root = tmp_path / "files"
    root.mkdir()
    server = start(servers, tmp_path)
    with server.connect() as own:
        create(own, root, rate=40_000 // (2 * kills + 2))
    write(root, FILES)
    for _ in range(kills):
        time.sleep(chooser.uniform(0.3, 2.0))
        server.kill()
        server = start(servers, tmp_path)
        with server.connect() as own:
            check(own, FILES)
    with server.connect() as own:
        own.execute("ALTER SOURCE seen SET SOURCE_RATE_LIMIT = DEFAULT")
        own.execute("ALTER TABLE lines SET SOURCE_RATE_LIMIT = DEFAULT")
        finish(own, FILES)
