"""DuckDB's calls of users' functions in Python: batches go to processes that run the users' code, and come back.

The module is sent to the tasks of Spark, so it imports nothing of this package. A process runs one function and is kept
for its next call. A call that takes too long, or whose process ends, fails; the next call gets a new process.
"""

from __future__ import annotations

import inspect
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
import types
from collections.abc import Callable, Container, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

# Why a call fails that no TRY may turn into NULL, because another call may succeed (`catalog.python_failures`).
TOO_SLOW, ENDED, NO_MEMORY, DISABLED, UNUSABLE = range(1, 6)
# The seconds for Python to start, and the most bytes of an answer.
START_S = 30.0
LARGEST_ANSWER = 1 << 30
# The most processes of a function, and the most of all functions that wait for the next call.
MOST_OF_ONE = os.cpu_count() or 1
MOST_IDLE = 2 * MOST_OF_ONE + 4
# The most batches that a function keeps, one for each thread.
MOST_BATCHES = 64
# The ends of the names of the forms, as in `catalog.model`.
FORMS = ("", "_or_null", "_has_failed")


@dataclass(frozen=True)
class Limits:
    """The most seconds for a batch of rows, and the most memory of a process in bytes."""

    batch_s: float
    memory_bytes: int


@dataclass(frozen=True)
class Definition:
    """A function: `name` is DuckDB's, `handler` the one that the code defines; types are DuckDB's.

    `program` is the text of `python_worker`. `kinds` are "jsonb" for jsonb, which is text for DuckDB here, else "".
    `gives` is "value", "rows" for an array of what the code yields, or "aggregate" for the value of arrays.
    """

    id: int
    name: str
    handler: str
    code: str
    arguments: tuple[str, ...]
    kinds: tuple[str, ...]
    result: str
    result_kind: str
    gives: str
    is_strict: bool
    program: str


class Error(Exception):
    """An exception in a user's code. DuckDB repeats the name of the class, and the text."""


class Failure(Exception):
    """A call that fails for a reason outside the row."""

    def __init__(self, reason: int) -> None:
        super().__init__(str(reason))
        self.reason = reason


