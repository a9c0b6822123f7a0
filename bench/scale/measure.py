"""`python -m bench.scale.measure [SECTION ...]`: the real code's costs, by number of files, snapshots, slices, views.

All times are seconds of one processor in the calling thread (DuckDB has one thread), the least of a few runs: so they
mean the same on a machine that is busy with other things. What a disk or a network adds is not in them.
"""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import json
import os
import platform
import shutil
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path

from sparkwave.catalog.lake.compaction import tables_to_compact
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.lake_tables import register_files
from sparkwave.catalog.lake.row_ids import RowIds
from sparkwave.catalog.lake.snapshot_changes import changes_made
from sparkwave.catalog.lake.translation import DuckDBError
from sparkwave.catalog.model import Epoch, Relation
from sparkwave.catalog.names import METADATA, literal
from sparkwave.catalog.stores.job_store import Slice, Start, check_step, finish_slices, start_job
from sparkwave.executor.backfill.slicing import row_count, row_ids
from sparkwave.executor.spark import kernel
from sparkwave.executor.spark.footers import FOOTERS
from sparkwave.executor.spark.lake_files import TableFiles, table_files
from sparkwave.executor.spark.lake_rows import table_rows
from sparkwave.server.context import Context, open_context
from sparkwave.server.dispatch import Client
from sparkwave.server.operations.config import Config

CONSTANTS = Path(__file__).with_name("constants.json")
FILES = (100, 1_000, 10_000, 100_000)
MOST_OPENED = 10_000  # files that are opened one by one for a query, or named one by one in its text
MOST_LINKS = 50_000  # of one file; ext4 has 65,000
SNAPSHOTS = (100, 1_000, 10_000)
SLICES = (100, 400, 1_600)
VIEWS = (16, 4, 1)
ROWS = 1000
FILES_A_TASK = 150  # of 10 TB in 1,000 tasks
TASK_ROWS = 5_000_000
COLUMNS = "id BIGINT, customer INT, product INT, quantity INT, price DOUBLE PRECISION, ordered_at TIMESTAMP"
ORDERS = (
    "SELECT i::BIGINT AS id, (i * 31 % 1009)::INT AS customer, i::INT AS product, 1::INT AS quantity, "
    "(i % 97)::DOUBLE AS price, TIMESTAMP '2024-01-01' + i * INTERVAL '1 second' AS ordered_at"
)

# One measured cost at several sizes.
Curve = dict[int, float]


def main() -> int:
    """Measure the sections named, or all, and put them into constants.json. Returns the exit code."""
    chosen = sys.argv[1:] or list(SECTIONS)
    if unknown := set(chosen) - set(SECTIONS):
        print(f"bench.scale.measure: no section {', '.join(unknown)}; there are {', '.join(SECTIONS)}", file=sys.stderr)
        return 2
    for name in chosen:
        with opened() as context:
            for key, found in SECTIONS[name](context):
                _store(name, key, found)
                print(f"{name} {key}: {found}", flush=True)
    return 0


