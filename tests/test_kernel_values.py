"""A view of values at the edges of their types is the same, filled in process or on Spark, and so is its upkeep."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from test_law import as_bag, opened, run

from sparkwave.catalog.names import quote
from sparkwave.executor.spark import spark_engine
from sparkwave.server.dispatch import Client

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(900)]

COLUMNS = """k int PRIMARY KEY, "A b" int, "A.b" int, filename varchar, file_row_number bigint, one int, "ä" varchar,
    i interval, j jsonb, s STRUCT<a int, b STRUCT<c varchar, d timestamptz>>, l int[], t varchar[], n numeric(38, 0),
    m numeric(38, 19), u numeric, ts timestamp, tz timestamptz, d date, ti time, b bytea, f double precision, r real,
    x boolean"""
NINES = "9" * 38
VALUES = (
    f"""(1, 1, 2, 'f', 3, 1, 'ß', INTERVAL '-1 month -2 days -00:00:00.000001', '{{"a": [1, null, {{}}]}}',
    ROW(1, ROW('x', '2024-01-01 00:00:00+00')), ARRAY[1, NULL, -2147483648], ARRAY['', NULL, 'a,"b"'], {NINES},
    -{"9" * 19}.{"9" * 19}, 0.0000000001, '0001-01-01 00:00:00 BC', 'infinity', '4713-01-01 BC', '23:59:59.999999',
    '\\x00ff', 'NaN', 'Infinity', true)""",
    f"""(2, NULL, 0, '', -9223372036854775808, 0, '', INTERVAL '-178000000 years', 'null', NULL, ARRAY[]::int[], NULL,
    -{NINES}, 0, -{"9" * 19}.{"9" * 10}, '-infinity', '-infinity', '-infinity', '00:00:00', '\\x', '-Infinity', '-0.0',
    false)""",
    """(3, 2147483647, -2147483648, repeat('x', 3000000), 9223372036854775807, NULL, repeat('ü', 100000), INTERVAL '0',
    '[1.50, "\\u00e9"]', ROW(NULL, ROW(NULL, NULL)), NULL, ARRAY[NULL]::varchar[], 1, 1, 1, 'infinity',
    '290000-01-01 00:00:00+00', 'infinity', '12:00', '\\xde', 5e-324, 1e-45, NULL)""",
    "(4" + ", NULL" * 22 + ")",
    """(5, 0, 0, 'f', 0, 0, 'z', INTERVAL '1 month -31 days', '{}', ROW(0, NULL), ARRAY[0], ARRAY['NULL'], 0, 0, 0,
    '1969-12-31 23:59:59.999999', '1969-12-31 23:59:59.999999+00', '1969-12-31', '00:00:00.000001', '\\x00', -0.0,
    1.1, true)""",
)
VIEWS = {
    "copied": "SELECT * FROM v",
    "computed": """SELECT k, i + INTERVAL '1 day' AS i, j -> 'a' AS j, (s).b AS sb, l || 7 AS l, -n AS n, m / 3 AS m,
        date_trunc('month', ts) AS ts, filename || '!' AS filename, "A b" + one AS "Sum", f * 2 AS f FROM v""",
    "grouped": """SELECT filename, one, count(*) AS c, count(DISTINCT i) AS ci, max(n) AS n, max(m) AS m, min(ts) AS ts,
        max(tz) AS tz, min(d) AS d, max(i) AS i, array_agg(k ORDER BY k) AS "A b" FROM v GROUP BY filename, one""",
    "by_interval": "SELECT i, s, l, count(*) AS c FROM v GROUP BY i, s, l",
    "joined": 'SELECT a.k, b.k AS o, a."A b", a.i, a.ts, b.n FROM v a LEFT JOIN v b ON a.ts = b.ts AND a.one = b.one',
    "first": 'SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY x ORDER BY k DESC) AS p FROM v) w WHERE p <= 2',
}  # fmt: skip

# A row's error is NULL.
FAILING = "SELECT k, 1 / (one - one) AS z, (filename || 'x')::int AS c, (f * 1e300)::int + (n % 10)::int AS o FROM v"
OTHERS = '"A b", one, filename, k, one, "ä", i, j, s, l, t, n, m, u, ts, tz, d, ti, b, f, r, x'


def text_of(client: Client, view: str, query: str = "") -> Counter[tuple[object, ...]]:
    """The rows of a view as text, or of a query with its columns: they may have values that Python has not."""
    catalog = "rw_catalog.rw_columns c JOIN rw_catalog.rw_relations r ON c.relation_id = r.id"
    names = run(client, f"SELECT c.name FROM {catalog} WHERE r.name = '{view}' AND NOT c.is_hidden")
    listed = ", ".join(f"{quote(str(name))}::varchar" for (name,) in names)
    return as_bag(run(client, f"SELECT {listed} FROM {f'({query}) AS q' if query else view}"))


@pytest.mark.parametrize("small_rows", [pytest.param(-1, id="files"), pytest.param(200_000, id="exported")])
def test_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_rows: int) -> None:
    """Inputs as tasks read them: of the lake's files, or as the server hands them over."""
    monkeypatch.setattr(spark_engine, "SMALL_INPUT_ROWS", small_rows)
    with opened(tmp_path / "lake") as (context, client):
        run(client, f"CREATE TABLE v ({COLUMNS})")
        run(client, f"INSERT INTO v VALUES {', '.join(VALUES)}")
        for name, query in {**VIEWS, "failing": FAILING}.items():
            for prefix, engine in (("s", "spark"), ("p", "auto")):
                run(client, f"ALTER SYSTEM SET backfill_engine = {engine}")
                run(client, f"CREATE MATERIALIZED VIEW {prefix}_{name} AS {query}")
            assert text_of(client, f"s_{name}") == text_of(client, f"p_{name}"), name
        assert run(client, "SELECT count(*), count(z), count(c), count(o) FROM s_failing") == [(5, 0, 0, 2)]
        run(client, "ALTER SYSTEM SET streaming_engine = spark")
        run(client, "UPDATE v SET one = one + 1, i = -i WHERE k IN (1, 2, 5)")
        run(client, "DELETE FROM v WHERE k = 3")
        run(client, f"INSERT INTO v SELECT k + 10, {OTHERS} FROM v")
        context.coordinator.flush(lambda: False)
        for name, query in VIEWS.items():
            assert text_of(client, f"s_{name}") == text_of(client, f"s_{name}", query), name
        assert run(client, "SELECT count(*), count(z), count(c), count(o) FROM s_failing") == [(8, 0, 0, 2)]
        assert {state for (state,) in run(client, "SELECT state FROM rw_catalog.rw_job_status")} == {"FOLLOWING"}
