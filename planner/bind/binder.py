"""Resolves the names, stars and types of a query against a catalog, by sqlglot's qualify and annotate_types."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlglot import exp
from sqlglot.errors import OptimizeError, SchemaError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import traverse_scope
from sqlglot.schema import MappingSchema

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error, not_found
from sparkwave.catalog.model import ROW_ID, RW_TIMESTAMP, Catalog, Column, Relation, has_row_id
from sparkwave.catalog.types import TIMESTAMPTZ, Type
from sparkwave.planner import since
from sparkwave.planner.bind.ambiguous import bare_columns, check_unambiguous
from sparkwave.planner.bind.collations import check_collated, without_collations
from sparkwave.planner.bind.column_hints import column_hint
from sparkwave.planner.bind.cte_columns import check_named_columns
from sparkwave.planner.bind.dependent_columns import group_by_dependents
from sparkwave.planner.bind.grouped_queries import with_grouped_queries
from sparkwave.planner.bind.merged_columns import (
    ColumnsOf,
    check_left_out,
    columns_in,
    compare_merged,
    expand_natural,
    mark_merges,
)
from sparkwave.planner.bind.named_twice import check_named_once
from sparkwave.planner.bind.output_names import name_selects, without_written_names
from sparkwave.planner.bind.output_references import check_outputs_named
from sparkwave.planner.bind.row_stars import expand_row_stars
from sparkwave.planner.bind.scopes import Scope, check_database, find, resolve, scope_of
from sparkwave.planner.bind.session_rows import with_session_rows
from sparkwave.planner.bind.sort_columns import qualify_sort_columns, without_positions
from sparkwave.planner.bind.sql_functions import with_functions
from sparkwave.planner.bind.table_references import resolve_references
from sparkwave.planner.bind.typed_rows import with_typed_rows
from sparkwave.planner.bind.user_types import with_user_types
from sparkwave.planner.bind.views import keep_arguments, reference
from sparkwave.planner.build.handled import check_handled
from sparkwave.planner.build.time_windows import is_temporal, prepare_from
from sparkwave.planner.functions.aggregates import OF_FLOATS, SPREADS, is_aggregate
from sparkwave.planner.functions.deep_casts import array_casts, deepen
from sparkwave.planner.functions.flat_unnest import flat_arrays, flatten, without_flat_unnests
from sparkwave.planner.functions.json_checks import check_json
from sparkwave.planner.functions.map_checks import check_maps
from sparkwave.planner.functions.operators import (
    INEXACT,
    METADATA,
    as_call,
    check_subscripts,
    is_known,
    with_document_subscripts,
)
from sparkwave.planner.functions.structs import check_structs
from sparkwave.planner.functions.typed import data_type, sql_type, with_written_numerics
from sparkwave.planner.functions.undefined import check_counts, miscounted, undefined_call
from sparkwave.planner.functions.unstable import check_stable
from sparkwave.planner.functions.written_json import with_json
from sparkwave.planner.parse.constant_runs import expanded
from sparkwave.planner.parse.from_items import from_items
from sparkwave.planner.parse.identifiers import folded
from sparkwave.planner.parse.set_returning import ROW_FUNCTIONS, with_numbered_series
from sparkwave.planner.parse.strict import check_joins
from sparkwave.planner.parse.trees import is_cte, name_of, position_of, source_names
from sparkwave.planner.parse.type_text import ENGINES_OWN, user_type, user_type_name
from sparkwave.planner.statements import Name

Check = Callable[[exp.Expr], None]

__all__ = [
    "BoundQuery",
    "Scope",
    "bind",
    "check_database",
    "data_type",
    "find",
    "resolve",
    "resolve_readable",
    "scope_of",
    "type_of",
]


def resolve_readable(catalog: Catalog, scope: Scope, name: Name) -> Relation:
    """Resolve the name of a relation that can be read: no sink, no subscription, and not one that is being created."""
    relation = resolve(catalog, scope, name, is_read=True)
    if relation.is_sink or relation.is_subscription:
        raise not_found("relation", str(name), position=name.position)
    if not relation.created:
        raise Error(
            f'{relation.kind} "{name}" is still being created',
            errors.NOT_IN_PREREQUISITE_STATE,
            detail="SHOW JOBS and rw_catalog.rw_backfill_status tell how far it is.",
            hint=f"WAIT {relation.kind.upper()} {name} waits for it.",
            position=name.position,
        )
    return relation


@dataclass(frozen=True)
class BoundQuery:
    """A qualified and typed tree. `tables` maps its table names to relations."""

    tree: exp.Query
    tables: dict[str, Relation]


def bind(query: exp.Query, catalog: Catalog, scope: Scope) -> BoundQuery:
    """Qualify and type a query over user relations. Raises Error 0A000 for syntax that no plan has."""
    bound = annotated(expand_rows(query, catalog, scope), catalog, scope, check_handled)
    check_structs(bound.tree)
    check_maps(bound.tree)
    check_json(bound.tree)
    for cast in bound.tree.find_all(exp.Cast):
        named = user_type_name(cast.to)
        if named is not None and named.name in ENGINES_OWN and user_type(cast.to) is None:
            message = f'type "{named.name}" does not exist'
            raise Error(message, errors.UNDEFINED_OBJECT, position=position_of(cast.to))
    return bound


def expand_rows(query: exp.Query, catalog: Catalog, scope: Scope) -> exp.Query:
    """Return the query with a row's fields in place of `(x).*`. Raises Error 42809 where x is no row."""
    if next(_row_stars(query), None) is None:
        return query
    query = query.copy()
    for number, star in enumerate(_row_stars(query)):
        star.meta[_STAR] = number
    typed = query.copy()
    without_positions(typed)
    for star in _row_stars(typed):
        star.replace(_marked(star))
    found = {
        part.meta[_STAR]: sql_type(part.type)
        for part in annotated(typed, catalog, scope).tree.walk()
        if _STAR in part.meta
    }
    for star in _row_stars(query):
        row = found.get(star.meta[_STAR])
        if row is None or not row.is_struct:
            raise Error(
                f"type {row or 'unknown'} is not composite", errors.WRONG_OBJECT_TYPE, position=position_of(star)
            )
        fields = [
            exp.Dot(this=star.this.copy(), expression=exp.to_identifier(name, quoted=True)) for name, _ in row.fields
        ]
        select = star.parent
        assert isinstance(select, exp.Select)
        listed = [item for each in select.expressions for item in (fields if each is star else [each])]
        select.set("expressions", listed)
    return query


