"""What a client can ask for, as data. `planner.parse` makes these; `server.dispatch` maps each to its handler."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sqlglot import exp

from catalog.model import REPLACE, Column, Conflict, Watermark
from catalog.names import quote_if_needed
from catalog.types import Type
from planner.parse.constant_rows import ConstantRows


@dataclass(frozen=True)
class Name:
    """A relation's name as written. `position` counts characters of the statement from 1."""

    database: str | None
    schema: str | None
    name: str
    position: int

    def __str__(self) -> str:
        return ".".join(part for part in (self.database, self.schema, self.name) if part)

    @property
    def sql(self) -> str:
        """The name as SQL has to spell it."""
        return ".".join(quote_if_needed(part) for part in (self.database, self.schema, self.name) if part)


@dataclass(frozen=True)
class Empty:
    pass


@dataclass(frozen=True)
class Query:
    """SELECT, VALUES, WITH … SELECT; `reads_past` if a table has FOR SYSTEM_TIME AS OF."""

    tree: exp.Expr
    reads_past: bool = False


@dataclass(frozen=True)
class ColumnDefinition:
    """A column as `catalog.model.Column` has it."""

    name: str
    type: Type
    not_null: bool = False
    default: str | None = None
    generated: str | None = None

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
class CreateTable:
    """`connector` is what delivers rows to it. Without `columns` it has those of what is delivered."""

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


@dataclass(frozen=True)
class CreateSource:
    """`table` is the statement as if it made a table."""

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

    `edges` are the pairs of `FIXED(a -> b, …)`, whose value is `fixed`. With `secret` the value is that of a secret.
    """

    name: str
    value: str
    position: int
    value_position: int = 0
    edges: tuple[tuple[Name, Name], ...] = ()
    secret: Name | None = None


@dataclass(frozen=True)
class CreateTableAs:
    """CREATE TABLE … AS: `columns` rename the first of the query's; `with_data` is whether its rows are stored."""

    name: Name
    columns: tuple[str, ...]
    query: exp.Query
    if_not_exists: bool
    append_only: bool = False
    with_data: bool = True
    is_temporary: bool = False


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


@dataclass(frozen=True)
class CreateSubscription:
    """CREATE SUBSCRIPTION: the changes of `upstream` are kept for so many seconds."""

    name: Name
    upstream: Name
    retention_s: int
    if_not_exists: bool
    definition: str


@dataclass(frozen=True)
class CreateIndex:
    """`keys` are columns or expressions; no `include` is all visible columns. Names of columns have their positions."""

    name: Name
    table: Name
    keys: tuple[exp.Ordered, ...]
    include: tuple[tuple[str, int], ...]
    distributed_by: tuple[exp.Expr, ...]
    options: tuple[Option, ...]
    if_not_exists: bool
    definition: str


@dataclass(frozen=True)
class CreateFunction:
    """CREATE FUNCTION … LANGUAGE SQL: `arguments` have names or none (""); `body` is an expression's text.

    `body_position` is where that starts in the statement, `replaces` whether OR REPLACE is in it.
    """

    name: Name
    arguments: tuple[tuple[str, Type], ...]
    result: Type
    body: str
    body_position: int
    if_not_exists: bool
    replaces: bool
    definition: str


