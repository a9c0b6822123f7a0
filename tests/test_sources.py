"""Sources: datagen, nexmark and files, as tables and as sources of views."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from pyarrow import parquet
from servers import Server, refused, rows, wait_until
from test_law import opened, run, without_epochs

from sparkwave.executor.sources import reader
from sparkwave.executor.sources.connector import Batch
from sparkwave.executor.sources.files import Files
from sparkwave.executor.sources.text_records import line_at, read_records

Connection = psycopg.Connection[Any]
SECONDS = 20


@pytest.fixture
def session(in_process_server: Server) -> Iterator[Connection]:
    with in_process_server.connect() as opened:
        yield opened


def wait_for(session: Connection, query: str, expected: object) -> None:
    """Until a query gives these rows."""
    wait_until(lambda: rows(session, query) == expected, SECONDS)
    assert rows(session, query) == expected


def status(session: Connection, name: str) -> Any:
    """State, progress and reason."""
    [found] = rows(
        session,
        "SELECT state, progress, reason FROM rw_catalog.rw_source_status WHERE source_name = %s",
        (f"public.{name}",),
    )
    return found


def wait_for_reason(session: Connection, name: str) -> str:
    assert wait_until(lambda: status(session, name)[2] is not None, SECONDS)
    return status(session, name)[2]


# Generators.


def test_a_sequence_ends(session: Connection) -> None:
    """A source fills a view; the rows are those of the sequence, and nothing comes after."""
    session.execute(
        "CREATE SOURCE seq (v int, w double precision) WITH (connector = 'datagen', fields.v.kind = 'sequence', "
        "fields.v.start = '1', fields.v.end = '250', fields.w.kind = 'sequence', fields.w.start = '0.5', "
        "datagen.rows.per.second = 100,) FORMAT PLAIN ENCODE JSON"
    )
    session.execute("CREATE MATERIALIZED VIEW seq_sum AS SELECT count(*) AS n, sum(v) AS s, max(w) AS w FROM seq")
    wait_for(session, "SELECT * FROM seq_sum", [(250, 31375, 249.5)])
    assert status(session, "seq") == ("FINISHED", "250 rows consumed", None)
    assert rows(session, "SELECT count(DISTINCT v), count(*) FROM seq") == [(250, 250)]


def test_random_values_are_of_their_ranges_and_follow_from_the_seed(session: Connection) -> None:
    columns = (
        "a smallint, b bigint, c real, d numeric(10,2), e varchar, f timestamp, g timestamptz, h int[], "
        "i STRUCT<x int, y varchar>, j boolean, k int"
    )
    options = (
        "fields.a.min = '-5', fields.a.max = 5, fields.b.min = 1000000000000, fields.b.max = 1000000000010, "
        "fields.c.min = '0.5', fields.c.max = '1.5', fields.e.length = 40, fields.f.max_past = '2h 30m', "
        "fields.f.basetime = '2024-01-01T00:00:00Z', fields.h.length = 3, fields.h._.kind = 'sequence', "
        "fields.i.x.min = 7, fields.i.x.max = 7, fields.n.kind = 'sequence', fields.n.end = 199, "
        "datagen.rows.per.second = 1000"
    )
    for name in ("random_one", "random_two"):
        session.execute(f"CREATE TABLE {name} ({columns}, n int) WITH (connector = 'datagen', {options})")
    for name in ("random_one", "random_two"):
        wait_for(session, f"SELECT count(*) FROM {name}", [(200,)])
    [found] = rows(
        session,
        "SELECT min(a), max(a), min(b) >= 1000000000000, max(b) <= 1000000000010, min(c) >= 0.5, max(c) <= 1.5, "
        "min(length(e)), max(length(e)), count(DISTINCT e), min(f) >= '2023-12-31 21:30:00', "
        "max(f) <= '2024-01-01 00:00:00', max(g) <= now(), min(g) >= now() - INTERVAL '2 days', min(k) >= 0, "
        "max(k) <= 32767, count(DISTINCT j), count(DISTINCT k) > 100 FROM random_one",
    )
    assert found == (-5, 5, True, True, True, True, 40, 40, 200, True, True, True, True, True, True, 2, True)
    assert rows(session, "SELECT h, (i).x FROM random_one WHERE n = 4") == [([4, 5, 6], 7)]
    both = "SELECT a, b, c, d, e, f, j, k, n FROM random_one EXCEPT SELECT a, b, c, d, e, f, j, k, n FROM random_two"
    assert rows(session, both) == []


def test_nexmark(session: Connection) -> None:
    """Its mix, and that what events name is there or about to come."""
    for table in ("person", "auction", "bid"):
        session.execute(
            f"CREATE SOURCE nex_{table} WITH (connector = 'nexmark', nexmark.table.type = '{table.title()}', "
            "nexmark.event.num = 5000, nexmark.min.event.gap.in.ns = 0)"
        )
    session.execute(
        "CREATE TABLE nex_all WITH (connector = 'nexmark', nexmark.event.num = 5000, nexmark.min.event.gap.in.ns = 0)"
    )
    for table, count in (("person", 100), ("auction", 300), ("bid", 4600)):
        wait_for(session, f"SELECT count(*) FROM nex_{table}", [(count,)])
    counts = "SELECT event_type, count(*), count(person), count(auction), count(bid) FROM nex_all GROUP BY 1 ORDER BY 1"
    wait_for(session, counts, [(0, 100, 100, 0, 0), (1, 300, 0, 300, 0), (2, 4600, 0, 0, 4600)])
    assert rows(session, "SELECT min(id), max(id), count(DISTINCT id) FROM nex_person") == [(1000, 1099, 100)]
    assert rows(session, "SELECT min(id), max(id), count(DISTINCT id) FROM nex_auction") == [(1000, 1299, 300)]
    strays = (
        "SELECT count(*) FILTER (WHERE NOT auction BETWEEN 1000 AND 1310), "
        "count(*) FILTER (WHERE NOT bidder BETWEEN 1000 AND 1110), "
        "count(*) FILTER (WHERE price NOT BETWEEN 100 AND 100000000) FROM nex_bid"
    )
    assert rows(session, strays) == [(0, 0, 0)]
    [(hot,)] = rows(session, "SELECT count(*) FROM nex_bid WHERE auction % 100 = 0")
    assert 0.45 < hot / 4600 < 0.6
    [(average, first)] = rows(session, "SELECT avg(length(extra)), min(date_time) FROM nex_bid")
    assert 60 < average < 75
    assert str(first) == "2015-07-15 00:00:00"
    assert rows(session, "SELECT count(*) FROM nex_auction WHERE expires <= date_time OR reserve <= initial_bid") == [
        (0,)
    ]
    [(one,)] = rows(session, "SELECT url FROM nex_bid WHERE channel = 'Google' LIMIT 1")
    assert one.startswith("https://www.nexmark.com/")
    described = [row[:2] for row in rows(session, "DESCRIBE nex_bid")]
    assert described[:3] == [("auction", "bigint"), ("bidder", "bigint"), ("price", "bigint")]


def test_rates(session: Connection) -> None:
    """0 pauses, as an option and by ALTER; a rate is kept to."""
    session.execute(
        "CREATE SOURCE paced (v bigint) WITH (connector = 'datagen', fields.v.kind = 'sequence', fields.v.end = "
        "1000000, datagen.rows.per.second = 100000, source_rate_limit = 0)"
    )
    assert status(session, "paced")[0] == "PAUSED"
    assert rows(session, "SELECT count(*) FROM paced") == [(0,)]
    session.execute("ALTER SOURCE paced SET SOURCE_RATE_LIMIT = 50")
    assert wait_until(lambda: rows(session, "SELECT count(*) FROM paced")[0][0] >= 100, SECONDS)
    assert rows(session, "SELECT count(*) FROM paced")[0][0] < 1000
    limits = "SELECT node_name, rate_limit FROM rw_catalog.rw_rate_limit WHERE table_id = 'paced'::regclass"
    assert rows(session, limits) == [("SOURCE", 50)]
    session.execute("ALTER SOURCE paced SET SOURCE_RATE_LIMIT TO 0")
    session.execute("FLUSH")
    wait_until(lambda: False, 1.2)
    before = rows(session, "SELECT count(*) FROM paced")
    wait_until(lambda: False, 1.2)
    assert rows(session, "SELECT count(*) FROM paced") == before
    session.execute("ALTER SOURCE paced SET SOURCE_RATE_LIMIT TO DEFAULT")
    assert wait_until(lambda: rows(session, "SELECT count(*) FROM paced")[0][0] > 50_000, SECONDS)
    session.execute("DROP SOURCE paced")


@pytest.mark.spark
@pytest.mark.long
def test_views_on_spark(shared_server: Server) -> None:
    """Filled and kept there while rows arrive."""
    with shared_server.connect() as own:
        for engine in ("backfill_engine", "streaming_engine"):
            own.execute(f"ALTER SYSTEM SET {engine} = spark")
        try:
            own.execute(
                "CREATE SOURCE for_spark (v int) WITH (connector = 'datagen', fields.v.kind = 'sequence', "
                "fields.v.end = 29999, datagen.rows.per.second = 1000)"
            )
            assert wait_until(lambda: rows(own, "SELECT count(*) FROM for_spark")[0][0] > 0, SECONDS)
            own.execute("ALTER SOURCE for_spark SET SOURCE_RATE_LIMIT = 0")
            own.execute(
                "CREATE MATERIALIZED VIEW on_spark AS SELECT v % 10 AS k, count(*) AS n, sum(v) AS s "
                "FROM for_spark GROUP BY v % 10"
            )
            assert rows(own, "SELECT sum(n) < 30000 FROM on_spark") == [(True,)]
            own.execute("ALTER SOURCE for_spark SET SOURCE_RATE_LIMIT = DEFAULT")
            assert wait_until(lambda: rows(own, "SELECT count(*) FROM for_spark") == [(30000,)], 60)
            own.execute("FLUSH")
            expected = [(k, 3000, sum(range(k, 30000, 10))) for k in range(10)]
            assert rows(own, "SELECT * FROM on_spark ORDER BY k") == expected
        finally:
            for engine in ("backfill_engine", "streaming_engine"):
                own.execute(f"ALTER SYSTEM SET {engine} TO DEFAULT")


# Files.


def test_csv(session: Connection, tmp_path: Path) -> None:
    """With a header columns go by name; fields may have newlines; empty ones are NULL; new files are read too."""
    (tmp_path / "a.csv").write_text('b,a,extra\n"x, ""y""\nz",1,9\n,2,9\n\nlast,,9')
    (tmp_path / "ignored.txt").write_text("no")
    (tmp_path / ".hidden.csv").write_text("a\n7\n")
    session.execute(
        "CREATE SOURCE csv_rows (a int, b varchar, c date) INCLUDE file AS f INCLUDE offset AS o WITH "
        f"(connector = 'posix_fs', posix_fs.root = '{tmp_path}', match_pattern = '*.csv') "
        "FORMAT PLAIN ENCODE CSV (without_header = 'false', delimiter = ',')"
    )
    session.execute(
        "CREATE MATERIALIZED VIEW csv_view AS SELECT f, count(*) AS n, sum(a) AS s FROM csv_rows GROUP BY f"
    )
    expected = [
        (1, 'x, "y"\nz', None, "a.csv", "10"),
        (2, None, None, "a.csv", "27"),
        (None, "last", None, "a.csv", "33"),
    ]
    wait_for(session, "SELECT * FROM csv_rows ORDER BY o", expected)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.csv").write_text("c,a\n2024-02-29,5\n")
    wait_for(session, "SELECT * FROM csv_view ORDER BY f", [("a.csv", 3, 3), ("sub/b.csv", 1, 5)])
    assert rows(session, "SELECT c FROM csv_rows WHERE a = 5")[0][0].isoformat() == "2024-02-29"
    (tmp_path / "a.csv").write_text("a\n8\n9\n10\n" * 20)  # it has been read
    (tmp_path / "c.csv").write_text("a\n6\n")
    wait_for(session, "SELECT f, n FROM csv_view ORDER BY f", [("a.csv", 3), ("c.csv", 1), ("sub/b.csv", 1)])
    assert status(session, "csv_rows") == ("RUNNING", "5 rows consumed", None)


def test_csv_without_a_header(session: Connection, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1\tx\n2\ty\n")
    session.execute(
        "CREATE TABLE tabbed (a int PRIMARY KEY, b varchar) WITH (connector = 'posix_fs', "
        f"posix_fs.root = '{tmp_path}') FORMAT PLAIN ENCODE CSV (without_header = 'true', delimiter = E'\\t')"
    )
    wait_for(session, "SELECT * FROM tabbed ORDER BY a", [(1, "x"), (2, "y")])
    session.execute("INSERT INTO tabbed VALUES (3, 'z')")
    session.execute("UPDATE tabbed SET b = 'changed' WHERE a = 1")
    (tmp_path / "b.csv").write_text("2\tnewer\n4\tw\n")
    wait_for(session, "SELECT * FROM tabbed ORDER BY a", [(1, "changed"), (2, "newer"), (3, "z"), (4, "w")])


def test_json(session: Connection, tmp_path: Path) -> None:
    lines = [
        {"i": 1, "t": "a\nb", "at": "2024-01-02 03:04:05", "j": {"x": [1, None]}, "l": [1, 2], "s": {"p": 1, "q": "z"}},
        {"i": "2", "t": None, "at": 1704164645, "j": None, "n": 1.5},
        {"i": 3, "at": 1704164645000, "t": True},
    ]
    (tmp_path / "a.ndjson").write_text("\n".join(map(json.dumps, lines)) + "\n\n")
    session.execute(
        "CREATE SOURCE json_rows (i int, t varchar, at timestamp, j jsonb, l int[], s STRUCT<p int, q varchar>, "
        f"n numeric(10,2)) WITH (connector = 'posix_fs', posix_fs.root = '{tmp_path}') FORMAT PLAIN ENCODE JSON"
    )
    wait_for(session, "SELECT count(*) FROM json_rows", [(3,)])
    found = rows(session, "SELECT i, t, at::varchar, j, l, (s).q, n FROM json_rows ORDER BY i")
    time = "2024-01-02 03:04:05"
    assert [found[0][:6], *[(*row[:4], row[6]) for row in found[1:]]] == [
        (1, "a\nb", time, {"x": [1, None]}, [1, 2], "z"),
        (2, None, time, None, 1.5),
        (3, "true", time, None, None),
    ]


def test_parquet(session: Connection, tmp_path: Path) -> None:
    """Row groups are read on from any row; a file may have other columns, and types that fit."""
    table = pa.table({"id": range(10_000), "name": [f"n{i}" for i in range(10_000)], "more": range(10_000)})
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=900)
    session.execute(
        "CREATE SOURCE parquet_rows (id int, name varchar, missing int) INCLUDE offset AS o WITH (connector = "
        f"'posix_fs', posix_fs.root = '{tmp_path}', source_rate_limit = 3000) FORMAT PLAIN ENCODE PARQUET"
    )
    assert wait_until(lambda: 0 < rows(session, "SELECT count(*) FROM parquet_rows")[0][0] < 10_000, SECONDS)
    session.execute("ALTER SOURCE parquet_rows SET SOURCE_RATE_LIMIT = DEFAULT")
    parquet.write_table(pa.table({"name": ["last"], "id": pa.array([10_000], pa.int16())}), tmp_path / "b.parquet")
    parquet.write_table(table.slice(0, 0), tmp_path / "empty.parquet")
    wait_for(
        session,
        "SELECT count(*), count(DISTINCT id), max(id), count(missing), max(o::int) FROM parquet_rows",
        [(10_001, 10_001, 10_000, 0, 9999)],
    )
    finished = "SELECT split, is_finished FROM rw_catalog.rw_source_splits WHERE source_name = 'public.parquet_rows'"
    assert sorted(rows(session, finished)) == [("a.parquet", True), ("b.parquet", True), ("empty.parquet", True)]


BROKEN = {
    "CSV": ("a,b\n1,x\n2,y\nthree,z\n", 'line 4: column "a": invalid input syntax for type integer: "three"'),
    "CSV ragged": ("a,b\n1,x\n\n2\n", "line 4: expected 2 fields, got 1"),
    "JSON": ('{"a": 1}\n{"a": 2\n', 'line 2: no JSON: "{"a": 2"'),
    "JSON value": ('{"a": 1}\n{"a": "x"}\n', 'line 2: column "a": invalid input syntax for type integer: "x"'),
    "PARQUET": ("nonsense", "Parquet"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_says_where_and_holds_up_no_other(session: Connection, tmp_path: Path, case: str) -> None:
    """None of its rows from the broken place on are there; when it is repaired it is read."""
    text, reason = BROKEN[case]
    name, encode = f"broken_{case.lower().replace(' ', '_')}", case.split()[0]
    (tmp_path / "m").write_text(text)
    good = {"CSV": "a,b\n10,x\n", "JSON": '{"a": 10}\n'}
    for file in ("a", "z"):
        if encode in good:
            (tmp_path / file).write_text(good[encode])
        else:
            parquet.write_table(pa.table({"a": [10]}), tmp_path / file)
    session.execute(
        f"CREATE SOURCE {name} (a int, b varchar) WITH (connector = 'posix_fs', posix_fs.root = '{tmp_path}') "
        f"FORMAT PLAIN ENCODE {encode}"
    )
    wait_for(session, f"SELECT a FROM {name}", [(10,), (10,)])
    shown = wait_for_reason(session, name)
    assert shown.startswith(f"{tmp_path / 'm'}") and reason in shown
    assert status(session, name)[0] == "RETRYING"
    events = (
        "SELECT info->>'split' FROM rw_catalog.rw_event_logs WHERE event_type = 'SOURCE_FAIL' AND info->>'name' = %s"
    )
    assert rows(session, events, (name,)) == [("m",)]
    if encode == "PARQUET":
        parquet.write_table(pa.table({"a": [11]}), tmp_path / "m")
    else:
        (tmp_path / "m").write_text(good[encode].replace("10", "11"))
    wait_for(session, f"SELECT a FROM {name} ORDER BY a", [(10,), (10,), (11,)])
    wait_until(lambda: status(session, name)[2] is None, SECONDS)
    assert status(session, name) == ("RUNNING", "3 rows consumed", None)


def test_a_directory_that_goes_and_comes(session: Connection, tmp_path: Path) -> None:
    root = tmp_path / "files"
    create = (
        f"CREATE TABLE coming (a int NOT NULL) WITH (connector = 'posix_fs', posix_fs.root = '{root}') "
        "FORMAT PLAIN ENCODE JSON"
    )
    error = refused(session, create)
    assert (error.sqlstate, error.diag.message_primary) == ("58P01", f'directory "{root}" does not exist')
    root.mkdir()
    session.execute(create)
    root.rename(tmp_path / "elsewhere")
    assert str(root) in wait_for_reason(session, "coming")
    (tmp_path / "elsewhere").rename(root)
    (root / "null").write_text("{}\n")
    assert wait_until(lambda: "null value in column" in (status(session, "coming")[2] or ""), SECONDS)
    (root / "null").unlink()
    (root / "b").write_text('{"a": 1}\n')
    wait_for(session, "SELECT a FROM coming", [(1,)])


@pytest.mark.parametrize("step", [1, 2, 7, 1000])
def test_records_are_cut_where_they_end(tmp_path: Path, step: int) -> None:
    path = tmp_path / "f"
    path.write_bytes(b'a,"x\n""y"\n\r\n"\n\n",b\nlast')
    found, position, is_last = [], 0, False
    while not is_last:
        records = read_records(path, position, step, is_quoted=True)
        ends = [*records.starts[1:].tolist(), len(records.data)]
        found += [
            (records.data[start:end], bool(blank), line_at(path, position + start))
            for start, end, blank in zip(records.starts.tolist(), ends, records.is_blank, strict=True)
        ]
        position, is_last = records.position, records.is_last
    assert found == [
        (b'a,"x\n""y"\n', False, 1),
        (b"\r\n", True, 3),
        (b'"\n\n",b\n', False, 4),
        (b"last", False, 7),
    ]


@pytest.mark.parametrize("encode", ["CSV", "CSV (without_header = 'true')", "JSON", "PARQUET"])
def test_generated_columns_and_what_is_included(session: Connection, tmp_path: Path, encode: str) -> None:
    """A generated column is none of the file's, even where columns go by their places, and may read an included one."""
    lines = {"CSV": "a,b\n1,x\n2,\n", "CSV (without_header = 'true')": "1,x\n2,\n"}
    if encode == "PARQUET":
        parquet.write_table(pa.table({"a": [1, 2], "b": ["x", None], "twice": [0, 0]}), tmp_path / "rows")
    else:
        (tmp_path / "rows").write_text(lines.get(encode, '{"a": 1, "b": "x", "twice": 0}\n{"a": 2}\n'))
    for kind in ("SOURCE", "TABLE"):
        session.execute(
            f"CREATE {kind} made_up (twice int AS a * 2, a int, n int AS length(f), b varchar) INCLUDE file AS f "
            f"WITH (connector = 'posix_fs', posix_fs.root = '{tmp_path}') FORMAT PLAIN ENCODE {encode}"
        )
        session.execute("CREATE MATERIALIZED VIEW of_made_up AS SELECT sum(twice) AS s FROM made_up")
        wait_for(session, "SELECT * FROM made_up ORDER BY a", [(2, 1, 4, "x", "rows"), (4, 2, 4, None, "rows")])
        wait_for(session, "TABLE of_made_up", [(6,)])
        session.execute(f"DROP {kind} made_up CASCADE")


