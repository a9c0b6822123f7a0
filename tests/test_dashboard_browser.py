"""The dashboard in a real browser: Debian's Chromium, driven by Playwright. `--screenshots` makes docs/images again."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsers import dashboard_url
from servers import Server, free_port, wait_until

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
expect = playwright.expect
expect.set_options(timeout=30_000)

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
IMAGES = Path(__file__).parent.parent / "docs" / "images"
ROWS = 1_000_000
PAGES = (
    "Overview", "Lineage", "Views", "Tables", "Jobs", "Nodes", "Storage", "Sessions", "Events", "Resources"
)  # fmt: skip
SECONDS = 180_000  # for what waits for Spark
pytestmark = [
    pytest.mark.long,
    pytest.mark.spark,
    pytest.mark.timeout(900),
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium (Debian: apt-get install chromium)"),
]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """With a Spark, a large table, and three views that follow it."""
    started = Server(tmp_path_factory.mktemp("browser") / "data", dashboard=f"127.0.0.1:{free_port()}")
    with started.connect() as own:
        for sql in (
            "CREATE TABLE customers (id int PRIMARY KEY, name varchar, country varchar)",
            "INSERT INTO customers SELECT i, 'c' || i, 'country ' || i % 40 FROM range(5000) AS r(i)",
            "CREATE TABLE orders (id bigint, customer int, amount double precision)",
            f"INSERT INTO orders SELECT i, i % 5000, i / 7.0 FROM range({ROWS}) AS r(i)",
            "ALTER SYSTEM SET backfill_engine = auto",
            "CREATE MATERIALIZED VIEW countries AS SELECT country, count(*) AS n FROM customers GROUP BY country",
            "CREATE MATERIALIZED VIEW first_customers AS SELECT * FROM customers ORDER BY id LIMIT 10",
            "CREATE INDEX by_country ON customers (country)",
            "ALTER SYSTEM SET backfill_engine = spark",
            "ALTER SYSTEM SET backfill_slice_rows = 20000",
            "ALTER SYSTEM SET max_concurrent_creating_streaming_jobs = 0",
            "ALTER SYSTEM SET serverless_backfill_provision_timeout = 600",
        ):
            own.execute(sql)
    yield started
    started.kill()


@pytest.fixture(autouse=True)
def cleaned(server: Server) -> Iterator[None]:
    """Whatever a test creates goes after it."""
    jobs = "SELECT id, name FROM rw_catalog.rw_streaming_parallelism WHERE relation_type <> 'table'"
    with server.connect() as own:
        before = own.execute(jobs).fetchall()
        yield
        for id_, name in set(own.execute(jobs).fetchall()) - set(before):
            own.execute(f"CANCEL JOBS {id_}")
            own.execute(f"DROP MATERIALIZED VIEW IF EXISTS {name}")


class Watched:
    """A page and what it has complained of."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.complaints: list[str] = []
        page.on(
            "console", lambda message: message.type in ("error", "warning") and self.complaints.append(message.text)
        )
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on(
            "request",
            lambda request: request.url.startswith("http://127.0.0.1:") or self.complaints.append(request.url),
        )


@pytest.fixture
def opened(chromium: Any, server: Server) -> Iterator[Any]:
    """A page of the dashboard, wide and light, which must not complain of anything."""
    context = chromium.new_context(viewport={"width": 1280, "height": 860}, color_scheme="light")
    watched = Watched(context.new_page())
    watched.page.goto(f"{dashboard_url(server)}#/jobs")
    expect(watched.page.get_by_role("status").filter(has_text="Live")).to_be_visible(timeout=SECONDS)
    yield watched.page
    context.close()
    # what is refused on purpose is no complaint
    assert not [text for text in watched.complaints if "status of 400" not in text]


@pytest.fixture
def photograph(request: pytest.FixtureRequest) -> Any:
    """Keeps a picture of a page, if that was asked for."""

    def take(page: Any, name: str) -> None:
        if request.config.getoption("--screenshots"):
            IMAGES.mkdir(exist_ok=True)
            page.wait_for_timeout(2000)  # bars arrive where they go to
            page.screenshot(path=IMAGES / f"dashboard-{name}.png")

    return take


