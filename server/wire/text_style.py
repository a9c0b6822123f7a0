"""A session's style of text values: TimeZone, DateStyle, IntervalStyle and client_encoding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from sparkwave.server.wire.client_encoding import ENCODINGS, UTF8, Encoding


@dataclass(frozen=True)
class TextStyle:
    """The variables that change how values print.

    `dates` (ISO, SQL, Postgres or German) and `order` (MDY, DMY or YMD) are the two halves of DateStyle. `intervals` is
    postgres, postgres_verbose, sql_standard or iso_8601.
    """

    zone: str = "UTC"
    dates: str = "ISO"
    order: str = "MDY"
    intervals: str = "postgres"
    encoding: Encoding = UTF8


DEFAULT_STYLE = TextStyle()


def style_of(parameters: Mapping[str, str]) -> TextStyle:
    """Return the style of a session's reported parameters; a missing parameter has its default."""
    return _style(*map(parameters.get, ("TimeZone", "DateStyle", "IntervalStyle", "client_encoding")))


@lru_cache(maxsize=256)
def _style(zone: str | None, dates: str | None, intervals: str | None, encoding: str | None) -> TextStyle:
    date_style, _, order = (dates or "ISO, MDY").partition(", ")
    return TextStyle(zone or "UTC", date_style, order, intervals or "postgres", ENCODINGS[encoding or "UTF8"])
