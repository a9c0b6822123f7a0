"""SQL for DuckDB that finds the rows for which a view's expression raises and is NULL, or that raises for them.

An expression `e` raised exactly where `TRY(row(e))` is NULL. In it, `e` is spelled so that each of its parts raises. So
an error in a part counts even if the whole has a value, and a part that CASE or COALESCE skipped does not.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

from sqlglot import exp

from sparkwave.catalog.model import HAS_FAILED, OR_NULL
from sparkwave.catalog.names import quote
from sparkwave.catalog.types import JSON, JSONB
from sparkwave.planner.functions.duckdb_spelling import for_duckdb, rewrite_leaves_first
from sparkwave.planner.functions.emit import Sql, checked_division, lenient_division, text_of, to_sql
from sparkwave.planner.functions.narrow import narrow_sums
from sparkwave.planner.functions.python_call import PythonCall, in_form
from sparkwave.planner.functions.safe import HOLDS_ROWS, is_call, is_safe_cast, may_raise
from sparkwave.planner.functions.scalar_functions import duckdb_call
from sparkwave.planner.functions.typed import type_of_part

_Rule = Callable[[exp.Expr], exp.Expr | None]
# NULL where one of their parts is NULL: only rows for which they are NULL need the check.
_STRICT = (
    exp.Column, exp.Literal, exp.Paren, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Cast, exp.EQ, exp.NEQ,
    exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Identifier, exp.DataType, exp.DataTypeParam, exp.Interval, exp.Var,
)  # fmt: skip
# AND and OR are taken apart from left to right down to this many levels, and computed as a whole below.
_LEVELS = 4
# The check writes a division's two sides twice, so larger divisions are left out.
_LARGEST_DIVISION = 100
_ASKED, _OR_RAISES = "asked", "or raises"
# A message that no value can contain.
_FAILED = "an expression has failed"


def raised(tree: exp.Expr, levels: int = _LEVELS) -> str | None:
    """Return a condition that is true for rows for which an expression raises, false for others.

    None if it never raises.
    """
    tree = tree.unnest()
    if isinstance(tree, exp.And | exp.Or) and levels:
        return _raised_in_turn(tree, levels)
    if any(_is_computed(call, tree) for call in tree.find_all(PythonCall)):
        return _raised_or_failed(tree)
    lenient, raising = to_sql(tree), text_of(_raising(tree))
    if lenient == raising:
        return None
    found = f"TRY(row({raising})) IS NULL"
    if not all(isinstance(node, _STRICT) for node in tree.walk()):
        return found
    surely = f"WHEN {_reads_values(tree)} THEN TRUE " if _is_null_by_failures(tree) else ""
    return f"CASE WHEN ({lenient}) IS NOT NULL THEN FALSE {surely}WHEN {_has_values(tree)} THEN {found} ELSE FALSE END"


# Nodes with parts that are not computed for each row.
_CONDITIONAL = (exp.And, exp.Or, exp.Case, exp.Coalesce, exp.Nullif, exp.Lambda, exp.Query, exp.Subquery)


def _is_computed(call: PythonCall, tree: exp.Expr) -> bool:
    """Return whether a call in an expression is one for each row, and not yet of another form."""
    node: exp.Expr | None = call
    while node is not None and not isinstance(node, _CONDITIONAL):
        if node is tree:
            return not call.args.get("form")
        node = node.parent
    return False


def _raised_or_failed(tree: exp.Expr) -> str:
    """Return the condition for calls of Python, which say themselves whether they fail, and for what is around them.

    In a TRY DuckDB would call the function again for each row of a batch, which takes as long as the whole batch.
    """
    calls = [call for call in tree.find_all(PythonCall) if _is_computed(call, tree)]
    found = [to_sql(in_form(call, HAS_FAILED)) for call in calls]
    around = tree.copy()
    for call in [call for call in around.find_all(PythonCall) if _is_computed(call, around)]:
        call.set("form", OR_NULL)
    rest = raised(around)
    return f"({' OR '.join([*found, *([rest] if rest is not None else [])])})"


def _is_null_by_failures(tree: exp.Expr) -> bool:
    """Return whether a strict expression over values without NULL is NULL only where a part fails.

    Then no TRY is needed, in which DuckDB computes a batch with a failure again, row by row. A document's null may
    become NULL by a cast.
    """
    return all(type_of_part(cast.this) not in (None, JSON, JSONB) for cast in tree.find_all(exp.Cast))


def _reads_values(tree: exp.Expr) -> str:
    """Return a condition that holds where no column of an expression is NULL."""
    names = sorted({column.name for column in tree.find_all(exp.Column)})
    return f"({' AND '.join(f'{quote(name)} IS NOT NULL' for name in names) or 'TRUE'})"


def _has_values(tree: exp.Expr) -> str:
    """Return a condition that holds where a part of a strict expression may raise, since nothing raises for a NULL."""
    read = [frozenset(c.name for c in node.find_all(exp.Column)) for node in tree.walk() if _may_raise(node)]
    least = {names for names in read if not any(other < names for other in read)}
    listed = sorted(" AND ".join(f"{quote(name)} IS NOT NULL" for name in sorted(names)) or "TRUE" for names in least)
    return f"({' OR '.join(listed) or 'TRUE'})"


def _may_raise(node: exp.Expr) -> bool:
    if isinstance(node, exp.Cast):
        return not is_safe_cast(node.this, node.args["to"])
    return isinstance(node, exp.Div | exp.Mod) or may_raise(node)


def _raised_in_turn(tree: exp.And | exp.Or, levels: int) -> str | None:
    """Return the condition for AND or OR: parts after the one that decides the result are not computed."""
    settled = "FALSE" if isinstance(tree, exp.And) else "TRUE"
    branches, needed = [], 0
    for part in tree.flatten():
        found = raised(part, levels - 1)
        if found is not None:
            branches.append(f"WHEN {found} THEN TRUE")
            needed = len(branches)
        branches.append(f"WHEN ({to_sql(part)}) IS {settled} THEN FALSE")
    return f"CASE {' '.join(branches[:needed])} ELSE FALSE END" if needed else None


def unguarded(tree: exp.Expr) -> str:
    """Return an expression of a view that raises PostgreSQL's error."""
    return text_of(rewrite_leaves_first(_spelled(tree, _divided, _without_try), _without_shortcut, copy=False))


