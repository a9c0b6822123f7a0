"""Rows for which an expression of a view failed, and is NULL: each counts once, and ordinary NULLs do not."""

from __future__ import annotations

from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

import psycopg
import pytest
from query_sets import queries
from scrapes import scrape
from servers import Server, free_port, with_lake
from sqlglot import exp
from test_law import opened, run
from test_queries_page import catalog, plan
from test_view_errors import RAISING

from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor, Lake
from sparkwave.catalog.lake.storage import Storage
from sparkwave.catalog.names import system_table
from sparkwave.catalog.stores.compute_errors import (
    COMPUTE_ERRORS,
    ComputeErrors,
    add_errors,
    add_up,
    compute_errors,
)
from sparkwave.executor.epochs import checkpoints
from sparkwave.executor.epochs.delta_programs import new_checks, program, whole
from sparkwave.planner.bind.binder import data_type
from sparkwave.planner.functions.raising import raised

Connection = psycopg.Connection[Any]

TABLE = "(id int PRIMARY KEY, a int, b int, s varchar, f float8, k int)"
# Row 1 divides by zero, the text of row 2 is no number, row 3 has NULLs only, and of row 4 all is fine but NULL / 0.
ROWS = "(1, 1, 0, '1', 1, 1), (2, 2, 2, 'x', 0, 2), (3, 3, NULL, NULL, NULL, NULL), (4, NULL, 0, '7', 2, 1)"
MORE = "(11, 1, 0, '1', 1, 11), (12, 2, 2, 'x', 0, 12), (13, 3, NULL, NULL, NULL, NULL), (14, NULL, 0, '7', 2, 11)"
ZERO, TEXT = "division by zero", 'invalid input syntax for type integer: "x"'
# By query: how many of the four rows count, and why the last of them failed.
COUNTED = {
    "SELECT id, s::int AS x FROM t": (1, TEXT),
    "SELECT id, a / b AS x, a % b AS y, s::int AS z FROM t": (2, ZERO),
    "SELECT id, coalesce(s::int, 0) AS x, s::int IS NULL AS y FROM t": (1, TEXT),
    "SELECT id, ln(f) AS x FROM t": (1, "cannot take logarithm of zero"),
    "SELECT id FROM t WHERE s::int > 0": (1, TEXT),
    "SELECT id FROM t WHERE a + 2147483646 IS NULL": (2, "integer out of range"),
    "SELECT id FROM t WHERE a + 2147483646 > 5": (2, "integer out of range"),
    "SELECT id FROM t WHERE a > 1 AND s::int + 2147483640 > 0": (1, TEXT),
    "SELECT k, sum(s::int) AS x, count(*) AS n FROM t GROUP BY k": (1, TEXT),
    "SELECT k, count(*) AS n, max(a) FILTER (WHERE a / b > 0) AS x FROM t GROUP BY k": (1, ZERO),
    "SELECT k, stddev(a / b) AS x FROM t GROUP BY k": (1, ZERO),
    "SELECT k, count(DISTINCT a / b) AS x FROM t GROUP BY k": (1, ZERO),
    "SELECT k, array_agg(a ORDER BY a / b DESC) AS x FROM t GROUP BY k": (1, ZERO),
    "SELECT k, string_agg(DISTINCT (a / b)::text, ',') AS x FROM t GROUP BY k": (1, ZERO),
    "SELECT k, string_agg(s, ',' ORDER BY id) FILTER (WHERE a / b > 0) AS x FROM t GROUP BY k": (1, ZERO),
    "SELECT id, sum(a / b) OVER (PARTITION BY k) AS x FROM t": (1, ZERO),
    "SELECT id, row_number() OVER (PARTITION BY k ORDER BY id) AS n, max(a / b) OVER () AS x FROM t": (1, ZERO),
    "SELECT t.id, u.n FROM t JOIN u ON t.s::int = u.n": (1, TEXT),
    "SELECT id FROM t WHERE s::int > (SELECT max(n) - 100 FROM u)": (1, TEXT),
    "SELECT t.id, u.n FROM t JOIN u ON t.k % 10 = u.n AND u.n / t.b > 0": (2, ZERO),
    "SELECT t.id, u.n FROM t JOIN u ON (t.k % 10 = u.n AND u.n / t.b > 0) OR (t.k % 10 = u.n AND u.n < t.a)": (2, ZERO),
    "SELECT t.id, u.n FROM t LEFT JOIN u ON t.k % 10 = u.n AND u.n / t.b > 0": (2, ZERO),
    "SELECT t.id, u.n / t.b AS x FROM t JOIN u ON t.k % 10 = u.n": (2, ZERO),
    "SELECT id, s::int AS x FROM t UNION ALL SELECT id, a / b FROM t": (2, None),
}
UNCOUNTED = (
    "SELECT id, nullif(a, 1) AS x, a + b AS y, f / 2 AS z, CASE WHEN b <> 0 THEN a / b END AS w, s FROM t",
    "SELECT id FROM t WHERE b <> 0 AND a / b > 0",
    "SELECT id FROM t WHERE b = 0 OR b IS NULL OR a / b > 0",
    "SELECT k, avg(a) AS x, sum(b) AS y, avg(f) AS z FROM t GROUP BY k",
)


