"""sqlglot trees: parsing text with positions in the whole statement, and reading names and positions from trees."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar

import sqlglot
from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import ParseError, SqlglotError, TokenError
from sqlglot.generators.postgres import PostgresGenerator
from sqlglot.tokens import Token, TokenType

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.types import JSON, Type, parse_type, unresolved
from sparkwave.planner.parse.calls import at_map
from sparkwave.planner.parse.change_log import hide_times, query_of_changes
from sparkwave.planner.parse.constant_runs import constants_at, runs
from sparkwave.planner.parse.distinct_order import with_orders
from sparkwave.planner.parse.grouped_rows import with_grouped_rows
from sparkwave.planner.parse.hypothetical import with_hypothetical_rows, without_distinct
from sparkwave.planner.parse.identifiers import folded
from sparkwave.planner.parse.like_escapes import with_other_escapes
from sparkwave.planner.parse.limits import check_size
from sparkwave.planner.parse.literals import with_literals
from sparkwave.planner.parse.named_arguments import with_places
from sparkwave.planner.parse.null_fractions import with_null_fractions
from sparkwave.planner.parse.operator_places import TEXT
from sparkwave.planner.parse.parameter_runs import PARAMETER_MARK, marked_parameter
from sparkwave.planner.parse.record_functions import with_records
from sparkwave.planner.parse.row_comparisons import with_row_comparisons
from sparkwave.planner.parse.row_values import with_rows
from sparkwave.planner.parse.set_returning import with_unnests
from sparkwave.planner.parse.strict import StrictTokenizer
from sparkwave.planner.parse.text_arguments import with_text_arguments
from sparkwave.planner.parse.time_types import TimeParser, with_modified, without_modifier
from sparkwave.planner.parse.tokens import check_escapes, syntax_error, tokenize
from sparkwave.planner.parse.type_text import user_type, user_type_name
from sparkwave.planner.statements import Name

# sqlglot warns on its own logger before it falls back to exp.Command, which becomes an error here.
logging.getLogger("sqlglot").setLevel(logging.ERROR)


# Types that sqlglot knows and that are not here. Their nodes have a position.
NOT_HERE = frozenset({
    exp.DType.BIT, exp.DType.INET, exp.DType.TIMETZ, exp.DType.XML, exp.DType.HSTORE, exp.DType.MONEY, exp.DType.POINT,
    exp.DType.INT4RANGE, exp.DType.INT8RANGE, exp.DType.NUMRANGE, exp.DType.DATERANGE, exp.DType.TSRANGE,
    exp.DType.TSTZRANGE,
})  # fmt: skip
MOST_SUBSCRIPTS = 32  # of one value; PostgreSQL's arrays have six dimensions at most

# Arrays of PostgreSQL's object identifiers, which clients' catalog queries cast to.
_ARRAYS = {"OID": "oid[]", "REGTYPE": "integer[]"}
_UNITS = ("MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "YEAR")


def _typed_literal(parser: Any, value: exp.Expr, to: exp.DataType) -> exp.Expr:
    """Let `date '2026-01-01'::text` cast a date to text; sqlglot reads the operators after the literal first."""
    literal = value
    while not isinstance(literal, exp.Literal):
        literal = literal.this
    typed = with_modified(exp.Cast(this=literal.copy(), to=to))
    return typed if literal is value else literal.replace(typed).root()


def _with_brackets(tokens: list[Token]) -> list[Token]:
    """Return the tokens with `[]` for the ARRAY of `text ARRAY`, SQL's form of `text[]`."""
    found: list[Token] = []
    for place, token in enumerate(tokens):
        if token.token_type == TokenType.ARRAY and _ends_type(tokens, place):
            where: Any = {"line": token.line, "col": token.col, "start": token.start, "end": token.end}
            found += [Token(TokenType.L_BRACKET, "[", **where), Token(TokenType.R_BRACKET, "]", **where)]
        else:
            found.append(token)
    return found


