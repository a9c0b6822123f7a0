"""Encodings against literals taken from PostgreSQL 15.18 (psql for text, `*_send` functions for binary)."""

from __future__ import annotations

import datetime
import struct
import uuid
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkwave.catalog.errors import Error
from sparkwave.catalog.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, NUMERIC, REAL, TEXT, Type, parse_type
from sparkwave.server.wire.binary_format import binary_array
from sparkwave.server.wire.parameter_values import decode_parameter
from sparkwave.server.wire.row_messages import data_rows, slices
from sparkwave.server.wire.text_format import text_array
from sparkwave.server.wire.text_style import TextStyle

D = Decimal
MICROS = pa.timestamp("us")
UTC_MICROS = pa.timestamp("us", "Etc/UTC")
INTERVAL = pa.month_day_nano_interval()
DAY = 86_400_000_000


def stamp(text: str) -> int:
    return int(np.datetime64(text, "us").astype(np.int64))


# SQL type, Arrow values and type, expected text
TEXTS = [
    ("boolean", pa.array([True, False]), ["t", "f"]),
    ("integer", pa.array([0, -1, 2**31 - 1], pa.int32()), ["0", "-1", "2147483647"]),
    (
        "double precision",
        pa.array([1e5, 1e-5, 1e-4, 123456789012345.0, 12345678901.5, 1e14, 1e15, 1e20, 0.1, -0.0, 5e-324]),
        [
            "100000",
            "1e-05",
            "0.0001",
            "123456789012345",
            "12345678901.5",
            "100000000000000",
            "1e+15",
            "1e+20",
            "0.1",
            "-0",
            "5e-324",
        ],
    ),
    ("double precision", pa.array([np.inf, -np.inf, np.nan]), ["Infinity", "-Infinity", "NaN"]),
    (
        "real",
        pa.array([1e6, 123456, 1.2345678e-5, 3.4e38, 0.3], pa.float32()),
        ["1e+06", "123456", "1.2345678e-05", "3.4e+38", "0.3"],
    ),
    ("numeric(10,2)", pa.array([D("1.50"), D("-0.01")], pa.decimal128(10, 2)), ["1.50", "-0.01"]),
    (
        "numeric(38,10)",
        pa.array([D(0), D("1e-10"), D("-1.2e-7")], pa.decimal128(38, 10)),
        ["0.0000000000", "0.0000000001", "-0.0000001200"],
    ),
    # Stored at the default scale: zeros nobody wrote are not shown.
    (
        "numeric",
        pa.array([D(0), D("1.5"), D(100), D("1e-10")], pa.decimal128(38, 10)),
        ["0", "1.5", "100", "0.0000000001"],
    ),
    ("numeric", pa.array([D("1.50")], pa.decimal128(5, 2)), ["1.50"]),
    ("numeric", pa.array([1e21, 0.25]), ["1000000000000000000000", "0.25"]),
    ("bytea", pa.array([b"\x00\xff", b""]), ["\\x00ff", "\\x"]),
    ("jsonb", pa.array(["[1]", None, '"a:b"', "true"]), ["[1]", None, '"a:b"', "true"]),
    (
        "jsonb",
        pa.array(['{"b":[1,2.5,null],"ab":{"z":"x,y: \\"é","B":{}},"b":[]}', None, '{"\\ud800":[1,2]}']),
        ['{"ab": {"B": {}, "z": "x,y: \\"é"}, "b": []}', None, '{"\\ud800":[1,2]}'],
    ),
    ("jsonb[]", pa.array([['{"a":1}', None, "2"]]), ['{"{\\"a\\": 1}",NULL,2}']),
    (
        "date",
        pa.array([0, -719163 - 365, 2932897, 2**31 - 1, -(2**31 - 1)], pa.int32()).cast(pa.date32()),
        ["1970-01-01", "0001-01-01 BC", "10000-01-01", "infinity", "-infinity"],
    ),
    (
        "time",
        pa.array([0, DAY, 3_723_500_000], pa.time64("us")),
        ["00:00:00", "24:00:00", "01:02:03.5"],
    ),
    (
        "timestamp",
        pa.array([stamp("2020-01-01T03:04:05.678"), stamp("1969-12-31T23:59:59.999999")], MICROS),
        ["2020-01-01 03:04:05.678", "1969-12-31 23:59:59.999999"],
    ),
    ("timestamp", pa.array([0, DAY], MICROS), ["1970-01-01 00:00:00", "1970-01-02 00:00:00"]),
    (
        "timestamp",
        pa.array([2**63 - 1, 1 - 2**63, stamp("10000-01-01"), stamp("-0043-03-15T01:02:03.4")], MICROS),
        ["infinity", "-infinity", "10000-01-01 00:00:00", "0044-03-15 01:02:03.4 BC"],
    ),
    ("timestamptz", pa.array([stamp("2020-07-01T03:04:05")], UTC_MICROS), ["2020-07-01 03:04:05+00"]),
    (
        "interval",
        pa.array([(14, 3, 14_706_700_000_000), (-1, 1, 0), (0, 0, -1_000_000_000), (0, 0, 0)], INTERVAL),
        ["1 year 2 mons 3 days 04:05:06.7", "-1 mons +1 day", "-00:00:01", "00:00:00"],
    ),
    ("int[]", pa.array([[1, None], []], pa.list_(pa.int32())), ["{1,NULL}", "{}"]),
    ("int[][]", pa.array([[[1], [2]]], pa.list_(pa.list_(pa.int32()))), ["{{1},{2}}"]),
    (
        "text[]",
        pa.array([["a,b", "", 'q"\\', "null", "x", None]]),
        [r'{"a,b","","q\"\\","null",x,NULL}'],
    ),
    ("text", pa.array([{"a": 1, "b": "x y", "c": None}]), ['(1,"x y",)']),
    (
        "struct<a numeric, b varchar, c struct<d boolean, e varchar[]>>",
        pa.StructArray.from_arrays(
            [
                pa.array([D("1.5"), None], pa.decimal128(38, 10)),
                pa.array(['q"\\(', ""]),
                pa.array([{"d": True, "e": ["x"]}, None]),
            ],
            ["a", "b", "c"],
        ),
        [r'(1.5,"q""\\(","(t,{x})")', '(,"",)'],
    ),
    ("struct<a int>[]", pa.array([[{"a": 1}, None, {"a": None}]]), ["{(1),NULL,()}"]),
    ("text", pa.array(["x", "y", "x"]).dictionary_encode(), ["x", "y", "x"]),
    ("text", pa.array(["x"], pa.large_string()), ["x"]),
]


