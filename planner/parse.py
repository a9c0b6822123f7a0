"""SQL text to statements. Nothing passes through unknown: a statement is one of `planner.statements` or an error."""

from __future__ import annotations

import logging
from collections.abc import Callable

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError

from catalog import errors
from catalog.errors import Error
from catalog.types import Type, parse_type
from planner.statements import (
    CancelJobs,
    ColumnDefinition,
    Copy,
    CreateMaterializedView,
    CreateTable,
    Deallocate,
    Delete,
    Drop,
    Empty,
    Explain,
    Flush,
    Insert,
    Name,
    Option,
    Query,
    SetVariable,
    Show,
    ShowVariable,
    Statement,
    Transaction,
    Update,
    Wait,
)
from planner.tokens import TokenReader, syntax_error

# sqlglot warns on its own logger before it falls back to exp.Command, which we turn into an error.
logging.getLogger("sqlglot").setLevel(logging.ERROR)


def parse_statement(sql: str) -> Statement:
    """The statement in `sql` (one, without a semicolon). Raises Error 42601 or 0A000 with a position."""
    reader = TokenReader(sql)
    if reader.at_end:
        return Empty()
    parser = _BY_FIRST_WORD.get(reader.peek())
    if parser is None:
        raise reader.syntax_error()
    return parser(reader)


def parse_tree(sql: str, offset: int = 0) -> exp.Expr:
    """One SQL statement from `offset` on as a sqlglot tree; positions in it count from the start of `sql`."""
    padded = " " * offset + sql[offset:] if "\n" not in sql[:offset] else _blank(sql[:offset]) + sql[offset:]
    try:
        tree = sqlglot.parse_one(padded, read="postgres")
    except ParseError as error:
        raise _parse_error(sql, error) from error
    except SqlglotError as error:
        raise Error(str(error), errors.SYNTAX_ERROR, position=offset + 1) from error
    if isinstance(tree, exp.Command):
        raise Error("this statement is not supported", errors.FEATURE_NOT_SUPPORTED, position=offset + 1)
    return tree


def _blank(text: str) -> str:
    return "".join("\n" if character == "\n" else " " for character in text)


def _parse_error(sql: str, error: ParseError) -> Error:
    first = error.errors[0] if error.errors else {}
    line, col, highlight = first.get("line"), first.get("col"), first.get("highlight") or ""
    if not line or not col:
        return Error(str(error).splitlines()[0], errors.SYNTAX_ERROR)
    line_start = sum(len(text) + 1 for text in sql.split("\n")[: line - 1])
    return syntax_error(sql, max(line_start + col - len(highlight), 0))


def _query(reader: TokenReader) -> Query:
    tree = parse_tree(reader.sql)
    if not isinstance(tree, exp.Query | exp.Values):
        raise syntax_error(reader.sql, 0)
    return Query(tree)


def _create(reader: TokenReader) -> Statement:
    reader.expect("CREATE")
    if reader.accept("OR"):
        raise Error("CREATE OR REPLACE is not supported", errors.FEATURE_NOT_SUPPORTED, position=reader.offset + 1)
    if reader.accept("MATERIALIZED", "VIEW"):
        return _create_materialized_view(reader)
    if reader.accept("TABLE"):
        return _create_table(reader)
    kind = reader.peek()
    raise Error(
        f"CREATE {kind} is not supported",
        errors.FEATURE_NOT_SUPPORTED,
        hint="CREATE TABLE and CREATE MATERIALIZED VIEW are.",
        position=reader.offset + 1,
    )


def _create_materialized_view(reader: TokenReader) -> CreateMaterializedView:
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    name = reader.name()
    columns = reader.parenthesised(reader.identifier) if reader.peek() == "(" else ()
    before_options = reader.offset
    options = reader.parenthesised(lambda: _option(reader)) if reader.accept("WITH") else ()
    options_text = reader.sql[before_options : reader.offset].strip()
    reader.expect("AS")
    offset = reader.offset
    query = parse_tree(reader.sql, offset)
    if not isinstance(query, exp.Query):
        raise syntax_error(reader.sql, offset)
    _refuse_duplicates([option.name for option in options], "Duplicated option: {}")
    head = f"CREATE MATERIALIZED VIEW {name}" + (f" ({', '.join(columns)})" if columns else "")
    body = reader.sql[offset:].strip()
    definition = " ".join(part for part in (head, options_text, "AS", body) if part)
    return CreateMaterializedView(name, columns, query, options, if_not_exists, definition)


def _option(reader: TokenReader) -> Option:
    position = reader.offset + 1
    name = reader.dotted_word()
    reader.expect("=")
    return Option(name, reader.value(), position)


