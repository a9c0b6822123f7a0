"""Stored definitions are text: the names in them follow renamed and moved relations.

In a definition a name without a schema is looked up in the schema of the defined relation. As in RisingWave (src/meta/
src/controller/rename.rs) a renamed relation gets its former name as an alias where it has none, so that the columns of
the query and its readers keep their names.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp
from sqlglot.tokens import Token

from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import Catalog, Function, Relation, UserType, names_others
from sparkwave.catalog.names import quote_if_needed
from sparkwave.planner.batch.pg_names import system_schema
from sparkwave.planner.batch.query import Environment
from sparkwave.planner.bind.binder import find
from sparkwave.planner.bind.scopes import Scope, find_read, scope_of
from sparkwave.planner.bind.sql_functions import body_of, calls, scope_within
from sparkwave.planner.bind.user_types import named_types
from sparkwave.planner.build.time_windows import windowed_table
from sparkwave.planner.definitions.sinks import written_columns
from sparkwave.planner.definitions.table_definition import with_parents
from sparkwave.planner.definitions.view_options import MAX_COST, amount
from sparkwave.planner.parse.generated import expression_of, has_text
from sparkwave.planner.parse.identifiers import folded
from sparkwave.planner.parse.normal_text import normalised
from sparkwave.planner.parse.statement import parse_statement
from sparkwave.planner.parse.tokens import TokenReader, tokenize
from sparkwave.planner.parse.trees import is_cte, name_of
from sparkwave.planner.statements import CreateIndex, CreateSink, CreateStreaming, CreateSubscription, CreateView, Name

Place = tuple[str, str]  # schema and name of a relation
Target = Callable[[Name], Place | None]  # the place that a name's relation will have; None to leave the name alone


@dataclass(frozen=True)
class _Reference:
    """A name in FROM or in an option, and its start. `names_source` tells whether columns are qualified by it."""

    name: Name
    start: int
    names_source: bool
    in_function: bool = False


def settled(definition: str, schema: str, environment: Environment) -> str:
    """Return the definition of a view for a schema, on one line.

    Names found elsewhere on the search path get their schema.
    """

    def target(name: Name) -> Place | None:
        relation = find_read(environment.catalog, environment.scope, name)
        if relation is not None:
            return relation.schema, relation.name
        if name.schema is not None:
            return None
        system = system_schema(name.name, environment.scope.path, environment.is_system)
        return (system, name.name) if system in environment.scope.path else None

    return normalised(_with_schemas(_rewritten(definition, schema, target), schema, environment))


def _with_schemas(definition: str, schema: str, environment: Environment) -> str:
    """Return the definition with schemas for the SQL functions and users' types of other schemas."""
    catalog, scope = environment.catalog, environment.scope
    if not catalog.functions and not catalog.types:
        return definition
    statement = parse_statement(definition)
    query = _query(statement) if isinstance(statement, CreateView | CreateStreaming) else None
    if query is None:
        return definition
    found: list[tuple[exp.Expr, str]] = [
        (node, function.schema)
        for node, function in (calls(query, catalog, scope) if catalog.functions else ())
        if isinstance(node, exp.Anonymous)
    ]
    found += [
        (kind.args["kind"], made.schema)
        for kind, made in named_types(query, catalog, scope)
        if isinstance(kind.args["kind"], exp.Identifier)
    ]
    starts = {node.meta["start"]: name for node, name in found if name != schema}
    for start, name in sorted(starts.items(), reverse=True):
        definition = f"{definition[:start]}{quote_if_needed(name)}.{definition[start:]}"
    return definition


def callers(catalog: Catalog, functions: Iterable[Function]) -> list[str]:
    """Return the callers of these functions, without the functions themselves: `view public.v`, `function public.f`."""
    return [described(owner) for owner in calling(catalog, functions)]


def calling(catalog: Catalog, functions: Iterable[Function]) -> list[Relation | Function]:
    """Return the relations and other functions that call these functions."""
    ids = {function.id for function in functions}
    found = {
        owner.id: owner
        for owner, tree, scope in _stored(catalog)
        if owner.id not in ids and ids & {f.id for _, f in calls(tree, catalog, scope)}
    }
    return list(found.values())


