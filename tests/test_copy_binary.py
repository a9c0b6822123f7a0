"""COPY's binary format, in pieces and through the server. What is expected agrees with PostgreSQL 15.18."""

from __future__ import annotations

import datetime
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sparkwave.catalog.errors import Error
from sparkwave.catalog.types import INTEGER, TEXT, Type
from sparkwave.server.wire import copy_binary
from sparkwave.server.wire.binary_format import binary_array, numeric_bytes
from sparkwave.server.wire.copy_binary import BinaryCopyParser, binary_rows, decode_column
from sparkwave.server.wire.result import ResultColumn

Connection = psycopg.Connection[Any]
Rows = list[tuple[object, ...]]
INTEGERS = replace(INTEGER, dimensions=1)
NUMBERS = (ResultColumn("a", INTEGER), ResultColumn("b", TEXT))
HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
ROW_1 = b"\0\2" + b"\0\0\0\4\0\0\1\2" + b"\0\0\0\2ab"
ROW_2 = b"\0\2" + b"\xff\xff\xff\xff" + b"\0\0\0\0"
END = b"\xff\xff"


def read_binary(data: bytes, step: int = 1 << 20) -> Rows:
    parser = BinaryCopyParser(NUMBERS)
    batches = [batch for at in range(0, len(data), step) for batch in parser.feed(data[at : at + step])]
    batches += parser.finish()
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


@pytest.mark.parametrize("step", [1, 3, 1 << 20])
@pytest.mark.parametrize("header", [HEADER, HEADER[:15] + b"\0\0\0\3xyz"])
@pytest.mark.parametrize("end", [END, b""])
def test_binary_rows_whatever_the_pieces(monkeypatch: pytest.MonkeyPatch, step: int, header: bytes, end: bytes) -> None:
    monkeypatch.setattr(copy_binary, "PARSE_AT", step)
    assert read_binary(header + ROW_1 + ROW_2 + end, step) == [(258, "ab"), (None, "")]
    assert read_binary(header + end, step) == []


@pytest.mark.parametrize(
    ("data", "sqlstate", "message"),
    [
        (b"", "22P04", "COPY file signature not recognized"),
        (b"1\tx\n", "22P04", "COPY file signature not recognized"),
        (HEADER[:13], "22P04", "invalid COPY file header (missing flags)"),
        (HEADER[:11] + b"\0\1\0\0" + bytes(4), "22P04", "invalid COPY file header (WITH OIDS)"),
        (HEADER[:11] + b"\0\2\0\0" + bytes(4), "22P04", "unrecognized critical flags in COPY file header"),
        (HEADER[:15] + b"\xff\0\0\0", "22P04", "invalid COPY file header (missing length)"),
        (HEADER[:15] + b"\0\0\0\1", "22P04", "invalid COPY file header (wrong length)"),
        (HEADER + b"\0\3" + ROW_1[2:], "22P04", "row field count is 3, expected 2"),
        (HEADER + b"\0\2\xff\xff\xff\xfe", "22P04", "invalid field size"),
        (HEADER + ROW_1[:-1], "22P04", "unexpected EOF in COPY data"),
        (HEADER + ROW_1 + b"\0", "22P04", "unexpected EOF in COPY data"),
        (HEADER + END + ROW_1, "22P04", "received copy data after EOF marker"),
        (HEADER + b"\0\2\0\0\0\1x\0\0\0\0", "22P03", "incorrect binary data format for type integer"),
        (HEADER + ROW_2[:6] + b"\0\0\0\1\xff", "22021", 'invalid byte sequence for encoding "UTF8": 0xff'),
        (HEADER + ROW_2[:6] + b"\0\0\0\3a\0b", "22021", 'invalid byte sequence for encoding "UTF8": 0x00'),
    ],
)
@pytest.mark.parametrize("step", [1, 1 << 20])
def test_malformed_binary(monkeypatch: pytest.MonkeyPatch, data: bytes, sqlstate: str, message: str, step: int) -> None:
    monkeypatch.setattr(copy_binary, "PARSE_AT", step)
    with pytest.raises(Error) as caught:
        read_binary(data, step)
    assert (caught.value.sqlstate, caught.value.message) == (sqlstate, message)


def test_binary_output() -> None:
    """As PostgreSQL the header comes with the first row: ADBC reads it so."""
    batch = pa.record_batch([pa.array([258, None], pa.int32()), pa.array(["ab", ""])], names=["a", "b"])
    first, rest, last = [(count, bytes(data)) for count, data in binary_rows([batch], NUMBERS)]
    assert first == (1, b"d\0\0\0" + bytes([4 + len(HEADER + ROW_1)]) + HEADER + ROW_1)
    assert rest == (1, b"d\0\0\0" + bytes([4 + len(ROW_2)]) + ROW_2)
    assert last == (0, b"d\0\0\0\6" + END)
    assert list(binary_rows([], NUMBERS)) == [(0, b"d\0\0\0" + bytes([4 + len(HEADER + END)]) + HEADER + END)]


def test_lists_of_other_elements_are_refused() -> None:
    encoded = binary_array(pa.array([[1, None]], pa.list_(pa.int32())), INTEGERS)[0].as_py()
    assert decode_column([encoded, None], INTEGERS).to_pylist() == [[1, None], None]
    with pytest.raises(Error) as caught:
        decode_column([encoded], replace(INTEGERS, name="bigint"))
    assert caught.value.sqlstate == "42804"
    with pytest.raises(Error) as caught:
        decode_column([encoded[:-1]], INTEGERS)
    assert caught.value.sqlstate == "22P03"


