"""Where a query may name its own outputs: as in PostgreSQL, alone in ORDER BY, GROUP BY and DISTINCT ON.

The engines take an output's name everywhere: in WHERE, HAVING, other outputs, and within expressions.
"""

from __future__ import annotations

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import ROW_ID
from sparkwave.planner.bind.merged_columns import ColumnsOf, columns_of_from
from sparkwave.planner.bind.output_names import output_name
from sparkwave.planner.parse.identifiers import folded
from sparkwave.planner.parse.trees import position_of

# Statements whose own columns a query in them may name, too.
_WRITES = (exp.Insert, exp.Update, exp.Delete, exp.Merge)


def check_outputs_named(tree: exp.Expr, columns_of: ColumnsOf) -> None:
    """Raise Error 42703 for the name of an output in another place, in a query as written.

    A name that may be a column of a FROM, of which some columns are unknown, is none. Raises Error 0A000 for a column
    of a query around a subquery of whose outputs one has the same name: the engines would take that one.
    """
    selects = tree.find_all(exp.Select)
    outputs = {id(select): [_own_name(item) for item in select.expressions] for select in selects}
    names = {name for listed in outputs.values() for name in listed}
    for column in tree.find_all(exp.Column) if names - {None} else ():
        if not column.table and folded(column.this) in names:
            _check(column, columns_of, outputs)


def _check(column: exp.Column, columns_of: ColumnsOf, outputs: dict[int, list[str | None]]) -> None:
    name, is_output, is_taken = folded(column.this), False, False
    below: exp.Expr = column
    around = column.parent
    while around is not None:
        if isinstance(around, exp.Lambda) and any(folded(each) == name for each in around.expressions):
            return
        if isinstance(around, _WRITES) and not (isinstance(around, exp.Insert) and below.arg_key == "expression"):
            return
        if isinstance(around, exp.Select):
            if below.arg_key not in ("from_", "joins", "laterals", "with_"):
                if is_key(column, around):
                    return
                before = below.index if below.arg_key == "expressions" else None  # an output may name those before it
                named = name in outputs[id(around)][:before]
            else:
                named = False
            if may_have(name, around, columns_of):
                if is_taken:
                    message = f'column reference "{name}" names an output of its query, too'
                    hint = "Write the name of its table before it."
                    raise Error(message, errors.FEATURE_NOT_SUPPORTED, hint=hint, position=position_of(column))
                return
            is_output = is_output or named
            is_taken = is_taken or (named and below.arg_key not in ("order", "distinct"))
        below, around = around, around.parent
    if is_output:
        raise Error(f'column "{name}" does not exist', errors.UNDEFINED_COLUMN, position=position_of(column))


def _own_name(item: exp.Expr) -> str | None:
    """Return the name of an output, None for a column under its own name."""
    value, name = item.unalias(), output_name(item)
    return None if isinstance(value, exp.Column) and folded(value.this) == name else name


def is_key(column: exp.Column, select: exp.Select) -> bool:
    """Return whether a column is alone in ORDER BY, GROUP BY or DISTINCT ON of a query."""
    key: exp.Expr = column
    while isinstance(key.parent, exp.Paren | exp.Ordered):
        key = key.parent
    clause = key.parent
    if isinstance(clause, exp.Tuple) and isinstance(clause.parent, exp.Distinct):
        clause = clause.parent
    if isinstance(clause, exp.Rollup | exp.Cube | exp.GroupingSets | exp.Tuple):
        clause = clause.find_ancestor(exp.Group, exp.Select)
    return isinstance(clause, exp.Order | exp.Group | exp.Distinct) and clause.parent is select


def may_have(name: str, select: exp.Select, columns_of: ColumnsOf) -> bool:
    """Return whether the FROM of a query may have a column or table of a name."""
    from_ = select.args.get("from_")
    if from_ is None:
        return False
    found = columns_of_from(from_.this, select.args.get("joins") or [], columns_of)
    if select.args.get("laterals") or found is None or name == ROW_ID:
        return True
    return any(name in (column.name, column.table) for column in found)
