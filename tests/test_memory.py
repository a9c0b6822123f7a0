"""What large statements have taken is collected soon after, and large plans drive out no others."""

from __future__ import annotations

import gc
import weakref

import pytest
from servers import wait_until

from sparkwave.server.operations import memory_release
from sparkwave.server.operations.memory_release import LARGE_BYTES, Memory


class Node:
    """As those of a tree, it refers to itself by its parts."""

    def __init__(self) -> None:
        self.parent = self


@pytest.mark.parametrize(("size", "is_collected"), [(LARGE_BYTES, True), (LARGE_BYTES - 1, False)])
def test_what_large_statements_leave_is_collected(
    monkeypatch: pytest.MonkeyPatch, size: int, is_collected: bool
) -> None:
    monkeypatch.setattr(memory_release, "DELAY_SECONDS", 0.01)
    gc.disable()
    try:
        left = weakref.ref(Node())
        assert left() is not None
        Memory().sent(size)
        assert wait_until(lambda: left() is None, 10 if is_collected else 0.2) is is_collected
    finally:
        gc.enable()
