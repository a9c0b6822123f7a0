"""The README's example gives what it says, through psql."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from servers import Server

README = (Path(__file__).parent.parent / "README.md").read_text()


@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed")
def test_the_example(module_server: Server) -> None:
    [example] = re.findall(r"^```\n\$ psql .*?\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    host, port = module_server.address.split(":")
    steps = re.findall(r"^dev=> (.*?;)(?:   --[^\n]*)?\n(.*?)(?=^dev=>|\Z)", example, re.MULTILINE | re.DOTALL)
    assert len(steps) == 7
    for statement, expected in steps:
        done = subprocess.run(
            ["psql", "-X", "-h", host, "-p", port, "-U", "root", "-d", "dev", "-c", statement],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        assert [line.rstrip() for line in done.stdout.rstrip().splitlines()] == expected.rstrip().splitlines()
