"""Imports go server → executor → planner → catalog, and each vendor library stays in its place."""

from __future__ import annotations

import ast
import functools
import importlib
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LAYERS = ("catalog", "planner", "executor", "server")  # each may import itself and those before it

# Library to the modules that may import it: a folder, or a file without its suffix.
PLACES = {
    "buenavista": {"server/wire/connections"},
    "duckdb": {
        "catalog/lake/direct_calls",
        "catalog/lake/ducklake",
        "catalog/lake/extensions",
        "catalog/lake/pandas_stand_in",
        "catalog/lake/translation",
        "catalog/lake/vacuum",
        "executor/functions/python_calls",
        "executor/spark/kernel",
        "executor/spark/kernel_daemon",
    },
    "cryptography": {"catalog/sealing", "catalog/ciphers"},
    "confluent_kafka": {"executor/sources/kafka_client"},
    "prometheus_client": {"catalog/counters", "server/operations/metrics", "server/operations/metrics_server"},
    "psutil": {"executor/spark/usage", "executor/spark/capacity"},
    "pyspark": {"executor/spark"},
    "grpc": {"executor/spark/endpoint", "executor/spark/spark_engine"},
    "sqlglot": {"planner"},
    "starlette": {"server/dashboard/app", "server/dashboard/guard"},
    "uvicorn": {"server/dashboard/listener"},
}

# What would make planning impure: clocks, processes, sockets, files.
IMPURE = {"time", "random", "socket", "subprocess", "threading", "os", "pathlib", "tempfile"}


MODULES = [
    str(file.relative_to(ROOT).with_suffix("")) for layer in LAYERS for file in sorted((ROOT / layer).rglob("*.py"))
]


@dataclass(frozen=True)
class Facts:
    """The modules that a module imports, whole or names of them, and the number of public methods of each class."""

    imports: frozenset[str]
    public_methods: dict[str, int]


@functools.cache
def facts(module: str) -> Facts:
    """Read the facts of one of our modules, `layer/room/name`, from its tree, which takes milliseconds to walk."""
    imported: set[str] = set()
    methods: dict[str, int] = {}
    for node in ast.walk(ast.parse((ROOT / f"{module}.py").read_text())):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.ClassDef):
            methods[node.name] = sum(isinstance(m, ast.FunctionDef) and not m.name.startswith("_") for m in node.body)
    return Facts(frozenset(imported), methods)


def imports(module: str) -> frozenset[str]:
    return facts(module).imports


@pytest.mark.parametrize("module", MODULES)
def test_imports(module: str) -> None:
    imported = imports(module)
    layer = module.partition("/")[0]
    above = LAYERS[LAYERS.index(layer) + 1 :]
    tops = {name.removeprefix("sparkwave.").partition(".")[0] for name in imported}
    assert not tops & set(above), f"{module} imports a layer above it"
    rooms = {module, *map(str, Path(module).parents)}
    for library, places in PLACES.items():
        if library in tops:
            assert rooms & places, f"{module} imports {library}"
    if layer == "planner":
        assert not tops & IMPURE
        below = ("sparkwave.catalog.lake", "sparkwave.catalog.stores", "sparkwave.catalog.system")
        assert not [name for name in imported if name.startswith(below)], f"{module} knows how the catalog is stored"


def test_locks_know_their_rank() -> None:
    """Else nobody sees that two may be taken in both orders."""
    for layer in LAYERS:
        for file in (ROOT / layer).rglob("*.py"):
            if file.name not in ("locks.py", "python_calls.py"):  # the latter is sent to tasks, which have none of ours
                assert not re.search(r"threading\.R?Lock\(", file.read_text()), f"{file} has a lock without a rank"


def test_nothing_is_computed_under_a_lock_of_all() -> None:
    """One of `functools.cached_property` is held for all objects of a class: see `catalog.lazy`."""
    for layer in LAYERS:
        for file in (ROOT / layer).rglob("*.py"):
            assert "import cached_property" not in file.read_text() or file.name == "lazy.py", file
            assert "@functools.cached_property" not in file.read_text(), file


@pytest.mark.parametrize("folder", ["tests", "bench", "examples", "scripts"])
def test_names_imported_from_outside_the_layers_exist(folder: str) -> None:
    """A name that moved is missed before the test, benchmark or example that imports it runs."""
    missing = []
    for file in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("sparkwave"):
                module = importlib.import_module(node.module)
                missing += [
                    f"{file.relative_to(ROOT)}:{node.lineno} {node.module}.{alias.name}"
                    for alias in node.names
                    if not hasattr(module, alias.name)
                    and not (ROOT / node.module.replace(".", "/") / f"{alias.name}.py").exists()
                ]
    assert not missing


def test_no_module_imports_itself_by_way_of_others() -> None:
    """Imports for types alone count too: of two files that need each other, neither can be read by itself."""
    graph = {f"sparkwave.{module.replace('/', '.')}": imports(module) for module in MODULES}
    while leaves := {module for module, imported in graph.items() if not imported & graph.keys()}:
        graph = {module: imported for module, imported in graph.items() if module not in leaves}
    assert not graph, f"these import each other, or what does: {sorted(graph)}"


def test_a_name_means_one_file() -> None:
    """Who looks for `merge.py` finds one."""
    names = Counter(Path(module).name for module in MODULES)
    assert not [name for name, count in names.items() if count > 1 and name != "__init__"]


def test_nobody_has_to_take_a_crowd_whole() -> None:
    """A class has 30 public methods at the most; what few callers ask is a function."""
    counts = {f"{module}: {name}": count for module in MODULES for name, count in facts(module).public_methods.items()}
    assert len(counts) > 300
    assert not {name: count for name, count in counts.items() if count > 30}
