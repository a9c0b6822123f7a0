"""Data directories as earlier versions left them, made by tests/data/make_directory.py."""

from __future__ import annotations

import tarfile
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest
from servers import Server, rows, sparkwave, wait_until
from test_law import as_bag

from sparkwave.catalog.lake.storage import Storage
from sparkwave.executor.maintenance.backup import restore

DATA = Path(__file__).parent / "data"
RELATIONS = """SELECT schemaname || '.' || name FROM (
               SELECT schemaname, tablename AS name FROM pg_tables
               UNION ALL SELECT schemaname, matviewname FROM pg_matviews
               UNION ALL SELECT schemaname, viewname FROM pg_views) AS r
               WHERE schemaname NOT IN ('pg_catalog', 'information_schema', 'rw_catalog') ORDER BY 1"""


def counts(own: psycopg.Connection[Any]) -> dict[str, int]:
    """The rows of each relation of the users."""
    return {name: rows(own, f"SELECT count(*) FROM {name}")[0][0] for (name,) in rows(own, RELATIONS)}


def check_views(own: psycopg.Connection[Any]) -> set[str]:
    """Whether each view has the rows that its query gives. Returns their names."""
    own.execute("FLUSH")
    views = rows(own, "SELECT schemaname || '.' || matviewname, definition FROM pg_matviews")
    for name, definition in views:
        query = f"({definition.rstrip(';')})"
        difference = f"(SELECT * FROM {name} EXCEPT ALL {query}) UNION ALL ({query} EXCEPT ALL SELECT * FROM {name})"
        assert rows(own, difference) == [], name
    return {name for name, _ in views}


def directory_of(commit: str, place: Path) -> Path:
    """Return a data directory, in a directory for this test, as the version of a commit left it."""
    with tarfile.open(DATA / f"{commit}.tar.xz") as archive:
        archive.extractall(place / "made", filter="data")
    restore(place / "made", Storage(place / "data"))  # it was made at another path
    return place / "data"


def check_directory(directory: Path) -> None:
    done = sparkwave("check", "--data", directory, "--views")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert done.stdout.endswith("no findings\n") and "not compared" not in done.stdout


@pytest.mark.long
@pytest.mark.parametrize("commit", ["43bf28f", "8f71e67"])
def test_a_directory(tmp_path: Path, commit: str) -> None:
    """All relations are there, views follow changes, nothing is found wrong, and so after a restart."""
    data = directory_of(commit, tmp_path)
    is_later = commit == "8f71e67"
    server = Server(data)
    try:
        with server.connect() as own:
            known = counts(own)
            assert {"public.all_types": 201, "public.facts": 2727, "public.keyless": 3}.items() <= known.items()
            assert known["public.sums"] == 7 and known["public.first_ones"] == 5
            assert len(check_views(own)) == 14 + 2 * is_later
            last = "SELECT j, st::text, va, i::text, tz::text, n2 FROM all_types WHERE k = 199"
            assert rows(own, last) == [
                (
                    {"a": 199, "b": [1, None]},
                    "(199,y1)",
                    ["x199", None, "a,b"],
                    "199 days",
                    "1970-01-01 00:03:19+00",
                    Decimal("24.88"),
                )
            ]
            change(own)
            assert counts(own) != known
            check_views(own)
            if is_later:
                check_connectors(own)
            own.execute("CREATE MATERIALIZED VIEW new AS SELECT g, count(*) AS n FROM sums GROUP BY g")
            own.execute("DROP MATERIALIZED VIEW first_ones")
            known = counts(own)
        server.stop()
        check_directory(data)
        server = Server(data)
        with server.connect() as own:
            assert counts(own) == known
            change(own, 1)
            check_views(own)
    finally:
        server.kill()


NOT_OF_THEIR_QUERIES = ("public.looked_up", "public.closed")
CHANGES = (
    "INSERT INTO e SELECT i, i % 5, i % 17, i / 4.0, 's' || i % 4, i / 2.0, '2024-01-01'::timestamp + "
    "i * INTERVAL '7 minutes', ARRAY[i % 3], i % 3 = 0, i % 4, i % 3 FROM generate_series({0}, {0} + 9) AS r(i)",
    "UPDATE e SET v = v + 3, s = 's0', b = NOT b WHERE k % 7 = {1}",
    'UPDATE e SET g = (g + 1) % 6, "Mixed Case" = 2, "x.y" = 7 WHERE k % 9 = {1}',
    "DELETE FROM e WHERE k % 5 = {1}",
    "UPDATE d SET called = 'another' WHERE g = {1}",
    "DELETE FROM d WHERE g = 2",
    "INSERT INTO d VALUES (2, 'two', 5), (4, NULL, 6)",
    "DELETE FROM sack WHERE g IS NULL",
    "INSERT INTO sack VALUES (3, 's1'), (NULL, 'c'), (NULL, 'c')",
    "INSERT INTO added VALUES ({0}, 1)",
    "INSERT INTO timed VALUES ({0}, '2024-01-01 00:40:00'), ({0}, '2024-01-01 01:0{1}:00')",
)


