"""Parsing of statements that change rows: INSERT, UPDATE, DELETE, MERGE and TRUNCATE."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.parse.identifiers import folded
from sparkwave.planner.parse.tokens import TokenReader, blank, syntax_error
from sparkwave.planner.parse.trees import name_of, parse_tree, position_of, unsupported
from sparkwave.planner.statements import Delete, Insert, Merge, Name, Truncate, Update, Upsert


def parse_write(reader: TokenReader) -> Insert | Update | Delete | Merge:
    """Parse a statement that changes rows. Raises Error 42601 where sqlglot accepts what PostgreSQL does not."""
    if reader.accept("DELETE"):  # sqlglot would accept it without FROM
        reader.expect("FROM")
    overrides, sql = _overriding(reader)
    statement = write_of(parse_tree(sql, order=reader.order))
    if statement is None:
        raise syntax_error(reader.sql, 0)
    if isinstance(statement, Update) and not statement.tree.expressions:  # sqlglot accepts it without SET
        raise _without_set(reader)
    return replace(statement, overrides_identity=True) if overrides and isinstance(statement, Insert) else statement


def _without_set(reader: TokenReader) -> Error:
    """Return the syntax error of an UPDATE that sets nothing: at the first word that no name of the table has."""
    reader.skip()
    reader.accept("ONLY")
    reader.name()
    if reader.accept("AS") or reader.peek() not in ("SET", "FROM", "WHERE", "RETURNING", ""):
        reader.skip()
    reader.accept("SET")
    return reader.syntax_error()


def _overriding(reader: TokenReader) -> tuple[bool, str]:
    """Return whether an INSERT has OVERRIDING SYSTEM VALUE, which sqlglot does not know, and its text without it.

    Raises Error 0A000 for OVERRIDING USER VALUE.
    """
    sql = reader.sql
    if reader.peek() != "INSERT" or not reader.skip_to("OVERRIDING"):
        return False, sql
    start = reader.offset
    reader.skip()
    if reader.accept("USER", "VALUE"):
        message, hint = "OVERRIDING USER VALUE is not supported", "Leave the identity column out."
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, hint=hint, position=start + 1)
    if not reader.accept("SYSTEM", "VALUE"):
        return False, sql
    return True, sql[:start] + blank(sql[start : reader.offset]) + sql[reader.offset :]


def write_of(tree: exp.Expr) -> Insert | Update | Delete | Merge | None:
    """Return the statement of a tree, None for one that changes nothing. Raises Error 0A000, 42601."""
    if isinstance(tree, exp.DML) and isinstance(tree.this, exp.Table) and tree.this.args.get("joins"):
        raise _foreign("a join with the table to change", tree.this.args["joins"][0])
    match tree:
        case exp.Insert():
            return _insert(tree)
        case exp.Update():
            for each in tree.expressions:
                if not isinstance(each, exp.EQ) or not isinstance(each.this, exp.Column | exp.Tuple | exp.Paren):
                    message = "syntax error: SET takes assignments to columns"
                    raise Error(message, errors.SYNTAX_ERROR, position=position_of(each))
            returning = _returning(tree)
            return Update(name_of(tree.this), tree, returning)
        case exp.Delete():
            returning = _returning(tree)
            return Delete(name_of(tree.this), tree, returning)
        case exp.Merge():
            return _merge(tree)
    for cte in tree.args["with_"].expressions if tree.args.get("with_") else ():
        if isinstance(cte.this, exp.DML):
            raise unsupported(f"{cte.this.key.upper()} in WITH", cte)
    return None


_OF_INSERT = frozenset({"with_", "this", "expression", "conflict", "returning", "default"})


def _foreign(what: str, node: exp.Expr) -> Error:
    """Return the error for other engines' syntax, which sqlglot reads."""
    return Error(f"{what} is not supported", errors.SYNTAX_ERROR, position=position_of(node))


def _insert(tree: exp.Insert) -> Insert:
    for name, value in tree.args.items():
        if value and name not in _OF_INSERT:
            raise _foreign(f"{name.replace('_', ' ').upper()} of INSERT", tree)
    target = tree.this
    columns: tuple[str, ...] = ()
    if isinstance(target, exp.Schema):
        columns = tuple(folded(identifier) for identifier in target.expressions)
        target = target.this
    source = tree.expression
    if source is None and not tree.args.get("default"):
        raise unsupported("this INSERT", tree)
    if source is not None and tree.args.get("with_"):
        source.set("with_", tree.args["with_"])
    alias = target.args.get("alias")
    upsert = _upsert(tree.args["conflict"]) if tree.args.get("conflict") else None
    return Insert(name_of(target), columns, source, alias and folded(alias.this), _returning(tree), upsert)