def counts(connection: Connection) -> dict[str, tuple[int, str | None]]:
    found = connection.execute("SELECT relation_name, errors, last_error, last_at <= now() FROM rw_compute_errors")
    rows = found.fetchall()
    assert all(is_past for *_, is_past in rows)
    return {name: (errors, last_error) for name, errors, last_error, _ in rows}


@pytest.mark.long
def test_each_row_counts_once_wherever_it_fails(in_process_server: Server) -> None:
    with in_process_server.connect() as connection:
        connection.execute("ALTER SYSTEM SET refresh_mode = incremental")
        connection.execute(f"CREATE TABLE t {TABLE}")
        connection.execute(f"INSERT INTO t VALUES {ROWS}")
        connection.execute("CREATE TABLE u (n int PRIMARY KEY)")
        connection.execute("INSERT INTO u VALUES (1), (2), (7)")
        warnings: list[str] = []
        connection.add_notice_handler(
            lambda sent: warnings.append(str(sent.message_primary)) if sent.severity == "WARNING" else None
        )
        for number, query in enumerate((*COUNTED, *UNCOUNTED)):
            warnings.clear()
            connection.execute(f"CREATE MATERIALIZED VIEW v{number} AS {query}")
            rows, reason = COUNTED.get(query, (0, None))
            what = (
                "1 row had an expression that failed and is"
                if rows == 1
                else f"{rows} rows had expressions that failed and are"
            )
            assert len(warnings) == bool(rows), query
            assert not rows or warnings[0].startswith(f"{what} NULL: {reason or ''}"), query
        connection.execute("CREATE SINK sunk AS SELECT id FROM t WHERE s::int > 0 WITH (connector = 'blackhole')")
        once = {"sunk": (1, TEXT)} | {f"v{number}": expected for number, expected in enumerate(COUNTED.values())}
        assert agree(counts(connection), once, 1)
        connection.execute(f"INSERT INTO t VALUES {MORE}")
        connection.execute("FLUSH")
        assert agree(counts(connection), once, 2)
        # What goes does not count, nor what is read again, and a row that is another now does.
        connection.execute("DELETE FROM t WHERE id IN (2, 12)")
        connection.execute("INSERT INTO u VALUES (99)")
        connection.execute("FLUSH")
        assert agree(counts(connection), once, 2)
        connection.execute("UPDATE t SET a = 5 WHERE id = 1")
        connection.execute("FLUSH")
        assert counts(connection)["v1"] == (5, ZERO)
        assert counts(connection)["v0"] == (2, TEXT)
        connection.execute("DROP MATERIALIZED VIEW v0")
        assert "v0" not in counts(connection)


def agree(found: dict[str, tuple[int, str | None]], once: dict[str, tuple[int, str | None]], times: int) -> bool:
    assert {name: errors for name, (errors, _) in found.items()} == {
        name: times * errors for name, (errors, _) in once.items()
    }
    assert all(found[name][1] == reason for name, (_, reason) in once.items() if reason is not None)
    return True


