"""`CREATE TABLE … (LIKE other INCLUDING …)`: the columns and constraints of other relations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import Catalog, Column, Relation
from sparkwave.catalog.relation_details import Check
from sparkwave.catalog.users import User
from sparkwave.planner.bind.binder import resolve_readable
from sparkwave.planner.bind.privileges import check_relation
from sparkwave.planner.bind.scopes import Scope
from sparkwave.planner.parse.generated import renamed
from sparkwave.planner.parse.table import checked
from sparkwave.planner.statements import ColumnDefinition, CreateTable, DeclaredUnique, Like, SequenceOptions


def with_likes(statement: CreateTable, catalog: Catalog, scope: Scope, user: User) -> CreateTable:
    """Return a CREATE TABLE with the columns and constraints of the relations that it is LIKE.

    Of the parts that LIKE may include, indexes are the primary key and UNIQUE, and comments, statistics, storage and
    compression are not copied. Raises Error 42P01, 42501, 42701, 42703, 42710, 42P16 for a second primary key.
    """
    if not statement.likes:
        return statement
    columns, key, checks = [*statement.columns], statement.primary_key, [*statement.checks]
    keys = [*statement.keys]
    for like in reversed(statement.likes):
        relation = resolve_readable(catalog, scope, like.name)
        check_relation(catalog, user, relation, "SELECT", like.name.position)
        columns[like.place : like.place] = [_definition(column, relation, like, catalog) for column in relation.visible]
        if "CONSTRAINTS" in like.included:
            checks[:0] = _own_checks(relation, catalog)
        if "INDEXES" in like.included and relation.is_table and relation.primary_key:
            if key:
                message = f'multiple primary keys for table "{statement.name.name}" are not allowed'
                raise Error(message, errors.INVALID_TABLE_DEFINITION, position=like.name.position)
            key = relation.primary_key
        if "INDEXES" in like.included and relation.is_table:
            keys += _uniques(relation)
    made = replace(statement, columns=tuple(columns), primary_key=key, checks=tuple(checks), keys=tuple(keys))
    return checked(made)


def _uniques(table: Relation) -> Iterator[DeclaredUnique]:
    names = {column.lake_name: column.name for column in table.visible}
    for unique in table.constraints.uniques:
        columns, included = (tuple(names[each] for each in listed) for listed in (unique.columns, unique.included))
        yield DeclaredUnique("", columns, included, unique.nulls_distinct, unique.deferral)


def _definition(column: Column, relation: Relation, like: Like, catalog: Catalog) -> ColumnDefinition:
    sequence = next(iter(catalog.sequences_of(relation, column)), None)
    identity = sequence.sequence.identity if sequence is not None else None
    counts = None
    if sequence is not None and identity is not None and "IDENTITY" in like.included:
        made = sequence.sequence
        counts = SequenceOptions(
            made.type, made.start, made.increment, made.minimum, made.maximum, made.cycles, made.cache
        )
    has_default = "DEFAULTS" in like.included and identity is None
    return ColumnDefinition(
        column.name,
        column.type,
        not_null=relation.is_table and (column.not_null or column.name in relation.primary_key),
        default=column.default if has_default else None,
        generated=column.generated if "GENERATED" in like.included else None,
        counts=counts,
        identity=identity if counts is not None else None,
        length=relation.length_of(column) if relation.is_table else None,
    )


def _own_checks(relation: Relation, catalog: Catalog) -> list[Check]:
    """Return the checks of a table without those of its columns' domains, which the new columns have by themselves."""
    domains = {made.id: made.domain for made in catalog.types if made.domain is not None}
    of_domains = [
        renamed(check.condition, {"value": column.name})
        for column in relation.visible
        if column.type.named is not None and column.type.named.oid in domains
        for check in domains[column.type.named.oid].checks
    ]
    return [check for check in relation.constraints.checks if check.condition not in of_domains]
