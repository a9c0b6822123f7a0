"""Parsing of statements that sqlglot does not know, such as COPY, SET, ALTER SYSTEM, WAIT, RECOVER and CANCEL."""

from __future__ import annotations

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.interval_texts import read_interval
from sparkwave.catalog.names import meant_option, quote_if_needed
from sparkwave.catalog.relation_details import STREAMING
from sparkwave.planner.parse.alter_job import parse_alter_fragment, parse_alter_streaming
from sparkwave.planner.parse.alter_source import parse_alter_source
from sparkwave.planner.parse.alter_table import parse_alter_table
from sparkwave.planner.parse.condition import parse_condition
from sparkwave.planner.parse.connection import parse_alter_connection
from sparkwave.planner.parse.database import parse_alter_database
from sparkwave.planner.parse.function import parse_alter_function
from sparkwave.planner.parse.grant import parse_alter_default_privileges
from sparkwave.planner.parse.rename import parse_alter_view
from sparkwave.planner.parse.schema import parse_alter_schema
from sparkwave.planner.parse.secret import parse_alter_secret
from sparkwave.planner.parse.sequence import parse_alter_sequence
from sparkwave.planner.parse.subscription import parse_alter_subscription
from sparkwave.planner.parse.tokens import TokenReader
from sparkwave.planner.parse.transaction import parse_set_constraints, parse_set_transaction
from sparkwave.planner.parse.trees import parse_tree
from sparkwave.planner.parse.user import parse_alter_user
from sparkwave.planner.parse.user_type import parse_alter_domain, parse_alter_type
from sparkwave.planner.statements import (
    AuditView,
    Backup,
    CancelJobs,
    Condition,
    Copy,
    CreateExtension,
    Discard,
    Flush,
    Name,
    Recover,
    Refresh,
    SetVariable,
    Statement,
    UseDatabase,
    Vacuum,
    Wait,
)


def parse_copy(reader: TokenReader) -> Copy:
    """Parse COPY of a table or query, from or to the client. Raises Error."""
    reader.expect("COPY")
    table: Name | None = None
    columns: tuple[str, ...] = ()
    query: exp.Expr | None = None
    if reader.peek() == "(":
        query = _query_in_parentheses(reader)
    else:
        table = reader.name()
        columns = reader.parenthesised(reader.identifier) if reader.peek() == "(" else ()
    is_from = reader.accept("FROM")
    if not is_from:
        reader.expect("TO")
    if not reader.accept("STDIN" if is_from else "STDOUT"):
        raise Error(
            "COPY of files on the server is not supported",
            errors.FEATURE_NOT_SUPPORTED,
            hint="Use COPY … FROM STDIN or TO STDOUT, or psql's \\copy.",
            position=reader.offset + 1,
        )
    format_, options = _copy_options(reader, is_from)
    where = _copy_condition(reader) if is_from and reader.accept("WHERE") else None
    if where is None and not is_from and reader.peek() == "WHERE":
        raise Error("WHERE clause not allowed with COPY TO", errors.SYNTAX_ERROR, position=reader.offset + 1)
    if where is None:
        reader.finish()
    return Copy(table, columns, query, is_from, format_, options, where)


def _copy_condition(reader: TokenReader) -> Condition:
    """Parse the rest of a COPY after WHERE. Raises Error 0A000 for a subquery."""
    text, condition = reader.rest, parse_condition(reader)
    if condition.find(exp.Query) is not None:
        raise Error("cannot use subquery in COPY FROM WHERE condition", errors.FEATURE_NOT_SUPPORTED)
    return Condition(condition, text)


def _query_in_parentheses(reader: TokenReader) -> exp.Expr:
    start, stop = reader.skip_parentheses()
    return parse_tree(reader.sql[:stop], start)


