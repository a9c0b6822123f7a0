"""The dashboard's overview, lineage, tables and quotes in a real browser, over a server without Spark's work.

`--screenshots` makes their pictures in docs/images again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from browsers import dashboard_url
from servers import Server, free_port, wait_until
from test_dashboard_browser import CHROMIUM, Watched, chromium, expect, photograph  # noqa: F401

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(600),
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium (Debian: apt-get install chromium)"),
]
LONG = "Übersicht_über_alle_Fußgängerüberwege_mit_Öffnungszeiten_je_Tag"  # 63 characters
TAG = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A shop: a source, tables, views over views, an index, a sink, a job that is paused, and names that are odd."""
    started = Server(tmp_path_factory.mktemp("pages") / "data", dashboard=f"127.0.0.1:{free_port()}")
    with started.connect() as own:
        for sql in (
            "ALTER SYSTEM SET backfill_engine = auto",
            "CREATE TABLE customers (id int PRIMARY KEY, name varchar, country varchar)",
            "INSERT INTO customers SELECT i, 'customer ' || i, 'country ' || i % 40 FROM range(5000) AS r(i)",
            "CREATE TABLE orders (id bigint PRIMARY KEY, customer int, amount double precision)",
            "INSERT INTO orders SELECT i, i % 5000, i / 7.0 FROM range(100000) AS r(i)",
            "CREATE SOURCE clicks (id int, url varchar) WITH (connector = 'datagen', datagen.rows.per.second = '20') "
            "FORMAT PLAIN ENCODE JSON",
            "CREATE MATERIALIZED VIEW click_count AS SELECT count(*) AS n FROM clicks",
            "CREATE MATERIALIZED VIEW revenue AS SELECT c.country, count(*) AS orders, sum(o.amount) AS amount "
            "FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.country",
            "CREATE MATERIALIZED VIEW best AS SELECT * FROM revenue ORDER BY amount DESC LIMIT 10",
            "CREATE INDEX by_country ON customers (country)",
            "CREATE TABLE alerts (country varchar PRIMARY KEY, orders bigint)",
            "CREATE SINK large INTO alerts AS SELECT country, orders FROM revenue WHERE orders > 100",
            f'CREATE TABLE "{LONG}" ("größe <b>" int PRIMARY KEY, x varchar)',
            f"""INSERT INTO "{LONG}" VALUES (1, '<script>alert(1)</script>'), (2, NULL)""",
            f'CREATE MATERIALIZED VIEW "{TAG}" AS SELECT * FROM "{LONG}"',
            "SET background_ddl = true",
            "CREATE MATERIALIZED VIEW held WITH (backfill_rate_limit = 0) AS SELECT id FROM orders",
        ):
            own.execute(sql)  # type: ignore[arg-type]
        own.execute("AUDIT MATERIALIZED VIEW revenue")
    yield started
    started.kill()


@pytest.fixture
def page(chromium: Any, server: Server) -> Iterator[Any]:  # noqa: F811
    """A wide, light page, which must not complain of anything."""
    context = chromium.new_context(viewport={"width": 1280, "height": 860}, color_scheme="light")
    watched = Watched(context.new_page())
    yield watched.page
    context.close()
    assert not watched.complaints


def show(page: Any, server: Server, path: str) -> None:
    page.goto(f"{dashboard_url(server)}#/{path}")
    expect(page.locator("main[aria-busy]")).to_have_count(0)


def id_of(server: Server, name: str) -> int:
    with server.connect() as own:
        found = own.execute("SELECT id FROM rw_catalog.rw_relations WHERE name = %s", (name,)).fetchone()
    assert found is not None
    return int(found[0])


def test_the_overview_says_what_is_wrong(server: Server, page: Any, photograph: Any) -> None:  # noqa: F811
    show(page, server, "overview")
    expect(page.get_by_role("heading", name="One thing needs a look")).to_be_visible()
    expect(page.get_by_role("listitem").filter(has_text="public.held")).to_contain_text("The rate limit is 0")
    row = page.get_by_role("row").filter(has_text="public.revenue")
    expect(row).to_contain_text("proven")
    expect(row).to_contain_text("at epoch")
    with server.connect() as own:
        for number in range(25):
            own.execute(f"INSERT INTO orders SELECT 1000000 + {number} * 40 + i, i, 1 FROM range(40) AS r(i)")
            page.wait_for_timeout(1000)
    expect(page.get_by_role("img", name="Average time of barriers")).to_be_visible(timeout=60_000)
    photograph(page, "overview")


