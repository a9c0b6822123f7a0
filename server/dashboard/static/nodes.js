// The nodes of the Spark applications: those of backfills come and go.

import { h } from "./dom.js";
import { ago, bytes, clock, duration, secondsSince } from "./format.js";
import { chip, code, empty, section, table, tag } from "./parts.js";

export function nodesPage(data) {
  return [
    data.nodes.length === 0
      ? empty("No node runs", "The first view that Spark fills starts one; ", code("--spark-start eager"), " starts it with the server.")
      : h("ul", { class: "cards two" }, data.nodes.map(card)),
    section("Applications", applications(data)),
  ];
}

function card(node) {
  return h(
    "li",
    { key: node.id, class: "card node" },
    h("header", null, h("h2", null, node.host), chip(node.state)),
    h("span", { class: "tags" }, tag(node.resource_group), node.is_serving ? null : tag("serverless")),
    h(
      "dl",
      { class: "facts" },
      [["Cores", node.parallelism], ["Memory", bytes(node.system_total_memory_bytes)], ["Runs for", duration(secondsSince(node.started_at))]].map(([name, value]) =>
        h("div", { key: name }, h("dt", null, name), h("dd", null, value)),
      ),
    ),
  );
}

function applications(data) {
  if (data.applications.length === 0) return h("p", { class: "muted" }, "None in the last quarter of an hour.");
  const columns = [["Application", ""], ["State", ""], ["Size", ""], ["Started", "number"], ["Ready after", "number"], ["Ended", "number"]];
  const rows = data.applications.map((one) => ({
    key: one.id,
    kind: one.state === "DESTROYED" ? "gone" : null,
    cells: [
      one.name,
      [chip(one.state), one.reason ? h("small", { class: "muted" }, one.reason) : null],
      `${one.replicas} × ${one.cores} cores, ${bytes(one.memory_bytes)}`,
      clock(one.started_at),
      one.ready_at ? `${((Date.parse(one.ready_at) - Date.parse(one.started_at)) / 1000).toFixed(1)} s` : "–",
      one.state === "DESTROYED" ? ago(one.changed_at) : "–",
    ],
  }));
  return table("Spark applications", columns, rows);
}
