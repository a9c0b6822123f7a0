"""The wheel: one package, `sparkwave`, that runs from where it is installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import PackageNotFoundError, distribution
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


def packages() -> set[str]:
    """The names of the packages that Sparkwave needs without its extras, and of those that these need."""
    found: set[str] = set()
    left = ["sparkwave"]
    while left:
        name = left.pop()
        if name in found:
            continue
        try:
            requirements = distribution(name).requires or ()
        except PackageNotFoundError:  # for another system or version of Python
            continue
        found.add(name)
        left += [re.match(r"[\w.-]+", line)[0] for line in requirements if "extra ==" not in line]  # type: ignore[index]
    return found - {"sparkwave"}


@pytest.fixture(scope="module")
def slim(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the wheel and of all that it needs, without what `scripts/slim` deletes."""
    made = tmp_path_factory.mktemp("slim") / "site"
    shutil.copytree(installed, made)
    for name in packages():
        for file in distribution(name).files or ():
            source = Path(str(file.locate()))
            if ".." not in file.parts and source.is_file():
                (made / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, made / file)
    subprocess.run(
        ["sh", str(ROOT / "scripts" / "slim"), sys.executable],
        env={**os.environ, "PYTHONPATH": str(made)},
        check=True,
        timeout=60,
    )
    return made


@pytest.mark.long
@pytest.mark.spark
def test_a_slim_environment_has_less_than_a_gigabyte_and_fills_a_view(slim: Path, tmp_path: Path) -> None:
    assert not list((slim / "pyspark" / "jars").glob("rocksdbjni*"))
    assert sum(file.stat().st_size for file in slim.rglob("*") if not file.is_symlink()) < 1_000_000_000
    fill_a_view_on_spark(slim, tmp_path)


@pytest.mark.spark
def test_a_server_of_the_wheel_fills_a_view_on_spark(installed: Path, tmp_path: Path) -> None:
    fill_a_view_on_spark(installed, tmp_path)


def fill_a_view_on_spark(installed: Path, tmp_path: Path) -> None:
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
