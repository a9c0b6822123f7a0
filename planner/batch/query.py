"""Batch statements for DuckDB: names resolved to the lake, PostgreSQL's functions and catalogs to ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from catalog import errors
from catalog.errors import Error
from catalog.model import Catalog, Relation
from catalog.types import TEXT, Type, type_of_oid
from catalog.users import User
from planner.batch import pg_compat
from planner.batch.output_names import output_name
from planner.batch.structs import with_row_types
from planner.batch.ties import expand_ties
from planner.bind import Scope, data_type, resolve, resolve_readable
from planner.build.time_windows import expand_windows
from planner.functions.aggregates import canonical
from planner.functions.duckdb_spelling import for_duckdb
from planner.functions.result_types import holds_struct
from planner.parse.rows import is_row
from planner.parse.trees import column_type, is_cte, name_of
from planner.privileges import check_relation, permission_denied
from planner.statements import Name
from planner.views import keep_arguments, reference

# Types whose place a parameter takes when nothing tells more: LIMIT $1.
_BIGINT = Type("bigint")
LAKE = "lake"
_RESOLVED = "resolved"  # marks tables that we have named, which a client cannot


@dataclass(frozen=True)
class Batch:
    """DuckDB's text of a statement; `parameters` are the types of its $1, $2, …"""

    sql: str
    parameters: tuple[Type, ...]

    @property
    def reads_system(self) -> bool:
        """Whether the text names the system catalogs or their functions (or something spelled alike)."""
        return any(f"{schema}." in self.sql.replace('"', "") for schema in (*pg_compat.SCHEMAS.values(), "pgf"))


@dataclass(frozen=True)
class Environment:
    """What a batch statement is planned against.

    `settings` are the session's variables, database and user; `is_system(schema, name)` knows the system catalogs.
    `snapshot` is the one of the lake to read, None the newest.
    `user` is whose privileges count.
    """

    catalog: Catalog
    scope: Scope
    settings: Mapping[str, str]
    is_system: pg_compat.IsSystem
    user: User
    snapshot: int | None = None


def plan_query(tree: exp.Expr, environment: Environment, oids: tuple[int, ...] = ()) -> Batch:
    """A SELECT or VALUES for DuckDB. `oids` are what the client says of its parameters, 0 for unknown."""
    check_reads(tree, environment)
    tree = with_row_types(tree.copy(), environment.catalog, environment.scope)
    _name_outputs(tree)
    tree = expand_windows(canonical(tree))
    parameters = infer_parameters(tree, environment, oids)
    return Batch(_finish(_resolve_tables(tree, environment), environment, parameters), parameters)


def plan_arguments(values: tuple[exp.Expr, ...], types: tuple[Type, ...], environment: Environment) -> Batch:
    """A query of one row: the values of EXECUTE, each as its type. Raises Error 42P02 for a parameter among them."""
    for value in values:
        for parameter in value.find_all(exp.Parameter):
            raise Error(f"there is no parameter ${parameter.name}", errors.UNDEFINED_PARAMETER)
    casts = (exp.cast(value.copy(), data_type(type_)) for value, type_ in zip(values, types, strict=True))
    return plan_query(exp.select(*casts), environment)


def _name_outputs(tree: exp.Expr) -> None:
    """Name the unnamed outputs as PostgreSQL does: `count`, `?column?`, …"""
    select = tree
    while isinstance(select, exp.SetOperation | exp.Subquery):
        select = select.this
    for item in select.selects if isinstance(select, exp.Select) else ():
        if not isinstance(item, exp.Alias | exp.Column | exp.Star | exp.Aliases):
            item.replace(exp.alias_(item.copy(), output_name(item), quoted=True))


def select_columns(name: Name, columns: tuple[str, ...]) -> exp.Select:
    """`SELECT columns FROM name`; all columns when none are given."""
    table = exp.table_(name.name, db=name.schema, catalog=name.database, quoted=True)
    listed: list[exp.Expr] = [exp.column(exp.to_identifier(column, quoted=True)) for column in columns]
    return exp.select(*listed or [exp.Star()]).from_(table)


