"""The stream plan of a streaming job: its nodes with keys carried, its states, and its strategy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.column_names import check_distinct, escaped, readable, unescaped
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lazy import lazy
from sparkwave.catalog.model import Catalog, Column, Relation
from sparkwave.catalog.names import INTERNAL_PREFIX
from sparkwave.catalog.relation_details import Details
from sparkwave.catalog.types import Type
from sparkwave.planner import since
from sparkwave.planner.backfill.backfill_order import backfill_order
from sparkwave.planner.backfill.strategy import DEFAULTS, BackfillSettings, choose
from sparkwave.planner.bind.binder import (
    Scope,
    annotate_again,
    bind,
    check_functions,
    check_own_aggregates,
    check_streamed,
    scope_of,
)
from sparkwave.planner.bind.comparison_keys import compare_by_keys
from sparkwave.planner.bind.escapes import escape_outputs, escape_query, unescape_outputs
from sparkwave.planner.bind.nearest_floats import as_floats, long_constants, with_nearest_floats
from sparkwave.planner.bind.output_names import UNNAMED
from sparkwave.planner.bind.series_of_dates import with_series_of_times
from sparkwave.planner.bind.time_zones import with_zones
from sparkwave.planner.bind.untyped import type_literals
from sparkwave.planner.bind.wide_literals import ARITHMETIC, BITWISE, beside_constants, widen
from sparkwave.planner.build.view_query import build
from sparkwave.planner.build.window_close import on_event_time, on_window_close
from sparkwave.planner.definitions.sinks import planned_sink, target_of
from sparkwave.planner.definitions.view_options import read_options
from sparkwave.planner.functions.aggregates import is_aggregate
from sparkwave.planner.functions.duckdb_spelling import for_duckdb
from sparkwave.planner.functions.json_checks import check_key
from sparkwave.planner.functions.sums import with_numeric_spreads
from sparkwave.planner.functions.typed import type_of_part
from sparkwave.planner.functions.unstable import check_stable
from sparkwave.planner.parse.statement import parse_statement
from sparkwave.planner.parse.trees import position_of
from sparkwave.planner.plan.nodes import (
    Aggregate,
    ChangeLog,
    Filter,
    Join,
    Memo,
    Node,
    Order,
    OverWindow,
    Project,
    Scan,
    Stateful,
    TopN,
    keeps_state,
    reads_now,
    walk,
)
from sparkwave.planner.plan.rules import (
    apply_rules,
    free_name,
)
from sparkwave.planner.plan.streaming_query import Streaming, streaming_of
from sparkwave.planner.statements import CreateMaterializedView, CreateSink, CreateStreaming


@dataclass(frozen=True)
class State:
    """The state of an operator between epochs, with fields as columns.

    It has a row a group, the first rows of each partition, or all rows of a memo. `columns` maps each field to the
    stored column. With `in_view` the view's own table has the rows. A backfill takes the rows from `source`, if that is
    given, instead of computing them; it computes only the calls of an aggregate that `source` lacks, for groups that
    `source` has, too.
    """

    name: str
    node: Stateful
    in_view: bool
    columns: tuple[tuple[str, str], ...]
    source: Node | None = None

    @property
    def target(self) -> str | None:
        """The state whose internal table has the rows; None if the view's own table has them."""
        return None if self.in_view else self.name

    @property
    def computed(self) -> Aggregate | None:
        """The aggregate with only the calls that `source` lacks; None where it has all, and without a source."""
        if self.source is None or not isinstance(self.node, Aggregate):
            return None
        given = {field.name for field in self.source.fields}
        calls = tuple(call for call in self.node.calls if call.name not in given)
        return replace(self.node, calls=calls) if calls else None

    @property
    def key(self) -> tuple[str, ...]:
        """The fields by whose values changes remove rows: a group's or a partition's rows are written anew together."""
        return self.node.keys if isinstance(self.node, Aggregate) else self.node.partition

    @property
    def stored_key(self) -> tuple[str, ...]:
        """The stored columns of the key."""
        names = dict(self.columns)
        return tuple(names[name] for name in self.key)

    @property
    def operator(self) -> str:
        """The suffix of the internal table's name, as in RisingWave."""
        match self.node:
            case Aggregate():
                return "hashagg"
            case Memo(input=below):
                return "changelog" if isinstance(below, ChangeLog) else "temporaljoinmemo"
        return "grouptopn" if self.node.partition else "topn"


