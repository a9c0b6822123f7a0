// The page as a whole: where one is, asking the server again and again, and what is around the content.

import { h, render } from "./dom.js";
import { logOut, openSession, showPage } from "./api.js";
import { eventsPage } from "./events.js";
import { jobPage, jobsPage } from "./jobs.js";
import { lineagePage } from "./lineage.js";
import { loginPage } from "./login.js";
import { nodesPage } from "./nodes.js";
import { overviewPage } from "./overview.js";
import { icon } from "./parts.js";
import { resourcesPage } from "./resources.js";
import { sessionsPage } from "./sessions.js";
import { storagePage } from "./storage.js";
import { tablePage, tablesPage } from "./tables.js";
import { viewPage, viewsPage } from "./views.js";

// Title, how often to ask again (ms), the content, and that of one of them with its name in the server's JSON.
const PAGES = {
  overview: { title: "Overview", every: 4000, show: overviewPage },
  lineage: { title: "Lineage", every: 4000, show: lineagePage },
  views: { title: "Views", every: 3000, show: viewsPage, one: { page: "view", show: viewPage } },
  tables: { title: "Tables", every: 3000, show: tablesPage, one: { page: "table", show: tablePage } },
  jobs: { title: "Jobs", every: 2000, show: jobsPage, one: { page: "job", show: jobPage } },
  nodes: { title: "Nodes", every: 2000, show: nodesPage },
  storage: { title: "Storage", every: 5000, show: storagePage },
  sessions: { title: "Sessions", every: 3000, show: sessionsPage },
  events: { title: "Events", every: 3000, show: eventsPage },
  resources: { title: "Resources", every: 3000, show: resourcesPage },
};
const SLOWEST_RETRY = 5000;
const SAID_FOR = 5000;

const app = {
  session: null,
  route: routeOf(location.hash),
  database: "dev",
  data: new Map(), // the last answer of each route, so that going back shows something at once
  kept: new Map(), // the answers of `once`
  problem: null,
  isConnected: true,
  said: null,
  question: null,

  draw() {
    render(document.getElementById("app"), shell());
  },
  refresh() {
    failures = 0;
    return poll();
  },
  say(text, isBad = false) {
    app.said = { text, isBad };
    clearTimeout(sayTimer);
    sayTimer = setTimeout(() => {
      app.said = null;
      app.draw();
    }, SAID_FOR);
    app.draw();
  },
  complain(error) {
    app.say([error.message, error.hint].filter(Boolean).join(" "), true);
  },
  /** What a page asks for once and keeps: the answer, null until it has come. `name` is of the server's pages. */
  once(name, id) {
    const key = `${app.database}/${name}/${id}`;
    if (!app.kept.has(key)) {
      app.kept.set(key, null);
      showPage(name, { database: app.database, id })
        .catch((error) => ({ problem: error.message }))
        .then((found) => {
          app.kept.set(key, found);
          app.draw();
        });
    }
    return app.kept.get(key);
  },
  again(name, id) {
    app.kept.delete(`${app.database}/${name}/${id}`);
    app.draw();
  },
  confirm(question) {
    app.question = question;
    app.draw();
    document.getElementById("question").showModal();
  },
};

let timer = null, sayTimer = null, failures = 0, asked = 0;

