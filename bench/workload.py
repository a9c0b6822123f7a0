"""The synthetic table and the three views that are measured. Their queries read the same to Postgres and to Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg

CUSTOMERS = 1000

TABLES = (
    """CREATE TABLE customers (id INT PRIMARY KEY, name VARCHAR, region VARCHAR)""",
    """CREATE TABLE orders (
        id BIGINT PRIMARY KEY, customer_id INT, product INT, quantity INT, price DOUBLE PRECISION, note VARCHAR,
        ordered_at TIMESTAMP)""",
)
INSERTS = (
    f"""INSERT INTO customers
        SELECT i, 'customer ' || i, 'region ' || i % 20 FROM range({CUSTOMERS}) r(i)""",
    # Multiplying by primes and taking remainders scatters the values; they are the same in every run.
    """INSERT INTO orders
        SELECT i, (i * 7919) % %(customers)s, (i * 104729) % 200000, 1 + i % 9, ((i * 31) % 10007) / 100.0,
               'note ' || (i * 13) % 5003, TIMESTAMP '2024-01-01 00:00:00' + (i % 31536000) * INTERVAL '1 second'
        FROM range(%(rows)s) r(i)""".replace("%(customers)s", str(CUSTOMERS)),
)


@dataclass(frozen=True)
class View:
    """A measured view; `probe` selects a value that one more order (customer 1, product 1, one piece) changes.

    `aims` are what its backfill may take by strategy, as a multiple of plain Spark's time.
    """

    name: str
    title: str
    query: str
    probe: str
    aims: dict[str, float]


VIEWS = (
    View(
        "projection",
        "filtered projection",
        """SELECT id, customer_id, quantity * price AS amount, note, ordered_at FROM orders WHERE price < 50""",
        "SELECT count(*) FROM projection WHERE id = {id}",
        {"snapshot": 0.5, "no_shuffle": 0.5, "arrangement": 0.5},
    ),
    View(
        "by_region",
        "join, aggregation",
        """SELECT c.region, o.quantity, count(*) AS orders, sum(o.price) AS revenue, max(o.price) AS top
FROM orders o JOIN customers c ON c.id = o.customer_id GROUP BY c.region, o.quantity""",
        "SELECT orders FROM by_region WHERE region = 'region 1' AND quantity = 1",
        {"snapshot": 0.55, "arrangement": 0.55},
    ),
    View(
        "by_product",
        "wide group-by",
        """SELECT product, count(*) AS orders, sum(quantity) AS pieces, sum(price) AS revenue, min(price) AS low,
       max(price) AS top, min(ordered_at) AS first_at, max(ordered_at) AS last_at
FROM orders GROUP BY product""",
        "SELECT orders FROM by_product WHERE product = 1",
        {"snapshot": 0.35, "arrangement": 0.35},
    ),
)
WARM_UP = "SELECT region, count(*) AS n FROM customers GROUP BY region"


def fill(connection: psycopg.Connection[Any], rows: int) -> None:
    """Fill both tables."""
    for insert in INSERTS:
        connection.execute(insert.replace("%(rows)s", str(rows)))