def _ends_type(tokens: list[Token], place: int) -> bool:
    """Return whether ARRAY ends a type: it begins no value or `ARRAY<int>`, is no name, and not of `IS JSON ARRAY`."""
    if place + 1 < len(tokens) and tokens[place + 1].token_type in _BEHIND_ARRAY:
        return False
    if not place or tokens[place - 1].token_type in _BEFORE_ARRAY:
        return False
    return tokens[place - 1].text.upper() != "JSON" or tokens[place - 2].token_type not in (TokenType.IS, TokenType.NOT)


_BEHIND_ARRAY = (TokenType.L_BRACKET, TokenType.L_PAREN, TokenType.LT)
_BEFORE_ARRAY = (TokenType.ALIAS, TokenType.DOT, TokenType.COMMA, TokenType.SELECT, TokenType.L_PAREN)


class Sparkwave(Postgres):
    """sqlglot's Postgres, except that calls of Sparkwave's functions keep their name and arguments as written.

    So do subscripts: sqlglot would count them from 0, and back from 1, where it takes them for integers at the time.
    """

    INDEX_OFFSET = 0

    def tokenize(self, sql: str, dialect: Any = None) -> list[Token]:
        """Return the tokens of a text without comments, which sqlglot would print with the types and names beside."""
        tokens = super().tokenize(sql, dialect)
        for token in tokens if "--" in sql or "/*" in sql else ():
            token.comments = []
        return _with_brackets(tokens) if "array" in sql.lower() else tokens

    class Tokenizer(StrictTokenizer):
        pass

    class Generator(PostgresGenerator):
        """Prints what PostgreSQL has not, so that expressions with equal texts are equal."""

        def ignorenulls_sql(self, expression: exp.IgnoreNulls) -> str:
            return f"{self.sql(expression.this)} IGNORE NULLS"

        def respectnulls_sql(self, expression: exp.RespectNulls) -> str:
            return f"{self.sql(expression.this)} RESPECT NULLS"

    class Parser(TimeParser):
        TYPE_LITERAL_PARSERS: ClassVar = dict.fromkeys(exp.DType, _typed_literal)

        # RisingWave's `w int AS v + 1`.
        WRAPPED_TRANSFORM_COLUMN_CONSTRAINT: ClassVar = False

        # An arrow among arguments is jsonb's.
        LAMBDAS: ClassVar = {token: parse for token, parse in TimeParser.LAMBDAS.items() if token != TokenType.ARROW}

        def _parse_alias(self, this: Any, *args: Any, **options: Any) -> Any:
            """Parse an alias: any word may be a name after AS, even SELECT, which sqlglot does not accept there."""
            following = self._next if self._match(TokenType.ALIAS, advance=False) else None
            if this is None or following is None or following.token_type != TokenType.SELECT:
                return super()._parse_alias(this, *args, **options)
            self._advance(2)
            return exp.alias_(this, "select", quoted=True, copy=False)

        def _parse_cte(self) -> Any:
            """Parse a CTE, also RisingWave's `c AS changelog FROM t`."""
            index, alias = self._index, self._parse_table_alias(self.ID_VAR_TOKENS)
            is_log = alias is not None and alias.this is not None and self._match(TokenType.ALIAS)
            if not is_log or not self._match_text_seq("CHANGELOG") or not self._match(TokenType.FROM):
                self._retreat(index)
                return super()._parse_cte()
            table: Any = self._parse_table_parts()
            if self._match(TokenType.ALIAS):
                table.set("alias", self._parse_table_alias())
            return self.expression(exp.CTE(this=query_of_changes(table), alias=alias))

        def _parse_with(self, skip_with_token: bool = False) -> Any:
            """Parse WITH; the parentheses around a part that reads itself are left out."""
            with_ = super()._parse_with(skip_with_token)
            for cte in with_.expressions if with_ is not None and with_.args.get("recursive") else ():
                if _reads_itself(cte):
                    cte.set("this", _without_parentheses(cte.this))
            return with_

        def _parse_types(self, *args: Any, **options: Any) -> Any:
            """Parse a type: sqlglot knows oid and regtype, but no arrays of them. ARRAY[ and MAP { may begin a value.

            Reading each ARRAY as a type first would double the time of each level of nesting.
            """
            array = (TokenType.ARRAY, TokenType.L_BRACKET)
            if options.get("check_func") and (self._match_pair(*array, advance=False) or at_map(self)):
                return None
            first = self._curr
            found = super()._parse_types(*args, **options)
            brackets = (TokenType.L_BRACKET, TokenType.R_BRACKET)
            is_array = isinstance(found, exp.ObjectIdentifier) and found.name in _ARRAYS
            if is_array and self._match_pair(*brackets):
                return exp.DataType(this=exp.DType.USERDEFINED, kind=_ARRAYS[found.name])
            if isinstance(found, exp.DataType) and found.this == exp.DType.ENUM and found.expressions:
                raise Error('type "enum" does not exist', errors.UNDEFINED_OBJECT)  # a user's enum has a name
            if isinstance(found, exp.DataType) and found.this == exp.DType.BIT and self._match_text_seq("VARYING"):
                raise Error('type "bit varying" does not exist', errors.UNDEFINED_OBJECT, position=first.start + 1)
            if isinstance(found, exp.DataType) and _element(found)[0].args.get("this") in NOT_HERE:
                found.meta["start"] = first.start
            return _of_the_catalog(_named_if_foreign(found, first)) if isinstance(found, exp.DataType) else found

        def _parse_parameter(self) -> Any:
            """Parse a parameter, whose `$` may have become `@`, or the absolute value, which binds less than `+`."""
            is_number = self._curr is not None and self._curr.token_type == TokenType.NUMBER
            if self._prev.text == "@" and not (is_number and self._curr.start == self._prev.end + 1):
                return self.expression(exp.Abs(this=self._parse_term()))
            return super()._parse_parameter()

        def _parse_bracket(self, this: Any = None) -> Any:
            """Parse subscripts; sqlglot would work out the type of the whole value again before each subscript."""
            if self._match(TokenType.L_BRACE, advance=this is None):
                if this is not None:
                    self._stop()
                this = self._braced()
            subscripts, inner = 0, this
            while isinstance(inner, exp.Bracket):
                subscripts, inner = subscripts + 1, inner.this
            if subscripts > MOST_SUBSCRIPTS:
                message = f"number of subscripts exceeds the maximum allowed ({MOST_SUBSCRIPTS})"
                raise Error(message, errors.PROGRAM_LIMIT_EXCEEDED, position=position_of(this))
            if isinstance(this, exp.Bracket):
                this.set("offset", 1)
            return super()._parse_bracket(this)

        def _braced(self) -> exp.Expr:
            """Parse RisingWave's `{1, 2}`, an array, from behind the brace."""
            items = self._parse_csv(self._parse_disjunction)
            if not items or not self._match(TokenType.R_BRACE):
                self._stop()
            return self.expression(exp.Array(expressions=items))

        # RisingWave's `w int NOT NULL AS v + 1`; sqlglot reads AS right behind the type alone.
        CONSTRAINT_PARSERS: ClassVar = {
            **TimeParser.CONSTRAINT_PARSERS,
            "AS": lambda self: self.expression(exp.ComputedColumnConstraint(this=self._parse_disjunction())),
        }

        # PostgreSQL's options of constraints that sqlglot lacks.
        KEY_CONSTRAINT_OPTIONS: ClassVar = {
            **TimeParser.KEY_CONSTRAINT_OPTIONS,
            "NOT": ("ENFORCED", "DEFERRABLE", "VALID"),
        }

        def _parse_key_constraint_options(self) -> list[str]:
            """Parse options, also `ON DELETE SET NULL (a, b)`, after which other options may follow."""
            found = [option.upper() for option in super()._parse_key_constraint_options()]
            is_set = bool(found) and found[-1].startswith("ON DELETE SET ")
            if not is_set or not self._match(TokenType.L_PAREN, advance=False):
                return found
            listed = ", ".join(column.sql(dialect="postgres") for column in self._parse_wrapped_id_vars())
            return [*found[:-1], f"{found[-1]} ({listed})", *self._parse_key_constraint_options()]

        VERSION_PHRASES: ClassVar = {
            **TimeParser.VERSION_PHRASES,
            ("FOR", "SYSTEM_VERSION"): "VERSION",
        }

        def _parse_version(self) -> Any:
            """Parse `AS OF NOW() - '5' SECOND`, whose unit sqlglot would take for an alias."""
            version = super()._parse_version()
            value = version.expression if version is not None else None
            if not isinstance(value, exp.Sub) or not value.expression.is_string or self._curr is None:
                return version
            if self._curr.text.upper().rstrip("S") in _UNITS:
                value.set("expression", exp.Interval(this=value.expression, unit=exp.Var(this=self._curr.text)))
                self._advance()
            return version

        def _parse_in(self, this: Any, *args: Any, **options: Any) -> Any:
            found = constants_at(self._tokens, self._index)
            if found is None:
                return super()._parse_in(this, *args, **options)
            constants, place = found
            self._advance(place - self._index)
            return self.expression(exp.In(this=this, expressions=runs(constants)))

        def _negate_range(self, this: Any = None) -> Any:
            """Negate `x ~ ANY (y)`: `x !~ ANY (y)` is true if x does not match one, so it is NOT `x ~ ALL (y)`."""
            array = this.expression if isinstance(this, exp.RegexpLike | exp.RegexpILike) else None
            if isinstance(array, exp.Any | exp.All):
                this.set("expression", (exp.All if isinstance(array, exp.Any) else exp.Any)(this=array.this))
            return super()._negate_range(this)


