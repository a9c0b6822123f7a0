"""The system catalogs: views in DuckDB's own database over Sparkwave's relations, and over copies of their rows.

`catalog/system/*.sql` defines them: schemas `pgc` (pg_catalog), `infs` (information_schema), `rwc` (rw_catalog), and
`pgf` with the functions that they need. Definitions are opened from a file (`catalog.system.definitions_file`), so
everything that differs between servers is in the database of copies. `planner.batch.pg_compat` directs a client's
catalog query to them.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from sparkwave.catalog.database_functions import define_functions
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.memory_transactions import rollback
from sparkwave.catalog.names import COPIES, SYSTEM_SCHEMA, literal
from sparkwave.catalog.stores.migrations import MIGRATIONS
from sparkwave.catalog.system.definitions_file import open_definitions, path_of
from sparkwave.catalog.text_functions import QUOTED_WORDS
from sparkwave.catalog.types import BASES, Type, described_type

# The DuckDB schema of each system schema, and its OID.
SCHEMAS: dict[str, tuple[str, int]] = {
    "pg_catalog": ("pgc", 11),
    "information_schema": ("infs", 13000),
    "rw_catalog": ("rwc", 13001),
}
FUNCTION_SCHEMA = "pgf"
SCALAR_SCHEMA = "pg"
# Comes before the functions of queries and views.
SCALAR_SETUP = f"CREATE SCHEMA IF NOT EXISTS memory.{SCALAR_SCHEMA}"

# In this order: a file uses definitions of the files before it.
_FILES = (
    "scalar", "pg_proc", "base", "copies", "functions", "pg_catalog", "pg_catalog_empty", "live",
    "information_schema_empty", "information_schema", "rw_catalog", "system_columns",
)  # fmt: skip
_WORDS = ", ".join(map(literal, sorted(QUOTED_WORDS)))
_SCRIPTS: dict[str, str] = {
    name: resources.files("sparkwave.catalog.system")
    .joinpath(f"{name}.sql")
    .read_text()
    .replace("QUOTED_WORDS", _WORDS)
    for name in _FILES
}
_OURS = re.compile(r"(?<![\w.])(pgc|infs|rwc|pgf|pg)\.(\w*)")
_DEFINITION = re.compile(r"^CREATE OR REPLACE (?:VIEW|TABLE|MACRO) (\w+)\.(\w+)", re.MULTILINE)
_WORD = re.compile(r"\w+")
_VARIABLE = re.compile(r"getvariable\('(\w+)'\)")
_STORED = re.compile(rf"\blake\.{SYSTEM_SCHEMA}\.(\w+)")


def _defined_in(schema: str) -> frozenset[str]:
    return frozenset(
        name
        for script in _SCRIPTS.values()
        for owner, name in _DEFINITION.findall(script)
        if owner == schema and not name.startswith("_")
    )


# The tables in the database of copies, by schema and name.
_COPIED = {*_DEFINITION.findall(_SCRIPTS["copies"]), ("pgc", "_server")}


def _statements(script: str) -> list[str]:
    return re.split(r"^(?=CREATE OR REPLACE)", re.sub(r"--.*", "", _SCRIPTS[script]), flags=re.MULTILINE)[1:]


@dataclass(frozen=True)
class Copy:
    """A table in the database of copies: its name as `schema.name`, the statement that makes it, and the tables of the
    lake that its rows come from."""

    name: str
    statement: str
    sources: frozenset[str]


def _copies() -> list[Copy]:
    copies: dict[str, Copy] = {}
    for text in _statements("copies"):
        name, *read = map(".".join, _OURS.findall(text))
        sources = frozenset(_STORED.findall(text)).union(*(copies[other].sources for other in read if other in copies))
        copies[name] = Copy(name, text, sources)
    return list(copies.values())


# The copies in the order in which they are made.
COPIES_IN_ORDER = _copies()

# The relations of each system schema, without helpers, whose names begin with an underscore.
SYSTEM_RELATIONS: dict[str, frozenset[str]] = {name: _defined_in(schema) for name, (schema, _) in SCHEMAS.items()}
FUNCTIONS: frozenset[str] = _defined_in(FUNCTION_SCHEMA) | {"_pg_expandarray"}

# PostgreSQL's OIDs of the relations that clients name as `classid` (src/include/catalog/pg_*.h).
_CLASS_OIDS: dict[str, int] = {
    "pg_default_acl": 826,
    "pg_tablespace": 1213,
    "pg_shdepend": 1214,
    "pg_type": 1247,
    "pg_attribute": 1249,
    "pg_proc": 1255,
    "pg_class": 1259,
    "pg_authid": 1260,
    "pg_auth_members": 1261,
    "pg_database": 1262,
    "pg_foreign_server": 1417,
    "pg_user_mapping": 1418,
    "pg_sequence": 2224,
    "pg_foreign_data_wrapper": 2328,
    "pg_shdescription": 2396,
    "pg_aggregate": 2600,
    "pg_am": 2601,
    "pg_amop": 2602,
    "pg_amproc": 2603,
    "pg_attrdef": 2604,
    "pg_cast": 2605,
    "pg_constraint": 2606,
    "pg_conversion": 2607,
    "pg_depend": 2608,
    "pg_description": 2609,
    "pg_index": 2610,
    "pg_inherits": 2611,
    "pg_language": 2612,
    "pg_largeobject": 2613,
    "pg_namespace": 2615,
    "pg_opclass": 2616,
    "pg_operator": 2617,
    "pg_rewrite": 2618,
    "pg_statistic": 2619,
    "pg_trigger": 2620,
    "pg_opfamily": 2753,
    "pg_db_role_setting": 2964,
    "pg_largeobject_metadata": 2995,
    "pg_extension": 3079,
    "pg_foreign_table": 3118,
    "pg_policy": 3256,
    "pg_partitioned_table": 3350,
    "pg_statistic_ext": 3381,
    "pg_init_privs": 3394,
    "pg_statistic_ext_data": 3429,
    "pg_collation": 3456,
    "pg_event_trigger": 3466,
    "pg_enum": 3501,
    "pg_range": 3541,
    "pg_transform": 3576,
    "pg_shseclabel": 3592,
    "pg_seclabel": 3596,
    "pg_ts_dict": 3600,
    "pg_ts_parser": 3601,
    "pg_ts_config": 3602,
    "pg_ts_config_map": 3603,
    "pg_ts_template": 3764,
    "pg_replication_origin": 6000,
    "pg_subscription": 6100,
    "pg_subscription_rel": 6102,
    "pg_publication": 6104,
    "pg_publication_rel": 6106,
    "pg_publication_namespace": 6237,
    "pg_parameter_acl": 6243,
}
_FIRST_CLASS_OID = 14000

# The relations of pg_catalog that are views in PostgreSQL (src/backend/catalog/system_views.sql).
_VIEWS = re.compile(
    r"pg_(available_\w+|config|cursors|file_settings|group|hba_file_rules|ident_file_mappings|indexes|locks|matviews"
    r"|policies|prepared_(statements|xacts)|publication_tables|replication_(origin_status|slots)|roles|rules|seclabels"
    r"|sequences|settings|shadow|stat(io)?_\w+|stats\w*|tables|timezone_\w+|user|user_mappings|views)"
)


def is_system(schema: str, name: str) -> bool:
    """Return whether `schema.name` is a system relation or, for the schema `pgf`, one of Sparkwave's functions."""
    return name in (FUNCTIONS if schema == FUNCTION_SCHEMA else SYSTEM_RELATIONS.get(schema, ()))


