"""The fingerprint of a plan: its tables and operators, stored with a relation and compared at each start.

A definition is planned again at each start, perhaps by another version. The stored rows fit that plan only if both have
the same columns, key and states, and their meaning is the same only if the operators are. The operators are kept as a
digest, which depends on the plan alone: neither on the printing of expressions nor on the order of sets.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum

from sqlglot import exp

from sparkwave.catalog.types import DATE, INTERVAL, JSON, JSONB, TIME, TIMESTAMP, TIMESTAMPTZ, VARCHAR, Type
from sparkwave.planner.functions.digits import has_many_places, has_most_digits, of_other_digits
from sparkwave.planner.functions.equal_intervals import found_alike
from sparkwave.planner.functions.json_spelling import takes_field
from sparkwave.planner.functions.operators import as_call
from sparkwave.planner.functions.range_frames import has_offset
from sparkwave.planner.functions.scalar_functions import has_varying_places
from sparkwave.planner.functions.typed import sql_type, type_of_part
from sparkwave.planner.plan.nodes import Field, Memo, OverWindow, Scan, TopN, walk
from sparkwave.planner.plan.stream_plan import State, StreamPlan

# The form of a fingerprint. Of two with different forms, only the stored tables are compared.
FORM = 1
_MOMENTS = (DATE, TIME, TIMESTAMP, TIMESTAMPTZ, INTERVAL)
# Functions that make texts of values.
_PRINTING = ("concat", "concat_ws", "format", "array_to_string", "quote_literal", "quote_nullable")
_PADDED = re.compile(r"%[\d$-]")
Columns = tuple[tuple[str, str], ...]  # names in the lake, and types


@dataclass(frozen=True)
class Stored:
    """A table that a plan needs: its columns, and those that identify a row."""

    columns: Columns
    key: tuple[str, ...]


@dataclass(frozen=True)
class Fingerprint:
    """The tables and operators of a plan.

    `rows` is the relation's own table, `states` are the tables of its states, by name. `operators` and `digest`
    identify the operators. A relation that an earlier version made has no digest.
    """

    rows: Stored
    states: Mapping[str, Stored]
    operators: tuple[str, ...] = ()
    digest: str | None = None

    def dump(self) -> str:
        """Return the fingerprint as text."""
        states = {name: [state.columns, state.key] for name, state in self.states.items()}
        return json.dumps([FORM, [self.rows.columns, self.rows.key], states, self.operators, self.digest])


def load(text: str) -> Fingerprint:
    """Return the fingerprint of `Fingerprint.dump`; without a digest if a version with another form made the text."""
    form, rows, states, operators, digest = json.loads(text)
    of_states = {name: _stored(*state) for name, state in states.items()}
    return Fingerprint(_stored(*rows), of_states, tuple(operators), digest if form == FORM else None)


def _stored(columns: list[list[str]], key: list[str]) -> Stored:
    return Stored(tuple((name, type_) for name, type_ in columns), tuple(key))


# Versions without this mark could leave states with partitions stale, so that views with such states are made anew.
_PARTITIONS = "partitions"
# Without this mark, intervals of equal length in windows were taken for one another, and frames over them missed rows.
_INTERVALS = "intervals"


def fingerprint(plan: StreamPlan) -> Fingerprint:
    """Return the fingerprint of a plan."""
    rows = Stored(_columns(plan.root.fields), plan.key)
    states = {state.name: _of_state(state) for state in plan.states if not state.in_view}
    operators = tuple(type(node).__name__ for node in walk(plan.root))
    parts = [_form(plan.root), [[s.name, s.in_view, s.columns] for s in plan.states], plan.width]
    if any(not state.in_view and isinstance(state.node, TopN | Memo) for state in plan.states):
        parts.append(_PARTITIONS)
    if any(isinstance(node, OverWindow) and _has_intervals(node) for node in walk(plan.root)):
        parts.append(_INTERVALS)
    form = json.dumps(parts)
    return Fingerprint(rows, states, operators, hashlib.sha256(form.encode()).hexdigest())


def _has_intervals(node: OverWindow) -> bool:
    """Return whether frames are over intervals, or some intervals in the calls are of equal length."""
    frames = [call.frame for call in node.calls if call.frame is not None]
    types = {field.name: field.type for field in node.input.fields}
    keys = [types[call.order[0].name] for call in node.calls if call.order and has_offset(call.frame)]
    return INTERVAL in keys or bool(found_alike([*(call.expression for call in node.calls), *frames]))


def _columns(listed: tuple[Field, ...]) -> Columns:
    return tuple((field.name, str(field.type)) for field in listed)


def _of_state(state: State) -> Stored:
    return Stored(_columns(state.node.fields), state.stored_key)


def differences(stored: Fingerprint, now: Fingerprint) -> list[str]:
    """Return why stored tables do not fit a plan, in words; nothing if they fit."""
    found = list(_of_tables("it", stored.rows, now.rows))
    for name in sorted({*stored.states, *now.states}):
        if name not in now.states:
            found.append(f"state {name} is stored, and the plan has none")
        elif name not in stored.states:
            found.append(f"the plan has state {name}, and none is stored")
        else:
            found += _of_tables(f"state {name}", stored.states[name], now.states[name])
    if found or stored.digest is None or stored.digest == now.digest:
        return found
    if stored.operators != now.operators:
        return [f"its operators were {', '.join(stored.operators)}, and are {', '.join(now.operators)}"]
    return ["its operators compute something else"]


def same_tables(stored: Fingerprint, now: Fingerprint) -> bool:
    """Return whether a plan has its rows and states in tables like the stored ones."""
    return not differences(replace(stored, digest=None), now)


def _of_tables(what: str, stored: Stored, now: Stored) -> Iterator[str]:
    if sorted(stored.columns) != sorted(now.columns):
        yield f"{what} has the columns ({_listed(stored.columns)}), and the plan has ({_listed(now.columns)})"
    if stored.key != now.key:
        yield f"{what} has the key ({', '.join(stored.key)}), and the plan has ({', '.join(now.key)})"


def _listed(columns: Columns) -> str:
    return ", ".join(f"{name} {type_}" for name, type_ in columns)


def _form(value: object) -> object:
    """Return a part of a plan as JSON values."""
    match value:
        case Scan():
            # Further columns, which identify rows, belong to the upstream.
            return ["Scan", value.input, value.relation.id, [[field.name, str(field.type)] for field in value.fields]]
        case exp.Expr():
            arguments = sorted((name, part) for name, part in value.args.items() if part not in (None, False, []))
            return [_meaning(value), [[name, _form(part)] for name, part in arguments]]
        case Type():
            return str(value)
        case Enum():
            return value.name
        case list() | tuple():
            return [_form(part) for part in value]
        case None | str() | int() | float():
            return value
    assert is_dataclass(value), value
    return [type(value).__name__, *([field.name, _form(getattr(value, field.name))] for field in fields(value))]


def _meaning(node: exp.Expr) -> str:
    """Return the kind of an expression, with a mark if it had other values in earlier versions.

    The text of a JSON document had no spaces after `:` and `,`; then a cast to text had the keys as they were written.
    `format` had no widths. `round(34.5, -1)` rounded twice. Texts of dates, times and intervals had few forms, of which
    some were misread. Texts of some floats had other digits. `log(2, 3)`
    had ten digits, and degrees another last one. 2.5 of a document was 2 as an integer, and a
    scalar of json an array of itself. The rest of a division of numerics of many digits was a double's,
    and `CASE … THEN floor(n) ELSE 2.25 END` was 2.
    """
    kind = type(node).__name__
    if _prints_floats(node):
        return f"{kind}, shortest"
    if isinstance(node, exp.Cast) and sql_type(node.to) in _MOMENTS and not node.this.is_string:
        return f"{kind}, read" if type_of_part(node.this) == VARCHAR else kind
    if isinstance(node, exp.Cast) and node.to.this in exp.DataType.TEXT_TYPES and type_of_part(node.this) == JSONB:
        return f"{kind}, sorted"
    if isinstance(node, exp.Cast) and type_of_part(node.this) == JSONB and (to := sql_type(node.to)) and to.is_integer:
        return f"{kind}, rounded"
    if (
        isinstance(node, exp.JSONExtract | exp.JSONExtractScalar)
        and type_of_part(node.this) == JSON
        and not takes_field(node)
    ):
        return f"{kind}, of parts"
    if isinstance(node, _CHOOSING) and (of := type_of_part(node)) and has_most_digits(of) and of_other_digits(node, of):
        return kind if has_many_places(of) else f"{kind}, exact"
    if isinstance(node, exp.Mod) and (of := type_of_part(node)) and has_most_digits(of) and not has_many_places(of):
        return f"{kind}, exact"
    if _rounds_before_point(node):
        return f"{kind}, once"
    if (call := as_call(node)) is not None and (call[0] == "degrees" or (call[0] == "log" and len(call[1]) == 2)):
        return f"{kind}, to the last digit"
    if isinstance(node, exp.Anonymous) and node.name == "format" and _PADDED.search(node.expressions[0].name):
        return f"{kind}, padded"
    is_call = isinstance(node, exp.Anonymous) and node.name == "jsonb_extract_path_text"
    is_text = is_call or isinstance(node, exp.JSONExtractScalar | exp.JSONBExtractScalar)
    return f"{kind}, spaced" if is_text else kind


_CHOOSING = (exp.Case, exp.Coalesce, exp.Greatest, exp.Least)


def _rounds_before_point(node: exp.Expr) -> bool:
    call = as_call(node)
    return call is not None and has_varying_places(*call) and call[1][1].unnest().is_int


def _prints_floats(node: exp.Expr) -> bool:
    if isinstance(node, exp.Cast):
        return node.to.this in exp.DataType.TEXT_TYPES and _is_float(node.this)
    if isinstance(node, exp.DPipe):
        return _is_float(node.this) or _is_float(node.expression)
    call = as_call(node)
    return call is not None and call[0] in _PRINTING and any(map(_is_float, call[1]))


def _is_float(part: exp.Expr) -> bool:
    type_ = type_of_part(part)
    return type_ is not None and type_.has_floats