def _refuse_duplicates(names: list[str], message: str) -> None:
    for index, name in enumerate(names):
        if name in names[:index]:
            raise Error(message.format(name), errors.INVALID_PARAMETER_VALUE)


def _create_table(reader: TokenReader) -> CreateTable:
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    name = reader.name()
    tree = parse_tree(reader.sql)
    schema = tree.this
    if not isinstance(tree, exp.Create) or not isinstance(schema, exp.Schema) or tree.expression:
        raise Error("CREATE TABLE needs a list of columns", errors.SYNTAX_ERROR, position=name.position)
    columns: list[ColumnDefinition] = []
    key: list[str] = []
    for part in schema.expressions:
        if isinstance(part, exp.ColumnDef):
            column, is_key = _column_definition(part)
            columns.append(column)
            key += [column.name] if is_key else []
        elif isinstance(part, exp.PrimaryKey):
            if key:
                raise Error("multiple primary keys are not allowed", errors.INVALID_COLUMN_DEFINITION)
            key = [_folded(identifier) for identifier in part.find_all(exp.Identifier)]
        else:
            raise _unsupported(f"{part.sql(dialect='postgres')} in CREATE TABLE", part)
    names = [column.name for column in columns]
    for index, column_name in enumerate(names):
        if column_name in names[:index]:
            raise Error(f'column "{column_name}" specified more than once', errors.DUPLICATE_COLUMN)
    for column_name in key:
        if column_name not in names:
            raise Error(f'column "{column_name}" named in key does not exist', errors.UNDEFINED_COLUMN)
    definition = (
        f"CREATE TABLE {name} " + schema.sql(dialect="postgres")[len(schema.this.sql(dialect="postgres")) :].strip()
    )
    return CreateTable(name, tuple(columns), tuple(key), if_not_exists, definition)


def _column_definition(node: exp.ColumnDef) -> tuple[ColumnDefinition, bool]:
    name = _folded(node.this)
    if name in ("_row_id", "_rw_timestamp"):
        raise Error(f'column name "{name}" conflicts with a system column name', errors.INVALID_COLUMN_DEFINITION)
    if node.args.get("kind") is None:
        raise Error(f'column "{name}" has no type', errors.SYNTAX_ERROR, position=_position(node))
    not_null = is_key = False
    for constraint in node.args.get("constraints") or []:
        match constraint.kind:
            case exp.PrimaryKeyColumnConstraint():
                is_key = not_null = True
            case exp.NotNullColumnConstraint(args=args):
                not_null = not_null or not args.get("allow_null")
            case other:
                raise _unsupported(f"{other.sql(dialect='postgres')} in CREATE TABLE", node)
    return ColumnDefinition(name, column_type(node.args["kind"]), not_null), is_key


def column_type(kind: exp.Expr) -> Type:
    """The type a sqlglot DataType names. Raises Error 42704."""
    text = kind.sql(dialect="postgres").lower()
    return parse_type("character varying" if text.startswith(("varchar", "char")) and "[" not in text else text)


def _drop(reader: TokenReader) -> Drop:
    reader.expect("DROP")
    if reader.accept("MATERIALIZED", "VIEW"):
        kind = "materialized view"
    elif reader.accept("TABLE"):
        kind = "table"
    else:
        raise Error(f"DROP {reader.peek()} is not supported", errors.FEATURE_NOT_SUPPORTED, position=reader.offset + 1)
    if_exists = reader.accept("IF", "EXISTS")
    names = reader.comma_separated(reader.name)
    cascade = reader.accept("CASCADE")
    if not cascade:
        reader.accept("RESTRICT")
    reader.finish()
    return Drop(kind, names, if_exists, cascade)


def _insert(reader: TokenReader) -> Insert:
    tree = parse_tree(reader.sql)
    assert isinstance(tree, exp.Insert)
    for argument in ("conflict", "returning", "overwrite"):
        if tree.args.get(argument):
            raise _unsupported(f"INSERT … {argument.upper()}", tree)
    target = tree.this
    columns: tuple[str, ...] = ()
    if isinstance(target, exp.Schema):
        columns = tuple(_folded(identifier) for identifier in target.expressions)
        target = target.this
    source = tree.expression
    if source is None:
        raise _unsupported("INSERT … DEFAULT VALUES", tree)
    if tree.args.get("with_"):
        source.set("with_", tree.args["with_"])
    return Insert(_table_name(target), columns, source)


def _update(reader: TokenReader) -> Update:
    tree = parse_tree(reader.sql)
    assert isinstance(tree, exp.Update)
    if tree.args.get("returning"):
        raise _unsupported("UPDATE … RETURNING", tree)
    return Update(_table_name(tree.this), tree)


