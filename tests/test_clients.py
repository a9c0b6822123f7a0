"""Real client libraries against a real server: each runs its program in tests/clients."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from client_programs import needs_clients, needs_jdbc, run_checks, run_jdbc
from servers import Server


@pytest.fixture(scope="module")
def clients_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that fills small views by itself, without Spark."""
    started = Server(tmp_path_factory.mktemp("clients") / "data")
    with started.connect() as own:
        own.execute("ALTER SYSTEM SET backfill_engine = auto")
    yield started
    started.kill()


def test_psycopg(clients_server: Server) -> None:
    run_checks(clients_server, "psycopg")


@needs_clients
@pytest.mark.parametrize("client", ["psycopg2", "asyncpg", "sqlalchemy"])
def test_library(clients_server: Server, client: str) -> None:
    run_checks(clients_server, client)


@needs_clients
def test_django(clients_server: Server) -> None:
    wanted = {"postgres_version": "'15.0'", "atomic_transactions": "on"}
    with clients_server.connect() as own:
        for name, value in wanted.items():
            own.execute(f"ALTER SYSTEM SET {name} = {value}")
        run_checks(clients_server, "django")
        for name in wanted:
            own.execute(f"ALTER SYSTEM SET {name} = DEFAULT")


@needs_jdbc
def test_jdbc(clients_server: Server) -> None:
    run_jdbc(clients_server)
