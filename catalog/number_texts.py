"""Texts of numbers by a pattern, and numbers by a text and a pattern: to_char and to_number.

PostgreSQL 15: src/backend/utils/adt/formatting.c (NUM_processor and others), with the signs, the point and the
comma of the locale C. This module is sent to Spark's executors (`executor.spark.kernel`), so it imports nothing of this
package but what is sent with it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation

from sparkwave.catalog.errors import (
    FEATURE_NOT_SUPPORTED,
    INVALID_TEXT_REPRESENTATION,
    NUMERIC_VALUE_OUT_OF_RANGE,
    SYNTAX_ERROR,
    Error,
)
from sparkwave.catalog.patterns import Part, ending, parts_of

_UPPER = ("EEEE", "FM", "MI", "PL", "PR", "RN", "SG", "SP", "TH", ",", ".", "0", "9", "B", "C", "D", "G", "L", "S", "V")
_WORDS = _UPPER + tuple(word.lower() for word in _UPPER if word.isalpha())
_SIGN_WORDS = ("PL", "MI", "SG")
_FLOAT_DIGITS = {"real": 6, "double precision": 15}
_INTEGERS = {"smallint": 32, "integer": 32, "bigint": 64}
_WIDE = Context(prec=200, rounding=ROUND_HALF_UP)
_ROMAN = (
    ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX"), ("X", "XX", "XXX", "XL", "L", "LX", "LXX", "LXXX", "XC"),
    ("C", "CC", "CCC", "CD", "D", "DC", "DCC", "DCCC", "CM"), ("M", "MM", "MMM"),
)  # fmt: skip


@dataclass
class _Pattern:
    """What the words of a pattern say together (NUMDesc)."""

    parts: tuple[Part, ...]
    flags: set[str] = field(default_factory=set)
    before: int = 0  # digits before the point
    behind: int = 0
    shifted: int = 0  # places of V
    zero_start: int = 0
    zero_end: int = 0
    sign_at: str = ""  # of S: before or behind
    digits_before_sign: int = 0

    def add(self, word: str) -> None:
        """Add a word (NUMDesc_prepare). Raises Error 42601."""
        if "EEEE" in self.flags and word != "EEEE":
            raise _wrong('"EEEE" must be the last pattern used')
        match word:
            case "9" | "0":
                self._add_digit(word)
            case "B":
                if not self.before and not self.behind and "0" not in self.flags:
                    self.flags.add("B")
            case "." | "D":
                if "." in self.flags:
                    raise _wrong("multiple decimal points")
                if "V" in self.flags:
                    raise _wrong('cannot use "V" and decimal point together')
                self.flags.add(".")
            case "S":
                self._add_sign()
            case "MI" | "PL" | "SG":
                if "S" in self.flags:
                    raise _wrong(f'cannot use "S" and "{word}" together')
                self.flags |= {"MI", "PL"} if word == "SG" else {word}
            case "PR":
                if self.flags & {"S", "PL", "MI"}:
                    raise _wrong('cannot use "PR" and "S"/"PL"/"MI"/"SG" together')
                self.flags.add("PR")
            case "V":
                if "." in self.flags:
                    raise _wrong('cannot use "V" and decimal point together')
                self.flags.add("V")
            case "EEEE":
                if "EEEE" in self.flags:
                    raise _wrong('cannot use "EEEE" twice')
                if self.flags & {"B", "FM", "S", "PR", "MI", "PL", "RN", "V"}:
                    detail = '"EEEE" may only be used together with digit and decimal point patterns.'
                    raise Error('"EEEE" is incompatible with other formats', SYNTAX_ERROR, detail=detail)
                self.flags.add("EEEE")
            case "FM" | "RN":
                self.flags.add(word)

    def _add_digit(self, word: str) -> None:
        if "PR" in self.flags:
            raise _wrong(f'"{word}" must be ahead of "PR"')
        if word == "9" and "V" in self.flags:
            self.shifted += 1
            return
        if word == "0" and not self.flags & {"0", "."}:
            self.flags.add("0")
            self.zero_start = self.before + 1
        if "." in self.flags:
            self.behind += 1
        else:
            self.before += 1
        if word == "0":
            self.zero_end = self.before + self.behind

    def _add_sign(self) -> None:
        if "S" in self.flags:
            raise _wrong('cannot use "S" twice')
        if self.flags & {"PL", "MI", "PR"}:
            raise _wrong('cannot use "S" and "PL"/"MI"/"SG"/"PR" together')
        self.flags.add("S")
        self.sign_at = "behind" if "." in self.flags else "before"
        if self.sign_at == "before":
            self.digits_before_sign = self.before


def _wrong(message: str) -> Error:
    return Error(message, SYNTAX_ERROR)


def _read(pattern: str) -> _Pattern:
    made = _Pattern(parts_of(pattern, _WORDS))
    for part in made.parts:
        if part.word:
            made.add(part.word.upper())
    return made


def number_chars(number: str, type_: str, pattern: str) -> str:
    """Return to_char of a number, given as text. Raises Error 42601, 22003."""
    if not pattern:
        return ""
    read = _read(pattern)
    if "RN" in read.flags:
        return _processed(read, _roman(number, type_), 0, "")
    if "EEEE" in read.flags:
        return _scientific(number, type_, read)
    digits = _digits(number, type_, read)
    sign, digits = ("-", digits[1:]) if digits[0] == "-" else ("+", digits)
    width = len(digits.partition(".")[0])
    if width > read.before:
        digits = "#" * read.before + "." + "#" * read.behind
    return _processed(read, digits, max(read.before - width, 0), sign)


def _digits(number: str, type_: str, read: _Pattern) -> str:
    """Return the digits to show, shifted by V and rounded; `read` then has the places that there are."""
    if type_ in _FLOAT_DIGITS:
        return _float_digits(float(number), _FLOAT_DIGITS[type_], read)
    value = Decimal(number)
    if "V" in read.flags:
        value = value.scaleb(read.shifted, _WIDE)
        read.before += read.shifted
        bits = _INTEGERS.get(type_)
        if bits is not None and not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
            raise Error(f"{'integer' if bits == 32 else 'bigint'} out of range", NUMERIC_VALUE_OUT_OF_RANGE)
    rounded = value.quantize(Decimal(1).scaleb(-read.behind), context=_WIDE)
    return f"{rounded if rounded or type_ in _INTEGERS else abs(rounded):f}"


def _float_digits(value: float, most: int, read: _Pattern) -> str:
    if "V" in read.flags:
        value *= 10.0**read.shifted
        read.before += read.shifted
    width = len(_fixed(abs(value), 0))
    read.behind = 0 if width >= most else min(read.behind, most - width)
    return _fixed(value, read.behind)


def _fixed(value: float, places: int) -> str:
    if math.isnan(value):
        return "NaN"
    return f"{'-' if value < 0 else ''}Infinity" if math.isinf(value) else f"{value:.{places}f}"


def _scientific(number: str, type_: str, read: _Pattern) -> str:
    value = float(number) if type_ in _FLOAT_DIGITS or type_ in ("smallint", "integer") else Decimal(number)
    if isinstance(value, float):
        if not math.isfinite(value):
            return f" {'#' * read.before}.{'#' * (read.behind + 4)}"
        return f"{value: .{read.behind}e}"
    exponent = value.adjusted() if value else 0
    mantissa = value.scaleb(-exponent, _WIDE).quantize(Decimal(1).scaleb(-read.behind), context=_WIDE)
    mark = "-" if exponent < 0 else "+"
    return f"{'' if value < 0 else ' '}{mantissa:f}e{mark}{abs(exponent):02d}"


def _roman(number: str, type_: str) -> str:
    value = float(number)
    if type_ in _FLOAT_DIGITS:
        rounded = round(value) if math.isfinite(value) else 0
    else:
        rounded = int(Decimal(number).quantize(Decimal(1), context=_WIDE))
        if not -(2**31) <= rounded < 2**31:
            raise Error("integer out of range", NUMERIC_VALUE_OUT_OF_RANGE)
    if not 0 < rounded < 4000:
        return "#" * 15
    places = enumerate(reversed(str(rounded)))
    return "".join(reversed([_ROMAN[place][int(digit) - 1] if digit != "0" else "" for place, digit in places]))


class _Output:
    """The state of NUM_processor while it writes."""

    def __init__(self, read: _Pattern, number: str, spaces: int, sign: str) -> None:
        self.flags, self.number, self.spaces, self.sign = set(read.flags), number, spaces, sign
        self.read, self.sign_at, self.behind = read, read.sign_at, read.behind
        self.zero_start = read.zero_start - 1 if read.zero_start else 0
        self.is_written = False  # the sign
        if self.flags & {"PL", "MI"}:
            self.is_written = self.flags & {"PL", "MI"} != {"PL"}
        else:
            if sign != "-" and "FM" in self.flags:
                self.flags.discard("PR")
            self.is_written = sign == "+" and "FM" in self.flags and "S" not in self.flags
            if self.sign_at == "before" and read.before == read.digits_before_sign:
                self.sign_at = "behind"
        self.count = read.behind + read.before - 1
        self.last = self._last_relevant()
        self.count += not self.is_written and not spaces
        self.is_within = False  # the number
        self.current = self.place = 0
        self.text: list[str] = []

    def _last_relevant(self) -> int | None:
        """The place of the last digit behind the point that is shown with FM."""
        if not {"FM", "."} <= self.flags or "." not in self.number:
            return None
        last = max(len(self.number.rstrip("0")) - 1, self.number.index("."))
        if self.read.zero_end > self.spaces:
            last = max(last, min(len(self.number) - 1, self.read.zero_end - self.spaces))
        return last

    @property
    def ends_in_point(self) -> bool:
        return self.last is not None and self.number[self.last] == "."

    @property
    def is_zero_before_point(self) -> bool:
        return "0" not in self.flags and self.place == 0 and self.number[:1] == "0" and self.behind != 0

    def write(self, word: str) -> None:
        """Write a digit or the point of the pattern (NUM_numpart_to_char)."""
        self.is_within = False
        starts = "0" in self.flags and self.zero_start == self.current
        if (
            not self.is_written
            and (self.current >= self.spaces or starts)
            and (not self.is_zero_before_point or self.ends_in_point)
        ):
            self._write_sign()
        has_zeros = "0" in self.flags and self.zero_start <= self.current
        if self.current < self.spaces and not has_zeros:
            self.text.append("" if "FM" in self.flags else " ")
        elif self.current < self.spaces:
            self.text.append("0")
            self.is_within = True
        else:
            self._write_digit(word)
        end = self.count + bool(self.spaces) + ("." in self.flags)
        if self.last is not None and self.last == self.place:
            end = self.current
        if self.current + 1 == end:
            if self.is_written and "PR" in self.flags:
                self.text.append(" " if self.sign == "+" else ">")
            elif "S" in self.flags and self.sign_at == "behind":
                self.text.append("-" if self.sign == "-" else "+")
        self.current += 1

    def _write_sign(self) -> None:
        if "S" in self.flags:
            if self.sign_at == "before":
                self.text.append("-" if self.sign == "-" else "+")
                self.is_written = True
            return
        if "PR" in self.flags:
            self.text.append(" " if self.sign == "+" else "<")
        elif self.sign == "+":
            self.text.append("" if "FM" in self.flags else " ")
        else:
            self.text.append(self.sign)
        self.is_written = True

    def _write_digit(self, word: str) -> None:
        digit = self.number[self.place : self.place + 1]
        if digit == ".":
            self.text.append(".")
        elif self.last is not None and self.place > self.last and word != "0":
            pass
        elif self.is_zero_before_point:
            self.text.append("0" if "FM" in self.flags and self.ends_in_point else "" if "FM" in self.flags else " ")
        else:
            self.text.append(digit or "\0")
            self.is_within = True
        self.place += bool(digit)


def _processed(read: _Pattern, number: str, spaces: int, sign: str) -> str:
    """Return digits in the form of a pattern (NUM_processor)."""
    if "RN" in read.flags:
        read.flags &= {"FM", "RN"}
        read.sign_at, read.before, read.behind, read.digits_before_sign = "", 0, 0, 0
    output = _Output(read, number, spaces, sign)
    fills = "FM" not in output.flags
    for part in read.parts:
        match part.word.upper():
            case "":
                output.text.append(part.text)
            case "9" | "0" | "." | "D" as word:
                if "RN" not in output.flags:
                    output.write(word)
            case "," | "G":
                output.text.append("," if output.is_within else " " if fills else "")
            case "L":
                output.text.append(" ")
            case "RN":
                roman = number if part.word == "RN" else number.lower()
                output.text.append(roman.rjust(15) if fills else roman)
            case "TH":
                if not output.flags & {"RN", "."} and number[:1] != "#" and sign != "-":
                    output.text.append(ending(number).upper() if part.word == "TH" else ending(number))
            case "MI":
                output.text.append("-" if sign == "-" else " " if fills else "")
            case "PL":
                output.text.append("+" if sign == "+" else " " if fills else "")
            case "SG":
                output.text.append(sign or "\0")
    return "".join(output.text).partition("\0")[0]


# to_number.


class _Input:
    """The state of NUM_processor while it reads."""

    def __init__(self, read: _Pattern, text: str) -> None:
        self.flags, self.behind, self.sign_at, self.text = read.flags, read.behind, read.sign_at, text
        self.at, self.sign, self.digits, self.has_point = 0, "", "", False
        self.count = {False: 0, True: 0}  # of digits, by whether they are behind the point

    @property
    def is_over(self) -> bool:
        return self.at >= len(self.text)

    @property
    def character(self) -> str:
        return self.text[self.at : self.at + 1]

    def read(self, word: str) -> None:
        """Read a digit or the point, and a sign before or behind (NUM_numpart_from_char)."""
        if self.character == " ":
            self.at += 1
        has_digits = any(self.count.values())
        if not self.is_over and not self.sign and word in "09" and not has_digits:
            self._read_sign()
        if self.is_over:
            return
        is_read = False
        if self.character in "0123456789":
            if self.has_point and self.count[True] == self.behind:
                return
            self.digits += self.character
            self.count[self.has_point] += 1
            is_read = True
        elif "." in self.flags and not self.has_point and self.character == ".":
            self.digits += "."
            self.has_point = is_read = True
        if not self.sign and any(self.count.values()):
            self._read_sign_behind(is_read)

    def _read_sign(self) -> None:
        is_bracket = "PR" in self.flags and self.character == "<"
        self.sign = "-" if is_bracket else self.character if self.character in ("-", "+") else ""
        self.at += bool(self.sign)

    def _read_sign_behind(self, is_read: bool) -> None:
        following = self.text[self.at + 1 : self.at + 2]
        if "S" in self.flags:
            if is_read and following and following in "+-":
                self.sign, self.at = following, self.at + 1
        elif not is_read and self.flags & {"PL", "MI"} and self.character in ("-", "+"):
            self.sign = self.character

    def skip(self, count: int) -> None:
        """Skip characters that are no part of a number (NUM_eat_non_data_chars)."""
        for _ in range(count):
            if self.is_over or self.character in "0123456789.,+-":
                break
            self.at += 1


def number_of(text: str, pattern: str) -> str | None:
    """Return to_number of a text, as text, NULL for an empty pattern. Raises Error 42601, 22P02, 22003, 0A000."""
    if not pattern:
        return None
    read = _read(pattern)
    for word in ("EEEE", "RN"):
        if word in read.flags:
            raise Error(f'"{word}" not supported for input', FEATURE_NOT_SUPPORTED)
    found = _Input(read, text)
    for part in read.parts:
        if found.is_over:
            break
        _take(found, part)
    digits = found.sign + found.digits.removesuffix(".")
    try:
        value = Decimal(digits)
    except InvalidOperation:
        raise Error(f'invalid input syntax for type numeric: "{digits or " "}"', INVALID_TEXT_REPRESENTATION) from None
    if value and value.adjusted() >= read.before + read.shifted:
        raise Error("numeric field overflow", NUMERIC_VALUE_OUT_OF_RANGE)
    return f"{value.scaleb(-read.shifted, _WIDE) if read.shifted else value:f}"


def _take(found: _Input, part: Part) -> None:
    """Read what a part of the pattern stands for."""
    match part.word.upper():
        case "":
            found.at += 1
        case "9" | "0" | "." | "D" as word:
            found.read(word)
            found.at += 1
        case "," | "G":
            found.at += found.character == "," and "FM" not in found.flags
        case "L":
            found.skip(1)
        case "TH":
            if "." not in found.flags and found.sign != "-":
                found.skip(2)
        case "MI" | "PL" | "SG" as word:
            signs = {"MI": "-", "PL": "+", "SG": "+-"}[word]
            if found.character in signs:
                found.sign, found.at = found.character, found.at + 1
            else:
                found.skip(1)
