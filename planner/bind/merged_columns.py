"""JOIN … USING and NATURAL JOIN: a column that both sides have is merged into one, which comes first.

As on PostgreSQL's page on SELECT. DuckDB leaves such a column in the left side's place. sqlglot compares the right side
with the first table alone that has the column, which is wrong after a RIGHT or FULL JOIN, where it may be NULL.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import Catalog
from sparkwave.planner.bind.scopes import Scope, find_read
from sparkwave.planner.parse.identifiers import folded
from sparkwave.planner.parse.trees import cte_of, is_comma, is_cte, name_of, position_of
from sparkwave.planner.plan.nodes import conjuncts

# Returns the names of a source's columns; None where they are unknown.
ColumnsOf = Callable[[exp.Expr], list[str] | None]

_MERGES = "merges"


def merges(join: exp.Join) -> bool:
    return bool(join.args.get("using")) or is_natural(join)


def mark_merges(tree: exp.Expr) -> None:
    """Mark the joins that merge columns, for `compare_merged`.

    Raises Error 0A000 where sqlglot cannot tell the columns.
    """
    for join in tree.find_all(exp.Join):
        if not merges(join):
            continue
        where = _where_unknown(join)
        if where is not None:
            raise Error(
                f"USING or NATURAL {where} is not supported in a materialized view",
                errors.FEATURE_NOT_SUPPORTED,
                hint="Use ON.",
                position=position_of(join),
            )
        join.meta[_MERGES] = True


def _where_unknown(join: exp.Join) -> str | None:
    """Return the place of a join whose merged columns sqlglot cannot tell, in words; None for any other."""
    joins = join.parent.args["joins"] if isinstance(join.parent, exp.Select) else []
    if not joins:
        return "in parentheses without an alias"
    if any(map(is_comma, joins[: join.index])):
        return "behind a comma in FROM"
    if is_natural(join):
        return "of unknown columns"
    right = join.this
    is_in_parentheses = isinstance(right, exp.Subquery) and not right.alias and right.unnest().args.get("joins")
    return "with a join in parentheses without an alias" if is_in_parentheses else None


def merged_pairs(join: exp.Join) -> list[tuple[exp.Expr, exp.Column]]:
    """Return the columns of the left and the right side that a marked join merges, in a qualified tree.

    On the left it is COALESCE of several columns where sqlglot (30.30) finds it in several tables.
    """
    parts = conjuncts(join.args["on"]) if join.meta.get(_MERGES) and join.args.get("on") else ()
    return [(part.this, part.expression) for part in parts]


def compare_merged(tree: exp.Expr) -> None:
    """Let joins after a RIGHT or FULL JOIN compare with the columns merged so far, in a qualified tree.

    HAVING gets the merged columns, too, because sqlglot (30.30) leaves the columns there as they are.
    """
    for select in tree.find_all(exp.Select):
        merged: dict[str, list[str]] = {}
        keeps_right = False
        for join in select.args.get("joins") or ():
            for left, right in merged_pairs(join):
                tables = merged.setdefault(right.name, [])
                if tables and keeps_right:
                    left.replace(_merged(right.name, tables))
                elif not tables:
                    tables += [column.table for column in left.find_all(exp.Column)]
                tables.append(right.table)
            keeps_right = keeps_right or join.side.upper() in ("RIGHT", "FULL")
        having = select.args.get("having") if merged else None
        for column in list(having.find_all(exp.Column)) if having is not None else ():
            if not column.table and column.name in merged and column.find_ancestor(exp.Query) is select:
                column.replace(_merged(column.name, merged[column.name]))


def _merged(name: str, tables: list[str]) -> exp.Expr:
    return exp.func("coalesce", *(exp.column(name, table, quoted=True) for table in tables))


def columns_in(catalog: Catalog, scope: Scope) -> ColumnsOf:
    """Return the function that names the columns of a source in FROM; None where they are unknown."""
    entered: list[exp.Expr] = []  # to end where a query reads itself

    def columns_of(source: exp.Expr) -> list[str] | None:
        if isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier) and not is_cte(source):
            relation = find_read(catalog, scope, name_of(source))
            return [column.name for column in relation.visible] if relation is not None else None
        holder = cte_of(source) if isinstance(source, exp.Table) else source
        if not isinstance(holder, exp.Subquery | exp.CTE) or any(each is holder for each in entered):
            return None
        entered.append(holder)
        names = outputs_of(holder.this, columns_of, _name_of)
        entered.pop()
        given = holder.args["alias"].columns if isinstance(holder, exp.CTE) else []
        return [*map(folded, given), *names[len(given) :]] if names and all(names[len(given) :]) else None

    return columns_of


def outputs_of(query: exp.Expr, columns_of: ColumnsOf, name_of_output: Callable[[exp.Expr], str]) -> list[str] | None:
    """Return the names of a query's outputs; None where a `*` hides them."""
    while isinstance(query, exp.Subquery | exp.SetOperation):
        query = query.this
    found: list[str] = []
    for item in query.selects if isinstance(query, exp.Select) else ():
        if not item.is_star:
            found.append(name_of_output(item))
            continue
        source = query.args.get("from_")
        columns = columns_of_from(source.this, query.args.get("joins") or [], columns_of) if source else None
        if columns is None or item.args.get("except_"):
            return None
        table = folded(item.args["table"]) if isinstance(item, exp.Column) else ""
        found += [column.name for column in columns if table in ("", column.table)]
    return found


