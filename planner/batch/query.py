"""Plans batch statements for DuckDB: names become those of the lake, and PostgreSQL's functions Sparkwave's."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import sqlglot
from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.column_names import check_distinct, fold_case
from sparkwave.catalog.commit_times import TIME, rows_with_times
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import (
    INTERNAL_TABLE,
    NO_COLUMN,
    ROW_ID,
    RW_TIMESTAMP,
    Catalog,
    Column,
    Relation,
    has_row_id,
    lacks_columns,
)
from sparkwave.catalog.names import BUFFER, COPIES, PLACES, ROW, VIEWS_SCHEMA, LakeTable, name_in_memory
from sparkwave.catalog.relation_details import SEQUENCE
from sparkwave.catalog.types import TEXT, Type, type_of_oid
from sparkwave.catalog.users import User
from sparkwave.planner.batch import pg_compat
from sparkwave.planner.batch.accepted import check_statement
from sparkwave.planner.batch.aggregate_arguments import with_typed_aggregates
from sparkwave.planner.batch.averages import with_averages
from sparkwave.planner.batch.cast_rows import with_cast_rows
from sparkwave.planner.batch.column_privileges import columns_read
from sparkwave.planner.batch.constants import constant_parameters, with_constants
from sparkwave.planner.batch.correlated import with_outer_columns
from sparkwave.planner.batch.declared_checks import check_declared, without_texts
from sparkwave.planner.batch.differences import with_differences
from sparkwave.planner.batch.distinct_checks import check_distinct_orders
from sparkwave.planner.batch.document_casts import mark_casts
from sparkwave.planner.batch.exact_names import check_exact_names
from sparkwave.planner.batch.grouping import expand_grouping
from sparkwave.planner.batch.hashed_lists import hash_lists
from sparkwave.planner.batch.index_selection import select_indexes
from sparkwave.planner.batch.named_values import name_values, named_query
from sparkwave.planner.batch.operand_checks import check_operands
from sparkwave.planner.batch.origins import Origin, origins
from sparkwave.planner.batch.parameters import infer_parameters, parameter_number
from sparkwave.planner.batch.pg_names import system_names, system_schema
from sparkwave.planner.batch.qualifiers import check_qualifiers
from sparkwave.planner.batch.row_functions import (
    expand_around_rows,
    expand_calls,
    expand_unnests,
    is_single_value,
    with_series_of_parameters,
)
from sparkwave.planner.batch.row_in_query import expand_row_in_query
from sparkwave.planner.batch.row_structs import with_row_types
from sparkwave.planner.batch.sequence_calls import NO_DRAWS, Draws, with_sequences
from sparkwave.planner.batch.series_types import with_series_of_columns
from sparkwave.planner.batch.serving import RELATION, Served, find_lookup, over_copies
from sparkwave.planner.batch.system_types import system_type
from sparkwave.planner.batch.ties import expand_ties
from sparkwave.planner.batch.time_travel import SNAPSHOT, at_versions
from sparkwave.planner.batch.typer import Columns, NameTables, Typer, name_apart, types_in
from sparkwave.planner.bind.binder import (
    Scope,
    check_database,
    data_type,
    find,
    hidden_columns,
    resolve_readable,
    scope_of,
)
from sparkwave.planner.bind.collations import check_text, operand_of, position_of_collation
from sparkwave.planner.bind.comparison_keys import compare_by_keys, may_need_keys
from sparkwave.planner.bind.cte_columns import check_named_columns
from sparkwave.planner.bind.dependent_columns import group_by_dependents
from sparkwave.planner.bind.function_queries import is_source
from sparkwave.planner.bind.merged_columns import columns_in, expand_natural, expand_stars
from sparkwave.planner.bind.named_twice import check_named_once
from sparkwave.planner.bind.nearest_floats import as_floats, long_constants, may_make_floats, with_nearest_floats
from sparkwave.planner.bind.output_names import name_outputs
from sparkwave.planner.bind.output_references import check_outputs_named
from sparkwave.planner.bind.privileges import check, check_relation, holds, holds_any, permission_denied
from sparkwave.planner.bind.row_stars import expand_row_stars
from sparkwave.planner.bind.session_rows import with_session_rows
from sparkwave.planner.bind.sql_functions import body_of, calls, scope_within, with_functions
from sparkwave.planner.bind.table_references import resolve_references
from sparkwave.planner.bind.time_zones import with_zones
from sparkwave.planner.bind.typed_rows import with_typed_rows
from sparkwave.planner.bind.untyped import holds_checked, with_literals_of
from sparkwave.planner.bind.user_types import with_user_types
from sparkwave.planner.bind.views import keep_arguments, reference
from sparkwave.planner.bind.wide_literals import (
    ARITHMETIC,
    BITWISE,
    among_values,
    beside_constants,
    may_hold_smallints,
    widen,
)
from sparkwave.planner.build.change_logs import refuse_change_logs
from sparkwave.planner.build.handled import check_windows
from sparkwave.planner.build.session_frames import expand_sessions
from sparkwave.planner.build.time_windows import SHIFTED, check_sizes, expand_windows
from sparkwave.planner.functions.aggregates import canonical
from sparkwave.planner.functions.deep_casts import array_casts, deepen
from sparkwave.planner.functions.digits import has_many_places
from sparkwave.planner.functions.duckdb_spelling import for_duckdb
from sparkwave.planner.functions.emit import Sql
from sparkwave.planner.functions.flat_unnest import flat_arrays, flatten
from sparkwave.planner.functions.narrow import narrow_totals
from sparkwave.planner.functions.operators import check_subscripts, with_document_subscripts
from sparkwave.planner.functions.range_frames import give_room, has_offset, sort_keys_of_offsets
from sparkwave.planner.functions.result_types import Known
from sparkwave.planner.functions.scalar_functions import FUNCTIONS, NEAREST, ours
from sparkwave.planner.functions.typed import is_quotient, stored_value, type_of_part, with_written_numerics
from sparkwave.planner.functions.undefined import check_counts
from sparkwave.planner.functions.written_json import with_json
from sparkwave.planner.parse.calls import CAST_POSITION
from sparkwave.planner.parse.constraints import is_padded, no_padded_type
from sparkwave.planner.parse.identifiers import folded
from sparkwave.planner.parse.literals import with_literals
from sparkwave.planner.parse.named_windows import expand_named_windows
from sparkwave.planner.parse.parameter_runs import ParameterRun, SqlRun, expanded, is_row_of_runs, parameter_numbers
from sparkwave.planner.parse.set_returning import ROW_FUNCTIONS
from sparkwave.planner.parse.strict import check_bits, check_joins
from sparkwave.planner.parse.trees import is_cte, name_of, position_of
from sparkwave.planner.statements import Name

SystemColumns = Callable[[str, str], Columns]
LAKE = "lake"
# Names of MERGE's action on a row among the columns of its sources, and of PLACES among columns under their own names.
# They are drawn when the process starts, so that nobody else can use them.
WHEN_NAME, *_places = (f"?{stem} {secrets.token_hex(8)}" for stem in ("when", *PLACES.values()))
_PLACE_NAMES = dict(zip(PLACES.values(), _places, strict=True))
_RESOLVED = "resolved"  # marks resolved tables; a client cannot set this mark


@dataclass(frozen=True)
class Indexed:
    """A query's text that reads indexes (by id), for a snapshot in which they have all rows of these tables.

    Materialized views are not among the tables, because they change together with their indexes. `snapshot` is the one
    that the text reads, None the newest; with `reads_epochs` it reads indexes as of the last epoch.
    """

    sql: str
    indexes: tuple[int, ...]
    tables: tuple[LakeTable, ...]
    snapshot: int | None
    reads_epochs: bool


@dataclass(frozen=True)
class Batch:
    """DuckDB's text of a statement; `parameters` are the types of its $1, $2, …

    `sql.reads` has the relations and functions of the system catalogs in it, as `pgc.pg_class`.

    `origins` are the origins of a query's visible columns, where they are known. `is_constant` marks a query that
    always gives the same row: `SELECT 1`, with which pools check a connection. `sets` are the settings and values of
    its `set_config` calls, and whether they are local. `constants` are the numbers of the parameters that have to be
    constants: a running batch has been planned with their values. `indexed` is the same query over indexes, if some
    serve it, and `served` the query over copies, if it reads relations in their present state. `mixes` tells that it
    reads materialized views in memory and tables of the lake. `constant_rows` is the number of an INSERT's VALUES rows,
    if they are constants and parameters. `draws` are its draws from sequences. `narrow` is a text with the same rows in
    less time, or an error.
    """

    sql: Sql
    parameters: tuple[Type, ...]
    origins: tuple[Origin | None, ...] = ()
    is_constant: bool = False
    sets: tuple[tuple[str, str, bool], ...] = ()
    constants: frozenset[int] = frozenset()
    indexed: Indexed | None = None
    served: Served | None = None
    mixes: bool = False
    constant_rows: int = 0
    draws: Draws = NO_DRAWS
    narrow: str | None = None

    @property
    def reads_system(self) -> bool:
        """Whether the statement reads the system catalogs or calls their functions."""
        return bool(self.sql.reads)


# The session's variable by which a query has NULL where an expression fails for a row, if it is false.
STRICT = "batch_expr_strict_mode"


@dataclass(frozen=True)
class Environment:
    """The environment in which a batch statement is planned.

    `settings` are the session's variables, database and user; `is_system(schema, name)` knows the system catalogs.
    `snapshot` is the lake's snapshot to read, None the newest. `overlays` has, for each table that the transaction has
    written, the schema in memory with its rows. `versions` has the snapshots of points in time
    (`planner.batch.time_travel`), and `absent`, by snapshot, the relations that did not have all of their rows then, or
    rows of an earlier definition. The privileges are those of `user`. With `reads_epochs` materialized views are read
    in memory, as of the last epoch, else as stored. `system_columns` has the columns of a system relation.
    """

    catalog: Catalog
    scope: Scope
    settings: Mapping[str, str]
    is_system: pg_compat.IsSystem
    user: User
    snapshot: int | None = None
    system_columns: SystemColumns = lambda schema, name: {}
    overlays: Mapping[LakeTable, str] = field(default_factory=dict)
    versions: Mapping[str, int] = field(default_factory=dict)
    absent: Mapping[int, frozenset[int]] = field(default_factory=dict)
    reads_epochs: bool = False


def plan_query(
    tree: exp.Expr,
    environment: Environment,
    oids: tuple[int, ...] = (),
    parameters: tuple[Type, ...] | None = None,
    values: Mapping[int, object] | None = None,
) -> Batch:
    """Plan a SELECT or VALUES for DuckDB. `oids` are the client's types of its parameters, 0 for unknown.

    `parameters` are the parameters' types where they are known, `values` those of parameters that have to be constants.
    """
    environment = with_given_types(environment, oids)
    check_reads(tree, environment)
    typed = typer(environment)
    tree = hash_lists(prepared(named_query(tree), environment, typed), typed)
    relations, client_tree = _relations(tree, environment), tree
    found = _origins(tree, relations, environment)
    is_constant = all(isinstance(node, _CONSTANT) for node in tree.walk())
    tree = with_row_types(tree.copy(), environment.catalog, environment.scope)
    name_outputs(tree)
    for item in tree.expressions if isinstance(tree, exp.Select) else ():
        if _is_null(value := item.unalias()):
            value.replace(exp.cast(value.copy(), exp.DType.TEXT))  # for DuckDB an integer
    tree = _in_own_terms(tree)
    if parameters is None:
        parameters = infer(tree, environment, oids)
    with_series_of_parameters(tree, parameters)
    constants = constant_parameters(tree)
    tree = pg_compat.with_settings(with_constants(tree, values) if constants else tree)
    sets = pg_compat.set_config_calls(tree)
    indexed = _indexed(tree, environment, parameters)
    resolved, draws = _with_sequences(resolve_tables(tree, environment), environment)
    finished = finished_tree(resolved, environment, parameters)
    narrow = narrow_totals(finished)
    mixes = {VIEWS_SCHEMA, ""} <= {_place(table) for table in finished.find_all(exp.Table)}
    sql = text_of(finished)
    indexed = None if draws else indexed
    batch = Batch(sql, parameters, found, is_constant, sets, constants, indexed, mixes=mixes, draws=draws)
    if narrow is not None and not (mixes or draws or constants):
        batch = replace(batch, narrow=narrow.sql(dialect="duckdb"))
    copies = None if batch.reads_system or constants or draws else over_copies(narrow or finished)
    if copies is None:
        return batch
    return replace(batch, served=replace(copies, lookup=find_lookup(client_tree, relations, parameters)))


def with_given_types(environment: Environment, oids: tuple[int, ...]) -> Environment:
    """Return the environment of a statement with the types that the client gives its parameters, by their OIDs."""
    catalog = environment.catalog
    if not any(oids) or not catalog.functions:
        return environment
    types = tuple(type_of_oid(oid) or catalog.types_by_oid.get(oid) for oid in oids)
    return replace(environment, scope=replace(environment.scope, parameters=types))


def _is_null(value: exp.Expr) -> bool:
    """Return whether a value is NULL by itself, and no more is known of its type than that of a text."""
    parts = list(value.iter_expressions())
    match value:
        case exp.Null():
            return True
        case exp.DPipe():
            return any(map(_is_null, parts)) and all(isinstance(part, exp.Literal) or _is_null(part) for part in parts)
        case exp.Coalesce() | exp.Max() | exp.Min() | exp.Paren():
            return all(map(_is_null, parts))
    return False


def _place(table: exp.Table) -> str | None:
    """Return the schema in memory that a query's table is in, "" for the lake; None for any other."""
    return {BUFFER: table.db, COPIES: table.db, LAKE: ""}.get(table.catalog)