function routeOf(hash) {
  const [, page = "overview", id] = hash.match(/^#\/(\w+)(?:\/(\d+))?$/) ?? [];
  const known = page in PAGES ? page : "overview";
  return { page: known, id: id && PAGES[known].one ? id : null };
}

const keyOf = (route) => `${app.database}/${route.page}/${route.id ?? ""}`;

function shown(route) {
  const page = PAGES[route.page];
  return route.id ? { every: page.every, ...page.one } : { page: route.page, ...page };
}

async function poll() {
  clearTimeout(timer);
  if (document.hidden) return; // until it is looked at again
  const mine = ++asked, route = app.route, page = shown(route);
  try {
    if (!app.session?.user) app.session = await openSession();
    if (app.session.user) {
      const query = { database: app.database, ...(route.id ? { id: route.id } : {}) };
      app.data.set(keyOf(route), await showPage(page.page, query));
    }
    if (mine !== asked) return; // somebody has asked for something else meanwhile
    app.problem = null;
    app.isConnected = true;
    failures = 0;
  } catch (error) {
    if (mine !== asked) return;
    if (error.status === 401) {
      app.session = null; // a restart forgets who was there, and so does a new password
      if (failures++ === 0) return poll();
    }
    app.isConnected = error.status > 0 && error.status < 500;
    app.problem = app.isConnected ? error : null;
    if (!app.isConnected) failures++;
  }
  app.draw();
  const retry = Math.min(500 * 1.6 ** failures, SLOWEST_RETRY);
  timer = setTimeout(poll, failures > 0 ? retry : app.session?.user ? page.every : SLOWEST_RETRY);
}

function shell() {
  if (app.session && !app.session.user) return [loginPage(app), announcement()];
  const { page, id } = app.route, data = app.data.get(keyOf(app.route)), title = PAGES[page].title;
  return [
    h(
      "nav",
      { "aria-label": "Pages" },
      h("a", { class: "brand", href: "#/overview", "aria-label": "Sparkwave, overview" }, h("img", { src: "static/icon.svg", alt: "", width: "26", height: "26" }), h("span", null, "Sparkwave")),
      h(
        "ul",
        null,
        Object.entries(PAGES).map(([name, each]) =>
          h("li", { key: name }, h("a", { href: `#/${name}`, "aria-current": name === page ? "page" : null }, icon(name), h("span", null, each.title))),
        ),
      ),
    ),
    h(
      "div",
      { class: "column" },
      h(
        "header",
        { class: "top" },
        h("h1", { tabindex: "-1" }, id ? [h("a", { href: `#/${page}` }, title), h("span", { class: "muted" }, " / "), data?.name ?? id] : title),
        around(),
      ),
      h("main", { id: "main", class: app.isConnected ? "" : "stale", "aria-busy": data ? null : "true" }, content(data)),
    ),
    question(),
    announcement(),
  ];
}

function around() {
  const databases = app.session?.databases ?? [];
  return h(
    "div",
    { class: "around" },
    h("p", { class: app.isConnected ? "live" : "live lost", role: "status" }, h("i", { "aria-hidden": "true" }), app.isConnected ? "Live" : "Reconnecting…"),
    databases.length > 1
      ? h(
          "select",
          { "aria-label": "Database", onchange: (event) => { app.database = event.target.value; app.refresh(); } },
          databases.map((name) => h("option", { key: name, value: name, selected: name === app.database }, name)),
        )
      : null,
    app.session?.has_passwords && app.session.user
      ? h("button", { type: "button", class: "quiet", onclick: leave }, `Log out ${app.session.user}`)
      : null,
  );
}

function content(data) {
  if (app.problem) {
    const back = h("a", { href: `#/${app.route.page}` }, `To all ${app.route.page}`);
    return h("div", { class: "empty", role: "alert" }, h("h2", null, app.problem.message), h("p", null, app.problem.hint ?? back));
  }
  if (!data) return h("p", { class: "loading" }, app.isConnected ? "Loading…" : "Waiting for the server…");
  return shown(app.route).show(data, app);
}

function question() {
  const asked = app.question;
  const close = () => document.getElementById("question").close();
  return h(
    "dialog",
    { id: "question", "aria-labelledby": "question_title" },
    asked && h("h2", { id: "question_title" }, asked.title),
    asked && h("p", null, asked.text),
    asked &&
      h(
        "div",
        { class: "buttons" },
        h("button", { type: "button", onclick: close }, asked.no),
        h("button", { type: "button", class: "main danger", onclick: () => { close(); answer(asked); } }, asked.yes),
      ),
  );
}

async function answer(asked) {
  try {
    await asked.then();
  } catch (error) {
    app.complain(error);
  }
  app.refresh();
}

const announcement = () =>
  h("div", { class: "said", role: "status", "aria-live": "polite" }, app.said && h("p", { class: app.said.isBad ? "bad" : "" }, app.said.text));

async function leave() {
  app.session = await logOut().catch(() => null);
  app.data.clear();
  app.kept.clear();
  app.refresh();
}

/** On a phone the pages' names are wider than the screen. */
const showWhere = () => document.querySelector("nav [aria-current]")?.scrollIntoView({ inline: "center", block: "nearest" });

addEventListener("hashchange", () => {
  app.route = routeOf(location.hash);
  app.problem = null;
  app.kept.clear();
  document.title = `${PAGES[app.route.page].title} · Sparkwave`;
  app.draw();
  document.querySelector("h1")?.focus({ preventScroll: true });
  showWhere();
  scrollTo(0, 0);
  app.refresh();
});
document.addEventListener("visibilitychange", () => app.refresh());
let isDue = false;
// Many moves of a pointer are one drawing, and what loses the focus while a page is drawn draws it afterwards.
addEventListener("redraw", () => {
  if (!isDue) requestAnimationFrame(() => { isDue = false; app.draw(); });
  isDue = true;
});
addEventListener("online", () => app.refresh());

document.title = `${PAGES[app.route.page].title} · Sparkwave`;
app.draw();
showWhere();
app.refresh();