def _copy_options(reader: TokenReader, is_from: bool) -> tuple[str, dict[str, str | bool | tuple[str, ...]]]:
    found: dict[str, str | bool | tuple[str, ...]] = {}
    places: dict[str, int] = {}
    reader.accept("WITH")
    parenthesised = reader.accept("(")
    while not reader.at_end and reader.peek() != "WHERE" and not reader.accept(")"):
        reader.accept(",")
        position = reader.offset + 1
        word = reader.identifier()
        if word == "force":  # the syntax before PostgreSQL 9.0
            word = next((name for name in _FORCED if reader.accept(*name.upper().split("_")[1:])), "")
            if not word:
                raise reader.syntax_error()
        match word:
            case "force_quote" | "force_not_null" | "force_null":
                if (word == "force_quote") == is_from:
                    way = "TO" if word == "force_quote" else "FROM"
                    message = f"COPY {word.replace('_', ' ')} only available using COPY {way}"
                    raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=position)
                found[word] = _forced(reader, word)
            case "format":
                found[word] = reader.value()
                places[word] = position
            case "csv" | "text" | "binary":
                found["format"] = word
            case "header":
                plain = reader.at_end or reader.peek() in (",", ")") or not parenthesised
                value = "true" if plain else reader.value().lower()
                if value == "match" and not is_from:
                    message = 'cannot use "match" with HEADER in COPY TO'
                    raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=position)
                found[word] = value in ("true", "on", "1", "match")
                found |= {"header_match": True} if value == "match" else {}
            case "delimiter" | "null" | "quote" | "escape" | "encoding":
                reader.accept("AS")
                found[word] = value = reader.value()
                if word in ("delimiter", "quote", "escape") and len(value.encode()) != 1:
                    message = f"COPY {word} must be a single one-byte character"
                    raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=position)
            case _:
                hint = meant_option(word, (*_COPY_OPTIONS, *_FORCED))
                raise Error(f'option "{word}" not recognized', errors.SYNTAX_ERROR, hint=hint, position=position)
    format_ = str(found.pop("format", "text"))
    if format_ not in ("text", "csv", "binary"):
        message = f'COPY format "{format_}" not recognized'
        raise Error(message, errors.INVALID_PARAMETER_VALUE, position=places.get("format"))
    words = found.keys() - {"encoding"}
    if format_ == "binary" and words:
        raise Error(f"cannot specify {min(words).upper()} in BINARY mode", errors.SYNTAX_ERROR)
    for word in sorted(words & set(_FORCED)) if format_ != "csv" else ():
        raise Error(f"COPY {word.replace('_', ' ')} available only in CSV mode", errors.FEATURE_NOT_SUPPORTED)
    return format_, found


_COPY_OPTIONS = ("format", "header", "delimiter", "null", "quote", "escape", "encoding")
_FORCED = ("force_quote", "force_not_null", "force_null")


def _forced(reader: TokenReader, word: str) -> tuple[str, ...]:
    """Parse the columns of a FORCE option; `*` is all."""
    if word == "force_quote" and reader.accept("*"):
        return ("*",)
    if reader.peek() == "(":
        return reader.parenthesised(reader.identifier)
    names = [reader.identifier()]
    while reader.accept(","):
        names.append(reader.identifier())
    return tuple(names)