def _type_sql(generator: PostgresGenerator, kind: exp.DataType) -> str:
    """Print a type, a map as RisingWave writes it."""
    if kind.this != exp.DType.MAP:
        return generator.datatype_sql(kind)
    return f"MAP({', '.join(map(generator.sql, kind.expressions))})"


PostgresGenerator.TRANSFORMS[exp.DataType] = _type_sql


def _reads_itself(cte: exp.Expr) -> bool:
    name = folded(cte.args["alias"].this)
    return any(not table.db and folded(table.this) == name for table in cte.this.find_all(exp.Table))


# What a recursive query must not have, in PostgreSQL's order and words.
_OF_NO_RECURSION = {"order": "ORDER BY", "offset": "OFFSET", "limit": "LIMIT"}


def _without_parentheses(query: exp.Expr) -> exp.Expr:
    """Return the query of a part that reads itself. Raises Error 0A000 for one that is sorted or limited."""
    for clause, words in _OF_NO_RECURSION.items():
        if query.args.get(clause):
            raise Error(f"{words} in a recursive query is not implemented", errors.FEATURE_NOT_SUPPORTED)
    return _without_parentheses(query.this) if isinstance(query, exp.Subquery) else query


def parse_tree(sql: str, offset: int = 0, order: str | None = None, is_definition: bool = False) -> exp.Expr:
    """Return one SQL statement from `offset` on as a sqlglot tree; positions in it count from the start of `sql`.

    `order` and `is_definition` are as in `with_literals`.
    """
    padded = " " * offset + sql[offset:]
    try:
        tree = sqlglot.parse_one(padded, read=Sparkwave)
        tree.meta[TEXT] = sql
        check_size(tree)
        if order is not None and "\\" in sql:
            check_escapes(padded)
        tree = with_row_comparisons(with_rows(_with_parameters(tree, sql)))
        with_text_arguments(tree)
        tree = with_unnests(with_records(with_literals(tree, order, is_definition)))
        if "=>" in sql or ":=" in sql:
            tree = with_places(tree)
    except ParseError as error:
        raise _parse_error(sql, error) from error
    except SqlglotError as error:
        if isinstance(error, TokenError):
            tokenize(padded)  # raises PostgreSQL's error
        raise Error(str(error), errors.SYNTAX_ERROR, position=offset + 1) from error
    if isinstance(tree, exp.Command):
        raise Error("this statement is not supported", errors.FEATURE_NOT_SUPPORTED, position=offset + 1)
    words = sql.upper()
    if "GROUP" in words:
        with_grouped_rows(tree)
    if "DISTINCT" in words:
        with_orders(tree)
        without_distinct(tree)
    if "WITHIN" in words:
        with_hypothetical_rows(tree)
    if "*" in sql:
        _check_stars(tree, sql)
    if "FLOAT" in words:
        _size_floats(tree)
    if "PERCENTILE" in words:
        with_null_fractions(tree)
    if "ESCAPE" in words:
        with_other_escapes(tree)
    if "CHANGELOG" in words:
        hide_times(tree)
    for exists in tree.find_all(exp.Exists):
        _give_output(exists)
    if "NAME" in words:
        _check_set_operations(tree)
    tree.meta[TEXT] = sql
    return tree


