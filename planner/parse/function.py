"""Parsing of CREATE and DROP FUNCTION and AGGREGATE (RisingWave: src/frontend/src/handler/create_sql_function.rs)."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import PYTHON, SQL
from sparkwave.catalog.types import Type, is_of_ours, parse_type, struct_type
from sparkwave.planner.parse.rename import unsupported
from sparkwave.planner.parse.tokens import TokenReader, split_statements
from sparkwave.planner.parse.type_text import read_type, type_words, with_brackets, written_type
from sparkwave.planner.statements import AlterFunction, CreateFunction, DropFunction, Name


def parse_create_function(reader: TokenReader, replaces: bool, is_aggregate: bool = False) -> CreateFunction:
    """Parse from the word after FUNCTION or AGGREGATE on.

    Raises Error 0A000 for a language other than SQL and Python, and for an aggregate in SQL.
    """
    if_not_exists = not replaces and reader.accept("IF", "NOT", "EXISTS")
    name = reader.name()
    arguments = _arguments(reader)
    columns, result = _result(reader)
    language, body, position, is_query, is_block, options = None, None, 0, False, False, dict[str, int]()
    while not reader.at_end:
        start = reader.offset + 1
        if reader.accept("LANGUAGE"):
            language, is_block = _language(reader, start)
        elif reader.accept("AS"):
            if body is not None:
                raise _twice(start)
            position = reader.offset + 1
            body, is_query = reader.string(), True
        elif reader.accept("RETURN"):
            if body is not None:
                raise _twice(start)
            position = reader.offset + 1
            body = reader.rest
            break
        else:
            option = next((option for option in _OPTIONS if reader.accept(*option.split())), None)
            if option is None:
                raise reader.syntax_error()
            options[option] = start
    if language is None:
        hint = "Add LANGUAGE SQL or LANGUAGE python."
        raise Error("no language specified", errors.INVALID_FUNCTION_DEFINITION, hint=hint)
    _check_options(language, options)
    if is_aggregate and (language != PYTHON or columns is not None or not options.keys().isdisjoint(_STRICT)):
        what = "STRICT" if language == PYTHON and columns is None else "rows" if columns is not None else "SQL"
        raise Error(f"an aggregate of {what} is not supported", errors.FEATURE_NOT_SUPPORTED, position=name.position)
    if not body:
        message = "AS or RETURN must be specified"
        raise Error(message, errors.INVALID_FUNCTION_DEFINITION, position=len(reader.sql.rstrip()) + 1)
    if language == SQL:
        of_text = _of_block if is_block else _of_query
        body = of_text(_with_apart_parameters(body), position, result) if is_query else body
    elif not is_query:
        raise Error("a function in Python has its code after AS", errors.SYNTAX_ERROR, position=position)
    kind = "AGGREGATE" if is_aggregate else "FUNCTION"
    definition = f"CREATE {kind} {reader.sql[name.position - 1 :].strip()}"
    is_strict = not options.keys().isdisjoint(_STRICT)
    return CreateFunction(
        name, arguments, result, body, position, if_not_exists, replaces, definition, language, is_strict, columns,
        is_aggregate,
    )  # fmt: skip


_STRICT = ("STRICT", "RETURNS NULL ON NULL INPUT")
_OPTIONS = ("IMMUTABLE", "STABLE", "VOLATILE", *_STRICT, "CALLED ON NULL INPUT", "USING", "RUNTIME", "WITH")
_REFUSED = {
    SQL: (*_STRICT, "CALLED ON NULL INPUT", "USING", "RUNTIME", "WITH"),
    PYTHON: ("STABLE", "VOLATILE", "USING", "RUNTIME", "WITH"),
}
_HINTS = dict.fromkeys(
    ("STABLE", "VOLATILE"),
    "Views need a function with the same result each time it is called with the same arguments: write IMMUTABLE.",
)


def _check_options(language: str, options: Mapping[str, int]) -> None:
    """Raise Error 0A000 for an option that a function in the language cannot have; the options have positions."""
    for option, position in options.items():
        if option in _REFUSED[language]:
            message = f"{option} is not supported for a {_LANGUAGES[language]} function"
            raise Error(message, errors.FEATURE_NOT_SUPPORTED, hint=_HINTS.get(option), position=position)


_PLPGSQL = "plpgsql"
_LANGUAGES = {SQL: "SQL", PYTHON: "Python"}


def _twice(position: int) -> Error:
    return Error("conflicting or redundant options", errors.SYNTAX_ERROR, position=position)


def _language(reader: TokenReader, position: int) -> tuple[str, bool]:
    """Return a function's language, and whether its text is a block of PL/pgSQL with one expression, as if of SQL."""
    language = reader.value().lower()
    if language == _PLPGSQL:
        return SQL, True
    if language not in _LANGUAGES:
        raise Error(
            f'language "{language}" is not supported',
            errors.FEATURE_NOT_SUPPORTED,
            hint="Write the function with LANGUAGE SQL or LANGUAGE python.",
            position=position,
        )
    return language, False


def _arguments(reader: TokenReader) -> tuple[tuple[str, Type], ...]:
    """Parse `([name] type, …)`. Raises Error 42P13 for a duplicate name."""
    if reader.accept("(", ")"):
        return ()
    placed = reader.parenthesised(lambda: (reader.offset + 1, *_argument(reader)))
    seen: set[str] = set()
    for position, name, _ in placed:
        if name and name in seen:
            message = f'parameter name "{name}" used more than once'
            raise Error(message, errors.INVALID_FUNCTION_DEFINITION, position=position)
        seen.add(name)
    return tuple((name, type_) for _, name, type_ in placed)


