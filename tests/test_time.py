"""What depends on time: filters on now(), watermarks with EMIT ON WINDOW CLOSE, temporal joins."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from marking import long_but
from test_law import check, opened, run

from sparkwave.catalog.model import Epoch
from sparkwave.catalog.stores.epoch_store import stored_epoch
from sparkwave.server.context import Context
from sparkwave.server.dispatch import Client

HOUR_US = 3_600_000_000


@pytest.fixture(params=long_but(["incremental"], ["incremental", "full"]))
def session(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[Context, Client]]:
    parameters = {"streaming_engine": "duckdb", "backfill_engine": "auto", "refresh_mode": request.param}
    with opened(tmp_path / "lake", **parameters) as (context, client):
        yield context, client


def at(context: Context, time_us: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One epoch at a time of the test's own: the coordinator's clock, and nothing else, is set."""
    monkeypatch.setattr("sparkwave.executor.epochs.coordinator.time.time_ns", lambda: time_us * 1000)
    context.coordinator.barrier()


def test_time_alone_moves_rows_in_and_out(session: tuple[Context, Client], monkeypatch: pytest.MonkeyPatch) -> None:
    context, client = session
    run(client, "CREATE TABLE t (id int PRIMARY KEY, at timestamptz)")
    run(client, "INSERT INTO t SELECT i, now() + i * INTERVAL '1 hour' FROM generate_series(-3, 4) AS g(i)")
    run(client, "CREATE MATERIALIZED VIEW recent AS SELECT id FROM t WHERE at > now() - INTERVAL '90 minutes'")
    run(client, "CREATE MATERIALIZED VIEW past AS SELECT count(*) AS n, max(id) AS last FROM t WHERE at <= now()")
    near = "now() BETWEEN at - INTERVAL '30 minutes' AND at + INTERVAL '30 minutes'"
    run(client, f"CREATE MATERIALIZED VIEW around AS SELECT id FROM t WHERE {near} AND id <> 2")
    start = stored_epoch(context.lake.cursor()).time_us

    def shown() -> tuple[list[int], tuple[object, ...], list[int]]:
        recent = sorted(row[0] for row in run(client, "SELECT id FROM recent"))
        return (
            recent,
            run(client, "SELECT n, last FROM past")[0],
            sorted(r[0] for r in run(client, "SELECT id FROM around")),
        )

    assert shown() == ([-1, 0, 1, 2, 3, 4], (4, 0), [0])
    at(context, start + HOUR_US, monkeypatch)
    assert shown() == ([0, 1, 2, 3, 4], (5, 1), [1])
    run(client, "UPDATE t SET at = at - INTERVAL '10 hours' WHERE id = 4")
    at(context, start + 2 * HOUR_US, monkeypatch)
    assert shown() == ([1, 2, 3], (7, 4), [])
    run(client, "DELETE FROM t WHERE id = 1")
    at(context, start + 9 * HOUR_US, monkeypatch)
    assert shown() == ([], (7, 4), [])
    # A clock that is set back does not take the epochs with it.
    at(context, start, monkeypatch)
    assert shown() == ([], (7, 4), [])


def test_an_epoch_in_which_nothing_flips_writes_nothing(session: tuple[Context, Client]) -> None:
    context, client = session
    run(client, "CREATE TABLE t (id int PRIMARY KEY, at timestamptz)")
    run(client, "INSERT INTO t VALUES (1, now() + INTERVAL '1 day')")
    run(client, "CREATE MATERIALIZED VIEW v AS SELECT id FROM t WHERE at > now()")
    context.coordinator.flush(lambda: False)
    before: Epoch = stored_epoch(context.lake.cursor())
    for _ in range(3):
        context.coordinator.barrier()
    assert stored_epoch(context.lake.cursor()) == before


Rows = set[tuple[object, ...]]


def check_closed(client: Client, queries: dict[str, str], when: str, shown: dict[str, Rows]) -> None:
    """Compare views with queries, after a FLUSH; nothing that they have shown goes. Their rows are added to `shown`."""
    check(client, queries, when)
    for name in queries:
        now_shown = set(run(client, f"SELECT * FROM {name}"))
        assert shown[name] <= now_shown, (name, when)
        shown[name] = now_shown


