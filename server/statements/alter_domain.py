"""ALTER DOMAIN: changes a domain's default and conditions, and the columns that have got them from the domain.

A column of a domain has the domain's conditions as constraints of its table, and its default. So a change of the domain
changes the tables, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import Column, Relation, UserType
from sparkwave.catalog.names import quote
from sparkwave.catalog.relation_details import Check, Domain
from sparkwave.catalog.stores.relation_store import alter_columns
from sparkwave.catalog.stores.type_store import replace_type
from sparkwave.executor.epochs.standstill import standing_still
from sparkwave.planner.bind.stored_calls import refuse_calls
from sparkwave.planner.definitions.stored_definitions import namers_of_type
from sparkwave.planner.definitions.table_definition import with_constraints, with_text
from sparkwave.planner.parse.generated import renamed
from sparkwave.planner.statements import (
    AddConstraint,
    AlterDomain,
    DeclaredUnique,
    DropConstraint,
    RenameConstraint,
    SetDefault,
    SetNotNull,
)
from sparkwave.server.session.session import Session
from sparkwave.server.statements.alter_constraints import add_check
from sparkwave.server.statements.create_types import find_owned, with_names
from sparkwave.server.statements.sequences import settled_default
from sparkwave.server.statements.tables import try_expressions
from sparkwave.server.wire.result import Notice, Result

_VALUE = "value"


def alter_domain(session: Session, statement: AlterDomain) -> Result:
    """Change a domain, and the columns that have it.

    Raises Error 42704, 42809; 23502 and 23514 for stored rows; 42710 for a constraint's name in use; the errors of a
    default and a condition; 0A000 where a streaming relation casts to the domain, and for DROP NOT NULL where a table
    has the domain.
    """
    context, store = session.context, session.context.store
    before = _find(session, statement)
    tables = list({table.id: table for table, _ in _columns(session, before)}.values())
    notices: list[Notice] = []
    with ExitStack() as held:
        if tables:
            held.enter_context(standing_still(context.coordinator, store, tables, session.running.is_cancelled))
        with store.change() as cursor:
            made = _find(session, statement)
            change = _Change(session, cursor, made, statement)
            after = change.domain(notices)
            if after == made.domain:
                return Result("ALTER_DOMAIN", notices=notices)
            _refuse_casts(session, statement, made)
            replace_type(cursor, made, replace(made, domain=after))
            for table in change.tables.values():
                alter_columns(store, cursor, with_text(table, store.catalog))
    for relation in store.catalog.relations:
        context.plans.forget(relation.id)
    return Result("ALTER_DOMAIN", notices=notices)


def _find(session: Session, statement: AlterDomain) -> UserType:
    made = find_owned(session, statement.name)
    if made.domain is None:
        raise Error(f"{made.name} is not a domain", errors.WRONG_OBJECT_TYPE, position=statement.name.position)
    return made


def _columns(session: Session, made: UserType) -> Iterator[tuple[Relation, Column]]:
    """Yield the columns of tables with a domain."""
    for relation in session.context.store.catalog.relations:
        for column in relation.columns if relation.is_table else ():
            if column.type.named is not None and column.type.named.oid == made.id:
                yield relation, column


def _refuse_casts(session: Session, statement: AlterDomain, made: UserType) -> None:
    """Raise Error 0A000 if a streaming relation casts to the domain: its rows were made by the former conditions."""
    catalog = session.context.store.catalog
    streaming = {f"{r.securable.kind} {r.qualified_name}" for r in catalog.relations if r.is_streaming}
    casting = [namer for namer in namers_of_type(catalog, made) if namer in streaming]
    if casting and not isinstance(statement.action, SetDefault | RenameConstraint):
        message = f"cannot alter domain {made.name} because {casting[0]} casts to it"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=statement.name.position)


class _Change:
    """One ALTER DOMAIN: `tables` are the changed tables, by id."""

    def __init__(self, session: Session, cursor: Cursor, made: UserType, statement: AlterDomain) -> None:
        assert made.domain is not None
        self.session, self.cursor, self.made, self.before = session, cursor, made, made.domain
        self.statement, self.tables = statement, dict[int, Relation]()

    def domain(self, notices: list[Notice]) -> Domain:
        """Return the domain after the action."""
        match self.statement.action:
            case None:
                return self.before
            case SetDefault(default=default):
                return self._with_default(settled_default(self.session, default))
            case SetNotNull(not_null=not_null):
                return self._with_not_null(not_null)
            case AddConstraint(constraint):
                if not isinstance(constraint, Check):
                    kind = "unique" if isinstance(constraint, DeclaredUnique) else "foreign key"
                    raise Error(f"{kind} constraints not possible for domains", errors.SYNTAX_ERROR)
                return self._with_check(constraint)
            case DropConstraint(name, _, if_exists):
                if if_exists and name not in [check.name for check in self.before.checks]:
                    notices.append(Notice(f"{_missing(name, self.made).message}, skipping"))
                    return self.before
                return self._without_check(self._named(name))
            case RenameConstraint(name, _, new_name):
                found = self._named(name)
                self._check_free(new_name)
                checks = tuple(replace(c, name=new_name) if c == found else c for c in self.before.checks)
                return replace(self.before, checks=checks)

    def _columns(self) -> Iterator[tuple[Relation, Column]]:
        for table, column in _columns(self.session, self.made):
            yield self.tables.get(table.id, table), column

    def _put(self, table: Relation, column: Column) -> None:
        columns = tuple(column if each.name == column.name else each for each in table.columns)
        self.tables[table.id] = replace(table, columns=columns)

    def _named(self, name: str) -> Check:
        found = next((check for check in self.before.checks if check.name == name), None)
        if found is None:
            raise _missing(name, self.made)
        return found

    def _check_free(self, name: str) -> None:
        if name in [check.name for check in self.before.checks]:
            message = f'constraint "{name}" for domain "{self.made.name}" already exists'
            raise Error(message, errors.DUPLICATE_OBJECT)

    def _with_default(self, default: str | None) -> Domain:
        value = Column(_VALUE, replace(self.made.type, named=None), default=default)
        try_expressions(self.session, (value,), ())
        for table, column in self._columns():
            if column.default == self.before.default:  # else it has a default of its own
                self._put(table, replace(column, default=default))
        return replace(self.before, default=default)

    def _with_not_null(self, not_null: bool) -> Domain:
        for table, column in self._columns():
            if not not_null and self.before.not_null:
                # Whether the column has its own NOT NULL, too, is not stored.
                message = (
                    f"cannot drop NOT NULL of domain {self.made.name} because column {table.name}.{column.name} has it"
                )
                raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=self.statement.name.position)
            name = quote(column.lake_name)
            query = f"SELECT 1 FROM {table.lake_name} WHERE {name} IS NULL LIMIT 1"
            if not_null and self.cursor.execute(query).fetchone() is not None:
                message = f'column "{column.name}" of table "{table.name}" contains null values'
                raise Error(message, errors.NOT_NULL_VIOLATION)
            if not_null:
                self._put(table, replace(column, not_null=True))
        return replace(self.before, not_null=not_null)

    def _with_check(self, check: Check) -> Domain:
        if check.name:
            self._check_free(check.name)
        [*_, made] = with_names((*self.before.checks, check), self.made.name)
        value = Column(_VALUE, replace(self.made.type, named=None))
        refuse_calls([made.condition], self.session.context.store.catalog, "conditions of domains")
        try_expressions(self.session, (value,), (made,))
        for table, column in self._columns():
            own = Check("", renamed(made.condition, {_VALUE: column.name}))
            try:
                self.tables[table.id] = add_check(self.session, self.cursor, table, own)
            except Error as error:
                if error.sqlstate == errors.CHECK_VIOLATION:
                    violating = "contains values that violate the new constraint"
                    error.message = f'column "{column.name}" of table "{table.name}" {violating}'
                raise
        return replace(self.before, checks=(*self.before.checks, made))

    def _without_check(self, dropped: Check) -> Domain:
        for table, column in self._columns():
            condition = renamed(dropped.condition, {_VALUE: column.name})
            there = table.constraints
            own = next((check for check in there.checks if check.condition == condition), None)
            if own is not None:
                checks = tuple(check for check in there.checks if check is not own)
                self.tables[table.id] = with_constraints(table, replace(there, checks=checks))
        return replace(self.before, checks=tuple(check for check in self.before.checks if check != dropped))


def _missing(name: str, made: UserType) -> Error:
    message = f'constraint "{name}" of domain "{made.name}" does not exist'
    return Error(message, errors.UNDEFINED_OBJECT)