def test_a_source_waits_for_the_views(tmp_path: Path) -> None:
    """While no barrier comes it delivers `source_rows_per_epoch` rows and no more; then it goes on."""
    settings = {"source_rows_per_epoch": "1000", "barrier_interval_ms": "50", "backfill_engine": "auto"}
    with opened(tmp_path / "lake", **settings) as (context, client):
        count = lambda: run(client, "SELECT count(*) FROM fast")[0][0]  # noqa: E731
        with without_epochs(context):
            run(
                client,
                "CREATE SOURCE fast WITH (connector = 'nexmark', nexmark.table.type = 'bid', "
                "nexmark.min.event.gap.in.ns = 0)",
            )
            assert wait_until(lambda: count() == 1000, SECONDS)
            assert not wait_until(lambda: count() != 1000, 1.2)
        assert wait_until(lambda: count() >= 3000, SECONDS)


def test_the_last_source_goes_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it has on other servers is removed, although no source is left to look after."""
    dropping, removed = threading.Event(), threading.Event()
    step = reader._Reader.step

    def step_and_drop(of: reader._Reader, rate_limit: int | None) -> bool:
        delivered = step(of, rate_limit)
        if not dropping.is_set():
            run(client, "DROP SOURCE one")
            of.has_more = False  # else the next round comes at once
            dropping.set()
        return delivered

    with opened(tmp_path / "lake") as (_, client):
        monkeypatch.setattr(reader._Reader, "forget", lambda of: removed.set() is None)
        monkeypatch.setattr(reader._Reader, "step", step_and_drop)
        run(client, "CREATE SOURCE one (a int) WITH (connector = 'datagen')")
        assert dropping.wait(SECONDS)
        assert removed.wait(SECONDS)


def test_rows_that_come_after_alter_source_have_its_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when its reader already waits for them, with the columns of before."""
    (files := tmp_path / "files").mkdir()
    read, altered = Files.read, threading.Event()

    def read_later(of: Files, *given: Any) -> Batch | None:
        if not altered.is_set():
            run(client, "ALTER SOURCE later ADD COLUMN w int")
            (files / "1.json").write_text('{"v": 1, "w": 2}\n')
            altered.set()
        return read(of, *given)

    with opened(tmp_path / "lake") as (_, client):
        monkeypatch.setattr(Files, "read", read_later)
        with_ = f"WITH (connector = 'posix_fs', posix_fs.root = '{files}') FORMAT PLAIN ENCODE JSON"
        run(client, f"CREATE SOURCE later (v int) {with_}")
        assert altered.wait(SECONDS)
        assert wait_until(lambda: run(client, "TABLE later") != [], SECONDS)
        assert run(client, "TABLE later") == [(1, 2)]