def _indexed(tree: exp.Expr, environment: Environment, parameters: tuple[Type, ...]) -> Indexed | None:
    """Return the query over indexes, if some serve it, for tables as in the catalog.

    The catalog does not know an index's rows at another point in time, and the index lacks the transaction's own
    writes.
    """
    if not any(relation.is_index for relation in environment.catalog.relations):
        return None
    if environment.absent or environment.settings["enable_index_selection"] != "true":
        return None
    tree = tree.copy()
    own = {id(table) for table in base_tables(tree)}

    def find_own(table: exp.Table) -> Relation | None:
        relation = find_relation(name_of(table), environment) if id(table) in own else None
        if relation is None or relation.streaming.retention_s is not None:  # an index has all rows
            return None
        return None if relation.lake_table in environment.overlays else relation

    source = lambda index: _stored_values(index, stored_table(index, None, environment))  # noqa: E731
    indexes = select_indexes(tree, environment.catalog, find_own, source)
    if not indexes:
        return None
    indexed = (environment.catalog.by_id[id_] for index in indexes for id_ in index.upstreams)
    tables = dict.fromkeys(relation.lake_table for relation in indexed if relation.is_table)
    sql = finish(resolve_tables(tree, environment), environment, parameters)
    ids = tuple(index.id for index in indexes)
    return Indexed(sql, ids, tuple(tables), environment.snapshot, environment.reads_epochs)


