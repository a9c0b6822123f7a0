"""Reads a statement token by token, for the statements that sqlglot does not know."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import ClassVar, TypeVar

from sqlglot.dialects import Postgres
from sqlglot.errors import TokenError
from sqlglot.tokens import Token, TokenType

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lazy import lazy
from sparkwave.planner.statements import Name

T = TypeVar("T")
_STRINGS = frozenset({TokenType.STRING, TokenType.BYTE_STRING, TokenType.NATIONAL_STRING, TokenType.HEREDOC_STRING})


class _Tokenizer(Postgres.Tokenizer):
    """Postgres' tokens throughout: sqlglot's own tokenizer takes the text after SHOW, EXPLAIN, … as one string."""

    COMMANDS: ClassVar[set[TokenType]] = set()


def tokenize(sql: str) -> list[Token]:
    """Return the tokens of a text. Raises Error 42601 for an unterminated string or comment."""
    try:
        return _Tokenizer().tokenize(sql)
    except TokenError as error:
        raise _unterminated(sql, str(error.__cause__)) from error


_MISSING = re.compile(r"Missing (?P<mark>\S+) from \d+:(?P<start>\d+)")


def _unterminated(sql: str, message: str) -> Error:
    """Return the error for a text whose last token has no end, from the tokenizer's message about it."""
    found = _MISSING.match(message)
    start = int(found["start"]) if found is not None else sql.rfind("/*")
    kind = "/* comment" if found is None else _UNTERMINATED.get(found["mark"], "dollar-quoted string")
    if start < 0 or (found is None and not sql.startswith("/*", start)):
        return Error("unterminated quoted string or comment", errors.SYNTAX_ERROR, position=max(len(sql.rstrip()), 1))
    told = f'unterminated {kind} at or near "{sql[start:]}"'
    return Error(told, errors.SYNTAX_ERROR, position=start + 1)


_UNTERMINATED = {"'": "quoted string", '"': "quoted identifier"}


_COMMENT_MARK = re.compile(r"/\*|\*/")


def end_of_comment(sql: str, start: int) -> int:
    """Return where the comment ends that begins with `/*` at `start`; comments may have comments in them."""
    depth = 0
    for mark in _COMMENT_MARK.finditer(sql, start):
        depth += 1 if mark[0] == "/*" else -1
        if not depth:
            return mark.end()
    return len(sql)


# An escape in E'…', or what stands between two.
_ESCAPE = re.compile(r"\\(?:x(?P<hex>[0-9a-fA-F]{1,2})|(?P<octal>[0-7]{1,3})|.)|[^\\]+", re.DOTALL)


def check_escapes(sql: str) -> None:
    """Raise Error 22021 for an E'…' in a text whose bytes, as its escapes give them, are no UTF-8."""
    for token in tokenize(sql):
        if token.token_type != TokenType.BYTE_STRING or (token.text.isascii() and "\0" not in token.text):
            continue
        given = b"".join(map(_bytes_of, _ESCAPE.finditer(sql[token.start + 2 : token.end])))
        try:
            given.decode()
            wrong = b"\0" if b"\0" in given else b""
        except UnicodeDecodeError as error:
            wrong = given[error.start : error.end]
        if wrong:
            quoted = " ".join(f"0x{byte:02x}" for byte in wrong)
            raise Error(f'invalid byte sequence for encoding "UTF8": {quoted}', errors.CHARACTER_NOT_IN_REPERTOIRE)


def _bytes_of(part: re.Match[str]) -> bytes:
    """Return the byte that an escape names; for any other text its own bytes, which pass or fail a check alike."""
    if part["hex"]:
        return bytes([int(part["hex"], 16)])
    return bytes([int(part["octal"], 8) & 0xFF]) if part["octal"] else part[0].encode()


# PostgreSQL's words for a text that is no value of a type.
_INPUT = re.compile(r': "(?P<last>.*)"$|^(?:value )?"(?P<first>.*)" is out of range for type ', re.DOTALL)
# A longer text is not searched.
_MOST_SEARCHED = 1 << 17


def position_of_input(sql: str, message: str) -> int | None:
    """Return the position, from 1, of the only string in a text whose value an error's message quotes."""
    quoted = _INPUT.search(message)
    if quoted is None or len(sql) > _MOST_SEARCHED:
        return None
    value = quoted[quoted.lastgroup or 0]
    found = [token.start for token in tokenize(sql) if token.token_type in _STRINGS and token.text == value]
    return found[0] + 1 if len(found) == 1 else None


