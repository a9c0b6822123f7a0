"""Tables of PostgreSQL's names that differ in DuckDB, and the shared parts of pg_compat's rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from sparkwave.catalog.lazy import lazy

IsSystem = Callable[[str, str], bool]

# DuckDB's schemas for the system schemas (see catalog/system/system_views.py), and those in which unqualified names
# are looked up.
SCHEMAS = {"pg_catalog": "pgc", "rw_catalog": "rwc", "information_schema": "infs"}
IMPLICIT_SCHEMAS = ("pg_catalog", "rw_catalog")
FUNCTIONS = "pgf"
_DUCKDB_SCHEMAS = frozenset({*SCHEMAS.values(), FUNCTIONS})

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
    "regprocedure": "regprocedure",
}
OID_TYPES = frozenset({"oid", "int", "integer", "int4", "bigint", "int8"})
# Functions that take the schemas searched for names as a last argument.
TAKE_PATH = frozenset(
    {
        "pg_get_constraintdef",
        "pg_table_is_visible",
        "regclass_in",
        "regclass_out",
        "to_regclass",
        "to_regproc",
        "to_regprocedure",
        "has_table_privilege",
        "has_any_column_privilege",
        "has_column_privilege",
        "has_sequence_privilege",
        "has_function_privilege",
    }
)
# Functions whose first argument is a user, by the number of their arguments including it.
TAKE_USER = {
    "has_database_privilege": 3,
    "has_schema_privilege": 3,
    "has_table_privilege": 3,
    "has_any_column_privilege": 3,
    "has_column_privilege": 4,
    "has_sequence_privilege": 3,
    "has_function_privilege": 3,
    "pg_has_role": 3,
}
# Functions whose first argument is a regclass, so that text there is a name: PostgreSQL casts it implicitly.
TAKE_REGCLASS = frozenset({
    "pg_table_size", "pg_relation_size", "pg_total_relation_size", "pg_indexes_size", "pg_get_serial_sequence",
})  # fmt: skip
# Columns of type regproc, in which the views have the function's name.
REGPROC_COLUMNS = frozenset(
    {"typinput", "typoutput", "typreceive", "typsend", "typmodin", "typmodout", "typanalyze", "typsubscript"}
)
# Arrays whose first index is 0; pgjdbc renames one of them to `i_indoption` outside a subquery.
VECTOR_COLUMNS = frozenset({"indkey", "indoption", "i_indoption", "indclass", "indcollation", "proargtypes"})
# Arrays that psql compares with a literal such as '{0}'.
ARRAY_COLUMNS = frozenset({"polroles"})
HIDDEN_COLUMNS = frozenset({"tableoid", "xmin", "xmax", "cmin", "cmax", "ctid"})

# Keywords without parentheses that sqlglot reads as columns.
KEYWORDS = frozenset({"user", "current_role"})

# DuckDB's names of functions with another name in PostgreSQL.
RENAMED: dict[str, str] = {
    "proctime": "now",
    "statement_timestamp": "now",
    "clock_timestamp": "now",
}


# Entries of a session that are no settings.
NOT_SETTINGS = frozenset({"database", "user", "session_user"})


@dataclass(frozen=True)
class Context:
    """The inputs of the rules besides their node."""

    is_system: IsSystem
    session: Mapping[str, str]
    path: tuple[str, ...]  # the existing schemas of `search_path`
    ctes: frozenset[str]

    @lazy
    def search_path(self) -> list[str]:
        """The schemas in which unqualified names are looked up, with the one that PostgreSQL has on every path."""
        return list(self.path if "pg_catalog" in self.path else ("pg_catalog", *self.path))

    @lazy
    def settings(self) -> dict[str, str]:
        """The session's settings by lower-case name."""
        return {name.lower(): value for name, value in self.session.items() if name not in NOT_SETTINGS}

    def is_function(self, name: str) -> bool:
        return self.is_system(FUNCTIONS, name)

    def system_schema(self, table: exp.Table) -> str | None:
        """Return the system schema of a table; None for a user's table."""
        name, schema = table.name.lower(), table.db.lower()
        if schema:
            return schema if self.is_system(schema, name) else None
        if name in self.ctes:
            return None
        return system_schema(name, self.path, self.is_system)


def system_schema(name: str, path: Iterable[str], is_system: IsSystem) -> str | None:
    """Return the system schema in which an unqualified name is found; None for a user's relation, or an unknown name.

    Call it where the user has no relation of the name. Users cannot use a name that is on every path (`is_reserved`).
    """
    schemas = (*IMPLICIT_SCHEMAS, *(schema for schema in path if schema in SCHEMAS))
    return next((schema for schema in schemas if is_system(schema, name)), None)


def is_reserved(name: str, is_system: IsSystem) -> bool:
    """Return whether the name alone finds a system relation."""
    return system_schema(name, (), is_system) is not None


def call(name: str, *args: exp.Expr) -> exp.Expr:
    """Return `memory.pgf.name(args)`."""
    function = exp.Anonymous(this=name, expressions=list(args))
    return exp.Dot.build([exp.to_identifier("memory"), exp.to_identifier(FUNCTIONS), function])


def system_names(finished: exp.Expr) -> list[str]:
    """Return the relations and functions of the system catalogs in a tree for DuckDB, as `pgc.pg_class`."""
    found = []
    for node in finished.find_all(exp.Table, exp.Dot):
        item = node.this if isinstance(node, exp.Table) else node.expression
        schema = node.db if isinstance(node, exp.Table) else node.this.name if isinstance(item, exp.Anonymous) else ""
        if schema in _DUCKDB_SCHEMAS:
            found.append(f"{schema}.{item.name.lower()}")
    return found


def strings(values: list[str]) -> exp.Expr:
    return exp.Array(expressions=[exp.Literal.string(value) for value in values])
