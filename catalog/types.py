"""SQL types, with their names in Postgres, DuckDB and Spark.

OIDs and lengths are those of PostgreSQL's `pg_type.dat`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from sparkwave.catalog.errors import DATATYPE_MISMATCH, DUPLICATE_COLUMN, UNDEFINED_OBJECT, Error
from sparkwave.catalog.names import DEFAULT_SCHEMA, literal, quote, quote_if_needed


@dataclass(frozen=True)
class Base:
    """The fixed properties of a type name: OIDs, `typlen` in bytes (-1 varies), and DuckDB's name."""

    oid: int
    array_oid: int
    length: int
    duckdb: str


BASES: dict[str, Base] = {
    "boolean": Base(16, 1000, 1, "BOOLEAN"),
    "smallint": Base(21, 1005, 2, "SMALLINT"),
    "integer": Base(23, 1007, 4, "INTEGER"),
    "bigint": Base(20, 1016, 8, "BIGINT"),
    "real": Base(700, 1021, 4, "FLOAT"),
    "double precision": Base(701, 1022, 8, "DOUBLE"),
    "numeric": Base(1700, 1231, -1, "DECIMAL"),
    "character varying": Base(1043, 1015, -1, "VARCHAR"),
    "text": Base(25, 1009, -1, "VARCHAR"),
    "bytea": Base(17, 1001, -1, "BLOB"),
    "date": Base(1082, 1182, 4, "DATE"),
    "time without time zone": Base(1083, 1183, 8, "TIME"),
    "timestamp without time zone": Base(1114, 1115, 8, "TIMESTAMP"),
    "timestamp with time zone": Base(1184, 1185, 8, "TIMESTAMPTZ"),
    "interval": Base(1186, 1187, 16, "INTERVAL"),
    "jsonb": Base(3802, 3807, -1, "JSON"),
    # A text, in a type that DuckDB tells from text and from jsonb: a union with one member. There are no other unions.
    "json": Base(114, 199, -1, 'UNION("json" VARCHAR)'),
    "uuid": Base(2950, 2951, 16, "UUID"),
    "oid": Base(26, 1028, 4, "UINTEGER"),
    # RisingWave's rows with named fields; clients see the pseudo-type `record`.
    "struct": Base(2249, 2287, -1, "STRUCT"),
    # RisingWave's maps; clients see a text. Its `fields` are the key and the value.
    "map": Base(1043, 1015, -1, "MAP"),
    # The users' enums, which have their own OIDs; this one is anyenum's.
    "enum": Base(3500, 2277, 4, "ENUM"),
}
# Names that each stand for many types.
_OF_MANY = frozenset({"struct", "map", "enum"})
# The types that keys of maps may have, as in RisingWave.
_KEYS = frozenset({"smallint", "integer", "bigint", "character varying"})

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

# DuckDB's integers wider than 64 bits become numeric without a fraction.
_WIDE_INTEGERS = frozenset({"hugeint", "uhugeint", "int128", "ubigint"})

# A numeric without precision has a fixed point, in one of two places. Users' numerics, quotients and averages have 19
# digits before the point, as a bigint has, and 19 after it: QUOTIENT. Sums of integers have 28 before it, as
# RisingWave's decimal holds, and 10 after it: DEFAULT. So have columns of tables of earlier versions, and elements of
# their arrays.
DEFAULT_NUMERIC = (38, 10)
QUOTIENT_NUMERIC = (38, 19)
# SQL after a value of a type that makes an equal expression of it.
_UNCHANGED = {"bytea": "|| ''::BLOB", "real": "* 1", "double precision": "* 1"}

# The digits of a decimal in DuckDB, which makes a double of a number with more.
MOST_DIGITS = 38
# DuckDB (1.5.5) rounds twice where it makes a float of a numeric constant with more digits than these.
FLOAT_DIGITS = 15


@dataclass(frozen=True)
class Named:
    """The name of a user's type and its OID; the OID of its array type is one higher.

    For a type that is not yet resolved, the schema is "" if none is written, and `position` is that of the name in the
    text.
    """

    oid: int
    schema: str
    name: str
    position: int | None = None

    def __str__(self) -> str:
        schema = "" if self.schema in ("", DEFAULT_SCHEMA) else f"{quote_if_needed(self.schema)}."
        return schema + quote_if_needed(self.name)

    @property
    def mark(self) -> str:
        """A text that identifies the type among an enum's labels; no user can write it as a label."""
        return _MARK + json.dumps([self.oid, self.schema, self.name], ensure_ascii=False)


