"""The text of a definition as it is stored and shown: one line, without comments, its keywords in upper case.

As in RisingWave, which prints the statement's tree. Here the tokens stay as they were written, so that a printer cannot
change what they mean.
"""

from __future__ import annotations

from sqlglot.tokens import Token, TokenType

from sparkwave.catalog.errors import Error
from sparkwave.planner.parse.tokens import tokenize

# PostgreSQL's reserved words that are not values, types or functions, and words of frames, which hardly name anything.
_RESERVED = frozenset(
    {
        "ALL", "AND", "ANY", "AS", "ASC", "ASYMMETRIC", "BETWEEN", "BOTH", "CASE", "CAST", "COLLATE", "CROSS", "DESC",
        "DISTINCT", "ELSE", "END", "EXCEPT", "FETCH", "FOLLOWING", "FOR", "FROM", "FULL", "GROUP", "HAVING", "ILIKE",
        "IN", "INNER", "INTERSECT", "INTO", "IS", "ISNULL", "JOIN", "LATERAL", "LEADING", "LEFT", "LIKE", "LIMIT",
        "NATURAL", "NOT", "NOTNULL", "NULL", "OFFSET", "ON", "ONLY", "OR", "ORDER", "OUTER", "PRECEDING", "RIGHT",
        "SELECT", "SIMILAR", "SOME", "SYMMETRIC", "TABLE", "THEN", "TO", "TRAILING", "UNBOUNDED", "UNION", "USING",
        "VALUES", "WHEN", "WHERE", "WINDOW", "WITH",
    }
)  # fmt: skip
# Words that are keywords beside certain others: those that come before, or those that follow.
_BEHIND = {
    "BY": ("GROUP", "ORDER", "PARTITION", "DISTRIBUTED"),
    "ROW": ("CURRENT",),
    "FIRST": ("NULLS",),
    "LAST": ("NULLS",),
    "CLOSE": ("WINDOW",),
}
_BEFORE = {
    "PARTITION": ("BY",),
    "DISTRIBUTED": ("BY",),
    "OVER": ("(",),
    "FILTER": ("(",),
    "EXISTS": ("(",),
    "INCLUDE": ("(",),
    "WITHIN": ("GROUP",),
    "NULLS": ("FIRST", "LAST"),
    "EMIT": ("ON",),
    "CURRENT": ("ROW",),
    "ROWS": ("BETWEEN", "UNBOUNDED", "CURRENT"),
    "RANGE": ("BETWEEN", "UNBOUNDED", "CURRENT"),
}
_STRINGS = (
    TokenType.STRING, TokenType.BYTE_STRING, TokenType.NATIONAL_STRING, TokenType.HEREDOC_STRING,
    TokenType.UNICODE_STRING, TokenType.HEX_STRING, TokenType.BIT_STRING,
)  # fmt: skip
_QUOTED = (*_STRINGS, TokenType.IDENTIFIER)
_TIGHT_BEFORE = frozenset((")", "]", ",", ".", "::", ";"))
_TIGHT_BEHIND = frozenset(("(", "[", ".", "::"))


def normalised(text: str) -> str:
    """Return a part of a statement as one line; the text itself, without blanks around it, where that is not the same.

    Two texts that the parser reads as one because a line ends between them stay on two lines.
    """
    tokens, stripped = _tokens(text), text.strip()
    parts: list[str] = []
    for index, token in enumerate(tokens):
        if index:
            gap = text[tokens[index - 1].end + 1 : token.start]
            parts.append(_between(tokens[index - 1], token, gap))
        written = text[token.start : token.end + 1]
        if token.token_type not in _QUOTED and len(written.split()) > 1:  # GROUP BY is one token
            written = " ".join(written.split())
        parts.append(written.upper() if _is_keyword(tokens, index) else written)
    line = "".join(parts)
    try:
        return line if list(map(_read, _tokens(line))) == list(map(_read, tokens)) else stripped
    except Error:
        return stripped


def _tokens(text: str) -> list[Token]:
    return [token for token in tokenize(text) if token.token_type != TokenType.SEMICOLON]


def _read(token: Token) -> tuple[TokenType, str]:
    """Return what the parser reads of a token; names that are not quoted are in any case."""
    return token.token_type, token.text if token.token_type in _QUOTED else " ".join(token.text.upper().split())


def _between(before: Token, after: Token, gap: str) -> str:
    """Return the text between two tokens in place of a gap."""
    if before.token_type in _STRINGS and after.token_type in _STRINGS:
        return "\n" if "\n" in gap else gap
    left, right = ("" if token.token_type in _QUOTED else token.text for token in (before, after))
    if left == "," or "=" in (left, right):
        return " "
    if not gap or left in _TIGHT_BEHIND or right in _TIGHT_BEFORE:
        return ""
    return " "


def _is_keyword(tokens: list[Token], index: int) -> bool:
    """Return whether a token is a word of SQL, and neither a name nor a function."""
    token = tokens[index]
    if token.token_type in _QUOTED:
        return False
    before = tokens[index - 1].text.upper() if index else ""
    after = tokens[index + 1].text.upper() if index + 1 < len(tokens) else ""
    word = token.text.upper()
    is_named = before == "." or (before == "AS" and word not in ("SELECT", "VALUES", "WITH"))
    if is_named or (word in ("LEFT", "RIGHT") and after == "("):
        return False
    if word in _RESERVED or word.endswith(" BY"):
        return True
    return before in _BEHIND.get(word, ()) or after in _BEFORE.get(word, ())