def prepared(tree: exp.Expr, environment: Environment, typed: Typer) -> exp.Expr:
    """Return a copy of a statement in a form that is ready to be planned.

    Columns have their sources; SQL functions and calls in FROM are expanded; literals that the engines would misread
    have types; tables of the past are marked. Raises Error 0A000 for a subquery with columns that differ only in case,
    which DuckDB would confuse; and as `check_joins`, `check_outputs_named` and `check_statement` do.
    """
    refuse_change_logs(tree)
    for source in tree.find_all(exp.Subquery, exp.CTE):
        _check_cases(source)
    check_joins(tree)
    check_named_columns(tree)
    columns_of = columns_in(environment.catalog, environment.scope)
    check_outputs_named(tree, columns_of)
    check_named_once(tree, columns_of)
    tree = tree.copy()
    expand_row_stars(tree, columns_of)
    expand_natural(tree, columns_of)
    with_session_rows(tree, columns_of)
    with_typed_rows(tree, environment.catalog, environment.scope, in_definition=False)
    check_types(tree, environment, typed)
    tree = with_functions(tree, environment.catalog, environment.scope)
    name_values(tree)
    group_by_dependents(tree, environment.catalog, environment.scope)
    for select in tree.find_all(exp.Select):
        if not select.expressions:  # DuckDB has no rows without columns
            select.set("expressions", [exp.alias_(exp.Literal.number(1), NO_COLUMN, quoted=True)])
    tree = with_json(with_written_numerics(tree))
    tree = with_user_types(tree, environment.catalog, environment.scope)
    check_counts(tree, typed)
    while (casts := array_casts(tree)) and deepen(zip(casts, typed(tree, [cast.this for cast in casts]), strict=True)):
        pass
    subscripts = list(tree.find_all(exp.Bracket))
    if subscripts:
        found = typed(tree, subscripts)
        check_subscripts(filter(None, found))
        pairs = [(node, part) for node, part in zip(subscripts, found, strict=True) if part is not None]
        with_document_subscripts(reversed(pairs))
    check_statement(tree)
    check_windows(tree)
    resolve_references(tree, environment.catalog, environment.scope)
    _expand_stars(tree, environment.catalog, environment.scope)
    return at_versions(expand_calls(_with_types(tree, environment, typed)), environment.versions)


def check_types(tree: exp.Expr, environment: Environment, typed: Typer) -> None:
    """Check conditions, casts and operands of a statement over users' relations alone.

    Raises Error 42704 for a string of bits, too, which DuckDB takes for a number, and as `check_sizes` does.
    """
    check_sizes(tree)

    def relations() -> list[Relation] | None:
        read = (table for table in base_tables(tree) if not isinstance(table.parent, exp.Into))
        found = [find_relation(name_of(table), environment) for table in read]
        return None if None in found else [relation for relation in found if relation is not None]

    collated = list(tree.find_all(exp.Collate))
    operands = typed(tree, [operand_of(node) for node in collated]) if collated else []
    for node, operand in zip(collated, operands, strict=True):
        check_text(type_of_part(operand) if operand is not None else None, position_of_collation(node))
    for cast in tree.find_all(exp.Cast):
        if is_padded(cast.to):
            raise no_padded_type(cast.meta.get(CAST_POSITION) or position_of(cast))
    check_bits(tree)
    for kind in tree.find_all(exp.DataType):
        if kind.this == exp.DType.BIT:
            raise Error('type "bit" does not exist', errors.UNDEFINED_OBJECT, position=position_of(kind))
    check_distinct_orders(tree)
    read = relations()
    if read is not None:
        if any(kind.this == exp.DType.JSON for kind in tree.find_all(exp.DataType)):
            tree = with_json(tree.copy())
        tree = without_texts(tree)
        used = {folded(column.this) for column in tree.find_all(exp.Column) if isinstance(column.this, exp.Identifier)}
        types_of: dict[str, set[Type]] = {}
        for relation in read:
            for column in relation.visible:
                if column.name in used:
                    types_of.setdefault(column.name, set()).add(column.type)
        names = {column.name for relation in read for column in relation.visible}
        check_exact_names(tree, names, columns_in(environment.catalog, environment.scope))
        check_operands(tree, types_of, typed)
        check_declared(tree, types_of, typed)
    check_qualifiers(tree, relations)