_BITS_OF_REAL, _BITS_OF_DOUBLE = 24, 53


def _size_floats(tree: exp.Expr) -> None:
    """Let float(p) be real or double precision, by its number of bits. Raises Error 22023."""
    for type_ in tree.find_all(exp.DataType):
        if type_.this not in (exp.DType.FLOAT, exp.DType.DOUBLE) or not type_.expressions:
            continue
        bits = type_.expressions[0].name
        if not bits.isdigit() or int(bits) < 1:
            raise Error("precision for type float must be at least 1 bit", errors.INVALID_PARAMETER_VALUE)
        if int(bits) > _BITS_OF_DOUBLE:
            raise Error("precision for type float must be less than 54 bits", errors.INVALID_PARAMETER_VALUE)
        type_.set("this", exp.DType.FLOAT if int(bits) <= _BITS_OF_REAL else exp.DType.DOUBLE)
        type_.set("expressions", [])


def _check_set_operations(tree: exp.Expr) -> None:
    """Raise Error 42601 for DuckDB's BY NAME, which sqlglot reads as CORRESPONDING without its kind."""
    for operation in tree.find_all(exp.SetOperation):
        if operation.args.get("by_name") and not operation.args.get("kind"):
            raise Error('syntax error at or near "BY"', errors.SYNTAX_ERROR)


