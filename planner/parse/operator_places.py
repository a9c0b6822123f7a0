"""Where operators are in the text of a statement; sqlglot keeps the places of names and constants alone."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokens import Token

from sparkwave.planner.parse.strict import SIGN, StrictTokenizer

# The text of a statement, among the meta data of its tree.
TEXT = "text"

# How operators are written, by their nodes; first as PostgreSQL's errors name them. NOT may be before a word.
SPELLINGS: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.Add: ("+",), exp.Sub: ("-",), exp.Mul: ("*",), exp.Div: ("/",), exp.Mod: ("%",), exp.Pow: ("^",),
    exp.DPipe: ("||",), exp.BitwiseAnd: ("&",), exp.BitwiseOr: ("|",), exp.BitwiseXor: ("#",),
    exp.BitwiseLeftShift: ("<<", "<"), exp.BitwiseRightShift: (">>", ">"),
    exp.EQ: ("=",), exp.NEQ: ("<>", "!="), exp.LT: ("<",), exp.LTE: ("<=",), exp.GT: (">",), exp.GTE: (">=",),
    exp.In: ("=", "IN", "NOT"), exp.Between: (">=", "BETWEEN", "NOT"), exp.Like: ("~~", "LIKE", "NOT"),
    exp.ILike: ("~~*", "ILIKE", "NOT"), exp.SimilarTo: ("~", "SIMILAR", "NOT"), exp.RegexpLike: ("~", "!~"),
    exp.RegexpILike: ("~*", "!~*"), exp.NullSafeEQ: ("=", "IS"), exp.NullSafeNEQ: ("=", "IS"),
    exp.JSONExtract: ("->",), exp.JSONExtractScalar: ("->>",), exp.JSONBExtract: ("#>",),
    exp.JSONBExtractScalar: ("#>>",), exp.ArrayContainsAll: ("@>",), exp.ArrayContainedBy: ("<@",),
    exp.ArrayOverlaps: ("&&",), exp.JSONBContainsTopKey: ("?",), exp.JSONBContainsAnyTopKeys: ("?|",),
    exp.JSONBContainsAllTopKeys: ("?&",), exp.JSONBDeleteAtPath: ("#-",),
    exp.Collate: ("COLLATE",), exp.Neg: ("-",), exp.BitwiseNot: ("~",), exp.Abs: ("@",),
}  # fmt: skip


def operator_position(node: exp.Expr, text: str | None) -> int | None:
    """Return the position of an operator's sign in the statement's text, from 1; None where it cannot be told."""
    written = (node.meta[SIGN],) if SIGN in node.meta else SPELLINGS.get(type(node))
    if text is None or written is None:
        return None
    parts = [part for part in node.iter_expressions() if _starts(part)]
    if not parts:
        return None
    first, rest = (parts[0], parts[1:]) if isinstance(node.this, exp.Expr) and not _is_unary(node) else (None, parts)
    after = (
        max((part.meta["end"] for part in first.find_all(exp.Expr) if "end" in part.meta), default=-1) if first else -1
    )
    before = min((start for part in rest for start in _starts(part) if start > after), default=len(text))
    between = [token for token in _tokens(text) if after < token.start < before and token.text.upper() in written]
    if not between:
        return None
    return between[-1 if _is_unary(node) else 0].start + 1


def _is_unary(node: exp.Expr) -> bool:
    return isinstance(node, exp.Neg | exp.BitwiseNot | exp.Abs)


def _starts(node: exp.Expr) -> list[int]:
    return [part.meta["start"] for part in node.find_all(exp.Expr) if "start" in part.meta]


def _tokens(text: str) -> list[Token]:
    return StrictTokenizer(dialect="postgres").tokenize(text)


def parenthesis_before(node: exp.Expr, text: str | None) -> int | None:
    """Return the position of the parenthesis before the SELECT of a subquery, from 1; None where it cannot be told."""
    starts = _starts(node)
    if text is None or not starts:
        return None
    tokens = [token for token in _tokens(text) if token.start < min(starts)]
    while tokens and tokens[-1].text.upper() != "SELECT":
        tokens.pop()
    return tokens[-2].start + 1 if len(tokens) > 1 and tokens[-2].text == "(" else None
