"""Parses what follows WHERE at the end of COPY FROM and CREATE INDEX."""

from __future__ import annotations

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.parse.tokens import TokenReader
from sparkwave.planner.parse.trees import parse_tree, text_before


def parse_condition(reader: TokenReader) -> exp.Expr:
    """Parse the rest of a statement as a condition. Raises Error 42601 for anything else."""
    start, text = reader.offset, reader.rest
    if not text:
        raise Error("syntax error at end of input", errors.SYNTAX_ERROR)
    tree = parse_tree(text_before("SELECT 1 WHERE", reader.sql[: start + len(text)], start), 0)
    where = tree.args.get("where")
    if where is None or {part for part, value in tree.args.items() if value} != {"expressions", "where"}:
        raise reader.syntax_error()
    condition: exp.Expr = where.this
    return condition