def test_lineage_by_mouse_and_keyboard(server: Server, page: Any, photograph: Any) -> None:  # noqa: F811
    show(page, server, "lineage")
    picture = page.get_by_role("region", name="Lineage")
    expect(picture.get_by_role("link")).to_have_count(12)
    expect(picture.get_by_role("link", name="public.held")).to_contain_text("paused 0 %")
    photograph(page, "lineage")
    boxes = picture.evaluate(
        "(node) => [...node.querySelectorAll('a')].filter((a) => [...a.querySelectorAll('text')]"
        ".some((text) => text.getBBox().x + text.getBBox().width > 208)).map((a) => a.getAttribute('aria-label'))"
    )
    assert boxes == [], "texts are wider than their boxes"
    sink = picture.get_by_role("link", name="public.large")
    sink.focus()
    page.keyboard.press("ArrowRight")
    expect(picture.get_by_role("link", name="public.alerts")).to_be_focused()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    expect(picture.get_by_role("link", name="public.revenue, ")).to_be_focused()
    page.wait_for_timeout(5000)  # the focus survives that the page is drawn again
    expect(picture.get_by_role("link", name="public.revenue, ")).to_be_focused()
    page.get_by_label("Show only what is connected with").fill("click")
    expect(picture.get_by_role("link")).to_have_count(2)
    picture.get_by_role("link", name="public.click_count").click()
    expect(page.get_by_role("heading", name="Views / public.click_count")).to_be_focused()


def test_names_and_rows_are_text(server: Server, page: Any) -> None:
    show(page, server, f"tables/{id_of(server, LONG)}")
    expect(page.get_by_role("heading", level=1)).to_have_text(f"Tables / public.{LONG}")
    rows = page.get_by_role("region", name="The first rows")
    expect(rows).to_contain_text("<script>alert(1)</script>")
    expect(rows).to_contain_text("NULL")
    page.get_by_role("link", name=TAG).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(f"Views / public.{TAG}")
    assert page.locator("main img, main script").count() == 0


def test_quotes_and_control(server: Server, page: Any, photograph: Any) -> None:  # noqa: F811
    show(page, server, "jobs")
    field = page.get_by_label("A CREATE MATERIALIZED VIEW, INDEX or SINK")
    field.fill(
        "CREATE MATERIALIZED VIEW spending AS SELECT customer, sum(amount) AS total FROM orders GROUP BY customer;"
    )
    page.get_by_role("button", name="Quote").click()
    expect(page.get_by_role("region", name="Quote")).to_contain_text("would be taken")
    photograph(page, "quote")
    field.fill("CREATE MATERIALIZED VIEW spending AS SELECT nope FROM orders")
    page.get_by_role("button", name="Quote").click()
    expect(page.get_by_role("alert")).to_contain_text('column "nope" does not exist')
    page.get_by_role("link", name="public.held").click()
    page.get_by_label("At most").fill("200")
    page.get_by_role("button", name="Set").click()
    expect(page.get_by_text("public.held reads at most 200 rows a second.")).to_be_visible()
    expect(page.get_by_role("img", name="Rows read a second")).to_be_visible()
    page.get_by_role("button", name="Pause public.held").click()
    expect(page.get_by_text("public.held is paused.")).to_be_visible()
    expect(page.get_by_role("button", name="Resume public.held")).to_be_visible()


@pytest.mark.parametrize("width", [390, 1280, 1920])
def test_every_page_fits(chromium: Any, server: Server, photograph: Any, width: int) -> None:  # noqa: F811
    context = chromium.new_context(viewport={"width": width, "height": 844}, color_scheme="dark")
    opened = context.new_page()
    try:
        ids = [f"tables/{id_of(server, LONG)}", f"views/{id_of(server, 'revenue')}", f"jobs/{id_of(server, 'held')}"]
        for path in ("overview", "lineage", "views", "tables", "jobs", "storage", "sessions", "events", *ids):
            show(opened, server, path)
            assert wait_until(lambda: opened.get_by_text("Reading…").count() == 0, 20)
            wide = opened.evaluate("() => document.documentElement.scrollWidth")
            assert wide <= width, f"{path} is {wide} wide"
            if (path, width) == ("overview", 390):
                photograph(opened, "phone-dark")
    finally:
        context.close()
