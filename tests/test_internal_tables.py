"""Internal tables, the states of operators: who sees them, and that nothing but a query can use one."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from servers import Server, refused, rows, wait_until

Connection = psycopg.Connection[Any]

# Statements that name an internal table otherwise than in a query.
REFUSED = (
    "INSERT INTO {} SELECT 1", "UPDATE {} SET _count = 1", "DELETE FROM {}", "TRUNCATE {}", "DROP TABLE {}",
    "DROP MATERIALIZED VIEW {}", "ALTER TABLE {} RENAME TO x", "ALTER TABLE {} OWNER TO postgres",
    "COMMENT ON TABLE {} IS 'x'", "GRANT SELECT ON {} TO public", "CREATE VIEW x AS SELECT * FROM {}",
    "CREATE VIEW x AS SELECT (SELECT count(*) FROM {}) AS n", "CREATE MATERIALIZED VIEW x AS SELECT * FROM {}",
    "CREATE INDEX ON {} (_count)", "CREATE SINK x FROM {} WITH (connector = 'blackhole')",
    "CREATE SUBSCRIPTION x FROM {} WITH (retention = '1D')", "CREATE TABLE x AS SELECT * FROM {}",
    "INSERT INTO sold SELECT 9, 'x', 1 FROM {}", "DESCRIBE {}", "DESCRIBE FRAGMENTS {}", "COPY {} TO STDOUT",
)  # fmt: skip


@pytest.fixture
def session(in_process_server: Server) -> Any:
    with in_process_server.connect() as opened:
        yield opened


def test_internal_tables(session: Connection, in_process_server: Server) -> None:
    session.execute("CREATE TABLE sold (id int PRIMARY KEY, who varchar, n int)")
    session.execute(
        "CREATE MATERIALIZED VIEW often AS SELECT times, max(n) FROM "
        "(SELECT who, count(*) AS times, sum(n) AS n FROM sold GROUP BY who) GROUP BY times"
    )
    session.execute("INSERT INTO sold VALUES (1, 'ann', 5), (2, 'bob', 7), (3, 'ann', 1)")
    session.execute("FLUSH")
    [(name,)] = rows(session, "SELECT name FROM rw_catalog.rw_internal_table_info WHERE job_name = 'often'")
    assert (f"public.{name}",) in rows(session, "SHOW INTERNAL TABLES")
    assert rows(session, f"SHOW INTERNAL TABLES FROM public LIKE '{name}'") == [(f"public.{name}",)]
    assert wait_until(lambda: rows(session, f"SELECT count(*) FROM {name}") == [(2,)])  # at a checkpoint
    for query in (f'SELECT "sold.who", _count FROM {name} ORDER BY 1', f"SELECT * FROM public.{name} ORDER BY 1"):
        assert [row[:2] for row in rows(session, query)] == [("ann", 2), ("bob", 1)]
    joined = f'SELECT s.id, t._count FROM sold s JOIN {name} t ON t."sold.who" = s.who WHERE s.id = %s'
    assert session.execute(joined, (3,)).fetchall() == [(3, 2)]
    with session.transaction():
        session.execute(f"DECLARE c CURSOR FOR SELECT count(*) FROM {name}")
        assert rows(session, "FETCH 1 FROM c") == [(2,)]
    assert name in str(rows(session, f"EXPLAIN SELECT * FROM {name}"))
    for sql in REFUSED:
        error = refused(session, sql.format(name))
        assert (error.sqlstate, error.diag.statement_position is not None) == ("42809", True), sql
        assert error.diag.message_primary == f'cannot use internal table "{name}" here'

    session.execute("CREATE USER internal_reader")
    session.execute("GRANT SELECT ON sold, often TO internal_reader")
    session.execute("SET ROLE internal_reader")
    error = refused(session, f"SELECT * FROM {name}")
    assert (error.sqlstate, error.diag.message_primary) == ("42501", f"permission denied for internal table {name}")
    assert rows(session, "SHOW INTERNAL TABLES") == []
    session.execute("RESET ROLE")
    session.execute("GRANT CREATE ON SCHEMA public TO internal_reader")
    session.execute("ALTER MATERIALIZED VIEW often OWNER TO internal_reader")
    session.execute("SET ROLE internal_reader")
    assert rows(session, f"SELECT count(*) FROM {name}") == [(2,)]
    assert rows(session, "SHOW INTERNAL TABLES") == [(f"public.{name}",)]
    session.execute("RESET ROLE")
    session.execute("DROP TABLE sold CASCADE")
    assert refused(session, f"SELECT * FROM {name}").sqlstate == "42P01"
    session.execute("DROP OWNED BY internal_reader")
    session.execute("DROP USER internal_reader")
