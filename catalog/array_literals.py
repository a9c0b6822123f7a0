"""What PostgreSQL says of a text that is no array (array_in and ArrayCount in arrayfuncs.c of PostgreSQL 15)."""

from __future__ import annotations

import re

from sparkwave.catalog.errors import NO_ARRAY

_BLANKS = " \t\n\r\v\f"
_ENDED = ("element", "quoted", "level ended")
_BEFORE_ELEMENT = ("level", "delimited")
UNEQUAL = "Multidimensional arrays must have sub-arrays with matching dimensions."


def fault_of_array(text: str) -> str | None:
    """Return the detail of the error for a text that is read as an array; None if its braces and commas are right."""
    bounds = re.match(rf"[{_BLANKS}]*((?:\[[-+:\d]+\])*)[{_BLANKS}]*(=?)[{_BLANKS}]*", text)
    assert bounds is not None
    if text[bounds.end() : bounds.end() + 1] != "{":
        if not bounds[1]:
            return NO_ARRAY
        return 'Array contents must start with "{".' if bounds[2] else 'Missing "=" after array dimensions.'
    state, depth, at = "", 0, bounds.end()
    counts: dict[int, int] = {}
    before: dict[int, int] = {}
    while True:
        character = text[at : at + 1]
        if not character or (character == "\\" and at + 1 == len(text)):
            return "Unexpected end of input."
        if character == "\\":
            if state not in (*_BEFORE_ELEMENT, "element", "in quotes"):
                return 'Unexpected "\\" character.'
            state, at = state if state == "in quotes" else "element", at + 1
        elif character == '"':
            if state not in (*_BEFORE_ELEMENT, "in quotes"):
                return "Unexpected array element."
            state = "quoted" if state == "in quotes" else "in quotes"
        elif state == "in quotes":
            pass
        elif character == "{":
            if state not in ("", "level", "level delimited"):
                return 'Unexpected "{" character.'
            state, depth = "level", depth + 1
        elif character == "}":
            if state not in _ENDED and not (depth == 1 and state == "level"):
                return 'Unexpected "}" character.'
            state, depth = "level ended", depth - 1
            if before.setdefault(depth, counts.get(depth, 0)) != counts.pop(depth, 0):
                return UNEQUAL
            if not depth:
                return "Junk after closing right brace." if text[at + 1 :].strip(_BLANKS) else None
        elif character == ",":
            if state not in _ENDED:
                return 'Unexpected "," character.'
            state = "level delimited" if state == "level ended" else "delimited"
            counts[depth - 1] = counts.get(depth - 1, 0) + 1
        elif character not in _BLANKS:
            if state not in (*_BEFORE_ELEMENT, "element"):
                return "Unexpected array element."
            state = "element"
        at += 1
