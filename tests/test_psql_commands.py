"""psql's backslash commands: everything that describes, and what it does with results, a terminal and the Tab key."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from servers import Server

pytestmark = pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not on this machine")

SCHEMA = """
CREATE SCHEMA shown;
CREATE TABLE shown.people (
    id int PRIMARY KEY, name varchar NOT NULL, amount numeric(10,2), tags int[], at timestamptz);
CREATE VIEW shown.names AS SELECT id, name FROM shown.people;
CREATE MATERIALIZED VIEW shown.totals AS SELECT name, count(*) AS n FROM shown.people GROUP BY name;
COMMENT ON TABLE shown.people IS 'who is who';
COMMENT ON COLUMN shown.people.name IS 'as on the door';
CREATE USER psql_reader;
GRANT SELECT, INSERT ON shown.people TO psql_reader;
"""
# psql 15's; psql 16 and newer have some more.
DESCRIBING = """
    d da dA dAc dAf dAo dAp db dc dconfig dC dd dD ddp dE di dm ds dt dv des det deu dew df dfa dfn dfp dft dfw dF dFd
    dFp dFt dg dl dL dn do dO dp dP dPi dPt drds dRp dRs dT du dx dX dy l z
"""


@pytest.fixture(scope="module")
def psql_server(module_server: Server) -> Server:
    with module_server.connect() as own:
        own.execute("ALTER SYSTEM SET backfill_engine = auto")
        for statement in SCHEMA.split(";")[:-1]:
            own.execute(statement)
    return module_server


def printed(server: Server, script: str, *arguments: str) -> str:
    """What a script prints when nothing goes wrong, blanks squeezed."""
    done = server.psql("-v", "ON_ERROR_STOP=1", *arguments, stdin=script)
    assert (done.returncode, done.stderr) == (0, "")
    return "\n".join(" ".join(line.split()) for line in done.stdout.splitlines())


@pytest.mark.parametrize("suffix", ["", "+", "S", "S+"])
def test_every_command_that_describes(psql_server: Server, suffix: str) -> None:
    plain = {"dconfig", "du", "dg", "l", "z", "des", "det", "deu", "dew"}
    commands = [f"\\{one}{suffix.replace('S', '') if one in plain else suffix}" for one in DESCRIBING.split()]
    patterns = [f"{command} shown.*" for command in commands if re.match(r"\\d[ptvmiEsTfpd]?[S+]*$", command)]
    script = "".join(f"\\echo {index}\n{command}\n" for index, command in enumerate((*commands, *patterns)))
    done = psql_server.psql(stdin=script)
    # Not every command has every suffix; psql says so by itself.
    harmless = ("Did not find any", "invalid command" if suffix else "Did not")
    errors = [line for line in done.stderr.splitlines() if not line.startswith((*harmless, "Try \\?"))]
    assert errors == []
    assert [line for line in done.stdout.splitlines() if re.fullmatch(r"\d+", line)] == [
        str(index) for index in range(len(commands) + len(patterns))
    ]


def test_a_table(psql_server: Server) -> None:
    found = printed(psql_server, "\\d shown.people")
    assert 'Table "shown.people"' in found
    assert "amount | numeric(10,2) | | |" in found
    assert '"people_pkey" PRIMARY KEY, btree (id)' in found
    with_more = printed(psql_server, "\\d+ shown.people")
    assert "name | character varying | | not null | | extended | | as on the door" in with_more


def test_views(psql_server: Server) -> None:
    assert 'View "shown.names"' in printed(psql_server, "\\d shown.names")
    assert "SELECT id, name FROM shown.people" in printed(psql_server, "\\d+ shown.names")
    assert 'Materialized view "shown.totals"' in printed(psql_server, "\\d shown.totals")
    assert "CREATE OR REPLACE VIEW shown.names AS" in printed(psql_server, "\\sv shown.names")


def test_lists(psql_server: Server) -> None:
    assert "shown | people | table | root |" in printed(psql_server, "\\dt+ shown.*")
    assert "who is who" in printed(psql_server, "\\dt+ shown.*")
    assert "shown | totals | materialized view | root" in printed(psql_server, "\\dm shown.*")
    assert "shown | names | view | root" in printed(psql_server, "\\dv shown.*")
    assert "shown | people_pkey | index | root | people" in printed(psql_server, "\\di shown.*")
    assert "shown | root" in printed(psql_server, "\\dn")
    assert "psql_reader=ar/root" in printed(psql_server, "\\dp shown.people")
    assert "psql_reader" in printed(psql_server, "\\du")
    assert "integer | signed four-byte" in printed(psql_server, "\\dT int4") or "integer" in printed(
        psql_server, "\\dTS int4"
    )


def test_the_search_path(psql_server: Server) -> None:
    found = printed(psql_server, "SET search_path TO shown;\n\\dt\nSELECT count(*) FROM people;\n", "-At")
    assert found.splitlines() == ["SET", "shown|people|table|root", "0"]


def test_results_are_described_turned_and_repeated(psql_server: Server) -> None:
    described = printed(psql_server, "SELECT 1 AS a, 'x'::varchar AS b, 1.5::numeric(4,1) AS c \\gdesc\n", "-At")
    assert described.splitlines() == ["a|integer", "b|character varying", "c|numeric(4,1)"]
    pairs = "SELECT * FROM (VALUES ('ann', 'jan', 1), ('ann', 'feb', 2), ('bob', 'jan', 3)) t (who, month, n)"
    assert printed(psql_server, f"{pairs} ORDER BY 1, 3 \\crosstabview\n").splitlines()[0] == "who | jan | feb"
    assert printed(psql_server, "SELECT 7 AS seven, 'a' AS letter \\gset\n\\echo :seven :letter\n") == "7 a"
    made = "SELECT 'SELECT ' || i AS sql FROM generate_series(1, 3) s (i) ORDER BY i \\gexec\n"
    assert printed(psql_server, made, "-At").splitlines() == ["1", "2", "3"]
    assert "Record 1" in printed(psql_server, "SELECT 1 AS a \\gx\n").replace("-[ RECORD 1 ]", "Record 1")
    assert "Time:" in printed(psql_server, "\\timing on\nSELECT 1;\n")


def test_rows_in_parts(psql_server: Server) -> None:
    script = "\\set FETCH_COUNT 100\nSELECT i FROM generate_series(1, 1000) s (i) ORDER BY i;\n"
    assert printed(psql_server, script, "-At").splitlines() == [str(i) for i in range(1, 1001)]


def test_watch(psql_server: Server) -> None:
    """It repeats until it is interrupted."""
    command, pipe = psql_server.psql_command("-At"), subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, start_new_session=True)
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("SELECT 'again' \\watch 0.1\n")
    process.stdin.flush()
    lines = [process.stdout.readline().strip() for _ in range(9)]
    process.send_signal(signal.SIGINT)
    process.communicate("SELECT 'after';\n", timeout=20)
    assert lines.count("again") > 2


def test_copy_to_and_from_programs(psql_server: Server, tmp_path: Path) -> None:
    with psql_server.connect() as own:
        own.execute("CREATE TABLE programmed (k int PRIMARY KEY, v varchar)")
    script = f"""
    \\copy programmed from program 'printf "1\\\\tone\\\\n2\\\\ttwo\\\\n"'
    \\copy (SELECT * FROM programmed ORDER BY k) to program 'tr a-z A-Z > {tmp_path}/out'
    \\copy programmed to '{tmp_path}/binary' binary
    DELETE FROM programmed;
    \\copy programmed from '{tmp_path}/binary' (format binary)
    SELECT count(*) FROM programmed;
    """
    assert printed(psql_server, script, "-At").splitlines() == ["COPY 2", "COPY 2", "COPY 2", "DELETE 2", "COPY 2", "2"]
    assert (tmp_path / "out").read_text() == "1\tONE\n2\tTWO\n"


def test_blocks_and_savepoints_of_psql(psql_server: Server) -> None:
    """AUTOCOMMIT off sends BEGIN, ON_ERROR_ROLLBACK sends savepoints."""
    script = """
    \\set AUTOCOMMIT off
    \\set ON_ERROR_ROLLBACK on
    SELECT 1;
    SELECT nope;
    SELECT 2;
    COMMIT;
    """
    done = psql_server.psql("-At", stdin=script)
    assert [line for line in done.stdout.splitlines() if line in ("1", "2")] == ["1", "2"]


def test_the_last_error_again(psql_server: Server) -> None:
    done = psql_server.psql(stdin="SELECT nope;\n\\errverbose\n\\echo :LAST_ERROR_SQLSTATE :SQLSTATE :ERROR\n")
    assert done.stderr.count("42703") == 1
    assert done.stdout.strip() == "42703 42703 true"


def test_bind(psql_server: Server) -> None:
    version = int(re.search(r"(\d+)", psql_server.psql("--version").stdout)[1])  # type: ignore[index]
    if version < 16:
        pytest.skip(f"psql {version} has no \\bind")
    assert printed(psql_server, "SELECT $1::int + $2 \\bind 1 2 \\g\n", "-At") == "3"


class Terminal:
    """psql on a terminal."""

    def __init__(self, server: Server) -> None:
        environment = {**os.environ, "TERM": "xterm", "PAGER": "cat", "PSQL_HISTORY": os.devnull, "INPUTRC": os.devnull}
        command = server.psql_command()
        self._pid, self._master = pty.fork()
        if self._pid == 0:
            os.execvpe(command[0], command, environment)
        self.wait_for("=> $")

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def wait_for(self, pattern: str, timeout: float = 20) -> str:
        """What it has shown up to something that matches."""
        seen, deadline = "", time.monotonic() + timeout
        while True:
            plain = re.sub(r"\x1b\[[?0-9;]*[a-zA-Z]|\a|\r", "", seen)
            if re.search(pattern, plain):
                return plain
            ready, _, _ = select.select([self._master], [], [], max(deadline - time.monotonic(), 0))
            assert ready, f"no {pattern!r} in {plain!r}"
            seen += os.read(self._master, 4096).decode(errors="replace")

    def close(self) -> None:
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._master)


@pytest.fixture
def terminal(psql_server: Server) -> Iterator[Terminal]:
    opened = Terminal(psql_server)
    with contextlib.closing(opened):
        yield opened


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("SELECT * FROM shown.peo\t", "shown.people "),
        ("SELECT * FROM shown.tot\t", "shown.totals "),
        ("INSERT INTO shown.p\t", "shown.people "),
        ("DROP MATERIALIZED VIEW shown.t\t", "shown.totals "),
        ("\\d shown.na\t", "shown.names"),
        ("\\dn sho\t", "shown "),
        ("SET search_p\t", "search_path"),
        ("GRANT SELECT ON shown.people TO psql_r\t", "psql_reader "),
        ("UPDATE shown.people SET amo\t", "amount "),
    ],
)
def test_tab(terminal: Terminal, typed: str, completed: str) -> None:
    terminal.type(typed)
    terminal.wait_for(re.escape(completed))


def test_interrupt_on_a_terminal(terminal: Terminal) -> None:
    """Ctrl-C ends the statement and not the session."""
    terminal.type("SELECT count(*) FROM generate_series(1, 1000000) a (i), generate_series(1, 1000000) b (j);\n")
    time.sleep(1)
    terminal.type("\x03")
    terminal.wait_for("canceling statement due to user request")
    terminal.type("SELECT 40 + 2 AS answer;\n")
    terminal.wait_for(r"\n +42\n")
