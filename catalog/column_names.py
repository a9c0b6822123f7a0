"""What columns are called in the lake and in plans, where keys, states and engines have names too.

A user's name that is plain is used as it is. Any other is escaped, so that it is no name of ours, which begin with `_`
or `?`, nor one that DuckDB or DuckLake give a meaning, and so that names differ in more than case: DuckDB does not tell
"A" from a.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.names import quote

# Columns that scans, change feeds, files and inlined rows of DuckLake have besides the table's.
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
# As DuckDB folds names: no letters but A-Z.
_FOLDED = str.maketrans({chr(code): chr(code + 32) for code in range(ord("A"), ord("Z") + 1)})
# What `planner.bind.output_names` calls outputs that have no name.
_UNNAMED = re.compile(r"_col_\d+")


def escaped(name: str) -> str:
    """The name of a column in the lake and in plans. No two names have the same."""
    is_plain = _PLAIN.fullmatch(name) and name == name.lower() and name not in _ENGINES_OWN
    return name if is_plain or _UNNAMED.fullmatch(name) else _MARK + "".join(map(_escape, name))


def fold_case(name: str) -> str:
    """The name as DuckDB compares it."""
    return name.translate(_FOLDED)


def _escape(character: str) -> str:
    if "A" <= character <= "Z":
        return _MARK + character.lower()
    is_kept = character == "_" or (character.isalnum() and character == character.lower())
    return character if is_kept else f"{_MARK}{ord(character)}{_MARK}"


def unescaped(name: str) -> str:
    """The user's name for one that `escaped` made; any other is left as it is."""
    if not name.startswith(_MARK):
        return name
    found = _ESCAPED.sub(lambda match: chr(int(match[1])) if match[1] else match[2].upper(), name[1:])
    return found if escaped(found) == name else name


def readable(text: str) -> str:
    """A text with the users' names in the place of escaped ones."""
    return _IN_TEXT.sub(lambda match: unescaped(match[0]), text) if _MARK in text else text


def check_distinct(names: Iterable[str], position: int | None = None) -> None:
    """Raise Error 42701 for a name that comes twice, 0A000 for names that differ only in case."""
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