def parse_set(reader: TokenReader) -> Statement:
    """Parse SET of a variable, of the transaction, of constraints or of the session's user. Raises Error."""
    reader.expect("SET")
    if reader.peek() == "TRANSACTION" or (reader.peek() == "SESSION" and reader.peek(1) == "CHARACTERISTICS"):
        return parse_set_transaction(reader)
    if reader.peek() == "CONSTRAINTS" and reader.peek(1) not in ("TO", "="):
        return parse_set_constraints(reader)
    is_authorization = reader.accept("SESSION", "AUTHORIZATION")
    is_local = not is_authorization and not reader.accept("SESSION") and reader.accept("LOCAL")
    if is_authorization or reader.accept("SESSION", "AUTHORIZATION"):
        return SetVariable("session_authorization", _set_value(reader), is_local=is_local)
    if reader.peek() == "ROLE" and reader.peek(1) not in ("TO", "="):
        reader.skip()
        if reader.peek() == "DEFAULT":
            raise reader.syntax_error()
        return SetVariable("role", _set_value(reader), is_local=is_local)
    if reader.accept("TIME", "ZONE"):
        return SetVariable("timezone", _set_time_zone(reader), is_local=is_local)
    if reader.accept("NAMES"):
        return SetVariable("client_encoding", _set_value(reader), is_local=is_local)
    if reader.accept("SCHEMA"):
        return SetVariable("search_path", _set_schemas(reader), is_local=is_local)
    if not is_local and reader.peek() == "DATABASE" and reader.peek(1) in ("TO", "="):
        return _use(reader, "SET_VARIABLE", words=2)
    return _assignment(reader, is_local=is_local)


def parse_use(reader: TokenReader) -> UseDatabase:
    """Parse `USE database` (RisingWave)."""
    return _use(reader, "USE", words=1)


def _use(reader: TokenReader, tag: str, words: int) -> UseDatabase:
    for _ in range(words):
        reader.skip()
    position = reader.offset + 1
    database = UseDatabase(reader.value(), position, tag)
    reader.finish()
    return database


def _assignment(reader: TokenReader, system: bool = False, is_local: bool = False) -> SetVariable:
    """Parse `name {TO | =} {value, … | DEFAULT}`."""
    name = reader.dotted_word()
    if not reader.accept("TO"):
        reader.expect("=")
    value = _set_schemas(reader) if name == "search_path" else _set_value(reader)
    return SetVariable(name, value, system, is_local)


def _set_schemas(reader: TokenReader) -> str | None:
    """Parse the value of `search_path`: each item, however it is quoted, is the name of one schema."""
    if reader.peek() == "DEFAULT":
        return _set_value(reader)
    values = reader.comma_separated(reader.value)
    reader.finish()
    return ", ".join(map(quote_if_needed, values))


def _set_value(reader: TokenReader) -> str | None:
    if reader.accept("DEFAULT"):
        reader.finish()
        return None
    values = reader.comma_separated(reader.value)
    reader.finish()
    return ", ".join(values)


def _set_time_zone(reader: TokenReader) -> str | None:
    """Parse a time zone: LOCAL is the default, and an interval the offset to the east, in hours.

    Raises Error 22023 for an interval with months or days, and the errors of `read_interval`.
    """
    if reader.accept("LOCAL"):
        reader.finish()
        return None
    if not reader.accept("INTERVAL"):
        return _set_value(reader)
    text, fields = reader.value(), []
    while not reader.at_end:  # HOUR TO MINUTE
        fields.append(reader.peek().lower())
        reader.skip()
    offset = read_interval(text, " ".join(fields))
    for unit, count in (("months", offset.months), ("days", offset.days)):
        if count:
            message = f"""invalid value for parameter "TimeZone": "INTERVAL '{text}'\""""
            detail = f"Cannot specify {unit} in time zone interval."
            raise Error(message, errors.INVALID_PARAMETER_VALUE, detail=detail)
    return f"{offset.micros / 3_600_000_000:g}"


def parse_reset(reader: TokenReader) -> Statement:
    """Parse `RESET name | ALL | SESSION AUTHORIZATION`."""
    reader.expect("RESET")
    if reader.accept("SESSION", "AUTHORIZATION"):
        reader.finish()
        return SetVariable("session_authorization", None, is_reset=True)
    name = reader.dotted_word()
    return Discard("RESET") if name == "all" else SetVariable(name, None, is_reset=True)


