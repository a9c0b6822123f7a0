"""Every operator by name, on either engine: filled, changed in a few epochs, and equal to its query after each.

`tests/test_differential.py` says the same of random views; here is one view for each operator that Spark runs too.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from marking import long_but
from test_law import check, no_failures, opened, run

TABLES = (
    "CREATE TABLE t (a int, b int, s varchar, at timestamp)",
    "CREATE TABLE u (k int PRIMARY KEY, b int, s varchar)",
    "CREATE TABLE arrays (k int PRIMARY KEY, items int[], unread STRUCT<a int, b varchar>)",
)

OPERATORS: dict[str, str] = {
    "filter": "SELECT a, b FROM t WHERE a > 2 AND s IS NOT NULL",
    "inner": "SELECT t.a, u.s AS us FROM t JOIN u ON t.b = u.k",
    "left": "SELECT t.a, u.s AS us FROM t LEFT JOIN u ON t.b = u.k AND u.b > 1",
    "right": "SELECT t.a, u.s AS us FROM t RIGHT JOIN u ON t.b = u.k",
    "full": "SELECT t.a, u.s AS us FROM t FULL JOIN u ON t.b = u.k",
    "as_of": "SELECT t.a, t.at, u.b FROM t ASOF JOIN u ON t.s = u.s AND t.a >= u.b",
    "as_of_left": "SELECT t.b, u.b AS ub FROM t ASOF LEFT JOIN u ON u.k = t.b AND u.b > t.a - 1",
    "as_of_counted": "SELECT u.b, count(*) AS n FROM t ASOF LEFT JOIN u ON t.s = u.s AND t.a < u.b GROUP BY u.b",
    "lateral": """SELECT t.a, l.n, l.hi FROM t, LATERAL (SELECT count(*) AS n, max(u.b) AS hi FROM u WHERE u.s = t.s)
                  AS l""",
    "lateral_top_n": """SELECT t.a, l.k FROM t LEFT JOIN LATERAL (SELECT k FROM u WHERE u.s = t.s ORDER BY b DESC, k
                        LIMIT 2) AS l ON true""",
    "lateral_values": """SELECT t.a, l.n, l.total FROM t, LATERAL (SELECT u.s, count(*) AS n, sum(u.b + t.b) AS total
                         FROM u WHERE u.k < t.a GROUP BY u.s) AS l WHERE l.n > 1""",
    "lateral_rows": """SELECT t.s, v.x, v.y, w.z FROM t, LATERAL (VALUES (t.a, 'a'), (t.b, 'b')) AS v(x, y),
                       LATERAL (SELECT v.x + 1 AS z WHERE v.x > 1) AS w""",
    "lateral_union": """SELECT t.a, l.x FROM t, LATERAL (SELECT k AS x FROM u WHERE u.b = t.b UNION
                        SELECT b FROM u WHERE u.k > t.a) AS l""",
    "lateral_window": """SELECT t.a, l.k, l.r FROM t JOIN LATERAL (SELECT k, rank() OVER (ORDER BY b) AS r FROM u
                         WHERE u.s = t.s) AS l ON l.r < 3""",
    "scalar_range": """SELECT a, (SELECT count(*) FROM u WHERE u.b < t.b) AS n, (SELECT max(u.k - t.a) FROM u) AS m
                       FROM t""",
    "scalar_nearest": "SELECT a, (SELECT s FROM u WHERE u.k <= t.a ORDER BY k DESC LIMIT 1) AS s FROM t",
    "array_of_rows": "SELECT a, ARRAY(SELECT k FROM u WHERE u.b = t.b ORDER BY k DESC) AS ks FROM t",
    "not_equal": "SELECT t.a, u.k FROM t JOIN u ON t.a < u.k",
    "null_safe": "SELECT t.a, u.k FROM t JOIN u ON t.b IS NOT DISTINCT FROM u.b",
    "self": "SELECT x.a, y.b FROM t AS x JOIN t AS y ON x.a = y.b",
    "semi": "SELECT a, b FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.b AND u.b <> t.a)",
    "anti": "SELECT a, b FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.b)",
    "not_in": "SELECT a, b FROM t WHERE b NOT IN (SELECT b FROM u)",
    "scalar": "SELECT a, (SELECT max(k) FROM u WHERE u.b = t.b) AS m FROM t",
    "dynamic": "SELECT a, b FROM t WHERE a > (SELECT min(k) FROM u)",
    "group": "SELECT s, count(*) AS n, sum(a) AS x, min(b) AS lo, max(b) AS hi, bool_or(a > 3) AS o FROM t GROUP BY s",
    "average": """SELECT s, avg(a) AS x, avg(DISTINCT b) AS d, avg(a) FILTER (WHERE b > 1) AS f, avg(a) * 1.5 AS m
                  FROM t GROUP BY s HAVING avg(a) > 0.5""",
    "average_over": "SELECT a, s, avg(b) OVER (PARTITION BY s ORDER BY a) AS x FROM t",
    "global": "SELECT count(*) AS n, sum(a) AS x, max(b) AS hi FROM t",
    "distinct_count": "SELECT s, count(DISTINCT a) AS n FROM t GROUP BY s",
    "distinct_counts": """SELECT s, count(DISTINCT a) AS n, count(DISTINCT b) FILTER (WHERE a > 2) AS m, count(*) AS c,
                          max(b) AS hi, avg(a) AS x, count(DISTINCT b) AS d FROM t GROUP BY s""",
    "distinct_count_of_all": "SELECT count(DISTINCT s) AS n, count(DISTINCT a + b) AS m, min(a) AS lo FROM t",
    "distinct_count_and_list": """SELECT s, count(DISTINCT a) AS n, string_agg(b::varchar, ',' ORDER BY b) AS l FROM t
                                  GROUP BY s""",
    "rollup": "SELECT s, b, count(*) AS n, grouping(s) AS g FROM t GROUP BY ROLLUP (s, b)",
    "distinct": "SELECT DISTINCT a, s FROM t",
    "distinct_on": "SELECT DISTINCT ON (s) s, a, b FROM t ORDER BY s, a DESC, b",
    "union": "SELECT a FROM t UNION SELECT k FROM u",
    "except": "SELECT a FROM t EXCEPT SELECT k FROM u",
    "intersect_all": "SELECT a FROM t INTERSECT ALL SELECT k FROM u",
    "top_n": "SELECT a, b FROM t ORDER BY a DESC, b LIMIT 4",
    "top_n_offset": "SELECT a, b FROM t ORDER BY a DESC, b LIMIT 3 OFFSET 1",
    "ties": "SELECT a, b AS c FROM t ORDER BY a DESC, s NULLS FIRST FETCH FIRST 3 ROWS WITH TIES",
    "ties_of_groups": "SELECT s, count(*) AS n FROM t GROUP BY s ORDER BY n DESC, 1 FETCH FIRST ROW WITH TIES",
    "sessions": """SELECT *, count(*) OVER w AS n, first_value(a) OVER w AS f FROM t AS x WHERE a <> 3
                   WINDOW w AS (PARTITION BY s ORDER BY x.b SESSION WITH GAP 2)""",
    "group_top_n": """SELECT a, s FROM (SELECT a, s, row_number() OVER (PARTITION BY s ORDER BY a DESC) AS rn FROM t)
                      AS r WHERE rn <= 2""",
    "first_of_group": """SELECT a, b FROM (SELECT *, row_number() OVER (PARTITION BY s ORDER BY a DESC) AS rn FROM t)
                         AS r WHERE rn = 1 AND b > 1""",
    "second_of_group": """SELECT a, s FROM (SELECT a, s, row_number() OVER (PARTITION BY s ORDER BY a DESC) AS rn
                          FROM t) AS r WHERE rn = 2 AND rn <= 3""",
    "places": """SELECT a, rn FROM (SELECT a, row_number() OVER (PARTITION BY s ORDER BY a DESC) AS rn FROM t) AS r
                 WHERE rn <= 2""",
    "window": """SELECT a, s, rank() OVER w AS r, lag(a) OVER w AS l, sum(a) OVER (PARTITION BY s) AS x FROM t
                 WINDOW w AS (PARTITION BY s ORDER BY a)""",
    "ignored_nulls": """SELECT a, last_value(b) OVER w AS l, last_value(b) IGNORE NULLS OVER w AS k,
                        first_value(b IGNORE NULLS) OVER (PARTITION BY s ORDER BY a DESC) AS f, lag(b) OVER w AS g,
                        lag(b) IGNORE NULLS OVER w AS h FROM t WINDOW w AS (PARTITION BY s ORDER BY a)""",
    "side_by_side": "SELECT s, generate_series(1, a) AS i, unnest(ARRAY[a, b]) AS e FROM t",
    "rows_of_rows": "SELECT a, unnest(regexp_matches(s || 'ab', '[ab]', 'g')) AS m FROM t",
    "unnest": "SELECT k, e FROM arrays, unnest(items) AS e",
    "series": "SELECT k, generate_series(1, k) AS i FROM u",
    "values": "SELECT t.a, v.name FROM t JOIN (VALUES (1, 'one'), (2, 'two')) AS v (n, name) ON t.a = v.n",
    "tumble": """SELECT window_start, count(*) AS n FROM TUMBLE(t, at, INTERVAL '1' MINUTE) GROUP BY window_start""",
    "hop": """SELECT window_start, window_end, sum(a) AS x FROM HOP(t, at, INTERVAL '1' MINUTE, INTERVAL '2' MINUTE)
              GROUP BY window_start, window_end""",
    "cte_twice": """WITH c AS (SELECT s, count(*) AS n FROM t GROUP BY s)
                    SELECT x.s, y.n FROM c AS x JOIN c AS y ON x.n = y.n""",
    "cte_of_cte": """WITH c AS (SELECT s, b, max(a) AS m FROM t GROUP BY s, b),
                     d AS (SELECT s, sum(m) AS m FROM c GROUP BY s)
                     SELECT d.s, e.m AS most, c.b FROM d JOIN d AS e ON d.s = e.s LEFT JOIN c ON c.s = d.s""",
    "not_in_groups": "SELECT a FROM t WHERE a NOT IN (SELECT k FROM u GROUP BY k HAVING count(*) < 2)",
}

# Left to DuckDB: rows.
STRUCT_TABLES = (
    "CREATE TABLE p (k int PRIMARY KEY, x STRUCT<a int, b STRUCT<c varchar, d numeric>>, y STRUCT<a int, s varchar>)",
    "CREATE TABLE q (z STRUCT<a int, s varchar>, many STRUCT<a int, s varchar>[])",
)
STRUCTS: dict[str, str] = {
    "fields": "SELECT k, (x).a AS xa, (x).b.c, (p.x).b, (y).* FROM p AS p",
    "compared": "SELECT k FROM p WHERE y = (1, 'one') OR y < (0, 'z') OR (x).b IS NOT DISTINCT FROM ROW('c', 1.5)",
    "made": "SELECT k, ROW(k, (x).b.c) AS r, (k, y)::STRUCT<i bigint, j STRUCT<u varchar, v varchar>> AS s FROM p",
    "taken_apart": "SELECT (r).f2 AS second, ((r).f3).s FROM (SELECT ROW(k, (x).a, y) AS r FROM p) AS made",
    "grouped_rows": "SELECT y, count(*) AS n, min(x) AS lo, max((x).b) AS hi FROM p GROUP BY y",
    "distinct_rows": "SELECT DISTINCT y FROM p",
    "joined_rows": "SELECT k, (z).s FROM p JOIN q ON y = z",
    "left_rows": "SELECT k, z FROM p LEFT JOIN q ON y IS NOT DISTINCT FROM z",
    "in_rows": "SELECT k FROM p WHERE y NOT IN (SELECT z FROM q WHERE z IS NOT NULL)",
    "cast_joined": "SELECT k FROM p JOIN q ON (x).a = (z).a AND ROW((x).a, (y).s)::STRUCT<a int, s varchar> = z",
    "union_rows": "SELECT y FROM p UNION SELECT z FROM q",
    "except_rows": "SELECT z FROM q EXCEPT ALL SELECT y FROM p",
    "top_rows": "SELECT k, x FROM p ORDER BY x DESC, k LIMIT 3",
    "first_rows": "SELECT DISTINCT ON (y) y, k FROM p ORDER BY y, k",
    "window_rows": """SELECT k, y, lag(y) OVER (ORDER BY k) AS l,
                      row_number() OVER (PARTITION BY y ORDER BY k) AS n FROM p""",
    "arrays_of_rows": "SELECT (e).a, (e).s, (many[1]).a AS f FROM q, unnest(many) AS e",
    "collected": "SELECT (z).a, array_agg((z).s ORDER BY (z).s) AS s, count(DISTINCT z) AS n FROM q GROUP BY (z).a",
    "row_text": """SELECT k, x::varchar AS t, coalesce(y, (0, 'none')) AS c,
                   CASE WHEN k > 2 THEN y ELSE (9, NULL) END AS w FROM p""",
    "row_null": "SELECT k FROM p WHERE x IS NULL OR (y).s IS NULL",
}
STRUCT_FIRST = (
    "INSERT INTO p VALUES (1, (1, ('c', 1.5)), (1, 'one')), (2, ROW(NULL, NULL), ROW(NULL, 'one')), (3, NULL, NULL), "
    "(4, (1, ('c', 2.5)), (1, 'one')), (5, (0, (NULL, NULL)), (NULL, NULL))",
    "INSERT INTO q VALUES ((1, 'one'), ARRAY[ROW(1, 'x'), NULL, ROW(NULL, 'y')]), ((1, 'one'), NULL), (NULL, "
    "ARRAY[ROW(2, 'z')]), ((NULL, 'one'), ARRAY[]::STRUCT<a int, s varchar>[])",
)
STRUCT_EPOCHS = (
    (
        "INSERT INTO p VALUES (6, (2, ('d', 0)), (2, 'two'))",
        "INSERT INTO q SELECT y, ARRAY[y] FROM p WHERE k IN (5, 6)",
    ),
    ("UPDATE p SET y = (1, 'one') WHERE k IN (2, 6)", "UPDATE q SET z = (7, 'seven') WHERE (z).a IS NULL"),
    ("DELETE FROM q WHERE z = (1, 'one')", "DELETE FROM p WHERE (x).a = 1"),
    ("DELETE FROM p",),
    ("INSERT INTO p VALUES (1, (1, ('c', 1.5)), (7, 'seven')), (2, '(1,\"(c,1.5)\")', '(7,seven)')",),
)

FIRST = (
    "INSERT INTO t SELECT i % 7, i % 5, substr('abc', i % 4, 1), TIMESTAMP '2024-02-29 23:58' + i * INTERVAL '20 s' "
    "FROM generate_series(1, 20) AS g(i)",
    "INSERT INTO t VALUES (NULL, NULL, NULL, NULL), (3, NULL, 'a', NULL)",
    "INSERT INTO u SELECT i, i % 3, substr('xyz', i % 3 + 1, 1) FROM generate_series(1, 5) AS g(i)",
    "INSERT INTO arrays VALUES (1, ARRAY[3, NULL, 3], (1, 'one')), (2, ARRAY[]::int[], (NULL, 'two')), (3, NULL, NULL)",
)
EPOCHS = (
    (
        "INSERT INTO t VALUES (9, 2, 'a', '2024-02-29 23:59:59'), (0, 9, 'z', NULL)",
        "INSERT INTO u VALUES (9, NULL, NULL)",
    ),
    (
        "UPDATE t SET b = 3 WHERE a = 4",
        "UPDATE u SET b = b + 1 WHERE k = 2",
        "UPDATE arrays SET items = ARRAY[7] WHERE k = 2",
    ),
    ("DELETE FROM t WHERE a > 5", "DELETE FROM u WHERE k IN (2, 9)", "DELETE FROM arrays WHERE k = 1"),
    ("DELETE FROM t", "DELETE FROM u"),
    ("INSERT INTO t VALUES (1, 1, 'a', '2024-03-01 00:00:00'), (1, 1, 'a', '2024-03-01 00:00:00')",),
)


def obey(directory: Path, names: tuple[str, ...], **parameters: str) -> None:
    maintain(directory, (*TABLES, *FIRST), {name: OPERATORS[name] for name in names}, EPOCHS, **parameters)


def maintain(
    directory: Path,
    first: tuple[str, ...],
    queries: dict[str, str],
    epochs: tuple[tuple[str, ...], ...],
    **parameters: str,
) -> None:
    with no_failures(), opened(directory, **parameters) as (context, client):
        for statement in first:
            run(client, statement)
        for name, query in queries.items():
            run(client, f'CREATE MATERIALIZED VIEW "{name}_" AS {query}')
        views = {f'"{name}_"': query for name, query in queries.items()}
        check(client, views, "created")
        for number, statements in enumerate(epochs):
            for statement in statements:
                run(client, statement)
            context.coordinator.flush(lambda: False)
            check(client, views, f"epoch {number}")


@pytest.mark.parametrize("mode", long_but(["incremental"], ["incremental", "full"]))
def test_on_duckdb(tmp_path: Path, mode: str) -> None:
    obey(tmp_path / "lake", tuple(OPERATORS), streaming_engine="duckdb", backfill_engine="auto", refresh_mode=mode)


@pytest.mark.long
@pytest.mark.parametrize("mode", ["incremental", "full"])
def test_rows_on_duckdb(tmp_path: Path, mode: str) -> None:
    parameters = {"streaming_engine": "duckdb", "backfill_engine": "auto", "refresh_mode": mode}
    maintain(tmp_path / "lake", (*STRUCT_TABLES, *STRUCT_FIRST), STRUCTS, STRUCT_EPOCHS, **parameters)


SAMPLE = ("full", "top_n")


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.timeout(600)
def test_sample_on_spark(tmp_path: Path) -> None:
    obey(tmp_path / "lake", SAMPLE, streaming_engine="spark")


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.timeout(3000)
def test_all_on_spark(tmp_path: Path) -> None:
    """Filled in slices of a few rows."""
    obey(tmp_path / "lake", tuple(OPERATORS), streaming_engine="spark", backfill_slice_rows="4")
