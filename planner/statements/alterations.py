"""Statements that change relations and jobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sqlglot import exp

from sparkwave.catalog.model import Watermark
from sparkwave.catalog.relation_details import Check
from sparkwave.catalog.types import Type
from sparkwave.planner.statements.create import ColumnDefinition, DeclaredKey, Option, SequenceOptions
from sparkwave.planner.statements.relation_names import Name


@dataclass(frozen=True)
class AlterQuery:
    """ALTER MATERIALIZED VIEW … AS: `text` is the text of the query and of its trailing clauses."""

    name: Name
    query: exp.Query
    text: str
    emit_on_window_close: bool = False
    if_exists: bool = False
    kind: ClassVar[str] = "materialized view"


@dataclass(frozen=True)
class AlterSequence:
    name: Name
    options: SequenceOptions
    if_exists: bool


@dataclass(frozen=True)
class AlterRateLimit:
    """ALTER … SET BACKFILL_RATE_LIMIT of a streaming job: rows a second; None is no limit, 0 a pause."""

    kind: str
    name: Name
    limit: int | None
    if_exists: bool = False


@dataclass(frozen=True)
class AlterSourceRateLimit:
    """ALTER {SOURCE | TABLE} … SET SOURCE_RATE_LIMIT: rows a second; None is no limit, 0 a pause."""

    kind: str
    name: Name
    limit: int | None
    if_exists: bool = False


@dataclass(frozen=True)
class AlterSinkRateLimit:
    """ALTER SINK … SET SINK_RATE_LIMIT: rows a second; None is no limit, 0 a pause."""

    kind: str
    name: Name
    limit: int | None
    if_exists: bool = False


@dataclass(frozen=True)
class AlterDmlRateLimit:
    """ALTER TABLE … SET DML_RATE_LIMIT: rows a second that statements write; None is no limit, 0 a pause."""

    kind: str
    name: Name
    limit: int | None
    if_exists: bool = False


@dataclass(frozen=True)
class AlterConnector:
    """ALTER {SINK | SOURCE | TABLE} … CONNECTOR WITH: options of the connector, in place of those that there are."""

    kind: str
    name: Name
    options: tuple[Option, ...]
    if_exists: bool = False


@dataclass(frozen=True)
class AlterBarrierTarget:
    """ALTER … SET BARRIER_LATENCY_TARGET_MS: of the job's backfill; None for the system parameter's."""

    kind: str
    name: Name
    target_ms: int | None
    if_exists: bool = False


@dataclass(frozen=True)
class AlterParallelism:
    """ALTER … SET PARALLELISM, as SHOW prints it."""

    kind: str
    name: Name
    parallelism: str
    is_deferred: bool = False
    if_exists: bool = False


@dataclass(frozen=True)
class AlterBackfillParallelism:
    """ALTER … SET BACKFILL_PARALLELISM: None means that of the job."""

    kind: str
    name: Name
    parallelism: int | None
    is_deferred: bool = False
    if_exists: bool = False


@dataclass(frozen=True)
class FragmentRateLimit:
    """Rows a second; None is no limit, 0 a pause."""

    limit: int | None


@dataclass(frozen=True)
class FragmentParallelism:
    """A parallelism, as SHOW prints it."""

    parallelism: str


@dataclass(frozen=True)
class AlterFragments:
    """ALTER FRAGMENT … SET: the ids have their positions."""

    ids: tuple[tuple[int, int], ...]
    setting: FragmentRateLimit | FragmentParallelism


@dataclass(frozen=True)
class AlterRetention:
    """ALTER SUBSCRIPTION … SET RETENTION: `text` as it was written, and in seconds."""

    name: Name
    text: str
    retention_s: int
    if_exists: bool = False
    kind: ClassVar[str] = "subscription"


@dataclass(frozen=True)
class ConfigEntry:
    """A key of ALTER … SET CONFIG with its value; None removes the key."""

    key: str
    position: int
    value: int | float | str | bool | None = None
    value_position: int = 0


@dataclass(frozen=True)
class AlterConfig:
    """ALTER … SET CONFIG, or RESET CONFIG."""

    kind: str
    name: Name
    entries: tuple[ConfigEntry, ...]
    if_exists: bool = False


@dataclass(frozen=True)
class AlterResourceGroup:
    """ALTER … SET RESOURCE_GROUP; `group` None means that of the database."""

    kind: str
    name: Name
    group: str | None
    is_deferred: bool = False
    if_exists: bool = False


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
    """`using` is an expression over the columns of a row, whose values the column gets; None for its own values."""

    name: str
    position: int
    type: Type
    length: int | None = None
    is_padded: bool = False
    using: str | None = None
    using_position: int | None = None


@dataclass(frozen=True)
class AddConstraint:
    """ADD CHECK, or a constraint that is not enforced; its name may be ""."""

    constraint: Check | DeclaredKey


@dataclass(frozen=True)
class DropConstraint:
    name: str
    position: int
    if_exists: bool
    cascade: bool = False


@dataclass(frozen=True)
class RenameConstraint:
    name: str
    position: int
    new_name: str


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


@dataclass(frozen=True)
class SetWatermark:
    """ALTER WATERMARK FOR column AS …, as it was written; `has_ttl` tells whether WITH TTL is in it."""

    watermark: Watermark
    text: str
    has_ttl: bool
    position: int


ColumnAction = (
    AddColumn
    | DropColumn
    | RenameColumn
    | SetType
    | SetDefault
    | SetNotNull
    | AddConstraint
    | DropConstraint
    | RenameConstraint
    | SetWatermark
)


@dataclass(frozen=True)
class AlterTable:
    """ALTER TABLE or SOURCE with its actions on columns, in order."""

    name: Name
    actions: tuple[ColumnAction, ...]
    if_exists: bool = False
    kind: str = "table"


@dataclass(frozen=True)
class Comment:
    """COMMENT ON; `column` is that of a relation, or the constraint of a table, with its position.

    `text` None removes the comment.
    """

    kind: str  # "table" for any relation, another kind of one, "column", "constraint", "schema" or "database"
    name: Name
    column: tuple[str, int] | None
    text: str | None