def _with_types(tree: exp.Expr, environment: Environment, typed: Typer) -> exp.Expr:
    """Return the tree, changed in place, with PostgreSQL's types of unnest, `jsonb - key`, literals and averages."""
    while (arrays := flat_arrays(tree, typed)) and flatten(zip(arrays, typed(tree, arrays), strict=True)):
        pass
    tree = with_series_of_columns(with_cast_rows(tree, typed), typed)
    read = _relations(tree, environment).values()
    has_places = any(has_many_places(column.type) for relation in read for column in relation.visible)
    has_places = has_places or any(is_quotient(cast.to) for cast in tree.find_all(exp.Cast))
    has_checked = holds_checked(tree, read)
    if may_hold_smallints(tree, read):
        pairs = [*beside_constants(tree, (*ARITHMETIC, *BITWISE)), *among_values(tree)]
        others = typed(tree, [other for _, other in pairs]) if pairs else []
        widen(zip((constant for constant, _ in pairs), others, strict=True))
    if pairs := long_constants(tree):
        others = typed(tree, [other for _, other in pairs])
        as_floats(zip((constant for constant, _ in pairs), others, strict=True))
    if tree.find(exp.AtTimeZone) is not None:
        with_zones(tree, _type_of(tree, typed))
    if may_make_floats(tree, read):
        with_nearest_floats(tree, _type_of(tree, typed))
    tree = with_literals_of(with_differences(tree, typed), typed, has_checked, environment.scope.order)
    if any(has_offset(spec) for spec in tree.find_all(exp.WindowSpec)):
        tree = expand_named_windows(tree)
        type_of = _type_of(tree, typed)
        for key in sort_keys_of_offsets(tree):
            give_room(key, type_of(key))
    if may_need_keys(tree, read):
        mark_casts(tree, typed)
        compare_by_keys(tree, lambda nodes: typed(tree, nodes))
    return with_averages(tree, typed, has_places)


def _type_of(tree: exp.Expr, typed: Typer) -> Callable[[exp.Expr], Known]:
    types = types_in(tree, typed)
    return lambda node: types.get(id(node))


def typer(environment: Environment) -> Typer:
    """Return what types trees over the relations of an environment."""
    return Typer(_name_tables(environment))


def _check_cases(source: exp.Expr) -> None:
    alias = source.args.get("alias")
    query = source.this
    selects = query.selects if isinstance(query, exp.Query) else []
    given = [folded(name) for name in alias.columns] if isinstance(alias, exp.TableAlias) else []
    names = given + [
        folded(s.args["alias"]) if isinstance(s, exp.Alias) else folded(s.this)
        for s in selects[len(given) :]
        if isinstance(s, exp.Alias | exp.Column)
    ]
    if len({fold_case(name) for name in names}) < len(set(names)):
        check_distinct(dict.fromkeys(names), position_of(source))


def _expand_stars(tree: exp.Expr, catalog: Catalog, scope: Scope) -> None:
    """Let `*` over JOIN … USING and NATURAL JOIN have PostgreSQL's order."""
    expand_stars(tree, columns_in(catalog, scope))


_CONSTANT = (exp.Select, exp.Alias, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Neg, exp.Paren)


def _relations(tree: exp.Expr, environment: Environment) -> dict[int, Relation]:
    """Return the user relations of a statement by the id of the node that names each."""
    found = {id(table): find_relation(name_of(table), environment) for table in base_tables(tree)}
    return {node: relation for node, relation in found.items() if relation is not None}


def plan_arguments(values: tuple[exp.Expr, ...], types: tuple[Type, ...], environment: Environment) -> Batch:
    """Plan a query of one row: the values of EXECUTE with their types.

    Raises Error 42P02 for a parameter among them.
    """
    for value in values:
        for parameter in value.find_all(exp.Parameter):
            raise Error(f"there is no parameter ${parameter.name}", errors.UNDEFINED_PARAMETER)
    casts = (exp.cast(value.copy(), data_type(type_)) for value, type_ in zip(values, types, strict=True))
    return plan_query(with_literals(exp.select(*casts), environment.scope.order), environment)


def select_columns(name: Name, columns: tuple[str, ...]) -> exp.Select:
    """Return `SELECT columns FROM name`; all columns when none are given."""
    table = exp.table_(name.name, db=name.schema, catalog=name.database, quoted=True)
    listed: list[exp.Expr] = [exp.column(exp.to_identifier(column, quoted=True)) for column in columns]
    return exp.select(*listed or [exp.Star()]).from_(table)


def typed_for_writing(tree: exp.Expr, environment: Environment) -> exp.Expr:
    """Return the tree of a statement that changes rows as `plan_query` has that of a query, changed in place."""
    tree = with_row_types(tree, environment.catalog, environment.scope)
    return _in_own_terms(tree) if tree.find(exp.Select) is not None else tree


def _in_own_terms(tree: exp.Expr) -> exp.Expr:
    """Return the tree, changed in place, with aggregates, and windows of time, that the engines have."""
    return expand_sessions(expand_windows(canonical(tree, copy=False)))


def finish(tree: exp.Expr, environment: Environment, parameters: tuple[Type, ...]) -> Sql:
    """Return DuckDB's text of a tree whose tables are resolved, as `Batch` has it."""
    return text_of(finished_tree(tree, environment, parameters), copy=False)


def text_of(finished: exp.Expr, copy: bool = True) -> Sql:
    """Return DuckDB's text of a finished tree, as `Batch` has it. Without `copy` the tree must not be used again."""
    reads = system_names(finished)
    return Sql(finished.sql(dialect="duckdb", copy=copy), reads)