# Statements.

FILES = "connector = 'posix_fs', posix_fs.root = '/'"
ERRORS = [
    ("CREATE SOURCE s (a int)", "42601", "missing WITH clause"),
    ("CREATE SOURCE s", "42601", "missing WITH clause"),
    ("CREATE SOURCE s (a int) WITH (a = 1)", "22023", "missing field 'connector'"),
    ("CREATE SOURCE s (a int) WITH (connector = 'kinesis')", "22023", 'connector "kinesis" is not supported'),
    ("CREATE SOURCE s WITH (connector = 'datagen')", "42601", "columns must be listed for this connector"),
    (
        "CREATE SOURCE s (a int) WITH (connector = 'datagen', a.b = 1)",
        "22023",
        'unknown option "a.b" of connector datagen',
    ),
    (
        "CREATE SOURCE s (a int) WITH (connector = 'datagen', connector = 'datagen')",
        "22023",
        "Duplicated option: connector",
    ),
    (
        "CREATE SOURCE s (a int) WITH (connector = 'datagen', fields.b.kind = 'random')",
        "22023",
        '"fields.b.kind" is about no column',
    ),
    (
        "CREATE SOURCE s (a int) WITH (connector = 'datagen', fields.a.kind = 'x')",
        "22023",
        '"x" is no kind of generator: there are random and sequence',
    ),
    ("CREATE SOURCE s (a int) WITH (connector = 'datagen', fields.a.max = 'x')", "22023", '"x" is no integer'),
    ("CREATE SOURCE s (a int) WITH (connector = 'datagen', fields.a.max = -1)", "22023", "min 0 is above max -1"),
    ("CREATE SOURCE s (a bytea) WITH (connector = 'datagen')", "22023", "there is no generator for type bytea"),
    (
        "CREATE SOURCE s (a int) WITH (connector = 'datagen', datagen.rows.per.second = 0)",
        "22023",
        "invalid value for datagen.rows.per.second: 0",
    ),
    (
        "CREATE SOURCE s (a int) WITH (connector = 'datagen') FORMAT UPSERT ENCODE JSON",
        "22023",
        "connector datagen does not support format Upsert",
    ),
    (
        "CREATE SOURCE s (a int) WITH (connector = 'datagen') FORMAT PLAIN ENCODE AVRO",
        "22023",
        "connector datagen does not support format Plain with encode Avro",
    ),
    (
        "CREATE SOURCE s (a int) WITH (connector = 'nexmark')",
        "22023",
        "The schema of the nexmark source must specify all columns in order",
    ),
    (f"CREATE SOURCE s (a int) WITH ({FILES})", "22023", "missing FORMAT … ENCODE … clause"),
    (
        "CREATE SOURCE s (a int) WITH (connector = 'posix_fs') FORMAT PLAIN ENCODE CSV",
        "22023",
        "missing field `posix_fs.root`",
    ),
    (
        f"CREATE SOURCE s (a int) WITH ({FILES}) FORMAT PLAIN ENCODE CSV (delimiter = 'ab')",
        "22023",
        "invalid value for delimiter: ab",
    ),
    (
        f"CREATE SOURCE s (a int[]) WITH ({FILES}) FORMAT PLAIN ENCODE CSV",
        "0A000",
        'column "a" of type integer[] cannot be read from CSV',
    ),
    (
        f"CREATE SOURCE s (a int) INCLUDE key AS k WITH ({FILES}) FORMAT PLAIN ENCODE CSV",
        "22023",
        "connector posix_fs does not support INCLUDE key",
    ),
    (
        f"CREATE SOURCE s (a int) INCLUDE file AS a WITH ({FILES}) FORMAT PLAIN ENCODE CSV",
        "42701",
        'column "a" specified more than once',
    ),
    ("CREATE SOURCE s (a int PRIMARY KEY) WITH (connector = 'datagen')", "0A000", "a source cannot have a primary key"),
    (
        "CREATE SOURCE s (a int NOT NULL) WITH (connector = 'datagen')",
        "0A000",
        'column "a" of a source cannot be NOT NULL',
    ),
    (
        "CREATE SOURCE s (a int) WITH (connector = 'datagen', source_rate_limit = 'x')",
        "22023",
        "invalid value for source_rate_limit: x",
    ),
    (
        "CREATE TEMPORARY TABLE s (a int) WITH (connector = 'datagen')",
        "0A000",
        "a temporary table cannot have a connector",
    ),
    ("ALTER SOURCE s SET SOURCE_RATE_LIMIT = 1", "42704", 'source "s" does not exist'),
    ("DROP SOURCE s", "42704", 'source "s" does not exist'),
]


