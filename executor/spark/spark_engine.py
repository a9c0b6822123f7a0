"""Runs slices and delta programs on Spark: DuckDB in a task reads and writes Parquet; no rows pass through Python."""

from __future__ import annotations

import contextlib
import os
import pickle
import re
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import grpc
from pyspark import cloudpickle
from pyspark.errors import PySparkException, PythonException
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StringType, StructField, StructType

from sparkwave.catalog import (
    ciphers,
    database_functions,
    document_contents,
    document_paths,
    document_texts,
    errors,
    float_texts,
    interval_texts,
    moment_casts,
    moment_chars,
    moment_texts,
    moment_words,
    number_texts,
    pattern_functions,
    patterns,
    pgp_messages,
    read_patterns,
    regexp_functions,
    regular_expressions,
    text_functions,
)
from sparkwave.catalog.counters import EngineName
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import ENGINE_VERSION, SETTINGS, Cursor, Lake, at_one_moment
from sparkwave.catalog.lake.extensions import file_access
from sparkwave.catalog.lake.places import Place, remove_tree
from sparkwave.catalog.lake.row_ids import ALL, NONE, RowIds
from sparkwave.catalog.lake.translation import DISK_FULL, disk_full, error_named, translate
from sparkwave.catalog.model import Position
from sparkwave.catalog.names import LakeTable, literal
from sparkwave.catalog.stores.compute_errors import ComputeErrors
from sparkwave.catalog.system.system_views import SCALAR_SETUP, needed_functions
from sparkwave.catalog.types import BIGINT, Type
from sparkwave.executor.backfill.slicing import RowCount, row_count
from sparkwave.executor.epochs.advance import Addition, Advance, Changes, Fill, View
from sparkwave.executor.epochs.delta_programs import Added, Check, hash_of_row, new_checks, program
from sparkwave.executor.epochs.script import bound_checks, script, within
from sparkwave.executor.epochs.versions import Version, rows_at, rows_new
from sparkwave.executor.functions import python_calls
from sparkwave.executor.functions.python_registry import Prepare, python_functions
from sparkwave.executor.memory.delta_tables import make_table, sum_changes
from sparkwave.executor.spark import kernel, task_share
from sparkwave.executor.spark.applications import Size
from sparkwave.executor.spark.groups import Group
from sparkwave.executor.spark.kernel import Done, File, Setup, Step, Task
from sparkwave.executor.spark.lake_files import TableFiles, table_files
from sparkwave.executor.spark.lake_rows import as_stored, as_values, columns_of, no_rows, read_files, table_rows
from sparkwave.executor.spark.task_share import Share
from sparkwave.planner.functions.emit import Sql
from sparkwave.planner.plan.nodes import Scan
from sparkwave.planner.plan.stream_plan import State

for _sent in (
    ciphers, database_functions, document_contents, document_paths, document_texts, errors, float_texts,
    interval_texts, kernel, moment_casts, moment_chars, moment_texts, moment_words, number_texts, pattern_functions,
    patterns, pgp_messages, python_calls, read_patterns, regexp_functions, regular_expressions, task_share,
    text_functions,
):  # fmt: skip
    cloudpickle.register_pickle_by_value(_sent)

SparkError = (PySparkException, grpc.RpcError)

# An input with fewer rows is written by the server as one Parquet file, which is cheaper than listing files.
SMALL_INPUT_ROWS = 50_000
RUN_IN_JOBS, RUN_IN_PAUSE_S = 20, 0.5
_NONE: Mapping[str, Type] = {}
# The step that writes the change of a view's rows.
_LEFT = "left"
# SQL of the settings of a task's database.
TASK_SCRIPT = f"{SETTINGS}; {SCALAR_SETUP}"
_NUMBERS = StructType([StructField("id", LongType(), False)])
_ANSWERS = StructType([StructField("answer", StringType(), False)])


