"""Session variables: names, kinds of values, SET and its variants, and the time limits of idle clients."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from servers import Server, refused

from sparkwave.server.session.variable_kinds import duration
from sparkwave.server.session.variables import SESSION, normalise

Connection = psycopg.Connection[Any]


def shown(connection: Connection, name: str) -> str:
    row = connection.execute(f"SHOW {name}").fetchone()
    assert row is not None
    return row[0]


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("0", "0ms"), ("1500", "1500ms"), ("30s", "30s"), ("1.5 s", "1500ms"), ("2 min", "2min"), ("90min", "90min"),
        ("120 min", "2h"), ("24h", "1d"), ("1999us", "2ms"), ("60000", "1min"),
    ],
)  # fmt: skip
def test_durations(written: str, printed: str) -> None:
    assert duration(written) == printed
    assert duration(printed) == printed


@pytest.mark.parametrize("written", ["soon", "1 week", "-1", "3000000000", ""])
def test_bad_durations(written: str) -> None:
    with pytest.raises(ValueError, match=r"duration expected|outside the valid range"):
        duration(written)


def test_every_default_is_a_value() -> None:
    for variable in SESSION.values():
        assert normalise(replace(variable, is_fixed=False), variable.default) == variable.default, variable.name


@pytest.mark.parametrize(
    ("name", "written", "printed"),
    [
        ("query_mode", "Local", "local"),
        ("streaming_parallelism_for_table", "4", "4"),
        ("rw_enable_two_phase_agg", "off", "false"),
        ("sink_decouple", "true", "enable"),
        ("lock_timeout", "'2s'", "2s"),
        ("idle_session_timeout", "'1h'", "1h"),
        ("extra_float_digits", "3", "3"),
        ("client_encoding", "'utf-8'", "UTF8"),
        ("client_encoding", "'latin-1'", "LATIN1"),
        ("client_encoding", "'Windows-1252'", "WIN1252"),
        ("datestyle", "'iso, European'", "ISO, DMY"),
        ("datestyle", "german", "German, DMY"),
        ("datestyle", "'mdy, GERMAN'", "German, MDY"),
        ("datestyle", "postgres, dmy", "Postgres, DMY"),
        ("intervalstyle", "ISO_8601", "iso_8601"),
        ("row_security", "off", "false"),
        ("jit", "0", "off"),
        ("transaction_isolation", "'Repeatable Read'", "repeatable read"),
        ("client_min_messages", "WARNING", "warning"),
        ("timezone", "'us/pacific'", "US/Pacific"),
    ],
)
def test_set_show_reset(connection: Connection, name: str, written: str, printed: str) -> None:
    default = shown(connection, name)
    for reset in (f"RESET {name}", f"SET {name} TO DEFAULT", "RESET ALL"):
        assert connection.execute(f"SET SESSION {name} = {written}").statusmessage == "SET"
        assert shown(connection, name) == printed
        connection.execute(reset)
        assert shown(connection, name) == default


@pytest.mark.parametrize(
    ("sql", "sqlstate", "message"),
    [
        ("SET max_identifier_length = 5", "55P02", 'parameter "max_identifier_length" cannot be changed'),
        ("SET server_version = '15'", "55P02", "cannot be changed"),
        ("SET client_encoding = 'EUC_TW'", "22023", "one of BIG5, EUC_CN, "),
        ("SET NAMES 'klingon'", "22023", "one of BIG5, EUC_CN, "),
        ("SET datestyle = 'Roman'", "22023", "ISO, SQL, Postgres or German, and MDY, DMY or YMD expected"),
        ("SET datestyle = 'ISO, German'", "22023", "conflicting specifications"),
        ("SET intervalstyle = 'roman'", "22023", "one of postgres, postgres_verbose, sql_standard, iso_8601 expected"),
        ("SET TIME ZONE INTERVAL '1 day'", "22023", """invalid value for parameter "TimeZone": "INTERVAL '1 day'\""""),
        ("SET TIME ZONE INTERVAL 'a'", "22007", 'invalid input syntax for type interval: "a"'),
        (
            "SET TIME ZONE INTERVAL '3:30'",
            "22023",
            "a time zone of whole hours, or a name such as Asia/Kolkata expected",
        ),
        ("SET TIME ZONE '+05:30'", "22023", "a time zone of whole hours, or a name such as Asia/Kolkata expected"),
        ("SET TIME ZONE 20", "22023", "an offset of up to 14 hours east or 12 hours west expected"),
        ("SET query_mode = 'fast'", "22023", "one of auto, local, distributed expected"),
        ("SET lock_timeout = '1 fortnight'", "22023", "units are us, ms, s, min, h and d"),
        ("SET nothing_like_it = 1", "42704", "Unrecognized config entry"),
        ("SHOW nothing_like_it", "42704", "Unrecognized config entry"),
    ],
)
def test_refused(connection: Connection, sql: str, sqlstate: str, message: str) -> None:
    error = refused(connection, sql)
    assert (error.sqlstate, message in str(error)) == (sqlstate, True)