_MARK = "\x01"
# The names that RisingWave's definitions have for types, where they are not PostgreSQL's in upper case.
_DEFINED = {
    "integer": "INT",
    "double precision": "DOUBLE",
    "timestamp without time zone": "TIMESTAMP",
    "time without time zone": "TIME",
}
_CATALOG = "pg_catalog"
# The name of a type that is not yet resolved.
UNRESOLVED = "unresolved"


@dataclass(frozen=True)
class Type:
    """A SQL type: a base name, numeric(precision, scale) if given, and the number of array dimensions.

    `fields` are a struct's fields; fields without a name are f1, f2, …, as for PostgreSQL's ROW(..). A map has two, the
    key and the value; its entries are in the order of their keys, so that equal maps are equal values. `labels` are an
    enum's labels, the last one being the mark by which DuckDB distinguishes enums with equal labels. `named` is the
    name of a user's type.
    """

    name: str
    precision: int | None = None
    scale: int | None = None
    dimensions: int = 0
    fields: tuple[tuple[str, Type], ...] = ()
    labels: tuple[str, ...] = field(default=(), repr=False)
    named: Named | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        """The name in information_schema; for a struct `struct<a integer, "B" character varying>`."""
        if self.named is not None:
            return f"{self.named}{'[]' * self.dimensions}"
        args = f"({self.precision},{self.scale or 0})" if self.precision is not None else ""
        if self.name == "map":
            args = f"({','.join(str(type_) for _, type_ in self.fields)})"
        elif self.fields:
            args = f"<{', '.join(f'{quote_if_needed(name)} {type_}' for name, type_ in self.fields)}>"
        return self.name + args + "[]" * self.dimensions

    @property
    def stored(self) -> str:
        """A text from which `parse_type` makes the same type, with the user's name and the types of the fields."""
        if self.labels:
            return self.duckdb()
        mark = self.named.mark if self.named is not None else ""
        if not self.fields:
            return mark + str(replace(self, named=None))
        if self.name == "map":
            return f"map({', '.join(type_.stored for _, type_ in self.fields)})" + "[]" * self.dimensions
        listed = ", ".join(f"{quote_if_needed(name)} {type_.stored}" for name, type_ in self.fields)
        return f"{mark}struct<{listed}>{'[]' * self.dimensions}"

    @property
    def shown(self) -> str:
        """The type as users write it."""
        return str(self).replace(str(QUOTIENT), "numeric")

    @property
    def defined(self) -> str:
        """The type as RisingWave writes it in definitions: `STRUCT<a INT, b CHARACTER VARYING>[]`."""
        if self.named is not None:
            return self.shown
        if self.name == "map":
            return f"MAP({','.join(type_.defined for _, type_ in self.fields)})" + "[]" * self.dimensions
        if self.fields:
            listed = ", ".join(f"{quote_if_needed(name)} {type_.defined}" for name, type_ in self.fields)
            return f"STRUCT<{listed}>{'[]' * self.dimensions}"
        plain = replace(self, dimensions=0).shown
        return _DEFINED.get(plain, plain.upper()) + "[]" * self.dimensions

    @property
    def as_written(self) -> Type:
        """The type that this text of a user means: `numeric` without precision becomes QUOTIENT."""
        if self.name == "numeric" and self.precision is None:
            return replace(QUOTIENT, dimensions=self.dimensions)
        if self.fields:
            return replace(self, fields=tuple((name, field.as_written) for name, field in self.fields))
        return self

    @property
    def base(self) -> Base:
        """The properties of the base name. Raises Error 42704 for an unresolved name."""
        if self.name == UNRESOLVED:
            raise Error(f'type "{self}" does not exist', UNDEFINED_OBJECT)
        return BASES[self.name]

    @property
    def oid(self) -> int:
        # For a domain, clients see its base type.
        if self.named is not None and (self.labels or self.fields or self.named.schema == _CATALOG):
            return _ARRAY_OIDS.get(self.named.oid, self.named.oid + 1) if self.dimensions else self.named.oid
        return self.base.array_oid if self.dimensions else self.base.oid

    @property
    def length(self) -> int:
        """`typlen`: bytes of a value, -1 when it varies."""
        return -1 if self.dimensions else self.base.length

    @property
    def typmod(self) -> int:
        """`atttypmod`: `((precision << 16) | scale) + 4` for numeric(p,s), -1 without."""
        if self.name == "numeric" and self.precision is not None and not self.is_unconstrained:
            return ((self.precision << 16) | (self.scale or 0)) + 4
        return -1

    @property
    def in_rows(self) -> Type:
        """The type as clients see it in a row or an array that is no table's column: all text is `text`."""
        return replace(TEXT, dimensions=self.dimensions) if replace(self, dimensions=0).is_text else self

    @property
    def without_digits(self) -> Type:
        """The type without a precision."""
        return replace(self, precision=None, scale=None)

    @property
    def is_unconstrained(self) -> bool:
        """Whether it is numeric without a precision: its storage tells nothing about a value's digits."""
        return self.name == "numeric" and (self.precision is None or self.digits == QUOTIENT_NUMERIC)

    @property
    def digits(self) -> tuple[int, int]:
        """For a numeric, the number of stored digits, and how many of them are after the point."""
        return DEFAULT_NUMERIC if self.precision is None else (self.precision, self.scale or 0)

    @property
    def is_integer(self) -> bool:
        return not self.dimensions and self.name in ("smallint", "integer", "bigint")

    @property
    def is_float(self) -> bool:
        return not self.dimensions and self.name in ("real", "double precision")

    @property
    def has_floats(self) -> bool:
        """Whether it is a float, or has floats within."""
        return self.name in ("real", "double precision") or any(type_.has_floats for _, type_ in self.fields)

    @property
    def is_numeric(self) -> bool:
        return not self.dimensions and (self.is_integer or self.is_float or self.name == "numeric")

    @property
    def is_text(self) -> bool:
        return not self.dimensions and self.name in ("character varying", "text")

    @property
    def is_struct(self) -> bool:
        return not self.dimensions and self.name == "struct"

    @property
    def is_map(self) -> bool:
        return not self.dimensions and self.name == "map"

    @property
    def holds_map(self) -> bool:
        """Whether it is a map, an array of maps, or a struct with one."""
        return self.name == "map" or any(field.holds_map for _, field in self.fields)

    @property
    def element(self) -> Type:
        return replace(self, dimensions=self.dimensions - 1)

    def duckdb(self) -> str:
        name = self.base.duckdb
        if self.name == "map":
            name += f"({', '.join(type_.duckdb() for _, type_ in self.fields)})"
        elif self.fields:
            name += f"({', '.join(f'{quote(field)} {type_.duckdb()}' for field, type_ in self.fields)})"
        elif self.labels:
            name += f"({', '.join(map(literal, self.labels))})"
        elif self.name == "numeric":
            name += f"({self.digits[0]},{self.digits[1]})"
        return name + "[]" * self.dimensions

    def cast(self, value: str) -> str:
        """Return DuckDB's SQL for a cast to this type. Texts are checked before they become json or jsonb.

        jsonb loses its spaces, so that equal documents are equal texts.
        """
        if self.name not in ("json", "jsonb"):
            return f"CAST({value} AS {self.duckdb()})"
        if not self.dimensions:
            return f"json({value})" if self.name == "jsonb" else f"memory.pg.json_in({value})"
        if self.name == "json":
            return f"list_transform({value}, lambda x: {self.element.cast('x')})"
        return f"list_transform(CAST({value} AS {self.duckdb()}), lambda x: {self.element.cast('x')})"

    def holds(self, oid: int) -> bool:
        """Return whether it is the user's type with this OID, an array of it, or a struct with it."""
        is_same = self.named is not None and self.named.oid == oid
        return is_same or any(field.holds(oid) for _, field in self.fields)

    @property
    def holds_json(self) -> bool:
        """Whether it is json, an array of it, or a struct with it."""
        return self.name == "json" or any(field.holds_json for _, field in self.fields)

    @property
    def is_text_in_lake(self) -> bool:
        """Whether the lake stores it as text: it has no enums and unions, and Parquet's intervals no sign and
        microseconds.
        """
        return self.name in ("interval", "enum", "json") or any(field.is_text_in_lake for _, field in self.fields)

    @property
    def is_read_as_stored(self) -> bool:
        """Whether `from_lake` changes nothing."""
        return not self.is_text_in_lake and (bool(self.dimensions) or self.name not in _UNCHANGED)

    def in_lake(self) -> str:
        """Return DuckDB's type of a lake table's column."""
        if self.name == "map":
            return f"MAP({', '.join(type_.in_lake() for _, type_ in self.fields)})" + "[]" * self.dimensions
        if self.fields:
            fields = ", ".join(f"{quote(name)} {type_.in_lake()}" for name, type_ in self.fields)
            return f"STRUCT({fields})" + "[]" * self.dimensions
        return ("VARCHAR" + "[]" * self.dimensions) if self.is_text_in_lake else self.duckdb()

    def from_lake(self, stored: str) -> str:
        """Return DuckDB's SQL for a value of such a column. Older lakes store intervals as intervals.

        Bytes and floats are read by an expression, so that no condition about them reaches a file: DuckDB (1.5.5,
        asserted by tests/test_text_bounds.py) looks in a file's Bloom filter for the text that it prints bytes as, and
        for one of the two zeros and one of the many NaNs, which are equal.
        """
        if self.is_read_as_stored:
            return stored
        if not self.is_text_in_lake:
            return f"({stored} {_UNCHANGED[self.name]})"
        if self.holds_json:
            return self._json_from_lake(stored)
        if self.dimensions or self.fields or self.labels:
            return f"CAST({stored} AS {self.duckdb()})"
        return f"memory.pg.interval_from_lake({stored})"

    def _json_from_lake(self, stored: str) -> str:
        """Read json, or what holds json, as `from_lake` does; DuckDB (1.5.5) casts NULL to a union that is not NULL."""
        if self.dimensions or self.fields:
            return self.over_parts(stored, Type.from_lake)
        return f"memory.pg.json_from_lake({stored})"

    def over_parts(self, value: str, made: Callable[[Type, str], str]) -> str:
        """Return DuckDB's SQL for an array, a struct or a map of other parts; NULL stays NULL.

        `made` gets the type of an element or a field and its SQL, and returns the SQL of the part in its place.
        """
        if self.dimensions:
            return f"list_transform({value}, lambda x: {made(self.element, 'x')})"
        if self.name == "map":
            key, held = (made(type_, f"e.{name}") for name, type_ in self.fields)
            return f"map_from_entries(list_transform(map_entries({value}), lambda e: {{key: {key}, value: {held}}}))"
        fields = (f"{quote(name)} := {made(type_, f'({value}).{quote(name)}')}" for name, type_ in self.fields)
        return f"CASE WHEN {value} IS NOT NULL THEN struct_pack({', '.join(fields)}) END"


