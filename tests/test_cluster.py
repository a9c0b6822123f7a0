"""Spark beyond this machine: a real standalone master with two workers, and Kubernetes up to its API."""

from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import yaml
from kubernetes_api import Cluster, Object
from servers import Server, free_port, refused, wait_until
from test_serverless import APPLICATIONS, ON, fill, is_right, view

from sparkwave.executor.spark.applications import Application, Size, check_master, command, nodes_of
from sparkwave.executor.spark.spark_home import INSTALLED


def settings(command_line: list[str]) -> dict[str, str]:
    pairs = [part.partition("=") for flag, part in itertools.pairwise(command_line) if flag == "--conf"]
    return {key: value for key, _, value in pairs}


def test_kubernetes() -> None:
    """Replicas are pods, labelled with the group; what the administrator sets comes last."""
    given = {"spark.kubernetes.container.image": "sparkwave:1", "spark.sql.shuffle.partitions": "7"}
    app = Application(
        "risingwave-backfill-3", Size(2, 4096, 3), 1234, Path("/scratch/3"), "k8s://https://k:6443", given
    )
    line = command(app)
    assert line[line.index("--master") + 1] == "k8s://https://k:6443"
    assert line[line.index("--driver-memory") + 1] == "1024m"
    assert nodes_of(app).grace_s > 0  # nobody else deletes its pods
    found = settings(line)
    assert "spark.driver.host" not in found  # pods find the driver by its machine's name
    assert given.items() <= found.items()
    assert {
        "spark.executor.instances": "3",
        "spark.executor.cores": "2",
        "spark.executor.memory": "1024m",
        "spark.executor.memoryOverhead": "3072m",
        "spark.app.name": "risingwave-backfill-3",
        "spark.kubernetes.executor.label.sparkwave.io/resource-group": "risingwave-backfill-3",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.connect.session.manager.defaultSessionTimeout": "-1",  # else a session is gone after an idle hour
    }.items() <= found.items()


@pytest.mark.parametrize(
    ("master", "size", "expected"),
    [
        (None, Size(2, 2048), ("local[2]", 512)),
        (None, Size(2, 2048, 3), ("local-cluster[3,2,2048]", 1024)),
        ("local[4]", Size(2, 2048), ("local[4]", 512)),
        ("spark://m:7077", Size(2, 2048, 3), ("spark://m:7077", 1024)),
    ],
)
def test_masters(master: str | None, size: Size, expected: tuple[str, int]) -> None:
    nodes = nodes_of(Application("a", size, 1, Path("/scratch"), master))
    assert (nodes.master, nodes.driver_mib) == expected
    assert nodes.settings.get("spark.cores.max") == ("6" if master == "spark://m:7077" else None)


@pytest.mark.parametrize(
    ("master", "size", "cpus"),
    [
        (None, Size(4, 4096), "2"),
        ("local", Size(4, 4096), "1"),
        ("local[1]", Size(4, 4096), "1"),
        ("local[8]", Size(4, 4096), "4"),
        ("local[*]", Size(1, 1024), str(os.cpu_count())),
        ("local[3,2]", Size(1, 1024), "3"),
        ("local-cluster[2,1,1024]", Size(2, 1024), "1"),
    ],
)
def test_a_task_wants_no_more_cores_than_a_node_has(master: str | None, size: Size, cpus: str) -> None:
    """Whatever the groups' own size says: the tasks of a master that is given would wait for ever."""
    assert f"spark.task.cpus={cpus}" in command(Application("a", size, 1, Path("/scratch"), master))


