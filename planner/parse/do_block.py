"""DO with a block of one statement, whose errors it may handle: what migrations write for want of IF NOT EXISTS."""

from __future__ import annotations

from functools import partial

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.parse.tokens import TokenReader
from sparkwave.planner.statements import Do

# Of PL/pgSQL's names of errors (PostgreSQL's documentation, appendix A) those that statements have here.
_CONDITIONS = {
    "check_violation": "23514",
    "dependent_objects_still_exist": "2BP01",
    "duplicate_column": "42701",
    "duplicate_database": "42P04",
    "duplicate_function": "42723",
    "duplicate_object": "42710",
    "duplicate_schema": "42P06",
    "duplicate_table": "42P07",
    "feature_not_supported": "0A000",
    "insufficient_privilege": "42501",
    "invalid_schema_name": "3F000",
    "invalid_table_definition": "42P16",
    "not_null_violation": "23502",
    "object_not_in_prerequisite_state": "55000",
    "others": "",
    "undefined_column": "42703",
    "undefined_function": "42883",
    "undefined_object": "42704",
    "undefined_table": "42P01",
    "unique_violation": "23505",
}
_HINT = (
    "There is no procedural language. DO takes BEGIN, one statement, and EXCEPTION WHEN … THEN NULL; CREATE FUNCTION … "
    "LANGUAGE SQL names an expression."
)


def parse_do(reader: TokenReader) -> Do:
    """Parse `DO [LANGUAGE plpgsql] 'BEGIN statement; [EXCEPTION WHEN condition [OR …] THEN NULL;] END'`.

    Raises Error 0A000 for any other block, and 42704 for an unknown condition.
    """
    position = reader.offset + 1
    reader.expect("DO")
    _language(reader)
    body = TokenReader(reader.string())
    _language(reader)
    reader.finish()
    refused = partial(
        Error, "this DO block is not supported", errors.FEATURE_NOT_SUPPORTED, hint=_HINT, position=position
    )
    if not body.accept("BEGIN"):
        raise refused()
    start = body.offset
    while not body.at_end and body.peek() != ";":
        body.skip()
    text = body.sql[start : body.offset]
    body.accept(";")
    handled = list[str]()
    if body.accept("EXCEPTION"):
        while body.accept("WHEN"):
            handled.append(_condition(body))
            while body.accept("OR"):
                handled.append(_condition(body))
            if not body.accept("THEN", "NULL") or not body.accept(";"):
                raise refused()
    if not text or not body.accept("END"):
        raise refused()
    body.accept(";")
    if not body.at_end:
        raise refused()
    return Do(text, tuple(handled))


def _language(reader: TokenReader) -> None:
    if reader.accept("LANGUAGE") and reader.identifier() != "plpgsql":
        raise Error("DO is for LANGUAGE plpgsql", errors.FEATURE_NOT_SUPPORTED, hint=_HINT)


def _condition(reader: TokenReader) -> str:
    if reader.accept("SQLSTATE"):
        return reader.string()
    name = reader.identifier()
    if name not in _CONDITIONS:
        raise Error(f'unrecognized exception condition "{name}"', errors.UNDEFINED_OBJECT)
    return _CONDITIONS[name]
