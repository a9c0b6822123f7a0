"""The program of a process that runs the code of one user's function in Python, apart from the server.

It imports nothing of this package, because its text is handed to a Python of its own, also on the nodes of Spark. Its
standard input has messages, each after its length: first the `Definition` as JSON, then batches as Arrow's IPC streams.
Each is answered on the standard output by a letter and a text or an IPC stream:

- `R`: ready; `E`: the code cannot be loaded, with the message;
- `O`: a batch with the results, and with the messages of the rows for which the code has failed, if there are any;
- `M`: it needs too much memory.

Before the user's code runs, the process gives up what it does not need: it cannot open files or connections, start
processes or send them signals, or get more memory than the limit.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import ctypes
import datetime
import decimal
import errno
import importlib
import inspect
import json
import os
import resource
import signal
import struct
import sys
from collections.abc import Callable, Sequence
from typing import Any

Convert = Callable[[Any], Any]

# Modules that compute, and whose results depend on nothing but their arguments.
MODULES = frozenset((
    "__future__", "base64", "binascii", "bisect", "calendar", "cmath", "collections", "copy",
    "dataclasses", "datetime", "decimal", "difflib", "enum", "fractions", "functools", "hashlib",
    "heapq", "hmac", "html", "ipaddress", "itertools", "json", "math", "numbers", "operator", "re",
    "statistics", "string", "struct", "textwrap", "typing", "unicodedata", "urllib", "zlib",
))  # fmt: skip
_NO_BUILTINS = ("breakpoint", "exit", "help", "input", "open", "quit")
_NOBODY = 65534
# numeric without a precision has this one; users do not know its zeros at the end.
_UNCONSTRAINED = 38
_EXACT = decimal.Context(prec=76, rounding=decimal.ROUND_HALF_UP)
_LONGEST_MESSAGE = 1000
# A process whose starter is gone ends by itself after so many times the limit.
_PATIENCE = 3.0


def main() -> None:
    requests, answers = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    given = json.loads(_read(requests) or b"{}")
    if given["path"] not in sys.path:
        sys.path.append(given["path"])
    try:
        serve = _prepared(given)
    except MemoryError:
        _answer(answers, b"M", b"")
        return
    except BaseException as error:
        _answer(answers, b"E", _message(error).encode())
        return
    _answer(answers, b"R", b"")
    while (batch := _read(requests)) is not None:
        _alarm(given["limit_s"])
        try:
            letter, answer = b"O", serve(batch)
        except MemoryError:
            letter, answer = b"M", b""
        _alarm(0)
        _answer(answers, letter, answer)
        if letter == b"M":
            return


def _prepared(given: dict[str, Any]) -> Callable[[bytes], bytes]:
    """Run the user's code, and return the function that answers a batch. Raises what the code raises."""
    tree = ast.parse(given["code"], "<function>")
    _import_ahead(tree)
    sys.meta_path.insert(0, _Without())
    import pyarrow as pa
    import pyarrow.compute  # which Array.cast imports

    pa.set_cpu_count(1)
    for type_ in (pa.timestamp("us", "UTC"), pa.month_day_nano_interval(), pa.decimal128(38, 10)):
        pa.array([0 if pa.types.is_timestamp(type_) else None], type_).to_pylist()  # imports what it needs
    result = pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(given["result"]))).field(0).type
    _lock_up(given["memory_bytes"])
    _alarm(given["limit_s"] / _PATIENCE)  # the starter waits longer, as long as Python may take to start
    names: dict[str, Any] = {"__builtins__": _builtins(), "__name__": "function"}
    exec(compile(tree, "<function>", "exec"), names)
    if given["gives"] == "aggregate":
        function = _aggregate(names, len(given["arguments"]))
    else:
        function = _defined(names, given["name"], len(given["arguments"]))
    if given["gives"] == "rows":
        function = _listing(function)
    _alarm(0)
    return _Server(function, given["arguments"], given["is_strict"], result, given["result_kind"])


def _defined(names: dict[str, Any], name: str, arguments: int) -> Callable[..., Any]:
    """Return a function of the code that can be called with so many arguments. Raises NameError, TypeError."""
    function = names.get(name)
    if not callable(function):
        raise NameError(f"the code does not define a function {name}")
    try:
        inspect.signature(function).bind(*[None] * arguments)
    except TypeError as error:
        raise TypeError(f"{name} cannot be called with {arguments} arguments: {error}") from None
    return function


