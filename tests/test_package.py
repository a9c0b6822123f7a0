"""The wheel: one package, `sparkwave`, that runs from where it is installed."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import psycopg
import pytest
from servers import free_port, wait_until

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory into which the wheel is installed; what it depends on is this environment's."""
    made = tmp_path_factory.mktemp("package")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run(
        ["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(made / "source")], check=True, timeout=60
    )
    subprocess.run([*pip, "wheel", "--no-deps", "-w", str(made), str(made / "source")], check=True, timeout=240)
    [wheel] = made.glob("sparkwave-*.whl")
    names = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {name for name in names if not name.endswith(".dist-info")} == {"sparkwave"}
    subprocess.run([*pip, "install", "--no-deps", "--target", str(made / "site"), str(wheel)], check=True, timeout=120)
    return made / "site"


@pytest.mark.spark
def test_a_server_of_the_wheel_fills_a_view_on_spark(installed: Path, tmp_path: Path) -> None:
    port = free_port()
    options = ["--listen", f"127.0.0.1:{port}", "--data", "data", "--metrics", "", "--dashboard", ""]
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    with open(tmp_path / "log", "wb") as log:
        server = subprocess.Popen(
            [sys.executable, "-P", "-m", "sparkwave", "serve", *options],
            cwd=tmp_path,
            env=environment,
            stdout=log,
            stderr=log,
        )
    try:
        assert wait_until(lambda: b"sparkwave ready" in (tmp_path / "log").read_bytes(), 60)
        with psycopg.connect(f"host=127.0.0.1 port={port} user=root dbname=dev", autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET backfill_engine = spark")
            connection.execute("CREATE TABLE t (k int, v numeric(10,2))")
            connection.execute("INSERT INTO t SELECT i % 3, i FROM generate_series(1, 100) AS s (i)")
            connection.execute("CREATE MATERIALIZED VIEW m AS SELECT k, sum(v) AS s FROM t GROUP BY k")
            found = connection.execute("SELECT k, s::text FROM m ORDER BY k").fetchall()
        assert found == [(0, "1683.00"), (1, "1717.00"), (2, "1650.00")]
    finally:
        server.terminate()
        server.wait(30)
