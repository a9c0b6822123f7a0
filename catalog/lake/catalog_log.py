"""Writes the log of the catalog's file into the file, beside commits (DuckDB's CHECKPOINT).

DuckDB (1.5.5) would do so within the COMMIT by which the log exceeds `checkpoint_threshold`. That is one number for all
databases, and a database in memory has a checkpoint, too, once as many bytes have changed. It reads every table in
memory and frees hardly anything: an epoch after 750,000 changed rows took 0.7 s longer. So the threshold is out of
reach (`ducklake.py`), and tables in memory are made anew when they have many deleted rows (`executor.memory`).
"""

from __future__ import annotations

from contextlib import closing

from sparkwave.catalog.lake.ducklake import Lake
from sparkwave.catalog.lake.places import log_of
from sparkwave.catalog.names import METADATA

LOG_PERIOD_S = 1.0
# The log is written into the file beyond this length.
MOST_BYTES = 16 << 20


def checkpoint_once(lake: Lake) -> bool:
    """Write the catalog's log into its file if it is longer than MOST_BYTES. Returns False: nothing more is to do.

    Raises DuckDB's errors, such as for a full disk. A catalog in a PostgreSQL has no such log.
    """
    log = log_of(lake.storage.catalog_file)
    if lake.storage.catalog is None and log.exists() and log.stat().st_size > MOST_BYTES:
        with closing(lake.cursor()) as cursor:
            cursor.execute(f"CHECKPOINT {METADATA}")
    return False
