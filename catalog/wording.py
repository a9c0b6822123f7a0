"""Rewrites DuckDB's (1.5.5) errors about values, types and queries in PostgreSQL's words."""

from __future__ import annotations

import re
from collections.abc import Callable

from sparkwave.catalog import errors
from sparkwave.catalog.array_literals import fault_of_array
from sparkwave.catalog.errors import Error
from sparkwave.catalog.moment_casts import BEFORE_HINT, MARK
from sparkwave.catalog.types import DEFAULT_NUMERIC, QUOTIENT_NUMERIC

# DuckDB's names of types, with their names in PostgreSQL's errors.
_TYPES = {
    "INT16": "smallint", "INT32": "integer", "INT64": "bigint", "SMALLINT": "smallint", "INTEGER": "integer",
    "BIGINT": "bigint", "FLOAT": "real", "DOUBLE": "double precision", "BOOL": "boolean", "BOOLEAN": "boolean",
    "VARCHAR": "character varying", "DATE": "date", "TIME": "time without time zone",
    "TIMESTAMP": "timestamp without time zone", "TIMESTAMP WITH TIME ZONE": "timestamp with time zone",
    "INTERVAL": "interval", "UUID": "uuid", "BLOB": "bytea", "JSON": "jsonb", "HUGEINT": "bigint",
    "STRING_LITERAL": "unknown", "INTEGER_LITERAL": "integer", "NULL": "unknown", '"NULL"': "unknown",
}  # fmt: skip


def _type(name: str) -> str:
    if name.endswith("[]"):
        return f"{_type(name[:-2])}[]"
    if name.startswith("UNION("):
        return "json"
    if name.startswith(("STRUCT(", "DECIMAL")):
        return "record" if name.startswith("STRUCT(") else "numeric"
    return _TYPES.get(name, name.lower())


def _type_name(name: str) -> str:
    """A type's name as it was written; a word of sqlglot's is in upper case."""
    return name.lower() if name.isupper() else name


_ARRAY = re.compile(r'malformed array literal: "(?P<text>.*)"', re.DOTALL)


def _raised(message: str, detail: str = "", hint: str = "", *, sqlstate: str) -> Error:
    """The error of `pg.raise` and `pg.raise_with`."""
    if (array := _ARRAY.fullmatch(message)) is not None:
        detail = fault_of_array(array["text"]) or ""
    return Error(message, sqlstate, detail=detail or None, hint=hint or None)


def _types(names: str) -> list[str]:
    """PostgreSQL's names of DuckDB's list of argument types."""
    return [_type(name) for name in re.split(r", (?![^(]*\))", names)] if names else []


