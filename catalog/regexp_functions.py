"""PostgreSQL's functions of regular expressions that RE2 has not, by `catalog.regular_expressions`.

Their arguments are texts, and so are their results: arrays are JSON. This module is sent to Spark's executors
(`executor.spark.kernel`), so it imports nothing of this package but what is sent with it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from sparkwave.catalog.errors import INVALID_PARAMETER_VALUE, Error
from sparkwave.catalog.regular_expressions import matches

Texts = Sequence[str]


def _parts(text: str, match: Sequence[int]) -> list[str | None]:
    """Return the groups of a match, or the whole match of a pattern without groups."""
    places = match[2:] or match
    return [
        text[start:end] if start >= 0 <= end else None for start, end in zip(places[::2], places[1::2], strict=True)
    ]


def _like(text: str, pattern: str, letters: str = "") -> str:
    return str(any(True for _ in matches(text, pattern, letters))).lower()


def _match(text: str, pattern: str, letters: str = "") -> str | None:
    found = next(matches(text, pattern, letters), None)
    return json.dumps(_parts(text, found)) if found is not None else None


def _matches(text: str, pattern: str, letters: str = "") -> str:
    found = matches(text, pattern, letters)
    return json.dumps([_parts(text, match) for match in (found if "g" in letters else islice(found, 1))])


def _replace(text: str, pattern: str, replacement: str, start: str, number: str, letters: str = "") -> str:
    """Return a text with the match of a number from a place on replaced, or all of them for the number 0."""
    wanted = _number("n", number, 0)
    pieces, end = list[str](), 0
    for count, match in enumerate(matches(text, pattern, letters, _start(start)), start=1):
        if wanted in (0, count):
            pieces += [text[end : match[0]], *_replaced(text, match, replacement)]
            end = match[1]
        if wanted == count:
            break
    return "".join([*pieces, text[end:]])


def _replaced(text: str, match: Sequence[int], replacement: str) -> Iterator[str]:
    at = 0
    while at < len(replacement):
        character, follower = replacement[at], replacement[at + 1 : at + 2]
        at += 1
        if character != "\\" or follower not in set("\\&123456789"):
            yield character
            continue
        at += 1
        group = 0 if follower == "&" else int(follower) if follower != "\\" else None
        if group is None:
            yield follower
        elif 2 * group + 1 < len(match) and match[2 * group] >= 0 <= match[2 * group + 1]:
            yield text[match[2 * group] : match[2 * group + 1]]


def _count(text: str, pattern: str, start: str = "1", letters: str = "") -> str:
    return str(sum(1 for _ in matches(text, pattern, letters, _start(start))))


def _place_of(
    text: str, pattern: str, start: str = "1", number: str = "1", end: str = "0", letters: str = "", group: str = "0"
) -> str:
    first, wanted = _start(start), _number("n", number, 1)
    if end not in ("0", "1"):
        raise Error(f'invalid value for parameter "endoption": {end}', INVALID_PARAMETER_VALUE)
    found = _group_of(text, pattern, letters, first, wanted, _number("subexpr", group, 0))
    return str(found[int(end)] + 1) if found is not None else "0"


def _substr(
    text: str, pattern: str, start: str = "1", number: str = "1", letters: str = "", group: str = "0"
) -> str | None:
    first, wanted = _start(start), _number("n", number, 1)
    found = _group_of(text, pattern, letters, first, wanted, _number("subexpr", group, 0))
    return text[slice(*found)] if found is not None else None


def _group_of(text: str, pattern: str, letters: str, start: int, number: int, group: int) -> tuple[int, int] | None:
    """Return where a group of a match begins and ends; without groups, the first one is the whole match."""
    match = next(islice(matches(text, pattern, letters, start), number - 1, None), None)
    if match is None:
        return None
    place = 0 if group == 1 and len(match) == 2 else 2 * group
    return match[place : place + 2] if place < len(match) and match[place] >= 0 else None  # type: ignore[return-value]


def _substring(text: str, pattern: str) -> str | None:
    """Return substring(text FROM pattern): the first group, if there is one."""
    match = next(matches(text, pattern, ""), None)
    return _parts(text, match)[0] if match is not None else None


def _split(text: str, pattern: str, letters: str = "") -> str:
    pieces, end, before = list[str](), 0, 0
    for match in matches(text, pattern, letters):
        if match[0] < len(text) and match[1] > before:  # not an empty one behind another
            pieces.append(text[end : match[0]])
            end = before = match[1]
    return json.dumps([*pieces, text[end:]])


def _start(start: str) -> int:
    return _number("start", start, 1) - 1


def _number(name: str, text: str, least: int) -> int:
    if int(text) < least:
        raise Error(f'invalid value for parameter "{name}": {text}', INVALID_PARAMETER_VALUE)
    return int(text)


_FUNCTIONS: dict[str, Callable[..., str | None]] = {
    "regexp_like": _like, "regexp_ilike": lambda text, pattern: _like(text, pattern, "i"), "regexp_match": _match,
    "regexp_all_matches": _matches, "regexp_replace": _replace, "regexp_count": _count, "regexp_instr": _place_of,
    "regexp_substr": _substr, "substring": _substring, "regexp_split_to_array": _split,
}  # fmt: skip


def regexp(function: str, arguments: Sequence[str | None]) -> str | None:
    """Return what a function gives for its arguments, NULL for one that is NULL. Raises Error 2201B, 22023."""
    return None if None in arguments else _FUNCTIONS[function](*arguments)