def plan_source(
    source: exp.Expr, targets: tuple[Type, ...], environment: Environment, oids: tuple[int, ...] = ()
) -> Batch:
    """The rows of an INSERT; a parameter in VALUES takes its column's type."""
    check_reads(source, environment)
    source = source.copy()
    hints = {}
    for row in source.find_all(exp.Tuple) if isinstance(source, exp.Values) else ():
        for value, type_ in zip(row.expressions, targets, strict=False):
            if isinstance(value, exp.Column) and value.sql().upper() == "DEFAULT":
                value.replace(exp.null())
            elif is_row(value) or ((type_.name in ("bytea", "struct") or type_.dimensions) and value.is_string):
                value.replace(exp.cast(value.copy(), data_type(type_)))
            hints[id(value)] = type_
    source = with_row_types(source, environment.catalog, environment.scope)
    parameters = infer_parameters(source, environment, oids, hints)
    return Batch(_finish(_resolve_tables(source, environment), environment, parameters), parameters)


def plan_write(
    tree: exp.Update | exp.Delete, target: Relation, environment: Environment, oids: tuple[int, ...] = ()
) -> Batch:
    """An UPDATE or DELETE for DuckDB. Raises Error 0A000 for a table that only grows."""
    if target.append_only:
        position = name_of(tree.this).position
        message = "append-only table does not support update or delete"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=position)
    check_reads(tree, environment, tree.this)
    if _reads_columns(tree):
        check_relation(environment.catalog, environment.user, target, "SELECT", name_of(tree.this).position)
    tree = tree.copy()
    _cast_rows(tree, target)
    with_row_types(tree, environment.catalog, environment.scope)
    parameters = infer_parameters(tree, environment, oids)
    table = tree.this
    written = table.alias or table.name
    table.replace(_lake_table(target, written))
    return Batch(_finish(_resolve_tables(tree, environment), environment, parameters), parameters)


def _reads_columns(tree: exp.Update | exp.Delete) -> bool:
    """Whether a write asks for values that are stored, so that its effect would tell them."""
    read = [tree.args.get("where"), *(assignment.expression for assignment in tree.expressions)]
    return any(part is not None and part.find(exp.Column) for part in read)


def _cast_rows(tree: exp.Update | exp.Delete, target: Relation) -> None:
    """Assignments to struct columns as casts to their types, which match fields by place."""
    for assignment in tree.expressions:
        column = target.column(assignment.this.name)
        if column is not None and holds_struct(column.type):
            value = assignment.expression
            value.replace(exp.cast(value.copy(), data_type(column.type)))


def _finish(tree: exp.Expr, environment: Environment, parameters: tuple[Type, ...]) -> str:
    rewritten = pg_compat.rewrite(expand_ties(tree), environment.is_system, environment.settings)

    def typed(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Div | exp.Mod) and not (
            isinstance(node.expression, exp.Literal) and node.expression.name != "0"
        ):
            return _checked_division(node)
        number = _parameter_number(node)
        if number is None or isinstance(node.parent, exp.Cast):
            return node
        return exp.cast(node.copy(), data_type(parameters[number - 1]))

    return for_duckdb(rewritten.transform(typed), lenient=False).sql(dialect="duckdb")


def _checked_division(node: exp.Binary) -> exp.Expr:
    """As in Postgres a division by zero is an error, where DuckDB gives NULL or infinity."""
    divisor = node.expression
    raised = exp.cast(exp.Anonymous(this="error", expressions=[exp.Literal.string("division by zero")]), "int")
    checked = exp.Case().when(exp.EQ(this=divisor.copy(), expression=exp.Literal.number(0)), raised).else_(divisor)
    node.set("expression", checked)
    return node


def base_tables(tree: exp.Expr) -> Iterator[exp.Table]:
    """Tables of a statement that are not CTEs or functions."""
    for table in list(tree.find_all(exp.Table)):
        if isinstance(table.this, exp.Identifier) and not is_cte(table):
            yield table


def relations_read(tree: exp.Expr, environment: Environment) -> frozenset[int]:
    """The user relations that a query names: of a view's own, none."""
    found = (find_relation(name_of(table), environment) for table in base_tables(tree))
    return frozenset(relation.id for relation in found if relation is not None)


