"""What `deploy/` and docker-compose.yml say fits the program: settings, files and ports there are."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from server.config import Config

ROOT = Path(__file__).parent.parent
SERVICES = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]


def test_settings() -> None:
    known = {f"SPARKWAVE_{field.name.upper()}" for field in fields(Config)}
    for name, service in SERVICES.items():
        given = {key for key in service.get("environment", {}) if key.startswith("SPARKWAVE_")}
        assert given <= known, name


def test_files() -> None:
    """What is mounted from the project is there."""
    volumes = [volume for service in SERVICES.values() for volume in service.get("volumes", ())]
    mounted = [volume.partition(":")[0] for volume in volumes if volume.startswith("./")]
    assert mounted and all((ROOT / path).exists() for path in mounted)


def test_compose_accepts_it() -> None:
    command = ["docker-compose"] if shutil.which("docker-compose") else ["docker", "compose"]
    if shutil.which(command[0]) is None or subprocess.run([*command, "version"], capture_output=True).returncode:
        pytest.skip("there is no docker compose")
    done = subprocess.run(
        [*command, "--profile", "cluster", "--profile", "monitoring", "config", "-q"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