@dataclass(eq=False)
class SparkEngine:
    """An engine with one Spark session and a scratch directory that both the executors and this process can reach.

    `data` is the directory for rows that may become files of the lake unchanged, if any may.
    """

    group: Group
    session: SparkSession
    setup: Setup
    scratch: Place
    data: Place | None = None
    # Called before each computation on Spark; raises to give up.
    check: Callable[[], None] = lambda: None
    count: RowCount = row_count
    # Returns what a task with these texts of SQL needs in its database.
    prepare: Callable[[Iterable[str]], Prepare | None] = lambda texts: None
    # The share of their machines that tasks are to take; all without one.
    share: Share | None = None
    # The SQL of the relations that queries read, by name.
    inputs: dict[str, str] = field(default_factory=dict)
    # The old and new value of `now()` in a view's SQL, in microseconds.
    times: tuple[int, int] | None = None
    # The files of relations, by table and snapshot.
    _listed: dict[tuple[LakeTable, int], TableFiles] = field(default_factory=dict)

    @property
    def name(self) -> EngineName:
        return "spark"

    def says(self, task: int = 0) -> Path | None:
        """Return the file to which a task writes its finished part.

        None in a bucket, where each write would be a request.
        """
        return self.scratch / f"progress_{task}" if isinstance(self.scratch, Path) else None

    def run_to_parquet(self, query: Sql, target: Place) -> list[File]:
        """Run a query and write its rows as Parquet files into a new directory. Returns the files, at least one."""
        written, _ = self.run_each(target, [Step("rows", self.bound(query), str(target))], [()])
        return written

    def run_each(
        self, target: Place, steps: Sequence[Step], checks: Sequence[Sequence[Check]], rest: Sequence[Check] = ()
    ) -> tuple[list[File], ComputeErrors | None]:
        """Run steps that write into a new directory as tasks of one Spark job, each with its own checks.

        Returns all files, at least one for each task without `by`, and the failed rows. The checks `rest` run in any
        case, in a task of their own.
        """
        remove_tree(target)
        tasks = [self._task([step], of, n) for n, (step, of) in enumerate(zip(steps, checks, strict=True))]
        try:
            return _done(self._run_tasks([*tasks, *([self._task((), rest, None)] if rest else [])]))
        except BaseException:
            remove_tree(target)
            raise

    def bound(self, query: Sql) -> Sql:
        """Return a query with the relations that it reads as CTEs."""
        return Sql(within(query, self.inputs))

    def bind_slice(self, cursor: Cursor, scan: Scan, snapshot: int, rows: RowIds = ALL) -> None:
        """Let `<input>_new` be all or some of the scanned rows at a snapshot."""
        self.inputs[f"{scan.input}_new"] = self.read(cursor, scan, snapshot, rows)

    def bind_files(self, name: str, files: Sequence[str], types: Mapping[str, Type] = _NONE) -> None:
        """Let a name be the rows of Parquet files: as they are stored, or as values of `types`."""
        self.inputs[name] = as_values(_stored_rows(files, types), types)

    def bind_state_files(self, view: View, state: State, files: Sequence[str]) -> None:
        """Let `<state>_state` be the rows of a state, all of which are in `files`."""
        self.inputs[f"{state.name}_state"] = _stored_rows(files, {f.name: f.type for f in state.node.fields})

    def read(self, cursor: Cursor, scan: Scan, snapshot: int, rows: RowIds = ALL) -> str:
        """Return SQL of the scanned columns of some rows of a relation at a snapshot."""
        if self.count(cursor, scan.relation, snapshot) <= SMALL_INPUT_ROWS:
            return self._exported(cursor, rows_at(scan, snapshot, rows), _types(scan))
        return self.read_files(cursor, scan, snapshot, rows)

    def read_files(self, cursor: Cursor, scan: Scan, snapshot: int, rows: RowIds) -> str:
        """Read as `read` does, over the files of the lake."""
        key = scan.relation.lake_table, snapshot
        if key not in self._listed:
            self._listed[key] = table_files(cursor, scan.relation, snapshot, self.scratch / uuid.uuid4().hex)
        return table_rows(self._listed[key], scan.relation, scan.columns, rows)

    def advance(self, cursor: Cursor, view: View, versions: Mapping[str, Version], changes: Changes) -> Advance:
        """Advance as `executor.epochs.advance.Engine` says. The rows that Spark writes become temporary relations."""
        made = program(view.plan, changes.inputs, changes.retracts)
        self.times = changes.times
        found = script(view, made, self._bound(cursor, view, versions, changes, made.read))
        steps = [Step(name, query) for name, query in found.tables]
        items = []
        for number, item in enumerate(found.applications):
            types, name = view.plan.types_in(item.state), f"{found.changes}_{number}"
            steps.append(self._step(f"{name}_removed", item.removed, {key: types[key] for key in item.key}))
            added = replace(item.added, rows=f"{name}_added", directory=self.data and self.data / f"{name}_added")
            columns = {column: types[column] for column in added.columns}
            steps.append(self._step(added.rows, item.added.rows, columns, added.directory))
            items.append(replace(item, removed=f"{name}_removed", added=added))
        whole = {**view.plan.types_in(None), "_weight": BIGINT}
        steps.append(self._step(_LEFT, found.changes, whole))
        files, failed = self._run(steps, found.checks)
        written = _by_step(files)
        self._load(cursor, found.changes, written[_LEFT], whole)
        applied, counts = [], []
        for item in items:
            removed, added_files = written[item.removed], written[item.added.rows]
            self._load(cursor, item.removed, removed)
            applied.append(replace(item, added=self._addition(cursor, item.added, added_files)))
            counts.append((rows_in(removed), rows_in(added_files)))
        hashes = sum_changes(cursor, found.changes, hash_of_row(view.plan))
        return Advance(view, tuple(applied), found.changes, tuple(counts), hashes, failed)

    def fill(
        self, cursor: Cursor, view: View, position: Position, rows: Mapping[str, RowIds], queries: Sequence[Added],
        time_us: int,
    ) -> Fill:  # fmt: skip
        """Compute a view's new rows, as `executor.epochs.advance.Engine` says."""
        with at_one_moment(cursor):  # else each query reads the lake's catalog anew
            for scan in view.plan.scans:
                self.check()
                self.bind_slice(cursor, scan, position.of(scan.relation), rows[scan.input])
        return self.fill_bound(cursor, view, queries, time_us)

    def fill_bound(self, cursor: Cursor, view: View, queries: Sequence[Added], time_us: int) -> Fill:
        """Fill as `fill` does, over inputs that are bound."""
        self.times = time_us, time_us
        steps, additions = [], []
        for number, item in enumerate(queries):
            directory, types = self.data and self.data / f"fill_{number}", view.plan.types_in(item.state)
            query, raising = (f"({within(sql, self.inputs)})" for sql in (item.query, item.raising))
            held = [f"{state.name}_state" for state in view.plan.states_in(item.state)]
            # Later queries of the task read a state by its name.
            [name] = held or [f"fill_{number}"]
            columns = {column: types[column] for column in item.columns}
            step = self._step(name, query, columns, directory)
            steps.append(step if raising == query else replace(step, raising=as_stored(f"FROM {raising}", columns)))
            additions.append(Addition(view.table_of(item.state), f"fill_{number}", item.columns, (), directory))
        written, failed = self._run(steps, bound_checks(new_checks(view.plan), self.inputs))
        by_step = _by_step(written)
        files = [by_step[step.name] for step in steps]
        added = (self._addition(cursor, *pair) for pair in zip(additions, files, strict=True))
        return Fill(view, tuple(added), tuple(map(rows_in, files)), failed)

    def _step(self, name: str, rows: str, types: Mapping[str, Type], directory: Place | None = None) -> Step:
        """Return a step that writes some columns of a relation or subquery as the lake stores them.

        Parquet lacks some of DuckDB's types.
        """
        target = directory if directory is not None else self.scratch / uuid.uuid4().hex
        return Step(name, as_stored(f"FROM {rows}", types), str(target))

    def _load(self, cursor: Cursor, name: str, files: Sequence[File], types: Mapping[str, Type] = _NONE) -> None:
        """Make a temporary table of the cursor from files: rows as they are stored, or values of `types`."""
        make_table(cursor, name, as_values(read_files(file.path for file in files), types))

    def _addition(self, cursor: Cursor, addition: Addition, files: Sequence[File]) -> Addition:
        """Return an addition of rows in files. Files in the addition's directory may become files of the lake."""
        if addition.directory is None:
            self._load(cursor, addition.rows, files)
            return addition
        rows = read_files(file.path for file in files)
        cursor.execute(f"CREATE OR REPLACE TEMPORARY VIEW {addition.rows} AS {rows}")
        return addition.with_files(files)

    def _bound(
        self, cursor: Cursor, view: View, versions: Mapping[str, Version], changes: Changes, read: frozenset[str]
    ) -> dict[str, str]:
        """Return the SQL of the relations that a program reads, by name."""
        bound = {}
        for state in view.plan.states:
            if (name := f"{state.name}_state") in read:
                bound[name] = self._exported(cursor, f"FROM {view.state_table(state).sql}", _NONE)
        for scan in view.plan.scans:
            version = versions[scan.input]
            old, new, changed = (f"{scan.input}_{which}" for which in ("old", "new", "changes"))
            if old in read:
                bound[old] = self.read(cursor, scan, version.old, version.old_rows)
            if new in read and version.pending is None:
                bound[new] = self.read(cursor, scan, version.new, version.new_rows)
            elif new in read:
                bound[new] = self._exported(cursor, rows_new(scan, version), _types(scan))
            if scan.input in changes.inputs and version.added_rows != NONE:
                added = self.read(cursor, scan, version.new, version.added_rows)
                bound[changed] = f"SELECT *, 1 AS _weight FROM ({added})"
            elif scan.input in changes.inputs:
                bound[changed] = self._exported(cursor, changes.query(scan.input), {**_types(scan), "_weight": BIGINT})
        return bound

    def _exported(self, cursor: Cursor, query: str, types: Mapping[str, Type]) -> str:
        """Write the rows of a query as one file, and return SQL of the file's rows.

        The rows are values of `types`, or as they are stored without types.
        """
        target = str(self.scratch / f"{uuid.uuid4().hex}.parquet")
        cursor.execute(f"COPY ({as_stored(query, types) if types else query}) TO {literal(target)} (FORMAT parquet)")
        return as_values(read_files([target]), types)

    def _run(self, steps: Sequence[Step], checks: Sequence[Check] = ()) -> tuple[list[File], ComputeErrors | None]:
        """Run steps and checks as one task."""
        return _done(self._run_tasks([self._task(steps, checks)]))

    def _task(self, steps: Sequence[Step], checks: Sequence[Check], number: int | None = 0) -> Task:
        """Return a task; without a number it does not report its progress."""
        says = self.says(number) if number is not None else None
        asked = tuple(check.queries for check in checks)
        texts = [text for step in steps for text in (step.query, step.raising or "")]
        texts += [text for queries in asked for text in queries]
        beside = self.share.followed if self.share is not None else None
        functions, prepare = needed_functions(texts), self.prepare(texts)
        return Task(tuple(steps), self.times, asked, str(says) if says else None, functions, prepare, beside)

    def _run_tasks(self, tasks: Sequence[Task]) -> Done:
        """Run tasks as one Spark job.

        After a failure their files are deleted, because another attempt may need the room.
        """
        self.check()
        try:
            for target in {step.target for task in tasks for step in task.steps if step.target is not None}:
                if "://" not in target:  # tasks write below a directory only while it exists
                    os.makedirs(target, exist_ok=True)
            return run_tasks(self.session, self.setup, tasks)
        except BaseException:
            if self.data is not None:
                remove_tree(self.data)
            raise

    def interrupt(self) -> None:
        """Stop the session's work; the running call fails."""
        self.group.interrupt(self.session)

    def abandon(self) -> None:
        """Interrupt where Spark does not answer. The engine cannot be used any more."""
        self.group.abandon(self.session)