def _listing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that gives all that a function yields, as a list."""

    def listed(*arguments: Any) -> list[Any]:
        rows = function(*arguments)
        return [] if rows is None else list(rows)

    return listed


def _aggregate(names: dict[str, Any], arguments: int) -> Callable[..., Any]:
    """Return the function of the arrays of a group's values, which calls the code's `accumulate` with each row."""
    create = _defined(names, "create_state", 0)
    accumulate = _defined(names, "accumulate", arguments + 1)
    finish = _defined(names, "finish", 1)

    def aggregated(*columns: list[Any] | None) -> Any:
        state = create()
        for row in zip(*(column or () for column in columns), strict=True):
            state = accumulate(state, *row)
        return finish(state)

    return aggregated


class _Without:
    """Hides pandas, which pyarrow can do without, and whose import takes most of the time of a start."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.partition(".")[0] == "pandas":
            raise ModuleNotFoundError(name)


class _Server:
    """Answers batches by calling a function with each row. `kinds` are "jsonb" for jsonb, else empty."""

    def __init__(
        self, function: Callable[..., Any], kinds: Sequence[str], is_strict: bool, result: Any, result_kind: str
    ) -> None:
        self._function, self._kinds, self._is_strict = function, kinds, is_strict
        self._result = result
        self._write = _writer(result, result_kind)

    def __call__(self, data: bytes) -> bytes:
        import pyarrow as pa

        results, errors = self._computed(pa.ipc.open_stream(data).read_next_batch())
        columns = {"result": results} | ({"error": pa.array(errors, pa.string())} if any(errors) else {})
        made = pa.RecordBatch.from_pydict(columns)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, made.schema) as writer:
            writer.write_batch(made)
        answer: bytes = sink.getvalue().to_pybytes()
        return answer

    def _computed(self, batch: Any) -> tuple[Any, list[str | None]]:
        """Return the results of rows as an array, and for each the message where the function has failed."""
        import pyarrow as pa

        values: list[Any] = []
        errors: list[str | None] = []
        try:
            columns = [_values(batch.column(n), kind) for n, kind in enumerate(self._kinds)]
            for row in zip(*columns, strict=True) if columns else [()] * batch.num_rows:
                value, error = self._of_row(row)
                values.append(value)
                errors.append(error)
            return pa.array(values, self._result), errors
        except MemoryError:
            raise
        except Exception as error:  # a value that Python or Arrow does not have
            if batch.num_rows == 1:
                return pa.nulls(1, self._result), [_message(error)]
        parts = [self._computed(batch.slice(n, 1)) for n in range(batch.num_rows)]
        return pa.concat_arrays([array for array, _ in parts]), [found for _, (found,) in parts]

    def _of_row(self, row: tuple[Any, ...]) -> tuple[Any, str | None]:
        if self._is_strict and None in row:
            return None, None
        try:
            value = self._function(*row)
            return (None if value is None else self._write(value)), None
        except MemoryError:
            raise
        except BaseException as error:
            return None, _message(error)


def _values(column: Any, kind: str) -> list[Any]:
    """Return the Python values of a column."""
    values: list[Any] = column.cast(_in_utc(column.type)).to_pylist()
    if kind == "jsonb":
        return [None if value is None else json.loads(value) for value in values]
    read = _reader(column.type)
    return values if read is None else [None if value is None else read(value) for value in values]


def _in_utc(type_: Any) -> Any:
    """Return a type with UTC as the zone of its times."""
    import pyarrow as pa

    if pa.types.is_timestamp(type_) and type_.tz is not None:
        return pa.timestamp("us", "UTC")
    if pa.types.is_list(type_):
        return pa.list_(type_.value_field.with_type(_in_utc(type_.value_type)))
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(_in_utc(field.type)) for field in type_])
    return type_


def _reader(type_: Any) -> Convert | None:
    """Return the function from Arrow's value to the user's; None where they are the same."""
    import pyarrow as pa

    if pa.types.is_decimal(type_) and type_.precision == _UNCONSTRAINED:
        return _shortest
    if pa.types.is_list(type_):
        read = _reader(type_.value_type)
        return None if read is None else lambda values: [None if v is None else read(v) for v in values]
    if pa.types.is_struct(type_):
        reads = {field.name: found for field in type_ if (found := _reader(field.type)) is not None}
        if reads:
            return lambda row: {
                name: reads[name](value) if name in reads and value is not None else value
                for name, value in row.items()
            }
    return None