@dataclass(frozen=True, eq=False)
class StreamPlan:
    """All that the executor needs to fill and maintain one view.

    Compared by identity, because compiled programs are cached by plan.
    """

    root: Project
    width: int  # visible columns; the rest are hidden
    states: tuple[State, ...]
    strategy: str
    reason: str
    notices: tuple[str, ...] = ()  # for the user, from the choice of the strategy
    order: tuple[tuple[int, int], ...] = ()  # ids of upstreams: the first is read to its end before the second starts
    clustering: tuple[Order, ...] = ()  # the order in which rows are written together
    details: Details | None = None  # the properties of an index or a sink besides those of a relation
    planner: int = since.PLANNER

    @lazy
    def columns(self) -> tuple[Column, ...]:
        """The columns of the relation. The stored columns have the names of the fields."""
        columns: list[Column] = []
        for index, field in enumerate(self.root.fields):
            name = field.name
            if self.planner >= since.ESCAPED_NAMES:
                name = unescaped(name) if index < self.width else readable(name)
            if index >= self.width:
                name = free_name(name, {column.name for column in columns})
            made_as = None if name == field.name else field.name
            columns.append(Column(name, field.type, index >= self.width, field.name in self.present, made_as=made_as))
        return tuple(columns)

    @lazy
    def key_columns(self) -> tuple[str, ...]:
        """The key, by the names of the relation's columns."""
        names = {column.lake_name: column.name for column in self.columns}
        return tuple(names[name] for name in self.key)

    @lazy
    def nodes(self) -> tuple[Node, ...]:
        """Every operator once, inputs first; those of the sources of states, too."""
        tops = [self.root, *(top for state in self.states for top in (state.node, state.source) if top is not None)]
        return tuple(dict.fromkeys(node for top in tops for node in walk(top)))

    @lazy
    def scans(self) -> tuple[Scan, ...]:
        return tuple(node for node in self.nodes if isinstance(node, Scan))

    @lazy
    def key(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.root.key))

    @lazy
    def present(self) -> frozenset[str]:
        """The columns that are never NULL."""
        return self.root.present

    @lazy
    def looked_up(self) -> frozenset[str]:
        """Inputs whose changes alone change nothing: the right sides of temporal joins."""
        joins = (node for node in walk(self.root) if isinstance(node, Join) and node.is_temporal)
        return frozenset(scan.input for join in joins for scan in walk(join.right) if isinstance(scan, Scan))

    @lazy
    def remembers(self) -> str | None:
        """The operator, in words, whose rows depend on when changes came, so that they cannot be computed anew."""
        found = [node for node in walk(self.root) if isinstance(node, ChangeLog)]
        return "a temporal join" if self.looked_up else "a change log" if found else None

    @lazy
    def reads_now(self) -> bool:
        """Whether time alone changes the view."""
        return any(reads_now(expression) for node in walk(self.root) for expression in node.expressions)

    @lazy
    def needs_times(self) -> bool:
        """Whether the SQL of changes reads the times of the epoch."""
        return self.reads_now or any(isinstance(node, ChangeLog) for node in walk(self.root))

    def state_of(self, node: Stateful) -> State:
        return next(state for state in self.states if state.node == node)

    def states_in(self, target: str | None) -> list[State]:
        """Return the states whose rows a table has: the table of the state `target`, or the view's for None."""
        return [state for state in self.states if state.target == target]

    def internal_name(self, job_id: int, state_name: str) -> str:
        """Return the name of the internal table of a state, in RisingWave's form."""
        operator = next(state.operator for state in self.states if state.name == state_name)
        return f"{INTERNAL_PREFIX}{job_id}_{state_name}_{operator}"

    def types_in(self, target: str | None) -> dict[str, Type]:
        """Return the types of a table's columns: the table of the state `target`, or the view's for None."""
        nodes = {state.target: state.node for state in self.states}
        return {field.name: field.type for field in (self.root if target is None else nodes[target]).fields}


