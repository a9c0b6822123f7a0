"""The `sparkwave` command: what it says of itself, and of what it cannot do."""

from __future__ import annotations

import subprocess
import sys

import pytest
from servers import sparkwave


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
