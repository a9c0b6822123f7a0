"""Parses intervals, and types of times with a modifier: `interval '1-2' year to month`, `timestamp(3)`.

A text that is cast to such an interval becomes the text of its value. Any other cast stays one to the type without a
modifier, as the argument of a call of TO_MODIFIER.
"""

from __future__ import annotations

import re
from typing import Any

from sqlglot import exp
from sqlglot.tokens import TokenType

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.interval_texts import read_interval, within
from sparkwave.catalog.modifiers import LAST_FIELDS, MOST_DIGITS, TO_MODIFIER, fields_of, interval_modifier
from sparkwave.planner.parse.calls import CallParser
from sparkwave.planner.parse.intervals import is_plain_interval, is_unit

# A cast's type as it is written, with its modifier, among the meta data of the cast.
WRITTEN = "written type"
_FIELDS = frozenset({"year", "month", "day", "hour", "minute", "second"})
_OF_MOMENTS = (exp.DType.TIME, exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ)
_BARE_NUMBER = re.compile(r"\s*-?\d+(\.\d*)?\s*")
# Texts that a field makes a number of this unit, as sqlglot reads them.
_SHORT_NUMBER = re.compile(r"-?\d{1,7}")
_DIGITS = re.compile(r"\((\d+)\)$")


def modifier_of(kind: exp.Expr) -> int | None:
    """Return PostgreSQL's modifier of a type of times as it is written; None without one, and of any other type."""
    if isinstance(kind.args.get("this"), exp.Interval):
        written = kind.this.args["unit"].name.lower()
        digits = _DIGITS.search(written)
        return interval_modifier(_DIGITS.sub("", written), int(digits[1]) if digits else None)
    if kind.args.get("this") not in _OF_MOMENTS or not kind.expressions:
        return None
    digits = kind.expressions[0].name
    return int(digits) if digits.isdigit() and int(digits) < MOST_DIGITS else None


def without_modifier(kind: exp.DataType) -> exp.DataType:
    """Return a type of times without its modifier; any other type unchanged."""
    if isinstance(kind.args.get("this"), exp.Interval):
        return exp.DataType(this=exp.DType.INTERVAL)
    has_digits = kind.args.get("this") in _OF_MOMENTS and kind.expressions
    return exp.DataType(this=kind.this) if has_digits else kind


def with_modified(cast: Any) -> Any:
    """Return a cast to a type with a modifier as a call over a cast to the type without it; any other unchanged."""
    if not isinstance(cast, exp.Cast) or (without := without_modifier(cast.to)) is cast.to:
        return cast
    modifier = modifier_of(cast.to)
    cast.meta[WRITTEN] = cast.to
    cast.set("to", without)
    if modifier is None:
        return cast
    if cast.is_type(exp.DType.INTERVAL) and cast.this.is_string:
        cast.set("this", interval_literal(cast.this, modifier))
        return cast
    return exp.Anonymous(this=TO_MODIFIER, expressions=[cast, exp.Literal.number(modifier)])


def interval_literal(text: exp.Expr, modifier: int) -> exp.Expr:
    """Return the text of an interval's value, as DuckDB reads it. Raises Error 22007, 22008 or 22015."""
    try:
        found = within(read_interval(text.name, fields_of(modifier)), modifier)
    except Error as error:
        error.position = text.meta["start"] + 1 if "start" in text.meta else None
        raise
    made = exp.Literal.string(f"{found.months} months {found.days} days {found.micros} microseconds")
    made.meta.update(text.meta)
    return made


class TimeParser(CallParser):
    def _parse_types(self, *args: Any, **options: Any) -> Any:
        """Parse a type; one of intervals with a modifier is that of an `exp.Interval` without a value."""
        if not self._match(TokenType.INTERVAL, advance=False) or options.get("check_func"):
            return super()._parse_types(*args, **options)
        index = self._index
        self._advance()
        written = self._written_digits() or self._written_fields()
        if not written:
            self._retreat(index)
            return super()._parse_types(*args, **options)
        if self._match(TokenType.L_BRACKET, advance=False):
            message = "an array of intervals with fields or digits is not supported"
            raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=self._tokens[index].start + 1)
        return exp.DataType(this=exp.Interval(unit=exp.Var(this=written)))

    def _written_digits(self) -> str:
        """Parse a number in parentheses, as it is written; "" for anything else."""
        index = self._index
        if self._match(TokenType.L_PAREN) and self._match(TokenType.NUMBER):
            number = self._prev.text
            if number.isdigit() and self._match(TokenType.R_PAREN):
                return f"({number})"
        self._retreat(index)
        return ""

    def _written_fields(self) -> str:
        """Parse the fields of an interval, as they are written; "" for anything else. Raises a syntax error."""
        first = self._field()
        if not first:
            return ""
        fields = first
        if self._match_text_seq("TO"):
            if first not in LAST_FIELDS:
                self._retreat(self._index - 1)
                self._stop()
            last = self._curr.text.lower() if self._curr else ""
            if last not in LAST_FIELDS[first]:
                self._stop()
            self._advance()
            fields = f"{first} to {last}"
        return fields + (self._written_digits() if fields.endswith("second") else "")

    def _field(self) -> str:
        word = self._curr.text.lower() if self._curr and self._curr.token_type != TokenType.IDENTIFIER else ""
        if word not in _FIELDS:
            return ""
        self._advance()
        return word

    def _parse_interval(self, require_interval: bool = True, parse_function_unit: bool = True) -> Any:
        """Parse an interval with a clock time, `ago` or fields as a cast of its text, which sqlglot would drop.

        sqlglot would also take a text added to an interval for another interval.
        """
        if not self._match(TokenType.INTERVAL, advance=False):
            return super()._parse_interval(require_interval, parse_function_unit)
        start = self._index
        self._advance()
        written = self._written_digits()
        if not self._match(TokenType.STRING):
            self._retreat(start)
            return super()._parse_interval(require_interval, parse_function_unit)
        text = exp.Literal.string(self._prev.text).update_positions(self._prev)
        behind = self._index
        written = written or self._written_fields()
        if written and not (_SHORT_NUMBER.fullmatch(text.name) and written in _FIELDS):
            kind = exp.DataType(this=exp.Interval(unit=exp.Var(this=written)))
            return with_modified(exp.Cast(this=text, to=kind))
        self._retreat(behind)
        is_plain = is_plain_interval(text.name) and not (self._is_name_next() and _BARE_NUMBER.fullmatch(text.name))
        return self._parse_interval_span(text, parse_function_unit) if is_plain else exp.cast(text, "interval")

    def _is_name_next(self) -> bool:
        """Return whether a word follows that is no unit of intervals: sqlglot would take it for one."""
        return self._curr is not None and self._curr.token_type == TokenType.VAR and not is_unit(self._curr.text)

    def build_cast(self, strict: bool, **options: Any) -> Any:
        return with_modified(super().build_cast(strict, **options))
