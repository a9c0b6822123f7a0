"""The connection settings of an object store: S3, or a store with the same protocol."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from pyarrow import fs

from sparkwave.catalog.names import literal

# The attempts of a request: a large file needs many requests, and a failed one fails a statement.
_CONNECT_S, _REQUEST_S, _ATTEMPTS = 5, 60, 4


@dataclass(frozen=True)
class S3:
    """The settings of a store. `endpoint` is a URL, None for Amazon's of the region."""

    region: str
    endpoint: str | None
    access_key: str = field(repr=False)
    secret_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)

    @property
    def filesystem(self) -> Any:
        """Arrow's filesystem, which can be sent to other processes."""
        return _filesystem(self)

    def secret(self, scope: str) -> str:
        """Return SQL that gives DuckDB the keys, for URLs that begin with `scope`, until the process ends."""
        given = {"KEY_ID": self.access_key, "SECRET": self.secret_key, "REGION": self.region, "SCOPE": scope}
        if self.session_token:
            given["SESSION_TOKEN"] = self.session_token
        options = [f"{name} {literal(value)}" for name, value in given.items()]
        if self.endpoint is not None:
            scheme, _, host = self.endpoint.rpartition("://")
            options += [f"ENDPOINT {literal(host)}", "URL_STYLE 'path'", f"USE_SSL {scheme != 'http'}"]
        return f"CREATE SECRET lake (TYPE s3, {', '.join(options)})"


@lru_cache
def _filesystem(s3: S3) -> Any:
    return fs.S3FileSystem(
        region=s3.region,
        endpoint_override=s3.endpoint,
        access_key=s3.access_key,
        secret_key=s3.secret_key,
        session_token=s3.session_token,
        connect_timeout=_CONNECT_S,
        request_timeout=_REQUEST_S,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS),
    )
