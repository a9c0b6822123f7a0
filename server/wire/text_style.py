"""A session's style of text values: TimeZone, DateStyle, IntervalStyle, client_encoding, and UNREPORTED ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from sparkwave.server.wire.client_encoding import ENCODINGS, UTF8, Encoding


@dataclass(frozen=True)
class TextStyle:
    """The variables that change how values print.

    `dates` (ISO, SQL, Postgres or German) and `order` (MDY, DMY or YMD) are the two halves of DateStyle. `intervals` is
    postgres, postgres_verbose, sql_standard or iso_8601. `bytes` is hex or escape. `float_digits` is
    extra_float_digits: the significant digits of floats beyond 15 (float4: 6), or as many as are needed if above 0.
    """

    zone: str = "UTC"
    dates: str = "ISO"
    order: str = "MDY"
    intervals: str = "postgres"
    encoding: Encoding = UTF8
    bytes: str = "hex"
    float_digits: int = 1


DEFAULT_STYLE = TextStyle()
# The parameters of the style that ParameterStatus leaves out.
UNREPORTED = ("bytea_output", "extra_float_digits")


def style_of(parameters: Mapping[str, str]) -> TextStyle:
    """Return the style of a session's parameters; a missing parameter has its default."""
    return _style(*map(parameters.get, ("TimeZone", "DateStyle", "IntervalStyle", "client_encoding", *UNREPORTED)))


@lru_cache(maxsize=256)
def _style(
    zone: str | None,
    dates: str | None,
    intervals: str | None,
    encoding: str | None,
    output: str | None,
    float_digits: str | None,
) -> TextStyle:
    date_style, _, order = (dates or "ISO, MDY").partition(", ")
    known = ENCODINGS[encoding or "UTF8"]
    digits = int(float_digits or 1)
    return TextStyle(zone or "UTC", date_style, order, intervals or "postgres", known, output or "hex", digits)