WINDOWS = {
    "tumbling": "TUMBLE(e, at, INTERVAL '1' MINUTE)",
    "hopping": "HOP(e, at, INTERVAL '30' SECOND, INTERVAL '1' MINUTE)",
}


def test_emit_on_window_close(session: tuple[Context, Client]) -> None:
    """A window shows when the watermark, 10 s behind the latest row, has passed its end; what shows never changes."""
    context, client = session
    run(client, "CREATE TABLE e (at timestamp, v int, WATERMARK FOR at AS at - INTERVAL '10' SECOND) APPEND ONLY")
    queries = {
        name: f"SELECT window_start, window_end, count(*) AS n, sum(v) AS s FROM {window} "
        "GROUP BY window_start, window_end"
        for name, window in WINDOWS.items()
    }
    for name, query in queries.items():
        run(client, f"CREATE MATERIALIZED VIEW {name} AS {query} EMIT ON WINDOW CLOSE")
    shown: dict[str, Rows] = {name: set() for name in queries}
    watermark = "(SELECT max(at) - INTERVAL '10 seconds' FROM e)"
    expected = {n: f"SELECT * FROM ({query}) AS q WHERE window_end <= {watermark}" for n, query in queries.items()}
    for second in (5, 20, 65, 50, 71, 100, 200, 90, 215):
        run(client, f"INSERT INTO e VALUES (TIMESTAMP '2024-01-01' + {second} * INTERVAL '1 second', {second})")
        context.coordinator.flush(lambda: False)
        check_closed(client, expected, f"at {second}", shown)
    assert all(len(rows) >= 2 for rows in shown.values())


def test_emit_on_window_close_of_the_watermark_column(session: tuple[Context, Client]) -> None:
    context, client = session
    run(client, "CREATE TABLE e (at timestamp, v int, WATERMARK FOR at AS at) APPEND ONLY")
    run(client, "CREATE MATERIALIZED VIEW m AS SELECT at, count(*) AS n FROM e GROUP BY at EMIT ON WINDOW CLOSE")
    run(client, "INSERT INTO e VALUES ('2024-01-01', 1), ('2024-01-02', 2), ('2024-01-02', 3)")
    context.coordinator.flush(lambda: False)
    assert [n for _, n in run(client, "SELECT at, n FROM m")] == [1]


def test_emit_on_window_close_needs_a_watermark(session: tuple[Context, Client]) -> None:
    _, client = session
    run(client, "CREATE TABLE t (a int, at timestamp)")
    run(client, "CREATE TABLE e (k int, at timestamp, v int, WATERMARK FOR at AS at) APPEND ONLY")
    for query, words in {
        "SELECT a, count(*) AS n FROM t GROUP BY a": "requires a watermark column in GROUP BY",
        "SELECT a FROM t": "cannot be executed in Emit-On-Window-Close mode",
        "SELECT at, ntile(2) OVER (PARTITION BY k ORDER BY at) AS n FROM e": "cannot be executed",
        "SELECT at, rank() OVER (PARTITION BY k ORDER BY at DESC) AS n FROM e": "cannot be executed",
        "SELECT at, max(v) OVER (ORDER BY at ROWS BETWEEN 1 PRECEDING AND UNBOUNDED FOLLOWING) AS n FROM e": "cannot",
        "SELECT at, v FROM e ORDER BY v LIMIT 3": "cannot be executed in Emit-On-Window-Close mode",
        "SELECT at, v FROM e WHERE v > (SELECT max(a) FROM t)": "cannot be executed in Emit-On-Window-Close mode",
        "SELECT e.at FROM e JOIN t ON e.v = t.a": "cannot be executed in Emit-On-Window-Close mode",
    }.items():
        with pytest.raises(Exception, match=words):
            run(client, f"CREATE MATERIALIZED VIEW v AS {query} EMIT ON WINDOW CLOSE")