def plan_view(
    statement: CreateStreaming,
    catalog: Catalog,
    scope: Scope,
    settings: BackfillSettings = DEFAULTS,
    made: Relation | None = None,
) -> StreamPlan:
    """Plan the query of a CREATE statement. Pure. Raises Error with a position in the statement.

    `settings` are the session's. A stored definition is planned again without them, for the relation `made` by it,
    because the job has the settings' results.
    """
    try:
        with since.planned_by(made.planner if made is not None else since.PLANNER):
            return _planned(statement, catalog, scope, settings, made)
    except Error as error:
        error.message = readable(error.message)
        error.args = (error.message,)
        error.detail, error.hint = (text and readable(text) for text in (error.detail, error.hint))
        raise


def _planned(
    statement: CreateStreaming, catalog: Catalog, scope: Scope, settings: BackfillSettings, made: Relation | None
) -> StreamPlan:
    streaming = streaming_of(statement, catalog, scope, made)
    options = read_options(streaming.options)
    version = since.PLANNER if made is None else made.planner
    scope = replace(scope, planner=version)
    root = _built(streaming, catalog, scope, version >= since.ESCAPED_NAMES)
    root = on_event_time(root, partial(_rows_of, catalog))
    if streaming.emits_on_window_close:
        root = on_window_close(root, partial(_rows_of, catalog))
    width = len(root.items)
    if made is None:
        check_distinct(unescaped(item.name) for item in root.items)
    planned = apply_rules(root, streaming.is_stored, version)
    _check_time(planned)
    chosen = choose(planned, options.applied(settings), options.strategy)
    order = backfill_order(planned, options.order, catalog, scope)
    return StreamPlan(
        planned,
        width,
        _states(planned, streaming.is_stored),
        chosen.strategy,
        chosen.reason,
        chosen.notices + order.notices,
        order.pairs,
        _clustering(streaming, version),
        _details(statement, streaming, planned, catalog, scope),
        version,
    )


def _rows_of(catalog: Catalog, relation: Relation) -> Project | None:
    """Return the plan of a materialized view's query as it is written; None for any other relation."""
    statement = parse_statement(relation.definition) if relation.is_streaming else None
    if not isinstance(statement, CreateMaterializedView):
        return None
    with since.planned_by(relation.planner):
        # A definition that is not stored yet, by ALTER MATERIALIZED VIEW … AS, sees what there is now.
        scope = replace(scope_of(relation), planner=relation.planner, as_of=relation.definition_id or None)
        streaming = streaming_of(statement, catalog, scope, relation)
        return _built(streaming, catalog, scope, relation.planner >= since.ESCAPED_NAMES)


def _clustering(streaming: Streaming, version: int) -> tuple[Order, ...]:
    if version < since.ESCAPED_NAMES:
        return streaming.clustering
    return tuple(replace(order, name=escaped(order.name)) for order in streaming.clustering)


def _built(streaming: Streaming, catalog: Catalog, scope: Scope, escapes: bool) -> Project:
    """Return the plan of a query with the wanted outputs."""
    bound = bind(streaming.query, catalog, scope)
    check_streamed(bound)
    if scope.planner >= since.OWN_AGGREGATES:
        check_own_aggregates(bound)
    type_literals(bound, scope.planner >= since.TYPED_OUTPUTS, None if scope.is_stored else scope.order)
    kinds = (*ARITHMETIC, *BITWISE) if scope.planner >= since.WIDE_BITS else ARITHMETIC
    if scope.planner >= since.WIDE_LITERALS and widen(beside_constants(bound.tree, kinds)):
        annotate_again(bound)
    if scope.planner >= since.NEAREST_FLOATS and as_floats(long_constants(bound.tree)):
        annotate_again(bound)
    if scope.planner >= since.NEAREST_NUMERICS and with_nearest_floats(bound.tree, type_of_part):
        annotate_again(bound)
    if scope.planner >= since.TIMES_OF_SERIES and with_series_of_times(bound.tree, type_of_part):
        annotate_again(bound)
    has_abbreviations = scope.planner >= since.ZONE_ABBREVIATIONS
    if scope.planner >= since.ZONES_OF_DATES and with_zones(bound.tree, type_of_part, has_abbreviations):
        annotate_again(bound)
    has_spreads = with_numeric_spreads(bound.tree, type_of_part)
    if compare_by_keys(bound.tree, list) or has_spreads:
        annotate_again(bound)
    if not escapes:
        root = streaming.shape(build(bound))
        _check_names(root)
        return root
    root = streaming.shape(unescape_outputs(build(escape_query(bound))))
    _check_names(root)
    return escape_outputs(root)