def calling_others(catalog: Catalog, after: Catalog) -> list[str]:
    """Return the relations and functions whose calls mean other functions in a catalog with another one of a name."""
    stored = _stored(catalog)
    found = [
        described(owner)
        for owner, tree, scope in stored
        if _callees(tree, catalog, scope) != _callees(tree, after, scope)
    ]
    return list(dict.fromkeys(found))


def calls_others(relation: Relation, catalog: Catalog, after: Catalog) -> bool:
    """Return whether a relation's calls mean other functions in a later catalog."""
    scope = scope_of(relation)
    trees = _expressions(relation, catalog)
    return any(_callees(tree, catalog, scope) != _callees(tree, after, scope) for tree in trees)


def _callees(tree: exp.Expr, catalog: Catalog, scope: Scope) -> list[int]:
    """Return the ids of the functions that a query calls; none where it is not known of a call which one is meant."""
    try:
        return [function.id for _, function in calls(tree, catalog, scope)]
    except Error:
        return []


def users_of_type(catalog: Catalog, made: UserType, apart: Collection[int] = ()) -> list[str]:
    """Return the users of a user's type, without types with the ids `apart`: `table public.t`, `function public.f`."""
    found = [described(r) for r in catalog.relations if any(column.type.holds(made.id) for column in r.columns)]
    for function in catalog.functions:
        types = [function.result, *(type_ for _, type_ in function.arguments)]
        found += [described(function)] if any(type_.holds(made.id) for type_ in types) else []
    found += [described(t) for t in catalog.types if t.id not in (made.id, *apart) and t.type.holds(made.id)]
    for owner, tree, scope in _stored(catalog):
        found += [described(owner)] if any(named == made for _, named in named_types(tree, catalog, scope)) else []
    return list(dict.fromkeys(found))


def namers_of_type(catalog: Catalog, made: UserType, label: str | None = None) -> list[str]:
    """Return what names a user's type in a query or an expression, and a label of it if one is given."""
    found = []
    for owner, tree, scope in _stored(catalog):
        has_label = label is None or has_text(tree, label)
        if has_label and any(named == made for _, named in named_types(tree, catalog, scope)):
            found.append(described(owner))
    return list(dict.fromkeys(found))


def described(owner: Relation | Function | UserType) -> str:
    """Return the kind of an object and its name: `view public.v`."""
    return f"{owner.securable.kind} {owner.qualified_name}"


def _stored(catalog: Catalog) -> Iterator[tuple[Relation | Function, exp.Expr, Scope]]:
    """Yield the stored expressions of relations and functions, each with its owner and the scope of its names."""
    for relation in catalog.relations:
        for tree in _expressions(relation, catalog):
            yield relation, tree, scope_of(relation)
    for function in catalog.functions:
        if not function.is_python:
            yield function, body_of(function, catalog), scope_within(function)


def _expressions(relation: Relation, catalog: Catalog) -> Iterator[exp.Expr]:
    """Yield the stored expressions of a relation, each as a query."""
    statement = parse_statement(relation.definition) if relation.is_view or relation.is_streaming else None
    query = _query(statement) if isinstance(statement, CreateView | CreateStreaming) else None
    if query is not None:
        yield query
    for part in statement.expressions if isinstance(statement, CreateIndex) else ():
        yield _over(catalog.by_id[relation.upstreams[0]], part)
    for text in relation.expressions:
        yield _over(relation, expression_of(text))


def _over(relation: Relation, expression: exp.Expr) -> exp.Select:
    """Return a query of an expression, or of a part of an index, over the rows of a relation."""
    value = expression.this if isinstance(expression, exp.Ordered) else expression
    return exp.select(value.copy()).from_(exp.table_(relation.name, relation.schema, quoted=True))


