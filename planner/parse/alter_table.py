"""Parsing of ALTER TABLE's actions on columns (PostgreSQL: src/backend/parser/gram.y, alter_table_cmd)."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.parse.alter_job import Setting, parse_setting
from sparkwave.planner.parse.constraints import check_of, constraint_name, is_padded, length_of
from sparkwave.planner.parse.declared_keys import declared_key
from sparkwave.planner.parse.generated import transform_text
from sparkwave.planner.parse.rename import Naming, parse_naming, unsupported
from sparkwave.planner.parse.table import column_definition, default_text, parse_watermark
from sparkwave.planner.parse.time_types import WRITTEN
from sparkwave.planner.parse.tokens import TokenReader, blank
from sparkwave.planner.parse.trees import declared_type, parse_tree
from sparkwave.planner.statements import (
    AddColumn,
    AddConstraint,
    AlterTable,
    ColumnAction,
    DropColumn,
    DropConstraint,
    RenameColumn,
    RenameConstraint,
    SetDefault,
    SetNotNull,
    SetType,
    SetWatermark,
)

_HINTS = {
    "table": "ADD, DROP, ALTER and RENAME COLUMN are, ADD CHECK, UNIQUE and FOREIGN KEY, DROP and RENAME CONSTRAINT, "
    "RENAME TO, OWNER TO, SWAP WITH, and SET SCHEMA, SOURCE_RATE_LIMIT, PARALLELISM and CONFIG. ALTER COLUMN knows "
    "TYPE, SET and DROP DEFAULT, SET and DROP NOT NULL. ALTER WATERMARK is.",
    "source": "ADD COLUMN, RENAME TO, OWNER TO, SWAP WITH, and SET SCHEMA, SOURCE_RATE_LIMIT, PARALLELISM and CONFIG "
    "are.",
}


def parse_alter_table(reader: TokenReader) -> AlterTable | Naming | Setting:
    """Parse from after ALTER TABLE on. Raises Error 42601, 0A000."""
    if_exists = reader.accept("IF", "EXISTS")
    if reader.peek(1) not in (".", "ADD", "DROP", "ALTER", "RENAME", "SET", "RESET", "OWNER", "SWAP"):
        reader.accept("ONLY")
    name = reader.name()
    reader.accept("*")
    found = parse_naming(reader, "table", name, if_exists) or parse_setting(reader, "table", name, if_exists)
    if found is not None:
        return found
    if reader.accept("RENAME"):
        actions: tuple[ColumnAction, ...] = (_rename(reader),)
        reader.finish()
    else:
        actions = column_actions(reader)
    return AlterTable(name, actions, if_exists)


_KNOWN = {"table": ("ADD", "DROP", "ALTER"), "source": ("ADD",)}


def column_actions(reader: TokenReader, kind: str = "table") -> tuple[ColumnAction, ...]:
    """Parse `ADD …, DROP …` to the end. Raises Error 42601, 0A000."""
    actions = reader.comma_separated(lambda: _action(reader, kind))
    reader.finish()
    return actions


def _rename(reader: TokenReader) -> RenameColumn | RenameConstraint:
    if reader.accept("CONSTRAINT"):
        constraint, position = reader.placed_identifier()
        reader.expect("TO")
        return RenameConstraint(constraint, position, reader.identifier())
    reader.accept("COLUMN")
    name, position = reader.placed_identifier()
    reader.expect("TO")
    return RenameColumn(name, position, *reader.placed_identifier())


def _action(reader: TokenReader, kind: str) -> ColumnAction:
    position = reader.offset + 1
    if reader.peek() not in _KNOWN[kind]:
        raise unsupported_alter(position, kind)
    if reader.accept("ADD"):
        reader.accept("COLUMN")
        return _add(reader)
    if reader.accept("DROP", "CONSTRAINT"):
        return drop_constraint(reader)
    if reader.accept("DROP"):
        reader.accept("COLUMN")
        if_exists = reader.accept("IF", "EXISTS")
        return DropColumn(*reader.placed_identifier(), if_exists, reader.cascade())
    reader.expect("ALTER")
    if reader.accept("WATERMARK", "FOR"):
        position = reader.offset + 1
        return SetWatermark(*parse_watermark(reader), position)
    reader.accept("COLUMN")
    return alter_column(reader, *reader.placed_identifier())


def drop_constraint(reader: TokenReader) -> DropConstraint:
    """Parse from after DROP CONSTRAINT on."""
    if_exists = reader.accept("IF", "EXISTS")
    return DropConstraint(*reader.placed_identifier(), if_exists, reader.cascade())


def unsupported_alter(position: int, kind: str = "table") -> Error:
    """Return an error for an unsupported ALTER of this kind, with the supported ones."""
    return unsupported(kind, position, _HINTS[kind])


# The first words of table constraints, which would also be names of columns.
_CONSTRAINTS = ("CONSTRAINT", "PRIMARY", "UNIQUE", "FOREIGN", "CHECK", "EXCLUDE")


def _add(reader: TokenReader) -> AddColumn | AddConstraint:
    position = reader.offset + 1
    if reader.peek().split()[:1] and reader.peek().split()[0] in _CONSTRAINTS:  # FOREIGN KEY is one token
        return add_constraint(reader, position)
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    start = reader.offset
    position = start + 1
    node = _column_node(reader.sql[: _end_of_action(reader)], start)
    if not isinstance(node, exp.ColumnDef):
        raise Error("syntax error in a column's definition", errors.SYNTAX_ERROR, position=position)
    column, is_key = column_definition(node)
    if is_key:
        message = "adding a column to the primary key is not supported"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=position)
    if column.generated is not None:
        message = "alter table add generated columns is not supported"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=position)
    if column.not_null and column.default is None and column.counts is None:
        message = "alter table add NOT NULL columns must have default value"
        raise Error(message, errors.NOT_NULL_VIOLATION, position=position)
    return AddColumn(column, position, if_not_exists)


def add_constraint(reader: TokenReader, position: int) -> AddConstraint:
    """Parse CHECK, or a constraint that is not enforced. Raises Error 0A000 for any other constraint."""
    start = reader.offset
    whole = _column_node(reader.sql[: _end_of_action(reader)], start)
    part = whole.expressions[0] if isinstance(whole, exp.Constraint) and len(whole.expressions) == 1 else whole
    name = constraint_name(whole) if whole is not part else ""
    if isinstance(part, exp.CheckColumnConstraint):
        return AddConstraint(check_of(part, name))
    key = declared_key(part, name)
    if key is None:
        raise unsupported_alter(position)
    return AddConstraint(key)


def _column_node(sql: str, start: int) -> exp.Expr:
    """Return the tree of the column definition that starts at `start`."""
    tree = _placed("CREATE TABLE t (", sql, start, ")")
    parts = tree.this.expressions if isinstance(tree, exp.Create) and isinstance(tree.this, exp.Schema) else []
    return parts[0] if len(parts) == 1 else tree


def _placed(head: str, sql: str, start: int, tail: str = "") -> exp.Expr:
    """Return the tree of `head` and the text from `start` on.

    Positions are kept, because `head` replaces the text before.
    """
    return parse_tree(head + blank(sql[:start])[len(head) :] + sql[start:] + tail)


def alter_column(reader: TokenReader, name: str, position: int) -> SetType | SetDefault | SetNotNull:
    """Parse the action after the name of the column that it is for. Raises Error 42601, 0A000."""
    if reader.accept("SET", "DATA", "TYPE") or reader.accept("TYPE"):
        if reader.at_end:
            raise reader.syntax_error()
        start = reader.offset
        cast = _placed("SELECT CAST(NULL AS ", reader.sql[: _end_of_action(reader, "USING")], start, ")").find(exp.Cast)
        assert cast is not None
        kind = cast.meta.get(WRITTEN, cast.to)
        changed = SetType(name, position, declared_type(kind), length_of(kind), is_padded(kind))
        if not reader.accept("USING"):
            return changed
        start = reader.offset
        tree = _placed("SELECT ", reader.sql[: _end_of_action(reader)], start)
        return replace(changed, using=transform_text(tree.expressions[0].unalias()), using_position=start + 1)
    if reader.accept("SET", "DEFAULT"):
        start = reader.offset
        tree = _placed("SELECT ", reader.sql[: _end_of_action(reader)], start)
        return SetDefault(name, position, default_text(tree.expressions[0].unalias()))
    if reader.accept("DROP", "DEFAULT"):
        return SetDefault(name, position, None)
    if reader.accept("SET", "NOT", "NULL"):
        return SetNotNull(name, position, True)
    if reader.accept("DROP", "NOT", "NULL"):
        return SetNotNull(name, position, False)
    raise unsupported_alter(reader.offset + 1)


def _end_of_action(reader: TokenReader, *words: str) -> int:
    """Skip the tokens up to the next comma of the list, or to one of some words. Returns the end of the last one."""
    depth, end, before = 0, reader.offset, ""
    fields = 0  # how many STRUCT< are open
    while not reader.at_end and (depth or fields or reader.peek() not in (",", *words)):
        word = reader.peek()
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(word, 0)
        fields += 1 if (before, word) == ("STRUCT", "<") else -1 if fields and word == ">" else 0
        end, before = reader.end_of_token, word
        reader.accept(word)
    return end
