"""CREATE, ALTER and DROP FUNCTION: of SQL (`planner.bind.sql_functions`) and of Python (`executor.functions`)."""

from __future__ import annotations

from dataclasses import replace

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error, used
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import PYTHON, Catalog, Function, Relation
from sparkwave.catalog.python_failures import ENABLED, disabled
from sparkwave.catalog.stores.function_store import add_function, move_function, replace_function
from sparkwave.catalog.stores.function_store import drop_function as remove_function
from sparkwave.catalog.stores.relation_store import grant_first
from sparkwave.catalog.types import JSON, JSONB, Type
from sparkwave.executor.functions.python_registry import python_functions
from sparkwave.planner.batch.query import plan_query
from sparkwave.planner.bind.overloads import key_of
from sparkwave.planner.bind.privileges import check_owner
from sparkwave.planner.bind.scopes import Scope
from sparkwave.planner.bind.sql_functions import Probe, check_function, check_name, with_function
from sparkwave.planner.definitions.stored_definitions import callers, calling, calling_others
from sparkwave.planner.parse.statement import parse_statement
from sparkwave.planner.statements import AlterFunction, CreateFunction, DropFunction, Name
from sparkwave.server.reads import execution
from sparkwave.server.session.session import Session
from sparkwave.server.statements.cascades import cascaded, check_cascade
from sparkwave.server.statements.new_relations import schema_of_move, target_schema
from sparkwave.server.statements.owners import give
from sparkwave.server.statements.plain_views import refuse_creating, with_dependents
from sparkwave.server.wire.result import Notice, Result


def create_function(session: Session, statement: CreateFunction) -> Result:
    """Create or replace a function.

    Raises Error 42723 for an existing function, 42P13 for a body of another type than declared or code that cannot be
    loaded, and the errors of the body; for Python 42501 unless by a superuser, 55000 while it is disabled. With OR
    REPLACE: 42501 for another user's function, 42P13 for another result type, 2BP01 for a function in use.
    """
    store = session.context.store
    check_name(statement)
    if statement.language == PYTHON:
        _check_python(session, statement)  # before other changes of the catalog have to wait
    with store.change() as cursor:  # checks are inside, so that no function in the body is dropped meanwhile
        catalog, schema = store.catalog, target_schema(session, statement)
        function = Function(
            store.next_id(cursor),
            session.database,
            schema,
            statement.name.name,
            statement.arguments,
            statement.result,
            statement.body,
            statement.definition,
            session.user.name,
            statement.language,
            statement.is_strict,
            statement.columns,
            statement.is_aggregate,
        )
        same = _same_name(catalog, function)
        key = key_of(type_ for _, type_ in function.arguments)
        taken = next((each for each in same if key_of(type_ for _, type_ in each.arguments) == key), None)
        if taken is not None and not _is_replaced(session, statement, function, taken):
            skipped = [Notice(f'function "{function.name}" already exists, skipping')]
            return Result("CREATE_FUNCTION", notices=skipped if statement.if_not_exists else [])
        if not function.is_python:
            _check_type(session, statement, check_function(statement, catalog, Scope(session.database, (schema,))))
        if taken is not None:
            replace_function(cursor, replace(function, id=taken.id))
        else:
            _check_calls(catalog, function, same, statement.name.position)
            add_function(cursor, function)
            grant_first(store, cursor, function.securable, function.database, function.schema)
    return Result("CREATE_FUNCTION")


def _same_name(catalog: Catalog, function: Function) -> tuple[Function, ...]:
    """Return the functions of the schema with a function's name and number of arguments, perhaps itself among them."""
    key = function.database, function.schema, function.name, len(function.arguments)
    return catalog.functions_by_name.get(key, ())


def _check_calls(catalog: Catalog, function: Function, same: tuple[Function, ...], position: int) -> None:
    """Raise Error 2BP01 where a stored definition would call a new function instead of one of the `same` name."""
    found = calling_others(catalog, with_function(catalog, function)) if same else []
    if found:
        message = f"function {function.signature} would be called instead of {same[0].signature}"
        if len(same) > 1:
            message = f"function {function.signature} would be called instead of another one of its name"
        raise Error(
            message,
            errors.DEPENDENT_OBJECTS_STILL_EXIST,
            detail=f"It would change what is called by {', '.join(found)}.",
            hint="DROP the dependent objects first, or cast the arguments in their calls.",
            position=position,
        )


def _is_replaced(session: Session, statement: CreateFunction, function: Function, taken: Function) -> bool:
    """Return whether the existing function gets a new body. Raises Error when it can neither be replaced nor kept."""
    if taken.signature != function.signature:
        raise Error(
            f"another function {function.name} takes these arguments",
            errors.FEATURE_NOT_SUPPORTED,
            detail=f"It is {taken.signature}; text and character varying, and digits, tell no functions apart.",
            position=statement.name.position,
        )
    if not statement.replaces:
        if statement.if_not_exists:
            return False
        message = f"function {function.signature} already exists"
        raise Error(message, errors.DUPLICATE_FUNCTION, position=statement.name.position)
    check_owner(session.user, taken.securable, statement.name.position)
    if (taken.result, taken.columns, taken.is_aggregate) != (function.result, function.columns, function.is_aggregate):
        raise Error(
            "cannot change return type of existing function",
            errors.INVALID_FUNCTION_DEFINITION,
            hint=f"Use DROP FUNCTION {taken.signature} first.",
            position=statement.name.position,
        )
    if replace(function, id=taken.id, definition=taken.definition, owner=taken.owner) == taken:
        return False
    # A view keeps the function's body of the time when it was made: its rows would contradict a new body.
    _check_unused(session, taken, statement.name)
    return True


