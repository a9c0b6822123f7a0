"""CTEs that change rows: `WITH w AS (DELETE … RETURNING …) SELECT …` (PostgreSQL documentation 7.8.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.parse.identifiers import folded
from sparkwave.planner.parse.trees import unsupported
from sparkwave.planner.parse.writes import write_of
from sparkwave.planner.statements import Delete, Insert, Merge, Query, Update, WithWrites, WrittenRows


def with_writes(tree: exp.Expr, main_of: Callable[[exp.Expr], object]) -> WithWrites | None:
    """Return the statement of a tree whose WITH changes rows, None for any other. The tree keeps its other CTEs.

    `main_of` makes the statement of the rest. Raises Error 0A000 for MERGE, 42601 for a write deeper in the tree.
    """
    with_ = tree.args.get("with_")
    ctes = list(with_.expressions) if with_ is not None else []
    writing = [cte for cte in ctes if isinstance(cte.this, exp.DML)]
    if not writing:
        return None
    names = {folded(cte.args["alias"].this) for cte in writing}
    plain = [cte for cte in ctes if not isinstance(cte.this, exp.DML)]
    writes = []
    for cte in writing:
        before = [
            each.copy() for each in plain if (each.index or 0) < (cte.index or 0) and not names & _read(each.this)
        ]
        named = {folded(each.args["alias"].this) for each in before}
        if before and named & _read(cte.this):
            cte.this.set("with_", exp.With(expressions=before))
        statement = write_of(cte.this)
        if not isinstance(statement, Insert | Update | Delete):
            raise unsupported(f"{cte.this.key.upper()} in WITH", cte)
        alias = cte.args["alias"]
        writes.append(WrittenRows(folded(alias.this), tuple(map(folded, alias.columns)), statement))
    for write in writes:
        reader = next((cte for cte in ctes if write.name in _read(cte.this)), None) or tree
        if not write.statement.returning and write.name in _read(reader):
            message = f'WITH query "{write.name}" does not have a RETURNING clause'
            raise Error(message, errors.FEATURE_NOT_SUPPORTED)
    tree.set("with_", exp.With(expressions=plain) if plain else None)
    main = main_of(tree)
    if isinstance(main, Merge) or not isinstance(main, Query | Insert | Update | Delete):
        raise unsupported("this statement after a WITH that changes rows", tree)
    return WithWrites(tuple(writes), main)


def _read(tree: exp.Expr) -> set[str]:
    tables: Iterable[exp.Table] = tree.find_all(exp.Table)
    return {folded(table.this) for table in tables if isinstance(table.this, exp.Identifier) and not table.db}
