"""The connector `nexmark`: the events of an auction site, each of which follows from its number.

Mix, ids, hot keys and distributions are those of the generator that RisingWave uses (github.com/risingwavelabs/
nexmark-rs, src/event.rs and src/config.rs); its random numbers are DuckDB's hashes of the event's number here. To find
a seller, that generator uses the auction's id in place of the event's. Here the event's id is used, as in the original
(github.com/nexmark/nexmark, AuctionGenerator.java), so that sellers are people of the time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sparkwave.catalog.model import Column
from sparkwave.catalog.names import literal, quote
from sparkwave.catalog.source_model import Source
from sparkwave.executor.sources.generator import Generator

_DEFAULTS = {
    "active.people": 1000, "in.flight.auctions": 100, "avg.person.byte.size": 200, "avg.auction.byte.size": 500,
    "avg.bid.byte.size": 100, "hot.seller.ratio": 4, "hot.auction.ratio": 2, "hot.bidder.ratio": 4,
    "hot.channel.ratio": 2, "hot.seller.ratio.2": 100, "hot.auction.ratio.2": 100, "hot.bidder.ratio.2": 100,
    "first.event.id": 0, "first.event.number": 0, "num.categories": 5, "auction.id.lead": 10, "person.id.lead": 10,
    "person.proportion": 1, "auction.proportion": 3, "bid.proportion": 46, "first.auction.id": 1000,
    "first.person.id": 1000, "first.category.id": 10, "first.event.rate": 10_000, "us.per.unit": 1_000_000,
    "min.event.gap.in.ns": 100_000,
}  # fmt: skip
_STATES = ("az", "ca", "id", "or", "wa", "wy")
_CITIES = (
    "phoenix", "los angeles", "san francisco", "boise", "portland", "bend", "redmond", "seattle", "kent", "cheyenne",
)  # fmt: skip
_FIRST_NAMES = ("peter", "paul", "luke", "john", "saul", "vicky", "kate", "julie", "sarah", "deiter", "walter")
_LAST_NAMES = ("shultz", "abrams", "spencer", "white", "bartels", "walton", "smith", "jones", "noris")
_HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
_CHANNELS = 10_000
_TYPES = ("person", "auction", "bid")


def nexmark(source: Source, columns: tuple[Column, ...]) -> Generator:
    """Return the generator of a source: of rows of one type, or of events without `nexmark.table.type`."""
    given = {name.removeprefix("nexmark."): value for name, value in source.options.items()}
    numbers = {name: int(given.get(name, default)) for name, default in _DEFAULTS.items()}
    events = _Events(numbers, int(given["base.time"]))
    table = given.get("table.type", "").lower()
    count = None if "event.num" not in given else events.rows_of(table, int(given["event.num"]))
    gap = numbers["min.event.gap.in.ns"]
    rate = max(1_000_000_000 // gap, 1) if gap else None
    if given.get("use.real.time") == "true":
        per_second = numbers["first.event.rate"] * 1_000_000 // numbers["us.per.unit"]
        rate = max(events.rows_of(table, per_second), 1)
    return Generator(_row(events, table, columns), count, rate)


def _row(events: _Events, table: str, columns: tuple[Column, ...]) -> str:
    """Return the select list for each number `n`: the fields of one type, or an event with the others' fields NULL."""
    if table:
        number = events.number_of(table, "n")
        fields = events.fields(table, number)
        return ", ".join(f"{fields[column.name]} AS {quote(column.name)}" for column in columns)
    number = f"(n + {events.options['first.event.number']})"
    place = f"{number} % {events.cycle}"
    first, second = events.options["person.proportion"], events.options["auction.proportion"]
    kind = f"CASE WHEN {place} < {first} THEN 0 WHEN {place} < {first + second} THEN 1 ELSE 2 END"
    made = [f"CAST({kind} AS BIGINT) AS event_type"]
    for index, name in enumerate(_TYPES):
        packed = ", ".join(f"{quote(field)} := {value}" for field, value in events.fields(name, number).items())
        made.append(f"CASE WHEN ({kind}) = {index} THEN struct_pack({packed}) END AS {name}")
    return ", ".join(made)


