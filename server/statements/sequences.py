"""CREATE and ALTER SEQUENCE, and the sequences behind columns of tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sparkwave.catalog import errors
from sparkwave.catalog.column_names import escaped
from sparkwave.catalog.errors import Error, used
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import Column, Relation
from sparkwave.catalog.names import quote_if_needed
from sparkwave.catalog.relation_details import SEQUENCE, Sequence
from sparkwave.catalog.stores.relation_store import create_relation, put_details
from sparkwave.catalog.stores.sequence_store import Position, add_position, put_position
from sparkwave.planner.bind.binder import resolve
from sparkwave.planner.bind.privileges import check_owner
from sparkwave.planner.bind.stored_calls import DEFAULT, stored_text
from sparkwave.planner.definitions.counting import check_within, drawn_by, draws, made_sequence, next_of, settled
from sparkwave.planner.definitions.object_names import object_name
from sparkwave.planner.definitions.table_definition import without_foreign_keys
from sparkwave.planner.statements import AlterSequence, ColumnDefinition, CreateSequence, SequenceOptions
from sparkwave.server.session.session import Session
from sparkwave.server.statements.named_relations import find_of_kind
from sparkwave.server.statements.new_relations import existing_notice, made_schema, take_temporary
from sparkwave.server.wire.result import Notice, Result


def create_sequence(session: Session, statement: CreateSequence) -> Result:
    """Create a sequence. Raises Error 42P07, 22023, 42P01 and 42703 for an unknown owner."""
    existing = existing_notice(session, statement)
    if existing is not None:
        return Result("CREATE_SEQUENCE", notices=[existing])
    made = made_sequence(statement.options)
    store = session.context.store
    with store.change() as cursor:
        schema = made_schema(session, cursor, statement)
        made = _owned(session, made, statement.options, schema)
        relation = add_sequence(session, cursor, store.next_id(cursor), schema, statement.name.name, made)
    take_temporary(session, relation)
    return Result("CREATE_SEQUENCE")


def add_sequence(session: Session, cursor: Cursor, id_: int, schema: str, name: str, made: Sequence) -> Relation:
    """Store a new sequence, in the open transaction."""
    relation = Relation(
        id=id_,
        database=session.database,
        schema=schema,
        name=name,
        kind=SEQUENCE,
        columns=(),
        key=(),
        definition=_definition(name, made),
        created=True,
        owner=session.user.name,
        details=made,
    )
    relation = create_relation(session.context.store, cursor, relation)
    add_position(cursor, id_, Position(made.start, False))
    return relation


def _definition(name: str, made: Sequence) -> str:
    return (
        f"CREATE SEQUENCE {quote_if_needed(name)} AS {made.type} START {made.start} INCREMENT {made.increment} "
        f"MINVALUE {made.minimum} MAXVALUE {made.maximum} CACHE {made.cache}{' CYCLE' if made.cycles else ''}"
    )


def _owned(session: Session, made: Sequence, options: SequenceOptions, schema: str) -> Sequence:
    """Return the sequence with the owner of OWNED BY. Raises Error 42P01, 42809, 42703, 42501, and 55000."""
    if options.owned_by is None:
        return made
    if not options.owned_by:
        return replace(made, table=None, column=None)
    name, column_name = options.owned_by
    table = resolve(session.context.store.catalog, session.scope, name, "table")
    if table.kind != "table":
        message = f'sequence cannot be owned by relation "{name}"'
        raise Error(message, errors.WRONG_OBJECT_TYPE, position=name.position)
    check_owner(session.user, table.securable, name.position)
    column = next((column for column in table.visible if column.name == column_name), None)
    if column is None:
        message = f'column "{column_name}" of relation "{name}" does not exist'
        raise Error(message, errors.UNDEFINED_COLUMN, position=name.position)
    if table.schema != schema:
        message = "sequence must be in same schema as table it is linked to"
        raise Error(message, errors.NOT_IN_PREREQUISITE_STATE, position=name.position)
    return replace(made, table=table.id, column=column.lake_name)


def alter_sequence(session: Session, statement: AlterSequence) -> Result:
    """Change a sequence.

    Raises Error 42P01, 42809, 42501, 22023, and 0A000 for OWNED BY of an identity column's sequence.
    """
    store, numbers = session.context.store, session.context.sequence_numbers
    try:
        relation = find_of_kind(session, statement.name, SEQUENCE)
    except Error as error:
        if not statement.if_exists or error.sqlstate not in errors.MISSING:
            raise
        message = f'relation "{statement.name}" does not exist, skipping'
        return Result("ALTER_SEQUENCE", notices=[Notice(message)])
    check_owner(session.user, relation.securable, statement.name.position)
    with numbers.holding(relation.id) as counter:
        with store.change() as cursor:
            before = store.catalog.by_id[relation.id].sequence
            if before.identity is not None and statement.options.owned_by is not None:
                message = "cannot change ownership of identity sequence"
                raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=statement.name.position)
            made = _owned(session, made_sequence(statement.options, before), statement.options, relation.schema)
            position = _restarted(made, statement.options, counter.given)
            put_details(cursor, replace(relation, details=made))
            put_position(cursor, relation.id, position)
        counter.given = counter.reserved = position
    return Result("ALTER_SEQUENCE")


def _restarted(made: Sequence, options: SequenceOptions, given: Position) -> Position:
    """Return the position at which a sequence goes on. Raises Error 22023 for a number out of its bounds."""
    if options.restart is False:
        position = given
    else:
        position = Position(made.start if options.restart is True else options.restart, False)
    check_within("RESTART", position.last, made.minimum, made.maximum)
    return position


# The sequences behind columns.


def counting_columns(
    session: Session, cursor: Cursor, schema: str, table: int, name: str, definitions: Iterable[ColumnDefinition]
) -> tuple[tuple[Column, ...], list[tuple[int, str, Sequence]]]:
    """Return a new table's columns, and (id, name, details) of sequences behind serial or identity columns."""
    store, catalog = session.context.store, session.context.store.catalog
    columns: list[Column] = []
    sequences: list[tuple[int, str, Sequence]] = []
    taken: set[str] = set()

    def is_free(own: str) -> bool:
        return own not in taken and catalog.find(session.database, schema, own) is None

    for definition in definitions:
        column = definition.column
        if definition.counts is not None:
            id_ = store.next_id(cursor)
            made = replace(
                made_sequence(definition.counts), table=table, column=escaped(column.name), identity=definition.identity
            )
            own_name = object_name(name, column.name, "seq", is_free)
            taken.add(own_name)
            sequences.append((id_, own_name, made))
            column = replace(column, default=next_of(id_))
        columns.append(column)
    return tuple(columns), sequences


