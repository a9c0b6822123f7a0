"""What a section found, as plain data: tables, plots and aims; and the files that keep it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "results"

Cell = str | int | float | None


@dataclass(frozen=True)
class Bars:
    """Bars of several series, side by side for each label. The axis is logarithmic."""

    name: str
    y_label: str
    labels: Sequence[str]
    series: Mapping[str, Sequence[float | None]]


@dataclass(frozen=True)
class Lines:
    """Lines of points on two logarithmic axes."""

    name: str
    x_label: str
    y_label: str
    series: Mapping[str, Sequence[tuple[float, float]]]


@dataclass(frozen=True)
class Aim:
    """What was to be reached, and what was measured of it."""

    what: str
    target: str
    measured: str
    is_met: bool


@dataclass(frozen=True)
class Table:
    """One table of results. Floats are shown with three digits. `losses` say where another system is ahead."""

    title: str
    note: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    plot: Bars | Lines | None = None
    aims: Sequence[Aim] = ()
    losses: Sequence[str] = ()


@dataclass(frozen=True)
class Section:
    """All tables of a section; when, where and from which commit they were measured, and the seconds that it took."""

    name: str
    date: str
    commit: str
    machine: str
    seconds: float
    tables: Sequence[Table]


def save(section: Section) -> None:
    """Write it to results/<name>.json, over what an earlier run has found."""
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{section.name}.json").write_text(json.dumps(asdict(section), indent=1) + "\n")


def load(name: str) -> Section | None:
    """What the last run of a section has found; None when there was none."""
    file = FOLDER / f"{name}.json"
    if not file.exists():
        return None
    values = json.loads(file.read_text())
    return Section(**{**values, "tables": [_table(table) for table in values["tables"]]})


def _table(values: dict[str, Any]) -> Table:
    plot = values["plot"] and (Bars if "labels" in values["plot"] else Lines)(**values["plot"])
    return Table(**{**values, "plot": plot, "aims": [Aim(**aim) for aim in values["aims"]]})