class Process:
    """A process that runs one function."""

    def __init__(self, definition: Definition, result: pa.DataType, limits: Limits) -> None:
        """Start the process. Raises Error if the code fails while it is loaded, and Failure."""
        self.name, self.limits = definition.name, limits
        # Nothing of this process's environment, which may have secrets; sets of texts have one order everywhere.
        environment = {"PYTHONHASHSEED": "0", "ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "1"}
        environment |= {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
        command = [sys.executable, "-P", "-B", "-X", "utf8", "-c", definition.program]
        try:
            self._process = subprocess.Popen(
                command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                close_fds=True, cwd="/", env=environment, start_new_session=True,
            )  # fmt: skip
        except OSError:
            raise Failure(UNUSABLE) from None
        assert self._process.stdin is not None and self._process.stdout is not None
        self._input, self._output = self._process.stdin.fileno(), self._process.stdout.fileno()
        for number in (self._input, self._output):
            os.set_blocking(number, False)
        given = {
            "path": os.path.dirname(os.path.dirname(pa.__file__)),
            "code": definition.code,
            "name": definition.handler,
            "arguments": definition.kinds,
            "gives": definition.gives,
            "is_strict": definition.is_strict,
            "result": pa.schema([("result", result)]).serialize().to_pybytes().hex(),
            "result_kind": definition.result_kind,
            "limit_s": limits.batch_s,
            "memory_bytes": limits.memory_bytes,
        }
        letter, text = self._ask(json.dumps(given).encode(), START_S + limits.batch_s)
        if letter == b"E":
            self.end()
            raise Error(text.decode())

    def ask(self, batch: bytes) -> bytes:
        """Return the answer to a batch. Raises Failure, after the end of the process."""
        return self._ask(batch, self.limits.batch_s)[1]

    def _ask(self, message: bytes, seconds: float) -> tuple[bytes, bytes]:
        deadline = time.monotonic() + seconds
        try:
            self._send(len(message).to_bytes(4, "big") + message, deadline)
            head = self._receive(5, deadline)
            size = int.from_bytes(head[1:], "big")
            if size > LARGEST_ANSWER:
                raise Failure(UNUSABLE)
            answer = self._receive(size, deadline)
        except TimeoutError:
            self.end()
            raise Failure(TOO_SLOW) from None
        except (EOFError, OSError):
            self.end()
            is_alarm = self._process.returncode == -signal.SIGALRM
            raise Failure(TOO_SLOW if is_alarm else ENDED) from None
        except BaseException:
            self.end()
            raise
        if head[:1] == b"M":
            self.end()
            raise Failure(NO_MEMORY)
        return head[:1], answer

    def _send(self, message: bytes, deadline: float) -> None:
        left = memoryview(message)
        while left:
            _wait(self._input, select.POLLOUT, deadline)
            with suppress(BlockingIOError):
                left = left[os.write(self._input, left) :]

    def _receive(self, size: int, deadline: float) -> bytes:
        found = bytearray()
        while len(found) < size:
            _wait(self._output, select.POLLIN, deadline)
            with suppress(BlockingIOError):
                part = os.read(self._output, min(size - len(found), 1 << 20))
                if not part:
                    raise EOFError
                found += part
        return bytes(found)

    def end(self) -> None:
        """End the process at once."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()


def _wait(number: int, event: int, deadline: float) -> None:
    poll = select.poll()
    poll.register(number, event)
    if not poll.poll(max(deadline - time.monotonic(), 0) * 1000):
        raise TimeoutError


@dataclass
class _Batch:
    """Rows with their results, and messages where the code has failed; `place` rows have been asked for again."""

    data: bytes  # the columns as they are sent
    columns: Sequence[pa.Array]
    results: pa.Array
    errors: list[str | None]
    place: int = 0


class Calls:
    """DuckDB's calls of one function, in its three forms. `limits` are None while functions are disabled."""

    def __init__(self, definition: Definition, limits: Callable[[], Limits | None]) -> None:
        self.definition = definition
        self.limits = limits
        self.result: pa.DataType | None = None
        self._last: dict[int, _Batch] = {}  # by thread
        self._room = threading.Semaphore(MOST_OF_ONE)

    def raising(self, *columns: Any) -> pa.Array:
        """Return the results. Raises Error, whose text begins with `!` and a SQLSTATE, for an exception of the code."""
        return self._answered(columns, self._or_raised)

    def or_null(self, *columns: Any) -> pa.Array:
        """Return the results, NULL where the code raises an exception."""
        return self._answered(columns, lambda batch: batch.results)

    def has_failed(self, *columns: Any) -> pa.Array:
        """Return for each row whether the code raises an exception."""
        return self._answered(columns, lambda batch: pa.array([e is not None for e in batch.errors], pa.bool_()))

    def _answered(self, columns: tuple[Any, ...], answer: Callable[[_Batch], pa.Array]) -> pa.Array:
        arrays = [_one(column) for column in columns] or [pa.nulls(1)]
        try:
            if self.limits() is None:
                raise Failure(DISABLED)
            return answer(self._row_again(arrays) or self._batch(arrays))
        except Failure as failure:
            # DuckDB has no type for these numbers, and raises an error that passes TRY and has the digits in its text.
            scale = -(self.definition.id * 8 + failure.reason)
            return pa.array([None] * len(arrays[0]), pa.decimal256(76, scale))

    def _or_raised(self, batch: _Batch) -> pa.Array:
        error = next(filter(None, batch.errors), None)
        if error is None:
            return batch.results
        # The code's own line breaks are gone, so that the first line has the message.
        raise Error(f"!38000 function {self.definition.handler}: {error}")

    def _batch(self, columns: Sequence[pa.Array]) -> _Batch:
        """Return a batch with its results: the last one of this thread if it is the same again, in another form."""
        last, data = self._last.get(threading.get_ident()), _serialized(columns)
        if last is None or last.data != data:
            last = _Batch(data, columns, *self._computed(data, len(columns[0])))
            if len(self._last) >= MOST_BATCHES:
                self._last.clear()
            self._last[threading.get_ident()] = last
        last.place = 0
        return last

    def _row_again(self, columns: Sequence[pa.Array]) -> _Batch | None:
        """Return a row of a batch that has failed, if it is the next one; None if it is not.

        In a TRY DuckDB calls again with each row of such a batch, in order, in the same thread.
        """
        last = self._last.get(threading.get_ident())
        if last is None or len(columns[0]) != 1 or last.place >= len(last.errors):
            return None
        place = last.place
        if not all(kept.slice(place, 1).equals(given) for kept, given in zip(last.columns, columns, strict=True)):
            return None
        last.place += 1
        return _Batch(b"", columns, last.results.slice(place, 1), last.errors[place : place + 1])

    def check(self) -> None:
        """Load the code in a process that serves nothing else. Raises Error, Failure."""
        limits = self.limits()
        if limits is None:
            raise Failure(DISABLED)
        self._started(limits).end()

    def _computed(self, data: bytes, rows: int) -> tuple[pa.Array, list[str | None]]:
        limits = self.limits()
        if limits is None:
            raise Failure(DISABLED)
        with self._room:
            process = _taken(self.definition.name, limits)
            if process is None:
                try:
                    process = self._started(limits)
                except Error:  # the code has been loaded before
                    raise Failure(UNUSABLE) from None
            found = self._read(process.ask(data), rows)
            if found is None:
                process.end()
                raise Failure(UNUSABLE)
            _put(process)
            return found

    def _started(self, limits: Limits) -> Process:
        assert self.result is not None
        return Process(self.definition, self.result, limits)

    def _read(self, answer: bytes, rows: int) -> tuple[pa.Array, list[str | None]] | None:
        """Return the results of an answer; None if it is not what a process of ours sends."""
        try:
            batch = pa.ipc.open_stream(answer).read_next_batch()
            batch.validate(full=True)
        except (pa.ArrowException, ValueError, StopIteration):
            return None
        types = [self.result, pa.string()][: max(batch.num_columns, 1)]
        if batch.num_rows != rows or batch.schema.types != types:
            return None
        return batch.column(0), batch.column(1).to_pylist() if batch.num_columns == 2 else [None] * rows


def _serialized(arrays: Sequence[pa.Array]) -> bytes:
    """Return columns as an IPC stream of one batch."""
    batch = pa.RecordBatch.from_arrays(arrays, names=[str(number) for number in range(len(arrays))])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _one(column: Any) -> pa.Array:
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


class _Kept:
    """The state that this process keeps between tasks of Spark; each task brings a new copy of this module."""

    def __init__(self) -> None:
        self.calls: dict[str, Any] = {}
        self.idle: list[Any] = []  # processes, the last used one last
        self.lock = threading.Lock()


def _kept() -> Any:
    kept: Any = sys.modules.setdefault("_sparkwave_python", types.ModuleType("_sparkwave_python"))
    return vars(kept).setdefault("kept", _Kept())


def _taken(name: str, limits: Limits) -> Any:
    """Return an idle process of a function with these limits; None without one."""
    kept, unfit = _kept(), []
    try:
        with kept.lock:
            for process in reversed(kept.idle):
                if process.name == name:
                    kept.idle.remove(process)
                    if (process.limits.batch_s, process.limits.memory_bytes) == (limits.batch_s, limits.memory_bytes):
                        return process
                    unfit.append(process)
    finally:
        for process in unfit:
            process.end()
    return None


def _put(process: Any) -> None:
    """Keep a process for the next call of its function. Ends the one that has waited longest, if there are too many."""
    kept = _kept()
    with kept.lock:
        kept.idle.append(process)
        last = kept.idle.pop(0) if len(kept.idle) > MOST_IDLE else None
    if last is not None:
        last.end()


def end_idle(names: Container[str]) -> None:
    """End the idle processes of functions of some names."""
    kept = _kept()
    with kept.lock:
        gone = [process for process in kept.idle if process.name in names]
        kept.idle = [process for process in kept.idle if process not in gone]
    for process in gone:
        process.end()


def find_result(database: Any, calls: Calls) -> None:
    """Let a database say which type of Arrow the results have."""
    query = f"SELECT CAST(NULL AS {calls.definition.result})"
    calls.result = database.cursor().execute(query).to_arrow_table().schema.field(0).type


def define(database: Any, calls: Calls) -> None:
    """Define a function in its three forms in a database, for all its connections, unless it is defined."""
    import duckdb

    definition = calls.definition
    find_result(database, calls)

    place = inspect.Parameter.POSITIONAL_ONLY
    arguments = [*definition.arguments, *(["UBIGINT"] if definition.arguments else [])]
    names = [inspect.Parameter(f"a{number}", place) for number in range(len(arguments))]
    for end, of, type_ in zip(
        FORMS,
        (calls.raising, calls.or_null, calls.has_failed),
        (definition.result, definition.result, "BOOLEAN"),
        strict=True,
    ):

        def call(*columns: Any, of: Callable[..., pa.Array] = of) -> pa.Array:
            return of(*columns[:-1])  # the last has no meaning (`planner.functions.python_call`)

        call.__signature__ = inspect.Signature(names)  # type: ignore[attr-defined]
        try:
            database.create_function(
                f"{definition.name}{end}", call, arguments, type_, type="arrow", null_handling="special"
            )
        except (duckdb.NotImplementedException, duckdb.CatalogException) as error:
            if "already" not in str(error):
                raise


def define_in_task(definitions: Iterable[Definition], limits: Limits, database: Any) -> None:
    """Define functions in the database of a task, which may be that of an earlier task."""
    kept = _kept()
    for definition in definitions:
        calls = kept.calls.get(definition.name)
        if calls is None:
            calls = kept.calls[definition.name] = Calls(definition, lambda: limits)
        else:
            calls.limits = lambda: limits
        define(database, calls)
