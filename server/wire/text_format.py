"""Converts Arrow arrays to Postgres' text output, a column at a time.

Each type prints as by PostgreSQL's `*_out` functions under a `TextStyle`; see its docs,
"Data Types". The Arrow type selects the printer, after `conform` has cast the array to the Arrow type of the SQL type.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable
from decimal import Decimal
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkwave.catalog.errors import INVALID_PARAMETER_VALUE, NUMERIC_VALUE_OUT_OF_RANGE, Error
from sparkwave.catalog.float_texts import double_text, real_text
from sparkwave.catalog.types import DEFAULT_NUMERIC, QUOTIENT_NUMERIC, Type
from sparkwave.server.wire.json_text import json_texts
from sparkwave.server.wire.moment_styles import INTERVAL_STYLES, clock_text, styled_date, styled_moment
from sparkwave.server.wire.text_style import DEFAULT_STYLE, TextStyle
from sparkwave.server.wire.union_arrays import without_unions

DAY = 86_400_000_000  # microseconds
_YEAR_1, _YEAR_10000 = -719_162, 2_932_897  # first days of these years, counted from 1970-01-01

# DuckDB's infinities are the largest integer and its negation.
INFINITE_DAYS = 2**31 - 1
INFINITE_MICROS = 2**63 - 1

_ARROW: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "smallint": pa.int16(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "oid": pa.uint32(),
    "real": pa.float32(),
    "double precision": pa.float64(),
    "bytea": pa.binary(),
    "date": pa.date32(),
    "time without time zone": pa.time64("us"),
    "timestamp without time zone": pa.timestamp("us"),
    "timestamp with time zone": pa.timestamp("us", "UTC"),
    "interval": pa.month_day_nano_interval(),
}


def conform(array: pa.Array, type: Type) -> pa.Array:
    """Return the array as the plain Arrow type of `type`: no extension type, no union, no dictionary, 32-bit offsets.

    Raises Error 22003 when a value does not fit.
    """
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if type.holds_json:
        array = without_unions(array)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), pa.string())
    if pa.types.is_fixed_size_binary(array.type) and type.name == "uuid" and not type.dimensions:
        return _uuid_text(array)
    target = _plain(array.type) if type.dimensions else _ARROW.get(type.name, _plain(array.type))
    if array.type == target:
        return array
    try:
        return array.cast(target, safe=not pa.types.is_temporal(target))
    except pa.ArrowInvalid:
        raise Error(f"{type} out of range", NUMERIC_VALUE_OUT_OF_RANGE) from None


def _plain(arrow: pa.DataType) -> pa.DataType:
    if pa.types.is_large_string(arrow) or pa.types.is_string_view(arrow):
        return pa.string()
    if pa.types.is_large_binary(arrow) or pa.types.is_binary_view(arrow):
        return pa.binary()
    if pa.types.is_large_list(arrow) or pa.types.is_fixed_size_list(arrow):
        return pa.list_(arrow.value_type)
    return arrow


def text_array(array: pa.Array, type: Type, style: TextStyle = DEFAULT_STYLE) -> pa.Array:
    """Return the values in Postgres' text format as a `string` array; NULLs stay null. `style` is the session's."""
    array = conform(array, type)
    if pa.types.is_string(array.type):
        return json_texts(array) if type.name == "jsonb" else array
    for matches, printer in _PRINTERS:
        if matches(array.type):
            return printer(array, type, style)
    return pa.array([None if value is None else str(value) for value in array.to_pylist()], pa.string())


def patch(text: pa.Array, mask: pa.Array, values: Iterable[str]) -> pa.Array:
    """Return `text` with `values`, in order, in the places where `mask` is true."""
    return pc.replace_with_mask(text, mask.fill_null(False), pa.array(values, pa.string()))


# Booleans and numbers


def _boolean(array: pa.Array, _type: Type, _style: TextStyle) -> pa.Array:
    return pc.if_else(array, "t", "f")


def _integer(array: pa.Array, _type: Type, _style: TextStyle) -> pa.Array:
    return array.cast(pa.string())


def _float(array: pa.Array, type: Type, style: TextStyle) -> pa.Array:
    """Return the shortest digits that read back as the same value, or as many as the style says.

    Arrow prints the shortest ones too, but changes to an exponent elsewhere.
    """
    if type.name == "numeric":
        values = array.to_pylist()
        return pa.array([None if v is None else format(Decimal(repr(v)), "f") for v in values], pa.string())
    if style.float_digits <= 0:
        digits = max(1, (6 if pa.types.is_float32(array.type) else 15) + style.float_digits)
        return pa.array([None if v is None else _rounded_text(v, digits) for v in array.to_pylist()], pa.string())
    text = array.cast(pa.string())
    size = np.abs(array.fill_null(1).to_numpy(zero_copy_only=False))
    high = 1e6 if pa.types.is_float32(array.type) else 1e10
    odd = ((size >= high) & (size < 1e15)) | ((size < 1e-4) & (size > 0)) | ~np.isfinite(size)
    if high == 1e10:
        odd |= (size >= 2**53) & (size < 1e41)  # DuckDB's shortest digits may be as near to another float
    if not odd.any():
        return text
    mask = pa.array(odd)
    values = array.filter(mask)
    each = values.to_numpy(zero_copy_only=False) if high == 1e6 else values.to_pylist()
    return patch(text, mask, map(float_text, each))


def _rounded_text(value: float, digits: int) -> str:
    return f"{value:.{digits}g}" if np.isfinite(value) else float_text(value)


def float_text(value: float | np.float32) -> str:
    """Print a float8 (as float) or float4 (as numpy scalar).

    An exponent appears below 1e-4, and from 1e15 (float8) or 1e6 (float4).
    """
    return real_text(float(value)) if isinstance(value, np.float32) else double_text(value)


def _decimal(array: pa.Array, type: Type, _style: TextStyle) -> pa.Array:
    """Return digits with the scale of the Arrow type; `trims_zeros` says when trailing zeros are dropped."""
    text = array.cast(pa.string())
    if array.type.scale > 6:  # below 1e-6 Arrow prints an exponent
        small = pc.match_substring(text, "E")
        if pc.any(small).as_py():
            text = patch(text, small, (format(v, "f") for v in array.filter(small.fill_null(False)).to_pylist()))
    if trims_zeros(array.type, type):
        text = pc.ascii_rtrim(pc.ascii_rtrim(text, "0"), ".")
    return text


def trims_zeros(arrow: pa.DataType, type: Type) -> bool:
    """Return whether trailing zeros only come from the storage scale of a numeric without a precision."""
    is_unconstrained = type.precision is None or type.is_unconstrained
    return is_unconstrained and (arrow.precision, arrow.scale) in (DEFAULT_NUMERIC, QUOTIENT_NUMERIC)


# Dates and times


def _date(array: pa.Array, _type: Type, style: TextStyle) -> pa.Array:
    text = _iso_date(array)
    if style.dates == "ISO":
        return text
    return pa.array([value and styled_date(value, style.dates, style.order) for value in text.to_pylist()], pa.string())


def _iso_date(array: pa.Array) -> pa.Array:
    days = array.cast(pa.int32())
    odd = pc.or_(pc.less(days, _YEAR_1), pc.greater_equal(days, _YEAR_10000))
    if not pc.any(odd).as_py():
        return array.cast(pa.string())
    text = pc.if_else(odd, None, array).cast(pa.string())
    return patch(text, odd, map(date_text, days.filter(odd.fill_null(False)).to_pylist()))


def date_text(days: int) -> str:
    """Print a date, given in days since 1970-01-01, of any year or infinite."""
    if abs(days) == INFINITE_DAYS:
        return "infinity" if days > 0 else "-infinity"
    date, suffix = _civil(days)
    return date + suffix


def _civil(days: int) -> tuple[str, str]:
    """Return `YYYY-MM-DD` in the proleptic Gregorian calendar, and ` BC` for years before 1.

    The calendar repeats every 400 years, so each day has a twin that Python's `date` can hold.
    """
    cycles, rest = divmod(days - _YEAR_1, 146_097)
    twin = datetime.date.fromordinal(rest + 1)
    year = twin.year + 400 * cycles
    return f"{year if year > 0 else 1 - year:04}-{twin:%m-%d}", "" if year > 0 else " BC"


def _time(array: pa.Array, _type: Type, _style: TextStyle) -> pa.Array:
    midnight = pc.equal(array.cast(pa.int64()), DAY)  # 24:00:00 is a valid time that Arrow cannot hold
    if not pc.any(midnight).as_py():
        return _trim_fraction(array.cast(pa.string()))
    text = pc.if_else(midnight, None, array).cast(pa.string())
    return pc.if_else(midnight, "24:00:00", _trim_fraction(text))


def _trim_fraction(text: pa.Array) -> pa.Array:
    return pc.ascii_rtrim(pc.ascii_rtrim(text, "0"), ".")


def _timestamp(array: pa.Array, _type: Type, style: TextStyle) -> pa.Array:
    text = _iso_timestamp(array, style.zone)
    if style.dates == "ISO":
        return text
    zones = _abbreviations(array, style.zone) if array.type.tz is not None else [None] * len(array)
    values = zip(text.to_pylist(), zones, strict=True)
    return pa.array([v and styled_moment(v, style.dates, style.order, zone) for v, zone in values], pa.string())


def _abbreviations(array: pa.Array, zone: str) -> list[str | None]:
    """Return the time zone's short name at each moment, in the nearest year that Arrow can print."""
    bounds = [pa.scalar(day * DAY, pa.int64()) for day in (_YEAR_1 + 1, _YEAR_10000 - 2)]
    micros = pc.min_element_wise(pc.max_element_wise(array.cast(pa.int64()), bounds[0]), bounds[1])
    micros = pc.if_else(array.is_valid(), micros, None)
    return pc.strftime(micros.cast(pa.timestamp("us", zone)), format="%Z").to_pylist()