@given(st.lists(st.none() | st.decimals(places=4, min_value=-(10**12), max_value=10**12), max_size=5))
@example([Decimal("NaN")])
@example([Decimal("12345.6")])
@example([Decimal("99999999999999.9999"), Decimal("-0.0001")])
@example([Decimal("0.00001"), Decimal(1)])
def test_numerics(values: list[Decimal | None]) -> None:
    cells = [None if value is None else numeric_bytes(value) for value in values]
    found = decode_column(cells, Type("numeric", 38, 4)).to_pylist()
    assert [None if value is None else str(Decimal(value).normalize()) for value in found] == [
        None if value is None else str(value.normalize()) for value in values
    ]


@pytest.mark.parametrize("data", [b"", b"\0\1\0\0\0\0\0\0", b"\0\1\0\0\0\0\0\0\x27\x10", b"\0\0\0\0\1\0\0\0"])
def test_malformed_numerics(data: bytes) -> None:
    with pytest.raises(Error) as caught:
        decode_column([numeric_bytes(Decimal(1)), data], Type("numeric", 10, 2))
    assert caught.value.sqlstate == "22P03"


# What PostgreSQL writes with COPY (SELECT * FROM t ORDER BY k) TO '…' (FORMAT binary) for these columns and rows.
POSTGRES_COPY = Path(__file__).parent / "data" / "postgres.copy"
POSTGRES_COLUMNS = (
    "k int PRIMARY KEY, s smallint, b bigint, r real, d double precision, n numeric(20,5), t varchar, y bytea, "
    "o boolean, da date, ti time, ts timestamp, tz timestamptz, i interval, j jsonb, u uuid, ai int[], at varchar[]"
)
POSTGRES_ROWS = """
    (1, -2, 3000000000, 1.5, -2.25, 12345678901.50000, 'tab\té 日本', '\\x00ff', true, '2024-02-29',
     '03:04:05.678', '2024-01-02 03:04:05.000006', '2024-01-02 03:04:05+02', '1 mon 2 days 03:04:05.5',
     '{"a": [1, null]}', '00112233-4455-6677-8899-aabbccddeeff', ARRAY[1, NULL, 3], ARRAY['a b', NULL, 'c,d']),
    (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (3, 32767, -9223372036854775808, '-Infinity', 'Infinity', -0.00001, '', '', false, 'infinity', '00:00:00',
     '-infinity', 'infinity', '-1 years', '"x"', '00000000-0000-0000-0000-000000000000', ARRAY[]::int[], ARRAY[''])
"""


def test_binary_copy_is_that_of_postgres(connection: Connection) -> None:
    connection.execute(f"CREATE TABLE from_postgres ({POSTGRES_COLUMNS})")
    with connection.cursor() as cursor:
        with cursor.copy("COPY from_postgres FROM STDIN (FORMAT binary)") as copy:
            copy.write(POSTGRES_COPY.read_bytes())
        assert cursor.statusmessage == "COPY 3"
        with cursor.copy("COPY (SELECT * FROM from_postgres ORDER BY k) TO STDOUT WITH BINARY") as copy:
            assert b"".join(bytes(part) for part in copy) == POSTGRES_COPY.read_bytes()
    connection.execute(f"CREATE TABLE like_postgres ({POSTGRES_COLUMNS})")
    connection.execute(f"INSERT INTO like_postgres VALUES {POSTGRES_ROWS}")
    same = "SELECT count(*) FROM (SELECT * FROM {} EXCEPT SELECT * FROM {}) AS rest"
    assert connection.execute(same.format("from_postgres", "like_postgres")).fetchall() == [(0,)]


COPIED = [
    (1, "plain", Decimal("1.50"), datetime.datetime(2024, 1, 2, 3, 4, 5)),
    (2, None, Decimal("-99999999.99"), None),
    (3, "日本\t🐘", None, datetime.datetime(9999, 12, 31, 23, 59, 59, 999999)),
]


def test_binary_copy_by_psycopg(connection: Connection) -> None:
    connection.execute("CREATE TABLE copy_binary (k int PRIMARY KEY, v varchar, n numeric(10,2), at timestamp)")
    with connection.cursor() as cursor:
        with cursor.copy("COPY copy_binary FROM STDIN (FORMAT binary)") as copy:
            copy.set_types(["int4", "varchar", "numeric", "timestamp"])
            for row in COPIED:
                copy.write_row(row)
        assert cursor.statusmessage == f"COPY {len(COPIED)}"
        with cursor.copy("COPY (SELECT * FROM copy_binary ORDER BY k) TO STDOUT (FORMAT binary)") as copy:
            copy.set_types(["int4", "varchar", "numeric", "timestamp"])
            assert list(copy.rows()) == COPIED
        with (
            pytest.raises(psycopg.errors.BadCopyFileFormat, match="row field count is 1, expected 4"),
            cursor.copy("COPY copy_binary FROM STDIN (FORMAT binary)") as copy,
        ):
            copy.set_types(["int4"])
            copy.write_row([7])
    assert connection.execute("SELECT count(*) FROM copy_binary").fetchall() == [(3,)]
