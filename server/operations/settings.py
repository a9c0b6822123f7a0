"""The server's settings that have command-line options, with their defaults. This module imports nothing slow."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Settings:
    """The settings, for `server.operations.config` and the help of `sparkwave serve`."""

    listen: str = "127.0.0.1:4566"
    metrics: str = "127.0.0.1:1260"
    dashboard: str = "127.0.0.1:5691"
    data: Path = Path(".sparkwave")
    catalog: str | None = None
    shared: Path | str | None = None
    advertise: str | None = None
    s3_endpoint: str | None = None
    s3_region: str = "us-east-1"
    spark_master: str | None = None
    spark_start: str = "eager"
    spark_cores: int = os.cpu_count() or 2
    spark_memory_mib: int = 2048
    duckdb_memory: str | None = None
    duckdb_spill: str | None = None
    duckdb_threads: int | None = None
    max_message_bytes: int = 1 << 30
    log_level: str = "WARNING"
    log_format: str = "text"
    tls: str = "optional"
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    secret_key_file: Path | None = None


HELP = {
    "listen": "HOST:PORT to listen on",
    "dashboard": "HOST:PORT of the dashboard for browsers; '' for none",
    "data": "directory of the lake and its catalog",
    "catalog": "connection string of a PostgreSQL that holds the catalog instead",
    "shared": "directory for the lake's files that all servers and Spark nodes see, or s3://BUCKET; with --catalog",
    "advertise": "HOST:PORT where servers that only read send those who want to write (default: --listen)",
    "s3_endpoint": "URL of the bucket's server (default: Amazon's of the region); keys by configuration or environment",
    "s3_region": "region of the bucket",
    "spark_master": "Spark master URL; by default Spark runs in processes of this machine",
    "spark_start": "eager: start Spark with the server; on_demand: when the first view needs it",
    "spark_cores": "cores of the default resource group",
    "spark_memory_mib": "memory of the default resource group, MiB",
    "duckdb_memory": "memory limit of the server's own queries, e.g. 4GB",
    "duckdb_spill": "most of what they write to disk beyond that, e.g. 50GB; by default 90 %% of what is free",
    "duckdb_threads": "most threads of each of them; by default as many as there are cores",
    "max_message_bytes": "largest message a client may send",
    "metrics": "HOST:PORT where Prometheus may read metrics; empty for nowhere",
    "log_level": "DEBUG, INFO, WARNING or ERROR",
    "log_format": "text or json",
    "tls": "off; optional: for clients that ask for it, if there is a certificate; required: for all",
    "tls_certificate": "PEM file with the server's certificate and those that lead to its authority",
    "secret_key_file": "file with the key of stored secrets (default: secret.key in the data directory)",
    "tls_key": "PEM file with the certificate's key, if that is not in the same file",
}
