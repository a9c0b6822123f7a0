"""Identifiers: folding, quoting, and names of lake tables and of tables in memory."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

DEFAULT_DATABASE = "dev"
DEFAULT_SCHEMA = "public"
SYSTEM_SCHEMA = "sparkwave"
# A DuckDB database in memory, which ends with the process: copies of the catalog, and in a schema copies of relations.
COPIES = "copies"
SERVING_SCHEMA = "serving"
# The database of DuckLake's own catalog.
METADATA = "__ducklake_metadata_lake"
# Another database in memory, where only epochs make or drop tables: a schema of their states, a schema of the tables
# that they fill again and again, and a schema of materialized views and indexes as of the last epoch.
BUFFER = "buffer"
EPOCHS_SCHEMA, DELTAS_SCHEMA, VIEWS_SCHEMA = "epochs", "deltas", "views"
# A session's name for its schema of temporary tables, whose real name has a number at the end.
TEMPORARY_SCHEMA = "pg_temp"

# The beginning of the names of internal tables, which have the states of operators.
INTERNAL_PREFIX = "__internal_"

_PLAIN = re.compile(r"[a-z_][a-z0-9_$]*")
_LISTED = re.compile(r"""\s*(?:"((?:[^"]|"")*)"|([^\s",]+))\s*""")
# PostgreSQL's reserved words (its documentation, appendix C), which have to be quoted as names.
_RESERVED_WORDS = (
    "all analyse analyze and any array as asc asymmetric authorization binary both case cast check collate collation "
    "column concurrently constraint create cross current_catalog current_date current_role current_schema current_time "
    "current_timestamp current_user default deferrable desc distinct do else end except false fetch for foreign freeze "
    "from full grant group having ilike in initially inner intersect into is isnull join lateral leading left like "
    "limit localtime localtimestamp natural not notnull null offset on only or order outer overlaps placing primary "
    "references returning right select session_user similar some symmetric table tablesample then to trailing true "
    "union unique user using variadic verbose when where window with"
)
RESERVED = frozenset(_RESERVED_WORDS.split())


# Of names that are taken for one another, as difflib counts it.
_LEAST_LIKENESS = 0.78


def closest(name: str, names: Iterable[str]) -> str | None:
    """Return the name that looks most like one that is not among them; None where it is, or none looks like it."""
    known = {each.lower(): each for each in sorted(names, reverse=True)}
    close = difflib.get_close_matches(name.lower(), sorted(known), 1, _LEAST_LIKENESS)
    return known[close[0]] if close and name != known[close[0]] else None


def meant_option(name: str, known: Iterable[str]) -> str | None:
    """Return a hint at the option that an unknown one may mean."""
    meant = closest(name, known)
    return f'Perhaps you meant the option "{meant}".' if meant is not None else None


def is_temporary_schema(schema: str) -> bool:
    """Return whether a schema is for temporary tables: no other schema's name begins with `pg_temp_`."""
    return schema.startswith(f"{TEMPORARY_SCHEMA}_")


def quote(name: str) -> str:
    """Return a double-quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def quote_if_needed(name: str) -> str:
    """Return an identifier as Postgres prints it: bare if it is lower-case, plain and not reserved."""
    return name if _PLAIN.fullmatch(name) and name not in RESERVED else quote(name)


def qualified(schema: str, name: str) -> str:
    """Return a name with its schema as PostgreSQL prints it."""
    return f"{quote_if_needed(schema)}.{quote_if_needed(name)}"


@lru_cache(maxsize=1000)
def parse_search_path(text: str) -> tuple[str, ...]:
    """Return the schemas in a value of `search_path`: names separated by commas, folded unless quoted.

    Raises ValueError for a text that is no such list.
    """
    names = _LISTED.findall(text)
    if text.strip() and not re.fullmatch(rf"{_LISTED.pattern}(,{_LISTED.pattern})*", text):
        raise ValueError("List syntax is invalid.")
    return tuple(q.replace('""', '"') if q else bare.lower() for q, bare in names if q or bare)


# The column of a table of changed rows with the lake's row ids.
ROW = "?row"
# Columns of such a table that tell where a row is, and the columns of a DuckLake scan that have them: the row's id, its
# file or the catalog's table, and its place in the file.
PLACES = {ROW: "rowid", "?file": "filename", "?place": "file_row_number"}


def literal(text: str) -> str:
    """Return a single-quoted SQL string."""
    return "'" + text.replace("'", "''") + "'"


def lake_schema(database: str, schema: str) -> str:
    """Return the lake schema for new relations of `database.schema`, in lower case, since DuckDB ignores case."""
    return f"{database}.{schema}".lower()


@dataclass(frozen=True)
class LakeTable:
    """A table of the lake."""

    schema: str
    name: str

    @property
    def sql(self) -> str:
        """The SQL name, e.g. `lake."dev.public"."t"`."""
        return f"lake.{quote(self.schema)}.{quote(self.name)}"


def system_table(name: str) -> str:
    """Return the SQL name of one of Sparkwave's own relations."""
    return f"lake.{SYSTEM_SCHEMA}.{quote(name)}"


def name_in_memory(table: LakeTable) -> str:
    """Return the name of the memory table for a lake table, within its memory schema.

    Names are quoted, so that names with dots stay different.
    """
    return f"{quote(table.schema)}.{quote(table.name)}"


def copy_name(relation_id: int) -> str:
    """Return the name of a relation's copy in memory, within its memory schema."""
    return f"r{relation_id}"
