"""Merges the definitions of WINDOW into OVER, because DuckDB forgets part of a window that two others define."""

from __future__ import annotations

from sqlglot import exp

from sparkwave.planner.build.windows import named


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
