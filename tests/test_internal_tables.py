"""Internal tables, the states of operators: who sees them, and that nothing but a query can use one."""

from __future__ import annotations

import re
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


@pytest.mark.parametrize("strategy", ["arrangement", "snapshot"])
def test_tables_of_backfills(session: Connection, strategy: str) -> None:
    """How far each vnode of a scan is, while a job is being created."""
    session.execute("CREATE TABLE scanned AS SELECT g AS k FROM generate_series(1, 3000) AS g")
    session.execute("SET background_ddl = true")
    options = f"backfill_strategy = '{strategy}', backfill_rate_limit = 200"
    query = "SELECT k % 3 AS m, count(*) FROM scanned GROUP BY 1"
    session.execute(f"CREATE MATERIALIZED VIEW scanning WITH ({options}) AS {query}")
    listed = (
        "SELECT i.name FROM rw_catalog.rw_internal_tables i JOIN rw_catalog.rw_backfill_info b "
        "ON b.backfill_state_table_id = i.id JOIN rw_catalog.rw_fragments f ON i.id = ANY(f.state_table_ids)"
    )
    assert wait_until(lambda: len(rows(session, listed)) == 1)
    [(name,)] = rows(session, listed)
    assert re.fullmatch(r"__internal_\d+_1_streamscan", name)
    assert (f"public.{name}",) in rows(session, "SHOW INTERNAL TABLES")
    finished = "is_epoch_finished" if strategy == "snapshot" else "backfill_finished"
    read = f"SELECT sum(row_count), bool_and({finished}), count(_row_id) FROM {name}"
    assert wait_until(lambda: rows(session, read)[0][0] > 0)
    [(count, is_finished, open_vnodes)] = rows(session, read)
    assert (0 < count < 3000, is_finished, open_vnodes > 0) == (True, False, True)
    first = rows(session, f"SELECT * FROM {name} WHERE NOT {finished} ORDER BY vnode LIMIT 1")
    assert len(first[0]) == (5 if strategy == "snapshot" else 4)
    assert wait_until(lambda: rows(session, read)[0][0] > count)
    for sql in (each for each in REFUSED if " sold " not in each):
        assert refused(session, sql.format(name)).sqlstate == "42809", sql
    session.execute("CREATE USER backfill_reader")
    session.execute("SET ROLE backfill_reader")
    assert refused(session, f"SELECT * FROM {name}").sqlstate == "42501"
    assert rows(session, "SHOW INTERNAL TABLES") == []
    session.execute("RESET ROLE")
    session.execute("DROP USER backfill_reader")
    session.execute("ALTER MATERIALIZED VIEW scanning SET BACKFILL_RATE_LIMIT = DEFAULT")
    session.execute("WAIT")
    assert refused(session, f"SELECT * FROM {name}").sqlstate == "42P01"
    assert rows(session, "SHOW INTERNAL TABLES LIKE '%streamscan'") == []
    session.execute("DROP TABLE scanned CASCADE")