# Each with the rows that are final: of all rows up to the watermark; for `waiting`, which reads two later rows, of all
# but the last two of each key.
CLOSED_ROWS = {
    "plain": ("SELECT k, at, v FROM e", "SELECT k, at, v FROM r"),
    "numbered": (
        "SELECT k, at, row_number() OVER w AS n, rank() OVER w AS r, lag(v) OVER w AS l, sum(v) OVER w AS s FROM e "
        "WINDOW w AS (PARTITION BY k ORDER BY at)",
        "SELECT k, at, row_number() OVER w AS n, rank() OVER w AS r, lag(v) OVER w AS l, sum(v) OVER w AS s FROM r "
        "WINDOW w AS (PARTITION BY k ORDER BY at)",
    ),
    "waiting": (
        "SELECT k, at, lead(v) OVER (PARTITION BY k ORDER BY at) AS l, max(v) OVER (PARTITION BY k ORDER BY at ROWS "
        "BETWEEN 1 PRECEDING AND 2 FOLLOWING) AS m FROM e",
        "SELECT k, at, l, m FROM (SELECT k, at, lead(v) OVER w AS l, max(v) OVER (PARTITION BY k ORDER BY at ROWS "
        "BETWEEN 1 PRECEDING AND 2 FOLLOWING) AS m, lead(at, 2) OVER w AS last FROM r "
        "WINDOW w AS (PARTITION BY k ORDER BY at)) AS q WHERE last IS NOT NULL",
    ),
    "first_rows": (
        "SELECT k, at, v FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY at) AS n FROM e) AS q WHERE n <= 2",
        "SELECT k, at, v FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY at) AS n FROM r) AS q WHERE n <= 2",
    ),
}


def test_emit_on_window_close_of_rows(session: tuple[Context, Client]) -> None:
    """A row shows when the watermark has passed it and what its windows read; what shows never changes."""
    context, client = session
    run(client, "CREATE TABLE e (k int, at timestamp, v int, WATERMARK FOR at AS at - INTERVAL '9' SECOND) APPEND ONLY")
    for name, (view, _) in CLOSED_ROWS.items():
        run(client, f"CREATE MATERIALIZED VIEW {name} EMIT ON WINDOW CLOSE AS {view}")
    shown: dict[str, Rows] = {name: set() for name in CLOSED_ROWS}
    closed = "(SELECT * FROM e WHERE at < (SELECT max(at) - INTERVAL '9 seconds' FROM e)) AS r"
    expected = {name: query.replace("FROM r", f"FROM {closed}") for name, (_, query) in CLOSED_ROWS.items()}
    for number, second in enumerate((5, 20, 15, 12, 65, 50, 60, 71, 100, 95, 200, 90, 215)):
        row = f"({number % 2}, TIMESTAMP '2024-01-01' + {second} * INTERVAL '1 second', {number})"
        run(client, f"INSERT INTO e VALUES {row}")
        context.coordinator.flush(lambda: False)
        check_closed(client, expected, f"at {second}", shown)
    assert all(len(rows) >= 2 for rows in shown.values())


# Each with the rows that are final, below the watermarks wl and wr of both sides.
CLOSED_JOINS = {
    "equal": ("SELECT l.at, l.v, r.v AS w FROM l LEFT JOIN r ON l.at = r.at", "at < least(wl, wr)"),
    "after": ("SELECT l.at, l.v, r.v AS w FROM l JOIN r ON l.k = r.k AND l.at >= r.at", "at < least(wl, wr)"),
    "near": (
        "SELECT r.at, l.v, r.v AS w FROM l JOIN r ON l.at BETWEEN r.at - INTERVAL '4 seconds' AND r.at",
        "at < least(wl, wr)",
    ),
    "without": (
        "SELECT at, v FROM l WHERE NOT EXISTS (SELECT FROM r WHERE r.k = l.k AND r.at = l.at + INTERVAL '3 seconds')",
        "at < least(wl, wr - INTERVAL '3 seconds')",
    ),
}