def _iso_timestamp(array: pa.Array, zone: str) -> pa.Array:
    micros = array.cast(pa.int64())
    infinite = pc.or_(pc.equal(micros, INFINITE_MICROS), pc.equal(micros, -INFINITE_MICROS))
    if pc.any(infinite).as_py():
        finite = _iso_timestamp(pc.if_else(infinite, None, array), zone)
        return patch(
            finite,
            infinite,
            ("infinity" if v > 0 else "-infinity" for v in micros.filter(infinite.fill_null(False)).to_pylist()),
        )
    if array.type.tz is None:
        return _calendar(micros, None)
    local = _local(array, zone)
    return _calendar(local, pc.divide(pc.subtract(local, micros), 1_000_000))


def _local(array: pa.Array, zone: str) -> pa.Array:
    """Return the wall-clock microseconds of a timestamptz array."""
    try:
        return pc.local_timestamp(array.cast(pa.timestamp("us", zone))).cast(pa.int64())
    except pa.ArrowInvalid:
        raise Error(f'invalid value for parameter "TimeZone": "{zone}"', INVALID_PARAMETER_VALUE) from None


def _calendar(micros: pa.Array, offsets: pa.Array | None) -> pa.Array:
    """Return wall-clock microseconds as text, followed by the offset in seconds east, if `offsets` is given."""
    odd = pc.or_(pc.less(micros, _YEAR_1 * DAY), pc.greater_equal(micros, _YEAR_10000 * DAY))
    if not pc.any(odd).as_py():
        return _with_offset(_usual_timestamp(micros), offsets)
    text = _with_offset(_usual_timestamp(pc.if_else(odd, None, micros)), offsets)
    odd = odd.fill_null(False)
    zones = [""] * len(micros) if offsets is None else map(offset_text, offsets.filter(odd).to_pylist())
    return patch(text, odd, [timestamp_text(m, z) for m, z in zip(micros.filter(odd).to_pylist(), zones, strict=False)])


