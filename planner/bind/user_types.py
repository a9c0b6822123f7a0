"""User-defined types: the meaning of type names in statements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import Catalog, Relation, UserType
from sparkwave.catalog.names import quote_if_needed
from sparkwave.catalog.relation_details import Check, Domain
from sparkwave.catalog.types import JSON, UNRESOLVED, Type, struct_type
from sparkwave.planner.bind.scopes import Scope, find
from sparkwave.planner.functions.typed import data_type
from sparkwave.planner.parse.constraints import named_checks
from sparkwave.planner.parse.generated import expression_of, renamed
from sparkwave.planner.parse.shown_text import shown_text
from sparkwave.planner.parse.text_values import decode_text
from sparkwave.planner.parse.trees import column_type, parse_tree, position_of
from sparkwave.planner.parse.type_text import user_type_name
from sparkwave.planner.statements import AddColumn, AlterTable, ColumnDefinition, CreateDomain, CreateTable, Name

T = TypeVar("T")
Tree = TypeVar("Tree", bound=exp.Expr)


def find_type(catalog: Catalog, scope: Scope, schema: str | None, name: str) -> UserType | None:
    """Return the user-defined type of a name, within the scope."""
    places = (schema,) if schema else scope.path
    found = (catalog.types_by_name.get((scope.database, place, name)) for place in places)
    return next((made for made in found if made is not None), None)


def find_row_type(catalog: Catalog, scope: Scope, name: Name, in_definition: bool, position: int | None) -> Type | None:
    """Return the type of rows of a name: a user's type, or that of a relation's rows, which no definition may name.

    None for any other type. Raises Error 42704 for an unknown one, 0A000 for a relation in a definition.
    """
    made = find_type(catalog, scope, name.schema, name.name)
    if made is not None:
        return made.type if made.type.is_struct else None
    relation = find(catalog, scope, name)
    if relation is None:
        raise Error(f'type "{name}" does not exist', errors.UNDEFINED_OBJECT, position=position)
    if in_definition:
        raise _of_rows(relation, position)
    return struct_type((column.name, column.type) for column in relation.visible)


def _of_rows(relation: Relation, position: int | None) -> Error:
    message = f"the type of the rows of {relation.kind} {relation.name} is not supported in a definition"
    hint = "Make a type with CREATE TYPE."
    return Error(message, errors.FEATURE_NOT_SUPPORTED, hint=hint, position=position)


def resolved(type_: Type, catalog: Catalog, scope: Scope, of_column: bool = False) -> Type:
    """Return a type with all names resolved.

    Raises Error 42704, 0A000 for a domain, or a relation's rows, that are not the type of a column.
    """
    if type_.fields:
        fields_ = tuple((name, resolved(field, catalog, scope, False)) for name, field in type_.fields)
        return replace(type_, fields=fields_)
    if type_.name != UNRESOLVED or type_.named is None:
        return type_
    made = find_type(catalog, scope, type_.named.schema, type_.named.name)
    if made is None:
        named = type_.named
        relation = find(catalog, scope, Name(None, named.schema, named.name, named.position or 1))
        if relation is not None and of_column:  # it stays as it is, whatever becomes of the relation
            rows = struct_type((column.name, column.type) for column in relation.visible)
            return replace(rows, dimensions=type_.dimensions)
        if relation is not None:
            raise _of_rows(relation, named.position)
        written = ".".join(part for part in (named.schema, named.name) if part) + "[]" * type_.dimensions
        raise Error(f'type "{written}" does not exist', errors.UNDEFINED_OBJECT, position=named.position)
    if made.domain is not None and (type_.dimensions or not of_column):
        raise _misplaced(made, type_.named.position)
    return replace(made.type, dimensions=type_.dimensions)


def _misplaced(made: UserType, position: int | None) -> Error:
    message = f"domain {made.name} is for columns of tables and for casts, not for arrays, fields or arguments"
    return Error(message, errors.FEATURE_NOT_SUPPORTED, position=position)


def with_types(statement: T, catalog: Catalog, scope: Scope, of_column: bool = False) -> T:
    """Return a statement, or a part of one, with its type names resolved.

    Raises Error 42704, and 0A000 for a domain that is not the type of a table's new column.
    """
    made: Any = statement
    if isinstance(statement, Type):
        made = resolved(statement, catalog, scope, of_column)
    elif isinstance(statement, Check):
        made = replace(statement, condition=_settled(statement.condition, catalog, scope))
    elif isinstance(statement, tuple):
        made = tuple(with_types(part, catalog, scope, of_column) for part in statement)
    elif is_dataclass(statement):
        is_definition = of_column and isinstance(statement, ColumnDefinition)
        of_column = is_definition or isinstance(statement, CreateTable | AddColumn | CreateDomain)
        parts = {f.name: getattr(statement, f.name) for f in fields(statement)}
        changed = {name: with_types(part, catalog, scope, of_column) for name, part in parts.items()}
        if isinstance(statement, ColumnDefinition):
            texts = {name: parts[name] for name in ("default", "generated") if parts[name] is not None}
            changed |= {name: _settled(text, catalog, scope) for name, text in texts.items()}
        if any(changed[name] is not parts[name] and changed[name] != parts[name] for name in parts):
            made = replace(statement, **changed)  # type: ignore[type-var]
    return made


def with_user_types(tree: Tree, catalog: Catalog, scope: Scope) -> Tree:
    """Resolve the user-defined types of the casts in a tree, in place.

    Raises Error 22P02 for a text that is no label of an enum.
    """
    if not catalog.types:
        return tree
    for kind, made in list(named_types(tree, catalog, scope)):
        cast = kind.parent
        if isinstance(cast, exp.Cast) and cast.this.is_string:
            check_label(cast.this.name, made.type, position_of(cast.this))
        kind.replace(data_type(made.type))
        if made.domain is not None:
            if not isinstance(cast, exp.Cast):
                raise _misplaced(made, position_of(kind))
            cast.set("this", _checked(cast.this, made, made.domain))
    for call in list(tree.find_all(exp.Anonymous)):
        if call.name.lower() in _OF_LABELS:
            value = _labels_of(call)
            is_output = isinstance(call.parent, exp.Select)
            call.replace(exp.alias_(value, call.name.lower()) if is_output else value)
    return tree


# Functions of the labels of an enum, of which DuckDB's also give the mark of the type.
_OF_LABELS = frozenset(("enum_first", "enum_last", "enum_range"))


def _labels_of(call: exp.Anonymous) -> exp.Expr:
    """Return the constant that a call gives which names its enum by a cast, as in `enum_range(NULL::mood)`.

    Raises Error 0A000 for any other call.
    """
    name, given = call.name.lower(), call.expressions
    types = [column_type(cast.to) for cast in given if isinstance(cast, exp.Cast)]
    values = [cast.this if isinstance(cast, exp.Cast) else cast for cast in given]
    is_known = all(value.is_string or isinstance(value, exp.Null) for value in values)
    type_ = next((type_ for type_ in types if type_.labels and type_.named is not None), None)
    if type_ is None or type_.named is None or not is_known or len(given) > 1 + (name == "enum_range"):
        message = f"{name} of what is not a cast of NULL or of a label to an enum is not supported"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=position_of(call))
    labels = [label for label in type_.labels if label != type_.named.mark]
    bounds = [value.name if value.is_string else None for value in values]
    if name != "enum_range":
        return exp.cast(exp.Literal.string(labels[0 if name == "enum_first" else -1]), data_type(type_))
    if len(given) > 1:
        low, high = (labels.index(bound) if bound is not None else None for bound in bounds)
        labels = labels[low : None if high is None else high + 1]
    listed = exp.Array(expressions=[exp.Literal.string(label) for label in labels])
    return exp.cast(listed, data_type(replace(type_, dimensions=1)))


def _checked(value: exp.Expr, made: UserType, domain: Domain) -> exp.Expr:
    """Return a value that is cast to a domain and raises where it violates the domain's conditions."""
    base = data_type(replace(made.type, named=None))
    value = exp.cast(value.copy(), base)
    case = exp.Case()
    if domain.not_null:
        is_null = exp.Is(this=value.copy(), expression=exp.null())
        case = case.when(is_null, _raised(f"23502 domain {made.name} does not allow null values", base))
    for check in domain.checks:
        condition = expression_of(check.condition).copy()
        for column in list(condition.find_all(exp.Column)):
            column.replace(value.copy())
        message = f'23514 value for domain {made.name} violates check constraint "{check.name}"'
        case = case.when(exp.Not(this=exp.paren(condition)), _raised(message, base))
    return exp.paren(case.else_(value)) if case.args.get("ifs") else value


