"""Where a statement's text has what an engine, or a later step, refuses, and PostgreSQL's words for that.

An engine runs another text than the client's, and so tells no position in it. What its message names is looked up in
the client's tree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.names import closest
from sparkwave.planner.batch.operand_types import mistyped, operator_of
from sparkwave.planner.batch.query import Environment
from sparkwave.planner.batch.unknown_calls import unknown_call
from sparkwave.planner.bind.column_hints import column_hint
from sparkwave.planner.bind.merged_columns import ColumnsOf, columns_in
from sparkwave.planner.bind.scopes import find_read
from sparkwave.planner.functions.undefined import is_call_of
from sparkwave.planner.parse.from_items import from_items
from sparkwave.planner.parse.identifiers import folded
from sparkwave.planner.parse.operator_places import TEXT, parenthesis_before
from sparkwave.planner.parse.set_returning import ROW_FUNCTIONS
from sparkwave.planner.parse.trees import alias_of, locate, name_of, position_of, source_names
from sparkwave.planner.parse.type_text import user_type_name
from sparkwave.planner.statements import Statement


@dataclass(frozen=True)
class _Place:
    """Where an error is: at a node or a position, with another message or SQLSTATE if they are given."""

    node: exp.Expr | None = None
    message: str | None = None
    sqlstate: str | None = None
    position: int | None = None


@dataclass(frozen=True)
class _Written:
    """A statement as the client wrote it: its trees, and its whole text if it is known."""

    trees: Sequence[exp.Expr]
    environment: Environment

    @property
    def text(self) -> str | None:
        return next((text for tree in self.trees if (text := tree.root().meta.get(TEXT)) is not None), None)

    def all(self, *kinds: type[exp.Expr]) -> list[exp.Expr]:
        """Return the nodes of some kinds, in the order of the text."""
        found = [node for tree in self.trees for node in tree.find_all(*kinds, bfs=False)]
        return sorted(found, key=lambda node: position_of(node) or 0)

    @property
    def columns_of(self) -> ColumnsOf:
        """The function that names the columns of a source in FROM."""
        return columns_in(self.environment.catalog, self.environment.scope)

    def place_of(self, name: str) -> int | None:
        """Return the position of the first use of a column or function with this name."""
        return next((place for tree in self.trees if (place := locate(tree, name))), None)

    def sources_with(self, column: exp.Expr, name: str) -> list[exp.Expr] | None:
        """Return the sources of a column's SELECT that have a column of this name; None where a source is unknown."""
        select = column.find_ancestor(exp.Select)
        items = from_items(select) if select is not None else []
        columns_of = self.columns_of
        known = [(item, columns_of(item)) for item in items]
        if any(columns is None for _, columns in known):
            return items if len(items) == 1 else None
        return [item for item, columns in known if columns is not None and name in columns]


def trees_of(statement: Statement) -> list[exp.Expr]:
    """Return the trees of a statement, as the client wrote it."""
    parts = (getattr(statement, name, None) for name in ("tree", "source", "query"))
    returning: tuple[exp.Expr, ...] = getattr(statement, "returning", ())
    return [*(part for part in parts if isinstance(part, exp.Expr)), *returning]


def located(error: Error, trees: Sequence[exp.Expr], environment: Environment) -> Error:
    """Return an error about a statement with its position, and in PostgreSQL's words where the trees tell them.

    `trees` are those of the statement as the client wrote it. Errors about rows stay as they are.
    """
    if error.position is not None or not trees or error.sqlstate.startswith("23"):
        return error
    written = _Written(trees, environment)
    for pattern, find in _RULES:
        found = re.fullmatch(pattern, error.message)
        place = find(written, found, error) if found is not None else None
        if place is not None:
            error.message, error.sqlstate = place.message or error.message, place.sqlstate or error.sqlstate
            error.args = (error.message,)
            error.position = place.position or (position_of(place.node) if place.node is not None else None)
            return error
    if error.sqlstate in (errors.UNDEFINED_FUNCTION, errors.AMBIGUOUS_FUNCTION, errors.DATATYPE_MISMATCH) or (
        error.sqlstate == errors.INTERNAL_ERROR and "template type" in error.message
    ):
        found_error = _of_types(error, written)
        if found_error.sqlstate == errors.INTERNAL_ERROR:
            return Error("ARRAY types of the elements cannot be matched", errors.DATATYPE_MISMATCH)
        return found_error
    return _of_name(error, written)


def _is_series(node: exp.Expr, name: str) -> bool:
    return isinstance(node, exp.ExplodingGenerateSeries) and name == "generate_series"


