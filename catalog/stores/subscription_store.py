"""Reads and writes the relation `subscriptions`.

Writing functions take the cursor of an open lake transaction, as the methods of `catalog.stores.store` do.
"""

from __future__ import annotations

from collections.abc import Iterable

from sparkwave.catalog.lake import history
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import Subscription
from sparkwave.catalog.names import system_table


def load_subscriptions(cursor: Cursor, stored: str) -> dict[int, Subscription]:
    """Return all subscriptions by id, from SQL of the relation `subscriptions`."""
    rows = cursor.execute(f"SELECT relation_id, retention_s, snapshot FROM {stored}").fetchall()
    return {row[0]: Subscription(*row) for row in rows}


def add_subscription(cursor: Cursor, subscription: Subscription) -> None:
    cursor.execute(
        f"INSERT INTO {system_table('subscriptions')} VALUES (?, ?, ?)",
        [subscription.id, subscription.retention_s, subscription.snapshot],
    )


def set_retention(cursor: Cursor, id_: int, retention_s: int) -> None:
    """Store how many seconds a subscription keeps changes for."""
    query = f"UPDATE {system_table('subscriptions')} SET retention_s = ? WHERE relation_id = ?"
    cursor.execute(query, [retention_s, id_])


def first_kept(cursor: Cursor, subscription: Subscription, now_us: int) -> int:
    """Return the snapshot from which changes are kept: of the subscription's creation, or its retention ago."""
    found = history.snapshot_at(cursor, now_us - subscription.retention_s * 1_000_000)
    return max(subscription.snapshot, found or 0)


def kept_by(cursor: Cursor, subscriptions: Iterable[Subscription], now_us: int) -> list[int]:
    """Return for each subscription the oldest snapshot that it needs."""
    return [first_kept(cursor, subscription, now_us) for subscription in subscriptions]
