"""Runs statements by DuckDB's C interface, which releases Python's lock once a call.

DuckDB's Python client takes the lock again after each task of a statement, to look for signals. A statement of an epoch
has dozens of tasks of some microseconds, so two threads with such statements get no more done than one. Measured on two
cores, a statement that takes 0.25 ms alone takes 0.53 ms beside another thread's; by the C interface 0.20 and 0.21 ms.

The client does not give the handle that the C interface needs, which is the address of its `duckdb::Connection`. So the
address is read from the client's object, whose layout is that of DuckDB 1.5.5. It is used only if what is there proves
the layout: two objects that begin with their own address. With another version, and where a process cannot read its
memory as a file, the client runs the statements.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

import _duckdb
import duckdb
import numpy

from sparkwave.catalog.lake.translation import Cursor, error_named

_VERSION = "1.5.5"
# Bytes from the start of a Python object to the address of its C++ object (pybind11, `instance::simple_value_holder`),
# and from there to the address of the connection (`DuckDBPyConnection::con`, behind its own and the database's
# shared pointers).
_VALUE, _CONNECTION = 16, 32
# The classes of errors by `duckdb_error_type`; others are a `duckdb.Error`.
_ERRORS = {
    1: "OutOfRangeException", 2: "ConversionException", 5: "TypeMismatchException", 9: "SerializationException",
    10: "TransactionException", 11: "NotImplementedException", 13: "CatalogException", 14: "ParserException",
    18: "ConstraintException", 21: "ConnectionException", 22: "SyntaxException", 24: "BinderException",
    28: "IOException", 29: "InterruptException", 30: "FatalException", 31: "InternalException",
    32: "InvalidInputException", 33: "OutOfMemoryException", 34: "PermissionException", 37: "DependencyException",
    38: "HTTPException", 41: "SequenceException",
}  # fmt: skip
# Types of columns by `duckdb_type`.
_TYPES = {1: "?", 2: "i1", 3: "i2", 4: "i4", 5: "i8", 6: "u1", 7: "u2", 8: "u4", 9: "u8", 11: "f8"}
_Column = numpy.ndarray[Any, Any]
_Columns = dict[str, _Column]


class _Result(ctypes.Structure):
    """`duckdb_result`."""

    _fields_ = (*((f"deprecated_{number}", ctypes.c_void_p) for number in range(5)), ("internal", ctypes.c_void_p))


class Direct:
    """The result of a statement: the part of a cursor's interface that its callers use, for columns of numbers."""

    def __init__(self, columns: _Columns) -> None:
        self._columns = columns

    def fetchnumpy(self) -> _Columns:
        """Return the columns, each of n values; NULLs are masked, if there are any."""
        return self._columns

    def fetchall(self) -> list[tuple[Any, ...]]:
        return list(zip(*(column.tolist() for column in self._columns.values()), strict=True))

    def fetchone(self) -> tuple[Any, ...] | None:
        return next(iter(self.fetchall()), None)


def execute(cursor: Cursor, statements: str) -> Cursor | Direct:
    """Run statements without parameters one after the other. Returns the last one's result. Raises duckdb.Error.

    The result must have columns of numbers; KeyError for others.
    """
    connection = _connection(cursor)
    if connection is None:
        return cursor.execute(statements)
    library, result = _library(), _Result()
    try:
        if library.duckdb_query(connection, statements.encode(), ctypes.byref(result)):
            text = ctypes.string_at(library.duckdb_result_error(ctypes.byref(result))).decode(errors="replace")
            kind = library.duckdb_result_error_type(ctypes.byref(result))
            raise error_named(_ERRORS.get(kind, "Error"), text)
        return Direct(_columns(library, result))
    finally:
        library.duckdb_destroy_result(ctypes.byref(result))


def is_direct(cursor: Cursor) -> bool:
    """Return whether `execute` uses the C interface for a cursor."""
    return _connection(cursor) is not None