@pytest.mark.parametrize(("type", "array", "expected"), TEXTS, ids=lambda v: v if isinstance(v, str) else "")
def test_text_is_that_of_postgres(type: str, array: pa.Array, expected: list[str]) -> None:
    assert text_array(array, parse_type(type)).to_pylist() == expected


@pytest.mark.parametrize(("type", "array", "expected"), TEXTS, ids=lambda v: v if isinstance(v, str) else "")
def test_nulls_and_slices_change_nothing(type: str, array: pa.Array, expected: list[str]) -> None:
    padded = pa.concat_arrays([array, pa.nulls(1, array.type), array]).slice(1)
    assert text_array(padded, parse_type(type)).to_pylist() == [*expected[1:], None, *expected]


@pytest.mark.parametrize(
    ("zone", "expected"),
    [
        ("America/New_York", ["2020-06-30 23:04:05-04", "2020-01-01 07:00:00-05"]),
        ("Asia/Kolkata", ["2020-07-01 08:34:05+05:30", "2020-01-01 17:30:00+05:30"]),
    ],
)
def test_timestamptz_prints_in_the_session_zone(zone: str, expected: list[str]) -> None:
    array = pa.array([stamp("2020-07-01T03:04:05"), stamp("2020-01-01T12:00:00")], UTC_MICROS)
    assert text_array(array, parse_type("timestamptz"), TextStyle(zone)).to_pylist() == expected


@pytest.mark.parametrize("apart", [datetime.timedelta(seconds=977), datetime.timedelta(days=400, seconds=7)])
@pytest.mark.parametrize("fraction", [0, 250])
def test_many_timestamps(apart: datetime.timedelta, fraction: int) -> None:
    """Of a few days and of many; before and after 1970, with NULLs, and not from the first one on."""
    first = datetime.datetime(1921, 3, 1, 23, 59, 58, fraction)
    moments = [None if n % 7 == 3 else first + n * apart for n in range(300)]
    array = pa.array([None, *moments], MICROS)[1:]
    printed = [None if m is None else str(m).rstrip("0") if fraction else str(m) for m in moments]
    assert text_array(array, parse_type("timestamp")).to_pylist() == printed
    assert text_array(array[50:51], parse_type("timestamp")).to_pylist() == printed[50:51]