def _check_python(session: Session, statement: CreateFunction) -> None:
    """Raise Error unless the user may create this function in Python, its types are supported, and its code loads."""
    if session.context.parameter(ENABLED) != "true":
        raise disabled()
    if not session.user.is_super:
        raise Error(
            "permission denied for language python",
            errors.INSUFFICIENT_PRIVILEGE,
            hint="Only superusers create functions in Python. They can GRANT EXECUTE to others.",
        )
    in_arrays = [statement.result] if statement.columns is not None else []
    if statement.is_aggregate:
        in_arrays = [type_ for _, type_ in statement.arguments]
        if not in_arrays:
            message = "an aggregate without arguments is not supported"
            raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=statement.name.position)
    for type_ in (*(type_ for _, type_ in statement.arguments), statement.result):
        if not _is_carried(type_) or (type_ == JSONB and type_ in in_arrays):
            message = f"type {type_} is not supported for a function in Python"
            raise Error(message, errors.FEATURE_NOT_SUPPORTED, hint=_CARRIED_HINT)
    functions = python_functions(session.context.lake)
    assert functions is not None
    schema = target_schema(session, statement)
    types = statement.arguments, statement.result
    function = Function(
        0, session.database, schema, statement.name.name, *types, statement.body, "", session.user.name, PYTHON,
        columns=statement.columns, is_aggregate=statement.is_aggregate,
    )  # fmt: skip
    try:
        functions.check(function)
    except Error as error:
        error.position = statement.body_position
        raise


_CARRIED = {
    "boolean", "smallint", "integer", "bigint", "real", "double precision", "numeric", "character varying", "text",
    "bytea", "date", "time without time zone", "timestamp without time zone", "timestamp with time zone", "interval",
}  # fmt: skip
_DOCUMENTS = (JSON, JSONB)
_CARRIED_HINT = (
    "It can have numbers, boolean, varchar, bytea, date, time, timestamp, timestamptz, interval, arrays and structs of "
    "them, and json and jsonb."
)


def _is_carried(type_: Type) -> bool:
    """Return whether values of a type can be handed to Python and back."""
    if type_.named is not None or type_.holds_map:
        return False
    if type_.fields:
        return all(_is_carried(field) and field not in _DOCUMENTS for _, field in type_.fields)
    return type_.name in _CARRIED or type_ in _DOCUMENTS


def _check_type(session: Session, statement: CreateFunction, probe: Probe) -> None:
    """Raise Error 42P13 for a body of another type than declared, and DuckDB's errors for the body."""
    try:
        found = execution.describe_batch(session, plan_query(probe.body, session.environment))
        is_row = len(found) == 1 and found[0].type.is_struct
        if len(found) != len(statement.columns or ("",)) and not is_row:
            raise _mismatch(statement, f"The query has {len(found)} columns, not {len(statement.columns or ('',))}.")
        execution.describe_batch(session, plan_query(probe.call, session.environment))
    except Error as error:
        error.position = statement.body_position
        raise
    if len(found) != len(probe.columns):
        raise _mismatch(statement, f"The query has {len(found)} columns, not {len(probe.columns)}.")
    for column, declared in zip(found, probe.columns, strict=True):
        if declared is not None and not _fits(column.type, declared[1]):
            raise _mismatch(statement, f"Actual return type is {column.type}.")


def _mismatch(statement: CreateFunction, detail: str) -> Error:
    return Error(
        f"return type mismatch in function declared to return {statement.result}",
        errors.INVALID_FUNCTION_DEFINITION,
        detail=detail,
        position=statement.body_position,
    )


_MOMENTS = ("date", "timestamp without time zone", "timestamp with time zone")


def _fits(found: Type, declared: Type) -> bool:
    """Return whether PostgreSQL can assign a value of type `found` to type `declared`."""
    if (found.is_numeric and declared.is_numeric) or (found.is_text and declared.is_text):
        return True
    if (found.name in _MOMENTS and declared.name in _MOMENTS) or (found in _DOCUMENTS and declared in _DOCUMENTS):
        return True
    return (found.name, found.dimensions) == (declared.name, declared.dimensions)