def parse_alter(reader: TokenReader) -> Statement:
    """Parse ALTER, by the kind of object that follows. Raises Error."""
    reader.expect("ALTER")
    kind = next((kind for kind in STREAMING if reader.accept(*kind.upper().split())), None)
    if kind is not None:
        return parse_alter_streaming(reader, kind)
    if reader.accept("TABLE"):
        return parse_alter_table(reader)
    if reader.accept("VIEW"):
        return parse_alter_view(reader)
    if reader.accept("SUBSCRIPTION"):
        return parse_alter_subscription(reader)
    if reader.accept("SEQUENCE"):
        return parse_alter_sequence(reader)
    if reader.accept("SOURCE"):
        return parse_alter_source(reader)
    if reader.accept("SCHEMA"):
        return parse_alter_schema(reader)
    if reader.accept("DATABASE"):
        return parse_alter_database(reader)
    if reader.accept("USER") or reader.accept("ROLE"):
        return parse_alter_user(reader)
    if reader.accept("DEFAULT", "PRIVILEGES"):
        return parse_alter_default_privileges(reader)
    if reader.accept("TYPE"):
        return parse_alter_type(reader)
    if reader.accept("DOMAIN"):
        return parse_alter_domain(reader)
    if reader.accept("SECRET"):
        return parse_alter_secret(reader)
    if reader.accept("CONNECTION"):
        return parse_alter_connection(reader)
    if reader.accept("FUNCTION"):
        return parse_alter_function(reader)
    if reader.accept("FRAGMENT"):
        return parse_alter_fragment(reader)
    if not reader.accept("SYSTEM"):
        message = f"ALTER {reader.peek()} is not supported"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=reader.offset + 1)
    if reader.accept("RESET"):
        name = reader.dotted_word()
        reader.finish()
        return SetVariable(name, None, system=True)
    reader.expect("SET")
    return _assignment(reader, system=True)


_WAITED = ("TABLE", "MATERIALIZED VIEW", "SINK", "INDEX")


def parse_wait(reader: TokenReader) -> Wait:
    """Parse WAIT: for all background jobs, or for the creation of one relation. Raises Error 42601."""
    reader.expect("WAIT")
    if reader.at_end:
        return Wait()
    kind = next((kind for kind in _WAITED if reader.accept(*kind.split())), None)
    if kind is None:
        raise reader.syntax_error()
    name = reader.name()
    reader.finish()
    return Wait(kind.lower(), name)


def parse_cancel(reader: TokenReader) -> CancelJobs:
    """Parse `CANCEL JOB | JOBS id [, …]`."""
    reader.expect("CANCEL")
    if not reader.accept("JOBS"):
        reader.expect("JOB")
    ids = reader.comma_separated(reader.integer)
    reader.finish()
    return CancelJobs(ids)


_DISCARDED = ("ALL", "PLANS", "SEQUENCES", "TEMP", "TEMPORARY")


def parse_discard(reader: TokenReader) -> Discard:
    """Parse `DISCARD ALL | PLANS | SEQUENCES | TEMP | TEMPORARY`. Raises Error 42601 for anything else."""
    reader.expect("DISCARD")
    what = next((word for word in _DISCARDED if reader.accept(word)), None)
    if what is None:
        raise reader.syntax_error()
    reader.finish()
    return Discard(f"DISCARD {what.removesuffix('ORARY')}")


def parse_unlisten(reader: TokenReader) -> Discard:
    """Parse UNLISTEN, which has no effect, because there is no LISTEN; connection pools send `UNLISTEN *`."""
    reader.expect("UNLISTEN")
    if not reader.accept("*"):
        reader.identifier()
    reader.finish()
    return Discard("UNLISTEN")


def parse_vacuum(reader: TokenReader) -> Vacuum:
    """Parse VACUUM and ANALYZE, which change nothing: the lake is tidied, and its statistics kept, in any case."""
    tag = reader.peek().replace("ANALYSE", "ANALYZE")
    reader.skip()
    if reader.peek() == "(":
        reader.parenthesised(lambda: (reader.identifier(), reader.peek() in (",", ")") or reader.value()))
    while any(reader.accept(word) for word in ("FULL", "FREEZE", "VERBOSE", "ANALYZE", "ANALYSE")):
        pass
    tables = () if reader.at_end else reader.comma_separated(lambda: _vacuumed(reader))
    reader.finish()
    return Vacuum(tag, tables)