def test_zones_of_old_have_seconds() -> None:
    array = pa.array([stamp("1800-01-01")], UTC_MICROS)
    printed = text_array(array, parse_type("timestamptz"), TextStyle("America/New_York")).to_pylist()
    assert printed == ["1799-12-31 19:03:58-04:56:02"]


def test_an_unknown_zone_is_an_error() -> None:
    with pytest.raises(Error, match="TimeZone"):
        text_array(pa.array([0], UTC_MICROS), parse_type("timestamptz"), TextStyle("Mars/Olympus"))


# SQL type, one Arrow value, hex of PostgreSQL's *_send
BINARIES = [
    ("boolean", pa.array([True]), "01"),
    ("smallint", pa.array([-2], pa.int16()), "fffe"),
    ("integer", pa.array([7], pa.int64()), "00000007"),
    ("bigint", pa.array([-1]), "ff" * 8),
    ("oid", pa.array([2**32 - 1], pa.uint32()), "ffffffff"),
    ("real", pa.array([1.5], pa.float32()), "3fc00000"),
    ("double precision", pa.array([1.5]), "3ff8000000000000"),
    ("numeric(10,2)", pa.array([D("12345.67")], pa.decimal128(10, 2)), "00030001000000020001" + "0929" + "1a2c"),
    ("numeric(10,2)", pa.array([D("0.00")], pa.decimal128(10, 2)), "0000000000000002"),
    ("numeric(10,2)", pa.array([D("-0.01")], pa.decimal128(10, 2)), "0001ffff400000020064"),
    ("numeric(38,0)", pa.array([D(10) ** 37], pa.decimal128(38, 0)), "0001000900000000000a"),
    ("numeric", pa.array([D("1.5")], pa.decimal128(38, 10)), "00020000000000010001" + "1388"),
    ("text", pa.array(["é"]), "c3a9"),
    ("bytea", pa.array([b"\x00\xff"]), "00ff"),
    ("date", pa.array([10_957], pa.int32()).cast(pa.date32()), "00000000"),
    ("date", pa.array([1 - 2**31], pa.int32()).cast(pa.date32()), "80000000"),
    ("time", pa.array([1], pa.time64("us")), "0000000000000001"),
    ("timestamp", pa.array([stamp("2000-01-01T00:00:01")], MICROS), "00000000000f4240"),
    ("timestamptz", pa.array([2**63 - 1], UTC_MICROS), "7f" + "ff" * 7),
    ("interval", pa.array([(14, 3, 1_000)], INTERVAL), "0000000000000001" + "00000003" + "0000000e"),
    ("jsonb", pa.array(["{}"]), "017b7d"),
    ("uuid", pa.array(["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]), "a0eebc999c0b4ef8bb6d6bb9bd380a11"),
    (
        "int[]",
        pa.array([[1, None]], pa.list_(pa.int32())),
        "00000001 00000001 00000017 00000002 00000001 00000004 00000001 ffffffff",
    ),
    ("int[]", pa.array([[]], pa.list_(pa.int32())), "00000000 00000000 00000017"),
    (
        "struct<a int, b varchar, c bigint>",
        pa.array([{"a": 7, "b": "é"}], pa.struct({"a": pa.int32(), "b": pa.string(), "c": pa.int64()})),
        "00000003" + "00000017 00000004 00000007" + "00000019 00000002 c3a9" + "00000014 ffffffff",
    ),
    (
        "struct<a int>[]",
        pa.array([[{"a": 1}]]),
        "00000001 00000000 000008c9 00000001 00000001" + "00000010 00000001 00000017 00000004 00000001",
    ),
]


@pytest.mark.parametrize(("type", "array", "expected"), BINARIES, ids=lambda v: v if isinstance(v, str) else "")
def test_binary_is_that_of_postgres(type: str, array: pa.Array, expected: str) -> None:
    padded = pa.concat_arrays([array, pa.nulls(1, array.type), array]).slice(1)
    value = bytes.fromhex(expected)
    assert binary_array(array, parse_type(type)).to_pylist() == [value]
    assert binary_array(padded, parse_type(type)).to_pylist() == [None, value]


def test_binary_arrays_of_two_dimensions() -> None:
    type_ = Type("integer", dimensions=2)
    empty, *others = binary_array(pa.array([[], [[1], [None]], None]), type_).to_pylist()
    header = "00000002 00000001 00000017 00000002 00000001 00000001 00000001"
    assert empty == bytes.fromhex("00000000 00000000 00000017")
    assert others == [bytes.fromhex(f"{header} 00000004 00000001 ffffffff"), None]
    with pytest.raises(Error, match="subarrays of several lengths"):
        binary_array(pa.array([[[1], [2, 3]]]), type_)


def test_a_value_too_large_for_its_type_is_an_error() -> None:
    with pytest.raises(Error) as caught:
        binary_array(pa.array([2**40]), INTEGER)
    assert caught.value.sqlstate == "22003"


@pytest.mark.parametrize("format", [0, 1])
@given(unscaled=st.integers(-(10**38) + 1, 10**38 - 1), scale=st.integers(0, 37))
def test_numerics_read_back(format: int, unscaled: int, scale: int) -> None:
    value = D(unscaled).scaleb(-scale, None) if abs(unscaled) < 10**28 else D(f"{unscaled}E-{scale}")
    type = Type("numeric", 38, scale)
    array = pa.array([value], pa.decimal128(38, scale))
    encoded = binary_array(array, type) if format else text_array(array, type).cast(pa.binary())
    assert decode_parameter(encoded[0].as_py(), format, type) == value


@given(st.floats(allow_nan=False))
def test_floats_read_back_from_text(value: float) -> None:
    assert float(text_array(pa.array([value]), DOUBLE)[0].as_py()) == value


@given(st.floats(allow_nan=False, width=32))
def test_reals_read_back_from_text(value: float) -> None:
    assert np.float32(text_array(pa.array([value], pa.float32()), REAL)[0].as_py()) == np.float32(value)


def test_data_rows() -> None:
    batch = pa.record_batch({"a": pa.array([1, None], pa.int32()), "b": ["x", "yz"]})
    rows = bytes(data_rows(batch, [INTEGER, TEXT], [1, 0]))
    first = struct.pack("!hii", 2, 4, 1) + struct.pack("!i", 1) + b"x"
    second = struct.pack("!hi", 2, -1) + struct.pack("!i", 2) + b"yz"
    assert rows == b"".join(b"D" + struct.pack("!i", len(row) + 4) + row for row in (first, second))


def test_rows_without_columns_or_without_rows() -> None:
    assert bytes(data_rows(pa.record_batch({"a": pa.array([], pa.int32())}), [INTEGER], [0])) == b""
    assert list(slices(pa.record_batch({"a": pa.array([], pa.int32())}))) == []


def test_slices_cover_the_batch() -> None:
    batch = pa.record_batch({"a": pa.array(range(20_000))})
    assert pa.Table.from_batches(slices(batch)).column(0).to_pylist() == list(range(20_000))


# SQL type, text, value
PARAMETERS = [
    ("integer", "-5", -5),
    ("boolean", "T", True),
    ("boolean", "off", False),
    ("double precision", "-Infinity", float("-inf")),
    ("numeric", "1.50", D("1.50")),
    ("text", "2020-01-01", "2020-01-01"),
    ("text", "{}", "{}"),
    ("bytea", "\\x00ff", b"\x00\xff"),
    ("bytea", "a\\\\\\377", b"a\\\xff"),
    ("date", "2020-02-29", datetime.date(2020, 2, 29)),
    ("date", "2020-02-29 +01", datetime.date(2020, 2, 29)),
    ("date", "infinity", "infinity"),
    ("date", "0044-03-15 BC", "0044-03-15 (BC)"),
    ("time", "01:02:03.5", datetime.time(1, 2, 3, 500_000)),
    ("timestamp", "2020-01-01T01:02:03", datetime.datetime(2020, 1, 1, 1, 2, 3)),
    ("timestamp", "2020-01-01 24:00:00", datetime.datetime(2020, 1, 2)),
    ("timestamptz", "2020-01-01 00:00:00", datetime.datetime(2020, 1, 1)),
    (
        "timestamptz",
        "2020-01-01 00:00:00-03:30",
        datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone(-datetime.timedelta(hours=3.5))),
    ),
    ("interval", "1 day", "1 day"),
    ("jsonb", '{"a": 1}', '{"a": 1}'),
    ("uuid", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", uuid.UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")),
    ("int[]", "{1,NULL, 3}", [1, None, 3]),
    ("int[]", "[0:1]={1,2}", [1, 2]),
    ("int[]", "{}", []),
    ("int[]", "{{1},{2}}", [[1], [2]]),
    ("text[]", r'{"a,b","","q\"\\","NULL",x y}', ["a,b", "", 'q"\\', "NULL", "x y"]),
    ("struct<a int, b varchar, c varchar>", '(1,,"x ""y\\\\,")', {"a": 1, "b": None, "c": 'x "y\\,'}),
    (
        "struct<a int, b struct<c date>>[]",
        r'{"(1,\"(2020-02-29)\")",NULL}',
        [{"a": 1, "b": {"c": datetime.date(2020, 2, 29)}}, None],
    ),
]


@pytest.mark.parametrize(("type", "text", "value"), PARAMETERS)
def test_text_parameters(type: str, text: str, value: object) -> None:
    decoded = decode_parameter(text.encode(), 0, parse_type(type))
    assert decoded == value
    assert decoded.__class__ is value.__class__


@pytest.mark.parametrize(
    ("type", "data", "format", "sqlstate"),
    [
        ("integer", b"abc", 0, "22P02"),
        ("integer", b"1_000", 0, "22P02"),
        ("integer", b"2147483648", 0, "22003"),
        ("boolean", b"o", 0, "22P02"),
        ("numeric", b"1,5", 0, "22P02"),
        ("uuid", b"x", 0, "22P02"),
        ("jsonb", b"{", 0, "22P02"),
        ("date", b"2020-02-30", 0, "22008"),
        ("timestamp", b"yesterday noon", 0, "22007"),
        ("int[]", b"{1,2", 0, "22P02"),
        ("int[]", b"{1,x}", 0, "22P02"),
        ("int[]", b"{1}{", 0, "22P02"),
        ("text", b"\xff", 0, "22021"),
        ("text", b"a\0b", 0, "22021"),
        ("text", b"a\0b", 1, "22021"),
        ("struct<a int, b int>", b"(1,2", 0, "22P02"),
        ("struct<a int, b int>", b"1,2", 0, "22P02"),
        ("struct<a int, b int>", b"(1,2)x", 0, "22P02"),
        ("struct<a int, b int>", b"(1,x)", 0, "22P02"),
        ("struct<a int, b int>", b"(1)", 0, "42846"),
        ("struct<a int, b int>", struct.pack("!i", 1), 1, "42804"),
        ("struct<a int>", struct.pack("!iii", 1, 23, 4), 1, "08P01"),
        ("integer", b"\0\0", 1, "22P03"),
        ("uuid", b"\0", 1, "22P03"),
        ("jsonb", b"{}", 1, "22P03"),
        ("numeric", struct.pack("!hhHhh", 1, 0, 0, 0, 10_000), 1, "22P03"),
        ("int[]", struct.pack("!iiiiiii", 2, 0, 23, 2**31 - 1, 1, 0, 1), 1, "22P03"),
    ],
)
def test_malformed_parameters(type: str, data: bytes, format: int, sqlstate: str) -> None:
    with pytest.raises(Error) as caught:
        decode_parameter(data, format, parse_type(type))
    assert caught.value.sqlstate == sqlstate


@pytest.mark.parametrize(
    ("type", "data", "value"),
    [
        (BIGINT, struct.pack("!q", -7), -7),
        (BOOLEAN, b"\1", True),
        (NUMERIC, struct.pack("!hhHh", 0, 0, 0xC000, 0), D("NaN")),
        (parse_type("date"), struct.pack("!i", -1), datetime.date(1999, 12, 31)),
        (parse_type("date"), struct.pack("!i", 2**31 - 1), "infinity"),
        (parse_type("timestamp"), struct.pack("!q", 500_000), datetime.datetime(2000, 1, 1, 0, 0, 0, 500_000)),
        (parse_type("timestamptz"), struct.pack("!q", 0), datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)),
        (parse_type("interval"), struct.pack("!qii", 5, 2, 1), "1 months 2 days 5 microseconds"),
        (parse_type("jsonb"), b"\x01{}", "{}"),
        (parse_type("int[]"), struct.pack("!iiiiiiii", 1, 1, 23, 2, 1, 4, 9, -1), [9, None]),
        (
            parse_type("struct<a int, b varchar>"),
            struct.pack("!iiihii", 2, 21, 2, 9, 1043, -1),
            {"a": 9, "b": None},
        ),
        (
            parse_type("struct<a int>[]"),
            struct.pack("!iiiiiiiiii", 1, 0, 2249, 1, 1, 16, 1, 23, 4, 7),
            [{"a": 7}],
        ),
    ],
)
def test_binary_parameters(type: Type, data: bytes, value: object) -> None:
    assert str(decode_parameter(data, 1, type)) == str(value)


@pytest.mark.parametrize("format", [0, 1])
def test_null_parameter(format: int) -> None:
    assert decode_parameter(None, format, INTEGER) is None
