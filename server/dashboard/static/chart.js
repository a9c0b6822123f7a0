// A curve over the last minutes. All of a page have the same time below each other.

import { h } from "./dom.js";

const WIDTH = 300, HEIGHT = 48;

/** `points` are [Unix seconds, value], `most` the value at the top. A gap of time is a gap of the curve. */
export function curve(points, from, to, most, label) {
  const x = (at) => (((at - from) / (to - from)) * WIDTH).toFixed(1);
  const y = (value) => (HEIGHT - 1 - Math.min(value / (most || 1), 1) * (HEIGHT - 3)).toFixed(1);
  const runs = [];
  for (const point of points.filter(([at]) => at >= from)) {
    const last = runs.at(-1);
    if (last && point[0] - last.at(-1)[0] < 30) last.push(point);
    else runs.push([point]);
  }
  const lines = runs.map((run) => run.map(([at, value]) => `${x(at)} ${y(value)}`).join("L"));
  const areas = runs.map((run, place) => `M${x(run[0][0])} ${HEIGHT}L${lines[place]}L${x(run.at(-1)[0])} ${HEIGHT}Z`);
  return h(
    "svg",
    { class: "curve", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": label },
    h("path", { class: "ground", d: `M0 ${HEIGHT - 0.5}H${WIDTH}M0 0.5H${WIDTH}` }),
    h("path", { class: "area", d: areas.join("") }),
    h("path", { class: "line", d: lines.map((line) => `M${line}`).join("") }),
  );
}