def _usual_timestamp(micros: pa.Array) -> pa.Array:
    """Return timestamps of the years 1 to 9999.

    Without fractions, the text is joined from a date's text and a clock time's text.
    """
    seconds, fractions = np.divmod(micros.fill_null(0).to_numpy(zero_copy_only=False), 1_000_000)
    if fractions.any() or not len(seconds):
        return _trim_fraction(micros.cast(pa.timestamp("us")).cast(pa.string()))
    days, clock = np.divmod(seconds, 86_400)
    rows = np.empty(len(days), _MOMENT)
    rows["date"], rows["between"], rows["clock"] = _dates(days), ord(" "), _clock().take(clock)
    text = fixed(rows.data, len(rows), _MOMENT.itemsize).view(pa.string())
    return pc.if_else(micros.is_valid(), text, None) if micros.null_count else text


# The layout of `YYYY-MM-DD HH:MM:SS`.
_MOMENT = np.dtype([("date", "V10"), ("between", "u1"), ("clock", "V8")])


def _dates(days: np.ndarray) -> np.ndarray:
    """Return `YYYY-MM-DD` of days since 1970. If the days lie close together, each different day is printed once."""
    first, last = int(days.min()), int(days.max())
    if last - first < len(days):
        return _characters(np.arange(first, last + 1), pa.date32(), 10).take(days - first)
    return _characters(days, pa.date32(), 10)


