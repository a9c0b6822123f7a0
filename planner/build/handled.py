"""Lists the syntax that each clause of a view may have; other syntax that sqlglot reads is refused, never dropped.

sqlglot reads the syntax of thirty engines into arguments of its nodes. A builder takes the arguments that it knows and
does not see others. So every argument that a view may have has to be listed here, and every clause too. An expression
without an entry is passed on whole, as text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.functions.operators import CALLS, as_call
from sparkwave.planner.parse.lambdas import ElementLambda
from sparkwave.planner.parse.row_values import OF_TABLE
from sparkwave.planner.parse.trees import position_of


@dataclass(frozen=True)
class Syntax:
    """The arguments of a node.

    `handled` are built or checked, `harmless` change no rows, each with the reason, and `refused` have names for an
    error.
    """

    handled: frozenset[str]
    harmless: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, handled: str, harmless: Mapping[str, str] | None = None, /, **refused: str) -> Syntax:
        return cls(frozenset(handled.split()), harmless or {}, refused)


_of = Syntax.of


_MODIFIERS = {
    "match": "MATCH_RECOGNIZE", "laterals": "LATERAL VIEW", "connect": "CONNECT BY", "pivots": "PIVOT",
    "prewhere": "PREWHERE", "qualify": "QUALIFY", "distribute": "DISTRIBUTE BY", "sort": "SORT BY",
    "cluster": "CLUSTER BY", "sample": "TABLESAMPLE", "settings": "SETTINGS", "format": "FORMAT",
    "options": "OPTION", "for_": "FOR XML or JSON",
}  # fmt: skip
_NO_SELECT = {name: name.upper() for name in ("where", "group", "having", "windows")}
_PARSER_FLAG = "sqlglot's note on the dialect that was read"

_SET_OPERATION = _of(
    "this expression with_ distinct order limit offset locks by_name on kind", **_MODIFIERS, **_NO_SELECT,
    side="an outer set operation", joins="a join with a set operation",
)  # fmt: skip
_AGGREGATE = _of("this")
_WINDOW_ONLY = _of("", expressions="an argument of a window function without any")

SYNTAX: dict[type[exp.Expr], Syntax] = {
    # Queries.
    exp.Select: _of(
        "with_ expressions distinct from_ joins where group having windows order limit offset locks", **_MODIFIERS,
        kind="SELECT AS", hint="a hint", into="SELECT INTO", operation_modifiers="a modifier of SELECT",
        exclude="EXCLUDE behind a select list",
    ),
    exp.Union: _SET_OPERATION,
    exp.Intersect: _SET_OPERATION,
    exp.Except: _SET_OPERATION,
    exp.Subquery: _of("this alias with_ joins order limit offset locks", **_MODIFIERS, **_NO_SELECT),
    exp.With: _of("expressions recursive", search="SEARCH", cycle="CYCLE", udfs="a function in WITH"),
    exp.CTE: _of(
        "this alias", {"materialized": "how it is computed, not what it is"},
        scalar="a scalar in WITH", key_expressions="USING KEY",
    ),
    # FROM.
    exp.From: _of("this"),
    exp.Table: _of(
        "this alias db catalog joins version", {"only": "no table has children"},
        laterals="LATERAL VIEW", pivots="PIVOT", hints="a hint", system_time="FOR SYSTEM_TIME", format="FORMAT",
        pattern="PATTERN", ordinality="WITH ORDINALITY of anything but unnest", when="WHEN", partition="PARTITION",
        changes="CHANGES", rows_from="ROWS FROM", sample="TABLESAMPLE", indexed="INDEXED BY",
    ),
    exp.TableAlias: _of("this columns"),
    exp.Version: _of("this kind expression"),
    exp.Lateral: _of(
        "this alias", view="LATERAL VIEW", outer="OUTER", cross_apply="APPLY", ordinality="WITH ORDINALITY of LATERAL",
    ),
    exp.Unnest: _of("expressions alias offset", explode_array="EXPLODE"),
    exp.Values: _of(
        "expressions alias", order="VALUES with ORDER BY", limit="VALUES with LIMIT", offset="VALUES with OFFSET",
        pivots="PIVOT",
    ),
    exp.Join: _of(
        "this on side kind using method", global_="GLOBAL JOIN", hint="a hint", match_condition="MATCH_CONDITION",
        nearest="NEAREST", directed="DIRECTED JOIN", expressions="a list of joins", pivots="PIVOT",
    ),
    # Clauses.
    exp.Where: _of("this"),
    exp.Group: _of(
        "expressions all", grouping_sets="WITH GROUPING SETS", cube="WITH CUBE", rollup="WITH ROLLUP",
        totals="WITH TOTALS",
    ),
    exp.Cube: _of("expressions"),
    exp.Rollup: _of("expressions"),
    exp.GroupingSets: _of("expressions"),
    exp.Having: _of("this"),
    exp.Order: _of("this expressions", siblings="ORDER SIBLINGS BY"),
    exp.Ordered: _of("this desc nulls_first", with_fill="WITH FILL"),
    exp.Limit: _of(
        "expression", this="LIMIT in this place", offset="LIMIT with an offset", expressions="LIMIT BY",
        limit_options="LIMIT with PERCENT or WITH TIES",
    ),
    exp.Offset: _of("expression", this="OFFSET in this place", expressions="OFFSET BY"),
    exp.Fetch: _of("direction count limit_options"),
    exp.LimitOptions: _of("rows with_ties", percent="FETCH with PERCENT"),
    exp.Distinct: _of("expressions on"),
    # Windows and other nodes around a call.
    exp.Window: _of("this partition_by order spec alias over", first="FIRST or LAST in OVER"),
    exp.WindowSpec: _of("kind start start_side end end_side exclude"),
    exp.Filter: _of("this expression"),
    exp.WithinGroup: _of("this expression"),
    exp.IgnoreNulls: _of("this"),
    exp.RespectNulls: _of("this"),
    # Names and values.
    exp.Alias: _of("this alias"),
    exp.Identifier: _of("this quoted", global_="a global name", temporary="a temporary name"),
    exp.Column: _of("this table db catalog", join_mark="(+)", shadow="a shadowed column"),
    exp.Star: _of("except_ replace rename ilike"),
    exp.Dot: _of("this expression"),
    exp.Paren: _of("this"),
    exp.Tuple: _of("expressions"),
    exp.Var: _of("this"),
    exp.Slice: _of("this expression", step="the step of a slice"),
    exp.DataType: _of("this expressions nested values kind", nullable="Nullable", collate="COLLATE"),
    exp.ObjectIdentifier: _of("this"),
    exp.PseudoType: _of("this"),
    exp.DataTypeParam: _of("this", expression="the unit of a type's length"),
    exp.ColumnDef: _of(
        "this kind", constraints="a constraint", exists="IF NOT EXISTS", position="the place of a column",
        default="a default", output="OUTPUT",
    ),
    ElementLambda: _of("this expressions"),
    exp.Case: _of("this ifs default"),
    exp.If: _of("this true false"),
    exp.Cast: _of("this to safe", format="CAST with FORMAT", action="CAST with an action", default="CAST with DEFAULT"),
    exp.TryCast: _of(
        "this to safe", {"requires_string": _PARSER_FLAG}, format="TRY_CAST with FORMAT",
        action="TRY_CAST with an action", default="TRY_CAST with DEFAULT",
        null_on_text_overflow="TRY_CAST with NULL ON OVERFLOW", probe_date_format="TRY_CAST with a format",
    ),
    exp.In: _of("this expressions query", unnest="IN UNNEST", field="IN with a field", is_global="GLOBAL IN"),
    exp.Between: _of("this low high symmetric"),
    exp.Like: _of("this expression negate"),
    exp.ILike: _of("this expression negate"),
    exp.Escape: _of("this expression"),
    exp.Trim: _of("this expression position", collation="COLLATE"),
    exp.Interval: _of("this unit", {"fraction_in_string": _PARSER_FLAG}),
    exp.CurrentTimestamp: _of("", this="a precision of current_timestamp", sysdate="SYSDATE"),
    exp.Localtimestamp: _of("", this="a precision of localtimestamp"),
    exp.CurrentDate: _of("", this="an argument of current_date"),
    # Aggregates and window functions.
    **dict.fromkeys(
        (exp.Sum, exp.Avg, exp.LogicalAnd, exp.LogicalOr, exp.AnyValue, exp.Stddev, exp.StddevPop, exp.StddevSamp,
         exp.Variance, exp.VariancePop, exp.FirstValue, exp.LastValue, exp.Ntile), _AGGREGATE,
    ),
    exp.Min: _of("this", expressions="a second argument of min", count="a second argument of min"),
    exp.Max: _of("this", expressions="a second argument of max", count="a second argument of max"),
    exp.Count: _of("this expressions", {"big_int": "count is always a bigint"}),
    exp.GroupConcat: _of("this separator", on_overflow="ON OVERFLOW"),
    exp.ArrayAgg: _of("this", {"nulls_excluded": _PARSER_FLAG}),
    exp.ApproxDistinct: _of("this", {"accuracy": "the count is exact"}),
    exp.Mode: _of("this", deterministic="DETERMINISTIC"),
    exp.PercentileCont: _of("this", expression="a second argument of percentile_cont"),
    exp.PercentileDisc: _of("this", expression="a second argument of percentile_disc"),
    exp.RegrCount: _of("this expression"),
    exp.JSONBObjectAgg: _of("this expression"),
    exp.JSONObjectAgg: _of(
        "expressions", null_handling="NULL ON NULL", unique_keys="UNIQUE KEYS", return_type="RETURNING",
        encoding="ENCODING",
    ),
    exp.JSONArrayAgg: _of(
        "this", order="ORDER BY in json_arrayagg", null_handling="NULL ON NULL", return_type="RETURNING",
        strict="STRICT",
    ),
    exp.Lag: _of("this offset default"),
    exp.Lead: _of("this offset default"),
    exp.NthValue: _of("this offset", from_first="FROM FIRST or LAST"),
    exp.RowNumber: _of("", this="an argument of row_number"),
    **dict.fromkeys((exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist), _WINDOW_ONLY),
    exp.Grouping: _of("expressions"),
    # Nodes that are read as calls of Sparkwave's functions have the calls' arguments.
    **{kind: Syntax(frozenset(arguments)) for kind, (_, arguments) in CALLS.items()},
}  # fmt: skip

# Expressions are spelled as a whole, except those that no engine here reads as PostgreSQL does.
_WHOLE = (exp.Condition, exp.Predicate, exp.AtTimeZone, exp.JSONPath, exp.JSONPathPart)
_REFUSED: dict[type[exp.Expr], str] = {
    exp.Lock: "FOR UPDATE",
    exp.Kwarg: "an argument by name",
    exp.PropertyEQ: "an argument by name",
    exp.Variadic: "VARIADIC",
    exp.Operator: "OPERATOR()",
    exp.HavingMax: "HAVING in an aggregate",
    exp.CurrentDatabase: "current_database()",
    exp.Pivot: "PIVOT",
    exp.TableSample: "TABLESAMPLE",
}
_ORDERED_SET = (exp.Mode, exp.PercentileCont, exp.PercentileDisc)
# Arguments that have a meaning when they are False.
_SAID_BY_FALSE = frozenset({"cross_apply", "indexed"})


@dataclass(frozen=True)
class Unhandled:
    """Syntax that is not handled, and its position.

    The position is that of the first place with an identifier, or around the last place.
    """

    what: str
    places: tuple[exp.Expr, ...]

    @property
    def position(self) -> int | None:
        around: exp.Expr | None = self.places[-1]
        position = next((found for place in self.places if (found := position_of(place)) is not None), None)
        while position is None and around is not None:
            position, around = position_of(around), around.parent
        return position


def check_windows(tree: exp.Expr) -> None:
    """Raise Error 42809 for OVER after a function of one row."""
    for window in tree.find_all(exp.Window):
        call = as_call(window.this)
        if call is not None:
            name, _ = call
            message = f"OVER specified, but {name} is not a window function nor an aggregate function"
            raise Error(message, errors.WRONG_OBJECT_TYPE, position=position_of(window.this))


def check_handled(query: exp.Expr) -> None:
    """Raise Error 0A000 for syntax of a view's query that its plan would lack."""
    check_windows(query)
    found = unhandled(query, SYNTAX, _REFUSED)
    if found is not None:
        message = f"{found.what} is not supported in a materialized view"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=found.position)


