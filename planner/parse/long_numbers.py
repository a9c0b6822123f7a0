"""Numbers with more digits than a decimal of DuckDB has, which (1.5.5) makes doubles of them."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal

from sparkwave.catalog.errors import NUMERIC_VALUE_OUT_OF_RANGE, Error
from sparkwave.catalog.types import MOST_DIGITS

_EXACT = Context(prec=2 * MOST_DIGITS, rounding=ROUND_HALF_UP)


def fitted(value: Decimal) -> Decimal:
    """Return a finite number, rounded to 38 digits if it has more. Raises Error 22003 for so many before the point."""
    whole, places = max(value.adjusted() + 1, 1), max(-int(value.as_tuple().exponent), 0)
    while whole + places > MOST_DIGITS:
        if whole > MOST_DIGITS:
            raise Error("value overflows numeric format", NUMERIC_VALUE_OUT_OF_RANGE)
        places = MOST_DIGITS - whole
        value = value.quantize(Decimal(1).scaleb(-places), context=_EXACT)
        whole = max(value.adjusted() + 1, 1)  # one more where it is rounded up to a power of ten
    return value


def fitted_text(number: str) -> str:
    """Return what `fitted` does for the text of a number without a sign; any other text as it is."""
    is_long = len(number) > MOST_DIGITS and number.replace(".", "", 1).isdigit()
    return f"{fitted(Decimal(number)):f}" if is_long else number
