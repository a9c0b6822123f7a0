"""Statements of clients as data. `planner.parse` makes them; `server.dispatch` maps each to its handler."""

from sparkwave.planner.statements.alterations import (
    AddColumn,
    AddConstraint,
    AlterBackfillParallelism,
    AlterBarrierTarget,
    AlterConfig,
    AlterConnector,
    AlterDmlRateLimit,
    AlterFragments,
    AlterOwner,
    AlterParallelism,
    AlterQuery,
    AlterRateLimit,
    AlterResourceGroup,
    AlterRetention,
    AlterSequence,
    AlterSinkRateLimit,
    AlterSourceRateLimit,
    AlterTable,
    ColumnAction,
    Comment,
    ConfigEntry,
    DropColumn,
    DropConstraint,
    FragmentParallelism,
    FragmentRateLimit,
    MoveRelation,
    RenameColumn,
    RenameConstraint,
    RenameRelation,
    SetDefault,
    SetNotNull,
    SetType,
    SetWatermark,
    SwapRelations,
)
from sparkwave.planner.statements.create import (
    DELETE_ROWS,
    DROP,
    LIKE_PARTS,
    AlterConnection,
    AlterFunction,
    AlterSecret,
    ColumnDefinition,
    Connector,
    CreateConnection,
    CreateDomain,
    CreateFunction,
    CreateIndex,
    CreateMaterializedView,
    CreateSecret,
    CreateSequence,
    CreateSink,
    CreateSource,
    CreateStreaming,
    CreateSubscription,
    CreateTable,
    CreateTableAs,
    CreateType,
    CreateView,
    DeclaredForeignKey,
    DeclaredKey,
    DeclaredUnique,
    Drop,
    DropConnection,
    DropFunction,
    DropSecret,
    DropType,
    Like,
    MoveConnection,
    Option,
    SequenceOptions,
    SinkFormat,
)
from sparkwave.planner.statements.namespaces import (
    AlterDatabase,
    AlterDatabaseParameter,
    CreateDatabase,
    CreateSchema,
    DatabaseParameter,
    DropDatabase,
    DropSchema,
    RenameDatabase,
    RenameSchema,
)
from sparkwave.planner.statements.relation_names import Name
from sparkwave.planner.statements.roles import (
    CURRENT_USER,
    SESSION_USER,
    AlterDefaultPrivileges,
    AlterUser,
    ChangeMembership,
    ChangePrivileges,
    CreateUser,
    DropOwned,
    DropUser,
    Password,
    Privilege,
    ReassignOwned,
    RenameUser,
    UserOption,
)
from sparkwave.planner.statements.rows import (
    Condition,
    Copy,
    Delete,
    Insert,
    Merge,
    Query,
    Truncate,
    Update,
    Upsert,
    WithWrites,
    WrittenRows,
)
from sparkwave.planner.statements.server import (
    AuditView,
    Backup,
    CancelJobs,
    CreateExtension,
    Explain,
    ExplainJob,
    ExplainOptions,
    Flush,
    Kill,
    Recover,
    Refresh,
    Show,
    ShowChecksum,
    ShowCreate,
    Vacuum,
    Wait,
)
from sparkwave.planner.statements.sessions import (
    CloseCursor,
    Deallocate,
    DeclareCursor,
    DeclareSubscriptionCursor,
    Discard,
    Do,
    Empty,
    Execute,
    Fetch,
    Prepare,
    SetVariable,
    ShowVariable,
    Transaction,
    UseDatabase,
)
from sparkwave.planner.statements.type_changes import (
    AddAttribute,
    AddLabel,
    AlterAttributes,
    AlterDomain,
    AttributeAction,
    DomainAction,
    DropAttribute,
    PlaceType,
    RenameAttribute,
    RenameLabel,
    SetAttributeType,
)

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
    | CreateExtension
    | CreateFunction
    | CreateType
    | CreateDomain
    | AddLabel
    | RenameLabel
    | AlterAttributes
    | PlaceType
    | AlterDomain
    | DropType
    | DropFunction
    | AlterFunction
    | CreateSequence
    | CreateSecret
    | AlterSecret
    | DropSecret
    | CreateConnection
    | AlterConnection
    | MoveConnection
    | DropConnection
    | Drop
    | Insert
    | Update
    | Delete
    | Merge
    | WithWrites
    | Truncate
    | Copy
    | Show
    | ShowCreate
    | ShowVariable
    | Kill
    | SetVariable
    | UseDatabase
    | AlterQuery
    | AlterRateLimit
    | AlterBarrierTarget
    | AlterSinkRateLimit
    | AlterDmlRateLimit
    | AlterConnector
    | AlterFragments
    | AlterSourceRateLimit
    | AlterParallelism
    | AlterBackfillParallelism
    | AlterConfig
    | AlterResourceGroup
    | AlterRetention
    | AlterSequence
    | CreateDatabase
    | DropDatabase
    | AlterDatabase
    | AlterDatabaseParameter
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
    | AlterDefaultPrivileges
    | ReassignOwned
    | DropOwned
    | Flush
    | Recover
    | Backup
    | Refresh
    | AuditView
    | ShowChecksum
    | Wait
    | CancelJobs
    | Explain
    | ExplainJob
    | Transaction
    | Prepare
    | Execute
    | Deallocate
    | DeclareCursor
    | DeclareSubscriptionCursor
    | Fetch
    | CloseCursor
    | Discard
    | Do
    | Vacuum
)


