"""Names of columns in the lake and in plans, where keys, states and engines have names too.

A plain name of a user stays as it is. Any other name is escaped, for three reasons: it must differ from Sparkwave's own
names, which begin with `_` or `?`; it must have no meaning for DuckDB or DuckLake; and names must differ in more than
case, since DuckDB treats "A" and a as the same name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.names import quote

# Columns that DuckLake's scans, change feeds, files and inlined rows have besides the table's.
_ENGINES_OWN = frozenset(
    (
        "rowid",
        "row_id",
        "snapshot_id",
        "begin_snapshot",
        "end_snapshot",
        "filename",
        "file_row_number",
        "file_index",
        "file_name",
        "file_path",
        "pos",
        "change_type",
    )
)
_PLAIN = re.compile(r"[^\W\d_]\w*")
_MARK = "~"
_ESCAPED = re.compile(r"~(\d+)~|~([a-z])")
_IN_TEXT = re.compile(r"~[\w~]+")
# DuckDB's case folding, which changes A-Z only.
_FOLDED = str.maketrans({chr(code): chr(code + 32) for code in range(ord("A"), ord("Z") + 1)})
# The names that `planner.bind.output_names` gives to outputs without a name.
_UNNAMED = re.compile(r"_col_\d+")


def escaped(name: str) -> str:
    """Return the name of a user's column in the lake and in plans. Different names give different results."""
    is_plain = _PLAIN.fullmatch(name) and name == name.lower() and name not in _ENGINES_OWN
    return name if is_plain or _UNNAMED.fullmatch(name) else _MARK + "".join(map(_escape, name))


def fold_case(name: str) -> str:
    """Return the form of a name that DuckDB compares."""
    return name.translate(_FOLDED)


def _escape(character: str) -> str:
    if "A" <= character <= "Z":
        return _MARK + character.lower()
    is_kept = character == "_" or (character.isalnum() and character == character.lower())
    return character if is_kept else f"{_MARK}{ord(character)}{_MARK}"


def unescaped(name: str) -> str:
    """Return the user's name for a result of `escaped`; any other name is returned unchanged."""
    if not name.startswith(_MARK):
        return name
    found = _ESCAPED.sub(lambda match: chr(int(match[1])) if match[1] else match[2].upper(), name[1:])
    return found if escaped(found) == name else name


def readable(text: str) -> str:
    """Return a text with escaped names replaced by the users' names."""
    return _IN_TEXT.sub(lambda match: unescaped(match[0]), text) if _MARK in text else text


def check_distinct(names: Iterable[str], position: int | None = None) -> None:
    """Raise Error 42701 for a repeated name, 0A000 for names that differ only in case."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.get(fold_case(name))
        if other == name:
            raise Error(f'column "{name}" specified more than once', errors.DUPLICATE_COLUMN, position=position)
        if other is not None:
            raise Error(
                f"columns {quote(other)} and {quote(name)} differ only in case, which is not supported",
                errors.FEATURE_NOT_SUPPORTED,
                position=position,
            )
        seen[fold_case(name)] = name