_STAR = "row_star"


def _row_stars(query: exp.Expr) -> Iterator[exp.Dot]:
    """Return each `(x).*` in select lists."""
    for dot in list(query.find_all(exp.Dot)):
        if isinstance(dot.expression, exp.Star):
            if not isinstance(dot.parent, exp.Select):
                raise Error(
                    "row expansion via * is not supported here", errors.FEATURE_NOT_SUPPORTED, position=position_of(dot)
                )
            yield dot


def _marked(star: exp.Dot) -> exp.Expr:
    """Return the row of a star, to be typed."""
    row = exp.Paren(this=star.this.copy())
    row.meta[_STAR] = star.meta[_STAR]
    return row


def _annotate(tree: exp.Query, schema: MappingSchema, metadata: dict[type[exp.Expr], Any]) -> exp.Query:
    return annotate_types(tree, schema=schema, expression_metadata=metadata, dialect="postgres")


def annotated(
    query: exp.Query,
    catalog: Catalog,
    scope: Scope,
    check: Check = lambda query: None,
    annotate: Callable[[exp.Query, MappingSchema, dict[type[exp.Expr], Any]], exp.Query] = _annotate,
) -> BoundQuery:
    """Bind without expanding rows. `check` gets the query, and that of each view that it reads, as written."""
    query, columns_of = _with_folded_ctes(query.copy()), columns_in(catalog, scope)
    if not scope.is_stored:
        check_left_out(query, columns_of)
        check_joins(query)
        check_named_columns(query)
        check_outputs_named(query, columns_of)
        check_named_once(query, columns_of)
    expand_row_stars(query, columns_of)
    expand_natural(query, columns_of)
    if scope.planner < since.WRITTEN_NAMES:
        without_written_names(query)
    name_selects(query)
    with_session_rows(query, columns_of)
    with_typed_rows(query, catalog, scope)
    with_numbered_series(query)
    without_collations(query)
    query = with_functions(query, catalog, scope)
    if scope.planner >= since.DEPENDENT_COLUMNS:
        group_by_dependents(query, catalog, scope)
    has_exact_numerics = scope.planner >= since.EXACT_NUMERICS
    with_written_numerics(query, has_exact_numerics, scope.planner >= since.NUMERIC_EXPONENTS)
    with_json(query, scope.planner >= since.JSON_APART)
    with_user_types(query, catalog, scope)
    if scope.planner < since.FLAT_UNNESTS:
        without_flat_unnests(query)
    if miscounted(query) is None:
        check(query)
    tree = prepare_from(resolve_references(query, catalog, scope))
    tables: dict[str, Relation] = {}
    ctes = frozenset(cte.alias for cte in tree.find_all(exp.CTE))
    _resolve_tables(tree, catalog, scope, tables, ctes, check)
    expanded(tree)
    if scope.planner < since.EXACT_AVERAGES:
        for call in tree.find_all(exp.Avg):
            call.meta[OF_FLOATS] = True
    if not has_exact_numerics:
        for quotient in tree.find_all(exp.Div):
            quotient.meta[INEXACT] = True
    if scope.planner < since.EXACT_FUNCTIONS:
        for spread in tree.find_all(*SPREADS):
            spread.meta[OF_FLOATS] = True
        for node in tree.walk():
            if as_call(node) is not None:
                node.meta[INEXACT] = True
    schema = _schema(tables)
    with_grouped_queries(tree)
    mark_merges(tree)
    bare = bare_columns(tree)
    if any(map(_has_unknown_columns, tree.find_all(exp.Table, exp.Lateral))):
        without_positions(tree)
    try:
        tree = qualify(tree, schema=schema, dialect="postgres")
        if not scope.is_stored:
            check_unambiguous(tree, schema, bare)
        qualify_sort_columns(tree, schema)
        compare_merged(tree)
        tree = annotate(tree, schema, METADATA)
        while _with_dimensions(tree):
            tree = annotate(tree, schema, METADATA)
    except (OptimizeError, SchemaError) as error:
        raise _qualify_error(str(error), query, tables, columns_of) from error
    assert isinstance(tree, exp.Query)
    check_collated(tree)
    check_counts(tree, lambda whole, nodes: list(nodes))
    _make_aliases_unique(tree)
    return BoundQuery(tree, tables)