__all__ = [
    "CURRENT_USER",
    "DELETE_ROWS",
    "DROP",
    "LIKE_PARTS",
    "SESSION_USER",
    "AddAttribute",
    "AddColumn",
    "AddConstraint",
    "AddLabel",
    "AlterAttributes",
    "AlterBackfillParallelism",
    "AlterBarrierTarget",
    "AlterConfig",
    "AlterConnection",
    "AlterConnector",
    "AlterDatabase",
    "AlterDatabaseParameter",
    "AlterDefaultPrivileges",
    "AlterDmlRateLimit",
    "AlterDomain",
    "AlterFragments",
    "AlterFunction",
    "AlterOwner",
    "AlterParallelism",
    "AlterQuery",
    "AlterRateLimit",
    "AlterResourceGroup",
    "AlterRetention",
    "AlterSecret",
    "AlterSequence",
    "AlterSinkRateLimit",
    "AlterSourceRateLimit",
    "AlterTable",
    "AlterUser",
    "AttributeAction",
    "AuditView",
    "Backup",
    "CancelJobs",
    "ChangeMembership",
    "ChangePrivileges",
    "CloseCursor",
    "ColumnAction",
    "ColumnDefinition",
    "Comment",
    "Condition",
    "ConfigEntry",
    "Connector",
    "Copy",
    "CreateConnection",
    "CreateDatabase",
    "CreateDomain",
    "CreateExtension",
    "CreateFunction",
    "CreateIndex",
    "CreateMaterializedView",
    "CreateSchema",
    "CreateSecret",
    "CreateSequence",
    "CreateSink",
    "CreateSource",
    "CreateStreaming",
    "CreateSubscription",
    "CreateTable",
    "CreateTableAs",
    "CreateType",
    "CreateUser",
    "CreateView",
    "DatabaseParameter",
    "Deallocate",
    "DeclareCursor",
    "DeclareSubscriptionCursor",
    "DeclaredForeignKey",
    "DeclaredKey",
    "DeclaredUnique",
    "Delete",
    "Discard",
    "Do",
    "DomainAction",
    "Drop",
    "DropAttribute",
    "DropColumn",
    "DropConnection",
    "DropConstraint",
    "DropDatabase",
    "DropFunction",
    "DropOwned",
    "DropSchema",
    "DropSecret",
    "DropType",
    "DropUser",
    "Empty",
    "Execute",
    "Explain",
    "ExplainJob",
    "ExplainOptions",
    "Fetch",
    "Flush",
    "FragmentParallelism",
    "FragmentRateLimit",
    "Insert",
    "Kill",
    "Like",
    "Merge",
    "MoveConnection",
    "MoveRelation",
    "Name",
    "Option",
    "Password",
    "PlaceType",
    "Prepare",
    "Privilege",
    "Query",
    "ReassignOwned",
    "Recover",
    "Refresh",
    "RenameAttribute",
    "RenameColumn",
    "RenameConstraint",
    "RenameDatabase",
    "RenameLabel",
    "RenameRelation",
    "RenameSchema",
    "RenameUser",
    "SequenceOptions",
    "SetAttributeType",
    "SetDefault",
    "SetNotNull",
    "SetType",
    "SetVariable",
    "SetWatermark",
    "Show",
    "ShowChecksum",
    "ShowCreate",
    "ShowVariable",
    "SinkFormat",
    "Statement",
    "SwapRelations",
    "Transaction",
    "Truncate",
    "Update",
    "Upsert",
    "UseDatabase",
    "UserOption",
    "Vacuum",
    "Wait",
    "WithWrites",
    "WrittenRows",
]
