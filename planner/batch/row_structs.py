"""Rows in batch statements: DuckDB finds their types by itself, but not by PostgreSQL's rules.

A statement with rows is bound like a view's query, only for its types: those of rows are noted on the statement's own
tree, where `duckdb_spelling` reads them. So are the types of other values whose spelling depends on their types: of
intervals, times, reals and json and what is beside them, of the operands of `||`, of values that become jsonb, and of
the arguments of some functions. Statements that cannot be bound, such as those on system catalogs, keep DuckDB's types.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from sparkwave.catalog.errors import CANNOT_COERCE, Error
from sparkwave.catalog.model import Catalog, Relation
from sparkwave.catalog.names import literal
from sparkwave.catalog.types import INTEGER, INTERVAL, JSONB, REAL, TIME, TIMESTAMP, TIMESTAMPTZ, Type
from sparkwave.planner.batch.whole_queries import as_query
from sparkwave.planner.bind.binder import Scope, annotated, expand_rows, resolve
from sparkwave.planner.bind.lateral_types import annotate_with_laterals
from sparkwave.planner.functions.documents import makes_document
from sparkwave.planner.functions.duckdb_spelling import BESIDE_TEXTS, for_duckdb
from sparkwave.planner.functions.json_checks import check_json
from sparkwave.planner.functions.map_checks import check_maps
from sparkwave.planner.functions.operators import as_call
from sparkwave.planner.functions.result_types import Known, holds_json, holds_struct
from sparkwave.planner.functions.scalar_functions import FUNCTIONS
from sparkwave.planner.functions.structs import check_structs
from sparkwave.planner.functions.typed import data_type, sql_type
from sparkwave.planner.parse.row_values import is_row
from sparkwave.planner.parse.trees import name_of

_MARK = "statement_node"
# UNION is json.
_KINDS = (exp.DType.STRUCT, exp.DType.MAP, exp.DType.INTERVAL, exp.DType.TIME, exp.DType.FLOAT, exp.DType.UNION)
# Types that the engines compare and compute with in another way, also in arrays of json.
_OTHERWISE = (INTERVAL, TIME, REAL)
# The difference of two such is an interval.
_MOMENTS = (TIMESTAMP, TIMESTAMPTZ)


def _is_otherwise(type_: Known) -> bool:
    return type_ in _OTHERWISE or holds_json(type_)


def with_row_types(tree: exp.Expr, catalog: Catalog, scope: Scope) -> exp.Expr:
    """Return the statement with `(x).*` expanded and the types of its rows noted.

    Raises Error for invalid uses of rows.
    """
    if not _has_rows(tree, catalog, scope):
        return tree
    if isinstance(tree, exp.Query):
        tree = expand_rows(tree, catalog, scope)
    nodes = dict(enumerate(tree.walk()))
    for number, node in nodes.items():
        node.meta[_MARK] = number
    try:
        bound = annotated(as_query(tree), catalog, scope, annotate=annotate_with_laterals).tree
    except Error:
        return _with_documents(tree)
    check_structs(bound)
    check_json(bound)
    check_maps(bound)
    for part in bound.walk():
        type_ = sql_type(part.type) if _MARK in part.meta else None
        if type_ is not None and (holds_struct(type_) or type_.holds_map or any(is_noted(part) for is_noted in _NOTED)):
            nodes[part.meta[_MARK]].type = data_type(type_)
    return tree


def _is_beside(node: exp.Expr) -> bool:
    """Return whether a node is of a type that is spelled otherwise, or an operand beside one of such a type.

    A value that a cast makes a time or an interval counts, too.
    """
    if isinstance(node.parent, exp.Cast) and sql_type(node.parent.to) in (TIME, INTERVAL):
        return True
    around = node.parent.iter_expressions() if isinstance(node.parent, exp.Binary | exp.Between | exp.In) else ()
    return any(_is_otherwise(sql_type(part.type)) for part in (node, *around))


def _is_argument(node: exp.Expr) -> bool:
    """Return whether a node is an argument of a function whose spelling depends on its arguments' types."""
    return node.parent is not None and _reads_types(node.parent)


def _reads_types(node: exp.Expr) -> bool:
    call = as_call(node)
    return call is not None and FUNCTIONS[call[0]].reads_types


def _is_concatenated(node: exp.Expr) -> bool:
    """Return whether a node is `||` of arrays or jsonb, one of its sides, or beside a text and of a text of its own."""
    both = node if isinstance(node, exp.DPipe) else node.parent
    type_ = sql_type(both.type) if isinstance(both, exp.DPipe) else None
    is_beside = sql_type(node.type) in BESIDE_TEXTS
    return type_ is not None and (is_beside or type_ == JSONB or type_.dimensions > 0)


