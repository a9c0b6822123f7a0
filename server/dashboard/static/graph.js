// A plan as a picture: fragments, which exchanges cut it into, from what they read on the left to the view on the right.

import { h } from "./dom.js";
import { compact } from "./format.js";
import { toneOf } from "./parts.js";

const WIDTH = 236, GAP_X = 56, GAP_Y = 20, HEAD = 12, LINE = 34, METER = 34, PAD = 10;

/** `plan` is EXPLAIN's JSON, `status` are rows of rw_backfill_status, none for a view that is created. */
export function drawPlan(plan, status) {
  const root = fragmentOf(plan, [...status]);
  const depth = measure(root);
  const width = depth * (WIDTH + GAP_X) - GAP_X + 2, height = root.room + 2;
  place(root, depth - 1, 1);
  const boxes = [], edges = [];
  collect(root, boxes, edges);
  return h(
    "div",
    { class: "plan", tabindex: "0", role: "region", "aria-label": "Plan of the job, in fragments" },
    h("svg", { width, height, viewBox: `0 0 ${width} ${height}` }, edges.map(drawEdge), boxes.map(drawBox)),
  );
}

function fragmentOf(operator, status) {
  const fragment = { operators: [], below: [] };
  const visit = (each) => {
    for (const child of each.children) {
      if (isExchange(child)) fragment.below.push({ how: child.fields.dist ?? "", fragment: fragmentOf(child.children[0], status) });
      else visit(child);
    }
    fragment.operators.push(describe(each, status));
  };
  visit(operator);
  return fragment;
}

const isExchange = (operator) => operator.name.includes("Exchange");

function describe(operator, status) {
  const table = operator.fields.table;
  const found = table === undefined ? -1 : status.findIndex((one) => one.upstream_name?.split(".").at(-1) === String(table).split(".").at(-1));
  return {
    name: operator.name.replace(/^Stream/, ""),
    detail: table ?? detailOf(operator.fields),
    status: found < 0 ? null : status.splice(found, 1)[0],
  };
}

function detailOf(fields) {
  const name = ["predicate", "aggs", "group_key", "exprs", "columns", "order", "type"].find((each) => fields[each] !== undefined);
  return name === undefined ? "" : [fields[name]].flat().join(", ");
}

const heightOf = (operator) => LINE + (operator.status ? METER : 0);

/** How much room every fragment and what is before it takes. Returns how many fragments there are in a row at most. */
function measure(fragment) {
  fragment.height = HEAD + PAD + fragment.operators.reduce((sum, operator) => sum + heightOf(operator), 0);
  const depths = fragment.below.map((one) => measure(one.fragment));
  const below = fragment.below.reduce((sum, one) => sum + one.fragment.room + GAP_Y, -GAP_Y);
  fragment.room = Math.max(fragment.height, below);
  return 1 + Math.max(0, ...depths);
}

function place(fragment, column, top) {
  fragment.x = 1 + column * (WIDTH + GAP_X);
  fragment.y = top + (fragment.room - fragment.height) / 2;
  const below = fragment.below.reduce((sum, one) => sum + one.fragment.room + GAP_Y, -GAP_Y);
  let next = top + (fragment.room - below) / 2;
  for (const { fragment: other } of fragment.below) {
    place(other, column - 1, next);
    next += other.room + GAP_Y;
  }
}

function collect(fragment, boxes, edges) {
  boxes.push(fragment);
  for (const { how, fragment: other } of fragment.below) {
    edges.push({ from: other, to: fragment, how });
    collect(other, boxes, edges);
  }
}

function drawEdge({ from, to, how }) {
  const x1 = from.x + WIDTH, y1 = from.y + from.height / 2, x2 = to.x, y2 = to.y + to.height / 2, middle = (x1 + x2) / 2;
  return h(
    "g",
    { class: "edge" },
    h("title", null, `Rows go on by ${how}`),
    h("path", { d: `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2 - 5} ${y2}` }),
    h("path", { class: "head", d: `M${x2 - 7} ${y2 - 4}L${x2 - 1} ${y2}L${x2 - 7} ${y2 + 4}Z` }),
  );
}

function drawBox(fragment) {
  let y = HEAD;
  const lines = fragment.operators.map((operator) => {
    const top = y;
    y += heightOf(operator);
    return h(
      "g",
      { transform: `translate(${PAD + 2} ${top})` },
      h("title", null, `${operator.name} ${operator.detail}`),
      h("text", { class: "name", y: "12" }, operator.name),
      h("text", { class: "detail", y: "26" }, cut(operator.detail)),
      operator.status ? drawMeter(operator.status) : null,
    );
  });
  const reads = fragment.operators.some((operator) => operator.status);
  return h("g", { class: reads ? "box reads" : "box", transform: `translate(${fragment.x} ${fragment.y})` }, h("rect", { width: WIDTH, height: fragment.height, rx: 8 }), lines);
}

function drawMeter(status) {
  const share = status.rows_total > 0 ? Math.min(status.rows_done / status.rows_total, 1) : 1;
  const rate = status.rows_per_second ? ` · ${compact(status.rows_per_second)} rows/s` : "";
  const full = WIDTH - 2 * PAD - 4;
  const said = status.reason ?? `${status.state.toLowerCase()}${rate}`;
  return h(
    "g",
    { class: `meter ${toneOf(status.state)}${status.reason ? " stuck" : ""}` },
    h("title", null, `Fragment ${status.fragment_id}: ${said}`),
    h("rect", { class: "track", y: "33", width: full, height: 6, rx: 3 }),
    h("rect", { class: "fill", y: "33", width: full, height: 6, rx: 3, style: { transform: `scaleX(${share})` } }),
    h("text", { class: "status", y: "54" }, `${(share * 100).toFixed(0)} % `, cut(said, 30)),
  );
}

const cut = (text, most = 34) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
