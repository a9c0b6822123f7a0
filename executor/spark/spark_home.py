"""Spark's installation as applications use it: pyspark's, without a jar that only delays their start.

spark-mllib has an extension that each Spark session loads (META-INF/services of the jar). It registers two functions,
and Scala's reflection, which finds the types of these functions, takes a third of the time until Spark answers. Tasks
need no function of Spark's.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pyspark

INSTALLED = Path(pyspark.__file__).resolve().parent
# Links to what is installed. The version is in the name because an upgrade leaves the directory behind.
LIGHT = INSTALLED / f"sparkwave-{pyspark.__version__}"
# See executor.spark.class_archive.
CLASS_ARCHIVE = LIGHT / "classes.jsa"
_LEFT_OUT = "spark-mllib_"
# What a home of Spark has besides jars. `conf` is an administrator's, and may come later.
_LINKED = ("bin", "conf", "python", "sbin")


@cache
def spark_home() -> Path:
    """Return the directory that applications have as SPARK_HOME: `LIGHT`, or `INSTALLED` where none can be written."""
    with contextlib.suppress(OSError):
        return make_light()
    return INSTALLED


def make_light() -> Path:
    """Make `LIGHT` if it is not there. Raises OSError."""
    if not LIGHT.is_dir():
        made = Path(tempfile.mkdtemp(dir=INSTALLED))
        try:
            _link([INSTALLED / name for name in _LINKED], made)
            (made / "jars").mkdir()
            _link([jar for jar in (INSTALLED / "jars").iterdir() if not jar.name.startswith(_LEFT_OUT)], made / "jars")
            made.chmod(0o755)
            made.rename(LIGHT)
        except OSError:
            shutil.rmtree(made, ignore_errors=True)
            if not LIGHT.is_dir():  # another process has made it
                raise
    return LIGHT


def make_home(target: Path) -> None:
    """Make a new directory with links to all that `spark_home` has, for processes that write to its `work`."""
    target.mkdir()
    _link([entry for entry in spark_home().iterdir() if entry.name != "work"], target)


def _link(entries: Iterable[Path], target: Path) -> None:
    for entry in entries:
        (target / entry.name).symlink_to(os.path.relpath(entry, target))