def placed(catalog: Catalog, places: Mapping[int, Place]) -> list[Relation]:
    """Return the relations that change when those with these ids move: themselves and those that name them."""
    found = {}
    for relation in catalog.relations:
        parents = [key.parent for key in relation.constraints.foreign_keys]
        if any(id_ in places for id_ in (relation.id, *relation.upstreams, relation.target, *parents)):
            found[relation.id] = _placed(relation, catalog, places)
    after = replace(catalog, relations=tuple(found.get(relation.id, relation) for relation in catalog.relations))
    return [replace(r, definition=with_parents(r, after)) if r.is_table else r for r in found.values()]


def in_database(catalog: Catalog, database: str, name: str) -> list[Relation]:
    """Return the relations of a database that gets another name, and those that name it, with their definitions."""
    inside = {relation.id for relation in catalog.relations if relation.database == database}
    found = []
    for relation in catalog.relations:
        is_inside = relation.id in inside
        if is_inside or not inside.isdisjoint(relation.upstreams):
            definition = _with_database(relation, database, name, is_inside)
            found.append(replace(relation, database=name if is_inside else relation.database, definition=definition))
    return found


def _with_database(relation: Relation, old: str, database: str, is_inside: bool) -> str:
    """Return a definition in which names with a database have its new name, its own name too if it `is_inside`."""
    definition, edits = relation.definition, list[tuple[int, int, str]]()
    tokens = tokenize(definition)
    if names_others(relation):
        statement = parse_statement(definition)
        assert isinstance(statement, CreateView | CreateStreaming | CreateSubscription)
        for reference in _references(statement):
            if reference.name.database == old:
                renamed = replace(reference.name, database=database)
                edits.append((reference.start, _end_of_name(tokens, reference.start), renamed.sql))
        columns = (_query(statement) or exp.select()).find_all(exp.Column)
        edits += [_bare(column) for column in columns if column.args.get("catalog")]
    edited = _edited(definition, edits)
    return _with_head(edited, relation.schema, relation.name, database) if is_inside else edited


def _placed(relation: Relation, catalog: Catalog, places: Mapping[int, Place]) -> Relation:
    schema, name = places.get(relation.id, (relation.schema, relation.name))

    def target(mentioned: Name) -> Place | None:
        meant = find_read(catalog, scope_of(relation), mentioned)
        return None if meant is None else places.get(meant.id, (meant.schema, meant.name))

    definition = relation.definition
    if names_others(relation):
        definition = _rewritten(definition, schema, target)
    elif relation.upstreams:
        definition = _read_from(definition, schema, target)
    return replace(relation, schema=schema, name=name, definition=_with_head(definition, schema, name))


def shown(relation: Relation, catalog: Catalog) -> str | None:
    """Return the definition as it would have to be written now, None if it is as stored.

    In the stored definition, a table is as it was then; if it was altered since, a query takes its place here.
    """
    statement = parse_statement(relation.definition)
    assert isinstance(statement, CreateView | CreateStreaming | CreateSubscription)
    tokens = tokenize(relation.definition)
    edits: list[tuple[int, int, str]] = []
    query = _query(statement) or exp.select()
    columns = [column for column in query.find_all(exp.Column) if column.args.get("db") is not None]
    if isinstance(statement, CreateIndex):
        edits += _renamed_columns(statement, relation, catalog, tokens)
    if isinstance(statement, CreateSink) and relation.target is not None:
        written = written_columns(relation, catalog.by_id[relation.target])
        for (name, position), column in zip(statement.target_columns, written, strict=False):
            if name != column.name:
                edits.append((position - 1, _end_of_name(tokens, position - 1), quote_if_needed(column.name)))
    for reference in _sources(statement):
        table = find_read(catalog, scope_of(relation), reference.name)
        stop = _end_of_name(tokens, reference.start)
        # A place that allows only the name of a table keeps the name.
        is_name = _is_table_command(tokens, reference.start) or _end_of_source(tokens, stop, False) != stop
        if table is None or table is catalog.by_id[table.id] or reference.in_function or is_name:
            continue
        names = {c.lake_name: c.former[-1][0] if c.is_former else c.name for c in catalog.by_id[table.id].columns}
        shown = [column.name for column in catalog.by_id[table.id].visible]
        if shown == [c.name for c in table.visible] == [names[c.lake_name] for c in table.visible]:
            continue  # only types differ
        listed = ", ".join(_as(names[column.lake_name], column.name) for column in table.visible)
        alias = f" AS {quote_if_needed(reference.name.name)}" if reference.names_source else ""
        edits.append((reference.start, stop, f"(SELECT {listed} FROM {reference.name.sql}){alias}"))
        edits += [_bare(column) for column in columns if _is_of(column, reference.name)]
    return _edited(relation.definition, edits) if edits else None


