"""The rows of the catalog as frozen data, and `Catalog`, an immutable copy of all of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from graphlib import TopologicalSorter

from sparkwave.catalog.errors import DUPLICATE_COLUMN, INVALID_COLUMN_DEFINITION, Error
from sparkwave.catalog.lazy import lazy
from sparkwave.catalog.names import DEFAULT_DATABASE, LakeTable, is_temporary_schema, lake_schema, qualified, quote
from sparkwave.catalog.relation_details import (
    EARLIER_SETTINGS,
    INDEX,
    NO_CONSTRAINTS,
    SEQUENCE,
    SINK,
    STREAMING,
    Constraints,
    Details,
    Domain,
    ForeignKey,
    Index,
    Sequence,
    Sink,
    StreamingSettings,
)
from sparkwave.catalog.source_model import Source
from sparkwave.catalog.types import BIGINT, BOOLEAN, Type
from sparkwave.catalog.users import ROOT, DefaultGrant, Grant, Membership, Securable, User

ROW_ID = "_row_id"
# The time of the commit that last wrote a row of a table: a column of queries, which no relation stores.
RW_TIMESTAMP = "_rw_timestamp"
# The only column, of booleans that are NULL, of a table without columns: the lake has no such tables. Also that of a
# query without columns. Clients do not see it.
NO_COLUMN = "?no column"
# The languages of functions, and the beginning of the names that those in Python have in DuckDB.
SQL, PYTHON = "sql", "python"
PYTHON_PREFIX = "python_function_"
# What the names end with of two more forms, beside the one that raises for an exception of the code: that which is
# NULL then, and that which is true then and else false.
OR_NULL, HAS_FAILED = "_or_null", "_has_failed"
# Added to a table's id, gives the id of its primary key's index (catalog/system/copies.sql).
KEY_INDEX_IDS = 1_000_000_000
CONSTRAINT_IDS = 2_000_000_000
# Names that no column of a user's table may have.
RESERVED_COLUMNS = (ROW_ID, RW_TIMESTAMP)
# PostgreSQL's system columns. Tables and materialized views that an earlier version has made may have them.
_SYSTEM_COLUMNS = ("ctid", "xmin", "cmin", "xmax", "cmax", "tableoid")


def check_column_name(name: str, position: int | None = None) -> None:
    """Raise Error 42611 or 42701 for a new column with the name of a system column."""
    sqlstate = INVALID_COLUMN_DEFINITION if name in RESERVED_COLUMNS else DUPLICATE_COLUMN
    if name in (*RESERVED_COLUMNS, *_SYSTEM_COLUMNS):
        raise Error(f'column name "{name}" conflicts with a system column name', sqlstate, position=position)


@dataclass(frozen=True)
class Column:
    """A column. Hidden columns hold keys and state; `SELECT *` omits them.

    - `default`, `generated`: SQL expressions; a generated column is computed from the row at every write.
    - `made_as`: the name of the lake table's column, which a rename does not change; None if it equals `name`.
    - `since`: the id of the change that added the column. Definitions with a lower id do not see the column.
    - `former`: earlier names, each with the id of the rename that ended it. Definitions with a lower id use that name.

    A hidden column with the name `former_name` has a column's values of an earlier type, for the definitions that read
    them; `generated` is the name of the column with the present type, from which writes cast them.
    """

    name: str
    type: Type
    is_hidden: bool = False
    not_null: bool = False
    default: str | None = None
    generated: str | None = None
    made_as: str | None = None
    since: int = 0
    former: tuple[tuple[str, int], ...] = ()

    @property
    def lake_name(self) -> str:
        return self.made_as or self.name

    @property
    def from_lake(self) -> str:
        """SQL of the column's values in rows of the lake table."""
        return self.type.from_lake(quote(self.lake_name))

    @property
    def is_former(self) -> bool:
        """Whether it has the values of an earlier type of a column."""
        return self.generated is not None and bool(self.former) and self.name == former_name(*self.former[-1])

    def name_for(self, reader: int) -> str:
        """Return the column's name in a definition with the id `reader`."""
        return next((name for name, until in self.former if reader < until), self.name)


def former_name(name: str, until: int) -> str:
    """Return the name of the hidden column with the values of a type that a column had until the change with an id."""
    return f"?{name} {until}"


