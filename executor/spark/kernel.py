"""The code of a Spark task: DuckDB runs SQL over Parquet files and writes Parquet files.

The whole module is sent to executors, so it imports nothing of this package but what is sent with it. Executors need
duckdb, of the server's version, and pyarrow. A worker process keeps its database, with the functions that earlier tasks
have needed, for the next task: to create all functions takes longer than most tasks.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import threading
import types
import uuid
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from sparkwave.catalog.database_functions import define_functions

T = TypeVar("T")
Batches = Iterator[pa.RecordBatch]

# How tables are written. Statistics of row groups help to find rows to update or delete. Numbers and times as
# differences (version 2 of Parquet's data pages) take half the room of dictionaries. Larger dictionaries than the
# limit are given up, because looking each of thousands of values up would cost the most time, in vain. zstd's level
# 1 takes a third less processor time than its usual level 3, for 2 % more bytes.
OPTIONS = (
    "FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1, PARQUET_VERSION V2, DICTIONARY_SIZE_LIMIT 1000, "
    "FILENAME_PATTERN '{uuid}', APPEND, RETURN_STATS true"
)
FILE_SIZE = "FILE_SIZE_BYTES '64MB'"

# DuckDB computes the finished part of a query, without printing it; a task reports it at this interval in seconds.
COUNTS = "SET enable_progress_bar_print = false; SET enable_progress_bar = true; SET progress_bar_time = 0"
SAY_SECONDS = 0.5


@dataclass(frozen=True)
class Setup:
    """The set-up of a worker's database: DuckDB's version, its resources, and settings as in the server.

    `extensions` are names, `script` and `secrets` SQL, of which the latter must not be shown.
    """

    version: str
    threads: int
    memory_mib: int
    extensions: tuple[str, ...]
    script: str
    secrets: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Setup({self.threads} threads, {self.memory_mib} MiB)"


@dataclass(frozen=True)
class Step:
    """A query whose rows later steps of its task read by `name`, from a temporary table, or from files in `target`.

    With `by`, the rows of each value of this column go to a directory of files of their own, without the column; no
    step reads them. `raising` is a query with the same rows that raises where `query` has NULL for a failed expression.
    """

    name: str
    query: str
    target: str | None = None
    by: str | None = None
    raising: str | None = None


@dataclass(frozen=True)
class Task:
    """Steps that one worker runs, one after the other. `times` are the old and new value of `now()` in microseconds.

    `checks` are pairs of queries: one counts the rows for which an expression failed, one fails at such a row. The
    checks are skipped if the raising queries, which are tried first, succeed. `says` is a file to which the task writes
    the finished part of its steps, from 0 to 1, again and again. `functions` are statements that create what the
    queries call, and `prepare` is called with the database first. The task runs within `beside`.
    """

    steps: tuple[Step, ...]
    times: tuple[int, int] | None = None
    checks: tuple[tuple[str, str], ...] = ()
    says: str | None = None
    functions: tuple[str, ...] = ()
    prepare: Callable[[Any], None] | None = None
    beside: Callable[[], AbstractContextManager[None]] | None = None


@dataclass(frozen=True)
class File:
    """A Parquet file that a step has written, with its numbers of rows and bytes."""

    step: str
    path: str
    rows: int
    size: int


@dataclass(frozen=True)
class Done:
    """The result of tasks: the files that they have written, and the number of rows for which an expression failed.

    `reason` is the error of one of these rows: DuckDB's class of errors, and the text.
    """

    files: list[File]
    failed: int = 0
    reason: tuple[str, str] | None = None


class TaskError(Exception):
    """An error of DuckDB in a task: the name of its class of errors, and the text."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


def function(code: bytes, setup: Setup, tasks: Sequence[Task]) -> Callable[[Batches], Batches]:
    """Return the function of a Spark job from the numbers of tasks to the results of `run`.

    `code` is `run`, pickled with this module. A worker unpickles it once, which takes longer than most tasks; what is
    sent with each job are values without classes of this module.
    """
    values = vars(setup), [{**vars(task), "steps": [vars(step) for step in task.steps]} for task in tasks]

    def unpickled(numbers: Batches) -> Batches:
        import pickle

        kept = _kept()
        if getattr(kept, "code", None) != code:
            kept.run, kept.code = pickle.loads(code), code
        found: Batches = kept.run(numbers, *values)
        return found

    return unpickled


def _kept() -> Any:
    """Return what has the attributes that a worker keeps for its next job."""
    return sys.modules.setdefault("_sparkwave_kernel", types.ModuleType("_sparkwave_kernel"))


def run(numbers: Batches, setup: Mapping[str, Any], tasks: Sequence[Mapping[str, Any]]) -> Batches:
    """Yield JSON for each number of a task: the files that the task has written, or DuckDB's error.

    An error of the data is a result, because another attempt would fail in the same way.
    """
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            task = Task(**{**tasks[number], "steps": tuple(Step(**step) for step in tasks[number]["steps"])})
            found = [json.dumps(item) for item in _answers(Setup(**setup), task)]
            yield pa.RecordBatch.from_arrays([_strings(found)], names=["answer"])