@cache
def _clock() -> np.ndarray:
    """Return `HH:MM:SS` of each second of a day."""
    return _characters(np.arange(86_400), pa.time32("s"), 8)


def _characters(values: np.ndarray, type: pa.DataType, width: int) -> np.ndarray:
    """Return Arrow's texts of values of a type; each text has `width` bytes."""
    text = pa.array(values.astype(np.int32)).cast(type).cast(pa.string())
    return np.frombuffer(text.buffers()[2], f"V{width}", len(text))


def timestamp_text(micros: int, suffix: str = "") -> str:
    """Print a timestamp, given in microseconds since 1970, of any year; `suffix` is its offset."""
    days, rest = divmod(micros, DAY)
    date, era = _civil(days)
    return f"{date} {clock_text(rest)}{suffix}{era}"


def _with_offset(text: pa.Array, offsets: pa.Array | None) -> pa.Array:
    if offsets is None:
        return text
    encoded = offsets.dictionary_encode()
    suffixes = pa.array([offset_text(seconds) for seconds in encoded.dictionary.to_pylist()], pa.string())
    each = suffixes[0] if len(suffixes) == 1 else suffixes.take(encoded.indices)
    return pc.binary_join_element_wise(text, each, "") if len(suffixes) else text


def offset_text(seconds: int) -> str:
    """Print an offset in seconds as `+HH[:MM[:SS]]`, without trailing `:00`."""
    hours, rest = divmod(abs(seconds), 3600)
    parts = [f"{hours:02}", f"{rest // 60:02}", f"{rest % 60:02}"]
    while len(parts) > 1 and parts[-1] == "00":
        parts.pop()
    return ("-" if seconds < 0 else "+") + ":".join(parts)


def _interval(array: pa.Array, _type: Type, style: TextStyle) -> pa.Array:
    text = INTERVAL_STYLES[style.intervals]
    texts = [text(*parts) for parts in zip(*(part.tolist() for part in interval_parts(array)), strict=True)]
    return pa.array(texts, pa.string(), mask=~np.asarray(array.is_valid()))


_ARROW_INTERVAL = np.dtype([("months", "<i4"), ("days", "<i4"), ("nanos", "<i8")])
_1_125TH = pow(125, -1, 2**61)