@pytest.mark.parametrize(("sql", "sqlstate", "message"), ERRORS, ids=[sql for sql, *_ in ERRORS])
def test_errors(session: Connection, sql: str, sqlstate: str, message: str) -> None:
    error = refused(session, sql)
    assert (error.sqlstate, error.diag.message_primary) == (sqlstate, message)
    assert error.diag.statement_position is not None


def test_only_superusers_read_files(in_process_server: Server, session: Connection, tmp_path: Path) -> None:
    session.execute("CREATE USER plain_reader PASSWORD 'p'")
    session.execute("GRANT CREATE ON SCHEMA public TO plain_reader")
    with in_process_server.connect(user="plain_reader", password="p") as other:
        error = refused(
            other,
            f"CREATE SOURCE s (a int) WITH (connector = 'posix_fs', posix_fs.root = '{tmp_path}') "
            "FORMAT PLAIN ENCODE CSV",
        )
        assert error.sqlstate == "42501"
        other.execute("CREATE SOURCE own_numbers (a int) WITH (connector = 'datagen', source_rate_limit = 0)")
        other.execute("DROP SOURCE own_numbers")


def test_catalogs(session: Connection) -> None:
    session.execute(
        "CREATE SOURCE listed (v int, at timestamp, WATERMARK FOR at AS at - INTERVAL '5' SECOND) WITH ("
        "connector = 'datagen', fields.v.max = '9', source_rate_limit = 0) FORMAT PLAIN ENCODE JSON"
    )
    definition = (
        "CREATE SOURCE listed (v INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '5' SECOND) WITH (connector = "
        "'datagen', fields.v.max = '9', source_rate_limit = '0') FORMAT PLAIN ENCODE JSON"
    )
    assert rows(session, "SHOW CREATE SOURCE listed") == [("public.listed", definition)]
    assert ("public.listed",) in rows(session, "SHOW SOURCES LIKE 'lis%'")
    assert ("public.listed",) not in rows(session, "SHOW TABLES")
    [found] = rows(
        session,
        "SELECT id = 'listed'::regclass::int, connector, columns, format, row_encode, append_only, "
        "associated_table_id, is_shared, connector_props, format_encode_options "
        "FROM rw_catalog.rw_sources WHERE name = 'listed'",
    )
    props = {name: {"type": "plaintext", "value": value} for name, value in
             (("connector", "datagen"), ("fields.v.max", "9"), ("source_rate_limit", "0"))}  # fmt: skip
    assert found[:8] == (True, "DATAGEN", ["v", "at", "_row_id"], "PLAIN", "JSON", True, None, False)
    assert props.items() <= found[8].items()
    assert found[9] == {}
    assert rows(session, "SELECT relation_type FROM rw_catalog.rw_relations WHERE name = 'listed'") == [("source",)]
    assert rows(session, "SELECT relkind FROM pg_class WHERE relname = 'listed'") == [("s",)]
    assert rows(session, "DESCRIBE listed")[0] == ("v", "integer", "false", None)
    assert refused(session, "INSERT INTO listed VALUES (1)").sqlstate == "42809"
    assert refused(session, "DELETE FROM listed").sqlstate == "42809"
    assert "DROP SOURCE" in str(refused(session, "DROP TABLE listed"))
    session.execute("CREATE VIEW over_listed AS SELECT v FROM listed")
    assert refused(session, "DROP SOURCE listed").sqlstate == "2BP01"
    assert session.execute("ALTER SOURCE listed RENAME TO relisted").statusmessage == "ALTER SOURCE"
    assert rows(session, "SHOW CREATE SOURCE relisted")[0][1].startswith("CREATE SOURCE relisted (v INT")
    session.execute("COMMENT ON SOURCE relisted IS 'numbers'")
    notices: list[str] = []
    session.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
    session.execute("CREATE SOURCE IF NOT EXISTS relisted (v int) WITH (connector = 'datagen')")
    assert notices == ['relation "relisted" already exists, skipping']
    assert session.execute("DROP SOURCE relisted CASCADE").statusmessage == "DROP SOURCE"
    assert rows(session, "SELECT * FROM rw_catalog.rw_source_status WHERE source_name LIKE '%listed'") == []
    session.execute("DROP SOURCE IF EXISTS relisted")


