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
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)

    def kill() -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)

    def watch() -> None:
        sys.stdin.buffer.read()
        kill()

    signal.signal(signal.SIGTERM, lambda *_: kill())
    threading.Thread(target=watch, daemon=True).start()
    sys.exit(child.wait())


if __name__ == "__main__":
    main()
