"""Semijoin reductions of an epoch: rows of copies that match changed rows, looked up once for all views.

A scan of a large copy by many keys costs much more than its result: some thousand rows. Views over the same tables need
mostly the same rows, and most views need the old and the new ones. So the first view of an epoch stores the rows for
all views: by any cursor, while the coordinator goes on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from weakref import ref

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import Relation
from sparkwave.catalog.names import quote
from sparkwave.executor.epochs.advance import View
from sparkwave.executor.epochs.feeds import Feeds
from sparkwave.executor.epochs.lookups import Lookups
from sparkwave.executor.epochs.side_by_side import Task
from sparkwave.executor.epochs.versions import Version, rows_at, stored_columns
from sparkwave.executor.memory.delta_tables import fill_table, has_tables, is_kept, kept_table
from sparkwave.executor.memory.listed_keys import listed_keys
from sparkwave.executor.memory.moment import NEW, OLD
from sparkwave.planner.delta.looked_up import Columns, Reduction

# Lets a cursor compute, any cursor if the second argument is True, once what it needs is done.
Submit = Callable[[Callable[[Cursor], int], bool, Collection[Future[int]]], Task[int]]
# Fewer uses than these in an epoch, and the steps of views look the rows up themselves.
LEAST_USES = 2
# Reductions with more rows, as estimated, cost more than they save.
_MOST_ROWS = 50_000


@dataclass(frozen=True)
class _Key:
    """A reduction by the relations' ids and the lake's names of columns; `of` a relation's changes or another one."""

    relation: int
    columns: Columns
    of: int | _Key
    of_columns: Columns


@dataclass(frozen=True)
class _Rows:
    """A relation of the cursor with these columns, and about its number of rows.

    `filled` is done when a cursor has stored the rows; None if they are stored.
    """

    name: str
    columns: frozenset[str]
    count: int
    filled: Future[int] | None = None


@dataclass(frozen=True)
class _Filling:
    """The query for the `rows` of a reduction, which reads `by`. `form` is as for `fill_table`."""

    rows: _Rows
    query: str
    form: object
    by: _Rows


@dataclass(frozen=True)
class Reduced:
    """SQL of the rows of a program's reductions, by name. They are stored once all of `filled` have a result."""

    rows: Mapping[str, str]
    filled: tuple[Future[int], ...] = ()

    def check(self) -> None:
        """Wait until the rows are stored. Raises the error of a cursor that could not store them."""
        for each in self.filled:
            each.result()


