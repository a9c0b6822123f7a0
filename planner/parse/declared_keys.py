"""Parsing of UNIQUE, FOREIGN KEY and REFERENCES, which are kept for clients to read and not enforced."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.relation_details import NO_ACTION
from sparkwave.planner.parse.constraints import constraint_name
from sparkwave.planner.parse.identifiers import folded
from sparkwave.planner.parse.trees import name_of, parse_tree, position_of
from sparkwave.planner.statements import DeclaredForeignKey, DeclaredKey, DeclaredUnique


def declared_key(constraint: exp.Expr, name: str, column: str | None = None) -> DeclaredKey | None:
    """Return a constraint that is not enforced, None for any other; `column` is the column that it stands behind.

    Raises Error 0A000 for MATCH PARTIAL.
    """
    match constraint:
        case exp.UniqueColumnConstraint(this=listed):
            parts = listed.expressions if listed is not None else []
            included = constraint.args["include"].args.get("include") if constraint.args.get("include") else None
            return DeclaredUnique(
                name,
                tuple(map(folded, parts)) if column is None else (column,),
                tuple(map(folded, included or ())),
                not constraint.args.get("nulls"),
                _deferral(constraint.args.get("options")),
                position_of(constraint),
            )
        case exp.ForeignKey(args={"reference": exp.Reference() as reference}):
            return _foreign_key(reference, name, tuple(map(folded, constraint.expressions)))
        case exp.Reference() if column is not None:
            return _foreign_key(constraint, name, (column,))
    return None


def column_keys(node: exp.ColumnDef, column: str) -> Iterator[DeclaredKey]:
    """Yield the constraints of a column that are not enforced."""
    for constraint in node.args.get("constraints") or []:
        key = declared_key(constraint.kind, constraint_name(constraint), column)
        if key is not None:
            yield key


def _foreign_key(reference: exp.Reference, name: str, columns: tuple[str, ...]) -> DeclaredForeignKey:
    listed, options = reference.this, [str(option) for option in reference.args.get("options") or ()]
    parent = listed.this if isinstance(listed, exp.Schema) else listed
    if "MATCH PARTIAL" in options:
        raise Error("MATCH PARTIAL not yet implemented", errors.FEATURE_NOT_SUPPORTED, position=position_of(parent))
    actions = {event: action for option in options for event, action in _action(option)}
    on_delete, *set_columns = actions.get("DELETE", (NO_ACTION,))
    return DeclaredForeignKey(
        name,
        columns,
        name_of(parent),
        tuple(map(folded, listed.expressions)) if isinstance(listed, exp.Schema) else (),
        "MATCH FULL" in options,
        actions.get("UPDATE", (NO_ACTION,))[0],
        on_delete,
        tuple(set_columns),
        _deferral(options),
        "NOT ENFORCED" in options,
    )


def _action(option: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the event of `ON event action (columns)`, with the action and the columns."""
    on, _, rest = option.partition(" ")
    if on == "ON":
        event, _, action = rest.partition(" ")
        action, _, listed = action.partition(" (")
        columns = parse_tree(f"SELECT {listed[:-1]}").expressions if listed else ()
        yield event.upper(), (action, *(folded(column.this) for column in columns))


def _deferral(options: Iterable[object] | None) -> str:
    words = [str(option) for option in options or ()]
    if "INITIALLY DEFERRED" in words:
        return "DEFERRABLE INITIALLY DEFERRED"
    return "DEFERRABLE" if "DEFERRABLE" in words else ""
