"""Which strategy fills a view, why, and what its owner is told."""

from __future__ import annotations

import pytest
from test_explain import views
from test_golden import CATALOG

from sparkwave.catalog.errors import Error
from sparkwave.planner.backfill.strategy import ARRANGEMENT, NO_SHUFFLE, SNAPSHOT, BackfillSettings, exchange_reason
from sparkwave.planner.bind.binder import Scope
from sparkwave.planner.parse.statement import parse_statement
from sparkwave.planner.plan.nodes import walk
from sparkwave.planner.plan.stream_plan import StreamPlan, plan_view
from sparkwave.planner.statements import CreateMaterializedView

MAP = "SELECT carrier FROM flights WHERE delay > 60 UNION ALL SELECT upper(name) AS u FROM airlines"
UNNESTED = "SELECT unnest(tags) AS tag FROM clicks WHERE at > now() - INTERVAL '1' DAY"
JOIN = "SELECT f.month, a.name FROM flights f JOIN airlines a ON f.carrier = a.carrier"
TEMPORAL = "SELECT c.at, a.name FROM clicks c JOIN airlines FOR SYSTEM_TIME AS OF PROCTIME() a ON c.carrier = a.carrier"
COUNT = "SELECT carrier, count(*) AS n FROM flights GROUP BY carrier"
HAVING = f"{COUNT} HAVING count(*) > 10"
TEXT = "SELECT carrier, string_agg(carrier, ',' ORDER BY month) AS s FROM flights GROUP BY carrier"
CONSTANT = "SELECT 1 AS one"

OFF = BackfillSettings(use_snapshot=False)
BOTH_OFF = BackfillSettings(use_snapshot=False, use_arrangement=False)
TEMPORAL_NOTICE = "snapshot backfill disabled due to temporal join"
INSTEAD = "no-shuffle backfill disabled because {} needs an exchange: arrangement backfill is used instead"


def plan(query: str, settings: BackfillSettings = BackfillSettings(), options: str = "") -> StreamPlan:  # noqa: B008
    statement = parse_statement(f"CREATE MATERIALIZED VIEW v {f'WITH ({options})' if options else ''} AS {query}")
    assert isinstance(statement, CreateMaterializedView)
    return plan_view(statement, CATALOG, Scope("dev"), settings)


CHOICES = [
    (MAP, BackfillSettings(), "", SNAPSHOT, "streaming_use_snapshot_backfill is on", ()),
    (MAP, OFF, "", ARRANGEMENT, "streaming_use_snapshot_backfill is off", ()),
    (MAP, BOTH_OFF, "", NO_SHUFFLE, "no operator needs an exchange", ()),
    (UNNESTED, BOTH_OFF, "", NO_SHUFFLE, "no operator needs an exchange", ()),
    (JOIN, BOTH_OFF, "", ARRANGEMENT, "off, but a join needs an exchange", (INSTEAD.format("a join"),)),
    (COUNT, BOTH_OFF, "", ARRANGEMENT, "off, but an aggregation needs an exchange", (
        INSTEAD.format("an aggregation"),)),
    (TEMPORAL, BackfillSettings(), "", ARRANGEMENT, "a temporal join rules out snapshot backfill", (TEMPORAL_NOTICE,)),
    (TEMPORAL, OFF, "", ARRANGEMENT, "streaming_use_snapshot_backfill is off", ()),
    (CONSTANT, BackfillSettings(), "", SNAPSHOT, "it reads no table", ()),
    (CONSTANT, BOTH_OFF, "", SNAPSHOT, "it reads no table", ()),
    # An option beats the session, and `auto` is as none.
    (MAP, BOTH_OFF, "backfill_strategy = 'snapshot'", SNAPSHOT, "backfill_strategy asks for it", ()),
    (JOIN, BackfillSettings(), "backfill_strategy = 'ARRANGEMENT'", ARRANGEMENT, "asks for it", ()),
    (MAP, BackfillSettings(), "backfill_strategy = no_shuffle", NO_SHUFFLE, "asks for it", ()),
    (MAP, BOTH_OFF, "backfill_strategy = 'auto'", NO_SHUFFLE, "no operator needs an exchange", ()),
    (COUNT, BackfillSettings(rate_limit=10), "", SNAPSHOT, "is on", ()),
    (HAVING, BackfillSettings(rate_limit=0), "", SNAPSHOT, "is on", ()),
]  # fmt: skip


@pytest.mark.parametrize(("query", "settings", "options", "strategy", "reason", "notices"), CHOICES)
def test_choice(
    query: str, settings: BackfillSettings, options: str, strategy: str, reason: str, notices: tuple[str, ...]
) -> None:
    made = plan(query, settings, options)
    assert made.strategy == strategy
    assert reason in made.reason
    assert made.notices == notices


# Query, strategy asked for, SQLSTATE, a part of the message.
REFUSED = [
    (MAP, "fast", "22023", "invalid value for backfill_strategy: fast"),
    (JOIN, "no_shuffle", "0A000", "a join needs an exchange"),
    (COUNT, "no_shuffle", "0A000", "an aggregation needs an exchange"),
    ("SELECT carrier FROM flights LIMIT 5", "no_shuffle", "0A000", "LIMIT needs an exchange"),
    (CONSTANT, "no_shuffle", "0A000", "it reads no table"),
    (CONSTANT, "arrangement", "0A000", "it reads no table"),
    (TEMPORAL, "snapshot", "0A000", "a temporal join has to see its right side as it is when a row arrives"),
]


@pytest.mark.parametrize(("query", "word", "sqlstate", "message"), REFUSED)
def test_a_strategy_that_cannot_work(query: str, word: str, sqlstate: str, message: str) -> None:
    with pytest.raises(Error) as caught:
        plan(query, options=f"backfill_strategy = '{word}'")
    head = "CREATE MATERIALIZED VIEW v WITH ("
    place = len(head) + 1 if sqlstate == "0A000" else len(f"{head}backfill_strategy = ") + 1
    assert (caught.value.sqlstate, caught.value.position) == (sqlstate, place)
    assert message in caught.value.message
    assert caught.value.hint


def test_map_only_plans_have_no_join_aggregate_window_or_limit() -> None:
    for seed in range(6):
        for sql, _, made in views(seed):
            names = {type(node).__name__ for node in walk(made.root)}
            is_map = names <= {"Scan", "Filter", "Project", "Unnest", "UnionAll"}
            assert is_map == (exchange_reason(made.root) is None), sql