def backfill(server: Server, name: str, limit: int, options: str = "") -> int:
    """Start a view with a join over all orders, at so many rows a second. Returns its id."""
    with server.connect() as own:
        own.execute("SET background_ddl = true")
        own.execute(
            f"CREATE MATERIALIZED VIEW {name} WITH (backfill_rate_limit = {limit}{options}) AS SELECT c.country, "
            "count(*) AS orders, sum(o.amount) AS amount FROM orders o JOIN customers c ON o.customer = c.id "
            "GROUP BY c.country"
        )
        found = own.execute("SELECT id FROM rw_catalog.rw_streaming_jobs WHERE name = %s", (name,)).fetchone()
    assert found is not None
    return int(found[0])


def card(page: Any, name: str) -> Any:
    return page.get_by_role("listitem").filter(has=page.get_by_role("heading", name=re.compile(rf"public\.{name}\b")))


def share(page: Any, name: str) -> float:
    text = card(page, name).get_by_role("progressbar").get_attribute("aria-valuenow", timeout=SECONDS)
    return float(text or 0)


def test_jobs_move_and_are_cancelled(server: Server, opened: Any, photograph: Any) -> None:
    page = opened
    expect(page.get_by_role("heading", name="Nothing is being created")).to_be_visible()
    job = backfill(server, "revenue", 20_000, ", cloud.serverless_backfill_enabled = false")
    backfill(server, "waiting", 0)
    expect(card(page, "revenue")).to_be_visible(timeout=SECONDS)
    assert wait_until(lambda: share(page, "revenue") > 0, 300)
    assert wait_until(lambda: "–" not in card(page, "revenue").locator("dd").all_inner_texts(), 120)
    before, top = share(page, "revenue"), card(page, "revenue").bounding_box()
    assert wait_until(lambda: share(page, "revenue") > before, 120)
    assert card(page, "revenue").bounding_box() == top, "the layout has jumped"
    expect(card(page, "waiting")).to_contain_text("the rate limit is 0")
    photograph(page, "jobs")

    page.get_by_role("link", name="public.revenue").click()
    expect(page.get_by_role("heading", name="Jobs / public.revenue")).to_be_focused()
    plan = page.get_by_role("region", name="Plan of the job")
    expect(plan).to_contain_text("HashJoin")
    expect(plan.locator(".box.reads")).to_have_count(2)
    expect(plan).to_contain_text(re.compile(r"\d+ %"))
    fragments = page.get_by_role("region", name="Fragments", exact=True)
    expect(fragments).to_contain_text("public.orders")
    expect(page.get_by_label("The statement")).to_contain_text("CREATE MATERIALIZED VIEW revenue")
    photograph(page, "job")

    page.get_by_role("button", name="Cancel public.revenue").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Let it run").click()
    expect(dialog).to_be_hidden()
    page.get_by_role("button", name="Cancel public.revenue").click()
    dialog.get_by_role("button", name="Cancel the job").click()
    expect(page.get_by_text("public.revenue is cancelled.")).to_be_visible(timeout=SECONDS)
    with server.connect() as own:
        assert own.execute("SELECT 1 FROM rw_catalog.rw_streaming_jobs WHERE id = %s", (job,)).fetchall() == []


def test_views_and_how_they_follow(server: Server, opened: Any) -> None:
    page = opened
    page.get_by_role("link", name="Views").click()
    table = page.get_by_role("table")
    expect(table.get_by_role("row")).to_have_count(4)
    row = table.get_by_role("row").filter(has_text="public.countries")
    expect(row).to_contain_text("following")
    expect(row).to_contain_text("40")
    row.get_by_role("link").click()
    expect(page.get_by_label("The SQL of its changes")).to_contain_text("n1_changes :=")
    expect(page.get_by_label("The statement that made it")).to_contain_text("CREATE MATERIALIZED VIEW countries")
    expect(page.get_by_role("region", name="Plan of the job")).to_contain_text("HashAgg")


