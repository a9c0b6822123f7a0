"""EXPLAIN (BACKFILL, COST): what a backfill would read, write and take; nothing is created."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from postgres import Postgres
from servers import Server, wait_until
from test_law import opened, run

from sparkwave.catalog.errors import Error
from sparkwave.catalog.stores.measured_backfills import KEPT, MeasuredBackfill, add_measured, load_measured
from sparkwave.executor.backfill.input_statistics import _extrapolated
from sparkwave.planner.backfill.cost_model import IN_PROCESS, STEADY, Engine, Finished, modelled_s, quote
from sparkwave.planner.backfill.estimates import Estimate
from sparkwave.server.context import Context
from sparkwave.server.dispatch import Client

ROWS = 30_000
PROJECTION = "CREATE MATERIALIZED VIEW v AS SELECT k, s FROM t WHERE k >= 10000"
GROUPS = "CREATE MATERIALIZED VIEW v AS SELECT g, count(*) AS n, sum(k) AS total FROM t GROUP BY g"
JOIN = "CREATE MATERIALIZED VIEW v AS SELECT t.k, d.name FROM t JOIN d ON t.g = d.g WHERE d.name <> 'name 3'"
OTHER_OPTIONS = "Not supported: EXPLAIN (BACKFILL, COST) with other options"
FILLS_NOTHING = "Not supported: EXPLAIN (BACKFILL, COST) of a statement that fills nothing"
COST, AS_JSON = "EXPLAIN (BACKFILL, COST)", "EXPLAIN (BACKFILL, COST, FORMAT JSON)"


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that a quote asks is counted, however busy the machine is."""
    monkeypatch.setattr("sparkwave.executor.backfill.input_statistics.BUDGET_S", 20.0)
    monkeypatch.setattr("sparkwave.server.statements.quotes.COUNTED_S", 20.0)


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Context, Client]]:
    directory = tmp_path_factory.mktemp("quotes") / "lake"
    with opened(directory, backfill_engine="auto", streaming_engine="duckdb") as (context, client):
        run(client, "CREATE TABLE t (k int PRIMARY KEY, g int, s varchar)")
        for start in range(0, ROWS, 10_000):
            run(client, f"INSERT INTO t SELECT i, i % 25, 'text ' || i FROM range({start}, {start + 10_000}) AS r (i)")
        run(client, "CREATE TABLE d (g int PRIMARY KEY, name varchar)")
        run(client, "INSERT INTO d SELECT i, 'name ' || i FROM range(25) AS r (i)")
        run(client, "CREATE MATERIALIZED VIEW there AS SELECT g, count(*) AS n FROM t GROUP BY g")
        run(client, "CREATE TABLE target (k int PRIMARY KEY, s varchar)")
        run(client, "CREATE TABLE groups (g int PRIMARY KEY, n bigint)")
        # The backfill is measured in the background; tests count those that they add.
        assert wait_until(lambda: bool(load_measured(context.lake.cursor())))
        yield context, client


@pytest.fixture
def client(parts: tuple[Context, Client]) -> Iterator[Client]:
    context, client = parts
    catalog = context.store.catalog
    before = [relation.name for relation in catalog.relations], catalog.jobs
    yield client
    catalog = context.store.catalog
    assert ([relation.name for relation in catalog.relations], catalog.jobs) == before


def lines(client: Client, sql: str) -> list[str]:
    return [str(line) for (line,) in run(client, sql)]


def quoted(client: Client, sql: str) -> dict[str, Any]:
    found = json.loads("\n".join(lines(client, f"{AS_JSON} {sql}")))
    assert isinstance(found, dict)
    return found


def taken(found: dict[str, Any]) -> dict[str, Any]:
    [engine] = [each for each in found["engines"] if each["taken"]]
    assert isinstance(engine, dict)
    return engine


def refused(client: Client, sql: str) -> Error:
    with pytest.raises(Error) as raised:
        run(client, sql)
    return raised.value


def plain(text: str) -> str:
    """A line without the numbers that depend on the machine and its files."""
    return re.sub(r"[\d.,]+ (B|kB|MB|GB|s|min)\b", "…", re.sub(r" +", " ", text))


