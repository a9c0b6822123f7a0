"""So much of a Kubernetes API server as Spark talks to, whose pods are processes of this machine.

A pod runs `deploy/kubernetes/executor.sh`, which the image has as `executor`. What the Role does not allow is refused.
(Kubernetes: "API Concepts"; Spark: docs/running-on-kubernetes.md.)
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from sparkwave.executor.spark.spark_home import INSTALLED

EXECUTOR = Path(__file__).parent.parent / "deploy" / "kubernetes" / "executor.sh"
Object = dict[str, Any]
VERBS = {"POST": "create", "PATCH": "patch", "PUT": "update"}
KINDS = {
    "pods": "Pod",
    "configmaps": "ConfigMap",
    "services": "Service",
    "persistentvolumeclaims": "PersistentVolumeClaim",
}


@dataclass
class Cluster:
    """One namespace. `rules` are a Role's; `refused` is what they did not allow, `created` the pods there were."""

    namespace: str
    rules: list[Object]
    log: Path
    objects: dict[tuple[str, str], Object] = field(default_factory=dict)
    created: list[Object] = field(default_factory=list)
    refused: set[tuple[str, str]] = field(default_factory=set)
    unknown: list[str] = field(default_factory=list)
    is_over: bool = False

    def __post_init__(self) -> None:
        self._changed = threading.Condition()
        self._events: list[tuple[str, Object]] = []
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        cluster = self

        class Handler(_Handler):
            pass

        Handler.cluster = cluster
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def master(self) -> str:
        """What Spark is told."""
        return f"k8s://http://127.0.0.1:{self._server.server_address[1]}"

    def stop(self) -> None:
        self.is_over = True
        for process in self._processes.values():
            process.kill()
            process.wait(20)
        self._server.shutdown()
        self._server.server_close()

    def allows(self, verb: str, resource: str) -> bool:
        allowed = any(verb in rule["verbs"] and resource in rule["resources"] for rule in self.rules)
        if not allowed:
            self.refused.add((verb, resource))
        return allowed

    def add(self, resource: str, made: Object) -> Object | None:
        """The object as it is stored; None where the name is taken. A pod with containers runs."""
        name = made["metadata"]["name"]
        with self._changed:
            if (resource, name) in self.objects:
                return None
            made["metadata"] |= {"uid": f"uid-{name}", "namespace": self.namespace, "resourceVersion": "1"}
            made["metadata"].setdefault("creationTimestamp", "2026-01-01T00:00:00Z")
            self.objects[resource, name] = made
        if resource == "pods":
            self.created.append(made)
            if made["spec"].get("containers"):
                self._run(name, made)
            self._tell("ADDED", made)
        return made

    def remove(self, resource: str, name: str) -> bool:
        """End a pod's process; the object is gone when that is."""
        with self._changed:
            found = self.objects.pop((resource, name), None)
        if found is None:
            return False
        if name in self._processes:
            self._processes[name].terminate()
        if resource == "pods":
            self._tell("DELETED", found)
        return True

    def select(self, resource: str, selector: str) -> list[Object]:
        """Those with all labels of a selector `a=b,c=d`."""
        wanted = [part.split("=", 1) for part in selector.split(",") if part]
        with self._changed:
            return [
                found
                for (kind, _), found in self.objects.items()
                if kind == resource
                and all(found["metadata"].get("labels", {}).get(key) == value for key, value in wanted)
            ]

    def events(self, after: int, timeout: float) -> list[tuple[str, Object]]:
        with self._changed:
            self._changed.wait_for(lambda: len(self._events) > after, timeout)
            return self._events[after:]

    def _tell(self, kind: str, found: Object) -> None:
        with self._changed:
            self._events.append((kind, json.loads(json.dumps(found))))
            self._changed.notify_all()

    def _run(self, name: str, pod: Object) -> None:
        [container] = pod["spec"]["containers"]
        assert container["args"] == ["executor"]
        fields = {"status.podIP": "127.0.0.1", "metadata.name": name}
        given = {
            each["name"]: each.get("value") or fields[each["valueFrom"]["fieldRef"]["fieldPath"]]
            for each in container["env"]
            if "value" in each or "fieldRef" in each.get("valueFrom", {})
        }
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("SPARK")}
        with open(self.log, "ab") as log:
            process = subprocess.Popen(
                [str(EXECUTOR)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**inherited, "SPARK_HOME": str(INSTALLED), **given},
                start_new_session=True,
            )
        self._processes[name] = process
        pod["status"] = {
            "phase": "Running",
            "podIP": "127.0.0.1",
            "containerStatuses": [{"name": container["name"], "ready": True, "state": {"running": {}}}],
        }
        threading.Thread(target=self._watch, args=(pod, process), daemon=True).start()

    def _watch(self, pod: Object, process: subprocess.Popen[bytes]) -> None:
        """A pod whose process has ended stays listed, until somebody deletes it."""
        code = process.wait()
        terminated = {"terminated": {"exitCode": code, "reason": "Error"}}
        pod["status"]["phase"] = "Succeeded" if code == 0 else "Failed"
        pod["status"]["containerStatuses"][0] |= {"ready": False, "state": terminated}
        if ("pods", pod["metadata"]["name"]) in self.objects:
            self._tell("MODIFIED", pod)