def written_batch(
    tree: exp.Expr, environment: Environment, parameters: tuple[Type, ...], constant_rows: int = 0
) -> Batch:
    """Return the batch of a tree whose tables are resolved and that is no client's query."""
    tree, draws = _with_sequences(tree, environment)
    return Batch(finish(tree, environment, parameters), parameters, constant_rows=constant_rows, draws=draws)


def _with_sequences(tree: exp.Expr, environment: Environment) -> tuple[exp.Expr, Draws]:
    return with_sequences(tree, environment.catalog, environment.scope, environment.user)


def finished_tree(tree: exp.Expr, environment: Environment, parameters: tuple[Type, ...]) -> exp.Expr:
    """Return the tree that becomes DuckDB's text, of a tree whose tables are resolved."""
    path = environment.scope.path
    tree = _with_runs(tree, parameters)
    tree = expand_around_rows(expand_unnests(expand_ties(expand_named_windows(tree))))
    tree = expand_row_in_query(expand_grouping(tree))
    rewritten = pg_compat.rewrite(tree, environment.is_system, environment.settings, path)
    is_strict = not isinstance(rewritten, exp.Query) or environment.settings.get(STRICT, "true") == "true"

    def spelled(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Div | exp.Mod) and not (
            isinstance(node.expression, exp.Literal) and node.expression.name.strip("0.") != ""
        ):
            return _checked_division(node) if is_strict else _divided_or_null(node)
        if isinstance(node, exp.NthValue) and is_strict:
            node.set("offset", _from_one(node.args["offset"]))
            return node
        number = parameter_number(node)
        if number is None:
            return node
        type_ = data_type(parameters[number - 1])
        if isinstance(node.parent, exp.Cast) and (
            node.parent.to == type_ or _is_shown(node.parent, parameters[number - 1])
        ):
            return node
        return exp.cast(node.copy(), type_, copy=False)

    typed_parameters = with_outer_columns(rewritten.transform(spelled, copy=False))
    return with_typed_aggregates(for_duckdb(typed_parameters, lenient=False, copy=False, tries=not is_strict))


def _is_shown(cast: exp.Cast, type_: Type) -> bool:
    """Return whether a cast makes text of a numeric parameter, whose own digits have the sent zeros."""
    is_numeric = type_.name == "numeric" and not type_.dimensions
    return is_numeric and cast.to.is_type(*exp.DataType.TEXT_TYPES)


_OF_RUNS = frozenset({
    "smallint", "integer", "bigint", "real", "double precision", "numeric", "boolean", "character varying", "text",
    "date", "timestamp without time zone", "timestamp with time zone", "uuid",
})  # fmt: skip
_ANY = 1_000_000_000  # no parameter has this number


def _with_runs(tree: exp.Expr, parameters: tuple[Type, ...]) -> exp.Expr:
    """Return the tree, changed in place, with the text of parameter runs, each with its type.

    Runs of types for which an engine may need another spelling than a cast are expanded.
    """
    for run in list(tree.find_all(ParameterRun)):
        place = run.parent
        if run.root() is not tree or place is None:  # its row has been seen to
            continue
        if is_row_of_runs(place):
            columns = [_values_of(item, parameters) for item in place.expressions]
            row = "ROW" if isinstance(place.parent, exp.In) else ""
            if all(columns):
                rows = (f"{row}({', '.join(values)})" for values in zip(*columns, strict=True))
                place.replace(SqlRun(this=", ".join(rows)))
        elif values := _values_of(run, parameters):
            made = SqlRun(this=", ".join(values))
            made.type = data_type(parameters[run.numbers[0] - 1])
            run.replace(made)
    return expanded(tree)


def _values_of(run: exp.Expr, parameters: tuple[Type, ...]) -> list[str]:
    """Return DuckDB's text of each parameter of a run; none where they have to be nodes."""
    numbers = parameter_numbers(run)
    types = {parameters[number - 1] for number in numbers}
    if any(type_.dimensions or type_.name not in _OF_RUNS for type_ in types):
        return []
    around = {type_: _cast_around(type_) for type_ in types}
    parts = ((around[parameters[number - 1]], number) for number in numbers)
    return [f"{before}${number}{behind}" for (before, behind), number in parts]


def _cast_around(type_: Type) -> tuple[str, str]:
    """Return the text before and after a parameter of a type."""
    one = exp.cast(exp.Parameter(this=exp.Literal.number(_ANY)), data_type(type_))
    before, _, behind = for_duckdb(one, lenient=False).sql(dialect="duckdb").partition(f"${_ANY}")
    return before, behind


# NULL where one of their parts is.
_STRICT = (
    exp.Column, exp.Identifier, exp.Literal, exp.Parameter, exp.Paren, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div,
    exp.Mod, exp.Cast, exp.DataType, exp.DataTypeParam,
)  # fmt: skip
_MOST_COLUMNS = 4
_MOST_NODES = 60
_ONCE_AGAIN = {*FUNCTIONS, *NEAREST.values()} - {"random", "gen_random_uuid", "nextval", "clock_timestamp"}
_NOT_TWICE = (exp.Query, exp.Window, exp.Rand, exp.Explode, exp.Unnest, exp.ExplodingGenerateSeries)


def _checked_division(node: exp.Binary) -> exp.Expr:
    """Return a division that raises an error for zero, as in Postgres; DuckDB gives NULL or infinity.

    A dividend that is NULL raises none, where it is short enough to be computed twice.
    """
    divisor, dividend = node.expression, node.this
    while isinstance(dividend, exp.Paren | exp.Cast):
        dividend = dividend.this
    raised = exp.Anonymous(this="error", expressions=[exp.Literal.string("division by zero")])
    is_zero: exp.Expr = exp.EQ(this=divisor.copy(), expression=exp.Literal.number(0))
    parts: list[exp.Expr] = [dividend] if isinstance(dividend, exp.AggFunc | exp.Null) else []
    if not parts and all(isinstance(part, _STRICT) for part in dividend.walk()):
        parts = list(dict.fromkeys(dividend.find_all(exp.Column, exp.Parameter)))
    elif not parts and len(list(dividend.walk())) <= _MOST_NODES and not _is_volatile(dividend):
        parts = [dividend]
    for part in parts if len(parts) <= _MOST_COLUMNS else ():
        is_zero = exp.And(this=is_zero, expression=exp.Not(this=exp.Is(this=part.copy(), expression=exp.null())))
    checked = exp.Case().when(is_zero, raised).else_(divisor)
    checked.type = divisor.type
    node.set("expression", checked)
    return node


