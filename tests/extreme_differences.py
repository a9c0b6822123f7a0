"""Values of views over extreme values that are not PostgreSQL's, and why. A comparison looks away from nothing else."""

from __future__ import annotations

import re
from dataclasses import dataclass

ANY = ""
NULL = "^NULL$"


@dataclass(frozen=True)
class Difference:
    """Patterns of a call, of PostgreSQL's value, `!SQLSTATE message` for an error, and of the view's."""

    call: str
    postgres: str
    ours: str
    why: str


_NUMERIC = "docs/limits.md: a numeric has 19 digits before the point, and is neither NaN nor infinite"
_JSONB = "docs/limits.md: jsonb is compared and cast to text as its text without spaces"

DIFFERENCES = (
    Difference(ANY, "^!22003 value out of range: (over|under)flow", "^-?(Infinity|0)$",
               "docs/limits.md: floats overflow to infinity and underflow to zero"),
    Difference(ANY, r"^-?(\d{20,}(\.\d+)?|Infinity)$|^NaN$", NULL, _NUMERIC),
    Difference(r"^pow|\^ ", "^!2201F a negative number", "^[01]$",
               "docs/limits.md: functions of numerics have a double's precision, where a large fraction is none"),
    Difference(r"^date_trunc\('\w+', a8\)$", ANY, ANY, "RisingWave's date_trunc of a date is a timestamp"),
    Difference("^right", ANY, "^$", "the least integer is no position"),
    Difference("^age", r"^-?\d{4,6} years|^00:00:00$", NULL,
               "PostgreSQL 15 takes infinity for a time in the year 294276"),
    Difference("^date_(bin|trunc)", "^-?infinity$", NULL,
               "PostgreSQL 15 does not look at the unit or stride of an infinite time"),
    Difference("~~|LIKE|SIMILAR", "^[tf]$", NULL,
               "PostgreSQL does not see that a pattern ends in its escape character where the text ends before"),
    Difference("^regexp_(count|instr)", "^!2201B|^NULL$", "^0$", "where no text is left nobody reads the pattern"),
    Difference("^json_strip_nulls", r"^[\[{]", r"^[\[{]", "docs/limits.md: parts of json have jsonb's spaces"),
    Difference("^json_build", r"e\+\d", r"e\d", "docs/limits.md: parts of json print numbers as jsonb does"),
    Difference("^a13 [<>]|^greatest", ANY, ANY, _JSONB),
    Difference("^CAST.a13 AS char|#>>|->>", r"^[\[{]", r"^[\[{]", _JSONB),
    Difference("^jsonb_build", r"0{30}", r"\de[+-]\d", "the same number, in another form"),
    Difference("^make_interval", "days", NULL, "PostgreSQL 15 does not see that weeks and days overflow"),
    Difference("^make_interval", r"\d{7,}:", ANY, "open: intervals of more than 292 years of hours are not read"),
    Difference("^width_bucket.a5", "^(2|-2147483648)$", ANY, "PostgreSQL 15 rounds up to the bucket behind the last"),
    Difference("AT TIME ZONE", ANY, NULL, "a zone is a name here, not a POSIX specification such as -1"),
    Difference("^a12 / b5", ANY, ANY, "an interval is divided by multiplying it, with a double's precision"),
    Difference("^a9 - b9", "days", NULL, "a time between 290,000 years and its negation only"),
    Difference("^a[28] [+-] b[28]$", "^!22008", ANY, "open: days beyond PostgreSQL's are not told from others"),
)  # fmt: skip


def explained(call: str, postgres: str | None, ours: str | None) -> bool:
    """Whether one of the differences is that of a call's value."""
    texts = (call, *("NULL" if value is None else value for value in (postgres, ours)))
    return any(
        all(re.search(pattern, text) for pattern, text in zip((d.call, d.postgres, d.ours), texts, strict=True))
        for d in DIFFERENCES
    )
