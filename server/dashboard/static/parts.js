// Pieces that several pages have.

import { h } from "./dom.js";

const TONES = {
  RUNNING: "good", READY: "good", FOLLOWING: "good", FINISHED: "good", "CATCHING UP": "good", FINISHING: "good",
  WAITING: "idle", PROVISIONING: "busy", STARTING: "busy", CREATING: "busy", DRAINING: "idle", DESTROYED: "gone",
  PAUSED: "idle", RETRYING: "warn", BEHIND: "warn", FAILED: "bad",
};

export const toneOf = (state) => TONES[state] ?? "idle";

export const chip = (state, label = state) => h("span", { class: `chip ${toneOf(state)}` }, h("i", { "aria-hidden": "true" }), label.toLowerCase());

export const tag = (text) => h("span", { class: "tag" }, text);

/** A bar of `share` (0 to 1, null while that is not known). */
export const bar = (share, state, label) =>
  h(
    "div",
    {
      class: `bar ${toneOf(state)}${share === null ? " unknown" : ""}`, role: "progressbar", "aria-label": label,
      "aria-valuemin": "0", "aria-valuemax": "100", "aria-valuenow": share === null ? null : (share * 100).toFixed(1),
    },
    h("div", { style: { transform: `scaleX(${share ?? 0})` } }),
  );

export const empty = (title, ...next) => h("div", { class: "empty" }, h("h2", null, title), h("p", null, ...next));

export const code = (text) => h("code", null, text);

export const section = (title, ...content) => h("section", { class: "section", key: title }, h("h2", null, title), ...content);

/** Rows of cells under labels; on a narrow screen each row is a block of its own. `columns` are [label, class]. */
export const table = (caption, columns, rows, kind = "") =>
  h(
    "div",
    { class: `table ${kind}`, tabindex: "0", role: "region", "aria-label": caption },
    h(
      "table",
      null,
      h("caption", { class: "unseen" }, caption),
      h("thead", null, h("tr", null, columns.map(([label, kind]) => h("th", { scope: "col", class: kind }, label)))),
      h(
        "tbody",
        null,
        rows.map(({ key, cells, kind }) =>
          h("tr", { key, class: kind }, cells.map((cell, place) => h("td", { class: columns[place][1], "data-label": columns[place][0] }, cell))),
        ),
      ),
    ),
  );

/** A link with a name, which may go on in the next line after an underscore or a point. */
export const link = (href, text) => h("a", { href }, text.split(/(?<=[_.])/).map((part, place) => [place ? h("wbr") : null, part]));

/** A statement in a cell: its beginning, and all of it for who opens it. */
export function statement(text) {
  const short = text.replace(/\s+/g, " ").trim();
  if (short.length <= 120) return h("code", null, short || "–");
  return h("details", null, h("summary", null, h("code", null, `${short.slice(0, 110)}…`)), h("pre", null, text));
}

const wanted = new Map(); // by a page's name, what is typed into its filter
export const wantedOf = (page) => wanted.get(page) ?? "";

/** A field that filters a page. */
export const search = (page, app, placeholder, label) =>
  h(
    "label",
    { class: "filter" },
    h("span", { class: "unseen" }, label),
    h("input", { type: "search", placeholder, value: wantedOf(page), oninput: (event) => { wanted.set(page, event.target.value); app.draw(); } }),
  );

// Fewer rows need no filter; more than MOST_ROWS are not drawn at once.
const NEED_FILTER = 10, MOST_ROWS = 200;

/** A list with a filter above it, if it is long. `textOf` gives what the filter looks at, `show` draws the rows. */
export function filtered(page, app, list, textOf, show) {
  const text = wantedOf(page).toLowerCase();
  const found = text ? list.filter((each) => textOf(each).toLowerCase().includes(text)) : list;
  return [
    list.length > NEED_FILTER || text ? search(page, app, "Filter by name, kind or state", `Show only ${page} with`) : null,
    found.length === 0 ? h("p", { class: "muted" }, `None of ${list.length} has “${wantedOf(page)}”.`) : show(found.slice(0, MOST_ROWS)),
    found.length > MOST_ROWS ? h("p", { class: "muted" }, `The first ${MOST_ROWS} of ${found.length}. The filter finds the others.`) : null,
  ];
}

/** SQL or a plan, to be read and copied. */
export const listing = (label, text) => h("pre", { class: "listing", tabindex: "0", "aria-label": label }, text);

const PATHS = {
  overview: "M4 13h6V4H4zM14 20h6v-9h-6zM14 7h6V4h-6zM4 20h6v-3H4z",
  lineage: "M4 6h5v4H4zM4 15h5v4H4zM15 10h5v4h-5zM9 8c4 0 2 4 6 4M9 17c4 0 2-5 6-5",
  tables: "M4 7c0-4 16-4 16 0v10c0 4-16 4-16 0zM4 7c0 4 16 4 16 0M4 12c0 4 16 4 16 0",
  storage: "M5 4h11l3 3v13H5zM8 4v5h7V4M8 20v-6h8v6",
  sessions: "M4 5h16v11H4zM9 20h6M12 16v4M7 9l2 2-2 2M11 13h4",
  jobs: "M4 6h10M4 12h16M4 18h7",
  views: "M4 5h16v14H4zM4 10h16M10 10v9",
  nodes: "M4 5h16v6H4zM4 14h16v6H4zM7.5 8h.01M7.5 17h.01",
  events: "M12 7v5l3 2M21 12a9 9 0 1 1-18 0 9 9 0 0 1 18 0z",
  resources: "M4 7h9M17 7h3M4 17h3M11 17h9M15 5v4M9 15v4",
};

export const icon = (name) =>
  h("svg", { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true" }, h("path", { d: PATHS[name] }));