def _is_volatile(dividend: exp.Expr) -> bool:
    """Return whether a value may be another one when it is computed again, or may take much longer then."""
    calls = (call.name.lower() for call in dividend.find_all(exp.Anonymous))
    return dividend.find(*_NOT_TWICE) is not None or not all(map(_ONCE_AGAIN.__contains__, calls))


def _from_one(offset: exp.Expr) -> exp.Expr:
    """Return the offset of nth_value with an error for one below 1; DuckDB gives NULL."""
    if isinstance(offset, exp.Literal) and offset.name.strip("0"):
        return offset
    told = "22016", "argument of nth_value must be greater than zero"
    raised = ours("raise", *map(exp.Literal.string, told))
    return exp.Case().when(exp.LTE(this=offset.copy(), expression=exp.Literal.number(0)), raised).else_(offset)


def _divided_or_null(node: exp.Binary) -> exp.Expr:
    """Return a division that is NULL for zero."""
    divisor = exp.Nullif(this=node.expression, expression=exp.Literal.number(0))
    divisor.type = node.expression.type
    node.set("expression", divisor)
    return node


def base_tables(tree: exp.Expr) -> Iterator[exp.Table]:
    """Yield the tables of a statement that are not CTEs, functions or already resolved."""
    for table in list(tree.find_all(exp.Table)):
        if isinstance(table.this, exp.Identifier) and not table.meta.get(_RESOLVED) and not is_cte(table):
            yield table


def relations_read(tree: exp.Expr, environment: Environment) -> frozenset[int]:
    """Return the ids of the user relations that a query names, without those inside views."""
    return frozenset(relation.id for relation in _relations(tree, environment).values())


def check_reads(tree: exp.Expr, environment: Environment, written: exp.Expr | None = None) -> None:
    """Raise Error 42501 unless the user may read all that a statement reads, except for the table it writes to.

    For the tables of a view, the privileges of the view's owner count.
    """
    user, catalog = environment.user, environment.catalog
    if user.is_super:
        return
    _check_functions(tree, environment)
    _check_calls(tree, environment)
    read = {
        id(table): (table, relation)
        for table in base_tables(tree)
        if table is not written and (relation := find_relation(name_of(table), environment)) is not None
    }
    check_columns_read(tree, environment, read.values())
    for table, relation in read.values():
        if relation.is_view:
            inner = replace(environment, scope=scope_of(relation), user=catalog.users[relation.owner])
            check_reads(reference(relation, table.copy(), catalog).this, inner)


def check_columns_read(tree: exp.Expr, environment: Environment, read: Iterable[tuple[exp.Table, Relation]]) -> None:
    """Raise Error 42501 unless the user may read these relations, or the columns of them that the statement reads."""
    user, catalog = environment.user, environment.catalog
    in_parts: dict[int, tuple[exp.Table, Relation]] = {}
    for table, relation in read:
        may_all = holds(catalog, user, relation.securable, "SELECT")
        if not may_all and holds_any(catalog, user, relation, "SELECT"):
            in_parts[id(table)] = table, relation
        else:
            check_relation(catalog, user, relation, "SELECT", name_of(table).position)
    if not in_parts:
        return
    named = {node: tuple(column.name for column in relation.visible) for node, (_, relation) in in_parts.items()}
    columns = columns_read(tree, named, lambda copy: resolve_references(copy, catalog, environment.scope))
    for node, (table, relation) in in_parts.items():
        # Reading no column needs a privilege on any one column.
        names = () if columns is None else columns[node] or _readable_columns(environment, relation)
        check_relation(catalog, user, relation, "SELECT", name_of(table).position, names)


def _readable_columns(environment: Environment, relation: Relation) -> list[str]:
    thing, names = relation.securable, [column.name for column in relation.visible]
    return [name for name in names if holds(environment.catalog, environment.user, thing, "SELECT", column=name)]


def _check_functions(tree: exp.Expr, environment: Environment) -> None:
    """Raise Error 42501 for an unknown function in FROM: DuckDB has some that read files or any table."""
    own = {id(node) for node, _ in calls(tree, environment.catalog, environment.scope) if is_source(node)}
    for source in tree.find_all(exp.Table, exp.Lateral):
        function = source.this
        if id(function) in own:  # `_check_calls` sees to them
            continue
        if not isinstance(function, exp.Func) or isinstance(function, ROW_FUNCTIONS) or is_single_value(function):
            continue
        name = function.name if isinstance(function, exp.Anonymous) else function.sql_name()
        if name.lower() not in _ROW_FUNCTION_NAMES and not environment.is_system("pgf", name.lower()):
            raise permission_denied(f"permission denied for function {name.lower()}")


def _check_calls(tree: exp.Expr, environment: Environment, position: int | None = None) -> None:
    """Raise Error 42501 unless the user may call the SQL functions of a statement, and those that they call."""
    catalog = environment.catalog
    for node, function in calls(tree, catalog, environment.scope) if catalog.functions else ():
        place = position or position_of(node)
        check(catalog, environment.user, function.securable, "EXECUTE", place)
        if function.is_python:
            continue
        body = body_of(function, catalog)
        _check_calls(body, inner := replace(environment, scope=scope_within(function)), place)
        if body.find(exp.Table) is not None:
            check_reads(body, inner)


_ROW_FUNCTION_NAMES = frozenset({"generate_series", "unnest", "tumble", "hop", "range", "json_each"})


def resolve_tables(tree: exp.Expr, environment: Environment) -> exp.Expr:
    """Return the tree, changed in place, with user relations as tables of the lake, and views as their queries."""
    with_row_ids, with_times = names_column(tree, ROW_ID), names_column(tree, RW_TIMESTAMP)
    for table in base_tables(tree):
        relation = find_relation(name_of(table), environment)
        if relation is None:
            continue
        at = _at_version(table, environment)
        source = _inlined(relation, table, at) if relation.is_view else _readable(relation, table, at)
        table.replace(source)
        if with_row_ids and has_row_id(relation):
            _add_row_id(source)
        if relation.is_table and (with_times or relation.streaming.retention_s is not None):
            _add_time(source, relation, with_times)
        if lacks_columns(relation) and _has_more_columns(source):
            _leave_out_of_stars(source, NO_COLUMN)
    return tree