def _done(done: Done) -> tuple[list[File], ComputeErrors | None]:
    if not done.failed:
        return done.files, None
    return done.files, ComputeErrors(done.failed, done.reason and translate(error_named(*done.reason)).message)


@contextlib.contextmanager
def spark_engine(
    group: Group,
    lake: Lake,
    purpose: str,
    data: Place | None = None,
    check: Callable[[], None] = lambda: None,
    count: RowCount = row_count,
    owner: object = None,
    share: Share | None = None,
) -> Iterator[SparkEngine]:
    """Yield an engine with a session of a group, and a scratch directory that is removed afterwards.

    Engines of one owner share a session, so that interrupting one interrupts all. Without an owner the session is not
    shared.
    """
    scratch = lake.new_temporary(purpose)
    scratch.mkdir(parents=True, exist_ok=True)
    try:
        with group.session(object() if owner is None else owner) as session:
            functions = python_functions(lake)
            prepare = functions.in_tasks if functions is not None else lambda texts: None
            yield SparkEngine(group, session, setup_of(lake, group.size), scratch, data, check, count, prepare, share)
    finally:
        remove_tree(scratch)


def warm_up(group: Group, lake: Lake, tasks: int, owner: object = "warm_up") -> None:
    """Start a session of a group, and workers with a database for `tasks` tasks, so that the first steps begin at once.

    Engines of the same owner use the session. Raises DuckDBError and SparkError.
    """
    with group.session(owner) as session:
        run_tasks(session, setup_of(lake, group.size), [Task(())] * tasks)


