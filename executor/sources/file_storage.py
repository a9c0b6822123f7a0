"""Storage of the files that connectors read and sinks write: a directory of the server's machine, or a bucket of S3."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pyarrow import fs

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error

# Short timeouts, because one thread serves all sources, and one all sinks.
_CONNECT_S, _REQUEST_S, _ATTEMPTS = 3, 10, 2


class File(Protocol):
    """A file to be read; its text is the name that users know."""

    def open(self, mode: str) -> Any:
        """Return an open binary file with `read` and `seek`. Raises OSError."""


class Storage(Protocol):
    """Files below a root, each by its path from the root."""

    def check(self) -> None:
        """Raise Error 58P01 when the root does not exist, 08006 when it cannot be reached."""

    def list(self, prefix: str = "") -> list[str]:
        """Return the sorted paths with a prefix, without hidden parts. Raises Error 58P01 or 08006."""

    def file(self, path: str) -> File:
        """Return the file with a path, which need not exist."""


@dataclass(frozen=True)
class Directory:
    """A directory of the server's machine, and all below it."""

    root: Path

    def check(self) -> None:
        if not self.root.is_dir():
            raise Error(
                f'directory "{self.root}" does not exist',
                errors.UNDEFINED_FILE,
                hint="It is one of the machine that the server runs on.",
            )

    def list(self, prefix: str = "") -> list[str]:
        def refuse(error: OSError) -> None:
            raise Error(f'directory "{error.filename}" cannot be read: {error.strerror}', errors.UNDEFINED_FILE)

        names = []
        for directory, folders, files in os.walk(self.root, onerror=refuse):
            folders[:] = [folder for folder in folders if not folder.startswith(".")]
            below = os.path.relpath(directory, self.root)
            start = "" if below == "." else f"{below}/"
            names += [start + file for file in files if not file.startswith(".")]
        return sorted(name for name in names if name.startswith(prefix))

    def file(self, path: str) -> Path:
        return self.root / path


@dataclass(frozen=True)
class S3File:
    """An object; `path` begins with the bucket."""

    filesystem: Any
    path: str

    def open(self, mode: str) -> Any:
        return self.filesystem.open_input_file(self.path)

    def __str__(self) -> str:
        return f"s3://{self.path}"


@dataclass(frozen=True)
class Bucket:
    """A bucket of S3, or of a compatible server."""

    name: str
    filesystem: Any

    def check(self) -> None:
        try:
            found = self.filesystem.get_file_info(self.name)
        except OSError as error:
            raise self._unreachable(error) from error
        if found.type == fs.FileType.NotFound:
            raise Error(f'bucket "{self.name}" does not exist', errors.UNDEFINED_FILE)

    def list(self, prefix: str = "") -> list[str]:
        folder = prefix.rpartition("/")[0]
        base = f"{self.name}/{folder}" if folder else self.name
        selector = fs.FileSelector(base, allow_not_found=bool(folder), recursive=True)
        try:
            infos = self.filesystem.get_file_info(selector)
        except OSError as error:
            raise self._unreachable(error) from error
        start = len(self.name) + 1
        paths = (info.path[start:] for info in infos if info.type == fs.FileType.File)
        return sorted(p for p in paths if p.startswith(prefix) and not any(x.startswith(".") for x in p.split("/")))

    def file(self, path: str) -> S3File:
        return S3File(self.filesystem, f"{self.name}/{path}")

    def put(self, source: Path, path: str) -> None:
        """Store a local file as an object.

        It replaces an existing object as a whole or not at all. Raises Error 08006.
        """
        with source.open("rb") as opened:
            try:
                with self.filesystem.open_output_stream(f"{self.name}/{path}") as stream:
                    while data := opened.read(1 << 22):
                        stream.write(data)
            except OSError as error:
                raise self._unreachable(error) from error

    def _unreachable(self, error: OSError) -> Error:
        return Error(f'S3 bucket "{self.name}": {text_of(error)}', errors.CONNECTION_FAILURE)


def bucket(options: Mapping[str, str]) -> Bucket:
    """Return the bucket of the options `s3.…` of a source or sink, without any outside effect.

    Without credentials requests are not signed, except with `enable_config_load` by those of the server's environment.
    """
    given: dict[str, Any] = {"region": options["s3.region_name"]}
    if "s3.endpoint_url" in options:
        given["endpoint_override"] = options["s3.endpoint_url"]
    if options.get("s3.credentials.access"):
        given["access_key"] = options["s3.credentials.access"]
        given["secret_key"] = options.get("s3.credentials.secret", "")
        given["session_token"] = options.get("s3.credentials.session_token")
    elif options.get("enable_config_load", "false").lower() != "true":
        given["anonymous"] = True
    if options.get("s3.assume_role"):
        given["role_arn"] = options["s3.assume_role"]
    filesystem = fs.S3FileSystem(
        connect_timeout=_CONNECT_S,
        request_timeout=_REQUEST_S,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS),
        **given,
    )
    return Bucket(options["s3.bucket_name"], filesystem)


def text_of(error: OSError) -> str:
    """Return the system's, or Arrow's, message in one line."""
    return error.strerror or str(error).splitlines()[0]