def names_column(tree: exp.Expr, name: str) -> bool:
    """Return whether a query names a column that tables have beside their own: their row ids, or times of commits."""
    return any(column.name.lower() == name for column in tree.find_all(exp.Column))


def _add_row_id(source: exp.Expr) -> None:
    """Add `_row_id` to the columns of a table's rows, and leave it out of the stars over them."""
    rows = source.this
    assert isinstance(rows, exp.Select)
    rows.select(exp.alias_(exp.column("rowid"), ROW_ID, quoted=True), copy=False)
    rows.args["from_"].this.meta.pop(RELATION, None)  # copies in memory have other row ids
    _leave_out_of_stars(source, ROW_ID)


def _add_time(source: exp.Expr, relation: Relation, is_named: bool) -> None:
    """Add `_rw_timestamp` to a table's rows, left out of the stars over them; without rows past their retention."""
    rows = source.this
    assert isinstance(rows, exp.Select)
    stored = rows.args["from_"].this.sql(dialect="duckdb")
    timed = exp.Subquery(this=sqlglot.parse_one(rows_with_times(stored, relation.lake_table), read="duckdb"))
    timed.set("alias", exp.TableAlias(this=exp.to_identifier("stored")))
    for table in timed.find_all(exp.Table):
        table.meta[_RESOLVED] = True
    rows.set("from_", exp.From(this=timed))
    written = exp.column(TIME.strip('"'), quoted=True)
    since_1970 = [exp.cast(exp.Literal.string("1970-01-01 00:00:00+00"), "timestamptz"), written]
    time = exp.Anonymous(this=SHIFTED, expressions=since_1970)
    if relation.streaming.retention_s is not None:
        back = exp.Literal.number(-relation.streaming.retention_s * 1_000_000)
        oldest = exp.Anonymous(this=SHIFTED, expressions=[exp.CurrentTimestamp(), back])
        is_own = exp.Is(this=written.copy(), expression=exp.null())  # of the transaction
        rows.where(exp.or_(is_own, exp.GTE(this=time.copy(), expression=oldest)), copy=False)
    if is_named:
        rows.select(exp.alias_(time, RW_TIMESTAMP, quoted=True), copy=False)
        _leave_out_of_stars(source, RW_TIMESTAMP)


def _leave_out_of_stars(source: exp.Expr, column: str) -> None:
    """Leave a column of a source out of the stars over it."""
    select = source.find_ancestor(exp.Select)
    for item in select.expressions if select is not None else ():
        star = item.this if isinstance(item, exp.Column) else item
        if isinstance(star, exp.Star) and (star is item or item.table == source.alias):
            left_out = star.args.get("except_") or []
            if all(name.name != column for name in left_out):
                star.set("except_", [*left_out, exp.to_identifier(column, quoted=True)])


def _has_more_columns(source: exp.Expr) -> bool:
    """Return whether the query that reads a source has other sources or outputs than a star."""
    select = source.find_ancestor(exp.Select)
    return select is not None and (len(select.expressions) > 1 or bool(select.args.get("joins")))


def _at_version(table: exp.Table, environment: Environment) -> Environment:
    """Return the environment for a table's point in time, if it has one."""
    snapshot = table.meta.get(SNAPSHOT)
    return environment if snapshot is None else replace(environment, snapshot=snapshot, overlays={})


def _inlined(view: Relation, table: exp.Table, environment: Environment) -> exp.Expr:
    """Return the query of a view, read like a client's; its names are resolved in the view's scope."""
    subquery, scope = reference(view, table, environment.catalog), scope_of(view)
    inner = replace(environment, scope=scope)
    _expand_stars(subquery.this, environment.catalog, scope)
    query = expand_calls(_with_types(subquery.this, inner, typer(inner)))
    query = canonical(with_row_types(query, environment.catalog, scope), copy=False)
    subquery.set("this", resolve_tables(query, inner))
    return subquery


def find_relation(name: Name, environment: Environment) -> Relation | None:
    """Return the user relation of a name; None for a system view. Raises Error 42P01."""
    if name.schema in pg_compat.SCHEMAS:
        check_database(name, environment.scope.database)
        if not environment.is_system(name.schema, name.name):
            raise errors.not_found("relation", str(name), position=name.position)
        return None
    is_named = name.schema is not None or find(environment.catalog, environment.scope, name) is not None
    if not is_named and system_schema(name.name, environment.scope.path, environment.is_system):
        return None
    relation = resolve_readable(environment.catalog, environment.scope, name)
    failed_job(environment.catalog, relation)
    return relation


def failed_job(catalog: Catalog, relation: Relation) -> None:
    """Raise Error 55000 when this view, or one it reads, has failed and not caught up since: its rows are stale."""
    pending = [relation]
    while pending:
        current = pending.pop()
        job = catalog.job_by_id.get(current.id)
        if job is not None and job.status == "FAILED":
            raise Error(
                f'{current.kind} "{current.name}" has failed and does not follow what it reads',
                errors.NOT_IN_PREREQUISITE_STATE,
                detail=job.error,
                hint="It is tried again, and after changes of what it reads; rw_catalog.rw_job_status tells when.",
            )
        pending += [catalog.by_id[id_] for id_ in current.upstreams if id_ in catalog.by_id]


def _readable(relation: Relation, table: exp.Table, environment: Environment) -> exp.Expr:
    """Return the visible columns in the lake for a reference to a table or materialized view.

    They are listed, so that a table that is being altered is never read with other columns than it was planned with.
    """
    if relation.kind == SEQUENCE:
        raise Error(
            f'sequence "{relation.name}" cannot be read',
            errors.WRONG_OBJECT_TYPE,
            hint="pg_sequences has the last values of sequences, currval that of the session.",
            position=position_of(table),
        )
    if environment.snapshot is not None and relation.id in environment.absent.get(environment.snapshot, ()):
        raise Error(
            f'{relation.kind} "{relation.name}" did not have its present definition then, or was not created',
            errors.UNDEFINED_TABLE,
            position=position_of(table),
        )
    table_ = stored_table(relation, None, environment)
    if relation.lake_table not in environment.overlays and relation.kind != INTERNAL_TABLE:
        table_.meta[RELATION] = relation.id
    stored = _stored_values(relation, table_)
    alias = table.args.get("alias")
    stored.set("alias", alias.copy() if alias else exp.TableAlias(this=exp.to_identifier(table.name, quoted=True)))
    keep_arguments(table, stored)
    return stored