def run_in(group: Group, lake: Lake) -> None:
    """Run empty jobs while a group is idle: Spark's own part of a job takes half the time once Java has compiled it.

    The jobs are few and far between, to leave the processor to others. Their failures do not matter.
    """
    setup = setup_of(lake, group.size)
    with contextlib.suppress(Exception):
        for _ in range(RUN_IN_JOBS):
            time.sleep(RUN_IN_PAUSE_S)
            if group.is_alive and group.endpoint.has_idle_session:
                with group.session("run_in") as session:
                    run_tasks(session, setup, [Task(())])


def setup_of(lake: Lake, size: Size) -> Setup:
    """Return the set-up that makes the database of a task equal to the server's."""
    extensions, secrets = file_access(lake.storage.root)
    return Setup(ENGINE_VERSION, size.cores, size.task_mib, extensions, TASK_SCRIPT, secrets)


@cache
def _kernel_code() -> bytes:
    return bytes(cloudpickle.dumps(kernel.run, pickle.DEFAULT_PROTOCOL))


def run_tasks(session: SparkSession, setup: Setup, tasks: Sequence[Task]) -> Done:
    """Run tasks as one Spark job. Only the files that the result names count.

    Raises DuckDBError for errors of DuckDB in a task, and SparkError.
    """
    frame = session.range(0, len(tasks), 1, len(tasks))
    frame._cached_schema = _NUMBERS  # finding the schema would be another call
    answers = frame.mapInArrow(kernel.function(_kernel_code(), setup, tasks), _ANSWERS).toArrow().column(0).to_pylist()
    try:
        return kernel.read_answers(answers)
    except kernel.TaskError as error:
        raise error_named(error.kind, str(error)) from None


