"""What the server is told at start: command line over environment over TOML file over defaults."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from catalog import errors
from catalog.errors import Error


@dataclass(frozen=True)
class Config:
    """The server's configuration. Memory is in MiB.

    `spark_master` None runs Spark inside the default group's own process. `spark_start` is `eager` (with the server,
    in the background) or `on_demand`.
    """

    listen: str = "127.0.0.1:4566"
    data: Path = Path(".sparkwave")
    spark_master: str | None = None
    spark_start: str = "eager"
    spark_cores: int = os.cpu_count() or 2
    spark_memory_mib: int = 2048
    duckdb_memory: str | None = None
    max_message_bytes: int = 1 << 30
    log_level: str = "WARNING"

    @property
    def address(self) -> tuple[str, int]:
        """(host, port). Raises Error when `listen` is no such thing."""
        host, _, port = self.listen.rpartition(":")
        if not host or not port.isdigit() or int(port) > 65535:
            raise Error(f'"{self.listen}" is not an address; write HOST:PORT', errors.CONFIG_FILE_ERROR)
        return host, int(port)


def load_config(
    arguments: Mapping[str, Any], environment: Mapping[str, str], file: Path | None
) -> tuple[Config, dict[str, str]]:
    """The configuration, and the parameters (session variables and system parameters) the file sets.

    `arguments` are those given on the command line. Environment variables are `SPARKWAVE_` and the field in upper
    case. The file has the fields at its top level and parameters in a table `[parameters]`.
    Raises Error F0000 for an unknown or wrong setting.
    """
    from_file, parameters = _read_file(file) if file else ({}, {})
    known = {field.name: field for field in fields(Config)}
    values: dict[str, Any] = {}
    for name in known:
        variable = f"SPARKWAVE_{name.upper()}"
        for source, where in ((arguments, f"--{name}"), (environment, variable), (from_file, str(file))):
            key = variable if source is environment else name
            if source.get(key) is not None:
                values[name] = _convert(name, source[key], where)
                break
    unknown = sorted(set(from_file) - set(known))
    if unknown:
        raise Error(f'unknown setting "{unknown[0]}" in {file}', errors.CONFIG_FILE_ERROR)
    return Config(**values), parameters


def _read_file(file: Path) -> tuple[dict[str, Any], dict[str, str]]:
    try:
        content = tomllib.loads(file.read_text())
    except OSError as error:
        raise Error(f"cannot read {file}: {error.strerror}", errors.CONFIG_FILE_ERROR) from error
    except tomllib.TOMLDecodeError as error:
        raise Error(f"{file}: {error}", errors.CONFIG_FILE_ERROR) from error
    parameters = content.pop("parameters", {})
    return content, {
        name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in parameters.items()
    }


_CONVERSIONS: dict[str, Any] = {
    "data": Path,
    "spark_cores": int,
    "spark_memory_mib": int,
    "max_message_bytes": int,
}
_CHOICES = {
    "spark_start": ("eager", "on_demand"),
    "log_level": ("DEBUG", "INFO", "WARNING", "ERROR"),
}


def _convert(name: str, value: Any, where: str) -> Any:
    try:
        converted = _CONVERSIONS.get(name, str)(value)
    except (TypeError, ValueError) as error:
        raise Error(f'invalid value "{value}" for {where}', errors.CONFIG_FILE_ERROR) from error
    if name in _CHOICES and converted not in _CHOICES[name]:
        allowed = ", ".join(_CHOICES[name])
        raise Error(f'invalid value "{value}" for {where}: one of {allowed}', errors.CONFIG_FILE_ERROR)
    return converted
