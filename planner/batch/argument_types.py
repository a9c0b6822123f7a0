"""The types that functions want for arguments of unknown type, where PostgreSQL has a single answer.

From PostgreSQL's `pg_proc.dat`: of several candidates the function that the rules of its documentation 10.3 choose,
which is the one of text or of a preferred type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sparkwave.catalog.types import ALIASES, Type

# Words besides names of types: `same` is the type of the other arguments with this word, `array` is an array of the
# type of `element`, `any` is unknown. The last word stands for all further arguments. After `|` are the words for one
# argument.
_SIGNATURES = {
    # Text.
    "upper": "text", "lower": "text", "initcap": "text", "length": "text", "octet_length": "text",
    "bit_length": "text", "reverse": "text", "ascii": "text", "md5": "text", "quote_ident": "text",
    "quote_literal": "text", "quote_nullable": "text", "chr": "int", "to_hex": "int8", "concat": "text",
    "concat_ws": "text", "format": "text", "left": "text int", "right": "text int", "repeat": "text int",
    "substring": "text int int", "lpad": "text int text", "rpad": "text int text", "btrim": "text", "ltrim": "text",
    "rtrim": "text", "replace": "text", "translate": "text", "strpos": "text", "starts_with": "text",
    "split_part": "text text int", "overlay": "text text int int", "encode": "bytea text", "decode": "text",
    "sha224": "bytea", "sha256": "bytea", "sha384": "bytea", "sha512": "bytea", "sha1": "bytea",
    "hmac": "text bytea text", "is_json": "text",
    "encrypt": "bytea bytea text", "decrypt": "bytea bytea text", "encrypt_iv": "bytea bytea bytea text",
    "decrypt_iv": "bytea bytea bytea text", "pgp_sym_encrypt": "text", "pgp_sym_encrypt_bytea": "bytea text",
    "pgp_sym_decrypt": "bytea text", "pgp_sym_decrypt_bytea": "bytea text",
    "crc32": "bytea", "crc32c": "bytea", "int8send": "int8", "int8recv": "bytea",
    "casefold": "text", "convert_from": "bytea text", "convert": "bytea text text",
    "get_byte": "bytea int", "get_bit": "bytea int",
    "set_byte": "bytea int int", "set_bit": "bytea int int",
    "regexp_replace": "text", "regexp_match": "text", "regexp_matches": "text",
    "regexp_like": "text", "regexp_ilike": "text", "regexp_count": "text text int text",
    "regexp_instr": "text text int int int text int", "unistr": "text", "is_normalized": "text",
    "regexp_substr": "text text int int text", "similar_to": "text", "string_to_array": "text", "string_agg": "text",
    # Numbers.
    **dict.fromkeys(
        ("abs", "ceil", "floor", "sign", "sqrt", "cbrt", "exp", "ln", "degrees", "radians", "sin", "cos", "tan", "asin",
         "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "cot", "sind", "cosd", "tand",
         "cotd", "asind", "acosd", "atand", "atan2d", "gamma", "lgamma", "log", "log10", "power"), "float8",
    ),
    "round": "numeric int | float8", "trunc": "numeric int", "div": "numeric", "gcd": "same", "lcm": "same",
    "modulo": "same",
    # Dates and times.
    "date_trunc": "text timestamptz text", "date_part": "text timestamptz", "extract": "any timestamptz",
    "date_bin": "interval timestamptz timestamptz", "to_char": "timestamptz text", "to_date": "text",
    "make_date": "int", "make_time": "int int float8", "make_timestamp": "int int int int int float8",
    "justify_hours": "interval", "justify_days": "interval", "justify_interval": "interval", "pg_sleep": "float8",
    # json, jsonb and arrays.
    "json_typeof": "json", "json_array_length": "json", "json_strip_nulls": "json", "json_extract_path": "json text",
    "json_extract_path_text": "json text", "json_elements": "json", "json_element_texts": "json",
    "json_keys": "json text", "json_record": "json", "json_records": "json text",
    "jsonb_record": "jsonb", "jsonb_records": "jsonb text",
    "jsonb_typeof": "jsonb", "jsonb_array_length": "jsonb", "jsonb_exists": "jsonb text",
    **dict.fromkeys(
        ("jsonb_path_exists", "jsonb_path_match", "jsonb_path_query_array", "jsonb_path_query_first"),
        "jsonb text jsonb boolean",
    ),
    "jsonb_exists_any": "jsonb text[]", "jsonb_exists_all": "jsonb text[]", "jsonb_extract_path": "jsonb text",
    "jsonb_extract_path_text": "jsonb text", "json_at": "jsonb text", "json_text_at": "jsonb text",
    "array_length": "array int", "array_lower": "array int", "array_upper": "array int",
    "array_to_string": "array text", "array_append": "array element", "array_prepend": "element array",
    "array_cat": "array", "array_remove": "array element", "array_replace": "array element", "trim_array": "array int",
    "array_position": "array element int", "array_positions": "array element", "array_contains": "same",
    "array_contained": "same", "array_overlaps": "same",
    # The system's.
    "current_setting": "text boolean", "set_config": "text text boolean", "format_type": "oid int",
    "pg_get_userbyid": "oid", "pg_table_is_visible": "oid", "pg_type_is_visible": "oid",
    "pg_function_is_visible": "oid", "pg_get_viewdef": "oid boolean", "pg_get_indexdef": "oid int boolean",
    "pg_get_constraintdef": "oid boolean", "pg_get_expr": "text oid boolean", "obj_description": "oid text",
    "col_description": "oid int", "shobj_description": "oid text", "pg_encoding_to_char": "int",
    "pg_cancel_backend": "int", "pg_terminate_backend": "int", "to_regclass": "text", "to_regtype": "text",
    "current_schemas": "boolean", "has_schema_privilege": "text", "has_table_privilege": "text",
    "has_database_privilege": "text", "has_column_privilege": "text", "pg_get_serial_sequence": "text",
}  # fmt: skip


def argument_type(name: str, place: int, count: int, known: Mapping[int, Type]) -> Type | None:
    """Return the type that a function of `count` arguments wants at a place, from 0.

    `known` has the types of its other arguments.
    """
    if name not in _SIGNATURES:
        return None
    several, _, one = _SIGNATURES[name].partition(" | ")
    words = (one if one and count == 1 else several).split()
    word = _word(words, place)
    if word == "any":
        return None
    if word not in ("same", "array", "element"):
        element = word.removesuffix("[]")
        return Type(ALIASES.get(element, element), dimensions=int(word != element))
    for other_place, type_ in known.items():
        other = _word(words, other_place)
        if other == word:
            return type_
        if (word, other) == ("element", "array") and type_.dimensions:
            return type_.element
        if (word, other) == ("array", "element"):
            return replace(type_.without_digits, dimensions=type_.dimensions + 1)
    return None


def _word(words: Sequence[str], place: int) -> str:
    return words[min(place, len(words) - 1)]
