"""The psql program: queries, scripts, backslash commands, \\copy, carets and Ctrl-C."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from servers import Server, wait_until

pytestmark = pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not on this machine")

ENDLESS = "SELECT count(*) FROM range(1000000) AS a (i) CROSS JOIN range(1000000) AS b (j) WHERE i * j % 7 = 3"


def output(server: Server, *arguments: str, stdin: str | None = None) -> str:
    """What psql prints when all goes well, with unaligned tuples only."""
    done = server.psql("-v", "ON_ERROR_STOP=1", "-At", *arguments, stdin=stdin)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def described(server: Server, command: str) -> str:
    """What a backslash command prints, blanks squeezed."""
    done = server.psql("-c", command)
    assert (done.returncode, done.stderr) == (0, "")
    return "\n".join(" ".join(line.split()) for line in done.stdout.splitlines())


def interrupted(
    server: Server, statement: str, is_running: Callable[[], bool]
) -> tuple[subprocess.CompletedProcess[str], float]:
    """A psql that gets Ctrl-C as soon as `is_running`, and how long it took to end from then on."""
    process = subprocess.Popen(
        server.psql_command("-c", statement),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert wait_until(is_running, 30), "the statement did not start"
        started = time.monotonic()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    finally:
        process.kill()
    return subprocess.CompletedProcess(process.args, process.returncode, out, err), time.monotonic() - started


def test_command(module_server: Server) -> None:
    assert output(module_server, "-c", "SELECT 1 AS one, 'a|b' AS two, NULL") == "1|a|b|\n"
    done = module_server.psql("-c", "SELECT true AS yes, -1.50::numeric(10,2) AS amount")
    assert done.stdout == " yes | amount \n-----+--------\n t   |  -1.50\n(1 row)\n\n"


def test_several_commands(module_server: Server) -> None:
    commands = ["CREATE TABLE several (a int)", "INSERT INTO several VALUES (1), (2)", "SELECT sum(a) FROM several"]
    done = module_server.psql("-At", *(part for command in commands for part in ("-c", command)))
    assert done.stdout.splitlines() == ["CREATE TABLE", "INSERT 0 2", "3"]
    assert done.returncode == 0


def test_script(module_server: Server) -> None:
    script = """
    -- A script with comments; and semicolons in 'quotes;'.
    CREATE TABLE scripted (k int PRIMARY KEY, v varchar);
    INSERT INTO scripted VALUES (1, 'a;b'),
        (2, $$dollar ; quoted$$); /* block ; comment */
    UPDATE scripted SET v = 'c' WHERE k = 1; DELETE FROM scripted WHERE k = 9;
    \\set key 2
    SELECT v FROM scripted WHERE k = :key;
    BEGIN; INSERT INTO scripted VALUES (3, 'x'); COMMIT;
    SELECT count(*) FROM scripted
    """
    found = output(module_server, "-q", stdin=script + ";")
    assert found.splitlines() == ["dollar ; quoted", "3"]


def test_script_goes_on_after_an_error_unless_told_to_stop(module_server: Server) -> None:
    script = "SELECT 1;\nSELECT nope;\nSELECT 2;\n"
    going_on = module_server.psql("-At", stdin=script)
    assert (going_on.returncode, going_on.stdout) == (0, "1\n2\n")
    stopped = module_server.psql("-At", "-v", "ON_ERROR_STOP=1", stdin=script)
    assert (stopped.returncode, stopped.stdout) == (3, "1\n")


def test_describe(module_server: Server) -> None:
    output(
        module_server,
        "-qc",
        "CREATE TABLE described (k int PRIMARY KEY, v varchar, n numeric(10,2) NOT NULL, at timestamptz)",
    )
    assert "public | described | table | root" in described(module_server, "\\d")
    assert "public | described | table | root" in described(module_server, "\\dt")
    table = described(module_server, "\\d described")
    assert 'Table "public.described"' in table
    assert "k | integer | | not null |" in table
    assert "v | character varying | | |" in table
    assert "n | numeric(10,2) | | not null |" in table
    assert "at | timestamp with time zone | | |" in table
    assert "_row_id" not in table
    missing = module_server.psql("-c", "\\d nonexistent")
    assert 'Did not find any relation named "nonexistent".' in missing.stderr


def test_lists(module_server: Server) -> None:
    assert "dev | root | UTF8" in described(module_server, "\\l")
    assert "public | root" in described(module_server, "\\dn")
    assert "root" in described(module_server, "\\du")
    for command in ("\\dm", "\\dv", "\\di", "\\df", "\\dT", "\\conninfo"):
        assert module_server.psql("-c", command).returncode == 0, command


def test_copy_in_and_out(module_server: Server, tmp_path: Path) -> None:
    incoming, outgoing = tmp_path / "in.csv", tmp_path / "out.csv"
    incoming.write_text('k,v\n1,"a ""b"", c"\n2,\n3,"line\nbreak"\n')
    output(module_server, "-qc", "CREATE TABLE filed (k int PRIMARY KEY, v varchar)")
    assert output(module_server, "-c", f"\\copy filed from '{incoming}' csv header") == "COPY 3\n"
    assert (
        output(module_server, "-c", f"\\copy (SELECT * FROM filed ORDER BY k) to '{outgoing}' csv header") == "COPY 3\n"
    )
    assert outgoing.read_text() == incoming.read_text()
    assert output(module_server, "-c", "\\copy filed (v) to stdout").splitlines()[1] == "\\N"
    piped = output(
        module_server,
        "-q",
        stdin="\\copy filed from stdin\n7\tseven\n8\t\\N\n\\.\nSELECT count(*), count(v) FROM filed;\n",
    )
    assert piped == "5|3\n"


def test_broken_copy_shows_the_line(module_server: Server, tmp_path: Path) -> None:
    incoming = tmp_path / "in.csv"
    incoming.write_text("1,2\n3,4\n5\n")
    output(module_server, "-qc", "CREATE TABLE broken (k int PRIMARY KEY, v int)")
    done = module_server.psql("-c", f"\\copy broken from '{incoming}' csv", "-Atc", "SELECT count(*) FROM broken")
    assert 'ERROR:  missing data for column "v"' in done.stderr
    assert "line 3" in done.stderr
    assert done.stdout == "0\n"


def test_error_with_caret(module_server: Server) -> None:
    done = module_server.psql("-c", "SELECT 1,\n  'žluť' AS a\nFROM   nope\nWHERE true")
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        'ERROR:  relation "nope" does not exist',
        "LINE 3: FROM   nope",
        "               ^",
    ]
    verbose = module_server.psql("-v", "VERBOSITY=verbose", stdin="SELECT 1; SELEC 2;")
    lines = verbose.stderr.splitlines()
    assert lines[0] == 'ERROR:  42601: syntax error at or near "SELEC"'
    assert lines[1:3] == ["LINE 1: SELEC 2;", "        ^"]


def test_notice(module_server: Server) -> None:
    done = module_server.psql("-c", "DROP TABLE IF EXISTS nonexistent")
    assert (done.stdout, done.stderr) == ("DROP TABLE\n", 'NOTICE:  table "nonexistent" does not exist, skipping\n')


def test_many_rows(module_server: Server) -> None:
    found = output(module_server, "-c", "SELECT i FROM range(100000) AS r (i)")
    assert len(found.splitlines()) == 100_000


def test_interrupt_a_query(module_server: Server) -> None:
    started = time.monotonic()
    done, seconds = interrupted(module_server, ENDLESS, lambda: time.monotonic() - started > 1)
    assert "ERROR:  canceling statement due to user request" in done.stderr
    assert done.returncode == 1
    assert seconds < 5


@pytest.mark.long
def test_interrupt_a_creation_that_waits_for_spark(stuck_server: Server) -> None:
    output(stuck_server, "-qc", "CREATE TABLE t (k int PRIMARY KEY)")
    with stuck_server.connect() as own:
        is_running = lambda: len(own.execute("SHOW JOBS").fetchall()) == 1  # noqa: E731
        done, seconds = interrupted(stuck_server, "CREATE MATERIALIZED VIEW m AS SELECT k FROM t", is_running)
        assert "ERROR:  canceling statement due to user request" in done.stderr
        assert own.execute("SHOW JOBS").fetchall() == []
        assert own.execute("SELECT name FROM rw_catalog.rw_materialized_views").fetchall() == []
        assert seconds < 10


@pytest.mark.long
@pytest.mark.spark
def test_interrupt_a_creation(shared_server: Server) -> None:
    """Ctrl-C in the middle of a backfill of many slices: nothing of the view is left and its name is free."""
    with shared_server.connect() as own:
        own.execute("CREATE TABLE interrupted (k int PRIMARY KEY, v int)")
        for start in range(0, 100_000, 10_000):
            own.execute(f"INSERT INTO interrupted SELECT i, i % 7 FROM range({start}, {start + 10_000}) AS r (i)")
        own.execute("ALTER SYSTEM SET backfill_slice_rows = 5000")
        try:
            statement = "CREATE MATERIALIZED VIEW interrupted_view AS SELECT k, v + 1 AS w FROM interrupted"
            progress = "SELECT count(*) FROM rw_catalog.rw_ddl_progress WHERE progress LIKE 'Snapshot [%'"
            is_running = lambda: own.execute(progress).fetchone() == (1,)  # noqa: E731
            done, seconds = interrupted(shared_server, statement, is_running)
            assert "ERROR:  canceling statement due to user request" in done.stderr
            assert seconds < 10
            assert own.execute("SHOW JOBS").fetchall() == []
            names = "SELECT name FROM rw_catalog.rw_materialized_views WHERE name = 'interrupted_view'"
            assert own.execute(names).fetchall() == []
        finally:
            own.execute("ALTER SYSTEM SET backfill_slice_rows TO DEFAULT")
        own.execute("CREATE MATERIALIZED VIEW interrupted_view AS SELECT k, v + 1 AS w FROM interrupted")
        assert (
            own.execute("SELECT count(*), sum(w) FROM interrupted_view").fetchone()
            == own.execute("SELECT count(*), sum(v + 1) FROM interrupted").fetchone()
        )
        assert "interrupted_view" in shared_server.psql("-c", "\\dm").stdout
        own.execute("DROP TABLE interrupted CASCADE")
