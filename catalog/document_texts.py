"""Texts of jsonb with an object's keys once each, in the order of their bytes, as RisingWave prints them.

DuckDB keeps a document's text as it was written, without spaces, and has no function that sorts keys. This module is
sent to Spark's executors (`executor.spark.kernel`), so it imports nothing of this package.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa

# The functions' names in DuckDB; `catalog/system/scalar.sql` calls them.
SPACED, CANONICAL = "sparkwave_spaced_document", "sparkwave_canonical_document"
# Stands around a number, which is a string for json's encoder. It is no character of any text.
_MARK = "\ufdd0"
_NUMBER = re.compile(f'"{_MARK}([^"]*)"')
_EXACT = Context(prec=2000)
_LONGEST = 1000  # an exponent of a number that is written without one

Number = Callable[[str], str]


def spaced_texts(texts: pa.Array) -> pa.Array:
    """Return texts of documents (strings) sorted, with a space after each `:` and `,`."""
    return _sorted(texts, (", ", ": "), _as_written)


def canonical_texts(texts: pa.Array) -> pa.Array:
    """Return texts of documents (strings) sorted, without spaces, in which equal numbers have the same text."""
    return _sorted(texts, (",", ":"), _shortest)


def define_documents(database: Any) -> None:
    """Define both functions in a DuckDB database, from VARCHAR to VARCHAR.

    DuckDB would look up the types of their parameters, which executors lack; those of a lambda have none.
    """
    functions = {SPACED: lambda texts: spaced_texts(texts), CANONICAL: lambda texts: canonical_texts(texts)}
    for name, function in functions.items():
        database.create_function(name, function, ["VARCHAR"], "VARCHAR", type="arrow")


def _sorted(texts: pa.Array | pa.ChunkedArray, separators: tuple[str, str], number: Number) -> pa.Array:
    """Return the sorted texts. Python prints them one by one, at 3 to 10 µs each, so equal ones are printed once."""
    decode = json.JSONDecoder(parse_float=lambda text: _MARK + number(text)).decode
    encode = json.JSONEncoder(ensure_ascii=False, check_circular=False, sort_keys=True, separators=separators).encode
    whole = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    distinct = whole.dictionary_encode()
    printed = [_printed(text, decode, encode) for text in distinct.dictionary.to_pylist()]
    return pa.array(printed, pa.string()).take(distinct.indices)


def _printed(text: str, decode: Callable[[str], Any], encode: Callable[[Any], str]) -> bytes | str:
    """Return the printed text. A value that Python cannot write again (nested too deeply, lone surrogates) keeps its
    text.
    """
    try:
        made = encode(decode(text))
        return (_NUMBER.sub(r"\1", made) if _MARK in made else made).encode()
    except (ValueError, RecursionError):
        return text


def _as_written(text: str) -> str:
    """Return a number with a fraction or an exponent as a numeric has it: 1e3 is 1000, and 2.50 stays."""
    if "e" not in text.lower():
        return text
    number = Decimal(text)
    return f"{number:f}" if abs(number.adjusted()) < _LONGEST else text


def _shortest(text: str) -> str:
    """Return the text of all numbers that are equal to this one: of 2.50 it is 2.5, of 1.0 it is 1."""
    number = Decimal(text)
    if not number:
        return "0"
    return f"{number.normalize(_EXACT):f}" if abs(number.adjusted()) < _LONGEST else text