def check_reads(tree: exp.Expr, environment: Environment, written: exp.Expr | None = None) -> None:
    """Raise Error 42501 unless the user may read all that a statement does, but for the table it writes to.

    What a view reads is up to the privileges of its owner.
    """
    user, catalog = environment.user, environment.catalog
    if user.is_super:
        return
    _check_functions(tree, environment)
    for table in base_tables(tree):
        name = name_of(table)
        relation = None if table is written else find_relation(name, environment)
        if relation is None:
            continue
        check_relation(catalog, user, relation, "SELECT", name.position)
        if relation.is_view:
            scope = Scope(relation.database, relation.schema)
            inner = replace(environment, scope=scope, user=catalog.users[relation.owner])
            check_reads(reference(relation, table.copy()).this, inner)


def _check_functions(tree: exp.Expr, environment: Environment) -> None:
    """Raise Error 42501 for a function in FROM that is not ours: DuckDB has some that read files or any table."""
    for source in tree.find_all(exp.Table, exp.Lateral):
        function = source.this
        if not isinstance(function, exp.Func) or isinstance(function, _ROW_FUNCTIONS):
            continue
        name = function.name if isinstance(function, exp.Anonymous) else function.sql_name()
        if name.lower() not in _ROW_FUNCTION_NAMES and not environment.is_system("pgf", name.lower()):
            raise permission_denied(f"permission denied for function {name.lower()}")


_ROW_FUNCTIONS = (exp.Unnest, exp.Explode, exp.ExplodingGenerateSeries, exp.GenerateSeries)
_ROW_FUNCTION_NAMES = frozenset({"generate_series", "unnest", "tumble", "hop", "range", "json_each"})


def _resolve_tables(tree: exp.Expr, environment: Environment) -> exp.Expr:
    for table in base_tables(tree):
        if table.meta.get(_RESOLVED):
            continue
        relation = find_relation(name_of(table), environment)
        if relation is not None:
            _qualify_columns(tree, table)
            table.replace(
                _inlined(relation, table, environment) if relation.is_view else _readable(relation, table, environment)
            )
    return tree


def _inlined(view: Relation, table: exp.Table, environment: Environment) -> exp.Expr:
    """The query of a view, its own names resolved where the view is."""
    subquery = reference(view, table)
    _resolve_tables(subquery.this, replace(environment, scope=Scope(view.database, view.schema)))
    return subquery


def find_relation(name: Name, environment: Environment) -> Relation | None:
    """The user relation a name means; None for a system view. Raises Error 42P01."""
    schema = name.schema
    if schema in pg_compat.SCHEMAS:
        if not environment.is_system(schema, name.name):
            raise Error(f"table or source not found: {name}", errors.UNDEFINED_TABLE, position=name.position)
        return None
    if (
        schema is None
        and environment.catalog.find(environment.scope.database, environment.scope.schema, name.name) is None
    ) and any(environment.is_system(system, name.name) for system in ("pg_catalog", "rw_catalog")):
        return None
    relation = resolve_readable(environment.catalog, environment.scope, name)
    failed_job(environment.catalog, relation)
    return relation


def failed_job(catalog: Catalog, relation: Relation) -> None:
    """Raise Error 55000 when this view, or one it reads, can no longer be maintained: its rows would be stale."""
    pending = [relation]
    while pending:
        current = pending.pop()
        job = catalog.job_by_id.get(current.id)
        if job is not None and job.status == "FAILED":
            raise Error(
                f'materialized view "{current.name}" has failed and is no longer maintained',
                errors.NOT_IN_PREREQUISITE_STATE,
                detail=job.error,
                hint="Drop it and create it again.",
            )
        pending += [catalog.by_id[id_] for id_ in current.upstreams if id_ in catalog.by_id]


