// The nodes and what they use: those of backfills come and go.

import { h } from "./dom.js";
import { curve } from "./chart.js";
import { ago, bytes, clock, cores, duration, secondsSince } from "./format.js";
import { chip, section, table, tag } from "./parts.js";

// The time that curves show: at first what there is, in the end all that is remembered.
const SHORTEST = 120, LONGEST = 900;

export function nodesPage(data) {
  const to = Math.max(...Object.values(data.usage).map((samples) => samples.at(-1)[0]), 0);
  const from = Math.max(Math.min(...Object.values(data.usage).map((samples) => samples[0][0]), to - SHORTEST), to - LONGEST);
  const rows = new Map(data.nodes.map((node) => [node.host, node]));
  const names = [...new Set([...rows.keys(), ...Object.keys(data.usage)])].sort(byAge(data.usage));
  const span = { from, to, memory: Math.max(...names.map((name) => mostOf(name, rows, data)), 1) };
  return [
    h("ul", { class: "cards" }, names.map((name) => card(name, rows.get(name), data.usage[name] ?? [], span))),
    section("Applications", applications(data)),
  ];
}

/** The server first, then the nodes in the order in which they came. */
const byAge = (usage) => (one, other) => isServer(other) - isServer(one) || (usage[one]?.[0][0] ?? Infinity) - (usage[other]?.[0][0] ?? Infinity) || one.localeCompare(other);
const isServer = (name) => name === "sparkwave-server";
const mostOf = (name, rows, data) => Math.max(rows.get(name)?.system_total_memory_bytes ?? 0, ...(data.usage[name] ?? []).map((sample) => sample[2]));

function card(name, node, samples, { from, to, memory }) {
  const last = samples.at(-1);
  const isRunning = node !== undefined || (last !== undefined && last[0] > to - 10);
  const most = Math.max(node?.parallelism ?? 1, ...samples.map((sample) => sample[1]));
  const since = node ? `${cores(node.parallelism)} and ${bytes(node.system_total_memory_bytes)}, for ${duration(secondsSince(node.started_at))}` : null;
  return h(
    "li",
    { key: name, class: isRunning ? "card node" : "card node gone" },
    h(
      "header",
      null,
      h("h2", null, name),
      h("span", { class: "tags" }, chip(node?.state ?? (isRunning ? "RUNNING" : "DESTROYED"), node || isRunning ? undefined : "ended"), node ? tag(node.is_serving ? node.resource_group : "serverless") : null),
    ),
    h("p", { class: "reason" }, since ?? (isServer(name) ? "This server: SQL, and the epochs on DuckDB" : last ? `Ended ${duration(Math.max(to - last[0], 0))} ago` : "")),
    h(
      "div",
      { class: "curves" },
      figure("Processor", isRunning && last ? `${last[1].toFixed(2)}${node ? ` of ${cores(node.parallelism)}` : " cores"}` : "–", curve(samples.map(([at, used]) => [at, used]), from, to, most, `Cores used by ${name}`)),
      figure("Memory", isRunning && last ? `${bytes(last[2])}${node ? ` of ${bytes(node.system_total_memory_bytes)}` : ""}` : "–", curve(samples.map(([at, , used]) => [at, used]), from, to, memory, `Memory used by ${name}`)),
    ),
    h("p", { class: "axis", "aria-hidden": "true" }, h("span", null, `${duration(to - from)} ago`), h("span", null, "now")),
  );
}

const figure = (name, value, drawn) => h("div", { class: "figure" }, h("p", null, h("span", { class: "muted" }, name), h("b", null, value)), drawn);

function applications(data) {
  if (data.applications.length === 0) {
    return h("p", { class: "muted" }, "No Spark application has run in the last quarter of an hour. The first view that Spark fills starts one.");
  }
  const columns = [["Application", ""], ["State", ""], ["Size", ""], ["Started", "number"], ["Ready after", "number"], ["Ended", "number"]];
  const rows = data.applications.map((one) => ({
    key: one.id,
    kind: one.state === "DESTROYED" ? "gone" : null,
    cells: [
      one.name,
      [chip(one.state), one.reason ? h("small", { class: "muted" }, one.reason) : null],
      `${one.replicas} × ${cores(one.cores)}, ${bytes(one.memory_bytes)}`,
      clock(one.started_at),
      one.ready_at ? `${((Date.parse(one.ready_at) - Date.parse(one.started_at)) / 1000).toFixed(1)} s` : "–",
      one.state === "DESTROYED" ? ago(one.changed_at) : "–",
    ],
  }));
  return table("Spark applications", columns, rows);
}