def _columns(library: ctypes.CDLL, result: _Result) -> _Columns:
    count = library.duckdb_column_count(ctypes.byref(result))
    names = [ctypes.string_at(library.duckdb_column_name(ctypes.byref(result), n)).decode() for n in range(count)]
    types = [numpy.dtype(_TYPES[library.duckdb_column_type(ctypes.byref(result), n)]) for n in range(count)]
    parts: list[list[_Column]] = [[numpy.empty(0, type_)] for type_ in types]
    for chunk in _chunks(library, result):
        rows = library.duckdb_data_chunk_get_size(chunk)
        for number, type_ in enumerate(types):
            parts[number].append(_values(library, library.duckdb_data_chunk_get_vector(chunk, number), rows, type_))
    return {name: _joined(part) for name, part in zip(names, parts, strict=True)}


def _joined(parts: list[_Column]) -> _Column:
    if any(isinstance(part, numpy.ma.MaskedArray) for part in parts):
        return numpy.ma.concatenate(parts)  # takes longer
    return numpy.concatenate(parts)


def _values(library: ctypes.CDLL, vector: int, rows: int, type_: numpy.dtype[Any]) -> _Column:
    """Return a copy of the values of a vector; NULLs are masked."""
    values = numpy.frombuffer(ctypes.string_at(library.duckdb_vector_get_data(vector), rows * type_.itemsize), type_)
    validity = library.duckdb_vector_get_validity(vector)
    if not validity:
        return values
    bits = numpy.frombuffer(ctypes.string_at(validity, (rows + 63) // 64 * 8), "u1")
    return numpy.ma.masked_array(values, numpy.unpackbits(bits, count=rows, bitorder="little") == 0)


def _chunks(library: ctypes.CDLL, result: _Result) -> Iterator[ctypes.c_void_p]:
    while address := library.duckdb_fetch_chunk(result):
        chunk = ctypes.c_void_p(address)
        try:
            yield chunk
        finally:
            library.duckdb_destroy_data_chunk(ctypes.byref(chunk))


@cache
def _library() -> ctypes.CDLL:
    """Return the C interface in the library of the Python client, https://duckdb.org/docs/stable/clients/c/api."""
    library, address, number = ctypes.CDLL(_duckdb.__file__), ctypes.c_void_p, ctypes.c_uint64
    result = ctypes.POINTER(_Result)
    functions: tuple[tuple[Any, ...], ...] = (
        ("query", ctypes.c_int, address, ctypes.c_char_p, result),
        ("result_error", address, result),
        ("result_error_type", ctypes.c_int, result),
        ("destroy_result", None, result),
        ("column_count", number, result),
        ("column_name", address, result, number),
        ("column_type", ctypes.c_int, result, number),
        ("fetch_chunk", address, _Result),
        ("data_chunk_get_size", number, address),
        ("data_chunk_get_vector", address, address, number),
        ("vector_get_data", address, address),
        ("vector_get_validity", address, address),
        ("destroy_data_chunk", None, ctypes.POINTER(address)),
    )
    for name, returned, *taken in functions:
        function = getattr(library, f"duckdb_{name}")
        function.restype, function.argtypes = returned, taken
    return library


# The addresses of the C++ objects of cursors whose layout is proven; None for others.
_OBJECTS: WeakKeyDictionary[Cursor, int | None] = WeakKeyDictionary()


def _connection(cursor: Cursor) -> int | None:
    """Return the address of a cursor's connection; None if it is unknown, or the cursor is closed."""
    if cursor not in _OBJECTS:
        _OBJECTS[cursor] = _object(cursor) if duckdb.__version__ == _VERSION else None
    known = _OBJECTS[cursor]
    return ctypes.c_uint64.from_address(known + _CONNECTION).value or None if known is not None else None


def _object(cursor: Cursor) -> int | None:
    """Return the address of a cursor's C++ object, if what its connection refers to is at the expected places.

    The object and the connection's `ClientContext` derive from `std::enable_shared_from_this`, so they begin with their
    own address.
    """
    with suppress(OSError, OverflowError, struct.error):
        memory = os.open("/proc/self/mem", os.O_RDONLY)  # reading it fails where reading memory would crash
        try:
            value = _word(memory, id(cursor) + _VALUE)
            context = _word(memory, _word(memory, value + _CONNECTION))
            if _word(memory, value) == value and _word(memory, context) == context:
                return value
        finally:
            os.close(memory)
    return None


def _word(memory: int, address: int) -> int:
    (word,) = struct.unpack("=Q", os.pread(memory, 8, address))
    return int(word)