def alter_function(session: Session, statement: AlterFunction) -> Result:
    """Give a function another owner or another schema.

    Raises the errors of `drop_function`, and Error 3F000, 42501, 42704 or 42723 for the new owner or schema.
    """
    store, position = session.context.store, statement.position
    with store.change() as cursor:
        catalog = store.catalog
        function = find_function(session, statement.name, statement.types)
        check_owner(session.user, function.securable, statement.name.position)
        if statement.owner is not None:
            holder = catalog.securables[function.database, function.schema]
            give(session, cursor, (function.securable,), holder, statement.owner, position)
        elif statement.schema is not None and statement.schema != function.schema:
            schema = schema_of_move(session, statement.schema, position).name
            _check_unused(session, function, statement.name)
            moved = replace(function, schema=schema)
            if any(each.signature == moved.signature for each in _same_name(catalog, moved)):
                message = f'function {function.signature} already exists in schema "{schema}"'
                raise Error(message, errors.DUPLICATE_FUNCTION, position=position)
            if not function.is_python:  # the functions that it calls are found from its schema
                made = parse_statement(function.definition)
                assert isinstance(made, CreateFunction)
                _check_type(session, made, check_function(made, catalog, Scope(function.database, (schema,))))
            _check_calls(catalog, moved, _same_name(catalog, moved), position)
            move_function(cursor, moved)
    return Result("ALTER_FUNCTION")


def drop_function(session: Session, statement: DropFunction) -> Result:
    """Drop functions, with CASCADE also what calls them.

    Raises Error 42883, 42725 for an ambiguous name, 42501, 2BP01 for a function in use, with CASCADE by a table, and
    the errors of DROP … CASCADE of the callers.
    """
    store, notices, found = session.context.store, list[Notice](), dict[int, Function]()
    for name, types in statement.functions:
        try:
            function = find_function(session, name, types)
        except Error as error:
            if not statement.if_exists or error.sqlstate != errors.UNDEFINED_FUNCTION:
                raise
            notices.append(Notice(f'function "{_written(name, types)}" does not exist, skipping'))
            continue
        check_owner(session.user, function.securable, name.position)
        if not statement.cascade:
            _check_unused(session, function, name)
        found[function.id] = function
    position, named = statement.functions[0][0].position, set(found)
    relations = _with_callers(session, found, position) if statement.cascade else []
    dropped = with_dependents(session, relations, cascade=True)
    if statement.cascade and found:
        check_cascade(session, "DROP FUNCTION", ["function"] * len(found) + [relation.kind for relation in dropped])
    refuse_creating(dropped)
    notices += cascaded(session, dropped, (), [each for each in found.values() if each.id not in named])

    def remove(cursor: Cursor) -> None:
        gone = {relation.id for relation in dropped}
        new = [each.qualified_name for each in calling(store.catalog, found.values()) if each.id not in gone]
        if new:
            raise used("function", new, "DROP the dependent objects first.", position)
        for function in found.values():
            remove_function(cursor, function)

    session.context.jobs.drop(dropped, remove)
    return Result("DROP_FUNCTION", notices=notices)


def _with_callers(session: Session, functions: dict[int, Function], position: int) -> list[Relation]:
    """Return the views and streaming relations that call functions, and add calling functions to `functions`.

    Raises Error 2BP01 for a table whose columns or checks call one.
    """
    relations, catalog = dict[int, Relation](), session.context.store.catalog
    while True:
        new = [each for each in calling(catalog, functions.values()) if each.id not in relations]
        if not new:
            return list(relations.values())
        for each in new:
            if isinstance(each, Function):
                functions[each.id] = each
            elif each.is_view or each.is_streaming:
                relations[each.id] = each
            else:
                users = [f"{each.kind} {each.qualified_name}"]
                raise used("function", users, "ALTER or DROP the table first.", position)


def _check_unused(session: Session, function: Function, name: Name) -> None:
    found = callers(session.context.store.catalog, [function])
    if found:
        raise used("function", found, "DROP the dependent objects first.", name.position)


def find_function(session: Session, name: Name, types: tuple[Type, ...] | None) -> Function:
    """Return the function of a name, with these types of its arguments unless they are None.

    Raises Error 42883, or 42725 for several functions of the name.
    """
    found = find_functions(session, name)
    if types is not None:
        key = key_of(types)
        found = [function for function in found if key_of(type_ for _, type_ in function.arguments) == key]
    if len(found) > 1:
        raise Error(
            f'function name "{name}" is not unique',
            errors.AMBIGUOUS_FUNCTION,
            hint="Specify the argument list to select the function unambiguously.",
            position=name.position,
        )
    if not found:
        message = f"function {_written(name, types)} does not exist"
        if types is None:
            message = f'could not find a function named "{name}"'
        raise Error(message, errors.UNDEFINED_FUNCTION, position=name.position)
    return found[0]


def find_functions(session: Session, name: Name) -> list[Function]:
    """Return the functions of a name, in the first schema that has any."""
    for schema in (name.schema,) if name.schema else session.scope.path:
        found = [
            function
            for function in session.context.store.catalog.functions
            if (function.database, function.schema, function.name) == (session.database, schema, name.name)
        ]
        if found:
            return found
    return []


def _written(name: Name, types: tuple[Type, ...] | None) -> str:
    return f"{name}({', '.join(map(str, types or ()))})"