def _is_part(node: exp.Expr) -> bool:
    """Return whether a node becomes json or jsonb."""
    node = node.parent if isinstance(node.parent, exp.Order | exp.Distinct) else node
    return node.parent is not None and makes_document(node.parent)


def _is_contained(node: exp.Expr) -> bool:
    """Return whether a node is a side of `@>` or `<@`, which is spelled otherwise for jsonb."""
    return isinstance(node.parent, exp.ArrayContainsAll | exp.ArrayContainedBy)


_NOTED = (_is_beside, _is_concatenated, _is_part, _is_argument, _is_contained)


def _has_rows(tree: exp.Expr, catalog: Catalog, scope: Scope) -> bool:
    """Return whether a statement has values of which types are noted, or reads columns of their types."""
    has_moments = False
    for node in tree.walk():
        if isinstance(node, exp.DPipe | exp.Struct) or makes_document(node) or _reads_types(node):
            return True
        if _gives_otherwise(node) or _compares_contents(node):
            return True
        has_moments = has_moments or (isinstance(node, exp.DataType) and sql_type(node) in _MOMENTS)
        if is_row(node) or (isinstance(node, exp.DataType) and node.is_type(*_KINDS)) or isinstance(node, exp.Interval):
            return True
        if isinstance(node, exp.Dot) and isinstance(node.this, exp.Paren | exp.Dot | exp.Bracket):
            return True
    types = [column.type for relation in _relations(tree, catalog, scope) for column in relation.columns]
    if any(holds_struct(type_) or type_.holds_map or _is_otherwise(type_) for type_ in types):
        return True
    has_moments = has_moments or any(type_ in _MOMENTS for type_ in types)
    return has_moments and tree.find(exp.Sub) is not None


def _compares_contents(node: exp.Expr) -> bool:
    """Return whether a node is `@>` or `<@` without a constant."""
    if not isinstance(node, exp.ArrayContainsAll | exp.ArrayContainedBy):
        return False
    return not any(part.find(exp.Literal) for part in (node.this, node.expression))


def _gives_otherwise(node: exp.Expr) -> bool:
    call = as_call(node)
    result = FUNCTIONS[call[0]].result if call is not None else None
    return isinstance(result, Type) and _is_otherwise(result)


def _with_documents(tree: exp.Expr) -> exp.Expr:
    """Return a tree whose types are unknown, changed in place, in which parts are taken of json as of jsonb."""
    for node in list(tree.find_all(exp.JSONExtract, exp.JSONExtractScalar, exp.JSONBExtract, exp.JSONBExtractScalar)):
        node.set("this", exp.paren(exp.Anonymous(this="document", expressions=[node.this])))
    return tree


def _relations(tree: exp.Expr, catalog: Catalog, scope: Scope) -> Iterator[Relation]:
    for table in tree.find_all(exp.Table):
        if isinstance(table.this, exp.Identifier):
            try:
                yield resolve(catalog, scope, name_of(table), is_read=True)
            except Error:
                continue  # a CTE, or a name that is looked up later


def aligned(sql: str, sources: tuple[Type, ...], targets: tuple[Type, ...]) -> str:
    """Return DuckDB's text of a query's rows for a table's columns.

    Rows, and json, are cast by place where their types differ.
    """
    if not any(_is_cast(source, target) for source, target in zip(sources, targets, strict=False)):
        return sql
    names = [f"_{number}" for number in range(len(sources))]
    items = []
    for name, source, target in zip(names, sources, targets, strict=False):
        value: exp.Expr = exp.column(name)
        value.type = data_type(source)
        if not _is_cast(source, target):
            items.append(name)
        elif source.name == "integer" and source.dimensions and holds_json(target):  # an array of NULLs alone
            items.append(target.from_lake(f"CAST({name} AS VARCHAR{'[]' * source.dimensions})"))
        elif source == INTEGER:
            items.append(_null_or_fail(name, source, target))
        else:
            items.append(for_duckdb(exp.cast(value, data_type(target)), lenient=False).sql(dialect="duckdb"))
    return f"SELECT {', '.join(items)} FROM ({sql}) AS _source ({', '.join(names)})"


def _is_cast(source: Type, target: Type) -> bool:
    """Return whether a value needs another cast than DuckDB's own, which does not check the text of json."""
    return source != target and (holds_struct(target) or target.holds_map or holds_json(target) or holds_json(source))


def _null_or_fail(name: str, source: Type, target: Type) -> str:
    """Return DuckDB's text of a NULL, which has type integer there, as a struct; any other integer raises an error."""
    message = literal(f"cannot cast type {source} to {target.shown}")
    failed = f"memory.pg.raise('{CANNOT_COERCE}', {message})::VARCHAR"
    return f"CASE WHEN {name} IS NOT NULL THEN CAST({failed} AS {target.duckdb()}) END"