def column_type_of(value: Type) -> Type:
    """Return the type of a table's column of values of a type: the catalogs' own types are texts and OIDs there."""
    is_of_the_catalog = value.named is not None and value.named.schema == _CATALOG
    return replace(value, named=None) if is_of_the_catalog else value


BOOLEAN, SMALLINT, INTEGER, BIGINT = Type("boolean"), Type("smallint"), Type("integer"), Type("bigint")
REAL, DOUBLE, NUMERIC = Type("real"), Type("double precision"), Type("numeric")
QUOTIENT = Type("numeric", *QUOTIENT_NUMERIC)
VARCHAR, TEXT, BYTEA = Type("character varying"), Type("text"), Type("bytea")
DATE, TIMESTAMP, TIMESTAMPTZ = (
    Type("date"),
    Type("timestamp without time zone"),
    Type("timestamp with time zone"),
)
TIME, INTERVAL, JSON, JSONB, UUID = (
    Type("time without time zone"),
    Type("interval"),
    Type("json"),
    Type("jsonb"),
    Type("uuid"),
)

# The types of columns in PostgreSQL's catalogs that are texts and OIDs here.
CHAR = Type("text", named=Named(18, _CATALOG, "char"))
NAME = Type("text", named=Named(19, _CATALOG, "name"))
XID = Type("oid", named=Named(28, _CATALOG, "xid"))
_ARRAY_OIDS = {18: 1002, 19: 1003, 28: 1011}

