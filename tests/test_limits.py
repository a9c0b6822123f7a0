"""docs/limits.md: what each of its statements gives."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from servers import Server

PAGE = (Path(__file__).parent.parent / "docs" / "limits.md").read_text()
ROWS = re.findall(r"^\| `(.+?)` \| (.+) \|$", PAGE, re.MULTILINE)
[SETUP] = re.findall(r"^```sql\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def prepared(module_server: Server) -> Iterator[Server]:
    with module_server.connect() as connection:
        connection.execute(SETUP)
    yield module_server


def test_the_page_has_rows() -> None:
    assert len(ROWS) > 50 and len(ROWS) == PAGE.count("\n| `")


@pytest.mark.parametrize(("statement", "expected"), ROWS, ids=[statement[:60] for statement, _ in ROWS])
def test_limit(prepared: Server, statement: str, expected: str) -> None:
    with prepared.connect() as connection:
        notices: list[str] = []
        connection.add_notice_handler(lambda told: notices.append(f"{told.severity} {told.message_primary}"))
        try:
            cursor = connection.execute(statement.encode())
        except psycopg.Error as error:
            found = f"{error.sqlstate} {error.diag.message_primary}"
        else:
            found = str(cursor.fetchall()[0][0]) if cursor.description else str(cursor.statusmessage)
        assert expected in (found, *notices)
