"""Computes and caches the dashboard's pages: queries over the system catalogs, run as the logged-in user.

[contents.py](contents.py) says what is on each page. A page may have a relation's id, `$1` in its queries. Requests of
one user within a moment share one answer; queries about the catalog alone run again only after it has changed.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from sparkwave.catalog.errors import not_found
from sparkwave.catalog.locks import RankedLock
from sparkwave.catalog.model import Catalog
from sparkwave.catalog.names import DEFAULT_DATABASE
from sparkwave.catalog.types import BIGINT
from sparkwave.server.context import Context
from sparkwave.server.dispatch import Client

FRESH_SECONDS = 0.7
MOST_ANSWERS = 256
TIMEOUT = "10s"

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Reader:
    """The user who looks at a page, and the database."""

    user: str
    database: str = DEFAULT_DATABASE


@dataclass(frozen=True)
class Page:
    """The queries of a page, by the name of their rows.

    `live` queries and `fresh`, which computes other values, run at each look; `settled` queries and `more` when the
    catalog has changed. `measured` returns values that are not in the lake. If the settled rows of `only_with` are
    empty, the live queries do not run; where `gated` names some, only these do not.
    """

    live: Mapping[str, str] = field(default_factory=dict)
    settled: Mapping[str, str] = field(default_factory=dict)
    more: Callable[[Context, Client, int | None], dict[str, Any]] = lambda context, client, id_: {}
    fresh: Callable[[Context, Client, int | None], dict[str, Any]] = lambda context, client, id_: {}
    measured: Callable[[Context], dict[str, Any]] = lambda context: {}
    only_with: str | None = None
    gated: frozenset[str] | None = None
    has_id: bool = False


@contextmanager
def session(context: Context, reader: Reader, **variables: str) -> Iterator[Client]:
    """A context with a session of the reader. Raises the errors of a connection."""
    startup = {
        "user": reader.user,
        "database": reader.database,
        "application_name": "dashboard",
        "statement_timeout": TIMEOUT,
        **variables,
    }
    client = Client(context, startup)
    try:
        yield client
    finally:
        client.close()


def run(client: Client, sql: str, *values: object) -> Rows:
    """Return the rows of a statement. Raises Error."""
    oids = (BIGINT.oid,) * len(values)
    with closing(client.execute(client.prepare(sql, oids), values)) as result:
        names = [column.name for column in result.columns or ()]
        rows = (row for batch in result.batches or () for row in zip(*map(_values, batch.columns), strict=True))
        return [dict(zip(names, row, strict=True)) for row in rows]


def _values(column: pa.Array) -> list[Any]:
    return column.to_pylist()


class Pages:
    """Computes and caches the answers for pages, given by their names."""

    def __init__(self, context: Context, pages: Mapping[str, Page]) -> None:
        self._context = context
        self._pages = pages
        self._answers: OrderedDict[tuple[Reader, str, int | None], _Answer] = OrderedDict()
        self._lock = RankedLock()

    def show(self, reader: Reader, name: str, id_: int | None) -> dict[str, Any]:
        """Return a page's content. Raises Error 42704 for an unknown page, and the errors of its queries."""
        page = self._pages.get(name)
        if page is None or page.has_id != (id_ is not None):
            raise not_found("page", name)
        with self._lock:
            answer = self._answers.setdefault((reader, name, id_), _Answer())
            self._answers.move_to_end((reader, name, id_))
            while len(self._answers) > MOST_ANSWERS:
                self._answers.popitem(last=False)
        with answer.lock:
            if answer.content is None or time.monotonic() - answer.made_at > FRESH_SECONDS:
                answer.content = None
                answer.content = self._ask(reader, page, id_, answer)
                answer.made_at = time.monotonic()
            return answer.content

    def forget(self) -> None:
        """Drop the cached answers after a change."""
        with self._lock:
            self._answers.clear()

    def _ask(self, reader: Reader, page: Page, id_: int | None, answer: _Answer) -> dict[str, Any]:
        def rows(sql: str) -> Rows:
            return run(client, sql, *([id_] if "$1" in sql else ()))

        with session(self._context, reader, default_transaction_read_only="on") as client:
            catalog = self._context.store.catalog
            if answer.catalog is not catalog:
                settled = {name: rows(sql) for name, sql in page.settled.items()}
                answer.settled, answer.catalog = {**settled, **page.more(self._context, client, id_)}, catalog
            is_open = page.only_with is None or bool(answer.settled[page.only_with])
            closed = frozenset() if is_open else page.gated or page.live.keys()
            live = {name: [] if name in closed else rows(sql) for name, sql in page.live.items()}
            fresh = page.fresh(self._context, client, id_)
            return {**answer.settled, **live, **fresh, **page.measured(self._context)}


@dataclass
class _Answer:
    """A page's last answer, and the part of it that depends on `catalog` only."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    content: dict[str, Any] | None = None
    made_at: float = 0.0
    settled: dict[str, Any] = field(default_factory=dict)
    catalog: Catalog | None = None