def plan_definition(relation: Relation, catalog: Catalog) -> StreamPlan:
    """Plan a stored definition again, by the rules of the planner's version that planned it first."""
    statement = parse_statement(relation.definition)
    assert isinstance(statement, CreateStreaming)
    return plan_view(statement, catalog, scope_of(relation), made=relation)


def _details(
    statement: CreateStreaming, streaming: Streaming, planned: Project, catalog: Catalog, scope: Scope
) -> Details | None:
    if isinstance(statement, CreateSink):
        return planned_sink(statement, planned, target_of(statement, catalog, scope))
    if streaming.index is not None:
        types = {item.name: field.type for item, field in zip(planned.items, planned.fields, strict=True)}
        for key in streaming.index.keys:
            if (type_ := types.get(key.name)) is not None:
                check_key(type_)
    return streaming.index


def _check_time(root: Node) -> None:
    """Raise Error 0A000 where `now()` is used otherwise than in a filter's comparison."""
    for node in walk(root):
        for expression in node.expressions:
            check_stable(expression)
            if not isinstance(node, Aggregate | OverWindow):  # their calls are in DuckDB's terms already
                check_functions(expression)
                _check_scalar(expression, "in WHERE" if isinstance(node, Filter) else "here")
                _check_spelling(expression)
        reading = [expression for expression in node.expressions if reads_now(expression)]
        if reading and not isinstance(node, Filter):
            raise Error(
                "For streaming queries, `NOW()` function is only allowed in `WHERE`, `HAVING`, `ON` and `FROM`",
                errors.FEATURE_NOT_SUPPORTED,
                hint="Please use a temporal filter: compare a column with now() in WHERE.",
                position=position_of(reading[0]),
            )


def _check_spelling(expression: exp.Expr) -> None:
    """Raise the Error of spelling the expression for an engine, for a pattern or a cast that is not supported."""
    try:
        for_duckdb(expression, lenient=True)
    except Error as error:
        error.position = error.position or position_of(expression)
        raise


def _check_scalar(expression: exp.Expr, where: str) -> None:
    """Raise an error for a call that computes a whole row where a value is wanted, such as an aggregate in WHERE."""
    for part in expression.walk():
        if isinstance(part, exp.Window):
            what, sqlstate = "window functions are", errors.WINDOWING_ERROR
        elif is_aggregate(part):
            what, sqlstate = "aggregate functions are", errors.GROUPING_ERROR
        elif isinstance(part, exp.Query | exp.Explode | exp.ExplodingGenerateSeries):
            what, sqlstate, where = "a query or set-returning function is", errors.FEATURE_NOT_SUPPORTED, "here"
        else:
            continue
        raise Error(f"{what} not allowed {where}", sqlstate, position=position_of(part) or position_of(expression))


def _check_names(root: Project) -> None:
    for index, item in enumerate(root.items):
        if not item.name or item.name.startswith(UNNAMED):
            raise Error(
                f"An alias must be specified for the {_ordinal(index + 1)} expression (counting from 1) "
                "in result relation",
                errors.INVALID_COLUMN_DEFINITION,
            )


def _ordinal(number: int) -> str:
    suffix = {1: "st", 2: "nd", 3: "rd"}.get(number % 10 if number % 100 not in (11, 12, 13) else 0, "th")
    return f"{number}{suffix}"


def _states(root: Project, is_stored: bool) -> tuple[State, ...]:
    """Return the states of a plan. Only a plan whose rows are stored can have a state in its own table."""
    states: list[State] = []
    for node in dict.fromkeys(filter(keeps_state, walk(root))):
        in_view = is_stored and root.input is node and not (isinstance(node, TopN) and node.offset)
        names = root.passed_on if in_view else {f.name: f.name for f in node.fields}
        columns = tuple((f.name, names[f.name]) for f in node.fields)
        states.append(State(f"s{len(states)}", node, in_view, columns))
    return tuple(states)
