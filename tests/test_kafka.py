"""The connector kafka, against the broker that librdkafka brings along (tests/brokers.py)."""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from brokers import Broker
from servers import Server, free_port, refused, rows, wait_until
from test_sources import status, wait_for, wait_for_reason

from sparkwave.catalog.errors import Error
from sparkwave.executor.sources import kafka_client

Connection = psycopg.Connection[Any]
SECONDS = 30


@pytest.fixture(scope="module")
def broker() -> Broker:
    return Broker()


@pytest.fixture
def session(in_process_server: Server) -> Iterator[Connection]:
    with in_process_server.connect() as opened:
        yield opened


def options(broker: Broker, topic: str, *more: str) -> str:
    given = [f"connector = 'kafka', topic = '{topic}', properties.bootstrap.server = '{broker.address}'", *more]
    return ", ".join(given)


def source(broker: Broker, topic: str, *more: str, encode: str = "FORMAT PLAIN ENCODE JSON") -> str:
    return f"WITH ({options(broker, topic, *more)}) {encode}"


# Sources.


@pytest.mark.long
def test_json_with_all_that_is_known_of_a_message(session: Connection, broker: Broker) -> None:
    before = time.time()
    broker.send(
        "events",
        [
            (
                b"k0",
                b'{"id": 0, "at": 1700000000000, "tags": ["a", null], "who": {"name": "ann"}}',
                0,
                [("h", b"\x01")],
            ),
            (None, b'{"id": 1, "amount": 12.50, "more": 1}', 3),
            (b"k2", b'{"id": 2, "doc": {"x": [1]}}', 0),
            (b"gone", None, 1),
        ],
    )
    session.execute(
        "CREATE SOURCE events (id int, at timestamp, amount numeric(10,2), tags varchar[], who STRUCT<name varchar>, "
        "doc jsonb, twice int AS id * 2) INCLUDE key AS k INCLUDE partition AS p INCLUDE offset AS o "
        f"INCLUDE timestamp AS t INCLUDE header AS h INCLUDE payload {source(broker, 'events')}"
    )
    wait_for(
        session,
        "SELECT id, at::varchar, amount::varchar, tags, (who).name, doc::varchar, twice, k, p, o FROM events "
        "ORDER BY id",
        [
            (0, "2023-11-14 22:13:20", None, ["a", None], "ann", None, 0, b"k0", "0", "0"),
            (1, None, "12.50", None, None, None, 2, None, "3", "0"),
            (2, None, None, None, None, '{"x":[1]}', 4, b"k2", "0", "1"),
        ],
    )
    [(low, high)] = rows(session, "SELECT min(t), max(t) FROM events")
    assert before - 1 <= low.timestamp() <= high.timestamp() <= time.time() + 1
    assert rows(session, "SELECT id, _rw_payload->'id' FROM events WHERE id = 1") == [(1, 1)]
    assert rows(session, "SELECT (h[1]).key, (h[1]).value FROM events WHERE id = 0") == [("h", b"\x01")]
    assert rows(session, "SELECT count(*) FROM events WHERE h IS NULL") == [(2,)]
    assert status(session, "events") == ("RUNNING", "4 rows consumed", None)
    places = "SELECT split, position FROM rw_catalog.rw_source_splits WHERE source_name = 'public.events' ORDER BY 1"
    assert rows(session, places) == [("0", 2), ("1", 1), ("3", 1)]
    session.execute("CREATE MATERIALIZED VIEW of_events AS SELECT count(*) AS n, sum(id) AS s FROM events")
    broker.send("events", [(None, b'{"id": 10}', number) for number in range(4)])
    wait_for(session, "SELECT * FROM of_events", [(7, 43)])


def test_where_it_starts(session: Connection, broker: Broker) -> None:
    """`latest` is settled by CREATE: what comes after it is read, whenever that is."""
    broker.send("starts", [(None, b'{"id": 1}', number) for number in range(4)])
    session.execute(f"CREATE SOURCE from_first (id int) {source(broker, 'starts')}")
    latest = ("scan.startup.mode = 'latest'", "source_rate_limit = 0")
    session.execute(f"CREATE SOURCE from_end (id int) {source(broker, 'starts', *latest)}")
    broker.send("starts", [(None, b'{"id": 2}', 0)])
    session.execute("ALTER SOURCE from_end SET SOURCE_RATE_LIMIT = DEFAULT")
    wait_for(session, "SELECT id, count(*) FROM from_first GROUP BY id ORDER BY id", [(1, 4), (2, 1)])
    wait_for(session, "SELECT id FROM from_end", [(2,)])


