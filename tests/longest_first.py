"""Gives pytest-xdist's workers the test files that take longest first, so that all workers end at about the same time.

Without it files with many tests come first. Those are the short ones: one of the last ones, which start Sparks, keeps a
worker busy after the others have ended.
"""

from __future__ import annotations

from collections.abc import Iterable
from zlib import crc32

import pytest
from xdist.scheduler import LoadFileScheduling

# Files of 15 seconds of processor time and more, the longest first.
LONGEST = (
    "sql_scripts", "differential", "numerics", "job_control", "serverless", "as_postgres", "copies", "hostile",
    "shared_buffer", "behind", "views", "extreme_values", "inlined_writes", "operators", "audits", "change_feed",
    "time", "edits", "alter_table", "functions", "sql",
)  # fmt: skip
# In how many parts the tests of a file are given to workers. Each part has the file's fixtures of its own.
PARTS = {"sql_scripts": 3}
# Files that the worker of another file runs after it: both use `shared_server`, and each worker has one of its own.
BESIDE = {"query_mode": "views"}
_PLACES = {name: place for place, name in enumerate(LONGEST)}


class LongestFirst(LoadFileScheduling):
    """Gives files to workers in the order of their tests."""

    def _split_scope(self, nodeid: str) -> str:
        name = _name(nodeid)
        name = BESIDE.get(name, name)
        return f"{name} {crc32(nodeid.encode()) % PARTS[name]}" if name in PARTS else name


def in_order(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Return the tests, those of the files that take longest first."""
    return sorted(items, key=lambda item: _place(_name(item.nodeid)))


def _place(name: str) -> tuple[int, bool]:
    return _PLACES.get(BESIDE.get(name, name), len(LONGEST)), name in BESIDE


def _name(nodeid: str) -> str:
    return nodeid.partition("::")[0].rpartition("/test_")[2].removesuffix(".py")
