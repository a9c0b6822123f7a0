"""Lets the process of a Spark task take a smaller share of its machine while a file says so, without stopping it.

The whole module is sent to executors, as the kernel is, so it imports nothing of this package.

With a share below 1 the process runs on fewer cores and at niceness 5, and all of that can be undone without a
privilege, at any moment of a running query:

- The cores are an affinity of each thread (sched_setaffinity(2)), and always the same, so that tasks share them.
- Where Linux groups processes by their session (autogroup, sched(7)), a niceness counts within the session only. The
  process then gets a session of its own, and the session's niceness (/proc/PID/autogroup) is set.
- Elsewhere, as in a container or a service, the niceness of the threads is set, if the process may take it back.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# With this niceness a process gets about a third of what each other one gets of a processor that they all want. With 10
# it would be a tenth, and other work of a busy machine, which is none of the views', would nearly stop the backfill.
NICENESS = 5
# Seconds between two looks at the file.
LOOK_S = 0.1
_AUTOGROUP, _AUTOGROUPS = Path("/proc/self/autogroup"), Path("/proc/sys/kernel/sched_autogroup_enabled")
_SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl(2)
_MAY_SET_NICE = 1 << 23  # CAP_SYS_NICE


@dataclass(frozen=True)
class Share:
    """The file at `path` has the share, as text from 0 to 1; 1 without the file."""

    path: str

    @contextlib.contextmanager
    def followed(self) -> Iterator[None]:
        """While entered, this process takes the share. Call it on the process's main thread."""
        if not hasattr(os, "sched_setaffinity"):
            yield
            return
        may_lead = _has_autogroups() and _ends_with_parent()
        is_over = threading.Event()
        thread = threading.Thread(target=self._follow, args=(may_lead, is_over), daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()

    def _follow(self, may_lead: bool, is_over: threading.Event) -> None:
        cores, base, now = sorted(os.sched_getaffinity(0)), os.nice(0), 1.0
        try:
            while not is_over.wait(LOOK_S):
                share = self._read()
                if share != now:
                    _take(cores, share, base, may_lead)
                    now = share
        finally:
            if now < 1:
                _take(cores, 1.0, base, may_lead)

    def _read(self) -> float:
        with contextlib.suppress(OSError, ValueError):
            return min(max(float(Path(self.path).read_text()), 0.0), 1.0)
        return 1.0


def cores_of(cores: list[int], share: float) -> list[int]:
    """Return the cores that a share is: all for 1, at least one less for any other, and never none."""
    return cores[-max(int(len(cores) * share), 1) :]


def niceness_of(base: int) -> int:
    """Return the niceness of slowed threads, which is `base` where this process may not take another one back."""
    return max(base, NICENESS) if _may_take_back(base) else base


def _take(cores: list[int], share: float, base: int, may_lead: bool) -> None:
    niceness, allowed = (max(base, NICENESS) if share < 1 else base), cores_of(cores, share)
    leads_session = may_lead and _lead_session()
    if leads_session:
        _set_session(niceness)
    sets_nice = not leads_session and _may_take_back(base)
    for thread in os.listdir("/proc/self/task"):
        with contextlib.suppress(OSError):  # a thread may have ended
            os.sched_setaffinity(int(thread), allowed)
            if sets_nice:
                os.setpriority(os.PRIO_PROCESS, int(thread), niceness)


def _has_autogroups() -> bool:
    """Return whether Linux groups processes by session. Only those of the root control group are in such groups."""
    with contextlib.suppress(OSError):
        in_root = all(line.rpartition(":")[2] == "/" for line in _control_groups())
        return _AUTOGROUPS.read_text().strip() == "1" and _AUTOGROUP.exists() and in_root
    return False


def _control_groups() -> list[str]:
    """Return the lines of /proc/self/cgroup of the controller of processors: `cpu` in version 1, all in version 2."""
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    of_cpu = [line for line in lines if "cpu" in line.split(":")[1].split(",")]
    return of_cpu or [line for line in lines if line.startswith("0::")]


def _ends_with_parent() -> bool:
    """Let this process be killed when its parent ends, because signals for a group do not reach a session of its own.

    The system keeps this for the calling thread, which therefore is the main one. Returns whether it does.
    """
    parent = os.getppid()
    is_set = not ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    return is_set


def _lead_session() -> bool:
    """Make this process the leader of a session. Returns whether it is.

    It stays the leader. A process that is never slowed shares the session of its application, and so its part of the
    processors.
    """
    if os.getsid(0) == os.getpid():
        return True
    with contextlib.suppress(OSError):
        os.setsid()
    return os.getsid(0) == os.getpid()


def _set_session(niceness: int) -> None:
    """Set the niceness of the session. Linux lets users without privileges do that ten times a second."""
    for _ in range(5):
        try:
            _AUTOGROUP.write_text(str(niceness))
        except BlockingIOError:
            time.sleep(0.1)
        except OSError:
            return
        else:
            return


def _may_take_back(niceness: int) -> bool:
    """Return whether this process may lower the niceness of its threads to this one."""
    limit = resource.getrlimit(resource.RLIMIT_NICE)[0]
    if limit == resource.RLIM_INFINITY or limit >= 20 - niceness:
        return True
    status = Path("/proc/self/status").read_text().splitlines()
    return bool(int(next(line.split()[1] for line in status if line.startswith("CapEff:")), 16) & _MAY_SET_NICE)
