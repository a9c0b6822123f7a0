// The jobs that are being created, what one would take, and one of them with its fragments.

import { h } from "./dom.js";
import { timeChart } from "./chart.js";
import { jobControls } from "./controls.js";
import { ago, compact, count, milliseconds, range, rate } from "./format.js";
import { drawPlan } from "./graph.js";
import { bar, chip, code, empty, listing, section, table } from "./parts.js";
import { facts, meter, reason, summary, tags } from "./progress.js";
import { jobQuote, measuredBackfills, quoteForm, seconds } from "./quotes.js";

// The most points of a curve, and the least seconds of each.
const BINS = 120, SHORTEST_BIN = 4;

export function jobsPage(data, app) {
  const jobs = data.jobs.map((job) => summary(job, data.fragments));
  return [
    jobs.length === 0
      ? empty("Nothing is being created", "A view that is being filled shows here: ", code("CREATE MATERIALIZED VIEW … AS SELECT …"), " in any SQL client.")
      : h("ul", { class: "cards" }, jobs.map((job) => card(job, data.may_cancel.includes(job.id), app))),
    quoteForm(app),
    data.created.length === 0
      ? null
      : section(
          "Created last",
          h(
            "ul",
            { class: "rows" },
            data.created.map((view) =>
              h(
                "li",
                { key: view.id },
                h("a", { href: `#/views/${view.id}` }, `${view.schema_name}.${view.name}`),
                h("span", { class: "muted" }, `took ${milliseconds(Date.parse(view.created_at) - Date.parse(view.initialized_at))}, ${ago(view.created_at)}`),
              ),
            ),
          ),
        ),
    data.measured.length === 0 ? null : section("What backfills took", measuredBackfills(data.measured, Number(data.price[0]?.value ?? 0))),
  ];
}

function card(job, mayCancel, app) {
  return h(
    "li",
    { key: job.id, class: "card job" },
    h(
      "header",
      null,
      h("h2", null, h("a", { href: `#/jobs/${job.id}` }, job.name), h("span", { class: "muted" }, ` ${job.id}`)),
      mayCancel ? jobControls(job, app) : null,
    ),
    tags(job),
    meter(job),
    facts(job),
    reason(job),
  );
}

export function jobPage(data, app) {
  if (data.jobs.length === 0) {
    return empty(`${data.name} is created`, "It follows its tables now: ", h("a", { href: `#/views/${app.route.id}` }, "see the view"), ".");
  }
  const job = summary(data.jobs[0], data.status);
  return [
    h(
      "div",
      { class: "card job" },
      h("header", null, tags(job), data.may_cancel.includes(job.id) ? jobControls(job, app, true) : null),
      meter(job),
      facts(job),
      reason(job),
    ),
    section("Speed", speed(data, job)),
    section("Fragments", fragmentTable(data)),
    section("Plan", planOf(data, data.status)),
    section("Quote", jobQuote(app, job.id)),
    section("Statement", listing("The statement", data.definition)),
  ];
}

/** How many of a fragment's slices are read; what reads in order is not cut beforehand, and has only finished steps. */
function splitOf(split) {
  if (!split) return "–";
  return split.finished < split.steps ? `${count(split.finished)} of ${count(split.steps)}` : count(split.finished);
}

/** The rows read a second since the job has started: from its finished steps, which outlive a restart. */
function speed(data, job) {
  const from = Date.parse(job.started) / 1000, to = Date.now() / 1000;
  const width = Math.max((to - from) / BINS, SHORTEST_BIN), steps = data.steps.map((step) => [Date.parse(step.finished_at) / 1000, step.row_count]);
  if (steps.length === 0) return h("p", { class: "muted" }, "No step is finished yet: a slice counts when all of its rows are read.");
  const bins = Array.from({ length: Math.ceil((to - from) / width) }, (_, place) => [from + (place + 0.5) * width, 0]);
  // A step's rows are read between the step before and its own end.
  let before = from;
  for (const [at, rows] of steps) {
    const first = Math.floor((before - from) / width), last = Math.min(Math.floor((at - from) / width), bins.length - 1);
    for (let place = Math.min(first, last); place <= last; place++) bins[place][1] += rows / (last - Math.min(first, last) + 1) / width;
    before = at;
  }
  // What runs has read rows since its last step, which no step says yet.
  const known = job.state === "RUNNING" ? bins.filter(([at]) => at + width / 2 <= before) : bins;
  return h("div", { class: "charts one" }, timeChart("Rows read", "rows/s", known, rate, "Rows read a second", [from, to]));
}

/** What a finished backfill took, as words. */
export const measuredCost = (each) => `read ${count(each.row_count)} rows in ${seconds(each.seconds)}${each.start_seconds ? `, after ${seconds(each.start_seconds)} for its group` : ""} (${each.engine}, ${each.cores === 1 ? "1 core" : `${each.cores} cores`})`;

export function planOf(data, status) {
  if (data.plan) return drawPlan(JSON.parse(data.plan), status);
  return h("p", { class: "muted" }, `No plan to show: ${data.plan_error}`);
}

function fragmentTable(data) {
  const parallelism = new Map(data.fragments.map((fragment) => [fragment.fragment_id, fragment.parallelism]));
  const splits = new Map(data.splits.map((split) => [split.fragment_id, split]));
  const columns = [["Fragment", ""], ["Reads", ""], ["State", ""], ["Progress", "wide"], ["Rows", "number"], ["Rows/s", "number"], ["Left", "number"], ["Steps", "number"], ["Tasks", "number"]];
  const rows = data.status.filter((one) => one.fragment_id !== null).map((one) => ({
    key: one.fragment_id,
    cells: [
      one.fragment_id,
      one.upstream_name ?? "–",
      [chip(one.state), one.reason ? h("small", { class: "stuck" }, one.reason) : null],
      bar(one.rows_total > 0 ? Math.min(one.rows_done / one.rows_total, 1) : 1, one.state, `Fragment ${one.fragment_id}`),
      `${count(one.rows_done)} of ${count(one.rows_total)}`,
      one.rows_per_second === null ? "–" : compact(one.rows_per_second),
      one.seconds_left_high === null ? "–" : range(one.seconds_left_low ?? 0, one.seconds_left_high),
      splitOf(splits.get(one.fragment_id)),
      parallelism.get(one.fragment_id) ?? "–",
    ],
  }));
  if (rows.length === 0) return h("p", { class: "muted" }, "Cut into fragments when it starts to read.");
  return table("Fragments", columns, rows);
}