def test_a_row_counts_where_a_query_of_it_fails(tmp_path: Path) -> None:
    with opened(tmp_path / "lake", backfill_engine="auto") as (context, client):
        run(
            client,
            "CREATE TABLE h (id int PRIMARY KEY, a int, d date, ts timestamp, s varchar, p varchar, f float8,"
            " q numeric, sm smallint, ar int[], iv interval, j jsonb, d2 date, b varchar)",
        )
        run(
            client,
            "INSERT INTO h VALUES (1, 2147483647, 'infinity'::date, '9999-12-31', '(', '(', 1e300,"
            " 9999999999999999999, 32767, '{1}', '-1 day', '1', '9999-12-31', 'b\\'),"
            " (2, 5, '2020-01-01', '2020-01-01', '1', 'b', 0, 2, 5, '{1}', '1 day', '{\"a\": 1}', '2020-01-01', '1')",
        )
        listed = ", ".join(f"{expression} AS x{number}" for number, expression in enumerate(RAISING))
        run(client, f"CREATE MATERIALIZED VIEW v AS SELECT id, {listed} FROM h")
        catalog = context.store.catalog
        [view] = (relation for relation in catalog.relations if relation.name == "v")
        root = context.plans.view(view, catalog).plan.root
        columns = ", ".join(
            f'"{field.name.partition(".")[2]}"::{field.type.duckdb()} AS "{field.name}"' for field in root.input.fields
        )
        found, expected = {}, {}
        for expression, item in zip(RAISING, root.items[1:], strict=False):
            condition = raised(exp.cast(item.expression, data_type(item.type))) or "FALSE"
            query = f"SELECT count(*) FROM (SELECT {columns} FROM {catalog.by_id[view.upstreams[0]].lake_name}) WHERE"
            found[expression] = context.lake.cursor().execute(f"{query} {condition}").fetchone()
            failed = [fails(client, f"SELECT {expression} FROM h WHERE id = {id_}") for id_ in (1, 2)]
            expected[expression] = (sum(failed),)
    assert found == expected


def fails(client: Any, query: str) -> bool:
    try:
        run(client, query)
    except Error:
        return True
    return False


def test_a_view_that_is_computed_in_full_counts_what_arrives(tmp_path: Path) -> None:
    with opened(tmp_path / "lake", backfill_engine="auto", refresh_mode="full") as (context, client):
        run(client, f"CREATE TABLE t {TABLE}")
        run(client, f"INSERT INTO t VALUES {ROWS}")
        run(client, "CREATE MATERIALIZED VIEW v AS SELECT k, sum(s::int) AS x FROM t WHERE a / b IS NULL GROUP BY k")
        run(client, "CREATE MATERIALIZED VIEW j AS SELECT t.id FROM t JOIN t AS u ON t.s::int = u.id")
        counted = "SELECT relation_name, errors FROM rw_catalog.rw_compute_errors ORDER BY 1"
        assert run(client, counted) == [("j", 1), ("v", 1)]
        run(client, f"INSERT INTO t VALUES {MORE}")
        context.coordinator.flush(lambda: False)
        assert run(client, counted) == [("j", 2), ("v", 2)]
        run(client, "DELETE FROM t WHERE id < 10")
        context.coordinator.flush(lambda: False)
        assert run(client, counted) == [("j", 2), ("v", 2)]


def test_an_epoch_that_is_tried_again_counts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path / "lake", backfill_engine="auto") as (context, client):
        run(client, "CREATE TABLE t (id int PRIMARY KEY, s varchar)")
        run(client, "CREATE MATERIALIZED VIEW v AS SELECT id FROM t WHERE s::int > 0")
        run(client, "INSERT INTO t VALUES (1, 'x'), (2, '')")
        failed, store = [], checkpoints.store_epoch

        def store_epoch(cursor: Cursor, epoch: Any) -> None:
            if not failed:
                failed.append(epoch)
                raise OSError("no")
            store(cursor, epoch)

        monkeypatch.setattr(checkpoints, "store_epoch", store_epoch)
        for _ in range(2):
            context.coordinator.flush(lambda: False)
        assert failed
        assert run(client, "SELECT errors FROM rw_catalog.rw_compute_errors") == [(2,)]