def test_resources_change_and_nodes_come_and_go(server: Server, opened: Any, photograph: Any) -> None:
    page = opened
    page.get_by_role("link", name="Resources").click()
    switch = page.get_by_role("switch", name="Serverless backfill")
    expect(switch).not_to_be_checked()
    switch.click()
    expect(page.get_by_text("serverless_backfill_enabled is true now.")).to_be_visible()
    page.get_by_label("Size of a node (SKU)").select_option("1c2g")
    expect(page.get_by_text("serverless_backfill_sku is 1c2g now.")).to_be_visible()
    replicas = page.get_by_label("Nodes of a group")
    replicas.fill("0")
    replicas.blur()
    expect(page.get_by_text("Invalid value `0` for `serverless_backfill_replicas`")).to_be_visible()
    expect(replicas).to_have_value("1")
    with server.connect() as own:
        assert own.execute("SHOW serverless_backfill_enabled").fetchone() == ("true",)
        assert own.execute("SHOW serverless_backfill_sku").fetchone() == ("1c2g",)
        assert own.execute("SHOW serverless_backfill_replicas").fetchone() == ("1",)
    page.wait_for_timeout(5000)  # what was said is gone
    photograph(page, "resources")

    job = backfill(server, "on_its_own", 20_000, ", cloud.serverless_backfill_enabled = true")
    page.get_by_role("link", name="Nodes").click()
    node = page.get_by_role("listitem").filter(has_text="risingwave-backfill-")
    expect(node).to_be_visible(timeout=SECONDS)
    expect(node).to_contain_text("running", timeout=SECONDS)
    expect(node.get_by_role("img", name="Cores used")).to_be_visible()
    assert wait_until(lambda: re.search(r"Processor\s*[\d.]+ of 1 core", node.inner_text()) is not None, 30)
    photograph(page, "nodes")
    with server.connect() as own:
        own.execute(f"CANCEL JOBS {job}")
    expect(node).to_contain_text("ended", timeout=SECONDS)
    page.get_by_role("link", name="Events").click()
    expect(page.get_by_role("list").filter(has_text="Resource group destroyed")).to_be_visible()
    page.get_by_label("Show only events with").fill("provisioning")
    expect(page.get_by_text("Resource group destroyed")).to_have_count(0)


