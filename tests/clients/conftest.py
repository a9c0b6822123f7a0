"""What the client programs of this folder share.

They are pytest files that connect to the server that PGHOST, PGPORT, PGUSER and PGDATABASE name, as any program of
these libraries would. tests/test_clients.py runs each in the environment that has its library.
"""

from __future__ import annotations

import itertools
import os

import pytest

_numbers = itertools.count(1)

# Longer than any test waits; it touches no table.
ENDLESS = "SELECT count(*) FROM generate_series(1, 1000000) a (i) CROSS JOIN generate_series(1, 1000000) b (j)"


@pytest.fixture
def name() -> str:
    """A name for a table of the test's own."""
    return f"t{os.getpid()}_{next(_numbers)}"
