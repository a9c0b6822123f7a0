"""Rules for the types of functions of maps, in the form of `planner.functions.result_types`."""

from __future__ import annotations

from dataclasses import replace

from sparkwave.catalog.errors import Error
from sparkwave.catalog.types import VARCHAR, Type, map_type, struct_type
from sparkwave.planner.functions.result_types import Known, array_type, common

# The functions whose first argument is a map, except map_filter and jsonb_populate_map, which have rules of their own.
OF_MAPS = frozenset({
    "map_access", "map_keys", "map_values", "map_entries", "map_length", "map_contains", "map_cat", "map_insert",
    "map_delete",
})  # fmt: skip


def map_of_arrays(types: tuple[Known, ...]) -> Known:
    """Return the map whose keys and values are the elements of two arrays."""
    parts = [type_.element if type_ is not None and type_.dimensions else None for type_ in types]
    return _map(*parts) if len(parts) == 2 else None


def map_of_entries(types: tuple[Known, ...]) -> Known:
    """Return the map of an array of rows of a key and a value."""
    entries = types[0] if len(types) == 1 else None
    is_of_rows = entries is not None and entries.dimensions == 1 and entries.name == "struct"
    fields = [type_ for _, type_ in entries.fields] if entries is not None and is_of_rows else []
    return _map(*fields) if len(fields) == 2 else None


def _map(key: Known, value: Known) -> Known:
    try:
        return map_type(key or VARCHAR, value or VARCHAR)
    except Error:  # `map_checks` tells of it
        return None


def entries_of_map(types: tuple[Known, ...]) -> Known:
    """Return the array of a map's entries, which are rows."""
    given = types[0]
    return struct_type(given.fields, dimensions=1) if given is not None and given.is_map else None


def _part(types: tuple[Known, ...], place: int) -> Type | None:
    given = types[0]
    return given.fields[place][1] if given is not None and given.is_map else None


def keys_of_map(types: tuple[Known, ...]) -> Known:
    key = _part(types, 0)
    return array_type(key) if key is not None else None


def values_of_map(types: tuple[Known, ...]) -> Known:
    value = _part(types, 1)
    return array_type(value) if value is not None else None


def value_of_map(types: tuple[Known, ...]) -> Known:
    return _part(types, 1)


def map_of_both(types: tuple[Known, ...]) -> Known:
    """Return the common type of maps."""
    known = [type_ for type_ in types if type_ is not None and type_.is_map]
    parts = zip(*([part for _, part in type_.fields] for type_ in known), strict=True)
    return _map(*(common(tuple(part)) for part in parts)) if known else None


def map_with(types: tuple[Known, ...]) -> Known:
    """Return the type of a map into which a key and a value are put: the wider values."""
    value = _part(types, 1)
    wider = common((value, types[2])) if value is not None and len(types) > 2 else value
    given = types[0]
    if given is None or wider is None:
        return None
    return replace(given, fields=(given.fields[0], ("value", wider)))
