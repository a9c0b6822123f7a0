"""The values that a write gives to columns: assigned ones, defaults, and those of generated columns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import MappingProxyType

from sqlglot import exp
from sqlglot.optimizer.annotate_types import annotate_types

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import Column, Relation
from sparkwave.catalog.moment_words import is_relative
from sparkwave.catalog.names import quote
from sparkwave.catalog.types import Type
from sparkwave.planner.batch.interval_fields import in_fields
from sparkwave.planner.batch.query import Batch, Environment, finish, written_batch
from sparkwave.planner.batch.sequence_calls import Draws, call_of, check_use
from sparkwave.planner.bind.binder import data_type
from sparkwave.planner.bind.stored_calls import with_calls
from sparkwave.planner.bind.untyped import with_literals_of_enums
from sparkwave.planner.bind.user_types import with_user_types
from sparkwave.planner.definitions.counting import NEXT, drawn_by
from sparkwave.planner.functions.duckdb_spelling import for_duckdb
from sparkwave.planner.functions.emit import Sql
from sparkwave.planner.functions.json_checks import check_json
from sparkwave.planner.functions.operators import METADATA
from sparkwave.planner.functions.scalar_functions import ELEMENT
from sparkwave.planner.parse.generated import columns_read
from sparkwave.planner.parse.identifiers import folded
from sparkwave.planner.parse.literals import array_value, moment_value
from sparkwave.planner.parse.text_values import MOMENTS, moment_text
from sparkwave.planner.parse.trees import at, position_of, unsupported
from sparkwave.planner.parse.type_text import user_type_name


def assignments(
    items: list[exp.Expr],
    target: Relation,
    environment: Environment,
    keeps: Callable[[Column, exp.Expr], bool] = lambda column, value: False,
) -> dict[str, exp.Expr]:
    """Return the value of each column in SET, cast to the column's type, without values that a column `keeps`.

    Raises Error 42703, 42601, 0A000, 428C9, and those of `as_column`.
    """
    found: dict[str, exp.Expr] = {}
    for item in items:
        for place, value in _pairs(item):
            column = target_column(target, place)
            if column.name in found:
                raise Error(f'multiple assignments to same column "{column.name}"', errors.SYNTAX_ERROR)
            if keeps(column, value):
                continue
            if column.name in target.primary_key:
                raise Error("update modifying the PK column is unsupported", errors.FEATURE_NOT_SUPPORTED)
            if column.generated is not None:
                if is_default(value):
                    continue
                message = "update modifying the generated column is unsupported"
                detail = f'Column "{column.name}" is a generated column.'
                raise Error(message, errors.GENERATED_ALWAYS, detail=detail, position=position_of(place))
            if any(column.name in read_by(other) for other in generated_columns(target) if other.name in target.key):
                message = (
                    "update modifying the column referenced by generated columns that are part of the primary key is "
                    "not allowed"
                )
                raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=position_of(place))
            found[column.name] = as_column(in_fields(value, column, target), column, environment)
    return found


def _pairs(item: exp.Expr) -> Iterator[tuple[exp.Expr, exp.Expr]]:
    """Yield the pairs of column and value in one item of SET.

    An item is `a = 1`, `(a, b) = (1, 2)` or `(a, b) = (SELECT 1, 2)`, whose query runs once for each column.
    """
    places, value = item.this, item.expression
    if not isinstance(places, exp.Tuple | exp.Paren):
        yield places, value
        return
    listed = places.expressions if isinstance(places, exp.Tuple) else [places.this]
    query = value.this if isinstance(value, exp.Subquery) else None
    if query is not None and query.is_star:
        raise unsupported("SELECT * in SET", value)
    values = query.selects if query else value.expressions if is_written_row(value) else [value.unnest()]
    if query is None and len(listed) > 1 and not is_written_row(value):
        message = "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=position_of(value))
    if len(values) != len(listed):
        raise Error("number of columns does not match number of values", errors.SYNTAX_ERROR)
    for number, (place, single) in enumerate(zip(listed, values, strict=True)):
        yield place, _output(query, number) if query else single


def is_written_row(value: exp.Expr) -> bool:
    return isinstance(value, exp.Tuple) or (isinstance(value, exp.Anonymous) and value.name.lower() == "row")


def _output(query: exp.Query, number: int) -> exp.Expr:
    """Return the value of one output of a query."""
    names = [identifier(f"?{place}") for place in range(len(query.selects))]
    rows = exp.Subquery(this=query.copy(), alias=exp.TableAlias(this=identifier("?values"), columns=names))
    return exp.select(exp.Column(this=names[number].copy())).from_(rows).subquery()


def as_column(value: exp.Expr, column: Column, environment: Environment) -> exp.Expr:
    """Return a value cast to a column's type; DEFAULT is the column's default.

    Raises Error 22007, 22008, 22009, 22023 for a text that is no date or time.
    """
    text, order = value.unnest(), environment.scope.order
    if is_default(value):
        value = default_of(column, environment)
    elif text.is_string and column.type in MOMENTS:
        with at(text):
            value = moment_value(text.name, column.type, order)
    elif text.is_string and column.type.dimensions:
        with at(text):
            value = array_value(text.name, column.type, order)
    return exp.cast(value.copy(), data_type(column.type))


def is_default_at(row: exp.Expr, place: int) -> bool:
    values = row.expressions if isinstance(row, exp.Tuple) else [row]
    return place < len(values) and is_default(values[place])


def never_null(value: exp.Expr, column: Column, target: Relation) -> exp.Expr:
    """Return a value of a column that raises an error if it is NULL and must not be."""
    if not column.not_null:
        return value
    raised = exp.Anonymous(this="error", expressions=[exp.Literal.string(null_message(column, target))])
    return exp.Coalesce(this=value, expressions=[exp.cast(raised, data_type(column.type))])


def null_message(column: Column, target: Relation) -> str:
    return f'null value in column "{column.name}" of relation "{target.name}" violates not-null constraint'


def is_default(value: exp.Expr) -> bool:
    return isinstance(value, exp.Column | exp.Var) and value.sql().upper() == "DEFAULT"


def default_of(column: Column, environment: Environment) -> exp.Expr:
    """Return the value of a column without a given one."""
    default = with_calls(column.default or "NULL", (), environment.catalog, environment.scope)
    if isinstance(default, exp.Cast) and column.type.named is not None and user_type_name(default.to) is not None:
        default = default.this  # the cast to the column's type does the same
    if default.is_string and column.type in MOMENTS and not is_relative(default.name):
        default = exp.Literal.string(moment_text(default.name, column.type))
    return exp.cast(default, data_type(column.type))


def default_batch(column: Column, environment: Environment) -> Batch:
    """Plan a column's default, an expression of DuckDB. Raises Error 42501 for a sequence that the user may not use."""
    sequence = drawn_by(column.default)
    if sequence is None:
        return written_batch(default_of(column, environment), environment, ())
    check_use(environment.catalog, environment.user, environment.catalog.by_id[sequence], NEXT)
    return Batch(Sql(f"CAST({call_of(NEXT, sequence)} AS {column.type.duckdb()})"), (), draws=Draws((sequence,)))