@pytest.mark.long
def test_every_operator(tmp_path: Path) -> None:
    """Plans are those that the states were made for: nothing is made anew, and views take changes and are right."""
    data = directory_of("8b3b816", tmp_path)
    for number in range(2):
        server = Server(data)
        try:
            with server.connect() as own:
                assert rows(own, "SELECT * FROM rw_catalog.rw_event_logs WHERE event_type LIKE '%PLAN%'") == []
                for statement in CHANGES:
                    own.execute(statement.format(100 + 20 * number, number))
                own.execute("FLUSH")
                views = rows(own, "SELECT schemaname || '.' || matviewname, definition FROM pg_matviews")
                assert len(views) == 42
                wrong = {name: d for name, query in views if name not in NOT_OF_THEIR_QUERIES
                         and (d := difference(own, name, query))}  # fmt: skip
                assert wrong == {}
                assert rows(own, "SELECT * FROM taken") != []
                assert len(rows(own, "SELECT * FROM looked_up")) == 3 + number
                assert len(rows(own, "SELECT * FROM closed")) == 3
        finally:
            server.stop()
        check_states(data)


@pytest.mark.long
def test_computed_numerics_keep_ten_places(tmp_path: Path) -> None:
    """Views have the digits, and overflow where they did, when they were made; days of text are computed anew."""
    data = directory_of("0de40a6", tmp_path)
    server = Server(data)
    try:
        with server.connect() as own:
            logged = "SELECT info::jsonb ->> 'name' FROM rw_catalog.rw_event_logs WHERE event_type LIKE '%PLAN%'"
            assert rows(own, logged) == [("days",)]
            own.execute("INSERT INTO wide SELECT i + 10, f, g, a, n, s, '03/04/2005' FROM wide")
            own.execute("DELETE FROM wide WHERE i IN (7, 12)")
            states = "SELECT DISTINCT state FROM rw_catalog.rw_job_status"
            assert wait_until(lambda: rows(own, states) == [("FOLLOWING",)], 60)
            own.execute("FLUSH")
            texts = [tuple(map(str, row)) for row in rows(own, "SELECT * FROM computed ORDER BY i")]
            assert texts[1] == ("17", "13869.2127585728", "99999600.0005999997", "1524157875323866912056239.9025",
                                "1358024679135.795", "12345.123456789", "1234567890123.5",
                                "38269.8827160459382695", "0.123456789")  # fmt: skip
            assert rows(own, "SELECT v FROM totals ORDER BY k") == [(Decimal("0.01"),), (None,)]
            days = rows(own, "SELECT d::text, n FROM days ORDER BY d")
            assert days == [("2003-01-02", 1), ("2005-03-04", 1)]
    finally:
        server.stop()
    check_directory(data)


def difference(own: psycopg.Connection[Any], name: str, query: str) -> Counter[Any]:
    stored, right = (as_bag(list(map(with_floats, rows(own, q)))) for q in (f"SELECT * FROM {name}", query))
    return (stored - right) + (right - stored)


def with_floats(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Of an average a view of then has a float, and a query a numeric."""
    return tuple(float(value) if isinstance(value, Decimal) else value for value in row)


def check_states(data: Path) -> None:
    done = sparkwave("check", "--data", data, "--views")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert done.stdout.endswith("no findings\n") and done.stdout.count("not compared") == 1  # looked_up


def change(own: psycopg.Connection[Any], by: int = 0) -> None:
    """Rows of every table, those in files and those in the catalog."""
    own.execute(f"UPDATE facts SET v = v + 7 WHERE k % 50 = {by}")
    own.execute(f"DELETE FROM facts WHERE k % 70 = {by + 1}")
    own.execute(f"INSERT INTO facts VALUES ({9000 + by}, 2, 50000, '2024-03-01')")
    own.execute(f"INSERT INTO names (g, name) VALUES ({5 + by}, 'five'), (2, 'two')")
    own.execute(f"DELETE FROM names WHERE g = {by}")
    own.execute("DELETE FROM keyless WHERE x = 2")
    own.execute("INSERT INTO keyless VALUES (1, 'a'), (4, 'd')")
    own.execute(f"INSERT INTO only_added VALUES ({30 + by}, 'z')")
    own.execute("UPDATE all_types SET v = 'new', st = ROW(0, 'z') WHERE k < 20")
    own.execute(f"DELETE FROM all_types WHERE k % 9 = {by}")
    own.execute(f"INSERT INTO all_types (k, b, a, j) VALUES ({2000 + by}, true, ARRAY[1], '[1]')")


def check_connectors(own: psycopg.Connection[Any]) -> None:
    """An index, a sink, what a source has read, a user with a password and privileges, a comment."""
    assert rows(own, "SELECT k, g FROM facts WHERE v = 50000") == [(9000, 2)]
    assert rows(own, "SELECT * FROM copied ORDER BY g") == rows(own, "SELECT g, s FROM sums ORDER BY g")
    assert rows(own, "SELECT c, high FROM of_made") == [(50, 50)]
    assert rows(own, "SELECT obj_description('facts'::regclass)") == [("what happened",)]
    assert rows(own, "SELECT count(*) FROM other.few") == [(5,)]
    given = {"host": own.info.host, "port": own.info.port, "dbname": "dev", "user": "reader", "password": "reading"}
    with psycopg.connect(**given) as reader:
        assert len(rows(reader, "SELECT * FROM sums")) == 7
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            reader.execute("SELECT * FROM facts")
