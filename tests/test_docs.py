"""Links in the README and the docs lead somewhere, and what they name in code exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links(page: Path) -> None:
    links = re.findall(r"\[([^\]]+)\]\((?!https?:)([^)#]+)\)", page.read_text())
    assert links
    for text, target in links:
        file = page.parent / target
        assert file.exists(), f"{page.name}: {target}"
        name = re.fullmatch(r"`(?:\w+\.)?(\w+)`", text)
        if name and file.suffix == ".py":
            assert re.search(rf"\b(?:def|class) {name[1]}\b", file.read_text()), f"{page.name}: {text} in {target}"


def test_the_rooms_are_there() -> None:
    """docs/contributing.md names every folder of the code, and files that exist."""
    page = (ROOT / "docs" / "contributing.md").read_text()
    for path in re.findall(r"`((?:server|executor|planner|catalog|tests)/[\w./]+\w)`", page):
        assert (ROOT / path).exists(), path
    layers = ("server", "executor", "planner", "catalog")
    rooms = {file.parent.relative_to(ROOT) for layer in layers for file in (ROOT / layer).glob("*/*.py")}
    assert not [str(room) for room in rooms if f"(../{room})" not in page and room.name != "demo"]