def _give_output(exists: exp.Exists) -> None:
    """Give `EXISTS (SELECT FROM t)` an output, because the engines know no rows without a column."""
    query = exists.this.unnest()
    if isinstance(query, exp.Select) and not query.expressions:
        query.set("expressions", [exp.Literal.number(1)])


def _check_stars(tree: exp.Expr, sql: str) -> None:
    """Raise a syntax error for a star other than an output or a function's argument.

    sqlglot and DuckDB take it for a value. `a.* EXCEPT (b.x)` is `a.*`, as in RisingWave.
    """
    for star in tree.find_all(exp.Star):
        if not isinstance(star.parent, (exp.Select, exp.Returning, exp.Column, exp.Dot, exp.Func)):
            raise syntax_error(sql, star.meta["start"])
        if star.args.get("except_") and isinstance(star.parent, exp.Column) and star.parent.table:
            own = folded(star.parent.args["table"])
            kept = [
                left for left in star.args["except_"] if not left.args.get("table") or folded(left.args["table"]) == own
            ]
            star.set("except_", kept or None)


def _with_parameters(tree: exp.Expr, sql: str) -> exp.Expr:
    """Return the tree, changed in place, with parameters in place of identifiers with PARAMETER_MARK."""
    if PARAMETER_MARK in sql:
        for column in list(tree.find_all(exp.Column)):
            if column.name.startswith(PARAMETER_MARK):
                column.replace(marked_parameter(column.name))
    return tree


def locate(tree: exp.Expr, name: str) -> int | None:
    """Return the first use of a column or function with this name, counted from 1."""
    for node in tree.find_all(exp.Column, exp.Anonymous, bfs=False):
        if node.name.lower() == name.lower():
            return position_of(node)
    return None


def selects_of(query: exp.Expr) -> Iterator[exp.Select]:
    """Yield the SELECTs whose rows a query returns."""
    if isinstance(query, exp.SetOperation):
        yield from selects_of(query.this)
        yield from selects_of(query.expression)
    elif isinstance(query, exp.Subquery):
        yield from selects_of(query.this)
    elif isinstance(query, exp.Select):
        yield query


def source_names(tree: exp.Expr) -> list[str]:
    """Return the names by which the columns of a statement can be qualified."""
    return [source.alias_or_name for source in tree.find_all(exp.Table, exp.Subquery) if source.alias_or_name]


def text_before(words: str, sql: str, offset: int) -> str:
    """Return the text from `offset` on, with some words and enough blanks before it that positions are kept."""
    return f"{' ' * (offset - len(words) - 1)}{words} {sql[offset:]}"