@dataclass(frozen=True)
class DropFunction:
    """DROP FUNCTION: of each its name and the types of its arguments, None where they are not given."""

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
    """CREATE SINK … FROM `source` or AS `query`, which of a source is all of it. INTO gives `target` and its columns.

    Without `options` there is no WITH.
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
class Drop:
    kind: str  # as in `Relation.kind`
    names: tuple[Name, ...]
    if_exists: bool
    cascade: bool


@dataclass(frozen=True)
class Upsert:
    """PostgreSQL's ON CONFLICT of an INSERT: `target` are the columns it names, None for none.

    `tree` has the assignments and the condition of DO UPDATE; None is DO NOTHING.
    """

    target: tuple[str, ...] | None
    constraint: str | None
    tree: exp.OnConflict | None
    position: int | None = None


@dataclass(frozen=True)
class Insert:
    """`columns` is empty when the statement names none; `source` None is DEFAULT VALUES.

    `alias` is what RETURNING may call the table. Of constant `rows` the source has one like the first.
    """

    table: Name
    columns: tuple[str, ...]
    source: exp.Expr | None
    alias: str | None = None
    returning: tuple[exp.Expr, ...] = ()
    upsert: Upsert | None = None
    rows: ConstantRows | None = None


@dataclass(frozen=True)
class Update:
    table: Name
    tree: exp.Update
    returning: tuple[exp.Expr, ...] = ()


@dataclass(frozen=True)
class Delete:
    table: Name
    tree: exp.Delete
    returning: tuple[exp.Expr, ...] = ()


@dataclass(frozen=True)
class Merge:
    table: Name
    tree: exp.Merge


@dataclass(frozen=True)
class Truncate:
    tables: tuple[Name, ...]


@dataclass(frozen=True)
class Copy:
    """COPY of a table (with its columns) or, outwards only, of a query."""

    table: Name | None
    columns: tuple[str, ...]
    query: exp.Expr | None
    is_from: bool
    format: str  # "text", "csv" or "binary"
    options: dict[str, str | bool]


@dataclass(frozen=True)
class Show:
    """SHOW JOBS, TABLES, …, and DESCRIBE: `what` in upper case. FROM gives `schema` or `relation`.

    `like` is a regular expression for the bare name.
    """

    what: str
    schema: str | None = None
    relation: Name | None = None
    like: str | None = None


@dataclass(frozen=True)
class ShowCreate:
    """SHOW CREATE of a `kind` in lower case."""

    kind: str
    name: Name


@dataclass(frozen=True)
class Kill:
    """KILL: stop what the session with this process id is running."""

    process_id: int


@dataclass(frozen=True)
class ShowVariable:
    name: str


@dataclass(frozen=True)
class SetVariable:
    """SET of a session variable, or ALTER SYSTEM SET when `system`. `value` None stands for DEFAULT.

    With `is_local` it lasts until the transaction block ends.
    """

    name: str
    value: str | None
    system: bool = False
    is_local: bool = False


@dataclass(frozen=True)
class AlterQuery:
    """ALTER MATERIALIZED VIEW … AS: `text` is that of the query, with what follows it."""

    name: Name
    query: exp.Query
    text: str
    emit_on_window_close: bool = False
    if_exists: bool = False
    kind: ClassVar[str] = "materialized view"


@dataclass(frozen=True)
class AlterRateLimit:
    """ALTER … SET BACKFILL_RATE_LIMIT of a streaming job: rows a second; None is no limit, 0 a pause."""

    kind: str
    name: Name
    limit: int | None


@dataclass(frozen=True)
class AlterSourceRateLimit:
    """ALTER {SOURCE | TABLE} … SET SOURCE_RATE_LIMIT: rows a second; None is no limit, 0 a pause."""

    kind: str
    name: Name
    limit: int | None


@dataclass(frozen=True)
class AlterParallelism:
    """ALTER … SET PARALLELISM, as SHOW prints it."""

    kind: str
    name: Name
    parallelism: str
    is_deferred: bool = False


@dataclass(frozen=True)
class AlterBackfillParallelism:
    """ALTER … SET BACKFILL_PARALLELISM: None is that of the job."""

    kind: str
    name: Name
    parallelism: int | None
    is_deferred: bool = False


@dataclass(frozen=True)
class AlterResourceGroup:
    """ALTER … SET RESOURCE_GROUP; `group` None is that of the database."""

    kind: str
    name: Name
    group: str | None
    is_deferred: bool = False


@dataclass(frozen=True)
class CreateDatabase:
    name: str
    group: str | None
    if_not_exists: bool
    position: int
    owner: str | None = None


@dataclass(frozen=True)
class DropDatabase:
    name: str
    if_exists: bool
    position: int


@dataclass(frozen=True)
class AlterDatabase:
    """ALTER DATABASE … SET RESOURCE_GROUP; None is the default one."""

    name: str
    group: str | None
    position: int


@dataclass(frozen=True)
class RenameDatabase:
    name: str
    new_name: str
    position: int
    new_position: int


@dataclass(frozen=True)
class CreateSchema:
    """The name may have the schema's database in front, which is then `name.schema`. `owner` is with its position."""

    name: Name
    owner: tuple[str, int] | None
    if_not_exists: bool


@dataclass(frozen=True)
class DropSchema:
    names: tuple[Name, ...]
    if_exists: bool
    cascade: bool


@dataclass(frozen=True)
class RenameSchema:
    name: Name
    new_name: str
    new_position: int


@dataclass(frozen=True)
class RenameRelation:
    """ALTER … RENAME TO of a relation; `kind` as in `Relation.kind`, "table" for any."""

    kind: str
    name: Name
    new_name: str
    new_position: int
    if_exists: bool


