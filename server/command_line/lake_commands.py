"""`sparkwave check`, `backup` and `restore`: commands on a whole lake."""

from __future__ import annotations

from pathlib import Path

from sparkwave.executor.maintenance import backup
from sparkwave.executor.maintenance.check import check_storage
from sparkwave.server.operations.config import Config
from sparkwave.server.statements.backups import ask_for_backup


def check(config: Config, views: bool) -> int:
    """Print the faults of a lake. Returns 1 if there are any. Raises Error when the lake cannot be read."""
    report = check_storage(config.storage, views, config.duckdb_memory)
    for finding in report.findings:
        print(finding)
    for reason in report.skipped:
        print(f"not compared: {reason}")
    compared = f", {report.checksums} views and indexes compared with their checksums" if report.checksums else ""
    compared += f", {report.views} views and indexes compared with their queries" if views else ""
    print(f"{report.files} files, {report.relations} relations{compared}: {len(report.findings) or 'no'} findings")
    return 1 if report.findings else 0


def back_up(config: Config, is_stopped: bool, user: str, target: Path) -> int:
    """Back up a data directory that no server holds, or has the running server do so. Raises Error when it fails."""
    target = target.absolute()
    if is_stopped:
        done = backup.back_up_storage(config.storage, target)
    else:
        done = ask_for_backup(config.address, user, target)
    print(f"snapshot {done.snapshot}: {done.files} files, {done.size} bytes, in {target}")
    return 0


def restore(config: Config, source: Path) -> int:
    """Make a lake from a backup. Raises Error when it fails."""
    backup.restore(source, config.storage)
    others = ", --catalog and --shared as here" if config.catalog else ""
    print(f"restored: sparkwave serve --data {config.data}{others}")
    return 0
