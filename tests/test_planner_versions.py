"""What is stored for a relation fits the plan of the version that made it: later versions plan it as that one did."""

from __future__ import annotations

from dataclasses import replace

import pytest
from test_queries_page import catalog, plan

from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import Catalog, Relation, Watermark
from sparkwave.catalog.types import DOUBLE, NUMERIC, QUOTIENT
from sparkwave.planner.plan.fingerprint import fingerprint
from sparkwave.planner.plan.nodes import Aggregate, Scan, walk
from sparkwave.planner.plan.stream_plan import StreamPlan, plan_definition
from sparkwave.planner.since import PLANNER

FIRST_BIDS = """SELECT auction, price FROM (
                SELECT auction, price, row_number() OVER (PARTITION BY auction ORDER BY date_time) AS place FROM bid)
                AS placed WHERE place <= 1"""
NOT_BID_FOR = "SELECT id FROM auction WHERE id NOT IN (SELECT auction FROM bid GROUP BY auction)"


@pytest.fixture
def nexmark() -> Catalog:
    return catalog("nexmark", "")


def made_by(planner: int, query: str, nexmark: Catalog) -> StreamPlan:
    definition = f"CREATE MATERIALIZED VIEW v AS {query}"
    return plan_definition(Relation(9, "dev", "public", "v", "materialized view", (), (), definition, True,
                                    planner=planner), nexmark)  # fmt: skip


@pytest.mark.parametrize(
    ("query", "before", "now"), [(FIRST_BIDS, [False], [True]), (NOT_BID_FOR, [False] * 3, [False] * 2)]
)
def test_a_relation_is_planned_as_it_was(nexmark: Catalog, query: str, before: list[bool], now: list[bool]) -> None:
    assert [state.in_view for state in made_by(1, query, nexmark).states] == before
    current = made_by(PLANNER, query, nexmark)
    assert [state.in_view for state in current.states] == now
    assert plan(query, nexmark).columns == current.columns


def test_a_stored_definition_may_have_what_is_refused_now(nexmark: Catalog) -> None:
    """What PostgreSQL does not declare (`planner.batch.declared_checks`) is refused in new statements alone."""
    query = "SELECT auction, auction::boolean AS x, bidder || price AS y FROM bid"
    assert made_by(PLANNER, query, nexmark).columns


def test_a_temporal_join_whose_left_side_loses_rows_was_not_stored(nexmark: Catalog) -> None:
    query = """SELECT b.auction, a.category FROM bid AS b JOIN auction FOR SYSTEM_TIME AS OF PROCTIME() AS a
               ON b.auction = a.id WHERE b.date_time > now() - INTERVAL '1 hour'"""
    assert [len(made_by(planner, query, nexmark).states) for planner in (5, PLANNER)] == [0, 1]


def test_groups_were_not_restricted(nexmark: Catalog) -> None:
    query = "SELECT id FROM auction WHERE category = 1 AND reserve > (SELECT avg(price) FROM bid WHERE auction = id)"
    assert [len(made_by(planner, query, nexmark).scans) for planner in (16, PLANNER)] == [2, 3]


AVERAGES = "SELECT auction, avg(price) AS x, avg(DISTINCT price) AS y, avg(price) / 2 AS z FROM bid GROUP BY auction"
AVERAGES_OVER = "SELECT auction, avg(price) OVER (PARTITION BY auction) AS x FROM bid"


@pytest.mark.parametrize("query", ["SELECT auction, price / 3.0 AS x, sum(price) / 7.0 AS y FROM bid GROUP BY 1, 2"])
def test_quotients_keep_ten_places(nexmark: Catalog, query: str) -> None:
    for planner, type_ in ((4, NUMERIC), (PLANNER, QUOTIENT)):
        types = {c.name: c.type for c in made_by(planner, query, nexmark).columns if c.name in ("x", "y")}
        assert {*types.values()} == {type_}


@pytest.mark.parametrize("query", [AVERAGES, AVERAGES_OVER])
def test_averages_stay_floats(nexmark: Catalog, query: str) -> None:
    for planner, type_ in ((3, DOUBLE), (PLANNER, QUOTIENT)):
        types = {c.name: c.type for c in made_by(planner, query, nexmark).columns if c.name in ("x", "y", "z")}
        assert {*types.values()} == {type_}


JSON = """SELECT auction, json_build_object('p', price) AS x, '{"a":  1}'::json AS y, json_agg(price) AS z
          FROM bid GROUP BY auction, price"""


