"""Texts of floats: PostgreSQL's shortest digits that are nearer to a float than to any other.

DuckDB (1.5.5) prints other digits where the shortest ones are as near to another float, and more of them of some reals.
This module is sent to Spark's executors (`executor.spark.kernel`), so it imports nothing of this package.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_UP, Context, Decimal
from typing import Any

import pyarrow as pa

# The function's name in DuckDB; `catalog/system/scalar.sql` calls it.
_FLOAT_TEXT = "sparkwave_float_text"
_POWER = 0.5  # the mantissa of a power of two


@dataclass(frozen=True)
class _Form:
    """How floats of a type are printed: `fewest` digits tell them apart, at most `most`. From 10 ** `fewest` they have
    an exponent. `bits` are those of a mantissa; below `least` it has fewer.
    """

    fewest: int
    most: int
    bits: int
    least: float


_REAL = _Form(6, 9, 24, 2.0**-126)
_DOUBLE = _Form(15, 17, 53, 2.0**-1022)


def real_text(value: float) -> str:
    """Return the text of a float4, given as the double of the same value."""
    return _text(value, _REAL)


def double_text(value: float) -> str:
    """Return the text of a float8."""
    return repr(value).removesuffix(".0") if abs(value) < 10**_DOUBLE.fewest else _text(value, _DOUBLE)


def define_floats(database: Any) -> None:
    """Define the text of a float in a DuckDB database, from DuckDB's text and the type's fewest digits (6 or 15)."""
    define = database.create_function
    define(_FLOAT_TEXT, lambda texts, digits: _texts(texts, digits), ["VARCHAR", "INTEGER"], "VARCHAR", type="arrow")


def _texts(texts: pa.Array | pa.ChunkedArray, digits: pa.Array | pa.ChunkedArray) -> pa.Array:
    pairs = zip(texts.to_pylist(), digits.to_pylist(), strict=True)
    return pa.array([_text(_read(text, digits), _FORMS[digits]) for text, digits in pairs], pa.string())


_FORMS = {form.fewest: form for form in (_REAL, _DOUBLE)}


def _read(text: str, digits: int) -> float:
    value = float(text)
    return _as_real(value) if digits == _REAL.fewest else value


def _as_real(value: float) -> float:
    try:
        nearest: float = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return nearest


def _text(value: float, form: _Form) -> str:
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    fewest = form.fewest if abs(value) >= form.least else 1
    shown = (each for places in range(fewest, form.most + 1) for each in _candidates(value, places))
    digits, _, after = next(text for text in shown if _is_nearest(text, value, form)).partition("e")
    digits, exponent = digits.rstrip("0").rstrip("."), int(after)
    if -4 <= exponent < form.fewest:
        return f"{Decimal(f'{digits}e{exponent}'):f}"
    return f"{digits}e{exponent:+03}"


def _candidates(value: float, places: int) -> Iterator[str]:
    """Yield texts of so many digits: the nearest one, and the one further from zero, as a power of two has more room on
    that side.
    """
    yield f"{value:.{places - 1}e}"
    if math.frexp(abs(value))[0] == _POWER:
        yield f"{Context(prec=places, rounding=ROUND_UP).create_decimal(Decimal(value)):e}"


def _is_nearest(text: str, value: float, form: _Form) -> bool:
    """Return whether a text is nearer to a float than to the ones beside it."""
    mantissa, exponent = math.frexp(abs(value))
    off = (Decimal(text) - Decimal(value)) * (1 if value > 0 else -1)
    half = Decimal(2) ** (max(exponent, math.frexp(form.least)[1]) - form.bits - 1)
    return -half / (2 if mantissa == _POWER and abs(value) > form.least else 1) < off < half
