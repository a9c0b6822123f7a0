"""Makes a data directory as an earlier version of Sparkwave left it: tests/data/COMMIT.tar.xz.

    python tests/data/make_directory.py COMMIT [--later | --every | --numerics]

Runs the server of that commit with the packages that are installed now, as tests/test_earlier_versions.py has it:
43bf28f, the first one with structs, 8f71e67 with indexes, users, sources and sinks, 8b3b816 with every operator, and
0de40a6, the last one whose computed numerics have ten places.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

import psycopg

ROOT = Path(__file__).parent.parent.parent
PORT = 45661

STATEMENTS = (
    "ALTER SYSTEM SET backfill_engine = auto",
    "ALTER SYSTEM SET streaming_engine = duckdb",
    """CREATE TABLE all_types (k int PRIMARY KEY, b boolean, s smallint, l bigint, n numeric, n2 numeric(10, 2), r real,
       d double precision, v varchar, y bytea, day date, t time, ts timestamp, tz timestamptz, i interval, j jsonb,
       a int[], va varchar[], st STRUCT<x int, y varchar>)""",
    """INSERT INTO all_types SELECT i, i % 2 = 0, i % 100, i, i / 4.0, i / 8.0, i / 4.0, i / 8.0, 'v' || i,
       decode('0' || i % 10, 'hex'), '2024-01-01'::date + (i % 365)::int, '10:00:00'::time,
       '2024-01-01'::timestamp + i * INTERVAL '1 second', to_timestamp(i), i * INTERVAL '1 day',
       ('{"a": ' || i || ', "b": [1, null]}')::jsonb, ARRAY[i, NULL], ARRAY['x' || i, NULL, 'a,b'],
       ROW(i, 'y' || i % 3) FROM range(200) AS g(i)""",
    "INSERT INTO all_types (k) VALUES (1000)",
    "CREATE TABLE facts (k int PRIMARY KEY, g int, v bigint, at timestamp)",
    "INSERT INTO facts SELECT i, i % 7, i, '2024-01-01'::timestamp + i * INTERVAL '1 minute' FROM range(3000) AS r(i)",
    "CREATE TABLE names (g int PRIMARY KEY, name varchar)",
    "INSERT INTO names VALUES (0, 'zero'), (1, 'one'), (2, NULL), (3, 'three')",
    "CREATE TABLE keyless (x int, y varchar)",
    "INSERT INTO keyless VALUES (1, 'a'), (1, 'a'), (2, NULL)",
    "CREATE TABLE only_added (x int, y varchar) APPEND ONLY",
    "INSERT INTO only_added VALUES (1, 'a'), (2, 'b')",
    "CREATE MATERIALIZED VIEW joined AS SELECT f.k, f.v, n.name FROM facts f JOIN names n ON f.g = n.g",
    """CREATE MATERIALIZED VIEW left_joined AS SELECT f.k, n.name FROM facts f
       LEFT JOIN names n ON f.g = n.g AND f.k < 9""",
    """CREATE MATERIALIZED VIEW sums AS SELECT g, count(*) AS c, sum(v) AS s, min(v) AS low, max(v) AS high,
       avg(v) AS a, count(DISTINCT v % 10) AS d FROM facts GROUP BY g""",
    "CREATE MATERIALIZED VIEW total AS SELECT count(*) AS c, sum(v) AS s FROM facts",
    "CREATE MATERIALIZED VIEW first_ones AS SELECT k, v FROM facts ORDER BY v DESC, k LIMIT 5",
    """CREATE MATERIALIZED VIEW first_of_each AS SELECT * FROM (SELECT k, g, v,
       row_number() OVER (PARTITION BY g ORDER BY v DESC, k) AS n FROM facts) AS x WHERE n <= 2""",
    """CREATE MATERIALIZED VIEW running AS SELECT k, sum(v) OVER (PARTITION BY g ORDER BY k) AS s
       FROM facts WHERE k < 300""",
    """CREATE MATERIALIZED VIEW hourly AS SELECT window_start, count(*) AS c FROM TUMBLE(facts, at, INTERVAL '1 hour')
       GROUP BY window_start""",
    "CREATE MATERIALIZED VIEW once AS SELECT DISTINCT y FROM keyless",
    "CREATE MATERIALIZED VIEW both AS SELECT x FROM keyless UNION ALL SELECT x FROM only_added",
    "CREATE MATERIALIZED VIEW known AS SELECT k FROM facts WHERE g IN (SELECT g FROM names)",
    "CREATE MATERIALIZED VIEW typed AS SELECT k, st, a, va, j, i, day FROM all_types WHERE b",
    "CREATE MATERIALIZED VIEW of_sums AS SELECT s % 2 AS odd, count(*) AS c FROM sums GROUP BY s % 2",
    "CREATE MATERIALIZED VIEW of_both AS SELECT o.odd, s.g FROM of_sums o JOIN sums s ON o.odd = s.s % 2",
    "CREATE VIEW plain AS SELECT g, s FROM sums WHERE g > 2",
    "DELETE FROM facts WHERE k % 11 = 3",
    "UPDATE facts SET v = v + 1000 WHERE k % 100 = 5",
    "INSERT INTO names VALUES (4, 'four')",
    "FLUSH",
)

LATER = (
    "ALTER TABLE names ADD COLUMN more varchar",
    "UPDATE names SET more = 'new' WHERE g = 3",
    "CREATE SCHEMA other",
    "CREATE TABLE other.facts (k int PRIMARY KEY)",
    "INSERT INTO other.facts SELECT * FROM range(50)",
    "CREATE MATERIALIZED VIEW other.few AS SELECT k FROM other.facts WHERE k % 10 = 0",
    "CREATE INDEX by_v ON facts (v) INCLUDE (g)",
    "CREATE USER reader WITH PASSWORD 'reading'",
    "GRANT SELECT ON MATERIALIZED VIEW sums TO reader",
    "CREATE TABLE copied (g int PRIMARY KEY, s numeric)",
    "CREATE SINK into_copied INTO copied AS SELECT g, s FROM sums",
    """CREATE SOURCE made (x int, y varchar) WITH (connector = 'datagen', datagen.rows.per.second = '100',
       fields.x.kind = 'sequence', fields.x.start = '1', fields.x.end = '50') FORMAT PLAIN ENCODE JSON""",
    "CREATE MATERIALIZED VIEW of_made AS SELECT count(*) AS c, max(x) AS high FROM made",
    "COMMENT ON TABLE facts IS 'what happened'",
    "FLUSH",
)


# Every operator and kind of state. The rows of each view are its query's, but those of `looked_up` and `closed`.
EVERY = (
    "ALTER SYSTEM SET backfill_engine = auto",
    "ALTER SYSTEM SET streaming_engine = duckdb",
    """CREATE TABLE e (k int PRIMARY KEY, g int, v bigint, n numeric(12, 2), s varchar, f double precision,
       at timestamp, arr int[], b boolean, "Mixed Case" int, "x.y" int)""",
    """INSERT INTO e SELECT i, i % 5, i % 13, i / 4.0, 's' || i % 3, i / 2.0, '2024-01-01'::timestamp +
       i * INTERVAL '7 minutes', ARRAY[i % 2, i % 3], i % 4 = 0, i % 3, i % 2 FROM range(60) AS r(i)""",
    "CREATE TABLE d (g int PRIMARY KEY, name varchar)",
    "INSERT INTO d VALUES (0, 'zero'), (1, 'one'), (2, NULL), (7, 'seven')",
    "CREATE TABLE bag (g int, s varchar)",
    "INSERT INTO bag VALUES (1, 'a'), (1, 'a'), (2, NULL), (NULL, 'b')",
    "CREATE TABLE added (x int, g int) APPEND ONLY",
    "INSERT INTO added VALUES (1, 1), (2, 2)",
    "CREATE TABLE timed (x int, at timestamp, WATERMARK FOR at AS at - INTERVAL '5' MINUTE) APPEND ONLY",
    "INSERT INTO timed VALUES (1, '2024-01-01 00:00:00'), (2, '2024-01-01 00:30:00')",
    "CREATE FUNCTION doubled(bigint) RETURNS bigint LANGUAGE SQL AS 'SELECT $1 * 2'",
    """CREATE MATERIALIZED VIEW sums AS SELECT g, count(*) AS c, count(s) AS cs, sum(v) AS sv, sum(n) AS sn,
       sum(f) AS sf, min(v) AS low, max(s) AS high, avg(n) AS a, bool_and(b) AS every_b, bool_or(b) AS any_b
       FROM e GROUP BY g""",
    """CREATE MATERIALIZED VIEW again AS SELECT g, count(DISTINCT v) AS d, string_agg(s, ',' ORDER BY k) AS t,
       array_agg(v ORDER BY k) AS l, stddev_samp(v) AS sd, count(*) FILTER (WHERE s = 's1') AS ones,
       sum(DISTINCT v) AS sd2 FROM e GROUP BY g HAVING count(*) > 3""",
    "CREATE MATERIALIZED VIEW one AS SELECT count(*) AS c, sum(v) AS s, min(f) AS low, max(k) AS high FROM e",
    "CREATE MATERIALIZED VIEW by_text AS SELECT s || '!' AS t, v % 2 = 0 AS even, sum(v + 1) AS s FROM e GROUP BY 1, 2",
    "CREATE MATERIALIZED VIEW rolled AS SELECT g, s, count(*) AS c FROM e GROUP BY ROLLUP (g, s)",
    "CREATE MATERIALIZED VIEW once AS SELECT DISTINCT g, s FROM bag",
    "CREATE MATERIALIZED VIEW hidden_sum AS SELECT sum(v) * 2 AS s2 FROM e GROUP BY g",
    "CREATE MATERIALIZED VIEW joined AS SELECT e.k, e.v, d.name FROM e JOIN d ON e.g = d.g",
    "CREATE MATERIALIZED VIEW nested AS SELECT a.g AS ag, b.g AS bg FROM d a JOIN bag b ON a.g < b.g",
    "CREATE MATERIALIZED VIEW left_ AS SELECT e.k, d.name FROM e LEFT JOIN d ON e.g = d.g AND e.k < 40",
    "CREATE MATERIALIZED VIEW right_ AS SELECT d.name, bag.s FROM bag RIGHT JOIN d ON bag.g = d.g",
    "CREATE MATERIALIZED VIEW full_ AS SELECT d.name, bag.s FROM d FULL JOIN bag ON d.g = bag.g",
    "CREATE MATERIALIZED VIEW semi AS SELECT k, v FROM e WHERE g IN (SELECT g FROM d)",
    "CREATE MATERIALIZED VIEW anti AS SELECT k FROM e WHERE NOT EXISTS (SELECT 1 FROM d WHERE d.g = e.g)",
    "CREATE MATERIALIZED VIEW not_in AS SELECT k FROM e WHERE g NOT IN (SELECT g FROM d)",
    "CREATE MATERIALIZED VIEW scalar AS SELECT d.g, (SELECT count(*) FROM e WHERE e.g = d.g) AS c FROM d",
    "CREATE MATERIALIZED VIEW above AS SELECT k, v FROM e WHERE v > (SELECT avg(v) FROM e)",
    "CREATE MATERIALIZED VIEW top AS SELECT k, v FROM e ORDER BY v DESC, k LIMIT 5",
    "CREATE MATERIALIZED VIEW after_top AS SELECT k, v FROM e ORDER BY v, k LIMIT 4 OFFSET 2",
    "CREATE MATERIALIZED VIEW ties AS SELECT k, v FROM e ORDER BY v DESC FETCH FIRST 3 ROWS WITH TIES",
    """CREATE MATERIALIZED VIEW placed AS SELECT * FROM (SELECT k, g, row_number() OVER
       (PARTITION BY g ORDER BY v DESC, k) AS place FROM e) AS x WHERE place <= 2""",
    """CREATE MATERIALIZED VIEW first_ones AS SELECT k, g FROM (SELECT k, g, row_number() OVER
       (PARTITION BY g ORDER BY v, k) AS place FROM e) AS x WHERE place <= 2""",
    "CREATE MATERIALIZED VIEW newest AS SELECT DISTINCT ON (g) g, k, at FROM e ORDER BY g, at DESC",
    """CREATE MATERIALIZED VIEW windows AS SELECT k, sum(v) OVER (PARTITION BY g ORDER BY k) AS s,
       lag(v) OVER (PARTITION BY g ORDER BY k) AS l, rank() OVER (PARTITION BY g ORDER BY v) AS r FROM e""",
    "CREATE MATERIALIZED VIEW all_ AS SELECT g FROM e UNION ALL SELECT g FROM bag",
    "CREATE MATERIALIZED VIEW union_ AS SELECT g, s FROM e UNION SELECT g, s FROM bag",
    "CREATE MATERIALIZED VIEW except_ AS SELECT g FROM e EXCEPT SELECT g FROM d",
    "CREATE MATERIALIZED VIEW except_all AS SELECT g FROM e EXCEPT ALL SELECT g FROM bag",
    "CREATE MATERIALIZED VIEW intersect_ AS SELECT g FROM e INTERSECT SELECT g FROM bag",
    "CREATE MATERIALIZED VIEW intersect_all AS SELECT g FROM e INTERSECT ALL SELECT g FROM bag",
    """CREATE MATERIALIZED VIEW hourly AS SELECT window_start, count(*) AS c FROM TUMBLE(e, at, INTERVAL '1 hour')
       GROUP BY window_start""",
    """CREATE MATERIALIZED VIEW hopping AS SELECT window_start, window_end, max(v) AS m
       FROM HOP(e, at, INTERVAL '30 minutes', INTERVAL '1 hour') GROUP BY window_start, window_end""",
    """CREATE MATERIALIZED VIEW closed AS SELECT window_start, count(*) AS c
       FROM TUMBLE(timed, at, INTERVAL '10 minutes') GROUP BY window_start EMIT ON WINDOW CLOSE""",
    """CREATE MATERIALIZED VIEW looked_up AS SELECT a.x, d.name FROM added a
       JOIN d FOR SYSTEM_TIME AS OF PROCTIME() ON a.g = d.g""",
    "CREATE MATERIALIZED VIEW lately AS SELECT k FROM e WHERE at > now() - INTERVAL '100 years'",
    "CREATE MATERIALIZED VIEW elements AS SELECT k, unnest(arr) AS a FROM e",
    "CREATE MATERIALIZED VIEW series AS SELECT d.g, x FROM d, generate_series(1, d.g) AS x",
    """CREATE MATERIALIZED VIEW shared AS WITH w AS (SELECT g, count(*) AS c FROM e GROUP BY g)
       SELECT a.g AS ag, b.g AS bg FROM w a JOIN w b ON a.c = b.c AND a.g < b.g""",
    """CREATE MATERIALIZED VIEW hard AS SELECT "Mixed Case", "x.y" AS "X Y", doubled(v) AS "_d", count(*) AS "N"
       FROM e GROUP BY "Mixed Case", "x.y", doubled(v)""",
    "CREATE VIEW some_sums AS SELECT g, sv FROM sums WHERE g > 0",
    "CREATE MATERIALIZED VIEW of_sums AS SELECT sv % 2 AS odd, count(*) AS c FROM some_sums GROUP BY sv % 2",
    'CREATE MATERIALIZED VIEW of_hard AS SELECT "X Y", sum("N") AS n FROM hard GROUP BY "X Y"',
    'CREATE INDEX by_v ON e (v DESC, "Mixed Case") INCLUDE (g)',
    "CREATE INDEX by_length ON d (length(name))",
    "CREATE TABLE taken (g int PRIMARY KEY, c bigint)",
    "CREATE SINK into_taken INTO taken AS SELECT g, count(*) AS c FROM e GROUP BY g",
    "CREATE MATERIALIZED VIEW of_taken AS SELECT c, count(*) AS n FROM taken GROUP BY c",
    "ALTER TABLE d ADD COLUMN more int DEFAULT 5",
    "ALTER TABLE d RENAME COLUMN name TO called",
    "ALTER TABLE bag RENAME TO sack",
    "ALTER MATERIALIZED VIEW semi AS SELECT k, v FROM e WHERE g IN (SELECT g FROM d WHERE more = 5)",
    "DELETE FROM e WHERE k % 11 = 3",
    "UPDATE e SET v = v + 1 WHERE k % 10 = 5",
    "FLUSH",
)


NUMERICS = (
    "CREATE TABLE wide (i int, f numeric(20,15), g numeric(12,11), a numeric(15,2), n numeric, s numeric(6,4), t text)",
    """INSERT INTO wide VALUES
       (7, 12345.123456789012345, 1.12345678901, 1234567890123.45, 3.1, 99.9999, '2024-01-02'),
       (2, 0.000000000000001, 0.00000000001, 0.01, 0.1, 0.0001, '01/02/03')""",
    """CREATE MATERIALIZED VIEW computed AS SELECT i, f * g AS x, s * s * s * s AS y, a * a AS z, a * 1.1 AS q,
       coalesce(f, 0) AS c, round(a, 1) AS r, n * f AS nf, 0.123456789012345 AS l FROM wide""",
    """CREATE MATERIALIZED VIEW totals AS SELECT i % 2 AS k, sum(f * g) AS x, sum(a * s) AS y, avg(f * g) AS z,
       max(s * s * s) AS m, sum(a * 1.000000000001) AS v, sum(coalesce(a, 0) * coalesce(a, 0)) AS c, sum(a + a) AS t
       FROM wide GROUP BY i % 2""",
    "CREATE MATERIALIZED VIEW of_totals AS SELECT k, x * y AS p, z FROM totals WHERE x * y > 1",
    "CREATE MATERIALIZED VIEW together AS SELECT i, f FROM wide UNION ALL SELECT i, g FROM wide",
    "CREATE MATERIALIZED VIEW days AS SELECT t::date AS d, count(*) AS n FROM wide GROUP BY t::date",
)


def main() -> None:
    commit = sys.argv[1]
    statements = STATEMENTS + LATER * ("--later" in sys.argv)
    statements = EVERY if "--every" in sys.argv else NUMERICS if "--numerics" in sys.argv else statements
    with tempfile.TemporaryDirectory() as made:
        tree, data = Path(made) / "tree", Path(made) / "data"
        subprocess.run(["git", "worktree", "add", "-q", "--detach", str(tree), commit], cwd=ROOT, check=True)
        options = ["--listen", f"127.0.0.1:{PORT}", "--data", str(data), "--spark-start", "on_demand"]
        package = "sparkwave" if (tree / "sparkwave").is_dir() else "server"
        server = subprocess.Popen(
            [sys.executable, "-m", package, "serve", *options], cwd=tree, env={"PATH": "/usr/bin"}
        )
        try:
            with connect() as connection:
                for statement in statements:
                    connection.execute(statement.encode())
                time.sleep(2)  # a source's rows
                connection.execute("FLUSH")
        finally:
            server.terminate()
            server.wait(60)
            subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=ROOT, check=True)
        with tarfile.open(Path(__file__).with_name(f"{commit}.tar.xz"), "w:xz") as archive:
            for path in sorted(data.rglob("*")):
                if path.is_file() and not {"logs", "scratch", "spill"} & set(path.relative_to(data).parts):
                    archive.add(path, path.relative_to(data))


def connect() -> psycopg.Connection[object]:
    deadline = time.monotonic() + 60
    while True:
        try:
            return psycopg.connect(f"host=127.0.0.1 port={PORT} user=root dbname=dev", autocommit=True)
        except psycopg.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


if __name__ == "__main__":
    main()
