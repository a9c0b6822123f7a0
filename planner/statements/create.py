"""Statements that create and drop objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from sparkwave.catalog.model import REPLACE, SQL, Column, Conflict, Watermark
from sparkwave.catalog.relation_details import NO_ACTION, Check
from sparkwave.catalog.types import Type
from sparkwave.planner.statements.relation_names import Name


@dataclass(frozen=True)
class SequenceOptions:
    """The options of CREATE or ALTER SEQUENCE; None, or False, for an option that is not given.

    "" for `minimum` and `maximum` is NO MINVALUE and NO MAXVALUE; `restart` True is RESTART without a number.
    `owned_by` is a table and its column, () is OWNED BY NONE.
    """

    type: str | None = None
    start: int | None = None
    increment: int | None = None
    minimum: int | Literal[""] | None = None
    maximum: int | Literal[""] | None = None
    cycles: bool | None = None
    cache: int | None = None
    restart: int | bool = False
    owned_by: tuple[Name, str] | tuple[()] | None = None


@dataclass(frozen=True)
class DeclaredUnique:
    """UNIQUE, which is not enforced; its name may be "". `included` are the columns of INCLUDE.

    `deferral` is as in `catalog.relation_details.Unique`; `position` is that of the first name, if there is one.
    """

    name: str
    columns: tuple[str, ...]
    included: tuple[str, ...] = ()
    nulls_distinct: bool = True
    deferral: str = ""
    position: int | None = None


@dataclass(frozen=True)
class DeclaredForeignKey:
    """FOREIGN KEY or REFERENCES, which is not enforced; its name may be "".

    Without `parent_columns` it references the primary key of `parent`. With `is_unenforced` NOT ENFORCED was written.
    The rest is as in `catalog.relation_details.ForeignKey`.
    """

    name: str
    columns: tuple[str, ...]
    parent: Name
    parent_columns: tuple[str, ...] = ()
    is_full: bool = False
    on_update: str = NO_ACTION
    on_delete: str = NO_ACTION
    set_columns: tuple[str, ...] = ()
    deferral: str = ""
    is_unenforced: bool = False


DeclaredKey = DeclaredUnique | DeclaredForeignKey


@dataclass(frozen=True)
class ColumnDefinition:
    """A column as `catalog.model.Column` has it; with `counts` its default is the next number of a sequence.

    `identity` is the kind of an identity column (`catalog.relation_details.Sequence`), None for any other column.
    `length` is that of varchar(n), None for any length. `checks` and `keys` have a name or "". `padded` is the position
    of a column of char(n), which only stored definitions have; None for others.
    """

    name: str
    type: Type
    not_null: bool = False
    default: str | None = None
    generated: str | None = None
    counts: SequenceOptions | None = None
    identity: str | None = None
    length: int | None = None
    checks: tuple[Check, ...] = ()
    keys: tuple[DeclaredKey, ...] = ()
    padded: int | None = None

    @property
    def column(self) -> Column:
        return Column(self.name, self.type, not_null=self.not_null, default=self.default, generated=self.generated)


@dataclass(frozen=True)
class Connector:
    """`[INCLUDE what AS column …] WITH (connector = …, …) [FORMAT … ENCODE … (…)]`, or `FROM shared TABLE 'table'`.

    `format` and `encode` are in upper case, empty where they are not given. `includes` are what, column and position.
    `position` is that of WITH or FROM.
    """

    options: tuple[Option, ...]
    format: str
    encode: str
    encode_options: tuple[Option, ...]
    includes: tuple[tuple[str, str, int], ...]
    position: int
    shared: Name | None = None
    table: str = ""


@dataclass(frozen=True)
class Like:
    """`LIKE table INCLUDING …` among the columns of a CREATE TABLE: behind `place` of its own columns.

    `included` are the parts to copy beside names, types and NOT NULL, as of LIKE_PARTS.
    """

    name: Name
    place: int
    included: frozenset[str]


LIKE_PARTS = frozenset(
    ("COMMENTS", "COMPRESSION", "CONSTRAINTS", "DEFAULTS", "GENERATED", "IDENTITY", "INDEXES", "STATISTICS", "STORAGE")
)

# What becomes of a temporary table when a transaction ends.
DROP, DELETE_ROWS = "DROP", "DELETE ROWS"


@dataclass(frozen=True)
class CreateTable:
    """CREATE TABLE. `connector` delivers its rows, if there is one; without `columns` the table has the connector's.

    `checks` and `keys` are those of all columns too. `checks` have names, unless there are `likes`: then the columns,
    keys and checks are completed and checked by `planner.bind.like_tables`. `key_name` is that of the primary key, or
    "".
    """

    name: Name
    columns: tuple[ColumnDefinition, ...]
    primary_key: tuple[str, ...]
    if_not_exists: bool
    definition: str
    append_only: bool = False
    watermark: Watermark | None = None
    is_temporary: bool = False
    conflict: Conflict = REPLACE
    connector: Connector | None = None
    checks: tuple[Check, ...] = ()
    keys: tuple[DeclaredKey, ...] = ()
    key_name: str = ""
    likes: tuple[Like, ...] = ()
    on_commit: str | None = None
    retention_s: int | None = None


@dataclass(frozen=True)
class CreateSource:
    """CREATE SOURCE: `table` is the statement in the form of a CREATE TABLE."""

    table: CreateTable

    @property
    def name(self) -> Name:
        return self.table.name

    @property
    def if_not_exists(self) -> bool:
        return self.table.if_not_exists


@dataclass(frozen=True)
class Option:
    """One `key = value` of a WITH clause. Text values lose their quotes; bare words fold to lower case.

    `edges` are the pairs of `FIXED(a -> b, …)`, whose value is `fixed`. With `secret` the value is that of a secret;
    `connection` is the connection that the option names, or that it comes from.
    """

    name: str
    value: str
    position: int
    value_position: int = 0
    edges: tuple[tuple[Name, Name], ...] = ()
    secret: Name | None = None
    connection: Name | None = None


@dataclass(frozen=True)
class CreateTableAs:
    """CREATE TABLE … AS: `columns` rename the first columns of the query.

    `with_data` is whether its rows are stored.
    """

    name: Name
    columns: tuple[str, ...]
    query: exp.Query
    if_not_exists: bool
    append_only: bool = False
    with_data: bool = True
    is_temporary: bool = False
    on_commit: str | None = None


@dataclass(frozen=True)
class CreateMaterializedView:
    name: Name
    columns: tuple[str, ...]
    query: exp.Query
    options: tuple[Option, ...]
    if_not_exists: bool
    definition: str
    emit_on_window_close: bool = False


@dataclass(frozen=True)
class CreateView:
    name: Name
    columns: tuple[str, ...]
    query: exp.Query | exp.Values
    if_not_exists: bool
    definition: str
    is_temporary: bool = False
    replaces: bool = False  # with OR REPLACE


@dataclass(frozen=True)
class CreateSubscription:
    """CREATE SUBSCRIPTION: the changes of `upstream` are kept for a number of seconds."""

    name: Name
    upstream: Name
    retention_s: int
    if_not_exists: bool
    definition: str


@dataclass(frozen=True)
class CreateIndex:
    """CREATE INDEX. `keys` are columns or expressions; no `include` means all visible columns. Columns have positions.

    With `is_unique` UNIQUE was written, which is not enforced. Without `is_named` the name is made of the key's, and
    gets a number if it is taken. `where` is the condition of a partial index.
    """

    name: Name
    table: Name
    keys: tuple[exp.Ordered, ...]
    include: tuple[tuple[str, int], ...]
    distributed_by: tuple[exp.Expr, ...]
    options: tuple[Option, ...]
    if_not_exists: bool
    definition: str
    is_unique: bool = False
    is_named: bool = True
    where: exp.Expr | None = None

    @property
    def expressions(self) -> tuple[exp.Expr, ...]:
        """All that is computed of a row."""
        return (*self.keys, *self.distributed_by, *([self.where] if self.where is not None else []))


@dataclass(frozen=True)
class CreateFunction:
    """CREATE FUNCTION or AGGREGATE: `arguments` have names or none (""). `body`, `result` and `columns` are those of
    `catalog.model.Function`.

    `body_position` is the start of the text in the statement, `replaces` tells whether OR REPLACE is in it.
    """

    name: Name
    arguments: tuple[tuple[str, Type], ...]
    result: Type
    body: str
    body_position: int
    if_not_exists: bool
    replaces: bool
    definition: str
    language: str = SQL
    is_strict: bool = False
    columns: tuple[str, ...] | None = None
    is_aggregate: bool = False


@dataclass(frozen=True)
class CreateType:
    """CREATE TYPE: an enum of labels, or a composite type of fields, whichever is not None."""

    name: Name
    labels: tuple[str, ...] | None = None
    fields: tuple[tuple[str, Type], ...] | None = None


@dataclass(frozen=True)
class CreateDomain:
    """CREATE DOMAIN: its values are like those of a column called `value`."""

    name: Name
    value: ColumnDefinition


@dataclass(frozen=True)
class DropType:
    names: tuple[Name, ...]
    if_exists: bool
    cascade: bool
    are_domains: bool = False


@dataclass(frozen=True)
class AlterFunction:
    """ALTER FUNCTION: its new `owner`, or else its new `schema`; the new one's text starts at `position`, from 1."""

    name: Name
    types: tuple[Type, ...] | None
    owner: str | None
    schema: str | None
    position: int


