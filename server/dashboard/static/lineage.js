// Where rows come from and where they go: sources, tables, views, indexes and sinks as a picture.

import { h } from "./dom.js";
import { bytes, compact, milliseconds, rate } from "./format.js";
import { layOut } from "./layers.js";
import { code, empty, search, wantedOf } from "./parts.js";
import { summary } from "./progress.js";
import { hrefOfRelation } from "./tables.js";
import { LATE_MS } from "./troubles.js";

const BOX = { boxWidth: 208, gapX: 44, gapY: 14 };
const LINE = 17, LETTERS = 22, HEAD = 20, FOOT = 24, METER = 10, EDGE = 4;
// More boxes are too many for a picture, and for a browser.
const MOST = 400;

let lit = null; // the id of the box that is pointed at or focused

export function lineagePage(data, app) {
  if (data.relations.length === 0) return empty("There is nothing to draw yet", "Tables, views and sinks show here with the ways of their rows: ", code("CREATE TABLE …"), ".");
  const all = relationsOf(data);
  const edges = direct(data.lineage, all);
  const wanted = wantedOf("lineage");
  const found = wanted ? [...all.values()].filter((one) => `${one.full} ${one.kind}`.toLowerCase().includes(wanted.toLowerCase())).map((one) => one.id) : [...all.keys()];
  const shown = new Set(wanted ? found.flatMap((id) => [...reached(edges, id)]) : found);
  const kept = [...all.values()].filter((one) => shown.has(one.id)).slice(0, MOST);
  const ids = new Set(kept.map((one) => one.id));
  return [
    h("div", { class: "bar-of-tools" }, search("lineage", app, "Filter, e.g. orders", "Show only what is connected with"), legend()),
    found.length === 0 ? h("p", { class: "muted" }, `No name has “${wanted}”.`) : picture(kept, edges.filter((edge) => ids.has(edge.from) && ids.has(edge.to)), app),
    shown.size > MOST ? h("p", { class: "muted" }, `The first ${MOST} of ${shown.size}. The filter shows what is connected with a name.`) : null,
    h("p", { class: "muted keys" }, "Enter opens what has the focus; the arrow keys go along the lines."),
  ];
}

function relationsOf(data) {
  const sizes = new Map(data.sizes.map((size) => [size.id, size]));
  const sources = new Map(data.sources.map((source) => [source.source_id, source]));
  const jobs = new Map(data.jobs.map((job) => [job.job_id, job]));
  const proofs = new Map(data.proofs.map((proof) => [proof.relation_id, proof]));
  const named = [
    ...data.relations.map((one) => ({ id: one.id, schema: one.schema_name, name: one.name, kind: one.relation_type })),
    ...data.jobs.map((job) => ({ id: job.job_id, schema: job.schema_name, name: job.job_name, kind: job.job_type })), // those being created
  ];
  const found = new Map();
  for (const one of named) {
    if (found.has(one.id)) continue;
    const lines = wrapped(one.schema === "public" ? one.name : `${one.schema}.${one.name}`);
    const state = stateOf(one, jobs.get(one.id), sources.get(one.id), sizes.get(one.id), proofs.get(one.id), data.fragments);
    found.set(one.id, { ...one, ...state, full: `${one.schema}.${one.name}`, lines, height: HEAD + lines.length * LINE + FOOT + (state.share === undefined ? 0 : METER) });
  }
  return found;
}

