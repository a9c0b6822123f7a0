// Curves over time. All of a page have the same time below each other.

import { h } from "./dom.js";
import { duration } from "./format.js";

const WIDTH = 300, HEIGHT = 48, TALL = 96;
// A longer time without a point is a gap of the curve.
const GAP_SECONDS = 45;

/** `points` are [Unix seconds, value], `most` the value at the top. A gap of time is a gap of the curve. */
export function curve(points, from, to, most, label) {
  return drawn(points, from, to, most, label, HEIGHT);
}

function drawn(points, from, to, most, label, height) {
  const x = (at) => (((at - from) / (to - from || 1)) * WIDTH).toFixed(1);
  const y = (value) => (height - 1 - Math.min(value / (most || 1), 1) * (height - 3)).toFixed(1);
  const runs = [];
  for (const point of points.filter(([at]) => at >= from)) {
    const last = runs.at(-1);
    if (last && point[0] - last.at(-1)[0] < GAP_SECONDS) last.push(point);
    else runs.push([point]);
  }
  const lines = runs.map((run) => run.map(([at, value]) => `${x(at)} ${y(value)}`).join("L"));
  const areas = runs.map((run, place) => `M${x(run[0][0])} ${height}L${lines[place]}L${x(run.at(-1)[0])} ${height}Z`);
  const alone = runs.filter((run) => run.length === 1).map(([[at, value]]) => `M${x(at)} ${y(value)}h0.01`);
  return h(
    "svg",
    { class: "curve", viewBox: `0 0 ${WIDTH} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": label },
    h("path", { class: "ground", d: `M0 ${height - 0.5}H${WIDTH}M0 0.5H${WIDTH}` }),
    h("path", { class: "area", d: areas.join("") }),
    h("path", { class: "line", d: lines.map((line) => `M${line}`).join("") }),
    alone.length ? h("path", { class: "alone", d: alone.join("") }) : null,
  );
}

const pointed = new Map(); // by a chart's title, the part of its width that is pointed at

/**
 * A chart with its title, newest and largest value. `points` are [Unix seconds, value or null]; `format` makes a text of
 * a value, `label` says what is shown to those who do not see it. `span` is [from, to], by default all of the points.
 */
export function timeChart(title, unit, points, format, label, span = null) {
  const known = points.filter(([, value]) => value !== null);
  const [from, to] = span ?? [points[0]?.[0] ?? 0, points.at(-1)?.[0] ?? 1];
  const largest = known.reduce((most, [, value]) => Math.max(most, value), 0);
  const ceiling = niceAbove(largest * 1.2); // its text is above the curve
  const part = pointed.get(title);
  const at = part === undefined ? null : nearest(known, from + part * (to - from));
  const last = known.at(-1);
  const shown = at ?? last;
  const now = last ? format(last[1]) : "–";
  return h(
    "figure",
    { class: "chart card", key: title },
    h(
      "figcaption",
      null,
      h("span", null, title),
      h("b", null, shown ? format(shown[1]) : "–"),
      h("span", { class: "muted" }, at ? `${duration(Date.now() / 1000 - at[0])} ago` : unit === "ms" ? "" : unit),
    ),
    h(
      "div",
      {
        class: "plot",
        onpointermove: (event) => point(title, (event.clientX - event.currentTarget.getBoundingClientRect().left) / event.currentTarget.clientWidth),
        onpointerleave: () => point(title, undefined),
      },
      known.length === 0 ? h("p", { class: "muted nothing" }, "Nothing yet") : drawn(known, from, to, ceiling, `${label}: now ${now}, at most ${format(largest)}`, TALL),
      known.length === 0 ? null : h("span", { class: "ceiling", "aria-hidden": "true" }, format(ceiling)),
      at ? h("i", { class: "here", "aria-hidden": "true", style: { left: `${((at[0] - from) / (to - from || 1)) * 100}%` } }) : null,
    ),
    h("p", { class: "axis", "aria-hidden": "true" }, h("span", null, `${duration(Math.max(Date.now() / 1000 - from, 0))} ago`), h("span", null, span ? "" : "now")),
  );
}

function point(title, part) {
  if (part === undefined) pointed.delete(title);
  else pointed.set(title, part);
  dispatchEvent(new Event("redraw"));
}

const nearest = (points, at) => points.reduce((best, each) => (best === null || Math.abs(each[0] - at) < Math.abs(best[0] - at) ? each : best), null);

/** The next of 1, 2, 5, 10, 20 … that is not below a number. */
function niceAbove(number) {
  if (number <= 0) return 1;
  const size = 10 ** Math.floor(Math.log10(number));
  return [1, 2, 5, 10].map((step) => step * size).find((each) => each >= number * 0.999);
}