@pytest.mark.parametrize(
    ("zone", "offset"),
    [
        ("'+02:00'", "-02"), ("'-2:00'", "+02"), ("'+2'", "+02"), ("-7", "-07"), ("'UTC+3'", "-03"), ("'00:00'", "+00"),
        ("'GMT-02:00'", "+02"), ("'<+02>-02'", "+02"), ("INTERVAL '-08:00' HOUR TO MINUTE", "-08"), ("3", "+03"),
        ("INTERVAL '3 hours'", "+03"), ("interval '4'hour", "+04"), ("INTERVAL '-180 minutes'", "-03"),
        ("'america/new_york'", "-05"), ("LOCAL", "+00"), ("DEFAULT", "+00"),
    ],
)  # fmt: skip
def test_time_zones(connection: Connection, zone: str, offset: str) -> None:
    """As PostgreSQL: an offset with minutes, or behind a name, is POSIX's, to the west."""
    connection.execute(f"SET TIME ZONE {zone}")
    row = connection.execute("SELECT (timestamptz '2024-01-01 00:00+00')::text").fetchone()
    connection.execute("RESET timezone")
    assert row is not None and row[0][-3:] == offset


def test_transactions_show_what_was_asked_for(connection: Connection) -> None:
    connection.execute("BEGIN ISOLATION LEVEL SERIALIZABLE, DEFERRABLE")
    assert shown(connection, "transaction_isolation") == "serializable"
    assert shown(connection, "transaction_deferrable") == "on"
    connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    assert shown(connection, "transaction_isolation") == "repeatable read"
    connection.execute("COMMIT")
    assert shown(connection, "transaction_isolation") == "read committed"
    connection.execute("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ UNCOMMITTED")
    connection.execute("BEGIN")
    assert shown(connection, "transaction_isolation") == "read uncommitted"
    connection.execute("ROLLBACK")
    assert shown(connection, "transaction_isolation") == "read uncommitted"  # of the next one
    connection.execute("RESET default_transaction_isolation")
    assert shown(connection, "transaction_isolation") == "read committed"


def test_what_clients_show(connection: Connection) -> None:
    values = {"max_identifier_length": "63", "integer_datetimes": "on", "server_encoding": "UTF8"}
    for name, value in values.items():
        assert shown(connection, name) == value
        assert connection.execute(f"SELECT current_setting('{name}')").fetchone() == (value,)
    listed = {row[0]: row[1] for row in connection.execute("SHOW ALL")}
    assert listed.keys() == SESSION.keys()
    assert listed["standard_conforming_strings"] == "on"


@pytest.mark.parametrize(
    ("level", "told"),
    [
        ("debug1", ["DEBUG", "DEBUG", "NOTICE", "WARNING"]),
        ("notice", ["NOTICE", "WARNING"]),
        ("warning", ["WARNING"]),
        ("error", []),
    ],
)
def test_the_least_important_messages(connection: Connection, level: str, told: list[str]) -> None:
    found: list[str | None] = []
    connection.add_notice_handler(lambda notice: found.append(notice.severity_nonlocalized))
    connection.execute(f"SET client_min_messages = {level}")
    connection.execute("CREATE TABLE counted (id serial PRIMARY KEY)")
    connection.execute("DROP TABLE IF EXISTS counted, nosuch")
    connection.execute("SET TRANSACTION READ ONLY")
    assert found == told


