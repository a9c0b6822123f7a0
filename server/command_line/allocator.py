"""Starts a server with jemalloc, if the system has it, in place of the C library's allocator.

DuckDB allocates thousands of small objects for each statement of an epoch. With jemalloc an epoch takes four fifths
of the time that it takes with glibc. An allocator can only be chosen when a program starts, so the process starts
again, as itself: the process id stays.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

_NAME = "libjemalloc.so.2"
# Where distributions have shared libraries.
_DIRECTORIES = ("/usr/lib", "/usr/lib64", "/usr/local/lib", *map(str, Path("/usr/lib").glob("*-linux-gnu")))
# Set while the process starts again.
_MARK = "SPARKWAVE_ALLOCATOR"


def use_jemalloc(directories: Iterable[str] = _DIRECTORIES) -> None:
    """Start this process again with jemalloc; or return, where it has been, jemalloc is missing, or LD_PRELOAD is set.

    Processes that this one starts have the C library's allocator.
    """
    if os.environ.pop(_MARK, None) is not None:
        os.environ.pop("LD_PRELOAD", None)
        return
    found = jemalloc(directories)
    if found is not None and "LD_PRELOAD" not in os.environ and _is_command():
        environment = {**os.environ, "LD_PRELOAD": str(found), _MARK: str(found)}
        os.execve(sys.executable, sys.orig_argv, environment)


def jemalloc(directories: Iterable[str] = _DIRECTORIES) -> Path | None:
    """Return the library, for LD_PRELOAD; None where it is missing, or the system knows no LD_PRELOAD."""
    if sys.platform == "linux":
        return next((path for path in (Path(directory, _NAME) for directory in directories) if path.exists()), None)
    return None


def _is_command() -> bool:
    """Return whether the process does nothing but run the command: it was not forked by another program."""
    return sys.orig_argv[2:] == sys.argv[1:] or sys.orig_argv[1:3] == ["-m", "sparkwave"]