def _strings(texts: Sequence[str]) -> pa.Array:
    """Return an array of strings, made of buffers.

    `pyarrow.array` would first import pandas, which takes 0.2 s in each new worker.
    """
    data = [text.encode() for text in texts]
    ends = array("i", accumulate(map(len, data), initial=0))
    return pa.StringArray.from_buffers(len(data), pa.py_buffer(ends), pa.py_buffer(b"".join(data)))


def read_answers(answers: Sequence[str]) -> Done:
    """Return the result of tasks from their JSON. Raises TaskError."""
    items = [json.loads(answer) for answer in answers]
    for item in items:
        if "error" in item:
            raise TaskError(*item["error"])
    failed = [item for item in items if "failed" in item]
    reason = failed[-1]["reason"] if failed else None
    files = [File(**item) for item in items if "failed" not in item]
    return Done(files, sum(item["failed"] for item in failed), reason and tuple(reason))


def _answers(setup: Setup, task: Task) -> list[dict[str, Any]]:
    with task.beside() if task.beside is not None else nullcontext():
        return _answered(setup, task)


def _answered(setup: Setup, task: Task) -> list[dict[str, Any]]:
    import duckdb

    if duckdb.__version__ != setup.version:
        raise RuntimeError(f"this node has duckdb {duckdb.__version__}, and the server has {setup.version}")
    database = _database(setup)
    _define(database, task.functions)
    if task.prepare is not None:
        task.prepare(database)
    try:
        return _tried(database, task)
    except duckdb.OutOfMemoryException:
        # Each thread of a join or an aggregate needs memory of its own before it can spill.
        database.execute("SET threads = 1")
        try:
            return _tried(database, task)
        except duckdb.Error as error:
            return [{"error": _named(error)}]
        finally:
            database.execute(f"SET threads = {setup.threads}")
    except duckdb.Error as error:
        return [{"error": _named(error)}]


def _tried(database: Any, task: Task) -> list[dict[str, Any]]:
    """Run a task, first with its raising queries. Returns the result. Raises duckdb.Error."""
    if all(step.raising is None for step in task.steps):
        return _run(database.cursor(), task)
    raising = tuple(replace(step, query=step.raising or step.query) for step in task.steps)
    found = unless_raised(lambda: _run(database.cursor(), replace(task, steps=raising, checks=())))
    return found if found is not None else _run(database.cursor(), task)


def unless_raised(attempt: Callable[[], T]) -> T | None:
    """Return the result of an attempt whose queries raise where an expression fails; None if one does.

    The error itself is of no interest: the queries without raising report any other one again. Raises duckdb.Error
    where another attempt would fail in the same way.
    """
    import duckdb

    try:
        return attempt()
    except (duckdb.OutOfMemoryException, duckdb.InterruptException, duckdb.IOException):
        raise
    except duckdb.Error:
        return None


def _run(cursor: Any, task: Task) -> list[dict[str, Any]]:
    """Run a task and return its result. Raises duckdb.Error. The cursor is closed."""
    written: list[File] = []
    saying = _Saying(cursor, task)
    try:
        for version, time_us in zip(("old", "new"), task.times or (), strict=False):
            cursor.execute(f"SET VARIABLE now_{version} = make_timestamptz({time_us})")
        for step in task.steps:
            if step.target is None:
                cursor.execute(f'CREATE TEMPORARY TABLE "{step.name}" AS {step.query}')
            else:
                files = write(cursor, step)
                written += files
                if step.by is None:
                    read = ", ".join(_literal(file.path) for file in files)
                    cursor.execute(f'CREATE TEMPORARY VIEW "{step.name}" AS FROM read_parquet([{read}])')
            saying.steps_done += 1
        saying.stop()
        return [*(asdict(file) for file in written), *_failed(cursor, task.checks)]
    except BaseException:
        _forget(file.path for file in written)
        raise
    finally:
        saying.stop()
        cursor.close()


class _Saying:
    """Reports the finished part of a task from a thread of its own, again and again, and when it is over."""

    def __init__(self, cursor: Any, task: Task) -> None:
        self.steps_done = 0
        self._cursor, self._steps, self._path = cursor, len(task.steps), task.says
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._say, daemon=True)
        if task.says is not None:
            cursor.execute(COUNTS)
            self._thread.start()

    def stop(self) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _say(self) -> None:
        part, new, is_over = 0.0, f"{self._path}.{os.getpid()}", False
        while not is_over:
            is_over = self._over.wait(SAY_SECONDS)
            done = self.steps_done  # read before the progress, so that a step that ends now does not count twice
            running = 0.0 if is_over else self._cursor.query_progress() / 100
            part = max(part, (done + running) / self._steps)
            try:
                Path(new).write_text(str(part))
                os.replace(new, str(self._path))
            except OSError:  # the reader may be gone; failing to report is no reason to fail
                continue


