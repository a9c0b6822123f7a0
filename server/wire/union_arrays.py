"""Takes the texts of json out of the unions that DuckDB hands out for json (`catalog.types`), also in arrays and rows.

Arrow's functions do not take unions: `flatten` of rows with unions ends the process.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def has_unions(type_: pa.DataType) -> bool:
    """Return whether a type is a union or has one in it."""
    if pa.types.is_union(type_):
        return True
    return any(has_unions(type_.field(place).type) for place in range(type_.num_fields))


def without_unions(array: pa.Array) -> pa.Array:
    """Return an array with the values of the first member in place of each union."""
    if not has_unions(array.type):
        return array
    if pa.types.is_union(array.type):
        return array.field(0)
    valid = array.is_valid()
    if pa.types.is_struct(array.type):
        names = [array.type.field(place).name for place in range(array.type.num_fields)]
        parts = [without_unions(array.field(place)) for place in range(len(names))]
        return pa.StructArray.from_arrays(parts, names, mask=pc.invert(valid))
    offsets = pc.if_else(pa.concat_arrays([valid, pa.array([True])]), array.offsets, None)
    if pa.types.is_map(array.type):
        keys, items = without_unions(array.keys), without_unions(array.items)
        return pa.MapArray.from_arrays(offsets.cast(pa.int32()), keys, items)
    return pa.ListArray.from_arrays(offsets.cast(pa.int32()), without_unions(array.values))


def batch_without_unions(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch whose columns have no unions."""
    if not any(map(has_unions, batch.schema.types)):
        return batch
    return pa.RecordBatch.from_arrays(list(map(without_unions, batch.columns)), names=batch.schema.names)
