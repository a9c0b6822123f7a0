"""Replaces TUMBLE and HOP by equivalent queries, and other syntax in FROM that sqlglot's qualify cannot read.

RisingWave documentation, "Time windows": windows are aligned to the Unix epoch plus an offset; a row falls into one
tumbling window, and into size / slide hopping ones.
"""

from __future__ import annotations

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.build.functions_of_values import unnest_values
from sparkwave.planner.build.session_frames import expand_sessions
from sparkwave.planner.parse.identifiers import folded
from sparkwave.planner.parse.intervals import fixed_length_us
from sparkwave.planner.parse.trees import position_of

WINDOWS = ("TUMBLE", "HOP")
# Functions of `planner.functions`: the start of the window of a number of µs that contains a time, and a time plus a
# number of µs.
TUMBLE_START, SHIFTED = "tumble_start", "shift_time"
# Marks the part of the condition of a temporal join by event time that has the time.
EVENT_TIME = "event_time"


def expand_windows(tree: exp.Expr) -> exp.Expr:
    """Replace every TUMBLE and HOP by its equivalent query, in the tree itself."""
    for table in list(tree.find_all(exp.Table)):
        if is_window(table):
            windowed = _windowed(table, table.this)
            for argument in ("joins", "laterals"):
                windowed.set(argument, table.args.get(argument))
            table.replace(windowed)
    return tree


def check_sizes(tree: exp.Expr) -> None:
    """Raise Error 22023 for a HOP without a positive size, which definitions of earlier versions may have."""
    for table in filter(is_window, tree.find_all(exp.Table)):
        arguments = table.this.expressions
        if table.this.name.upper() == "HOP" and len(arguments) > 3 and _microseconds(arguments[3], "HOP") <= 0:
            message = "Invalid arguments: the size of HOP must be positive"
            raise Error(message, errors.INVALID_PARAMETER_VALUE, position=position_of(table))


def prepare_from(tree: exp.Query, copy: bool = True) -> exp.Query:
    """Return a query that sqlglot's qualify can read; without a `copy` the tree itself is changed.

    Every TUMBLE and HOP is a subquery, a function of one value the elements of an array, a function's table alias names
    its column, `FOR SYSTEM_TIME AS OF PROCTIME()` is a mark on its table, that of a column a marked condition of its
    join, and `current_date` is a cast of `now()`.
    """
    copied = tree.copy() if copy else tree
    for kind, type_ in ((exp.CurrentDate, "date"), (exp.Localtimestamp, "timestamp")):
        for part in list(copied.find_all(kind)):
            part.replace(exp.cast(exp.CurrentTimestamp(), type_))
    expand_sessions(expand_windows(copied))
    for table in copied.find_all(exp.Table):
        version = table.args.get("version")
        if version is not None:
            table.set("version", None)
            if isinstance(version.expression, exp.Column) and isinstance(table.parent, exp.Join):
                _put_event_time(table.parent, version.expression)
            else:
                _check_proctime(version, table)
                table.this.meta["temporal"] = True
    unnest_values(copied)
    for unnest in copied.find_all(exp.Unnest):
        _name_columns(unnest, unnest)
        if isinstance(unnest.parent, exp.Lateral):
            _name_columns(unnest.parent, unnest)
    _name_series(copied)
    return copied


def _name_series(tree: exp.Expr) -> None:
    """Let the alias of a series name its column, too, where columns are named by it: `g.g` and `g.*`.

    A series of columns without their tables is written LATERAL, because sqlglot finds their tables only then.
    """
    named = {folded(column.args["table"]) for column in tree.find_all(exp.Column) if column.table}
    for series in list(tree.find_all(exp.ExplodingGenerateSeries)):
        source = series.parent
        if not isinstance(source, exp.Table | exp.Lateral):
            continue
        alias = source.args.get("alias")
        is_joined = isinstance(source, exp.Table) and isinstance(source.parent, exp.Join)
        is_bare = is_joined and any(not column.table for column in series.find_all(exp.Column))
        is_lateral = is_bare or isinstance(source, exp.Lateral)
        if isinstance(alias, exp.TableAlias) and alias.this is not None and (is_lateral or folded(alias.this) in named):
            alias.set("columns", alias.columns or [alias.this.copy()])
        if is_bare:
            own = "generate_series"
            named_own = exp.TableAlias(this=exp.to_identifier(own), columns=[exp.to_identifier(own)])
            source.replace(exp.Lateral(this=series, alias=alias or named_own))


def is_window(source: exp.Expr) -> bool:
    """Return whether a source in FROM is TUMBLE or HOP."""
    function = source.this if isinstance(source, exp.Table) else None
    return isinstance(function, exp.Anonymous) and function.name.upper() in WINDOWS


def windowed_table(source: exp.Expr) -> exp.Table | None:
    """Return the relation in the first argument of a TUMBLE or HOP, as a table; None otherwise."""
    arguments = source.this.expressions if is_window(source) else []
    if not arguments or not isinstance(arguments[0], exp.Column):
        return None
    name, schema, database = (arguments[0].args.get(part) for part in ("this", "table", "db"))
    table = exp.Table(
        this=name.copy() if name is not None else None,
        db=schema.copy() if schema is not None else None,
        catalog=database.copy() if database is not None else None,
    )
    table.parent = source
    return table


def is_temporal(table: exp.Expr) -> bool:
    """Return whether a table is joined as of the time when a row arrives."""
    return isinstance(table, exp.Table) and bool(table.this.meta.get("temporal"))


