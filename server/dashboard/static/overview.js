// The one page to look at first: what is wrong, how fast the views follow, and each of them in a line.

import { h } from "./dom.js";
import { timeChart } from "./chart.js";
import { troublesOf } from "./troubles.js";
import { bytes, compact, count, milliseconds, rate } from "./format.js";
import { chip, code, empty, link, section, table } from "./parts.js";
import { summary } from "./progress.js";
import { freshness, hrefOf, proofOf, stateOf } from "./views.js";

// More views than these are on their own page.
const SHOWN = 12;

export function overviewPage(data) {
  const troubles = troublesOf(data);
  return [
    figures(data, troubles),
    troubleList(troubles, data),
    section("The last hour", charts(data.history)),
    section("Views", views(data)),
    section("Resource groups", groups(data)),
  ];
}

function figures(data, troubles) {
  const followed = data.views.filter((view) => view.state !== "CREATING");
  const worst = Math.max(...followed.map((view) => view.lag_ms ?? 0), 0);
  const changed = followed.reduce((sum, view) => sum + (view.changed_rows_per_second ?? 0), 0);
  const creating = data.views.length - followed.length;
  const proven = data.proofs.filter((proof) => proof.result === "PROVEN").length;
  const barrier = data.history.findLast((moment) => moment.barrier_ms !== null);
  const items = [
    ["Views", count(followed.length), creating ? `and ${creating} being created` : `over ${count(data.tables[0].n)} tables`],
    ["Largest lag", followed.length ? milliseconds(worst) : "–", "of all that follow"],
    ["Rows a second", rate(changed), "changed in views"],
    ["Barrier", barrier ? milliseconds(barrier.barrier_ms) : "–", "that changed views"],
    ["Proven", data.proofs.length ? `${count(proven)} of ${count(data.proofs.length)}` : "–", "by their last audits"],
    ["Free on disk", data.disk ? bytes(data.disk.free) : "–", data.disk ? `of ${bytes(data.disk.total)}` : ""],
  ];
  return h(
    "dl",
    { class: "figures" },
    items.map(([name, value, note]) => h("div", { key: name, class: "card" }, h("dt", null, name), h("dd", null, value), h("dd", { class: "note" }, note))),
  );
}

function troubleList(troubles, data) {
  if (troubles.length === 0) {
    const what = data.views.length + data.sources.length === 0 ? "Nothing is wrong." : "All views follow, no job is held up, and no audit has found a difference.";
    return h("p", { class: "well", role: "status" }, h("i", { "aria-hidden": "true" }), what);
  }
  return h(
    "section",
    { class: "section", key: "wrong" },
    h("h2", null, troubles.length === 1 ? "One thing needs a look" : `${troubles.length} things need a look`),
    h(
      "ul",
      { class: "rows troubles" },
      troubles.slice(0, SHOWN).map((trouble) =>
        h(
          "li",
          { key: trouble.key },
          chip(trouble.state, trouble.label),
          h("div", null, trouble.href ? link(trouble.href, trouble.name) : h("b", null, trouble.name), h("p", null, trouble.text)),
        ),
      ),
      troubles.length > SHOWN ? h("li", { key: "more" }, h("span", { class: "muted" }, `and ${troubles.length - SHOWN} more`)) : null,
    ),
  );
}

function charts(history) {
  if (history.length < 2) return h("p", { class: "muted" }, "The first numbers come twenty seconds after the start of the server.");
  const of = (name) => history.map((moment) => [Date.parse(moment.at) / 1000, moment[name]]);
  return h(
    "div",
    { class: "charts four" },
    timeChart("Barrier time", "ms", of("barrier_ms"), milliseconds, "Average time of barriers that changed a view"),
    timeChart("Largest lag", "ms", of("lag_ms"), milliseconds, "Largest lag of a view, index or sink"),
    timeChart("Rows changed in views", "rows/s", of("changed_rows_per_second"), rate, "Rows that barriers changed in views, a second"),
    timeChart("Rows read by backfills", "rows/s", of("backfill_rows_per_second"), rate, "Rows that backfills read, a second"),
  );
}

function views(data) {
  if (data.views.length === 0) {
    return empty("There are no views yet", "Create one over a table: ", code("CREATE MATERIALIZED VIEW … AS SELECT …"), ". It then follows every INSERT, UPDATE and DELETE.");
  }
  const proofs = new Map(data.proofs.map((proof) => [proof.relation_id, proof]));
  const busiest = [...data.views].sort((one, other) => weight(other) - weight(one) || one.job_id - other.job_id).slice(0, SHOWN);
  const columns = [["Name", "name"], ["State", ""], ["Lag", "number"], ["Rows/s", "number"], ["Proof", ""]];
  const rows = busiest.map((view) => ({
    key: view.job_id,
    cells: [
      [link(hrefOf(view), `${view.schema_name}.${view.job_name}`), h("small", { class: "muted" }, view.job_type)],
      view.state === "CREATING" ? creation(view, data) : stateOf(view),
      freshness(view),
      view.changed_rows_per_second === null || view.state === "CREATING" ? "–" : rate(view.changed_rows_per_second),
      proofOf(proofs.get(view.job_id)),
    ],
  }));
  return [
    table("Views, indexes and sinks", columns, rows),
    data.views.length > SHOWN ? h("p", null, link("#/views", `All ${count(data.views.length)}`), h("span", { class: "muted" }, ". Here are those that are stuck, being created or busiest.")) : null,
  ];
}

const RANK = { FAILED: 4e15, BEHIND: 3e15, CREATING: 2e15 };
const weight = (view) => (RANK[view.state] ?? 0) + (view.changed_rows_per_second ?? 0);

function creation(view, data) {
  const job = summary(view, data.fragments);
  return [chip(job.state), h("small", { class: job.reason ? "stuck" : "muted" }, job.reason ?? (job.share === null ? "" : `${Math.floor(job.share * 100)} %${job.rate ? `, ${compact(job.rate)} rows/s` : ""}`))];
}

function groups(data) {
  const columns = [["Group", "name"], ["State", ""], ["Nodes", "number"], ["Cores", "number"], ["Jobs", "number"]];
  const applications = new Map(data.applications.map((one) => [one.resource_group, one]));
  const rows = data.groups.map((group) => {
    const one = applications.get(group.name);
    return {
      key: group.name,
      cells: [
        group.name,
        one ? [chip(one.state), one.reason ? h("small", { class: "muted" }, one.reason) : null] : h("span", { class: "muted" }, "not started: no view has needed Spark"),
        group.streaming_workers,
        group.parallelism,
        group.streaming_jobs,
      ],
    };
  });
  return table("Resource groups", columns, rows);
}
