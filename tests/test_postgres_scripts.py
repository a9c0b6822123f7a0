"""Statements of every kind, one after the other, give what PostgreSQL gives: rows, SQLSTATEs and messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from postgres import beside, differences
from servers import Server

Connection = psycopg.Connection[Any]

# Scripts of tests/data, each with the statements whose errors have other words here.
SCRIPTS: dict[str, tuple[str, ...]] = {
    "like": ("INSERT INTO like_domain VALUES (9)", "INSERT INTO all_of_domain VALUES (9)"),
    "on_commit": (),
    "names_of_outputs": (),
    "smallints": (),
}


@pytest.fixture(scope="module")
def both(in_process_server: Server) -> Iterator[tuple[Connection, Connection]]:
    with beside(in_process_server) as clients:
        yield clients


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts(both: tuple[Connection, Connection], name: str) -> None:
    assert differences(both, f"{name}.sql", SCRIPTS[name]) == []