def _parse_error(sql: str, error: ParseError) -> Error:
    first = error.errors[0] if error.errors else {}
    if "start" not in first:
        return Error(str(error).splitlines()[0], errors.SYNTAX_ERROR)
    return syntax_error(sql, len(sql) if first["start"] is None else first["start"])


# Types that clients write with their schema; sqlglot does not know them in this form.
_WITH_SCHEMA = frozenset({"date", "time", "timestamp", "timestamptz", "interval", "jsonb", "json", "bytea", "varchar"})


# Types of other engines, which sqlglot knows. Here their names are a user's or nobody's.
_FOREIGN = frozenset(
    exp.DType[name]
    for name in (
        "AGGREGATEFUNCTION", "BIGDECIMAL", "BIGNUM", "DATE32", "DATETIME2", "DATETIME64", "DECFLOAT", "DYNAMIC", "FILE",
        "FIXEDSTRING", "GEOGRAPHY", "GEOGRAPHYPOINT", "GEOMETRY", "HLLSKETCH", "IMAGE", "INT256", "IPADDRESS",
        "IPPREFIX", "IPV4", "IPV6", "LINESTRING", "LIST", "LOWCARDINALITY", "MAP", "MULTILINESTRING", "MULTIPOLYGON",
        "NESTED", "NOTHING", "OBJECT", "RING", "ROWVERSION", "SMALLDATETIME", "SUPER", "TDIGEST", "UDECIMAL",
        "UDOUBLE", "UINT256", "UMEDIUMINT", "VARIANT", "VECTOR", "YEAR",
    )
)  # fmt: skip


def _named_if_foreign(kind: exp.DataType, first: Any) -> exp.DataType:
    """Return a type whose first token is given; one of another engine as a name, without what is in parentheses."""
    element, dimensions = _element(kind)
    is_map = element.args.get("this") == exp.DType.MAP and len(element.expressions) == len(("key", "value"))
    if element.args.get("this") not in _FOREIGN or is_map:
        return kind
    name = exp.Identifier(this=first.text.lower(), quoted=False)
    name.meta.update(line=first.line, col=first.col, start=first.start, end=first.end)
    named = exp.DataType(this=exp.DType.USERDEFINED, kind=name)
    if not dimensions:
        return named
    element.replace(named)
    return kind


def _of_the_catalog(kind: exp.DataType) -> exp.DataType:
    """Return the type of `"pg_catalog"."date"` or `"pg_catalog"."_date"`; any other type unchanged."""
    name = user_type_name(kind)
    if name is None or name.schema != "pg_catalog" or name.name.removeprefix("_") not in _WITH_SCHEMA:
        return kind
    array = "[]" if name.name.startswith("_") else ""
    return exp.DataType.build(name.name.removeprefix("_") + array, dialect="postgres")


_PG_CATALOG = re.compile(r'^"?pg_catalog"?\."?(?P<array>_)?(?P<name>\w+)"?')


# sqlglot's text of the type that json is in DuckDB.
_JSON = 'UNION<"json" TEXT>'


def column_type(kind: exp.Expr) -> Type:
    """Return the type of a sqlglot DataType. Raises Error 42704."""
    element, dimensions = _element(kind)
    if (found := user_type(element)) is not None:
        return replace(found, dimensions=dimensions)
    if element.args.get("this") == exp.DType.UNION:
        return replace(JSON, dimensions=dimensions)
    text = (without_modifier(kind) if isinstance(kind, exp.DataType) else kind).sql(dialect="postgres")
    if "STRUCT<" in text or element.args.get("this") == exp.DType.MAP:
        return parse_type(text.replace(_JSON, "json")).as_written  # the names of its fields may be quoted
    # asyncpg writes types as "pg_catalog"."_int4".
    text = _PG_CATALOG.sub(lambda match: f"{match['name']}[]" if match["array"] else match["name"], text.lower())
    is_named = element.args.get("this") == exp.DType.USERDEFINED  # as a type "chart" is
    is_text = text.startswith(("varchar", "char")) and "[" not in text and not is_named
    if element.args.get("this") in NOT_HERE:
        named = re.sub(r"\([^()]*\)", "", text)
        raise Error(f'type "{named}" does not exist', errors.UNDEFINED_OBJECT)
    return parse_type("character varying" if is_text else text).as_written


