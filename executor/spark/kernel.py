"""What a task of Spark does: DuckDB runs SQL over Parquet files there and writes Parquet files.

Sent to executors as a whole, so it imports nothing of ours: they need duckdb, of the server's version, and pyarrow. A
worker process keeps its database from one task to the next, since the macros alone take longer than most tasks.
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
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

T = TypeVar("T")
Batches = Iterator[pa.RecordBatch]

# How a table is written: statistics of row groups find rows to update or delete; numbers and times as differences
# (version 2 of Parquet's data pages) take half the room of dictionaries. A dictionary of more values than the limit is
# given up: to look for each of thousands takes longer than all else, and is in vain. zstd's level 1 writes with a third
# less processor time than its usual level 3, and 2 % more bytes.
OPTIONS = (
    "FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1, PARQUET_VERSION V2, DICTIONARY_SIZE_LIMIT 1000, "
    "FILENAME_PATTERN '{uuid}', APPEND, RETURN_STATS true"
)
FILE_SIZE = "FILE_SIZE_BYTES '64MB'"

# DuckDB counts what part of a query is done, and prints nothing; a task says it so often.
COUNTS = "SET enable_progress_bar_print = false; SET enable_progress_bar = true; SET progress_bar_time = 0"
SAY_SECONDS = 0.5


@dataclass(frozen=True)
class Setup:
    """A worker's database: DuckDB's version, what it may use, and what makes it the server's equal.

    `extensions` are names, `script` is SQL, compressed; `secrets` is SQL that nobody is to see.
    """

    version: str
    threads: int
    memory_mib: int
    extensions: tuple[str, ...]
    script: bytes
    secrets: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Setup({self.threads} threads, {self.memory_mib} MiB)"


@dataclass(frozen=True)
class Step:
    """A query whose rows later steps of its task read by `name`: a temporary table, or with a `target` files there.

    With `by`, the rows of each value of this column have a directory of files there, and the column is left out; no
    step reads them. `raising` has the same rows, but raises where `query` has NULL for an expression that failed.
    """

    name: str
    query: str
    target: str | None = None
    by: str | None = None
    raising: str | None = None


@dataclass(frozen=True)
class Task:
    """Steps that one worker runs, one after the other. `times` are what `now()` is: before and after, microseconds.

    `checks` are queries that count rows for which an expression failed, each with one that such a row makes fail. They
    are left out where nothing raises, which is tried first. `says` is a file in which it says, again and again, what
    part of the steps is done, from 0 to 1.
    """

    steps: tuple[Step, ...]
    times: tuple[int, int] | None = None
    checks: tuple[tuple[str, str], ...] = ()
    says: str | None = None


@dataclass(frozen=True)
class File:
    """A Parquet file that a step has written; rows and bytes."""

    step: str
    path: str
    rows: int
    size: int


@dataclass(frozen=True)
class Done:
    """What tasks have done: the files that they have written, and for how many rows an expression failed.

    `reason` is why, for one of these rows: the name of DuckDB's class of errors, and the text.
    """

    files: list[File]
    failed: int = 0
    reason: tuple[str, str] | None = None


class TaskError(Exception):
    """What DuckDB said in a task: the name of its class of errors, and the text."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


def function(setup: Setup, tasks: Sequence[Task]) -> Callable[[Batches], Batches]:
    """A function from the numbers of tasks to JSON: the files that each has written, or what DuckDB said.

    An error of the data is an answer: another attempt would meet it again.
    """

    def run(numbers: Batches) -> Batches:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                found = [json.dumps(item) for item in _answers(setup, tasks[number])]
                yield pa.RecordBatch.from_arrays([_strings(found)], names=["answer"])

    return run


def _strings(texts: Sequence[str]) -> pa.Array:
    """An array of strings, made of its buffers: `pyarrow.array` first imports pandas, for 0.2 s in each new worker."""
    data = [text.encode() for text in texts]
    ends = array("i", accumulate(map(len, data), initial=0))
    return pa.StringArray.from_buffers(len(data), pa.py_buffer(ends), pa.py_buffer(b"".join(data)))


def read_answers(answers: Sequence[str]) -> Done:
    """What tasks have answered. Raises TaskError."""
    items = [json.loads(answer) for answer in answers]
    for item in items:
        if "error" in item:
            raise TaskError(*item["error"])
    failed = [item for item in items if "failed" in item]
    reason = failed[-1]["reason"] if failed else None
    files = [File(**item) for item in items if "failed" not in item]
    return Done(files, sum(item["failed"] for item in failed), reason and tuple(reason))