@pytest.mark.parametrize("master", ["local[]", "local[x]", "local-cluster[2]", "localhost:7077", "yarn"])
def test_no_master(master: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        check_master(master)


@pytest.mark.parametrize(
    ("size", "slots"), [(Size(2, 1024), 1), (Size(1, 4096), 1), (Size(2, 2048), 2), (Size(8, 700), 1)]
)
def test_tasks_share_a_node_that_has_memory_for_both(size: Size, slots: int) -> None:
    """Delta programs of TPC-H's joins fail in half of a node of 1 GiB, and spill in all of it."""
    assert size.slots == slots


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    """The URL of a standalone master with two workers of two cores each."""
    port = free_port()
    url = f"spark://127.0.0.1:{port}"
    host = ("--host", "127.0.0.1", "--webui-port", "0")
    worker = ("org.apache.spark.deploy.worker.Worker", *host, "--cores", "2", "--memory", "4G")
    commands = [
        ("org.apache.spark.deploy.master.Master", *host, "--port", str(port)),
        *((*worker, "--work-dir", str(tmp_path / f"work{number}"), url) for number in range(2)),
    ]
    log = tmp_path / "cluster.log"
    with open(log, "ab") as out:
        started = [
            subprocess.Popen(
                [str(INSTALLED / "bin" / "spark-class"), *line],
                stdout=out,
                stderr=out,
                env={**os.environ, "SPARK_HOME": str(INSTALLED), "SPARK_LOG_DIR": str(tmp_path)},
            )
            for line in commands
        ]
    try:
        assert wait_until(lambda: log.read_text().count("Successfully registered with master") == 2, 60), (
            log.read_text()
        )
        yield url
    finally:
        for process in started:
            process.terminate()
            process.wait(20)


@pytest.mark.spark
@pytest.mark.long
def test_a_standalone_cluster(cluster: str, tmp_path: Path) -> None:
    """The default group and a serverless one have cores of their own; a group that does not fit says so in time."""
    server = Server(tmp_path / "data", fills_on_spark=True, spark_master=cluster, spark_cores=1, spark_memory_mib=1024)
    try:
        with server.connect() as session:
            fill(session, 50_000)
            session.execute("CREATE MATERIALIZED VIEW plain AS SELECT k, v + 1 AS w FROM t")
            session.execute("ALTER SYSTEM SET serverless_backfill_replicas = 2")
            session.execute("SET background_ddl = true")
            session.execute(view(ON))
            nodes = "SELECT parallelism, state FROM rw_catalog.rw_worker_nodes"
            assert wait_until(lambda: session.execute(nodes).fetchall() == [(1, "RUNNING")] * 3, 120)
            session.execute("WAIT")
            assert is_right(session) and is_right(session, "plain")
            session.execute("ALTER SYSTEM SET serverless_backfill_replicas = 9")
            session.execute("ALTER SYSTEM SET serverless_backfill_provision_timeout = 20")
            session.execute("SET background_ddl = false")
            error = refused(session, view(ON, "too_large"))
            assert isinstance(error, psycopg.errors.InsufficientResources)
            assert "was not ready within 20 s: not all of its nodes have come" in str(error)
            assert {row[0] for row in session.execute(APPLICATIONS)} == {"DESTROYED"}
    finally:
        server.stop()


MANIFESTS = Path(__file__).parent.parent / "deploy" / "kubernetes"
SCHEDULED = {
    "POD_NAME": "sparkwave-0",
    "POD_NAMESPACE": "sparkwave",
    "POD_IP": "127.0.0.1",
    "EXECUTOR_IMAGE": "registry.example.com/sparkwave:1",
}


@pytest.fixture
def kubernetes(tmp_path: Path) -> Iterator[Cluster]:
    """An API server that allows what the servers' Role does, with the pod that the server is in."""
    accounts = yaml.safe_load_all((MANIFESTS / "accounts.yaml").read_text())
    [role] = [each for each in accounts if each["kind"] == "Role"]
    cluster = Cluster(SCHEDULED["POD_NAMESPACE"], role["rules"], tmp_path / "executors.log")
    name = {"name": SCHEDULED["POD_NAME"]}
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    cluster.add("pods", {"apiVersion": "v1", "kind": "Pod", "metadata": name, "spec": {}, "status": status})
    yield cluster
    cluster.stop()


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.timeout(900)
def test_pods(kubernetes: Cluster, tmp_path: Path) -> None:
    """With the settings of deploy/kubernetes Spark makes executors, which fill views, and deletes them."""
    config = tmp_path / "sparkwave.toml"
    spark = "[spark]" + (MANIFESTS / "sparkwave.toml").read_text().partition("[spark]")[2]
    config.write_text(spark.replace("/etc/sparkwave/config", str(MANIFESTS)))
    options = {"config": config, "spark_master": kubernetes.master, "spark_cores": 1, "spark_memory_mib": 1024}
    server = Server(tmp_path / "data", SCHEDULED, fills_on_spark=True, **options)
    try:
        with server.connect() as session:
            session.execute("ALTER SYSTEM SET serverless_backfill_provision_timeout = 400")
            fill(session, 50_000)
            session.execute("CREATE MATERIALIZED VIEW plain AS SELECT k, v + 1 AS w FROM t")
            session.execute(view(ON))
            assert is_right(session) and is_right(session, "plain")
            assert wait_until(lambda: session.execute(APPLICATIONS).fetchall() == [("DESTROYED", None)], 60)
            assert [group_of(pod) for pod in executors(kubernetes)] == ["risingwave-compute-1"]
    finally:
        server.stop()
    assert executors(kubernetes) == []
    assert (kubernetes.refused, kubernetes.unknown) == (set(), [])
    _, steady, serverless = kubernetes.created
    assert group_of(serverless) == "risingwave-backfill-2"
    assert not steady["spec"].get("tolerations") and serverless["spec"]["tolerations"]
    for pod in (steady, serverless):
        [container] = pod["spec"]["containers"]
        assert pod["metadata"]["labels"]["app.kubernetes.io/name"] == "sparkwave-executor"
        assert [owner["name"] for owner in pod["metadata"]["ownerReferences"]] == [SCHEDULED["POD_NAME"]]
        assert pod["spec"]["serviceAccountName"] == "sparkwave-executor"
        assert pod["spec"]["automountServiceAccountToken"] is False
        assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
        assert container["image"] == SCHEDULED["EXECUTOR_IMAGE"]
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert {"name": "lake", "mountPath": "/srv/lake"} in container["volumeMounts"]


def executors(cluster: Cluster) -> list[Object]:
    return cluster.select("pods", "spark-role=executor")


def group_of(pod: Object) -> str:
    return pod["metadata"]["labels"]["sparkwave.io/resource-group"]