def test_a_projection(client: Client) -> None:
    """The file that the filter excludes is not read."""
    found = quoted(client, PROJECTION)
    [read] = found["read"]
    assert (read["relation"], read["columns"], read["rows"], read["files"]) == ("public.t", 2, 20_000, 2)
    assert (read["skipped_rows"], read["skipped_files"]) == (10_000, 1)
    assert read["bytes"] > 0 < found["write"]["bytes"]
    assert found["write"]["rows"] == 20_000
    engine = taken(found)
    assert (engine["engine"], engine["slices"], engine["tasks"], engine["stages"]) == ("in process", 1, 1, 1)
    assert 0 < engine["seconds"]["p10"] < engine["seconds"]["p50"] < engine["seconds"]["p90"]
    assert "cost" not in engine
    for condition, files in (("k < 3000000000", 3), ("20000 <= k", 1), ("k BETWEEN 5 AND 15000", 2), ("k = 7 + 5", 1)):
        [read] = quoted(client, PROJECTION.replace("k >= 10000", condition))["read"]
        assert (condition, read["files"]) == (condition, files)


def test_inputs_of_one_name_are_told_apart(client: Client) -> None:
    run(client, "CREATE SCHEMA other")
    run(client, "CREATE TABLE other.t (k int PRIMARY KEY)")
    view = "CREATE MATERIALIZED VIEW v AS SELECT u.k FROM t JOIN other.t u USING (k)"
    quote = lines(client, f"EXPLAIN (BACKFILL, COST) {view}")
    assert [line.partition(",")[0] for line in quote if line.startswith("read: ")] == ["read: t", "read: other.t u"]
    run(client, "DROP SCHEMA other CASCADE")


def test_a_text_in_a_filter_is_not_a_part_of_the_condition(client: Client) -> None:
    """The bounds of a file are compared with the very text: `hello` and `china` have the words for them."""
    run(client, "CREATE TABLE words (w varchar)")
    for word in ("china", "hello"):
        run(client, f"INSERT INTO words SELECT '{word}' FROM generate_series(1, 5000)")
    for word in ("china", "hello"):
        found = quoted(client, f"CREATE MATERIALIZED VIEW w AS SELECT * FROM words WHERE w = '{word}'")
        assert [(read["rows"], read["files"]) for read in found["read"]] == [(5000, 1)], word
    run(client, "DROP TABLE words")


def test_a_group_by(client: Client) -> None:
    found = quoted(client, GROUPS)
    assert (found["strategy"], found["work"]["grouped"]) == ("SnapshotBackfill", ROWS)
    assert 23 <= found["write"]["rows"] <= 27
    assert taken(found)["memory_bytes"] > 0


def test_a_join(client: Client) -> None:
    found = quoted(client, JOIN)
    assert [(read["relation"], read["rows"]) for read in found["read"]] == [("public.t", ROWS), ("public.d", 25)]
    assert (found["work"]["built"], found["work"]["probed"]) == (24, ROWS)
    assert 0.8 * ROWS < found["write"]["rows"] <= ROWS


def test_text(client: Client) -> None:
    found = lines(client, f"{COST} {PROJECTION}")
    names = [engine["name"] for engine in quoted(client, PROJECTION)["engines"]]
    assert [plain(line) for line in found[:6]] == [
        "strategy: SnapshotBackfill",
        "read: t, 20,000 rows, … of 2 columns in 2 files (1 file with 10,000 rows skipped)",
        "write: about 20,000 rows, …",
        "",
        " engine cores slices tasks stages memory limit 10 % middle 90 %",
        plain(found[5]),
    ]
    assert re.fullmatch(r"\* in process [\d.]+ 1 1 1 … … … … …", plain(found[5]))
    assert names == ["in process", "default", *(f"{c}c{c * g}g" for c in (1, 2, 4, 8, 16) for g in (2, 4))]
    assert [line.split()[0] for line in found[6:17]] == ["default", *["serverless"] * 10]
    assert found[18] == "* is the engine that CREATE would take"


def test_other_statements(client: Client) -> None:
    """An index, a sink, and another query for a view; a name that is taken does not matter, as in all of EXPLAIN."""
    assert quoted(client, "CREATE INDEX i ON t (g)")["write"]["rows"] == ROWS
    assert quoted(client, "CREATE INDEX ON t (g) INCLUDE (k)")["write"]["rows"] == ROWS
    sink = "CREATE SINK si INTO target AS SELECT k, s FROM t"
    assert quoted(client, sink)["write"]["rows"] == ROWS
    later = quoted(client, "CREATE SINK si INTO groups FROM there WITH (snapshot = 'false')")
    assert (later["read"], later["write"]) == ([], {"rows": 0, "bytes": 0})
    altered = quoted(client, "ALTER MATERIALIZED VIEW there AS SELECT k FROM t WHERE k < 5000")
    assert 4900 <= altered["write"]["rows"] <= 5100
    assert quoted(client, GROUPS.replace("VIEW v", "VIEW there"))["write"]["rows"] > 0
    assert lines(client, f"{COST} ALTER MATERIALIZED VIEW IF EXISTS nothing AS SELECT 1 AS a") == []


