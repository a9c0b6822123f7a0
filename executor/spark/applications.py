"""Starts a resource group: the command of its Spark Connect server, by the place of its executors.

A provisioner is a function from an application to the master and the settings that give it its nodes. The server starts
the application's driver; the executors are

- the driver itself, or processes beside it (`local`),
- started by the workers of a Spark standalone cluster (`spark://…`),
- pods of Kubernetes (`k8s://…`).

(Spark: docs/submitting-applications.md, docs/spark-standalone.md, docs/running-on-kubernetes.md.)
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sparkwave.executor.spark.spark_home import CLASS_ARCHIVE, make_home, spark_home

SPARK_CONNECT_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
# Memory of a driver whose executors are processes of their own.
DRIVER_MIB = 1024
# The JVMs see no rows, so that optimising their code never pays: without it the first jobs take half the processor
# time, and later jobs two thirds. For the same reason Spark generates no code, for a stage or for a row.
LIGHT_CODE = "-XX:TieredStopAtLevel=1"
# Where tens of jobs follow, a method is compiled after a thirtieth of the usual number of calls: Spark's part of a job
# then takes a quarter less time, and the start of the application a tenth more.
EARLY_CODE = "-XX:CompileThresholdScaling=0.03"
# Memory in MiB: of a node's JVM, at least and at most; of a worker's Python with its libraries; the least of a task.
_HEAP_MIB, _PYTHON_MIB, _LEAST_MIB = (512, 1024), 100, 128
# With several tasks at a time, each has at least this much of a node's memory.
_SHARE_MIB = 512
# Seconds that a driver may take to delete its pods before it is killed; otherwise they would stay listed.
POD_GRACE_S = 6.0


@dataclass(frozen=True)
class Size:
    """The resources of a group: a number of nodes, each with cores and memory in MiB."""

    cores: int
    memory_mib: int
    replicas: int = 1

    @property
    def all_cores(self) -> int:
        return self.cores * self.replicas

    @property
    def slots(self) -> int:
        """Number of tasks that a node runs at a time, each on all of its cores: one computes while another writes.

        It is 1 if two tasks would have less memory than spilling joins and delta programs need.
        """
        return max(min(self.cores, 2, (self.memory_mib - self.heap_mib) // _SHARE_MIB), 1)

    @property
    def all_slots(self) -> int:
        return self.slots * self.replicas

    @property
    def heap_mib(self) -> int:
        """A node's memory for the JVM, which sees no rows, in MiB."""
        return min(max(self.memory_mib // 4, _HEAP_MIB[0]), _HEAP_MIB[1])

    @property
    def task_mib(self) -> int:
        """Memory limit of DuckDB in a task, in MiB; above it queries spill."""
        return max((self.memory_mib - self.heap_mib) // self.slots - _PYTHON_MIB, _LEAST_MIB)

    def __str__(self) -> str:
        nodes = "1 node" if self.replicas == 1 else f"{self.replicas} nodes"
        cores = "1 core" if self.cores == 1 else f"{self.cores} cores"
        return f"{nodes} of {cores}, {self.memory_mib / 1024:g} GiB"


@dataclass(frozen=True)
class Application:
    """One Spark application. `master` is None for this machine. `settings` are the administrator's and override others.

    `scratch` is a directory for files other than results. An application that `stays` is to run many jobs.
    """

    name: str
    size: Size
    port: int
    scratch: Path
    master: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    stays: bool = False
    archive_option: str = f"-XX:SharedArchiveFile={CLASS_ARCHIVE}"

    @property
    def is_in_one_process(self) -> bool:
        """Whether the driver is the only node."""
        return is_local(self.master) and self.size.replicas == 1


@dataclass(frozen=True)
class Nodes:
    """The nodes of an application: Spark's master, its settings, and the driver's memory in MiB.

    `grace_s` is how many seconds the driver may take to end nodes that nobody else ends.
    """

    master: str
    settings: Mapping[str, str]
    driver_mib: int = DRIVER_MIB
    grace_s: float = 0.0


def _local(app: Application) -> Nodes:
    size = app.size
    workers = {"spark.python.daemon.module": "sparkwave.executor.spark.kernel_daemon"}
    if app.master is not None:
        cpus = max(_cores_of(app.master) // size.slots, 1)
        return Nodes(app.master, workers | {"spark.task.cpus": str(cpus)}, size.heap_mib)
    if size.replicas == 1:
        return Nodes(f"local[{size.cores}]", workers, size.heap_mib)
    master = f"local-cluster[{size.replicas},{size.cores},{size.memory_mib}]"
    return Nodes(master, workers | _executors(app))


def _cores_of(master: str) -> int:
    """Return the cores of each node of local[cores], local[cores,failures] or local-cluster[nodes,cores,memory].

    Spark runs no task that wants more cores, and reports that for some of these masters only.
    """
    kind, _, numbers = master.rstrip("]").partition("[")
    cores = (numbers or "1").split(",")[kind == "local-cluster"]
    return (os.cpu_count() or 1) if cores == "*" else int(cores)


def _standalone(app: Application) -> Nodes:
    """Return nodes with no more cores than the application's, to leave the others to other applications."""
    return Nodes(app.master or "", _executors(app) | {"spark.cores.max": str(app.size.all_cores)})


def _kubernetes(app: Application) -> Nodes:
    """Return nodes in pods. The administrator's settings have the image and the namespace.

    Spark derives the names of the pods from the application's name, anew for each attempt to start it, because pods of
    a dead attempt may still have their names.
    """
    instances = {
        "spark.executor.instances": str(app.size.replicas),
        "spark.kubernetes.executor.label.sparkwave.io/resource-group": app.name,
    }
    return Nodes(app.master or "", _executors(app) | instances, grace_s=POD_GRACE_S)


def _executors(app: Application) -> dict[str, str]:
    """Return settings for one executor a node.

    Spark does not start before all executors are registered (TaskSchedulerImpl.waitBackendReady).
    """
    return {
        "spark.executor.cores": str(app.size.cores),
        "spark.executor.memory": f"{app.size.heap_mib}m",
        "spark.executor.extraJavaOptions": LIGHT_CODE,
        "spark.executor.memoryOverhead": f"{app.size.memory_mib - app.size.heap_mib}m",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "1h",
    }


PROVISIONERS: Mapping[str, Callable[[Application], Nodes]] = {
    "local": _local,
    "spark": _standalone,
    "k8s": _kubernetes,
}


_LOCAL = re.compile(r"local(\[(\d+|\*)(,\d+)?\]|-cluster\[\d+,\d+,\d+\])?")


def _kind(master: str | None) -> str:
    scheme = (master or "local").partition("://")[0]
    return "local" if scheme.startswith("local") else scheme


def is_local(master: str | None) -> bool:
    """Return whether the nodes are on this machine."""
    return _kind(master) == "local"


def check_master(master: str) -> str:
    """Return the master. Raises ValueError if it is of no known kind."""
    if _kind(master) not in PROVISIONERS or (is_local(master) and not _LOCAL.fullmatch(master)):
        raise ValueError("local[…], spark://host:port or k8s://https://host:port expected")
    return master


def nodes_of(app: Application) -> Nodes:
    """Return the nodes of an application."""
    return PROVISIONERS[_kind(app.master)](app)


def command(app: Application) -> list[str]:
    """Return the command that starts the application."""
    nodes = nodes_of(app)
    code = f"{LIGHT_CODE} {EARLY_CODE}" if app.stays else LIGHT_CODE
    java_options = f"'-Djava.io.tmpdir={app.scratch}' '{app.archive_option}' -XX:+UseParallelGC {code}"
    settings = {
        "spark.app.name": app.name,
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(app.port),
        "spark.connect.session.manager.defaultSessionTimeout": "-1",  # the server keeps idle sessions for reuse
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.codegen.wholeStage": "false",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.warehouse.dir": str(app.scratch / "warehouse"),
        "spark.task.cpus": str(app.size.cores // app.size.slots),
        "spark.local.dir": str(app.scratch),
        **_driver_address(app),
        **nodes.settings,
        **app.settings,
    }
    return [
        str(spark_home() / "bin" / "spark-submit"),
        *("--class", SPARK_CONNECT_CLASS),
        *("--master", nodes.master),
        *("--driver-memory", f"{nodes.driver_mib}m"),
        *("--driver-java-options", java_options),
        *(part for key, value in settings.items() for part in ("--conf", f"{key}={value}")),
        "spark-internal",
    ]


def _driver_address(app: Application) -> dict[str, str]:
    """Return the driver's address for executors on this machine; others use the machine's name, the default."""
    if not is_local(app.master):
        return {}
    return {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


def environment(app: Application) -> dict[str, str]:
    """Return the environment of the application's process, with which executors here find Python and this package."""
    path = os.pathsep.join((str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", "")))
    return {"PYSPARK_PYTHON": sys.executable, **os.environ, "PYTHONPATH": path, "SPARK_HOME": str(_home(app))}


def _home(app: Application) -> Path:
    """Return Spark's installation; for a local cluster one made of links, because workers write to its `work`."""
    if not nodes_of(app).master.startswith("local-cluster"):
        return spark_home()
    home = app.scratch / "home"
    make_home(home)
    return home
