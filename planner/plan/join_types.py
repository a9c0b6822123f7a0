"""What is known of the types of joins, which have RisingWave's names."""

from __future__ import annotations

from dataclasses import dataclass

INNER, LEFT, FULL, SEMI, ANTI, DYNAMIC, TEMPORAL, TEMPORAL_LEFT, AS_OF, AS_OF_LEFT = (
    "Inner", "LeftOuter", "FullOuter", "LeftSemi", "LeftAnti", "DynamicFilter", "TemporalInner", "TemporalLeftOuter",
    "AsOfInner", "AsOfLeftOuter",
)  # fmt: skip
LEFT_ONLY = (SEMI, ANTI, DYNAMIC)


@dataclass(frozen=True)
class Rule:
    """The delta rule of an operator in words, and the reason for its state."""

    change: str
    state: str


_LOOKS_UP = "none: the other side's rows are looked up in its own table or state, where they are stored once already"
_NEVER_TAKEN_BACK = "none: what was joined once is never taken back"


@dataclass(frozen=True)
class JoinType:
    """The facts about a type of join. With `grows` a join only gains rows if its linear sides only gain rows."""

    words: str
    rule: Rule
    grows: bool = False


_NEAREST = JoinType(
    "an as-of join",
    Rule(
        "ΔL with its nearest row of new R; and for the keys in ΔR, the old left rows with their nearest row of new R, "
        "minus those with that of old R",
        _LOOKS_UP,
    ),
)
JOIN_TYPES: dict[str, JoinType] = {
    INNER: JoinType(
        "a join",
        Rule(
            "the left side's changes meet the right side as it is now, the right side's the left as it was: "
            "ΔL ⋈ new R + old L ⋈ ΔR",
            _LOOKS_UP,
        ),
        grows=True,
    ),
    LEFT: JoinType(
        "a join",
        Rule(
            "ΔL ⋈ new R; and for the keys in ΔR, the old left rows joined again with the new right side, "
            "minus with the old: a first match takes back the row with NULLs",
            _LOOKS_UP,
        ),
    ),
    FULL: JoinType(
        "a full outer join",
        Rule(
            "as a left join; and the right rows without a match, as an anti join of the right side with the left",
            _LOOKS_UP,
        ),
    ),
    SEMI: JoinType(
        "a join",
        Rule(
            "ΔL with a match in new R; and for the keys in ΔR, the old left rows that match now, "
            "minus those that matched before",
            _LOOKS_UP,
        ),
    ),
    ANTI: JoinType(
        "a join",
        Rule(
            "ΔL without a match in new R; and for the keys in ΔR, the old left rows that have no match now, "
            "minus those that had none before",
            _LOOKS_UP,
        ),
    ),
    DYNAMIC: JoinType(
        "a join",
        Rule(
            "ΔL for which the condition holds with the right side's row as it is now; and when that row changed, "
            "the old left rows for which the old and the new row give different answers",
            "none: the row is that of the operator on the right, and the left rows are looked up in the input",
        ),
    ),
    AS_OF: _NEAREST,
    AS_OF_LEFT: _NEAREST,
    TEMPORAL: JoinType(
        "a temporal join",
        Rule(
            "ΔL ⋈ the right side as it is when the row arrives; changes of the right side change nothing",
            _NEVER_TAKEN_BACK,
        ),
        grows=True,
    ),
    TEMPORAL_LEFT: JoinType(
        "a temporal join",
        Rule(
            "ΔL ⋈ the right side as it is when the row arrives, or NULLs; changes of the right side change nothing",
            _NEVER_TAKEN_BACK,
        ),
        grows=True,
    ),
}