def _text(found: re.Match[str]) -> Error:
    text, to = found["text"], found["to"]
    if to in ("UINT8", "UINT16"):  # the types that DuckDB numbers enum labels with
        return Error(f'invalid input value for enum: "{text}"', errors.INVALID_TEXT_REPRESENTATION)
    type_ = "uuid" if to == "INT128" else _type(to)
    if type_ in ("smallint", "integer", "bigint") and re.fullmatch(r"\s*[+-]?\d+\s*", text):
        return Error(f'value "{text}" is out of range for type {type_}', errors.NUMERIC_VALUE_OUT_OF_RANGE)
    if type_ == "numeric" and re.fullmatch(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", text):
        return _numeric(found)
    sqlstate = errors.INVALID_DATETIME_FORMAT if type_ == "interval" else errors.INVALID_TEXT_REPRESENTATION
    return Error(f'invalid input syntax for type {type_}: "{text}"', sqlstate)


def _numeric(found: re.Match[str]) -> Error:
    precision, scale = int(found["precision"]), int(found["scale"])
    if (precision, scale) in (DEFAULT_NUMERIC, QUOTIENT_NUMERIC):  # a storage type, which users do not know
        return Error("value overflows numeric format", errors.NUMERIC_VALUE_OUT_OF_RANGE)
    digits = precision - scale
    return Error(
        "numeric field overflow",
        errors.NUMERIC_VALUE_OUT_OF_RANGE,
        detail=f"A field with precision {precision}, scale {scale} must round to an absolute value less than "
        f"{f'10^{digits}' if digits else 1}.",
    )


def _day(found: re.Match[str]) -> Error:
    """The error for a day that no year has, or for a result that is too far away."""
    year, month, day = (int(found[part]) for part in ("year", "month", "day"))
    if 1 <= month <= 12 and 1 <= day <= 31 and abs(year) > 5_000_000:
        return Error("timestamp out of range", errors.DATETIME_FIELD_OVERFLOW)
    text = f"{year:04}-{month:02}-{day:02}"
    return Error(f"date field value out of range: {text}", errors.DATETIME_FIELD_OVERFLOW)


def _says(template: str, sqlstate: str) -> Callable[[re.Match[str]], Error]:
    """A rule that fills the groups of the match into a message; groups named `type…` get PostgreSQL's names."""

    def make(found: re.Match[str]) -> Error:
        groups = {n: _type(v) if n.startswith("type") else v for n, v in found.groupdict().items() if v is not None}
        return Error(template.format(**groups), sqlstate)

    return make


def _malformed(found: re.Match[str]) -> Error:
    """The error of a text that is no array."""
    message = f'malformed array literal: "{found["text"]}"'
    return Error(message, errors.INVALID_TEXT_REPRESENTATION, detail=fault_of_array(found["text"]))


# RE2's messages about a wrong pattern.
_PATTERN_FAULTS = {
    "trailing \\": "invalid escape \\ sequence", "invalid escape sequence": "invalid escape \\ sequence",
    "missing ]": "brackets [] not balanced", "missing )": "parentheses () not balanced",
    "unexpected )": "parentheses () not balanced", "no argument for repetition operator": "quantifier operand invalid",
    "bad repetition operator": "quantifier operand invalid", "invalid repetition size": "invalid repetition count(s)",
    "invalid character class range": "invalid character range", "invalid character class": "invalid character class",
    "invalid perl operator": "look-around is not supported", "invalid group flag": "unknown flag of a group",
}  # fmt: skip


def _pattern(found: re.Match[str]) -> Error:
    return Error(f"invalid regular expression: {_PATTERN_FAULTS[found['fault']]}", errors.INVALID_REGULAR_EXPRESSION)


def _time_of_day(found: re.Match[str]) -> Error:
    hour, minute, second = found["hour"], int(found["minute"]), float(found["second"])
    message = f"time field value out of range: {hour}:{minute:02d}:{second:02g}"
    return Error(message, errors.DATETIME_FIELD_OVERFLOW)


def _absolute(found: re.Match[str]) -> Error:
    bits = (int(found["number"]) - 1).bit_length()
    type_ = "smallint" if bits <= 16 else "integer" if bits <= 32 else "bigint"
    return Error(f"{type_} out of range", errors.NUMERIC_VALUE_OUT_OF_RANGE)


def _between(found: re.Match[str]) -> str:
    """An operator between the types of its operands, in PostgreSQL's form."""
    name, types = found["name"], _types(found["types"])
    return f" {name} ".join(types) if len(types) > 1 else f"{name} {types[0]}"


def _arrays(found: re.Match[str]) -> Error:
    """The error for an array operator with different element types."""
    operator = {"list_has_all": "@>", "list_has_any": "&&"}[found["name"]]
    message = f"operator does not exist: {_type(found['type'])}[] {operator} {_type(found['type_to'])}[]"
    return Error(message, errors.UNDEFINED_FUNCTION, hint=errors.NO_OPERATOR)


def _operator(found: re.Match[str]) -> Error:
    message = f"operator does not exist: {_between(found)}"
    return Error(message, errors.UNDEFINED_FUNCTION, hint=errors.NO_OPERATOR)


def _function(found: re.Match[str]) -> Error:
    if found["name"] == "array_extract":
        message = f"cannot subscript type {_types(found['types'])[0]} because it does not support subscripting"
        return Error(message, errors.DATATYPE_MISMATCH)
    return _function_of(found["name"], found["types"])


def _function_of(name: str, types: str) -> Error:
    message = f"function {name}({', '.join(_types(types))}) does not exist"
    return Error(message, errors.UNDEFINED_FUNCTION, hint=errors.NO_FUNCTION)


def _several(found: re.Match[str]) -> Error:
    """The error for an ambiguous function or operator."""
    is_function = found["name"].isidentifier()
    what = f"function {found['name']}({', '.join(_types(found['types']))})" if is_function else _between(found)
    message = f"{what} is not unique" if is_function else f"operator is not unique: {what}"
    hint = errors.NO_BEST_FUNCTION if is_function else errors.NO_BEST_FUNCTION.replace("function", "operator")
    return Error(message, errors.AMBIGUOUS_FUNCTION, hint=hint)


def _without_types(name: str) -> Error:
    """The error for a macro, or a function of one, of which DuckDB does not tell the argument types."""
    message = f"function {name} does not exist with these arguments"
    return Error(message, errors.UNDEFINED_FUNCTION, hint=errors.NO_FUNCTION)


def _elsewhere(_: re.Match[str]) -> Error:
    """The error for a function of an engine's extension that is not there."""
    return Error("a function of the statement does not exist", errors.UNDEFINED_FUNCTION, hint=errors.NO_FUNCTION)


def _no_function(found: re.Match[str]) -> Error:
    if found["name"] in _WINDOW_FUNCTIONS:
        return Error(f"window function {found['name']} requires an OVER clause", errors.WRONG_OBJECT_TYPE)
    return Error(f"function {found['name']} does not exist", errors.UNDEFINED_FUNCTION, hint=errors.NO_FUNCTION)


def _unlike(found: re.Match[str]) -> Error:
    """The error for values of two types that must have one type."""
    types = " and ".join(_type(found[part]) for part in ("type", "type_to"))
    of = found.groupdict().get("what")
    return Error(f"{f'{of} ' if of else ''}types {types} cannot be matched", errors.DATATYPE_MISMATCH)


_WINDOW_FUNCTIONS = frozenset(
    ("row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead", "nth_value")
)
_INPUT = 'invalid input syntax for type {type}: "{text}"'
_NAMED = r"(?P<type>[A-Z0-9_]+(?: WITH TIME ZONE)?(?:\(\d+,\d+\))?(?:\[\])*)"

_RULES: tuple[tuple[str, Callable[[re.Match[str]], Error]], ...] = (
    # Errors raised by Sparkwave's macros, and by functions in Python.
    (rf"{MARK}(?P<code>\w{{5}})(?P<message>.*){BEFORE_HINT}(?P<hint>.*){MARK}", lambda found: Error(
        found["message"], found["code"], hint=found["hint"] or None)),
    (
        r"Could not convert string (?P<q>['\"])!(?P<code>[0-9A-Z]{5}) (?P<text>.*)(?P=q) to INT32",
        lambda found: _raised(*found["text"].split("\x1f"), sqlstate=found["code"]),
    ),
    (
        r"Could not convert string (?P<q>['\"])(?P<text>.*)(?P=q) to "
        r"(?P<to>[A-Z0-9]+(?:\((?P<precision>\d+),(?P<scale>\d+)\))?)",
        _text,
    ),
    (
        rf"Type \S+ with value \S+ can't be cast because the value is out of range for the destination type {_NAMED}",
        _says("{type} out of range", errors.NUMERIC_VALUE_OUT_OF_RANGE),
    ),
    (r"Casting value \"\S+\" to type DECIMAL\((?P<precision>\d+),(?P<scale>\d+)\) failed", _numeric),
    (
        r"Type VARCHAR with value '(?P<text>.*)' can't be cast to the destination type \S*\[\]",
        _malformed,
    ),
    (r"invalid (?P<type>date|timestamp|time) field format: \"(?P<text>.*?)\"", _says(
        _INPUT, errors.INVALID_DATETIME_FORMAT)),
    (
        r"(?:date|timestamp|time)(?:/time)? field value out of range: \"(?P<text>.*?)\"",
        _says('date/time field value out of range: "{text}"', errors.DATETIME_FIELD_OVERFLOW),
    ),
    (r"Overflow in division of (?P<number>-\d+) / -1", _absolute),
    (r"Invalid escape string", lambda found: Error(
        "invalid escape string", errors.INVALID_ESCAPE_SEQUENCE,
        hint="Escape string must be empty or one character.")),
    (
        r"Overflow in \w+ of (?P<type>INT16|INT32|INT64)\b",
        _says("{type} out of range", errors.NUMERIC_VALUE_OUT_OF_RANGE),
    ),
    (r"Date out of range: (?P<year>-?\d+)-(?P<month>-?\d+)-(?P<day>-?\d+)", _day),
    (r"Date out of range$", _says("date out of range", errors.DATETIME_FIELD_OVERFLOW)),
    (
        r"Date and time not in timestamp range|ICU date overflows timestamp range|Epoch seconds out of range",
        _says("timestamp out of range", errors.DATETIME_FIELD_OVERFLOW),
    ),
    (
        r"Type INT32 with value \S+-\d\d-\d\d(?: \(BC\))? can't be cast to the destination type INT64",
        _says("date out of range for timestamp", errors.DATETIME_FIELD_OVERFLOW),
    ),
    (
        r"Cannot subtract infinite timestamps",
        _says("cannot subtract infinite timestamps", errors.DATETIME_FIELD_OVERFLOW),
    ),
    (r"Type INT64 with value -?infinity can't be cast", _says(
        "timestamp out of range", errors.DATETIME_FIELD_OVERFLOW)),
    (r"Interval \w+ (?:addition|subtraction) out of range", _says(
        "interval out of range", errors.DATETIME_FIELD_OVERFLOW)),
    (r"Failed to cast value to (?:numerical|decimal): (?P<value>.*?)(?: when casting from .*)?$", _says(
        'invalid input syntax for type numeric: "{value}"', errors.INVALID_TEXT_REPRESENTATION)),
    (r"Could not convert (?:Month|Day|Interval)\w* to Microseconds", _says(
        "interval out of range", errors.DATETIME_FIELD_OVERFLOW)),
    (r"Unrecognized Regex option (?P<option>.)", _says(
        'invalid regular expression option: "{option}"', errors.INVALID_PARAMETER_VALUE)),
    (r"Cannot create a string of size", _says(
        "requested length too large", errors.PROGRAM_LIMIT_EXCEEDED)),
    # Numerics have at most 38 digits here.
    (
        r"Overflow in (HUGEINT \w+|\w+ of (DECIMAL|INT128))|"
        r"Needed scale \d+ to accurately represent the multiplication",
        _says("value overflows numeric format", errors.NUMERIC_VALUE_OUT_OF_RANGE),
    ),
    (r"Invalid RANGE (PRECEDING|FOLLOWING) value", _says(
        "invalid preceding or following size in window function", errors.INVALID_PRECEDING_OR_FOLLOWING_SIZE)),
    (r"Invalid LIST argument during lambda|Parameter type needs to be List", lambda found: _without_types("list")),
    (r"Function '(?P<name>\w+)' has a template parameter type", lambda found: _without_types(found["name"])),
    (r"(?P<what>subqueries in lambda expressions are not supported)", _says(
        "{what}", errors.FEATURE_NOT_SUPPORTED)),
    (r"RANGE with composite interval that has mixed signs|Interval with mix of negative/positive entries", _says(
        "generate_series by an interval of mixed signs is not supported", errors.FEATURE_NOT_SUPPORTED)),
    (r"Column \"(?P<name>[^\"]+)\" in EXCLUDE list not found in ", _says(
        'column "{name}" does not exist', errors.UNDEFINED_COLUMN)),
    (r"UNNEST - unsupported extra argument|UNNEST requires a single list", lambda found: _without_types("unnest")),
    (r"Macro (?P<name>\w+)\(\) has multiple overloads that match", lambda found: Error(
        f"function {found['name']} is not unique", errors.AMBIGUOUS_FUNCTION, hint=errors.NO_BEST_FUNCTION)),
    (r"No function matches the given name and argument types 'list_has_all\(JSON, JSON\)'", _says(
        "@> and <@ of jsonb with what is not a constant are not supported", errors.FEATURE_NOT_SUPPORTED)),
    (r"Cannot deduce template type 'T' in function: '(?P<name>list_has_all|list_has_any)\([^']*'\s+Type[^']*'T'[^']*"
     r"'(?P<type>[^']+)', from first occurrence[^']*'(?P<type_to>[^']+)'", _arrays),
    (r"No function matches the given name and argument types '(?P<name>[^\w(]+)\((?P<types>.*)\)'", _operator),
    (r"No function matches the given name and argument types '(?P<name>\w+)\((?P<types>.*)\)'", _function),
    (r"Could not choose a best candidate .* the function call \"(?P<name>[^\"(]+)\((?P<types>.*?)\)\"", _several),
    (r"(?:Scalar |Table |Aggregate |Macro )*Function with name \"?(?P<name>[^\"]+?)\"? "
     r"(?:does not exist|is not in the catalog, but it exists in)", _no_function),
    (r"automatically install the required extension '(?:inet|excel)'", _elsewhere),
    (rf"Cannot mix values of type {_NAMED} and {_NAMED.replace('<type>', '<type_to>')} in (?P<what>\w+)", _unlike),
    (rf"Cannot compare values of type {_NAMED}(?:_LITERAL)? and {_NAMED.replace('<type>', '<type_to>')} in IN/ANY/ALL",
     lambda found: Error(
         f"operator does not exist: {_type(found['type'])} = {_type(found['type_to'])}", errors.UNDEFINED_FUNCTION,
         hint=errors.NO_OPERATOR)),
    (rf"Cannot concatenate lists of types {_NAMED} and {_NAMED.replace('<type>', '<type_to>')}", _unlike),
    (r"Argument for ntile must be greater than zero", _says(
        "argument of ntile must be greater than zero", errors.INVALID_ARGUMENT_FOR_NTILE)),
    (rf"Cannot compare values of type {_NAMED} and type {_NAMED.replace('<type>', '<type_to>')}", _says(
        "values of types {type} and {type_to} cannot be compared", errors.UNDEFINED_FUNCTION)),
    (rf"Cannot combine types (?:of )?{_NAMED} and {_NAMED.replace('<type>', '<type_to>')}", _unlike),
    (r"UNNEST\(\) can only be applied to lists, structs and NULL, not (?P<types>.*)",
     lambda found: _function_of("unnest", found["types"])),
    (r"UNNEST not supported here", _says(
        "set-returning functions are not allowed here", errors.FEATURE_NOT_SUPPORTED)),
    (r"Nested UNNEST calls are not supported", _says(
        "set-returning functions in the arguments of others are not supported here",
        errors.FEATURE_NOT_SUPPORTED)),
    (r"Cannot extract field '.*?' from expression \"(?P<name>\w+)\" because it is not a struct", _says(
        'missing FROM-clause entry for table "{name}"', errors.UNDEFINED_TABLE)),
    (rf"Error: (?:Pattern failed to parse, error: ')?(?P<fault>{'|'.join(map(re.escape, _PATTERN_FAULTS))})", _pattern),
    (r"Time out of range: (?P<hour>-?\d+):(?P<minute>-?\d+):(?P<second>-?[\d.]+)$", _time_of_day),
    (r"Overflow on abs\((?P<number>-?\d+)\)", _absolute),
    (r"(?P<text>cannot take logarithm of (?:zero|a negative number))", _says(
        "{text}", errors.INVALID_ARGUMENT_FOR_LOGARITHM)),
    (r"(?P<text>cannot take square root of a negative number)", _says(
        "{text}", errors.INVALID_ARGUMENT_FOR_POWER)),
    (r"Map keys must be unique", _says("map keys must be unique", errors.INVALID_PARAMETER_VALUE)),
    (r"Map keys can not be NULL", _says("map keys must not be NULL", errors.INVALID_PARAMETER_VALUE)),
    (r"Like pattern must not end with escape character", _says(
        "LIKE pattern must not end with escape character", errors.INVALID_ESCAPE_SEQUENCE)),
    (r"(?:STDDEV|VAR|COVAR|CORR|REGR)[\w()]* .*is out of range", _says(
        "value out of range: overflow", errors.NUMERIC_VALUE_OUT_OF_RANGE)),
    (r"input value \S+ is out of range for numeric function", _says(
        "input is out of range", errors.NUMERIC_VALUE_OUT_OF_RANGE)),
    (r"Failed to cast decimal value \S+ to type (?P<type>INT\d+)", _says(
        "{type} out of range", errors.NUMERIC_VALUE_OUT_OF_RANGE)),
    (r"Could not cast value \S+ to DECIMAL\((?!38,)(?P<precision>\d+),(?P<scale>\d+)\)", _numeric),
    (r"Could not cast value \S+ to DECIMAL", _says(
        "value overflows numeric format", errors.NUMERIC_VALUE_OUT_OF_RANGE)),
    (r"ORDER BY non-integer literal has no effect", _says(
        "non-integer constant in ORDER BY", errors.SYNTAX_ERROR)),
    (r"Overflow in negation of numeric value", _says("value out of range", errors.NUMERIC_VALUE_OUT_OF_RANGE)),
    (r"Overflow in \w+ of INTERVAL", _says("interval out of range", errors.DATETIME_FIELD_OVERFLOW)),
    (r"Unknown TimeZone '(?P<zone>.*?)'", _says(
        'time zone "{zone}" not recognized', errors.INVALID_PARAMETER_VALUE)),
    (r"extract specifier \"(?P<unit>.*?)\" not recognized", _says(
        'unit "{unit}" not recognized', errors.INVALID_PARAMETER_VALUE)),
    (r"interval cannot be 0!", _says("step size cannot equal zero", errors.INVALID_PARAMETER_VALUE)),
    (r"JSON key cannot be NULL", _says("key must not be null", errors.INVALID_PARAMETER_VALUE)),
    (r"Separator argument to StringAgg must be a constant", _says(
        "a delimiter that is not a constant is not supported", errors.FEATURE_NOT_SUPPORTED)),
    (r"Regex options field must be a constant", _says(
        "flags of a regular expression that are not a constant are not supported", errors.FEATURE_NOT_SUPPORTED)),
    (r"Malformed JSON at", _says("invalid input syntax for type json", errors.INVALID_TEXT_REPRESENTATION)),
    (
        r"Unimplemented type for cast \((?P<type>.+) -> (?P<type_to>.+?)\)",
        _says("cannot cast type {type} to {type_to}", errors.CANNOT_COERCE),
    ),
    (
        r"Macro \"?(?P<name>\w+)\"?\(\) does not support the supplied arguments",
        lambda found: _without_types(found["name"]),
    ),
    (
        r"DECIMAL type scale cannot be greater than width",
        _says("NUMERIC scale must be between 0 and the precision", errors.INVALID_PARAMETER_VALUE),
    ),
    (
        r"DECIMAL type width must be between 1 and 38",
        _says("NUMERIC precision must be between 1 and 38", errors.INVALID_PARAMETER_VALUE),
    ),
    (
        r"Type with name (?P<name>.+?) does not exist!",
        lambda found: Error(f'type "{_type_name(found["name"])}" does not exist', errors.UNDEFINED_OBJECT),
    ),
    (r"Subquery returns \d+ columns - expected 1", _says("subquery must return only one column", errors.SYNTAX_ERROR)),
    (
        r"More than one row returned by a subquery used as an expression",
        _says("more than one row returned by a subquery used as an expression", errors.CARDINALITY_VIOLATION),
    ),
    (
        r"Max expression depth limit of \d+ exceeded",
        _says("stack depth limit exceeded", errors.STATEMENT_TOO_COMPLEX),
    ),
    (
        r"Ambiguous reference to column name \"(?P<name>.*?)\"",
        _says('column reference "{name}" is ambiguous', errors.AMBIGUOUS_COLUMN),
    ),
    (
        r"Referenced table \"(?P<name>.*?)\" not found",
        _says('missing FROM-clause entry for table "{name}"', errors.UNDEFINED_TABLE),
    ),
    (
        r"column \"?(?P<name>.*?)\"? must appear in the GROUP BY clause or (?:must be part of|be used in) an",
        _says(
            'column "{name}" must appear in the GROUP BY clause or be used in an aggregate function',
            errors.GROUPING_ERROR,
        ),
    ),
    (r"(?P<clause>GROUP BY|ORDER)(?P<by>)? term out of range", lambda found: Error(
        f"a position in {found['clause'].removesuffix(' BY')} BY is not in the select list",
        errors.INVALID_COLUMN_REFERENCE)),
    (r"LIMIT/OFFSET cannot be negative", _says("LIMIT must not be negative", errors.INVALID_ROW_COUNT)),
    (r"Column \"(?P<name>.*?)\" does not exist on (?P<side>left|right) side of join", _says(
        'column "{name}" specified in USING clause does not exist in {side} table', errors.UNDEFINED_COLUMN)),
    (r"(?P<text>table \".*?\" has \d+ columns available but \d+ columns specified)", _says(
        "{text}", errors.INVALID_COLUMN_REFERENCE)),
    (r"Duplicate CTE name \"(?P<name>.*?)\"", _says(
        'WITH query name "{name}" specified more than once', errors.DUPLICATE_ALIAS)),
    (r"GROUP BY clause cannot contain aggregates", _says(
        "aggregate functions are not allowed in GROUP BY", errors.GROUPING_ERROR)),
    (r"(?P<text>aggregate functions are not allowed in UPDATE)", _says("{text}", errors.GROUPING_ERROR)),
    (r"Could not ORDER BY column \"(?:.*\.)?(?P<name>[^\".]+)\": add the expression", _says(
        'column "{name}" does not exist', errors.UNDEFINED_COLUMN)),
    (r"Function \"(?P<name>\w+)\" is a table function but it was used as a scalar function", lambda found: Error(
        f"function {found['name']} does not exist", errors.UNDEFINED_FUNCTION, hint=errors.NO_FUNCTION)),
    (r"Function \"(?P<name>\w+)\" is a (?:Macro|Scalar) Function\. \"DISTINCT\"", _says(
        "DISTINCT, FILTER or ORDER BY specified, but {name} is not an aggregate function", errors.WRONG_OBJECT_TYPE)),
    (r"Could not parse string \"(?P<text>.*?)\" according to format specifier", _says(
        'invalid value "{text}" for the format', errors.INVALID_DATETIME_FORMAT)),
    (r"GROUPING statement cannot be used without groups|GROUPING child .* must be a grouping column", _says(
        "arguments to GROUPING must be grouping expressions of the associated query level", errors.GROUPING_ERROR)),
    (r"GROUPING function is not supported here", _says(
        "grouping operations are not allowed here", errors.GROUPING_ERROR)),
    (r"WHERE clause cannot contain aggregates", _says(
        "aggregate functions are not allowed in WHERE", errors.GROUPING_ERROR)),
    (r"(?P<clause>WHERE|HAVING) clause cannot contain window functions", _says(
        "window functions are not allowed in {clause}", errors.WINDOWING_ERROR)),
    (r"The combining JOIN type must be INNER or LEFT for a LATERAL reference", _says(
        "a subquery of an outer join cannot read the tables before it", errors.INVALID_COLUMN_REFERENCE)),
    (r"Cannot extract field '(?P<name>.*?)' from expression", _says(
        "column notation .{name} applied to a value that is not of a composite type", errors.WRONG_OBJECT_TYPE)),
    (r"window function calls cannot be nested", _says(
        "window function calls cannot be nested", errors.WINDOWING_ERROR)),
    (r"INSERT statement cannot contain window functions", _says(
        "window functions are not allowed in VALUES", errors.WINDOWING_ERROR)),
    (r"DISTINCT ON non-integer literal has no effect", _says(
        "non-integer constant in DISTINCT ON", errors.SYNTAX_ERROR)),
    (r"ARRAY_SLICE can only operate on LISTs", _says(
        "cannot subscript a value that is no array", errors.DATATYPE_MISMATCH)),
    (r"aggregate function calls cannot be nested", _says(
        "aggregate function calls cannot be nested", errors.GROUPING_ERROR)),
    (r"\* expression without FROM clause", _says(
        "SELECT * with no tables specified is not valid", errors.SYNTAX_ERROR)),
    (
        r"Set operations can only apply to expressions with the same number of result columns",
        _says("each query of a set operation must have the same number of columns", errors.SYNTAX_ERROR),
    ),
)  # fmt: skip


def in_postgres_words(text: str) -> Error | None:
    """Return PostgreSQL's error for a message of DuckDB; None for messages without a rule."""
    for pattern, make in _RULES:
        found = re.search(pattern, text)
        if found is not None:
            return make(found)
    return None