@dataclass(frozen=True)
class _Events:
    """SQL of events, over SQL of their numbers."""

    options: Mapping[str, int]
    base_ms: int

    @property
    def cycle(self) -> int:
        return sum(self.options[f"{name}.proportion"] for name in _TYPES)

    def _place(self, table: str) -> tuple[int, int]:
        """Return how many events of each cycle are of a type, and how many come before them."""
        counts = [self.options[f"{name}.proportion"] for name in _TYPES]
        index = _TYPES.index(table)
        return counts[index], sum(counts[:index])

    def rows_of(self, table: str, events: int) -> int:
        """Return how many of the first `events` events are of a type, or of any type without one."""
        if not table:
            return events
        count, before = self._place(table)
        return events // self.cycle * count + min(max(events % self.cycle - before, 0), count)

    def number_of(self, table: str, row: str) -> str:
        """Return SQL of the number of the event that is the nth of its type."""
        count, before = self._place(table)
        return f"({row} // {count} * {self.cycle} + {before} + {row} % {count} + {self.options['first.event.number']})"

    def fields(self, table: str, number: str) -> dict[str, str]:
        """Return the columns of an event of a type, with their SQL."""
        event = f"({number} + {self.options['first.event.id']})"
        return {"person": self._person, "auction": self._auction, "bid": self._bid}[table](number, event)

    def _person(self, number: str, event: str) -> dict[str, str]:
        return {
            "id": f"CAST({self._last_person(event)} + {self.options['first.person.id']} AS BIGINT)",
            "name": f"{_pick(event, 'first', _FIRST_NAMES)} || ' ' || {_pick(event, 'last', _LAST_NAMES)}",
            "email_address": f"{_text(event, 'user', 7)} || '@' || {_text(event, 'host', 5)} || '.com'",
            "credit_card": " || ' ' || ".join(f"printf('%04d', {_below(event, f'card{i}', 10_000)})" for i in range(4)),
            "city": _pick(event, "city", _CITIES),
            "state": _pick(event, "state", _STATES),
            "date_time": self._time(number),
            "extra": self._extra(event, "avg.person.byte.size", 8 + 13 + 17 + 19 + 8 + 2),
        }

    def _auction(self, number: str, event: str) -> dict[str, str]:
        first = self.options
        in_flight = first["in.flight.auctions"] * self.cycle // first["auction.proportion"]
        # An auction lasts about until as many others have begun as are open at a time.
        later = self._ms(f"({number} + {in_flight})")
        length = _below(event, "expires", f"greatest(({later} - {self._ms(number)}) * 2, 1)")
        initial = _price(event, "initial")
        category = _below(event, "category", first["num.categories"])
        hot = f"{self._last_person(event)} // {first['hot.seller.ratio.2']} * {first['hot.seller.ratio.2']}"
        return {
            "id": f"CAST({self._last_auction(event)} + {first['first.auction.id']} AS BIGINT)",
            "item_name": _text(event, "item", 20),
            "description": _text(event, "description", 100),
            "initial_bid": initial,
            "reserve": f"{initial} + {_price(event, 'reserve')}",
            "date_time": self._time(number),
            "expires": f"{self._time(number)} + to_milliseconds(1 + {length})",
            "seller": self._person_id(event, "seller", hot),
            "category": f"CAST({first['first.category.id']} + {category} AS BIGINT)",
            "extra": self._extra(event, "avg.auction.byte.size", 8 + 20 + 100 + 5 * 8),
        }

    def _bid(self, number: str, event: str) -> dict[str, str]:
        first = self.options
        last = self._last_auction(event)
        oldest = f"greatest({last} - {first['in.flight.auctions']}, 0)"
        hot = f"{last} // {first['hot.auction.ratio.2']} * {first['hot.auction.ratio.2']}"
        recent = f"({last} - {oldest} + 1 + {first['auction.id.lead']})"
        other = f"{oldest} + {_below(event, 'auction', recent)}"
        is_hot = f"{_below(event, 'is hot auction', first['hot.auction.ratio'])} > 0"
        bidder = f"{self._last_person(event)} // {first['hot.bidder.ratio.2']} * {first['hot.bidder.ratio.2']} + 1"
        hot_channel = f"{_below(event, 'is hot channel', first['hot.channel.ratio'])} > 0"
        channel = _below(event, "channel", _CHANNELS)
        hot_url = _url(_below(event, "hot channel", len(_HOT_CHANNELS)))
        url = f"{_url(channel)} || if({channel} % 10 = 0, '', '&channel_id=' || {channel} * 214013 % 2147483647)"
        return {
            "auction": f"CAST(if({is_hot}, {hot}, {other}) + {first['first.auction.id']} AS BIGINT)",
            "bidder": self._person_id(event, "bidder", bidder),
            "price": _price(event, "price"),
            "channel": f"if({hot_channel}, {_pick(event, 'hot channel', _HOT_CHANNELS)}, 'channel-' || {channel})",
            "url": f"if({hot_channel}, {hot_url}, {url})",
            "date_time": self._time(number),
            "extra": self._extra(event, "avg.bid.byte.size", 4 * 8),
        }

    def _last_person(self, event: str) -> str:
        """Return SQL of the number of the newest person at an event."""
        count, _ = self._place("person")
        return f"({event} // {self.cycle} * {count} + least({event} % {self.cycle}, {count - 1}))"

    def _last_auction(self, event: str) -> str:
        """Return SQL of the number of the newest auction at an event; at a person, it is from the cycle before."""
        count, before = self._place("auction")
        place = f"least({event} % {self.cycle} - {before}, {count - 1})"
        return f"({event} // {self.cycle} * {count} + {place})"

    def _person_id(self, event: str, what: str, hot: str) -> str:
        people = f"({self._last_person(event)} + 1)"
        active = f"least({people}, {self.options['active.people']})"
        lead, ratio = self.options["person.id.lead"], self.options[f"hot.{what}.ratio"]
        other = f"{people} - {active} + {_below(event, what, f'({active} + {lead})')}"
        is_hot = f"{_below(event, f'is hot {what}', ratio)} > 0"
        return f"CAST(if({is_hot}, {hot}, {other}) + {self.options['first.person.id']} AS BIGINT)"

    def _ms(self, number: str) -> str:
        """Return SQL of the time of an event in milliseconds."""
        unit, rate = self.options["us.per.unit"], self.options["first.event.rate"]
        return f"({self.base_ms} + {number} * {unit} // ({rate} * 1000))"

    def _time(self, number: str) -> str:
        return f"make_timestamp({self._ms(number)} * 1000)"

    def _extra(self, event: str, size: str, others: int) -> str:
        """Return SQL of text that fills a row up to its average size, give or take a fifth."""
        wanted = self.options[size] - others
        if wanted <= 0:
            return "''"
        spread = (wanted + 2) // 5
        length = f"({wanted - spread} + {_below(event, 'extra length', 2 * spread)})" if spread else str(wanted)
        return f"left({_text(event, 'extra', wanted + spread)}, CAST({length} AS BIGINT))"


def _below(event: str, what: str, limit: int | str) -> str:
    """Return SQL of a random number from 0 to below the limit; `what` makes it differ within an event."""
    return f"CAST(hash({event}, {literal(what)}) % CAST({limit} AS UBIGINT) AS BIGINT)"


def _pick(event: str, what: str, values: tuple[str, ...]) -> str:
    return f"[{', '.join(map(literal, values))}][1 + {_below(event, what, len(values))}]"


def _text(event: str, what: str, length: int) -> str:
    """Return SQL of a text of small letters, from the digits of hashes."""
    pieces = (f"md5(concat({event}, '/{what}{piece}'))" for piece in range(-(-length // 32)))
    return f"translate(left(concat('', {', '.join(pieces)}), {length}), '0123456789', 'ghijklmnop')"


def _price(event: str, what: str) -> str:
    fraction = f"CAST(hash({event}, {literal(what)}) AS DOUBLE) / 18446744073709551616"
    return f"CAST(round(pow(10, {fraction} * 6) * 100) AS BIGINT)"


def _url(channel: str) -> str:
    parts = " || '/' || ".join(_text(f"({channel})", f"url{i}", 4) for i in range(3))
    return f"'https://www.nexmark.com/' || {parts} || '/item.htm?query=1'"