def _renamed_columns(
    statement: CreateIndex, index: Relation, catalog: Catalog, tokens: list[Token]
) -> Iterator[tuple[int, int, str]]:
    """Yield edits for the names of columns in CREATE INDEX that the table has renamed since."""
    table = find(catalog, scope_of(index), statement.table)
    if table is None or table is catalog.by_id[table.id]:
        return
    present = {column.lake_name: column.name for column in catalog.by_id[table.id].columns}
    names = {column.name: present[column.lake_name] for column in table.columns}
    written = [(name, position - 1) for name, position in statement.include]
    for node in statement.expressions:
        written += [(folded(column.this), column.this.meta["start"]) for column in node.find_all(exp.Column)]
    for name, start in written:
        if names.get(name, name) != name:
            yield start, _end_of_name(tokens, start), quote_if_needed(names[name])


def _as(name: str, alias: str) -> str:
    return quote_if_needed(name) + ("" if name == alias else f" AS {quote_if_needed(alias)}")


def _with_head(definition: str, schema: str, name: str, database: str | None = None) -> str:
    """Return the definition with another name.

    The name has a schema if it had one; the database is replaced if `database` is given.
    """
    reader = TokenReader(definition)
    reader.expect("CREATE")
    reader.accept("MATERIALIZED")
    reader.accept("UNIQUE")
    reader.identifier()  # TABLE, VIEW, INDEX or SINK
    reader.accept("IF", "NOT", "EXISTS")
    start = reader.offset
    written = reader.name()
    stop = _end_of_name(tokenize(definition), start)
    schema_ = schema if written.schema else None
    database_ = database if written.database and database else written.database
    return definition[:start] + Name(database_, schema_, name, 0).sql + definition[stop:]


def _rewritten(definition: str, schema: str, target: Target) -> str:
    """Return the definition of a view for a schema, with every name as it has to be there."""
    statement = parse_statement(definition)
    assert isinstance(statement, CreateView | CreateStreaming | CreateSubscription)
    tokens = tokenize(definition)
    edits: list[tuple[int, int, str]] = []
    query = _query(statement) or exp.select()
    ctes = {folded(cte.args["alias"].this) for cte in query.find_all(exp.CTE)}
    columns = [column for column in query.find_all(exp.Column) if column.args.get("db") is not None]
    for reference in _references(statement):
        name = reference.name
        place = target(name)
        if place is None or place == (name.schema or schema, name.name):
            continue
        stop = _end_of_name(tokens, reference.start)
        # A CTE with the same name would hide the relation.
        schema_ = place[0] if name.schema or place[0] != schema or place[1] in ctes else None
        edits.append((reference.start, stop, Name(name.database, schema_, place[1], 0).sql))
        if place[1] != name.name and reference.names_source:
            stop = _end_of_source(tokens, stop, reference.in_function)
            if not _is_table_command(tokens, reference.start):
                edits.append((stop, stop, f" AS {quote_if_needed(name.name)}"))
        edits += [_bare(column) for column in columns if _is_of(column, name)]
    return _edited(definition, edits)


def _edited(definition: str, edits: list[tuple[int, int, str]]) -> str:
    for start, stop, text in sorted(set(edits), reverse=True):
        definition = definition[:start] + text + definition[stop:]
    return definition


def _references(statement: CreateView | CreateStreaming | CreateSubscription) -> Iterator[_Reference]:
    for name in _bare_names(statement):
        yield _Reference(name, name.position - 1, names_source=False)
    yield from _sources(statement)