def test_csv_and_bytes(session: Connection, broker: Broker) -> None:
    broker.send("lines", [(None, b'1;"a;\n""b"""', 0), (None, b"2;\r\n", 0), (None, b";c", 0)])
    csv = "FORMAT PLAIN ENCODE CSV (without_header = 'true', delimiter = ';')"
    session.execute(f"CREATE TABLE lines (id int, t varchar) INCLUDE offset AS o {source(broker, 'lines', encode=csv)}")
    wait_for(session, "SELECT id, t, o FROM lines ORDER BY o", [(1, 'a;\n"b"', "0"), (2, None, "1"), (None, "c", "2")])
    plain = "FORMAT PLAIN ENCODE BYTES"
    session.execute(f"CREATE TABLE raw (b bytea) INCLUDE offset AS o {source(broker, 'lines', encode=plain)}")
    wait_for(session, "SELECT b FROM raw ORDER BY o", [(b'1;"a;\n""b"""',), (b"2;\r\n",), (b";c",)])


def test_upsert(session: Connection, broker: Broker) -> None:
    """The last message of a key counts, and one without a value takes the row away."""
    upsert = "FORMAT UPSERT ENCODE JSON"
    broker.send("keyed", [(b"a", b'{"n": 1}'), (b"b", b'{"n": 2}'), (b"a", b'{"n": 3}'), (b"c", None)])
    session.execute(
        f"CREATE TABLE keyed (n int, PRIMARY KEY (k)) INCLUDE key AS k {source(broker, 'keyed', encode=upsert)}"
    )
    session.execute("CREATE MATERIALIZED VIEW of_keyed AS SELECT sum(n) AS s FROM keyed")
    wait_for(session, "SELECT k, n FROM keyed ORDER BY k", [(b"a", 3), (b"b", 2)])
    broker.send("keyed", [(b"b", b'{"n": 9}'), (b"b", None), (b"c", b'{"n": 4}'), (b"a", None), (b"a", b'{"n": 5}')])
    wait_for(session, "SELECT k, n FROM keyed ORDER BY k", [(b"a", 5), (b"c", 4)])
    wait_for(session, "SELECT s FROM of_keyed", [(9,)])


@pytest.mark.long
def test_a_message_that_cannot_be_read(session: Connection, broker: Broker) -> None:
    """Its partition stays before it, and the reason says where it is; the others go on."""
    broker.send("spoilt", [(None, b'{"id": 1}', 1)])
    session.execute(f"CREATE SOURCE spoilt (id int) {source(broker, 'spoilt')}")
    wait_for(session, "SELECT id FROM spoilt", [(1,)])
    broker.send("spoilt", [(None, b'{"id": "x"}', 1), (None, b'{"id": 2}', 2)])
    wait_for(session, "SELECT id FROM spoilt ORDER BY id", [(1,), (2,)])
    assert wait_for_reason(session, "spoilt") == (
        'topic "spoilt", partition 1, offset 1: column "id": invalid input syntax for type integer: "x"'
    )
    broker.send("spoilt", [(None, b'{"id": 3', 3), (None, b"\xff", 0), (None, b'{"id": 4}', 2)])
    wait_for(session, "SELECT id FROM spoilt ORDER BY id", [(1,), (2,), (4,)])
    reasons = "SELECT split, reason FROM rw_catalog.rw_source_splits WHERE source_name = 'public.spoilt' ORDER BY 1"
    assert wait_until(lambda: sum(reason is not None for _, reason in rows(session, reasons)) == 3, SECONDS)
    found = dict(rows(session, reasons))
    assert found["3"] == 'topic "spoilt", partition 3, offset 0: no JSON: "{"id": 3"'
    assert found["0"].startswith('topic "spoilt", partition 0, offset 0: ')
    assert found["2"] is None
    session.execute("DROP SOURCE spoilt")


