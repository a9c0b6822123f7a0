"""pgbench against any server."""

from __future__ import annotations

import re
import subprocess
import tempfile

from bench.postgres import Target


def rate(target: Target, script: str, how: str, clients: int, seconds: float) -> float:
    """Runs of a script a second; `how` is pgbench's query mode. At least a second."""
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as file:
        file.write(script)
        file.flush()
        command = ["pgbench", "-n", "-M", how, "-c", str(clients), "-j", "2", "-T", str(max(round(seconds), 1))]
        address = ["-h", "127.0.0.1", "-p", str(target.port), "-U", target.user, target.database]
        done = subprocess.run([*command, "-f", file.name, *address], check=True, capture_output=True, text=True)
    found = re.search(r"tps = ([\d.]+) \(without", done.stdout)
    assert found is not None, done.stdout
    return float(found[1])