def unhandled(
    tree: exp.Expr, known: Mapping[type[exp.Expr], Syntax], refused: Mapping[type[exp.Expr], str]
) -> Unhandled | None:
    """Return the first part of a tree that is refused, or neither known nor an expression."""
    for node in tree.walk():
        kind = type(node)
        syntax = known.get(kind)
        if (misplaced := _misplaced(node)) is not None:
            return Unhandled(misplaced, (node,))
        if kind is exp.PropertyEQ and node.parent is not None and OF_TABLE in node.parent.meta:
            continue
        if kind in refused or (syntax is None and not isinstance(node, _WHOLE)):
            return Unhandled(refused.get(kind, kind.__name__.upper()), (node,))
        if syntax is None:
            continue
        for name, value in node.args.items():
            if name in syntax.handled or name in syntax.harmless or not _is_set(name, value):
                continue
            what = syntax.refused.get(name, f"{name.upper()} of {node.key.upper()}")
            return Unhandled(what, (*_nodes(value), node))
    return None


def _misplaced(node: exp.Expr) -> str | None:
    """Return a description of a node in a place where only other nodes may be, or None."""
    match node:
        case exp.Escape(this=matched) if not isinstance(matched, exp.Like | exp.ILike):
            return "ESCAPE of anything but LIKE"
        case exp.WithinGroup(this=exp.AggFunc() as call) if not isinstance(call, _ORDERED_SET):
            return f"WITHIN GROUP of {call.sql_name().lower()}"
    return None


def _is_set(name: str, value: object) -> bool:
    return value is not None and value != [] and (value is not False or name in _SAID_BY_FALSE)


def _nodes(value: object) -> list[exp.Expr]:
    return [part for part in (value if isinstance(value, list) else [value]) if isinstance(part, exp.Expr)]