def _readable(relation: Relation, table: exp.Table, environment: Environment) -> exp.Expr:
    """What a reference to a table or materialized view reads: its visible columns in the lake."""
    stored: exp.Expr = _lake_table(relation, None)
    if environment.snapshot is not None:
        version = exp.Literal.number(environment.snapshot)
        stored.set("when", exp.HistoricalData(this="AT", kind="VERSION", expression=version))
    if environment.snapshot is not None or len(relation.visible) != len(relation.stored):
        columns = [exp.column(exp.to_identifier(column.name, quoted=True)) for column in relation.visible]
        stored = exp.select(*columns).from_(stored).subquery()
    alias = table.args.get("alias")
    stored.set("alias", alias.copy() if alias else exp.TableAlias(this=exp.to_identifier(table.name, quoted=True)))
    keep_arguments(table, stored)
    return stored


def _lake_table(relation: Relation, alias: str | None) -> exp.Table:
    table = exp.Table(
        this=exp.to_identifier(relation.name, quoted=True),
        db=exp.to_identifier(f"{relation.database}.{relation.schema}", quoted=True),
        catalog=exp.to_identifier(LAKE),
    )
    table.meta[_RESOLVED] = True
    if alias is not None:
        table.set("alias", exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
    return table


def _qualify_columns(tree: exp.Expr, table: exp.Table) -> None:
    """`schema.table.column` becomes `table.column`, since the table now has just its alias."""
    for column in tree.find_all(exp.Column):
        if column.args.get("db") is not None and column.table == table.name and column.db == table.db:
            column.set("db", None)
            column.set("catalog", None)


def _parameter_number(node: exp.Expr) -> int | None:
    if isinstance(node, exp.Parameter) and node.this.name.isdigit():
        return int(node.this.name)
    return None


def infer_parameters(
    tree: exp.Expr, environment: Environment, oids: tuple[int, ...], hints: Mapping[int, Type] | None = None
) -> tuple[Type, ...]:
    """The types of a statement's parameters: what the client says, else what their place says, else text."""
    found: dict[int, Type] = {}
    for node in tree.find_all(exp.Parameter):
        number = _parameter_number(node)
        if number is not None and number not in found:
            hint = (hints or {}).get(id(node)) or pg_compat.parameter_type(node)
            type_ = hint or _type_by_place(node, tree, environment)
            if type_ is not None:
                found[number] = type_
    numbers = [n for node in tree.find_all(exp.Parameter) if (n := _parameter_number(node)) is not None]
    count = max([len(oids), *numbers])
    given = {index + 1: type_of_oid(oid) for index, oid in enumerate(oids)}
    return tuple(given.get(n) or found.get(n) or TEXT for n in range(1, count + 1))


def _type_by_place(node: exp.Parameter, tree: exp.Expr, environment: Environment) -> Type | None:
    parent = node.parent
    while isinstance(parent, exp.Paren | exp.Tuple | exp.Neg):
        parent = parent.parent
    if isinstance(parent, exp.Cast):
        return column_type(parent.to)
    if isinstance(parent, exp.Limit | exp.Offset):
        return _BIGINT
    if isinstance(parent, exp.Binary | exp.Between | exp.In):
        for side in parent.iter_expressions():
            match side.unnest():
                case exp.Column() as column:
                    return _column_type(column, tree, environment)
                case exp.Cast(args={"to": to}):
                    return column_type(to)
                case exp.Literal(is_string=False) as literal:
                    return Type("integer") if literal.is_int else Type("numeric")
    return None


def _column_type(column: exp.Column, tree: exp.Expr, environment: Environment) -> Type | None:
    for table in base_tables(tree):
        if column.table and column.table != table.alias_or_name:
            continue
        name = name_of(table)
        if name.schema in pg_compat.SCHEMAS:
            continue
        relation = environment.catalog.find(
            environment.scope.database, name.schema or environment.scope.schema, name.name
        )
        found = (
            relation.column(column.name.lower() if not column.this.args.get("quoted") else column.name)
            if relation
            else None
        )
        if found is not None:
            return found.type
    return None


def resolve_target(name: Name, privilege: str, environment: Environment) -> Relation:
    """The table a write names. Raises Error 42809 for a view, 42P01 for nothing, 42501 without the privilege."""
    relation = resolve(environment.catalog, environment.scope, name, "table")
    if not relation.is_table:
        raise Error(f'cannot change {relation.kind} "{name}"', errors.WRONG_OBJECT_TYPE, position=name.position)
    check_relation(environment.catalog, environment.user, relation, privilege, name.position)
    return relation