_BY_OID = {base.oid: Type(name) for name, base in BASES.items() if name not in _OF_MANY} | {
    base.array_oid: Type(name, dimensions=1) for name, base in BASES.items() if name not in _OF_MANY
}

_SPELLING = re.compile(r"""\s*([a-z_"][a-z0-9_" ]*?)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?\s*((?:\[\d*\])*)\s*$""")

_DUCKDB_NAME = re.compile(r"""UNION\("json" (?:VARCHAR|TEXT)\)|"(?:[^"]|"")*"|'(?:[^']|'')*'|\b(?:FLOAT|JSON)\b""")
# DuckDB's names that mean another type in PostgreSQL, whose float has 64 bits.
_OTHER_NAMES = {"FLOAT": "REAL", "JSON": "JSONB"}


def duckdb_type(text: str) -> Type:
    """Return the type that DuckDB's name means, whose fields have names in lower case unless they are quoted."""
    return parse_type(_DUCKDB_NAME.sub(_as_in_postgres, text))


def described_type(text: str) -> Type:
    """Return the type that DuckDB says of a column, with the names of fields as they are."""
    return _parsed(_DUCKDB_NAME.sub(_as_in_postgres, text), folds=False)


def _as_in_postgres(match: re.Match[str]) -> str:
    return "json" if match[0].startswith("UNION") else _OTHER_NAMES.get(match[0], match[0])


