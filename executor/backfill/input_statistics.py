"""Measures what `planner.backfill.estimates` asks about a view's inputs, within a moment.

Tables of up to MOST_ROWS rows are counted. Of larger ones some ranges of row ids are, evenly spread, twice: with half
of the ranges and with all. The growth of the distinct values from the one to the other tells how many the whole table
has: keys that come in order double, and a few kinds stay the same.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Mapping, Sequence
from contextlib import closing

from sparkwave.catalog.lake.ducklake import Cursor, Lake, at_one_moment
from sparkwave.catalog.lake.file_statistics import FileStatistics, Range, file_statistics
from sparkwave.catalog.lake.memory_transactions import first_row
from sparkwave.catalog.lake.row_ids import ALL, RowIds
from sparkwave.catalog.lake.translation import DuckDBError
from sparkwave.executor.backfill.slicing import RowCount, row_count, row_ids
from sparkwave.executor.epochs.advance import set_times
from sparkwave.executor.epochs.script import within
from sparkwave.executor.epochs.time_limit import interrupted_after
from sparkwave.executor.epochs.versions import rows_at
from sparkwave.executor.faults import message_of
from sparkwave.planner.backfill.estimates import Chain, Estimate, InputSize, bounds, estimate, questions
from sparkwave.planner.plan.nodes import Scan
from sparkwave.planner.plan.stream_plan import StreamPlan

logger = logging.getLogger(__name__)

# Seconds for all counts of an estimate; after that, the rest is guessed.
BUDGET_S = 0.5
# The most rows of a table that are all read, and the ranges and their rows of a larger one.
MOST_ROWS = 1_000_000
_RANGES, _RANGE_ROWS = 8, 50_000
# The part of the rows that pass a filter, and that are distinct, if there was no time to count.
_KEPT, _DISTINCT = 0.3, 0.1

Answer = tuple[float, dict[tuple[str, ...], float]]


def input_sizes(cursor: Cursor, plan: StreamPlan, snapshot: int, count: RowCount = row_count) -> dict[str, InputSize]:
    """Return what the fill of a view reads at a snapshot, by input."""
    return {scan.input: _input_size(cursor, plan, scan, snapshot, count) for scan in plan.scans}


def bytes_read(cursor: Cursor, plan: StreamPlan, snapshot: int) -> int:
    """Return the bytes in files of the columns that the fill of a view reads at a snapshot."""
    return sum(_statistics(cursor, plan, scan, snapshot, scan.output)[0].kept_bytes for scan in plan.scans)


def _statistics(
    cursor: Cursor, plan: StreamPlan, scan: Scan, snapshot: int, columns: Sequence[str]
) -> tuple[FileStatistics, dict[str, str]]:
    """Return what is known of an input's files, and the names of some columns by those in the lake."""
    relation = scan.relation
    found = {name: column for name in columns if (column := relation.column(name)) is not None}
    ranges = []
    for bound in bounds(plan, scan.input):
        column = relation.column(bound.column)
        if column is not None and not column.type.is_text_in_lake:
            ranges.append(Range(column.lake_name, bound.operator, bound.constant, column.type.in_lake()))
    names = {column.lake_name: name for name, column in found.items()}
    return file_statistics(cursor, relation.lake_table, snapshot, list(names), ranges), names


def _input_size(cursor: Cursor, plan: StreamPlan, scan: Scan, snapshot: int, count: RowCount) -> InputSize:
    statistics, names = _statistics(cursor, plan, scan, snapshot, scan.columns)
    rows = count(cursor, scan.relation, snapshot)
    return InputSize(
        rows,
        max(rows - (statistics.rows - statistics.kept_rows), 0),
        statistics.kept_bytes,
        statistics.files,
        statistics.kept_files,
        {
            names[name]: size / max(statistics.rows, 1)
            for name, size in statistics.column_bytes.items()
            if name in names
        },
    )


def measured_work(
    lake: Lake, plan: StreamPlan, snapshot: int, count: RowCount = row_count
) -> tuple[Estimate, dict[str, InputSize]]:
    """Return the estimated work of filling a view from a snapshot, and what it reads by input."""
    with closing(lake.cursor()) as cursor:
        set_times(cursor, (time.time_ns() // 1000,) * 2)
        with at_one_moment(cursor):
            inputs = input_sizes(cursor, plan, snapshot, count)
        answers = _answers(cursor, questions(plan, inputs), inputs, snapshot)

    def rows(chain: Chain) -> float:
        whole = float(inputs[chain.scan.input].rows)
        if not chain.is_filtered:
            return whole
        return answers[chain][0] if chain in answers else whole * _KEPT

    def distinct(chain: Chain, keys: tuple[str, ...]) -> float:
        if chain in answers and keys in answers[chain][1]:
            return answers[chain][1][keys]
        return max(rows(chain) * _DISTINCT, 1.0)

    return estimate(plan, inputs, rows, distinct), inputs


def _answers(
    cursor: Cursor, asked: Mapping[Chain, Sequence[tuple[str, ...]]], inputs: Mapping[str, InputSize], snapshot: int
) -> dict[Chain, Answer]:
    """Count what is asked, the smallest tables first, while there is time."""
    found: dict[Chain, Answer] = {}
    with interrupted_after(cursor, BUDGET_S):
        try:
            with at_one_moment(cursor):
                for chain in sorted(asked, key=lambda each: inputs[each.scan.input].rows):
                    found[chain] = _answer(cursor, chain, asked[chain], inputs[chain.scan.input].rows, snapshot)
        except DuckDBError as error:
            logger.info("an estimate is a guess in part: %s", message_of(error))
    return found


def _answer(cursor: Cursor, chain: Chain, keys: Sequence[tuple[str, ...]], rows: int, snapshot: int) -> Answer:
    if rows <= MOST_ROWS:
        count, distinct = _count(cursor, chain, keys, snapshot, ALL)
        return count, distinct
    first, last = row_ids(cursor, chain.scan.relation, snapshot)
    starts = [first + (last - first) * number // _RANGES for number in range(_RANGES)]
    ranges = tuple((start, start + _RANGE_ROWS) for start in starts)
    part = _RANGES * _RANGE_ROWS / max(last - first + 1, 1)
    half = _count(cursor, chain, keys, snapshot, RowIds(ranges[::2]))
    whole = _count(cursor, chain, keys, snapshot, RowIds(ranges))
    return whole[0] / part, {key: _extrapolated(half[1][key], whole[1][key], 1 / part) for key in keys}


def _extrapolated(half: float, whole: float, times: float) -> float:
    """Return the distinct values of `times` as many rows, when half of the rows have `half`."""
    growth = math.log2(whole / half) if half and whole > half else 0.0
    return whole * times ** (0.0 if growth < 0.1 else min(growth, 1.0))


def _count(cursor: Cursor, chain: Chain, keys: Sequence[tuple[str, ...]], snapshot: int, rows: RowIds) -> Answer:
    counts = [f"approx_count_distinct({_together(key)})" for key in keys]
    query = f"SELECT {', '.join(['count(*)', *counts])} FROM ({chain.query})"
    bound = {f"{chain.scan.input}_new": rows_at(chain.scan, snapshot, rows)}
    row = first_row(cursor.execute(within(query, bound)))
    assert row is not None
    return float(row[0]), {key: float(number) for key, number in zip(keys, row[1:], strict=True)}


def _together(key: tuple[str, ...]) -> str:
    return key[0] if len(key) == 1 else f"hash({', '.join(key)})"
