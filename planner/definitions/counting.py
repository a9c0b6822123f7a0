"""The options of sequences, and the sequences from which expressions draw numbers."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import Catalog, Relation
from sparkwave.catalog.relation_details import Sequence
from sparkwave.catalog.types import parse_type
from sparkwave.planner.bind.binder import Scope, resolve
from sparkwave.planner.parse.generated import expression_of
from sparkwave.planner.parse.shown_text import shown_text
from sparkwave.planner.parse.tokens import TokenReader
from sparkwave.planner.parse.trees import parse_tree
from sparkwave.planner.statements import SequenceOptions

NEXT, LAST, LAST_OF_ALL, SET = "nextval", "currval", "lastval", "setval"

_LIMITS = {"smallint": 2**15, "integer": 2**31, "bigint": 2**63}


def made_sequence(options: SequenceOptions, before: Sequence | None = None) -> Sequence:
    """Return a sequence with these options; other options are as in `before`, or PostgreSQL's defaults.

    Raises Error 22023 as PostgreSQL does (src/backend/commands/sequence.c, init_params).
    """
    type_ = before.type if before is not None else "bigint"
    if options.type is not None:
        type_ = parse_type(options.type).name
        if type_ not in _LIMITS:
            raise _wrong("sequence type must be smallint, integer, or bigint")
    increment = _said(options.increment, before.increment if before else 1)
    if increment == 0:
        raise _wrong("INCREMENT must not be zero")
    lowest, highest = -_LIMITS[type_], _LIMITS[type_] - 1
    minimum, maximum = (1, highest) if increment > 0 else (lowest, -1)
    if before is not None and options.minimum is None and not _is_limit(before, before.minimum):
        minimum = before.minimum
    if before is not None and options.maximum is None and not _is_limit(before, before.maximum):
        maximum = before.maximum
    minimum = options.minimum if isinstance(options.minimum, int) else minimum
    maximum = options.maximum if isinstance(options.maximum, int) else maximum
    for name, value in (("MINVALUE", minimum), ("MAXVALUE", maximum)):
        if not lowest <= value <= highest:
            raise _wrong(f"{name} ({value}) is out of range for sequence data type {type_}")
    if minimum >= maximum:
        raise _wrong(f"MINVALUE ({minimum}) must be less than MAXVALUE ({maximum})")
    start = _said(options.start, before.start if before else minimum if increment > 0 else maximum)
    check_within("START", start, minimum, maximum)
    cache = _said(options.cache, before.cache if before else 1)
    if cache <= 0:
        raise _wrong(f"CACHE ({cache}) must be greater than zero")
    cycles = options.cycles if options.cycles is not None else before is not None and before.cycles
    made = before or Sequence(type_, start, increment, minimum, maximum)
    return replace(
        made, type=type_, start=start, increment=increment, minimum=minimum, maximum=maximum, cycles=cycles, cache=cache
    )


def _said(value: int | None, otherwise: int) -> int:
    return otherwise if value is None else value


def _is_limit(sequence: Sequence, value: int) -> bool:
    """Return whether a bound is that of the sequence's type, so that it changes with the type."""
    return value in (-_LIMITS[sequence.type], _LIMITS[sequence.type] - 1)


def check_within(word: str, value: int, minimum: int, maximum: int) -> None:
    """Raise Error 22023 for a START or RESTART value that the sequence cannot have."""
    if value < minimum:
        raise _wrong(f"{word} value ({value}) cannot be less than MINVALUE ({minimum})")
    if value > maximum:
        raise _wrong(f"{word} value ({value}) cannot be greater than MAXVALUE ({maximum})")


def _wrong(message: str) -> Error:
    return Error(message, errors.INVALID_PARAMETER_VALUE)


def next_of(sequence_id: int) -> str:
    """Return the default of a column that counts, with the sequence's id, which survives renames."""
    return f"{NEXT}('{sequence_id}'::regclass)"


def drawn_by(default: str | None) -> int | None:
    """Return the id of the sequence in such a default; None for any other default."""
    head, tail = f"{NEXT}('", "'::regclass)"
    text = default or ""
    if not (text.startswith(head) and text.endswith(tail)):
        return None
    inner = text[len(head) : -len(tail)]
    return int(inner) if inner.isdigit() else None


def find_sequence(catalog: Catalog, scope: Scope, named: exp.Expr) -> Relation | None:
    """Return the sequence that an argument of type regclass names; None for an argument that is no constant.

    Raises Error 42P01 for an unknown name, 42809 for another relation.
    """
    literal = named.this if isinstance(named, exp.Cast) else named
    if not isinstance(literal, exp.Literal):
        return None
    text = literal.name
    if text.isdigit():
        relation = catalog.by_id.get(int(text))
        if relation is None:
            raise Error(f"could not open relation with OID {text}", errors.UNDEFINED_TABLE)
    else:
        reader = TokenReader(text)
        name = reader.name()
        reader.finish()
        relation = resolve(catalog, scope, name, "relation")
    if not relation.is_sequence:
        raise Error(f'"{relation.name}" is not a sequence', errors.WRONG_OBJECT_TYPE)
    return relation


def draws(text: str | None) -> bool:
    """Return whether an expression draws numbers from a sequence."""
    calls = expression_of(text).find_all(exp.Anonymous) if text is not None else ()
    return any(call.name.lower() == NEXT for call in calls)


def settled(default: str, catalog: Catalog, scope: Scope) -> str:
    """Return a default with the ids of the sequences that it names. Raises Error as `find_sequence`."""
    tree = expression_of(default).copy()
    for call in list(tree.find_all(exp.Anonymous)):
        if call.name.lower() == NEXT and len(call.expressions) == 1:
            sequence = find_sequence(catalog, scope, call.expressions[0])
            if sequence is not None:
                made = parse_tree(f"SELECT {next_of(sequence.id)}").expressions[0]
                if call is tree:
                    return next_of(sequence.id)
                call.replace(made)
    return shown_text(tree)