def _delete(reader: TokenReader) -> Delete:
    tree = parse_tree(reader.sql)
    assert isinstance(tree, exp.Delete)
    if tree.args.get("returning"):
        raise _unsupported("DELETE … RETURNING", tree)
    return Delete(_table_name(tree.this), tree)


def _copy(reader: TokenReader) -> Copy:
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
    format_, options = _copy_options(reader)
    return Copy(table, columns, query, is_from, format_, options)


def _query_in_parentheses(reader: TokenReader) -> exp.Expr:
    start = reader.offset
    depth = 0
    while True:
        depth += {"(": 1, ")": -1}.get(reader.peek(), 0)
        if reader.at_end:
            raise reader.syntax_error()
        reader.accept(reader.peek())
        if depth == 0:
            return parse_tree(reader.sql[: reader.offset].rstrip()[:-1], start + 1)


def _copy_options(reader: TokenReader) -> tuple[str, dict[str, str | bool]]:
    found: dict[str, str | bool] = {}
    reader.accept("WITH")
    parenthesised = reader.accept("(")
    while not reader.at_end and not reader.accept(")"):
        reader.accept(",")
        position = reader.offset + 1
        word = reader.identifier()
        match word:
            case "format":
                found[word] = reader.value()
            case "csv" | "text" | "binary":
                found["format"] = word
            case "header":
                plain = reader.at_end or reader.peek() in (",", ")") or not parenthesised
                found[word] = True if plain else reader.value() in ("true", "on", "1")
            case "delimiter" | "null" | "quote" | "escape" | "encoding":
                reader.accept("AS")
                found[word] = reader.value()
            case _:
                raise Error(f'option "{word}" not recognized', errors.SYNTAX_ERROR, position=position)
    reader.finish()
    found.pop("encoding", None)
    format_ = str(found.pop("format", "text"))
    if format_ not in ("text", "csv"):
        raise Error(f'COPY format "{format_}" not supported', errors.FEATURE_NOT_SUPPORTED)
    return format_, found


def _show(reader: TokenReader) -> Statement:
    reader.expect("SHOW")
    if reader.accept("TRANSACTION", "ISOLATION", "LEVEL"):
        return ShowVariable("transaction_isolation")
    if reader.accept("TIME", "ZONE"):
        return ShowVariable("timezone")
    if reader.accept("MATERIALIZED", "VIEWS"):
        return _show_list(reader, "MATERIALIZED VIEWS")
    if reader.accept("CREATE", "TABLE"):
        return Show("CREATE", like="table", name=reader.name())
    if reader.accept("CREATE", "MATERIALIZED", "VIEW"):
        return Show("CREATE", like="materialized view", name=reader.name())
    if reader.peek() in ("JOBS", "TABLES", "ALL", "PARAMETERS", "DATABASES", "SCHEMAS", "VIEWS", "CLUSTER"):
        return _show_list(reader, reader.identifier().upper())
    name = reader.dotted_word()
    reader.finish()
    return ShowVariable(name)


def _show_list(reader: TokenReader, what: str) -> Show:
    schema = reader.identifier() if reader.accept("FROM") else None
    like = reader.value() if reader.accept("LIKE") else None
    reader.finish()
    return Show(what, schema, like)


def _set(reader: TokenReader) -> Statement:
    reader.expect("SET")
    if reader.accept("SESSION", "CHARACTERISTICS") or reader.peek() == "TRANSACTION":
        return Transaction("SET")
    if not reader.accept("SESSION"):
        reader.accept("LOCAL")
    if reader.accept("TIME", "ZONE"):
        return SetVariable("timezone", _set_value(reader))
    name = reader.dotted_word()
    if not reader.accept("TO"):
        reader.expect("=")
    return SetVariable(name, _set_value(reader))


def _set_value(reader: TokenReader) -> str | None:
    if reader.accept("DEFAULT"):
        reader.finish()
        return None
    values = reader.comma_separated(reader.value)
    reader.finish()
    return ", ".join(values)


def _reset(reader: TokenReader) -> Statement:
    reader.expect("RESET")
    name = reader.dotted_word()
    return Deallocate("RESET") if name == "all" else SetVariable(name, None)


def _alter(reader: TokenReader) -> SetVariable:
    reader.expect("ALTER")
    if not reader.accept("SYSTEM"):
        raise Error(f"ALTER {reader.peek()} is not supported", errors.FEATURE_NOT_SUPPORTED, position=reader.offset + 1)
    reader.expect("SET")
    name = reader.dotted_word()
    if not reader.accept("TO"):
        reader.expect("=")
    return SetVariable(name, _set_value(reader), system=True)


