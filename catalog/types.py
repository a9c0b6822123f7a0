"""The one type language: SQL types with their names in Postgres, DuckDB and Spark.

OIDs and lengths are those of PostgreSQL's `pg_type.dat`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from catalog.errors import FEATURE_NOT_SUPPORTED, UNDEFINED_OBJECT, Error


@dataclass(frozen=True)
class Base:
    """What is fixed for a type name: OIDs, `typlen` in bytes (-1 varies), names on both engines (None: cannot)."""

    oid: int
    array_oid: int
    length: int
    duckdb: str
    spark: str | None


BASES: dict[str, Base] = {
    "boolean": Base(16, 1000, 1, "BOOLEAN", "BOOLEAN"),
    "smallint": Base(21, 1005, 2, "SMALLINT", "SMALLINT"),
    "integer": Base(23, 1007, 4, "INTEGER", "INT"),
    "bigint": Base(20, 1016, 8, "BIGINT", "BIGINT"),
    "real": Base(700, 1021, 4, "FLOAT", "FLOAT"),
    "double precision": Base(701, 1022, 8, "DOUBLE", "DOUBLE"),
    "numeric": Base(1700, 1231, -1, "DECIMAL", "DECIMAL"),
    "character varying": Base(1043, 1015, -1, "VARCHAR", "STRING"),
    "text": Base(25, 1009, -1, "VARCHAR", "STRING"),
    "bytea": Base(17, 1001, -1, "BLOB", "BINARY"),
    "date": Base(1082, 1182, 4, "DATE", "DATE"),
    "time without time zone": Base(1083, 1183, 8, "TIME", "TIME(6)"),
    "timestamp without time zone": Base(1114, 1115, 8, "TIMESTAMP", "TIMESTAMP_NTZ"),
    "timestamp with time zone": Base(1184, 1185, 8, "TIMESTAMPTZ", "TIMESTAMP"),
    "interval": Base(1186, 1187, 16, "INTERVAL", None),
    "jsonb": Base(3802, 3807, -1, "JSON", None),
    "uuid": Base(2950, 2951, 16, "UUID", None),
    "oid": Base(26, 1028, 4, "UINTEGER", None),
}

ALIASES: dict[str, str] = {
    "bool": "boolean",
    "int2": "smallint",
    "int": "integer",
    "int4": "integer",
    "int8": "bigint",
    "float4": "real",
    "float": "double precision",
    "float8": "double precision",
    "double": "double precision",
    "decimal": "numeric",
    "varchar": "character varying",
    "string": "character varying",
    "blob": "bytea",
    "binary": "bytea",
    "varbinary": "bytea",
    "time": "time without time zone",
    "timestamp": "timestamp without time zone",
    "timestamptz": "timestamp with time zone",
    "timestamp_ns": "timestamp without time zone",
    "timestamp_s": "timestamp without time zone",
    "timestamp_ms": "timestamp without time zone",
    "timestampntz": "timestamp without time zone",
    "json": "jsonb",
    "hugeint": "numeric",
    "uhugeint": "numeric",
    "int128": "numeric",
    "bignum": "numeric",
    "ubigint": "numeric",
    "uinteger": "oid",
    "usmallint": "integer",
    "utinyint": "smallint",
    "tinyint": "smallint",
    "serial": "bigint",
    "null": "text",
    '"null"': "text",
    "unknown": "text",
    "char": "text",
    "name": "text",
}

# DuckDB's integers wider than 64 bits arrive as numeric with no fraction.
_WIDE_INTEGERS = frozenset({"hugeint", "uhugeint", "int128", "ubigint"})

# A numeric without precision has to fit a fixed-point column on both engines: 28 digits before the
# point as RisingWave's decimal holds, 10 after.
DEFAULT_NUMERIC = (38, 10)


@dataclass(frozen=True)
class Type:
    """A SQL type: a base name, numeric(precision, scale) if given, and the number of array dimensions."""

    name: str
    precision: int | None = None
    scale: int | None = None
    dimensions: int = 0

    def __str__(self) -> str:
        args = f"({self.precision},{self.scale or 0})" if self.precision is not None else ""
        return self.name + args + "[]" * self.dimensions

    @property
    def base(self) -> Base:
        return BASES[self.name]

    @property
    def oid(self) -> int:
        return self.base.array_oid if self.dimensions else self.base.oid

    @property
    def length(self) -> int:
        """`typlen`: bytes of a value, -1 when it varies."""
        return -1 if self.dimensions else self.base.length

    @property
    def typmod(self) -> int:
        """`atttypmod`: `((precision << 16) | scale) + 4` for numeric(p,s), -1 without."""
        if self.name == "numeric" and self.precision is not None:
            return ((self.precision << 16) | (self.scale or 0)) + 4
        return -1

    @property
    def is_integer(self) -> bool:
        return not self.dimensions and self.name in ("smallint", "integer", "bigint")

    @property
    def is_numeric(self) -> bool:
        return not self.dimensions and (self.is_integer or self.name in ("real", "double precision", "numeric"))

    @property
    def is_text(self) -> bool:
        return not self.dimensions and self.name in ("character varying", "text")

    @property
    def element(self) -> Type:
        return Type(self.name, self.precision, self.scale, self.dimensions - 1)

    def duckdb(self) -> str:
        return self._engine_name(self.base.duckdb) + "[]" * self.dimensions

    def spark(self) -> str:
        """The Spark SQL type. Raises Error 0A000 for a type Spark cannot hold."""
        if self.base.spark is None:
            raise Error(f"type {self} is not supported in materialized views", FEATURE_NOT_SUPPORTED)
        name = self._engine_name(self.base.spark)
        for _ in range(self.dimensions):
            name = f"ARRAY<{name}>"
        return name

    def _engine_name(self, name: str) -> str:
        if self.name != "numeric":
            return name
        precision, scale = DEFAULT_NUMERIC if self.precision is None else (self.precision, self.scale or 0)
        return f"{name}({precision},{scale})"


BOOLEAN, SMALLINT, INTEGER, BIGINT = Type("boolean"), Type("smallint"), Type("integer"), Type("bigint")
REAL, DOUBLE, NUMERIC = Type("real"), Type("double precision"), Type("numeric")
VARCHAR, TEXT, BYTEA = Type("character varying"), Type("text"), Type("bytea")
DATE, TIMESTAMP, TIMESTAMPTZ = (
    Type("date"),
    Type("timestamp without time zone"),
    Type("timestamp with time zone"),
)
TIME, INTERVAL, JSONB, UUID = Type("time without time zone"), Type("interval"), Type("jsonb"), Type("uuid")

_BY_OID = {base.oid: Type(name) for name, base in BASES.items()} | {
    base.array_oid: Type(name, dimensions=1) for name, base in BASES.items()
}

_SPELLING = re.compile(r"""\s*([a-z_"][a-z0-9_" ]*?)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?\s*((?:\[\d*\])*)\s*$""")


def parse_type(text: str) -> Type:
    """The type a Postgres or DuckDB spelling names, e.g. `int4[]`, `DECIMAL(10,2)`, `VARCHAR`.

    Raises Error 42704 for a name that is no type.
    """
    match = _SPELLING.match(text.lower())
    name = match[1] if match else text.lower()
    resolved = ALIASES.get(name, name)
    if match is None or resolved not in BASES:
        raise Error(f'type "{text}" does not exist', UNDEFINED_OBJECT)
    dimensions = match[4].count("[")
    if resolved == "numeric" and match[2]:
        return Type(resolved, int(match[2]), int(match[3] or 0), dimensions)
    if name in _WIDE_INTEGERS:
        return Type(resolved, 38, 0, dimensions)
    return Type(resolved, dimensions=dimensions)


def type_of_oid(oid: int) -> Type | None:
    """The type with this OID; None for OID 0 (unspecified), 705 (unknown) and those we do not have."""
    return _BY_OID.get(oid)