@dataclass(frozen=True)
class MoveRelation:
    """ALTER … SET SCHEMA of a relation."""

    kind: str
    name: Name
    schema: str
    schema_position: int
    if_exists: bool


@dataclass(frozen=True)
class SwapRelations:
    """ALTER … SWAP WITH of two relations: each gets the other's name."""

    kind: str
    name: Name
    other: Name


@dataclass(frozen=True)
class AlterOwner:
    """ALTER … OWNER TO of a database, a schema or a relation."""

    kind: str
    name: Name
    owner: str
    owner_position: int
    if_exists: bool = False


@dataclass(frozen=True)
class AddColumn:
    column: ColumnDefinition
    position: int
    if_not_exists: bool = False


@dataclass(frozen=True)
class DropColumn:
    name: str
    position: int
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class RenameColumn:
    name: str
    position: int
    new_name: str
    new_position: int


@dataclass(frozen=True)
class SetType:
    name: str
    position: int
    type: Type


@dataclass(frozen=True)
class SetDefault:
    """ALTER COLUMN … SET DEFAULT; None is DROP DEFAULT."""

    name: str
    position: int
    default: str | None


@dataclass(frozen=True)
class SetNotNull:
    """ALTER COLUMN … SET NOT NULL, or DROP NOT NULL."""

    name: str
    position: int
    not_null: bool


ColumnAction = AddColumn | DropColumn | RenameColumn | SetType | SetDefault | SetNotNull


@dataclass(frozen=True)
class AlterTable:
    """ALTER TABLE or SOURCE with what is done to its columns, one after the other."""

    name: Name
    actions: tuple[ColumnAction, ...]
    if_exists: bool = False
    kind: str = "table"


@dataclass(frozen=True)
class Comment:
    """COMMENT ON; `column` is with its position, `text` None removes the comment."""

    kind: str  # "table" for any relation, another kind of one, "column", "schema" or "database"
    name: Name
    column: tuple[str, int] | None
    text: str | None


class Password(str):
    """Clear text that must not get into a log."""

    def __repr__(self) -> str:
        return "'***'"


@dataclass(frozen=True)
class UserOption:
    """One option of CREATE or ALTER USER: a field of `catalog.users.User` and its value, or `password` (None: NULL).

    The value of `valid_until` is the text of a time.
    """

    field: str
    value: bool | str | Password | None
    position: int


@dataclass(frozen=True)
class CreateUser:
    name: str
    options: tuple[UserOption, ...]
    is_role: bool  # CREATE ROLE, whose roles may not log in unless told
    position: int


@dataclass(frozen=True)
class AlterUser:
    name: str
    options: tuple[UserOption, ...]
    position: int


@dataclass(frozen=True)
class RenameUser:
    name: str
    new_name: str
    position: int
    new_position: int


@dataclass(frozen=True)
class DropUser:
    names: tuple[tuple[str, int], ...]  # with their positions
    if_exists: bool


@dataclass(frozen=True)
class Privilege:
    """What GRANT and REVOKE name: upper case, on single columns if there are some, with their positions."""

    name: str
    position: int
    columns: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class ChangeMembership:
    """GRANT of roles, or REVOKE if `is_revoke`; all with their positions. `admin_option` is that of either."""

    is_revoke: bool
    roles: tuple[tuple[str, int], ...]
    members: tuple[tuple[str, int], ...]
    admin_option: bool = False
    granted_by: tuple[str, int] | None = None


@dataclass(frozen=True)
class ChangePrivileges:
    """GRANT, or REVOKE if `is_revoke`.

    `privileges` are none for ALL. `kind` is "schema", "database", or as in
    `Relation.kind`; None for a relation of any kind. With `all_in`, `names` are the schemas that hold the relations.
    `grant_option` is WITH GRANT OPTION or GRANT OPTION FOR.
    """

    is_revoke: bool
    privileges: tuple[Privilege, ...]
    kind: str | None
    names: tuple[Name, ...]
    users: tuple[tuple[str, int], ...]
    all_in: bool = False
    grant_option: bool = False
    cascade: bool = False
    granted_by: tuple[str, int] | None = None


@dataclass(frozen=True)
class Flush:
    pass


@dataclass(frozen=True)
class Refresh:
    """REFRESH MATERIALIZED VIEW."""

    name: Name


@dataclass(frozen=True)
class Recover:
    pass