def _stored_values(relation: Relation, table: exp.Table) -> exp.Subquery:
    """Return the rows of a relation's lake table as values under the names of its columns."""
    return exp.select(*map(_stored_column, relation.visible)).from_(table).subquery()


def _stored_column(column: Column) -> exp.Expr:
    """Return a column of a lake table, under its name."""
    stored = exp.column(exp.to_identifier(column.lake_name, quoted=True))
    if not column.type.is_read_as_stored:
        value = stored_value(column.type, stored)
        if isinstance(value, exp.Cast):
            value.this.type = exp.DataType.build(column.type.in_lake(), dialect="duckdb")
        return exp.alias_(value, column.name, quoted=True)
    return stored if column.lake_name == column.name else exp.alias_(stored, column.name, quoted=True)


def stored_rows(relation: Relation, alias: str, environment: Environment, has_places: bool = False) -> exp.Expr:
    """Return `stored_table` with the columns under their names, and one or all of PLACES under those of `place`."""
    if not relation.is_renamed:
        return stored_table(relation, alias, environment)
    places = PLACES.values() if has_places else [PLACES[ROW]]
    columns = [exp.alias_(exp.column(name), _PLACE_NAMES[name], quoted=True) for name in places]
    query = exp.select(*columns, *map(_stored_column, relation.visible)).from_(
        stored_table(relation, None, environment)
    )
    return query.subquery(exp.to_identifier(alias, quoted=True))


def row_id(relation: Relation, alias: str) -> exp.Column:
    """Return the lake's row id in the `stored_rows` of a relation."""
    return place(PLACES[ROW], relation, alias)


def place(name: str, relation: Relation, alias: str) -> exp.Column:
    """Return one of the values of PLACES in the `stored_rows` of a relation; `rowid` is always there."""
    column = exp.to_identifier(_PLACE_NAMES[name] if relation.is_renamed else name, quoted=True)
    return exp.column(column, table=exp.to_identifier(alias, quoted=True))


def stored_table(relation: Relation, alias: str | None, environment: Environment) -> exp.Table:
    """Return the table with a relation's rows: the columns of the lake, with a `rowid`.

    Under an alias if one is given.
    """
    name, overlay = relation.lake_table, environment.overlays.get(relation.lake_table)
    if overlay is None and environment.snapshot is None and environment.reads_epochs and relation.is_streaming:
        overlay = VIEWS_SCHEMA
    table = exp.Table(
        this=exp.to_identifier(name.name if overlay is None else name_in_memory(name), quoted=True),
        db=exp.to_identifier(name.schema if overlay is None else overlay, quoted=True),
        catalog=exp.to_identifier(LAKE if overlay is None else BUFFER if overlay == VIEWS_SCHEMA else COPIES),
    )
    if overlay is None and environment.snapshot is not None:
        version = exp.Literal.number(environment.snapshot)
        table.set("when", exp.HistoricalData(this="AT", kind="VERSION", expression=version))
    table.meta[_RESOLVED] = True
    if alias is not None:
        table.set("alias", exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
    return table


def staged_table(name: str) -> exp.Table:
    """Return a temporary table of the cursor that runs the statement."""
    table = exp.Table(this=exp.to_identifier(name, quoted=True))
    table.meta[_RESOLVED] = True
    return table


def _name_tables(environment: Environment) -> NameTables:
    """Return the function for `infer_parameters`. Views are their queries; unknown names stay."""

    def name_tables(tree: exp.Expr, tables: dict[str, Columns]) -> None:
        hidden = [name for name in (ROW_ID, RW_TIMESTAMP) if names_column(tree, name)]
        for table in base_tables(tree):
            try:
                relation = find_relation(name_of(table), environment)
            except Error:
                continue  # reported when the statement is planned
            if relation is not None and relation.is_view:
                subquery = reference(relation, table, environment.catalog)
                _name_tables(replace(environment, scope=scope_of(relation)))(subquery.this, tables)
                table.replace(subquery)
                continue
            columns = _typed_columns(relation, hidden) if relation else _system_columns(table, environment)
            name_apart(table, columns, tables)

    return name_tables


def _typed_columns(relation: Relation, hidden: Collection[str]) -> Columns:
    columns = relation.visible + tuple(column for column in hidden_columns(relation) if column.name in hidden)
    return {column.name: column.type for column in columns}


def origins_of(tree: exp.Expr, environment: Environment) -> tuple[Origin | None, ...]:
    """Return the origins of the outputs of a query that is not prepared."""
    return _origins(tree, _relations(tree, environment), environment)


def _origins(tree: exp.Expr, relations: Mapping[int, Relation], environment: Environment) -> tuple[Origin | None, ...]:
    return origins(tree, relations, lambda table: _shown_columns(table, environment))


def _shown_columns(table: exp.Table, environment: Environment) -> Columns:
    """Return the columns of a system relation with the types that clients see; nothing for others."""
    name = name_of(table)
    schema = name.schema or system_schema(name.name, environment.scope.path, environment.is_system) or ""
    if not schema or not environment.is_system(schema, name.name):
        return {}
    columns = environment.system_columns(schema, name.name)
    return {column: system_type(schema, column, type_) for column, type_ in columns.items()}


def _system_columns(table: exp.Table, environment: Environment) -> Columns:
    name = name_of(table)
    schema = name.schema or system_schema(name.name, environment.scope.path, environment.is_system)
    return environment.system_columns(schema, name.name) if schema else {}


def infer(
    tree: exp.Expr, environment: Environment, oids: tuple[int, ...], assigned: Mapping[int, Type] | None = None
) -> tuple[Type, ...]:
    """Return the types of a statement's parameters (`planner.batch.parameters`)."""
    names = {n: TEXT for node in tree.find_all(exp.Parameter) if (n := pg_compat.named_object(node)) is not None}
    user_types = environment.catalog.types_by_oid
    return infer_parameters(tree, oids, {**names, **(assigned or {})}, typer(environment), user_types)