def _put_event_time(join: exp.Join, time: exp.Column) -> None:
    """Add the time as of which rows are joined to the condition of a join, as a comparison that is marked.

    Raises Error 0A000 for USING, from which sqlglot makes the whole condition.
    """
    if join.args.get("using") or join.method:
        what = "a temporal join by event time with USING or NATURAL"
        position = position_of(join.this)
        raise Error(f"{what} is not supported", errors.FEATURE_NOT_SUPPORTED, hint="Use ON.", position=position)
    mark = exp.GTE(this=time, expression=time.copy())
    mark.meta[EVENT_TIME] = True
    on = join.args.get("on")
    join.set("on", exp.And(this=on, expression=mark) if on is not None else mark)


def _check_proctime(version: exp.Expr, table: exp.Table) -> None:
    if version.expression.name.upper() != "PROCTIME":
        raise Error(
            "a materialized view reads the present, not FOR SYSTEM_TIME AS OF a time",
            errors.FEATURE_NOT_SUPPORTED,
            hint="Only a temporal join has it: FOR SYSTEM_TIME AS OF PROCTIME(), or of a watermark column.",
            position=position_of(table),
        )


def _name_columns(source: exp.Expr, unnest: exp.Unnest) -> None:
    """Name the columns of `unnest(..) AS x` as PostgreSQL does: the value by the alias, the count `ordinality`."""
    alias = source.args.get("alias")
    if alias is None:
        source.set("alias", exp.TableAlias(this=exp.to_identifier("unnest")))
        alias = source.args["alias"]
    if not alias.columns:
        alias.set("columns", [alias.this.copy()])
    if unnest.args.get("offset") is True:
        unnest.set("offset", exp.to_identifier("ordinality"))


def _windowed(table: exp.Table, function: exp.Anonymous) -> exp.Subquery:
    name = function.name.upper()
    expected = 3 if name == "TUMBLE" else 4
    if not expected <= len(function.expressions) <= expected + 1:
        raise Error(
            f"{name} takes a table, a time column and {'a size' if name == 'TUMBLE' else 'a slide and a size'}",
            errors.UNDEFINED_FUNCTION,
            position=position_of(table),
        )
    source, time, *intervals = function.expressions
    lengths = [_microseconds(interval, name) for interval in intervals]
    offset = lengths.pop() if len(lengths) == expected - 1 else 0
    slide, size = lengths[0], lengths[-1]
    if slide <= 0 or size % slide:
        raise Error(
            f"Invalid arguments: the size of {name} must be a multiple of its slide",
            errors.INVALID_PARAMETER_VALUE,
            position=position_of(table),
        )
    alias = table.args.get("alias")
    own = exp.to_identifier("_windowed")
    start = _call(TUMBLE_START, _call(SHIFTED, time.copy(), -offset) if offset else time.copy(), slide)
    start = _call(SHIFTED, start, offset) if offset else start
    select = exp.select(exp.Column(this=exp.Star(), table=own.copy()))
    rows = _relation(source, own)
    if size > slide:
        steps = exp.column("step", table="_hop")
        back = exp.Mul(this=exp.cast(steps, "bigint"), expression=exp.Literal.number(-slide))
        start = exp.Anonymous(this=SHIFTED, expressions=[start, back])
    select = select.select(
        exp.alias_(start, "window_start"), exp.alias_(_call(SHIFTED, start.copy(), size), "window_end")
    )
    select = select.from_(rows)
    if size > slide:
        series = exp.ExplodingGenerateSeries(start=exp.Literal.number(0), end=exp.Literal.number(size // slide - 1))
        hops = exp.Table(
            this=series, alias=exp.TableAlias(this=exp.to_identifier("_hop"), columns=[exp.to_identifier("step")])
        )
        select = select.join(hops, join_type="cross")
    select = select.where(exp.Not(this=exp.Is(this=time.copy(), expression=exp.null())))
    return exp.Subquery(
        this=select, alias=alias.copy() if alias else exp.TableAlias(this=exp.to_identifier(_name(source)))
    )


def _call(name: str, time: exp.Expr, number: int) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=[time, exp.Literal.number(number)])


def _name(source: exp.Expr) -> str:
    return source.alias_or_name or "_windowed"


def _relation(source: exp.Expr, alias: exp.Identifier) -> exp.Expr:
    """Return the table or subquery in the first argument, under an alias of Sparkwave's own."""
    if isinstance(source, exp.Subquery):
        found: exp.Expr = source.copy()
    elif isinstance(source, exp.Column):
        found = exp.Table(this=source.this.copy(), db=source.args.get("table"), catalog=source.args.get("db"))
    else:
        raise Error("the first argument of a time window function is a table", errors.SYNTAX_ERROR)
    found.set("alias", exp.TableAlias(this=alias.copy()))
    return found


def _microseconds(interval: exp.Expr, function: str) -> int:
    """Return the length of a constant INTERVAL; months have none."""
    bare = interval.unnest()
    value = bare.this if isinstance(bare, exp.Interval | exp.Cast) else bare
    if isinstance(value, exp.Literal):
        unit = bare.args["unit"].name if bare.args.get("unit") is not None else ""
        found = fixed_length_us(f"{value.name} {unit}")
        if found is not None:
            return found
    raise Error(
        f"the windows of {function} need constant intervals of days or less",
        errors.INVALID_PARAMETER_VALUE,
        hint="A month has no fixed length: interval '30 days' has, which RisingWave takes for it.",
        position=position_of(interval),
    )