def _name_of(item: exp.Expr) -> str:
    """Return the name of an output that has one in the query's text, or none."""
    name = item.args["alias"] if isinstance(item, exp.Alias) else item.this
    return folded(name) if isinstance(name, exp.Identifier) else item.alias_or_name


def expand_stars(tree: exp.Expr, columns_of: ColumnsOf) -> exp.Expr:
    """Replace each `*` over merged columns by all columns in PostgreSQL's order, in the tree itself."""
    for select in list(tree.find_all(exp.Select)):
        stars = [item for item in select.expressions if isinstance(item, exp.Star) and not any(item.args.values())]
        joins = select.args.get("joins") or []
        if not stars or not any(map(merges, joins)):
            continue
        columns = columns_of_from(select.args["from_"].this, joins, columns_of)
        if columns is not None:
            listed = [part for item in select.expressions for part in (columns if item in stars else [item])]
            select.set("expressions", [part.copy() for part in listed])
    return tree


def check_left_out(tree: exp.Expr, columns_of: ColumnsOf) -> None:
    """Raise Error 42703 where a `*` leaves out a column that is not there."""
    for select in tree.find_all(exp.Select):
        for item in select.expressions:
            star = item.this if isinstance(item, exp.Column) else item
            left_out = star.args.get("except_") if isinstance(star, exp.Star) else None
            if not left_out or (source := select.args.get("from_")) is None:
                continue
            columns = columns_of_from(source.this, select.args.get("joins") or [], columns_of)
            names = {column.name for column in columns or ()}
            for name in left_out if columns is not None else ():
                is_written = position_of(name) is not None
                if is_written and folded(name if isinstance(name, exp.Identifier) else name.this) not in names:
                    message = f'column "{name.name}" does not exist'
                    raise Error(message, errors.UNDEFINED_COLUMN, position=position_of(name))


def columns_of_from(first: exp.Expr, joins: list[exp.Join], columns_of: ColumnsOf) -> list[exp.Column] | None:
    """Return all columns of a FROM; None where they are unknown, or a merged one cannot be named."""
    before: list[exp.Column] = []  # of the items before a comma
    own = _own(first, columns_of)
    for join in joins:
        right = _own(join.this, columns_of)
        if own is None or right is None:
            return None
        if is_comma(join):
            before, own = before + own, right
            continue
        own = _joined(own, right, _common(join, own, right))
    if own is None:
        return None
    found = before + own
    merged = [column.name for column in found if not column.table]
    every = [column.name for column in found]
    return found if all(every.count(name) == 1 for name in merged) else None


def expand_natural(tree: exp.Expr, columns_of: ColumnsOf) -> None:
    """Write natural joins with USING, or as cross joins without a common column, in the tree itself.

    Hidden columns are not common. Where the columns of a side are unknown, the join stays as it is.
    """
    for select in list(tree.find_all(exp.Select)):
        joins = select.args.get("joins") or []
        if any(map(is_natural, joins)):
            own = _own(select.args["from_"].this, columns_of)
            for join in joins:
                right = _own(join.this, columns_of)
                if is_comma(join) or own is None or right is None:
                    own = right if is_comma(join) else None
                    continue
                names = _common(join, own, right)
                if is_natural(join):
                    join.set("method", None)
                    _merge(join, names)
                own = _joined(own, right, names)


def _merge(join: exp.Join, names: list[str]) -> None:
    if names:
        join.set("using", [exp.to_identifier(name, quoted=True) for name in names])
    elif join.side:
        join.set("on", exp.true())
    else:
        join.set("kind", "CROSS")


def is_natural(join: exp.Join) -> bool:
    return join.method.upper() == "NATURAL"


def _common(join: exp.Join, own: list[exp.Column], right: list[exp.Column]) -> list[str]:
    """Return the names of the columns that a join merges."""
    if is_natural(join):
        theirs = {column.name for column in right}
        return [column.name for column in own if column.name in theirs]
    return [folded(name) for name in join.args.get("using") or ()]


def _joined(own: list[exp.Column], right: list[exp.Column], names: list[str]) -> list[exp.Column]:
    rest = [column for column in (*own, *right) if column.name not in names]
    return [exp.column(exp.to_identifier(name, quoted=True)) for name in names] + rest


def _own(source: exp.Expr, columns_of: ColumnsOf) -> list[exp.Column] | None:
    return columns_of_item(source, columns_of) if not source.args.get("joins") else None


def columns_of_item(source: exp.Expr, columns_of: ColumnsOf) -> list[exp.Column] | None:
    """Return the columns of one source in FROM, under the names that its alias gives; None where they are unknown."""
    names, alias = columns_of(source), source.args.get("alias")
    if names is None:
        return None
    given = [folded(name) for name in alias.columns] if isinstance(alias, exp.TableAlias) else []
    name = folded(alias.this) if isinstance(alias, exp.TableAlias) and alias.this is not None else source.name
    names = [*given, *names[len(given) :]]
    return [exp.column(exp.to_identifier(each, quoted=True), exp.to_identifier(name, quoted=True)) for each in names]
