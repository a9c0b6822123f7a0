"""Makes a data directory as an earlier version of Sparkwave left it: tests/data/COMMIT.tar.xz.

    python tests/data/make_directory.py COMMIT [--later]

Runs the server of that commit with the packages that are installed now, as tests/test_earlier_versions.py has it:
43bf28f, the first one with structs, and 8f71e67 with indexes, users, sources and sinks.
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


def main() -> None:
    commit = sys.argv[1]
    with tempfile.TemporaryDirectory() as made:
        tree, data = Path(made) / "tree", Path(made) / "data"
        subprocess.run(["git", "worktree", "add", "-q", "--detach", str(tree), commit], cwd=ROOT, check=True)
        options = ["--listen", f"127.0.0.1:{PORT}", "--data", str(data), "--spark-start", "on_demand"]
        server = subprocess.Popen(
            [sys.executable, "-m", "server", "serve", *options], cwd=tree, env={"PATH": "/usr/bin"}
        )
        try:
            with connect() as connection:
                for statement in (*STATEMENTS, *(LATER if "--later" in sys.argv else ())):
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
