"""The CREATE TABLE of a table in its present form, and the effects of a changed column on other parts of the table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sparkwave.catalog.model import NO_COLUMN, Column, Relation, Watermark
from sparkwave.catalog.names import quote_if_needed
from sparkwave.catalog.relation_details import NO_CONSTRAINTS, Check, Constraints
from sparkwave.planner.parse.generated import renamed
from sparkwave.planner.parse.source import begins_connector, connector_text, parse_connector
from sparkwave.planner.parse.table import clauses_text
from sparkwave.planner.parse.tokens import TokenReader
from sparkwave.planner.statements import Connector, Name


def table_text(name: Name, table: Relation, connector: Connector | None = None) -> str:
    """Return a normalised CREATE TABLE or SOURCE with a name, with the clauses of its connector."""
    included = [column for _, column, _ in connector.includes] if connector is not None else []
    listed = [_column_text(column, table) for column in table.visible if column.name not in (*included, NO_COLUMN)]
    checks = table.constraints.checks
    listed += [f"CONSTRAINT {quote_if_needed(check.name)} CHECK ({check.condition})" for check in checks]
    if table.primary_key:
        listed.append(f"PRIMARY KEY ({', '.join(map(quote_if_needed, table.primary_key))})")
    if table.watermark is not None:
        ttl = "" if table.append_only else " WITH TTL"
        listed += [_watermark_text(table.watermark, c) + ttl for c in table.visible if c.name == table.watermark.column]
    clauses = clauses_text(table.append_only and table.kind == "table", bool(table.primary_key), table.conflict)
    if connector is not None:
        clauses += f" {connector_text(connector)}"
    return f"CREATE {table.kind.upper()} {name.sql} ({', '.join(listed)}){clauses}"


def with_text(table: Relation) -> Relation:
    """Return an altered table with its new definition, under the name in the old one."""
    reader = TokenReader(table.definition)
    reader.expect("CREATE", table.kind.upper())
    return replace(table, definition=table_text(reader.name(), table, connector_of(table)))


def connector_of(table: Relation) -> Connector | None:
    """Return the clauses of a table's connector, in a form that may be shown; None for a table without."""
    reader = TokenReader(table.definition)
    while not reader.at_end and not begins_connector(reader):
        if reader.peek() == "(":
            reader.skip_parentheses()
        else:
            reader.skip()
    return None if reader.at_end else parse_connector(reader)


def _column_text(column: Column, table: Relation) -> str:
    length = table.length_of(column)
    parts = [quote_if_needed(column.name), f"{column.type.shown}{'' if length is None else f'({length})'}"]
    if column.generated is not None:
        parts.append(f"GENERATED ALWAYS AS ({column.generated}) STORED")
    if column.default is not None:
        parts.append(f"DEFAULT {column.default}")
    if column.not_null:
        parts.append("NOT NULL")
    return " ".join(parts)


def _watermark_text(watermark: Watermark, column: Column) -> str:
    name, delay = quote_if_needed(column.name), str(watermark.delay)
    if not column.type.is_integer:
        seconds, rest = divmod(watermark.delay, 1_000_000)
        delay = f"INTERVAL '{delay}' MICROSECOND" if rest else f"INTERVAL '{seconds}' SECOND"
    return f"WATERMARK FOR {name} AS {name}{f' - {delay}' if watermark.delay else ''}"


def rename_column(table: Relation, column: Column, name: str, change: int) -> Relation:
    """Return the table with a column renamed from the change with this id on; the column in the lake keeps its name."""
    names = {column.name: name}
    after = replace(column, name=name, made_as=column.lake_name, former=(*column.former, (column.name, change)))
    columns = tuple(after if c.name == column.name else _following(c, names) for c in table.columns)
    watermark = table.watermark
    if watermark is not None:
        watermark = replace(watermark, column=names.get(watermark.column, watermark.column))
    versions = tuple(names.get(version, version) for version in table.conflict.versions)
    conflict = replace(table.conflict, versions=versions)
    key = tuple(names.get(part, part) for part in table.key)
    checks = (Check(check.name, renamed(check.condition, names)) for check in table.constraints.checks)
    renaming = replace(table, columns=columns, key=key, watermark=watermark, conflict=conflict)
    return with_constraints(renaming, replace(table.constraints, checks=tuple(checks)))


def with_constraints(table: Relation, constraints: Constraints) -> Relation:
    """Return the table with other constraints."""
    return replace(table, details=None if constraints == NO_CONSTRAINTS else constraints)


def _following(column: Column, names: Mapping[str, str]) -> Column:
    """Return another column, whose expression may read the renamed one."""
    return replace(column, generated=renamed(column.generated, names)) if column.generated is not None else column
