"""EXPLAIN (BACKFILL, COST): the quote of a backfill as text and as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sparkwave.catalog.column_names import readable, unescaped
from sparkwave.catalog.names import DEFAULT_SCHEMA
from sparkwave.planner.backfill.cost_model import IN_PROCESS, LEAST_FINISHED, SERVERLESS, STEADY, Engine, Quote
from sparkwave.planner.backfill.estimates import Estimate, InputSize
from sparkwave.planner.plan.edits import STORED, stored_inputs
from sparkwave.planner.plan.nodes import Scan
from sparkwave.planner.plan.stream_plan import StreamPlan


@dataclass(frozen=True)
class Offer:
    """What one engine would do with a backfill: its quote and its steps. `is_taken` marks the engine of a CREATE."""

    quote: Quote
    slices: int
    tasks: int
    stages: int
    is_taken: bool


@dataclass(frozen=True)
class Quoted:
    """A quote for all engines. `price` is that of a core for an hour, 0 for none; `most` is `backfill_max_cost`."""

    plan: StreamPlan
    work: Estimate
    inputs: Mapping[str, InputSize]
    offers: Sequence[Offer]
    price: float
    most: float | None = None
    rate_limit: int | None = None

    @property
    def taken(self) -> Offer:
        return next(offer for offer in self.offers if offer.is_taken)


def as_text(of: Quoted) -> list[str]:
    """Return the lines of a quote."""
    lines = [f"strategy: {of.plan.strategy}{', an edit of the stored rows' if stored_inputs(of.plan) else ''}"]
    lines += [_read(scan, of.inputs[scan.input]) for scan in of.plan.scans if scan.input in of.inputs]
    if computed := _computed(of.plan):
        lines.append(f"compute: {', '.join(computed)} of the stored groups")
    lines.append(f"write: about {_rows(of.work.written_rows)}, {_bytes(of.work.written_bytes)}")
    if of.rate_limit is not None:
        lines.append(f"rate limit: {_rows(of.rate_limit)} a second")
    lines += ["", *_table(_cells(of)), "", *_notes(of)]
    return lines


def _read(scan: Scan, size: InputSize) -> str:
    relation = scan.relation
    name = relation.name if relation.schema == DEFAULT_SCHEMA else relation.qualified_name
    alias = unescaped(scan.alias)
    if alias.lower() != relation.name.lower():
        name += " as stored" if alias == STORED else f" {alias}"
    pruned = size.files - size.read_files
    columns = len(scan.columns)
    text = f"read: {name}, {_rows(size.read_rows)}, {_bytes(size.read_bytes)} of {_several(columns, 'column')}"
    text += f" in {_several(size.read_files, 'file')}"
    return f"{text} ({_several(pruned, 'file')} with {_rows(size.rows - size.read_rows)} skipped)" if pruned else text


def _computed(plan: StreamPlan) -> list[str]:
    """Return the aggregates that an edit computes for stored groups."""
    aggregates = (state.computed for state in plan.states)
    names = dict.fromkeys(call.name for each in aggregates if each is not None for call in each.calls)
    return [readable(name).removeprefix("_") for name in names]


def _cells(of: Quoted) -> list[list[str]]:
    head = ["", "engine", "cores", "slices", "tasks", "stages", "memory", "limit", "10 %", "middle", "90 %"]
    paid = of.price > 0
    rows = [head + (["cost"] if paid else [])]
    for offer in of.offers:
        quote, engine = offer.quote, offer.quote.engine
        rows.append(
            [
                "*" if offer.is_taken else "",
                _label(engine),
                f"{engine.cores:g}",
                str(offer.slices),
                str(offer.tasks),
                str(offer.stages),
                _bytes(of.work.memory),
                _bytes(engine.memory_bytes),
                *map(seconds_text, (quote.low, quote.middle, quote.high)),
            ]
            + ([money_text(quote.money(of.price)[1])] if paid and engine.paid_cores else [""] if paid else [])
        )
    return rows


def _label(engine: Engine) -> str:
    return f"{engine.kind} {engine.name}" if engine.kind == SERVERLESS else engine.name


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if place < 2 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return lines


def _notes(of: Quoted) -> list[str]:
    notes = ["* is the engine that CREATE would take"]
    kinds = {offer.quote.engine.kind: offer.quote.finished for offer in of.offers}
    for kind, number in kinds.items():
        name = "resource groups" if kind == STEADY else kind
        where = "" if kind == IN_PROCESS else " on Spark"
        if number < LEAST_FINISHED:
            notes.append(f"{name}: {_few(number, where)}, so the times are the model's own")
        else:
            notes.append(f"{name}: corrected by {number} finished backfills{where}")
    spilled = sorted(_label(o.quote.engine) for o in of.offers if of.work.memory > o.quote.engine.memory_bytes)
    if spilled:
        notes.append(f"more memory than the limit, so that it spills: {', '.join(spilled)}")
    if of.most is not None:
        notes.append(f"backfill_max_cost: {money_text(of.most)}")
    return notes


def _few(number: int, where: str) -> str:
    finished = "no finished backfill" if not number else f"{_several(number, 'finished backfill')}"
    return f"{finished}{where}, fewer than {LEAST_FINISHED}"


def as_json(of: Quoted) -> list[str]:
    """Return the lines of a quote as one JSON object; times are in seconds."""
    found = {
        "strategy": of.plan.strategy,
        "is_edit": bool(stored_inputs(of.plan)),
        "read": [
            {
                "relation": scan.relation.qualified_name,
                "alias": unescaped(scan.alias),
                "columns": len(scan.columns),
                "rows": of.inputs[scan.input].read_rows,
                "bytes": of.inputs[scan.input].read_bytes,
                "files": of.inputs[scan.input].read_files,
                "skipped_rows": of.inputs[scan.input].rows - of.inputs[scan.input].read_rows,
                "skipped_files": of.inputs[scan.input].files - of.inputs[scan.input].read_files,
            }
            for scan in of.plan.scans
            if scan.input in of.inputs
        ],
        "computed_of_stored_groups": _computed(of.plan),
        "write": {"rows": round(of.work.written_rows), "bytes": round(of.work.written_bytes)},
        "work": of.work.dump(),
        "rate_limit": of.rate_limit,
        "max_cost": of.most,
        "engines": [_offer(offer, of) for offer in of.offers],
    }
    return json.dumps(found, indent=2, ensure_ascii=False).splitlines()


def _offer(offer: Offer, of: Quoted) -> dict[str, object]:
    quote, engine = offer.quote, offer.quote.engine
    found: dict[str, object] = {
        "engine": engine.kind,
        "name": engine.name,
        "taken": offer.is_taken,
        "cores": engine.cores,
        "slices": offer.slices,
        "tasks": offer.tasks,
        "stages": offer.stages,
        "memory_bytes": round(of.work.memory),
        "memory_limit_bytes": engine.memory_bytes,
        "start": round(engine.start_s, 3),
        "seconds": _band((quote.low, quote.middle, quote.high), 3),
        "finished_backfills": quote.finished,
        "is_corrected": quote.finished >= LEAST_FINISHED,
    }
    if of.price > 0 and engine.paid_cores:
        found["cost"] = _band(quote.money(of.price), 9)
    return found


def _band(numbers: tuple[float, float, float], digits: int) -> dict[str, float]:
    return {name: round(n, digits) for name, n in zip(("p10", "p50", "p90"), numbers, strict=True)}


def _several(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _rows(number: float) -> str:
    return f"{round(number):,} row{'' if round(number) == 1 else 's'}"


def _bytes(number: float) -> str:
    """Return a size in the largest unit of which there is one."""
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "B" or number >= 10 else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} TB"


def seconds_text(seconds: float) -> str:
    """Return a duration in two or three digits."""
    if seconds >= 90:
        minutes = seconds / 60
        return f"{minutes:.1f} min" if minutes < 90 else f"{minutes / 60:.1f} h"
    return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.0f} s"


def money_text(amount: float) -> str:
    """Return an amount of money in two decimals, and a small one in as many as show two digits of it."""
    decimals = 2 if amount <= 0 else max(2, 1 - math.floor(math.log10(amount)))
    return f"{amount:.{decimals}f}"
