"""What a server is asked to show or to do."""

from __future__ import annotations

from dataclasses import dataclass

from sparkwave.planner.statements.create import CreateStreaming, CreateTable
from sparkwave.planner.statements.relation_names import Name
from sparkwave.planner.statements.rows import Delete, Insert, Merge, Query, Update


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
class Vacuum:
    """VACUUM and ANALYZE, of all tables when none is named: `tag` is the command tag."""

    tag: str
    tables: tuple[Name, ...]