def _of_name(error: Error, written: _Written) -> Error:
    """Return the error with the position of the column or function that it names, if it names one."""
    name = re.search(r'(?:column|name|function) (?:reference )?"?(\w+)', error.message)
    if name is not None:
        error.position = written.place_of(name[1])
    return error


def _of_types(error: Error, written: _Written) -> Error:
    """Return the error for an operator, or for values that must have one type, or for a call."""
    for tree in written.trees:
        found = mistyped(tree, error, written.text, written.environment)
        if found is not None:
            return found
    name = re.match(r"function (\w+)", error.message)
    if name is None or error.sqlstate == errors.DATATYPE_MISMATCH:
        return _of_name(error, written) if operator_of(error) is None else error
    error = unknown_call(written.trees[0], name[1], error, written.environment)
    if error.position is None and operator_of(error) is not None:
        return mistyped(written.trees[0], error, written.text, written.environment) or error
    if error.position is None:
        calls = (node for node in written.all(exp.Func) if is_call_of(node, name[1]) or _is_series(node, name[1]))
        error.position = next(filter(None, map(position_of, calls)), None)
    return error


def _missing_column(written: _Written, found: re.Match[str], error: Error) -> _Place | None:
    columns = [node for node in written.all(exp.Column) if node.name.lower() == found["name"].lower()]
    if not columns:
        position = written.place_of(found["name"])
        return _Place(position=position) if position is not None else None
    for column in columns:
        counted = column.find_ancestor(exp.Limit, exp.Offset, exp.Query)
        if isinstance(counted, exp.Limit | exp.Offset) and written.sources_with(column, folded(column.this)):
            refused = f"argument of {counted.key.upper()} must not contain variables"
            return _Place(column, refused, errors.INVALID_COLUMN_REFERENCE)
    missing = (column for column in columns if _is_missing(column, written))
    column = next(missing, columns[0])
    table = column.args.get("table")
    message: str | None = None
    if isinstance(table, exp.Identifier):
        message = f"column {folded(table)}.{found['name']} does not exist"
    error.hint = column_hint(column, written.columns_of) or error.hint
    return _Place(column, message)


def _is_missing(column: exp.Expr, written: _Written) -> bool:
    """Return whether no SELECT around a column has a source with such a column."""
    select = column.find_ancestor(exp.Select)
    name = folded(column.this) if isinstance(column.this, exp.Identifier) else column.name
    if select is None:
        return False
    while select is not None:
        sources = written.sources_with(column if select is column.find_ancestor(exp.Select) else select, name)
        if sources is None or sources:
            return False
        column, select = select, select.find_ancestor(exp.Select)
    return True


def _missing_table(written: _Written, found: re.Match[str], error: Error) -> _Place | None:
    columns = [node for node in written.all(exp.Column) if node.text("table").lower() == found["name"].lower()]
    if not columns:
        return None
    for column in columns:  # DuckDB looks for its table further out, where the SELECT around has it without the column
        select = column.find_ancestor(exp.Select)
        near = [item for item in from_items(select) if alias_of(item) == found["name"]] if select is not None else []
        if near and written.sources_with(column, folded(column.this)) == []:
            error.hint = column_hint(column, written.columns_of)
            return _Place(column, f"column {found['name']}.{column.name} does not exist", errors.UNDEFINED_COLUMN)
    meant = closest(found["name"], [name for tree in written.trees for name in source_names(tree)])
    error.hint = f'Perhaps you meant to reference the table "{meant}".' if meant is not None else None
    return _Place(columns[0].args["table"])


def _ambiguous(written: _Written, found: re.Match[str], error: Error) -> _Place | None:
    columns = [node for node in written.all(exp.Column) if node.name.lower() == found["name"].lower()]
    column = next((node for node in columns if not node.args.get("table")), None)
    return _Place(column) if column is not None else None


def _ungrouped(written: _Written, found: re.Match[str], error: Error) -> _Place | None:
    name = found["name"]
    for call in _aggregates(written):
        if isinstance(call.find_ancestor(exp.Update, exp.Query), exp.Update):  # which may run as a query
            return _Place(call, "aggregate functions are not allowed in UPDATE")
    columns = [
        node
        for node in written.all(exp.Column)
        if node.name.lower() == name.lower() and node.find_ancestor(exp.AggFunc, exp.Group) is None
    ]
    stars = (star for star in written.all(exp.Star) if isinstance(star.parent, exp.Select | exp.Column))
    node = next(iter(columns), None) or next(stars, None)
    if node is None:
        return None
    table = node.args.get("table")
    if isinstance(table, exp.Identifier):
        qualifier = folded(table)
    else:
        sources = written.sources_with(node, name) or []
        qualifier = alias_of(sources[0]) if len(sources) == 1 else ""
    full = f"{qualifier}.{name}" if qualifier else name
    return _Place(node, error.message.replace(f'"{name}"', f'"{full}"', 1))


