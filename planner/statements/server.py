"""Statements that ask a server to show or do something."""

from __future__ import annotations

from dataclasses import dataclass

from sparkwave.planner.statements.alterations import AlterQuery
from sparkwave.planner.statements.create import CreateStreaming, CreateTable
from sparkwave.planner.statements.relation_names import Name
from sparkwave.planner.statements.rows import Delete, Insert, Merge, Query, Update


@dataclass(frozen=True)
class Show:
    """SHOW JOBS, TABLES, …, and DESCRIBE: `what` in upper case. FROM gives `schema` or `relation`.

    `like` is a regular expression for the bare name. `fragment` is the id in DESCRIBE FRAGMENT, with its position.
    """

    what: str
    schema: str | None = None
    relation: Name | None = None
    like: str | None = None
    fragment: tuple[int, int] | None = None


@dataclass(frozen=True)
class ShowCreate:
    """SHOW CREATE of a `kind` in lower case."""

    kind: str
    name: Name


@dataclass(frozen=True)
class Kill:
    """KILL: stop the work of the session with this process id."""

    process_id: int


@dataclass(frozen=True)
class Flush:
    pass


@dataclass(frozen=True)
class Refresh:
    """REFRESH MATERIALIZED VIEW. With `is_rebuild`, the view is computed anew, whatever it has applied."""

    name: Name
    is_rebuild: bool = False


@dataclass(frozen=True)
class AuditView:
    """AUDIT of a `kind` in lower case: compare its rows with its query."""

    kind: str
    name: Name


@dataclass(frozen=True)
class ShowChecksum:
    """SHOW CHECKSUM of a materialized view or an index."""

    name: Name


@dataclass(frozen=True)
class Recover:
    pass


@dataclass(frozen=True)
class Backup:
    """BACKUP.

    `target` is a directory of the server's machine that does not exist yet; its text starts at `position`, from 1.
    """

    target: str
    position: int


@dataclass(frozen=True)
class Wait:
    """WAIT. `name` None waits for every job."""

    kind: str | None = None
    name: Name | None = None


@dataclass(frozen=True)
class CancelJobs:
    ids: tuple[int, ...]


@dataclass(frozen=True)
class ExplainOptions:
    """What EXPLAIN shows. `incremental` is Sparkwave's own: the delta SQL of each operator.

    `analyze` runs the query. `cost`, with `backfill`, asks for the time of a backfill instead of the plan.
    """

    analyze: bool = False
    verbose: bool = False
    trace: bool = False
    backfill: bool = False
    cost: bool = False
    incremental: bool = False
    type: str = "physical"  # or "logical", "distsql"
    format: str = "text"  # or "json", "xml", "yaml", "dot"


@dataclass(frozen=True)
class Explain:
    statement: Query | CreateTable | CreateStreaming | AlterQuery | Insert | Update | Delete | Merge
    options: ExplainOptions = ExplainOptions()


@dataclass(frozen=True)
class ExplainJob:
    """EXPLAIN ANALYZE of a running job for some seconds: by its kind and name, or by its id with the position."""

    kind: str
    name: Name | None
    id: tuple[int, int] | None
    seconds: int


@dataclass(frozen=True)
class CreateExtension:
    """CREATE EXTENSION of one whose functions are always there."""

    name: str
    if_not_exists: bool


@dataclass(frozen=True)
class Vacuum:
    """VACUUM or ANALYZE, of all tables when none is named: `tag` is the command tag."""

    tag: str
    tables: tuple[Name, ...]
