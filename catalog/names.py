"""Identifiers: folding, quoting, and where a user's relation lives in the lake."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

DEFAULT_DATABASE = "dev"
DEFAULT_SCHEMA = "public"
SYSTEM_SCHEMA = "sparkwave"
# A database of memory, which goes with the process, with copies of the catalog and, in a schema, of relations.
COPIES = "copies"
SERVING_SCHEMA = "serving"
# Another one, where nobody else makes or drops tables, with the schemas of what epochs keep, and of materialized views
# and indexes as the last epoch has left them.
BUFFER = "buffer"
EPOCHS_SCHEMA, VIEWS_SCHEMA = "epochs", "views"
# What a session calls the schema of its temporary tables, which is this with a number behind it.
TEMPORARY_SCHEMA = "pg_temp"

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
_RESERVED = frozenset(_RESERVED_WORDS.split())


def is_temporary_schema(schema: str) -> bool:
    """Whether a schema is one of temporary tables: nobody else's name begins like that."""
    return schema.startswith(f"{TEMPORARY_SCHEMA}_")


def quote(name: str) -> str:
    """A double-quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def quote_if_needed(name: str) -> str:
    """As Postgres prints an identifier: bare when it is lower case, plain and no reserved word."""
    return name if _PLAIN.fullmatch(name) and name not in _RESERVED else quote(name)


@lru_cache(maxsize=1000)
def parse_search_path(text: str) -> tuple[str, ...]:
    """The schemas in a value of `search_path`: names with commas between them, folded unless quoted.

    Raises ValueError for what is no such list.
    """
    names = _LISTED.findall(text)
    if text.strip() and not re.fullmatch(rf"{_LISTED.pattern}(,{_LISTED.pattern})*", text):
        raise ValueError("List syntax is invalid.")
    return tuple(q.replace('""', '"') if q else bare.lower() for q, bare in names if q or bare)


def literal(text: str) -> str:
    """A single-quoted SQL string."""
    return "'" + text.replace("'", "''") + "'"


def lake_schema(database: str, schema: str) -> str:
    """The lake schema in which relations of `database.schema` are made; DuckDB tells no upper from lower case."""
    return f"{database}.{schema}".lower()


@dataclass(frozen=True)
class LakeTable:
    """A table of the lake."""

    schema: str
    name: str

    @property
    def sql(self) -> str:
        """E.g. `lake."dev.public"."t"`."""
        return f"lake.{quote(self.schema)}.{quote(self.name)}"


def system_table(name: str) -> str:
    """One of Sparkwave's own relations."""
    return f"lake.{SYSTEM_SCHEMA}.{quote(name)}"


def name_in_memory(table: LakeTable) -> str:
    """What stands for a table of the lake is called in its schema in memory: of names with dots no two are alike."""
    return f"{quote(table.schema)}.{quote(table.name)}"


def copy_name(relation_id: int) -> str:
    """What the copy in memory of a relation is called in its schema."""
    return f"r{relation_id}"