def _raised(text: str, base: exp.DataType) -> exp.Expr:
    """Return an expression of a type that raises an error: DuckDB cannot cast its text to a number."""
    return exp.cast(exp.cast(exp.cast(exp.Literal.string(f"!{text}"), "int"), "varchar"), base)


def with_domains(statement: T, catalog: Catalog) -> T:
    """Return a statement that makes columns, with the conditions and defaults of the columns' domains."""
    domains = {made.id: made.domain for made in catalog.types if made.domain is not None}

    def with_domain(column: ColumnDefinition) -> ColumnDefinition:
        domain = domains.get(column.type.named.oid) if column.type.named is not None else None
        if domain is None:
            return column
        checks = tuple(Check("", renamed(check.condition, {"value": column.name})) for check in domain.checks)
        return replace(
            column,
            not_null=column.not_null or domain.not_null,
            default=column.default or domain.default,
            checks=(*column.checks, *checks),
        )

    made: Any = statement
    if isinstance(statement, CreateTable) and domains:
        columns = tuple(map(with_domain, statement.columns))
        new = [
            check
            for own, column in zip(statement.columns, columns, strict=True)
            for check in column.checks[len(own.checks) :]
        ]
        names = [column.name for column in columns]
        checks = named_checks(statement.name.name, new, names, [check.name for check in statement.checks])
        made = replace(statement, columns=columns, checks=(*statement.checks, *checks))
    elif isinstance(statement, AlterTable) and domains:
        actions = (
            replace(a, column=with_domain(a.column)) if isinstance(a, AddColumn) else a for a in statement.actions
        )
        made = replace(statement, actions=tuple(actions))
    return made


