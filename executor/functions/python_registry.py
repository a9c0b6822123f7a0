"""Users' functions in Python in the databases that call them: the server's, and those of Spark's tasks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache, partial
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Lake
from sparkwave.catalog.model import PYTHON_PREFIX, Catalog, Function
from sparkwave.catalog.python_failures import BATCH_MS, ENABLED, MEMORY_MIB, NAMES, disabled, failed
from sparkwave.catalog.stores.store import Store
from sparkwave.catalog.types import JSON, JSONB, Type
from sparkwave.executor.functions import python_calls, python_worker
from sparkwave.executor.functions.python_calls import Calls, Definition, Failure, Limits, define, define_in_task
from sparkwave.planner.functions.python_call import carried_arguments, carried_result

# Called with the database of a task, before the task's steps.
Prepare = Callable[[Any], None]

_NAME = re.compile(rf"\b{PYTHON_PREFIX}\d+_[0-9a-f]+")
_DEFAULTS = {ENABLED: "false", BATCH_MS: "10000", MEMORY_MIB: "512"}


class PythonFunctions:
    """Defines the functions of a catalog in the lake's database, for all its connections, as soon as they are there.

    A function of a name in DuckDB never changes (`Function.name_in_duckdb`). Functions that are gone stay defined, for
    the statements that still run.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._cursor = store.lake.cursor()
        self._calls: dict[str, Calls] = {}
        self._present: frozenset[str] = frozenset()
        store.watch(self._follow)
        _OF_LAKES[store.lake] = self

    def limits(self) -> Limits | None:
        """Return the present limits; None while functions in Python are disabled."""
        parameters = _DEFAULTS | self._store.catalog.parameters
        if parameters[ENABLED] != "true":
            return None
        return Limits(int(parameters[BATCH_MS]) / 1000, int(parameters[MEMORY_MIB]) << 20)

    def check(self, function: Function) -> None:
        """Load a new function's code. Raises Error 42P13 where that fails, and those of `catalog.python_failures`."""
        calls = Calls(definition_of(function), self.limits)
        try:
            python_calls.find_result(self._cursor, calls)
            calls.check()
        except python_calls.Error as error:
            message = f"function {function.name} cannot be loaded: {error}"
            raise Error(message, errors.INVALID_FUNCTION_DEFINITION) from None
        except Failure as failure:
            raise failed(function.name, failure.reason) from None

    def in_tasks(self, texts: Iterable[str]) -> Prepare | None:
        """Return what defines the functions that SQL calls in a task's database; None if it calls none.

        Raises Error 55000 while functions in Python are disabled.
        """
        names = sorted({name for text in texts for name in _NAME.findall(text)} & self._calls.keys())
        if not names:
            return None
        limits = self.limits()
        if limits is None:
            raise disabled()
        return partial(define_in_task, tuple(self._calls[name].definition for name in names), limits)

    def _follow(self, catalog: Catalog) -> None:
        functions = {function.name_in_duckdb: function for function in catalog.functions if function.is_python}
        gone, self._present = self._present - functions.keys(), frozenset(functions)
        for name, function in functions.items():
            NAMES[function.id] = function.name
            if name not in self._calls:
                calls = Calls(definition_of(function), self.limits)
                define(self._cursor, calls)
                self._calls[name] = calls
        if gone:
            python_calls.end_idle(gone)


_OF_LAKES: WeakKeyDictionary[Lake, PythonFunctions] = WeakKeyDictionary()


def python_functions(lake: Lake) -> PythonFunctions | None:
    """Return the functions in Python of a lake, once they are defined."""
    return _OF_LAKES.get(lake)


def definition_of(function: Function) -> Definition:
    types = [type_ for _, type_ in function.arguments]
    return Definition(
        function.id,
        function.name_in_duckdb,
        function.name,
        function.body,
        tuple(type_.duckdb() for type_ in carried_arguments(function)),
        tuple(map(_kind, types)),
        carried_result(function).duckdb(),
        _kind(function.result),
        "rows" if function.columns is not None else "aggregate" if function.is_aggregate else "value",
        function.is_strict,
        _program(),
    )


def _kind(type_: Type) -> str:
    return "jsonb" if type_ in (JSON, JSONB) else ""


@cache
def _program() -> str:
    return Path(python_worker.__file__).read_text()