def test_set_local(connection: Connection) -> None:
    notices: list[str | None] = []
    connection.add_notice_handler(lambda notice: notices.append(notice.sqlstate))
    connection.execute("SET LOCAL query_mode = local")
    assert (notices, shown(connection, "query_mode")) == (["25P01"], "auto")
    connection.execute("SET query_mode = distributed")
    for end in ("COMMIT", "ROLLBACK"):
        connection.execute("BEGIN")
        connection.execute("SET LOCAL query_mode = local")
        connection.execute("SET LOCAL query_mode TO DEFAULT")
        connection.execute("SET LOCAL query_mode = local")
        assert shown(connection, "query_mode") == "local"
        connection.execute(end)
        assert shown(connection, "query_mode") == "distributed"


def test_a_session_that_may_not_write(connection: Connection) -> None:
    connection.execute("CREATE TABLE guarded (a int)")
    connection.execute("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")
    assert shown(connection, "transaction_read_only") == "on"
    assert refused(connection, "INSERT INTO guarded VALUES (1)").sqlstate == "25006"
    connection.execute("BEGIN READ WRITE")
    assert shown(connection, "transaction_read_only") == "off"
    connection.execute("INSERT INTO guarded VALUES (1)")
    connection.execute("COMMIT")
    connection.execute("BEGIN")
    assert refused(connection, "INSERT INTO guarded VALUES (1)").sqlstate == "25006"
    connection.execute("ROLLBACK")
    connection.execute("SET default_transaction_read_only = off")
    assert connection.execute("SELECT count(*) FROM guarded").fetchone() == (1,)


def test_settings_in_a_planned_statement_are_those_of_now(connection: Connection) -> None:
    """`current_setting` is folded into the plan, which must not be used again when the setting has changed."""
    sql = "SELECT current_setting('application_name')"
    for name in ("first", "second", "first"):
        connection.execute(f"SET application_name = '{name}'")
        assert connection.execute(sql).fetchone() == (name,)
        assert connection.execute(sql, prepare=True).fetchone() == (name,)
    connection.execute("SET timezone = 'Asia/Tokyo'")
    moment = "SELECT CAST(TIMESTAMPTZ '2024-01-01 00:00:00+00' AS varchar)"
    assert connection.execute(moment).fetchone() == ("2024-01-01 09:00:00+09",)
    connection.execute("RESET timezone")
    assert connection.execute(moment).fetchone() == ("2024-01-01 00:00:00+00",)


def lost(connection: Connection) -> str | None:
    """How a connection ends that says nothing for long enough."""
    time.sleep(0.6)
    with pytest.raises(psycopg.Error) as caught:
        connection.execute("SELECT 1")
    return caught.value.sqlstate


def test_idle_clients_are_sent_away(module_server: Server) -> None:
    with module_server.connect() as idle:
        idle.execute("SET idle_session_timeout = '200ms'")
        assert lost(idle) == "57P05"
    with module_server.connect() as idle:
        idle.execute("SET idle_in_transaction_session_timeout = 200")
        time.sleep(0.4)
        idle.execute("BEGIN READ ONLY")  # outside a transaction the limit does not count
        assert lost(idle) == "25P03"


def test_a_statement_that_takes_too_long(connection: Connection) -> None:
    connection.execute("SET statement_timeout = '200ms'")
    error = refused(connection, "SELECT count(*) FROM range(10000000000) r(i) WHERE i % 7 = 3")
    assert (error.sqlstate, "statement timeout" in str(error)) == ("57014", True)
    for _ in range(20):  # its alarm does not reach the next ones
        connection.execute("SELECT 1")
    connection.execute("RESET statement_timeout")
