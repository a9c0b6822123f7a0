"""Fixtures: real servers."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import servers
from longest_first import LongestFirst, in_order
from postgres import Postgres, PostgresCatalogs
from servers import Server, without_spark

from sparkwave.server.command_line.allocator import jemalloc

# Set by `pytest_configure` for the workers alone, not for what they start.
_PRELOAD = "LD_PRELOAD"
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.pop(_PRELOAD, None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden files again")
    parser.addoption("--screenshots", action="store_true", help="write the pictures of docs/dashboard.md again")
    parser.addoption("--postgres", action="store_true", help="have all servers keep their catalogs in a PostgreSQL")


def pytest_configure(config: pytest.Config) -> None:
    """Start pytest-xdist's workers with jemalloc, as servers are: tests in process take a sixth less processor time."""
    library = jemalloc()
    if library is not None and config.getoption("numprocesses", None):
        os.environ.setdefault(_PRELOAD, str(library))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LongestFirst | None:
    """Let workers begin with the files that take longest."""
    if config.getoption("dist") != "loadfile":
        return None
    config.option.loadscopereorder = False  # as `pytest_collection_modifyitems` has ordered them
    return LongestFirst(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if "PYTEST_XDIST_WORKER" in os.environ:
        items[:] = in_order(items)


def pytest_collection_finish() -> None:
    """Have the garbage collector leave alone what was imported and collected: to look through it takes 0.13 s."""
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def catalogs(request: pytest.FixtureRequest) -> Iterator[None]:
    """Where servers keep their catalogs, unless a test says."""
    if not request.config.getoption("--postgres"):
        yield
        return
    started = Postgres()
    servers.CATALOGS = PostgresCatalogs(started)
    yield
    started.stop()


@pytest.fixture(scope="module")
def postgres() -> Iterator[psycopg.Connection[Any]]:
    """A client of a real PostgreSQL, for all tests of a file."""
    started = Postgres()
    with started.connect() as connection:
        yield connection
    started.stop()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server of the test's own, without Spark until a view needs it."""
    started = Server(tmp_path / "data")
    yield started
    started.kill()


@pytest.fixture
def stuck_server(tmp_path: Path) -> Iterator[Server]:
    """A server whose Spark never gets ready: whatever needs it stays INITIAL."""
    started = Server(tmp_path / "data", without_spark(tmp_path), fills_on_spark=True)
    yield started
    started.kill()


@pytest.fixture(scope="module")
def module_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server for all tests of a file, without Spark; each test uses table names of its own."""
    started = Server(tmp_path_factory.mktemp("module") / "data")
    yield started
    started.kill()


@pytest.fixture(scope="module")
def in_process_server(module_server: Server) -> Server:
    """The same, which fills materialized views in process."""
    with module_server.connect() as own:
        own.execute("ALTER SYSTEM SET backfill_engine = auto")
    return module_server


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server for all tests, with Spark warm; each test uses names of its own or drops what it makes."""
    started = Server(
        tmp_path_factory.mktemp("shared") / "data", makes_lake=True, fills_on_spark=True, spark_start="eager"
    )
    yield started
    started.kill()


@pytest.fixture
def connection(module_server: Server) -> Iterator[psycopg.Connection[Any]]:
    """A session on the file's server."""
    with module_server.connect() as opened:
        yield opened
