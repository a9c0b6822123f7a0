"""When pandas is imported: with Spark's client library, which needs it, and not before."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

_NAME = "pandas"


class _Deferred:
    """An import finder for which there is no pandas."""

    @staticmethod
    def find_spec(
        fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == _NAME:
            raise ModuleNotFoundError(f"{_NAME} is imported with Spark's client library", name=_NAME)
        return None


def defer() -> None:
    """Have imports of pandas fail until `load_spark_client`, as if it was not installed.

    DuckDB and PyArrow import it if they can, for values that Sparkwave never gives them. It takes 0.2 s and 35 MB.
    """
    sys.meta_path.insert(0, _Deferred)


def load_spark_client() -> None:
    """Import PySpark's Spark Connect client, and pandas with it: one to two seconds the first time."""
    if _Deferred in sys.meta_path:
        sys.meta_path.remove(_Deferred)
    importlib.import_module("pyspark.sql.connect.session")