def cast_text(value: str, source: Type, target: Type) -> str:
    """Return DuckDB's text of a value of one type, given as such a text, as a value of another type."""
    element: exp.Expr = exp.column(ELEMENT)
    element.type = data_type(source)
    cast = for_duckdb(exp.cast(element, data_type(target)), lenient=False).sql(dialect="duckdb")
    return f"list_transform([{value}], lambda {ELEMENT}: {cast})[1]"


def generated_columns(target: Relation) -> tuple[Column, ...]:
    return tuple(column for column in target.visible if column.generated is not None)


def given_columns(target: Relation) -> tuple[Column, ...]:
    """Return the columns of an INSERT's rows that names none: all that are not generated, as in RisingWave."""
    return tuple(column for column in target.visible if column.generated is None)


def check_given(
    columns: Iterable[Column],
    is_given: Callable[[int], bool] = lambda place: True,
    identity: Collection[str] = (),
) -> None:
    """Raise Error 428C9 for a generated column with a value other than DEFAULT.

    The columns named in `identity` take no other value either.
    """
    for place, column in enumerate(columns):
        if column.name in identity and is_given(place):
            raise Error(
                f'cannot insert a non-DEFAULT value into column "{column.name}"',
                errors.GENERATED_ALWAYS,
                detail=f'Column "{column.name}" is an identity column defined as GENERATED ALWAYS.',
                hint="Use OVERRIDING SYSTEM VALUE to override.",
            )
        if column.generated is not None and is_given(place):
            raise Error(
                f'cannot insert a non-DEFAULT value into column "{column.name}"',
                errors.GENERATED_ALWAYS,
                detail=f'Column "{column.name}" is a generated column.',
            )