@dataclass(frozen=True)
class Watermark:
    """The rule for late rows, which are dropped: `column` is over `delay` below the highest stored value.

    The delay of a time is in µs; that of an integer is a number.
    """

    column: str
    delay: int


# The effect of a row whose key exists in the table (RisingWave: src/sqlparser/src/ast, OnConflict): the row replaces
# the stored one, is ignored, or gives the stored one its values that are not NULL.
OVERWRITE, IGNORE, UPDATE_IF_NOT_NULL = "overwrite", "ignore", "update if not null"


@dataclass(frozen=True)
class Conflict:
    """The effect of an INSERT on an existing key.

    With `versions`, the row is used only if its version is not lower. They are columns, the most significant first;
    NULL is the lowest value.
    """

    action: str = OVERWRITE
    versions: tuple[str, ...] = ()


REPLACE = Conflict()


@dataclass(frozen=True)
class Relation:
    """A table, a source, a view, a streaming job's relation, a subscription, or a sequence.

    A plain view stores no rows: a reader of the view runs its query. A subscription has no rows; it follows its
    upstream.

    - `upstreams`: ids of the relations that its query names; for a streaming job also those read through plain views.
    - `key`: the stream key, the columns by which a change finds its row. For a table without a primary key it is
      `_row_id`, which is not stored: it is the lake's row id (bigint), which updates and compaction keep.
    - `made_as`: its lake table, whose name a rename does not change, so that old snapshots and change feeds find it;
      None before it is created. `dropped` are former columns of the lake table.
    - `shown`: a view's definition with the present names, if it differs from `definition`.
    - `details`: of an index, a sink, a sequence or a table with constraints. A sink's lake table holds the rows read
      while the sink is being created, and no later rows.
    - `replaces`: for the new rows of ALTER MATERIALIZED VIEW … AS, the id of the view to replace once they are
      complete; until then no name refers to the relation. `defined_by` is the id under which those rows were made.
    - `planner`: version of the planner that made its plan; the stored state fits plans of that version only.
    - `fingerprint`: the fingerprint of that plan (`planner.plan.fingerprint`); None if an earlier version made it.
    - `streaming`: the settings of a table, source or streaming job.
    """

    id: int
    database: str
    schema: str
    name: str
    kind: str  # "table", "source", "view", "subscription", SEQUENCE or one of STREAMING
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    definition: str
    created: bool
    upstreams: tuple[int, ...] = ()
    initialized_at: datetime | None = None
    append_only: bool = False
    watermark: Watermark | None = None
    owner: str = ROOT
    made_as: LakeTable | None = None
    conflict: Conflict = REPLACE
    dropped: tuple[str, ...] = ()
    shown: str | None = None
    details: Details | None = None
    replaces: int | None = None
    defined_by: int | None = None
    planner: int = 1
    fingerprint: str | None = None
    streaming: StreamingSettings = EARLIER_SETTINGS

    @property
    def definition_id(self) -> int:
        """The id that determines what the definition sees: later objects and changes have higher ids."""
        return self.id if self.defined_by is None else self.defined_by

    @property
    def securable(self) -> Securable:
        return Securable(self.kind, self.id, self.name, self.owner)

    @property
    def lake_table(self) -> LakeTable:
        return self.made_as or LakeTable(lake_schema(self.database, self.schema), self.name)

    @property
    def lake_name(self) -> str:
        return self.lake_table.sql

    @property
    def qualified_name(self) -> str:
        return qualified(self.schema, self.name)

    @lazy
    def visible(self) -> tuple[Column, ...]:
        """The columns that a user gave, or NO_COLUMN of a table without any."""
        shown = tuple(column for column in self.columns if not column.is_hidden)
        return shown or tuple(column for column in self.columns if column.name == NO_COLUMN)

    @lazy
    def stored(self) -> tuple[Column, ...]:
        """The columns of the lake table: all columns except a table's `_row_id`."""
        return tuple(column for column in self.columns if not (self.is_table and column.name == ROW_ID))

    @property
    def is_temporary(self) -> bool:
        return is_temporary_schema(self.schema)

    @property
    def is_table(self) -> bool:
        """Whether it stores rows as they are written; only its connector writes rows of a source."""
        return self.kind in ("table", "source")

    @property
    def is_view(self) -> bool:
        return self.kind == "view"

    @property
    def is_subscription(self) -> bool:
        return self.kind == "subscription"

    @property
    def expressions(self) -> list[str]:
        """The SQL stored with a table: defaults, generated columns, checks."""
        texts = [text for column in self.columns for text in (column.default, column.generated) if text is not None]
        return texts + [check.condition for check in self.constraints.checks]

    @property
    def is_sequence(self) -> bool:
        return self.kind == SEQUENCE

    @property
    def is_stored(self) -> bool:
        """Whether it has a table in the lake."""
        return self.is_table or self.is_streaming

    @property
    def is_streaming(self) -> bool:
        """Whether a job creates it and keeps it up to date."""
        return self.kind in STREAMING

    @property
    def is_index(self) -> bool:
        return self.kind == INDEX

    @property
    def is_sink(self) -> bool:
        return self.kind == SINK

    @property
    def index(self) -> Index:
        """The details of an index."""
        assert isinstance(self.details, Index)
        return self.details

    @property
    def sink(self) -> Sink:
        """The details of a sink."""
        assert isinstance(self.details, Sink)
        return self.details

    @property
    def sequence(self) -> Sequence:
        """The details of a sequence."""
        assert isinstance(self.details, Sequence)
        return self.details

    @property
    def constraints(self) -> Constraints:
        """The constraints on a table's rows besides NOT NULL and the key."""
        return self.details if isinstance(self.details, Constraints) else NO_CONSTRAINTS

    def length_of(self, column: Column) -> int | None:
        """Return the most characters of a column's values; None without a limit."""
        return dict(self.constraints.lengths).get(column.lake_name)

    @property
    def target(self) -> int | None:
        """The id of the table that a sink writes to."""
        return self.details.target if isinstance(self.details, Sink) else None

    @property
    def primary_key(self) -> tuple[str, ...]:
        """The declared primary key; empty when the table has none."""
        return () if self.key == (ROW_ID,) or not self.is_table else self.key

    @property
    def fills_up(self) -> bool:
        """Whether a new row may have only some of the columns of the stored row with its key."""
        return bool(self.primary_key) and self.conflict.action == UPDATE_IF_NOT_NULL

    @property
    def key_index(self) -> str | None:
        """The name of the primary key's index, as clients see it."""
        return (self.constraints.key_name or f"{self.name}_pkey") if self.primary_key else None

    def column(self, name: str) -> Column | None:
        return next((column for column in self.columns if column.name == name), None)

    def in_lake(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the lake's names of some columns."""
        found = {column.name: column.lake_name for column in self.columns}
        return tuple(found[name] for name in names)

    @lazy
    def is_renamed(self) -> bool:
        """Whether a column has another name or another type in the lake."""
        return any(column.lake_name != column.name or not column.type.is_read_as_stored for column in self.columns)

    def as_of(self, reader: int | None) -> Relation:
        """Return the relation as the definition with the id `reader` sees it; for None, as it is now.

        The result has no later columns, and the names of that time, so that a definition's meaning never changes. A
        later column of the key is hidden. A column whose type has changed since has its values of that time's type.
        """
        if reader is None or all(c.since < reader and c.name_for(reader) == c.name for c in self.columns):
            return self
        names = {column.name: column.name_for(reader) for column in self.columns}
        watermark = self.watermark and replace(self.watermark, column=names[self.watermark.column])
        columns = tuple(
            replace(
                c,
                name=names[c.name],
                made_as=c.lake_name,
                is_hidden=(c.is_hidden and not c.is_former) or c.since >= reader,
                generated=None if c.is_former else c.generated,
            )
            for c in self.columns
            if (c.since < reader or c.name in self.key) and not (c.is_former and names[c.name] == c.name)
        )
        return replace(self, columns=columns, key=tuple(names.get(k, k) for k in self.key), watermark=watermark)


def for_writing(table: Relation) -> Relation:
    """Return the table with the columns that writes compute: those of earlier types are visible generated columns."""
    if not any(column.is_former for column in table.columns):
        return table
    columns = tuple(replace(column, is_hidden=False) if column.is_former else column for column in table.columns)
    return replace(table, columns=columns)


def lacks_columns(relation: Relation) -> bool:
    """Whether it is a table without columns."""
    return [column.name for column in relation.visible] == [NO_COLUMN]


def has_row_id(relation: Relation) -> bool:
    """Whether a query may name its `_row_id`, as of a table without a primary key."""
    return relation.is_table and relation.key == (ROW_ID,)


def names_others(relation: Relation) -> bool:
    """Whether its definition is a statement over other relations."""
    return not (relation.is_table or relation.is_sequence)


def same_key(target: Relation, stored: str, other: str) -> str:
    """Return SQL that tests whether a row of a relation's lake table and another row have the same primary key."""
    columns = (column for column in target.visible if column.name in target.primary_key)
    return " AND ".join(
        f"{c.type.from_lake(f'{stored}.{quote(c.lake_name)}')} = {other}.{quote(c.lake_name)}" for c in columns
    )


def row_shape(relation: Relation) -> tuple[object, ...]:
    """The properties of the columns that a row must fit to be written."""
    return (relation.constraints.enforced, *((c.lake_name, c.type, c.not_null, c.generated) for c in relation.columns))


def key_index_id(relation: Relation) -> int:
    return relation.id + KEY_INDEX_IDS


def constraints_id(relation: Relation) -> int:
    """The id under which comments on its constraints are stored, by their names, "" for the primary key."""
    return relation.id + CONSTRAINT_IDS


def commented_ids(relation: Relation) -> set[int]:
    """The ids under which comments on it and its parts are stored."""
    return {
        relation.id,
        key_index_id(relation),
        constraints_id(relation),
        *(unique.id + KEY_INDEX_IDS for unique in relation.constraints.uniques),
    }


@dataclass(frozen=True)
class Subscription:
    """A subscription, which keeps the changes of its upstream for `retention_s` seconds.

    `id` is the id of its relation; `snapshot` was the newest snapshot when it was created.
    """

    id: int
    retention_s: int
    snapshot: int


@dataclass(frozen=True)
class Function:
    """A user's function; the names of its arguments may be "".

    `body` is the text of an expression over the arguments, or of what follows SELECT in a query, whose names are
    resolved in the function's schema; in Python it is code that defines a function of this name. `is_strict` tells that
    it is NULL for a NULL argument. `columns` are the names of the columns of a function that returns rows, None for a
    function of one value; of several columns `result` is the struct. An aggregate is in Python.
    """

    id: int
    database: str
    schema: str
    name: str
    arguments: tuple[tuple[str, Type], ...]
    result: Type
    body: str
    definition: str
    owner: str = ROOT
    language: str = SQL
    is_strict: bool = False
    columns: tuple[str, ...] | None = None
    is_aggregate: bool = False

    @property
    def qualified_name(self) -> str:
        return qualified(self.schema, self.name)

    @property
    def outputs(self) -> tuple[tuple[str, Type], ...]:
        """The columns of the rows that it returns, with their types; of a single value one of its own name."""
        if self.columns is None or len(self.columns) == 1:
            return ((self.columns[0] if self.columns else self.name, self.result),)
        return self.result.fields

    @property
    def is_python(self) -> bool:
        return self.language == PYTHON

    @property
    def name_in_duckdb(self) -> str:
        """The name of a function in Python, which no function with other code or of other types has."""
        types = [type_.stored for _, type_ in self.arguments]
        kind = ("rows",) if self.columns is not None else ("aggregate",) if self.is_aggregate else ()
        text = repr((self.name, self.body, types, self.result.stored, self.is_strict, *kind))
        return f"{PYTHON_PREFIX}{self.id}_{hashlib.sha256(text.encode()).hexdigest()[:12]}"

    @property
    def signature(self) -> str:
        return f"{self.name}({', '.join(str(type_) for _, type_ in self.arguments)})"

    @property
    def securable(self) -> Securable:
        return Securable("function", self.id, self.name, self.owner)


@dataclass(frozen=True)
class UserType:
    """A user's type: an enum, a struct with a name (PostgreSQL: a composite type), or a domain."""

    id: int
    database: str
    schema: str
    name: str
    owner: str
    type: Type
    domain: Domain | None = None

    @property
    def qualified_name(self) -> str:
        return qualified(self.schema, self.name)

    @property
    def securable(self) -> Securable:
        return Securable("type", self.id, self.name, self.owner)


@dataclass(frozen=True)
class Secret:
    """A named, sealed value that is never shown, and that options of sources and sinks can refer to."""

    id: int
    schema_id: int
    name: str
    owner: str
    sealed: str

    @property
    def securable(self) -> Securable:
        return Securable("secret", self.id, self.name, self.owner)


@dataclass(frozen=True)
class Connection:
    """Named options that sources and sinks of a connector have in common.

    `kind` is the connector. Secret `options` are sealed; `secrets` are the options whose value is a named secret, with
    the secret's id. The sources and sinks have copies of both, and the connection's id.
    """

    id: int
    schema_id: int
    name: str
    owner: str
    kind: str
    options: Mapping[str, str]
    secrets: Mapping[str, int]

    @property
    def securable(self) -> Securable:
        return Securable("connection", self.id, self.name, self.owner)


def no_column() -> Column:
    return Column(NO_COLUMN, BOOLEAN, is_hidden=True)


def row_id_column() -> Column:
    return Column(ROW_ID, BIGINT, is_hidden=True)


# The resource group of databases that name none.
DEFAULT_GROUP = "default"


@dataclass(frozen=True)
class Barriers:
    """A database's own barrier interval and checkpoint frequency; None where the system parameter counts."""

    interval_ms: int | None = None
    checkpoint_frequency: int | None = None


NO_BARRIERS = Barriers()

# The kind of a relation that stands for an internal table while a query reads it.
INTERNAL_TABLE = "internal table"

# Statuses of a streaming job (RisingWave: proto/meta.proto, JobStatus). FAILED is Sparkwave's own: no query may read
# the job until it has caught up.
INITIAL, CREATING, CREATED, FAILED = "INITIAL", "CREATING", "CREATED", "FAILED"
# Why a view is behind that is refreshed at intervals.
RESTING = "changes wait for the next refresh"


@dataclass(frozen=True)
class Epoch:
    """The state that a barrier pins: a snapshot of the lake, and the value of `now()` in views (µs since 1970)."""

    snapshot: int
    time_us: int


@dataclass(frozen=True)
class Position:
    """The changes that a job has applied: of tables up to an epoch, of upstream views up to the snapshot `views`.

    Views change in the lake by checkpoints, which come after the snapshots of their epochs.
    """

    epoch: Epoch
    views: int

    @property
    def oldest(self) -> int:
        """The oldest snapshot that is needed to go on from here."""
        return min(self.epoch.snapshot, self.views)

    def of(self, relation: Relation) -> int:
        """Return the snapshot in which the job has read an upstream."""
        return self.epoch.snapshot if relation.is_table else self.views

    @staticmethod
    def at(epoch: Epoch, views: int | None = None) -> Position:
        """Return the position of a job that has read tables in the epoch's snapshot, and views in `views` or there."""
        return Position(epoch, epoch.snapshot if views is None else views)


def adds_a_view(relation: Relation) -> bool:
    """Return whether a creation adds rows to read, instead of delivering them or replacing others."""
    return relation.is_streaming and not relation.is_sink and relation.replaces is None


@dataclass(frozen=True)
class Job:
    """A streaming job: the creation and upkeep of one materialized view, index or sink; its id is the relation's.

    - `snapshot`, `time_us`: the epoch up to which a creating job has applied its upstreams; None before its backfill
      has pinned a snapshot. `views_at`: the snapshot of upstream views, if it is another one, as for an edit.
    - `rate_limit`: rows a second; None without a limit, 0 to pause.
    - `parallelism`: as SHOW prints it; `backfill_parallelism` holds while the job is creating.
    - `order`: (before, after) pairs of upstream ids.
    - `waiting`: the reason why a creating job makes no progress, None when it does.
    - `resource_group`: where it runs now; `specific_group`: the group that the user named, None for the database's.
    - `delivered`: the snapshot whose rows a creating sink has delivered; None before. `deliver_from`: the row id up to
      which the sink has delivered rows until now.

    A created job that is behind the others has its own position: `snapshot`, `time_us`, and `views_at` for upstream
    views. `error` is the reason, `since` the time when it fell behind. It is FAILED if no query may read it meanwhile;
    without a position it has to be computed anew.
    """

    id: int
    status: str
    is_background: bool
    is_serverless: bool
    resource_group: str
    strategy: str
    snapshot: int | None = None
    error: str | None = None
    time_us: int | None = None
    rate_limit: int | None = None
    parallelism: str = "adaptive"
    backfill_parallelism: int | None = None
    order: tuple[tuple[int, int], ...] = ()
    waiting: str | None = None
    specific_group: str | None = None
    delivered: int | None = None
    deliver_from: int | None = None
    views_at: int | None = None
    since: datetime | None = None

    @property
    def is_resting(self) -> bool:
        """Whether the view is behind because it waits for the time of its next refresh."""
        return self.is_behind and self.error == RESTING

    @property
    def is_behind(self) -> bool:
        """Whether it is created, but does not follow the other jobs."""
        return self.status == FAILED or (self.status == CREATED and self.views_at is not None)

    @property
    def position(self) -> Position | None:
        """The position of a job that is behind, None if unknown."""
        return Position(self.epoch, self.views_at) if self.is_behind and self.views_at is not None else None

    @property
    def applied(self) -> Position:
        """The position of a creating job that has started."""
        return Position.at(self.epoch, self.views_at)

    @property
    def is_edit(self) -> bool:
        """Whether a creating job fills a view's new rows from its old ones."""
        return self.status == CREATING and self.views_at is not None

    @property
    def epoch(self) -> Epoch:
        """The epoch up to which a started job has applied its upstreams."""
        assert self.snapshot is not None and self.time_us is not None
        return Epoch(self.snapshot, self.time_us)


SystemColumns = Callable[[str, str], Mapping[str, Type]]


def _no_columns(schema: str, name: str) -> Mapping[str, Type]:
    return {}


@dataclass(frozen=True)
class Catalog:
    """All objects at one moment. Planning reads no other state.

    `schemas` are pairs of database and schema; `databases` maps a database to its resource group, `barriers` to its
    intervals. `securables` has the databases under `(name,)` and the schemas under (database, schema). `users` are by
    name, `sources` by the id of the relation that gets their rows. `internal_tables` are the names of the tables with
    the states of jobs, each with the job's id; they are no relations, and only a query finds them. `system_columns` has
    the columns of a system relation by schema and name, none for another name.
    """

    relations: tuple[Relation, ...] = ()
    jobs: tuple[Job, ...] = ()
    schemas: frozenset[tuple[str, str]] = frozenset()
    databases: dict[str, str] = field(default_factory=lambda: {DEFAULT_DATABASE: DEFAULT_GROUP})
    barriers: dict[str, Barriers] = field(default_factory=dict)
    parameters: dict[str, str] = field(default_factory=dict)
    securables: dict[tuple[str, ...], Securable] = field(default_factory=dict)
    users: dict[str, User] = field(default_factory=dict)
    grants: frozenset[Grant] = frozenset()
    default_grants: frozenset[DefaultGrant] = frozenset()
    subscriptions: dict[int, Subscription] = field(default_factory=dict)  # by id
    functions: tuple[Function, ...] = ()
    types: tuple[UserType, ...] = ()
    sources: dict[int, Source] = field(default_factory=dict)
    memberships: frozenset[Membership] = frozenset()
    secrets: dict[int, Secret] = field(default_factory=dict)  # by id
    connections: dict[int, Connection] = field(default_factory=dict)  # by id
    internal_tables: Mapping[str, int] = field(default_factory=dict)
    system_columns: SystemColumns = field(default=_no_columns, compare=False, repr=False)

    @lazy
    def _by_name(self) -> dict[tuple[str, str, str], Relation]:
        return {(relation.database, relation.schema, relation.name): relation for relation in self.named}

    @lazy
    def named(self) -> tuple[Relation, ...]:
        """The relations that clients can name: all except those that will replace another one."""
        return tuple(relation for relation in self.relations if relation.replaces is None)

    @lazy
    def grants_on(self) -> dict[int, frozenset[Grant]]:
        """The grants by the id of their object."""
        found: dict[int, set[Grant]] = {}
        for grant in self.grants:
            found.setdefault(grant.object_id, set()).add(grant)
        return {id_: frozenset(grants) for id_, grants in found.items()}

    @lazy
    def by_id(self) -> dict[int, Relation]:
        return {relation.id: relation for relation in self.relations}

    @lazy
    def job_by_id(self) -> dict[int, Job]:
        return {job.id: job for job in self.jobs}

    def find(self, database: str, schema: str, name: str) -> Relation | None:
        return self._by_name.get((database, schema, name))

    @lazy
    def _key_names(self) -> frozenset[tuple[str, str, str]]:
        tables = (relation for relation in self.named if relation.is_table)
        return frozenset((t.database, t.schema, u.name) for t in tables for u in t.constraints.uniques)

    def names_key(self, database: str, schema: str, name: str) -> bool:
        """Return whether clients see an index of this name, behind a UNIQUE of a table."""
        return (database, schema, name) in self._key_names

    @lazy
    def _foreign_keys_to(self) -> dict[int, list[tuple[Relation, ForeignKey]]]:
        found: dict[int, list[tuple[Relation, ForeignKey]]] = {}
        for table in self.relations:
            for key in table.constraints.foreign_keys:
                for id_ in (key.parent, *([key.parent_key] if key.parent_key is not None else [])):
                    found.setdefault(id_, []).append((table, key))
        return found

    def foreign_keys_to(self, id_: int) -> list[tuple[Relation, ForeignKey]]:
        """Return the foreign keys that reference a table, or a UNIQUE or an index of one, each with its own table."""
        return self._foreign_keys_to.get(id_, [])

    @lazy
    def functions_by_name(self) -> dict[tuple[str, str, str, int], tuple[Function, ...]]:
        """The functions by database, schema, name and number of arguments."""
        found: dict[tuple[str, str, str, int], tuple[Function, ...]] = {}
        for f in self.functions:
            key = f.database, f.schema, f.name, len(f.arguments)
            found[key] = (*found.get(key, ()), f)
        return found

    @lazy
    def types_by_name(self) -> dict[tuple[str, str, str], UserType]:
        """The user types by database, schema and name."""
        return {(t.database, t.schema, t.name): t for t in self.types}

    @lazy
    def types_by_oid(self) -> dict[int, Type]:
        """The user types and their array types, by OID."""
        listed = (type_ for t in self.types for type_ in (t.type, replace(t.type, dimensions=1)))
        return {type_.oid: type_ for type_ in listed}

    def steady_group(self, job: Job) -> str:
        """Return the resource group of a job after its creation."""
        return job.specific_group or self.databases[self.by_id[job.id].database]

    def dependents(self, relation_id: int) -> Iterator[Relation]:
        """Return the relations that read this one directly, write to it or will replace it, in order of creation."""
        return (r for r in self.relations if relation_id in (*r.upstreams, r.target, r.replaces))

    def readers(self, relation_id: int) -> list[Relation]:
        """Return what reads a relation, directly or through others."""
        found: dict[int, Relation] = {}
        pending = [relation_id]
        while pending:
            new = [reader for reader in self.dependents(pending.pop()) if reader.id not in found]
            found |= {reader.id: reader for reader in new}
            pending += [reader.id for reader in new]
        return list(found.values())

    def replacement(self, relation_id: int) -> Relation | None:
        """Return the relation that will replace this one, if any."""
        return next((relation for relation in self.relations if relation.replaces == relation_id), None)

    def closure(self, ids: Iterable[int]) -> set[int]:
        """Return the ids of these relations and of all that their rows come from: by queries, sinks, replacements."""
        found: set[int] = set()
        pending = list(ids)
        while pending:
            id_ = pending.pop()
            if id_ not in found:
                found.add(id_)
                pending += self.by_id[id_].upstreams
                pending += [r.id for r in self.relations if id_ in (r.target, r.replaces)]
        return found

    def indexes(self, relation_id: int) -> list[Relation]:
        """Return the indexes of a relation, also those being created."""
        return [relation for relation in self.dependents(relation_id) if relation.is_index]

    @lazy
    def _sequences_of(self) -> dict[int | None, list[Relation]]:
        found: dict[int | None, list[Relation]] = {}
        for relation in self.relations:
            if relation.is_sequence:
                found.setdefault(relation.sequence.table, []).append(relation)
        return found

    def sequences_of(self, table: Relation, column: Column | None = None) -> list[Relation]:
        """Return the sequences behind columns of a table, or behind one of them."""
        found = self._sequences_of.get(table.id, [])
        return [s for s in found if column is None or s.sequence.column == column.lake_name]

    def in_dependency_order(self, ids: Iterable[int]) -> list[Relation]:
        """Return the relations with these ids; upstreams and the replacements of upstreams come first."""
        wanted = set(ids)
        return [relation for relation in self._upstreams_first if relation.id in wanted]

    @lazy
    def _upstreams_first(self) -> tuple[Relation, ...]:
        replacements = {relation.replaces: relation.id for relation in self.relations if relation.replaces is not None}
        reads = {r.id: [*r.upstreams, *(replacements[id_] for id_ in r.upstreams if id_ in replacements)]
                 for r in self.relations}  # fmt: skip
        return tuple(self.by_id[id_] for id_ in TopologicalSorter(reads).static_order() if id_ in self.by_id)