def _no_output(written: _Written, found: re.Match[str], error: Error) -> _Place | None:
    clause = found["clause"]
    for node in written.all(exp.Group if clause == "GROUP" else exp.Order):
        select = node.parent
        outputs = select.selects if isinstance(select, exp.Query) else []
        items = [item.this if isinstance(item, exp.Ordered) else item for item in node.expressions]
        for item in items:
            is_place = isinstance(item, exp.Literal) and item.name.isdigit() and not any(o.is_star for o in outputs)
            if is_place and not 1 <= int(item.name) <= len(outputs):
                return _Place(item, f"{clause} BY position {item.name} is not in select list")
    return None


def _aggregates(written: _Written) -> Iterator[exp.Expr]:
    return (node for node in written.all(exp.AggFunc) if not isinstance(node.parent, exp.Window))


def _nested(written: _Written, found: re.Match[str], error: Error) -> _Place | None:
    inner = (
        node for node in _aggregates(written) if isinstance(node.find_ancestor(exp.AggFunc, exp.Query), exp.AggFunc)
    )
    return _Place(next(inner, None))


def _misplaced_aggregate(written: _Written, found: re.Match[str], error: Error) -> _Place | None:
    kinds: dict[str, type[exp.Expr]] = {"WHERE": exp.Where, "GROUP BY": exp.Group, "UPDATE": exp.Update}
    for node in _aggregates(written):
        around = node.find_ancestor(exp.Where, exp.Group, exp.Update, exp.Join, exp.Query)
        if isinstance(around, kinds[found["clause"]]):
            return _Place(node)
        if isinstance(around, exp.Join):
            return _Place(node, "aggregate functions are not allowed in JOIN conditions")
    return None


def _misplaced_window(written: _Written, found: re.Match[str], error: Error) -> _Place | None:
    kinds = {"WHERE": exp.Where, "HAVING": exp.Having, "VALUES": exp.Values}
    kind = kinds[found["clause"]]
    inner = (node for node in written.all(exp.Window) if isinstance(node.find_ancestor(kind, exp.Select), kind))
    return _Place(next(inner, None))


def _without_window(written: _Written, found: re.Match[str], error: Error) -> _Place | None:
    calls = (
        node
        for node in written.all(exp.Func)
        if isinstance(node, exp.Func) and (node.sql_name().lower() == found["name"] or is_call_of(node, found["name"]))
    )
    return _Place(next((node for node in calls if not isinstance(node.parent, exp.Window)), None))


def _missing_window(written: _Written, found: re.Match[str], error: Error) -> _Place | None:
    names = (
        node.args["alias"] for node in written.all(exp.Window) if isinstance(node.args.get("alias"), exp.Identifier)
    )
    name = next((name for name in names if folded(name) == found["name"]), None)
    return _Place(name, sqlstate=errors.UNDEFINED_OBJECT) if name is not None else None


def _missing_type(written: _Written, found: re.Match[str], error: Error) -> _Place | None:
    for kind in written.all(exp.DataType):
        name = user_type_name(kind)
        if name is not None and name.name == found["name"]:
            return _Place(kind)
    return None


def _unequal_widths(written: _Written, found: re.Match[str], error: Error) -> _Place | None:
    for node in written.all(exp.SetOperation):
        assert isinstance(node, exp.SetOperation)
        left, right = node.left.selects, node.right.selects
        if not any(item.is_star for item in (*left, *right)) and len(left) != len(right):
            message = f"each {node.key.upper()} query must have the same number of columns"
            return _Place(right[0], message)
    return None


def _wide_subquery(written: _Written, found: re.Match[str], error: Error) -> _Place | None:
    for node in written.all(exp.Subquery):
        is_value = not isinstance(node.parent, exp.From | exp.Join | exp.SetOperation | exp.In | exp.Insert)
        if is_value and isinstance(node.this, exp.Select) and len(node.this.selects) > 1:
            return _Place(position=parenthesis_before(node, written.text))
    return None


# What PostgreSQL calls the parts of a query that no set-returning function may be in.
_NO_ROWS: dict[type[exp.Expr], str] = {
    exp.Where: "WHERE", exp.Having: "HAVING", exp.Filter: "FILTER", exp.Join: "JOIN conditions", exp.Limit: "LIMIT",
    exp.Offset: "OFFSET", exp.Case: "CASE", exp.Coalesce: "COALESCE", exp.Update: "UPDATE", exp.Values: "VALUES",
}  # fmt: skip