def _stored_rows(files: Sequence[str], types: Mapping[str, Type]) -> str:
    """Return SQL of the rows of files as they are stored; no rows without a file."""
    return read_files(files) if files else no_rows({name: type_.in_lake() for name, type_ in types.items()})


def _types(scan: Scan) -> dict[str, Type]:
    """Return the types of the scanned columns."""
    return {column.name: column.type for column in columns_of(scan.relation, scan.columns)}


def filled_files(files: Iterable[File]) -> tuple[str, ...]:
    """Return the paths of the files that have rows."""
    return tuple(file.path for file in files if file.rows)


def rows_in(files: Iterable[File]) -> int:
    return sum(file.rows for file in files)


def _by_step(files: Iterable[File]) -> dict[str, list[File]]:
    found: dict[str, list[File]] = {}
    for file in files:
        found.setdefault(file.step, []).append(file)
    return found


def spark_error(error: BaseException) -> Error:
    """Return the user's error for a failure of Spark: its first line, or that of a full disk."""
    text = str(error)
    if isinstance(error, PySparkException):
        text = error.getMessage() or text
    elif isinstance(error, grpc.RpcError) and hasattr(error, "details"):
        text = error.details() or text
    if DISK_FULL in text or DISK_FULL in str(error):
        return disk_full(f"{text}\n{error}")
    if isinstance(error, PythonException):  # a task's exception comes after its traceback
        last = [line for line in text.splitlines() if line.strip() and "SQLSTATE: " not in line][-1]
        return Error(last.partition(": ")[2] or last, errors.IO_ERROR)
    first = _without_java(text.strip().splitlines()[0]) if text.strip() else type(error).__name__
    if _is_gone(error):
        said = re.search(r'details = "([^"]*)"', text)
        return Error(f"Spark has gone: {said[1] if said else first}", errors.INSUFFICIENT_RESOURCES)
    if any(word in text for word in _NO_MEMORY):
        return Error(first, errors.OUT_OF_MEMORY)
    for word, message in _LOST.items():
        if word in text:
            return Error(message, errors.INSUFFICIENT_RESOURCES, hint=_LOST_HINT)
    return Error(first)


def _without_java(line: str) -> str:
    """Return the failure of a task without the task's and stage's ids and Java's class names."""
    line = re.sub(r"^Job aborted due to stage failure: .*?\(TID \d+\) \([^)]*\): ", "", line)
    return re.sub(r"^(?:[a-z]\w*\.)+[A-Z]\w*: ", "", line)


# Spark's words about ended processes, and the words that users read instead.
_LOST = {
    "Python worker exited unexpectedly": "a worker process of Spark has ended unexpectedly",
    "Python worker process terminated": "a worker process of Spark has ended unexpectedly",
    "ExecutorLostFailure": "a node of Spark was lost",
}
_LOST_HINT = "The system may have ended it for want of memory: see the logs of the resource group and of its nodes."
# Java's words.
_NO_MEMORY = ("java.lang.OutOfMemoryError", "Java heap space")


def _is_gone(error: BaseException) -> bool:
    """Return whether the Spark Connect server has ended or does not answer, which is not the fault of the call."""
    code = getattr(error, "getGrpcStatusCode", None) or getattr(error, "code", None)
    return code is not None and code() == grpc.StatusCode.UNAVAILABLE