/** What stands below a name: `tone`, `said`, the `share` of a job that is being created, whether rows `move`. */
function stateOf(one, job, source, size, proof, fragments) {
  if (job?.state === "CREATING") {
    const made = summary(job, fragments);
    const said = made.share === null ? made.state.toLowerCase() : `${made.state.toLowerCase()} ${Math.floor(made.share * 100)} %${made.rate ? `, ${compact(made.rate)} rows/s` : ""}`;
    return { tone: made.state === "RUNNING" ? "busy" : made.state === "RETRYING" ? "warn" : "idle", said, share: made.share ?? 0, moves: made.state === "RUNNING", href: `#/jobs/${one.id}` };
  }
  const href = hrefOfRelation(one.id, one.kind);
  if (proof?.result === "DIFFERENT") return { tone: "bad", said: "differs from its query", href };
  if (job?.state === "FAILED") return { tone: "bad", said: "set apart", href };
  if (job) {
    const changed = job.changed_rows_per_second >= 0.1 ? `, ${rate(job.changed_rows_per_second)} rows/s` : "";
    const isLate = job.state === "BEHIND" || job.lag_ms > LATE_MS;
    return { tone: isLate ? "warn" : "good", said: `${job.lag_ms === null ? "behind" : `lag ${milliseconds(job.lag_ms)}`}${changed}`, moves: Boolean(changed), href };
  }
  if (source) return { tone: source.state === "RUNNING" ? "good" : source.state === "RETRYING" ? "warn" : "idle", said: `${source.state.toLowerCase()}, ${compact(source.rows_consumed)} rows`, moves: source.state === "RUNNING", href };
  if (one.kind === "view") return { tone: "none", said: "computed when it is read", href };
  return { tone: "none", said: size ? `${compact(size.total_key_count)} rows, ${bytes(size.total_value_size)}` : "", href };
}

/** A name in lines that fit into a box, cut at an underscore, point or space where there is one. */
function wrapped(name) {
  const lines = [];
  for (let rest = [...name]; rest.length > 0; ) {
    let end = rest.length;
    if (end > LETTERS) {
      const at = rest.slice(0, LETTERS).findLastIndex((letter, place) => place > 8 && /[_.\s-]/.test(letter));
      end = at < 0 ? LETTERS : at + 1;
    }
    lines.push(rest.slice(0, end).join(""));
    rest = rest.slice(end);
  }
  return lines;
}

/** The edges without those from a table to what reads it through a plain view. */
function direct(lineage, all) {
  const edges = lineage.filter((edge) => all.has(edge.from_id) && all.has(edge.to_id)).map((edge) => ({ from: edge.from_id, to: edge.to_id }));
  const has = new Set(edges.map((edge) => `${edge.from}>${edge.to}`));
  const views = [...all.values()].filter((one) => one.kind === "view").map((one) => one.id);
  return edges.filter((edge) => !views.some((view) => has.has(`${edge.from}>${view}`) && has.has(`${view}>${edge.to}`)));
}

/** A relation, all that it depends on, and all that depends on it. */
function reached(edges, id) {
  const found = new Set([id]);
  for (const [one, other] of [["from", "to"], ["to", "from"]]) {
    const seen = new Set([id]);
    for (const each of seen) for (const edge of edges) if (edge[one] === each) seen.add(edge[other]);
    for (const each of seen) found.add(each);
  }
  return found;
}

function legend() {
  const kinds = [["source", "source"], ["table", "table"], ["view", "view"], ["materialized", "materialized view"], ["index", "index"], ["sink", "sink"]];
  return h("ul", { class: "legend", "aria-hidden": "true" }, kinds.map(([kind, label]) => h("li", { key: kind, class: `kind ${kind}` }, h("i"), label)));
}

function picture(kept, edges, app) {
  const { width, height, places, lines } = layOut(kept, edges, BOX);
  const near = lit !== null && places.has(lit) ? reached(edges, lit) : null;
  const byId = new Map(kept.map((one) => [one.id, one]));
  const inOrder = [...kept].sort((one, other) => places.get(one.id).column - places.get(other.id).column || places.get(one.id).y - places.get(other.id).y);
  return h(
    "div",
    { class: "lineage", role: "region", "aria-label": "Lineage", tabindex: "-1" },
    h(
      "svg",
      { width: width + 2 * EDGE, height: height + 2 * EDGE, viewBox: `${-EDGE} ${-EDGE} ${width + 2 * EDGE} ${height + 2 * EDGE}`, class: near ? "lit" : "" },
      lines.map((line) => drawLine(line, byId, near)),
      inOrder.map((one) => drawBox(one, places.get(one.id), edges, near, places)),
    ),
  );
}

