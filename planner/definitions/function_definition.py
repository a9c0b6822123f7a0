"""The normal form of CREATE FUNCTION and AGGREGATE, as RisingWave shows it: types in full, then language and body."""

from __future__ import annotations

from sparkwave.catalog.model import SQL, Function
from sparkwave.catalog.names import quote_if_needed
from sparkwave.catalog.types import Type
from sparkwave.planner.parse.tokens import TokenReader


def function_text(function: Function) -> str:
    """Return the statement that makes a function, with its name as written, and the body as `$$` text if it can be."""
    kind = "AGGREGATE" if function.is_aggregate else "FUNCTION"
    reader = TokenReader(function.definition)
    reader.expect("CREATE", kind)
    schema = f"{quote_if_needed(function.schema)}." if reader.name().schema is not None else ""
    arguments = ", ".join(
        f"{quote_if_needed(name)} {type_}" if name else str(type_) for name, type_ in function.arguments
    )
    reader.skip_parentheses()
    language, body = _written(reader)
    strict = " STRICT" if function.is_strict else ""
    return (
        f"CREATE {kind} {schema}{quote_if_needed(function.name)}({arguments}) RETURNS {_result(function)} "
        f"LANGUAGE {language}{strict} {body}"
    )


def _result(function: Function) -> str:
    if function.columns is None:
        return str(function.result)
    if function.columns == ("",):
        return f"SETOF {function.result}"
    return f"TABLE ({', '.join(_column(*output) for output in function.outputs)})"


def _column(name: str, type_: Type) -> str:
    return f"{quote_if_needed(name)} {type_}"


def _written(reader: TokenReader) -> tuple[str, str]:
    """Return the language of a definition, and its body with AS or RETURN."""
    language, body = SQL, ""
    while not reader.at_end:
        if reader.peek() == "(":
            reader.skip_parentheses()
        elif reader.accept("LANGUAGE"):
            language = reader.value().lower()
        elif reader.accept("AS"):
            text = reader.string()
            body = f"AS $${text}$$" if "$" not in text else f"AS '{text.replace(chr(39), chr(39) * 2)}'"
        elif reader.accept("RETURN"):
            body = f"RETURN {reader.rest.strip()}"
            break
        else:
            reader.skip()
    return language, body
