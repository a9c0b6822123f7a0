"""Merges the definitions of WINDOW into OVER, because DuckDB forgets part of a window that two others define."""

from __future__ import annotations

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.parse.identifiers import folded
from sparkwave.planner.parse.trees import position_of


def expand_named_windows(tree: exp.Expr) -> exp.Expr:
    """Return the tree, changed in place. Raises Error 42P20 for a window that its named window does not allow."""
    for select in list(tree.find_all(exp.Select)):
        if not select.args.get("windows"):
            continue
        for window in list(select.find_all(exp.Window)):
            if window.parent_select is select and window.arg_key != "windows":
                window.replace(named(window, select))
        select.set("windows", None)
    return tree


def named(window: exp.Window, select: exp.Select) -> exp.Window:
    """Return the window with the definition of its named window: `OVER w`, or `OVER (w ORDER BY …)`.

    PostgreSQL: transformWindowDefinitions in src/backend/parser/parse_clause.c.
    """
    alias = window.args.get("alias")
    name = folded(alias) if isinstance(alias, exp.Identifier) else ""
    if not name:
        return window
    windows = select.args.get("windows") or []
    before = windows[: window.index] if window.arg_key == "windows" else windows
    definition = next((each for each in before if folded(each.this) == name), None)
    if definition is None:
        raise Error(f'window "{name}" does not exist', errors.UNDEFINED_OBJECT, position=position_of(window))
    whole = named(definition, select)
    full = whole.copy()
    full.set("this", window.this.copy())
    own = [part for part in ("partition_by", "order", "spec") if window.args.get(part)]
    for part, words in (("partition_by", "PARTITION BY"), ("order", "ORDER BY")):
        if part in own and (part == "partition_by" or whole.args.get(part)):
            message = f'cannot override {words} clause of window "{name}"'
            raise Error(message, errors.WINDOWING_ERROR, position=position_of(window))
    if whole.args.get("spec") and (own or window.arg_key == "windows"):
        message = f'cannot copy window "{name}" because it has a frame clause'
        raise Error(message, errors.WINDOWING_ERROR, position=position_of(window))
    for part in own:
        full.set(part, window.args[part].copy())
    return full
