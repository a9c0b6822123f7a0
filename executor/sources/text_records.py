"""Reads a number of records of a text file from a position on, without looking at them one by one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.executor.sources.file_storage import File

_LEAST_BYTES, _MOST_BYTES, _LONGEST_RECORD = 1 << 16, 1 << 24, 1 << 28
_BYTES_A_ROW = 200
_NEWLINE, _RETURN, _QUOTE = 10, 13, 34
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Records:
    """Whole records of a file: `data` has all of them, each from one of `starts` to the next.

    `is_blank` marks empty lines. The next record is at `position` of the file; with `is_last` there is none.
    """

    data: bytes
    starts: npt.NDArray[np.int64]
    is_blank: npt.NDArray[np.bool_]
    position: int
    is_last: bool


def read_records(file: File, position: int, rows: int, is_quoted: bool) -> Records:
    """Return at most `rows` records from a position on, fewer when they are long.

    A newline ends a record, except between double quotes in `is_quoted` text. Raises OSError, Error 54000 for a record
    of 256 MiB, 55000 for a file that has become shorter.
    """
    with file.open("rb") as opened:
        size = opened.seek(0, 2)
        if size < position:
            message = f"the file has {size} bytes, of which {position} have been read"
            raise Error(message, errors.NOT_IN_PREREQUISITE_STATE)
        length = min(max(rows * _BYTES_A_ROW, _LEAST_BYTES), _MOST_BYTES)
        while True:
            opened.seek(position)
            data = opened.read(length)
            ends = _ends(data, is_quoted, is_all=position + len(data) >= size)
            if len(ends) or not data:
                break
            if length > _LONGEST_RECORD:
                message = f"the record at byte {position} is longer than {_LONGEST_RECORD >> 20} MiB"
                raise Error(message, errors.PROGRAM_LIMIT_EXCEEDED)
            length *= 4
    ends = ends[:rows]
    used = int(ends[-1]) if len(ends) else 0
    starts = np.concatenate((np.zeros(1, np.int64), ends[:-1])) if len(ends) else ends
    return Records(data[:used], starts, _blank(data, starts, ends), position + used, position + used >= size)


def first_record(file: File) -> tuple[bytes, int]:
    """Return the first record of quoted text without its newline, and the position of the second.

    Raises as `read_records`.
    """
    records = read_records(file, 0, 1, is_quoted=True)
    return records.data.rstrip(b"\r\n").removeprefix(_BYTE_ORDER_MARK), records.position


def line_at(file: File, position: int) -> int:
    """Return the number of the line at a position of a file, from 1."""
    count = 1
    with file.open("rb") as opened:
        while position > 0:
            data = opened.read(min(position, _MOST_BYTES))
            if not data:
                break
            count += data.count(b"\n")
            position -= len(data)
    return count


def _ends(data: bytes, is_quoted: bool, is_all: bool) -> npt.NDArray[np.int64]:
    """Return the ends of the complete records, with their newlines."""
    buffer = np.frombuffer(data, np.uint8)
    newlines = np.flatnonzero(buffer == _NEWLINE)
    if is_quoted:
        # A doubled quote inside quotes counts twice, so that an odd number of quotes before a newline means that it
        # is quoted.
        quotes_before = np.searchsorted(np.flatnonzero(buffer == _QUOTE), newlines)
        newlines = newlines[quotes_before % 2 == 0]
    ends = newlines.astype(np.int64) + 1
    if is_all and data and (not len(ends) or ends[-1] < len(data)):
        ends = np.append(ends, len(data))
    return ends


def _blank(data: bytes, starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    first = np.frombuffer(data, np.uint8)[starts]
    return (first == _NEWLINE) | ((first == _RETURN) & (ends - starts <= 2))
