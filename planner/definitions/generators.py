"""SQL of datagen's columns: each value follows from its row's number, so that any row can be made again.

Options and defaults are RisingWave's (src/common/src/field_generator, src/connector/src/source/datagen). The values of
random columns differ, because they come from DuckDB's hash of the row's number, the seed and the column.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation

from sparkwave.catalog.model import Column
from sparkwave.catalog.names import literal, quote
from sparkwave.catalog.types import Type

# The row's number in the SQL, from 0.
NUMBER = "n"
LARGEST_NUMBER = 32767
_TEXT_LENGTH, _LIST_LENGTH = 10, 1
_DAY_US = 86_400_000_000
_UNITS = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 1000),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1_000_000),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60_000_000),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3_600_000_000),
    **dict.fromkeys(("d", "day", "days"), _DAY_US),
    **dict.fromkeys(("w", "week", "weeks"), 7 * _DAY_US),
}
_KNOWN = ("kind", "start", "end", "min", "max", "seed", "length", "max_past", "max_past_mode", "basetime")


class WrongField(ValueError):
    """An error in the options of a column, with the name of the option, empty for the column itself."""

    def __init__(self, option: str, message: str) -> None:
        super().__init__(message)
        self.option = option


@dataclass(frozen=True)
class Rows:
    """SQL of each column over `NUMBER`, and the number of rows; None for no end."""

    columns: tuple[str, ...]
    count: int | None


def datagen_rows(options: Mapping[str, str], columns: Iterable[Column]) -> Rows:
    """Return the rows that the options describe. Raises WrongField."""
    listed = tuple(columns)
    _check_names(options, listed)
    counts: list[int] = []
    made = tuple(
        _Fields(options, counts).value(column.type, f"fields.{column.name}", NUMBER, literal(column.name))
        for column in listed
    )
    return Rows(made, min(counts, default=None))


def _check_names(options: Mapping[str, str], columns: tuple[Column, ...]) -> None:
    prefixes = tuple(f"fields.{column.name}." for column in columns)
    for option in options:
        if not option.startswith("fields."):
            continue
        if not option.startswith(prefixes):
            raise WrongField(option, f'"{option}" is about no column')
        if option.rpartition(".")[2] not in _KNOWN:
            raise WrongField(option, f'"{option}" is not known: an option of a column is one of {", ".join(_KNOWN)}')


@dataclass(frozen=True)
class _Fields:
    options: Mapping[str, str]
    counts: list[int]  # how many rows each sequence has

    def value(self, type_: Type, path: str, number: str, salt: str) -> str:
        """Return SQL of a value of a row; `salt` makes it differ from the other values of the row."""
        if type_.dimensions:
            return self._list(type_, path, number, salt)
        if type_.is_struct:
            fields = (
                f"{quote(name)} := {self.value(field, f'{path}.{name}', number, f'{salt}, {literal(name)}')}"
                for name, field in type_.fields
            )
            return f"struct_pack({', '.join(fields)})"
        seed = f"hash({number}, {self._whole(path, 'seed', 0)}, {salt})"
        if type_.is_text:
            return self._text(path, seed)
        if type_.name.startswith("timestamp"):
            return f"CAST({self._time(path, seed)} AS {type_.duckdb()})"
        if type_.name == "boolean":
            return f"({seed} % 2 = 0)"
        if type_.is_numeric:
            kind = self.options.get(f"{path}.kind", "random")
            if kind not in ("random", "sequence"):
                raise WrongField(f"{path}.kind", f'"{kind}" is no kind of generator: there are random and sequence')
            made = self._sequence(type_, path, number) if kind == "sequence" else self._random(type_, path, seed)
            return f"CAST({made} AS {type_.duckdb()})"
        raise WrongField("", f"there is no generator for type {type_}")

    def _list(self, type_: Type, path: str, number: str, salt: str) -> str:
        item = f"i{type_.dimensions}"
        made = self.value(type_.element, f"{path}._", f"({number} + {item})", f"{salt}, {item}")
        return f"list_transform(range({self._whole(path, 'length', _LIST_LENGTH)}), lambda {item}: {made})"

    def _text(self, path: str, seed: str) -> str:
        length = self._whole(path, "length", _TEXT_LENGTH)
        pieces = (f"md5(concat({seed}, '/{piece}'))" for piece in range(-(-length // 32)))
        return f"left(concat('', {', '.join(pieces)}), {length})" if length else "''"

    def _sequence(self, type_: Type, path: str, number: str) -> str:
        start, end = self._range(type_, path, "start", "end")
        self.counts.append(int((end - start) // 1) + 1)
        made = f"({start:f} + {number})"
        return made if number == NUMBER else f"if({made} > {end:f}, NULL, {made})"

    def _random(self, type_: Type, path: str, seed: str) -> str:
        low, high = self._range(type_, path, "min", "max")
        if type_.is_integer:
            return f"({low:f} + CAST({seed} AS HUGEINT) % {high - low + 1:f})"
        return f"({low:f} + CAST({seed} AS DOUBLE) / 18446744073709551616 * {high - low:f})"

    def _range(self, type_: Type, path: str, low: str, high: str) -> tuple[Decimal, Decimal]:
        first = self._number(type_, f"{path}.{low}", 0)
        last = self._number(type_, f"{path}.{high}", LARGEST_NUMBER)
        if first > last:
            option = f"{path}.{high}" if f"{path}.{high}" in self.options else f"{path}.{low}"
            raise WrongField(option, f"{low} {first} is above {high} {last}")
        return first, last

    def _number(self, type_: Type, option: str, default: int) -> Decimal:
        text = self.options.get(option, str(default))
        try:
            value = Decimal(text)
        except InvalidOperation:
            value = Decimal("nan")
        bits = {"smallint": 15, "integer": 31, "bigint": 63}.get(type_.name)
        fits = value.is_finite() and (bits is None or (value % 1 == 0 and -(2**bits) <= value < 2**bits))
        if not fits:
            raise WrongField(option, f'"{text}" is no {type_}')
        return value

    def _whole(self, path: str, name: str, default: int) -> int:
        text = self.options.get(f"{path}.{name}", str(default))
        if not re.fullmatch(r"\d{1,18}", text) or (name == "length" and int(text) > 100_000):
            raise WrongField(f"{path}.{name}", f'"{text}" is no {name}')
        return int(text)

    def _time(self, path: str, seed: str) -> str:
        """Return SQL of a time up to `max_past` before `basetime`, the source's creation, or with "relative" now."""
        past = self._duration(f"{path}.max_past")
        mode = self.options.get(f"{path}.max_past_mode", "absolute").lower()
        if mode not in ("absolute", "relative"):
            raise WrongField(f"{path}.max_past_mode", f'"{mode}" is no mode: there are absolute and relative')
        base = "epoch_us(now())" if mode == "relative" else str(self._base(f"{path}.basetime"))
        return f"make_timestamp({base} - CAST({seed} % {past + 1} AS BIGINT))"

    def _base(self, option: str) -> int:
        if option not in self.options:
            return int(self.options.get("datagen.base.time", "0")) * 1000
        try:
            parsed = datetime.fromisoformat(self.options[option])
        except ValueError as error:
            raise WrongField(
                option, f'"{self.options[option]}" is no time such as 2023-04-01T16:58:00+00:00'
            ) from error
        zoned = parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
        return round(zoned.timestamp() * 1_000_000)

    def _duration(self, option: str) -> int:
        text = self.options.get(option, "1d").lower()
        parts = re.findall(r"(\d+)\s*([a-z]+)", text)
        if not re.fullmatch(r"(\d+\s*[a-z]+\s*)+", text) or any(unit not in _UNITS for _, unit in parts):
            raise WrongField(option, f'"{text}" is no duration such as 1h 30m')
        return sum(int(count) * _UNITS[unit] for count, unit in parts)
