"""Prints SQL for readers: on few lines, without subqueries that only rename."""

from __future__ import annotations

from collections.abc import Iterator

import sqlglot
from sqlglot import exp

from sparkwave.planner.functions.emit import to_sql

_CLAUSES = ("SELECT", "SELECT DISTINCT", "WHERE", "GROUP BY", "HAVING")
_WIDTH = 110


def pretty(query: exp.Expr) -> Iterator[str]:
    """Yield DuckDB's text of a step on several lines, indented; a clause that fits is one line."""
    printed = sqlglot.parse_one(to_sql(query), dialect="duckdb").sql("duckdb", pretty=True)
    lines = printed.splitlines()
    place = 0
    while place < len(lines):
        line, end = lines[place], place + 1
        while end < len(lines) and _depth(lines[end]) > _depth(line):
            end += 1
        inside = lines[place + 1 : end]
        joined = " ".join([line, *(each.strip() for each in inside)])
        is_flat = len({_depth(each) for each in inside}) == 1
        if line.strip() in _CLAUSES and is_flat and len(joined) <= _WIDTH:
            line, place = joined, end - 1
        yield f"  {line}"
        place += 1


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def read_directly(query: exp.Expr) -> exp.Expr:
    """Return the query over relations themselves in place of (nested) `(SELECT columns FROM relation)`.

    The relations have no other columns that could be meant outside.
    """
    simpler = query.transform(_direct)
    return simpler if simpler == query else read_directly(simpler)


def _direct(node: exp.Expr) -> exp.Expr:
    if not isinstance(node, exp.Subquery) or not isinstance(node.this, exp.Select):
        return node
    select = node.this
    does_more = {name for name, value in select.args.items() if value} - {"expressions", "from_"}
    if does_more or not all(isinstance(part, exp.Column) and not part.table for part in select.selects):
        return node
    return exp.alias_(select.args["from_"].this.unalias().copy(), node.alias, table=True)
