"""Converts a client's parameter values to Python values."""

from __future__ import annotations

from sparkwave.catalog.moment_texts import MDY
from sparkwave.catalog.types import Type
from sparkwave.planner.parse.text_values import decode_text
from sparkwave.server.wire.client_encoding import UTF8, Encoding
from sparkwave.server.wire.parameter_binary import decode_binary


def decode_parameter(
    data: bytes | None, format: int, type: Type, encoding: Encoding = UTF8, order: str = MDY
) -> object:
    """Return the Python value of a parameter, None for NULL; `format` is 0 (text) or 1 (binary), `order` that of dates.

    The value is an int, float, Decimal, str, bytes, bool, date, time, datetime (aware for a timestamptz with an
    offset), uuid.UUID, or a list for an array; json and interval are str. Raises Error 22P02 (22007 for dates) or 22P03
    for a malformed value.
    """
    if data is None:
        return None
    if not format:
        return decode_text(encoding.decode(data), type, order)
    return decode_binary(encoding.to_utf8(data) if encoding.concerns(type) else data, type)
