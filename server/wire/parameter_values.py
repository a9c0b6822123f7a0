"""Converts a client's parameter values to Python values."""

from __future__ import annotations

from decimal import Decimal

from sparkwave.catalog.moment_texts import MDY
from sparkwave.catalog.types import Type
from sparkwave.planner.parse.long_numbers import fitted
from sparkwave.planner.parse.text_values import decode_text
from sparkwave.server.wire.client_encoding import UTF8, Encoding
from sparkwave.server.wire.parameter_binary import decode_binary


def decode_parameter(
    data: bytes | None, format: int, type: Type, encoding: Encoding = UTF8, order: str = MDY
) -> object:
    """Return the Python value of a parameter, None for NULL.

    `format` is 0 (text) or 1 (binary), `order` the order of day, month and year in dates: MDY, DMY or YMD.
    The value is an int, float, Decimal, str, bytes, bool, date, time, datetime (aware for a timestamptz with an
    offset), uuid.UUID, or a list for an array; json and interval are str. Raises Error 22P02 (22007 for dates) or 22P03
    for a malformed value.
    """
    if data is None:
        return None
    if not format:
        value = decode_text(encoding.decode(data), type, order)
    else:
        value = decode_binary(encoding.to_utf8(data) if encoding.concerns(type) else data, type)
    return _fitted(value) if type.name == "numeric" else value


def _fitted(value: object) -> object:
    """Return a value, or a list, of decimals that DuckDB can hold. Raises Error 22003 for too many digits."""
    if isinstance(value, list):
        return [_fitted(item) for item in value]
    return fitted(value) if isinstance(value, Decimal) and value.is_finite() else value
