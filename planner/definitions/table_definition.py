"""The CREATE TABLE of a table in its present form, and the effects of a changed column on other parts of the table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from sparkwave.catalog.model import NO_COLUMN, Catalog, Column, Relation, Watermark
from sparkwave.catalog.modifiers import modifier_of_length, with_modifier
from sparkwave.catalog.names import quote_if_needed
from sparkwave.catalog.relation_details import NO_ACTION, NO_CONSTRAINTS, Check, Constraints, ForeignKey, Unique
from sparkwave.catalog.types import Type
from sparkwave.planner.parse.generated import renamed
from sparkwave.planner.parse.source import begins_connector, connector_text, parse_connector
from sparkwave.planner.parse.table import clauses_text, retention_text
from sparkwave.planner.parse.tokens import TokenReader
from sparkwave.planner.statements import Connector, Name


def table_text(name: Name, table: Relation, catalog: Catalog, connector: Connector | None = None) -> str:
    """Return a normalised CREATE TABLE or SOURCE with a name, with the clauses of its connector.

    `catalog` has the parents of its foreign keys.
    """
    included = [column for _, column, _ in connector.includes] if connector is not None else []
    listed = [_column_text(column, table) for column in table.visible if column.name not in (*included, NO_COLUMN)]
    checks = table.constraints.checks
    listed += [f"CONSTRAINT {quote_if_needed(check.name)} CHECK ({check.condition})" for check in checks]
    listed += [
        f"CONSTRAINT {quote_if_needed(key.name)} {key_text(key, table, catalog)}" for key in table.constraints.keys
    ]
    if table.primary_key and not _is_inline_key(table):
        key_name = table.constraints.key_name
        named = f"CONSTRAINT {quote_if_needed(key_name)} " if key_name else ""
        listed.append(f"{named}PRIMARY KEY ({', '.join(map(quote_if_needed, table.primary_key))})")
    if table.watermark is not None:
        ttl = "" if table.append_only else " WITH TTL"
        listed += [_watermark_text(table.watermark, c) + ttl for c in table.visible if c.name == table.watermark.column]
    clauses = clauses_text(table.append_only and table.kind == "table", bool(table.primary_key), table.conflict)
    clauses += retention_text(table.streaming.retention_s)
    if connector is not None:
        clauses += f" {connector_text(connector)}"
    return f"CREATE {table.kind.upper()} {name.sql} ({', '.join(listed)}){clauses}"


def with_text(table: Relation, catalog: Catalog) -> Relation:
    """Return an altered table with its new definition, under the name in the old one; `catalog` as in `table_text`."""
    reader = TokenReader(table.definition)
    reader.expect("CREATE", table.kind.upper())
    return replace(table, definition=table_text(reader.name(), table, catalog, connector_of(table)))


def key_text(key: Unique | ForeignKey, table: Relation, catalog: Catalog) -> str:
    """Return a UNIQUE or FOREIGN KEY of a table as PostgreSQL prints it, without its name."""
    deferral = f" {key.deferral}" if key.deferral else ""
    if isinstance(key, Unique):
        included = f" INCLUDE {_listed(table, key.included)}" if key.included else ""
        nulls = "" if key.nulls_distinct else " NULLS NOT DISTINCT"
        return f"UNIQUE{nulls} {_listed(table, key.columns)}{included}{deferral}"
    parent = table if key.parent == table.id else catalog.by_id[key.parent]
    schema = None if parent.schema == table.schema else parent.schema
    text = f"FOREIGN KEY {_listed(table, key.columns)} REFERENCES {Name(None, schema, parent.name, 0).sql}"
    text += f" {_listed(parent, key.parent_columns)}{' MATCH FULL' if key.is_full else ''}"
    text += f" ON UPDATE {key.on_update}" if key.on_update != NO_ACTION else ""
    text += f" ON DELETE {key.on_delete}" if key.on_delete != NO_ACTION else ""
    text += f" {_listed(table, key.set_columns)}" if key.set_columns else ""
    return text + deferral


def with_parents(table: Relation, catalog: Catalog) -> str:
    """Return the definition of a table, in which each foreign key names its parent as the catalog has it.

    The key of each REFERENCES is that in its place among the table's foreign keys. A parent in the table's schema needs
    no schema.
    """
    definition, edits = table.definition, list[tuple[int, int, str]]()
    reader, keys = TokenReader(definition), iter(table.constraints.foreign_keys)
    while not reader.at_end:
        if reader.accept("REFERENCES"):
            start, written, parent = reader.offset, reader.name(), catalog.by_id[next(keys).parent]
            is_plain = written.schema is None and parent.schema == table.schema
            name = Name(None, None if is_plain else parent.schema, parent.name, 0)
            stop = start + len(definition[start : reader.offset].rstrip())
            edits.append((start, stop, name.sql))
        else:
            reader.skip()
    for start, stop, text in reversed(edits):
        definition = definition[:start] + text + definition[stop:]
    return definition


def _listed(table: Relation, lake_names: Iterable[str]) -> str:
    names = {column.lake_name: column.name for column in table.columns}
    return f"({', '.join(quote_if_needed(names[each]) for each in lake_names)})"


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
    parts = [quote_if_needed(column.name), _type_text(column.type, table.length_of(column))]
    if column.generated is not None:
        parts.append(f"GENERATED ALWAYS AS ({column.generated}) STORED")
    if column.default is not None:
        parts.append(f"DEFAULT {column.default}")
    if column.name in table.primary_key:
        parts += ["PRIMARY KEY"] if _is_inline_key(table) else []
    elif column.not_null:
        parts.append("NOT NULL")
    return " ".join(parts)


def _type_text(type_: Type, length: int | None) -> str:
    if length is None:
        return type_.defined
    if type_.is_text:
        return f"{type_.defined}({length})"
    return with_modifier(type_, modifier_of_length(length)).upper()


def _is_inline_key(table: Relation) -> bool:
    """Return whether the primary key is written beside its column."""
    return len(table.primary_key) == 1 and not table.constraints.key_name


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
    checks = (
        Check(check.name, renamed(check.condition, names), tuple(names.get(each, each) for each in check.columns))
        for check in table.constraints.checks
    )
    renaming = replace(table, columns=columns, key=key, watermark=watermark, conflict=conflict)
    return with_constraints(renaming, replace(table.constraints, checks=tuple(checks)))


def with_constraints(table: Relation, constraints: Constraints) -> Relation:
    """Return the table with other constraints."""
    return replace(table, details=None if constraints == NO_CONSTRAINTS else constraints)


def without_foreign_keys(table: Relation, are_dropped: Callable[[ForeignKey], bool]) -> Relation:
    """Return a table without some of its foreign keys."""
    kept = tuple(key for key in table.constraints.foreign_keys if not are_dropped(key))
    return with_constraints(table, replace(table.constraints, foreign_keys=kept))


def _following(column: Column, names: Mapping[str, str]) -> Column:
    """Return another column, whose expression may read the renamed one."""
    return replace(column, generated=renamed(column.generated, names)) if column.generated is not None else column