class _Handler(BaseHTTPRequestHandler):
    cluster: Cluster
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *arguments: Any) -> None:
        pass

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        parts = url.path.strip("/").split("/")
        if parts[:3] != ["api", "v1", "namespaces"] or parts[3] != self.cluster.namespace or len(parts) not in (5, 6):
            self.cluster.unknown.append(f"{self.command} {self.path}")
            self._fail(404, "NotFound")
            return
        resource, name = parts[4], parts[5] if len(parts) == 6 else None
        one = {"GET": "get", "DELETE": "delete"}
        many = {"GET": "watch" if query.get("watch") == "true" else "list", "DELETE": "deletecollection"}
        verb = VERBS.get(self.command) or (one if name else many)[self.command]
        if not self.cluster.allows(verb, resource):
            self._fail(403, "Forbidden")
        else:
            getattr(self, f"_{verb}")(resource, name, query, body)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve

    def _create(self, resource: str, name: str | None, query: dict[str, str], body: bytes) -> None:
        made = self.cluster.add(resource, json.loads(body))
        if made is None:
            self._fail(409, "AlreadyExists")
        else:
            self._answer(201, made)

    def _get(self, resource: str, name: str, query: dict[str, str], body: bytes) -> None:
        found = self.cluster.objects.get((resource, name))
        if found is None:
            self._fail(404, "NotFound")
        else:
            self._answer(200, found)

    def _list(self, resource: str, name: str | None, query: dict[str, str], body: bytes) -> None:
        items = self.cluster.select(resource, query.get("labelSelector", ""))
        if only := query.get("fieldSelector"):
            items = [item for item in items if only == f"metadata.name={item['metadata']['name']}"]
        kind = f"{KINDS[resource]}List"
        self._answer(200, {"kind": kind, "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": items})

    def _watch(self, resource: str, name: str | None, query: dict[str, str], body: bytes) -> None:
        """The events of pods with the labels, as lines of a body without an end. There are no WebSockets here."""
        if self.headers.get("Upgrade"):
            self._answer(200, {})  # the client takes the other way
            return
        wanted = query.get("labelSelector", "")
        only = query.get("fieldSelector", "").removeprefix("metadata.name=") or name
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        seen = 0
        while not self.cluster.is_over:
            for kind, found in self.cluster.events(seen, 5):
                seen += 1
                labels = found["metadata"].get("labels", {})
                fits = all(labels.get(k) == v for k, v in (p.split("=", 1) for p in wanted.split(",") if p))
                if fits and only in (None, found["metadata"]["name"]):
                    line = json.dumps({"type": kind, "object": found}).encode() + b"\n"
                    try:
                        self.wfile.write(line)
                        self.wfile.flush()
                    except OSError:
                        return

    def _patch(self, resource: str, name: str, query: dict[str, str], body: bytes) -> None:
        self._get(resource, name, query, body)

    def _delete(self, resource: str, name: str, query: dict[str, str], body: bytes) -> None:
        if self.cluster.remove(resource, name):
            self._answer(200, {"kind": "Status", "apiVersion": "v1", "status": "Success"})
        else:
            self._fail(404, "NotFound")

    def _deletecollection(self, resource: str, name: str | None, query: dict[str, str], body: bytes) -> None:
        for found in self.cluster.select(resource, query.get("labelSelector", "")):
            self.cluster.remove(resource, found["metadata"]["name"])
        self._answer(200, {"kind": "Status", "apiVersion": "v1", "status": "Success"})

    def _fail(self, code: int, reason: str) -> None:
        self._answer(code, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code})

    def _answer(self, code: int, content: Object) -> None:
        data = json.dumps(content).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
