"""deploy/kubernetes: Kubernetes' schemas allow it, the names in it are there, the server takes its settings."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import fields
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from sparkwave.catalog.errors import CONFIG_FILE_ERROR, CONNECTION_FAILURE, Error
from sparkwave.catalog.lake.storage import Lease
from sparkwave.catalog.sealing import open_cipher
from sparkwave.server.command_line.arguments import parser
from sparkwave.server.operations.config import Config, load_config

ROOT = Path(__file__).parent.parent
KUBERNETES = ROOT / "deploy" / "kubernetes"
GUIDE = (ROOT / "docs" / "cluster.md").read_text()
# Of Kubernetes, whose schemas the manifests are held against.
VERSIONS = ("1.30", "1.34")
SCHEDULED = {"POD_NAME": "sparkwave-0", "POD_NAMESPACE": "sparkwave", "POD_IP": "10.0.0.7"}

Object = dict[str, Any]


def _plain(directory: Path) -> list[Object]:
    """The manifests without what kustomize does to them."""
    given = yaml.safe_load((directory / "kustomization.yaml").read_text())
    found = [each for name in given["resources"] for each in yaml.safe_load_all((directory / name).read_text())]
    for made in given["configMapGenerator"]:
        data = {name: (directory / name).read_text() for name in made["files"]}
        found.append({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": made["name"]}, "data": data})
    return found


def _kustomized(directory: Path) -> list[Object]:
    if shutil.which("kubectl") is None:
        pytest.skip("there is no kubectl")
    done = subprocess.run(["kubectl", "kustomize", str(directory)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def _with_tls(directory: Path, copy: Path) -> list[Object]:
    shutil.copytree(directory, copy)
    file = copy / "kustomization.yaml"
    file.write_text(file.read_text().replace("# components:", "components:"))
    return _kustomized(copy)


class Manifests:
    """All of them; `pods` are what runs: the templates of workloads, and those that Spark makes executors from."""

    def __init__(self, objects: list[Object]) -> None:
        self.objects = objects
        self.workloads = self.of_kind("StatefulSet")
        [self.config_map] = self.of_kind("ConfigMap").values()
        templates = [yaml.safe_load(text) for name, text in self.config_map["data"].items() if name.endswith(".yaml")]
        self.executors: list[Object] = templates
        self.pods: list[Object] = [each["spec"]["template"] for each in self.workloads.values()] + templates

    def of_kind(self, kind: str) -> dict[str, Object]:
        return {each["metadata"]["name"]: each for each in self.objects if each["kind"] == kind}

    @property
    def server(self) -> Object:
        """The spec of a server's pod."""
        return self.workloads["sparkwave"]["spec"]["template"]["spec"]

    @property
    def container(self) -> Object:
        [container] = self.server["containers"]
        return container

    @property
    def environment(self) -> dict[str, str]:
        """What the server of the first pod finds; `***` for a secret."""
        found: dict[str, str] = {}
        for each in self.container["env"]:
            value = each.get("value", SCHEDULED.get(each["name"], "***"))
            found[each["name"]] = re.sub(r"\$\((\w+)\)", lambda name: found[name[1]], value)
        return found

    def config(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
        """As the server reads it."""
        file = tmp_path / "sparkwave.toml"
        file.write_text(self.config_map["data"]["sparkwave.toml"])
        program, *arguments = self.container["command"]
        assert program == "sparkwave" and arguments[-2] == "--config"
        monkeypatch.setattr("sys.argv", [program, *arguments])
        parsed = vars(parser().parse_args())
        assert self.mounted(str(parsed["config"])) == ("config", "sparkwave.toml")
        return load_config(parsed, self.environment, file)[0]

    def mounted(self, path: str) -> tuple[str, str]:
        """The volume of the server's that has a path, and the path in it."""
        for mount in self.container["volumeMounts"]:
            if Path(path).is_relative_to(mount["mountPath"]):
                return mount["name"], str(Path(path).relative_to(mount["mountPath"]))
        raise AssertionError(f"{path} is on no volume")


@pytest.fixture(scope="module", params=["plain", "kustomized", "with TLS"])
def manifests(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Manifests:
    match request.param:
        case "plain":
            return Manifests(_plain(KUBERNETES))
        case "kustomized":
            return Manifests(_kustomized(KUBERNETES))
    return Manifests(_with_tls(KUBERNETES, tmp_path_factory.mktemp("kubernetes") / "copy"))


def matches(selector: Object, pod: Object) -> bool:
    """Whether a selector, or the labels of one, means a pod."""
    labels = pod["metadata"].get("labels", {})
    return all(labels.get(key) == value for key, value in selector.get("matchLabels", selector).items())


def containers(pod: Object) -> list[Object]:
    return pod["spec"]["containers"]


def port_names(pod: Object) -> set[str]:
    return {port["name"] for container in containers(pod) for port in container.get("ports", ())}


@pytest.mark.parametrize("version", VERSIONS)
def test_schemas(manifests: Manifests, version: str) -> None:
    for each in [*manifests.objects, *manifests.executors]:
        kubernetes_validate.validate(each, version, strict=True)


def test_selectors(manifests: Manifests) -> None:
    """A workload selects its own pods, a Service and a budget those of one workload, and never executors."""
    templates = {name: each["spec"]["template"] for name, each in manifests.workloads.items()}
    for name, workload in manifests.workloads.items():
        selector = workload["spec"]["selector"]
        assert [other for other, pod in templates.items() if matches(selector, pod)] == [name]
        governing = manifests.of_kind("Service")[workload["spec"]["serviceName"]]
        assert matches(governing["spec"]["selector"], templates[name])
    assert set(manifests.of_kind("PodDisruptionBudget")) == {"sparkwave"}
    for kind in ("Service", "PodDisruptionBudget"):
        for name, each in manifests.of_kind(kind).items():
            selected = [pod for pod in manifests.pods if matches(each["spec"]["selector"], pod)]
            assert len(selected) == 1 and selected[0] not in manifests.executors, name
            for port in each["spec"].get("ports", ()):
                assert port["targetPort"] in port_names(selected[0]), name


def test_network(manifests: Manifests) -> None:
    """Each policy is about some pods, lets somebody in that there is, and by ports that they have."""
    policies = manifests.of_kind("NetworkPolicy")
    assert not policies["nobody"]["spec"].get("ingress")
    for name, policy in policies.items():
        about = [pod for pod in manifests.pods if matches(policy["spec"]["podSelector"], pod)]
        assert about, name
        for rule in policy["spec"].get("ingress", ()):
            assert all({port["port"] for port in rule.get("ports", ())} <= port_names(pod) for pod in about), name
            for peer in rule.get("from", ()):
                assert any(matches(peer["podSelector"], pod) for pod in manifests.pods), name
    apart = [policy["spec"]["podSelector"] for name, policy in policies.items() if name != "nobody"]
    assert all(any(matches(selector, pod) for selector in apart) for pod in manifests.pods)


def test_accounts(manifests: Manifests) -> None:
    accounts = manifests.of_kind("ServiceAccount")
    [binding] = manifests.of_kind("RoleBinding").values()
    assert binding["roleRef"]["name"] in manifests.of_kind("Role")
    assert [subject["name"] for subject in binding["subjects"]] == [manifests.server["serviceAccountName"]]
    assert manifests.server["serviceAccountName"] in accounts
    for pod in manifests.pods:  # who has no rights has no token either
        if pod["spec"] is not manifests.server:
            assert pod["spec"]["automountServiceAccountToken"] is False


def test_volumes(manifests: Manifests) -> None:
    """What is mounted is a volume and what is a volume is there; no mount is inside another one."""
    claims, secrets = manifests.of_kind("PersistentVolumeClaim"), _secrets()
    made = {name: each["spec"].get("volumeClaimTemplates", []) for name, each in manifests.workloads.items()}
    for pod in manifests.pods:
        volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes", ())}
        own = [m for name, each in manifests.workloads.items() if each["spec"]["template"] is pod for m in made[name]]
        known = set(volumes) | {claim["metadata"]["name"] for claim in own}
        mounts = [mount for container in containers(pod) for mount in container["volumeMounts"]]
        assert {mount["name"] for mount in mounts} == known
        paths = [Path(mount["mountPath"]) for mount in mounts]
        assert not [(a, b) for a in paths for b in paths if a != b and a.is_relative_to(b)]
        for volume in volumes.values():
            match volume:
                case {"persistentVolumeClaim": {"claimName": name}}:
                    assert claims[name]["spec"]["accessModes"] == ["ReadWriteMany"]
                case {"configMap": {"name": name}}:
                    assert name == manifests.config_map["metadata"]["name"]
                case {"secret": {"secretName": name, "items": items}}:
                    assert {item["key"] for item in items} <= secrets[name]
                case {"secret": {"secretName": name}}:
                    assert name in secrets
                case _:
                    assert "emptyDir" in volume
        for container in containers(pod):
            for each in container.get("env", ()):
                if reference := each.get("valueFrom", {}).get("secretKeyRef"):
                    assert reference["key"] in secrets[reference["name"]]


def _secrets() -> dict[str, set[str]]:
    """The secrets that docs/cluster.md tells to make, with their keys."""
    commands = re.sub(r"\\\n", " ", GUIDE)
    found = {
        name: set(re.findall(r"--from-literal=([\w.-]+)=", options))
        for name, options in re.findall(r"create secret generic ([\w-]+)(.*)", commands)
    }
    return found | {name: {"tls.crt", "tls.key"} for name in re.findall(r"create secret tls ([\w-]+)", commands)}


def test_restricted(manifests: Manifests) -> None:
    """The namespace enforces Kubernetes' Pod Security Standard "restricted"; everything runs as it asks."""
    labels = manifests.of_kind("Namespace")["sparkwave"]["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
    for pod in manifests.pods:
        security = pod["spec"]["securityContext"]
        assert security["runAsNonRoot"] and security["runAsUser"] and security["fsGroup"]
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in containers(pod):
            assert container["securityContext"]["allowPrivilegeEscalation"] is False
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_the_image(manifests: Manifests) -> None:
    """Its user is that of the pods, who own what they share; executors have the image of their driver."""
    dockerfile = (ROOT / "Dockerfile").read_text()
    [uid] = re.findall(r"useradd --uid (\d+)", dockerfile)
    assert re.search(r"^USER sparkwave$", dockerfile, re.MULTILINE)
    assert "COPY deploy/kubernetes/executor.sh /usr/local/bin/executor\n" in dockerfile
    assert (KUBERNETES / "executor.sh").stat().st_mode & 0o111 == 0o111
    for spec in (manifests.server, *(pod["spec"] for pod in manifests.executors)):
        security = spec["securityContext"]
        assert {security["runAsUser"], security["runAsGroup"], security["fsGroup"]} == {int(uid)}
    assert manifests.environment["EXECUTOR_IMAGE"] == manifests.container["image"]


def test_settings(manifests: Manifests, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server's own reader takes them, and they fit the ports, volumes and names around them."""
    environment = manifests.environment
    known = {f"SPARKWAVE_{field.name.upper()}" for field in fields(Config)}
    assert {name for name in environment if name.startswith("SPARKWAVE_")} <= known
    config = manifests.config(tmp_path, monkeypatch)

    ports = {port["name"]: port["containerPort"] for port in manifests.container["ports"]}
    assert (config.address, config.metrics_address, config.dashboard_address) == tuple(
        ("0.0.0.0", ports[name]) for name in ("postgres", "metrics", "dashboard")
    )
    annotations = manifests.workloads["sparkwave"]["spec"]["template"]["metadata"]["annotations"]
    assert annotations["prometheus.io/port"] == str(ports["metrics"])
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        given = manifests.container[probe]
        assert (given.get("tcpSocket") or given["httpGet"])["port"] in ports
    service = manifests.workloads["sparkwave"]["spec"]["serviceName"]
    assert config.advertised == f"sparkwave-0.{service}.sparkwave:{ports['postgres']}"

    assert config.catalog is not None and config.storage.catalog == config.catalog
    where = dict(part.split("=") for part in config.catalog.split())
    catalog = manifests.of_kind("Service")[where["host"]]
    assert [str(port["port"]) for port in catalog["spec"]["ports"]] == [where["port"]]
    [postgres] = containers(manifests.workloads["catalog"]["spec"]["template"])
    made = {each["name"]: each for each in postgres["env"]}
    assert (made["POSTGRES_USER"]["value"], made["POSTGRES_DB"]["value"]) == (where["user"], where["dbname"])
    password = next(each for each in manifests.container["env"] if each["name"] == "PGPASSWORD")
    assert password["valueFrom"] == made["POSTGRES_PASSWORD"]["valueFrom"]

    assert manifests.mounted(str(config.data)) == ("data", ".")
    assert manifests.mounted(str(config.shared)) == ("lake", ".")
    [secrets] = [volume for volume in manifests.server["volumes"] if volume["name"] == "secrets"]
    paths = [("secrets", item["path"]) for item in secrets["secret"]["items"]]
    assert paths == [manifests.mounted(str(config.secret_key_file))]
    for file in (config.tls_certificate, config.tls_key):
        assert file is None or manifests.mounted(str(file)) in (("tls", "tls.crt"), ("tls", "tls.key"))
    for pod in manifests.executors:
        [container] = containers(pod)
        assert {"name": "lake", "mountPath": str(config.shared)} in container["volumeMounts"]


def test_settings_of_spark(manifests: Manifests, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = manifests.config(tmp_path, monkeypatch)
    assert config.spark_master == "k8s://https://kubernetes.default.svc:443"
    for settings in (config.spark, config.serverless_spark):
        for value in settings.values():
            assert set(re.findall(r"\$\{env:(\w+)\}", value)) <= set(manifests.environment)
        volume, template = manifests.mounted(settings["spark.kubernetes.executor.podTemplateFile"])
        assert volume == "config" and template in manifests.config_map["data"]
    account = config.spark["spark.kubernetes.authenticate.executor.serviceAccountName"]
    assert account in manifests.of_kind("ServiceAccount")


def test_the_address_of_the_server_that_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PostgreSQL keeps it whole, or it is refused before anything else is tried."""
    config = Manifests(_plain(KUBERNETES)).config(tmp_path, monkeypatch)
    with pytest.raises(Error) as caught:
        Lease("host=127.0.0.1 port=1 dbname=d", config.advertised)
    assert caught.value.sqlstate == CONNECTION_FAILURE
    with pytest.raises(Error) as caught:
        Lease("host=127.0.0.1 port=1 dbname=d", f"{'x' * 43}:4566")
    assert caught.value.sqlstate == CONFIG_FILE_ERROR
    assert caught.value.message.startswith(f"the address {'x' * 43}:4566 is longer than the 47 bytes")
    with pytest.raises(Error, match='"nowhere" is not an address'):
        load_config({"advertise": "nowhere"}, {}, None)


def test_the_key_of_secrets(tmp_path: Path) -> None:
    """What docs/cluster.md makes is a key, and a password that needs no quotes."""
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl")
    commands = dict(re.findall(r'--from-literal=([\w.-]+)="\$\((.*)\)"', GUIDE))
    made = {
        name: subprocess.run(command, shell=True, capture_output=True, text=True, check=True).stdout
        for name, command in commands.items()
    }
    file = tmp_path / "secret.key"
    file.write_text(made["secret.key"])
    file.chmod(0o600)
    cipher = open_cipher(file)
    assert cipher.open(cipher.seal("x")) == "x"
    assert re.fullmatch(r"[0-9a-f]{48}\n", made["catalog-password"])