def _with_folded_ctes(query: exp.Query) -> exp.Query:
    """Return the query, changed in place, in which a CTE whose name is written in several ways has it in lower case.

    sqlglot compares the names as they are written. A name that is written in one way stays.
    """
    named = [cte.args["alias"].this for cte in query.find_all(exp.CTE)]
    tables = query.find_all(exp.Table) if named else ()
    named += [table.this for table in tables if isinstance(table.this, exp.Identifier) and is_cte(table)]
    written: dict[str, set[str]] = {}
    for identifier in named:
        written.setdefault(folded(identifier), set()).add(identifier.name)
    for identifier in named:
        if len(written[folded(identifier)]) > 1:
            identifier.set("this", folded(identifier))
    return query


def _with_dimensions(tree: exp.Expr) -> bool:
    """Let casts keep the dimensions of arrays, and unnest and the like read all elements.

    Returns whether types may have changed.
    """
    deepened = deepen([(cast, cast.this) for cast in array_casts(tree)])
    deepened |= with_document_subscripts([(node, node) for node in reversed(list(tree.find_all(exp.Bracket)))])
    return flatten([(array, array) for array in flat_arrays(tree, lambda tree, nodes: nodes)]) or deepened


def _has_unknown_columns(source: exp.Expr) -> bool:
    """Return whether a source in FROM is a function that no plan reads, which is refused when names are resolved."""
    return isinstance(source.this, exp.Func) and not isinstance(source.this, ROW_FUNCTIONS)


def _schema(tables: Mapping[str, Relation]) -> MappingSchema:
    columns: dict[str, object] = {
        unique: {c.name: data_type(c.type) for c in relation.visible + hidden_columns(relation)}
        for unique, relation in tables.items()
    }
    in_stars: dict[str, object] = {unique: [c.name for c in relation.visible] for unique, relation in tables.items()}
    return MappingSchema(columns, visible=in_stars, dialect="postgres", normalize=False)


def hidden_columns(relation: Relation) -> tuple[Column, ...]:
    """Return the columns that a query may name and `*` omits."""
    row_id = tuple(column for column in relation.columns if has_row_id(relation) and column.name == ROW_ID)
    return (*row_id, Column(RW_TIMESTAMP, TIMESTAMPTZ, is_hidden=True)) if relation.is_table else row_id


def check_streamed(bound: BoundQuery) -> None:
    """Raise Error 0A000 for a query of which no view can be kept up to date: one of the times of commits."""
    if all(column.name != RW_TIMESTAMP for column in bound.tree.find_all(exp.Column)):
        return
    for scope in traverse_scope(bound.tree):
        for column in scope.columns:
            source = scope.sources.get(column.table)
            if column.name == RW_TIMESTAMP and isinstance(source, exp.Table) and source.name in bound.tables:
                message = f"selecting `{RW_TIMESTAMP}` in a streaming query is not allowed"
                raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=position_of(column))


