"""LIKE with `%` as its escape character, which DuckDB takes for a wildcard where it ends a pattern."""

from __future__ import annotations

import re

from sqlglot import exp

# No pattern has it.
_OTHER = "\x01"


def with_other_escapes(tree: exp.Expr) -> None:
    """Give each such pattern another escape character, in place."""
    for escape in tree.find_all(exp.Escape):
        pattern = escape.this.args.get("expression")
        if escape.expression.name != "%" or not escape.expression.is_string or pattern is None:
            continue
        if pattern.is_string:
            changed: exp.Expr = exp.Literal.string(re.sub("%(.?)", rf"{_OTHER}\1", pattern.name, flags=re.DOTALL))
        else:
            texts = map(exp.Literal.string, ("(?s)%(.?)", rf"{_OTHER}\1", "g"))
            changed = exp.Anonymous(this="regexp_replace", expressions=[pattern.copy(), *texts])
        escape.this.set("expression", changed)
        escape.set("expression", exp.Literal.string(_OTHER))
