"""Takes secrets out of texts that somebody else than their author may read: logs, events, what sessions run.

What is secret is told by the words around it, so the text need not be valid SQL. When in doubt more is taken out.
"""

from __future__ import annotations

import re

from catalog.sources import MASK, SECRET_OPTIONS

# A literal in any of PostgreSQL's forms, the second being one within another; without its end, to the end of the text.
_LITERAL = r"""(?:
    [eE]'(?:[^'\\]|''|\\.)*(?:'|\Z)
    | ''(?=[^',;)\s])[^']*''
    | (?:[uU]&)?'(?:[^']|'')*(?:'|\Z)
    | \$(?P<tag{n}>\w*)\$.*?(?:\$(?P=tag{n})\$|\Z)
)"""
_SPACE = r"(?:\s|/\*.*?\*/|--[^\n]*\n)"
_WORDS = "|".join(re.escape(word) for word in (*SECRET_OPTIONS, "passwd", "pwd", "access.key", "access_key"))

_SECRET = re.compile(
    rf"""
    (?P<word>\bPASSWORD{_SPACE}+) {_LITERAL.format(n=1)}
    | (?P<secret>\bSECRET\b[^;']*?(?:\([^)]*\))?{_SPACE}*\bAS{_SPACE}+) {_LITERAL.format(n=2)}
    | (?P<option>[\w.-]*(?:{_WORDS})[\w.-]*["']?{_SPACE}*(?:=>?|:){_SPACE}*)
      (?:{_LITERAL.format(n=3)} | "(?:[^"\\]|\\.)*"? | (?![\s$'"({{]|secret\s)[^\s,;)'"&}}]+)
    | (?P<url>\b[a-z][a-z0-9+.-]*://[^\s/:@'"]*:)[^\s@/'"]+(?=@)
    """,
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)


def redact(text: str) -> str:
    """The text without passwords, secrets, tokens and keys: literals after PASSWORD, values of options that are named
    so, and what is between the user and the host of a URL."""
    return _SECRET.sub(_masked, text)


def _masked(match: re.Match[str]) -> str:
    if match["url"] is not None:
        return match["url"] + MASK
    before = match["word"] or match["secret"] or match["option"]
    quoted = match[0][len(before) :].lower().startswith(("'", "e'", "u&'", "$"))
    return f"{before}'{MASK}'" if quoted else before + MASK