def _upsert(conflict: exp.OnConflict) -> Upsert:
    """Return the ON CONFLICT of an INSERT.

    Raises Error 0A000 for other engines' syntax or anything but columns, 42601 for DO UPDATE without a target.
    """
    action = str(conflict.args["action"]).upper() if conflict.args.get("action") else ""
    if conflict.args.get("duplicate") or action not in ("DO NOTHING", "DO UPDATE"):
        raise unsupported("this ON CONFLICT", conflict)
    if conflict.args.get("index_predicate"):
        raise unsupported("ON CONFLICT with a condition of an index", conflict)
    target: tuple[str, ...] | None = None
    if keys := conflict.args.get("conflict_keys"):
        columns = [key.this if isinstance(key, exp.Ordered) else key for key in keys]
        other = next((key for key in columns if not isinstance(key, exp.Column | exp.Identifier)), None)
        if other is not None:
            raise unsupported("ON CONFLICT with an expression", other)
        target = tuple(folded(key.this if isinstance(key, exp.Column) else key) for key in columns)
    constraint = conflict.args.get("constraint")
    position = position_of(conflict)
    if action == "DO UPDATE" and target is None and constraint is None:
        raise Error(
            "ON CONFLICT DO UPDATE requires inference specification or constraint name",
            errors.SYNTAX_ERROR,
            hint="For example, ON CONFLICT (column_name).",
            position=position,
        )
    return Upsert(target, constraint and folded(constraint), conflict if action == "DO UPDATE" else None, position)


def _returning(tree: exp.Insert | exp.Update | exp.Delete) -> tuple[exp.Expr, ...]:
    """Take the list of RETURNING out of the tree. Raises Error 42803 for a function of several rows."""
    clause = tree.args.get("returning")
    if clause is None:
        return ()
    if clause.args.get("into"):
        raise _foreign("RETURNING INTO", clause.args["into"])
    tree.set("returning", None)
    for item in clause.expressions:
        for part in item.find_all(exp.AggFunc, exp.Window):
            if part.find_ancestor(exp.Select) is None:
                kind, code = ("window", errors.WINDOWING_ERROR)
                if isinstance(part, exp.AggFunc):
                    kind, code = ("aggregate", errors.GROUPING_ERROR)
                raise Error(f"{kind} functions are not allowed in RETURNING", code, position=position_of(part))
    return tuple(clause.expressions)


def _merge(tree: exp.Merge) -> Merge:
    """Return a MERGE as in PostgreSQL 15, so without RETURNING and NOT MATCHED BY SOURCE."""
    if tree.args.get("returning"):
        raise unsupported("MERGE … RETURNING", tree.args["returning"])
    for when in tree.args["whens"].expressions:
        then = when.args["then"]
        if when.args.get("source"):
            raise unsupported("WHEN NOT MATCHED BY SOURCE", tree)
        if when.args["matched"] == isinstance(then, exp.Insert):
            if isinstance(then, exp.Insert):
                raise Error("INSERT is not allowed with WHEN MATCHED", errors.SYNTAX_ERROR)
            if then.name.upper() != "DO NOTHING":
                what = "UPDATE" if isinstance(then, exp.Update) else then.name.upper()
                raise Error(f"{what} is not allowed with WHEN NOT MATCHED", errors.SYNTAX_ERROR)
    return Merge(name_of(tree.this), tree)


def parse_truncate(reader: TokenReader) -> Truncate:
    """Parse `TRUNCATE [TABLE] [ONLY] name [*], … [RESTART | CONTINUE IDENTITY] [CASCADE | RESTRICT]`.

    No other tables refer to a table, so the last two change nothing.
    """
    reader.expect("TRUNCATE")
    reader.accept("TABLE")
    tables = reader.comma_separated(lambda: _truncated(reader))
    restarts = reader.accept("RESTART", "IDENTITY")
    if not restarts:
        reader.accept("CONTINUE", "IDENTITY")
    reader.cascade()
    reader.finish()
    return Truncate(tables, restarts)


def _truncated(reader: TokenReader) -> Name:
    if reader.peek(1) not in (",", ".", ""):
        reader.accept("ONLY")
    name = reader.name()
    reader.accept("*")
    return name