def test_a_tables_own_rules(session: Connection) -> None:
    """The last row of a key stays, an append-only table keeps the first, and late rows are dropped."""
    options = "connector = 'datagen', fields.n.kind = 'sequence', fields.n.end = 99, datagen.rows.per.second = 500"
    for name, suffix in (("overwritten", ""), ("kept", " APPEND ONLY")):
        session.execute(f"CREATE TABLE {name} (k int PRIMARY KEY, n int){suffix} WITH ({options}, fields.k.max = 0)")
    wait_for(session, "SELECT * FROM overwritten", [(0, 99)])
    wait_until(lambda: status(session, "kept")[0] == "FINISHED", SECONDS)
    assert rows(session, "SELECT * FROM kept") == [(0, 0)]
    session.execute("DROP TABLE overwritten")
    session.execute("DROP TABLE kept")


@pytest.mark.long
def test_dropped_while_it_delivers(session: Connection) -> None:
    """Nothing is left of it, and the name is free."""
    create = (
        "CREATE SOURCE fast WITH (connector = 'nexmark', nexmark.table.type = 'bid', nexmark.min.event.gap.in.ns = 0)"
    )
    for _ in range(2):
        session.execute(create)
        assert wait_until(lambda: rows(session, "SELECT count(*) > 0 FROM fast") == [(True,)], SECONDS)
        session.execute("DROP SOURCE fast")
    wait_until(lambda: False, 0.5)
    assert rows(session, "SELECT * FROM rw_catalog.rw_source_status WHERE source_name = 'public.fast'") == []
    assert refused(session, "SELECT * FROM fast").sqlstate == "42P01"