class Reductions:
    """Makes reductions from the copies of `executor.epochs.lookups`. Only the coordinator's thread uses it.

    What is read of a reduction in one epoch decides what of it is stored in the next one.
    """

    def __init__(self, lookups: Lookups) -> None:
        self._lookups = lookups
        self._epoch: tuple[ref[Feeds], object] | None = None  # whose feeds and snapshots they are
        self._stored: dict[_Key, _Rows | None] = {}
        self._uses: Counter[_Key] = Counter()
        self._before: dict[_Key, int] = {}  # the uses in the last epoch that had any
        self._read: dict[_Key, frozenset[str]] = {}
        self._numbers: dict[_Key, int] = {}
        self._failed: set[_Key] = set()

    def forget(self) -> None:
        """Forget what was read, because the views may be others."""
        self._before, self._read, self._numbers, self._failed = {}, {}, {}, set()

    def of(
        self, cursor: Cursor, view: View, versions: Mapping[str, Version], feeds: Feeds,
        reductions: Mapping[str, tuple[str, Reduction]], submit: Submit,
    ) -> Reduced:  # fmt: skip
        """Return the scanned rows of a program's `reductions` that are stored, or will be by what `submit` takes."""
        epoch = ref(feeds), self._lookups.snapshots
        if self._epoch != epoch:
            self._epoch, self._before = epoch, self._before | self._uses
            self._stored, self._uses = {}, Counter()
        scans = {scan.input: scan for scan in view.plan.scans}
        fill = partial(self._fill, cursor, submit)
        found, filled = {}, []
        for name, (stands_for, reduction) in reductions.items():
            scan = scans[reduction.input]
            rows = self._rows(cursor, versions, feeds, reduction, stored_columns(scan), fill)
            if rows is not None:
                moment = OLD if stands_for == f"{reduction.input}_old" else NEW
                found[name] = rows_at(scan, 0, copy=self._lookups.present(rows.name, moment))
                filled += [rows.filled] if rows.filled is not None else []
        return Reduced(found, tuple(filled))

    def _rows(
        self, cursor: Cursor, versions: Mapping[str, Version], feeds: Feeds, reduction: Reduction,
        read: frozenset[str], fill: Callable[[_Key, _Filling], _Rows],
    ) -> _Rows | None:  # fmt: skip
        """Return a reduction's rows with the columns that are read; None if they are not stored."""
        version = versions[reduction.input]
        key = self._key(versions, reduction) if self._lookups.has_rows(version) else None
        if key is None or key in self._failed:
            return None
        self._uses[key] += 1
        self._read[key] = self._read.get(key, frozenset()) | read
        if max(self._uses[key], self._before.get(key, 0)) < LEAST_USES:
            return None
        if key not in self._stored:
            self._stored[key] = None  # also if it fails
            if isinstance(reduction.of, Reduction):
                by = self._rows(cursor, versions, feeds, reduction.of, frozenset(key.of_columns), fill)
            else:
                by = _changed_rows(versions[reduction.of], feeds)
            filling = self._filling(cursor, key, version, by) if by is not None else None
            self._stored[key] = fill(key, filling) if filling is not None else None
        stored = self._stored[key]
        return stored if stored is not None and stored.columns >= read else None

    def _filling(self, cursor: Cursor, key: _Key, version: Version, by: _Rows) -> _Filling | None:
        """Return how to store the rows that equal a row of `by`; None if they are too many."""
        columns = self._read[key] | {*key.columns}
        found = self._lookups.matching(cursor, version, columns, key.columns, by.count, _MOST_ROWS)
        if found is None:
            return None
        rows, count = found
        name = kept_table(f"reduction_{self._numbers.setdefault(key, len(self._numbers))}")
        keys = ", ".join(map(quote, dict.fromkeys(key.of_columns)))
        pairs = zip(map(quote, key.columns), map(quote, key.of_columns), strict=True)
        same = " AND ".join(f"r.{own} = d.{its}" for own, its in pairs)
        matching = f"FROM {rows} AS r SEMI JOIN (SELECT DISTINCT {keys} FROM {by.name}) AS d ON {same}"
        return _Filling(_Rows(name, columns, int(count)), matching, (version.relation.columns, columns), by)

    def _fill(self, cursor: Cursor, submit: Submit, key: _Key, filling: _Filling) -> _Rows:
        """Let a cursor store the rows of a reduction: the coordinator's own, if there is no table yet."""
        rows, by = filling.rows, filling.by

        def fill(with_: Cursor) -> int:
            try:
                if by.filled is not None:
                    by.filled.result()  # it is done; raises its error
                with listed_keys(with_, by.count):
                    return fill_table(cursor, rows.name, filling.query, filling.form, by=with_)
            except Exception:
                self._failed.add(key)  # so that the views that fail now can be computed without it
                raise

        has_table = has_tables(cursor, [rows.name], filling.form)
        task = submit(fill, has_table, [by.filled] if by.filled is not None else [])
        return replace(rows, filled=task.future)

    def _key(self, versions: Mapping[str, Version], reduction: Reduction) -> _Key | None:
        """Return the key of a reduction; None if it cannot be stored."""
        relation = versions[reduction.input].relation
        by = reduction.of.input if isinstance(reduction.of, Reduction) else reduction.of
        other = versions[by].relation
        of: int | _Key | None
        if isinstance(reduction.of, Reduction):
            of = self._key(versions, reduction.of)
        else:
            of = other.id if other.is_table and self._lookups.is_usual(versions[by]) else None
        pairs = zip(reduction.columns, reduction.of_columns, strict=True)
        stored = sorted(found for own, its in pairs if (found := _stored(relation, own, other, its)) is not None)
        if of is None or not stored:
            return None
        return _Key(relation.id, tuple(own for own, _ in stored), of, tuple(its for _, its in stored))


def _changed_rows(version: Version, feeds: Feeds) -> _Rows | None:
    """Return the changed rows of a table, if they are in a table that stays."""
    feed = feeds.made(version.relation, version.old, version.new)
    if feed is None or not is_kept(feed):
        return None
    return _Rows(feed, feeds.columns(version.relation), feeds.rows(feed))


def _stored(relation: Relation, name: str, other: Relation, its_name: str) -> tuple[str, str] | None:
    """Return the lake's names of two columns; None if the lake does not compare their values as SQL does."""
    own, its = relation.column(name), other.column(its_name)
    if own is None or its is None or own.type != its.type:
        return None
    if own.from_lake != quote(own.lake_name) or its.from_lake != quote(its.lake_name):
        return None
    return own.lake_name, its.lake_name