def _wait(reader: TokenReader) -> Wait:
    reader.expect("WAIT")
    if reader.at_end:
        return Wait()
    if reader.accept("MATERIALIZED", "VIEW"):
        kind = "materialized view"
    else:
        reader.expect("TABLE")
        kind = "table"
    name = reader.name()
    reader.finish()
    return Wait(kind, name)


def _cancel(reader: TokenReader) -> CancelJobs:
    reader.expect("CANCEL")
    if not reader.accept("JOBS"):
        reader.expect("JOB")
    ids = reader.comma_separated(reader.integer)
    reader.finish()
    return CancelJobs(ids)


def _explain(reader: TokenReader) -> Explain:
    reader.expect("EXPLAIN")
    words: set[str] = set()
    if reader.peek() == "(":
        for option in reader.parenthesised(lambda: _explain_option(reader)):
            words.add(option)
    if reader.accept("VERBOSE"):
        words.add("verbose")
    offset = reader.offset
    statement = parse_statement(_blank(reader.sql[:offset]) + reader.sql[offset:])
    if not isinstance(statement, Query | CreateMaterializedView | Insert | Update | Delete):
        raise Error("unsupported statement for EXPLAIN", errors.FEATURE_NOT_SUPPORTED, position=offset + 1)
    return Explain(statement, "verbose" in words, "incremental" in words)


def _explain_option(reader: TokenReader) -> str:
    position = reader.offset + 1
    word = reader.identifier()
    if word not in ("verbose", "incremental"):
        raise Error(f"unexpected explain options: [{word}]", errors.SYNTAX_ERROR, position=position)
    if reader.peek() not in (",", ")") and reader.value() in ("false", "off"):
        return ""
    return word


def _flush(reader: TokenReader) -> Flush:
    reader.expect("FLUSH")
    reader.finish()
    return Flush()


def _constant(statement: Statement) -> Callable[[TokenReader], Statement]:
    return lambda reader: statement


_BY_FIRST_WORD: dict[str, Callable[[TokenReader], Statement]] = {
    "SELECT": _query,
    "VALUES": _query,
    "WITH": _query,
    "(": _query,
    "TABLE": _query,
    "CREATE": _create,
    "DROP": _drop,
    "INSERT": _insert,
    "UPDATE": _update,
    "DELETE": _delete,
    "COPY": _copy,
    "SHOW": _show,
    "SET": _set,
    "RESET": _reset,
    "ALTER": _alter,
    "FLUSH": _flush,
    "WAIT": _wait,
    "CANCEL": _cancel,
    "EXPLAIN": _explain,
    "BEGIN": _constant(Transaction("BEGIN")),
    "START": _constant(Transaction("START TRANSACTION")),
    "COMMIT": _constant(Transaction("COMMIT")),
    "END": _constant(Transaction("COMMIT")),
    "ROLLBACK": _constant(Transaction("ROLLBACK")),
    "ABORT": _constant(Transaction("ROLLBACK")),
    "SAVEPOINT": _constant(Transaction("SAVEPOINT")),
    "RELEASE": _constant(Transaction("RELEASE")),
    "DISCARD": _constant(Deallocate("DISCARD ALL")),
    "DEALLOCATE": _constant(Deallocate("DEALLOCATE")),
    "CLOSE": _constant(Deallocate("CLOSE CURSOR")),
    "UNLISTEN": _constant(Deallocate("UNLISTEN")),
}


def _folded(identifier: exp.Expr) -> str:
    return identifier.name if identifier.args.get("quoted") else identifier.name.lower()


def _table_name(table: exp.Expr) -> Name:
    def part(key: str) -> str | None:
        identifier = table.args.get(key)
        return _folded(identifier) if isinstance(identifier, exp.Identifier) else None

    name = part("this")
    if name is None:
        raise _unsupported(f"writing to {table.sql(dialect='postgres')}", table)
    return Name(part("catalog"), part("db"), name, _position(table) or 1)


def name_of(table: exp.Table) -> Name:
    """The relation a table expression names."""
    return _table_name(table)


def position_of(node: exp.Expr) -> int | None:
    """Where the node's first identifier starts, counted from 1; None when it has none."""
    return _position(node)


def _position(node: exp.Expr) -> int | None:
    starts = [found.meta["start"] for found in node.find_all(exp.Expr) if "start" in found.meta]
    return min(starts) + 1 if starts else None


def _unsupported(what: str, node: exp.Expr) -> Error:
    return Error(f"{what} is not supported", errors.FEATURE_NOT_SUPPORTED, position=_position(node))