def test_a_restart_keeps_what_was_counted_and_others_do_not_see_why(tmp_path: Path) -> None:
    port = free_port()
    server = Server(tmp_path / "data", metrics=f"127.0.0.1:{port}")
    try:
        with server.connect() as connection:
            connection.execute("ALTER SYSTEM SET backfill_engine = auto")
            connection.execute("CREATE TABLE t (id int PRIMARY KEY, s varchar)")
            connection.execute("INSERT INTO t VALUES (1, 'x'), (2, '2'), (3, NULL)")
            connection.execute("CREATE MATERIALIZED VIEW v AS SELECT id, s::int AS x FROM t")
            connection.execute("INSERT INTO t VALUES (4, 'y')")
            connection.execute("FLUSH")
            connection.execute("CREATE USER other")
        server.kill()
        server = Server(tmp_path / "data", metrics=f"127.0.0.1:{port}")
        with server.connect() as connection, server.connect(user="other") as other:
            assert counts(connection) == {"v": (2, 'invalid input syntax for type integer: "y"')}
            assert counts(other) == {"v": (2, None)}
            assert scrape(port).value("sparkwave_compute_errors_total", relation="dev.public.v") == 2
            connection.execute("ALTER MATERIALIZED VIEW v AS SELECT id, 10 / (id - 1) AS x FROM t")
            assert counts(connection) == {"v": (1, ZERO)}
            connection.execute("ALTER MATERIALIZED VIEW v AS SELECT id, 10 / id AS x FROM t")
            assert counts(connection) == {}
            connection.execute("INSERT INTO t VALUES (0, 'z')")
            connection.execute("FLUSH")
            assert counts(connection) == {"v": (1, ZERO)}
    finally:
        server.kill()


def test_many_counts_are_added_up(tmp_path: Path) -> None:
    lake = Lake(Storage(with_lake(tmp_path)))
    try:
        with lake.transaction(lake.cursor()) as cursor:
            for number in range(120):
                add_errors(cursor, number % 2, ComputeErrors(number, f"reason {number}"))
        before = compute_errors(lake.cursor())
        assert before[0][0].rows == sum(range(0, 120, 2))
        for _ in range(2):
            with lake.transaction(lake.cursor()) as cursor:
                add_up(cursor, system_table(COMPUTE_ERRORS.name))
            assert lake.cursor().execute("SELECT count(*) FROM lake.sparkwave.compute_errors").fetchone() == (2,)
            assert compute_errors(lake.cursor()).keys() == before.keys()
            assert compute_errors(lake.cursor())[1][0].rows == before[1][0].rows
    finally:
        lake.close()


@pytest.mark.spark
@pytest.mark.long
def test_what_spark_computes_counts_too(tmp_path: Path) -> None:
    queries = list(COUNTED)[:2] + list(COUNTED)[7:9] + list(COUNTED)[11:12]
    with opened(tmp_path / "lake", streaming_engine="spark") as (context, client):
        for statement in (
            f"CREATE TABLE t {TABLE}",
            f"INSERT INTO t VALUES {ROWS}",
            "CREATE TABLE u (n int PRIMARY KEY)",
            "INSERT INTO u VALUES (1), (2), (7)",
            *(f"CREATE MATERIALIZED VIEW v{number} AS {query}" for number, query in enumerate(queries)),
        ):
            run(client, statement)
        once = {f"v{number}": COUNTED[query] for number, query in enumerate(queries)}
        for times in (1, 2):
            with context.lake.cursor() as cursor:
                found = compute_errors(cursor)
            names = {relation.id: relation.name for relation in context.store.catalog.relations}
            counted = {names[id_]: (errors.rows, errors.message) for id_, (errors, _) in found.items()}
            assert agree(counted, once, times)
            run(client, f"INSERT INTO t VALUES {MORE}")
            context.coordinator.flush(lambda: False)