def test_emit_on_window_close_of_joins(session: tuple[Context, Client]) -> None:
    """A row of a join shows when the watermarks of both sides have passed it; what shows never changes."""
    context, client = session
    for side in "lr":
        watermark = "WATERMARK FOR at AS at - INTERVAL '5' SECOND"
        run(client, f"CREATE TABLE {side} (k int, at timestamp, v int, {watermark}) APPEND ONLY")
    for name, (query, _) in CLOSED_JOINS.items():
        run(client, f'CREATE MATERIALIZED VIEW "{name}" AS {query} EMIT ON WINDOW CLOSE')
    shown: dict[str, Rows] = {f'"{name}"': set() for name in CLOSED_JOINS}
    watermarks = ", ".join(f"(SELECT max(at) - INTERVAL '5 seconds' AS w{side} FROM {side})" for side in "lr")
    expected = {
        f'"{name}"': f"SELECT q.* FROM ({query}) AS q, {watermarks} WHERE wl < wr IS NOT NULL AND {is_final}"
        for name, (query, is_final) in CLOSED_JOINS.items()
    }
    random = Random(31)
    for number in range(20):
        side, second = random.choice("lr"), number + random.randrange(6)
        row = f"({second % 2}, TIMESTAMP '2024-01-01' + {second} * INTERVAL '1 second', {number})"
        run(client, f"INSERT INTO {side} VALUES {row}")
        context.coordinator.flush(lambda: False)
        check_closed(client, expected, f"after {number}", shown)
    assert all(len(rows) >= 2 for rows in shown.values())


def test_a_temporal_join_looks_up_what_is_there_when_a_row_arrives(session: tuple[Context, Client]) -> None:
    context, client = session
    run(client, "CREATE TABLE orders (id int, product int, amount int) APPEND ONLY")
    run(client, "CREATE TABLE prices (product int PRIMARY KEY, price int)")
    run(client, "INSERT INTO prices VALUES (1, 10), (2, 20)")
    run(client, "INSERT INTO orders VALUES (100, 1, 1)")
    joined = "FROM orders AS o {kind} JOIN prices FOR SYSTEM_TIME AS OF PROCTIME() AS p ON o.product = p.product"
    run(client, f"CREATE MATERIALIZED VIEW paid AS SELECT o.id, p.price * o.amount AS total {joined.format(kind='')}")
    run(client, f"CREATE MATERIALIZED VIEW maybe AS SELECT o.id, p.price {joined.format(kind='LEFT')}")
    run(
        client,
        f"CREATE MATERIALIZED VIEW sums AS SELECT p.price, count(*) AS n {joined.format(kind='')} GROUP BY p.price",
    )
    for statements in (
        ("UPDATE prices SET price = 99 WHERE product = 1",),
        ("INSERT INTO orders VALUES (101, 1, 2), (102, 3, 1)",),
        ("DELETE FROM prices WHERE product = 1", "INSERT INTO prices VALUES (3, 30)"),
        ("INSERT INTO orders VALUES (103, 1, 1), (104, 3, 1)",),
    ):
        for statement in statements:
            run(client, statement)
        context.coordinator.flush(lambda: False)
    assert sorted(run(client, "SELECT * FROM paid")) == [(100, 10), (101, 198), (104, 30)]
    assert sorted(run(client, "SELECT * FROM maybe")) == [(100, 10), (101, 99), (102, None), (103, None), (104, 30)]
    assert sorted(run(client, "SELECT * FROM sums")) == [(10, 1), (30, 1), (99, 1)]


# Views over temporal joins, and what each computes from the joined rows (id, v, pid, b).
MEMOS = {
    "plain": ("SELECT id, v, pid, b FROM {inner}", lambda rows: rows),
    "outer": ("SELECT id, v, b FROM {outer}", lambda rows: [(id_, v, b) for id_, v, _, b in rows]),
    "most": (
        "SELECT b, count(*) AS n, max(v) AS m FROM {inner} GROUP BY b",
        lambda rows: [(b, len(vs), max(vs)) for b in {r[3] for r in rows} if (vs := [r[1] for r in rows if r[3] == b])],
    ),
    "first": ("SELECT id, pid FROM {inner} ORDER BY v DESC, id, pid LIMIT 3", lambda rows: [
        (id_, pid) for id_, _, pid, _ in sorted(rows, key=lambda r: (-r[1], r[0], r[2]))[:3]]),
}  # fmt: skip


