"""ALTER DATABASE: another name and another owner. Answers agree with PostgreSQL 15.18."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from servers import Server, refused, wait_until

Connection = psycopg.Connection[Any]


def _renamed(root: Connection, old: str, new: str) -> bool:
    """Whether the rename went through: a connection that was just closed may still count."""
    try:
        return root.execute(f"ALTER DATABASE {old} RENAME TO {new}").statusmessage == "ALTER DATABASE"
    except psycopg.errors.ObjectInUse:
        return False


@pytest.mark.long
def test_rename(server: Server) -> None:
    with server.connect() as root:
        root.execute("CREATE DATABASE shop")
        with server.connect(dbname="shop") as inside:
            inside.execute(
                "CREATE SCHEMA s; CREATE TABLE shop.s.t (a int PRIMARY KEY); INSERT INTO s.t VALUES (1), (2)"
            )
            inside.execute("CREATE VIEW s.v AS SELECT shop.s.t.a FROM shop.s.t WHERE shop.s.t.a > 1")
            inside.execute('CREATE MATERIALIZED VIEW "shop".s.m AS SELECT count(*) AS n FROM "shop".s.v')
            error = refused(root, "ALTER DATABASE shop RENAME TO store")
            assert (error.sqlstate, error.diag.message_primary) == (
                "55006",
                'database "shop" is being accessed by other users',
            )
            assert error.diag.message_detail == "There is 1 other session using the database."
        assert wait_until(lambda: _renamed(root, "shop", "store"), timeout=10)
    server.kill()
    again = Server(server.data)
    try:
        with pytest.raises(psycopg.OperationalError, match='database "shop" does not exist'):
            again.connect(dbname="shop")
        with again.connect(dbname="store") as inside:
            assert inside.execute("SELECT a FROM store.s.v").fetchall() == [(2,)]
            inside.execute("INSERT INTO store.s.t VALUES (3); FLUSH")
            assert inside.execute("SELECT n FROM s.m").fetchall() == [(2,)]
            shown = inside.execute("SHOW CREATE MATERIALIZED VIEW s.m").fetchone() or ()
            assert "store.s.v" in shown[1] and "shop" not in shown[1]
            inside.execute("DROP SCHEMA s CASCADE")
    finally:
        again.kill()


@pytest.mark.long
def test_rename_refused(module_server: Server) -> None:
    with module_server.connect() as root:
        root.execute("CREATE DATABASE one; CREATE DATABASE two; CREATE USER guest; CREATE USER maker CREATEDB")
        for user, sql, sqlstate, message in (
            ("root", "ALTER DATABASE one RENAME TO two", "42P04", 'database "two" already exists'),
            ("root", "ALTER DATABASE nothing RENAME TO x", "3D000", 'database "nothing" does not exist'),
            ("root", "ALTER DATABASE dev RENAME TO x", "0A000", "current database cannot be renamed"),
            ("guest", "ALTER DATABASE one RENAME TO x", "42501", "must be owner of database one"),
            ("guest", "ALTER DATABASE one OWNER TO guest", "42501", "must be owner of database one"),
            ("root", "ALTER DATABASE one OWNER TO nobody", "42704", 'role "nobody" does not exist'),
        ):
            with module_server.connect(user=user) as own:
                error = refused(own, sql)
            assert (error.sqlstate, error.diag.message_primary) == (sqlstate, message), sql
        root.execute("ALTER DATABASE one OWNER TO guest")
        owner = "SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = 'one'"
        assert root.execute(owner).fetchone() == ("guest",)
        with module_server.connect(user="guest") as guest:
            assert refused(guest, "ALTER DATABASE one RENAME TO x").sqlstate == "42501"  # wants CREATEDB
        root.execute("ALTER DATABASE one OWNER TO maker")
        with module_server.connect(user="maker") as maker:
            maker.execute("ALTER DATABASE one RENAME TO uno; DROP DATABASE uno")
        root.execute("DROP DATABASE two")


def test_drop_takes_what_is_in_it(in_process_server: Server) -> None:
    with in_process_server.connect() as root:
        root.execute("CREATE DATABASE full_one")
        with in_process_server.connect(dbname="full_one") as inside:
            inside.execute("CREATE TABLE t (k int PRIMARY KEY); INSERT INTO t VALUES (1)")
            inside.execute("CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n FROM t")
            inside.execute("CREATE SCHEMA s; CREATE VIEW s.v AS SELECT n FROM m")
            inside.execute("CREATE FUNCTION s.f(a int) RETURNS int LANGUAGE SQL RETURN a + 1")
            error = refused(root, "DROP DATABASE full_one")
            assert (error.sqlstate, error.diag.message_primary) == (
                "55006",
                'database "full_one" is being accessed by other users',
            )
        assert root.execute("DROP DATABASE full_one").statusmessage == "DROP DATABASE"
        root.execute("CREATE DATABASE full_one")
        with in_process_server.connect(dbname="full_one") as inside:
            assert refused(inside, "SELECT * FROM t").sqlstate == "42P01"
            assert inside.execute("SELECT nspname FROM pg_namespace WHERE nspname = 's'").fetchall() == []
            assert inside.execute("SELECT name FROM rw_catalog.rw_functions").fetchall() == []
            inside.execute("CREATE TABLE t (other text)")
        root.execute("DROP DATABASE full_one")
        root.execute("CREATE TABLE still_here (k int); FLUSH; DROP TABLE still_here")


def test_use(module_server: Server) -> None:
    """USE and SET DATABASE, as in RisingWave: names, views and prepared statements are those of the new database."""
    with module_server.connect() as root:
        root.execute("CREATE DATABASE other")
        root.execute("CREATE TABLE used (v int)")
        root.execute("INSERT INTO used VALUES (1)")
        root.execute("PREPARE read AS SELECT v FROM used")
        assert root.execute("EXECUTE read").fetchall() == [(1,)]
        assert root.execute("USE other").statusmessage == "USE"
        assert root.execute("SELECT current_database(), count(*) FROM rw_catalog.rw_tables").fetchall() == [
            ("other", 0)
        ]
        assert refused(root, "SELECT v FROM used").sqlstate == "42P01"
        root.execute("CREATE TABLE used (v int)")
        root.execute("INSERT INTO used VALUES (2)")
        root.execute("CREATE MATERIALIZED VIEW m AS SELECT sum(v) AS v FROM used")
        assert root.execute("SELECT v FROM m").fetchall() == [(2,)]
        assert root.execute("EXECUTE read").fetchall() == [(2,)]
        assert refused(root, "DROP DATABASE other").sqlstate == "55006"
        assert root.execute("SET DATABASE TO 'dev'").statusmessage == "SET"
        assert root.execute("EXECUTE read").fetchall() == [(1,)]
        assert root.execute("SET database = dev").statusmessage == "SET"
        root.execute("DROP DATABASE other")


def test_use_refused(module_server: Server) -> None:
    with module_server.connect() as root:
        root.execute("CREATE DATABASE closed; CREATE USER outsider; REVOKE CONNECT ON DATABASE closed FROM public")
        error = refused(root, "USE nosuch")
        assert (error.sqlstate, error.diag.message_primary) == ("3D000", 'database "nosuch" does not exist')
        assert error.diag.statement_position == "5"
        with module_server.connect(user="outsider") as outsider:
            assert refused(outsider, "USE closed").sqlstate == "42501"
            assert refused(outsider, "SET DATABASE TO closed").diag.statement_position == "17"
        root.execute("BEGIN")
        assert refused(root, "USE closed").sqlstate == "25001"
        root.execute("ROLLBACK")
        root.execute("CREATE TEMP TABLE own (v int)")
        assert refused(root, "USE closed").sqlstate == "55006"
        root.execute("USE dev")
        root.execute("DISCARD TEMP")
        root.execute("USE closed")
        assert refused(root, "SET LOCAL database = dev").sqlstate == "42704"


OWN = "SELECT barrier_interval_ms, checkpoint_frequency FROM rw_catalog.rw_databases WHERE name = 'paced'"


def test_intervals_of_a_database(module_server: Server) -> None:
    with module_server.connect() as root:
        root.execute("CREATE DATABASE paced WITH barrier_interval_ms = 1500 checkpoint_frequency = 2")
        assert root.execute(OWN).fetchone() == (1500, 2)
        root.execute("ALTER DATABASE paced SET BARRIER_INTERVAL_MS TO 2000")
        root.execute("ALTER DATABASE paced SET checkpoint_frequency = DEFAULT")
        assert root.execute(OWN).fetchone() == (2000, None)
        root.execute("ALTER DATABASE paced RENAME TO renamed; ALTER DATABASE renamed RENAME TO paced")
        assert root.execute(OWN).fetchone() == (2000, None)
        for sql, sqlstate, message in (
            ("ALTER DATABASE paced SET BARRIER_INTERVAL_MS = 10", "22023", "value 10 out of range, expect 50"),
            ("ALTER DATABASE paced SET CHECKPOINT_FREQUENCY = many", "22023", "Invalid value `many`"),
            ("CREATE DATABASE other CHECKPOINT_FREQUENCY = 0", "22023", "value 0 out of range, expect 1"),
            ("ALTER DATABASE nosuch SET BARRIER_INTERVAL_MS = 100", "3D000", 'database "nosuch" does not exist'),
        ):
            error = refused(root, sql)
            assert error.sqlstate == sqlstate and message in (error.diag.message_primary or "")
        told: list[str] = []
        root.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))
        root.execute("ALTER DATABASE paced SET CHECKPOINT_FREQUENCY = 60")
        assert told == ["Checkpoint frequency is set to 60 >= 60. This can hurt freshness and potentially cause OOM."]
        root.execute("DROP DATABASE paced")


def test_the_shortest_interval_counts(module_server: Server) -> None:
    """A checkpoint stores all views: that of a database with a short interval comes long before the system's."""
    with module_server.connect() as root:
        root.execute("ALTER SYSTEM SET checkpoint_frequency = 1000")
        root.execute("CREATE DATABASE quick barrier_interval_ms = 50 checkpoint_frequency = 1")
        root.execute("CREATE TABLE fast (v int); CREATE MATERIALIZED VIEW sums AS SELECT sum(v) AS v FROM fast")
        root.execute("SET visibility_mode = checkpoint")
        root.execute("INSERT INTO fast VALUES (1)")
        assert wait_until(lambda: root.execute("SELECT v FROM sums").fetchall() == [(1,)], 20)
        root.execute("DROP MATERIALIZED VIEW sums; DROP TABLE fast; DROP DATABASE quick")
        root.execute("ALTER SYSTEM SET checkpoint_frequency TO DEFAULT")
