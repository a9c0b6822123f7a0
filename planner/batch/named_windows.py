"""Windows with what WINDOW says of their names: DuckDB forgets part of a window that is defined by two others."""

from __future__ import annotations

from sqlglot import exp

from sparkwave.planner.build.windows import named


def expand_named_windows(tree: exp.Expr) -> exp.Expr:
    """The tree, changed in place. Raises Error 42P20 for a window that says more than its name lets it."""
    for select in list(tree.find_all(exp.Select)):
        if not select.args.get("windows"):
            continue
        for window in list(select.find_all(exp.Window)):
            if window.parent_select is select and window.arg_key != "windows":
                window.replace(named(window, select))
        select.set("windows", None)
    return tree