def _sources(statement: CreateView | CreateStreaming | CreateSubscription) -> Iterator[_Reference]:
    """Yield the references in FROM of a query."""
    query = _query(statement)
    for table in query.find_all(exp.Table) if query is not None else ():
        source = windowed_table(table) if isinstance(table.this, exp.Anonymous) else table
        if source is not None and isinstance(source.this, exp.Identifier) and not is_cte(source):
            name = name_of(source)
            yield _Reference(name, name.position - 1, not table.alias, in_function=source is not table)


def _query(statement: CreateView | CreateStreaming | CreateSubscription) -> exp.Expr | None:
    """Return the query in a definition, if there is one."""
    is_named = isinstance(statement, CreateSink) and statement.source is not None
    return None if is_named or isinstance(statement, CreateIndex | CreateSubscription) else statement.query


def _bare_names(statement: CreateView | CreateStreaming | CreateSubscription) -> Iterator[Name]:
    """Yield the names outside of a query."""
    if isinstance(statement, CreateSubscription):
        yield statement.upstream
    if isinstance(statement, CreateStreaming):
        yield from (name for option in statement.options for edge in option.edges for name in edge)
    if isinstance(statement, CreateIndex):
        yield statement.table
    if isinstance(statement, CreateSink):
        yield from (name for name in (statement.source, statement.target) if name is not None)


def _is_of(column: exp.Column, name: Name) -> bool:
    """Return whether a column is qualified by the schema and name of a relation."""
    written = folded(column.args["db"]), folded(column.args["table"])
    return written == (name.schema or written[0], name.name)


def _bare(column: exp.Column) -> tuple[int, int, str]:
    """Return the edit that reduces a column's qualifiers to the relation's name."""
    first = column.args.get("catalog") or column.args["db"]
    return first.meta["start"], column.args["table"].meta["start"], ""


def _index_at(tokens: list[Token], start: int) -> int:
    return next(index for index, token in enumerate(tokens) if token.start == start)


def _read_from(definition: str, schema: str, target: Target) -> str:
    """Return the definition of a table that is read `FROM source TABLE …`."""
    reader = TokenReader(definition)
    while not reader.accept("FROM"):
        reader.accept(reader.peek())
    start = reader.offset
    name = reader.name()
    place = target(name)
    if place is None or place == (name.schema or schema, name.name):
        return definition
    written = Name(name.database, place[0] if name.schema or place[0] != schema else None, place[1], 0).sql
    return definition[:start] + written + definition[_end_of_name(tokenize(definition), start) :]


def _end_of_name(tokens: list[Token], start: int) -> int:
    """Return the end of the possibly qualified name that starts at `start`."""
    index = _index_at(tokens, start)
    while index + 2 < len(tokens) and tokens[index + 1].text == ".":
        index += 2
    return tokens[index].end + 1


def _end_of_source(tokens: list[Token], stop: int, in_function: bool) -> int:
    """Return the place for an alias: after the name, a function's call, or FOR SYSTEM_TIME AS OF PROCTIME()."""
    following = [token for token in tokens if token.start >= stop]
    words = " ".join(token.text.upper() for token in following[:3])
    if not in_function and not words.startswith("FOR SYSTEM_TIME"):
        return stop
    depth = 1 if in_function else 0
    for token in following:
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if token.text == ")" and depth == 0:
            return token.end + 1
    raise AssertionError("the parser has read its end")


def _is_table_command(tokens: list[Token], start: int) -> bool:
    """Return whether a reference is that of `TABLE name`, which allows no alias and whose columns need none."""
    index = _index_at(tokens, start)
    return index > 0 and tokens[index - 1].text.upper() == "TABLE"


def max_cost_of(definition: str) -> float | None:
    """Return the `backfill_max_cost` of a streaming job's definition, if it has one."""
    options = getattr(parse_statement(definition), "options", ())
    return next((amount(option) for option in options if option.name == MAX_COST), None)