def _store(section: str, key: str, found: object) -> None:
    with open(CONSTANTS, "a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # sections may be measured at the same time
        file.seek(0)
        constants = json.loads(file.read() or "{}")
        _put(constants, section, key, found)
        file.truncate(0)
        file.write(json.dumps(constants, indent=1) + "\n")


def _put(constants: dict[str, dict[str, object]], section: str, key: str, found: object) -> None:
    constants["machine"] = {
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "duckdb": version("duckdb"),
        "date": datetime.date.today().isoformat(),
        "load": round(os.getloadavg()[0], 1),
    }
    constants.setdefault(section, {})[key] = found


@contextlib.contextmanager
def opened() -> Iterator[Context]:
    """A server without sockets, Spark and clock, over a lake of its own."""
    parameters = {
        "backfill_engine": "auto",
        "streaming_engine": "duckdb",
        "barrier_interval_ms": "3600000",
        "compaction_interval_ms": "86400000",
        "serving_cache_mib": "0",
    }
    with tempfile.TemporaryDirectory(prefix="sparkwave-scale-") as directory:
        context = open_context(Config(data=Path(directory), spark_start="on_demand"), parameters)
        try:
            for stop in (*(w.stop for w in context.background), context.sources.stop, context.outbox.stop):
                stop()
            context.usage.stop()
            context.lake.cursor().execute("SET threads = 1")
            run(context, f"CREATE TABLE orders ({COLUMNS})", "CREATE TABLE other (id BIGINT)")
            yield context
        finally:
            context.close()


def run(context: Context, *statements: str) -> None:
    client = Client(context, {"user": "root"})
    for sql in statements:
        client.execute(client.prepare(sql, ()), ())


def seconds(action: Callable[[], object], repeats: int = 3) -> float:
    """The least processor time that an action takes in this thread."""
    times = []
    for _ in range(repeats):
        start = time.thread_time()
        action()
        times.append(time.thread_time() - start)
    return round(min(times), 7)


def of_files(context: Context) -> Iterator[tuple[str, object]]:
    """By number of files of one table: a hundred are registered one by one, the others' rows are copied from those."""
    lake, cursor = context.lake, context.lake.cursor()
    context.coordinator.stop()
    orders, other = _relation(context, "orders"), _relation(context, "other")
    directory = lake.data_path / "scale"
    directory.mkdir()
    curves: dict[str, Curve] = {}
    bytes_before = _catalog_bytes(context)
    for count in FILES:
        if count == FILES[0]:
            for number in range(count):
                file = directory / f"f{number}.parquet"
                rows = f"{ORDERS} FROM range({number * ROWS}, {(number + 1) * ROWS}) r(i)"
                cursor.execute(f"COPY ({rows}) TO {literal(str(file))} (FORMAT parquet)")
                with lake.transaction(cursor):
                    register_files(cursor, orders.lake_table, [str(file)])
        else:
            yield "insert_file_s", _copy_files(cursor, directory, count)
        if count == FILES[0]:
            query = f"SELECT count(*) FROM {METADATA}.ducklake_name_mapping"
            yield "mapping_rows_a_file", cursor.execute(query).fetchall()[0][0] / count
        if count == FILES[2]:
            yield "catalog_bytes_a_file", round((_catalog_bytes(context) - bytes_before) / count)
        for name, action, repeats in _file_costs(context, cursor, orders, other, count):
            curves.setdefault(name, {})[count] = seconds(action, repeats)
            yield name, curves[name]
        if count == MOST_OPENED:
            tracemalloc.start()
            listed = _list(context, cursor, orders)
            yield "memory_bytes_a_file", round(tracemalloc.get_traced_memory()[0] / len(listed.files))
            tracemalloc.stop()


def _file_costs(
    context: Context, cursor: Cursor, orders: Relation, other: Relation, count: int
) -> Iterator[tuple[str, Callable[[], object], int]]:
    lake = context.lake
    many = count > MOST_OPENED
    snapshot = lake.snapshot(cursor)
    file = str(lake.data_path / "scale" / "f0.parquet")

    def register() -> None:
        """A file and the note of its slice, as a slice commits; then COMMIT, which is not kept."""
        cursor.execute("BEGIN")
        register_files(cursor, orders.lake_table, [file])
        cursor.execute("ROLLBACK")

    def commit() -> None:
        with lake.transaction(cursor):
            cursor.execute(f"INSERT INTO {other.lake_name} VALUES (1)")

    def commit_here() -> None:
        with lake.transaction(cursor):
            cursor.execute(f"INSERT INTO {orders.lake_name} VALUES (-1, 1, 1, 1, 1, TIMESTAMP '2024-01-01')")

    def delete() -> None:
        cursor.execute("BEGIN")
        cursor.execute(f"DELETE FROM {orders.lake_name} WHERE id = 17500")
        cursor.execute("ROLLBACK")

    live = f"begin_snapshot <= {snapshot} AND (end_snapshot IS NULL OR end_snapshot > {snapshot})"
    rows = (
        f"SELECT data_file_id, path, row_id_start, record_count FROM {METADATA}.ducklake_data_file "
        f"WHERE table_id = (SELECT max(table_id) FROM {METADATA}.ducklake_data_file) AND {live} ORDER BY row_id_start"
    )
    pruned = f"{rows.partition(' ORDER')[0]} AND row_id_start BETWEEN 20000 AND 50000"
    yield "list_rows", lambda: cursor.execute(rows).fetchall(), 2
    yield "list_pruned_rows", lambda: cursor.execute(pruned).fetchall(), 3
    yield "overlaps", lambda: [RowIds(((20_000, 50_000),)).overlaps(n, n + ROWS) for n in range(count)], 2
    yield "commit_elsewhere", commit, 5
    yield "register", register, 1 if many else 3
    yield "compaction_look", lambda: tables_to_compact(cursor, str(lake.data_path)), 1
    yield "delete_by_clustered_key", delete, 1 if many else 3
    yield "list", partial(_list_anew, context, cursor, orders), 1 if many else 2
    listed = _list(context, cursor, orders)
    yield "list_known", lambda: _list(context, cursor, orders), 2
    part = RowIds(((count // 2 * ROWS, (count // 2 + FILES_A_TASK) * ROWS),))
    listed.near(part)  # which sorts them, once a job
    yield "task_rows", lambda: table_rows(listed, orders, ("id", "price"), part), 3
    if not many:
        scattered = f"SELECT count(*) FROM {orders.lake_name} WHERE customer = 500"
        yield "look_up_scattered_key", lambda: cursor.execute(scattered).fetchall(), 1
    yield "commit_here", commit_here, 3


def _list_anew(context: Context, cursor: Cursor, relation: Relation) -> TableFiles:
    """As the first who asks for these files."""
    FOOTERS._kept.clear()
    return _list(context, cursor, relation)


def _list(context: Context, cursor: Cursor, relation: Relation) -> TableFiles:
    return table_files(cursor, relation, context.lake.snapshot(cursor), context.lake.staging_path / "scale")


def _copy_files(cursor: Cursor, directory: Path, count: int) -> float:
    """More files: links to the first one, and rows of the catalog like its. Returns what those take, a file."""
    table = f"(SELECT max(table_id) FROM {METADATA}.ducklake_data_file)"
    row = cursor.execute(
        f"SELECT count(*), min(data_file_id) FROM {METADATA}.ducklake_data_file WHERE table_id = {table}"
    ).fetchone()
    assert row is not None
    present, first = row
    source = directory / "f0.parquet"
    for number in range(present, count):
        target = directory / f"f{number}.parquet"
        if number % MOST_LINKS:
            os.link(source, target)
        else:
            source = Path(shutil.copyfile(source, target))
    numbers = f"range({present}, {count}) n(i)"
    path = f"{literal(str(directory))} || '/f' || i || '.parquet'"
    start = time.thread_time()
    cursor.execute(
        f"INSERT INTO {METADATA}.ducklake_data_file SELECT * EXCLUDE (i) REPLACE ("
        f"{first} + 1000 + i AS data_file_id, {path} AS path, i * {ROWS} AS row_id_start) "
        f"FROM {METADATA}.ducklake_data_file, {numbers} WHERE data_file_id = {first}"
    )
    cursor.execute(
        f"INSERT INTO {METADATA}.ducklake_file_column_stats SELECT * EXCLUDE (i) REPLACE ("
        f"{first} + 1000 + i AS data_file_id, "
        f"if(column_id = 1, (i * {ROWS})::VARCHAR, min_value) AS min_value, "
        f"if(column_id = 1, ((i + 1) * {ROWS} - 1)::VARCHAR, max_value) AS max_value) "
        f"FROM {METADATA}.ducklake_file_column_stats, {numbers} WHERE data_file_id = {first}"
    )
    cursor.execute(f"UPDATE {METADATA}.ducklake_snapshot SET next_file_id = {first} + 2000 + {count}")
    cursor.execute(
        f"UPDATE {METADATA}.ducklake_table_stats SET record_count = {count * ROWS}, next_row_id = {count * ROWS} "
        f"WHERE table_id = {table}"
    )
    return round((time.thread_time() - start) / (count - present), 7)


def of_counts(context: Context) -> Iterator[tuple[str, object]]:
    """As of_files, only what a job asks of a table before it reads it."""
    curves: dict[str, Curve] = {}
    cursor = context.lake.cursor()
    orders = _one_file(context, cursor)
    for count in FILES[:-1]:
        _copy_files(cursor, context.lake.data_path / "scale", count)
        snapshot = context.lake.snapshot(cursor)
        for name, question in (("row_count", row_count), ("row_ids", row_ids)):
            curves.setdefault(name, {})[count] = seconds(partial(question, cursor, orders, snapshot), 2)
            yield name, curves[name]


def _one_file(context: Context, cursor: Cursor) -> Relation:
    """The table of orders with one file, from which there can be others."""
    context.coordinator.stop()
    orders = _relation(context, "orders")
    file = context.lake.data_path / "scale" / "f0.parquet"
    file.parent.mkdir()
    cursor.execute(f"COPY ({ORDERS} FROM range({ROWS}) r(i)) TO {literal(str(file))} (FORMAT parquet)")
    with context.lake.transaction(cursor):
        register_files(cursor, orders.lake_table, [str(file)])
    return orders


def of_deletes(context: Context) -> Iterator[tuple[str, object]]:
    """Listing a table of which the catalog holds a deleted row: the query names every file."""
    lake, cursor = context.lake, context.lake.cursor()
    orders = _one_file(context, cursor)
    with lake.transaction(cursor):
        cursor.execute(f"DELETE FROM {orders.lake_name} WHERE id = 5")
    curve: Curve = {}
    for count in (100, 400, 1_600):
        _copy_files(cursor, lake.data_path / "scale", count)
        curve[count] = seconds(lambda: _list(context, cursor, orders), 1)
        yield "list_with_a_delete", curve


def of_snapshots(context: Context) -> Iterator[tuple[str, object]]:
    """By number of snapshots that are kept: a hundred of one row inserted each, the others' rows copied from those."""
    lake, cursor = context.lake, context.lake.cursor()
    context.coordinator.stop()
    other = _relation(context, "other")

    def commit() -> None:
        with lake.transaction(cursor):
            cursor.execute(f"INSERT INTO {other.lake_name} VALUES (1)")

    commits: Curve = {}
    changes: Curve = {}
    first, before = lake.snapshot(cursor), _catalog_bytes(context)
    for count in SNAPSHOTS:
        if count == SNAPSHOTS[0]:
            for _ in range(count):
                commit()
            yield "catalog_bytes_a_snapshot", round((_catalog_bytes(context) - before) / count)
        else:
            newest = lake.snapshot(cursor)
            for table in ("ducklake_snapshot", "ducklake_snapshot_changes"):
                cursor.execute(
                    f"INSERT INTO {METADATA}.{table} SELECT * EXCLUDE (i) REPLACE (snapshot_id + 1 + i AS snapshot_id) "
                    f"FROM {METADATA}.{table}, range({count - newest + first}) r(i) WHERE snapshot_id = {newest}"
                )
        commits[count] = seconds(commit, 5)
        yield "commit", commits
        changes[count] = seconds(lambda: changes_made(cursor, first, lake.snapshot(cursor)))
        yield "changes_made", changes


def of_slices(context: Context) -> Iterator[tuple[str, object]]:
    """By number of slices of a backfill: writing them down, and the note that one is finished."""
    run(context, "CREATE MATERIALIZED VIEW v AS SELECT id, price FROM orders WHERE price > 5")
    context.coordinator.stop()
    cursor, store = context.lake.cursor(), context.store
    id_ = _relation(context, "v").id
    written, finished, together = {}, {}, {}
    for count in SLICES:
        slices = [Slice(1, n + 1, 1, "orders", n * 100, n * 100 + 100, 100) for n in range(count)]
        start = time.thread_time()
        cursor.execute("BEGIN")
        start_job(cursor, store.catalog.job_by_id[id_], Start(Epoch(1, 1), tuple(slices)))
        written[count] = round(time.thread_time() - start, 7)
        yield "start_job", written
        values = ", ".join(f"({id_}, 1, {n}, 100, now())" for n in range(count))
        cursor.execute(f"INSERT INTO lake.sparkwave.finished_slices VALUES {values}")
        finished[count] = seconds(lambda: check_step(cursor, id_, 10**6, [1]))
        yield "check_step", finished
        more = [Slice(2, n + 1, 1, "orders", n * 100, n * 100 + 100, 100) for n in range(count)]
        together[count] = seconds(lambda: finish_slices(cursor, id_, more), 1)  # noqa: B023
        yield "finish_slices", together
        cursor.execute("ROLLBACK")


def of_tasks(context: Context) -> Iterator[tuple[str, object]]:
    """What a task reads and writes, a second of one processor, and what its files cost by their number."""
    lake, cursor = context.lake, context.lake.cursor()
    context.coordinator.stop()
    orders = _relation(context, "orders")
    table = f"{lake.data_path}/rows.parquet"
    cursor.execute(f"COPY ({ORDERS} FROM range({TASK_ROWS}) r(i)) TO {literal(table)} (FORMAT parquet)")
    query = f"SELECT id, price * 2 AS twice, ordered_at FROM read_parquet({literal(table)}) WHERE price > 5"
    (target := lake.data_path / "task").mkdir()
    written = seconds(lambda: kernel.write(cursor, kernel.Step("rows", query, str(target))), 3)
    yield "kernel_rows", round(TASK_ROWS / written)
    registered: Curve = {}
    for count in (100, 400, 1_600):
        directory = lake.data_path / f"registered_{count}"
        directory.mkdir()
        source = directory / "f0.parquet"
        cursor.execute(f"COPY ({ORDERS} FROM range({ROWS}) r(i)) TO {literal(str(source))} (FORMAT parquet)")
        for number in range(1, count):
            os.link(source, directory / f"f{number}.parquet")
        cursor.execute("BEGIN")
        files = [str(directory / f"f{number}.parquet") for number in range(count)]
        registered[count] = seconds(lambda: register_files(cursor, orders.lake_table, files), 1)  # noqa: B023
        cursor.execute("ROLLBACK")
        yield "register_files", registered


def of_views(context: Context) -> Iterator[tuple[str, object]]:
    """By number of views of one table: a barrier without changes, and one of a row inserted and a row updated."""
    names = [f"v{n}" for n in range(max(VIEWS))]
    run(context, "INSERT INTO orders SELECT i, i % 50, i, 1, 5, TIMESTAMP '2024-01-01' FROM range(2000) r(i)")
    for number, name in enumerate(names):
        aggregates = f"product % {number + 7} AS p, count(*) AS n, sum(quantity) AS pieces"
        run(context, f"CREATE MATERIALIZED VIEW {name} AS SELECT {aggregates} FROM orders GROUP BY 1")
    context.coordinator.stop()
    idle, busy = {}, {}
    for count in VIEWS:
        run(context, *(f"DROP MATERIALIZED VIEW {name}" for name in names[count:]))
        del names[count:]
        context.coordinator.barrier()
        idle[count] = seconds(context.coordinator.barrier, 5)
        yield "idle_barrier", idle
        times = []
        for turn in range(4):
            row = f"({100_000 + turn}, 1, {turn}, 1, 5, TIMESTAMP '2024-01-01')"
            run(context, f"INSERT INTO orders VALUES {row}")
            times.append(seconds(context.coordinator.barrier, 1))
        busy[count] = min(times)
        yield "busy_barrier", busy


def _relation(context: Context, name: str) -> Relation:
    return next(relation for relation in context.store.catalog.relations if relation.name == name)


def _catalog_bytes(context: Context) -> int:
    """The size of the catalog's file with all that is in its log."""
    for _ in range(100):
        with contextlib.suppress(DuckDBError):  # while another thread's transaction is open
            context.lake.cursor().execute(f"CHECKPOINT {METADATA}")
            break
        time.sleep(0.1)
    file = context.lake.storage.catalog_file
    return sum(path.stat().st_size for path in (file, file.with_name(f"{file.name}.wal")) if path.exists())


SECTIONS: dict[str, Callable[[Context], Iterator[tuple[str, object]]]] = {
    "files": of_files,
    "counts": of_counts,
    "deletes": of_deletes,
    "snapshots": of_snapshots,
    "slices": of_slices,
    "tasks": of_tasks,
    "views": of_views,
}

if __name__ == "__main__":
    sys.exit(main())