def test_numbers_whose_digits_fit_are_not_looked_through(tmp_path: Path) -> None:
    """The largest values of columns of so many digits have their values in a view, and of more digits NULL."""
    a, b, c, d = map(Decimal, (f"{'9' * 13}.99", f"{'9' * 8}.9999", f"{'9' * 22}.99", f"{'9' * 15}.99"))
    with localcontext() as exact:
        exact.prec = 60
        values = (a * (1 + a), a + b * 1000, (a + b) * Decimal("1.5"), 9000 * (c + 1), d + d, -d - d, d + d + 1, b * d)
    fits = "a * (1 + a), a + b * 1000, -(-a - b) * 1.5, (1000 + 8000) * (c + 1), d + d, -d - d, d + d + 1, b * d"
    named = ", ".join(f"{part} AS x{number}" for number, part in enumerate(fits.split(", ")))
    with opened(tmp_path / "lake") as (context, client):
        types = "a numeric(15, 2), b numeric(12, 4), c numeric(24, 2), d numeric(17, 2)"
        run(client, f"CREATE TABLE t (id int PRIMARY KEY, {types})")
        run(client, f"INSERT INTO t VALUES (1, {a}, {b}, {c}, {d})")
        run(client, f"CREATE MATERIALIZED VIEW v AS SELECT {named} FROM t")
        run(client, "CREATE MATERIALIZED VIEW w AS SELECT c * c AS x FROM t")
        assert run(client, "SELECT * FROM v") == [values]
        assert run(client, "SELECT * FROM w") == [(None,)]
        with context.lake.cursor() as cursor:
            assert [errors.rows for errors, _ in compute_errors(cursor).values()] == [1]
    checks = new_checks(plan(queries("tpch")["q03"], catalog("tpch", "")))
    assert not [check for check in checks if "i0_new" in check.count]


def test_a_sum_is_of_a_column_as_it_is_where_it_has_its_scale(tmp_path: Path) -> None:
    first, *_ = whole(plan(queries("tpch")["q18"], catalog("tpch", "")))
    assert 'SUM("lineitem.l_quantity")' in first.query
    with opened(tmp_path / "lake") as (context, client):
        run(
            client, "CREATE TABLE t (k int PRIMARY KEY, a numeric(15, 2), b numeric(28, 0), c numeric, d numeric(9, 0))"
        )
        run(client, "CREATE MATERIALIZED VIEW v AS SELECT sum(a) AS a, sum(b) AS b, sum(c) AS c, sum(d) AS d FROM t")
        run(client, f"INSERT INTO t VALUES {', '.join(f'({k}, {A}, {B}, {C}, {D})' for k in range(30))}")
        run(client, "INSERT INTO t (k) VALUES (30)")
        context.coordinator.flush(lambda: False)
        run(client, "CREATE MATERIALIZED VIEW w AS SELECT sum(a) AS a, sum(b) AS b, sum(c) AS c, sum(d) AS d FROM t")
        with localcontext() as exact:
            exact.prec = 60
            totals = [tuple(30 * Decimal(value) for value in (A, B, C, D))]
        assert run(client, "SELECT * FROM v") == run(client, "SELECT * FROM w") == totals


# The largest values of numeric(15, 2) and (9, 0), and such that thirty add up to no more than a numeric holds.
A, B, C, D = f"{'9' * 13}.99", f"1{'9' * 26}", f"1{'9' * 17}.0000000001", "9" * 9


@pytest.mark.parametrize("name", ["q07", "q19"])
def test_no_more_pairs_are_looked_through_than_the_join_looks_at(name: str) -> None:
    """The branches of these ORs have the equality in common, or it is beside them: without it all pairs would meet."""
    query = queries("tpch")[name].replace("p_size BETWEEN", "p_size + 1 BETWEEN")  # may raise
    made = plan(query, catalog("tpch", ""))
    checks = new_checks(made) + program(made, frozenset({"i0"}), retracts=True).checks
    assert checks
    assert not [check for check in checks if "CROSS JOIN" in check.count]
