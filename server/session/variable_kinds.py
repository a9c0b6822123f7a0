"""The kinds of values of session variables and system parameters: each converts a user's text to the text of SHOW.

Each raises ValueError with the reason when it refuses a text.
"""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Callable
from functools import lru_cache

from sparkwave.catalog.names import parse_search_path, quote_if_needed
from sparkwave.planner.plan.parallelism import LARGEST

INT32, U32, U64 = (-(2**31), 2**31 - 1), (0, 2**32 - 1), (0, 2**64 - 1)


def boolean(text: str) -> str:
    word = text.strip().lower()
    if word in ("true", "tru", "tr", "t", "on", "1", "yes", "ye", "y"):
        return "true"
    if word in ("false", "fals", "fal", "fa", "f", "off", "of", "0", "no", "n"):
        return "false"
    raise ValueError("Invalid bool")


def text(text: str) -> str:
    return text


def integer(low: int, high: int) -> Callable[[str], str]:
    def normalise(text: str) -> str:
        if not re.fullmatch(r"-?\d+", text.strip()):
            raise ValueError("invalid digit found in string")
        value = int(text)
        if not low <= value <= high:
            raise ValueError(f"value {value} out of range, expect {low}..{high}")
        return str(value)

    return normalise


def one_of(*words: str) -> Callable[[str], str]:
    def normalise(text: str) -> str:
        if text.lower() not in words:
            raise ValueError(f"one of {', '.join(words)} expected")
        return text.lower()

    return normalise


def optional(normalise: Callable[[str], str]) -> Callable[[str], str]:
    """Allow an empty text, which is no value; `default` is the same."""
    return lambda text: "" if text.strip().lower() in ("", "default") else normalise(text)


def schemas(text: str) -> str:
    """Return a list of schemas as PostgreSQL prints it."""
    return ", ".join(map(quote_if_needed, parse_search_path(text)))


# Plain hours count east of Greenwich; as in POSIX, hours after a name or with minutes count west.
_HOURS = re.compile(r"[+-]?\d{1,2}(?:\.\d*)?")
_POSIX = re.compile(r"(?:[A-Za-z]{3,}|<[^<>]+>)?([+-]?\d{1,2})(?::?(\d\d))?")


def time_zone(text: str) -> str:
    """Return the name of a time zone, for a name in any case or an offset (PostgreSQL's docs, 8.5.3 and B.5)."""
    if text.upper() in ("UTC", "GMT"):
        return "UTC"
    name = _zone_names().get(text.lower())
    if name is not None:
        return name
    posix = _POSIX.fullmatch(text)
    if _HOURS.fullmatch(text):
        west, is_whole = -int(float(text)), float(text).is_integer()
    elif posix is not None:
        west, is_whole = int(posix[1]), not int(posix[2] or 0)
    else:
        raise ValueError("Not a valid timezone")
    if not is_whole:
        raise ValueError("a time zone of whole hours, or a name such as Asia/Kolkata expected")
    if not -14 <= west <= 12:
        raise ValueError("an offset of up to 14 hours east or 12 hours west expected")
    return f"Etc/GMT{west:+d}" if west else "UTC"


@lru_cache(maxsize=1)
def _zone_names() -> dict[str, str]:
    """Return names of time zones by their lower-case form."""
    return {name.lower(): name for name in zoneinfo.available_timezones()}


