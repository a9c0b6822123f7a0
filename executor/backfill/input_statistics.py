"""Measures what `planner.backfill.estimates` asks about a view's inputs, within a moment.

Tables of up to MOST_ROWS rows are counted. Of larger ones a sample is, of blocks of rows that are evenly spread, and
one of half the size. The growth of the distinct values from the one to the other tells how many the whole table has:
keys that come in order double, and a few kinds stay the same. What was counted is kept until the table changes, because
a view that is quoted, created and measured asks the same three times.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from weakref import WeakKeyDictionary

from sparkwave.catalog.lake.ducklake import Cursor, Lake, at_one_moment
from sparkwave.catalog.lake.file_statistics import Asked, FileStatistics, Range, file_statistics
from sparkwave.catalog.lake.memory_transactions import first_row
from sparkwave.catalog.lake.translation import DuckDBError
from sparkwave.executor.backfill.slicing import RowCount, row_count
from sparkwave.executor.epochs.advance import set_times
from sparkwave.executor.epochs.script import within
from sparkwave.executor.epochs.time_limit import interrupted_after
from sparkwave.executor.epochs.versions import rows_at
from sparkwave.executor.faults import message_of
from sparkwave.planner.backfill.estimates import Chain, Estimate, InputSize, bounds, estimate, questions
from sparkwave.planner.functions.emit import Sql
from sparkwave.planner.plan.nodes import Scan
from sparkwave.planner.plan.stream_plan import StreamPlan

logger = logging.getLogger(__name__)

# Seconds for all counts of an estimate, at least and at most; after that, the rest is guessed.
LEAST_S, BUDGET_S = 0.1, 0.5
# The most rows of a table that are all read, and those of a larger one.
MOST_ROWS = 500_000
_SAMPLE_ROWS = 250_000
# The part of the rows that pass a filter, and that are distinct, if there was no time to count.
_KEPT, _DISTINCT = 0.3, 0.1

# The most answers that are kept of a lake, and what is in a query whose answer is not kept.
_MOST_KEPT, _NOW = 1000, "now_new"

Answer = tuple[float, dict[tuple[str, ...], float]]
# The answers by table, its rows, query and keys, each with the snapshot that it is of; the newest last.
_Kept = dict[tuple[object, ...], tuple[int, Answer]]
_KEPT_ANSWERS: WeakKeyDictionary[Lake, _Kept] = WeakKeyDictionary()


def input_sizes(cursor: Cursor, plan: StreamPlan, snapshot: int, count: RowCount = row_count) -> dict[str, InputSize]:
    """Return what the fill of a view reads at a snapshot, by input."""
    scans = plan.scans
    found = file_statistics(cursor, snapshot, [_asked(plan, scan, scan.columns) for scan in scans])
    pairs = zip(scans, found, strict=True)
    return {scan.input: _input_size(scan, each, count(cursor, scan.relation, snapshot)) for scan, each in pairs}


def bytes_read(cursor: Cursor, plan: StreamPlan, snapshot: int) -> int:
    """Return the bytes in files of the columns that the fill of a view reads at a snapshot."""
    found = file_statistics(cursor, snapshot, [_asked(plan, scan, scan.output) for scan in plan.scans])
    return sum(each.kept_bytes for each in found)


def _asked(plan: StreamPlan, scan: Scan, columns: Sequence[str]) -> Asked:
    relation = scan.relation
    ranges = []
    for bound in bounds(plan, scan.input):
        column = relation.column(bound.column)
        if column is not None and not column.type.is_text_in_lake:
            ranges.append(Range(column.lake_name, bound.operator, bound.constant, column.type.in_lake()))
    found = (relation.column(name) for name in columns)
    return Asked(relation.lake_table, [column.lake_name for column in found if column is not None], ranges)


def _input_size(scan: Scan, of: FileStatistics, rows: int) -> InputSize:
    found = {name: column for name in scan.columns if (column := scan.relation.column(name)) is not None}
    return InputSize(
        rows,
        max(rows - (of.rows - of.kept_rows), 0),
        of.kept_bytes,
        of.files,
        of.kept_files,
        {
            name: of.column_bytes[column.lake_name] / max(of.rows, 1)
            for name, column in found.items()
            if column.lake_name in of.column_bytes
        },
    )


def measured_work(
    lake: Lake, plan: StreamPlan, snapshot: int, count: RowCount = row_count, until: float = math.inf
) -> tuple[Estimate, dict[str, InputSize]]:
    """Return the estimated work of filling a view from a snapshot, and what it reads by input.

    Counts end about at the monotonic time `until`.
    """
    with closing(lake.cursor()) as cursor:
        set_times(cursor, (time.time_ns() // 1000,) * 2)
        with at_one_moment(cursor):
            inputs = input_sizes(cursor, plan, snapshot, count)
        answers = _answers(lake, cursor, questions(plan, inputs), inputs, snapshot, until)

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
    lake: Lake,
    cursor: Cursor,
    asked: Mapping[Chain, Sequence[tuple[str, ...]]],
    inputs: Mapping[str, InputSize],
    snapshot: int,
    until: float,
) -> dict[Chain, Answer]:
    """Count what is asked and is not known yet, the smallest tables first, while there is time."""
    kept = _KEPT_ANSWERS.setdefault(lake, {})
    found: dict[Chain, Answer] = {}
    seconds = min(max(until - time.monotonic(), LEAST_S), BUDGET_S)
    end = time.monotonic() + seconds
    with interrupted_after(cursor, seconds):
        try:
            with at_one_moment(cursor):
                names = {chain: _name(chain, keys, inputs) for chain, keys in asked.items()}
                for chain, name in names.items():
                    known = kept.get(name)
                    table = chain.scan.relation.lake_table
                    if known is not None and not lake.has_changed(cursor, [table], *sorted((known[0], snapshot))):
                        found[chain] = known[1]
                unknown = asked.keys() - found.keys()
                for chain in sorted(unknown, key=lambda each: inputs[each.scan.input].rows):
                    if time.monotonic() > end:  # an interrupt between two queries is lost
                        break
                    rows = inputs[chain.scan.input].rows
                    found[chain] = _answer(cursor, chain, asked[chain], rows, snapshot)
                    _keep(kept, names[chain], (snapshot, found[chain]))
        except DuckDBError as error:
            logger.info("an estimate is a guess in part: %s", message_of(error))
    return found


def _name(chain: Chain, keys: Sequence[tuple[str, ...]], inputs: Mapping[str, InputSize]) -> tuple[object, ...]:
    """Return what an answer is kept by, together with the rows of its table."""
    return (chain.scan.relation.lake_table, inputs[chain.scan.input].rows, chain.query, *keys)


def _keep(kept: _Kept, name: tuple[object, ...], answer: tuple[int, Answer]) -> None:
    if _NOW in str(name):  # the rows that pass differ at each moment
        return
    kept.pop(name, None)
    kept[name] = answer
    for oldest in list(kept)[: max(len(kept) - _MOST_KEPT, 0)]:
        kept.pop(oldest, None)


def _answer(cursor: Cursor, chain: Chain, keys: Sequence[tuple[str, ...]], rows: int, snapshot: int) -> Answer:
    if rows <= MOST_ROWS:
        return _count(cursor, chain, keys, snapshot)
    part = _SAMPLE_ROWS / rows
    some = _count(cursor, chain, [(), *keys], snapshot, part)
    half = _count(cursor, chain, keys, snapshot, part / 2) if keys else some
    count = some[0] * rows / max(some[1][()], 1.0)
    # Samples vary in size, so that the rows which pass tell how many times as many one has as the other.
    sizes = some[0] / max(half[0], 1.0), count / max(some[0], 1.0)
    return count, {key: _extrapolated(half[1][key], some[1][key], *sizes) for key in keys}


def _extrapolated(half: float, whole: float, larger: float, times: float) -> float:
    """Return the distinct values of `times` as many rows as those that have `whole` of them.

    A part of these rows has `half`; all are `larger` times as many as the part.
    """
    growth = math.log(whole / half, larger) if half and whole > half and larger > 1 else 0.0
    return whole * times ** (0.0 if growth < 0.1 else min(growth, 1.0))


def _count(
    cursor: Cursor, chain: Chain, keys: Sequence[tuple[str, ...]], snapshot: int, part: float | None = None
) -> Answer:
    """Count the rows and the distinct values of a chain, or of a part of its input's rows; for no key these rows."""
    name = f"{chain.scan.input}_new"
    counts = [f"approx_count_distinct({_together(key)})" if key else f"(SELECT count(*) FROM {name})" for key in keys]
    query = Sql(f"SELECT {', '.join(['count(*)', *counts])} FROM ({chain.query})", [name])
    # Blocks of rows are left out before they are decompressed, unlike ranges of row ids.
    sample = f" TABLESAMPLE SYSTEM ({100 * part:.6f}%) REPEATABLE (1)" if part is not None else ""
    bound = {name: f"{rows_at(chain.scan, snapshot)}{sample}"}
    row = first_row(cursor.execute(within(query, bound)))
    assert row is not None
    return float(row[0]), {key: float(number) for key, number in zip(keys, row[1:], strict=True)}


def _together(key: tuple[str, ...]) -> str:
    return key[0] if len(key) == 1 else f"hash({', '.join(key)})"
