"""Reads the server's configuration: the command line overrides the environment, a TOML file, and defaults."""

from __future__ import annotations

import re
import ssl
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.places import BucketPath, check_url
from sparkwave.catalog.lake.s3 import S3
from sparkwave.catalog.lake.storage import Storage, check_catalog
from sparkwave.catalog.model import DEFAULT_GROUP
from sparkwave.executor.spark.applications import Size, check_master
from sparkwave.server.operations.settings import Settings
from sparkwave.server.wire.tls import server_context

# The sizes of serverless nodes that ALTER SYSTEM may name, by cores and GiB.
SKUS = {f"{cores}c{gib}g": Size(cores, gib * 1024) for cores in (1, 2, 4, 8, 16) for gib in (2 * cores, 4 * cores)}


@dataclass(frozen=True)
class Config(Settings):
    """The server's configuration; memory is in MiB.

    - `metrics`, `dashboard`: addresses for Prometheus and for browsers; empty for none.
    - `catalog`: connection string of a PostgreSQL, which several servers may share (`server.operations.standby`); None
      for a file in `data`.
    - `shared`: directory, or URL of an S3 bucket, where all servers and Spark's nodes find the lake's files; `s3_…` are
      the settings of the bucket. Its keys are no command-line options, which other users could read.
    - `root_password`: what `root` gets as its password if it has none; no command-line option either.
    - `advertise`: address that servers which only read name to clients that want to write; None for `listen`.
    - `spark_master`: None runs Spark in processes of this machine.
    - `spark_start`: `eager` (with the server, in the background) or `on_demand`.
    - `tls`: whether clients may (`optional`) or must (`required`) encrypt; without a certificate they cannot.
    - `secret_key_file`: file with the key of stored secrets; None for a file in the data directory.

    Only the file can set the last four fields: resource groups beside `default`, SKUs beside the usual ones, settings
    of Spark itself, and settings that override them for serverless groups.
    """

    root_password: str | None = field(default=None, repr=False)
    s3_access_key: str | None = field(default=None, repr=False)
    s3_secret_key: str | None = field(default=None, repr=False)
    s3_session_token: str | None = field(default=None, repr=False)
    resource_groups: Mapping[str, Size] = field(default_factory=dict)
    serverless_skus: Mapping[str, Size] = field(default_factory=dict)
    spark: Mapping[str, str] = field(default_factory=dict)
    serverless_spark: Mapping[str, str] = field(default_factory=dict)

    @property
    def storage(self) -> Storage:
        """The place of the lake. Raises Error F0000 for `shared` without a PostgreSQL catalog, or without keys."""
        if self.shared is not None and self.catalog is None:
            message = "--shared needs a catalog that several servers can use"
            raise Error(message, errors.CONFIG_FILE_ERROR, hint="Name a PostgreSQL with --catalog.")
        if not isinstance(self.shared, str):
            return Storage(self.data, self.catalog, self.shared)
        if not (self.s3_access_key and self.s3_secret_key):
            message = f"there are no keys for {self.shared}"
            hint = "Set s3_access_key and s3_secret_key in the configuration file, or AWS_ACCESS_KEY_ID and so on."
            raise Error(message, errors.CONFIG_FILE_ERROR, hint=hint)
        given = S3(self.s3_region, self.s3_endpoint, self.s3_access_key, self.s3_secret_key, self.s3_session_token)
        return Storage(self.data, self.catalog, BucketPath(given, self.shared.removeprefix("s3://")))

    @property
    def group_sizes(self) -> dict[str, Size]:
        """The sizes of the permanent resource groups."""
        return {**self.resource_groups, DEFAULT_GROUP: Size(self.spark_cores, self.spark_memory_mib)}

    @property
    def skus(self) -> dict[str, Size]:
        """The sizes of serverless nodes."""
        return SKUS | dict(self.serverless_skus)

    @property
    def tls_context(self) -> ssl.SSLContext | None:
        """The TLS context for connections; None without TLS. Raises Error F0000 for missing or unusable files."""
        if self.tls == "required" and self.tls_certificate is None:
            message = "tls = required needs a certificate"
            raise Error(message, errors.CONFIG_FILE_ERROR, hint="Name its file with --tls-certificate.")
        if self.tls == "off" or self.tls_certificate is None:
            return None
        return server_context(self.tls_certificate, self.tls_key)

    def check_parameter(self, name: str, value: str | None) -> None:
        """Raise Error 22023 for a system parameter's value that the configuration does not allow."""
        if name == "serverless_backfill_sku" and value is not None and value not in self.skus:
            raise Error(
                f"Invalid value `{value}` for `{name}`: unknown SKU",
                errors.INVALID_PARAMETER_VALUE,
                hint=f"The SKUs are {', '.join(self.skus)}. The configuration file can add some.",
            )

    @property
    def address(self) -> tuple[str, int]:
        """(host, port)."""
        return _address(self.listen)

    @property
    def advertised(self) -> str:
        """HOST:PORT of the server for writers, as other servers name it to clients."""
        return self.advertise or self.listen

    @property
    def metrics_address(self) -> tuple[str, int] | None:
        """(host, port), None without metrics."""
        return _address(self.metrics) if self.metrics else None

    @property
    def dashboard_address(self) -> tuple[str, int] | None:
        """(host, port), None without a dashboard."""
        return _address(self.dashboard) if self.dashboard else None