def test_engines(client: Client) -> None:
    """EXPLAIN chooses as CREATE would in the same session."""
    run(client, "ALTER SYSTEM SET backfill_in_process_rows = 1000")
    assert taken(quoted(client, GROUPS))["name"] == "default"
    run(client, "ALTER SYSTEM SET backfill_slice_rows = 5000")
    engine = taken(quoted(client, GROUPS))
    assert (engine["slices"], engine["stages"]) == (7, 2)
    run(client, "ALTER SYSTEM SET backfill_slice_rows = DEFAULT")
    serverless = GROUPS.replace(" AS", " WITH (cloud.serverless_backfill_enabled = true) AS", 1)
    assert refused(client, f"{COST} {serverless}").sqlstate == "22023"
    run(client, "ALTER SYSTEM SET serverless_backfill_enabled = true")
    engine = taken(quoted(client, serverless))
    assert (engine["engine"], engine["name"]) == ("serverless", "2c4g")
    assert engine["start"] > 0
    for name in ("backfill_in_process_rows", "serverless_backfill_enabled"):
        run(client, f"ALTER SYSTEM SET {name} = DEFAULT")


def test_rate_limit(client: Client) -> None:
    limited = GROUPS.replace(" AS", " WITH (backfill_rate_limit = 100) AS", 1)
    found = quoted(client, limited)
    assert found["rate_limit"] == 100
    assert taken(found)["seconds"]["p10"] >= ROWS / 100
    assert "rate limit: 100 rows a second" in lines(client, f"{COST} {limited}")


def test_price(client: Client) -> None:
    """Money is shown for groups of a job's own, once there is a price."""
    assert not any("cost" in engine for engine in quoted(client, GROUPS)["engines"])
    run(client, "ALTER SYSTEM SET serverless_backfill_price_per_core_hour = 0.36")
    found = {engine["name"]: engine for engine in quoted(client, GROUPS)["engines"]}
    assert "cost" not in found["in process"] and "cost" not in found["default"]
    large = found["16c64g"]
    assert large["cost"]["p50"] == pytest.approx(large["seconds"]["p50"] * 16 * 0.36 / 3600, rel=0.01)
    head = lines(client, f"{COST} {GROUPS}")[4]
    assert head.endswith("cost")
    for wrong in ("'-1'", "'free'", "'1e3'", "'nan'"):
        error = refused(client, f"ALTER SYSTEM SET serverless_backfill_price_per_core_hour = {wrong}")
        assert error.sqlstate == "22023"
    run(client, "ALTER SYSTEM SET serverless_backfill_price_per_core_hour = DEFAULT")


@pytest.mark.parametrize(
    ("sql", "sqlstate", "message"),
    [
        (f"EXPLAIN (COST) {GROUPS}", "22023", "EXPLAIN option COST requires BACKFILL"),
        (f"EXPLAIN (BACKFILL, COSTS) {GROUPS}", "42601", "unexpected explain options: [costs]"),
        (f"EXPLAIN (BACKFILL, COST, VERBOSE) {GROUPS}", "0A000", OTHER_OPTIONS),
        (f"EXPLAIN (BACKFILL, COST, FORMAT XML) {GROUPS}", "0A000", OTHER_OPTIONS),
        (f"{COST} SELECT 1", "0A000", FILLS_NOTHING),
        (f"{COST} CREATE TABLE n (a int)", "0A000", FILLS_NOTHING),
        (f"{COST} CREATE MATERIALIZED VIEW v AS SELECT x FROM t", "42703", 'column "x" does not exist'),
        (f"{COST} ALTER MATERIALIZED VIEW nothing AS SELECT 1 AS a", "42P01", 'relation "nothing" does not exist'),
        (
            "EXPLAIN (BACKFILL) ALTER MATERIALIZED VIEW there AS SELECT 1 AS a",
            "0A000",
            "Feature is not yet implemented: unsupported statement for EXPLAIN: "
            "ALTER MATERIALIZED VIEW there AS SELECT 1 AS a",
        ),
    ],
)  # fmt: skip
def test_errors(client: Client, sql: str, sqlstate: str, message: str) -> None:
    error = refused(client, sql)
    assert (error.sqlstate, error.message) == (sqlstate, message)


