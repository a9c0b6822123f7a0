"""The dashboard's JSON, and who is kept from it."""

from __future__ import annotations

import contextlib
import itertools
import re
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from browsers import TOKEN, Answer, Browser, dashboard_url
from servers import Server, wait_until
from test_users import machine_address

from sparkwave.catalog.errors import Error
from sparkwave.server.dashboard import logins
from sparkwave.server.dashboard.logins import Throttle, TooManyGuesses
from sparkwave.server.operations.config import Config, load_config

FILES = Path(__file__).parent.parent / "server" / "dashboard" / "static"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Nobody has a password. `v` is created, `held` is not."""
    started = Server(tmp_path_factory.mktemp("dashboard") / "data", dashboard="0.0.0.0:0")
    with started.connect() as own:
        for sql in (
            "ALTER SYSTEM SET backfill_engine = auto",
            "CREATE TABLE t (k int PRIMARY KEY, v int)",
            "INSERT INTO t SELECT i, i % 3 FROM range(1000) AS r(i)",
            "CREATE MATERIALIZED VIEW v AS SELECT v, count(*) AS n FROM t GROUP BY v",
            "CREATE USER eve",
            "SET background_ddl = true",
            "CREATE MATERIALIZED VIEW held WITH (backfill_rate_limit = 0) AS SELECT k FROM t",
        ):
            own.execute(sql)
    yield started
    started.kill()


@pytest.fixture
def root(server: Server) -> Browser:
    browser = Browser(dashboard_url(server))
    assert browser.open()["user"] == "root"
    return browser


# What the pages show


def test_pages_show_what_sql_shows(server: Server, root: Browser) -> None:
    with server.connect() as own:
        (job,) = own.execute("SELECT ddl_id FROM rw_catalog.rw_ddl_progress").fetchone() or ()
        assert wait_until(lambda: [f["state"] for f in root.page("jobs")["fragments"]] == ["PAUSED"])
        jobs = root.page("jobs")
        assert [(one["job_id"], one["create_type"]) for one in jobs["jobs"]] == [(job, "BACKGROUND")]
        assert [view["name"] for view in jobs["created"]] == ["v"] and jobs["may_cancel"] == [job]
        assert jobs["fragments"][0]["reason"] == "the rate limit is 0"
        assert jobs["fragments"][0]["rows_total"] == 1000

        one = root.page("job", job)
        assert one["name"] == "public.held" and one["kind"] == "materialized view"
        assert one["definition"].startswith("CREATE MATERIALIZED VIEW held") and '"StreamTableScan"' in one["plan"]
        assert [f["fragment_id"] for f in one["fragments"]] == [f["fragment_id"] for f in one["status"]]

        status = "SELECT job_name, state FROM rw_catalog.rw_job_status ORDER BY 1"
        views = root.page("views")
        assert [(v["job_name"], v["state"]) for v in views["views"]] == own.execute(status).fetchall()
        assert own.execute(status).fetchall() == [("held", "CREATING"), ("v", "FOLLOWING")]
        view = next(v for v in views["views"] if v["job_name"] == "v")
        assert {size["id"]: size["total_key_count"] for size in views["sizes"]}[view["job_id"]] == 3

        shown = root.page("view", view["job_id"])
        (statement,) = own.execute("SHOW CREATE MATERIALIZED VIEW v").fetchall()
        assert shown["definition"] == statement[1]
        explained = own.execute(f"EXPLAIN (INCREMENTAL) {statement[1]}").fetchall()
        assert shown["incremental"] == "\n".join(line for (line,) in explained)

    assert {group["name"] for group in root.page("resources")["groups"]} >= {"default"}
    assert {sku["name"] for sku in root.page("resources")["skus"]} >= {"1c2g", "2c4g"}
    assert isinstance(root.page("events")["events"], list) and isinstance(root.page("nodes")["nodes"], list)


def test_the_overview_has_what_is_wrong_and_the_last_hour(server: Server, root: Browser) -> None:
    found = root.page("overview")
    assert {view["job_name"]: view["state"] for view in found["views"]} == {"v": "FOLLOWING", "held": "CREATING"}
    assert {fragment["reason"] for fragment in found["fragments"]} == {"the rate limit is 0"}
    assert found["proofs"][0].keys() >= {"result", "audited_at", "audited_snapshot"}
    assert found["disk"]["free"] > 0 and found["tables"] == [{"n": 1}]


@pytest.mark.long  # a sample is taken every ten seconds, a point of a job's curves is of three
def test_the_last_hour_is_filled(server: Server, root: Browser) -> None:
    assert wait_until(lambda: len(root.page("overview")["history"]) > 3, 60)
    moment = root.page("overview")["history"][-1]
    assert moment["barriers_per_second"] > 0 and moment["lag_ms"] >= 0
    view = next(v for v in root.page("views")["views"] if v["job_name"] == "v")
    assert view["changed_rows_per_second"] == 0
    (curves,) = root.page("view", view["job_id"])["history"]
    assert len(curves["lag_ms"]) == len(curves["changed_rows_per_second"]) > 0 and curves["interval_seconds"] == 30


def test_lineage_and_a_tables_rows(server: Server, root: Browser) -> None:
    with server.connect() as own:
        own.execute('CREATE TABLE "ü <b>" (a int PRIMARY KEY, "x""y" varchar)')
        own.execute("""INSERT INTO "ü <b>" VALUES (1, '<script>'), (2, NULL)""")
    try:
        found = root.page("lineage")
        ids = {one["name"]: one["id"] for one in found["relations"]}
        edges = {(edge["from_id"], edge["to_id"]) for edge in found["lineage"]}
        assert edges == {(ids["t"], ids["v"]), (ids["t"], ids["held"])}
        id_ = ids["ü <b>"]
        table = root.page("table", id_)
        assert table["name"] == "public.ü <b>" and [column["is_key"] for column in table["columns"]] == [True, False]
        preview = root.page("preview", id_)
        assert preview["preview_columns"] == ["a", 'x"y'] and sorted(preview["preview"]) == [
            ["1", "<script>"],
            ["2", None],
        ]
        rows = root.page("preview", ids["t"])["preview"]
        assert len(rows) == 50 and len(rows[0]) == 2
        assert root.page("tables")["sizes"]
        assert root.get("/api/pages/table?id=" + str(ids["v"])).status == 404
        assert "incremental" in root.page("view", ids["v"])
        assert root.get("/api/pages/preview?id=999999").status == 404
    finally:
        with server.connect() as own:
            own.execute('DROP TABLE "ü <b>"')


def test_storage_sessions_and_events(server: Server, root: Browser) -> None:
    storage = root.page("storage")
    assert {one["relation_name"] for one in storage["files"]} >= {"t", "v"}
    assert storage["snapshots"][0]["snapshot_id"] > storage["snapshots"][-1]["snapshot_id"]
    assert storage["snapshots"][0]["kept"] >= len(storage["snapshots"])
    with server.connect() as own:
        own.execute("SET application_name = 'looked at'")
        shown = [one for one in root.page("sessions")["sessions"] if one["application_name"] == "looked at"]
        assert [one["state"] for one in shown] == ["idle"]
        own.execute("SELECT pg_sleep(1.05)")
        own.execute("SELECT 1")
    slow = next(one for one in root.page("sessions")["slow"] if "pg_sleep" in one["query"])
    assert slow["seconds"] > 1 and slow["application_name"] == "looked at"
    created = {one["name"]: one["kind"] for one in root.page("events")["created"]}
    assert created["t"] == "table" and created["v"] == "materialized view"


def test_a_view_is_compared_with_its_query(server: Server, root: Browser) -> None:
    with server.connect() as own:
        ids = dict(own.execute("SELECT name, id FROM rw_catalog.rw_relations").fetchall())
    answer = root.post("/api/actions/audit", {"id": ids["v"]}).json
    assert answer["result"] == "PROVEN" and answer["seconds"] >= 0
    view = root.page("view", ids["v"])
    assert view["may_audit"] and view["audits"][0]["result"] == "PROVEN"
    assert view["proofs"][0]["audited_snapshot"] == view["audits"][0]["snapshot"]
    assert root.post("/api/actions/audit", {"id": ids["t"]}).status == 404
    assert root.post("/api/actions/audit", {"id": "x"}).status == 400


def test_quotes(server: Server, root: Browser) -> None:
    def quoted(sql: object) -> Answer:
        return root.post("/api/actions/quote", {"sql": sql})

    answer = quoted("CREATE MATERIALIZED VIEW w AS SELECT v, sum(k) FROM t GROUP BY v").json["quote"]
    assert answer["read"][0]["rows"] == 1000 and any(engine["taken"] for engine in answer["engines"])
    for wrong in ("SELECT 1", "CREATE MATERIALIZED VIEW w AS SELECT nope FROM t", "", "DROP TABLE t"):
        assert quoted(wrong).json["quote_error"], wrong
    many = "CREATE MATERIALIZED VIEW w AS SELECT v FROM t; DROP TABLE t"
    assert quoted(many).json["quote_error"] == "cannot insert multiple commands into a prepared statement"
    assert quoted(1).status == 400
    with server.connect() as own:
        (job,) = own.execute("SELECT ddl_id FROM rw_catalog.rw_ddl_progress").fetchone() or ()
        assert own.execute("SELECT count(*) FROM t").fetchone() == (1000,)
    assert root.page("quote", job)["quote"]["rate_limit"] == 0


def test_a_job_is_slowed_down_and_paused(server: Server, root: Browser) -> None:
    with server.connect() as own:
        own.execute("SET background_ddl = true")
        own.execute("CREATE MATERIALIZED VIEW slowed WITH (backfill_rate_limit = 0) AS SELECT v FROM t")
        (job,) = own.execute("SELECT id FROM rw_catalog.rw_streaming_jobs WHERE name = 'slowed'").fetchone() or ()
        limit = "SELECT rate_limit FROM rw_catalog.rw_rate_limit WHERE table_id = %s"
        assert root.post("/api/actions/limit", {"id": job, "rows": 1}).json == {
            "id": job,
            "rows": 1,
        }
        assert wait_until(lambda: own.execute(limit, (job,)).fetchall() == [(1,)])
        assert root.post("/api/actions/limit", {"id": job, "rows": 0}).status == 200
        assert wait_until(lambda: own.execute(limit, (job,)).fetchall() == [(0,)])
        assert sum(step["row_count"] for step in root.page("job", job)["steps"]) < 1000
        for id_, rows, status in ((job, -1, 400), (job, "5", 400), (job, 2**31, 400), ("1", 5, 400), (999999, 5, 404)):
            assert root.post("/api/actions/limit", {"id": id_, "rows": rows}).status == status, (id_, rows)
        assert root.post("/api/actions/limit", {"id": job, "rows": None}).status == 200
        own.execute("WAIT MATERIALIZED VIEW slowed")
        assert root.post("/api/actions/limit", {"id": job, "rows": 5}).status == 404
        own.execute("DROP MATERIALIZED VIEW slowed")


def test_a_statement_is_cancelled(server: Server, root: Browser) -> None:
    with server.connect() as own, ThreadPoolExecutor(1) as pool:
        slept = pool.submit(lambda: own.execute("SELECT pg_sleep(30)"))
        pid = own.info.backend_pid
        running = lambda: [one["state"] for one in root.page("sessions")["sessions"] if one["pid"] == pid]  # noqa: E731
        assert wait_until(lambda: running() == ["active"])
        assert root.post("/api/actions/end", {"pid": pid}).json == {"is_done": True}
        assert type(slept.exception(10)).__name__ == "QueryCanceled"
    assert root.post("/api/actions/end", {"pid": "1"}).status == 400
    assert root.post("/api/actions/end", {"pid": 999999}).json == {"is_done": False}


def test_freshness_goes_on(server: Server, root: Browser) -> None:
    def as_of() -> str:
        return next(v["fresh_as_of"] for v in root.page("views")["views"] if v["state"] == "FOLLOWING")

    before = as_of()
    assert wait_until(lambda: as_of() > before)


def test_pages_that_there_are_not(root: Browser) -> None:
    for path in ("nothing", "job", "jobs?id=1", "job?id=999999", "view?id=1001"):  # the last one is a table
        assert root.get(f"/api/pages/{path}").status == 404, path
    for path in ("job?id=x", "job?id=-1", "job?id=" + "9" * 30, "job?id=%C2%B2"):
        assert root.get(f"/api/pages/{path}").status in (400, 404), path
    assert root.get("/api/pages/jobs?database=nowhere").status == 400
    assert root.get("/static/../app.py").status == 404 and root.get("/static/%2e%2e/app.py").status == 404


def test_pages_change_nothing(server: Server) -> None:
    """They are read in a session that may not write."""
    names = ("pages.py", "contents.py", "preview.py", "quoting.py")
    source = "".join((FILES.parent / name).read_text() for name in names)
    assert source.count("session(context, ") + source.count("session(self._context, ") == 4
    assert source.count('default_transaction_read_only="on"') == 4


def test_parameters_are_set(server: Server, root: Browser) -> None:
    answer = root.post("/api/actions/parameter", {"name": "serverless_backfill_sku", "value": "1c2g"})
    assert answer.json == {"name": "serverless_backfill_sku", "value": "1c2g"}
    with server.connect() as own:
        assert own.execute("SHOW serverless_backfill_sku").fetchone() == ("1c2g",)
    values = {p["name"]: p["value"] for p in root.page("resources")["parameters"]}
    assert values["serverless_backfill_sku"] == "1c2g"

    def refused(name: object, value: object) -> tuple[int, str]:
        answer = root.post("/api/actions/parameter", {"name": name, "value": value})
        return answer.status, answer.json["error"]

    assert refused("serverless_backfill_sku", "3c1g")[0] == 400
    assert refused("serverless_backfill_replicas", "0")[0] == 400
    assert refused("serverless_backfill_replicas", "1; DROP TABLE t")[0] == 400
    assert refused("serverless_backfill_replicas", "1'; DROP TABLE t; --")[0] == 400
    assert refused("serverless_backfill_enabled", True) == (400, "the value is a text")
    assert refused("barrier_interval_ms", "50") == (404, '"barrier_interval_ms" cannot be set here')
    assert refused("serverless_backfill_sku = '1c2g'; DROP TABLE t; --", "1")[0] == 404
    assert refused(None, "1")[0] == refused(["x"], "1")[0] == 404


def test_cancelling(server: Server, root: Browser) -> None:
    with server.connect() as own:
        own.execute("SET background_ddl = true")
        own.execute("CREATE MATERIALIZED VIEW unwanted WITH (backfill_rate_limit = 0) AS SELECT v FROM t")
        (job,) = own.execute("SELECT id FROM rw_catalog.rw_streaming_jobs WHERE name = 'unwanted'").fetchone() or ()
        for wrong in ("1", None, True, 1.5):
            assert root.post("/api/actions/cancel", {"id": wrong}).status == 400
        assert root.post("/api/actions/cancel", {"id": job}).json == {"cancelled": [job]}
        assert own.execute("SELECT 1 FROM rw_catalog.rw_streaming_jobs WHERE name = 'unwanted'").fetchall() == []
        assert root.post("/api/actions/cancel", {"id": job}).json == {"cancelled": []}


# Other sites


def test_answers_keep_other_sites_out(root: Browser) -> None:
    for path in ("/", "/static/main.js", "/static/nothing", "/api/session", "/api/pages/jobs", "/nowhere"):
        headers = root.get(path).headers
        assert headers["Content-Security-Policy"].startswith("default-src 'self'; base-uri 'none'")
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert headers["X-Frame-Options"] == "DENY" and headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin" and headers["Referrer-Policy"] == "no-referrer"
        assert "Access-Control-Allow-Origin" not in headers and "Server" not in headers
        assert headers["Cache-Control"] == ("no-store" if path.startswith("/api/") else "no-cache")


def test_the_page_has_nothing_inline_and_nothing_from_outside() -> None:
    page = (FILES / "index.html").read_text()
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)|javascript:", page)
    for file in FILES.iterdir():
        outside = set(re.findall(r"(?:https?:)?//[\w.]+", re.sub(r"(?m)^\s*//.*$|/\*.*?\*/", "", file.read_text())))
        assert outside <= {"http://www.w3.org", "http://127.0.0.1", "http://localhost"}, file.name
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", file.read_text()), file


def test_modules_import_what_others_export() -> None:
    sources = {file.name: file.read_text() for file in FILES.glob("*.js")}
    exported = {
        name: set(re.findall(r"^export (?:async function|function|const) (\w+)", source, re.MULTILINE))
        for name, source in sources.items()
    }
    imported: dict[str, set[str]] = {name: set() for name in sources}
    for name, source in sources.items():
        for names, module in re.findall(r'^import \{ ([^}]*) \} from "\./([\w.]+)";', source, re.MULTILINE):
            for each in names.split(", "):
                assert each in exported[module], f"{name}: {each} of {module}"
                assert len(re.findall(rf"\b{each}\b", source)) > 1, f"{name}: {each} is not used"
            imported[module] |= set(names.split(", "))
    assert imported == exported


@pytest.mark.parametrize("host", ["evil.example", "evil.example:5691", "127.0.0.1.evil.example", "localhost.evil", ""])
def test_names_pointed_at_this_machine(root: Browser, host: str) -> None:
    """DNS rebinding: the browser believes that it talks to evil.example."""
    fresh = Browser(root.url)
    assert fresh.get("/api/session", Host=host).json == {"user": None, "has_passwords": False}
    assert not fresh.cookies
    assert root.get("/api/pages/jobs", Host=host).status == 401
    own = f"http://{host}"
    assert root.post("/api/actions/cancel", {"id": 1}, Host=host, Origin=own).status == 401
    assert root.post("/api/login", {"user": "root", "password": ""}, Host=host, Origin=own).status == 401


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]:80", "LOCALHOST:1"])
def test_addresses_of_this_machine(root: Browser, host: str) -> None:
    assert root.get("/api/pages/jobs", Host=host).status == 200


@pytest.mark.parametrize("header", ["X_Forwarded_For", "Forwarded", "Via", "X_Real_IP", "X_Forwarded_Host"])
def test_a_proxy_is_not_this_machine(root: Browser, header: str) -> None:
    assert Browser(root.url).get("/api/session", **{header: "127.0.0.1"}).json["user"] is None
    assert root.get("/api/pages/jobs", **{header: "127.0.0.1"}).status == 401


def test_other_sites_read_nothing(root: Browser) -> None:
    for site in ("cross-site", "same-site"):
        assert root.get("/api/pages/jobs", Sec_Fetch_Site=site).status == 403
        assert root.get("/api/session", Sec_Fetch_Site=site).status == 403
    assert root.get("/api/pages/jobs", Origin="http://127.0.0.1:1").status == 403
    assert root.get("/api/pages/jobs", Origin="null").status == 403
    assert root.get("/api/pages/jobs", Sec_Fetch_Site="none").status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/api/actions/parameter",
        "/api/actions/cancel",
        "/api/actions/limit",
        "/api/actions/audit",
        "/api/actions/end",
        "/api/actions/quote",
        "/api/logout",
    ],
)
def test_other_sites_change_nothing(root: Browser, path: str) -> None:
    body = {"name": "serverless_backfill_enabled", "value": "true", "id": 1}
    token = TOKEN.replace("-", "_")
    for headers in (
        {token: None},
        {token: ""},
        {token: root.token[:-1]},
        {token: Browser(root.url).open()["token"]},  # of another login
        {"Origin": "http://evil.example"},
        {"Origin": root.url.replace("http", "https")},
        {"Origin": root.url.replace("127.0.0.1", "localhost")},
        {"Origin": "null"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ):
        assert root.post(path, body, **headers).status == 403, headers
    for kind in ("application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=x", None):
        assert root.post(path, body, Content_Type=kind).status == 415
    assert root.get(path).status == 405
    assert root.page("resources")["parameters"][0] == {"name": "serverless_backfill_enabled", "value": "false"}
    # without the cookie the token is worth nothing
    assert Browser(root.url, token=root.token).post(path, body).status == 401


def test_bodies_that_are_no_json(root: Browser) -> None:
    for body, status in (
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b"\xff", 400),
        (b"[" * 4000, 400),
        (b"1" * 70000, 413),
    ):
        assert root.post("/api/actions/cancel", body).status == status, body[:10]


# Users


def test_who_is_no_superuser(server: Server) -> None:
    eve = Browser(dashboard_url(server))
    assert eve.log_in("eve", "").json["is_super"] is False
    resources = eve.page("resources")
    assert resources["may_change"] is False
    answer = eve.post("/api/actions/parameter", {"name": "serverless_backfill_enabled", "value": "true"})
    assert (answer.status, answer.json["error"]) == (403, "must be superuser to execute ALTER SYSTEM")
    jobs = eve.page("jobs")
    assert jobs["may_cancel"] == [] and jobs["jobs"]
    answer = eve.post("/api/actions/cancel", {"id": jobs["jobs"][0]["job_id"]})
    assert (answer.status, answer.json["error"]) == (403, "must be owner of materialized view held")
    assert eve.page("jobs")["jobs"] == jobs["jobs"]
    # what it may not read is not explained to it
    view = next(v for v in eve.page("views")["views"] if v["job_name"] == "v")
    assert eve.page("view", view["job_id"])["incremental_error"] == "permission denied for table t"
    table = next(one for one in eve.page("tables")["relations"] if one["name"] == "t")
    assert eve.page("preview", table["id"]) == {"preview_error": "permission denied for table t"}
    assert eve.page("quote", jobs["jobs"][0]["job_id"])["quote_error"] == "permission denied for table t"
    assert eve.post("/api/actions/audit", {"id": view["job_id"]}).status == 403
    answer = eve.post("/api/actions/limit", {"id": jobs["jobs"][0]["job_id"], "rows": 5})
    assert (answer.status, answer.json["error"]) == (403, "must be owner of materialized view held")
    with server.connect() as own:
        assert eve.post("/api/actions/end", {"pid": own.info.backend_pid}).status == 403
        own.execute("SELECT pg_sleep(1.05)")
    sessions = eve.page("sessions")
    assert {one["query"] for one in sessions["slow"]} == {"<insufficient privilege>"}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """root and ann have passwords, postgres none; nobody may be who is only a role."""
    started = Server(tmp_path_factory.mktemp("guarded") / "data", dashboard="0.0.0.0:0")
    with started.connect() as own:
        own.execute("CREATE USER ann WITH PASSWORD 'pencil'")
        own.execute("CREATE ROLE staff WITH PASSWORD 'pencil'")
        own.execute("ALTER USER root PASSWORD 'secret'")
    yield started
    started.kill()


SOURCES = itertools.count(10)


@pytest.fixture
def stranger(guarded: Server) -> Browser:
    """From an address of its own, since wrong passwords are counted."""
    return Browser(dashboard_url(guarded), source=f"127.0.0.{next(SOURCES)}")


@pytest.mark.long
def test_passwords(guarded: Server, stranger: Browser) -> None:
    assert stranger.open() == {"user": None, "has_passwords": True} and not stranger.cookies
    for name in ("jobs", "views", "nodes", "events", "resources"):
        assert stranger.get(f"/api/pages/{name}").status == 401
    answer = stranger.log_in("ann", "pencil")
    assert answer.json["user"] == "ann" and not answer.json["is_super"]
    (cookie,) = answer.headers.get_all("Set-Cookie") or ()
    assert {"httponly", "samesite=strict"} <= {part.strip().lower() for part in cookie.split(";")}
    assert stranger.page("jobs")["jobs"] == []
    assert stranger.open()["user"] == "ann"
    key = dict(stranger.cookies)
    assert stranger.post("/api/logout", {}).json == {"user": None}
    stranger.cookies = key  # as somebody who has copied it
    assert stranger.get("/api/pages/jobs").status == 401


def test_wrong_passwords_tell_nothing(stranger: Browser) -> None:
    wrong = [stranger.log_in(name, password) for name, password in (("ann", "pen"), ("nobody", "pencil"), ("ann", ""))]
    assert [answer.status for answer in wrong] == [401] * 3
    assert wrong[0].json["error"] == 'password authentication failed for user "ann"'
    assert wrong[1].json["error"] == 'password authentication failed for user "nobody"'
    assert stranger.log_in("staff", "pencil").json["error"] == 'role "staff" is not permitted to log in'
    assert not stranger.cookies


def test_a_login_ends_with_its_password(guarded: Server, stranger: Browser) -> None:
    with guarded.connect(password="secret") as own:
        own.execute("CREATE USER temp WITH PASSWORD 'a'")
        for change in (
            "ALTER USER temp PASSWORD 'a'",  # the same, again
            "ALTER USER temp VALID UNTIL '2020-01-01'",
            "ALTER USER temp NOLOGIN",
            "ALTER USER temp RENAME TO other",
            "DROP USER temp",
        ):
            assert stranger.log_in("temp", "a").status == 200
            assert stranger.get("/api/pages/jobs").status == 200
            own.execute(change)
            assert stranger.get("/api/pages/jobs").status == 401, change
            if "DROP" not in change:
                own.execute("DROP USER IF EXISTS temp, other")
                own.execute("CREATE USER temp WITH PASSWORD 'a'")


def test_users_without_a_password_are_of_this_machine(stranger: Browser) -> None:
    assert stranger.log_in("postgres", "").status == 200
    assert stranger.get("/api/pages/jobs", Host="evil.example").status == 401
    evil = {"Host": "evil.example", "Origin": "http://evil.example"}
    assert Browser(stranger.url).log_in("postgres", "", **evil).status == 401
    assert Browser(stranger.url).log_in("ann", "pencil", **evil).status == 200  # a proxy's name; it has a password


@pytest.fixture
def address() -> str:
    """Of this machine, and not loopback."""
    found = machine_address()
    if found is None:
        pytest.skip("this machine has no address but loopback")
    return found


def test_no_password_crosses_a_network_in_clear(guarded: Server, address: str) -> None:
    browser = Browser(dashboard_url(guarded, address))
    assert browser.open() == {"user": None, "has_passwords": True}
    answer = browser.log_in("ann", "pencil")
    assert answer.status == 401 and "without TLS" in answer.json["error"]


def test_without_passwords_others_stay_out(server: Server, address: str) -> None:
    browser = Browser(dashboard_url(server, address))
    assert browser.open() == {"user": None, "has_passwords": False}
    assert browser.get("/api/pages/jobs").status == 401
    assert browser.log_in("root", "").status == 401


def test_guesses_are_slowed_down(guarded: Server, stranger: Browser) -> None:
    statuses = [stranger.log_in("ann", f"guess {number}").status for number in range(8)]
    assert statuses == [401] * 6 + [429] * 2
    answer = stranger.log_in("ann", "pencil")  # the right one is not looked at either
    assert answer.status == 429 and 0 < int(answer.headers["Retry-After"]) <= 61
    guarded.connect(user="ann", password="pencil").close()  # the wire is another matter
    assert Browser(stranger.url, source="127.0.1.1").log_in("ann", "pencil").status == 200


def test_tls_and_the_end(tmp_path: Path) -> None:
    certificate, key = tmp_path / "server.crt", tmp_path / "server.key"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run([*command, *names, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    started = Server(tmp_path / "data", dashboard="127.0.0.1:0", tls_certificate=certificate, tls_key=key)
    try:
        url = dashboard_url(started)
        assert url.startswith("https://")
        browser = Browser(url, tls=ssl.create_default_context(cafile=certificate))
        answer = browser.get("/api/session")
        assert answer.json["user"] == "root" and "; secure" in answer.headers["Set-Cookie"].lower()
        browser.token = answer.json["token"]
        assert browser.post("/api/actions/cancel", {"id": 1}).json == {"cancelled": []}
        with pytest.raises(OSError):
            Browser(url.replace("https", "http")).get("/")
        with connections(url, 3):
            began = time.monotonic()
            assert started.stop() == 0
            assert time.monotonic() - began < 10
    finally:
        started.kill()


def test_guesses_are_counted_by_user_and_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(logins.time, "monotonic", lambda: now)
    throttle = Throttle()
    for number in range(20):
        throttle.count(f"10.0.0.{number}", "ann")
    with pytest.raises(TooManyGuesses):
        throttle.count("10.0.1.1", "ann")
    throttle.count("10.0.1.1", "bob")
    now += 61
    throttle.count("10.0.1.1", "ann")
    for _ in range(100):  # who knows the password may log in as often as it likes
        throttle.count("10.0.2.2", "cyd")
        throttle.forgive("10.0.2.2", "cyd")
    for number in range(5000):
        throttle.count(f"10.1.{number // 250}.{number % 250}", f"user {number}")
    assert len(throttle._guesses) <= logins.MOST_REMEMBERED + 1


# Clients that are slow, many or broken


@contextlib.contextmanager
def connections(url: str, count: int) -> Iterator[list[socket.socket]]:
    place = urlsplit(url)
    opened: list[socket.socket] = []
    try:
        for _ in range(count):
            opened.append(socket.create_connection((place.hostname, place.port), timeout=10))
        yield opened
    finally:
        for one in opened:
            one.close()


def test_many_slow_clients(server: Server, root: Browser) -> None:
    with connections(root.url, 200) as slow:
        for one in slow:
            with contextlib.suppress(OSError):
                one.sendall(b"GET /api/pages/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
        started = time.monotonic()
        with server.connect() as own:
            assert own.execute("SELECT count(*) FROM t").fetchone() == (1000,)
        assert time.monotonic() - started < 5
        descriptors = list(Path(f"/proc/{server.process.pid}/fd").iterdir())
        assert wait_until(lambda: cut(slow) >= 130), "too many are kept"
        assert len(descriptors) < 400
    assert wait_until(lambda: answers(root))


def cut(slow: list[socket.socket]) -> int:
    """How many connections the server has ended."""
    found = 0
    for one in slow:
        one.setblocking(False)
        try:
            found += one.recv(1) == b""
        except BlockingIOError:
            pass
        except OSError:
            found += 1
    return found


def answers(browser: Browser) -> bool:
    try:
        return browser.get("/api/pages/jobs").status == 200
    except OSError:
        return False


@pytest.mark.long  # waits for the time limit
def test_silent_clients_are_cut(root: Browser) -> None:
    with connections(root.url, 2) as (idle, slow):
        slow.sendall(b"GET / HTTP/1.1\r\n")
        started = time.monotonic()
        for one in (idle, slow):
            one.settimeout(50)
            with contextlib.suppress(ConnectionResetError):
                assert one.recv(1) == b""
        assert 20 < time.monotonic() - started < 45


@pytest.mark.parametrize(
    "request_",
    [b"\0" * 100, b"GET / HTTP/1.1\r\nX: " + b"x" * 40000, b"GET / HTTP/9\r\n\r\n", b"\x16\x03\x01\x02\0"],
    ids=["zeros", "header", "version", "TLS"],
)
def test_what_is_no_request(root: Browser, request_: bytes) -> None:
    with connections(root.url, 1) as (one,):
        one.sendall(request_)
        one.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionResetError):
            assert one.recv(100)[9:12] in (b"400", b"431", b"")
    assert root.get("/").status == 200


def test_many_ask_at_once(server: Server, root: Browser) -> None:
    """They share an answer, and leave threads to nobody else's harm."""
    with ThreadPoolExecutor(20) as pool:
        statuses = list(pool.map(lambda _: root.get("/api/pages/jobs").status, range(100)))
    assert statuses == [200] * 100


# The address


def test_a_port_in_use_is_a_warning(server: Server, tmp_path: Path) -> None:
    address = dashboard_url(server).removeprefix("http://")
    other = Server(tmp_path / "data", dashboard=address)
    try:
        assert (
            f"no dashboard: cannot listen on {address}: the port is in use; choose another with --dashboard"
            in other.log()
        )
        assert "dashboard on" not in other.log()
        other.connect().close()
    finally:
        assert other.stop() == 0


@pytest.mark.parametrize("text", ["nowhere", "127.0.0.1", ":1", "127.0.0.1:x", "127.0.0.1:65536"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(Error, match="is not an address; write HOST:PORT"):
        load_config({"dashboard": text}, {}, None)


def test_addresses() -> None:
    assert Config().dashboard_address == ("127.0.0.1", 5691)
    assert Config(dashboard="[::1]:0").dashboard_address == ("::1", 0)
    assert Config(dashboard="").dashboard_address is None
