"""What the benchmark keeps and writes of its results; and that answers that differ are seen."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench import report, results
from bench.answers import _is_same_row
from bench.measuring import digits, in_turn, percentile
from bench.results import Aim, Bars, Lines, Section, Table

SECTION = Section(
    "reads",
    "2024-01-01 00:00 UTC",
    "abc1234",
    "2 cores",
    12.5,
    [
        Table(
            "Rates",
            "Best of three.",
            ["what", "Sparkwave", "PostgreSQL"],
            [["SELECT 1", 20123.4, None], ["look-up", 0.01234, 7]],
            Bars("rates", "a second", ["SELECT 1", "look-up"], {"Sparkwave": [20123.4, 0.01], "PostgreSQL": [None, 7]}),
            [Aim("look-up", ">= 1", "0.0123", False), Aim("SELECT 1", ">= 2", "20,123", True)],
            ["SELECT 1: 0.5 of PostgreSQL's rate."],
        ),
        Table("Lines", "", ["rows"], [], Lines("lines", "rows", "ms", {"all": [[1, 2], [10, 3]]}), [], []),
    ],
)


def test_results_are_read_as_they_were_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    results.save(SECTION)
    assert results.load("reads") == SECTION
    assert results.load("ingest") is None


def test_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "PAGE", tmp_path / "RESULTS.md")
    monkeypatch.setattr(report, "PLOTS", tmp_path / "plots")
    report.write([SECTION])
    page = (tmp_path / "RESULTS.md").read_text()
    assert "## Aims: 1 of 2 met" in page
    assert "| look-up | 0.0123 | 7 |" in page
    assert "| SELECT 1 | 20,123 | - |" in page
    assert "- look-up: 0.0123, where the aim is >= 1." in page
    assert "- SELECT 1: 0.5 of PostgreSQL's rate." in page
    for name in ("rates", "lines"):
        assert f"plots/{name}.svg" in page
        ElementTree.parse(tmp_path / "plots" / f"{name}.svg")


def test_terminal() -> None:
    assert "MISSED look-up: 0.0123 (>= 1)" in report.text(SECTION.tables[0])


def test_answers_that_differ() -> None:
    assert _is_same_row(("a", 1.0, None), ("a", 1.0000001, None))
    assert not _is_same_row(("a", 1.0), ("a", 1.0001))
    assert not _is_same_row(("a", 1.0), ("b", 1.0))
    assert not _is_same_row(("a", 1.0), ("a", None))


def test_measuring() -> None:
    assert [digits(value) for value in (0, 0.01234, 1.5, 99.96, 12345.6)] == ["0", "0.0123", "1.50", "100.0", "12,346"]
    assert (percentile([3, 1, 2], 50), percentile([3, 1, 2], 99)) == (2, 3)
    calls: list[str] = []
    found = in_turn(2, {"a": lambda: calls.append("a"), "b": lambda: calls.append("b")})
    assert calls == ["a", "b", "a", "b"]
    assert [len(times) for times in found.values()] == [2, 2]