def check_own_aggregates(bound: BoundQuery) -> None:
    """Raise Error 0A000 for an aggregate in a subquery over columns of queries around alone, which is theirs."""
    for select in bound.tree.find_all(exp.Select):
        if select.parent is None:
            continue
        own = {source.alias_or_name for source in (*from_items(select), *(select.args.get("laterals") or ()))}
        for node in select.walk():
            if not is_aggregate(node) or node.find_ancestor(exp.Select) is not select:
                continue
            tables = {column.table for column in node.find_all(exp.Column)}
            if tables and "" not in tables and not tables & own and node.find(exp.Select) is None:
                message = "an aggregate of the query around in a subquery is not supported in a materialized view"
                raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=position_of(node))


def annotate_again(bound: BoundQuery) -> None:
    """Type a query again after the types of some parts have changed."""
    annotate_types(bound.tree, schema=_schema(bound.tables), expression_metadata=METADATA, dialect="postgres")


def _resolve_tables(
    tree: exp.Query, catalog: Catalog, scope: Scope, tables: dict[str, Relation], taken: frozenset[str], check: Check
) -> None:
    """Rename the tables to `r<id>` of their relations, unless this is taken, and inline the views. Fills `tables`.

    For a view made before a table was altered, the old form of the table has another name.
    """
    for table in _base_tables(tree):
        relation = resolve_readable(catalog, scope, name_of(table))
        if relation.is_view:
            if is_temporal(table) and since.is_since(since.TEMPORAL_VIEWS):
                message = f'a temporal join with the view "{relation.name}" is not supported'
                hint = "Make it a materialized view, or join the table that it reads."
                raise Error(message, errors.FEATURE_NOT_SUPPORTED, hint=hint, position=position_of(table))
            subquery = reference(relation, table, catalog)
            without_collations(subquery)
            check(subquery.this)
            _resolve_tables(subquery.this, catalog, scope_of(relation), tables, taken, check)
            table.replace(subquery)
            continue
        unique = f"r{relation.id}"
        if relation is not catalog.by_id[relation.id]:
            unique += f"v{scope.as_of}"
        while unique in taken:
            unique += "_"
        tables[unique] = relation
        if not table.alias:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(folded(table.this), quoted=True)))
        elif table.args["alias"].columns:
            table = _renamed(table, relation)
        renamed = exp.to_identifier(unique, quoted=True)
        renamed.meta.update(table.this.meta)
        table.set("this", renamed)
        table.set("db", None)
        table.set("catalog", None)


def _renamed(table: exp.Table, relation: Relation) -> exp.Table:
    """Return the table in a subquery that gives its columns the names in its alias."""
    if is_temporal(table):
        what = "a temporal join with other names for columns"
        raise Error(f"{what} is not supported", errors.FEATURE_NOT_SUPPORTED, position=position_of(table))
    alias = table.args["alias"]
    given = [identifier.copy() for identifier in alias.columns]
    if len(given) > len(relation.visible):
        message = (
            f'table "{alias.name}" has {len(relation.visible)} columns available but {len(given)} columns specified'
        )
        raise Error(message, errors.INVALID_COLUMN_REFERENCE, position=position_of(table))
    rest = [exp.to_identifier(column.name, quoted=True) for column in relation.visible[len(given) :]]
    inner = exp.Table(this=table.this, alias=exp.TableAlias(this=alias.this.copy()))
    subquery = exp.select("*").from_(inner).subquery(copy=False)
    subquery.set("alias", exp.TableAlias(this=alias.this.copy(), columns=[*given, *rest]))
    keep_arguments(table, subquery)
    table.replace(subquery)
    return inner


def _make_aliases_unique(tree: exp.Query) -> None:
    """Give each table and subquery a unique alias in the whole query, so that flat field names never clash."""
    seen: set[str] = set()
    for scope in traverse_scope(tree):
        for name, (node, _) in list(scope.selected_sources.items()):
            unique = name
            while unique in seen:
                unique += "_"
            seen.add(unique)
            if unique != name:
                holder: exp.Expr = node  # for a subquery sqlglot returns the query in it
                while holder.alias != name and holder.parent is not None:
                    holder = holder.parent
                holder.args["alias"].set("this", exp.to_identifier(unique, quoted=True))
                for column in scope.columns:
                    if column.table == name:
                        column.set("table", exp.to_identifier(unique, quoted=True))