def _shortest(value: decimal.Decimal) -> decimal.Decimal:
    """Return a number without zeros at its end."""
    short = _EXACT.normalize(value) if value else decimal.Decimal(0)
    exponent = short.as_tuple().exponent
    return _EXACT.quantize(short, decimal.Decimal(1)) if isinstance(exponent, int) and exponent > 0 else short


def _writer(type_: Any, kind: str) -> Convert:
    """Return the function from a user's value to Arrow's, which raises TypeError or ValueError for an unfit one."""
    import pyarrow as pa

    if kind == "jsonb":
        return _json
    if pa.types.is_list(type_):
        element = _or_none(_writer(type_.value_type, ""))
        return lambda values: [element(value) for value in _wanted(values, list, tuple)]
    if pa.types.is_struct(type_):
        return _row_writer({field.name: _or_none(_writer(field.type, "")) for field in type_})
    if pa.types.is_decimal(type_):
        places = decimal.Decimal(1).scaleb(-type_.scale)
        return lambda value: _exact(_wanted(value, int, float, decimal.Decimal), places)
    if pa.types.is_boolean(type_):
        return lambda value: _wanted(value, bool)
    if pa.types.is_integer(type_):
        return lambda value: _wanted(value, int)
    if pa.types.is_floating(type_):
        return lambda value: float(_wanted(value, int, float, decimal.Decimal))
    if pa.types.is_string(type_):
        return lambda value: _wanted(value, str)
    if pa.types.is_binary(type_):
        return lambda value: bytes(_wanted(value, bytes, bytearray))
    if pa.types.is_date(type_):
        return lambda value: _wanted(value, datetime.date)
    if pa.types.is_timestamp(type_):
        return lambda value: _wanted(value, datetime.datetime)
    if pa.types.is_interval(type_):
        return lambda value: _wanted(value, datetime.timedelta, tuple)
    return lambda value: value


def _or_none(write: Convert) -> Convert:
    return lambda value: None if value is None else write(value)


def _row_writer(fields: dict[str, Convert]) -> Convert:
    def write(value: Any) -> dict[str, Any]:
        if isinstance(value, tuple | list):
            if len(value) != len(fields):
                raise ValueError(f"a row of {len(value)} values was returned for {len(fields)} fields")
            value = dict(zip(fields, value, strict=True))
        elif not isinstance(value, dict) and all(hasattr(value, name) for name in fields):
            value = {name: getattr(value, name) for name in fields}
        unknown = _wanted(value, dict).keys() - fields.keys()
        if unknown:
            raise ValueError(f"the returned row has a field {min(map(str, unknown))} too many")
        return {name: field(value.get(name)) for name, field in fields.items()}

    return write


def _wanted(value: Any, *kinds: type) -> Any:
    """Return a value of one of these kinds. Raises TypeError for any other; a bool is no number."""
    if isinstance(value, kinds) and (not isinstance(value, bool) or bool in kinds):
        return value
    names = " or ".join(kind.__name__ for kind in kinds)
    raise TypeError(f"the function returned a value of type {type(value).__name__}, not {names}")


def _exact(value: Any, places: decimal.Decimal) -> decimal.Decimal:
    number = decimal.Decimal(repr(value)) if isinstance(value, float) else decimal.Decimal(value)
    if not number.is_finite():
        raise ValueError(f"{number} is no value of type numeric")
    return _EXACT.quantize(number, places)


def _json(value: Any) -> str:
    return json.dumps(value, allow_nan=False, ensure_ascii=False, default=_json_number)


def _json_number(value: Any) -> Any:
    if isinstance(value, decimal.Decimal):
        return float(value)
    raise TypeError(f"a value of type {type(value).__name__} is no part of a JSON document")


def _builtins() -> dict[str, Any]:
    """Return Python's built-in functions for a user's code."""

    def import_allowed(
        name: str, names: Any = None, here: Any = None, wanted: Sequence[str] | None = (), level: int = 0
    ) -> Any:
        if level or name.partition(".")[0] not in MODULES:
            raise ImportError(f"module {name} cannot be imported in a function")
        return __import__(name, names, here, wanted or (), level)

    found = {name: value for name, value in vars(builtins).items() if name not in _NO_BUILTINS}
    return found | {"__import__": import_allowed}


def _import_ahead(tree: ast.AST) -> None:
    """Import the modules that a user's code names, as long as their files can be opened."""
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            if name.partition(".")[0] in MODULES:
                with contextlib.suppress(ImportError):
                    importlib.import_module(name)


