"""Workers get the files that take longest first, and a long one in parts."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from longest_first import BESIDE, LONGEST, PARTS, LongestFirst, in_order

HERE = Path(__file__).parent


def test_the_files_are_there() -> None:
    assert [
        name for name in {*LONGEST, *PARTS, *BESIDE, *BESIDE.values()} if not (HERE / f"test_{name}.py").exists()
    ] == []


def test_files_that_take_longest_come_first() -> None:
    ids = [f"tests/test_{name}.py::{test}" for name in ("wire", LONGEST[2], "keeper", LONGEST[0]) for test in "ab"]
    items = in_order([SimpleNamespace(nodeid=nodeid) for nodeid in ids])  # type: ignore[list-item]
    assert [item.nodeid for item in items] == [*ids[6:], *ids[2:4], *ids[:2], *ids[4:6]]


def test_a_file_in_parts() -> None:
    scheduler = LongestFirst.__new__(LongestFirst)
    [name] = PARTS
    scopes = {scheduler._split_scope(f"tests/test_{name}.py::test_script[{number}]") for number in range(100)}
    assert len(scopes) == PARTS[name]
    assert len({scheduler._split_scope(f"tests/test_errors.py::test_error[{number}]") for number in range(100)}) == 1


def test_files_beside_each_other() -> None:
    """One worker has both, and first that of the longer one."""
    scheduler = LongestFirst.__new__(LongestFirst)
    for name, other in BESIDE.items():
        ids = [f"tests/test_{each}.py::test" for each in (name, other)]
        assert len({scheduler._split_scope(nodeid) for nodeid in ids}) == 1
        items = in_order([SimpleNamespace(nodeid=nodeid) for nodeid in ids])  # type: ignore[list-item]
        assert [item.nodeid for item in items] == ids[::-1]
