"""Sequences, SERIAL and identity columns: PostgreSQL's numbers, through restarts, kills and many clients at once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from postgres import beside, differences
from servers import Server, rows

Connection = psycopg.Connection[Any]

# Statements whose errors are worded as RisingWave's, or that PostgreSQL words otherwise for another reason.
OTHER_WORDS = {"SELECT nextval('nowhere')", "SELECT nextval('tiny')", "SELECT nextval('t_id_seq')"}


@pytest.fixture(scope="module")
def both(module_server: Server) -> Iterator[tuple[Connection, Connection]]:
    with beside(module_server) as found:
        yield found


def test_as_postgresql(both: tuple[Connection, Connection]) -> None:
    different = differences(both, "sequences.sql", OTHER_WORDS)
    assert not different, "\n".join(map(str, different))


@pytest.mark.parametrize("last", ["currval('by_row')", "lastval()"])
def test_the_last_number_beside_the_next_by_row_is_refused(connection: Connection, last: str) -> None:
    connection.execute("CREATE SEQUENCE IF NOT EXISTS by_row")
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="beside nextval"):
        connection.execute(f"SELECT nextval('by_row'), {last} FROM generate_series(1, 3)".encode())
    assert rows(connection, f"SELECT nextval('by_row') = {last}") == [(True,)]


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_no_number_is_given_again(tmp_path: Path, how: str) -> None:
    """A kill may leave some out, a stop leaves none out."""
    server = Server(tmp_path / "data", spark_start="on_demand")
    with server.connect() as connection:
        connection.execute("CREATE TABLE t (id serial, v int)")
        connection.execute("CREATE SEQUENCE down INCREMENT -3")
        for n in range(100):
            connection.execute("INSERT INTO t (v) VALUES (%s)", [n])
        last = rows(connection, "SELECT nextval('down')")[0][0]
        assert rows(connection, "SELECT min(id), max(id), count(DISTINCT id) FROM t") == [(1, 100, 100)]
    server.kill() if how == "kill" else server.stop()
    server = Server(tmp_path / "data", spark_start="on_demand")
    with server.connect() as connection:
        [(id_,)] = rows(connection, "INSERT INTO t (v) VALUES (0) RETURNING id")
        [(next_,)] = rows(connection, "SELECT nextval('down')")
        assert id_ == 101 if how == "stop" else 100 < id_ <= 229
        assert next_ == last - 3 if how == "stop" else last - 100 <= next_ < last
    server.kill()


def test_many_clients(module_server: Server, connection: Connection) -> None:
    """Each has its own numbers, and its own last one."""
    connection.execute("CREATE TABLE many (id bigserial PRIMARY KEY, client int)")
    faults: list[object] = []

    def insert(client: int) -> None:
        with module_server.connect() as own:
            for _ in range(20):
                [(id_,)] = rows(own, f"INSERT INTO many (client) VALUES ({client}) RETURNING id")
                seen = rows(own, "SELECT currval('many_id_seq'), lastval()")
                if seen != [(id_, id_)]:
                    faults.append((client, id_, seen))
                own.execute(f"INSERT INTO many (client) VALUES ({client}), ({client})".encode())
                [(last, own_last)] = rows(own, f"SELECT lastval(), max(id) FROM many WHERE client = {client}")
                if last != own_last:
                    faults.append((client, last, own_last))

    clients = [threading.Thread(target=insert, args=(number,)) for number in range(6)]
    for client in clients:
        client.start()
    for client in clients:
        client.join(60)
    assert faults == []
    assert rows(connection, "SELECT count(*), count(DISTINCT id), max(id) FROM many") == [(360, 360, 360)]


def test_who_may_draw(module_server: Server, connection: Connection) -> None:
    connection.execute("CREATE USER drawer; CREATE SEQUENCE guarded; CREATE TABLE filled (id serial, v int)")
    connection.execute("GRANT INSERT ON filled TO drawer")
    with module_server.connect(user="drawer") as other:
        other.execute("INSERT INTO filled (v) VALUES (1)")
        for call in ("nextval('guarded')", "setval('guarded', 1)"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied for sequence guarded"):
                other.execute(f"SELECT {call}".encode())
        connection.execute("GRANT USAGE ON SEQUENCE guarded TO drawer")
        assert rows(other, "SELECT nextval('guarded')") == [(1,)]
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            other.execute("SELECT setval('guarded', 1)")


@pytest.mark.parametrize("query", ["setval('beside', 10), nextval('beside')", "currval('beside'), setval('beside', 1)"])
def test_a_query_sets_a_sequence_or_draws_from_it(connection: Connection, query: str) -> None:
    connection.execute("CREATE SEQUENCE IF NOT EXISTS beside")
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="beside setval of the same sequence"):
        connection.execute(f"SELECT {query}".encode())
    [(number,)] = rows(connection, "SELECT setval('beside', nextval('beside') + 10)")
    assert rows(connection, "SELECT nextval('beside')") == [(number + 1,)]


def test_views_follow(connection: Connection) -> None:
    connection.execute("CREATE TABLE counted (id serial PRIMARY KEY, v int)")
    connection.execute("CREATE MATERIALIZED VIEW sums AS SELECT sum(id) AS s, count(*) AS n FROM counted")
    connection.execute("INSERT INTO counted (v) SELECT i FROM generate_series(1, 1000) i")
    connection.execute("UPDATE counted SET v = nextval('counted_id_seq') WHERE id <= 10")
    connection.execute("FLUSH")
    assert rows(connection, "SELECT s, n FROM sums") == [(500500, 1000)]
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="nextval"):
        connection.execute("CREATE MATERIALIZED VIEW drawn AS SELECT nextval('counted_id_seq') AS x FROM counted")
    with pytest.raises(psycopg.errors.FeatureNotSupported, match='cannot leave out column "id"'):
        connection.execute("CREATE SINK into_it INTO counted (v) AS SELECT n::int FROM sums")


def test_in_an_atomic_transaction(connection: Connection) -> None:
    """Numbers of what is rolled back are not given again."""
    connection.execute("CREATE TABLE atomic (id serial, v int)")
    connection.execute("SET atomic_transactions = on")
    connection.execute("BEGIN")
    assert rows(connection, "INSERT INTO atomic (v) VALUES (1) RETURNING id") == [(1,)]
    connection.execute("ROLLBACK")
    connection.execute("BEGIN")
    assert rows(connection, "INSERT INTO atomic (v) VALUES (1) RETURNING id") == [(2,)]
    assert rows(connection, "UPDATE atomic SET v = nextval('atomic_id_seq') RETURNING v") == [(3,)]
    connection.execute("COMMIT")
    assert rows(connection, "SELECT id, v FROM atomic") == [(2, 3)]
    connection.execute("SET atomic_transactions = off")
    connection.execute("BEGIN READ ONLY")
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction, match=r"cannot execute nextval\(\)"):
        connection.execute("SELECT nextval('atomic_id_seq')")
    connection.execute("ROLLBACK")


def test_defaults_that_draw_keep_their_sequence(connection: Connection) -> None:
    connection.execute("CREATE SEQUENCE drawn_from")
    connection.execute("CREATE TABLE drawing (id bigint DEFAULT nextval('drawn_from'), v int)")
    with pytest.raises(psycopg.errors.DependentObjectsStillExist) as refused:
        connection.execute("DROP SEQUENCE drawn_from")
    assert "default value for column id of table drawing" in str(refused.value.diag.message_detail)
    connection.execute("CREATE SCHEMA elsewhere")
    connection.execute("ALTER SEQUENCE drawn_from SET SCHEMA elsewhere")
    assert rows(connection, "INSERT INTO drawing (v) VALUES (1) RETURNING id") == [(1,)]
    with connection.cursor() as cursor, cursor.copy("COPY drawing (v) FROM STDIN") as copy:
        copy.write_row((2,))
        copy.write_row((3,))
    assert rows(connection, "SELECT id, v FROM drawing ORDER BY id") == [(1, 1), (2, 2), (3, 3)]
    connection.execute("DROP SEQUENCE elsewhere.drawn_from CASCADE")
    assert rows(connection, "INSERT INTO drawing (v) VALUES (1) RETURNING id") == [(None,)]


def test_show_create_table_names_sequences(connection: Connection) -> None:
    """Also after ALTER TABLE: the statement makes the same table again."""
    connection.execute("CREATE SEQUENCE drawn")
    connection.execute("""CREATE TABLE numbered (i int GENERATED ALWAYS AS IDENTITY, j bigint GENERATED BY DEFAULT AS
                          IDENTITY, k bigint DEFAULT nextval('drawn'))""")
    connection.execute("ALTER TABLE numbered ADD COLUMN more int")
    ((_, text),) = rows(connection, "SHOW CREATE TABLE numbered")
    assert "i INT GENERATED ALWAYS AS IDENTITY NOT NULL, j BIGINT GENERATED BY DEFAULT AS IDENTITY" in text
    assert "k BIGINT DEFAULT nextval('public.drawn')" in text
    connection.execute("DROP TABLE numbered")
    connection.execute(text)
    assert rows(connection, "INSERT INTO numbered DEFAULT VALUES RETURNING i, j, k") == [(1, 1, 1)]
    connection.execute("DROP TABLE numbered")
    connection.execute("DROP SEQUENCE drawn")