def interval_parts(array: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the months (int32), days (int32) and microseconds (int64) of an array of intervals; any values for NULL.

    DuckDB (1.5.5) hands microseconds out as nanoseconds modulo 2**64, which tell microseconds modulo 2**61, since 1000
    is 8 times an odd number. So the microseconds are right up to 2**60 of them, 36,533 years.
    """
    parts = np.frombuffer(array.buffers()[1], _ARROW_INTERVAL)[array.offset : array.offset + len(array)]
    micros = (parts["nanos"].view("<u8") >> np.uint64(3)) * np.uint64(_1_125TH)
    return parts["months"], parts["days"], (micros << np.uint64(3)).view("<i8") >> 3


# Bytes

_HEX = np.array([list(f"{byte:02x}".encode()) for byte in range(256)], np.uint8)
# bytea_output = escape: each byte's text, padded, and the length of that text.
_ESCAPES = ["\\\\" if byte == 0x5C else chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}" for byte in range(256)]
_ESCAPE = np.array([list(text.ljust(4).encode()) for text in _ESCAPES], np.uint8)
_ESCAPE_LENGTH = np.array([len(text) for text in _ESCAPES])


def fixed(data: bytes | memoryview, count: int, width: int) -> pa.Array:
    """Return a `binary` array of `count` values of `width` bytes each."""
    offsets = np.arange(count + 1, dtype=np.int32) * np.int32(width)
    return pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def _bytea(array: pa.Array, _type: Type, style: TextStyle) -> pa.Array:
    array = pa.concat_arrays([array.cast(pa.binary())])  # drops an offset into shared buffers
    offsets = np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + len(array) + 1]
    data = np.frombuffer(array.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    if style.bytes == "escape":
        lengths = _ESCAPE_LENGTH[data]
        starts = np.concatenate(([0], np.cumsum(lengths)))
        ends = starts[offsets - offsets[0]].astype(np.int32)
        characters = _ESCAPE[data][np.arange(4) < lengths[:, None]]
        text = pa.Array.from_buffers(pa.string(), len(array), [None, pa.py_buffer(ends), pa.py_buffer(characters)])
    else:
        ends = (offsets - offsets[0]) * 2
        digits = pa.Array.from_buffers(
            pa.string(), len(array), [None, pa.py_buffer(ends), pa.py_buffer(_HEX[data].tobytes())]
        )
        text = pc.binary_join_element_wise("\\x", digits, "")
    return pc.if_else(array.is_valid(), text, None) if array.null_count else text


def _uuid_text(array: pa.Array) -> pa.Array:
    digits = pc.utf8_slice_codeunits(_bytea(array.cast(pa.binary()), Type("bytea"), DEFAULT_STYLE), 2)
    cuts = ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32))
    return pc.binary_join_element_wise(*(pc.utf8_slice_codeunits(digits, *cut) for cut in cuts), "-")


# Nested values

_ARRAY_NEEDS_QUOTES = r'^$|[{}",\\\s]|^(?i:null)$'
_ROW_NEEDS_QUOTES = r'^$|[()",\\\s]'


def relist(array: pa.Array, values: pa.Array) -> pa.Array:
    """Return a list array over `values` with the lengths and nulls of `array`."""
    lengths = pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    mask = array.is_null() if array.null_count else None
    return pa.ListArray.from_arrays(pa.array(offsets), values, mask=mask)


def _list(array: pa.Array, type: Type, style: TextStyle) -> pa.Array:
    """Return lists as `{a,NULL,"b c"}`; the elements are printed as one column and joined again."""
    element = type.element if type.dimensions else type
    values = array.flatten()
    text = text_array(values, element, style)
    nested = pa.types.is_list(values.type) or pa.types.is_large_list(values.type)
    if not nested:
        text = _quote(text, _ARRAY_NEEDS_QUOTES, '\\"')
    joined = pc.binary_join(relist(array, text.fill_null("NULL")), ",")
    return pc.binary_join_element_wise("{", joined, "}", "")


def _struct(array: pa.Array, type: Type, style: TextStyle) -> pa.Array:
    """Return rows as `(1,"a b",)`, the text of a composite value."""
    types = [field for _, field in type.fields] or [_ANY] * array.type.num_fields
    fields = (text_array(field, field_type, style) for field, field_type in zip(array.flatten(), types, strict=True))
    cells = [_quote(text, _ROW_NEEDS_QUOTES, '""').fill_null("") for text in fields]
    text = pc.binary_join_element_wise("(", pc.binary_join_element_wise(*cells, ","), ")", "")
    return pc.if_else(array.is_valid(), text, None)


def _map(array: pa.Array, type: Type, style: TextStyle) -> pa.Array:
    """Return maps as `{a:1,b:NULL}`, RisingWave's text, in which nothing is quoted."""
    key_type, value_type = [part for _, part in type.fields] or (_ANY, _ANY)
    array = pa.concat_arrays([array])  # drops the map's offset, which `keys` and `items` do not have
    keys, values = text_array(array.keys, key_type, style), text_array(array.items, value_type, style)
    entries = pc.binary_join_element_wise(keys, values.fill_null("NULL"), ":")
    mask = array.is_null() if array.null_count else None
    listed = pa.ListArray.from_arrays(array.offsets, entries, mask=mask)
    return pc.binary_join_element_wise("{", pc.binary_join(listed, ","), "}", "")


def _quote(text: pa.Array, needs: str, quote: str) -> pa.Array:
    odd = pc.match_substring_regex(text, needs)
    if not pc.any(odd).as_py():
        return text
    escaped = pc.replace_substring(pc.replace_substring(text, "\\", "\\\\"), '"', quote)
    return pc.if_else(odd, pc.binary_join_element_wise('"', escaped, '"', ""), text)


_ANY = Type("text")

_Printer = Callable[[pa.Array, Type, TextStyle], pa.Array]
_PRINTERS: tuple[tuple[Callable[[pa.DataType], bool], _Printer], ...] = (
    (pa.types.is_integer, _integer),
    (pa.types.is_floating, _float),
    (pa.types.is_decimal, _decimal),
    (pa.types.is_timestamp, _timestamp),
    (pa.types.is_boolean, _boolean),
    (pa.types.is_date, _date),
    (pa.types.is_time, _time),
    (pa.types.is_binary, _bytea),
    (pa.types.is_interval, _interval),
    (pa.types.is_map, _map),
    (pa.types.is_list, _list),
    (pa.types.is_struct, _struct),
)