def test_json_stays_jsonb(nexmark: Catalog) -> None:
    for planner, type_ in ((6, "jsonb"), (PLANNER, "json")):
        made = made_by(planner, JSON, nexmark)
        assert {str(c.type) for c in made.columns if c.name in ("x", "y", "z")} == {type_}


def test_outputs_sort_within_expressions_of_stored_definitions(nexmark: Catalog) -> None:
    query = "SELECT auction, -price AS x FROM bid ORDER BY x + 0 LIMIT 3"
    assert len(made_by(PLANNER, query, nexmark).states) == 1
    with pytest.raises(Error, match='column "x" does not exist'):
        plan(query, nexmark)


def test_unnest_gives_inner_arrays(nexmark: Catalog) -> None:
    query = "SELECT auction, unnest(ARRAY[[price, 1]]) AS x FROM bid"
    for planner, type_ in ((7, "bigint[]"), (PLANNER, "bigint")):
        assert {str(c.type) for c in made_by(planner, query, nexmark).columns if c.name == "x"} == {type_}


def test_functions_keep_ten_places(nexmark: Catalog) -> None:
    query = "SELECT id, sqrt(2.5) AS x, power(1.05, 12) AS y FROM auction"
    for planner, type_ in ((9, NUMERIC), (PLANNER, QUOTIENT)):
        assert {c.type for c in made_by(planner, query, nexmark).columns if c.name in ("x", "y")} == {type_}


def test_deviations_stay_floats(nexmark: Catalog) -> None:
    query = "SELECT auction, stddev(price) AS x, var_pop(price) OVER (PARTITION BY auction) AS y FROM bid"
    for text in (query.replace(", var_pop(price) OVER (PARTITION BY auction) AS y", " ") + " GROUP BY auction",
                 query.replace("stddev(price) AS x, ", "")):  # fmt: skip
        for planner, type_ in ((9, DOUBLE), (PLANNER, QUOTIENT)):
            assert {c.type for c in made_by(planner, text, nexmark).columns if c.name in ("x", "y")} == {type_}


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT auction, price * 2 AS twice FROM bid WHERE twice > 10", 'column "twice" does not exist'),
        ("SELECT auction, sum(price) AS s FROM bid GROUP BY auction HAVING s > 10", 'column "s" does not exist'),
        ("SELECT auction AS a, a + 1 AS b FROM bid", 'column "a" does not exist'),
        ("SELECT b.auction FROM bid b JOIN auction a WHERE a.id = b.auction", 'syntax error at or near "WHERE"'),
    ],
)
def test_stored_definitions_keep_what_is_refused_now(nexmark: Catalog, query: str, message: str) -> None:
    for planner in (1, PLANNER):
        assert made_by(planner, query, nexmark).columns
    with pytest.raises(Error, match=message):
        plan(query, nexmark)


def test_constants_stay_as_narrow_as_they_were(nexmark: Catalog) -> None:
    query = "SELECT auction, price::smallint + 1 AS x FROM bid"
    narrow, wide = (str(made_by(planner, query, nexmark).root.items[1].expression) for planner in (9, PLANNER))
    assert narrow != wide and "CAST(1 AS INT)" in wide and "CAST(1" not in narrow


@pytest.mark.parametrize("call", ["stddev(price)", "var_pop(price) FILTER (WHERE price > 2)", "sum(late)", "avg(late)"])
def test_older_views_read_groups_again(nexmark: Catalog, call: str) -> None:
    """In new ones, standard deviations, variances and totals of intervals follow changes."""
    bids = "SELECT auction, price, date_time - TIMESTAMP '2020-01-01' AS late FROM bid"
    for planner, is_mergeable in ((18, False), (PLANNER, True)):
        root = made_by(planner, f"SELECT auction, {call} AS x FROM ({bids}) AS b GROUP BY auction", nexmark).root
        [node] = [node for node in walk(root) if isinstance(node, Aggregate)]
        assert node.is_mergeable is is_mergeable


def test_variances_keep_their_names(nexmark: Catalog) -> None:
    query = "SELECT auction, variance(price) FROM bid GROUP BY auction"
    names = [made_by(version, query, nexmark).columns[1].name for version in (9, PLANNER)]
    assert names == ["var_samp", "variance"]


