"""What controls a job: options and variables at CREATE, ALTER MATERIALIZED VIEW later; in process, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from test_law import opened

from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import CREATED, CREATING, Job
from sparkwave.catalog.names import system_table
from sparkwave.planner.backfill.strategy import ARRANGEMENT, NO_SHUFFLE, SNAPSHOT
from sparkwave.server.context import Context
from sparkwave.server.dispatch import Client
from sparkwave.server.wire.result import Result


class Session:
    def __init__(self, context: Context, client: Client) -> None:
        self.context, self.client = context, client

    def run(self, *statements: str) -> Result:
        for sql in statements:
            result = self.client.execute(self.client.prepare(sql, ()), ())
        return result

    def notices(self, sql: str) -> list[str]:
        return [notice.message for notice in self.run(sql).notices]

    def fails(self, sql: str) -> Error:
        with pytest.raises(Error) as caught:
            self.run(sql)
        return caught.value

    def job(self, name: str) -> Job:
        catalog = self.context.store.catalog
        relation = catalog.find("dev", "public", name)
        assert relation is not None
        return catalog.job_by_id[relation.id]

    def pretend(self, name: str, status: str, strategy: str) -> None:
        """Write into the catalog that a job is being created, or is not."""
        with self.context.store.change() as cursor:
            cursor.execute(
                f"UPDATE {system_table('jobs')} SET status = ?, strategy = ? WHERE id = ?",
                [status, strategy, self.job(name).id],
            )


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    directory: Path = tmp_path_factory.mktemp("alter") / "data"
    with opened(directory, backfill_engine="auto") as (context, client):
        made = Session(context, client)
        made.run("CREATE TABLE t (a int, b int)", "CREATE TABLE d (a int PRIMARY KEY, name varchar)")
        made.run("CREATE TABLE log (a int) APPEND ONLY", "CREATE MATERIALIZED VIEW m AS SELECT a FROM t")
        yield made


@pytest.fixture(autouse=True)
def _defaults(session: Session) -> None:
    session.run("DISCARD ALL")


SETTINGS = [
    ("BACKFILL_RATE_LIMIT = 100", "rate_limit", 100),
    ("BACKFILL_RATE_LIMIT TO 0", "rate_limit", 0),
    ("BACKFILL_RATE_LIMIT = DEFAULT", "rate_limit", None),
    ("BACKFILL_RATE_LIMIT = -5", "rate_limit", None),
    ("PARALLELISM = 3", "parallelism", "3"),
    ("PARALLELISM TO 'Bounded(4)'", "parallelism", "bounded(4)"),
    ("PARALLELISM = ratio(0.5)", "parallelism", "ratio(0.5)"),
    ("PARALLELISM = AUTO", "parallelism", "adaptive"),
    ("PARALLELISM = DEFAULT", "parallelism", "adaptive"),
    ("BACKFILL_PARALLELISM = 2", "backfill_parallelism", 2),
    ("BACKFILL_PARALLELISM = DEFAULT", "backfill_parallelism", None),
]


@pytest.mark.parametrize(("setting", "field", "value"), SETTINGS)
def test_alter_sets_one_thing(session: Session, setting: str, field: str, value: object) -> None:
    before = session.job("m")
    result = session.run(f"ALTER MATERIALIZED VIEW m SET {setting}")
    after = session.job("m")
    assert (result.tag, result.notices) == ("ALTER MATERIALIZED VIEW", [])
    assert getattr(after, field) == value
    others = {"rate_limit", "parallelism", "backfill_parallelism"} - {field}
    assert [getattr(after, name) for name in others] == [getattr(before, name) for name in others]


def test_deferred_says_when_it_takes_effect(session: Session) -> None:
    (notice,) = session.notices("ALTER MATERIALIZED VIEW m SET PARALLELISM = 2 DEFERRED")
    assert notice == (
        "DEFERRED is used, please ensure that automatic parallelism control is enabled on the meta, otherwise, the "
        "alter will not take effect."
    )


PARALLELISM = "it is blocked by creating unreschedulable backfill jobs"
BACKFILL = "its creating backfill contains a scan type that does not support online rescheduling"
# Strategy, setting, and why it is refused while the view is being created; None when it is not.
BLOCKED = [
    (SNAPSHOT, "PARALLELISM = 2", PARALLELISM),
    (SNAPSHOT, "PARALLELISM = 2 DEFERRED", None),
    (SNAPSHOT, "BACKFILL_PARALLELISM = 2", BACKFILL),
    (SNAPSHOT, "BACKFILL_RATE_LIMIT = 2", None),
    (NO_SHUFFLE, "PARALLELISM = 2", PARALLELISM),
    (NO_SHUFFLE, "PARALLELISM = 2 DEFERRED", PARALLELISM),
    (NO_SHUFFLE, "BACKFILL_PARALLELISM = 2", BACKFILL),
    (ARRANGEMENT, "PARALLELISM = 2", None),
    (ARRANGEMENT, "BACKFILL_PARALLELISM = 2", None),
]


@pytest.mark.parametrize(("strategy", "setting", "reason"), BLOCKED)
def test_parallelism_of_a_creating_view(session: Session, strategy: str, setting: str, reason: str | None) -> None:
    session.pretend("m", CREATING, strategy)
    try:
        statement = f"ALTER MATERIALIZED VIEW m SET {setting}"
        if reason is None:
            assert session.run(statement).tag == "ALTER MATERIALIZED VIEW"
            return
        before = session.job("m")
        error = session.fails(statement)
        assert (error.sqlstate, error.message) == ("55000", f"Cannot alter the job {before.id} because {reason}")
        assert error.hint
        assert session.job("m") == before
    finally:
        session.pretend("m", CREATED, SNAPSHOT)


def test_what_a_no_shuffle_backfill_reads_keeps_its_parallelism(session: Session) -> None:
    session.run("CREATE MATERIALIZED VIEW over_m AS SELECT a FROM m")
    session.pretend("over_m", CREATING, NO_SHUFFLE)
    assert PARALLELISM in session.fails("ALTER MATERIALIZED VIEW m SET PARALLELISM = 2").message
    session.pretend("over_m", CREATED, SNAPSHOT)
    assert session.run("ALTER MATERIALIZED VIEW m SET PARALLELISM = 2").tag == "ALTER MATERIALIZED VIEW"


def test_a_view_takes_its_controls_from_options_and_variables(session: Session) -> None:
    session.run("CREATE MATERIALIZED VIEW plain AS SELECT a FROM t")
    found = session.job("plain")
    assert (found.rate_limit, found.parallelism, found.backfill_parallelism) == (None, "bounded(64)", None)
    assert (found.strategy, found.order) == (SNAPSHOT, ())

    session.run("SET backfill_rate_limit = 1000", "SET streaming_parallelism = 4")
    session.run("SET streaming_parallelism_for_backfill = 2", "SET streaming_use_snapshot_backfill = off")
    session.run("CREATE MATERIALIZED VIEW varied AS SELECT a FROM t")
    found = session.job("varied")
    assert (found.rate_limit, found.parallelism, found.backfill_parallelism) == (1000, "4", 2)
    assert found.strategy == ARRANGEMENT

    session.run("SET streaming_parallelism_for_materialized_view = 'ratio(0.5)'")
    session.run(
        "CREATE MATERIALIZED VIEW chosen WITH (backfill_rate_limit = 2000, backfill_strategy = snapshot, "
        "backfill_order = FIXED(d -> t)) AS SELECT t.a, d.name FROM t JOIN d ON t.a = d.a"
    )
    found = session.job("chosen")
    assert (found.rate_limit, found.parallelism, found.strategy) == (2000, "ratio(0.5)", SNAPSHOT)
    catalog = session.context.store.catalog
    assert [(catalog.by_id[a].name, catalog.by_id[b].name) for a, b in found.order] == [("d", "t")]


def test_notices_of_create_and_explain_by_the_session(session: Session) -> None:
    query = "SELECT b, count(*) AS n FROM t GROUP BY b"
    session.run("SET streaming_use_snapshot_backfill = false", "SET streaming_use_arrangement_backfill = false")
    notice = (
        "no-shuffle backfill disabled because an aggregation needs an exchange: arrangement backfill is used instead"
    )
    assert notice in session.notices(f"CREATE MATERIALIZED VIEW counted AS {query}")
    explained = session.run(f"EXPLAIN (VERBOSE) CREATE MATERIALIZED VIEW v AS {query}")
    lines = [line for batch in explained.batches or () for line in batch.column(0).to_pylist()]
    assert any("stream_scan_type: ArrangementBackfill" in line for line in lines)
    assert any(line.endswith("is off, but an aggregation needs an exchange)") for line in lines)

    session.run("DISCARD ALL")
    temporal = "SELECT log.a, d.name FROM log JOIN d FOR SYSTEM_TIME AS OF PROCTIME() ON log.a = d.a"
    notices = session.notices(f"CREATE MATERIALIZED VIEW looked WITH (backfill_order = AUTO) AS {temporal}")
    assert notices[:2] == [
        "snapshot backfill disabled due to temporal join",
        "Backfill order strategy is not supported for StreamTemporalJoin",
    ]
    twice = "SELECT x.a FROM t x JOIN t y ON x.a = y.b"
    notices = session.notices(f"CREATE MATERIALIZED VIEW twice WITH (backfill_order = AUTO) AS {twice}")
    assert notices[0] == "Backfill order strategy has a cycle"


# Statement, SQLSTATE, message.
REFUSED = [
    ("ALTER MATERIALIZED VIEW nope SET PARALLELISM = 2", "42P01", 'relation "nope" does not exist'),
    ("ALTER MATERIALIZED VIEW nowhere.m SET PARALLELISM = 2", "42P01", 'relation "nowhere.m" does not exist'),
    ("ALTER MATERIALIZED VIEW t SET PARALLELISM = 2", "42809", '"t" is not a materialized view'),
    ("ALTER MATERIALIZED VIEW t SET BACKFILL_RATE_LIMIT = 2", "42809", '"t" is not a materialized view'),
]


@pytest.mark.parametrize(("statement", "sqlstate", "message"), REFUSED)
def test_alter_of_something_else(session: Session, statement: str, sqlstate: str, message: str) -> None:
    error = session.fails(statement)
    assert (error.sqlstate, error.message, error.position) == (sqlstate, message, 25)


VALUES = [
    ("streaming_use_snapshot_backfill", "true", "off", "false"),
    ("streaming_use_arrangement_backfill", "true", "0", "false"),
    ("backfill_rate_limit", "-1", "10", "10"),
    ("streaming_parallelism", "default", "AUTO", "adaptive"),
    ("streaming_parallelism", "default", "'Bounded( 4 )'", "bounded(4)"),
    ("streaming_parallelism", "default", "0", "adaptive"),
    ("streaming_parallelism_for_materialized_view", "default", "7", "7"),
    ("streaming_parallelism_for_backfill", "default", "7", "7"),
    ("streaming_max_parallelism", "256", "2", "2"),
    ("slow_ddl_notification_secs", "30", "0", "0"),
]


@pytest.mark.parametrize(("name", "default", "given", "shown"), VALUES)
def test_variables(session: Session, name: str, default: str, given: str, shown: str) -> None:
    def value() -> object:
        return next(batch.column(0).to_pylist()[0] for batch in session.run(f"SHOW {name}").batches or ())

    assert value() == default
    session.run(f"SET {name} = {given}")
    assert value() == shown


WRONG = [
    ("SET streaming_use_snapshot_backfill = maybe", "Invalid bool"),
    ("SET backfill_rate_limit = fast", "invalid digit found in string"),
    ("SET streaming_parallelism = many", "invalid digit found in string"),
    ("SET streaming_parallelism = 'ratio(1.5)'", "ratio must be between 0 and 1"),
    ("SET streaming_parallelism = 'bounded(0)'", "parallelism must be greater than 0"),
    ("SET streaming_parallelism_for_backfill = adaptive", "Only `default` or fixed backfill parallelism is supported"),
    ("SET streaming_max_parallelism = 1", "STREAMING_MAX_PARALLELISM must be greater than 1"),
    ("SET streaming_max_parallelism = 32769", "STREAMING_MAX_PARALLELISM must be less than or equal to 32768"),
    ("SET slow_ddl_notification_secs = -1", "out of range"),
    ("ALTER SYSTEM SET max_concurrent_creating_streaming_jobs = -1", "out of range"),
]


@pytest.mark.parametrize(("statement", "message"), WRONG)
def test_wrong_values(session: Session, statement: str, message: str) -> None:
    error = session.fails(statement)
    assert error.sqlstate == "22023"
    assert message in error.message


def test_parallelism_above_the_maximum(session: Session) -> None:
    session.run("SET streaming_max_parallelism = 4", "SET streaming_parallelism = 6")
    create = "CREATE MATERIALIZED VIEW v AS SELECT a FROM t"
    assert session.fails(create).message == "specified parallelism 6 should not exceed max parallelism 4"
    session.run("SET streaming_parallelism = default", "SET streaming_parallelism_for_backfill = 5")
    assert session.fails(create).message == "specified backfill parallelism 5 should not exceed max parallelism 4"
