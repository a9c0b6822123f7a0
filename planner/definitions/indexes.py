"""CREATE INDEX as a query: key columns, then included ones, of one relation, whose key goes along hidden.

The rules are RisingWave's (src/frontend/src/handler/create_index.rs).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.column_names import unescaped
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import Catalog, Column, Relation
from sparkwave.catalog.relation_details import Index, IndexKey, with_article
from sparkwave.planner import since
from sparkwave.planner.bind.binder import Scope, resolve_readable
from sparkwave.planner.bind.escapes import escape_relation
from sparkwave.planner.bind.output_names import NO_NAME, output_name
from sparkwave.planner.build.sort_keys import order_of
from sparkwave.planner.functions.unstable import mutable_call, unstable_call
from sparkwave.planner.parse.generated import columns_read, renamed
from sparkwave.planner.parse.identifiers import folded
from sparkwave.planner.parse.shown_text import shown_text
from sparkwave.planner.parse.trees import position_of
from sparkwave.planner.plan.nodes import Order
from sparkwave.planner.statements import CreateIndex, Name

_NOT_OF_A_ROW: dict[type[exp.Expr], tuple[str, str]] = {
    exp.Query: ("cannot use subquery in index predicate", errors.FEATURE_NOT_SUPPORTED),
    exp.Window: ("window functions are not allowed in index predicates", errors.WINDOWING_ERROR),
    exp.AggFunc: ("aggregate functions are not allowed in index predicates", errors.GROUPING_ERROR),
}


def indexed_relation(statement: CreateIndex, catalog: Catalog, scope: Scope) -> Relation:
    """Return the indexed relation.

    Raises Error 42P01, 42809 for one that stores no rows or is an index itself, 55000.
    """
    name = statement.table
    relation = resolve_readable(catalog, scope, name)
    if relation.is_index or relation.is_view:
        message = f'"{name.name}" is {with_article(relation.kind)}'
        raise Error(message, errors.WRONG_OBJECT_TYPE, position=name.position)
    return relation


def index_of(statement: CreateIndex, catalog: Catalog, scope: Scope) -> Index:
    """Return the key columns of an index; a repeated column counts once.

    Raises Error 42703, 42601 or 0A000, and the errors of `_condition`.
    """
    relation = indexed_relation(statement, catalog, scope)
    found: dict[str, IndexKey] = {}
    taken = {column.name for column in relation.visible}
    for key in statement.keys:
        source = _source(key.this, relation)
        if source not in found:
            is_expression = not isinstance(key.this, exp.Column)
            name = _free(output_name(key.this), taken) if is_expression else source
            taken.add(name)
            order = order_of(name, key)
            found[source] = IndexKey(name, source, is_expression, order.descending, order.nulls_first)
    distributed = list(dict.fromkeys(_source(part, relation) for part in statement.distributed_by))
    if distributed != list(found)[: len(distributed)]:
        raise Error(
            "Distributed by columns should be a prefix of index columns",
            errors.INVALID_OBJECT_DEFINITION,
            position=position_of(statement.distributed_by[0]),
        )
    condition = _condition(statement.where, relation) if statement.where is not None else ""
    return Index(tuple(found.values()), len(distributed) or 1, not statement.include, statement.is_unique, condition)


def index_query(
    statement: CreateIndex, index: Index, catalog: Catalog, scope: Scope, made: Relation | None = None
) -> exp.Query:
    """Return the query of an index's rows. `made` is the stored index, if there is one."""
    relation = indexed_relation(statement, catalog, scope)
    table = _table(statement.table)
    keyed = {key.name for key in index.keys}
    if made is not None:
        table.set("alias", exp.TableAlias(this=exp.to_identifier(first_name(relation, made), quoted=True)))
        included = [column.name for column in made.visible[len(index.keys) :]]
    elif statement.include:
        included = [_column(relation, name, position).name for name, position in statement.include]
    else:
        included = [column.name for column in relation.visible]
    trees = {_source(key.this, relation): key.this for key in statement.keys}
    items: list[exp.Expr] = [exp.alias_(trees[key.source].copy(), key.name, quoted=True) for key in index.keys]
    items += [_reference(name) for name in dict.fromkeys(included) if name not in keyed]
    query = exp.select(*items).from_(table)
    return query.where(statement.where.copy()) if statement.where is not None else query


