"""What PostgreSQL calls things and DuckDB does not: tables of names, and what the rules of pg_compat share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from sparkwave.catalog.lazy import lazy

IsSystem = Callable[[str, str], bool]

# DuckDB's schemas of the system schemas (see catalog/system/system_views.py), and those searched for an unqualified
# name.
SCHEMAS = {"pg_catalog": "pgc", "rw_catalog": "rwc", "information_schema": "infs"}
IMPLICIT_SCHEMAS = ("pg_catalog", "rw_catalog")
FUNCTIONS = "pgf"

# PostgreSQL's type names that DuckDB lacks, without `pg_catalog.`. OIDs are unsigned, as `oid` in catalog.types.
TYPES: dict[str, str] = {
    "oid": "UINTEGER",
    "xid": "UINTEGER",
    "cid": "UINTEGER",
    "name": "VARCHAR",
    "char": "VARCHAR",
    "bpchar": "VARCHAR",
    "text": "VARCHAR",
    "varchar": "VARCHAR",
    "cstring": "VARCHAR",
    "aclitem": "VARCHAR",
    "regoperator": "VARCHAR",
    "unknown": "VARCHAR",
    "sql_identifier": "VARCHAR",
    "character_data": "VARCHAR",
    "yes_or_no": "VARCHAR",
    "cardinal_number": "INTEGER",
    "bool": "BOOLEAN",
    "int2": "SMALLINT",
    "int4": "INTEGER",
    "int8": "BIGINT",
    "float4": "FLOAT",
    "float8": "DOUBLE",
    "timestamptz": "TIMESTAMPTZ",
    "int2vector": "SMALLINT[]",
    "oidvector": "UINTEGER[]",
    "_text": "VARCHAR[]",
    "_name": "VARCHAR[]",
    "_int2": "SMALLINT[]",
    "_int4": "INTEGER[]",
    "_int8": "BIGINT[]",
    "_oid": "UINTEGER[]",
}

# Types whose text is an object's name and whose value is its OID, to the stem of their functions in `pgf`.
REG_TYPES: dict[str, str] = {
    "regclass": "regclass",
    "regtype": "regtype",
    "regnamespace": "regnamespace",
    "regrole": "regrole",
    "regproc": "regproc",
    "regprocedure": "regproc",
}
OID_TYPES = frozenset({"oid", "int", "integer", "int4", "bigint", "int8"})
# Functions that take the schemas searched for names as a last argument.
TAKE_PATH = frozenset(
    {
        "pg_table_is_visible",
        "regclass_in",
        "regclass_out",
        "to_regclass",
        "has_table_privilege",
        "has_any_column_privilege",
        "has_column_privilege",
    }
)
# Functions whose first argument is a user, by the number of arguments they have with it.
TAKE_USER = {
    "has_database_privilege": 3,
    "has_schema_privilege": 3,
    "has_table_privilege": 3,
    "has_any_column_privilege": 3,
    "has_column_privilege": 4,
    "pg_has_role": 3,
}
# Functions whose first argument is a regclass, so that text there is a name: PostgreSQL casts it implicitly.
TAKE_REGCLASS = frozenset({
    "pg_table_size", "pg_relation_size", "pg_total_relation_size", "pg_indexes_size", "pg_get_serial_sequence",
})  # fmt: skip
# Columns of type regproc. The views hold the function's name in them.
REGPROC_COLUMNS = frozenset(
    {"typinput", "typoutput", "typreceive", "typsend", "typmodin", "typmodout", "typanalyze", "typsubscript"}
)
# Arrays whose first index is 0; `i_indoption` is what pgjdbc calls one of them outside a subquery.
VECTOR_COLUMNS = frozenset({"indkey", "indoption", "i_indoption", "indclass", "indcollation", "proargtypes"})
# Arrays that psql compares with a literal such as '{0}'.
ARRAY_COLUMNS = frozenset({"polroles"})
HIDDEN_COLUMNS = frozenset({"tableoid", "xmin", "xmax", "cmin", "cmax", "ctid"})

# Keywords without parentheses that sqlglot reads as columns.
KEYWORDS = frozenset({"user", "current_role"})

# DuckDB's names of functions it has under another one.
RENAMED: dict[str, str] = {
    "statement_timestamp": "now",
    "clock_timestamp": "now",
}


# What a session is, among its settings.
NOT_SETTINGS = frozenset({"database", "user", "session_user"})


@dataclass(frozen=True)
class Context:
    """What the rules may look at besides their node."""

    is_system: IsSystem
    session: Mapping[str, str]
    path: tuple[str, ...]  # the schemas of `search_path` that there are
    ctes: frozenset[str]

    @lazy
    def search_path(self) -> list[str]:
        """The schemas searched for an unqualified name, with the one that PostgreSQL has on every path."""
        return list(self.path if "pg_catalog" in self.path else ("pg_catalog", *self.path))

    @lazy
    def settings(self) -> dict[str, str]:
        """The session's settings by lower-case name."""
        return {name.lower(): value for name, value in self.session.items() if name not in NOT_SETTINGS}

    def is_function(self, name: str) -> bool:
        return self.is_system(FUNCTIONS, name)

    def system_schema(self, table: exp.Table) -> str | None:
        """The system schema that holds a table; None for a user's."""
        name, schema = table.name.lower(), table.db.lower()
        if schema:
            return schema if self.is_system(schema, name) else None
        if name in self.ctes:
            return None
        return system_schema(name, self.path, self.is_system)


def system_schema(name: str, path: Iterable[str], is_system: IsSystem) -> str | None:
    """The system schema in which an unqualified name is found; None for a user's relation, or nothing.

    To be asked where the user has none of that name, who may not call one as what is on every path (`is_reserved`).
    """
    schemas = (*IMPLICIT_SCHEMAS, *(schema for schema in path if schema in SCHEMAS))
    return next((schema for schema in schemas if is_system(schema, name)), None)


def is_reserved(name: str, is_system: IsSystem) -> bool:
    """Whether a system relation is found by this name alone."""
    return system_schema(name, (), is_system) is not None


def call(name: str, *args: exp.Expr) -> exp.Expr:
    """`memory.pgf.name(args)`."""
    function = exp.Anonymous(this=name, expressions=list(args))
    return exp.Dot.build([exp.to_identifier("memory"), exp.to_identifier(FUNCTIONS), function])


def strings(values: list[str]) -> exp.Expr:
    return exp.Array(expressions=[exp.Literal.string(value) for value in values])