def _answers(setup: Setup, task: Task) -> list[dict[str, Any]]:
    import duckdb

    if duckdb.__version__ != setup.version:
        raise RuntimeError(f"this node has duckdb {duckdb.__version__}, and the server has {setup.version}")
    database = _database(setup)
    try:
        return _tried(database, task)
    except duckdb.OutOfMemoryException:
        # Each thread of a join or an aggregate needs its own room before it can spill.
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
    """What a task has done. Raises duckdb.Error."""
    if all(step.raising is None for step in task.steps):
        return _run(database.cursor(), task)
    raising = tuple(replace(step, query=step.raising or step.query) for step in task.steps)
    found = unless_raised(lambda: _run(database.cursor(), replace(task, steps=raising, checks=())))
    return found if found is not None else _run(database.cursor(), task)


def unless_raised(attempt: Callable[[], T]) -> T | None:
    """What an attempt comes to whose queries raise where an expression fails; None if they do.

    Nobody asks why they do: without these words DuckDB says anything else again. Raises duckdb.Error where another
    attempt would come to nothing else.
    """
    import duckdb

    try:
        return attempt()
    except (duckdb.OutOfMemoryException, duckdb.InterruptException, duckdb.IOException):
        raise
    except duckdb.Error:
        return None


def _run(cursor: Any, task: Task) -> list[dict[str, Any]]:
    """What a task has done. Raises duckdb.Error. The cursor is closed."""
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
    """Says on a thread of its own what part of a task is done."""

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
        part, new = 0.0, f"{self._path}.{os.getpid()}"
        while not self._over.wait(SAY_SECONDS):
            done = self.steps_done  # read before: a step that ends now is not counted twice
            part = max(part, (done + self._cursor.query_progress() / 100) / self._steps)
            try:
                Path(new).write_text(str(part))
                os.replace(new, str(self._path))
            except OSError:  # whoever wanted to know may have gone; not to be able to say is no reason to fail
                continue


def failed_rows(cursor: Any, checks: Sequence[tuple[str, str]]) -> tuple[int, Exception | None]:
    """For how many rows an expression failed, and what one of them fails with. Raises duckdb.Error.

    `checks` are as in Task. In the server they are counted so, too.
    """
    import duckdb

    if not checks:
        return 0, None
    counts = cursor.execute("SELECT " + ", ".join(f"({count})" for count, _ in checks)).fetchone()
    failing = [query for (_, query), rows in zip(checks, counts, strict=True) if rows]
    try:
        for query in failing[-1:]:
            cursor.execute(query).fetchall()
    except duckdb.Error as error:
        return sum(counts), error
    return sum(counts), None


def _failed(cursor: Any, checks: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    """What to answer of failed rows, if there are any. Not to know it is no reason to fail."""
    import duckdb

    try:
        rows, reason = failed_rows(cursor, checks)
    except duckdb.Error:
        return []
    return [{"failed": rows, "reason": reason and _named(reason)}] if rows else []


def _named(error: Exception) -> list[str]:
    return [type(error).__name__, str(error)]


def _forget(files: Iterable[str]) -> None:
    """Delete files that nobody will read: another attempt may need the room. Those in a bucket go later."""
    for file in files:
        if "://" not in file:
            Path(file).unlink(missing_ok=True)


def write(cursor: Any, step: Step) -> list[File]:
    """Write the rows of a step's query into files of a new directory of its target: another attempt has another one.

    One or more files, of no rows one without any; with `by` none of no rows. Without the target nothing is written: a
    task that runs on for a moment after it was given up would bring back what has been deleted.
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
    """This process's database, made anew for another set-up."""
    import duckdb

    kept: Any = sys.modules.setdefault("_sparkwave_kernel", types.ModuleType("_sparkwave_kernel"))
    if getattr(kept, "setup", None) != setup:
        spilled = f"{os.environ.get('SPARK_LOCAL_DIRS', '/tmp').split(',')[0]}/duckdb_{os.getpid()}"
        if not hasattr(kept, "guard"):
            kept.guard = _removed_at_end(spilled)
        database = duckdb.connect(
            config={
                "threads": setup.threads,
                "memory_limit": f"{setup.memory_mib}MiB",
                "temp_directory": spilled,
                # What threads have freed goes back at once: else a node has up to 200 MiB more than the limit says.
                "allocator_flush_threshold": "1MB",
                "allocator_bulk_deallocation_flush_threshold": "16MB",
                "autoinstall_known_extensions": "false",
                "preserve_insertion_order": "false",
            }
        )
        for name in setup.extensions:
            database.execute(f"LOAD {_literal(str(_extension(name)))}")
        database.execute(zlib.decompress(setup.script).decode())
        for sql in setup.secrets:
            try:
                database.execute(sql)
            except duckdb.Error as error:  # whose text has a part of the SQL
                raise RuntimeError(f"the keys of the files cannot be used: {type(error).__name__}") from None
        kept.database, kept.setup = database, setup
    return kept.database


def _removed_at_end(directory: str) -> subprocess.Popen[bytes]:
    """Have a directory go with this process, however that ends: a cancelled task's is killed."""
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
