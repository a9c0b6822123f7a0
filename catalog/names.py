"""Identifiers: folding, quoting, and where a user's relation lives in the lake."""

from __future__ import annotations

import re
from dataclasses import dataclass

DEFAULT_DATABASE = "dev"
DEFAULT_SCHEMA = "public"
SYSTEM_SCHEMA = "sparkwave"
# What a session calls the schema of its temporary tables, which is this with a number behind it.
TEMPORARY_SCHEMA = "pg_temp"

_PLAIN = re.compile(r"[a-z_][a-z0-9_$]*")


def is_temporary_schema(schema: str) -> bool:
    """Whether a schema is one of temporary tables: nobody else's name begins like that."""
    return schema.startswith(f"{TEMPORARY_SCHEMA}_")


def quote(name: str) -> str:
    """A double-quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def quote_if_needed(name: str) -> str:
    """As Postgres prints an identifier: bare when it is lower case and plain."""
    return name if _PLAIN.fullmatch(name) else quote(name)


def literal(text: str) -> str:
    """A single-quoted SQL string."""
    return "'" + text.replace("'", "''") + "'"


def lake_schema(database: str, schema: str) -> str:
    """The lake schema that holds `database.schema`."""
    return f"{database}.{schema}"


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
