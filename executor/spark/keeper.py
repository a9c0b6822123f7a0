"""Keeps a child process, and its scratch directory, no longer than its server.

    python -P keeper.py PRIORITY GRACE SCRATCH COMMAND…

The server holds the other end of standard input. When the server ends in any way (even by kill -9), the keeper reads
end of file and kills the child's whole process group. The keeper has a process group of its own, so that on a Ctrl-C on
the server's terminal the server decides.

PRIORITY is `normal` or `background`; a background process yields the processor and the disk to all others. With a GRACE
of some seconds the child is first asked to end, and is killed after that time.

If the keeper is killed as well, the next server uses the scratch directory: `pid` has the child's process group, and
`lock` is locked for as long as the child lives.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

NORMAL, BACKGROUND = "normal", "background"
# With this niceness a process gets about a tenth of a processor that others want.
BACKGROUND_NICENESS = 10


def main() -> None:
    priority, grace_s, scratch, command = sys.argv[1], float(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:]
    if priority == BACKGROUND:
        os.nice(BACKGROUND_NICENESS)  # Linux derives the priority of I/O from it (ioprio_set(2))
    child: subprocess.Popen[bytes] | None = None
    is_ending = threading.Event()

    def send(number: int) -> None:
        if child is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, number)

    def end() -> None:
        is_ending.set()
        if not grace_s:
            send(signal.SIGKILL)
            return
        send(signal.SIGTERM)
        killing = threading.Timer(grace_s, send, [signal.SIGKILL])
        killing.daemon = True
        killing.start()

    def watch() -> None:
        while os.read(sys.stdin.fileno(), 1024):
            pass
        end()

    # The handler is set before the child starts, so that no signal in between leaves the child behind.
    signal.signal(signal.SIGTERM, lambda *_: end())
    with open(scratch / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, pass_fds=(lock.fileno(),))
    (scratch / "pid").write_text(str(child.pid))
    if is_ending.is_set():
        end()
    threading.Thread(target=watch, daemon=True).start()
    code = child.wait()
    shutil.rmtree(scratch, ignore_errors=True)
    sys.exit(code)


def end_orphan(scratch: Path, timeout_s: float = 10) -> bool:
    """Kill the child of a killed keeper, and delete its scratch directory. Returns whether there was one."""
    deadline = time.monotonic() + timeout_s
    was_alive = False
    while _is_locked(scratch / "lock") and time.monotonic() < deadline:
        with contextlib.suppress(OSError, ValueError):
            os.killpg(int((scratch / "pid").read_text()), signal.SIGKILL)
            was_alive = True
        time.sleep(0.02)
    shutil.rmtree(scratch, ignore_errors=True)
    return was_alive


def _is_locked(lock: Path) -> bool:
    try:
        with open(lock) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        pass
    return False


if __name__ == "__main__":
    main()
