"""What keeps Spark's processes no longer than their server: at once, or with time for them to clear away."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from servers import wait_until

from sparkwave.executor.spark import keeper

# Writes `started`, then `cleared` when it is asked to end, unless it is deaf.
CHILD = "trap '{}' TERM; echo > {}/started; while :; do sleep 0.05; done"


def keep(scratch: Path, grace_s: float, on_end: str) -> subprocess.Popen[bytes]:
    (scratch / "scratch").mkdir()
    command = ["sh", "-c", CHILD.format(on_end, scratch)]
    kept = subprocess.Popen(
        [sys.executable, "-P", keeper.__file__, keeper.NORMAL, str(grace_s), str(scratch / "scratch"), *command],
        stdin=subprocess.PIPE,
    )
    assert wait_until((scratch / "started").exists)
    return kept


@pytest.mark.parametrize("how", ["the server ends it", "the server is gone"])
@pytest.mark.parametrize(
    ("grace_s", "on_end", "clears"), [(0, "echo > {}/cleared; exit", False), (20, "echo > {}/cleared; exit", True)]
)
def test_grace(tmp_path: Path, how: str, grace_s: float, on_end: str, clears: bool) -> None:
    """With grace the child is asked to end first, and the keeper ends with it."""
    kept = keep(tmp_path, grace_s, on_end.format(tmp_path))
    if how == "the server ends it":
        kept.terminate()
    else:
        assert kept.stdin is not None
        kept.stdin.close()
    kept.wait(15)
    assert (tmp_path / "cleared").exists() == clears
    assert not (tmp_path / "scratch").exists()


def test_grace_ends(tmp_path: Path) -> None:
    kept = keep(tmp_path, 0.5, "")
    since = time.monotonic()
    kept.terminate()
    kept.wait(15)
    assert time.monotonic() - since >= 0.5
    assert not (tmp_path / "scratch").exists()
