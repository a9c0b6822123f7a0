"""A server without what only Linux has, as on macOS."""

from __future__ import annotations

from pathlib import Path

from servers import Server

# Names of modules that macOS lacks.
LINUX_ONLY = """
import os, resource, select, socket
for module, names in {
    os: "sched_getaffinity sched_setaffinity pidfd_open posix_fadvise eventfd memfd_create copy_file_range splice",
    socket: "TCP_KEEPIDLE TCP_USER_TIMEOUT",
    select: "POLLRDHUP epoll",
    resource: "RLIMIT_NICE prlimit",
}.items():
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
"""


def test_it_fills_views_and_keeps_them(tmp_path: Path) -> None:
    server = Server(tmp_path / "data", fills_on_spark=True, patch=LINUX_ONLY)
    try:
        with server.connect() as connection:
            connection.execute("CREATE TABLE t (k int PRIMARY KEY, v numeric)")
            connection.execute("INSERT INTO t SELECT i, i / 2.0 FROM generate_series(1, 1000) AS s(i)")
            connection.execute("CREATE MATERIALIZED VIEW v AS SELECT k % 10 AS g, sum(v) AS total FROM t GROUP BY 1")
            connection.execute("UPDATE t SET v = 0 WHERE k > 10")
            connection.execute("FLUSH")
            rows = connection.execute("SELECT sum(total), count(*) FROM v").fetchall()
        assert [(float(total), count) for total, count in rows] == [(27.5, 10)]
    finally:
        server.stop()
