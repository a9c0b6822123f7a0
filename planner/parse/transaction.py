"""BEGIN, COMMIT, ROLLBACK, SAVEPOINT, SET TRANSACTION and SET CONSTRAINTS, as PostgreSQL's grammar has them."""

from __future__ import annotations

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.parse.tokens import TokenReader
from sparkwave.planner.statements import Transaction

_LEVELS = (("SERIALIZABLE",), ("REPEATABLE", "READ"), ("READ", "COMMITTED"), ("READ", "UNCOMMITTED"))


def parse_begin(reader: TokenReader) -> Transaction:
    reader.expect("BEGIN")
    _work(reader)
    return _with_modes("BEGIN", "begin", reader)


def parse_start(reader: TokenReader) -> Transaction:
    reader.expect("START", "TRANSACTION")
    return _with_modes("START TRANSACTION", "begin", reader)


def parse_commit(reader: TokenReader) -> Transaction:
    """Parse COMMIT or END."""
    chains = _end(reader)
    reader.finish()
    return Transaction("COMMIT", "commit", chains=chains)


def parse_rollback(reader: TokenReader) -> Transaction:
    """Parse ROLLBACK or ABORT; to a savepoint it ends nothing."""
    chains = _end(reader)
    if not chains and reader.accept("TO"):
        reader.accept("SAVEPOINT")
        return Transaction("ROLLBACK", "rollback to", savepoint=_last_identifier(reader))
    reader.finish()
    return Transaction("ROLLBACK", "rollback", chains=chains)


def parse_savepoint(reader: TokenReader) -> Transaction:
    reader.expect("SAVEPOINT")
    return Transaction("SAVEPOINT", "savepoint", savepoint=_last_identifier(reader))


def parse_release(reader: TokenReader) -> Transaction:
    reader.expect("RELEASE")
    reader.accept("SAVEPOINT")
    return Transaction("RELEASE", "release", savepoint=_last_identifier(reader))


def parse_set_transaction(reader: TokenReader) -> Transaction:
    """Parse the part after SET."""
    if reader.accept("SESSION", "CHARACTERISTICS"):
        reader.expect("AS", "TRANSACTION")
        return _with_modes("SET", "characteristics", reader)
    reader.expect("TRANSACTION")
    if reader.peek() == "SNAPSHOT":
        raise _unsupported("SET TRANSACTION SNAPSHOT", reader)
    return _with_modes("SET", "set", reader)


def parse_set_constraints(reader: TokenReader) -> Transaction:
    """Parse the part after SET: `CONSTRAINTS {ALL | name, …} {DEFERRED | IMMEDIATE}`."""
    reader.expect("CONSTRAINTS")
    names = list[tuple[str, int]]()
    if not reader.accept("ALL"):
        names.append(_constraint(reader))
        while reader.accept(","):
            names.append(_constraint(reader))
    if not (reader.accept("DEFERRED") or reader.accept("IMMEDIATE")):
        raise reader.syntax_error()
    reader.finish()
    return Transaction("SET CONSTRAINTS", "set", constraints=tuple(names))


def _constraint(reader: TokenReader) -> tuple[str, int]:
    position = reader.offset + 1
    return reader.name().name, position


def _work(reader: TokenReader) -> None:
    _ = reader.accept("WORK") or reader.accept("TRANSACTION")


def _last_identifier(reader: TokenReader) -> str:
    name = reader.identifier()
    reader.finish()
    return name


def _end(reader: TokenReader) -> bool:
    """Parse the first words of COMMIT and ROLLBACK. Returns whether AND CHAIN is among them."""
    word = reader.identifier().upper()
    if reader.peek() == "PREPARED":
        raise _unsupported(f"{word} PREPARED", reader)
    _work(reader)
    if not reader.accept("AND"):
        return False
    chains = not reader.accept("NO")
    reader.expect("CHAIN")
    return chains


def _with_modes(tag: str, action: str, reader: TokenReader) -> Transaction:
    """Return a statement with the modes that follow; nothing else may follow."""
    read_only: bool | None = None
    modes: dict[str, str] = {}
    while not reader.at_end:
        if reader.accept("READ", "ONLY"):
            read_only = True
        elif reader.accept("READ", "WRITE"):
            read_only = False
        elif reader.accept("ISOLATION", "LEVEL"):
            level = next((level for level in _LEVELS if reader.accept(*level)), None)
            if level is None:
                raise reader.syntax_error()
            modes["isolation"] = " ".join(level).lower()
        elif reader.accept("DEFERRABLE"):
            modes["deferrable"] = "on"
        elif reader.accept("NOT", "DEFERRABLE"):
            modes["deferrable"] = "off"
        else:
            raise reader.syntax_error()
        reader.accept(",")
    return Transaction(tag, action, read_only, modes=tuple(modes.items()))


def _unsupported(what: str, reader: TokenReader) -> Error:
    return Error(f"{what} is not supported", errors.FEATURE_NOT_SUPPORTED, position=reader.offset + 1)
