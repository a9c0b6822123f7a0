"""What Prometheus would read of a server."""

from __future__ import annotations

import urllib.request

from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

Labels = frozenset[tuple[str, str]]


class Scrape:
    """The families of one text by name, and its samples."""

    def __init__(self, text: str) -> None:
        self.families: dict[str, Metric] = {family.name: family for family in text_string_to_metric_families(text)}

    @property
    def names(self) -> set[str]:
        """Of everything that a query may name, also where there is no series now."""
        found = set()
        for family in self.families.values():
            suffixes = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}.get(family.type, ("",))
            found |= {family.name + suffix for suffix in suffixes}
        return found

    def series(self, name: str) -> dict[Labels, float]:
        """The values of a name, by labels."""
        samples = (sample for family in self.families.values() for sample in family.samples)
        return {frozenset(sample.labels.items()): sample.value for sample in samples if sample.name == name}

    def value(self, name: str, **labels: str) -> float | None:
        """The one series with at least these labels; None where there is none."""
        found = [value for given, value in self.series(name).items() if labels.items() <= dict(given).items()]
        assert len(found) < 2, f"{len(found)} series of {name} with {labels}"
        return found[0] if found else None


def scrape(port: int, timeout: float = 20) -> Scrape:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=timeout) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain")
        return Scrape(answer.read().decode())