@dataclass(frozen=True)
class DropFunction:
    """DROP FUNCTION: the name of each function and the types of its arguments, None where they are not given."""

    functions: tuple[tuple[Name, tuple[Type, ...] | None], ...]
    if_exists: bool
    cascade: bool


@dataclass(frozen=True)
class SinkFormat:
    """`FORMAT format ENCODE encode (…)`, in lower case."""

    format: str
    encode: str
    options: tuple[Option, ...]
    position: int


@dataclass(frozen=True)
class CreateSink:
    """CREATE SINK … FROM `source` or AS `query`; for a source the query reads all of it.

    INTO gives `target` and its columns. Without `options` there is no WITH.
    """

    name: Name
    target: Name | None
    target_columns: tuple[tuple[str, int], ...]
    source: Name | None
    query: exp.Query
    options: tuple[Option, ...]
    format: SinkFormat | None
    if_not_exists: bool
    definition: str
    emit_on_window_close: bool = False


@dataclass(frozen=True)
class CreateSequence:
    name: Name
    options: SequenceOptions
    if_not_exists: bool
    is_temporary: bool = False


CreateStreaming = CreateMaterializedView | CreateIndex | CreateSink


@dataclass(frozen=True)
class CreateSecret:
    name: Name
    value: str
    if_not_exists: bool


@dataclass(frozen=True)
class AlterSecret:
    name: Name
    value: str
    if_exists: bool


@dataclass(frozen=True)
class DropSecret:
    names: tuple[Name, ...]
    if_exists: bool
    cascade: bool = False


@dataclass(frozen=True)
class CreateConnection:
    """CREATE CONNECTION, with its options but `type`, which is `kind`."""

    name: Name
    kind: str
    options: tuple[Option, ...]
    if_not_exists: bool
    position: int


@dataclass(frozen=True)
class AlterConnection:
    """ALTER CONNECTION … CONNECTOR WITH: options that change."""

    name: Name
    options: tuple[Option, ...]


@dataclass(frozen=True)
class MoveConnection:
    """ALTER CONNECTION … SET SCHEMA."""

    name: Name
    schema: str
    schema_position: int


@dataclass(frozen=True)
class DropConnection:
    names: tuple[Name, ...]
    if_exists: bool
    cascade: bool = False


@dataclass(frozen=True)
class Drop:
    kind: str  # as in `Relation.kind`
    names: tuple[Name, ...]
    if_exists: bool
    cascade: bool