_STRUCT = re.compile(r"\s*struct\s*([<(])(.*)([>)])\s*((?:\[\d*\])*)\s*$", re.IGNORECASE | re.DOTALL)
_MAP = re.compile(r"\s*map\s*[<(](.*)[>)]\s*((?:\[\d*\])*)\s*$", re.IGNORECASE | re.DOTALL)
_ENUM = re.compile(r"ENUM\(('(?:[^']|'')*+'(?:, '(?:[^']|'')*+')*+)\)((?:\[\])*+)")
_LABEL = re.compile(r"'((?:[^']|'')*)'")
_FIELD = re.compile(r"""\s*("(?:[^"]|"")*"|[^\s"<>()]+)\s+(\S.*)$""", re.DOTALL)


def parse_type(text: str) -> Type:
    """Return the type of a Postgres or DuckDB spelling: `int4[]`, `DECIMAL(10,2)`, `STRUCT<a int>`, `map(int, int)`.

    Raises Error 42704 for an unknown type, 42804 for a map whose keys cannot be ones.
    """
    return _parsed(text, folds=True)


@lru_cache(maxsize=1024)
def _parsed(text: str, folds: bool) -> Type:
    """Return the type of a spelling. `folds` tells whether names of fields that are not quoted get lower case."""
    if text.startswith(_MARK):
        return _marked(text, folds)
    enum = _ENUM.fullmatch(text)
    if enum is not None:
        labels = [label.replace("''", "'") for label in _LABEL.findall(enum[1])]
        return enum_type(labels, enum[2].count("["))
    struct = _STRUCT.match(text)
    if struct is not None:
        return struct_type(_fields(struct[2], folds), dimensions=struct[4].count("["))
    of_map = _MAP.match(text)
    if of_map is not None and len(parts := list(_split(of_map[1]))) == len(_ENTRY):
        key, value = (_parsed(part, folds) for part in parts)
        return replace(map_type(key, value), dimensions=of_map[2].count("["))
    match = _SPELLING.match(text.lower())
    name = match[1] if match else text.lower()
    resolved = ALIASES.get(name, name)
    if match is None or resolved not in BASES or resolved in _OF_MANY:
        raise Error(f'type "{text}" does not exist', UNDEFINED_OBJECT)
    dimensions = match[4].count("[")
    if resolved == "numeric" and match[2]:
        return Type(resolved, int(match[2]), int(match[3] or 0), dimensions)
    if name in _WIDE_INTEGERS:
        return Type(resolved, 38, 0, dimensions)
    return Type(resolved, dimensions=dimensions)


