"""TPC-H: its tables filled by tpchgen-cli, its 22 queries, and its refresh functions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from query_sets import copy, create_tables, queries
from test_law import run

from sparkwave.server.dispatch import Client

QUERIES = queries("tpch")
TABLES = ("region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem")

# What happens besides new and old orders: rows move between groups, in and out of filters and joins, so that every
# query's result changes.
UPDATES = (
    "UPDATE customer SET c_acctbal = c_acctbal - 500, c_mktsegment = 'BUILDING' WHERE c_custkey % 50 = 1",
    "UPDATE part SET p_brand = 'Brand#23', p_container = 'MED BOX', p_size = 15 WHERE p_partkey % 5 = 2",
    "UPDATE part SET p_brand = 'Brand#12', p_container = 'SM BOX', p_size = 3 WHERE p_partkey % 5 = 3",
    "UPDATE part SET p_type = 'ECONOMY ANODIZED STEEL', p_name = 'forest green' WHERE p_partkey % 5 = 4",
    "UPDATE partsupp SET ps_supplycost = 1.25, ps_availqty = ps_availqty + 9000 WHERE ps_partkey % 30 = 4",
    "UPDATE lineitem SET l_quantity = 60 WHERE l_orderkey % 20 = 4",
    "UPDATE orders SET o_orderstatus = 'F', o_comment = 'special requests' WHERE o_orderkey % 60 = 5",
    "UPDATE supplier SET s_nationkey = s_nationkey % 24 + 1, s_comment = 'Customer Complaints' WHERE s_suppkey % 5 = 3",
    "UPDATE nation SET n_name = 'SAUDI ARABIA' WHERE n_name = 'JAPAN'",
    "UPDATE nation SET n_name = 'BRAZIL' WHERE n_name = 'GERMANY'",
    "DELETE FROM supplier WHERE s_suppkey % 25 = 7",
    "DELETE FROM customer WHERE c_custkey % 40 = 8",
)


class Data:
    """Rows as CSV lines. The orders after the first `loaded`, in the order of their keys, are kept for `refresh`."""

    def __init__(self, directory: Path, scale: str, loaded: int) -> None:
        tool = Path(sys.executable).with_name("tpchgen-cli")
        subprocess.run([tool, "csv", "--quiet", "--scale-factor", scale, "--output-dir", directory], check=True)
        self._lines = {table: _lines(directory / f"{table}.csv") for table in TABLES}
        self._keys = [_key(line) for line in self._lines["orders"]]
        self._next = loaded
        self._oldest = 0

    def load(self, client: Client) -> None:
        """Make the tables and fill them."""
        create_tables(client, "tpch")
        for table in TABLES:
            if table not in ("orders", "lineitem"):
                copy(client, table, self._lines[table])
        self._insert(client, 0, self._next)

    def insert_orders(self, client: Client, count: int) -> None:
        """RF1: new orders and their lines."""
        self._insert(client, self._next, self._next + count)
        self._next += count

    def delete_orders(self, client: Client, count: int) -> None:
        """RF2: the oldest orders and their lines go."""
        first, last = self._keys[self._oldest], self._keys[self._oldest + count - 1]
        self._oldest += count
        run(client, f"DELETE FROM lineitem WHERE l_orderkey BETWEEN {first} AND {last}")
        run(client, f"DELETE FROM orders WHERE o_orderkey BETWEEN {first} AND {last}")

    def _insert(self, client: Client, start: int, end: int) -> None:
        keys = set(self._keys[start:end])
        for table in ("orders", "lineitem"):
            copy(client, table, (line for line in self._lines[table] if _key(line) in keys))


def _lines(file: Path) -> list[bytes]:
    return file.read_bytes().splitlines(keepends=True)[1:]


def _key(line: bytes) -> int:
    return int(line.partition(b",")[0])
