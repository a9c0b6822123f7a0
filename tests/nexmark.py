"""Nexmark: rows as its generator makes them (1 person to 3 auctions to 46 bids), and its queries."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
from query_sets import copy, create_tables, queries
from test_law import run

from sparkwave.server.dispatch import Client

QUERIES = queries("nexmark")

STATES = ("or", "id", "ca", "wa", "az", "wy")
CITIES = ("Phoenix", "Palo Alto", "San Mateo", "Boise", "Portland", "Bend", "Seattle", "Kent", "Cheyenne")
CHANNELS = ("apple", "Google", "Facebook", "baidu", "channel-1", "channel-2", "channel-3")
FIRST_ID = 1000
START = datetime(2024, 3, 31, 5, 59, 50)
# Within a batch of events, and from one batch to the next: windows of seconds are full, and days pass.
STEP, PAUSE = timedelta(milliseconds=100), timedelta(hours=9)

# On tables that are not append-only.
CORRECTIONS = (
    "DELETE FROM bid WHERE price % 5 = 0",
    "UPDATE bid SET price = price + 50000000 WHERE bidder % 7 = 1",
    "DELETE FROM auction WHERE id % 11 = 3",
    "UPDATE auction SET category = 10 WHERE id % 4 = 2",
    "UPDATE person SET state = 'or', name = name || ' jr' WHERE id % 3 = 2",
    "DELETE FROM person WHERE id % 13 = 5",
)


class Generator:
    """Batches of events. No two bids have the same price or time, so that no order among them is open."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self._batches = 0
        self._persons = self._auctions = FIRST_ID
        self._prices: set[int] = set()

    def insert(self, client: Client, events: int) -> None:
        """Insert the next batch."""
        rows: dict[str, list[bytes]] = {"person": [], "auction": [], "bid": []}
        start = START + self._batches * PAUSE
        for event in range(events):
            time = start + event * STEP
            place = event % 50
            table = "person" if place == 0 else "auction" if place < 4 else "bid"
            values = {"person": self._person, "auction": self._auction, "bid": self._bid}[table](time)
            rows[table].append((",".join(map(str, values)) + "\n").encode())
        self._batches += 1
        for table, lines in rows.items():
            copy(client, table, lines)

    def _person(self, time: datetime) -> tuple[object, ...]:
        number = self._persons
        self._persons += 1
        card = " ".join(f"{part:04}" for part in self._random.integers(0, 10000, 4))
        email = f"p{number}@example.com"
        return number, f"person {number % 97}", email, card, self._pick(CITIES), self._pick(STATES), time, self._extra()

    def _auction(self, time: datetime) -> tuple[object, ...]:
        number = self._auctions
        self._auctions += 1
        first = self._number(100, 10000)
        expires = time + timedelta(seconds=self._number(1, 60))
        reserve, seller = first + self._number(1, 10000), self._recent(self._persons, 10)
        category = 10 + self._number(0, 5)
        return number, f"item {number}", "d", first, reserve, time, expires, seller, category, self._extra()

    def _bid(self, time: datetime) -> tuple[object, ...]:
        # Half of the bids go to a hot auction, and some to auctions that do not exist.
        is_hot = self._random.random() < 0.5
        auction = self._auctions // 20 * 20 - 1 if is_hot else self._recent(self._auctions, 60)
        price = int(10 ** self._random.uniform(2, 8))
        while price in self._prices:
            price += 1
        self._prices.add(price)
        channel = self._pick(CHANNELS)
        query = f"?query=1&channel_id={self._number(0, 1000)}" if self._random.random() < 0.7 else ""
        url = f"https://www.nexmark.com/{self._pick(CITIES).lower()}/{self._number(0, 9)}/item.htm{query}"
        return auction, self._recent(self._persons, 30), price, channel, url, time, time + STEP, self._extra()

    def _recent(self, end: int, count: int) -> int:
        return self._number(max(end - count, FIRST_ID - 2), end + 1)

    def _number(self, low: int, high: int) -> int:
        return int(self._random.integers(low, high))

    def _pick(self, values: tuple[str, ...]) -> str:
        return values[self._number(0, len(values))]

    def _extra(self) -> str:
        return "".join(self._random.choice(list("abcde"), 12))


def create(client: Client, suffix: str = "") -> None:
    """The tables, and q13's side input, which never changes."""
    create_tables(client, "nexmark", suffix)
    run(client, "INSERT INTO side_input SELECT i, 'value ' || i FROM range(40) AS r (i)")
