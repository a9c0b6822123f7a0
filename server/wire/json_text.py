"""jsonb as it is printed: a space after `:` and `,`, an object's keys in the order of their bytes and each once.

That order is RisingWave's; PostgreSQL puts shorter keys first. DuckDB keeps the text of a value, without spaces.
"""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.compute as pc

_DECODE = json.JSONDecoder().decode
_ENCODE = json.JSONEncoder(ensure_ascii=False, check_circular=False, allow_nan=False, sort_keys=True).encode


def json_texts(texts: pa.Array) -> pa.Array:
    """The texts of jsonb values as clients get them.

    One by one in Python, 3 to 5 µs each, since Arrow's expressions for the same take as long; so equal ones are done
    once, and those that have nothing to put in order or apart are left as they are.
    """
    if not pc.any(pc.match_substring_regex(texts, "[:,]")).as_py():
        return texts
    distinct = texts.dictionary_encode()
    printed = [_printed(text) for text in distinct.dictionary.to_pylist()]
    return pa.array(printed, pa.string()).take(distinct.indices)


def _printed(text: str) -> bytes | str:
    """The text itself where Python cannot write the value again: one that is nested too deep, or of half characters."""
    try:
        return _ENCODE(_DECODE(text)).encode()
    except (ValueError, RecursionError):
        return text
