"""Converts Postgres' date patterns to strptime's formats and, for `to_char`, to calls of DuckDB's functions.

The patterns are the plain ones of table 9.27 of PostgreSQL 15's documentation; `catalog.moment_chars` has all of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.moment_chars import PREFIXES, SUFFIXES, WORDS
from sparkwave.catalog.patterns import Part, parts_of
from sparkwave.planner.functions.scalar_functions import duckdb_call, ours

# A longer pattern comes before its prefix.
_PATTERNS: dict[str, str] = {
    "HH24": "%H",
    "HH12": "%I",
    "HH": "%I",
    "MI": "%M",
    "SS": "%S",
    "MS": "%g",
    "US": "%f",
    "AM": "%p",
    "PM": "%p",
    "YYYY": "%Y",
    "YY": "%y",
    "IYYY": "%G",
    "IW": "%V",
    "ID": "%u",
    "Month": "%B",
    "Mon": "%b",
    "MM": "%m",
    "DDD": "%j",
    "DD": "%d",
    "FMDD": "%-d",
    "FMMM": "%-m",
    "FMHH24": "%-H",
    "FMHH12": "%-I",
    "FMMonth": "%B",
    "FMDay": "%A",
    "Dy": "%a",
}
# The same for texts to be read, with the offset from UTC.
_READ = {**_PATTERNS, **dict.fromkeys(("TZH:TZM", "TZHTZM", "TZH"), "%z")}
_TOKEN = re.compile(
    '"[^"]*"|' + "|".join(sorted({*_READ, *map(str.lower, _READ)}, key=len, reverse=True)) + "|[A-Za-z]+|.", re.DOTALL
)


_DAYS, _OTHERS = ({"YYYY"}, {"MM", "MON", "MONTH"}, {"DD"}), {"HH24", "HH12", "HH", "MI", "SS", "AM", "PM"}


def is_read_alike(pattern: exp.Expr) -> bool:
    """Return whether DuckDB reads nothing otherwise than PostgreSQL by a constant pattern: one of a whole day."""
    parts = parts_of(pattern.name, WORDS, PREFIXES, SUFFIXES)
    words = [part.word.upper() for part in parts if part.word]
    is_exact = all(part.word in _READ or part.word.upper() in _OTHERS for part in parts if part.word)
    has_day = all(len(kind.intersection(words)) == 1 for kind in _DAYS) and len(words) == len(set(words))
    others = {word for word in words if not any(word in kind for kind in _DAYS)}
    is_half = bool(others & {"AM", "PM"}) == bool(others & {"HH12", "HH"})
    is_plain_text = not any(part.affixes or part.text.isalnum() for part in parts)
    return is_exact and has_day and is_half and is_plain_text and others <= _OTHERS


def strftime_format(pattern: exp.Expr) -> exp.Expr:
    """Return the format of a constant pattern. Raises Error 0A000 for another expression or an unknown pattern."""
    return exp.Literal.string("".join(_part(token) for token in _TOKEN.findall(_constant(pattern))))


def _constant(pattern: exp.Expr) -> str:
    if not pattern.is_string:
        raise Error("a date pattern has to be a constant", errors.FEATURE_NOT_SUPPORTED)
    return pattern.name


def unknown(pattern: str) -> Error:
    return Error(f'date pattern "{pattern}" is not supported', errors.FEATURE_NOT_SUPPORTED)


def _part(token: str) -> str:
    if token.startswith('"') and token.endswith('"') and len(token) > 1:
        return token[1:-1].replace("%", "%%")
    # Only patterns of names are case-sensitive.
    known = _READ.get(token) or (_READ.get(token.upper()) if token.islower() else None)
    if (known is None and len(token) > 1) or (token.isalpha() and known is None and token != "T"):
        raise unknown(token)
    return known or token.replace("%", "%%")


# to_char.

# Letters that begin none of PostgreSQL's patterns, besides T, which begins only those of time zones and ordinals.
PLAIN_LETTERS = "EGKLNTVXZ"
_Text = Callable[[exp.Expr], exp.Expr]


def moment_text(value: exp.Expr, pattern: exp.Expr) -> exp.Expr:
    """Return the text of a date or time by a constant pattern. Raises Error 0A000 as `strftime_format`."""
    pieces: list[exp.Expr | str] = []
    for quoted, filled, name, suffix, other in tokens(pattern):
        if name:
            piece = _piece(value, name, bool(filled))
            if suffix:
                number = strftime(value, piece) if isinstance(piece, str) else piece
                ending = ours("_ordinal", number.copy())
                pieces += [number, duckdb_call("upper", ending) if suffix == "TH" else ending]
                continue
            pieces.append(piece)
        elif other.isalpha() and other.upper() not in PLAIN_LETTERS:
            raise unknown(other)
        else:
            pieces.append((quoted[1:-1] if quoted else filled + other).replace("%", "%%"))
    return _joined(value, pieces)


def is_plain(pattern: exp.Expr) -> bool:
    """Return whether `tokens` has the parts of a constant pattern that PostgreSQL has, all of which are read right."""
    found = tokens(pattern)
    own = [(name, frozenset(filter(None, (filled, suffix)))) for _, filled, name, suffix, _ in found if name]
    parts = parts_of(pattern.name, WORDS, PREFIXES, SUFFIXES)
    text = "".join(quoted[1:-1] if quoted else filled + other for quoted, filled, name, _, other in found if not name)
    is_same = own == [(part.word, part.affixes) for part in parts if part.word]
    return is_same and text == "".join(part.text for part in parts) and not any(map(_is_misread, parts))


def _is_misread(part: Part) -> bool:
    word = part.word.upper()
    has_ending, is_unfilled = bool(part.affixes & {"TH", "th"}), bool(part.affixes & {"FM", "fm"})
    return word == "Y,YYY" or (has_ending and word in _WITHOUT_ENDING) or (is_unfilled and word in _ALWAYS_FILLED)


def tokens(pattern: exp.Expr) -> list[tuple[str, str, str, str, str]]:
    """Return the parts of a constant pattern: quoted text, FM, a pattern, its ordinal suffix, anything else."""
    return _PATTERN.findall(_constant(pattern))


def strftime(value: exp.Expr, format_: str) -> exp.Expr:
    return duckdb_call("strftime", value.copy(), exp.Literal.string(format_))


def _joined(value: exp.Expr, pieces: list[exp.Expr | str]) -> exp.Expr:
    """Return the pieces joined; adjacent strftime formats become one."""
    joined: list[exp.Expr | str] = []
    for piece in pieces:
        last = joined[-1] if joined else None
        if isinstance(piece, str) and isinstance(last, str):
            joined[-1] = last + piece
        else:
            joined.append(piece)
    texts = [strftime(value, piece) if isinstance(piece, str) else piece for piece in joined or [""]]
    return texts[0] if len(texts) == 1 else chain(texts)


def chain(texts: list[exp.Expr]) -> exp.Expr:
    """Return the texts joined by `||`, which is NULL if any of them is."""
    made = texts[0]
    for text in texts[1:]:
        made = exp.DPipe(this=made, expression=text)
    return exp.paren(made)


def _piece(value: exp.Expr, name: str, is_filled: bool) -> exp.Expr | str:
    """Return the strftime format or text of a pattern. `is_filled` is FM: without blanks and zeros."""
    if (known := _NAMES.get(name.lower())) is not None:
        text = strftime(value, known[0])
        text = duckdb_call("upper", text) if name.isupper() else duckdb_call("lower", text) if name.islower() else text
        return (
            text if is_filled or not known[1] else duckdb_call("rpad", text, _number(known[1]), exp.Literal.string(" "))
        )
    upper = name.upper()
    if upper in _HALVES:
        text = _HALVES[upper](value)
        text = duckdb_call("rtrim", text) if is_filled else text
        return duckdb_call("lower", text) if name.islower() else text
    if upper not in (*_NUMBERS, *_PATTERNS):
        raise unknown(name)
    made: exp.Expr | str = _NUMBERS[upper](value) if upper in _NUMBERS else _PATTERNS[upper]
    if not is_filled:
        return made
    text = strftime(value, made) if isinstance(made, str) else made
    return exp.cast(exp.cast(text, "bigint"), "text")


def _number(number: int) -> exp.Expr:
    return exp.Literal.number(number)


def _digits(width: int, sql: str) -> _Text:
    """Return the number that SQL computes from the value `v`, with leading zeros up to a width."""

    def text(value: exp.Expr) -> exp.Expr:
        parsed: exp.Expr = exp.maybe_parse(sql, dialect="duckdb")
        number = parsed.transform(lambda node: value.copy() if isinstance(node, exp.Column) else node)
        found = exp.cast(exp.cast(number, "bigint", dialect="duckdb"), "text", dialect="duckdb")
        return duckdb_call("lpad", found, _number(width), exp.Literal.string("0")) if width > 1 else found

    return text


def _last(format_: str, count: int) -> _Text:
    return lambda value: duckdb_call("right", strftime(value, format_), _number(count))


def _first(format_: str, count: int) -> _Text:
    return lambda value: duckdb_call("left", strftime(value, format_), _number(count))


def _dotted(text: _Text) -> _Text:
    """Return the form `A.M.` of `AM`."""

    def dotted(value: exp.Expr) -> exp.Expr:
        return duckdb_call("regexp_replace", text(value), exp.Literal.string("(.)(.)"), exp.Literal.string(r"\1.\2."))

    return dotted


def _era(value: exp.Expr) -> exp.Expr:
    is_before = exp.LT(this=duckdb_call("year", value.copy()), expression=_number(1))
    return exp.If(this=exp.paren(is_before), true=exp.Literal.string("BC"), false=exp.Literal.string("AD"))


def _half(value: exp.Expr) -> exp.Expr:
    return strftime(value, "%p")


def _offset(value: exp.Expr) -> exp.Expr:
    return strftime(value, "%z")


def _zone_minutes(value: exp.Expr) -> exp.Expr:
    whole = duckdb_call("rpad", _offset(value), _number(6), exp.Literal.string(":00"))
    return duckdb_call("right", whole, _number(2))


def _roman_month(value: exp.Expr) -> exp.Expr:
    return duckdb_call(
        "rpad", ours("_roman_month", duckdb_call("month", value.copy())), _number(4), exp.Literal.string(" ")
    )


# Formats of names, and their widths in characters.
_NAMES = {"month": ("%B", 9), "mon": ("%b", 0), "day": ("%A", 9), "dy": ("%a", 0)}
_HALVES: dict[str, _Text] = {
    "AM": _half, "PM": _half, "A.M.": _dotted(_half), "P.M.": _dotted(_half),
    "AD": _era, "BC": _era, "A.D.": _dotted(_era), "B.C.": _dotted(_era),
    "RM": _roman_month,
}  # fmt: skip
# Those that have no ending of ordinals, and those whose zeros FM leaves.
_WITHOUT_ENDING = frozenset({*map(str.upper, _NAMES), *_HALVES, "OF", "TZH", "TZM", "Q"})
_ALWAYS_FILLED = frozenset({"MS", "US", "TZH", "TZM", *(f"FF{count}" for count in range(1, 7))})
_SECONDS = "hour(v) * 3600 + minute(v) * 60 + second(v)"
_NUMBERS: dict[str, _Text] = {
    "Q": _digits(1, "quarter(v)"), "D": _digits(1, "dayofweek(v) + 1"), "W": _digits(1, "(day(v) - 1) // 7 + 1"),
    "WW": _digits(2, "(dayofyear(v) - 1) // 7 + 1"), "CC": _digits(2, "century(v)"),
    "J": _digits(1, "julian(v::DATE)"), "IDDD": _digits(3, "(weekofyear(v) - 1) * 7 + isodow(v)"),
    "SSSS": _digits(1, _SECONDS), "SSSSS": _digits(1, _SECONDS),
    "YYY": _last("%Y", 3), "Y": _last("%Y", 1), "IYY": _last("%G", 3), "IY": _last("%G", 2), "I": _last("%G", 1),
    **{f"FF{count}": _first("%f", count) for count in range(1, 7)},
    "OF": _offset, "TZH": _first("%z", 3), "TZM": _zone_minutes,
}  # fmt: skip
_WORDS = sorted(
    {
        *_NAMES,
        *map(str.lower, (*_HALVES, *_NUMBERS)),
        *(name.lower() for name in _PATTERNS if not name.startswith("FM")),
        "tz",  # the name of a time zone, which is not supported
    },
    key=len,
    reverse=True,
)
_PATTERN = re.compile(
    rf'("[^"]*")|(FM|fm)?(?:({"|".join(map(re.escape, _WORDS))})(th|TH)?|(.))', re.DOTALL | re.IGNORECASE
)