def measured(number: int, kind: str, seconds: float, work: Estimate) -> list[MeasuredBackfill]:
    return [MeasuredBackfill(10_000 + i, kind, 2, ROWS, 0.0, seconds, work.dump()) for i in range(number)]


def forget(context: Context) -> None:
    with context.store.change() as cursor:
        cursor.execute("DELETE FROM lake.sparkwave.measured_backfills")


def test_finished_backfills(parts: tuple[Context, Client], client: Client) -> None:
    """Fewer than five are told of; more of them move the middle."""
    context, _ = parts
    forget(context)
    work = Estimate.load(quoted(client, GROUPS)["work"])
    model = taken(quoted(client, GROUPS))["seconds"]["p50"]
    text = lines(client, f"{COST} {GROUPS}")
    assert "in process: no finished backfill, fewer than 5, so the times are the model's own" in text
    cores = taken(quoted(client, GROUPS))["cores"]
    slow = [replace(each, cores=cores) for each in measured(4, IN_PROCESS, 3 * model, work)]
    with context.store.change() as cursor:
        add_measured(cursor, slow)
    few = taken(quoted(client, GROUPS))
    assert (few["seconds"]["p50"], few["finished_backfills"], few["is_corrected"]) == (model, 4, False)
    assert "in process: 4 finished backfills, fewer than 5, so the times are the model's own" in lines(
        client, f"{COST} {GROUPS}"
    )
    with context.store.change() as cursor:
        add_measured(cursor, [replace(slow[0], job_id=9_999)])
    engine = taken(quoted(client, GROUPS))
    assert (engine["finished_backfills"], engine["is_corrected"]) == (5, True)
    assert engine["seconds"]["p50"] == pytest.approx(3 * model, rel=0.1)
    assert "in process: corrected by 5 finished backfills" in lines(client, f"{COST} {GROUPS}")
    forget(context)


def test_what_is_measured(parts: tuple[Context, Client]) -> None:
    """A view over many rows, by the work that was estimated for it; not one over a few, nor a sink."""
    context, client = parts
    context.jobs.measuring.run_once()
    forget(context)
    run(client, GROUPS)
    run(client, "CREATE MATERIALIZED VIEW small AS SELECT g, count(*) AS n FROM d GROUP BY g")
    run(client, "CREATE SINK si INTO target AS SELECT k, s FROM t")
    run(client, "DROP SINK si")
    run(client, "DROP MATERIALIZED VIEW small, v")
    context.jobs.measuring.run_once()
    assert wait_until(lambda: bool(context.jobs.measuring.measured()))  # the background may be faster
    [found] = context.jobs.measuring.measured()
    assert (found.kind, found.rows, found.start_s) == (IN_PROCESS, ROWS, 0.0)
    assert 0 < found.seconds < 60
    assert Estimate.load(found.work) == Estimate.load(quoted(client, GROUPS)["work"])
    forget(context)