def first_name(relation: Relation, made: Relation) -> str:
    """Return the name that a relation had when its only reader `made` was made; hidden keys have this name."""
    known = escape_relation(relation) if made.planner >= since.ESCAPED_NAMES else relation
    hidden = (column.lake_name for column in made.columns if column.is_hidden)
    names = (name.removesuffix(f".{key}") for name in hidden for key in known.key if name.endswith(f".{key}"))
    found = next(names, None)
    if found is None:
        return relation.name
    return unescaped(found) if made.planner >= since.ESCAPED_NAMES else found


def with_names(index: Index, names: Mapping[str, str]) -> Index:
    """Return an index after columns of its relation were renamed."""
    changed = {old: new for old, new in names.items() if old != new}
    keys = (replace(k, source=renamed(k.source, changed)) if k.is_expression and changed else k for k in index.keys)
    condition = renamed(index.condition, changed) if index.condition and changed else index.condition
    return replace(index, keys=tuple(keys), condition=condition)


def has_beside_keys(index: Relation, table: Relation, column: Column) -> bool:
    """Return whether an index has a column of its table only because it has all: neither keys nor condition read it."""
    details, known = index.index, {each.name: each.lake_name for each in table.as_of(index.definition_id).columns}
    now = {each.name: each.lake_name for each in table.columns}
    read = {now.get(name) for key in details.keys if key.is_expression for name in columns_read(key.source)}
    read |= {now.get(name) for name in columns_read(details.condition)} if details.condition else set()
    read |= {known.get(key.source) for key in details.keys if not key.is_expression}
    if not details.includes_all:
        read |= {known.get(each.name) for each in index.visible[len(details.keys) :]}
    return column.lake_name not in read


def clustering(index: Index) -> tuple[Order, ...]:
    """Return the order of an index's rows."""
    return tuple(Order(key.name, key.descending, key.nulls_first) for key in index.keys)


def _source(node: exp.Expr, relation: Relation) -> str:
    """Return the column of a key, or the text of an expression over columns. Raises Error 42703 or 0A000."""
    for column in node.find_all(exp.Column):
        if column.table:
            message = "a column of an index is named without its table"
            raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=position_of(column))
        _column(relation, folded(column.this), position_of(column))
    if isinstance(node, exp.Column):
        return folded(node.this)
    if isinstance(node, exp.Query | exp.Subquery) or node.find(exp.Column) is None:
        raise Error(
            "index columns should be columns or expressions",
            errors.FEATURE_NOT_SUPPORTED,
            hint="use columns or expressions instead",
            position=position_of(node),
        )
    return shown_text(node)


def _condition(node: exp.Expr, relation: Relation) -> str:
    """Return the text of a condition over a row. Raises Error 42703, 0A000, 42803, 42P17 or 42P20."""
    for kind, (message, sqlstate) in _NOT_OF_A_ROW.items():
        if node.find(kind) is not None:
            raise Error(message, sqlstate, position=position_of(node))
    for column in node.find_all(exp.Column):
        if column.table:
            message = "a column of an index is named without its table"
            raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=position_of(column))
        _column(relation, folded(column.this), position_of(column))
    if (unstable_call(node) or mutable_call(node)) is not None:
        message = "functions in index predicate must be marked IMMUTABLE"
        raise Error(message, errors.INVALID_OBJECT_DEFINITION, position=position_of(node))
    return shown_text(node)


def _column(relation: Relation, name: str, position: int | None) -> Column:
    column = next((column for column in relation.visible if column.name == name), None)
    if column is None:
        raise Error(f'column "{name}" does not exist', errors.UNDEFINED_COLUMN, position=position)
    return column


def _reference(name: str) -> exp.Column:
    return exp.column(exp.to_identifier(name, quoted=True))


def _table(name: Name) -> exp.Table:
    table = exp.table_(name.name, db=name.schema, catalog=name.database, quoted=True)
    table.this.meta.update(start=name.position - 1, end=name.position - 1)
    return table


def _free(name: str, taken: set[str]) -> str:
    """Return the name of an expression as PostgreSQL makes it: with a number appended if it is taken."""
    stem = "expr" if name == NO_NAME else name
    found, number = stem, 0
    while found in taken:
        number += 1
        found = f"{stem}{number}"
    return found