def _argument(reader: TokenReader) -> tuple[str, Type]:
    """Parse a type, or a name and a type: `double precision` is a type.

    Raises Error 0A000 for an argument of another mode than IN, and for one with a default.
    """
    mode, place = reader.peek(), reader.offset + 1
    if mode in _MODES:
        hint = "Write RETURNS, or RETURNS TABLE (name type, …)." if mode != "VARIADIC" else None
        raise Error(f"{mode} arguments are not supported", errors.FEATURE_NOT_SUPPORTED, hint=hint, position=place)
    reader.accept("IN")
    found = _typed_argument(reader)
    if reader.peek() in ("DEFAULT", "="):
        message = "defaults of arguments are not supported"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=reader.offset + 1)
    return found


_MODES = ("OUT", "INOUT", "VARIADIC")


def _typed_argument(reader: TokenReader) -> tuple[str, Type]:
    start, index = reader.offset, reader.index
    words = type_words(reader)
    text = reader.text_since(index)
    if " " not in text:
        return "", written_type(text, start + 1)
    if not is_of_ours(text):
        with contextlib.suppress(Error):
            return "", parse_type(with_brackets(text)).as_written
    reader.back(words)
    name = reader.identifier()
    return name, read_type(reader)


_PARAMETER = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|(?P<parameter>\$\d+)(?=[^\s$]+\$)""")


def _with_apart_parameters(body: str) -> str:
    """Return a body with a space behind `$1` in `$1+$2`; sqlglot takes `$1+$` for the start of a dollar quote."""
    return _PARAMETER.sub(lambda found: f"{found[0]} " if found["parameter"] else found[0], body)


def _result(reader: TokenReader) -> tuple[tuple[str, ...] | None, Type]:
    """Parse `RETURNS {type | SETOF type | TABLE (name type, …)}`. Returns the names of columns, if any."""
    position = reader.offset + 1
    if not reader.accept("RETURNS"):
        raise Error("return type must be specified", errors.INVALID_FUNCTION_DEFINITION, position=position)
    if reader.accept("SETOF"):
        return ("",), read_type(reader)
    if not reader.accept("TABLE"):
        return None, read_type(reader)
    columns = reader.parenthesised(lambda: (reader.identifier(), read_type(reader)))
    names = tuple(name for name, _ in columns)
    return names, columns[0][1] if len(columns) == 1 else struct_type(columns)


def _of_block(text: str, position: int, result: Type) -> str:
    """Return the expression in `BEGIN RETURN expression; END`. Raises Error 0A000 for any other block."""
    first, *others = (TokenReader(part) for part, _ in split_statements(text))
    is_one = first.accept("BEGIN", "RETURN") and not first.at_end and len(others) == 1 and others[0].accept("END")
    if not is_one or not others[0].at_end:
        message = 'language "plpgsql" is not supported'
        hint = "The body BEGIN RETURN expression; END is. Else write the function with LANGUAGE SQL or LANGUAGE python."
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, hint=hint, position=position)
    return first.rest


def _of_query(text: str, position: int, result: Type) -> str:
    """Return what follows SELECT in the text of a query.

    Raises Error 42P13 for an empty text, 0A000 for anything else.
    """
    reader = TokenReader(text)
    if reader.at_end:
        message = f"return type mismatch in function declared to return {result}"
        detail = "Function's final statement must be SELECT or INSERT/UPDATE/DELETE RETURNING."
        raise Error(message, errors.INVALID_FUNCTION_DEFINITION, detail=detail, position=position)
    if reader.peek() in ("WITH", "VALUES", "("):
        return f"* FROM ({reader.rest}) AS query"
    if not reader.accept("SELECT") or reader.at_end:
        message = "the body of a SQL function is one query"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=position)
    return reader.rest


def parse_alter_function(reader: TokenReader) -> AlterFunction:
    """Parse ALTER FUNCTION from the word after FUNCTION on: `name [(types)] {OWNER TO role | SET SCHEMA schema}`."""
    name, types = parse_signature(reader)
    position = reader.offset + 1
    is_owner = reader.accept("OWNER", "TO")
    if not is_owner and not reader.accept("SET", "SCHEMA"):
        raise unsupported("function", position, "OWNER TO and SET SCHEMA are.")
    new, place = reader.placed_identifier()
    reader.finish()
    return AlterFunction(name, types, new if is_owner else None, None if is_owner else new, place)


def parse_drop_function(reader: TokenReader) -> DropFunction:
    """Parse DROP FUNCTION from the word after FUNCTION on: `[IF EXISTS] name [(types)], … [CASCADE | RESTRICT]`."""
    if_exists = reader.accept("IF", "EXISTS")
    functions = reader.comma_separated(lambda: parse_signature(reader))
    cascade = reader.cascade()
    reader.finish()
    return DropFunction(functions, if_exists, cascade)


def parse_signature(reader: TokenReader) -> tuple[Name, tuple[Type, ...] | None]:
    """Parse `name [([name] type, …)]`. Returns the name and the types, None without parentheses."""
    name = reader.name()
    if reader.peek() != "(":
        return name, None
    return name, tuple(type_ for _, type_ in _arguments(reader))
