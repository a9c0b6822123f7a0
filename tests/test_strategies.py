"""The law while a backfill runs: every strategy, with changes to all upstreams between and during its steps."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pytest
from test_law import check, opened, run
from test_operators import FIRST, OPERATORS, TABLES

from server.context import Context
from server.dispatch import Client

STRATEGIES = ("snapshot", "arrangement", "no_shuffle")
MAPS = ("filter", "unnest", "series", "union_all")
QUERIES = {**OPERATORS, "union_all": "SELECT a FROM t WHERE b > 1 UNION ALL SELECT k FROM u UNION ALL SELECT b FROM t"}


def change(chance: random.Random) -> str:
    """A change to one of the upstreams: some rows come, go, or move to another key."""
    a, b, k = chance.randint(0, 9), chance.randint(0, 9), chance.randint(1, 12)
    text = chance.choice(("'a'", "'b'", "NULL"))
    return chance.choice(
        (
            f"INSERT INTO t SELECT {a}, i, {text}, NULL FROM generate_series(1, {b + 1}) AS g(i)",
            f"INSERT INTO t VALUES (NULL, {b}, {text}, '2024-02-29 23:59:0{a}')",
            f"UPDATE t SET b = {b} WHERE a = {a}",
            f"UPDATE t SET a = a + 1, s = {text} WHERE b = {b}",
            f"DELETE FROM t WHERE a = {a} AND b < 5",
            f"INSERT INTO u VALUES ({k}, {b}, {text})",
            f"UPDATE u SET b = {a}, s = {text} WHERE k = {k}",
            f"DELETE FROM u WHERE k = {k}",
            f"INSERT INTO arrays VALUES ({k}, ARRAY[{a}, NULL, {b}])",
            f"DELETE FROM arrays WHERE k = {k}",
        )
    )


class Changes:
    """Changes the tables from a session of its own until it is left."""

    def __init__(self, context: Context, seed: int, pause_s: float) -> None:
        self._client = Client(context, {"user": "root"})
        self._chance = random.Random(seed)
        self._pause_s = pause_s
        self._over = threading.Event()
        self.made: list[str] = []
        self.error: Exception | None = None
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            while not self._over.wait(self._pause_s):
                self.made.append(change(self._chance))
                run(self._client, self.made[-1])
        except Exception as error:
            self.error = error

    def __enter__(self) -> Changes:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        if self.error is not None:
            raise self.error


def hold(context: Context, client: Client, names: tuple[str, ...], strategy: str, seed: int, options: str = "") -> int:
    """Create views one after the other while the tables change, and hold the law. Returns the changes made."""
    with Changes(context, seed, 0.05) as changes:
        for name in names:
            option = f"backfill_strategy = '{strategy}'{options}"
            run(client, f'CREATE MATERIALIZED VIEW "{name}_" WITH ({option}) AS {QUERIES[name]}')
    context.coordinator.flush(lambda: False)
    check(client, {f'"{name}_"': QUERIES[name] for name in names}, f"{strategy}, {len(changes.made)} changes")
    return len(changes.made)


def filled(client: Client) -> None:
    for statement in (*TABLES, *FIRST):
        run(client, statement)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("seed", [1, 2])
def test_in_process(tmp_path: Path, strategy: str, seed: int) -> None:
    """Steps of 12 rows. A rate limit makes a snapshot backfill read on by steps too."""
    with opened(tmp_path / "lake", backfill_engine="auto", backfill_slice_rows="12") as (context, client):
        filled(client)
        names = MAPS if strategy == "no_shuffle" else tuple(QUERIES)
        options = ", backfill_rate_limit = 1000" if strategy == "snapshot" else ""
        assert hold(context, client, names, strategy, seed, options) > len(names)