def split_statements(sql: str) -> list[tuple[str, int]]:
    """Return the statements of a text, each with its offset in characters; at least one, which may be empty.

    A text without semicolons is one statement, whether its tokens are right or not: parsing tells.
    """
    if ";" not in sql:  # tokens take most of the time of a statement of many constants
        return [(sql, 0)]
    pieces: list[tuple[str, int]] = []
    start, is_empty = 0, True
    for token in tokenize(sql):
        if token.token_type != TokenType.SEMICOLON:
            is_empty = False
            continue
        if not is_empty:
            pieces.append((sql[start : token.start], start))
        start, is_empty = token.end + 1, True
    if not is_empty:
        pieces.append((sql[start:], start))
    return pieces or [("", 0)]


def blank(text: str) -> str:
    """Return a blank text with as many characters and lines."""
    return "".join("\n" if character == "\n" else " " for character in text)


class TokenReader:
    """A cursor over the tokens of one statement. Every failure is a syntax error at the current token."""

    def __init__(self, sql: str, order: str | None = None) -> None:
        """`order` is that of DateStyle, by which literals that are dates are read; None in a definition."""
        self.sql = sql
        self.order = order
        self._index = 0

    @lazy
    def _tokens(self) -> list[Token]:
        return tokenize(self.sql)

    @property
    def offset(self) -> int:
        """The start of the current token in the statement, in characters."""
        return self._tokens[self._index].start if not self.at_end else len(self.sql)

    @property
    def end_of_token(self) -> int:
        """The end of the current token, in characters."""
        return self._tokens[self._index].end + 1 if not self.at_end else len(self.sql)

    @property
    def at_end(self) -> bool:
        return self._index >= len(self._tokens)

    @property
    def rest(self) -> str:
        """The text from the current token to the last one, without semicolons and comments behind it."""
        last = next((t for t in reversed(self._tokens) if t.token_type != TokenType.SEMICOLON), None)
        return self.sql[self.offset : last.end + 1] if last is not None else ""

    def blanked(self) -> str:
        """Return the whole text with blanks before the current token, so that positions in the rest are kept."""
        return blank(self.sql[: self.offset]) + self.sql[self.offset :]

    @property
    def index(self) -> int:
        """The number of tokens before the current one."""
        return self._index

    def text_since(self, index: int) -> str:
        """Return the text of the tokens from an index up to the current one, without comments.

        Between two tokens that are apart is a blank; between two strings a line ends, which makes them one.
        """
        parts, before = list[str](), None
        for token in self._tokens[index : self._index]:
            is_tight = before is None or before.text in ("(", "[") or token.text in (")", "]")
            if before is not None and before.end + 1 < token.start and not is_tight:
                parts.append("\n" if before.token_type in _STRINGS and token.token_type in _STRINGS else " ")
            parts.append(self.sql[token.start : token.end + 1])
            before = token
        return "".join(parts)

    def peek(self, ahead: int = 0) -> str:
        """Return the current word in upper case; quoted text keeps its quotes, so it never equals a keyword."""
        index = self._index + ahead
        if index >= len(self._tokens):
            return ""
        token = self._tokens[index]
        if token.token_type in (TokenType.STRING, TokenType.IDENTIFIER):
            return self.sql[token.start : token.end + 1]
        return token.text.upper()

    def accept(self, *words: str) -> bool:
        """Skip these words if they follow. Returns whether they do."""
        if all(self.peek(ahead) == word for ahead, word in enumerate(words)):
            self._index += len(words)
            return True
        return False

    def skip(self) -> None:
        """Skip the current token, whatever it is."""
        if self.at_end:
            raise self.syntax_error()
        self._index += 1

    def back(self, tokens: int) -> None:
        """Step back over a number of tokens."""
        self._index -= tokens

    def expect(self, *words: str) -> None:
        if not self.accept(*words):
            raise self.syntax_error()

    def ending(self, start: int, stop: int, *words: str) -> int | None:
        """Where the last words between two places begin; semicolons and comments may follow. None without them."""
        tokens = [t for t in self._tokens if start <= t.start < stop and t.token_type != TokenType.SEMICOLON]
        last = tokens[-len(words) :]
        return last[0].start if [token.text.upper() for token in last] == list(words) else None

    def syntax_error(self) -> Error:
        return syntax_error(self.sql, self.offset)

    def finish(self) -> None:
        """Raise a syntax error unless the statement ends here."""
        if not self.at_end:
            raise self.syntax_error()

    def identifier(self) -> str:
        """Read an identifier, folded to lower case unless quoted."""
        if self.at_end:
            raise self.syntax_error()
        token = self._tokens[self._index]
        if token.token_type == TokenType.IDENTIFIER:
            self._index += 1
            return token.text
        if not (token.text[:1].isalpha() or token.text[:1] == "_") or token.token_type == TokenType.STRING:
            raise self.syntax_error()
        self._index += 1
        return token.text.lower()

    def dropped(self) -> tuple[tuple[Name, ...], bool, bool]:
        """Parse `[IF EXISTS] name, … [CASCADE | RESTRICT]` to the end: the names, IF EXISTS, CASCADE."""
        if_exists = self.accept("IF", "EXISTS")
        names = self.comma_separated(self.name)
        cascade = self.cascade()
        self.finish()
        return names, if_exists, cascade

    def cascade(self) -> bool:
        """Read `[CASCADE | RESTRICT]`. Returns whether it is CASCADE."""
        if self.accept("CASCADE"):
            return True
        self.accept("RESTRICT")
        return False

    def placed_identifier(self) -> tuple[str, int]:
        """Read an identifier. Returns it with its position."""
        position = self.offset + 1
        return self.identifier(), position

    def name(self) -> Name:
        """Read `[[database.]schema.]name`."""
        position = self.offset + 1
        parts = [self.identifier()]
        while self.accept("."):
            parts.append(self.identifier())
        if len(parts) > 3:
            raise Error(f"improper qualified name (too many dotted names): {'.'.join(parts)}", errors.SYNTAX_ERROR)
        database, schema, name = ([None] * (3 - len(parts)) + parts)[-3:]
        assert name is not None
        return Name(database, schema, name, position)

    def dotted_word(self) -> str:
        """Read an option's name: `a.b.c`, folded unless quoted; `a.b.1` ends with a number."""
        word = self.identifier()
        while self.accept("."):
            word += "." + (str(self.integer()) if self.peek().isdigit() else self.identifier())
        return word

    def option_name(self) -> str:
        """Read the name of an option in WITH, which is a string, too, in RisingWave."""
        is_string = not self.at_end and self._tokens[self._index].token_type == TokenType.STRING
        return self.string() if is_string else self.dotted_word()

    def integer(self) -> int:
        """Read an integer without a sign. Raises Error 42601 for anything else."""
        text = self.peek()
        if not text.isdigit():
            raise self.syntax_error()
        self._index += 1
        return int(text)

    def string(self) -> str:
        """Read the text of a quoted string, also in dollar quotes."""
        if self.at_end or self._tokens[self._index].token_type not in (TokenType.STRING, TokenType.HEREDOC_STRING):
            raise self.syntax_error()
        self._index += 1
        return self._tokens[self._index - 1].text

    def value(self) -> str:
        """Read a literal or bare word as text: strings lose quotes, words fold to lower case, numbers keep a sign."""
        sign = "-" if self.accept("-") else ""
        if self.at_end:
            raise self.syntax_error()
        token = self._tokens[self._index]
        self._index += 1
        if token.token_type in (TokenType.STRING, TokenType.IDENTIFIER):
            return token.text
        if not (token.text[:1].isalnum() or token.text[:1] == "_"):
            self._index -= 1
            raise self.syntax_error()
        return sign + token.text.lower()

    def secret(self) -> Name | None:
        """Read `SECRET name`, the value of an option, if it follows; else None."""
        if self.peek() != "SECRET" or self.peek(1) in ("", ",", ")"):
            return None
        self._index += 1
        return self.name()

    def comma_separated(self, item: Callable[[], T]) -> tuple[T, ...]:
        items = [item()]
        while self.accept(","):
            items.append(item())
        return tuple(items)

    def skip_parentheses(self) -> tuple[int, int]:
        """Skip parentheses with their contents. Returns the start and end of the contents in the statement."""
        self.expect("(")
        start, depth = self.offset, 1
        while not self.at_end:
            stop = self.offset
            depth += {"(": 1, ")": -1}.get(self.peek(), 0)
            self._index += 1
            if depth == 0:
                return start, stop
        raise self.syntax_error()

    def skip_to(self, *words: str) -> bool:
        """Skip to these words outside of parentheses, or else to the end. Returns whether they follow."""
        depth = 0
        while not self.at_end:
            if depth == 0 and all(self.peek(ahead) == word for ahead, word in enumerate(words)):
                return True
            depth += {"(": 1, ")": -1}.get(self.peek(), 0)
            self._index += 1
        return False

    def parenthesised(self, item: Callable[[], T]) -> tuple[T, ...]:
        """Read one or more items in parentheses, with commas between; `item` reads one."""
        self.expect("(")
        items = self.comma_separated(item)
        self.expect(")")
        return items


def syntax_error(sql: str, offset: int) -> Error:
    """Return Postgres' error for a syntax error at a place in the text."""
    rest = sql[offset:].strip()
    tokens = tokenize(rest)
    if not tokens:
        return Error("syntax error at end of input", errors.SYNTAX_ERROR, position=len(sql) + 1)
    near = rest[tokens[0].start : tokens[0].end + 1]
    return Error(f'syntax error at or near "{near}"', errors.SYNTAX_ERROR, position=offset + 1)
