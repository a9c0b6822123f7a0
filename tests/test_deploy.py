"""What `deploy/` and docker-compose.yml say fits the program, and the cluster's settings make one."""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml
from buckets import Bucket
from postgres import Postgres
from psycopg.conninfo import conninfo_to_dict
from servers import PATIENCE_SECONDS, Server, free_port, rows, wait_until

from sparkwave.executor.spark.spark_home import INSTALLED
from sparkwave.server.operations.config import Config, load_config
from sparkwave.server.session.variables import find

ROOT = Path(__file__).parent.parent
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
MEMBERS = ("first", "second")
ROOTS = "SPARKWAVE_ROOT_PASSWORD"


def config_of(name: str) -> Config:
    config, _ = load_config({}, {key: str(value) for key, value in SERVICES[name]["environment"].items()}, None)
    return config


def ports_of(name: str) -> list[int]:
    """Where a service listens, as the file and the program say."""
    service = SERVICES[name]
    ports = [int(port) for port in re.findall(r"port[= ]:?(\d+)", service.get("command", ""))]
    if name in ("sparkwave", *MEMBERS):
        config = config_of(name)
        ports += [port for _, port in filter(None, (config.address, config.metrics_address, config.dashboard_address))]
    return ports


def test_settings() -> None:
    known = {f"SPARKWAVE_{field.name.upper()}" for field in fields(Config)}
    for name, service in SERVICES.items():
        given = {key for key in service.get("environment", {}) if key.startswith("SPARKWAVE_")}
        assert given <= known, name


def test_ports() -> None:
    """What is published is for this machine only, nothing is twice, and what is checked or scraped is there."""
    ports = {name: ports_of(name) for name in SERVICES}
    published = [port for service in SERVICES.values() for port in service.get("ports", ())]
    assert all(re.fullmatch(r"127\.0\.0\.1:(\d+):\1", port) for port in published)
    assert len(set(published)) == len(published) == 12
    for name in ("sparkwave", *MEMBERS):
        assert {int(port.rpartition(":")[2]) for port in SERVICES[name]["ports"]} == set(ports[name]), name
        assert all(host == "0.0.0.0" for host, _ in (config_of(name).address, config_of(name).dashboard_address or ()))
    scraped = yaml.safe_load((ROOT / "deploy" / "prometheus" / "compose.yml").read_text())["scrape_configs"]
    [target] = scraped[0]["static_configs"][0]["targets"]
    assert target == f"sparkwave:{config_of('sparkwave').metrics_address[1]}"  # type: ignore[index]
    for name, service in SERVICES.items():
        checked = re.findall(r"\d{4,}", " ".join(service.get("healthcheck", {}).get("test", ())))
        assert set(map(int, checked)) <= set(ports[name]), name


def test_the_members_find_the_rest() -> None:
    """Addresses, names and keys that the servers have are those of the catalog, the bucket and the master."""
    for member in MEMBERS:
        config = config_of(member)
        catalog = conninfo_to_dict(config.catalog)
        made = SERVICES["catalog"]["environment"]
        assert (catalog["user"], catalog["password"]) == (made["POSTGRES_USER"], made["POSTGRES_PASSWORD"])
        assert catalog["dbname"] == made["POSTGRES_USER"]  # what the image makes
        assert int(catalog["port"]) in ports_of("catalog")
        objects = SERVICES["objects"]
        keys = (objects["environment"]["ROOT_ACCESS_KEY"], objects["environment"]["ROOT_SECRET_KEY"])
        assert keys == (config.s3_access_key, config.s3_secret_key)
        assert catalog["host"] == "catalog"
        assert config.s3_endpoint == f"http://objects:{ports_of('objects')[0]}"
        [mounted] = objects["volumes"]
        directory = objects["command"].split()[-1]
        bucket = str(config.shared).removeprefix("s3://").split("/")[0]
        assert mounted.partition(":")[2] == f"{directory}/{bucket}"
        assert config.spark_master == f"spark://spark-master:{ports_of('spark-master')[0]}"
        assert config.spark_master in SERVICES["spark-worker"]["command"]
        assert config.storage.root is not None
    assert config_of("first").secret_key_file == config_of("second").secret_key_file


def test_the_worker_has_room() -> None:
    """For the default resource group and a serverless one of the usual size."""
    config = config_of("first")
    sku = find("serverless_backfill_sku", system=True).default
    found = re.search(r"--cores (\d+) --memory (\d+)G", SERVICES["spark-worker"]["command"])
    assert found is not None
    assert int(found[1]) >= config.spark_cores + config.skus[sku].cores
    assert int(found[2]) * 1024 >= config.spark_memory_mib + config.skus[sku].memory_mib


def test_order() -> None:
    """What waits for another service's health waits for a service that has a check, and is started with it."""
    for name, service in SERVICES.items():
        conditions = service.get("depends_on", {})
        for other in conditions:
            assert set(SERVICES[other].get("profiles", ())) <= set(service.get("profiles", ())), name
        if isinstance(conditions, dict):
            healthy = [other for other, how in conditions.items() if how["condition"] == "service_healthy"]
            assert all("test" in SERVICES[other]["healthcheck"] for other in healthy), name
    assert all("healthcheck" in SERVICES[member] for member in MEMBERS)