def test_the_newest_are_kept(parts: tuple[Context, Client]) -> None:
    context, _ = parts
    for _ in range(2):
        with context.store.change() as cursor:
            add_measured(cursor, measured(KEPT // 2 + 10, STEADY, 1.0, Estimate()))
    assert len(load_measured(context.lake.cursor())) == KEPT
    forget(context)


def test_bands() -> None:
    """They are as wide as what was measured, and never narrower than is known."""
    work, engine = Estimate(read_rows=1e7, grouped=1e7), Engine(STEADY, "default", 2, 1 << 30)
    model = modelled_s(work, STEADY, 2)
    alone = quote(work, engine, [])
    assert alone.low < alone.middle == model < alone.high
    steady = quote(work, engine, [Finished(STEADY, 2, 2 * model, work)] * 10)
    assert steady.middle == pytest.approx(2 * model)
    assert steady.low < 0.9 * steady.middle and steady.high > 1.1 * steady.middle
    changing = quote(work, engine, [Finished(STEADY, 2, factor * model, work) for factor in [1] * 6 + [9] * 5])
    assert changing.middle == pytest.approx(model)  # the newest count
    uneven = quote(work, engine, [Finished(STEADY, 2, factor * model, work) for factor in [1, 3] * 10])
    assert uneven.low <= model < 3 * model <= uneven.high
    others = [Estimate(read_rows=1e7, grouped=1e7 + number) for number in range(1, 11)]
    varied = [Finished(STEADY, 2, factor * model, other) for factor, other in zip([1, 3] * 5, others, strict=True)]
    again = [*[Finished(STEADY, 2, model, others[0])] * 30, *varied]  # the same view, created again and again
    assert quote(others[0], engine, again).high < 1.5 * model
    assert quote(work, engine, again).high > 1.5 * model
    cold = quote(work, replace(engine, start_s=4.0), [])
    assert cold.middle == pytest.approx(model + 4)


def test_a_quote_without_time_to_count_is_a_guess(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparkwave.executor.backfill.input_statistics.LEAST_S", 0.0)
    monkeypatch.setattr("sparkwave.server.statements.quotes.COUNTED_S", -1.0)
    found = quoted(client, JOIN.replace("name 3", "name 24"))
    assert {each["rows"] for each in found["read"]} == {ROWS, 25}, "the lake's own counts"
    assert found["work"]["built"] == 0.3 * 25, "a guess of the rows that pass the filter"


def test_what_was_counted_is_kept_until_the_table_changes(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any time to count, the same quote is no guess, but one over changed rows is."""
    run(client, "CREATE TABLE changing (g int PRIMARY KEY, name varchar)")
    run(client, "INSERT INTO changing SELECT i, 'name ' || i FROM range(25) AS r (i)")
    join = JOIN.replace("JOIN d ON t.g = d.g", "JOIN changing AS d ON t.g = d.g")
    assert quoted(client, join)["work"]["built"] == 24
    monkeypatch.setattr("sparkwave.executor.backfill.input_statistics.LEAST_S", 0.0)
    monkeypatch.setattr("sparkwave.server.statements.quotes.COUNTED_S", -1.0)
    assert quoted(client, join)["work"]["built"] == 24
    run(client, "UPDATE changing SET name = 'name 3' WHERE g < 20")
    assert quoted(client, join)["work"]["built"] == 0.3 * 25
    run(client, "DROP TABLE changing")


def test_distinct_values_of_a_sample() -> None:
    """Keys in order, a few kinds, and values that come again now and then."""
    assert _extrapolated(500, 1000, 2, 100) == 100_000
    assert _extrapolated(800, 1000, 1.25, 100) == pytest.approx(100_000), "a part of another size"
    assert _extrapolated(7, 7, 2, 100) == 7
    assert 1_000 < _extrapolated(700, 1000, 2, 100) < 20_000
    assert _extrapolated(0, 0, 0, 100) == 0


@pytest.mark.long
def test_large_tables_are_sampled(tmp_path: Path) -> None:
    with opened(tmp_path / "lake") as (_, client):
        run(client, "CREATE TABLE t (k bigint PRIMARY KEY, g int)")
        run(client, "INSERT INTO t SELECT i, i % 100 FROM range(3000000) AS r (i)")
        found = quoted(
            client, "CREATE MATERIALIZED VIEW v AS SELECT g, count(*) AS n FROM t WHERE k % 2 = 0 GROUP BY g"
        )
        assert found["work"]["grouped"] == pytest.approx(1_500_000, rel=0.05)
        assert found["write"]["rows"] == pytest.approx(50, rel=0.1)
        by_key = quoted(
            client, "CREATE MATERIALIZED VIEW v AS SELECT k / 3 AS third, count(*) AS n FROM t GROUP BY k / 3"
        )
        assert by_key["write"]["rows"] == pytest.approx(1_000_000, rel=0.2)


SERVERLESS_ON = "cloud.serverless_backfill_enabled = true"


def limited(options: str) -> str:
    return GROUPS.replace(" AS", f" WITH ({options}) AS", 1)


def test_most_cost(client: Client) -> None:
    """A CREATE whose quote is over its limit is refused, before anything is stored or provisioned."""
    run(client, "ALTER SYSTEM SET serverless_backfill_enabled = true")
    for wrong in ("'much'", "'-1'", "'1e3'"):
        assert refused(client, limited(f"{SERVERLESS_ON}, backfill_max_cost = {wrong}")).sqlstate == "22023"
    error = refused(client, limited("backfill_max_cost = 1"))
    assert (error.sqlstate, error.message) == ("22023", "backfill_max_cost is for serverless backfills")
    create = limited(f"{SERVERLESS_ON}, backfill_max_cost = 0.0001")
    error = refused(client, create)
    assert (error.sqlstate, error.message) == ("22023", "backfill_max_cost needs the price of a core")
    run(client, "ALTER SYSTEM SET serverless_backfill_price_per_core_hour = 3.6")
    error = refused(client, create)
    assert error.sqlstate == "54000"
    assert re.fullmatch(r"the backfill would cost about [\d.]+, more than backfill_max_cost = 0.0001", error.message)
    found = quoted(client, create)
    assert found["max_cost"] == 0.0001 < taken(found)["cost"]["p50"]
    assert lines(client, f"{COST} {create}")[-1] == "backfill_max_cost: 0.00010"
    for name in ("serverless_backfill_enabled", "serverless_backfill_price_per_core_hour"):
        run(client, f"ALTER SYSTEM SET {name} = DEFAULT")


@pytest.mark.long
def test_a_backfill_that_costs_more_is_paused(tmp_path: Path) -> None:
    """Its group ends, and the reason is told; without the rate limit of 0 it goes on to its end."""
    with opened(tmp_path / "lake") as (context, client):
        run(client, "CREATE TABLE t (k int PRIMARY KEY, g int)")
        run(client, "INSERT INTO t SELECT i, i % 25 FROM range(1000000) AS r (i)")
        run(client, "ALTER SYSTEM SET serverless_backfill_enabled = true")
        run(client, "ALTER SYSTEM SET serverless_backfill_price_per_core_hour = 3600")
        run(client, "SET background_ddl = true")
        create = limited(f"{SERVERLESS_ON}, backfill_rate_limit = 1000, backfill_max_cost = 1000000")
        cheap = create.replace("1000000", "20")
        assert refused(client, cheap).sqlstate == "54000"
        run(client, create)
        [view] = [relation for relation in context.store.catalog.relations if relation.name == "v"]
        assert view.definition.count("backfill_max_cost") == 1
        run(client, "DROP MATERIALIZED VIEW v")
        # A quote that turns out wrong: with a price that rises meanwhile.
        run(client, "ALTER SYSTEM SET serverless_backfill_price_per_core_hour = 0.01")
        run(client, cheap)
        assert wait_until(lambda: bool(states(client)) and states(client)[-1] == ("READY",), 60)
        run(client, "ALTER SYSTEM SET serverless_backfill_price_per_core_hour = 36000")
        assert wait_until(lambda: (waiting(context) or "").startswith("paused: it has cost "), 30)
        assert re.fullmatch(r"paused: it has cost [\d.]+, more than backfill_max_cost = 20.00", waiting(context) or "")
        assert wait_until(lambda: states(client)[-1] == ("DESTROYED",), 30)
        assert run(client, "SELECT DISTINCT state FROM rw_catalog.rw_backfill_status") == [("PAUSED",)]
        run(client, "ALTER MATERIALIZED VIEW v SET BACKFILL_RATE_LIMIT TO DEFAULT")
        run(client, "WAIT")
        assert run(client, "SELECT sum(n) FROM v") == [(1_000_000,)]


def waiting(context: Context) -> str | None:
    return next((job.waiting for job in context.store.catalog.jobs if job.waiting is not None), None)


def states(client: Client) -> list[tuple[object, ...]]:
    return run(client, "SELECT state FROM rw_catalog.rw_spark_applications ORDER BY id")


@pytest.mark.long
def test_a_catalog_in_postgresql(tmp_path: Path) -> None:
    """What was measured is there after a restart."""
    postgres = Postgres()
    options: dict[str, Any] = {"catalog": postgres.conninfo(), "shared": tmp_path / "shared"}
    told = ("in process: 1 finished backfill, fewer than 5, so the times are the model's own",)
    server = Server(tmp_path / "data", **options)
    try:
        with server.connect() as session:
            session.execute("CREATE TABLE t (k int PRIMARY KEY, g int)")
            session.execute("INSERT INTO t SELECT i, i % 25 FROM range(30000) AS r (i)")
            session.execute(GROUPS)
            assert wait_until(lambda: told in session.execute(f"{COST} {GROUPS}").fetchall())
        server.stop()
        server = Server(tmp_path / "data", **options)
        with server.connect() as session:
            assert told in session.execute(f"{COST} {GROUPS}").fetchall()
    finally:
        server.kill()
        postgres.stop()
