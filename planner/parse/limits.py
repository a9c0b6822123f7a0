"""Limits of a statement's depth and width.

Larger ones would keep the engine busy for minutes, and are refused at once.
"""

from __future__ import annotations

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.parse.row_values import is_row

MOST_DEPTH = 500  # of nested operators, calls and queries; the engine takes its third power
MOST_JOINED = 100  # relations of one FROM, whose orders the engine tries
MOST_ARGUMENTS = 100  # PostgreSQL's FUNC_MAX_ARGS

# Nodes with any number of arguments, which are no functions in PostgreSQL.
_NOT_CALLED = (exp.Coalesce, exp.Greatest, exp.Least, exp.Array, exp.Case, exp.Connector)


def check_size(tree: exp.Expr) -> None:
    """Raise Error 54001 for a statement that is too deep or joins too much, 54023 for too many arguments."""
    pending = [(tree, 1)]
    while pending:
        node, depth = pending.pop()
        if depth > MOST_DEPTH:
            hint = f"Operators, calls and queries may be {MOST_DEPTH} deep in each other, and as many may be in a row."
            raise Error("stack depth limit exceeded", errors.STATEMENT_TOO_COMPLEX, hint=hint)
        if isinstance(node, exp.Select):
            _check_joins(node)
        elif isinstance(node, exp.Func):
            _check_arguments(node)
        pending += [(part, depth + _counts(node, part)) for part in node.iter_expressions()]


def _counts(node: exp.Expr, part: exp.Expr) -> bool:
    """Return whether a part is a level below its node: chains of AND, OR and UNION are flat to the engine."""
    is_chain = isinstance(node, exp.Connector | exp.SetOperation) and type(node) is type(part)
    return not is_chain and not isinstance(part, exp.Paren)


def _check_joins(query: exp.Select) -> None:
    joined = 1 + len(query.args.get("joins") or ())
    if joined > MOST_JOINED:
        hint = f"A query may join {MOST_JOINED} relations. Join some of them in a subquery."
        raise Error(f"too many relations in FROM: {joined}", errors.STATEMENT_TOO_COMPLEX, hint=hint)


def _check_arguments(call: exp.Func) -> None:
    if len(call.expressions) <= MOST_ARGUMENTS or isinstance(call, _NOT_CALLED) or is_row(call):
        return
    position = min((node.meta["start"] for node in call.walk() if "start" in node.meta), default=0) + 1
    message = f"cannot pass more than {MOST_ARGUMENTS} arguments to a function"
    raise Error(message, errors.TOO_MANY_ARGUMENTS, position=position)