def _base_tables(tree: exp.Expr) -> list[exp.Table]:
    """Return the tables that are not references to a CTE of an enclosing query."""
    found: list[exp.Table] = []
    for scope in traverse_scope(tree):
        sources = (source for source in scope.sources.values() if isinstance(source, exp.Table))
        found += [source for source in sources if isinstance(source.this, exp.Identifier)]
    return list({id(table): table for table in found}.values())


def untold(node: exp.Expr) -> bool:
    """Return whether the type of an annotated expression is unknown."""
    return sql_type(node.type) is None


def retype(select: exp.Expr, types: Mapping[str, Type]) -> None:
    """Give the columns `table.name` of a query or function new types, and type the expressions over them again."""
    changed = False
    for column in select.find_all(exp.Column):
        found = types.get(f"{column.table}.{column.name}")
        if found is None or sql_type(column.type) == found:
            continue
        changed = True
        column.type = data_type(found)
        node = column.parent
        while node is not None and node is not select:
            node.type = None
            node = node.parent
    if changed:
        # A cast always has a type, so that sqlglot does not look below it.
        casts = reversed(list(select.find_all(exp.Cast)))
        queries = reversed(list(select.find_all(exp.Subquery)))  # whose sources it looks up only at the top
        for part in [*(cast.this for cast in casts), *queries, *select.iter_expressions()]:
            annotate_types(part, expression_metadata=METADATA, dialect="postgres", overwrite_types=False)


def type_of(node: exp.Expr) -> Type:
    """Return the type of an annotated expression; a lone string literal is varchar. Raises Error 42804 if unknown."""
    found = sql_type(node.this.type if isinstance(node, exp.Alias) else node.type)
    if found is None:
        check_functions(node)
        check_subscripts(node.find_all(exp.Bracket))
        for cast in node.find_all(exp.Cast):
            named = user_type_name(cast.to)
            if named is not None:
                raise Error(
                    f'type "{named.name}" does not exist', errors.UNDEFINED_OBJECT, position=position_of(cast.to)
                )
        raise Error(
            f"cannot tell the type of {node.sql(dialect='postgres')}",
            errors.DATATYPE_MISMATCH,
            hint="Add a cast.",
            position=position_of(node),
        )
    return found


def check_functions(node: exp.Expr) -> None:
    """Raise Error 42883 when an expression calls an unknown function, 0A000 for one that no view can have."""
    unknown = next((call for call in node.find_all(exp.Anonymous) if not is_known(call)), None)
    if unknown is not None:
        check_stable(unknown)
        error = undefined_call(unknown)
        error.hint = "No function of this name can be used in a materialized view."
        raise error


_NO_OUTPUT = re.compile(r"Unknown output column: (\d+)")
_UNRESOLVED = re.compile(r"Column '\"?(.+?)\"?' could not be resolved|Unknown column: (\w+)")


def _qualify_error(text: str, query: exp.Query, tables: dict[str, Relation], columns_of: ColumnsOf) -> Error:
    """Return sqlglot's error in PostgreSQL's words; a column that several tables have is called ambiguous."""
    unresolved = _UNRESOLVED.search(text)
    if (place := _NO_OUTPUT.search(text)) is not None:
        return Error(f"position {place[1]} is not in select list", errors.INVALID_COLUMN_REFERENCE)
    if unresolved is None:
        return Error(text.split(". Line")[0], errors.SYNTAX_ERROR)
    name = unresolved[1] or unresolved[2]
    columns = [column for column in query.find_all(exp.Column) if column.name.lower() == name.lower()]
    is_bare = unresolved[1] is not None
    column = next((column for column in columns if bool(column.table) != is_bare), columns[0] if columns else None)
    position = position_of(column) if column is not None else None
    if column is not None and column.table:
        if column.table.lower() not in map(str.lower, source_names(query)):
            message = f'missing FROM-clause entry for table "{column.table}"'
            return Error(message, errors.UNDEFINED_TABLE, position=position)
        message, hint = f"column {column.table}.{name} does not exist", column_hint(column, columns_of)
        return Error(message, errors.UNDEFINED_COLUMN, hint=hint, position=position)
    owners = {relation.name for relation in tables.values() if any(c.name == name for c in relation.visible)}
    select = column.find_ancestor(exp.Select) if column is not None else None
    read = [source for source in from_items(select) if source.name in owners] if select is not None else []
    if column is not None and max(len(owners), len(read)) > 1:
        return Error(f'column reference "{name}" is ambiguous', errors.AMBIGUOUS_COLUMN, position=position)
    hint = column_hint(column, columns_of) if column is not None else None
    return Error(f'column "{name}" does not exist', errors.UNDEFINED_COLUMN, hint=hint, position=position)
