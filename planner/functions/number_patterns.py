"""Postgres' number patterns of `to_char` (documentation 9.8, "Template Patterns for Numeric Formatting")."""

from __future__ import annotations

import re

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.functions.scalar_functions import of_one, ours

# Digits with group separators, a fraction or places that V shifts before the point, and a sign on one side. D and G are
# the C locale's point and comma.
_NUMBER = re.compile(r"(FM)?(S(?!G)|MI)?([90,G]*[90][90,G]*)(?:[.D]([90]+)|V(9*))?(S|MI)?", re.IGNORECASE)
_SHIFTED_POINT = re.compile(r"^(?:[^\"]*V[^\"]*[.D]|[^\"]*[.D][^\"]*V)", re.IGNORECASE)
# Patterns that are no date pattern.
_NOT_DATE = re.compile(
    r"(?:FM|TH|PR|PL|SG|MI|RN|EEEE|[90.,DGSVL$\s])*[90](?:FM|TH|PR|PL|SG|MI|EEEE|[90.,DGSVL$\s])*", re.I
)


def is_number_format(pattern: str) -> bool:
    """Return whether a pattern can only be a number pattern."""
    return _NOT_DATE.fullmatch(pattern) is not None


def number_text(value: exp.Expr, pattern: exp.Expr, is_quotient: bool = False) -> exp.Expr:
    """Return `to_char` of a number. Raises Error 0A000 for a pattern that is no constant or not supported."""
    if pattern.is_string and _SHIFTED_POINT.search(pattern.name):
        raise Error('cannot use "V" and decimal point together', errors.SYNTAX_ERROR)
    found = _NUMBER.fullmatch(pattern.name) if pattern.is_string else None
    if found is None or (found[2] and found[6]):
        raise Error(
            f"{_written(pattern)} is not supported",
            errors.FEATURE_NOT_SUPPORTED,
            hint="Patterns are made of 9, 0, a comma or G, one point, D or V, FM in front, and S or MI on one side.",
        )
    fill, before, whole, fraction, shifted, after = found.groups()
    fraction, shifted = fraction or "", shifted or ""
    whole += shifted
    sign = f"{before.upper()}_" if before else f"_{after.upper()}" if after else ""
    constants = (
        exp.Literal.string(whole.upper().replace("G", ",")),
        exp.Literal.number(len(fraction)),
        exp.Literal.number(fraction.rfind("0") + 1),  # zeros up to this place are also shown with FM
        exp.Literal.string(sign),
        exp.true() if fill else exp.false(),
    )
    if is_quotient:  # the macro takes numerics with fewer digits, and rounding twice would be wrong
        value = exp.Anonymous(this="round", expressions=[value, exp.Literal.number(len(fraction + shifted))])
    digits = ours("_number_digits", value, exp.Literal.number(len(fraction + shifted)))
    if shifted:
        digits = ours("_number_shifted", digits)
    shown = ours("_number_shown", digits, constants[0], constants[2], constants[4])
    return ours("_number_text", digits.copy(), _whole(shown, constants[0].name), *(each.copy() for each in constants))


def _written(pattern: exp.Expr) -> str:
    return f'number pattern "{pattern.name}"' if pattern.is_string else "a number pattern that is not a constant"


# Digits, at most one point, and signs, currencies or separators.
_READABLE = re.compile(r"(?:FM|TH|PL|MI|SG|PR|[90,GSL$ ])*[.D]?(?:TH|PL|MI|SG|PR|[90,GSL$ ])*", re.IGNORECASE)


def number_read(text: exp.Expr, pattern: exp.Expr) -> exp.Expr:
    """Return `to_number`.

    Raises Error 0A000 for a pattern that is no constant or not of digits, signs and separators.
    """
    if not pattern.is_string or not _READABLE.fullmatch(pattern.name):
        raise Error(f"{_written(pattern)} is not supported", errors.FEATURE_NOT_SUPPORTED)
    whole, _, fraction = pattern.name.upper().replace("D", ".").partition(".")
    skipped = [mark for mark, names in ((",", ",G"), ("$", "L$")) if set(names) & set(pattern.name.upper())]
    constants = (
        exp.Literal.string("".join(skipped)),
        exp.Literal.number(len(re.findall("[90]", whole))),
        exp.Literal.number(len(re.findall("[90]", fraction))),
    )
    return ours("to_number", text, *constants)


_DIGITS = "_digits"


def _whole(digits: exp.Expr, pattern: str) -> exp.Expr:
    """Return the digits before the point in a pattern's form: each group is cut out by its place in the pattern.

    Zeros fill the places from the pattern's first zero on; a comma is shown if there is a digit before it.
    """
    groups = [len(group) for group in pattern.split(",")]
    zeros = len(pattern[pattern.index("0") :].replace(",", "")) if "0" in pattern else 0
    filled = ours("_number_filled", exp.column(_DIGITS), exp.Literal.number(zeros))
    padded = exp.Anonymous(this="lpad", expressions=[filled, exp.Literal.number(sum(groups)), exp.Literal.string(" ")])
    parts: list[exp.Expr] = []
    for number, group in enumerate(groups):
        before = sum(groups[:number])
        if number:
            parts.append(ours("_number_comma", filled.copy(), exp.Literal.number(sum(groups) - before)))
        place = exp.Literal.number(before + 1), exp.Literal.number(group)
        parts.append(exp.Anonymous(this="substring", expressions=[padded.copy(), *place]))
    text = exp.Anonymous(this="concat", expressions=parts)
    return of_one(digits, text, _DIGITS)