def left_without_default(session: Session, dropped: list[Relation], cascade: bool) -> list[Relation]:
    """Return the tables that lose defaults when sequences are dropped, without those defaults.

    Raises Error 2BP01 for such a default without `cascade`, and for the sequence of an identity column.
    """
    gone = {relation.id for relation in dropped}
    sequences = {relation.id: relation for relation in dropped if relation.is_sequence}
    changed: list[Relation] = []
    for table in session.context.store.catalog.relations if sequences else ():
        drawing = {c.name: id_ for c in table.visible if (id_ := drawn_by(c.default)) in sequences}
        if not drawing or table.id in gone:
            continue
        name, id_ = next(iter(drawing.items()))
        sequence = sequences[id_ or 0]
        if sequence.sequence.identity is not None:
            message = f"cannot drop sequence {sequence.name} because column {name} of table {table.name} requires it"
            hint = f"You can drop column {name} of table {table.name} instead."
            raise Error(message, errors.DEPENDENT_OBJECTS_STILL_EXIST, hint=hint)
        if not cascade:
            users = [f"default value for column {name} of table {table.name}" for name in drawing]
            raise used(SEQUENCE, users, "Use DROP ... CASCADE to drop the dependent objects too.")
        columns = tuple(replace(c, default=None) if c.name in drawing else c for c in table.columns)
        changed.append(without_foreign_keys(replace(table, columns=columns), lambda key: key.parent in gone))
    return changed


def settled_default(session: Session, default: str | None) -> str | None:
    """Return a default with sequences named by their ids, so that it survives their renames, and functions by schemas.

    Raises Error as `find_sequence` and `stored_text` do.
    """
    if default is None:
        return None
    default = settled_expression(session, default, DEFAULT)
    if not draws(default):
        return default
    return settled(default, session.context.store.catalog, session.scope)


def settled_expression(session: Session, text: str, place: str, columns: Iterable[Column] = ()) -> str:
    """Return an expression over columns for a place, with the schemas of its functions. Raises as `stored_text`."""
    return stored_text(text, place, columns, session.context.store.catalog, session.scope, session.user)
