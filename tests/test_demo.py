"""The demo's pure parts: reading progress, rates, and what is printed."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))

from sparkwave.server.demo.progress_lines import (
    CREATED,
    PLANNED,
    STARTING,
    Progress,
    Track,
    bar,
    bar_line,
    cell,
    parse_progress,
)
from sparkwave.server.demo.screen import Screen, format_table


@pytest.fixture(scope="module")
def flights() -> ModuleType:
    """Imported late: all of its rows are read then."""
    from sparkwave.server.demo import flights

    return flights


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.0%", STARTING),
        ("Snapshot [0.00% (0/308641)]", Progress("backfill", 0, 308641)),
        ("Snapshot [12.34% (1234/10000)]", Progress("backfill", 1234, 10000)),
        ("Snapshot [99.99%]", Progress("backfill")),
        ("LogStore [actor: 0/1, avg lag 0ns]", Progress("catching up")),
    ],
)
def test_progress_is_read(text: str, expected: Progress) -> None:
    assert parse_progress(text) == expected


@pytest.mark.parametrize(
    ("progress", "fraction"),
    [(PLANNED, 0), (STARTING, 0), (Progress("backfill", 1, 4), 0.25), (Progress("catching up"), 1), (CREATED, 1)],
)
def test_fraction_is_between_zero_and_one(progress: Progress, fraction: float) -> None:
    assert progress.fraction == fraction


def track_of(*samples: tuple[float, int]) -> Track:
    """A view of 1,000 rows that had read so many at those times."""
    track = Track("v")
    for now_s, read in samples:
        track.update(now_s, Progress("backfill", read, 1000))
    return track


def test_rate_and_time_left() -> None:
    track = track_of((0, 0), (1, 100), (2, 200))
    assert track.rate() == 100
    assert track.left_s() == 8


def test_rate_forgets_what_is_long_ago() -> None:
    assert track_of((0, 0), (100, 100), (106, 700)).rate() == 100


def test_no_rate_without_two_samples() -> None:
    assert track_of().rate() == track_of((5, 10)).rate() == 0
    assert track_of((5, 10)).left_s() is None


def test_bar_is_full_only_at_the_end() -> None:
    assert bar(0, 4) == "░░░░"
    assert bar(0.99, 4) == "███░"
    assert bar(1, 4) == "████"


def test_lines_of_a_view_from_start_to_end() -> None:
    track = Track("late_flights")
    assert cell(track) == "·"
    track.update(1, STARTING)
    assert cell(track) == "starting Spark"
    track.update(2, Progress("backfill", 0, 1000))
    assert cell(track) == "  0 %"
    track.update(3, Progress("backfill", 500, 1000), "risingwave-backfill-1")
    assert cell(track) == " 50 %  500/s"
    assert bar_line(track, 12) == (
        "  late_flights  ████████████░░░░░░░░░░░░   50.0 %        500 / 1,000        500 rows/s    1 s left"
        "  risingwave-backfill-1"
    )
    track.update(5, CREATED)
    assert cell(track) == "created"
    assert "100.0 %" in bar_line(track, 12)
    assert "created in 4.0 s" in bar_line(track, 12)


def test_plain_lines_are_rare(capsys: pytest.CaptureFixture[str]) -> None:
    """One when something other than the rate has changed, and at most one a second but for the last."""
    screen, track = Screen(), Track("v")
    for now_s, progress in (
        (0.0, STARTING), (1.5, STARTING), (2.0, Progress("backfill", 0, 10)), (2.2, Progress("backfill", 5, 10)),
        (3.1, Progress("backfill", 5, 10)), (3.2, CREATED), (5.0, CREATED),
    ):  # fmt: skip
        track.update(now_s, progress)
        screen.progress([track], now_s)
    times = [line.split(" s  ")[0].strip() for line in capsys.readouterr().out.splitlines()]
    assert times == ["time  v", "0.0", "2.0", "3.1", "3.2"]


def test_no_escape_codes_elsewhere_than_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen()
    screen.step("1. Load")
    screen.statement("SELECT 1")
    assert capsys.readouterr().out == "\n1. Load\n    SELECT 1;\n"


def test_table_aligns_numbers_and_times_right() -> None:
    assert format_table(("view", "rows", "time"), [("a", 1200, "1.0 s"), ("bcd", 3, "10.0 s")]) == [
        "view   rows    time",
        "a     1,200   1.0 s",
        "bcd       3  10.0 s",
    ]


def test_csv_has_integers_and_nulls(flights: ModuleType) -> None:
    frame = pd.DataFrame({"delay": [2.0, None], "temp": [1.5, None], "name": ["a, b", None], "n": [1, 2]})
    assert flights.to_csv(frame) == b'2,1.5,"a, b",1\n,,,2\n'


def test_every_table_has_the_columns_of_its_frame(flights: ModuleType) -> None:
    for table, create in flights.TABLES.items():
        listed = create.split("(", 1)[1].rstrip(")")
        assert [part.split()[0] for part in listed.split(",")] == list(flights.rows(table).columns)