def _lock_up(memory_bytes: int) -> None:
    """Give up what the user's code must not have. Files that are open stay so."""
    if os.geteuid() == 0:
        with contextlib.suppress(OSError):  # in a container that may not change users
            os.setgroups([])
            os.setgid(_NOBODY)
            os.setuid(_NOBODY)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
        with open("/proc/self/statm") as pages:
            used = int(pages.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + memory_bytes, used + memory_bytes))
    for limit in (resource.RLIMIT_CORE, resource.RLIMIT_FSIZE, resource.RLIMIT_NPROC, resource.RLIMIT_NOFILE):
        resource.setrlimit(limit, (0, 0))
    _allow_calls()


# The system calls that computing needs, by machine: Linux' number of its architecture, and those of read, write, close,
# fstat, poll or ppoll, lseek, mmap, mprotect, munmap, mremap, brk, madvise, rt_sigaction, rt_sigprocmask, rt_sigreturn,
# sigaltstack, restart_syscall, sched_yield, sched_getaffinity, getcpu, nanosleep, clock_nanosleep, clock_gettime,
# gettimeofday, times, setitimer, getrusage, getpid, gettid, uname, sysinfo, futex, getrandom, membarrier, rseq, exit,
# exit_group.
_CALLS = {
    "x86_64": (0xC000003E, (
        0, 1, 3, 5, 7, 8, 9, 10, 11, 25, 12, 28, 13, 14, 15, 131, 219, 24, 204, 309, 35, 230, 228, 96, 100, 38, 98, 39,
        186, 63, 99, 202, 318, 324, 334, 60, 231,
    )),
    "aarch64": (0xC00000B7, (
        63, 64, 57, 80, 73, 62, 222, 226, 215, 216, 214, 233, 134, 135, 139, 132, 128, 124, 123, 168, 101, 115, 113,
        169, 153, 103, 165, 172, 178, 160, 179, 98, 278, 283, 293, 93, 94,
    )),
}  # fmt: skip
_LOAD, _IS_EQUAL, _RETURN = 0x20, 0x15, 0x06  # of Linux' filters: of 4 bytes at a place, against a constant
_REFUSE, _ALLOW = 0x00050000 | errno.EPERM, 0x7FFF0000


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))


def _allow_calls() -> None:
    """Let Linux refuse all system calls but those of computing, from now on, where it can."""
    if sys.platform != "linux" or os.uname().machine not in _CALLS:
        return
    architecture, numbers = _CALLS[os.uname().machine]
    lines = [(_LOAD, 0, 0, 4), (_IS_EQUAL, 1, 0, architecture), (_RETURN, 0, 0, _REFUSE), (_LOAD, 0, 0, 0)]
    for number in numbers:
        lines += [(_IS_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ALLOW)]
    lines.append((_RETURN, 0, 0, _REFUSE))
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in lines))
    made = _Filter(len(lines), ctypes.cast(code, ctypes.c_void_p))
    ctypes.CDLL(None).prctl(22, 2, ctypes.byref(made), 0, 0)  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER


def _alarm(limit_s: float) -> None:
    """Have the system end this process when its starter does not."""
    signal.setitimer(signal.ITIMER_REAL, limit_s * _PATIENCE)


def _message(error: BaseException) -> str:
    """Return an exception's class, text and line in the user's code, in one line."""
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    line, place = None, error.__traceback__
    while place is not None:
        if place.tb_frame.f_code.co_filename == "<function>":
            line = place.tb_lineno
        place = place.tb_next
    if isinstance(error, SyntaxError):
        text, line = f"SyntaxError: {error.msg}", error.lineno
    return " ".join(text.split())[:_LONGEST_MESSAGE] + (f" (line {line})" if line is not None else "")


def _read(number: int) -> bytes | None:
    """Return the next message; None at the end."""
    size = _read_bytes(number, 4)
    return None if size is None else _read_bytes(number, int.from_bytes(size, "big"))


def _read_bytes(number: int, size: int) -> bytes | None:
    found = bytearray()
    while len(found) < size:
        part = os.read(number, min(size - len(found), 1 << 20))
        if not part:
            return None
        found += part
    return bytes(found)


def _answer(number: int, letter: bytes, content: bytes) -> None:
    left = memoryview(letter + len(content).to_bytes(4, "big") + content)
    while left:
        left = left[os.write(number, left) :]


if __name__ == "__main__":
    main()
