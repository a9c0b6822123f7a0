"""COPY data in and out. What is expected agrees with PostgreSQL 15.18."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkwave.catalog.errors import Error
from sparkwave.catalog.types import INTEGER, TEXT
from sparkwave.server.wire import copy_text
from sparkwave.server.wire.copy_text import CopyParser, copy_rows, csv_copy, text_copy
from sparkwave.server.wire.result import CopyOptions, ResultColumn

COLUMNS = (ResultColumn("a", TEXT), ResultColumn("b", TEXT))
Rows = list[tuple[str | None, ...]]


def read(data: bytes, options: CopyOptions, columns: tuple[str, ...] = ("a", "b"), step: int = 1 << 20) -> Rows:
    parser = CopyParser(columns, options)
    pieces = (data[at : at + step] for at in range(0, len(data), step))
    batches = [batch for piece in pieces for batch in parser.feed(piece)]
    batches += parser.finish()
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


def write(rows: Rows, options: CopyOptions) -> bytes:
    batch = pa.record_batch([pa.array(values, pa.string()) for values in zip(*rows, strict=True)], names=["a", "b"])
    return b"".join(bytes(data)[5:] for row in range(len(rows)) for _, data in [_one(batch.slice(row, 1), options)])


def _one(batch: pa.RecordBatch, options: CopyOptions) -> tuple[int, bytes | memoryview]:
    (only,) = copy_rows([batch], COLUMNS, options)
    return only


CASES = [
    (text_copy(), b"1\t\\N\n\t2\n", [("1", None), ("", "2")]),
    (text_copy(), b"a\\tb\\n\\\\\tc\\x41\\101\\q\n", [("a\tb\n\\", "cAAq")]),
    (text_copy(), b"a\\\tb\tc\\\nd\n", [("a\tb", "c\nd")]),
    (text_copy(), b"\\\\N\tx\\\\\n", [("\\N", "x\\")]),
    (text_copy(), b"1\t2\r\n3\t4\r\n", [("1", "2"), ("3", "4")]),
    (text_copy(), b"1\t2\n\\.\nrest\n", [("1", "2")]),
    (text_copy(), b"1\t2", [("1", "2")]),
    (text_copy(), b'"a\t"b\n', [('"a', '"b')]),
    (text_copy(delimiter="|", null=""), b"|x\n\\||\\N\n", [(None, "x"), ("|", "N")]),
    (text_copy(header=True), b"a\tb\n1\t2\n", [("1", "2")]),
    (csv_copy(), b'1,\n"",2\n', [("1", None), ("", "2")]),
    (csv_copy(), b'"a,""b""\nc",d\r\ne,"f\r\ng"\r\n', [('a,"b"\nc', "d"), ("e", "f\r\ng")]),
    (csv_copy(), b'a"b,c"d,"e"f\n', [("ab,cd", "ef")]),
    (csv_copy(), b'x,"y",', None),
    (csv_copy(), b'"x",', [("x", None)]),
    (csv_copy(), b'1,2\n\\.\n"', [("1", "2")]),
    (csv_copy(), b'1,"\n\\.\n"\n', [("1", "\n\\.\n")]),
    (csv_copy(), b" a ,\\N\n", [(" a ", "\\N")]),
    (csv_copy(null="NA"), b'NA,"NA"\n,\n', [(None, "NA"), ("", "")]),
    (csv_copy(escape="\\"), b'"a\\"b\\\\c\\d",e\n', [('a"b\\c\\d', "e")]),
    (csv_copy(quote="'", delimiter=";"), b"'it''s;',x\"\n", None),
    (csv_copy(quote="'", delimiter=";"), b"'it''s;';x\"\n", [("it's;", 'x"')]),
    (csv_copy(header=True), b'"a\n1",b\n1,2\n', [("1", "2")]),
    (csv_copy(), b"", []),
]


@pytest.mark.parametrize("step", [1, 3, 1 << 20])
@pytest.mark.parametrize(("options", "data", "rows"), CASES)
def test_rows_whatever_the_pieces(
    monkeypatch: pytest.MonkeyPatch, options: CopyOptions, data: bytes, rows: Rows | None, step: int
) -> None:
    """`None` stands for a row with a wrong number of fields."""
    monkeypatch.setattr(copy_text, "PARSE_AT", step)
    if rows is None:
        with pytest.raises(Error, match="column"):
            read(data, options, step=step)
    else:
        assert read(data, options, step=step) == rows


def test_an_empty_line_is_a_row_of_one_column() -> None:
    assert read(b"x\n\n", text_copy(), ("a",)) == [("x",), ("",)]
    assert read(b'x\n\n""\n', csv_copy(), ("a",)) == [("x",), (None,), ("",)]


@pytest.mark.parametrize(
    ("options", "data", "message", "line"),
    [
        (text_copy(), b"1\t2\n3\n", 'missing data for column "b"', 'line 2: "3"'),
        (text_copy(), b"1\t2\n\n", 'missing data for column "b"', 'line 2: ""'),
        (text_copy(), b"1\t2\t3\n", "extra data after last expected column", 'line 1: "1\t2\t3"'),
        (text_copy(), b"1\t2\n3\r4\t5\n", "literal carriage return found in data", "line 2"),
        (csv_copy(), b"1,2\n\n", 'missing data for column "b"', 'line 2: ""'),
        (csv_copy(), b'1,"2\n3"\n4\n', 'missing data for column "b"', 'line 3: "4"'),
        (csv_copy(header=True), b"a,b\n1,2,3\n", "extra data after last expected column", "line 2"),
        (csv_copy(), b'1,"2\n', "unterminated CSV quoted field", "line 1"),
        (csv_copy(), b"1,\r2\n", "unquoted carriage return found in data", "line 1"),
    ],
)
def test_bad_rows_name_their_line(options: CopyOptions, data: bytes, message: str, line: str) -> None:
    with pytest.raises(Error) as caught:
        read(data, options)
    assert caught.value.sqlstate == "22P04"
    assert caught.value.message == message
    assert line in (caught.value.context or "")


def test_lines_are_counted_over_several_parses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copy_text, "PARSE_AT", 16)
    with pytest.raises(Error) as caught:
        read(b"1,2\n" * 99 + b"oops\n", csv_copy(), step=10)
    assert 'line 100: "oops"' in (caught.value.context or "")


@pytest.mark.parametrize("wrong", [b"\xff", b"a\0b"])
def test_invalid_utf8(wrong: bytes) -> None:
    with pytest.raises(Error) as caught:
        read(b"1,2\n" + wrong + b",3\n", csv_copy())
    assert caught.value.sqlstate == "22021"
    assert "line 2" in (caught.value.context or "")


def test_a_row_that_never_ends_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copy_text, "PARSE_AT", 16)
    monkeypatch.setattr(copy_text, "MAX_ROW_BYTES", 100)
    with pytest.raises(Error, match="exceeds"):
        read(b'"' + b"x" * 1000, csv_copy(), step=10)


cells = st.none() | st.text(st.sampled_from('a\t\n\r\\N",|\b.é '), max_size=4)


@pytest.mark.parametrize("options", [text_copy(), text_copy(delimiter="|", null=""), csv_copy(), csv_copy(null="N")])
@given(rows=st.lists(st.tuples(cells, cells), min_size=1, max_size=4))
def test_what_is_written_reads_back(options: CopyOptions, rows: Rows) -> None:
    if options.null == "" and options.format == "text":
        rows = [tuple(value or None for value in row) for row in rows]
    assert read(write(rows, options), options) == rows


def test_output_is_one_message_per_row_and_a_header() -> None:
    columns = (ResultColumn("a", INTEGER), ResultColumn('b "x"', TEXT))
    batch = pa.record_batch([pa.array([1, None], pa.int32()), pa.array(["", "y,z"])], names=["a", "b"])
    header, (count, rows) = copy_rows([batch], columns, csv_copy(header=True))
    assert header == (0, b'd\0\0\0\x10a,"b ""x"""\n')
    assert count == 2
    assert bytes(rows) == b'd\0\0\0\x091,""\n'[:0] + b"d\0\0\0\x09" + b'1,""\n' + b"d\0\0\0\x0b" + b',"y,z"\n'
