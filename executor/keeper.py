"""Keeps a child process no longer than its server: `python -m executor.keeper NICENESS COMMAND…`.

The server holds the other end of standard input. When the server ends, however it ends (kill -9 too), reading gives
end of file, and the keeper kills the child's whole process group. The keeper's process group is its own, so that a
Ctrl-C on the server's terminal lets the server decide.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading


def main() -> None:
    niceness, command = int(sys.argv[1]), sys.argv[2:]
    os.nice(niceness)
    child: subprocess.Popen[bytes] | None = None
    is_ending = threading.Event()

    def kill() -> None:
        is_ending.set()
        if child is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)

    def watch() -> None:
        sys.stdin.buffer.read()
        kill()

    # The handler comes before the child, so that no signal in between leaves it behind.
    signal.signal(signal.SIGTERM, lambda *_: kill())
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    if is_ending.is_set():
        kill()
    threading.Thread(target=watch, daemon=True).start()
    sys.exit(child.wait())


if __name__ == "__main__":
    main()