_MILLISECONDS = {"us": 0.001, "ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


def duration(text: str) -> str:
    """Convert a duration, by default in ms, to the largest unit that holds it whole, as PostgreSQL does."""
    match = re.fullmatch(r"\s*(-?\d+(?:\.\d*)?|\.\d+)\s*([a-zA-Z]*)\s*", text)
    if match is None or (match[2] or "ms") not in _MILLISECONDS:
        raise ValueError("a duration expected, such as 30s; units are us, ms, s, min, h and d")
    value = round(float(match[1]) * _MILLISECONDS[match[2] or "ms"])
    if not 0 <= value <= 2**31 - 1:
        raise ValueError(f"{value} ms is outside the valid range (0 .. 2147483647)")
    return duration_text(value)


def duration_text(milliseconds: int) -> str:
    fits = [unit for unit, factor in _MILLISECONDS.items() if unit != "us" and milliseconds % factor == 0]
    unit = fits[-1] if milliseconds else "ms"
    return f"{milliseconds // int(_MILLISECONDS[unit])}{unit}"


@lru_cache(maxsize=256)
def milliseconds(shown: str) -> int:
    """Return the milliseconds of a duration that `duration` has printed."""
    match = re.fullmatch(r"(\d+)([a-z]+)", shown)
    assert match is not None
    return int(match[1]) * int(_MILLISECONDS[match[2]])


def vnodes(text: str) -> str:
    """Return the number of vnodes of new jobs, within RisingWave's limits (check_streaming_max_parallelism)."""
    value = int(integer(*U64)(text))
    if value <= 1:
        raise ValueError("STREAMING_MAX_PARALLELISM must be greater than 1")
    if value > LARGEST:
        raise ValueError(f"STREAMING_MAX_PARALLELISM must be less than or equal to {LARGEST}")
    return str(value)


def retention(text: str) -> str:
    """Return a retention in ms: 0, or at least 600,000, as in RisingWave (src/common/src/system_param/mod.rs)."""
    value = integer(*U64)(text)
    if 0 < int(value) < 600_000:
        raise ValueError(f"value {value} out of range, expect 0 or 600000..")
    return value


def switch(text: str) -> str:
    """Return a boolean as PostgreSQL shows it."""
    return "on" if boolean(text) == "true" else "off"


_STYLES = {"ISO": "ISO", "SQL": "SQL", "GERMAN": "German"}
_ORDERS = {"MDY": "MDY", "US": "MDY", "NONEURO": "MDY", "NONEUROPEAN": "MDY", "DMY": "DMY", "EURO": "DMY"}
_ORDERS |= {"EUROPEAN": "DMY", "YMD": "YMD"}


def date_style(text: str, current: str) -> str:
    """Return a DateStyle in which a value sets the style, the order, or both (PostgreSQL: `check_datestyle`)."""
    words = [word.strip().upper() for word in text.split(",")]
    if words == ["DEFAULT"]:
        return "ISO, MDY"
    styles: set[str] = set()
    orders: set[str] = set()
    for word in words:
        style = "Postgres" if word.startswith("POSTGRES") else _STYLES.get(word)
        if style is None and word not in _ORDERS:
            raise ValueError("ISO, SQL, Postgres or German, and MDY, DMY or YMD expected")
        (orders if style is None else styles).add(style or _ORDERS[word])
    if len(styles) > 1 or len(orders) > 1:
        raise ValueError("conflicting specifications")
    style, _, order = current.partition(", ")
    if "German" in styles and not orders:
        order = "DMY"
    return f"{next(iter(styles), style)}, {next(iter(orders), order)}"


def isolation(text: str) -> str:
    return one_of("read committed", "read uncommitted", "repeatable read", "serializable", "default")(text)


def decoupling(text: str) -> str:
    """Return a value of RisingWave's SinkDecouple (src/common/src/session_config/sink_decouple.rs)."""
    words = {"true": "enable", "enable": "enable", "false": "disable", "disable": "disable", "default": "default"}
    if text.lower() not in words:
        raise ValueError("one of default, enable, disable expected")
    return words[text.lower()]


def price(text: str) -> str:
    """Return an amount of money of 0 or more, in plain digits."""
    if not re.fullmatch(r"\d{1,12}(\.\d{1,12})?", text.strip()):
        raise ValueError("an amount of 0 or more expected, such as 0.05")
    return text.strip()


def decimal(text: str) -> str:
    float(text)
    return text.strip()