def failed_rows(execute: Callable[[str], Any], checks: Sequence[tuple[str, str]]) -> tuple[int, Exception | None]:
    """Return for how many rows an expression failed, and the error of one of them. Raises duckdb.Error.

    `execute` runs a query on a cursor, and `checks` are as in Task. The server uses this function, too.
    """
    import duckdb

    if not checks:
        return 0, None
    counts = execute("SELECT " + ", ".join(f"({count})" for count, _ in checks)).fetchone()
    failing = [query for (_, query), rows in zip(checks, counts, strict=True) if rows]
    try:
        for query in failing[-1:]:
            execute(query).fetchall()
    except duckdb.Error as error:
        return sum(counts), error
    return sum(counts), None


def _failed(cursor: Any, checks: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    """Return the JSON items about failed rows, if there are any. A failure to count them does not fail the task."""
    import duckdb

    try:
        rows, reason = failed_rows(cursor.execute, checks)
    except duckdb.Error:
        return []
    return [{"failed": rows, "reason": reason and _named(reason)}] if rows else []


def _named(error: Exception) -> list[str]:
    return [type(error).__name__, str(error)]


def _forget(files: Iterable[str]) -> None:
    """Delete files that nobody will read, because another attempt may need the room.

    Files in a bucket are deleted later.
    """
    for file in files:
        if "://" not in file:
            Path(file).unlink(missing_ok=True)


def write(cursor: Any, step: Step) -> list[File]:
    """Write the rows of a step's query into files of a new directory of its target, one for each attempt.

    Writes at least one file, which may have no rows, but with `by` none without rows. Writes nothing if the target is
    gone: a task that runs on after it was given up must not bring back what has been deleted.
    """
    assert step.target is not None
    target = f"{step.target}/{uuid.uuid4().hex}"
    if "://" not in target:
        os.mkdir(target)
    cut = FILE_SIZE if step.by is None else f'PARTITION_BY ("{step.by}")'
    try:
        cursor.execute(f"COPY ({step.query}) TO {_literal(target)} ({OPTIONS}, {cut})")
    except BaseException:
        if "://" not in target:
            shutil.rmtree(target, ignore_errors=True)
        raise
    columns = [column[0] for column in cursor.description]
    rows = [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]
    return [File(step.name, row["filename"], row["count"], row["file_size_bytes"]) for row in rows]


def _database(setup: Setup) -> Any:
    """Return this process's database, a new one for another set-up."""
    import duckdb

    kept = _kept()
    if getattr(kept, "setup", None) != setup:
        spilled = f"{os.environ.get('SPARK_LOCAL_DIRS', '/tmp').split(',')[0]}/duckdb_{os.getpid()}"
        if not hasattr(kept, "guard"):
            kept.guard = _removed_at_end(spilled)
        database = duckdb.connect(
            config={
                "threads": setup.threads,
                "memory_limit": f"{setup.memory_mib}MiB",
                "temp_directory": spilled,
                # Freed memory goes back to the system at once; otherwise a node has up to 200 MiB more than the
                # limit.
                "allocator_flush_threshold": "1MB",
                "allocator_bulk_deallocation_flush_threshold": "16MB",
                "autoinstall_known_extensions": "false",
                "preserve_insertion_order": "false",
            }
        )
        for name in setup.extensions:
            database.execute(f"LOAD {_literal(str(_extension(name)))}")
        define_functions(database)
        database.execute(setup.script)
        for sql in setup.secrets:
            try:
                database.execute(sql)
            except duckdb.Error as error:  # the text has a part of the SQL
                raise RuntimeError(f"the keys of the files cannot be used: {type(error).__name__}") from None
        kept.database, kept.setup, kept.functions = database, setup, set()
    return kept.database


def _define(database: Any, functions: Iterable[str]) -> None:
    """Create the functions that this process's database lacks."""
    known: set[str] = _kept().functions
    for statement in functions:
        if statement not in known:
            database.execute(statement)
            known.add(statement)


def _removed_at_end(directory: str) -> subprocess.Popen[bytes]:
    """Start a process that removes a directory when this process ends in any way.

    A cancelled task's process is killed.
    """
    command = ["sh", "-c", 'read -r _; rm -rf -- "$0"', directory]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet, start_new_session=True)


def _extension(name: str) -> Path:
    import duckdb

    spec = importlib.util.find_spec(f"duckdb_extension_{name}")
    if spec is None or spec.origin is None:
        raise RuntimeError(f"this node has no duckdb-extension-{name}")
    return Path(spec.origin).parent / "extensions" / f"v{duckdb.__version__}" / f"{name}.duckdb_extension"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