def define_python_functions(cursor: Cursor, signal: Callable[[str, int, str], bool]) -> None:
    """Define the functions that Python computes. Call it once, before `install`.

    pg_cancel_backend and pg_terminate_backend call `signal(user, process id, "cancel" or "terminate")`.
    """
    define_functions(cursor)
    cursor.create_function("sparkwave_signal", signal, ["VARCHAR", "INTEGER", "VARCHAR"], "BOOLEAN", side_effects=True)


def install(cursor: Cursor, is_standby: bool = False) -> None:
    """Create the system catalogs, or create them again, without the copies: call `refresh` before a query reads them.

    Call it once when the lake is open and not yet in use.
    """
    schemas = ("pgc", "pgf")
    cursor.execute("; ".join(f"CREATE SCHEMA IF NOT EXISTS {COPIES}.{schema}" for schema in schemas))
    _execute(cursor, f"CREATE OR REPLACE TABLE pgc._server AS SELECT {is_standby} AS __is_standby")
    open_definitions(cursor, path_of(_made_from()), lambda: _define(cursor))


@cache
def _made_from() -> tuple[str, ...]:
    """All texts that the definitions depend on."""
    return (*map(_qualified, (_fixed_tables(), *_SCRIPTS.values())), *MIGRATIONS)


def _define(cursor: Cursor) -> None:
    """Run all scripts in order, in several transactions, since no transaction can write two databases."""
    place = _FILES.index("copies")
    _execute(cursor, _fixed_tables(), *(_SCRIPTS[name] for name in _FILES[:place]))
    refresh(cursor)
    _execute(cursor, *(_SCRIPTS[name] for name in _FILES[place + 1 :]))