@pytest.mark.parametrize("is_append_only", [False, True])
def test_a_temporal_join_takes_back_what_it_joined(session: tuple[Context, Client], is_append_only: bool) -> None:
    """Each left row keeps the matches of the moment when it came or last changed, and takes them with it."""
    context, client = session
    run(client, f"CREATE TABLE s (id int{'' if is_append_only else ' PRIMARY KEY'}, a int, v int)" + (
        " APPEND ONLY" if is_append_only else ""))  # fmt: skip
    run(client, "CREATE TABLE p (pid int PRIMARY KEY, k int, b int)")
    on = "p FOR SYSTEM_TIME AS OF PROCTIME() ON s.a = p.k"
    for name, (query, _) in MEMOS.items():
        joins = {"inner": f"s JOIN {on}", "outer": f"s LEFT JOIN {on}"}
        run(client, f'CREATE MATERIALIZED VIEW "{name}" AS {query.format(**joins)}')
    random, left, right = Random("memos"), {}, {}
    joined: dict[int, list[tuple[int, int, int | None, int | None]]] = {}

    def arrives(id_: int) -> None:
        a, v = left[id_]
        joined[id_] = [(id_, v, pid, b) for pid, (k, b) in right.items() if k == a]

    for step in range(30):
        if step % 3 == 1:
            pid = random.randrange(6)
            run(client, f"DELETE FROM p WHERE pid = {pid}")
            right.pop(pid, None)
            if random.random() < 0.7:
                right[pid] = random.randrange(3), random.randrange(4)
                run(client, f"INSERT INTO p VALUES ({pid}, {right[pid][0]}, {right[pid][1]})")
        elif left and not is_append_only and random.random() < 0.5:
            id_ = random.choice(sorted(left))
            if random.random() < 0.5:
                run(client, f"DELETE FROM s WHERE id = {id_}")
                del left[id_], joined[id_]
            else:
                left[id_] = left[id_][0], 100 + step
                run(client, f"UPDATE s SET v = {100 + step} WHERE id = {id_}")
                arrives(id_)
        else:
            left[step] = random.randrange(3), random.randrange(50)
            run(client, f"INSERT INTO s VALUES ({step}, {left[step][0]}, {left[step][1]})")
            arrives(step)
        context.coordinator.flush(lambda: False)
        for name, (_, expected) in MEMOS.items():
            rows = [
                row
                for id_, found in joined.items()
                for row in (found or ([(id_, left[id_][1], None, None)] if name == "outer" else []))
            ]
            shown = sorted(run(client, f'SELECT * FROM "{name}"'), key=repr)
            assert shown == sorted(expected(rows), key=repr), (name, step)


@pytest.mark.spark
@pytest.mark.long
def test_temporal_filter_on_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path / "lake", streaming_engine="spark") as (context, client):
        run(client, "CREATE TABLE t (id int PRIMARY KEY, at timestamptz)")
        run(client, "INSERT INTO t SELECT i, now() + i * INTERVAL '1 hour' FROM generate_series(-3, 4) AS g(i)")
        query = "SELECT id FROM t WHERE at <= now() - INTERVAL '1 minute'"
        run(client, f"CREATE MATERIALIZED VIEW past AS {query}")
        assert sorted(run(client, "SELECT id FROM past")) == [(-3,), (-2,), (-1,)]
        start = stored_epoch(context.lake.cursor()).time_us
        at(context, start + 2 * HOUR_US, monkeypatch)
        assert sorted(run(client, "SELECT id FROM past")) == [(-3,), (-2,), (-1,), (0,), (1,)]
