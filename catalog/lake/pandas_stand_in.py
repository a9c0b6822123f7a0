"""Lets DuckDB convert values without pandas.

For each value that Python gives to DuckDB (1.5.5), DuckDB asks whether the value is pandas' `NaT` or `NA`. Where pandas
cannot be imported, DuckDB tries to import it for each value again, which takes 20 microseconds a value. DuckDB keeps
the modules that it has imported once.
"""

from __future__ import annotations

import sys
from types import ModuleType

import duckdb

_NAME = "pandas"


class _StandIn(ModuleType):
    """A module with a class of any name that is asked for, of which there are no instances."""

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        made = type(name, (), {})
        setattr(self, name, made)
        return made


def give_stand_in() -> None:
    """Have DuckDB keep an empty module as pandas, unless pandas is imported. Others find pandas as before.

    From then on DuckDB takes no value of pandas in this process.
    """
    if _NAME in sys.modules:
        return
    sys.modules[_NAME] = _StandIn(_NAME)
    try:
        duckdb.ConstantExpression(1)
    finally:
        del sys.modules[_NAME]