def needed_functions(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the statements that create the functions that queries and views may call, in order, after `SCALAR_SETUP`.

    Any word of a query that is the name of a function counts, as does what these functions call.
    """
    macros, needed = scalar_functions(), set[str]()
    found = {word for text in texts for word in _WORD.findall(text)} & macros.keys()
    while found:
        needed |= found
        found = {name for known in found for name in macros[known][1]} - needed
    return tuple(text for name, (text, _) in macros.items() if name in needed)


@cache
def scalar_functions() -> dict[str, tuple[str, frozenset[str]]]:
    """Return by name the statement that creates a function of queries and views, and the functions that it calls."""
    texts = _statements("scalar")
    calls = [[name for _, name in _OURS.findall(text)] for text in texts]
    found = {
        name: (_qualified(text.strip().removesuffix(";")), frozenset(called))
        for text, (name, *called) in zip(texts, calls, strict=True)
    }
    assert len(found) == len(texts), "two functions have one name"
    return found


@dataclass(frozen=True)
class Needs:
    """The copies, in order, and the DuckDB variables that a query over the system catalogs reads."""

    copies: tuple[Copy, ...]
    variables: frozenset[str]


@cache
def needs(names: frozenset[str]) -> Needs:
    """Return what a query needs that names these system relations and functions, each as `schema.name`."""
    texts, found, left = _definitions(), set[str](), set(names)
    while left:
        found |= left
        left = {read for name in left for read in texts.get(name, _NOTHING)[0]} - found
    variables = frozenset(variable for name in found for variable in texts.get(name, _NOTHING)[1])
    return Needs(tuple(copy for copy in COPIES_IN_ORDER if copy.name in found), variables)


_Read = tuple[frozenset[str], frozenset[str]]
_NOTHING: _Read = (frozenset(), frozenset())


@cache
def _definitions() -> Mapping[str, _Read]:
    """By name what each definition reads: other definitions, and variables. Functions of views read neither."""
    found: dict[str, _Read] = {}
    for script in _FILES:
        for text in _statements(script) if script not in ("scalar", "pg_proc") else ():
            name, *read = map(".".join, _OURS.findall(text))
            known, variables = found.get(name, _NOTHING)
            found[name] = known.union(read), variables.union(_VARIABLE.findall(text))
    return found


def refresh(cursor: Cursor, copies: Iterable[Copy] = COPIES_IN_ORDER) -> None:
    """Make copies again, which are in order.

    It runs in a separate transaction, since one cannot write both the lake and the copies; two calls must not
    overlap.
    """
    _execute(cursor, *(copy.statement for copy in copies))


def columns(cursor: Cursor) -> dict[tuple[str, str], dict[str, Type]]:
    """Return the columns of each system relation, by schema and name. Call it after `install`."""
    rows = cursor.execute("FROM memory.pgc._described_columns").fetchall()
    schemas = {ours: name for name, (ours, _) in SCHEMAS.items()}
    types: dict[str, Type] = {}
    for text in {text for *_, text in rows}:
        with contextlib.suppress(Error):  # a type that Sparkwave does not have
            types[text] = described_type(text)
    found: dict[tuple[str, str], dict[str, Type]] = {}
    for schema, table, column, text in rows:
        if text in types:
            found.setdefault((schemas[schema], table), {})[column] = types[text]
    return found


def _execute(cursor: Cursor, *scripts: str) -> None:
    """Run scripts in one transaction."""
    cursor.execute("BEGIN")
    try:
        for script in scripts:
            cursor.execute(_qualified(script))
        cursor.execute("COMMIT")
    except BaseException:
        rollback(cursor)
        raise


def _qualified(script: str) -> str:
    """A script with Sparkwave's schemas qualified: macros resolve names in the caller's default database."""

    def qualified(found: re.Match[str]) -> str:
        schema, name = found.groups()
        return f"{COPIES if (schema, name) in _COPIED else 'memory'}.{schema}.{name}"

    return _OURS.sub(qualified, script)


def _fixed_tables() -> str:
    """SQL of the schemas, and of the tables whose rows come from Python."""
    schemas = (*(schema for schema, _ in SCHEMAS.values()), FUNCTION_SCHEMA, SCALAR_SCHEMA)
    types = ((name, base.oid, base.array_oid, base.length, base.duckdb) for name, base in BASES.items())
    namespaces = ((oid, name) for name, (_, oid) in SCHEMAS.items())
    return "\n".join(
        (
            *(f"CREATE SCHEMA IF NOT EXISTS memory.{schema};" for schema in schemas),
            f"CREATE OR REPLACE MACRO pgf._ident(name) AS {_QUOTED};",
            _table("pgc._types", "name, oid, array_oid, length, duckdb", types),
            _table("pgc._system_namespaces", "id, name", namespaces),
            _table("pgc._system_relations", "id, schema_id, schema, name, kind", _system_relations()),
        )
    )


# A name as PostgreSQL's catalogs write it (src/backend/utils/adt/ruleutils.c, quote_identifier).
_QUOTED = (
    f"CASE WHEN regexp_full_match(name, '[a-z_][a-z0-9_]*') AND name NOT IN ({_WORDS}) THEN name "
    """ELSE '"' || replace(name, '"', '""') || '"' END"""
)


def _system_relations() -> list[tuple[object, ...]]:
    """Rows of `pgc._system_relations`."""
    names = [(schema, name) for schema in SCHEMAS for name in sorted(SYSTEM_RELATIONS[schema])]
    return [
        (
            _CLASS_OIDS.get(name, _FIRST_CLASS_OID + number),
            SCHEMAS[schema][1],
            schema,
            name,
            "r" if schema == "pg_catalog" and not _VIEWS.fullmatch(name) else "v",
        )
        for number, (schema, name) in enumerate(names)
    ]


def _table(name: str, columns: str, rows: Iterable[tuple[object, ...]]) -> str:
    values = ", ".join("(" + ", ".join(literal(v) if isinstance(v, str) else f"{v}" for v in row) + ")" for row in rows)
    return f"CREATE OR REPLACE TABLE {name} AS FROM (VALUES {values}) AS fixed({columns});"