def declared_type(kind: exp.Expr) -> Type:
    """Return the type of a declared column; a name that may be that of a user's type stays unresolved."""
    try:
        return column_type(kind)
    except Error as error:
        element, dimensions = _element(kind)
        name = user_type_name(element)
        if name is None:
            error.position = error.position or position_of(kind)
            raise
        return unresolved(name.schema, name.name, dimensions, position_of(kind))


def _element(kind: exp.Expr) -> tuple[exp.Expr, int]:
    """Return the type of an array's elements, and its dimensions; 0 for any other type."""
    dimensions = 0
    while kind.args.get("this") == exp.DType.ARRAY and len(kind.expressions) == 1:
        kind, dimensions = kind.expressions[0], dimensions + 1
    return kind, dimensions


def alias_of(source: exp.Expr) -> str:
    """Return the name of a table or other source in a statement; "" if it has no name."""
    alias = source.args.get("alias")
    name = alias.this if isinstance(alias, exp.TableAlias) else source.this
    return folded(name) if isinstance(name, exp.Identifier) else ""


def name_of(table: exp.Expr) -> Name:
    """Return the name of a table expression's relation."""

    if not isinstance(table, exp.Expr):  # sqlglot's value for a missing table
        raise Error("syntax error: the name of a table is missing", errors.SYNTAX_ERROR)

    def part(key: str) -> str | None:
        identifier = table.args.get(key)
        return folded(identifier) if isinstance(identifier, exp.Identifier) else None

    name = part("this")
    if name is None:
        raise unsupported(f"writing to {table.sql(dialect='postgres')}", table)
    return Name(part("catalog"), part("db"), name, position_of(table) or 1)


def query_of(values: exp.Values) -> exp.Select:
    """Return VALUES as a SELECT, with PostgreSQL's column names."""
    width = len(values.expressions[0].expressions)
    names = [exp.to_identifier(f"column{number + 1}") for number in range(width)]
    values.set("alias", exp.TableAlias(this=exp.to_identifier("values", quoted=True), columns=names))
    return exp.select("*").from_(values)


def is_cte(table: exp.Table) -> bool:
    """Return whether a table's name means a CTE."""
    return cte_of(table) is not None


def cte_of(table: exp.Table) -> exp.CTE | None:
    """Return the CTE that a table's name means: of an enclosing query, and an earlier one if it is in a CTE itself."""
    if table.args.get("db") is not None:
        return None
    name = folded(table.this)
    node: exp.Expr | None = table
    own: exp.Expr | None = None  # the CTE last left on the way up
    while node is not None:
        with_ = node.args.get("with_")
        is_recursive = with_ is not None and with_.args.get("recursive")
        for cte in with_.expressions if with_ is not None else ():
            if cte is own and not is_recursive:
                break
            if folded(cte.args["alias"].this) == name:
                found: exp.CTE = cte
                return found
        own = node if isinstance(node, exp.CTE) else own
        node = node.parent
    return None


def is_comma(join: exp.Join) -> bool:
    """Return whether a join is a comma in FROM, which has no other properties."""
    return {key for key, value in join.args.items() if value} == {"this"}


def other_tables(tree: exp.Expr) -> list[exp.Expr]:
    """Return the tables that an UPDATE, DELETE or MERGE reads besides the one that it changes."""
    source, using = tree.args.get("from_"), tree.args.get("using")
    if isinstance(source, exp.From):
        return [source.this]
    if isinstance(using, list):
        return using
    return [using] if isinstance(using, exp.Expr) else []


def position_of(node: exp.Expr) -> int | None:
    """Return the position of the node's first identifier, from 1; None when it has none."""
    starts = [found.meta["start"] for found in node.find_all(exp.Expr) if "start" in found.meta]
    return min(starts) + 1 if starts else None


@contextmanager
def at(node: exp.Expr) -> Iterator[None]:
    """A context whose errors have the position of a node."""
    try:
        yield
    except Error as error:
        error.position = position_of(node)
        raise


def unsupported(what: str, node: exp.Expr) -> Error:
    """Return an error for PostgreSQL's syntax that is not supported, with its position."""
    return Error(f"{what} is not supported", errors.FEATURE_NOT_SUPPORTED, position=position_of(node))
