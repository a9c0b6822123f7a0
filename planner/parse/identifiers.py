"""Names as PostgreSQL reads them."""

from __future__ import annotations

from sqlglot import exp


def folded(identifier: exp.Expr) -> str:
    """Return an identifier as in the catalog: lower case unless quoted."""
    return identifier.name if identifier.args.get("quoted") else identifier.name.lower()