function drawLine({ from, to, points }, byId, near) {
  const [start, ...rest] = points;
  let path = `M${start[0]} ${start[1]}`, last = start;
  for (const point of rest) {
    const middle = (last[0] + point[0]) / 2;
    path += `C${middle} ${last[1]} ${middle} ${point[1]} ${point[0]} ${point[1]}`;
    last = point;
  }
  const moves = byId.get(to).share !== undefined ? byId.get(to).moves : byId.get(from).moves && byId.get(to).moves;
  const kind = ["line", moves && "moves", near?.has(from) && near.has(to) && "near"].filter(Boolean).join(" ");
  return h("g", { key: `${from}>${to}`, class: kind }, h("path", { d: path }), h("path", { class: "head", d: `M${last[0] - 7} ${last[1] - 4}L${last[0] - 1} ${last[1]}L${last[0] - 7} ${last[1] + 4}Z` }));
}

function drawBox(one, { x, y }, edges, near, places) {
  const light = (id) => { lit = id; dispatchEvent(new Event("redraw")); };
  const from = edges.filter((edge) => edge.to === one.id).length, to = edges.filter((edge) => edge.from === one.id).length;
  const kind = ["relation", one.kind.split(" ")[0], one.tone, near?.has(one.id) && "near"].filter(Boolean).join(" ");
  const full = BOX.boxWidth - 24, foot = HEAD + one.lines.length * LINE + 12;
  return h(
    "a",
    {
      key: one.id, id: `relation_${one.id}`, class: kind, href: one.href, transform: `translate(${x} ${y})`,
      "aria-label": `${one.full}, ${one.kind}, ${one.said}. Reads ${from}, read by ${to}.`,
      onmouseenter: () => light(one.id), onmouseleave: () => light(null), onfocus: () => light(one.id), onblur: () => light(null),
      onkeydown: (event) => walk(event, one.id, edges, places),
    },
    h("title", null, one.full),
    h("rect", { class: "back", width: BOX.boxWidth, height: one.height, rx: 9 }),
    h("path", { class: "stripe", d: `M9 0.75H5A4.25 4.25 0 0 0 0.75 5V${one.height - 5}A4.25 4.25 0 0 0 5 ${one.height - 0.75}H5.5V0.75Z` }),
    h("text", { class: "kind", x: 16, y: 16 }, one.kind),
    one.lines.map((line, place) => h("text", { class: "name", x: 16, y: HEAD + 13 + place * LINE }, line)),
    h("text", { class: "state", x: 16, y: foot + 2 }, one.said),
    one.share === undefined
      ? null
      : [
          h("rect", { class: "track", x: 16, y: foot + 9, width: full, height: 5, rx: 2.5 }),
          h("rect", { class: "fill", x: 16, y: foot + 9, width: Math.max(full * one.share, 0.01), height: 5, rx: 2.5 }),
        ],
  );
}

/** The arrow keys: along an edge, or up and down in a column. */
function walk(event, id, edges, places) {
  const here = places.get(id);
  const column = [...places].filter(([each, place]) => typeof each === "number" && place.column === here.column).sort((one, other) => one[1].y - other[1].y).map(([each]) => each);
  const next = {
    ArrowLeft: () => edges.find((edge) => edge.to === id)?.from,
    ArrowRight: () => edges.find((edge) => edge.from === id)?.to,
    ArrowUp: () => column[column.indexOf(id) - 1],
    ArrowDown: () => column[column.indexOf(id) + 1],
  }[event.key]?.();
  if (next === undefined) return;
  event.preventDefault();
  document.getElementById(`relation_${next}`)?.focus();
}
