"""DuckDB's extensions, as they are installed with it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import duckdb

from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.places import BucketPath, Place
from sparkwave.catalog.lake.storage import Storage
from sparkwave.catalog.lake.translation import Cursor
from sparkwave.catalog.names import literal


def load_extensions(cursor: Cursor, storage: Storage) -> None:
    """Load the extensions, and creates the secrets, that a lake needs. Raises the errors of `load_extension`."""
    extensions, secrets = file_access(storage.root)
    for extension in ("ducklake", *(("postgres_scanner",) if storage.catalog else ()), *extensions):
        load_extension(cursor, extension)
    for secret in secrets:
        cursor.execute(secret)


def file_access(root: Place) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what DuckDB needs for files below a place: names of extensions, and SQL that contains keys."""
    return (("httpfs",), (root.s3.secret(str(root)),)) if isinstance(root, BucketPath) else ((), ())


def load_extension(cursor: Cursor, name: str) -> None:
    """Load an installed extension of DuckDB. Raises Error if it is not installed."""
    cursor.execute(f"LOAD {literal(str(_extension_file(name)))}")


def _extension_file(name: str) -> Path:
    spec = importlib.util.find_spec(f"duckdb_extension_{name}")
    parent = Path(spec.origin).parent if spec is not None and spec.origin is not None else Path()
    path = parent / "extensions" / f"v{duckdb.__version__}" / f"{name}.duckdb_extension"
    if not path.exists():
        raise Error(
            f"no duckdb-extension-{name.replace('_', '-')} is installed that fits duckdb {duckdb.__version__}",
            hint="Install the versions that pyproject.toml pins.",
        )
    return path