def test_rounded_integers_and_percentiles_of_reals_keep_their_types(nexmark: Catalog) -> None:
    query = "SELECT auction, round(price, 2) AS x FROM bid"
    types = [str(made_by(version, query, nexmark).columns[1].type) for version in (12, PLANNER)]
    assert types == ["double precision", "numeric(38,2)"]
    query = "SELECT auction, percentile_cont(0.3) WITHIN GROUP (ORDER BY price::real) AS x FROM bid GROUP BY auction"
    real, double = (fingerprint(made_by(version, query, nexmark)).digest for version in (12, PLANNER))
    assert real != double


def test_floats_of_numerics_stay_what_they_were(nexmark: Catalog) -> None:
    query = "SELECT id, initial_bid::numeric::float8 AS f FROM auction"
    before, now = (str(made_by(planner, query, nexmark).root.items[1].expression) for planner in (14, PLANNER))
    assert "NEAREST" not in before and "NEAREST" in now


def test_dates_at_time_zones_keep_their_types(nexmark: Catalog) -> None:
    query = "SELECT id, date_time::date AT TIME ZONE 'UTC' AS d FROM auction"
    types = [str(made_by(version, query, nexmark).columns[1].type) for version in (14, PLANNER)]
    assert types == ["timestamp with time zone", "timestamp without time zone"]


def test_abbreviations_of_zones_stay_what_they_were(nexmark: Catalog) -> None:
    query = "SELECT id, date_time AT TIME ZONE 'PST' AS d FROM auction"
    before, now = (str(made_by(planner, query, nexmark).root.items[1].expression) for planner in (17, PLANNER))
    assert "'PST'" in before and "-480 minutes" in now


def test_series_of_dates_and_joined_arrays_keep_their_types(nexmark: Catalog) -> None:
    query = "SELECT generate_series(date '2026-01-01', date '2026-01-02', interval '12 hours') AS x"
    types = [str(made_by(version, query, nexmark).columns[0].type) for version in (14, PLANNER)]
    assert types == ["date", "timestamp with time zone"]
    query = "SELECT auction, ARRAY[price] || 3.5 AS x FROM bid"
    types = [str(made_by(version, query, nexmark).columns[1].type) for version in (14, PLANNER)]
    assert types == ["bigint[]", "numeric(38,1)[]"]


def test_series_of_numbers_keep_their_types(nexmark: Catalog) -> None:
    query = (
        "SELECT auction, ARRAY(SELECT generate_series(1, auction)) AS x, generate_series(1, price) + 1 AS y FROM bid"
    )
    types = [
        [str(column.type) for column in made_by(version, query, nexmark).columns[1:3]] for version in (16, PLANNER)
    ]
    assert types == [["text[]", "integer"], ["bigint[]", "bigint"]]


def test_logarithms_keep_their_types(nexmark: Catalog) -> None:
    query = "SELECT auction, log(2, price) AS x, log(price) AS y FROM bid"
    types = [
        [str(column.type) for column in made_by(version, query, nexmark).columns[1:3]] for version in (16, PLANNER)
    ]
    assert types == [["double precision"] * 2, ["numeric(38,19)", "double precision"]]


def test_views_that_emit_on_window_close_keep_what_closes_them(nexmark: Catalog) -> None:
    relations = tuple(
        replace(relation, watermark=Watermark("date_time", 0)) if relation.name in ("bid", "auction") else relation
        for relation in nexmark.relations
    )
    timed = replace(nexmark, relations=relations)
    query = "SELECT b.date_time FROM bid b JOIN auction a ON b.date_time = a.date_time EMIT ON WINDOW CLOSE"
    scans = [
        sum(isinstance(node, Scan) for node in walk(made_by(version, query, timed).root)) for version in (15, PLANNER)
    ]
    assert scans == [3, 4]
    with pytest.raises(Error, match="cannot be executed"):
        made_by(PLANNER, query.replace("b.date_time = a.date_time", "b.auction = a.id"), timed)


def test_temporal_joins_with_views_stay_other_joins(nexmark: Catalog) -> None:
    view = Relation(8, "dev", "public", "sold", "view", nexmark.find("dev", "public", "auction").columns, (),
                    "CREATE VIEW sold AS SELECT * FROM auction", True)  # fmt: skip
    with_view = replace(nexmark, relations=(*nexmark.relations, view))
    query = "SELECT b.price FROM bid b JOIN sold FOR SYSTEM_TIME AS OF PROCTIME() AS s ON b.auction = s.id"
    assert not any(getattr(node, "is_temporal", False) for node in walk(made_by(15, query, with_view).root))
    with pytest.raises(Error, match='a temporal join with the view "sold"'):
        made_by(PLANNER, query, with_view)
