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
export const table = (caption, columns, rows) =>
  h(
    "div",
    { class: "table", tabindex: "0", role: "region", "aria-label": caption },
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

/** SQL or a plan, to be read and copied. */
export const listing = (label, text) => h("pre", { class: "listing", tabindex: "0", "aria-label": label }, text);

const PATHS = {
  jobs: "M4 6h10M4 12h16M4 18h7",
  views: "M4 5h16v14H4zM4 10h16M10 10v9",
  nodes: "M4 5h16v6H4zM4 14h16v6H4zM7.5 8h.01M7.5 17h.01",
  events: "M12 7v5l3 2M21 12a9 9 0 1 1-18 0 9 9 0 0 1 18 0z",
  resources: "M4 7h9M17 7h3M4 17h3M11 17h9M15 5v4M9 15v4",
};

export const icon = (name) =>
  h("svg", { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true" }, h("path", { d: PATHS[name] }));
