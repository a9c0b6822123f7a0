"""The sampler of nodes' usage, over real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from servers import wait_until

from sparkwave.executor.spark.usage import HISTORY_SECONDS, INTERVAL_SECONDS, SERVER, Tree, Usage

# Uses 0.2 s of processor time and 64 MiB, then waits; the last two arguments are as an executor has them.
BUSY = """
import os, time
held = b"x" * (64 << 20)
while time.process_time() < 0.2: pass
os.write(1, b"used\\n")  # at once: two of them write to one pipe
time.sleep(600)
"""
# An application that starts the processes above: one for each of its arguments.
APPLICATION = """
import subprocess, sys
started = [subprocess.Popen([sys.executable, "-c", sys.argv[1], "--executor-id", id]) for id in sys.argv[2:]]
for process in started: process.wait()
"""


def end(application: subprocess.Popen[str]) -> None:
    """Kill an application that has not been waited for, and what it has started: its group has its process id."""
    if application.returncode is None:
        assert os.getpgid(application.pid) == application.pid
        os.killpg(application.pid, signal.SIGKILL)
        application.wait()


@pytest.fixture(scope="module")
def application() -> Iterator[subprocess.Popen[str]]:
    """A process with two below it, executors 7 and 12, when both have used their time."""
    command = [sys.executable, "-c", APPLICATION, BUSY, "7", "12"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, process_group=0)
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(2)] == ["used\n", "used\n"]
    yield process
    end(process)


def test_one_node_is_the_whole_tree(application: subprocess.Popen[str]) -> None:
    usage = Usage(lambda: [Tree("risingwave-compute-1", application.pid, True)])
    usage.sample()
    node = usage.now()["risingwave-compute-1-0"]
    assert 0.36 <= node.cpu_seconds < 3.0
    assert 128 << 20 < node.memory_bytes < 512 << 20
    assert 0 < node.cores < 4
    # Nothing happens any more, so the next sample has no cores, and the processor time stays.
    time.sleep(0.2)
    usage.sample()
    idle = usage.now()["risingwave-compute-1-0"]
    assert idle.cores < 0.2
    assert idle.cpu_seconds == pytest.approx(node.cpu_seconds, abs=0.05)


def test_executors_are_nodes_in_their_order(application: subprocess.Popen[str]) -> None:
    usage = Usage(lambda: [Tree("risingwave-backfill-3", application.pid, False)])
    usage.sample()
    found = usage.now()
    assert list(found) == ["risingwave-backfill-3-0", "risingwave-backfill-3-1", "risingwave-backfill-3-driver", SERVER]
    for name in ("risingwave-backfill-3-0", "risingwave-backfill-3-1"):
        assert found[name].cpu_seconds >= 0.18
        assert 64 << 20 < found[name].memory_bytes < 200 << 20
    assert found["risingwave-backfill-3-driver"].memory_bytes < 64 << 20


def test_a_node_that_ends_is_remembered(application: subprocess.Popen[str]) -> None:
    trees = [Tree("risingwave-backfill-3", application.pid, True)]
    usage = Usage(lambda: trees)
    usage.sample()
    trees.clear()
    between = time.time()
    usage.sample()
    assert list(usage.now()) == [SERVER]
    assert [len(samples) for samples in usage.history().values()] == [1, 2]
    assert list(usage.history(between)) == [SERVER]


def test_processes_that_are_gone_harm_nothing() -> None:
    process = subprocess.Popen(["sleep", "600"], text=True, process_group=0)
    usage = Usage(lambda: [Tree("risingwave-backfill-3", process.pid, True), Tree("none", 2**22 + 1, False)])
    usage.sample()
    assert list(usage.now()) == ["risingwave-backfill-3-0", SERVER]
    end(process)
    usage.sample()
    assert list(usage.now()) == [SERVER]


def test_history_is_bounded() -> None:
    usage = Usage(list)
    most = round(HISTORY_SECONDS / INTERVAL_SECONDS)
    started = time.thread_time()
    for _ in range(most + 50):
        usage.sample()
    assert len(usage.history()[SERVER]) == most
    # A sample without applications reads one file.
    assert (time.thread_time() - started) / (most + 50) < 0.002


def test_the_thread_samples_by_itself() -> None:
    usage = Usage(list)
    usage.start()
    try:
        assert wait_until(lambda: SERVER in usage.now(), 5)
        assert wait_until(lambda: len(usage.history()[SERVER]) >= 2, INTERVAL_SECONDS * 4)
    finally:
        usage.stop()