def enum_type(labels: Sequence[str], dimensions: int = 0) -> Type:
    """Return an enum with these labels; the last label may be the mark."""
    named = _named(labels[-1])[0] if labels and labels[-1].startswith(_MARK) else None
    return Type("enum", dimensions=dimensions, labels=tuple(labels), named=named)


def is_of_ours(text: str) -> bool:
    """Return whether a text may be the stored form of a user's type, or DuckDB's; no user writes either."""
    return _MARK in text or "ENUM(" in text


def with_names(text: str) -> str:
    """Return an engine's message with enums under their users' names."""
    return _ENUM.sub(lambda match: str(parse_type(match[0])), text) if _MARK in text else text


def _marked(text: str, folds: bool) -> Type:
    """The type of a text that begins with the mark of a user's type."""
    named, rest = _named(text)
    return replace(_parsed(rest, folds), named=named)


def _named(text: str) -> tuple[Named, str]:
    """The name in a mark, and the text after the mark."""
    parts, end = json.JSONDecoder().raw_decode(text, len(_MARK))
    return Named(*parts), text[end:]


def unresolved(schema: str | None, name: str, dimensions: int, position: int | None) -> Type:
    """Return a type by its name alone, which may be a user's type."""
    return Type(UNRESOLVED, dimensions=dimensions, named=Named(0, schema or "", name, position))


def struct_type(fields: Iterable[tuple[str | None, Type]], dimensions: int = 0) -> Type:
    """Return a struct with these fields; text fields become varchar, RisingWave's only text type.

    Raises Error 42701.
    """
    named = tuple(
        (
            name or f"f{number}",
            Type("character varying", dimensions=type_.dimensions) if type_.name == "text" else type_,
        )
        for number, (name, type_) in enumerate(fields, start=1)
    )
    folded = [name.lower() for name, _ in named]  # DuckDB ignores case
    for number, name in enumerate(folded):
        if name in folded[:number]:
            raise Error(f'struct field "{named[number][0]}" specified more than once', DUPLICATE_COLUMN)
    return Type("struct", dimensions=dimensions, fields=named)


# The names of a map's fields.
_ENTRY = ("key", "value")


def map_type(key: Type, value: Type) -> Type:
    """Return a map; text becomes varchar. Raises Error 42804 for a key of another type than integers and text."""
    entry = struct_type(zip(_ENTRY, (key, value), strict=True))
    if key.dimensions or entry.fields[0][1].name not in _KEYS:
        raise Error(f"invalid map key type: {key.without_digits}", DATATYPE_MISMATCH)
    return Type("map", fields=entry.fields)


def _fields(text: str, folds: bool) -> Iterator[tuple[str | None, Type]]:
    """The fields between a struct's brackets: a name and a type, or for DuckDB's unnamed fields only a type."""
    for part in _split(text):
        field = _FIELD.match(part)
        if field is None or _is_type(part):
            yield None, _parsed(part, folds)
        else:
            name = field[1]
            bare = name.lower() if folds else name
            yield name[1:-1].replace('""', '"') if name.startswith('"') else bare, _parsed(field[2], folds)


def _is_type(text: str) -> bool:
    """Whether the whole text is a type: `timestamp with time zone` is not a field `timestamp`."""
    match = _SPELLING.match(text.lower())
    return match is not None and ALIASES.get(match[1], match[1]) in BASES


_TOKEN = re.compile(rf"""{_MARK}\[(?:"(?:[^"\\]|\\.)*"|[^"\]])*\]|"(?:[^"]|"")*"|'(?:[^']|'')*'|[<(]|[>)]|,""")


def _split(text: str) -> Iterator[str]:
    """The parts of a list, split at its commas outside brackets and quotes."""
    depth, start = 0, 0
    for token in _TOKEN.finditer(text):
        depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(token[0], 0)
        if token[0] == "," and not depth:
            yield text[start : token.start()]
            start = token.end()
    yield text[start:]


def type_of_oid(oid: int) -> Type | None:
    """Return the type with this OID; None for 0 (unspecified), 705 (unknown) and types that Sparkwave lacks."""
    return _BY_OID.get(oid)
