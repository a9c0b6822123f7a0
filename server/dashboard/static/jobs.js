// The jobs that are being created, and one of them with its fragments.

import { h } from "./dom.js";
import { act } from "./api.js";
import { ago, compact, count, duration, range } from "./format.js";
import { drawPlan } from "./graph.js";
import { bar, chip, code, empty, listing, section, table } from "./parts.js";
import { facts, meter, reason, summary, tags } from "./progress.js";

export function jobsPage(data, app) {
  const jobs = data.jobs.map((job) => summary(job, data.fragments));
  return [
    jobs.length === 0
      ? empty("Nothing is being created", "A view that is being filled shows here: ", code("CREATE MATERIALIZED VIEW … AS SELECT …"), " in any SQL client.")
      : h("ul", { class: "cards" }, jobs.map((job) => card(job, data.may_cancel.includes(job.id), app))),
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
                h("span", { class: "muted" }, `took ${duration((Date.parse(view.created_at) - Date.parse(view.initialized_at)) / 1000)}, ${ago(view.created_at)}`),
              ),
            ),
          ),
        ),
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
      mayCancel ? cancelButton(job, app) : null,
    ),
    tags(job),
    meter(job),
    facts(job),
    reason(job),
  );
}

const cancelButton = (job, app) =>
  h("button", { type: "button", class: "quiet danger", "aria-label": `Cancel ${job.name}`, onclick: () => askToCancel(job, app) }, "Cancel");

function askToCancel(job, app) {
  app.confirm({
    title: `Cancel ${job.name}?`,
    text: "What it has read is thrown away, and its name is free again. Other jobs go on.",
    yes: "Cancel the job",
    no: "Let it run",
    then: async () => {
      const done = await act("cancel", { id: job.id });
      app.say(done.cancelled.length ? `${job.name} is cancelled.` : `${job.name} was finished already.`);
    },
  });
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
      h("header", null, tags(job), data.may_cancel.includes(job.id) ? cancelButton(job, app) : null),
      meter(job),
      facts(job),
      reason(job),
    ),
    section("Plan", planOf(data, data.status)),
    section("Fragments", fragmentTable(data)),
    section("Statement", listing("The statement", data.definition)),
  ];
}

export function planOf(data, status) {
  if (data.plan) return drawPlan(JSON.parse(data.plan), status);
  return h("p", { class: "muted" }, `No plan to show: ${data.plan_error}`);
}

function fragmentTable(data) {
  const parallelism = new Map(data.fragments.map((fragment) => [fragment.fragment_id, fragment.parallelism]));
  const columns = [["Fragment", ""], ["Reads", ""], ["State", ""], ["Progress", "wide"], ["Rows", "number"], ["Rows/s", "number"], ["Left", "number"], ["Tasks", "number"]];
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
      parallelism.get(one.fragment_id) ?? "–",
    ],
  }));
  if (rows.length === 0) return h("p", { class: "muted" }, "Cut into fragments when it starts to read.");
  return table("Fragments", columns, rows);
}
