"""CORRESPONDING: a set operation over the columns that both sides have by name, not by place.

RisingWave documentation, "Set operations": `UNION [ALL] CORRESPONDING [BY (columns)]`, also of INTERSECT and EXCEPT.
"""

from __future__ import annotations

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.bind.merged_columns import ColumnsOf, outputs_of
from sparkwave.planner.bind.output_names import output_name
from sparkwave.planner.parse.identifiers import folded
from sparkwave.planner.parse.trees import position_of, unsupported


def with_corresponding(tree: exp.Expr, columns_of: ColumnsOf) -> None:
    """Let both sides have the columns in common, in the left side's order or that of BY, in the tree itself.

    Raises Error 42601 where there are none, or one of BY is missing, and 0A000 for a `*` over unknown columns.
    """
    for operation in reversed(list(tree.find_all(exp.SetOperation))):
        if operation.args.get("kind") not in (None, "INNER"):
            raise unsupported("an outer set operation", operation)
        if not operation.args.get("by_name"):
            continue
        sides = [outputs_of(side, columns_of, output_name) for side in (operation.this, operation.expression)]
        names = [folded(column.this) for column in operation.args.get("on") or ()] or _common(operation, sides)
        for name in names:
            if any(side is not None and name not in side for side in sides):
                raise Error(
                    f"Column name `{name}` in CORRESPONDING BY is not found in a side of the {operation.key.upper()} "
                    "operation. It shall be included in both sides.",
                    errors.SYNTAX_ERROR,
                    position=position_of(operation),
                )
        for place, side in (("this", "_left"), ("expression", "_right")):
            operation.set(place, _picked(operation.args[place], names, side))
        for word in ("by_name", "on", "kind"):
            operation.set(word, None)


def _common(operation: exp.SetOperation, sides: list[list[str] | None]) -> list[str]:
    left, right = sides
    if left is None or right is None:
        raise unsupported("CORRESPONDING over these columns, without BY (…),", operation)
    names = [name for name in dict.fromkeys(left) if name in right]
    if not names:
        raise Error(
            "When CORRESPONDING is specified, at least one column of the left side shall have a column name that is "
            f"the column name of some column of the right side in a {operation.key.upper()} operation.",
            errors.SYNTAX_ERROR,
            detail=f"Left side: {', '.join(left)}. Right side: {', '.join(right)}.",
            position=position_of(operation),
        )
    return names


def _picked(query: exp.Expr, names: list[str], alias: str) -> exp.Select:
    rows = exp.Subquery(this=query.unnest(), alias=exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
    return exp.select(*(exp.column(exp.to_identifier(name, quoted=True)) for name in names)).from_(rows)