def _misplaced_rows(written: _Written, found: re.Match[str], error: Error) -> _Place | None:
    for node in written.all(*ROW_FUNCTIONS):
        around = node.find_ancestor(*_NO_ROWS, exp.AggFunc, exp.Query)
        around = around.parent if isinstance(around, exp.Where) and isinstance(around.parent, exp.Filter) else around
        if isinstance(around, exp.AggFunc):
            return _Place(node, "aggregate function calls cannot contain set-returning function calls")
        if around is not None and type(around) in _NO_ROWS:
            return _Place(node, f"set-returning functions are not allowed in {_NO_ROWS[type(around)]}")
    return None


def _target(written: _Written) -> tuple[list[exp.Expr], int] | None:
    """Return the columns that an INSERT names, and the number of those that it fills; None for other statements."""
    root = written.trees[0].root()
    if not isinstance(root, exp.Insert):
        return None
    named = root.this.expressions if isinstance(root.this, exp.Schema) else []
    table = root.this.this if isinstance(root.this, exp.Schema) else root.this
    relation = find_read(written.environment.catalog, written.environment.scope, name_of(table))
    return named, len(named) or (len(relation.visible) if relation is not None else 0)


def _first_row(written: _Written) -> list[exp.Expr]:
    source = written.trees[0]
    if isinstance(source, exp.Values):
        return list(source.expressions[0].expressions)
    items = source.selects if isinstance(source, exp.Query) else []
    return [] if any(item.is_star for item in items) else list(items)


def _more_values(written: _Written, found: re.Match[str], error: Error) -> _Place | None:
    target, values = _target(written), _first_row(written)
    return _Place(values[target[1]]) if target is not None and len(values) > target[1] else None


def _more_columns(written: _Written, found: re.Match[str], error: Error) -> _Place | None:
    target, values = _target(written), _first_row(written)
    return _Place(target[0][len(values)]) if target is not None and 0 < len(values) < len(target[0]) else None


def _named_target(written: _Written, found: re.Match[str], error: Error) -> _Place | None:
    """Return the last of the named columns of an INSERT, or of an UPDATE's, with a name."""
    root = written.trees[0].root()
    named = [item.this for item in root.expressions if isinstance(item, exp.EQ)] if isinstance(root, exp.Update) else []
    if isinstance(root, exp.Insert) and isinstance(root.this, exp.Schema):
        named = root.this.expressions
    same = [node for node in named if node.name.lower() == found["name"].lower()]
    return _Place(same[-1]) if same else None


def _uneven_rows(written: _Written, found: re.Match[str], error: Error) -> _Place | None:
    for values in written.all(exp.Values):
        rows = [row.expressions for row in values.expressions]
        uneven = next((row for row in rows if len(row) != len(rows[0])), None)
        if uneven:
            return _Place(uneven[0])
    return None


# The messages about what a statement names, each with the function that finds it in the statement.
_RULES: tuple[tuple[str, Callable[[_Written, re.Match[str], Error], _Place | None]], ...] = (
    (r'column "(?P<name>.*)" of relation ".*" does not exist', _named_target),
    (r'column "(?P<name>.*)" specified more than once', _named_target),
    (r'column "(?P<name>.*)" does not exist', _missing_column),
    (r'missing FROM-clause entry for table "(?P<name>.*)"', _missing_table),
    (r'column reference "(?P<name>.*)" is ambiguous', _ambiguous),
    (r'column "(?P<name>.*)" must appear in the GROUP BY clause or be used in an aggregate function', _ungrouped),
    (r"a position in (?P<clause>GROUP|ORDER) BY is not in the select list", _no_output),
    (r"aggregate function calls cannot be nested", _nested),
    (r"aggregate functions are not allowed in (?P<clause>WHERE|GROUP BY|UPDATE)", _misplaced_aggregate),
    (r"window functions are not allowed in (?P<clause>WHERE|HAVING|VALUES)", _misplaced_window),
    (r"set-returning functions are not allowed here", _misplaced_rows),
    (r"window function (?P<name>\w+) requires an OVER clause", _without_window),
    (r'window "(?P<name>.*)" does not exist', _missing_window),
    (r'type "(?P<name>.*)" does not exist', _missing_type),
    (r"each query of a set operation must have the same number of columns", _unequal_widths),
    (r"subquery must return only one column", _wide_subquery),
    (r"INSERT has more expressions than target columns", _more_values),
    (r"INSERT has more target columns than expressions", _more_columns),
    (r"VALUES lists must all be the same length", _uneven_rows),
)