# Extensions whose functions are here, as far as they are here, without one.
_BUILT_IN = ("pgcrypto", "uuid-ossp")


def parse_create_extension(reader: TokenReader) -> CreateExtension:
    """Parse the part after CREATE EXTENSION. Raises Error 0A000 for an extension that is not built in."""
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    position = reader.offset + 1
    name = reader.identifier()
    if name not in _BUILT_IN:
        raise Error(
            "CREATE EXTENSION is not supported",
            errors.FEATURE_NOT_SUPPORTED,
            hint=f"The functions of {' and '.join(_BUILT_IN)} are built in.",
            position=position,
        )
    reader.accept("WITH")
    for word in ("SCHEMA", "VERSION"):
        if reader.accept(word):
            reader.skip()
    reader.accept("CASCADE")
    reader.finish()
    return CreateExtension(name, if_not_exists)


def _vacuumed(reader: TokenReader) -> Name:
    """Parse `table [(column, …)]`."""
    name = reader.name()
    if reader.peek() == "(":
        reader.parenthesised(reader.identifier)
    return name


def refuse(reader: TokenReader) -> Statement:
    """Raise Error 0A000 for statements of PostgreSQL that are not supported."""
    raise Error(
        f"{reader.peek()} is not supported",
        errors.FEATURE_NOT_SUPPORTED,
        hint=_INSTEAD.get(reader.peek()),
        position=reader.offset + 1,
    )


_NO_NOTIFICATIONS = "There are no notifications; ask again for what may have changed."
_INSTEAD = {
    "LISTEN": _NO_NOTIFICATIONS,
    "NOTIFY": _NO_NOTIFICATIONS,
    "CALL": "There are no procedures; CREATE FUNCTION … LANGUAGE SQL names an expression.",
    "LOCK": "No statement waits for a lock; of two atomic transactions that change a row the second fails (40001).",
}


def parse_flush(reader: TokenReader) -> Flush:
    reader.expect("FLUSH")
    reader.finish()
    return Flush()


def parse_recover(reader: TokenReader) -> Recover:
    reader.expect("RECOVER")
    reader.finish()
    return Recover()


def parse_backup(reader: TokenReader) -> Backup:
    """Parse `BACKUP TO 'directory'`."""
    reader.expect("BACKUP", "TO")
    position = reader.offset + 1
    target = reader.string()
    reader.finish()
    return Backup(target, position)


def parse_refresh(reader: TokenReader) -> Refresh:
    """Parse PostgreSQL's `REFRESH MATERIALIZED VIEW [CONCURRENTLY] name [WITH DATA]`, or with REBUILD at the end."""
    reader.expect("REFRESH", "MATERIALIZED", "VIEW")
    reader.accept("CONCURRENTLY")
    name = reader.name()
    position = reader.offset + 1
    if reader.accept("WITH", "NO", "DATA"):
        raise Error("REFRESH … WITH NO DATA is not supported", errors.FEATURE_NOT_SUPPORTED, position=position)
    is_rebuild = reader.accept("REBUILD")
    if not is_rebuild:
        reader.accept("WITH", "DATA")
    reader.finish()
    return Refresh(name, is_rebuild)


def parse_audit(reader: TokenReader) -> AuditView:
    """Parse `AUDIT MATERIALIZED VIEW name`, and the same of an INDEX."""
    reader.expect("AUDIT")
    kind = "index" if reader.accept("INDEX") else "materialized view"
    if kind != "index":
        reader.expect("MATERIALIZED", "VIEW")
    name = reader.name()
    reader.finish()
    return AuditView(kind, name)