def load_config(
    arguments: Mapping[str, Any], environment: Mapping[str, str], file: Path | None
) -> tuple[Config, dict[str, str]]:
    """Return the configuration, and the parameters (session variables and system parameters) that the file sets.

    `arguments` are the options given on the command line. An environment variable is `SPARKWAVE_` and a field's name in
    upper case; Amazon's own variables (`_OF_S3`) count after the file. The file has the fields at its top level,
    parameters in a table `[parameters]`, Spark's settings in `[spark]` and `[serverless_spark]`, and `cores`,
    `memory_mib` and `replicas` in each `[resource_groups.<name>]` and `[serverless_skus.<name>]`. Raises Error F0000
    for an unknown or wrong setting.
    """
    from_file, parameters = _read_file(file) if file else ({}, {})
    known = [field.name for field in fields(Config)]
    values: dict[str, Any] = {}
    for name in known:
        variable = f"SPARKWAVE_{name.upper()}"
        for source, where in ((arguments, f"--{name}"), (environment, variable), (from_file, str(file))):
            key = variable if source is environment else name
            if source.get(key) is not None:
                values[name] = _convert(name, source[key], where)
                break
        else:
            if environment.get(_OF_S3.get(name, "")):
                values[name] = _convert(name, environment[_OF_S3[name]], _OF_S3[name])
    unknown = sorted(set(from_file) - set(known))
    if unknown:
        raise Error(f'unknown setting "{unknown[0]}" in {file}', errors.CONFIG_FILE_ERROR)
    return Config(**values), parameters


# The environment variables of Amazon's own clients.
_OF_S3 = {
    "s3_endpoint": "AWS_ENDPOINT_URL",
    "s3_region": "AWS_REGION",
    "s3_access_key": "AWS_ACCESS_KEY_ID",
    "s3_secret_key": "AWS_SECRET_ACCESS_KEY",
    "s3_session_token": "AWS_SESSION_TOKEN",
}


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise Error(f'"{text}" is not an address; write HOST:PORT', errors.CONFIG_FILE_ERROR)
    return host.removeprefix("[").removesuffix("]"), int(port)


def _positive(text: str | int) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def _check_address(text: str) -> str:
    _address(text)
    return text


def _check_address_or_none(text: str) -> str:
    return _check_address(text) if text else text


def _read_file(file: Path) -> tuple[dict[str, Any], dict[str, str]]:
    try:
        content = tomllib.loads(file.read_text())
    except OSError as error:
        raise Error(f"cannot read {file}: {error.strerror}", errors.CONFIG_FILE_ERROR) from error
    except tomllib.TOMLDecodeError as error:
        raise Error(f"{file}: {error}", errors.CONFIG_FILE_ERROR) from error
    parameters = content.pop("parameters", {})
    return content, _settings(parameters)


def _sizes(tables: Mapping[str, Mapping[str, Any]]) -> dict[str, Size]:
    found = {name: Size(**table) for name, table in tables.items()}
    for size in found.values():
        if not all(isinstance(number, int) and number > 0 for number in (size.cores, size.memory_mib, size.replicas)):
            raise ValueError
    return found


def _settings(table: Mapping[str, Any]) -> dict[str, str]:
    """Return Spark's settings by their full names: `"spark.executor.extraJavaOptions" = "…"`."""
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in table.items()}


def _shared(text: str) -> Path | str:
    return check_url(text) if text.startswith("s3:") else Path(text)


def _endpoint(text: str) -> str:
    if not re.fullmatch(r"https?://[^/@?#]+/?", text):
        raise ValueError(text)
    return text.rstrip("/")


_CONVERSIONS: dict[str, Any] = {
    "listen": _check_address,
    "metrics": _check_address_or_none,
    "dashboard": _check_address_or_none,
    "advertise": _check_address,
    "data": Path,
    "catalog": check_catalog,
    "shared": _shared,
    "s3_endpoint": _endpoint,
    "tls_certificate": Path,
    "tls_key": Path,
    "secret_key_file": Path,
    "duckdb_threads": _positive,
    "spark_cores": int,
    "spark_memory_mib": int,
    "max_message_bytes": int,
    "spark_master": check_master,
    "resource_groups": _sizes,
    "serverless_skus": _sizes,
    "spark": _settings,
    "serverless_spark": _settings,
}
_CHOICES = {
    "spark_start": ("eager", "on_demand"),
    "tls": ("off", "optional", "required"),
    "log_level": ("DEBUG", "INFO", "WARNING", "ERROR"),
    "log_format": ("text", "json"),
}


def _convert(name: str, value: Any, where: str) -> Any:
    try:
        converted = _CONVERSIONS.get(name, str)(value)
    except (TypeError, ValueError, AttributeError) as error:
        raise Error(f'invalid value "{value}" for {where}', errors.CONFIG_FILE_ERROR) from error
    if name in _CHOICES and converted not in _CHOICES[name]:
        allowed = ", ".join(_CHOICES[name])
        raise Error(f'invalid value "{value}" for {where}: one of {allowed}', errors.CONFIG_FILE_ERROR)
    return converted
