"""Types of a statement whose LATERAL subqueries, VALUES and set operations give columns types, unlike sqlglot's.

Plans of definitions do without: they give the columns of a built subquery their types (`binder.retype`).
"""

from __future__ import annotations

from typing import Any, TypeVar

from sqlglot import exp
from sqlglot.optimizer.annotate_types import TypeAnnotator
from sqlglot.optimizer.scope import Scope
from sqlglot.schema import MappingSchema

from sparkwave.planner.functions.result_types import common
from sparkwave.planner.functions.typed import data_type, sql_type

E = TypeVar("E", bound=exp.Expr)


class _Annotator(TypeAnnotator):
    def _get_source_scope_selects(self, source: Scope) -> dict[str, exp.DataType | exp.DType]:
        lateral = source.expression
        if not isinstance(lateral, exp.Lateral) or not isinstance(lateral.this, exp.Subquery):
            return super()._get_source_scope_selects(source)
        query = lateral.this.unnest()
        selects = query.selects if isinstance(query, exp.Query) else []
        given = lateral.alias_column_names
        names = [*given, *(select.alias_or_name for select in selects[len(given) :])]
        return {name: select.type for name, select in zip(names, selects, strict=False) if select.type is not None}

    def _maybe_coerce(self, type1: exp.DataType | exp.DType, type2: exp.DataType | exp.DType) -> Any:
        """Return the common type of two values of a column: a float and a numeric have the float's."""
        found = [sql_type(exp.DataType.build(type_)) for type_ in (type1, type2)]
        wider = common(tuple(found)) if None not in found else None
        return data_type(wider) if wider is not None else super()._maybe_coerce(type1, type2)


def annotate_with_laterals(tree: E, schema: MappingSchema, metadata: dict[type[exp.Expr], Any]) -> E:
    """Annotate types as sqlglot's `annotate_types` does, also those of LATERAL subqueries' columns."""
    return _Annotator(schema=schema, expression_metadata=metadata).annotate(tree)