def read_by(column: Column) -> frozenset[str]:
    return columns_read(column.generated) if column.generated is not None else frozenset()


def generated_value(
    column: Column, columns: Iterable[Column], environment: Environment, names: Mapping[str, str] = MappingProxyType({})
) -> Sql:
    """Return DuckDB's text of a generated column's value, over the columns of its row; `names` may rename these."""
    assert column.generated is not None
    if column.is_former:  # DuckDB's cast takes fields by their names, and gives NULL for those that are not there
        [name] = read_by(column)
        return Sql(f"CAST({quote(names.get(name, name))} AS {column.type.duckdb()})")
    value = _over(column.generated, columns, environment, names)
    return finish(exp.cast(value, data_type(column.type)), environment, ())


def transformed_value(
    text: str, type_: Type, columns: Iterable[Column], environment: Environment, names: Mapping[str, str]
) -> Sql:
    """Return DuckDB's text of an expression over the columns of a row, as a value of a type; `names` rename them."""
    value = _over(text, columns, environment, names, is_typed=True)
    return finish(exp.cast(value, data_type(type_)), environment, ())


def condition_text(
    condition: str, columns: Iterable[Column], environment: Environment, names: Mapping[str, str] = MappingProxyType({})
) -> Sql:
    """Return DuckDB's text of a condition over columns, which `names` may rename."""
    return finish(_over(condition, columns, environment, names), environment, ())


def _over(
    text: str, columns: Iterable[Column], environment: Environment, names: Mapping[str, str], is_typed: bool = False
) -> exp.Expr:
    """Return an expression over columns, which `names` may rename.

    Its parts have types if it `is_typed`, or if there may be documents.
    """
    listed = tuple(columns)
    value = with_calls(text, listed, environment.catalog, environment.scope)
    value = with_user_types(value, environment.catalog, environment.scope)
    types = {column.name: column.type for column in listed}
    enums = {name: type_ for name, type_ in types.items() if type_.labels}
    if enums:
        with_literals_of_enums(value, enums)
    if is_typed or any(type_.holds_json for type_ in types.values()):
        for read in value.find_all(exp.Column):
            read.type = data_type(types[folded(read.this)]) if folded(read.this) in types else None
        value = annotate_types(value, expression_metadata=METADATA, dialect="postgres", overwrite_types=False)
        check_json(value)
    for read in value.find_all(exp.Column):
        name = folded(read.this)
        read.set("this", identifier(names.get(name, name)))
    return value


def target_column(target: Relation, place: exp.Expr) -> Column:
    """Return the column that SET or a list of columns names. Raises Error 42703."""
    name = folded(place.this if isinstance(place, exp.Column) else place)
    column = next((column for column in target.visible if column.name == name), None)
    if column is None:
        message = f'column "{name}" of relation "{target.name}" does not exist'
        raise Error(message, errors.UNDEFINED_COLUMN, position=position_of(place))
    return column


def named(value: exp.Expr, name: str) -> exp.Expr:
    return exp.alias_(value, name, quoted=True)


def column_of(name: str, table: str | None = None) -> exp.Column:
    return exp.Column(this=identifier(name), table=identifier(table) if table is not None else None)


def identifier(name: str) -> exp.Identifier:
    return exp.to_identifier(name, quoted=True)