def test_volumes() -> None:
    """What is mounted from the project is there, the other volumes are declared, and each of those is used."""
    mounts = [volume.split(":") for service in SERVICES.values() for volume in service.get("volumes", ())]
    ours = [source for source, *_ in mounts if source.startswith("./")]
    assert ours and all((ROOT / path).exists() for path in ours)
    assert {source for source, *_ in mounts if not source.startswith("./")} == set(COMPOSE["volumes"])
    for member in MEMBERS:
        targets = {volume.split(":")[1] for volume in SERVICES[member]["volumes"]}
        config = config_of(member)
        assert config.secret_key_file is not None
        assert targets == {str(config.data), str(config.secret_key_file.parent)}
        made = re.search(r"install -d -o sparkwave -g sparkwave (.*)", (ROOT / "Dockerfile").read_text())
        assert made is not None and targets == set(made[1].split())  # a new volume has the owner that the image has


def test_compose_accepts_it() -> None:
    command = ["docker-compose"] if shutil.which("docker-compose") else ["docker", "compose"]
    if shutil.which(command[0]) is None or subprocess.run([*command, "version"], capture_output=True).returncode:
        pytest.skip("there is no docker compose")
    done = subprocess.run(
        [*command, "--profile", "cluster", "--profile", "monitoring", "config", "-q"],
        cwd=ROOT,
        env={**os.environ, "SPARKWAVE_ROOT_PASSWORD": "secret"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Callable[[str], dict[str, str]]]:
    """What the two servers are started beside: a PostgreSQL, a bucket, Spark by the file's commands, all on other
    ports. Gives a service's environment for these.
    """
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    config = config_of("first")
    with ExitStack() as stack:
        bucket, postgres = Bucket(), Postgres()
        stack.callback(bucket.stop)
        stack.callback(postgres.stop)
        bucket.files.create_dir(str(config.shared).removeprefix("s3://").split("/")[0])
        with postgres.connect() as connection:
            connection.execute("CREATE ROLE sparkwave LOGIN PASSWORD 'sparkwave'")
            connection.execute("CREATE DATABASE sparkwave OWNER sparkwave")
        others = {port: free_port() for name in SERVICES for port in ports_of(name)}
        others |= {ports_of("objects")[0]: bucket.port, ports_of("catalog")[0]: postgres.port}

        def moved(text: object) -> str:
            text = re.sub(
                r"(?<=host=)catalog|(?<=//)(objects|spark-master)|(?<=--host )spark-\w+", "127.0.0.1", str(text)
            )
            text = text.replace("0.0.0.0", "127.0.0.1")
            text = re.sub(r"\b(\d{4})\b", lambda found: str(others.get(int(found[0]), found[0])), text)
            return re.sub(r"(?<![\w:/])/(var|etc|tmp)/", f"{tmp_path}/", text)

        log = tmp_path / "spark.log"
        for name in ("spark-master", "spark-worker"):
            service = SERVICES[name]
            program, *arguments = moved(service["command"]).split()
            environment = {**os.environ, **service.get("environment", {}), "SPARK_HOME": str(INSTALLED)}
            with open(log, "ab") as out:
                process = subprocess.Popen(
                    [str(INSTALLED / "bin" / program), *arguments], stdout=out, stderr=out, env=environment
                )
            stack.callback(process.wait, 20)
            stack.callback(process.terminate)
        registered = "Successfully registered with master"
        assert wait_until(lambda: registered in log.read_text(), 60), log.read_text()
        (tmp_path / "sparkwave").mkdir()
        yield lambda name: {key: moved(value) for key, value in SERVICES[name]["environment"].items() if key != ROOTS}


@pytest.mark.spark
@pytest.mark.long
def test_the_cluster(cluster: Callable[[str], dict[str, str]], tmp_path: Path) -> None:
    """Two servers with nothing but the file's environment: a view is filled on serverless Spark, and outlives one."""
    started: list[Server] = []
    try:
        for name in MEMBERS:
            given = cluster(name)
            data = tmp_path / name  # each container has its own volume at that place
            options = {"metrics": given["SPARKWAVE_METRICS"], "dashboard": given["SPARKWAVE_DASHBOARD"]}
            started.append(Server(data, given, listen=given["SPARKWAVE_LISTEN"], spark_start="eager", **options))
        first, second = started
        with first.connect() as own:
            own.execute("CREATE TABLE t (k int PRIMARY KEY, g int)")
            own.execute("INSERT INTO t SELECT i, i % 10 FROM range(50000) AS r (i)")
            own.execute("CREATE SECRET s WITH (backend = 'meta') AS 'x'")
            own.execute("ALTER SYSTEM SET backfill_engine = spark")
            own.execute(f"ALTER SYSTEM SET serverless_backfill_provision_timeout = {PATIENCE_SECONDS}")
            own.execute("ALTER SYSTEM SET serverless_backfill_enabled = true")
            own.execute(
                "CREATE MATERIALIZED VIEW m WITH (cloud.serverless_backfill_enabled = true) AS "
                "SELECT g, count(*) AS n FROM t GROUP BY g"
            )
            own.execute("INSERT INTO t VALUES (50000, 3)")
            own.execute("FLUSH")
        expected = [(g, 5001 if g == 3 else 5000) for g in range(10)]
        with second.connect() as other:
            assert rows(other, "SELECT * FROM m ORDER BY g") == expected
        first.kill()
        assert wait_until(lambda: f"sparkwave ready on {second.address}\n" in second.log(), PATIENCE_SECONDS)
        with second.connect() as other:
            other.execute("DELETE FROM t WHERE g = 3")
            other.execute("FLUSH")
            assert rows(other, "SELECT * FROM m ORDER BY g") == [row for row in expected if row[0] != 3]
        assert (tmp_path / "sparkwave" / "secret.key").exists()
        assert not list(tmp_path.rglob("*.parquet"))
    finally:
        for server in started:
            server.kill()