@pytest.mark.long
def test_new_messages_after_a_kill_come_once(tmp_path: Path, broker: Broker) -> None:
    kill_while_it_delivers(tmp_path, broker, "killed", kills=1, count=10_000)


@pytest.mark.long
def test_many_kills(tmp_path: Path, broker: Broker) -> None:
    kill_while_it_delivers(tmp_path, broker, "killed_often", kills=10, count=60_000)


def kill_while_it_delivers(tmp_path: Path, broker: Broker, topic: str, kills: int, count: int) -> None:
    chooser = random.Random(kills)
    server = Server(tmp_path / "data")
    try:
        with server.connect() as own:
            own.execute("ALTER SYSTEM SET backfill_engine = auto")
            broker.make(topic)
            own.execute(
                f"CREATE SOURCE t (id int) INCLUDE partition AS p INCLUDE offset AS o "
                f"{source(broker, topic, f'source_rate_limit = {count // (2 * kills)}')}"
            )
            own.execute("CREATE MATERIALIZED VIEW m AS SELECT p, count(*) AS n, sum(id) AS s FROM t GROUP BY p")
        broker.send(topic, [(None, json.dumps({"id": number}), number % 4) for number in range(count)])
        for _ in range(kills):
            time.sleep(chooser.uniform(0.3, 1.5))
            server.kill()
            server = Server(tmp_path / "data")
        with server.connect() as own:
            wait_for(own, "SELECT count(*) >= 1 FROM t", [(True,)])
            own.execute("ALTER SOURCE t SET SOURCE_RATE_LIMIT = DEFAULT")
            expected = [(count, count, count * (count - 1) // 2)]
            wait_for(own, "SELECT count(*), count(DISTINCT (p, o)), sum(id) FROM t", expected)
            own.execute("FLUSH")
            assert rows(own, "SELECT sum(n), sum(s) FROM m") == [(count, expected[0][2])]
    finally:
        server.kill()


def test_a_broker_that_is_not_there(session: Connection) -> None:
    where = f"properties.bootstrap.server = '127.0.0.1:{free_port()}'"
    error = refused(session, f"CREATE SOURCE s (a int) WITH (connector = 'kafka', topic = 't', {where}) "
                             "FORMAT PLAIN ENCODE JSON")  # fmt: skip
    assert error.sqlstate == "08006"
    assert error.diag.statement_position is not None


WITH = "WITH (connector = 'kafka', topic = 't', properties.bootstrap.server = 'nowhere:1'{})"
ERRORS = [
    ("CREATE SOURCE s (a int) WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON", "22023",
     "missing field `properties.bootstrap.server`"),
    (f"CREATE SOURCE s (a int) {WITH.format('')}", "22023", "missing FORMAT … ENCODE … clause"),
    (f"CREATE SOURCE s (a int) {WITH.format('')} FORMAT PLAIN ENCODE AVRO", "22023",
     "connector kafka does not support format Plain with encode Avro"),
    (f"CREATE SOURCE s (a int) {WITH.format(', x = 1')} FORMAT PLAIN ENCODE JSON", "22023",
     'unknown option "x" of connector kafka'),
    (f"CREATE SOURCE s (a int) {WITH.format(', scan.startup.mode = now')} FORMAT PLAIN ENCODE JSON", "22023",
     "invalid value for scan.startup.mode: now"),
    (f"CREATE SOURCE s (a int) {WITH.format(', scan.startup.mode = timestamp')} FORMAT PLAIN ENCODE JSON", "22023",
     "missing field `scan.startup.timestamp.millis`"),
    (f"CREATE SOURCE s (a int) {WITH.format('')} FORMAT PLAIN ENCODE CSV", "22023",
     "ENCODE CSV of connector kafka needs without_header = 'true'"),
    (f"CREATE SOURCE s (a int) {WITH.format('')} FORMAT PLAIN ENCODE BYTES", "22023",
     "ENCODE BYTES only supports one column of type bytea"),
    (f"CREATE SOURCE s (a int) {WITH.format('')} FORMAT UPSERT ENCODE JSON", "22023",
     "INCLUDE KEY clause must be set for FORMAT UPSERT ENCODE JSON"),
    (f"CREATE TABLE s (a int PRIMARY KEY) INCLUDE key AS k {WITH.format('')} FORMAT UPSERT ENCODE JSON", "22023",
     'Only "k" can be used as primary key'),
    (f"CREATE SINK s AS SELECT 1 AS a {WITH.format('')}", "42601", "missing FORMAT … ENCODE … clause"),
    (f"CREATE SINK s AS SELECT 1 AS a {WITH.format('')} FORMAT PLAIN ENCODE CSV", "0A000",
     "sink encode unsupported: CSV"),
    (f"CREATE SINK s FROM keyless {WITH.format('')} FORMAT UPSERT ENCODE JSON", "42601",
     "Primary key must be defined for upsert kafka sink. Please define the `primary_key` field."),
    (f"CREATE SINK s FROM keyless {WITH.format(', primary_key = b')} FORMAT UPSERT ENCODE JSON", "42703",
     'column "b" of primary_key does not exist in the sink'),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "sqlstate", "message"), ERRORS, ids=[sql for sql, *_ in ERRORS])
def test_errors(session: Connection, sql: str, sqlstate: str, message: str) -> None:
    session.execute("CREATE TABLE IF NOT EXISTS keyless (a int)")
    error = refused(session, sql)
    assert (error.sqlstate, error.diag.message_primary) == (sqlstate, message)
    assert error.diag.statement_position is not None


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(Error, match="needs the package confluent-kafka") as caught:
        kafka_client.consumer({}, "g", lambda error: None)
    assert caught.value.sqlstate == "0A000"
    assert "sparkwave[kafka]" in (caught.value.hint or "")


# Sinks.


def sent(broker: Broker, topic: str, count: int) -> list[Any]:
    """Keys and values as JSON, once there are so many."""
    assert wait_until(lambda: len(broker.messages(topic)) >= count, SECONDS)
    return [tuple(None if part is None else json.loads(part) for part in m) for m in broker.messages(topic)]


def test_an_append_only_sink(session: Connection, broker: Broker) -> None:
    broker.make("out")
    session.execute(
        "CREATE TABLE facts (i int, n numeric(6,2), t varchar, b bytea, d date, at timestamp, tz timestamptz, "
        "clock time, j jsonb, l int[], s STRUCT<x int, y date>, f double precision, o boolean) APPEND ONLY"
    )
    session.execute(
        """INSERT INTO facts VALUES (1, 2.5, 'ä"', '\\x00ff', '1970-01-02', '2024-01-01 00:00:00.5',
           '2024-01-01 00:00:00+01', '00:00:01', '{"a": 1}', ARRAY[1, NULL], ROW(1, '1970-01-01'), 0.1, true)"""
    )
    session.execute(f"CREATE SINK out FROM facts WITH ({options(broker, 'out')}) FORMAT PLAIN ENCODE JSON")
    expected = {
        "i": 1, "n": "2.50", "t": 'ä"', "b": "AP8=", "d": 719164, "at": 1704067200500,
        "tz": "2023-12-31T23:00:00.000000Z", "clock": 1000, "j": '{"a":1}', "l": [1, None],
        "s": {"x": 1, "y": 719163}, "f": 0.1, "o": True,
    }  # fmt: skip
    assert sent(broker, "out", 1) == [(None, expected)]
    session.execute("INSERT INTO facts (i) VALUES (2), (3)")
    nothing = dict.fromkeys(expected)
    found = sent(broker, "out", 3)
    assert sorted((value["i"] for _, value in found)) == [1, 2, 3]
    assert (None, {**nothing, "i": 3}) in found
    session.execute("DROP SINK out")


def test_an_upsert_sink_and_a_table_of_it(session: Connection, broker: Broker) -> None:
    """What a sink sends is what FORMAT UPSERT reads."""
    broker.make("mirror")
    session.execute("CREATE TABLE origin (k int PRIMARY KEY, v int)")
    session.execute("INSERT INTO origin VALUES (1, 1), (2, 2), (3, 3)")
    session.execute(
        f"CREATE SINK mirror AS SELECT v % 2 AS odd, count(*) AS n FROM origin GROUP BY v % 2 "
        f"WITH ({options(broker, 'mirror', 'primary_key = odd')}) FORMAT UPSERT ENCODE JSON"
    )
    assert sorted(sent(broker, "mirror", 2), key=str) == [
        ({"odd": 0}, {"odd": 0, "n": 1}),
        ({"odd": 1}, {"odd": 1, "n": 2}),
    ]
    upsert = "FORMAT UPSERT ENCODE JSON"
    session.execute(
        f"CREATE TABLE copied (odd int, n bigint, PRIMARY KEY (k)) INCLUDE key AS k "
        f"{source(broker, 'mirror', encode=upsert)}"
    )
    session.execute("DELETE FROM origin WHERE k = 2")
    session.execute("UPDATE origin SET v = 5 WHERE k = 1")
    session.execute("INSERT INTO origin VALUES (7, 7)")
    wait_for(session, "SELECT odd, n FROM copied", [(1, 3)])
    assert ({"odd": 0}, None) in sent(broker, "mirror", 4)


def test_a_connection(session: Connection, broker: Broker, in_process_server: Server) -> None:
    """A source and a sink have its options and secrets, which ALTER CONNECTION changes in all; they are not shown."""
    broker.send("by_connection", [(None, b'{"v": 1}')])
    broker.make("to_connection")
    session.execute(f"CREATE SECRET kafka_at WITH (backend = 'meta') AS '{broker.address}'")
    session.execute(
        "CREATE CONNECTION shared WITH (type = 'kafka', properties.bootstrap.server = SECRET kafka_at, "
        "properties.sasl.password = 'for nobody')"
    )
    given = "connector = 'kafka', connection = shared"
    with_ = f"WITH ({given}, topic = 'by_connection') FORMAT PLAIN ENCODE JSON"
    session.execute(f"CREATE SOURCE connected (v int) {with_}")
    wait_for(session, "SELECT v FROM connected", [(1,)])
    session.execute("ALTER SOURCE connected ADD COLUMN w int")
    broker.send("by_connection", [(None, b'{"v": 2, "w": 3}')])
    wait_for(session, "SELECT v, w FROM connected ORDER BY v", [(1, None), (2, 3)])
    session.execute("CREATE TABLE facts_out (v int) APPEND ONLY")
    sink = f"WITH ({given}, topic = 'to_connection') FORMAT PLAIN ENCODE JSON"
    session.execute(f"CREATE SINK to_connected FROM facts_out {sink}")
    session.execute("INSERT INTO facts_out VALUES (1)")
    assert sent(broker, "to_connection", 1) == [(None, {"v": 1})]
    ids = "SELECT c.name FROM rw_catalog.rw_{}s s JOIN rw_catalog.rw_connections c ON c.id = s.connection_id"
    depend = "SELECT count(*) FROM rw_catalog.rw_depend JOIN rw_catalog.rw_connections c ON c.id = refobjid"
    assert rows(session, ids.format("source")) == rows(session, ids.format("sink")) == [("shared",)]
    assert rows(session, depend) == [(2,)]
    error = refused(session, "DROP CONNECTION shared")
    assert (error.sqlstate, error.diag.message_detail) == (
        "2BP01", "source public.connected depends on it\nsink public.to_connected depends on it"
    )  # fmt: skip
    detail = refused(session, "DROP SECRET kafka_at").diag.message_detail or ""
    assert detail.splitlines()[-1] == "connection shared depends on it"
    for kind, name in (("SOURCE", "connected"), ("SINK", "to_connected")):
        assert "connection = shared" in rows(session, f"SHOW CREATE {kind} {name}")[0][1]
    shown = [rows(session, "SHOW CONNECTIONS"), rows(session, "SELECT * FROM rw_catalog.rw_sources")]
    shown += [rows(session, "SELECT * FROM rw_catalog.rw_sinks"), rows(session, "SHOW PROCESSLIST")]
    assert "for nobody" not in str(shown)
    stored = (file.read_bytes() for file in in_process_server.data.rglob("*") if file.is_file())
    assert not any(b"for nobody" in content for content in stored)

    other = Broker()
    other.make("to_connection")
    session.execute(f"ALTER CONNECTION shared CONNECTOR WITH (properties.bootstrap.server = '{other.address}')")
    session.execute("INSERT INTO facts_out VALUES (2)")
    assert sent(other, "to_connection", 1) == [(None, {"v": 2})]
    session.execute("ALTER CONNECTION shared CONNECTOR WITH (properties.bootstrap.server = SECRET kafka_at)")
    session.execute("INSERT INTO facts_out VALUES (3)")
    assert sorted(value["v"] for _, value in sent(broker, "to_connection", 2)) == [1, 3]
    broker.send("by_connection", [(None, b'{"v": 4}')])
    wait_for(session, "SELECT v FROM connected ORDER BY v", [(1,), (2,), (4,)])
    session.execute("DROP CONNECTION shared CASCADE")
    assert rows(session, "SELECT name FROM rw_catalog.rw_sinks WHERE name = 'to_connected'") == []
    session.execute("DROP SECRET kafka_at")


def test_altered_options(session: Connection, broker: Broker) -> None:
    """A running sink, source and table go on with other options, which their definitions have, too."""
    broker.send("altered_in", [(None, b'{"v": 1}', 0)])
    broker.make("altered_out")
    session.execute(f"CREATE SECRET later_at WITH (backend = 'meta') AS '{(other := Broker()).address}'")
    session.execute(f"CREATE SOURCE altered_source (v int) {source(broker, 'altered_in')}")
    session.execute(f"CREATE TABLE altered_table (v int) {source(broker, 'altered_in')}")
    session.execute("CREATE TABLE altered_facts (v int) APPEND ONLY")
    session.execute(f"CREATE SINK altered_sink FROM altered_facts {source(broker, 'altered_out')}")
    for kind, name in (("SOURCE", "altered_source"), ("TABLE", "altered_table"), ("SINK", "altered_sink")):
        if kind != "SINK":
            wait_for(session, f"SELECT v FROM {name}", [(1,)])
        error = refused(session, f"ALTER {kind} {name} CONNECTOR WITH (topic = 'x')")
        what = "sink" if kind == "SINK" else "source"
        message = f"Field 'topic' is not allowed to be altered on the fly for {what}: kafka"
        assert (error.sqlstate, error.diag.message_primary) == ("22023", message)
        given = (
            "properties.bootstrap.server = SECRET later_at, properties.sasl.password = 'hush', properties.client.id = a"
        )
        session.execute(f"ALTER {kind} {name} CONNECTOR WITH ({given})")
        [(_, definition)] = rows(session, f"SHOW CREATE {kind} {name}")
        assert "topic = '" in definition and "properties.client.id = 'a'" in definition
        assert "later_at" in definition and "hush" not in definition and broker.address not in definition
    other.make("altered_out")
    other.send("altered_in", [(None, b'{"v": 1}', 0), (None, b'{"v": 2}', 0)])
    session.execute("INSERT INTO altered_facts VALUES (3)")
    assert sent(other, "altered_out", 1) == [(None, {"v": 3})]
    wait_for(session, "SELECT v FROM altered_source ORDER BY v", [(1,), (2,)])
    wait_for(session, "SELECT v FROM altered_table ORDER BY v", [(1,), (2,)])
    assert refused(session, "ALTER TABLE altered_facts CONNECTOR WITH (properties.client.id = 'a')").sqlstate == "0A000"
    session.execute("DROP SINK altered_sink")
    session.execute("DROP TABLE altered_facts, altered_table")
    session.execute("DROP SOURCE altered_source")
    session.execute("DROP SECRET later_at")


@pytest.mark.long
def test_a_sink_over_a_kill(tmp_path: Path, broker: Broker) -> None:
    """Nothing is missing; what was sent and not noted is there again."""
    broker.make("after_kill")
    server = Server(tmp_path / "data")
    try:
        with server.connect() as own:
            own.execute("ALTER SYSTEM SET backfill_engine = auto")
            own.execute("CREATE TABLE t (k int) APPEND ONLY")
            own.execute(f"CREATE SINK s FROM t WITH ({options(broker, 'after_kill')}) FORMAT PLAIN ENCODE JSON")
            for number in range(10):
                own.execute(f"INSERT INTO t VALUES ({number})")
            own.execute("FLUSH")
        server.kill()
        server = Server(tmp_path / "data")
        with server.connect() as own:
            own.execute("INSERT INTO t VALUES (10)")
            last = lambda: {value["k"] for _, value in sent(broker, "after_kill", 10)}  # noqa: E731
            assert wait_until(lambda: last() == set(range(11)), SECONDS)
    finally:
        server.kill()