def named_types(tree: exp.Expr, catalog: Catalog, scope: Scope) -> Iterator[tuple[exp.DataType, UserType]]:
    """Return the DataTypes of a tree that name user-defined types, with these types."""
    for kind in list(tree.find_all(exp.DataType)):
        name = user_type_name(kind)
        made = find_type(catalog, scope, name.schema, name.name) if name is not None else None
        if made is not None:
            yield kind, made


def _settled(text: str, catalog: Catalog, scope: Scope) -> str:
    """Return an expression to store with a table, where type names have their schemas."""
    if not catalog.types:
        return text
    tree = parse_tree(f"SELECT {text}").expressions[0]
    is_changed = False
    for kind, made in named_types(tree, catalog, scope):
        written = kind.args["kind"]
        if isinstance(written, exp.Identifier):
            schema = exp.to_identifier(made.schema, quoted=quote_if_needed(made.schema) != made.schema)
            kind.set("kind", exp.Dot(this=schema, expression=written.copy()))
            is_changed = True
    return shown_text(tree) if is_changed else text


def check_label(text: str, type_: Type, position: int | None = None) -> None:
    """Raise Error 22P02 for a text that is no label of an enum, or no json; accepts any text for other types."""
    if type_.labels or type_ == JSON:
        try:
            decode_text(text, replace(type_, dimensions=0))
        except Error as error:
            error.position = position
            raise


def with_type(type_: Type, changed: Type) -> Type:
    """Return a type with a new version of a user's type in place of the old one."""
    if type_.named is not None and changed.named is not None and type_.named.oid == changed.named.oid:
        return replace(changed, dimensions=type_.dimensions)
    fields = tuple((name, with_type(field, changed)) for name, field in type_.fields)
    return replace(type_, fields=fields) if fields != type_.fields else type_