@dataclass(frozen=True)
class Backup:
    """`target` is a directory of the server's machine that is not there yet; its text starts at `position`, from 1."""

    target: str
    position: int


@dataclass(frozen=True)
class Wait:
    """`name` None waits for every job."""

    kind: str | None = None
    name: Name | None = None


@dataclass(frozen=True)
class CancelJobs:
    ids: tuple[int, ...]


@dataclass(frozen=True)
class ExplainOptions:
    """What EXPLAIN shows. `incremental` is ours: the delta SQL of each operator."""

    verbose: bool = False
    trace: bool = False
    backfill: bool = False
    incremental: bool = False
    type: str = "physical"  # or "logical", "distsql"
    format: str = "text"  # or "json", "xml", "yaml", "dot"


@dataclass(frozen=True)
class Explain:
    statement: Query | CreateTable | CreateStreaming | Insert | Update | Delete | Merge
    options: ExplainOptions = ExplainOptions()


@dataclass(frozen=True)
class Transaction:
    """BEGIN, COMMIT, ROLLBACK, SAVEPOINT, SET TRANSACTION, …

    `tag` is the command tag; `action` is "begin", "commit", "rollback", "set" or, for all to come, "characteristics";
    of savepoints, which `savepoint` names, "savepoint", "release" or "rollback to".
    `read_only` is None where the statement says nothing of it; `chains` is AND CHAIN.
    """

    tag: str
    action: str
    read_only: bool | None = None
    savepoint: str = ""
    chains: bool = False


@dataclass(frozen=True)
class Prepare:
    """PREPARE: `types` are those given for $1, $2, …"""

    name: str
    types: tuple[Type, ...]
    statement: Query | Insert | Update | Delete | Merge


@dataclass(frozen=True)
class Execute:
    name: str
    arguments: tuple[exp.Expr, ...]


@dataclass(frozen=True)
class Deallocate:
    """`name` None is ALL."""

    name: str | None


@dataclass(frozen=True)
class DeclareCursor:
    name: str
    query: exp.Expr
    is_binary: bool = False
    holds: bool = False
    scrolls: bool = False
    reads_past: bool = False


@dataclass(frozen=True)
class DeclareSubscriptionCursor:
    """DECLARE … SUBSCRIPTION CURSOR: `since` is "now", "begin", "full" or a time in milliseconds since 1970."""

    name: str
    subscription: Name
    since: str | int = "now"
    since_position: int = 0


@dataclass(frozen=True)
class Fetch:
    """FETCH, or MOVE when it `moves`.

    `way` is "forward", "backward", "absolute" or "relative"; `count` None is ALL. `timeout_s` is for how long to wait
    for a subscription's first row.
    """

    cursor: str
    way: str
    count: int | None
    moves: bool = False
    timeout_s: float = 0


@dataclass(frozen=True)
class CloseCursor:
    """`name` None is ALL."""

    name: str | None


@dataclass(frozen=True)
class Discard:
    """RESET ALL, DISCARD, UNLISTEN: `tag` is the command tag."""

    tag: str


Statement = (
    Empty
    | Query
    | CreateTable
    | CreateTableAs
    | CreateSource
    | CreateMaterializedView
    | CreateIndex
    | CreateSink
    | CreateView
    | CreateSubscription
    | CreateFunction
    | DropFunction
    | CreateSecret
    | AlterSecret
    | DropSecret
    | Drop
    | Insert
    | Update
    | Delete
    | Merge
    | Truncate
    | Copy
    | Show
    | ShowCreate
    | ShowVariable
    | Kill
    | SetVariable
    | AlterQuery
    | AlterRateLimit
    | AlterSourceRateLimit
    | AlterParallelism
    | AlterBackfillParallelism
    | AlterResourceGroup
    | CreateDatabase
    | DropDatabase
    | AlterDatabase
    | RenameDatabase
    | CreateSchema
    | DropSchema
    | RenameSchema
    | RenameRelation
    | MoveRelation
    | SwapRelations
    | AlterOwner
    | AlterTable
    | Comment
    | CreateUser
    | AlterUser
    | RenameUser
    | DropUser
    | ChangeMembership
    | ChangePrivileges
    | Flush
    | Recover
    | Backup
    | Refresh
    | Wait
    | CancelJobs
    | Explain
    | Transaction
    | Prepare
    | Execute
    | Deallocate
    | DeclareCursor
    | DeclareSubscriptionCursor
    | Fetch
    | CloseCursor
    | Discard
)