def or_raise(query: exp.Expr) -> Sql:
    """Return the text of a query that has the rows of `to_sql(query)`, or raises where an expression does."""
    return text_of(_raising(narrow_sums(query)))


def _raising(tree: exp.Expr) -> exp.Expr:
    """Return a query, or a part of one, with the rows of `to_sql(tree)`, or that raises where an expression does.

    Each `TRY(e)` is replaced by the field of `TRY(row(e))`; the row is missing only if `e` raised. DuckDB does not look
    into a TRY, so all else stays: without one it would turn `a + 1 > 5` into `a > 4`.
    """
    return _spelled(tree, _divided_or_failed, _field_of_row)


def _field_of_row(node: exp.Expr) -> exp.Expr | None:
    if isinstance(node, exp.Anonymous) and node.name == "try":
        value = node.expressions[0]
        if value.meta.get(_OR_RAISES):
            return value
    elif isinstance(node, exp.TryCast) and not node.meta.get(_ASKED) and not node.meta.get(HOLDS_ROWS):
        value = exp.Cast(this=node.this, to=node.args["to"])
    elif isinstance(node, PythonCall) and not node.meta.get(_ASKED):
        value = in_form(node, "")
    else:
        return None
    row = duckdb_call("try", duckdb_call("row", value))
    found = exp.func("coalesce", row, exp.Literal.string(_FAILED))
    made = duckdb_call("struct_extract", found, exp.Literal.number(1))
    made.meta[_OR_RAISES] = True
    return made


def _divided_or_failed(node: exp.Expr) -> exp.Expr | None:
    """Return a division as in a view, but failing where the divisor is zero."""
    if not isinstance(node, exp.Div | exp.Mod):
        return None
    parts = list(islice(node.walk(), _LARGEST_DIVISION))
    has_rows = any(is_call(part) or isinstance(part, exp.Query) for part in parts)
    if node.type is None or has_rows or len(parts) == _LARGEST_DIVISION:
        return lenient_division(node)
    return checked_division(node, exp.Literal.string(_FAILED))


def _without_shortcut(node: exp.Expr) -> exp.Expr | None:
    """Let DuckDB (1.5.5) compute `a + 1 IS NULL`, which it would turn into `a IS NULL`, which never raises."""
    if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
        return exp.NullSafeEQ(this=node.this, expression=exp.null())
    return None


def _spelled(tree: exp.Expr, divided: _Rule, tried: _Rule) -> exp.Expr:
    """Return a view's expression by rules for its divisions and then for the TRY and TRY_CAST of the spelling."""
    tree = tree.copy()
    for cast in tree.find_all(exp.TryCast):
        cast.meta[_ASKED] = True
    for call in tree.find_all(PythonCall):
        call.meta[_ASKED] = bool(call.args.get("form"))
    spelled = for_duckdb(rewrite_leaves_first(tree, divided, copy=False), lenient=True, copy=False)
    return rewrite_leaves_first(spelled, tried, copy=False)


def _divided(node: exp.Expr) -> exp.Expr | None:
    """Return what `checked_division` does, except for a division too large to copy."""
    if len(list(islice(node.walk(), _LARGEST_DIVISION))) == _LARGEST_DIVISION:
        return None
    return checked_division(node)


def _without_try(node: exp.Expr) -> exp.Expr | None:
    """Replace a TRY by the field of a row: DuckDB would turn `a + 1 > 5` into `a > 4`."""
    if isinstance(node, exp.Anonymous) and node.name == "try":
        return duckdb_call("struct_extract", duckdb_call("row", node.expressions[0]), exp.Literal.number(1))
    if isinstance(node, exp.TryCast) and not node.meta.get(_ASKED):
        return exp.Cast(this=node.this, to=node.args["to"])
    if isinstance(node, PythonCall) and not node.meta.get(_ASKED):
        return in_form(node, "")
    return None