def test_by_keyboard_alone(server: Server, opened: Any) -> None:
    page = opened
    job = backfill(server, "typed", 0)
    expect(card(page, "typed")).to_be_visible(timeout=SECONDS)

    def press_until(key: str, name: str) -> None:
        for _ in range(40):
            page.keyboard.press(key)
            focused = page.evaluate(
                "() => (document.activeElement.getAttribute('aria-label') ?? document.activeElement.innerText).trim()"
            )
            outline = page.evaluate("() => getComputedStyle(document.activeElement).outlineStyle")
            if focused == name:
                assert outline == "solid", "one does not see where one is"
                return
        pytest.fail(f"{name} cannot be reached")

    page.reload()
    expect(card(page, "typed")).to_be_visible(timeout=SECONDS)
    press_until("Tab", "Skip to the content")
    press_until("Tab", "Cancel public.typed")
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    page.wait_for_timeout(2500)  # it stays, and the focus in it, while the page behind it goes on
    expect(dialog).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    press_until("Tab", "Resources")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Resources", exact=True)).to_be_focused()
    expect(page.get_by_role("switch")).to_be_visible()
    page.keyboard.press("Tab")
    was = page.get_by_role("switch").is_checked()
    expect(page.get_by_role("switch")).to_be_focused()
    page.keyboard.press("Space")
    expect(page.get_by_role("switch")).to_be_checked(checked=not was)
    page.wait_for_timeout(3500)  # the focus survives that the page is drawn again
    expect(page.get_by_role("switch")).to_be_focused()
    expect(page.get_by_role("switch")).to_be_checked(checked=not was)
    with server.connect() as own:
        assert own.execute("SHOW serverless_backfill_enabled").fetchone() == (str(not was).lower(),)
        own.execute(f"CANCEL JOBS {job}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone(chromium: Any, server: Server, scheme: str) -> None:
    job = backfill(server, "small_screen", 0)
    context = chromium.new_context(
        viewport={"width": 360, "height": 740},
        device_scale_factor=2,
        is_mobile=True,
        has_touch=True,
        color_scheme=scheme,
    )
    page = context.new_page()
    try:
        page.goto(f"{dashboard_url(server)}#/jobs")
        expect(card(page, "small_screen")).to_be_visible(timeout=SECONDS)
        assert wait_until(lambda: "paused" in card(page, "small_screen").inner_text(), 60)
        for name in PAGES:
            link = page.get_by_role("navigation").get_by_role("link", name=name, exact=True)
            link.tap()
            expect(page.get_by_role("heading", name=name, exact=True)).to_be_visible()
            expect(page.locator("main[aria-busy]")).to_have_count(0, timeout=SECONDS)
            width = page.evaluate("() => document.documentElement.scrollWidth")
            assert width <= 360, f"{name} is {width} wide"
            box = link.bounding_box()
            assert box is not None and box["height"] >= 44, "too small for a finger"
        page.goto(f"{dashboard_url(server)}#/jobs/{job}")
        expect(page.get_by_role("region", name="Plan of the job")).to_be_visible(timeout=SECONDS)
        assert page.evaluate("() => document.documentElement.scrollWidth") <= 360
        background = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
        assert background == {"light": "rgb(244, 246, 249)", "dark": "rgb(14, 17, 22)"}[scheme]
    finally:
        context.close()
        with server.connect() as own:
            own.execute(f"CANCEL JOBS {job}")


CONTRAST = """() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (node) => {
    for (; node; node = node.parentElement) {
      const found = parse(getComputedStyle(node).backgroundColor);
      if (found[3] !== 0) return found;
    }
    return [255, 255, 255];
  };
  const found = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const node = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || !node.checkVisibility()) continue;
    if (node.closest("svg, .gone, noscript, .unseen")) continue;
    const [one, other] = [light(parse(getComputedStyle(node).color)), light(ground(node))].sort((a, b) => b - a);
    const contrast = (one + 0.05) / (other + 0.05);
    if (contrast < 4.5) found.push(`${contrast.toFixed(2)} ${walk.currentNode.data}`);
  }
  return found;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everything_can_be_read(chromium: Any, server: Server, scheme: str) -> None:
    """WCAG's contrast of 4.5, of all texts of all pages."""
    job = backfill(server, "readable", 0)
    context = chromium.new_context(viewport={"width": 1280, "height": 860}, color_scheme=scheme)
    page = context.new_page()
    try:
        for path in (*(name.lower() for name in PAGES), f"jobs/{job}"):
            page.goto(f"{dashboard_url(server)}#/{path}")
            expect(page.locator("main[aria-busy]")).to_have_count(0, timeout=SECONDS)
            assert page.evaluate(CONTRAST) == [], path
    finally:
        context.close()
        with server.connect() as own:
            own.execute(f"CANCEL JOBS {job}")


def test_a_hidden_tab_asks_nothing(server: Server, opened: Any) -> None:
    page = opened
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.wait_for_timeout(5000)
    assert len(asked) >= 2
    hide = "Object.defineProperty(document, 'hidden', { value: %s, configurable: true });"
    page.evaluate(hide % "true" + "document.dispatchEvent(new Event('visibilitychange'))")
    page.wait_for_timeout(500)
    asked.clear()
    page.wait_for_timeout(5000)
    assert asked == []
    page.evaluate(hide % "false" + "document.dispatchEvent(new Event('visibilitychange'))")
    assert wait_until(lambda: page.wait_for_timeout(100) or len(asked) > 0, 5)


def test_it_survives_a_restart_and_asks_for_new_passwords(chromium: Any, tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    first = Server(tmp_path / "data", dashboard=address)
    context = chromium.new_context(viewport={"width": 1280, "height": 860})
    page = context.new_page()
    second: Server | None = None
    try:
        page.goto(f"http://{address}/#/resources")
        expect(page.get_by_role("switch")).to_be_visible(timeout=SECONDS)
        first.kill()
        expect(page.get_by_text("Reconnecting…")).to_be_visible(timeout=SECONDS)
        expect(page.get_by_role("switch")).to_be_visible()  # what is known stays to be seen
        second = Server(first.data, dashboard=address)
        expect(page.get_by_text("Live")).to_be_visible(timeout=SECONDS)
        page.get_by_role("switch").click()  # with the new session's token
        expect(page.get_by_text("serverless_backfill_enabled is true now.")).to_be_visible(timeout=SECONDS)

        with second.connect() as own:
            own.execute("ALTER USER root PASSWORD 'secret'")
        expect(page.get_by_label("Password")).to_be_visible(timeout=SECONDS)
        page.get_by_label("User").fill("root")
        page.get_by_label("Password").fill("wrong")
        page.keyboard.press("Enter")
        expect(page.get_by_text('password authentication failed for user "root"')).to_be_visible(timeout=SECONDS)
        page.get_by_label("Password").fill("secret")
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_role("switch")).to_be_visible(timeout=SECONDS)
        page.get_by_role("button", name="Log out root").click()
        expect(page.get_by_label("Password")).to_be_visible(timeout=SECONDS)
    finally:
        context.close()
        for one in (first, second):
            if one is not None:
                one.kill()
